#!/usr/bin/env python3
"""gcompile.InferenceSession beside onnxruntime.InferenceSession, on real models and random inputs.

    beside_onnxruntime.py [MODEL...]

Run by tests/python/session.py with the interpreter that has ONNX Runtime, which must see the package gcompile. Without MODEL
the main suite. Integers are equal, floats within the tolerance of `gcompile verify` (README.md, "What right means"). Where
ONNX Runtime misses the outputs that a model brings, as with sums of bytes that saturate on processors without VNNI, ours are
compared with these.
Exit: 0 right, 1 not, 77 there are no models, or no ONNX Runtime.
"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "conformance"))

import real_models  # noqa: E402  pylint: disable=wrong-import-position

try:
    import numpy
    import gcompile
    import onnxruntime_test
except ImportError as error:
    real_models.skip(str(error))


def off(expected, actual):
    """What is wrong, or an empty string."""
    if expected.dtype != actual.dtype or expected.shape != actual.shape:
        return f"{actual.dtype} {actual.shape}, expected {expected.dtype} {expected.shape}"
    if expected.dtype.kind != "f":
        wrong = int((expected != actual).sum())
        return f"{wrong} of {expected.size} integers" if wrong else ""
    wide = expected.astype("float64")
    bound = 1e-4 * numpy.abs(wide) + 1e-5 * max(1.0, float(numpy.sqrt(numpy.mean(wide**2))) if wide.size else 1.0)
    ratio = float((numpy.abs(wide - actual) / bound).max()) if wide.size else 0.0
    return f"{ratio:.2f} of the tolerance" if not ratio <= 1 else ""


def all_off(expected, actual):
    """What is wrong with outputs."""
    said = [(place, off(numpy.asarray(one), numpy.asarray(other))) for place, (one, other) in enumerate(zip(expected, actual))]
    return [f"output {place}: {text}" for place, text in said if text]


def compare(folder, name):
    """What is wrong with one model."""
    subject = onnxruntime_test.Subject(folder, name)
    options = gcompile.SessionOptions()
    options.intra_op_num_threads = 2
    session = gcompile.InferenceSession(str(subject.path), options, providers=["CPUExecutionProvider"])
    wrong = []
    for ours, theirs in ((session.get_inputs(), subject.session.get_inputs()), (session.get_outputs(), subject.session.get_outputs())):
        if [(each.name, each.type) for each in ours] != [(each.name, each.type) for each in theirs]:
            wrong.append(f"ports {ours}, expected {[(each.name, each.type, each.shape) for each in theirs]}")
    if session.get_modelmeta().producer_name != subject.session.get_modelmeta().producer_name:
        wrong.append("the producer")
    inputs = subject.inputs(subject.shapes[0], 1)
    of_outputs = all_off(subject.session.run(None, inputs), session.run(None, inputs))
    how = "as ONNX Runtime"
    if of_outputs:
        data = folder / name / "test_data_set_0"
        shipped = [onnxruntime_test.read_tensor(data / f"output_{i}.pb") for i in range(len(session.get_outputs()))]
        if all_off(shipped, subject.session.run(None, subject.samples)):
            of_outputs, how = all_off(shipped, session.run(None, subject.samples)), "as its own data, which ONNX Runtime misses here"
    wrong += of_outputs
    print(f"{name}: {'; '.join(wrong) or how}", flush=True)
    return wrong


def main():
    folder = real_models.models_folder()
    if not (folder / "INDEX.md").exists():
        real_models.skip(f"no models in {folder}")
    names = sys.argv[1:] or real_models.main_suite(folder)
    failures = [name for name in names if compare(folder, name)]
    print(f"{len(names) - len(failures)} of {len(names)} models answer as ONNX Runtime does")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
