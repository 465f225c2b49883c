#!/usr/bin/env python3
"""Writes random models, each with one set of inputs, as the official cases are laid out.

    generate.py FOLDER --seed S --count N [--open] [--runtime]

FOLDER/SEED/model.onnx and test_data_set_0/input_K.pb; with --runtime also output_K.pb by ONNX Runtime with its
optimisations off (a model that it refuses has none, and a line says so). --open: the first axis of the inputs is the
symbol n, and there are inputs for several n. The same seed gives the same model on every machine with one NumPy.
Exit: 0 done, 2 usage.
"""

import argparse
import pathlib
import sys

import numpy as np
import onnx
from onnx import helper

import contractions
import elementwise
import movement
import reductions
from random_graph import OPEN, SIZES, Graph, NoFit, tensor

GROUPS = [elementwise.OPERATORS, movement.OPERATORS, reductions.OPERATORS, contractions.OPERATORS]
OPSET = 23
TRIES = 400
# With --open: the sizes of the inputs, the first one that the shapes of the model were computed for.
OPEN_SIZES = (OPEN, 1, 2, 13)


def branch(g):
    """An If by a number that only the run knows, whose branches read what was computed before it."""
    if g.outer is not None:
        raise NoFit
    x = g.pick(lambda v: v.count == 1, kinds=("bool",))
    condition = x if x.rank == 0 else g.add("Reshape", [x, g.longs([])], [("bool", (), 1, 0)])
    branches = []
    for _ in range(2):
        inner = Graph(g.random, g.float_kind, g.open_axis, g)
        g.branches += 1
        grow(inner, g.integer(1, 4))
        branches.append(inner)
    results = []
    for inner in branches:
        found = [value for value in inner.leaves() if value.kind == g.float_kind]
        if not found:
            raise NoFit
        results.append(found[-1])
    then, other = results
    if then.shape != other.shape:
        # The other branch gives what the first one gives, of other numbers.
        shape = then.shape
        if any(g.is_open(size) for size in shape):
            raise NoFit
        results[1] = branches[1].like(branches[1].constant(g.float_kind, g.array(g.float_kind, shape)), "Neg",
                                      [branches[1].constant(g.float_kind, g.array(g.float_kind, shape))], 4.0)
    graphs = [inner.proto([result], f"branch{i}") for i, (inner, result) in enumerate(zip(branches, results))]
    g.operators.update(*(inner.operators for inner in branches))
    return g.add("If", [condition], [(g.float_kind, then.shape, max(r.bound for r in results), 0)],
                 then_branch=helper.make_attribute("then_branch", graphs[0]),
                 else_branch=helper.make_attribute("else_branch", graphs[1]))


def grow(g, count):
    """Adds operators until there are `count` nodes more."""
    start = len(g.nodes)
    for _ in range(TRIES):
        if len(g.nodes) - start >= count:
            return
        group = GROUPS[g.integer(0, len(GROUPS) - 1)]
        operator = branch if g.chance(0.02) else g.one_of(group)
        # What an operator has added before it gave up goes again.
        before = (len(g.nodes), len(g.values), len(g.initializers))
        try:
            operator(g)
        except NoFit:
            for name in [value.name for value in g.values[before[1]:]]:
                g.infos.pop(name, None)
            del g.nodes[before[0]:], g.values[before[1]:], g.initializers[before[2]:]
            g.used = {name for node in g.nodes for name in node.input} | g.captures()
    return


def build(seed, is_open):
    random = np.random.default_rng(seed)
    kind = ["float32", "float32", "float32", "float32", "float16", "float64", "bfloat16"][int(random.integers(0, 7))]
    g = Graph(random, kind, is_open)
    for _ in range(g.integer(1, 4)):
        rank = g.one_of([1, 2, 3, 3, 4, 4, 5])
        shape = [g.one_of(SIZES[:9] if rank > 2 else SIZES) for _ in range(rank)]
        if is_open:
            shape[0] = OPEN
        while np.prod(shape) > 1500:
            shape[int(np.argmax(shape[1:])) + 1] = 2
        g.input(g.one_of([kind, kind, kind, "float32", "int64", "int32", "uint8", "int8", "bool"]), shape)
    g.input(kind, [OPEN if is_open else g.integer(1, 4), 4, g.integer(3, 7), g.integer(3, 7)])
    g.input("int64", [1])
    g.input("bool", [])
    grow(g, g.integer(10, 40))
    outputs = g.leaves() or g.values[-1:]
    if not any(value.name in g.infos for value in outputs):
        raise NoFit
    opsets = [helper.make_opsetid("", OPSET)]
    if any(node.domain for node in g.nodes):
        opsets.append(helper.make_opsetid("com.microsoft", 1))
    model = helper.make_model(g.proto(outputs, f"random_{seed}"), opset_imports=opsets, producer_name="random_models")
    model.ir_version = 10
    return g, model


def expected(model, inputs):
    """By ONNX Runtime, or the reason why not."""
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {name: np.asarray(array) for name, array in inputs.items()}), ""
    except Exception as error:  # pylint: disable=broad-except  # its errors have no common class
        return None, str(error).replace("\n", " ")[:200]


def write_inputs(folder, inputs, data):
    folder.mkdir(exist_ok=True)
    for i, value in enumerate(inputs):
        (folder / f"input_{i}.pb").write_bytes(tensor(value.name, value.kind, data[value.name]).SerializeToString())


def write(folder, seed, is_open, with_runtime):
    try:
        g, model = build(seed, is_open)
    except NoFit:
        return
    place = folder / f"{seed}"
    data = place / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    onnx.save(model, place / "model.onnx")
    write_inputs(data, g.inputs, g.data)
    for k, size in enumerate(OPEN_SIZES[1:] if is_open else (), 1):
        other = {value.name: g.array(value.kind, tuple(size if d == OPEN else d for d in value.shape))
                 for value in g.inputs}
        write_inputs(place / f"test_data_set_{k}", g.inputs, other)
    if not with_runtime:
        return
    if any(value.kind == "bfloat16" for value in g.inputs):
        print(f"{seed}: bfloat16, which NumPy has not")
        return
    outputs, reason = expected(model, {value.name: g.data[value.name] for value in g.inputs})
    if outputs is None:
        print(f"{seed}: ONNX Runtime: {reason}")
        return
    for i, array in enumerate(outputs):
        (data / f"output_{i}.pb").write_bytes(onnx.numpy_helper.from_array(array).SerializeToString())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--open", action="store_true")
    parser.add_argument("--runtime", action="store_true")
    arguments = parser.parse_args()
    for seed in range(arguments.seed, arguments.seed + arguments.count):
        write(arguments.folder, seed, arguments.open, arguments.runtime)


if __name__ == "__main__":
    sys.exit(main())
