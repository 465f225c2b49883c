#!/usr/bin/env python3
"""Every kernel family that takes a problem computes it right: each is forced, on awkward shapes, built and compared with
the reference; and what no fast kernel takes is computed all the same.

    families.py --gcompile GCOMPILE [CASE...]
"""

import html
import math

from model_text import Model
from support import check, contains, manifest, read_npy, run_main


def images():
    """Convolutions, pools and a product; a mean over columns whose padding counts, of images that are one pixel wide. Names
    of nodes are those of their results."""
    model = Model()
    model.inputs = ["float[2,6,9,7] x", "float[2,5,8,1] s"]
    model.outputs = ["float[2,10,5,4] dense", "float[2,12,9,7] thin", "float[2,4,19,15] up", "float[2,6,4,3] high",
                     "float[2,6,4,3] mean", "float[2,6,9,5] product",
                     "float[2,5,3,1] column"]
    w, thin, up = (model.constant(n, "float", s) for n, s in
                   (("w", (10, 3, 3, 3)), ("t", (12, 1, 3, 3)), ("u", (6, 4, 3, 3))))
    model.constant("b", "float", (10,))
    model.constant("m", "float", (7, 5))
    model.nodes = [f"conv = Conv<group = 2, strides = [2, 2], pads = [1, 1, 1, 1]>(x, {w}, b)", "dense = Relu(conv)",
                   f"thin = Conv<group = 6, pads = [1, 1, 1, 1]>(x, {thin})",
                   f"up = ConvTranspose<strides = [2, 2]>(x, {up})",
                   "high = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(x)",
                   "mean = AveragePool<kernel_shape = [3, 3], strides = [2, 2]>(x)", "product = MatMul(x, m)",
                   "column = AveragePool<kernel_shape = [3, 1], strides = [3, 3], pads = [0, 0, 2, 0], ceil_mode = 1, "
                   "count_include_pad = 1>(s)"]
    return model


FORCED = {"conv": ["conv.direct", "conv.loops"], "thin": ["conv.depthwise", "conv.direct", "conv.loops"],
          "up": ["conv_transpose.direct", "conv_transpose.loops"], "high": ["pool.window", "pool.loops"],
          "mean": ["pool.window", "pool.loops"],
          "column": ["pool.window", "pool.loops"], "product": ["product.tile", "product.loops"]}


def lists():
    """Kernels with their own control."""
    model = Model(opset=26)
    model.inputs = ["float[2,9,5] x", "int32[4,7] n", "int64[3,2] at", "float[3,5] rows", "int32[2,7] by", "int32[2,7] more"]
    model.outputs = ["float[2,4,5] best", "int64[2,4,5] where", "float[2,9,5] sums", "float[2,9,5] products", "float[2,9,5] put",
                     "int32[4,7] added", "float[2,1,9,6] states"]
    model.constants = ["int64[1] k = {4}", "int64 axis = {1}"]
    for gate, width in (("w", 5), ("r", 6)):
        model.constant(gate, "float", (1, 18, width))
    model.constant("b", "float", (1, 36))
    model.nodes = ["best, where = TopK<axis = 1>(x, k)", "sums = CumSum<exclusive = 1, reverse = 1>(x, axis)",
                   "products = CumProd<exclusive = 1>(x, axis)",
                   "put = ScatterND(x, at, rows)",
                   'added = ScatterElements<axis = 0, reduction = "add">(n, by, more)',
                   "states = GRU<hidden_size = 6>(x, w, r, b)"]
    return model


def verify(world, name, model, *options):
    path = world.folder / f"{name}.onnxtxt"
    path.write_text(model.text())
    world.run([world.gcompile, "verify", path, "-q", *options])


FORCED_LISTS = {"best": ["topk.sort", "topk.loops"], "sums": ["scan.lines", "scan.loops"],
                "products": ["scan.lines", "scan.loops"],
                "put": ["scatter.dense", "scatter.loops"], "added": ["scatter.dense", "scatter.loops"],
                "states": ["recurrent.cell", "recurrent.loops"]}


