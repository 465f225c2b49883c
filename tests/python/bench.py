#!/usr/bin/env python3
"""gcompile bench: the table, what is not installed, what it refuses.

    bench.py --gcompile GCOMPILE [CASE...]
"""

import json
import os
import pathlib
import sys

from package import model, package
from support import Skip, check, contains, equal, run_main

NET = model("g (float[n, 8] x) => (float[n, 8] y) { y = Sigmoid (x) }")
CODE = "from gcompile import tool; tool.main()"


def command(world, *words, python=sys.executable, status=0):
    path = world.path("net.onnxtxt")
    path.write_bytes(NET)
    done = world.run([python, "-c", CODE, "bench", path, "--dim", "n=4", "--rounds", "2", *words], status=status)
    return done.stdout if status == 0 else done.stderr


def case_table(world):
    """Times of ours, one line for each that is not there."""
    package(world)
    os.environ["CXXFLAGS"] = "-O1"
    try:
        said = command(world, "--against", "ncnn,torch")
        contains(said, "net.onnxtxt", "1 thread, 2 rounds in turn", "minimum", "gcompile ", " ms", "not installed: ")
        told = json.loads(command(world, "--against", "", "--json", "--threads", "2"))
        equal([row["name"] for row in told["contenders"]], ["gcompile"], "contenders")
        row = told["contenders"][0]
        check(0 < row["min_ms"] <= row["median_ms"] and told["threads"] == 2 and "processors" in told["processor"], f"{told}")
        contains(command(world, "--against", "nothing", status=2), "nothing is not one of onnxruntime, openvino, ncnn, torch")
        contains(command(world, "--dim", "n=0..x", "--against", "", status=2), "error")
    finally:
        del os.environ["CXXFLAGS"]


def case_beside_onnxruntime(world):
    """Both run the same model on the same inputs."""
    python = pathlib.Path(world.gcompile).parent / "bench_venv" / "bin" / "python"
    if not python.exists():
        raise Skip(f"no {python}; `scripts/install_packages.sh bench` makes it")
    package(world)
    onnx_model = world.path("made.onnx")
    world.path("net.onnxtxt").write_bytes(NET)
    world.compile(world.path("net.onnxtxt"), world.path("scratch"), "-O0", "--dim", "n=4", "--save-onnx", onnx_model)
    done = world.run([python, "-c", CODE, "bench", onnx_model, "--against", "onnxruntime", "--rounds", "2", "--json"])
    ours, theirs = json.loads(done.stdout)["contenders"]
    check(theirs["name"] == "ONNX Runtime" and 0 < theirs["min_ms"] and theirs["difference"] < 1e-5 and ours["min_ms"] > 0, done.stdout)


if __name__ == "__main__":
    run_main(globals())
