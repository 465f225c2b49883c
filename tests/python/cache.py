#!/usr/bin/env python3
"""The cache of gcompile.load(): found again, made once, never half of an entry, bounded.

    cache.py --gcompile GCOMPILE [CASE...]
"""

import gc
import json
import os
import pathlib
import re
import signal
import struct
import subprocess
import sys
import time

from package import QUICK, ROOT, model, package, refused, run
from onnx_bytes import FLOAT, Graph, block, blocks, number
from support import EXAMPLES, check, contains, equal, run_main

RELU = model("g (float[n] x) => (float[n] y) { y = Relu (x) }")
LOAD = """import gcompile, sys
model = gcompile.load(sys.argv[1], variables={"CXXFLAGS": "-O0"}, progress=lambda text: print(text, flush=True))
print(model.project.path)
"""


def entries(gcompile):
    from gcompile import cache

    check(gcompile, "")
    return cache.entries()


def case_found_again(world):
    """In 100 ms, whatever the process; another option, model, tool or compiler makes another entry."""
    gcompile = package(world)
    path = world.path("net.onnx")
    path.write_bytes((EXAMPLES / "shapes_classifier" / "model.onnx").read_bytes())
    gcompile.load(path)
    equal(len(entries(gcompile)), 1, "entries")
    begin = time.perf_counter()
    net = gcompile.load(str(path))
    took = time.perf_counter() - begin
    print(f"         {1000 * took:.0f} ms")
    check(took < 0.1, f"the second time took {took} s")
    left = sorted(found.name for found in (net.project.path / "build").iterdir())
    check(len(left) == 2 and re.fullmatch("net_python_[0-9a-f]{12}[.]so", left[0]) and left[1] == "net_python_run", f"{left}")
    told = run(world, "import gcompile, sys; print(gcompile.load(sys.argv[1]).project.path)", path)
    equal(told, str(net.project.path), "the entry of another process")
    for change in ({"options": ["-O1"]}, {"variables": {"CXXFLAGS": "-O1"}}, {"name": "other"}, {"target": "cpp", "sets": {}}):
        gcompile.load(path, **change)
    equal(len(entries(gcompile)), 4, "entries of other options")
    os.environ["CXXFLAGS"] = "-O1 -DNOTHING"
    try:
        gcompile.load(path)
    finally:
        del os.environ["CXXFLAGS"]
    tool = world.path("other_tool")
    tool.write_bytes(pathlib.Path(world.gcompile).read_bytes())
    tool.chmod(0o755)
    os.environ["GCOMPILE_EXECUTABLE"] = str(tool)
    gcompile.load(path)
    equal(len(entries(gcompile)), 6, "entries of other tools")


def case_external_data(world):
    """Two models of the same bytes beside other weights are two entries; one that changes is made again."""
    gcompile = package(world)
    graph = Graph()
    graph.node("Mul", ["x", "w"], ["y"])
    place = [block(1, key) + block(2, value) for key, value in (("location", "w.bin"), ("offset", "0"), ("length", "8"))]
    graph.constants.append(number(1, 2) + number(2, FLOAT) + block(8, "w") + blocks(13, place) + number(14, 1))
    graph.input("x", FLOAT, [2])
    graph.output("y", FLOAT, [2])
    for folder, factor in (("a", 2), ("b", 3), ("a", 5), ("b", 3)):
        world.path(folder).mkdir(exist_ok=True)
        (world.path(folder) / "net.onnx").write_bytes(graph.model())
        (world.path(folder) / "w.bin").write_bytes(struct.pack("<2f", factor, factor))
        net = gcompile.load(world.path(folder) / "net.onnx", **QUICK)
        equal(net([1, 10])["y"].tolist(), [factor, 10 * factor], f"{folder} times {factor}")
    equal(len(entries(gcompile)), 3, "entries")


def case_two_processes(world):
    """Build once between them."""
    package(world)
    path = world.path("net.onnxtxt")
    path.write_bytes(RELU.replace(b"[n]", b"[4]"))
    both = [subprocess.Popen([sys.executable, "-c", LOAD, path], stdout=subprocess.PIPE, text=True) for _ in range(3)]
    said = [process.communicate(timeout=300)[0] for process in both]
    equal([process.returncode for process in both], [0, 0, 0], "exit codes")
    equal(sum("build: link" in text for text in said), 1, f"builds: {said}")
    equal(len({text.splitlines()[-1] for text in said}), 1, "the entry")


