#!/usr/bin/env python3
"""Random Loops and Scans against an interpreter in NumPy: the compiler's evaluator sees their trips only, so that it cannot
judge them.

    loops_test.py GCOMPILE [--seed N] [--count N]

Bodies of a few nodes that capture values, carry some, hand others on, and perhaps hold a loop of their own; axes and
directions of every kind; Loops that end early by a condition that only a run knows. Beside them what exporters make of an
LSTM, and a filter that remembers frames. Without GCOMPILE_LONG_TESTS=1 six random models, others with each commit.
Exit: 0 right, 1 not, 77 no onnx or NumPy.
"""

import argparse
import pathlib
import random
import sys
import tempfile

import real_models

try:
    import numpy as np
    import onnx
    import onnx.parser
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    real_models.skip(f"{error}; scripts/install_packages.sh test installs it")

SHAPE = (2, 3)
SIMPLE = {
    "Identity": lambda x: x, "Neg": np.negative, "Tanh": np.tanh, "Relu": lambda x: np.maximum(x, 0), "Add": np.add,
    "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "MatMul": np.matmul, "Less": np.less,
    "Cast": lambda x: x.astype(np.float32), "ReduceSum": lambda x: np.sum(x, None if x.shape == SHAPE else 0),
    "Sigmoid": lambda x: 1 / (1 + np.exp(-x)), "Transpose": lambda x: np.transpose(x, (1, 0, 2)),
    "Gather": lambda x, i: x[i], "Concat": lambda *parts: np.concatenate(parts), "Unsqueeze": lambda x: x[None],
    "Slice": lambda x, *_: x[1:], "Split": lambda x: tuple(np.split(x, 4, axis=1)),
}

# As tf2onnx writes the LSTM of Keras: a loop without end, left by a counter, whose hidden state is a row as well.
KERAS_LSTM = """<ir_version: 7, opset_import: ["" : 12]>
lstm (float[2,9,4] x, float[4,24] w, float[6,24] r, float[24] b, float[2,6] h0, float[2,6] c0) => (float y, float h)
<int64 most = {9223372036854775807}, int32 zero = {0}, int32 one = {1}, int32 length = {9}> {
  rows = Transpose<perm = [1, 0, 2]>(x)
  first = Less(zero, length)
  time, h, c, all = Loop<body = step (int64 i, bool go, int32 t, float[2,6] hidden, float[2,6] cell)
    => (bool more, int32 next, float[2,6] made, float[2,6] kept, float[2,6] row) {
    xt = Gather<axis = 0>(rows, i)
    xw = MatMul(xt, w)  hr = MatMul(hidden, r)  sum = Add(xw, hr)  gates = Add(sum, b)
    zi, zo, zf, zc = Split<axis = 1>(gates)
    gi = Sigmoid(zi)  go2 = Sigmoid(zo)  gf = Sigmoid(zf)  gc = Tanh(zc)
    fc = Mul(gf, cell)  ic = Mul(gi, gc)  kept = Add(fc, ic)
    tc = Tanh(kept)  made = Mul(go2, tc)  row = Identity(made)
    next = Add(t, one)  more = Less(next, length) }>(most, first, zero, h0, c0)
  y = Transpose<perm = [1, 0, 2]>(all)
}"""
# The memory of a call is what the next one begins with.
STREAMING = """<ir_version: 7, opset_import: ["" : 12]>
filter (float[3,8] memory, float[16,8] frames, float[4,8] taps, float[8] bias) => (float left, float y)
<int64[1] begin = {1}, int64[1] end = {4}, int64[1] axis = {0}> {
  left, y = Scan<num_scan_inputs = 1, scan_input_axes = [0], scan_input_directions = [0], scan_output_axes = [0],
    scan_output_directions = [0], body = step (float[3,8] old, float[8] frame) => (float[3,8] new, float[8] row) {
    one = Unsqueeze<axes = [0]>(frame)
    all = Concat<axis = 0>(old, one)
    new = Slice(all, begin, end, axis)
    weighted = Mul(all, taps)
    sum = ReduceSum<axes = [0], keepdims = 0>(weighted)
    moved = Add(sum, bias)
    row = Tanh(moved) }>(memory, frames)
}"""


# The interpreter ----------------------------------------------------------------------------------------------------

def attributes_of(node):
    return {attribute.name: helper.get_attribute_value(attribute) for attribute in node.attribute}


def outputs_of(graph, names, inputs):
    """The graph's outputs, with the names around it and its inputs."""
    inside = dict(names)
    inside.update({tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer})
    inside.update(zip((value.name for value in graph.input), inputs))
    for node in graph.node:
        results = results_of(node, inside)
        inside.update({name: value for name, value in zip(node.output, results) if name})
    return [inside[value.name] for value in graph.output]


