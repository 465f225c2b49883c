"""What reads a view in cells of views.py: products, convolutions and pools."""

from view_cells import family, other, reader


# Products ----------------------------------------------------------------------------------------------------------------


@family("matmul", ("2", (5, 4)), ("3", (2, 5, 4)), ("row", (6, 1, 4)), ("4", (2, 3, 5, 4)), ("wide", (2, 3, 20)))
def by_matrix(part, sizes):
    x, shape = part.viewed(*sizes, fixed=[-1])
    part.output(part.node("MatMul", x, part.weights(shape[-1], 7)), len(shape))


@family("linear", ("2", (5, 4)), ("3", (2, 5, 4)), ("4", (2, 3, 5, 4)))
def linear(part, sizes):
    """A product with a bias, an activation and what was multiplied added to it."""
    x, shape = part.viewed(*sizes, fixed=[-1])
    y = part.node("Relu", part.node("Add", part.node("MatMul", x, part.weights(4, 4)), part.weights(4)))
    part.output(part.node("Add", y, x), len(shape))


@family("matrix_by", ("3", (2, 5, 4)), ("4", (2, 3, 5, 4)))
def matrix_by(part, sizes):
    x, shape = part.viewed(*sizes, fixed=[-2])
    part.output(part.node("MatMul", part.weights(6, shape[-2]), x), len(shape))


@family("matmul_own", ("3", (2, 5, 4)), ("4", (2, 3, 5, 4)))
def by_matrices(part, sizes):
    """Each entry of the batch by a matrix of its own."""
    x, shape = part.viewed(*sizes, fixed=[*range(len(sizes) - 2), -1])
    part.output(part.node("MatMul", x, part.weights(*shape[:-2], shape[-1], 7)), len(shape))


@family("matmul_run", ("3", (2, 5, 4)), ("4", (2, 3, 5, 4)), ("row", (2, 3, 1, 4)))
def by_computed(part, sizes):
    x, shape = part.viewed(*sizes)
    part.output(part.node("MatMul", x, other(part, [*shape[:-2], shape[-1], 6])), len(shape))


@family("run_matmul", ("3", (2, 5, 4)), ("4", (2, 3, 5, 4)), ("row", (2, 3, 5, 4), 1))
def computed_by(part, sizes, rows=6):
    x, shape = part.viewed(*sizes)
    part.output(part.node("MatMul", other(part, [*shape[:-2], rows, shape[-2]]), x), len(shape))


@reader
def matmul_shared(part):
    """Every entry by one matrix of the run."""
    x, shape = part.viewed(2, 5, 4)
    part.output(part.node("MatMul", x, other(part, [shape[-1], 6])), 3)


@reader
def matmul_one_for_all(part):
    """The view is the matrix of every entry."""
    x, shape = part.viewed(5, 4)
    part.output(part.node("MatMul", other(part, [2, 3, shape[0]]), x), 3)


@reader
def matmul_broadcast(part):
    """Entries of the outer axis share the matrices."""
    x, shape = part.viewed(2, 3, 5, 4)
    part.output(part.node("MatMul", x, other(part, [1, shape[1], shape[-1], 6])), 4)


@family("squares", ("3", (2, 5, 4)), ("4", (2, 3, 5, 4)))
def squares(part, sizes):
    x, shape = part.viewed(*sizes)
    order = [*range(len(shape) - 2), len(shape) - 1, len(shape) - 2]
    part.output(part.node("MatMul", x, part.node("Transpose", x, perm=order)), len(shape))


@family("gemm", ("plain", 0, 0), ("left_turned", 1, 0), ("right_turned", 0, 1))
def gemm(part, left, right):
    x, shape = part.viewed(*((4, 5) if left else (5, 4)), fixed=[0 if left else 1])
    w = part.weights(*((6, 4) if right else (4, 6)))
    part.output(part.node("Gemm", x, w, part.weights(6), transA=left, transB=right, alpha=0.5), 2)


@family("gemm_run", ("left", 0), ("right", 1), ("added", 2))
def gemm_of_run(part, place):
    x, shape = part.viewed(5, 4)
    a, b = shape
    inputs = ([x, other(part, [b, 6])], [other(part, [6, a]), x], [other(part, [a, 3]), other(part, [3, b]), x])[place]
    part.output(part.node("Gemm", *inputs), 2)


@family("einsum", ("rows", "bij,jk->bik"), ("turned", "bij,jk->kbi"))
def einsum(part, equation):
    x, shape = part.viewed(2, 5, 4, fixed=[-1])
    part.output(part.node("Einsum", x, part.weights(4, 6), equation=equation), 3)


@family("matmul_integer", ("3", (2, 5, 4)), ("4", (2, 3, 5, 4)))
def matmul_integer(part, sizes):
    x, shape = part.viewed(*sizes, element="uint8", fixed=[-1])
    zero = part.values(1, element="uint8", scalar=True)
    part.output(part.node("MatMulInteger", x, part.weights(4, 7, element="int8"), zero), len(shape), "int32")


@reader
def matmul_integer_run(part):
    x, shape = part.viewed(2, 5, 4, element="uint8")
    part.output(part.node("MatMulInteger", x, other(part, [shape[0], shape[-1], 6], "int8")), 3, "int32")


@reader
def run_matmul_integer(part):
    x, shape = part.viewed(2, 5, 4, element="int8")
    part.output(part.node("MatMulInteger", other(part, [shape[0], 6, shape[1]], "uint8"), x), 3, "int32")


