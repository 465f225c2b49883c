#!/usr/bin/env python3
"""Kernels of sizes with bounds: each family that takes formulas is forced, and right at every size; Resize.

    range_kernels.py --gcompile GCOMPILE [CASE...]
"""

import re

from families import (FORCED, FORCED_BYTES, FORCED_IMAGES, FORCED_PACKED, FORCED_PRODUCTS, FORCED_WINDOWS, Model, byte_images,
                      byte_products, byte_windows, images, packed, rounded, rounds, windows)
from ranges import verified
from sizes import compiled
from support import check, contains, equal, manifest, run_main

COORDINATES = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric")


def resized(name, operands, **attributes):
    named = ", ".join(f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}" for key, value in attributes.items())
    return f"{name} = Resize<{named}>(x, {operands})"


def nearest():
    """Elements copied by scales, and to the sizes of another image."""
    model = Model(opset=19)
    model.inputs = ["float[batch,2,height,width] x", "float[1,1,rows,columns] like"]
    model.constants = ["float[4] up = {1, 1, 1.5, 2}", "float[4] down = {1, 1, 0.5, 0.75}", "float[0] none = {}",
                       "float[8] roi = {0, 0, 0.2, -0.1, 1, 1, 0.8, 1.2}", "int64[1] zero = {0}", "int64[1] two = {2}",
                       "int64[1] four = {4}"]
    model.nodes = ["shape = Shape(x)", "like_shape = Shape(like)", "head = Slice(shape, zero, two)",
                   "tail = Slice(like_shape, two, four)", "sizes = Concat<axis = 0>(head, tail)"]
    for coordinates in COORDINATES:
        for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
            for to in ("none, up", "none, down", "none, none, sizes"):
                model.nodes.append(resized(f"y{len(model.outputs)}", to, mode="nearest", coordinate_transformation_mode=coordinates,
                                           nearest_mode=rounding))
                model.outputs.append(f"float[a,b,c,d] y{len(model.outputs)}")
    model.nodes.append(resized("crop", "roi, none, sizes", mode="nearest", coordinate_transformation_mode="tf_crop_and_resize",
                               extrapolation_value=7.5))
    model.outputs.append("float[a,b,c,d] crop")
    return model


def weighted():
    """Elements summed, by whole factors and one divided by them."""
    model = Model(opset=19)
    model.inputs = ["float[batch,2,height,width] x"]
    model.constants = ["float[4] up = {1, 1, 2, 3}", "float[4] down = {1, 1, 0.5, 0.25}", "float[4] wide = {1, 1, 1, 4}",
                       "float[0] none = {}"]
    def add(scales, **attributes):
        model.nodes.append(resized(f"y{len(model.outputs)}", f"none, {scales}", **attributes))
        model.outputs.append(f"float[a,b,c,d] y{len(model.outputs)}")
    for mode in ("linear", "cubic"):
        for coordinates in ("half_pixel", "pytorch_half_pixel", "asymmetric"):
            for scales in ("up", "down", "wide"):
                add(scales, mode=mode, coordinate_transformation_mode=coordinates)
        add("down", mode=mode, antialias=1)
    add("up", mode="linear", coordinate_transformation_mode="half_pixel_symmetric")
    return model


def computed():
    """Elements summed with weights that differ with the size: by any factor, and to the sizes of another image."""
    model = Model(opset=19)
    model.inputs = ["float[batch,2,height,width] x", "float[1,1,rows,columns] like"]
    model.constants = ["float[4] up = {1, 1, 2, 3}", "float[4] odd = {1, 1, 1.5, 0.75}", "float[0] none = {}", "int64[1] zero = {0}",
                       "int64[1] two = {2}", "int64[1] four = {4}"]
    model.nodes = ["shape = Shape(x)", "like_shape = Shape(like)", "head = Slice(shape, zero, two)",
                   "tail = Slice(like_shape, two, four)", "sizes = Concat<axis = 0>(head, tail)"]
    for mode in ("linear", "cubic"):
        for coordinates in COORDINATES:
            for to in ("none, odd", "none, none, sizes"):
                model.nodes.append(resized(f"y{len(model.outputs)}", to, mode=mode, coordinate_transformation_mode=coordinates))
                model.outputs.append(f"float[a,b,c,d] y{len(model.outputs)}")
        model.nodes.append(resized(f"y{len(model.outputs)}", "none, up", mode=mode, coordinate_transformation_mode="align_corners"))
        model.outputs.append(f"float[a,b,c,d] y{len(model.outputs)}")
    return model