def windows():
    """Convolutions of 3x3 windows: tails of tiles and of channels, one pixel, uneven pads, batches, sums in place; and one
    along an image of one column."""
    model = Model()
    model.inputs = ["float[2,17,9,14] x", "float[1,5,3,3] s", "float[1,1,6,33] n", "float[2,5,30,1] t",
                    "float[2,1,90] r"]
    model.outputs = ["float[2,17,9,14] wide", "float[1,40,1,1] point", "float[1,3,8,34] few", "float[2,8,13,14] deep",
                     "float[2,4,14,1] tall", "float[2,1,11,16] single", "float[2,1,38] frames"]
    for name, shape in (("q", (1, 17, 3, 3)), ("k", (1, 1, 19)), ("w", (17, 17, 3, 3)), ("v", (17, 17, 3, 3)), ("p", (40, 5, 3, 3)), ("f", (3, 1, 3, 3)),
                        ("d", (8, 17, 3, 3)), ("b", (17,)), ("l", (4, 5, 7, 1))):
        model.constant(name, "float", shape)
    model.nodes = ["first = Conv<pads = [1, 1, 1, 1]>(x, w, b)", "low = Relu(first)",
                   "second = Conv<pads = [1, 1, 1, 1]>(low, v)", "sum = Add(second, low)", "wide = Relu(sum)",
                   "point = Conv(s, p)", "few = Conv<pads = [0, 3, 4, 0]>(n, f)",
                   "deep = Conv<pads = [4, 0, 2, 2]>(wide, d)",
                   "tall = Conv<pads = [2, 0, 2, 0], strides = [2, 1]>(t, l)",
                   "one = Conv<pads = [2, 2, 2, 2]>(wide, q)", "single = Sigmoid(one)",
                   "frames = Conv<strides = [2], pads = [2, 3]>(r, k)"]
    return model


FORCED_WINDOWS = {node: ["conv.winograd4", "conv.winograd2", "conv.direct", "conv.loops"]
                  for node in ("first", "second", "point", "few")}
FORCED_WINDOWS["deep"] = FORCED_WINDOWS["one"] = ["conv.winograd4", "conv.winograd2", "conv.dot", "conv.loops"]
FORCED_WINDOWS["few"] = ["conv.winograd4", "conv.planes", "conv.scalar", "conv.loops"]
FORCED_WINDOWS["frames"] = ["conv.dot", "conv.direct", "conv.scalar"]


def byte_windows():
    """The same of bytes, as unsigned and as signed ones, with zero points; frames of a signal of one column; and images
    without zero points, behind which an epilogue reads operands of its own."""
    model = Model()
    model.inputs = ["uint8[2,18,9,14] x", "int8[1,6,3,3] s", "int8[1,1,900,1] t", "int32[2,17,9,14] more"]
    model.outputs = ["int32[2,17,9,14] wide", "int32[2,17,9,14] none", "int32[2,17,9,14] half", "int8[1,40,1,1] point",
                     "uint8[2,8,13,14] deep", "int32[1,5,7,1] tall"]
    model.integers("l", "int8", (5, 1, 300, 1), -128, 127)
    model.integers("w", "int8", (17, 18, 3, 3), -128, 127)
    model.integers("p", "int8", (40, 6, 3, 3), -128, 127)
    model.integers("d", "uint8", (8, 18, 3, 3), 0, 254)
    model.constants += ["uint8 x_zero = {131}", "int8 s_zero = {-7}", "float scale = {0.02}", "float w_scale = {0.01}",
                        "float y_scale = {0.03}", "int8 w_zero = {0}", "uint8 d_zero = {127}"]
    model.nodes = ["wide = ConvInteger<pads = [1, 1, 1, 1]>(x, w, x_zero)",
                   "point = QLinearConv(s, scale, s_zero, p, w_scale, w_zero, y_scale, s_zero)",
                   "deep = QLinearConv<pads = [4, 0, 2, 2]>(x, scale, x_zero, d, w_scale, d_zero, y_scale, x_zero)",
                   "tall = ConvInteger<strides = [100, 1]>(t, l, s_zero)",
                   "bare = ConvInteger<pads = [1, 1, 1, 1]>(x, w)", "none = Add(bare, more)",
                   "lean = ConvInteger<pads = [1, 1, 1, 1]>(x, w, d_zero)", "half = Sub(lean, more)"]
    return model


FORCED_BYTES = {node: ["conv.winograd4_integer", "conv.winograd2_integer", "conv.integer", "conv.loops", "conv.scalar_integer"]
                for node in ("wide", "point", "deep", "bare", "lean")}


