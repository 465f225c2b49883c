#!/usr/bin/env python3
"""QDQ networks of 16-bit activations, by every family that takes their contractions, beside the reference evaluation.

    short_integers.py --gcompile GCOMPILE CASE
"""

import math

from families import Model, rounds, verify
from support import check, manifest, run_main

WEIGHTS = {"w_stem": (16, 3, 3, 3), "w_deep": (16, 1, 3, 3), "w_point": (24, 16, 1, 1), "w_group": (24, 12, 3, 3),
           "w_up": (24, 16, 2, 2), "w_long": (8, 40, 5, 5), "w_head": (40, 216), "w_in": (80, 72), "w_out": (24, 24)}

def short_integers():
    """QDQ networks of 16-bit activations and 8-bit weights: every kind of contraction, scales for all and one per channel,
    zero points, sums that are made in parts, what moves, and a block of attention; operators of ONNX and of Microsoft."""
    model = Model(opset=21)
    model.domains = ', "com.microsoft" : 1'
    model.inputs = ["uint16[2,3,13,11] image", "int16[1,6,80] t"]
    model.outputs = ["uint16[2,24,3,3] y", "uint16[2,8,4,1] wide", "int16[2,40] scores", "uint16[1,6,24] block"]
    for name, shape in WEIGHTS.items():
        model.integers(name, "int8", shape, -128, 127)
    model.integers("b_stem", "int32", (16,), -3000000, 3000000)
    scales = [0.004 + i / 4000 for i in range(16)]
    model.constants += ["uint16 zero = {40000}", "uint16 none = {0}", "int16 s_zero = {-700}", "float scale = {0.0002}",
                        "float y_scale = {0.0007}", "float w_scale = {0.002}", "int8 w_zero = {5}",
                        f"float[16] each = {{{', '.join(map(str, scales))}}}",
                        f"float[16] b_each = {{{', '.join(str(s * 0.0002) for s in scales)}}}",
                        "int64[3] heads = {6, 4, 6}", "int64[2] flat = {2, 216}", "int64[3] rows = {1, 6, 24}",
                        "int64[3] thirds = {24, 24, 24}", "float[4] grow = {1, 1, 2, 1}"]
    nodes = model.nodes = []

    def edge(x, scale="y_scale", zero="zero", domain=""):
        nodes.append(f"{x}_q = {domain}QuantizeLinear({x}, {scale}, {zero})")
        nodes.append(f"{x}_d = {domain}DequantizeLinear({x}_q, {scale}, {zero})")

    def weight(name, more="(w_{0}, w_scale)"):
        nodes.append(f"f_{name} = DequantizeLinear{more.format(name)}")

    nodes.append("image_d = DequantizeLinear(image, scale, zero)")
    weight("stem", "<axis = 0>(w_{0}, each)"), weight("deep", "(w_{0}, w_scale, w_zero)"), weight("point")
    weight("group"), weight("up"), weight("long"), weight("head"), weight("in"), weight("out")
    nodes.append("fb = DequantizeLinear<axis = 0>(b_stem, b_each)")
    nodes.append("stem = Conv<pads = [1, 1, 1, 1]>(image_d, f_stem, fb)"), nodes.append("low = Relu(stem)")
    edge("low", zero="none")
    nodes.append("deep = Conv<pads = [1, 1, 1, 1], strides = [2, 2], group = 16>(low_d, f_deep)"), edge("deep")
    nodes.append("point = Conv(deep_d, f_point)"), edge("point", domain="com.microsoft.")
    nodes.append("grouped = Conv<pads = [1, 1, 1, 1], group = 2>(point_d, f_group)"), edge("grouped")
    nodes.append("sum = Add(point_d, grouped_d)"), edge("sum"), nodes.append("gate = Sigmoid(sum_d)")
    edge("gate", scale="scale", zero="none"), nodes.append("gated = Mul(sum_d, gate_d)"), edge("gated")
    nodes.append("up = ConvTranspose<strides = [2, 2]>(gated_d, f_up)"), edge("up")
    nodes.append("least = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(up_d)")
    nodes.append("joined = Concat<axis = 1>(least, gated_d)"), edge("joined")
    nodes.append('tall = Resize<mode = "nearest">(joined_d, , grow)')
    nodes.append("long = Conv<strides = [3, 3]>(tall, f_long)"), edge("long"), nodes.append("wide = Identity(long_q)")
    nodes.append("mean = AveragePool<kernel_shape = [2, 2], strides = [2, 2]>(gated_d)")
    edge("mean"), nodes.append("y = Identity(mean_q)")
    nodes.append("vector = Reshape(mean_d, flat)"), nodes.append("head = Gemm<transB = 1>(vector, f_head)")
    nodes.append("scores = QuantizeLinear(head, y_scale, s_zero)")
    nodes.append("td = DequantizeLinear(t, scale, s_zero)"), nodes.append("qkv = MatMul(td, f_in)"), edge("qkv")
    nodes.append("q, k, v = Split<axis = 2>(qkv_d, thirds)")
    for name in "qkv":
        nodes.append(f"{name}h = Reshape({name}, heads)"), nodes.append(f"{name}t = Transpose<perm = [1, 0, 2]>({name}h)")
    nodes.append("kk = Transpose<perm = [0, 2, 1]>(kt)"), nodes.append("products = MatMul(qt, kk)"), edge("products")
    nodes.append("weights = Softmax(products_d)"), edge("weights", scale="scale", zero="none")
    nodes.append("mixed = MatMul(weights_d, vt)"), edge("mixed")
    nodes.append("back = Transpose<perm = [1, 0, 2]>(mixed_d)"), nodes.append("row = Reshape(back, rows)")
    nodes.append("out = MatMul(row, f_out)"), edge("out"), nodes.append("block = Identity(out_q)")
    return model


FORCED = {"stem": ["conv.integer", "conv.loops"], "deep": ["conv.depthwise_integer", "conv.loops"],
                "point": ["conv.integer", "conv.loops"], "grouped": ["conv.integer", "conv.loops"],
                "up": ["conv_transpose.integer", "conv_transpose.loops"], "out": ["product.integer", "product.loops"],
                "qkv": ["product.integer", "product.loops"]}


def case_forced(world):
    for i, options in enumerate(rounds(FORCED)):
        verify(world, f"short_{i}", short_integers(), *options, "--threads", str((3, 1)[i]))


def case_contractions_are_of_integers(world):
    """All but the two products of attention, neither side of which is a constant; and panels hold bytes."""
    path = world.folder / "wide.onnxtxt"
    path.write_text(short_integers().text())
    world.compile(path, world.folder / "project")
    told = manifest(world.path("project"), "wide")
    families = [choice["families"][0]["family"] for choice in told["choices"]]
    expected = {"conv.integer": 5, "conv.depthwise_integer": 1, "conv_transpose.integer": 1, "product.integer": 3,
                "product.tile": 2, "pool.window": 2}
    check({name: families.count(name) for name in families} == expected, f"families: {families}")
    weights = sum(map(math.prod, WEIGHTS.values()))
    check(told["weights_bytes"] < 2 * weights, f"{told['weights_bytes']} bytes of {weights}")


def case_cuda(world):
    """In floats: no kernel of CUDA multiplies 16 bits."""
    verify(world, "short", short_integers(), "--target", "cuda", "--emulate")


if __name__ == "__main__":
    run_main(globals())