COMPUTED_BOUNDS = ["--dim", "batch=1..2", "--dim", "height=2..37", "--dim", "width=2..41", "--dim", "rows=1..50", "--dim",
                   "columns=1..60"]
NEAREST_BOUNDS = ["--dim", "batch=1..2", "--dim", "height=1..37", "--dim", "width=1..41", "--dim", "rows=1..50", "--dim",
                  "columns=1..60"]
WEIGHTED_BOUNDS = ["--dim", "batch=1..2", "--dim", "height=4..37", "--dim", "width=8..41"]


def case_nearest(world):
    check(any("tensors are right" in line for line in verified(world, "nearest", nearest(), *NEAREST_BOUNDS)), "nothing was tried")


def case_weighted(world):
    check(any("tensors are right" in line for line in verified(world, "weighted", weighted(), *WEIGHTED_BOUNDS)), "nothing was tried")


def case_computed(world):
    check(any("tensors are right" in line for line in verified(world, "computed", computed(), *COMPUTED_BOUNDS)), "nothing was tried")


def case_resize_refused(world):
    """What is not resized at every size, by the node and with the reason."""
    for attributes, scales, reason in (
            ({"antialias": 1}, "1, 1, 1.5, 1", "in mode 'linear' by other factors than whole numbers and one divided by them"),
            ({"antialias": 1, "coordinate_transformation_mode": "align_corners"}, "1, 1, 2, 2", "in mode 'linear' with 'align_corners'"),
            ({"exclude_outside": 1}, "1, 1, 2, 1", "in mode 'linear' with exclude_outside"),
            ({}, "1, 1, 1.2345, 1", "scaled by fractions of small numbers")):
        model = Model(opset=19)
        model.inputs = ["float[1,2,height,width] x"]
        model.outputs = ["float[a,b,c,d] y"]
        model.constants = [f"float[4] scales = {{{scales}}}", "float[0] none = {}"]
        model.nodes = [resized("y", "none, scales", mode="linear", **attributes)]
        path = world.path("refused.onnxtxt")
        path.write_text(model.text())
        done = world.run([world.gcompile, path, "-o", world.path("refused"), "--dim", "height=2..37", "--dim", "width=2..41"], status=1)
        contains(done.stderr, "Resize 'y': sizes that only a run knows are", reason)


