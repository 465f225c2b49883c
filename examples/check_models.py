#!/usr/bin/env python3
"""Runs the committed models of the examples on their test data in ONNX Runtime and compares.

    python3 examples/check_models.py [FOLDER_WITH_MODELS]

Needs onnx and onnxruntime; without them it says so and ends with 77, which CTest can take for "skipped". Each value
must be within 1e-4 * (largest expected magnitude) + 1e-4 * (its own) of the expected one. Prints the worst per model.
"""

import pathlib
import sys

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import numpy_helper
except ImportError as missing:
    print(f"check_models: not run: {missing}")
    sys.exit(77)


def read_tensors(place, kind):
    count = len(list(place.glob(f"{kind}_*.pb")))
    return [numpy_helper.to_array(onnx.load_tensor(str(place / f"{kind}_{index}.pb"))) for index in range(count)]


def difference(expected, actual):
    """The worst error in units of the tolerance; infinite when the tensors are not of one kind."""
    if expected.shape != actual.shape or expected.dtype != actual.dtype:
        return float("inf")
    magnitude = np.abs(expected.astype(np.float64))
    error = np.abs(expected.astype(np.float64) - actual)
    worst = (error / (1e-4 * magnitude.max() + 1e-4 * magnitude + 1e-30)).max()
    return float("inf") if np.isnan(worst) else float(worst)


def check(folder):
    """The worst difference over all test sets of one model."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
    places = sorted(folder.glob("test_data_set_*"))
    worst = 0.0 if places else float("inf")
    for place in places:
        inputs, outputs = read_tensors(place, "input"), read_tensors(place, "output")
        names = [entry.name for entry in session.get_inputs()]
        if len(inputs) != len(names) or len(outputs) != len(session.get_outputs()):
            return float("inf")
        actual = session.run(None, dict(zip(names, inputs)))
        worst = max([worst] + [difference(e, a) for e, a in zip(outputs, actual)])
    print(f"{folder.name}: {len(places)} test sets, worst error {worst:.3f} of the tolerance")
    return worst


def main():
    home = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent
    folders = sorted(path.parent for path in home.glob("*/model.onnx"))
    if not folders:
        sys.exit(f"check_models: no models in {home}")
    failed = [folder.name for folder in folders if not check(folder) <= 1]
    if failed:
        sys.exit("check_models: wrong: " + ", ".join(failed))


if __name__ == "__main__":
    main()
