#!/usr/bin/env python3
"""The types that gcompile infers, beside those of ONNX's own shape inference, a second opinion: evaluator and code
generator share gcompile's rules and cannot judge them.

    shapes_test.py GCOMPILE CASES DIFFERENCES

Every value that both know by name, of the official cases below CASES and of the models of ../shared/models, at the
shapes of their test data. Without GCOMPILE_LONG_TESTS=1 every twelfth case and every sixth model, others with each
commit. DIFFERENCES lists, one a line, what may differ: MODEL VALUE, then why. What this onnx has no rules for (an opset
that is newer than it) is counted and said. Exit: 0 no difference that is not on the list, 1 some, 77 no cases.
"""

import pathlib
import re
import sys
import tempfile

import real_models

try:
    import onnx
    from onnx import numpy_helper, shape_inference
except ImportError as error:
    real_models.skip(f"{error}; scripts/install_packages.sh test installs it")

NAMES = {1: "f32", 2: "u8", 3: "i8", 4: "u16", 5: "i16", 6: "i32", 7: "i64", 9: "bool", 10: "f16", 11: "f64", 12: "u32",
         13: "u64", 16: "bf16"}
VALUE = re.compile(r"%\d+ (\S+) (f32|u8|i8|u16|i16|i32|i64|bool|f16|f64|u32|u64|bf16)\[([0-9,]*)\]")


def read_differences(path):
    """(model, value) -> reason."""
    rows = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            model, value, reason = line.split(" ", 2)
            rows[model, value] = reason
    return rows


def inferred(gcompile, model, path, shapes):
    """What gcompile has made of the model before any pass: name -> type, or nothing where it refuses the model."""
    with tempfile.TemporaryDirectory() as folder:
        if not any(tensor.data_location == onnx.TensorProto.EXTERNAL for tensor in model.graph.initializer):
            path = pathlib.Path(folder) / "model.onnx"
            onnx.save(model, path)
        flags = [word for name, shape in shapes.items() if shape
                 for word in ("--shape", f"{name}:{'x'.join(map(str, shape))}")]
        status, _, _ = real_models.run([gcompile, "opt", str(path), "-O0", "-q", "--dump-dir", f"{folder}/dump", *flags])
        dump = pathlib.Path(folder) / "dump" / "00-imported.txt"
        if status != 0 or not dump.exists():
            return None
        text = dump.read_text(encoding="utf-8")
    return {name: (kind, tuple(int(size) for size in sizes.split(",") if size))
            for name, kind, sizes in VALUE.findall(text)}


def second_opinion(model, shapes):
    """By ONNX: name -> type, where every size is known."""
    for value in model.graph.input:
        if value.name in shapes:
            dims = value.type.tensor_type.shape
            del dims.dim[:]
            dims.SetInParent()
            for size in shapes[value.name]:
                dims.dim.add().dim_value = size
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    try:
        graph = shape_inference.infer_shapes(model, data_prop=True).graph
    except Exception as error:  # pylint: disable=broad-except  # whatever its C++ throws
        return None, real_models.first_line(str(error))
    types = {}
    for value in [*graph.value_info, *graph.output]:
        kind = value.type.tensor_type
        if not value.type.HasField("tensor_type") or not kind.HasField("shape") or kind.elem_type not in NAMES:
            continue
        if all(dim.HasField("dim_value") for dim in kind.shape.dim):
            types[value.name] = (NAMES[kind.elem_type], tuple(dim.dim_value for dim in kind.shape.dim))
    return types, ""


def test_data(model, folder):
    """The first set of test data, by input."""
    given = {tensor.name for tensor in model.graph.initializer}
    inputs = [value.name for value in model.graph.input if value.name not in given]
    data = {}
    for i, name in enumerate(inputs):
        path = folder / "test_data_set_0" / f"input_{i}.pb"
        if not path.exists():
            continue
        tensor = onnx.TensorProto()
        try:
            tensor.ParseFromString(path.read_bytes())
            numpy_helper.to_array(tensor)
        except Exception:  # pylint: disable=broad-except  # sequences and optionals
            continue
        tensor.name = name
        data[name] = tensor
    return data


def with_constants(model, names, data):
    """The model in which these inputs are constants."""
    out = onnx.ModelProto()
    out.CopyFrom(model)
    kept = [value for value in model.graph.input if value.name not in names]
    del out.graph.input[:]
    out.graph.input.extend(kept)
    out.graph.initializer.extend(data[name] for name in names)
    return out


def readings(model, data):
    """The model as it is, then with more and more inputs that gcompile may have to know."""
    names = list(data)
    integers = [name for name in names[1:] if data[name].data_type not in (1, 10, 11, 16)]
    yield model
    for known in (integers, names[1:], names):
        if known:
            yield with_constants(model, known, data)


class Tally:
    """What was compared."""

    def __init__(self, gcompile, differences):
        self.gcompile, self.differences = gcompile, differences
        self.models = self.values = self.refused = self.known = 0
        self.silent, self.wrong = [], []

    def judge(self, name, folder):
        path = folder / "model.onnx"
        try:
            model = onnx.load(path)
        except Exception:  # pylint: disable=broad-except  # hostile files are judged elsewhere
            self.silent.append(name)
            return
        data = test_data(model, folder)
        newest = max((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), default=1)
        if newest > onnx.defs.onnx_opset_version():
            self.silent.append(name)
            return
        for reading in readings(model, data):
            left = {value.name for value in reading.graph.input}
            shapes = {key: tuple(tensor.dims) for key, tensor in data.items() if key in left}
            ours = inferred(self.gcompile, reading, path, shapes)
            if ours is not None:
                break
        else:
            self.refused += 1
            return
        theirs, _ = second_opinion(reading, shapes)
        if theirs is None:
            self.silent.append(name)
            return
        self.models += 1
        for value, kind in sorted(theirs.items()):
            if value not in ours:
                continue
            self.values += 1
            if ours[value] == kind:
                continue
            if (name, value) in self.differences:
                self.known += 1
            else:
                self.wrong.append(f"{name} {value}: {ours[value]}, by ONNX {kind}")


def main():
    gcompile, cases, differences = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    folders = {}
    for group in ("node", "simple", "pytorch-operator", "pytorch-converted"):
        root = cases / group
        for path in sorted(root.glob("*/model.onnx")) if root.is_dir() else []:
            folders[f"{group}/{path.parent.name}"] = path.parent
    if not folders:
        real_models.skip(f"no official cases in {cases}")
    if not real_models.is_long():
        commits = real_models.run(["git", "-C", str(real_models.ROOT), "rev-list", "--count", "HEAD"])[1]
        first = int(commits or 0) % 12
        folders = dict(list(folders.items())[first::12])
    models = real_models.models_folder()
    names = real_models.all_models(models) if models.is_dir() else []
    print(f"{len(folders)} official cases{'' if names else f'; no models in {models}'}")
    folders.update({name: models / name for name in (real_models.in_turn(names, 6) if names else [])})
    tally = Tally(gcompile, read_differences(differences))
    for name, folder in folders.items():
        tally.judge(name, folder)
    for line in tally.wrong:
        print(line)
    print(f"onnx {onnx.__version__}: {tally.models} models, {tally.values} types compared, {len(tally.wrong)} differ, "
          f"{tally.known} as the list says; {tally.refused} models refused, {len(tally.silent)} of which onnx says nothing")
    if tally.values == 0:
        print("nothing was compared")
        return 1
    return 1 if tally.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