def case_same_padding(world):
    """SAME at strides, where the padding depends on whether a size is odd; a zero point is no border of zeros."""
    model = Model()
    model.inputs = ["float[1,3,height,width] x"]
    model.outputs = ["float[1,8,a,b] upper", "float[1,8,c,d] lower", "float[1,8,e,f] tall"]
    for name, kernel in (("k3", (3, 3)), ("k2", (2, 2)), ("k5", (5, 3))):
        model.constant(name, "float", (8, 3, *kernel))
    model.nodes = ['upper = Conv<auto_pad = "SAME_UPPER", strides = [2, 2]>(x, k3)',
                   'lower = Conv<auto_pad = "SAME_LOWER", strides = [2, 2]>(x, k2)',
                   'tall = Conv<auto_pad = "SAME_LOWER", strides = [3, 2]>(x, k5)']
    lines = verified(world, "same", model, "--dim", "height=1..31", "--dim", "width=1..33")
    check(any("tensors are right" in line for line in lines), f"nothing was tried: {lines}")
    model = Model(opset=22)
    model.inputs = ["float[1,3,height,width] x"]
    model.outputs = [f"float[1,3,a{i},b{i}] y{i}" for i in range(6)]
    same = 'auto_pad = "SAME_UPPER", strides = [2, 2]'
    model.nodes = [f"y0 = MaxPool<{same}, kernel_shape = [3, 3]>(x)", f"y1 = AveragePool<{same}, kernel_shape = [3, 3]>(x)",
                   f"y2 = AveragePool<{same}, kernel_shape = [2, 3], count_include_pad = 1>(x)",
                   'y3 = AveragePool<auto_pad = "SAME_LOWER", strides = [3, 2], kernel_shape = [4, 2], ceil_mode = 1>(x)',
                   f"y4 = LpPool<{same}, kernel_shape = [3, 2]>(x)",
                   # One window always fits, however small the image has become.
                   f"second = MaxPool<{same}, kernel_shape = [3, 3]>(y0)", f"y5 = MaxPool<{same}, kernel_shape = [5, 5]>(second)"]
    lines = verified(world, "pools", model, "--dim", "height=1..31", "--dim", "width=1..33")
    check(any("tensors are right" in line for line in lines), f"nothing was tried: {lines}")
    model = Model(opset=22)
    model.inputs = ["uint8[1,3,height,width] x", "uint8 run_zero"]
    model.outputs = ["int32[1,8,a,b] y", "int32[1,8,c,d] run", "uint8[1,8,e,f] q", "uint8[1,3,g,h] top"]
    model.constants = ["uint8[1] zero = {128}", "int8[1] w_zero = {3}", "uint8 y_zero = {100}", "float scale = {0.5}",
                       "float y_scale = {40}", "int8 w_zeros = {0}"]
    model.integers("w", "int8", (8, 3, 3, 3), -127, 127)
    model.nodes = [f"y = ConvInteger<{same}>(x, w, zero, w_zero)", f"run = ConvInteger<{same}>(x, w, run_zero)",
                   f"q = QLinearConv<{same}>(x, scale, zero, w, scale, w_zeros, y_scale, y_zero)",
                   f"top = MaxPool<{same}, kernel_shape = [2, 2]>(x)"]
    lines = verified(world, "integers", model, "--dim", "height=1..31", "--dim", "width=1..33")
    check(any("tensors are right" in line for line in lines), f"nothing was tried: {lines}")
    model = Model(opset=22)
    model.inputs = ["float[1,3,height,width] x"]
    model.outputs = ["float[1,3,a,b] y", "int64[1,3,a,b] at"]
    model.nodes = [f"y, at = MaxPool<{same}, kernel_shape = [3, 3]>(x)"]
    path = world.path("indices.onnxtxt")
    path.write_text(model.text())
    done = world.run([world.gcompile, path, "-o", world.path("indices"), "--dim", "height=1..31", "--dim", "width=1..33"], status=1)
    contains(done.stderr, "the padding by auto_pad depends on")


def case_middles(world):
    """Cropped and padded about the middle, to numbers and to the sizes of another tensor, each more or less than there is."""
    model = Model(opset=18)
    model.inputs = ["float[1,3,height,width] x", "float[rows,columns] like"]
    model.outputs = ["float[1,3,20,60] fixed", "float[1,3,rows,columns] open"]
    model.constants = ["int64[2] to = {20, 60}"]
    model.nodes = ["fixed = CenterCropPad<axes = [2, 3]>(x, to)", "shape = Shape(like)", "open = CenterCropPad<axes = [2, 3]>(x, shape)"]
    lines = verified(world, "middles", model, "--dim", "height=1..31", "--dim", "width=1..33", "--dim", "rows=1..40", "--dim",
                     "columns=2..30")
    check(any("tensors are right" in line for line in lines), f"nothing was tried: {lines}")