def byte_products():
    """Products of bytes that only the run knows: every signedness, rows, columns and both sides broadcast, zero points of the
    model and of the run, a constant that is no matrix, and heads that are transposed; by a matrix for a batch; and without
    zero points, behind which an epilogue reads operands of its own."""
    model = Model(opset=13)
    model.inputs = ["uint8[2,3,7,19] a", "int8[3,19,21] b", "int8[2,1,5,19] c", "uint8[1,19,33] d", "uint8[1,9,4,6] q",
                    "uint8[1,9,4,6] k", "float[5,11] f", "int8[11,3] g", "uint8 run_zero", "int32[2,3,7,18] more"]
    model.outputs = ["int32[2,3,7,21] one", "uint8[2,1,5,33] two", "uint8[1,4,9,9] heads", "int32[5,3] three",
                     "int32[2,3,7,6] four", "int32[2,3,7,18] five", "int32[2,3,7,18] six", "int32[2,3,7,18] seven",
                     "int32[2,3,7,18] eight"]
    model.integers("h", "uint8", (3, 19, 6), 0, 255), model.integers("w", "int8", (19, 18), -128, 127)
    model.constants += ["uint8 a_zero = {131}", "int8 b_zero = {-7}", "float scale = {0.02}", "float y_scale = {0.3}",
                        "int8 c_zero = {3}", "uint8 d_zero = {128}"]
    model.nodes = ["one = MatMulInteger(a, b, a_zero, b_zero)",
                   "two = QLinearMatMul(c, scale, c_zero, d, scale, d_zero, y_scale, a_zero)",
                   "tq = Transpose<perm = [0, 2, 1, 3]>(q)", "tk = Transpose<perm = [0, 2, 3, 1]>(k)",
                   "fq = DequantizeLinear(tq, scale, a_zero)", "fk = DequantizeLinear(tk, scale, d_zero)",
                   "scores = MatMul(fq, fk)", "heads = QuantizeLinear(scores, y_scale, a_zero)",
                   "fu, fs, fz = DynamicQuantizeLinear(f)", "three = MatMulInteger(fu, g, fz)",
                   "four = MatMulInteger(a, h, run_zero, a_zero)", "five = MatMulInteger(a, w, a_zero)",
                   "bare = MatMulInteger(a, w)", "six = Add(bare, more)", "lean = MatMulInteger(a, v)",
                   "seven = Add(lean, some)", "thin = MatMulInteger(a, v, a_zero)", "eight = Add(thin, some)"]
    model.integers("some", "int32", (18,), -99, 99), model.integers("v", "int8", (19, 18), -128, 127)
    return model


FORCED_PRODUCTS = {node: ["product.integer", "product.loops"]
                   for node in ("one", "two", "scores", "three", "four", "five", "bare", "lean", "thin")}
FORCED_PRODUCTS |= {node: [*FORCED_PRODUCTS[node], "product.scalar_integer"] for node in ("five", "bare", "lean", "thin")}
FORCED_PRODUCTS_CUDA = {node: ["product.integer"] for node in ("five", "bare", "lean", "thin")}


def byte_images():
    """Transposed convolutions of bytes, in QDQ form: a scale for all and one per channel, groups, biases, paddings, channels
    that fill no word, phases that see no tap."""
    model = Model(opset=13)
    model.inputs = ["uint8[2,18,5,7] x", "int8[1,12,9,8] s"]
    model.outputs = ["uint8[2,11,9,13] wide", "int8[1,40,18,16] twice", "uint8[1,9,27,24] holes", "float[2,5,18,26] up"]
    for name, shape in (("w", (18, 11, 3, 3)), ("t", (12, 40, 2, 2)), ("h", (12, 3, 2, 1)), ("u", (11, 5, 4, 4))):
        model.integers(name, "int8", shape, -128, 127)
    model.integers("b", "int32", (11,), -3000, 3000)
    scales = [0.01 + i / 1000 for i in range(11)]
    model.constants += ["uint8 x_zero = {131}", "int8 s_zero = {-7}", "float scale = {0.02}", "float y_scale = {0.3}",
                        "int8 h_zero = {9}", f"float[11] w_scale = {{{', '.join(map(str, scales))}}}",
                        f"float[11] b_scale = {{{', '.join(str(s * 0.02) for s in scales)}}}"]
    model.nodes = ["fx = DequantizeLinear(x, scale, x_zero)", "fs = DequantizeLinear(s, scale, s_zero)",
                   "fw = DequantizeLinear<axis = 1>(w, w_scale)", "fb = DequantizeLinear<axis = 0>(b, b_scale)",
                   "first = ConvTranspose<strides = [2, 2], pads = [1, 1, 1, 1]>(fx, fw, fb)", "low = Relu(first)",
                   "wide = QuantizeLinear(low, y_scale, x_zero)", "again = DequantizeLinear(wide, y_scale, x_zero)",
                   "ft = DequantizeLinear(t, scale)", "second = ConvTranspose<strides = [2, 2]>(fs, ft)",
                   "twice = QuantizeLinear(second, y_scale, s_zero)", "fh = DequantizeLinear(h, scale, h_zero)",
                   "third = ConvTranspose<strides = [3, 3], group = 3, output_padding = [1, 2]>(fs, fh)",
                   "holes = QuantizeLinear(third, y_scale, x_zero)", "fu = DequantizeLinear(u, scale)",
                   "up = ConvTranspose<strides = [2, 2], pads = [1, 1, 1, 1]>(again, fu)"]
    return model


