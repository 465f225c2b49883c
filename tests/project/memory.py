#!/usr/bin/env python3
"""What compiling takes: memory at most 1.5 times the weights and 256 MiB, folding a bounded part of both.

    memory.py --gcompile GCOMPILE [CASE...]
"""

import multiprocessing
import os
import struct
import subprocess

from onnx_bytes import FLOAT, INT64, Graph, block, blocks, number
from support import check, manifest, run_main

MEBI = 1 << 20
WIDTH = 1024


def peak(world, model, output, *flags, seconds=120):
    """Peak resident bytes and processor seconds of one compilation."""
    process = subprocess.Popen([world.gcompile, str(model), "-o", str(output), *flags], stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    said = process.stderr.read().decode(errors="replace")
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    check(process.returncode == 0, f"exit code {process.returncode}: {said[-2000:]}")
    used = usage.ru_utime + usage.ru_stime
    check(used < seconds, f"{used:.1f} s of processor time, {seconds} allowed")
    return usage.ru_maxrss * 1024, used


def layers(world, count, external):
    """A chain of products with weights of WIDTH x WIDTH, all different, in one file or in two; their bytes."""
    graph = Graph()
    size = WIDTH * WIDTH * 4
    folder = world.path("chain_external" if external else "chain")
    folder.mkdir()
    value = graph.input("x", FLOAT, [1, WIDTH])
    with open(folder / "weights.bin", "wb") as data:
        for layer in range(count):
            # Any bits are floats; the first number tells the layers apart.
            content = struct.pack("<f", layer + 1) + bytes(range(1, 241)) * (size // 240 + 1)
            content = content[:size]
            head = b"".join(number(1, dim) for dim in (WIDTH, WIDTH)) + number(2, FLOAT) + block(8, f"w{layer}")
            if external:
                entries = [("location", "weights.bin"), ("offset", str(data.tell())), ("length", str(size))]
                place = blocks(13, [block(1, key) + block(2, text) for key, text in entries]) + number(14, 1)
                data.write(content)
                graph.constants.append(head + place)
            else:
                graph.constants.append(head + block(9, content))
            graph.node("MatMul", [value, f"w{layer}"], [f"y{layer}"], f"layer{layer}")
            value = f"y{layer}"
    graph.output(value, FLOAT, [1, WIDTH])
    model = folder / "model.onnx"
    model.write_bytes(graph.model())
    return model, count * size


def written_apart(write, *arguments):
    """write(*arguments) in another process: Linux counts what a parent held to the peak of the program it starts."""
    context = multiprocessing.get_context("fork")
    result = context.SimpleQueue()
    process = context.Process(target=lambda: result.put(write(*arguments)))
    process.start()
    process.join()
    check(process.exitcode == 0, "the model could not be written")
    return result.get()


def within_bounds(world, count, external, *flags):
    model, weights = written_apart(layers, world, count, external)
    used, _ = peak(world, model, world.path("out"), "--name", "net", *flags)
    check(manifest(world.path("out"), "net")["weights_bytes"] >= weights, "the weights are not in the project")
    # The runtime of sanitizers and the like comes on top: the bound is for the tool as it is shipped.
    check(used <= 1.5 * weights + 256 * MEBI, f"{used / MEBI:.0f} MiB for {weights / MEBI:.0f} MiB of weights")
    return used, weights


def case_raw_data(world):
    within_bounds(world, 40, False)


def case_external_data(world):
    within_bounds(world, 40, True)


def case_for_size(world):
    """Five plans, one packing."""
    within_bounds(world, 40, True, "--optimize-for", "size")


def case_large_external_data(world):
    within_bounds(world, 160, True)


def case_large_raw_data(world):
    within_bounds(world, 160, False, "--target", "cuda")


def case_product_stays_for_run_time(world):
    """200 bytes that ask for 27 * 10^9 multiply-adds at compile time."""
    graph = Graph()
    graph.input("x", FLOAT, [1])
    graph.constant("shape", INT64, [2], [3000, 3000])
    graph.node("ConstantOfShape", ["shape"], ["c"])
    graph.node("MatMul", ["c", "c"], ["d"], "heavy")
    graph.node("ReduceMean", ["d"], ["e"], keepdims=0)
    graph.node("Add", ["x", "e"], ["y"])
    graph.output("y", FLOAT, [1])
    model = world.path("product.onnx")
    model.write_bytes(graph.model())
    peak(world, model, world.path("out"), seconds=15)


def case_ranges_share_one_budget(world):
    """Forty results of 80 MB each that follow from nothing."""
    graph = Graph()
    graph.input("x", INT64, [1])
    graph.constant("zero", INT64, [], [0])
    graph.constant("one", INT64, [], [1])
    graph.constant("axes", INT64, [1], [0])
    total = "x"
    for i in range(40):
        graph.constant(f"limit{i}", INT64, [], [10_000_000 + i])
        graph.node("Range", ["zero", f"limit{i}", "one"], [f"r{i}"], f"range{i}")
        graph.node("ReduceMax", [f"r{i}"], [f"m{i}"], axes=[0], keepdims=1)
        graph.node("Add", [total, f"m{i}"], [f"t{i}"])
        total = f"t{i}"
    graph.output(total, INT64, [1])
    model = world.path("ranges.onnx")
    model.write_bytes(graph.model())
    used, _ = peak(world, model, world.path("out"), seconds=30)
    check(used < 1024 * MEBI, f"{used / MEBI:.0f} MiB")


if __name__ == "__main__":
    run_main(globals())
