#!/usr/bin/env python3
"""Writes random models, each with one set of inputs, as the official cases are laid out.

    generate.py FOLDER --seed S --count N [--open] [--runtime]

FOLDER/SEED/model.onnx and test_data_set_0/input_K.pb; with --runtime also output_K.pb by ONNX Runtime with its
optimisations off (a model that it refuses has none, and a line says so). --open: the first axis of the inputs is the
symbol n, and there are inputs for several n, none among them; options.txt is what gcompile is told: bounds, or a list where
the seed is odd, and states, to one of which a run may append its rows. The same seed gives the same model on every machine
with one NumPy.
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
from random_graph import MOST_MAGNITUDE, OPEN, SIZES, Graph, NoFit, tensor

GROUPS = [elementwise.OPERATORS, movement.OPERATORS, reductions.OPERATORS, contractions.OPERATORS]
OPSET = 23
TRIES = 400
# With --open: the sizes of the inputs, the first ones those that the shapes of the model were computed for.
OPEN_SIZES = [{"n": OPEN, "p": OPEN}, {"n": 1, "p": 9}, {"n": 2, "p": 0}, {"n": 13, "p": 1}, {"n": 0, "p": 3}]


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


def remembers(g):
    """A state that one run leaves for the next, of one size in every run: returns the value that is fed back."""
    x = g.pick(lambda v: v.rank >= 2 and g.is_open(v.shape[0]) and 0 < v.count and v.bound <= MOST_MAGNITUDE and
               not any(g.is_open(size) for size in v.shape[1:]))
    seen = g.add("ReduceSum", [x, g.longs([0])], [(x.kind, x.shape[1:], x.bound * x.shape[0], 0)], keepdims=0)
    state = g.input(x.kind, seen.shape)
    mixed = g.like(seen, "Add", [seen, state], seen.bound + state.bound)
    return state, g.like(mixed, "Tanh", [mixed], 1.0)


def appends(g):
    """A cache to which every run appends its rows, and an attention over all of it: returns what is fed back."""
    x = g.pick(lambda v: v.rank >= 2 and v.shape[0] == OPEN and not any(g.is_open(size) for size in v.shape[1:]) and
               0 < v.count <= 64 * OPEN and v.bound <= MOST_MAGNITUDE)
    count, width = OPEN, x.count // OPEN
    rows = g.add("Flatten", [x], [(x.kind, (count, width), x.bound, x.unit)], axis=1)
    # The rows before these are as many as these while shapes are computed, and of another number in each run.
    state = g.input(rows.kind, (OPEN, width), symbol="p")
    joined = g.add("Concat", [state, rows], [(rows.kind, (2 * OPEN, width), rows.bound, rows.unit)], axis=0)
    turned = g.add("Transpose", [joined], [(rows.kind, (width, 2 * OPEN), rows.bound, 0)], perm=[1, 0])
    scores = g.add("MatMul", [rows, turned], [(rows.kind, (count, 2 * OPEN), 8.0, 0)])
    scores = g.like(scores, "Softmax", [g.like(scores, "Tanh", [scores], 1.0)], 1.0, axis=-1)
    mixed = g.add("MatMul", [scores, joined], [(rows.kind, (count, width), rows.bound, 0)])
    g.like(mixed, "Relu", [mixed], mixed.bound)
    # Other nodes would take the number of rows in the cache for twice that of a run.
    g.values = [value for value in g.values if value is not state and 2 * OPEN not in value.shape]
    return state, joined


def attempt(g, operator):
    """What the operator returns; None where it found no operands: what it had added before it gave up goes again."""
    before = (len(g.nodes), len(g.values), len(g.initializers), len(g.inputs))
    try:
        return operator(g)
    except NoFit:
        for name in [value.name for value in g.values[before[1]:]]:
            g.infos.pop(name, None)
        del g.nodes[before[0]:], g.values[before[1]:], g.initializers[before[2]:], g.inputs[before[3]:]
        g.used = {name for node in g.nodes for name in node.input} | g.captures()
        return None


def grow(g, count):
    """Adds operators until there are `count` nodes more."""
    start = len(g.nodes)
    for _ in range(TRIES):
        if len(g.nodes) - start >= count:
            return
        group = GROUPS[g.integer(0, len(GROUPS) - 1)]
        attempt(g, branch if g.chance(0.02) else g.one_of(group))


def build(seed, is_open):
    random = np.random.default_rng(seed)
    kind = ["float32", "float32", "float32", "float32", "float16", "float64", "bfloat16"][int(random.integers(0, 7))]
    g = Graph(random, kind, is_open)
    for _ in range(g.integer(1, 4)):
        rank = g.one_of([1, 2, 3, 3, 4, 4, 5])
        shape = [g.one_of(SIZES[:9] if rank > 2 else SIZES) for _ in range(rank)]
        if is_open:
            shape[0] = OPEN
        elif g.chance(0.05):
            shape[g.integer(0, rank - 1)] = 0
        while np.prod(shape) > 1500:
            shape[int(np.argmax(shape[1:])) + 1] = 2
        g.input(g.one_of([kind, kind, kind, "float32", "int64", "int32", "uint8", "int8", "bool"]), shape)
    g.input(kind, [OPEN if is_open else g.integer(1, 4), 4, g.integer(3, 7), g.integer(3, 7)])
    g.input("int64", [1])
    g.input("bool", [])
    fed_back = []
    grow(g, g.integer(10, 40) if not is_open else g.integer(5, 20))
    for state in [remembers, appends] if is_open else []:
        if g.chance(0.5):
            fed_back.append(attempt(g, state))
    if is_open:
        grow(g, g.integer(5, 20))
    outputs = g.leaves() or g.values[-1:]
    g.fed_back = [pair for pair in fed_back if pair is not None]
    outputs += [value for _, value in g.fed_back if value not in outputs]
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


def write_sizes(place, g, by_list):
    """Inputs of the other sizes, and what is said of sizes and states to the compiler."""
    grows = any(g.symbols[state.name] == "p" for state, _ in g.fed_back)
    # A run of no rows would not grow a state that others grow: they are two schedules, unlike runs within bounds.
    tried = OPEN_SIZES[:-1] if grows and by_list else OPEN_SIZES
    for k, sizes in enumerate(tried[1:], 1):
        other = {value.name: g.array(value.kind, tuple(sizes[g.symbols[value.name]] if d == OPEN else d for d in value.shape))
                 for value in g.inputs}
        write_inputs(place / f"test_data_set_{k}", g.inputs, other)
    options = [f"--dim n={','.join(str(sizes['n']) for sizes in tried)}" if by_list else "--dim n=0..13"]
    options += ["--dim p=0..13"] if grows else []
    options += [f"--state {state.name}={value.name}" for state, value in g.fed_back]
    (place / "options.txt").write_text("\n".join(options), encoding="utf-8")


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
    if is_open:
        write_sizes(place, g, seed % 2 == 1)
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
