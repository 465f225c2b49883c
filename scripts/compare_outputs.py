#!/usr/bin/env python3
"""What two builds of gcompile emit, compared byte for byte over models and options.

    compare_outputs.py OLD NEW [--models DIR] [--only NAME]... [--ignore FILE]... [--diff]

OLD and NEW are executables. Models are those that DIR/INDEX.md marks with a star, and the examples; each is compiled for
both targets, for speed and for size, at -O0, and on CUDA in every precision. Exit: 0 the same, 1 not, 2 usage.
"""

import argparse
import concurrent.futures
import filecmp
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
OPTIONS = [
    ["--target", "cpp"],
    ["--target", "cuda"],
    ["--target", "cpp", "--optimize-for", "size"],
    ["--target", "cpp", "-O0"],
    ["--target", "cuda", "--precision", "fp16"],
    ["--target", "cuda", "--gemm", "cublaslt"],
]


def models_of(folder):
    found = sorted(ROOT.glob("examples/*/model.onnx"))
    if folder.is_dir():
        rows = re.findall(r"^\| (\w+)\* \|", (folder / "INDEX.md").read_text(encoding="utf-8"), re.MULTILINE)
        found += [folder / name / "model.onnx" for name in sorted(rows)]
    return found


def dims_of(message):
    """What the error about open dimensions suggests to add."""
    words = re.findall(r"--(?:dim|shape) [^\s,;'`]+", message)
    return [part for word in dict.fromkeys(words) for part in word.split(" ", 1)]


def compile_model(gcompile, model, options, output):
    command = [str(gcompile), str(model), "--name", "m", "-q", "-o", str(output), *options]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode == 1 and "--dim" in result.stderr + result.stdout:
        result = subprocess.run([*command, *dims_of(result.stderr)], capture_output=True, text=True, check=False)
    return result.returncode, result.stderr


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def compare(arguments, model, options, folder):
    """Lines that say what differs."""
    place = pathlib.Path(tempfile.mkdtemp(dir=folder))
    label = f"{model.parent.name} {' '.join(options)}"
    outcomes = [compile_model(g, model, options, place / side)
                for g, side in ((arguments.old, "old"), (arguments.new, "new"))]
    if outcomes[0][0] != outcomes[1][0]:
        return [f"{label}: exit {outcomes[0][0]} and {outcomes[1][0]}: {outcomes[1][1].strip()[:300]}"]
    if outcomes[0][0] != 0:
        return [f"{label}: neither compiles: {outcomes[0][1].strip()[:120]}"] if arguments.diff else []
    old, new = files_in(place / "old"), files_in(place / "new")
    lines = [f"{label}: only {'old' if name in old else 'new'}: {name}" for name in sorted(old ^ new)]
    for name in sorted(old & new):
        if name.split("/")[-1] in arguments.ignore or filecmp.cmp(place / "old" / name, place / "new" / name, False):
            continue
        lines.append(f"{label}: {name}")
        if arguments.diff:
            text = subprocess.run(["diff", place / "old" / name, place / "new" / name], capture_output=True, text=True,
                                  check=False, errors="replace").stdout
            lines += ["    " + line for line in text.splitlines()[:40]]
    subprocess.run(["rm", "-rf", str(place)], check=False)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("old", type=pathlib.Path)
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path, default=ROOT / ".." / "shared" / "models")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--ignore", action="append", default=[])
    parser.add_argument("--diff", action="store_true")
    arguments = parser.parse_args()
    jobs = [(model, options) for model in models_of(arguments.models) for options in OPTIONS
            if not arguments.only or model.parent.name in arguments.only]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = list(pool.map(lambda job: compare(arguments, *job, folder), jobs))
    lines = [line for result in results for line in result]
    print("\n".join(lines))
    print(f"{len(jobs)} projects, {sum(bool(r) for r in results)} differ")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