@reader
def qlinear_matmul(part):
    x, shape = part.viewed(2, 5, 4, element="uint8", fixed=[-1])
    scale, zero = part.values(0.25, element="float", scalar=True), part.values(1, element="uint8", scalar=True)
    part.output(part.node("QLinearMatMul", x, scale, zero, part.weights(4, 7, element="int8"), scale,
                          part.values(0, element="int8", scalar=True), scale, zero), 3, "uint8")


@reader
def qdq_matmul(part):
    x, shape = part.viewed(2, 5, 4, element="uint8", fixed=[-1])
    scale = part.values(0.25, element="float", scalar=True)
    a = part.node("DequantizeLinear", x, scale, part.values(1, element="uint8", scalar=True))
    b = part.node("DequantizeLinear", part.weights(4, 7, element="int8"), scale, part.values(0, element="int8", scalar=True))
    part.output(part.node("MatMul", a, b), 3)


@reader
def dynamic_matmul(part):
    x, shape = part.viewed(2, 5, 4, fixed=[-1])
    q, _, zero = part.node("DynamicQuantizeLinear", x, results=3)
    part.output(part.node("MatMulInteger", q, part.weights(4, 7, element="int8"), zero), 3, "int32")


@family("matmul_nbits", ("4", 4, 8), ("8", 8, 16))
def matmul_nbits(part, bits, bytes_of_block):
    x, shape = part.viewed(2, 5, 32, fixed=[-1])
    b = part.weights(6, 2, bytes_of_block, element="uint8", low=0, high=255)
    part.output(part.node("com.microsoft.MatMulNBits", x, b, part.weights(12), K=32, N=6, bits=bits, block_size=16), 3)


# Convolutions and pools --------------------------------------------------------------------------------------------------

WINDOWS = (("plain", {"pads": (1, 1, 1, 1)}, (5, 4, 3, 3)), ("point", {}, (5, 4, 1, 1)),
           ("depthwise", {"pads": (1, 1, 1, 1), "group": 4}, (4, 1, 3, 3)),
           ("strided", {"strides": (2, 2), "pads": (2, 1, 1, 1), "group": 2}, (6, 2, 3, 2)),
           ("tall", {"pads": (1, 0, 1, 0), "dilations": (1, 1)}, (5, 4, 3, 1)))


@family("conv", *WINDOWS)
def conv(part, attributes, weights):
    x, _ = part.viewed(2, 4, 5, 6, fixed=[1])
    part.output(part.node("Relu", part.node("Conv", x, part.weights(*weights), part.weights(weights[0]), **attributes)), 4)


@reader
def conv_many(part):
    """A convolution with channels enough for Winograd's algorithm."""
    x, _ = part.viewed(1, 16, 8, 9, fixed=[1])
    part.output(part.node("Conv", x, part.weights(16, 16, 3, 3), pads=(1, 1, 1, 1)), 4)


@family("conv_line", ("plain", 1, 1), ("strided", 2, 1), ("depthwise", 1, 4))
def conv_line(part, stride, group):
    x, _ = part.viewed(2, 4, 6, fixed=[1])
    part.output(part.node("Conv", x, part.weights(4, 4 // group, 3), pads=(1, 1), strides=(stride,), group=group), 3)


@reader
def conv_by_run(part):
    """The view is the weights."""
    x, shape = part.viewed(5, 3, 3, 2, fixed=[2, 3])
    part.output(part.node("Conv", other(part, [2, shape[1], 6, 5]), x), 4)


@family("conv_transpose", ("plain", 1, 1), ("strided", 2, 1), ("depthwise", 2, 4))
def conv_transpose(part, stride, group):
    x, _ = part.viewed(2, 4, 3, 5, fixed=[1])
    part.output(part.node("ConvTranspose", x, part.weights(4, 8 // group, 3, 2), strides=(stride, stride), group=group), 4)


@family("conv_integer", ("plain", 1, 1), ("depthwise", 4, 1), ("strided", 1, 2))
def conv_integer(part, group, stride):
    x, _ = part.viewed(2, 4, 5, 6, element="uint8", fixed=[1])
    w = part.weights(4, 4 // group, 3, 3, element="int8")
    part.output(part.node("ConvInteger", x, w, part.values(1, element="uint8", scalar=True), pads=(1, 1, 1, 1), group=group,
                          strides=(stride, stride)), 4, "int32")


@reader
def qlinear_conv(part):
    x, _ = part.viewed(2, 4, 5, 6, element="uint8", fixed=[1])
    scale, zero = part.values(0.25, element="float", scalar=True), part.values(1, element="uint8", scalar=True)
    part.output(part.node("QLinearConv", x, scale, zero, part.weights(5, 4, 3, 3, element="int8"), scale,
                          part.values(0, element="int8", scalar=True), scale, zero, pads=(1, 1, 1, 1)), 4, "uint8")


@family("pool", ("max", "MaxPool", {}), ("mean", "AveragePool", {"count_include_pad": 1}), ("norm", "LpPool", {"p": 2}))
def pool(part, operator, attributes):
    x, _ = part.viewed(2, 3, 5, 6)
    part.output(part.node(operator, x, kernel_shape=(3, 2), strides=(2, 1), pads=(1, 1, 1, 1), **attributes), 4)


@family("pool", ("bytes", (2, 3, 5, 6)), ("line", (2, 3, 6)))
def pool_bytes(part, sizes):
    x, _ = part.viewed(*sizes, element="uint8")
    spatial = len(sizes) - 2
    part.output(part.node("MaxPool", x, kernel_shape=(2,) * spatial, pads=(1,) * 2 * spatial), len(sizes), "uint8")


@family("global", ("mean", "GlobalAveragePool"), ("max", "GlobalMaxPool"), ("norm", "GlobalLpPool"))
def global_pool(part, operator):
    x, _ = part.viewed(2, 3, 5, 6)
    part.output(part.node(operator, x), 4)