def results_of(node, names):
    operands = [names[name] if name else None for name in node.input]
    if node.op_type == "Loop":
        return run_loop(attributes_of(node)["body"], names, *operands)
    if node.op_type == "Scan":
        return run_scan(attributes_of(node), names, operands)
    result = SIMPLE[node.op_type](*operands)
    return result if isinstance(result, tuple) else [result]


def run_loop(body, names, most, condition, *carried):
    carried, rows, trip = list(carried), [], 0
    while trip < most and (condition is None or condition):
        condition, *made = outputs_of(body, names, [np.int64(trip), True if condition is None else condition, *carried])
        carried, row = made[:len(carried)], made[len(carried):]
        rows.append(row)
        trip += 1
    rest = len(body.output) - 1 - len(carried)
    return carried + [np.stack([row[k] for row in rows]) if rows else np.zeros((0, *SHAPE), np.float32) for k in range(rest)]


def run_scan(attributes, names, operands):
    body = attributes["body"]
    count = attributes["num_scan_inputs"]
    carried, sequences = operands[:-count], operands[-count:]
    sequences = [np.moveaxis(x, axis, 0)[::-1 if backward else 1] for x, axis, backward in
                 zip(sequences, attributes["scan_input_axes"], attributes["scan_input_directions"])]
    rows = []
    for entries in zip(*sequences):
        made = outputs_of(body, names, [*carried, *entries])
        carried, row = made[:len(carried)], made[len(carried):]
        rows.append(row)
    stacked = [np.moveaxis(np.stack(column)[::-1 if backward else 1], 0, axis) for column, axis, backward in
               zip(zip(*rows), attributes.get("scan_output_axes", []), attributes.get("scan_output_directions", []))]
    return carried + stacked


# The models ---------------------------------------------------------------------------------------------------------

def value(name, kind=TensorProto.FLOAT, shape=SHAPE):
    return helper.make_tensor_value_info(name, kind, shape)


def weights(choice, shape):
    return np.array([choice.uniform(-1, 1) for _ in range(int(np.prod(shape)))], np.float32).reshape(shape)


class Body:
    """Nodes over values of one shape, with a weight of their own."""

    def __init__(self, choice, known, depth):
        self.choice, self.values, self.depth = choice, list(known), depth
        self.nodes = []
        self.weight = f"w{depth}"
        for _ in range(choice.randint(1, 5)):
            self.add()
        if depth < 2 and choice.random() < 0.4:
            node, _ = loop(choice, self.values, depth + 1)
            self.nodes.append(node)
            self.values += [name for name in node.output if name]

    def name(self):
        return f"v{self.depth}_{len(self.nodes)}"  # the same in every loop of this depth

    def add(self, operator="", *operands):
        operator = operator or self.choice.choice(["Add", "Sub", "Mul", "Max", "Tanh", "Neg", "Relu", "MatMul", "Identity"])
        count = 2 if operator in ("Add", "Sub", "Mul", "Max", "Less") else 1
        operands = operands or [self.choice.choice(self.values) for _ in range(count)]
        operands = list(operands) + [self.weight] * (operator == "MatMul")
        self.nodes.append(helper.make_node(operator, operands, [self.name()],
                                           **({"to": TensorProto.FLOAT} if operator == "Cast" else {})))
        result = self.nodes[-1].output[0]
        if operator not in ("Cast", "ReduceSum", "Less"):
            self.values.append(result)
        return result

    def carried(self, count):
        """What is handed on: small numbers, so that trips do not run away, or a value as it is."""
        return [self.add("Tanh", self.choice.choice(self.values)) for _ in range(count)]

    def rows(self, count):
        return [self.choice.choice(self.values) for _ in range(count)]

    def graph(self, inputs, outputs):
        weight = numpy_helper.from_array(weights(self.choice, (SHAPE[1], SHAPE[1])), self.weight)
        bound = numpy_helper.from_array(np.float32(self.choice.choice([-1, 0, 0.5, 2])), f"bound{self.depth}")
        return helper.make_graph(self.nodes, "body", inputs, outputs, initializer=[weight, bound])


