#!/usr/bin/env python3
"""Real models give the same bits for every number of threads.

    threads_test.py GCOMPILE [MODEL...]

Each model is compiled, built and run on one seeded random input by 1, 2, 3, 4 and 16 threads; all outputs must be the
same bytes. Without MODEL a few models; with GCOMPILE_LONG_TESTS=1 all that compile. Prints how many do.
Exit: 0 right, 1 not, 77 there are no models.
"""

import pathlib
import sys
import tempfile

import onnx

import real_models

THREADS = (1, 2, 3, 4, 16)
# One row times constants, transposed convolutions, few pixels with a long depth, attention, integers, recurrence.
SUBSET = ["acasxu_1_1", "deeploy_cct_opset20", "dtln_2", "gtcrn_stream_simple", "mlperf_tiny_ic_resnet8_int8"]

# What random inputs may not be: a sampling rate that the model does not know.
OPTIONS = {"silero_vad_v6": ["--set", "sr=16000"]}


def shape_options(folder):
    """The shapes of the first test data as options of gcompile; none where there is no such data."""
    model = onnx.load(str(folder / "model.onnx"), load_external_data=False)
    initialized = {tensor.name for tensor in model.graph.initializer}
    inputs = [value for value in model.graph.input if value.name not in initialized]
    options = []
    for i, value in enumerate(inputs):
        path = folder / "test_data_set_0" / f"input_{i}.pb"
        if not path.exists() or value.type.tensor_type.shape is None:
            continue
        tensor = onnx.TensorProto()
        tensor.ParseFromString(path.read_bytes())
        if tensor.dims:
            options += ["--shape", f"{value.name}:{'x'.join(map(str, tensor.dims))}"]
    return options


def outputs_by(threads, runner, folder):
    """The bytes of every output, or a message where the program fails."""
    out = folder / f"threads_{threads}"
    out.mkdir()
    status, _, err = real_models.run([runner, "--random", "1", "--threads", str(threads), "--output-dir", str(out)])
    if status != 0:
        return f"{threads} threads: exit {status}: {real_models.first_line(err)}"
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


def check(gcompile, model, folder):
    """(whether it compiles, what is wrong or an empty string)"""
    project = folder / "project"
    status, _, err = real_models.run(
        [gcompile, str(model / "model.onnx"), "-q", "--name", "m", "-o", str(project), *shape_options(model),
         *OPTIONS.get(model.name, [])])
    if status == 1:
        return False, real_models.first_line(err)
    if status != 0:
        return True, f"exit {status}: {real_models.first_line(err)}"
    status, _, err = real_models.run(["make", "-C", str(project), f"CXX={real_models.compiler()}", "CXXFLAGS=-O1",
                                      "build/m_run"])
    if status != 0:
        return True, f"does not build: {real_models.first_line(err)}"
    expected = outputs_by(1, project / "build" / "m_run", folder)
    for threads in THREADS:
        actual = outputs_by(threads, project / "build" / "m_run", folder) if threads != 1 else expected
        if isinstance(actual, str):
            return True, actual
        if not actual:
            return True, "no outputs"
        different = [name for name, data in actual.items() if data != expected.get(name)]
        if different or len(actual) != len(expected):
            return True, f"{threads} threads: other bits in {', '.join(different)}"
    return True, ""


def main():
    gcompile, *names = sys.argv[1:]
    folder, names = real_models.chosen(names, SUBSET, real_models.all_models)
    right, compiled, refused = 0, 0, []
    for name in names:
        with tempfile.TemporaryDirectory() as scratch:
            compiles, problem = check(gcompile, folder / name, pathlib.Path(scratch))
        if not compiles:
            refused.append(name)
            continue
        compiled += 1
        right += not problem
        if problem:
            print(f"{name}: {problem}", flush=True)
    print(f"{right} of {compiled} models give the same bits for {', '.join(map(str, THREADS))} threads; "
          f"{len(refused)} do not compile{': ' if refused else ''}{', '.join(refused)}")
    return 0 if right == compiled and (compiled > 0) else 1


if __name__ == "__main__":
    sys.exit(main())
