#!/usr/bin/env python3
"""Processor time of full compiles of long graphs: near-linear in nodes (DESIGN law 17).

    growth.py --gcompile GCOMPILE [CASE...]

A case compiles a graph of some nodes and one of twice as many; the second may take a little more than twice the time
of the first. The cases named `full_` are long: there the larger graph has a budget in seconds and megabytes as well.
"""

import os
import resource
import shutil
import sys

from onnx_bytes import BOOL, FLOAT, INT64, Graph
from support import Failure, check, run_main

MEGABYTE = 1 << 20
# Nodes of the full cases, processor seconds for them and how much longer twice as many may take.
FULL_NODES, FULL_SECONDS, FULL_RATIO = 20_000, 6.0, 2.4
LONG_CHAIN, LONG_CHAIN_MEGABYTES = 100_000, 300
# The small cases: start-up and noise weigh more, so the ratio is that of four times the nodes; 16 is quadratic.
SMALL_NODES, SMALL_FACTOR, SMALL_RATIO = 1_000, 4, 8.0


def weights(seed, count):
    """Small numbers that differ from seed to seed."""
    state = seed * 2654435761 + 12345
    values = []
    for _ in range(count):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        values.append((state >> 8) / (1 << 24) - 0.25)
    return values


def softmax_chain(nodes):
    graph, last = Graph(), "x"
    graph.input("x", FLOAT, [4, 8])
    for i in range(nodes):
        graph.node("Softmax", [last], [f"y{i}"], f"softmax{i}", axis=1)
        last = f"y{i}"
    graph.output(last, FLOAT, [4, 8])
    return graph