FORCED_IMAGES = {node: ["conv_transpose.integer", "conv_transpose.loops"] for node in ("first", "second", "third", "up")}


def packed():
    """Products by weights of 4 and 8 bits: every kind of scales and zero points, one row, few and many, tails everywhere."""
    model = Model(opset=21)
    model.domains = ', "com.microsoft" : 1'
    model.inputs = ["float[1,1,70] row", "float[2,3,70] many", "float[3,70] few", "float[3,61] side"]
    model.outputs = ["float[1,1,37] nibbles", "float[2,3,37] bytes", "float[2,3,19] low", "float[3,61] sum", "float[1,1,19] odd",
                     "float[3,19] whole"]
    model.integers("b4", "uint8", (37, 3, 16), 0, 255), model.integers("z4", "uint8", (37, 2), 0, 255)
    model.integers("b8", "uint8", (37, 5, 16), 0, 255), model.integers("z8", "uint8", (37, 5), 0, 255)
    model.constants.append(f"int32[70] in_order = {{{', '.join(str(k // 16) for k in range(70))}}}")
    model.integers("w", "int8", (70, 19), -8, 7), model.integers("zw", "int8", (9, 19), -3, 3)
    model.integers("t", "uint8", (61, 70), 0, 255), model.integers("zt", "uint8", (61,), 100, 150)
    model.integers("v", "int8", (70, 19), -128, 127)
    for name, shape in (("s4", (37, 3)), ("s8", (37, 5)), ("sw", (9, 19)), ("st", (61,)), ("so", (14, 19)), ("sv", (1,)),
                        ("bias", (37,)), ("more", (61,))):
        model.constant(name, "float", shape)
    model.nodes = ["nibbles = com.microsoft.MatMulNBits<K = 70, N = 37, bits = 4, block_size = 32>(row, b4, s4, z4)",
                   'bytes = com.microsoft.MatMulNBits<K = 70, N = 37, bits = 8, block_size = 16>(many, b8, s8, z8, in_order, bias)',
                   "fw = DequantizeLinear<axis = 0, block_size = 8>(w, sw, zw)", "blocks = MatMul(many, fw)", "low = Relu(blocks)",
                   "ft = DequantizeLinear<axis = 0>(t, st, zt)", "columns = Gemm<transB = 1>(few, ft, more)",
                   "sum = Add(columns, side)",
                   "fo = DequantizeLinear<axis = 0, block_size = 5>(v, so)", "odd = MatMul(row, fo)",
                   "one = Reshape(sv, none)", "fv = DequantizeLinear(v, one)", "whole = MatMul(few, fv)"]
    model.constants.append("int64[0] none = {}")
    return model


FORCED_PACKED = {node: ["product.decode", "product.loops"] for node in ("nibbles", "bytes", "blocks", "columns", "whole")}


