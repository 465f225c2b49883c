#!/usr/bin/env python3
"""What a contraction is computed together with: every kind of contraction, with operands in every layout.

    epilogues.py RANDOM_MODELS FOLDER [--cxx COMPILER] [--cuda] [--only TEXT]

A cell is a contraction, a layout, and one of a sum, a product and a difference of both: a kernel adds what lies there to its
sums, or multiplies by it, in packs or element by element, whatever the steps of rows and columns are. The result lies
anywhere too: between others in a Concat, along either axis, or with its axes turned. All cells of a contraction are one
model; RANDOM_MODELS judges it at -O3 and at -O0.
Exit: 0 all right, 1 something is not.
"""

import argparse
import pathlib
import shutil
import subprocess
import sys

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Model:
    """Under construction. Values are names; shapes of results are known by whoever makes them."""

    def __init__(self, kind):
        self.kind = kind
        self.nodes, self.inputs, self.weights, self.outputs = [], [], [], []
        self.random = np.random.default_rng(1)
        self.count = 0

    def fresh(self, stem):
        self.count += 1
        return f"{stem}{self.count}"

    def numbers(self, shape, kind):
        if kind in ("uint8", "int8"):
            return self.random.integers(0, 12, shape).astype(kind)
        return (self.random.integers(-16, 17, shape) / 8).astype(kind)

    def input(self, *shape, kind=None):
        name = self.fresh("x")
        self.inputs.append((name, self.numbers(shape, kind or self.kind)))
        return name

    def constant(self, array):
        name = self.fresh("c")
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape, kind=None):
        return self.constant(self.numbers(shape, kind or self.kind))

    def longs(self, *numbers):
        return self.constant(np.array(numbers, np.int64))

    def node(self, operator, *operands, **attributes):
        name = self.fresh("v")
        self.nodes.append(helper.make_node(operator, list(operands), [name], **attributes))
        return name

    def output(self, name, shape):
        self.outputs.append(helper.make_tensor_value_info(name, type_of(self.kind), shape))

    def write(self, folder):
        data = folder / "test_data_set_0"
        data.mkdir(parents=True)
        inputs = [helper.make_tensor_value_info(name, type_of(array.dtype.name), array.shape) for name, array in self.inputs]
        graph = helper.make_graph(self.nodes, "epilogues", inputs, self.outputs, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)])
        model.ir_version = 10
        onnx.save(model, folder / "model.onnx")
        for i, (name, array) in enumerate(self.inputs):
            (data / f"input_{i}.pb").write_bytes(numpy_helper.from_array(array, name).SerializeToString())


def type_of(kind):
    return {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "uint8": TensorProto.UINT8,
            "int8": TensorProto.INT8}[kind]


# Layouts: a value of the shape, or one that is broadcast to it ------------------------------------------------------------


def turned(m, shape):
    swapped = [*shape[:-2], shape[-1], shape[-2]]
    axes = list(range(len(shape)))
    return m.node("Transpose", m.input(*swapped), perm=[*axes[:-2], axes[-1], axes[-2]])


def channels_last(m, shape):
    """The second axis is the innermost."""
    axes = list(range(len(shape)))
    return m.node("Transpose", m.input(shape[0], *shape[2:], shape[1]), perm=[0, axes[-1], *axes[1:-1]])


def outermost_last(m, shape):
    return m.node("Transpose", m.input(*shape[1:], shape[0]), perm=[len(shape) - 1, *range(len(shape) - 1)])


def part(m, shape, axis, before, step):
    """A part of a larger value, from `before` elements on, each step-th."""
    whole = list(shape)
    whole[axis] = before + shape[axis] * abs(step) + 2
    end = before + shape[axis] * step if step > 0 else before - 1
    start = before if step > 0 else before + shape[axis] - 1
    return m.node("Slice", m.input(*whole), m.longs(start), m.longs(end), m.longs(axis), m.longs(step))


def repeated(m, shape):
    """One column, over and over."""
    return m.node("Expand", m.input(*shape[:-1], 1), m.longs(*shape))


LAYOUTS = {
    "own": lambda m, shape: m.input(*shape),
    "turned": turned,
    "channels_last": channels_last,
    "outermost_last": outermost_last,
    "shifted": lambda m, shape: part(m, shape, len(shape) - 1, 1, 1),
    "lower_rows": lambda m, shape: part(m, shape, len(shape) - 2, 1, 1),
    "every_other": lambda m, shape: part(m, shape, len(shape) - 1, 1, 2),
    "every_third_row": lambda m, shape: part(m, shape, len(shape) - 2, 0, 3),
    "backwards": lambda m, shape: part(m, shape, len(shape) - 1, 1, -1),
    "repeated": repeated,
    "row": lambda m, shape: m.input(shape[-1]),
    "column": lambda m, shape: m.input(shape[-2], 1),
    "number": lambda m, shape: m.input(1),
    "entry": lambda m, shape: m.input(shape[0], *[1] * (len(shape) - 1)),
    "channel": lambda m, shape: m.input(shape[1], *[1] * (len(shape) - 2)),
    "known_row": lambda m, shape: m.weight(shape[-1]),
    "known_column": lambda m, shape: m.weight(shape[-2], 1),
    "known_channel": lambda m, shape: m.weight(shape[1], *[1] * (len(shape) - 2)),
    "known": lambda m, shape: m.weight(*shape),
}


