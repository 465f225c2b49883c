#!/usr/bin/env python3
"""The main suite against ONNX Runtime with its optimisations off, on inputs that are in no folder.

    onnxruntime_test.py GCOMPILE [MODEL...]

Each model on two seeded random inputs; each dynamic one at three sizes. Then, at the first size, a copy of the model
whose outputs are also all integers that it computes from floats (float_decisions.py). Without MODEL a few models; with
GCOMPILE_LONG_TESTS=1 the whole suite. Needs the interpreter of `scripts/install_packages.sh bench`.
Exit: 0 right, 1 not, 77 there are no models, or no ONNX Runtime.
"""

import pathlib
import sys
import tempfile

import real_models

try:
    import numpy as np
    import onnx
    import onnxruntime
    import float_decisions
except ImportError as error:
    real_models.skip(f"{error}; `scripts/install_packages.sh bench` installs ONNX Runtime")

SEEDS = (1, 2)
SUBSET = ["deeploy_cct_opset20", "dtln_2", "mlperf_tiny_ic_resnet8_int8", "tract_byte_bidi_lstm", "yunet_n_dynamic"]

# Sizes of the dynamic models: by input, three shapes each. What is not named keeps the shape of its test data.
SIZES = {
    "alphazero_santorini": [{0: (n, 25, 3), 1: (n, 162)} for n in (1, 2, 5)],
    "basic_pitch_nmp": [{0: (n, 43844, 1)} for n in (1, 2, 3)],
    "libtashkeel_tract": [{0: (1, n), 1: (1,)} for n in (3, 17, 40)],
    "magika_standard_v2_1": [{0: (n, 4096)} for n in (1, 2, 3)],
    "oww_melspectrogram": [{0: (1, n)} for n in (1280, 4000, 16000)],
    "ppocr_v3_det": [{0: (1, 3, h, w)} for h, w in ((64, 96), (96, 64), (160, 128))],
    "silero_vad_v6": [{0: (n, 576), 1: (2, n, 128)} for n in (1, 2, 3)],
    "super_resolution_10": [{0: (n, 1, 224, 224)} for n in (1, 2, 3)],
    "tract_byte_bidi_lstm": [{0: (b, n)} for b, n in ((1, 7), (2, 33), (1, 100))],
    "yunet_n_dynamic": [{0: (1, 3, h, w)} for h, w in ((64, 64), (96, 160), (192, 128))],
}

# Models whose integers decide: what an input may hold.
INTEGER_LIMITS = {
    "libtashkeel_tract": {0: (1, 40)},
    "magika_standard_v2_1": {0: (0, 257)},
    "tract_byte_bidi_lstm": {0: (0, 256)},
}


def read_tensor(path):
    tensor = onnx.TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return onnx.numpy_helper.to_array(tensor)


def sample_inputs(model, names):
    """The inputs of test_data_set_0, by name: the ranges that the model was made for."""
    data = model / "test_data_set_0"
    return {name: read_tensor(data / f"input_{i}.pb") for i, name in enumerate(names)}


def random_like(sample, shape, random, limits):
    """Numbers like those of the sample: its mean, spread and range; whole numbers within the limits."""
    if sample.dtype == np.bool_:
        return random.random(shape) < max(0.1, float(sample.mean()))
    if sample.dtype.kind in "iu":
        if sample.ndim == 0 or sample.size == 1:  # a switch or a length
            return np.broadcast_to(sample.reshape(()), shape).copy()
        low, high = limits or (int(sample.min()), int(sample.max()) + 1)
        return random.integers(low, high, shape).astype(sample.dtype)
    low, high = float(sample.min()), float(sample.max())
    spread = float(sample.std()) or 0.1
    return np.clip(random.normal(float(sample.mean()), spread, shape), low - spread, high + spread).astype(sample.dtype)