def rounded():
    """Products by packed weights that may round their rows to int8: one row and many, every kind of zero point, blocks that
    end within the depth; and one that may not."""
    model = Model(opset=21)
    model.domains = ', "com.microsoft" : 1'
    model.inputs = ["float[1,1,70] row", "float[11,70] many", "float[2,3,96] wide"]
    model.outputs = ["float[1,1,37] nibbles", "float[11,37] bytes", "float[2,3,45] low", "float[1,1,37] fine"]
    model.integers("b4", "uint8", (37, 3, 16), 0, 255), model.integers("z4", "uint8", (37, 2), 0, 255)
    model.integers("b8", "uint8", (37, 5, 16), 0, 255), model.integers("b2", "uint8", (45, 1, 32), 0, 255)
    model.constants.append(f"int32[70] in_order = {{{', '.join(str(k // 16) for k in range(70))}}}")
    for name, shape in (("s4", (37, 3)), ("s8", (37, 5)), ("z8", (37, 5)), ("s2", (45, 1)), ("bias", (37,))):
        model.constant(name, "float", shape)
    product = "com.microsoft.MatMulNBits<N = 37, K = 70, accuracy_level = "
    model.nodes = [f"nibbles = {product} 4, bits = 4, block_size = 32>(row, b4, s4, z4)",
                   f"bytes = {product} 4, bits = 8, block_size = 16>(many, b8, s8, z8, in_order, bias)",
                   "crumbs = com.microsoft.MatMulNBits<N = 45, K = 96, accuracy_level = 4, bits = 2, block_size = 128>"
                   "(wide, b2, s2)",
                   "low = Relu(crumbs)", f"fine = {product} 2, bits = 4, block_size = 32>(row, b4, s4, z4)"]
    return model


FORCED_ROUNDED = {node: ["product.decode_integer"] for node in ("nibbles", "bytes", "crumbs")}


def rounds(forced):
    """Options that together force every family once."""
    for i in range(max(map(len, forced.values()))):
        yield [part for node, families in forced.items() for part in ("--kernel", f"{node}={families[i % len(families)]}")]


CUDA = ("--target", "cuda", "--emulate")
# What is forced, by name, for tests/project/every_family.py: the model, families of its nodes, options.
RUNS = {
    "images_cpp": (images, FORCED, ()), "images_cuda": (images, FORCED, CUDA),
    "lists_cpp": (lists, FORCED_LISTS, ()), "lists_cuda": (lists, FORCED_LISTS, CUDA),
    "windows_cpp": (windows, FORCED_WINDOWS, ()), "byte_windows_cpp": (byte_windows, FORCED_BYTES, ()),
    "byte_images_cpp": (byte_images, FORCED_IMAGES, ()), "byte_products_cpp": (byte_products, FORCED_PRODUCTS, ()),
    "byte_products_cuda": (byte_products, FORCED_PRODUCTS_CUDA, CUDA), "packed_cpp": (packed, FORCED_PACKED, ()),
    "rounded_cpp": (rounded, FORCED_ROUNDED, ()),
}


def force(world, name, threads=(), only=None, runs=RUNS):
    """Every family of a run, round after round; or one of the rounds."""
    model, forced, more = runs[name]
    for i, options in enumerate(rounds(forced)):
        if only not in (None, i):
            continue
        spread = ["--threads", str(threads[i])] if threads else []
        verify(world, f"{name}_{i}", model(), *options, *more, *spread)


def case_forced_cpp(world):
    force(world, "images_cpp")


def case_forced_cuda(world):
    force(world, "images_cuda")


def case_forced_windows_cpp(world):
    force(world, "windows_cpp", (1, 16, 3, 2))


def case_forced_byte_windows_cpp(world):
    force(world, "byte_windows_cpp", (1, 16, 3, 2, 4))


def case_forced_byte_images_cpp(world):
    force(world, "byte_images_cpp", (3, 1))


def case_byte_images_cuda(world):
    """In floats: no kernel of CUDA transposes bytes."""
    verify(world, "images", byte_images(), "--target", "cuda", "--emulate")


def case_forced_byte_products_cpp(world):
    force(world, "byte_products_cpp", (3, 1, 2))


def case_byte_products_cuda(world):
    """By plain loops where the right side is of the run; in floats where the model spells them so."""
    force(world, "byte_products_cuda")


def families_of(world, path, folder, *options):
    """The families of the steps that had a choice."""
    world.compile(path, world.folder / folder, *options)
    return [choice["families"][0]["family"] for choice in manifest(world.path(folder), path.stem)["choices"]]