def case_norms(world):
    """Windows of ceil_mode that reach beyond the padding at some sizes, and end before the axis does at others."""
    model = Model(opset=18)
    model.inputs = ["float[1,3,height,width] x"]
    model.outputs = ["float[1,3,a,b] y", "float[1,3,c,d] z", "float[1,3,e,f] u"]
    model.nodes = ["y = LpPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1>(x)",
                   "z = LpPool<kernel_shape = [2, 3], strides = [3, 2], pads = [1, 1, 1, 1], ceil_mode = 1, p = 1>(x)",
                   "u = LpPool<kernel_shape = [3, 2], strides = [2, 1], pads = [1, 0, 0, 1], p = 3>(x)"]
    lines = verified(world, "norms", model, "--dim", "height=4..31", "--dim", "width=4..33")
    check(any("tensors are right" in line for line in lines), f"nothing was tried: {lines}")


def opened(model, inputs):
    """The model over images whose sizes are symbols: its inputs, and outputs of any size."""
    model.inputs = inputs
    model.outputs = [re.sub(r"\d+", "any", text.split("]")[0].split("[")[1]).join((text.split("[")[0] + "[", "]" + text.split("]")[1]))
                     for text in model.outputs]
    return model


IMAGES = ["--dim", "batch=1..3", "--dim", "height=7..21@9", "--dim", "width=3..40@30"]


def forced(world, name, model, bounds, families, threads=1):
    """Each family once, at the corners and between them; all serve formulas."""
    for i, options in enumerate(rounds(families)):
        lines = verified(world, f"{name}_{i}", model, *bounds, *options, "--threads", str(threads + i))
        check(any("tensors are right" in line for line in lines), f"{options}: {lines}")


def case_windows(world):
    """Convolutions of 3x3 windows and of few channels, by Winograd's algorithm, dot products and tiles."""
    model = opened(windows(), ["float[batch,17,height,width] x", "float[batch,5,height,width] s", "float[batch,1,height,width] n",
                               "float[batch,5,height,1] t", "float[batch,1,length] r"])
    # The errors of three tiles of 4x4 behind each other add up to the tolerance.
    families = {**FORCED_WINDOWS, "one": ["conv.dot", "conv.winograd2", "conv.direct", "conv.loops"]}
    forced(world, "windows", model, [*IMAGES, "--dim", "length=20..90"], families)


def case_byte_windows(world):
    """The same of bytes; and frames, whose weights one run would want together and another apart: plain loops take them."""
    model = opened(byte_windows(), ["uint8[batch,18,height,width] x", "int8[batch,6,height,width] s", "int8[1,1,length,1] t",
                                    "int32[batch,17,height,width] more"])
    model.integers("v", "int8", (18, 1, 3, 3), -128, 127)
    model.nodes.append("thin = ConvInteger<group = 18, pads = [1, 1, 1, 1], strides = [1, 2]>(x, v, x_zero)")
    model.outputs.append("int32[a,b,c,d] thin")
    bounds = [*IMAGES, "--dim", "length=300..900"]
    forced(world, "bytes", model, bounds, {**FORCED_BYTES, "thin": ["conv.depthwise_integer", "conv.loops"]})
    path = world.path("bytes_0.onnxtxt")
    contains(world.compile(path, world.path("tall"), *bounds, "--explain", "tall"), "conv.integer: does not take it: sizes that only")


def case_transposed(world):
    floats = opened(images(), ["float[batch,6,height,width] x"])
    floats.nodes, floats.outputs = floats.nodes[3:4], floats.outputs[2:3]
    forced(world, "floats", floats, IMAGES, {"up": FORCED["up"]})
    model = opened(byte_images(), ["uint8[batch,18,height,width] x", "int8[batch,12,height,width] s"])
    forced(world, "transposed", model, IMAGES, FORCED_IMAGES)