def shapes_of(name, names, samples):
    """Three dictionaries of shapes for a dynamic model, one otherwise."""
    result = []
    for sizes in SIZES.get(name, [{}]):
        by_name = {names[key] if isinstance(key, int) else key: shape for key, shape in sizes.items()}
        unknown = set(by_name) - set(names)
        if unknown:
            sys.exit(f"{name} has no input {unknown}: {names}")
        result.append({key: by_name.get(key, samples[key].shape) for key in names})
    return result


def fix_lengths(name, inputs, names):
    """What one input says about another."""
    if name == "libtashkeel_tract":
        inputs[names[1]] = np.full_like(inputs[names[1]], inputs[names[0]].shape[1])


def runtime_session(path):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def write_case(folder, inputs, names, outputs):
    folder.mkdir(parents=True)
    for i, name in enumerate(names):
        (folder / f"input_{i}.pb").write_bytes(onnx.numpy_helper.from_array(inputs[name], name).SerializeToString())
    for i, value in enumerate(outputs):
        (folder / f"output_{i}.pb").write_bytes(onnx.numpy_helper.from_array(value).SerializeToString())


class Subject:
    """One model of the suite, with its names and samples."""

    def __init__(self, folder, name):
        self.name = name
        self.path = folder / name / "model.onnx"
        self.session = runtime_session(self.path)
        self.names = [value.name for value in self.session.get_inputs()]
        self.samples = sample_inputs(folder / name, self.names)
        self.shapes = shapes_of(name, self.names, self.samples)

    def inputs(self, shapes, seed):
        random = np.random.default_rng(seed)
        limits = INTEGER_LIMITS.get(self.name, {})
        result = {key: random_like(self.samples[key], shapes[key], random, limits.get(i))
                  for i, key in enumerate(self.names)}
        fix_lengths(self.name, result, self.names)
        return result

    def write_cases(self, folder, session, all_shapes):
        """One folder of cases, so that cases of one shape share one program; how many."""
        count = 0
        for shapes in all_shapes:
            for seed in SEEDS:
                inputs = self.inputs(shapes, seed)
                write_case(folder / f"test_data_set_{count}", inputs, self.names, session.run(None, inputs))
                count += 1
        return count


def check_outputs(gcompile, subject):
    with tempfile.TemporaryDirectory() as folder:
        count = subject.write_cases(pathlib.Path(folder), subject.session, subject.shapes)
        problem, _ = real_models.verify(gcompile, subject.path, folder, ["--name", "m"])
    print(f"{subject.name}: {count} cases: {problem or 'as ONNX Runtime'}", flush=True)
    return problem


def check_decisions(gcompile, subject):
    """Every integer that the model computes from floats."""
    model = onnx.load(subject.path)
    names, hidden = float_decisions.expose(model)
    if hidden:
        print(f"{subject.name}: out of sight in branches of If: {hidden}")
    if not names:
        print(f"{subject.name}: computes no integers from floats", flush=True)
        return ""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        onnx.save(model, folder / "model.onnx")
        count = subject.write_cases(folder, runtime_session(folder / "model.onnx"), subject.shapes[:1])
        problem, report = real_models.verify(gcompile, folder / "model.onnx", folder, ["--name", "m"])
    findings = [finding for finding in report.get("findings", []) if finding["value"] in names]
    if not problem and len(findings) != count * len(names):
        problem = f"{len(findings)} tensors compared instead of {count * len(names)}"
    unequal = sum("at" in finding for finding in findings)
    print(f"{subject.name}: {len(names)} integers from floats, {count} cases: "
          f"{problem or f'as ONNX Runtime, {unequal} of {len(findings)} tensors not bit for bit'}", flush=True)
    return problem


def check_model(gcompile, folder, name):
    """Whether something is wrong."""
    subject = Subject(folder, name)
    return any([check_outputs(gcompile, subject), check_decisions(gcompile, subject)])


def main():
    gcompile, *names = sys.argv[1:]
    folder, names = real_models.chosen(names, SUBSET)
    failures = [name for name in names if check_model(gcompile, folder, name)]
    print(f"{len(names) - len(failures)} of {len(names)} models agree with ONNX Runtime")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
