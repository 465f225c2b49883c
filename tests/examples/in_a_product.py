#!/usr/bin/env python3
"""Builds examples/in_a_product with the emitted classifier as a subproject, and looks at what it prints.

    in_a_product.py GCOMPILE SOURCE_DIR CMAKE WORK_DIR

Exit: 0 it sees the square that it draws, 1 not.
"""

import pathlib
import shutil
import subprocess
import sys


def run(*command):
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    if result.returncode != 0:
        sys.exit(f"failed with {result.returncode}: {' '.join(map(str, command))}\n{result.stdout}{result.stderr}")
    return result.stdout


def main():
    gcompile, root, cmake, work = sys.argv[1], *map(pathlib.Path, sys.argv[2:])
    shutil.rmtree(work, ignore_errors=True)
    run(gcompile, "compile", root / "examples/shapes_classifier/model.onnx", "--name", "shapes", "-q", "-o", work / "shapes")
    run(cmake, "-S", root / "examples/in_a_product", "-B", work / "build", f"-DSHAPES={work / 'shapes'}",
        "-DCMAKE_BUILD_TYPE=Release", "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror")
    run(cmake, "--build", work / "build")
    rows = dict(line.split() for line in run(work / "build/product").splitlines())
    print(rows)
    assert list(rows) == ["circle", "square", "triangle", "cross", "star"], rows
    assert abs(sum(map(float, rows.values())) - 1) < 0.01, rows
    return 0 if max(rows, key=lambda name: float(rows[name])) == "square" else 1


if __name__ == "__main__":
    sys.exit(main())
