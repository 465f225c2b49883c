#!/usr/bin/env python3
"""Is an inner value off because of a bug, or because float32 rounds? Asks float64 and a second float32 program.

    float64_layers.py GCOMPILE MODEL DATA [CASE]

MODEL.onnx runs three times on the inputs of DATA/test_data_set_CASE (0): as emitted, with every surviving value as an
output; in ONNX Runtime with its optimisations off, likewise; and node by node in float64, where nothing is rounded to
float32. Prints for each value at which one of the two is off by more than half the tolerance of `gcompile verify`: the
root mean square of the value, then the worst error in units of the tolerance and the error's root mean square relative
to the value's, of gcompile and of ONNX Runtime. Fails where gcompile is off and its relative error is more than twice
ONNX Runtime's: then it is not the arithmetic that they share. Needs `scripts/install_packages.sh bench`.
Exit: 0 right, 1 not, 77 there is no ONNX Runtime or no model.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import real_models

try:
    import numpy as np
    import onnx
    from onnx import numpy_helper
    from onnx.reference import ReferenceEvaluator
    import onnxruntime_test
except ImportError as error:
    real_models.skip(f"{error}; `scripts/install_packages.sh bench` installs ONNX Runtime")

FLOAT, DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
# Operands that ONNX wants in float32 whatever the data is.
FLOAT_OPERANDS = {"Resize": (1, 2), "Upsample": (1,)}


def widened(array):
    return array.astype(np.float64) if array.dtype == np.float32 else array


def widen_attributes(node):
    for item in node.attribute:
        if item.name == "to" and item.i == FLOAT:
            item.i = DOUBLE
        elif item.type == onnx.AttributeProto.TENSOR and item.t.data_type == FLOAT:
            item.t.CopyFrom(numpy_helper.from_array(widened(numpy_helper.to_array(item.t)), item.t.name))


def batch_normalization(node, operands):
    """Inference. onnx's evaluator takes the operator of opsets 9 to 13 for training and uses the batch's statistics."""
    shape = (1, -1) + (1,) * (operands[0].ndim - 2)
    x, scale, bias, mean, variance = operands[0], *(operand.reshape(shape) for operand in operands[1:])
    epsilon = next((item.f for item in node.attribute if item.name == "epsilon"), 1e-5)
    return [scale * (x - mean) / np.sqrt(variance + epsilon) + bias]


def run_node(node, values, opsets):
    names = list(dict.fromkeys(name for name in node.input if name))
    if node.op_type == "BatchNormalization":
        return batch_normalization(node, [values[name] for name in node.input])
    narrow = {node.input[i] for i in FLOAT_OPERANDS.get(node.op_type, ()) if i < len(node.input)}
    operands = {name: values[name].astype(np.float32) if name in narrow else values[name] for name in names}
    inputs = [onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(operands[name].dtype), None)
              for name in names]
    outputs = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.UNDEFINED, None) for name in node.output]
    graph = onnx.helper.make_graph([node], "node", inputs, outputs)
    return ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=opsets)).run(None, operands)


def float64_values(model, inputs):
    """Every value by name."""
    values = {tensor.name: widened(numpy_helper.to_array(tensor)) for tensor in model.graph.initializer}
    values.update({name: widened(array) for name, array in inputs.items()})
    for source in model.graph.node:
        node = onnx.NodeProto()
        node.CopyFrom(source)
        widen_attributes(node)
        for name, value in zip(node.output, run_node(node, values, model.opset_import)):
            if np.asarray(value).dtype == np.float32:
                sys.exit(f"onnx computes {node.op_type} '{name}' in float32")
            values[name] = np.asarray(value)
    return values


def runtime_values(model, inputs, names, folder):
    exposed = onnx.ModelProto()
    exposed.CopyFrom(model)
    taken = {value.name for value in model.graph.output}
    for name in names:
        if name not in taken:
            exposed.graph.output.add(name=name).type.tensor_type.elem_type = FLOAT
    onnx.save(exposed, folder / "exposed.onnx")
    session = onnxruntime_test.runtime_session(folder / "exposed.onnx")
    return dict(zip([value.name for value in session.get_outputs()], session.run(None, inputs)))


def emitted_values(gcompile, path, data, folder):
    """The report of `verify --layers`, whose verdict is not the question here."""
    keep = folder / "keep"
    done = subprocess.run([gcompile, "verify", path, "--data", data, "--layers", "--name", "m", "--keep", keep, "-q",
                           "--cxx", real_models.compiler()], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(f"gcompile verify: exit {done.returncode}: {done.stderr}")
    ports = json.loads((keep / "0" / "m" / "meta" / "m.json").read_text(encoding="utf-8"))["outputs"]
    files = {int(file.name.split("_")[0]): file for file in (keep / "0" / "case_0").glob("[0-9]*.npy")}
    return {port["name"]: np.load(files[i]) for i, port in enumerate(ports)}


def errors(exact, value):
    """The worst error in units of verify's tolerance, and the error's root mean square relative to the value's."""
    scale = np.sqrt(np.mean(exact * exact))
    error = np.abs(value.astype(np.float64) - exact)
    allowed = 1e-4 * np.abs(exact) + 1e-5 * max(1.0, scale)
    return float(np.max(error / allowed)), float(np.sqrt(np.mean(error * error)) / (scale or 1.0))


def compare(exact, emitted, runtime):
    """Names at which gcompile is wrong."""
    count, ratios, wrong = 0, [], []
    print("value: rms; worst of the tolerance, relative rms error: gcompile; ONNX Runtime")
    for name in runtime:
        if name not in emitted or emitted[name].shape != exact[name].shape or not exact[name].size:
            continue
        (worst, relative), (other_worst, other_relative) = (errors(exact[name], values[name])
                                                            for values in (emitted, runtime))
        count += 1
        if other_relative > 0:
            ratios.append(relative / other_relative)
        if max(worst, other_worst) > 0.5:
            print(f"{name}: {np.sqrt(np.mean(exact[name] ** 2)):.4g}; {worst:.2f} {relative:.2e}; "
                  f"{other_worst:.2f} {other_relative:.2e}")
        if worst > 1 and relative > 2 * other_relative:
            wrong.append(name)
    print(f"{count} values; median of the ratio of relative errors {np.median(ratios):.2f}")
    return wrong


def main():
    gcompile, path, data, *rest = sys.argv[1:]
    path, case = pathlib.Path(path), pathlib.Path(data) / f"test_data_set_{rest[0] if rest else 0}"
    if not path.exists():
        real_models.skip(f"no {path}")
    model = onnx.load(path)
    constants = {tensor.name for tensor in model.graph.initializer}
    names = [value.name for value in model.graph.input if value.name not in constants]
    inputs = {name: onnxruntime_test.read_tensor(case / f"input_{i}.pb") for i, name in enumerate(names)}
    exact = float64_values(model, inputs)
    floats = [name for node in model.graph.node for name in node.output if name and exact[name].dtype == np.float64]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        wrong = compare(exact, emitted_values(gcompile, path, case, folder),
                        runtime_values(model, inputs, floats, folder))
    if wrong:
        print(f"worse than float32 explains: {wrong}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