def case_killed(world):
    """What a killed process has left is made again, and nobody waits for it."""
    gcompile = package(world)
    path = world.path("net.onnxtxt")
    path.write_bytes(RELU.replace(b"[n]", b"[4]"))
    for _ in range(2):
        process = subprocess.Popen([sys.executable, "-c", LOAD, path], stdout=subprocess.PIPE, text=True, start_new_session=True)
        for line in process.stdout:
            if "build" in line:
                break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        check(not entries(gcompile), "half of an entry")
        check(list(world.path("cache").glob("*.part")), "nothing was left")
    equal(gcompile.load(path, **QUICK)([-1, 2, -3, 4])["y"].tolist(), [0, 2, 0, 4], "after that")
    equal(list(world.path("cache").glob("*.part")), [], "what is left")


def case_bounded(world):
    """The oldest use goes first, never what is in use."""
    gcompile = package(world)
    nets = {size: gcompile.load(RELU, dims={"n": size}, **QUICK) for size in (1, 2, 3)}
    keys = {size: net.project.path.parent.name for size, net in nets.items()}
    most = max(entry.bytes for entry in entries(gcompile))
    now = time.time()
    for age, size in enumerate((3, 1, 2)):
        os.utime(nets[size].project.path.parent / "entry.json", (now - 100 * age, now - 100 * age))
    os.environ["GCOMPILE_CACHE_BYTES"] = str(3 * most)
    try:
        del nets[1], nets[3]
        gc.collect()
        # 2 is the oldest, and stays, for this process has it; then 1 goes.
        gcompile.load(RELU, dims={"n": 4}, **QUICK)
        left = {entry.key for entry in entries(gcompile)}
        check(keys[2] in left and keys[3] in left and keys[1] not in left and len(left) == 3, f"{keys} {left}")
        equal(nets[2]([-1, 1])["y"].tolist(), [0, 1], "what is in use")
        os.environ["GCOMPILE_CACHE_BYTES"] = "much"
        try:
            gcompile.load(RELU, dims={"n": 5}, **QUICK)
        except ValueError as error:
            contains(str(error), "GCOMPILE_CACHE_BYTES is a number of bytes, not 'much'")
        else:
            check(False, "much was taken for a number")
        world.path("file").write_text("")
        os.environ["GCOMPILE_CACHE"] = str(world.path("file") / "cache")
        with refused(gcompile.GcompileError, "nothing can be kept in", "GCOMPILE_CACHE names another folder"):
            gcompile.load(RELU, dims={"n": 5}, **QUICK)
    finally:
        del os.environ["GCOMPILE_CACHE_BYTES"]


def case_command(world):
    """gcompile cache list, size, clear; and where the cache lies."""
    gcompile = package(world)
    net = gcompile.load(RELU, dims={"n": 2}, **QUICK)
    gcompile.load(RELU, dims={"n": 3}, **QUICK)
    gc.collect()

    def command(*words, status=0):
        code = "import sys; from gcompile import tool; sys.argv[1:] = sys.argv[1:]; tool.main()"
        return run(world, code, "cache", *words, status=status)

    contains(command("list"), "a model in memory", "2 models kept", str(world.path("cache")))
    told = json.loads(command("size", "--json"))
    equal((len(told["entries"]), told["folder"]), (2, str(world.path("cache"))), "for programs")
    check(told["bytes"] == sum(entry["bytes"] for entry in told["entries"]) > 0, f"{told}")
    contains(command("clear"), "1 model removed")
    equal([entry.path for entry in entries(gcompile)], [net.project.path.parent], "what this process has loaded stays")
    command("shrink", status=2)
    del net
    gc.collect()
    contains(command("clear"), "1 model removed")
    equal(command("size").split(",")[0], "0 models kept", "an empty cache")
    equal([path.name for path in world.path("cache").iterdir()], [], "files")
    environment = {name: os.environ.pop(name) for name in ("GCOMPILE_CACHE", "XDG_CACHE_HOME") if name in os.environ}
    try:
        from gcompile import cache

        equal(cache.folder(), pathlib.Path.home() / ".cache" / "gcompile", "the usual place")
        os.environ["XDG_CACHE_HOME"] = "/elsewhere"
        equal(cache.folder(), pathlib.Path("/elsewhere/gcompile"), "where the desktop says")
    finally:
        os.environ.pop("XDG_CACHE_HOME", None)
        os.environ.update(environment)
    check(ROOT, "")


if __name__ == "__main__":
    run_main(globals())