def dense_chain(nodes):
    """MatMul + Add + Relu."""
    graph, last = Graph(), "x"
    graph.input("x", FLOAT, [4, 8])
    for i in range(nodes // 3):
        w = graph.constant(f"w{i}", FLOAT, [8, 8], weights(i, 64))
        b = graph.constant(f"b{i}", FLOAT, [8], weights(-i - 1, 8))
        graph.node("MatMul", [last, w], [f"p{i}"], f"product{i}")
        graph.node("Add", [f"p{i}", b], [f"s{i}"], f"sum{i}")
        graph.node("Relu", [f"s{i}"], [f"y{i}"], f"relu{i}")
        last = f"y{i}"
    graph.output(last, FLOAT, [4, 8])
    return graph


def paired_chain(nodes):
    """Add of two Gemm + Relu."""
    graph, last = Graph(), "x"
    graph.input("x", FLOAT, [4, 8])
    for i in range(nodes // 4):
        for side in "ab":
            w = graph.constant(f"w{i}{side}", FLOAT, [8, 8], weights(2 * i + (side == "b"), 64))
            graph.node("Gemm", [last, w], [f"p{i}{side}"], f"gemm{i}{side}")
        graph.node("Add", [f"p{i}a", f"p{i}b"], [f"s{i}"], f"sum{i}")
        graph.node("Relu", [f"s{i}"], [f"y{i}"], f"relu{i}")
        last = f"y{i}"
    graph.output(last, FLOAT, [4, 8])
    return graph


def split_and_join(nodes):
    """Split into `nodes`, Exp, Concat."""
    graph = Graph()
    graph.input("x", FLOAT, [nodes, 2])
    sizes = graph.constant("sizes", INT64, [nodes], [1] * nodes)
    graph.node("Split", ["x", sizes], [f"p{i}" for i in range(nodes)], "split", axis=0)
    for i in range(nodes):
        graph.node("Exp", [f"p{i}"], [f"e{i}"], f"exp{i}")
    graph.node("Concat", [f"e{i}" for i in range(nodes)], ["y"], "concat", axis=0)
    graph.output("y", FLOAT, [nodes, 2])
    return graph


def sum_of_reductions(nodes):
    """`nodes` reductions of one input by its products with constants, into one Sum."""
    graph = Graph()
    graph.input("x", FLOAT, [4, 8])
    for i in range(nodes):
        c = graph.constant(f"c{i}", FLOAT, [8], weights(i, 8))
        graph.node("Mul", ["x", c], [f"p{i}"], f"mul{i}")
        graph.node("ReduceMean", [f"p{i}"], [f"r{i}"], f"mean{i}", axes=[1], keepdims=0)
    graph.node("Sum", [f"r{i}" for i in range(nodes)], ["y"], "sum")
    graph.output("y", FLOAT, [4])
    return graph


def elementwise_chain(nodes):
    operators = ("Sin", "Exp", "Tanh", "Neg", "Sigmoid", "Abs", "Softplus", "Cos")
    graph, last = Graph(), "x"
    graph.input("x", FLOAT, [4, 8])
    for i in range(nodes):
        graph.node(operators[i % len(operators)], [last], [f"y{i}"], f"node{i}")
        last = f"y{i}"
    graph.output(last, FLOAT, [4, 8])
    return graph


def joined_inputs(nodes):
    """One Concat of `nodes` operands."""
    graph = Graph()
    for i in range(nodes):
        graph.input(f"x{i}", FLOAT, [1, 2])
    graph.node("Concat", [f"x{i}" for i in range(nodes)], ["y"], "concat", axis=0)
    graph.output("y", FLOAT, [nodes, 2])
    return graph


def added_inputs(nodes):
    """One Sum of `nodes` operands."""
    graph = Graph()
    for i in range(nodes):
        graph.input(f"x{i}", FLOAT, [1, 2])
    graph.node("Sum", [f"x{i}" for i in range(nodes)], ["y"], "sum")
    graph.output("y", FLOAT, [1, 2])
    return graph


def branch(operator, operand, result):
    graph = Graph(result)
    graph.node(operator, [operand], [result], result + "_node")
    graph.output(result, FLOAT, [4, 8])
    return graph


def ifs_in_a_row(nodes):
    graph, last = Graph(), "x"
    graph.input("x", FLOAT, [4, 8])
    graph.input("b", BOOL, [])
    for i in range(nodes // 3):
        graph.node("If", ["b"], [f"t{i}"], f"if{i}", then_branch=branch("Tanh", last, f"u{i}"),
                   else_branch=branch("Sin", last, f"v{i}"))
        last = f"t{i}"
    graph.output(last, FLOAT, [4, 8])
    return graph


def checked_rows(nodes):
    """Rows whose numbers are only known at run time, each of which is checked."""
    graph = Graph()
    graph.input("x", FLOAT, [4, 8])
    graph.input("i", INT64, [nodes])
    for i in range(nodes):
        at = graph.constant(f"at{i}", INT64, [1], [i])
        graph.node("Gather", ["i", at], [f"k{i}"], f"number{i}", axis=0)
        graph.node("Gather", ["x", f"k{i}"], [f"g{i}"], f"row{i}", axis=0)
    graph.node("Sum", [f"g{i}" for i in range(nodes)], ["y"], "sum")
    graph.output("y", FLOAT, [1, 8])
    return graph


def output_listed_often(nodes):
    graph = Graph()
    graph.input("x", FLOAT, [4, 8])
    graph.node("Exp", ["x"], ["y"], "exp")
    for _ in range(nodes):
        graph.output("y", FLOAT, [4, 8])
    return graph


def many_outputs(nodes):
    graph = Graph()
    graph.input("x", FLOAT, [4, 8])
    for i in range(nodes):
        graph.node("Add", ["x", graph.constant(f"c{i}", FLOAT, [1], [0.5 * i])], [f"y{i}"], f"add{i}")
        graph.output(f"y{i}", FLOAT, [4, 8])
    return graph


def measure(world, make, nodes, target):
    """(processor seconds, peak bytes) of a full compile."""
    model = world.path(f"{make.__name__}_{nodes}.onnx")
    model.write_bytes(make(nodes).model())
    output = world.path("output")
    command = [world.gcompile, str(model), "-o", str(output), "--name", "m", "--target", target, "--quiet"]
    child = os.posix_spawn(command[0], command, os.environ)
    _, status, usage = os.wait4(child, 0)
    check(os.waitstatus_to_exitcode(status) == 0, f"{' '.join(command)}: {status}")
    check((output / "CMakeLists.txt").exists(), "nothing was emitted")
    shutil.rmtree(output)
    model.unlink()
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024


def report(make, nodes, target, seconds, peak):
    print(f"         {make.__name__}, {nodes} nodes, {target}: {seconds:.2f} s, {peak // MEGABYTE} MB", flush=True)


def grow(world, make, target, nodes, factor, ratio):
    times = []
    for count in (nodes, nodes * factor):
        # The faster of two runs: others may share the machine.
        seconds, peak = min(measure(world, make, count, target) for _ in range(2))
        report(make, count, target, seconds, peak)
        times.append(seconds)
    check(times[1] <= ratio * times[0], f"{factor} times the nodes take {times[1] / times[0]:.1f} times the time, "
                                        f"at most {ratio} is linear enough")


def full(world, make, nodes, most_megabytes=None):
    first = measure(world, make, nodes, "cpp")
    report(make, nodes, "cpp", *first)
    check(first[0] <= FULL_SECONDS, f"{first[0]:.1f} s, at most {FULL_SECONDS}")
    if most_megabytes:
        check(first[1] <= most_megabytes * MEGABYTE, f"{first[1] // MEGABYTE} MB, at most {most_megabytes}")
    second = measure(world, make, 2 * nodes, "cpp")
    report(make, 2 * nodes, "cpp", *second)
    check(second[0] <= FULL_RATIO * first[0], f"twice the nodes take {second[0] / first[0]:.2f} times the time, "
                                              f"at most {FULL_RATIO}")


SHAPES = (softmax_chain, dense_chain, paired_chain, split_and_join, sum_of_reductions, elementwise_chain)
# Not chains: what one node, or a model, has many of. For both targets where a printer is concerned.
WIDE = (joined_inputs, added_inputs, ifs_in_a_row, checked_rows, output_listed_often, many_outputs)
WIDE_FOR_CUDA = (joined_inputs, checked_rows)
# Operands of one node: processor seconds and megabytes for them.
MANY_OPERANDS, MANY_SECONDS, MANY_MEGABYTES = 100_000, 15.0, 1024


def add_cases():
    for make in SHAPES:
        for target in ("cpp", "cuda"):
            globals()[f"case_{make.__name__}_{target}"] = (
                lambda world, make=make, target=target: grow(world, make, target, SMALL_NODES, SMALL_FACTOR, SMALL_RATIO))
        if make is not elementwise_chain:
            globals()[f"case_full_{make.__name__}"] = lambda world, make=make: full(world, make, FULL_NODES)
    for make in WIDE:
        for target in ("cpp", "cuda") if make in WIDE_FOR_CUDA else ("cpp",):
            globals()[f"case_{make.__name__}_{target}"] = (
                lambda world, make=make, target=target: grow(world, make, target, SMALL_NODES, SMALL_FACTOR, SMALL_RATIO))
    globals()["case_full_elementwise_chain"] = (
        lambda world: full(world, elementwise_chain, LONG_CHAIN, LONG_CHAIN_MEGABYTES))


def case_full_operands(world):
    for make in (joined_inputs, added_inputs):
        seconds, peak = measure(world, make, MANY_OPERANDS, "cpp")
        report(make, MANY_OPERANDS, "cpp", seconds, peak)
        check(seconds <= MANY_SECONDS, f"{seconds:.1f} s, at most {MANY_SECONDS}")
        check(peak <= MANY_MEGABYTES * MEGABYTE, f"{peak // MEGABYTE} MB, at most {MANY_MEGABYTES}")


add_cases()

if __name__ == "__main__":
    run_main(globals())
