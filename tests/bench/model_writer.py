"""Writes the models of the benchmarks as ONNX: what their layers share."""

import math
import pathlib
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "examples"))

import numpy as np  # noqa: E402
from onnx import numpy_helper  # noqa: E402
from training.onnx_files import GraphWriter, save  # noqa: E402, F401

SEED = 4


class ModelWriter(GraphWriter):
    """Adds random weights and the layers that the models share; a layer returns the name of its result."""

    def random(self, name, shape, deviation, mean=0.0):
        """Numbers that depend on the name alone, so that one model's weights do not move with another's layers."""
        numbers = np.random.default_rng([SEED, zlib.crc32(name.encode())]).standard_normal(shape, np.float32)
        return self.constant(name, numbers * np.float32(deviation) + np.float32(mean))

    def scalar(self, name, value, dtype=np.float32):
        """A constant of no dimension, which `constant` would give one."""
        self.constants.setdefault(name, numpy_helper.from_array(np.array(value, dtype), name))
        return name

    def integers(self, name, values):
        return self.constant(name, np.array(values, np.int64))

    def norm(self, x, name, width):
        return self.node("LayerNormalization", [x, self.random(f"{name}.weight", (width,), 0.1, 1.0),
                                                self.random(f"{name}.bias", (width,), 0.1)],
                         f"{name}/LayerNormalization", axis=-1, epsilon=1e-5)

    def linear(self, x, name, inputs, outputs, gain=1.0):
        """As exporters write a linear layer over more than two dimensions."""
        weight = self.random(f"{name}.weight", (inputs, outputs), gain / math.sqrt(inputs))
        product = self.node("MatMul", [x, weight], f"{name}/MatMul")
        return self.node("Add", [self.random(f"{name}.bias", (outputs,), 0.02), product], f"{name}/Add")

    def gemm(self, x, name, inputs, outputs, is_transposed, gain=1.0):
        shape = (outputs, inputs) if is_transposed else (inputs, outputs)
        weight = self.random(f"{name}.weight", shape, gain / math.sqrt(inputs))
        return self.node("Gemm", [x, weight, self.random(f"{name}.bias", (outputs,), 0.02)], f"{name}/Gemm",
                         transB=1 if is_transposed else None)

    def gelu(self, x, name):
        """The exact one, in the five nodes of a module exported before opset 20."""
        inner = self.node("Div", [x, self.scalar("sqrt_2", math.sqrt(2))], f"{name}/Div")
        gate = self.node("Add", [self.node("Erf", [inner], f"{name}/Erf"), self.scalar("one", 1)], f"{name}/Add")
        product = self.node("Mul", [x, gate], f"{name}/Mul")
        return self.node("Mul", [product, self.scalar("half", 0.5)], f"{name}/Mul_1")

    def gelu_tanh(self, x, name):
        """GPT-2's."""
        cube = self.node("Pow", [x, self.scalar("three", 3)], f"{name}/Pow")
        scaled = self.node("Mul", [cube, self.scalar("gelu_cubic", 0.044715)], f"{name}/Mul_1")
        inner = self.node("Add", [x, scaled], f"{name}/Add")
        argument = self.node("Mul", [inner, self.scalar("gelu_scale", math.sqrt(2 / math.pi))], f"{name}/Mul_2")
        gate = self.node("Add", [self.node("Tanh", [argument], f"{name}/Tanh"), self.scalar("one", 1)], f"{name}/Add_1")
        half = self.node("Mul", [x, self.scalar("half", 0.5)], f"{name}/Mul")
        return self.node("Mul", [half, gate], f"{name}/Mul_3")

    def split_heads(self, x, name, size, permutation):
        shape = self.integers("split_heads", [0, 0, size.heads, size.head_size])
        return self.node("Transpose", [self.node("Reshape", [x, shape], f"{name}/Reshape")], f"{name}/Transpose",
                         perm=permutation)

    def merge_heads(self, x, name, size):
        rows = self.node("Transpose", [x], f"{name}/Transpose_out", perm=[0, 2, 1, 3])
        return self.node("Reshape", [rows, self.integers("merge_heads", [0, 0, size.width])], f"{name}/Reshape_out")
