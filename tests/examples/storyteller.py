#!/usr/bin/env python3
"""Builds examples/storyteller as its README says, and asks it.

    storyteller.py GCOMPILE SOURCE_DIR CMAKE WORK_DIR

Exit: 0 every answer is right, 1 not.
"""

import itertools
import pathlib
import re
import shlex
import shutil
import subprocess
import sys


def run(*command, status=0):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if result.returncode != status:
        sys.exit(f"failed with {result.returncode}: {' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def compile_words(readme):
    """The words of the README's first command behind the program."""
    command = re.search(r"^    gcompile ((?:.*\\\n)*.*)$", readme, re.MULTILINE).group(1)
    return shlex.split(command.replace("\\\n", " "))


def stories():
    """Prompts and what has to follow."""
    facts = [("anna", "red", "kite"), ("hans", "blue", "boat"), ("greta", "white", "sled"), ("ben", "black", "drum")]
    for chosen in itertools.permutations(facts, 3):
        told = " ".join(f"{name} has a {colour} {thing} ." for name, colour, thing in chosen)
        for name, colour, thing in chosen:
            yield f"{told} who has the {thing} ?", [name, "."]
            yield f"{told} what has {name} ?", ["a", colour, thing, "."]


def main():
    gcompile, root, cmake, work = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    shutil.rmtree(work, ignore_errors=True)
    here = root / "examples" / "storyteller"
    words = compile_words((here / "README.md").read_text())
    words = [str(work / "storyteller") if word == "out/storyteller" else word for word in words]
    words[0] = str(here / "model.onnx")
    run(gcompile, *words, "-q")
    run(cmake, "-S", here, "-B", work / "build", f"-DSTORYTELLER={work / 'storyteller'}", "-DCMAKE_BUILD_TYPE=Release",
        "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
    run(cmake, "--build", work / "build")
    program = work / "build" / "stories"
    wrong = 0
    for prompt, expected in stories():
        told = run(program, *prompt.split()).split()
        if told != expected:
            wrong += 1
            print(f"{prompt} {' '.join(told)}; expected {' '.join(expected)}")
    run(program, status=2)
    run(program, "zebra", status=2)
    print(f"{wrong} of {len(list(stories()))} answers are wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