def case_arena(world):
    """Winograd's scratch is that of the largest sizes alone, whatever is typical."""
    model = opened(windows(), ["float[1,17,height,width] x", "float[1,5,3,3] s", "float[1,1,6,33] n", "float[2,5,30,1] t",
                               "float[2,1,90] r"])
    forced = ["--kernel", "first=conv.winograd4", "--kernel", "second=conv.winograd2", "--kernel", "deep=conv.winograd4"]
    alone = compiled(world, "alone", model, "--dim", "height=80", "--dim", "width=90", *forced)
    for typical in (2, 40, 80):
        out = compiled(world, f"typical_{typical}", model, "--dim", f"height=2..80@{typical}", "--dim", "width=1..90", *forced)
        equal(manifest(out, "net")["arena_bytes"], manifest(alone, "net")["arena_bytes"], f"arena with {typical} typical")


def case_byte_products(world):
    """Products of bytes by constants and by what a run computes, of any rows, columns and depth."""
    model = opened(byte_products(), ["uint8[batch,3,rows,19] a", "int8[3,19,columns] b", "int8[batch,1,rows,19] c",
                                     "uint8[1,19,columns] d", "uint8[1,rows,4,6] q", "uint8[1,columns,4,6] k", "float[rows,11] f",
                                     "int8[11,3] g", "uint8 run_zero", "int32[batch,3,rows,columns] more"])
    bounds = ["--dim", "batch=1..3", "--dim", "rows=1..40@9", "--dim", "columns=1..50"]
    forced(world, "products", model, bounds, {node: families for node, families in FORCED_PRODUCTS.items() if node != "scores"})


def case_packed_weights(world):
    """Weights that are decoded in registers, of one row as of many, also where the rows are rounded to int8."""
    model = opened(packed(), ["float[batch,rows,70] row", "float[batch,rows,70] many", "float[rows,70] few", "float[rows,61] side"])
    bounds = ["--dim", "batch=1..2", "--dim", "rows=1..30@1"]
    forced(world, "packed", model, bounds, FORCED_PACKED)
    forced(world, "many", model, ["--dim", "batch=2", "--dim", "rows=5..30"], {"bytes": ["product.decode"]})
    model = opened(rounded(), ["float[batch,rows,70] row", "float[rows,70] many", "float[batch,rows,96] wide"])
    forced(world, "rounded", model, bounds, {node: ["product.decode_integer"] for node in ("nibbles", "bytes", "crumbs")})


def case_one_row(world):
    """Attention and products of rows that may be one: then what a run computes is read where it lies, not packed."""
    model = Model(opset=17)
    model.inputs = ["float[batch,4,rows,24] q", "float[batch,columns,4,24] k", "float[batch,4,columns,20] v",
                    "float[batch,1,1,columns] mask", "float[batch,4,rows,24] p", "float[rows,24] single"]
    model.outputs = ["float[batch,4,rows,20] mixed", "float[batch,4,rows,20] weighed", "float[batch,4,rows,columns] alone"]
    model.nodes = ["keys = Transpose<perm = [0, 2, 3, 1]>(k)", "scores = MatMul(q, keys)", "masked = Add(scores, mask)",
                   "weights = Softmax(masked)", "mixed = MatMul(weights, v)", "other = MatMul(p, keys)", "gate = Relu(other)",
                   "weighed = MatMul(gate, v)", "alone = MatMul(single, keys)"]
    bounds = ["--dim", "batch=1..3", "--dim", "columns=1..70"]
    in_place = "== 1) {  // b is read where it lies"
    for rows, attention, products in (("1..40", "attention_of_run(", 3), ("2..40", "attention(", 0)):
        lines = verified(world, f"rows_{rows[0]}", model, *bounds, "--dim", f"rows={rows}", "--threads", "2")
        check(any("tensors are right" in line for line in lines), f"nothing was tried: {lines}")
        out = compiled(world, f"project_{rows[0]}", model, *bounds, "--dim", f"rows={rows}")
        kernels = (out / "src" / "net_kernels.cpp").read_text()
        contains(kernels, f"  {attention}\n")
        equal(kernels.count(in_place), products, f"products in place, rows {rows}")


if __name__ == "__main__":
    run_main(globals())