# Contractions: a result and its shape -------------------------------------------------------------------------------------


def product(m, left, right, *, known=True, **attributes):
    a = m.input(*left)
    b = m.weight(*right) if known else m.input(*right)
    return m.node("Gemm" if attributes else "MatMul", a, b, **attributes)


def convolution(m, image, filters, **attributes):
    return m.node("Conv", m.input(*image), m.weight(*filters), m.weight(filters[0]), **attributes)


def integers(m):
    sums = m.node("MatMulInteger", m.input(6, 20, kind="uint8"), m.weight(20, 13, kind="int8"))
    return m.node("Cast", sums, to=type_of(m.kind))


CONTRACTIONS = {
    "rows": (lambda m: product(m, (6, 9), (9, 13)), (6, 13)),
    "turned_weights": (lambda m: product(m, (6, 9), (13, 9), transB=1), (6, 13)),
    "one_row": (lambda m: product(m, (1, 24), (24, 40)), (1, 40)),
    "many_rows": (lambda m: product(m, (2, 3, 5, 9), (9, 16)), (2, 3, 5, 16)),
    "two_computed": (lambda m: product(m, (2, 5, 9), (2, 9, 12), known=False), (2, 5, 12)),
    "one_for_all": (lambda m: product(m, (2, 5, 9), (9, 12), known=False), (2, 5, 12)),
    "integers": (integers, (6, 13)),
    "image": (lambda m: convolution(m, (2, 3, 7, 6), (5, 3, 3, 3), pads=[1] * 4), (2, 5, 7, 6)),
    "winograd": (lambda m: convolution(m, (1, 16, 9, 12), (16, 16, 3, 3), pads=[1] * 4), (1, 16, 9, 12)),
    "pixels": (lambda m: convolution(m, (2, 4, 7, 6), (8, 4, 1, 1)), (2, 8, 7, 6)),
    "depthwise": (lambda m: convolution(m, (2, 8, 7, 6), (8, 1, 3, 3), pads=[1] * 4, group=8), (2, 8, 7, 6)),
    "groups": (lambda m: convolution(m, (2, 8, 7, 6), (8, 4, 3, 3), pads=[1] * 4, group=2), (2, 8, 7, 6)),
    "line": (lambda m: convolution(m, (2, 5, 11), (6, 5, 3)), (2, 6, 9)),
    "enlarged": (lambda m: m.node("ConvTranspose", m.input(2, 6, 4, 3), m.weight(6, 5, 2, 2), strides=[2, 2]), (2, 5, 8, 6)),
}
KINDS = {"rows_halves": ("rows", "float16"), "image_halves": ("image", "float16")}


def combined(m, i, result, operand):
    if i % 3 == 0:
        return m.node("Add", result, operand)
    return m.node("Mul", operand, result) if i % 3 == 1 else m.node("Sub", operand, m.node("Neg", result))


def model_of(contraction, kind, only):
    make, shape = CONTRACTIONS[contraction]
    m = Model(kind)
    for i, (name, layout) in enumerate(LAYOUTS.items()):
        if only not in name:
            continue
        m.output(combined(m, i, make(m), layout(m, shape)), shape)
        if name not in ("turned", "row", "shifted"):
            continue
        for axis in (len(shape) - 1, len(shape) - 2):
            joined = list(shape)
            joined[axis] += 3 + 1
            sides = [m.node("Neg", m.input(*shape[:axis], size, *shape[axis + 1:])) for size in (3, 1)]
            middle = combined(m, i, make(m), layout(m, shape))
            m.output(m.node("Concat", sides[0], middle, sides[1], axis=axis), joined)
        result = m.node("Transpose", combined(m, i, make(m), layout(m, shape)), perm=[*reversed(range(len(shape)))])
        m.output(m.node("Relu", result), [*reversed(shape)])
    return m


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("random_models")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--cxx", default="g++")
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--only", default="", help="layouts whose names have this text")
    arguments = parser.parse_args()
    cases = arguments.folder / "cases"
    shutil.rmtree(cases, ignore_errors=True)
    for name, (contraction, kind) in {**{name: (name, "float32") for name in CONTRACTIONS}, **KINDS}.items():
        model_of(contraction, kind, arguments.only).write(cases / name)
    return subprocess.run([arguments.random_models, "--cases", cases, "--build", arguments.folder / "build", "--cxx",
                           arguments.cxx, "--jobs", "1", *(["--cuda"] if arguments.cuda else [])], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
