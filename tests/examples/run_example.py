#!/usr/bin/env python3
"""Compiles an example, builds it with the emitted Makefile, runs every test data set and compares.

    run_example.py GCOMPILE EXAMPLE_DIR CXX WORK_DIR [GCOMPILE_OPTION...]

The build sees no header but the system's, and every warning of the list below is an error. A value may differ from
the expected one by 1e-4 of its own and 1e-5 of the output's root mean square (at least 1). Standard library only.
Exit: 0 right, 1 not.
"""

import json
import math
import os
import pathlib
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))
import tensors  # noqa: E402

WARNINGS = "-Wall -Wextra -Wconversion -Wshadow -Werror"


def run(command, **arguments):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **arguments)
    if result.returncode != 0:
        sys.exit(f"failed with {result.returncode}: {' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def worst_of(actual, expected):
    """The largest error in units of the tolerance."""
    (dims, name, raw), (wanted_dims, wanted_name, wanted_raw) = actual, expected
    if dims != wanted_dims or name != wanted_name:
        sys.exit(f"{name} {dims} instead of {wanted_name} {wanted_dims}")
    got, wanted = tensors.values_of(name, raw), tensors.values_of(name, wanted_raw)
    square = math.sqrt(sum(value * value for value in wanted) / max(1, len(wanted)))
    worst = 0.0
    for value, reference in zip(got, wanted):
        error = abs(value - reference)
        bound = 1e-4 * abs(reference) + 1e-5 * max(1.0, square) if "f" in name else 0.5
        worst = max(worst, error / bound if math.isfinite(error) else math.inf)
    return worst


def check_comparison():
    one = ([2], "<f4", b"\x00\x00\x80\x3f\x00\x00\x00\x40")
    assert worst_of(one, one) == 0
    assert worst_of(([2], "<f4", b"\x00\x00\x80\x3f\x00\x00\x00\x41"), one) > 1000


def main():
    check_comparison()
    gcompile, example, compiler, work, *options = sys.argv[1:]
    example, work = pathlib.Path(example), pathlib.Path(work)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    name, project = example.name, work / "project"
    run([gcompile, "compile", example / "model.onnx", "--name", name, "-o", project, "-q", *options])
    manifest = json.loads((project / "meta" / f"{name}.json").read_text(encoding="utf-8"))
    # Nothing but the compiler: no flags, include paths or libraries from outside.
    environment = {"PATH": os.environ["PATH"], "CXX": compiler}
    flags = f"CXXFLAGS=-O1 {WARNINGS}" + (" -Wno-psabi" if "clang" not in compiler else "")
    run(["make", "-C", project, flags, f"CXX={compiler}", f"build/{name}_run"], env=environment)

    states = [option.split("=") for before, option in zip(options, options[1:]) if before == "--state"]
    inputs = [entry["name"] for entry in manifest["inputs"]] + [source for source, _ in states]
    outputs = [entry["name"] for entry in manifest["outputs"]] + [target for _, target in states]
    folders = sorted(example.glob("test_data_set_*"))
    assert folders, f"no test data in {example}"
    worst = 0.0
    for folder in folders:
        place = work / folder.name
        place.mkdir()
        command = [project / "build" / f"{name}_run", "--output-dir", place]
        assert len(list(folder.glob("input_*.pb"))) == len(inputs)
        assert len(list(folder.glob("output_*.pb"))) == len(outputs)
        for index, source in enumerate(inputs):
            path = place / f"input_{index}.npy"
            tensors.write_npy(path, *tensors.read(folder / f"input_{index}.pb"))
            is_state = index >= len(manifest["inputs"])
            command += ["--state", f"{source}={path}"] if is_state else [path]
        run(command)
        for index in range(len(outputs)):
            first_state = len(manifest["outputs"])
            files = place.glob(f"{index}_*.npy" if index < first_state else f"state_{index - first_state}_*.npy")
            actual = tensors.read(next(files))
            worst = max(worst, worst_of(actual, tensors.read(folder / f"output_{index}.pb")))
    print(f"{name}: {len(folders)} data sets, worst error {worst:.3f} of the tolerance")
    return 0 if worst <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
