#!/usr/bin/env python3
"""The "light" models of the ONNX project: real networks whose weights are made by ConstantOfShape.

    light_models_test.py GCOMPILE LIST [MODEL...]

LIST has one line per model: its name; "always" or "long", when it is built and run: always, or with
GCOMPILE_LONG_TESTS=1; and "verifies", "wrong: REASON", "unsupported: MESSAGE" or, for one that is never run, "checks". All
of them are checked every time. The folder is GCOMPILE_LIGHT_MODELS, else
../shared/sets/onnx-backend/light. Exit: 0 all as the list says, 1 not, 77 there are no models.
"""

import os
import pathlib
import shutil
import sys
import tempfile

import numpy
import onnx
from onnx import numpy_helper

import real_models


def read_list(path):
    """{name: (status, when)}"""
    rows = {}
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, when, status = line.split(" ", 2)
            assert when in ("always", "long") and name not in rows, line
            rows[name] = (status, when)
    return rows


def write_data(model, folder):
    """Inputs as the ONNX project's own runner makes them: i / n, i = 0 ... n - 1."""
    place = folder / "test_data_set_0"
    place.mkdir()
    graph = onnx.load(str(model)).graph
    known = {tensor.name for tensor in graph.initializer}
    for index, value in enumerate(value for value in graph.input if value.name not in known):
        shape = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in value.type.tensor_type.shape.dim]
        count = int(numpy.prod(shape))
        tensor = (numpy.arange(count).reshape(shape) / count).astype(numpy.float32)
        (place / f"input_{index}.pb").write_bytes(numpy_helper.from_array(tensor, value.name).SerializeToString())
    shutil.copy(model.with_name(model.stem + "_output_0.pb"), place / "output_0.pb")


def result_of(gcompile, model, is_run):
    """"verifies", "checks", "unsupported: MESSAGE" or "wrong: MESSAGE"."""
    status, _, err = real_models.run([gcompile, "check", str(model)])
    if status != 0:
        return f"{'unsupported' if status == 1 else 'wrong'}: {real_models.first_line(err)}"
    if not is_run:
        return "checks"
    with tempfile.TemporaryDirectory() as folder:
        write_data(model, pathlib.Path(folder))
        problem, _ = real_models.verify(gcompile, model, folder, ["--name", "m"])
    return f"wrong: {problem}" if problem else "verifies"


def main():
    gcompile, path, *chosen = sys.argv[1:]
    folder = pathlib.Path(os.environ.get("GCOMPILE_LIGHT_MODELS",
                                         real_models.ROOT / ".." / "shared" / "sets" / "onnx-backend" / "light"))
    models = {model.stem: model for model in sorted(folder.glob("*.onnx"))}
    if not models:
        real_models.skip(f"no light models in {folder}")
    rows = read_list(path)
    surprises = [f"{name}: is not on the list" for name in models if name not in rows]
    surprises += [f"{name}: is on the list, but not in {folder}" for name in rows if name not in models]
    counts = {}
    for name, (expected, when) in rows.items():
        if name not in models or (chosen and name not in chosen):
            continue
        is_run = expected != "checks" and (when == "always" or real_models.is_long() or name in chosen)
        result = result_of(gcompile, models[name], is_run)
        print(f"{name}: {result}", flush=True)
        counts[result.split(":")[0]] = counts.get(result.split(":")[0], 0) + 1
        wanted = expected if is_run or expected.startswith("unsupported: ") else "checks"
        if result != wanted and not (wanted.startswith("wrong: ") and result.startswith("wrong: ")):
            surprises.append(f"{name}: {result}, expected {wanted}")
    print(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))
    for surprise in surprises:
        print(f"FAILED {surprise}")
    return 1 if surprises else 0


if __name__ == "__main__":
    sys.exit(main())