def loop(choice, around, depth):
    """A Loop over values around it, and how many of its results are carried."""
    count = choice.randint(1, 3)
    states = [f"s{depth}_{i}" for i in range(count)]
    body = Body(choice, around + states, depth)
    index = body.add("Cast", f"i{depth}")
    body.add("Add", body.values[-1], index)
    ends_early = choice.random() < 0.4
    condition = f"c{depth}"
    if ends_early:
        condition = body.add("Less", body.add("ReduceSum", choice.choice(body.values)), f"bound{depth}")
        body.nodes[-2].attribute.append(helper.make_attribute("keepdims", 0))
    carried = body.carried(count)
    rows = body.rows(0 if ends_early else choice.randint(0, 2))
    given = [value(f"i{depth}", TensorProto.INT64, ()), value(f"c{depth}", TensorProto.BOOL, ())]
    graph = body.graph([*given, *map(value, states)],
                       [value(condition, TensorProto.BOOL, ()), *map(value, carried), *map(value, rows)])
    names = [f"l{depth}_{i}" for i in range(count)] + [f"r{i}" if depth == 0 else "" for i in range(len(rows))]
    operands = [f"trips{choice.randint(0, 4)}", choice.choice(["", "yes"])] + [choice.choice(around) for _ in range(count)]
    return helper.make_node("Loop", operands, names, name=f"loop{depth}", body=graph), count


def scan(choice, around):
    """A Scan, and the shapes of its sequences."""
    count, sequences = choice.randint(0, 2), choice.randint(1, 2)
    states = [f"s0_{i}" for i in range(count)]
    entries = [f"e{i}" for i in range(sequences)]
    body = Body(choice, around + states + entries, 0)
    carried = body.carried(count)
    rows = body.rows(choice.randint(0 if count else 1, 3))
    graph = body.graph([*map(value, states), *map(value, entries)], [*map(value, carried + rows)])
    axes, length = [choice.choice([0, 1, 2, -1]) for _ in entries], choice.randint(1, 5)
    shapes = [SHAPE[:axis % 3] + (length,) + SHAPE[axis % 3:] for axis in axes]
    of_rows = {"scan_output_axes": [choice.choice([0, 1, 2, -2]) for _ in rows],
               "scan_output_directions": [choice.randint(0, 1) for _ in rows]} if rows else {}
    operands = [choice.choice(around) for _ in states] + [f"x{i}" for i in range(sequences)]
    node = helper.make_node("Scan", operands, [f"y{i}" for i in range(count + len(rows))], name="scan", body=graph,
                            num_scan_inputs=sequences, scan_input_axes=axes,
                            scan_input_directions=[choice.randint(0, 1) for _ in entries], **of_rows)
    return node, shapes


def model_of(seed):
    choice = random.Random(seed)
    inputs = [value("a"), value("b")]
    if seed % 2:
        node, shapes = scan(choice, ["a", "b"])
        inputs += [value(f"x{i}", TensorProto.FLOAT, shape) for i, shape in enumerate(shapes)]
    else:
        node, _ = loop(choice, ["a", "b"], 0)
    constants = [numpy_helper.from_array(np.int64(n), f"trips{n}") for n in range(5)]
    constants.append(numpy_helper.from_array(np.bool_(True), "yes"))
    # Values of the graph itself, so that no output is an input.
    nodes = [node] + [helper.make_node("Neg", [name], [f"{name}_out"]) for name in node.output]
    graph = helper.make_graph(nodes, f"loops_{seed}", inputs,
                              [helper.make_tensor_value_info(f"{name}_out", TensorProto.FLOAT, None) for name in node.output],
                              initializer=constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", choice.choice([11, 12]))])
    model.ir_version = 7
    return model


def check(gcompile, name, model):
    """What is wrong."""
    choice = random.Random(1)
    data = [weights(choice, [d.dim_value for d in i.type.tensor_type.shape.dim]) for i in model.graph.input]
    expected = outputs_of(model.graph, {}, data)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        onnx.save(model, folder / "model.onnx")
        case = folder / "test_data_set_0"
        case.mkdir()
        for kind, arrays, infos in (("input", data, model.graph.input), ("output", expected, model.graph.output)):
            for i, (array, info) in enumerate(zip(arrays, infos)):
                tensor = numpy_helper.from_array(np.asarray(array, np.float32), info.name)
                (case / f"{kind}_{i}.pb").write_bytes(tensor.SerializeToString())
        problem, _ = real_models.verify(gcompile, folder / "model.onnx", folder, ["--name", "m"])
    print(f"{name}: {problem or 'right'}", flush=True)
    return problem


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("gcompile")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--count", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.seed is None:
        seeds = [int(name) for name in real_models.in_turn([str(seed) for seed in range(60)], 10)]
    else:
        seeds = range(arguments.seed, arguments.seed + arguments.count)
    models = {"keras_lstm": onnx.parser.parse_model(KERAS_LSTM), "streaming": onnx.parser.parse_model(STREAMING)}
    models.update({str(seed): model_of(seed) for seed in seeds})
    wrong = [name for name, model in models.items() if check(arguments.gcompile, name, model)]
    print(f"{len(models) - len(wrong)} of {len(models)} models are right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