def case_larger_weights_have_a_budget(world):
    """Winograd's weights are up to four times as large: not for size, within --extra-weights, and not where a last bit counts."""
    model = Model()
    model.inputs, model.outputs = ["float[1,48,40,40] x"], ["float[1,48,40,40] z"]
    model.nodes = ["a = Conv<pads = [1, 1, 1, 1]>(x, w)", "z = Conv<pads = [1, 1, 1, 1]>(a, v)"]
    for name in ("w", "v"):
        model.constant(name, "float", (48, 48, 3, 3))
    path = world.folder / "two.onnxtxt"
    path.write_text(model.text())
    winograd = {"conv.winograd2", "conv.winograd4"}
    check(families_of(world, path, "free", "--extra-weights", "300") == ["conv.winograd4"] * 2, "the fastest")
    check(families_of(world, path, "none", "--extra-weights", "0") == ["conv.direct"] * 2, "no budget")
    check(set(families_of(world, path, "some", "--extra-weights", "20")) <= winograd, "the smaller one")
    none, some, free = (manifest(world.path(folder), "two") for folder in ("none", "some", "free"))
    budget = (none["weights_bytes"] + free["arena_bytes"]) * 0.2
    check(none["weights_bytes"] < some["weights_bytes"] <= none["weights_bytes"] + budget < free["weights_bytes"],
          f"weights of {[m['weights_bytes'] for m in (none, some, free)]} bytes, budget {budget}")
    check(families_of(world, path, "small", "--optimize-for", "size") == ["conv.direct"] * 2, "for size")
    check(families_of(world, path, "exact", "--exact") == ["conv.direct"] * 2, "--exact")
    contains(world.compile(path, world.folder / "exact", "--exact", "--explain", "a"), "conv.winograd4: does not take it: sums")
    model.outputs = ["int64[1,1,40,40] y"]
    model.nodes.append("y = ArgMax<axis = 1>(z)")
    path.write_text(model.text())
    check(families_of(world, path, "decides", "--extra-weights", "300") == ["conv.winograd4", "conv.direct"], "a decision")


def case_forced_lists_cpp(world):
    force(world, "lists_cpp")


def case_forced_lists_cuda(world):
    force(world, "lists_cuda")


def computed():
    """Weights of the run, doubles, and 16 bits."""
    model = Model()
    model.inputs = ["float[1,4,6,5] x", "float[6,2,3,2] w", "float[4,3,2,2] u", "double[1,2,5,5] d", "float16[1,3,6,6] h"]
    model.outputs = ["float[1,6,6,4] y", "float[1,6,12,10] z", "double[1,3,5,5] e", "double[1,2,2,2] p",
                     "double[1,2,2,2] q", "float16[1,4,4,4] g"]
    model.constant("k", "double", (3, 2, 3, 3))
    model.constant("l", "float", (4, 3, 3, 3))
    model.nodes = ["y = Conv<group = 2, pads = [1, 0, 1, 0]>(x, w)",
                   "z = ConvTranspose<group = 2, strides = [2, 2]>(x, u)",
                   "e = Conv<pads = [1, 1, 1, 1]>(d, k)",
                   "p = AveragePool<kernel_shape = [3, 3], strides = [2, 2]>(d)",
                   "q = MaxPool<kernel_shape = [3, 3], strides = [2, 2]>(d)",
                   "half = Cast<to = 10>(l)", "g = Conv(h, half)"]
    return model


def case_computed_cpp(world):
    verify(world, "computed", computed())
    verify(world, "computed", computed(), "-O0")


def case_computed_cuda(world):
    verify(world, "computed", computed(), "--target", "cuda", "--emulate")


def case_packed_cpp(world):
    force(world, "packed_cpp", (3, 1))
    verify(world, "packed_exact", packed(), "--exact")
    verify(world, "packed_plain", packed(), "-O0")


def case_packed_cuda(world):
    verify(world, "packed", packed(), "--target", "cuda", "--emulate")
    path = world.folder / "packed.onnxtxt"
    report = world.compile(path, world.folder / "wide", "--target", "cuda")
    contains((world.folder / "wide" / "report.html").read_text(), "no kernel of the target decodes its weights")


