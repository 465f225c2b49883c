#!/usr/bin/env python3
"""Random models through gcompile: generated, emitted, built, run, compared.

    random_models_test.py RANDOM_MODELS GCOMPILE cpp|cuda|open COUNT [--cxx COMPILER] [--python INTERPRETER]

cpp, cuda: RANDOM_MODELS judges them at -O3 and -O0, on the CPU or in the emulator, and behind each pass.
open: `gcompile verify` judges them with an open first axis and states, by bounds and by a list in turn, at five sizes, and
behind each pass.
The seeds follow from the number in seed.txt, which changes from day to day; GCOMPILE_SEED=NUMBER tries others. With
GCOMPILE_LONG_TESTS=1 there are fifty times as many, and the INTERPRETER that has ONNX Runtime, where it is there, makes
expected outputs too. reduce.py shrinks what fails.
Exit: 0 nothing found, 1 something.
"""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 100


def first_seed():
    return int(os.environ.get("GCOMPILE_SEED") or (HERE / "seed.txt").read_text(encoding="utf-8"))


def generate(python, folder, seed, count, *options):
    command = [python, HERE / "generate.py", folder, "--seed", str(seed), "--count", str(count), *options]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def judged(arguments, folder, build):
    """Whether RANDOM_MODELS finds nothing."""
    options = ["--cuda"] if arguments.kind == "cuda" else []
    return subprocess.run([arguments.random_models, "--cases", folder, "--build", build, "--cxx", arguments.cxx, "--jobs", "1",
                           *options], check=False).returncode == 0


def verified(arguments, folder):
    """Whether `gcompile verify` finds nothing at any size."""
    right = True
    for place in sorted(folder.iterdir()):
        options = (place / "options.txt").read_text(encoding="utf-8").split()
        done = subprocess.run([arguments.gcompile, "verify", place / "model.onnx", "-q", "--verify-passes", *options,
                               "--data", place, "--cxx", arguments.cxx], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            right = False
            print(f"{place.name} {' '.join(options)}: exit {done.returncode}\n{done.stderr[-2000:]}", flush=True)
    return right


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("random_models")
    parser.add_argument("gcompile")
    parser.add_argument("kind", choices=["cpp", "cuda", "open"])
    parser.add_argument("count", type=int)
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--python", default="")
    arguments = parser.parse_args()
    is_long = os.environ.get("GCOMPILE_LONG_TESTS") == "1"
    count = arguments.count * 50 if is_long else arguments.count
    has_runtime = is_long and os.access(arguments.python, os.X_OK)
    python = arguments.python if has_runtime else sys.executable
    start = first_seed() + {"cpp": 0, "cuda": 10000, "open": 56000}[arguments.kind]
    right = True
    for seed in range(start, start + count, BATCH):
        size = min(BATCH, start + count - seed)
        print(f"seeds {seed} to {seed + size - 1}{' beside ONNX Runtime' if has_runtime else ''}", flush=True)
        with tempfile.TemporaryDirectory(prefix="gcompile_random_") as folder:
            cases = pathlib.Path(folder) / "cases"
            options = ["--open"] if arguments.kind == "open" else ["--runtime"] if has_runtime else []
            generate(python, cases, seed, size, *options)
            right &= verified(arguments, cases) if arguments.kind == "open" else judged(arguments, cases, f"{folder}/build")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