def case_rounded_cpp(world):
    force(world, "rounded_cpp", (1,))
    verify(world, "rounded_3", rounded(), "--threads", "3")
    verify(world, "rounded_exact", rounded(), "--exact")
    path, runs, told = world.folder / "rounded.onnxtxt", {}, {}
    path.write_text(rounded().text())
    for name, options in (("integers", []), ("floats", ["--exact"]), ("plain", ["-O0"])):
        told[name] = world.compile(path, world.folder / name, *options)
        families = [choice["families"][0]["family"] for choice in manifest(world.path(name), "rounded")["choices"]]
        check(families.count("product.decode_integer") == (3 if name == "integers" else 0), f"{name}: {families}")
    contains(told["integers"], "3 products round their activations to 8 bits")
    check("to 8 bits" not in told["floats"], told["floats"])
    report = (world.folder / "integers" / "report.html").read_text()
    contains(report, "rounds its rows to int8, with a scale for 32 elements", "left side rounded to int8")
    for name in ("integers", "floats"):
        runner = world.runner(world.path(name), "rounded")
        out = world.folder / f"{name}_out"
        world.run([runner, "--random", "1", "--output-dir", out])
        runs[name] = [read_npy(out / f"{i}_{result}.npy") for i, result in enumerate(("nibbles", "bytes", "low", "fine"))]
    for i, (got, floats) in enumerate(zip(runs["integers"], runs["floats"])):
        error = math.sqrt(sum((a - b) ** 2 for a, b in zip(got, floats)) / sum(b * b for b in floats))
        check(error == 0 if i == 3 else 1e-4 < error < 0.02, f"output {i} is off by {error}")
    contains(world.compile(path, world.folder / "no", "--kernel", "nibbles=product.loops", status=1), "rounded to int8")


def case_rounded_cuda(world):
    verify(world, "rounded", rounded(), "--target", "cuda", "--emulate")


def case_weights_are_packed_on_request(world):
    model = Model()
    model.inputs, model.outputs = ["float[1,96] x"], ["float[1,40] y", "float[1,8] z"]
    model.nodes = ["a = Gemm<transB = 1>(x, w, b)", "t = Tanh(a)", "y = MatMul(t, v)", "z = MatMul(y, u)"]
    for name, shape in (("w", (64, 96)), ("b", (64,)), ("v", (64, 40)), ("u", (40, 8))):
        model.constant(name, "float", shape)
    path = world.folder / "plain.onnxtxt"
    path.write_text(model.text())
    world.compile(path, world.folder / "floats")
    size = manifest(world.path("floats"), "plain")["weights_bytes"]
    for bits, share, error in ((8, 0.4, 0.01), (4, 0.27, 0.12)):
        verify(world, f"plain_{bits}", model, "--weight-bits", str(bits))
        contains(world.compile(path, world.folder / f"bits_{bits}", "--weight-bits", str(bits)), "3 weights packed, relative error")
        told = manifest(world.path(f"bits_{bits}"), "plain")
        check(told["weights_bytes"] < share * size, f"{told['weights_bytes']} of {size} bytes")
        check([weight["name"] for weight in told["packed_weights"]] == ["w", "v", "u"], f"{told['packed_weights']}")
        check(all(error / 100 < weight["relative_error"] < error for weight in told["packed_weights"]), f"{told['packed_weights']}")
        contains((world.folder / f"bits_{bits}" / "report.html").read_text(), "Packed weights")
    no = world.folder / "no"
    contains(world.compile(path, no, "--weight-bits", "3", status=2), "--weight-bits")
    contains(world.compile(path, no, "--weight-bits", "8", "--exact", status=2), "contradict")
    contains(world.compile(path, no, "--weight-bits", "8", "--target", "cuda", status=2), "--target cpp")


def case_choice_is_told(world):
    path = world.folder / "images.onnxtxt"
    path.write_text(images().text())
    contains(world.compile(path, world.folder / "told", "--explain", "thin"), "-> conv.planes", "conv.loops", "does not take it")
    report = (world.folder / "told" / "report.html").read_text()
    contains(report, "Choice of kernels", "conv.direct")
    told = manifest(world.path("told"), "images")["choices"]
    thin = next(choice for choice in told if choice["families"][0]["family"] == "conv.planes")
    contains(report, html.escape(thin["problem"], quote=False))
    check(all(family["picoseconds"] > 0 for family in thin["families"] if "refusal" not in family), "prices")
    check({"conv.loops", "conv.integer"} <= {family["family"] for family in thin["families"]}, "rivals")
    check(any(family.get("refusal") == "elements of float32" for family in thin["families"]), "a reason")
    contains(world.compile(path, world.folder / "no", "--kernel", "thin=conv.integer", status=1), "E0302", "conv.integer", "elements of float32")
    contains(world.compile(path, world.folder / "no", "--kernel", "nothing=conv.direct", status=1), "E0306", "nothing")
    contains(world.compile(path, world.folder / "no", "--kernel", "thin=conv.magic", status=2), "conv.magic", "conv.loops")
    check(not (world.folder / "no").exists(), "something was written")


if __name__ == "__main__":
    run_main(globals())
