"""Products, convolutions, recurrences, attention, and what of them is computed in integers."""

import math

import numpy as np

from elementwise import broadcast
from random_graph import MOST_MAGNITUDE, NoFit


def small(v):
    return v.bound <= MOST_MAGNITUDE


def product(g):
    x = g.pick(lambda v: small(v) and v.rank >= 1 and v.count > 0)
    depth = x.shape[-1]
    if g.is_open(depth):
        raise NoFit
    if g.chance(0.4):
        other = g.pick(lambda v: small(v) and v.rank >= 2 and v.shape[-2] == depth and v.count > 0 and
                       broadcast(x.shape[:-2], v.shape[:-2], g) is not None, kinds=(x.kind,))
        bound = depth * x.bound * other.bound
    else:
        n = g.integer(1, 20)
        shape = (depth,) if g.chance(0.1) else (depth, n)
        if x.rank > 2 and not any(g.is_open(s) for s in x.shape[:-2]) and g.chance(0.2):
            shape = (*x.shape[:-2], depth, n)
        other = g.weights(shape, depth)
        bound = 2 * math.sqrt(depth) * x.bound
    head = broadcast(x.shape[:-2], other.shape[:-2], g) if other.rank > 1 else x.shape[:-2]
    shape = [*head, *(x.shape[-2:-1]), *(other.shape[-1:] if other.rank > 1 else ())]
    if x.kind in ("float16", "bfloat16") and bound > 2000:
        raise NoFit
    return g.add("MatMul", [x, other], [(x.kind, shape, bound, 0)])


def product_left(g):
    """A constant on the left."""
    x = g.pick(lambda v: small(v) and v.rank >= 2 and v.count > 0 and not g.is_open(v.shape[-2]))
    depth, m = x.shape[-2], g.integer(1, 12)
    w = g.weights((m, depth), depth)
    return g.add("MatMul", [w, x], [(x.kind, (*x.shape[:-2], m, x.shape[-1]), 2 * math.sqrt(depth) * x.bound, 0)])


def gemm(g):
    x = g.pick(lambda v: small(v) and v.count > 0, ranks=(2,))
    trans_a, trans_b = g.integer(0, 1), g.integer(0, 1)
    rows, depth = x.shape[::-1] if trans_a else x.shape
    if g.is_open(depth):
        raise NoFit
    n = g.integer(1, 20)
    w = g.weights((n, depth) if trans_b else (depth, n), depth)
    bias = None
    if g.chance(0.7):
        shape = g.one_of([(n,), (1, n), (1,), (), (rows, 1)] if not g.is_open(rows) else [(n,), (1, n)])
        bias = g.constant(x.kind, g.array(x.kind, shape, -2, 2))
    alpha, beta = g.one_of([1.0, 0.5]), g.one_of([1.0, 0.25])
    return g.add("Gemm", [x, w, bias], [(x.kind, (rows, n), 2 * math.sqrt(depth) * x.bound + 2, 0)], transA=trans_a,
                 transB=trans_b, alpha=alpha, beta=beta)


def window(g, spatial, channels):
    """Sizes of a convolution's window and of its result."""
    kernel = [g.integer(1, 3) for _ in spatial]
    strides = [g.one_of([1, 1, 2, 3]) for _ in spatial]
    dilations = [g.one_of([1, 1, 1, 2]) for _ in spatial]
    pads = [g.integer(0, 2) for _ in spatial + spatial]
    attributes = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads}
    shape = []
    for i, size in enumerate(spatial):
        reach = size + pads[i] + pads[i + len(spatial)] - dilations[i] * (kernel[i] - 1) - 1
        if reach < 0:
            raise NoFit
        shape.append(reach // strides[i] + 1)
    if g.chance(0.2) and all(d == 1 for d in dilations):
        attributes["auto_pad"] = g.one_of(["SAME_UPPER", "SAME_LOWER", "VALID"])
        del attributes["pads"]
        if attributes["auto_pad"] == "VALID":
            shape = [(size - k) // s + 1 if size >= k else 0 for size, k, s in zip(spatial, kernel, strides)]
            if 0 in shape:
                raise NoFit
        else:
            shape = [-(-size // s) for size, s in zip(spatial, strides)]
    groups = g.one_of([1, 1, 1, channels] + [n for n in (2, 3, 4) if channels % n == 0])
    return kernel, shape, groups, attributes


def image(g, kinds=None, test=lambda v: True):
    return g.pick(lambda v: small(v) and v.count > 0 and not any(g.is_open(s) for s in v.shape[1:]) and test(v), kinds=kinds,
                  ranks=(3, 4, 4, 5))


def convolution(g):
    x = image(g)
    channels, spatial = x.shape[1], x.shape[2:]
    kernel, shape, groups, attributes = window(g, spatial, channels)
    m = groups * g.integer(1, 6 if groups < 4 else 2)
    depth = channels // groups * math.prod(kernel)
    w = g.weights((m, channels // groups, *kernel), depth)
    bias = g.constant(x.kind, g.array(x.kind, (m,), -1, 1)) if g.chance(0.7) else None
    return g.add("Conv", [x, w, bias], [(x.kind, (x.shape[0], m, *shape), 2.5 * math.sqrt(depth) * x.bound + 1, 0)],
                 group=groups, **attributes)


def transposed(g):
    x = image(g, test=lambda v: v.kind != "bfloat16" and v.rank < 5)
    channels, spatial = x.shape[1], x.shape[2:]
    kernel = [g.integer(1, 3) for _ in spatial]
    strides = [g.integer(1, 2) for _ in spatial]
    dilations = [g.one_of([1, 1, 2]) for _ in spatial]
    extra = [g.integer(0, s - 1) for s in strides]
    # A pad takes away no more than the window has put there.
    pads = [g.integer(0, min(1, (k - 1) * d)) for k, d in zip(kernel + kernel, dilations + dilations)]
    shape = [s * (size - 1) + e + (k - 1) * d + 1 - a - b for size, s, e, k, d, a, b in
             zip(spatial, strides, extra, kernel, dilations, pads, pads[len(spatial):])]
    if min(shape) < 1:
        raise NoFit
    groups = g.one_of([1, 1, *(n for n in (2, 3, channels) if channels % n == 0)])
    m = g.integer(1, 4)
    w = g.weights((channels, m, *kernel), channels // groups)
    bias = g.constant(x.kind, g.array(x.kind, (m * groups,), -1, 1)) if g.chance(0.5) else None
    bound = 2.5 * math.prod(kernel) * math.sqrt(channels) * x.bound + 1
    return g.add("ConvTranspose", [x, w, bias], [(x.kind, (x.shape[0], m * groups, *shape), bound, 0)],
                 kernel_shape=kernel, strides=strides, dilations=dilations, pads=pads, output_padding=extra, group=groups)


def einsum(g):
    x = g.pick(lambda v: small(v) and v.count > 0 and not any(g.is_open(s) for s in v.shape), kinds=("float32",),
               ranks=(2, 3))
    if x.rank == 2:
        n = g.integer(1, 8)
        equation, shape, out = g.one_of([("ij,jk->ik", (x.shape[1], n), (x.shape[0], n)),
                                         ("ij,jk->ki", (x.shape[1], n), (n, x.shape[0])),
                                         ("ij,kj->ik", (n, x.shape[1]), (x.shape[0], n)),
                                         ("ij,ij->i", x.shape, x.shape[:1]), ("ij,i->j", x.shape[:1], x.shape[1:])])
    else:
        b, i, j = x.shape
        n = g.integer(1, 6)
        equation, shape, out = g.one_of([("bij,jk->bik", (j, n), (b, i, n)), ("bij,bjk->bik", (b, j, n), (b, i, n)),
                                         ("bij,kj->bki", (n, j), (b, n, i)), ("bij,bij->b", (b, i, j), (b,)),
                                         ("...ij,jk->...ik", (j, n), (b, i, n))])
    w = g.weights(shape, math.prod(shape), x.kind)
    return g.add("Einsum", [x, w], [(x.kind, out, x.bound * math.sqrt(x.count), 0)], equation=equation)


def recurrent(g):
    x = g.pick(lambda v: v.bound <= 16 and 0 not in v.shape and not g.is_open(v.shape[-1]) and not g.is_open(v.shape[0]),
               kinds=("float32",), ranks=(3,))
    time, batch, width = x.shape
    name = g.one_of(["LSTM", "GRU", "RNN"])
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name]
    direction = g.one_of(["forward", "reverse", "bidirectional"])
    d = 2 if direction == "bidirectional" else 1
    hidden = g.integer(1, 9)
    w = g.weights((d, gates * hidden, width), width, "float32")
    r = g.weights((d, gates * hidden, hidden), hidden, "float32")
    bias = g.constant("float32", g.array("float32", (d, 2 * gates * hidden), -0.5, 0.5)) if g.chance(0.6) else None
    start = None
    if not g.is_open(batch) and g.chance(0.4):
        start = g.constant("float32", g.array("float32", (d, batch, hidden), -0.5, 0.5))
    attributes = {"hidden_size": hidden, "direction": direction}
    if name == "GRU":
        attributes["linear_before_reset"] = g.integer(0, 1)
    results = [("float32", (time, d, batch, hidden), 1, 0), ("float32", (d, batch, hidden), 1, 0)]
    if name == "LSTM":
        results.append(("float32", (d, batch, hidden), time, 0))
    return g.add(name, [x, w, r, bias, None, start], results, **attributes)


def attention(g):
    """Attention of opset 23, or as exporters spell it: products, a scale, a mask, a softmax."""
    x = g.pick(lambda v: small(v) and 0 not in v.shape and not g.is_open(v.shape[-1]) and v.shape[1] <= 12, ranks=(3,))
    batch, length, width = x.shape
    heads, size = g.integer(1, 3), g.one_of([2, 4, 8])
    inner = heads * size
    q, k, v = (g.add("MatMul", [x, g.weights((width, inner), width)],
                     [(x.kind, (batch, length, inner), 2 * math.sqrt(width) * x.bound, 0)]) for _ in range(3))
    if g.chance(0.3) and x.kind == "float32":
        return g.add("Attention", [q, k, v], [(x.kind, (batch, length, inner), v.bound, 0)], q_num_heads=heads,
                     kv_num_heads=heads, is_causal=g.integer(0, 1))

    def split(value, order):
        shape = g.longs([0, -1 if g.is_open(length) else length, heads, size])
        if g.is_open(batch) and g.is_open(length):
            raise NoFit
        cut = g.add("Reshape", [value, shape], [(x.kind, (batch, length, heads, size), value.bound, 0)])
        full = (batch, length, heads, size)
        return g.add("Transpose", [cut], [(x.kind, [full[i] for i in order], value.bound, 0)], perm=order)

    q, k, v = split(q, [0, 2, 1, 3]), split(k, [0, 2, 3, 1]), split(v, [0, 2, 1, 3])
    scores = g.add("MatMul", [q, k], [(x.kind, (batch, heads, length, length), size * q.bound * k.bound, 0)])
    if x.kind != "float32" and scores.bound > 2000:
        raise NoFit
    scores = g.like(scores, "Mul", [scores, g.scalar(2.0 ** -round(math.log2(size) / 2 + 1), x.kind)])
    if g.chance(0.4) and not g.is_open(length):
        mask = g.constant(x.kind, np.where(g.random.random((length, length)) < 0.3, -100.0, 0.0).astype(
            np.float32 if x.kind == "bfloat16" else x.kind), unit=0)
        scores = g.like(scores, "Add", [scores, mask], scores.bound + 100)
    chances = g.like(scores, "Softmax", [scores], 1, axis=-1)
    mixed = g.add("MatMul", [chances, v], [(x.kind, (batch, heads, length, size), v.bound, 0)])
    back = g.add("Transpose", [mixed], [(x.kind, (batch, length, heads, size), v.bound, 0)], perm=[0, 2, 1, 3])
    if g.is_open(batch) or g.is_open(length):
        shape = [0, 0, inner]
    else:
        shape = [batch, length, inner]
    return g.add("Reshape", [back, g.longs(shape)], [(x.kind, (batch, length, inner), v.bound, 0)])


# Integers

def quantise(g, x, kind="uint8"):
    """x in 8 bits, and its scale and zero point."""
    scale = g.scalar(2.0 ** math.ceil(math.log2(max(x.bound, 0.25) / 100)), "float32")
    zero = g.constant(kind, np.array(g.integer(100, 140) if kind == "uint8" else g.integer(-9, 9), kind))
    return g.add("QuantizeLinear", [x, scale, zero], [(kind, x.shape, 255, 0)]), scale, zero


def dequantise(g, q, scale, zero, bound, **attributes):
    return g.add("DequantizeLinear", [q, scale, zero], [("float32", q.shape, bound, 0)], **attributes)


def there_and_back(g):
    """A pair of Q and DQ. Not of exact numbers alone: whatever is quantised here may be rounded either way."""
    x = g.pick(lambda v: small(v) and v.count > 0 and v.is_exact and v.bound <= 16, kinds=("float32",))
    q, scale, zero = quantise(g, x, g.one_of(["uint8", "int8"]))
    return dequantise(g, q, scale, zero, x.bound)


def integer_product(g):
    x = g.pick(lambda v: v.rank >= 2 and v.count > 0 and not g.is_open(v.shape[-1]), kinds=("uint8", "int8"))
    depth, n = x.shape[-1], g.integer(1, 12)
    kind = g.one_of(["int8", "uint8"])
    w = g.constant(kind, g.array(kind, (depth, n), -100, 100))
    zero = g.constant(x.kind, np.array(g.integer(0, 20), x.kind)) if g.chance(0.6) else None
    return g.add("MatMulInteger", [x, w, zero], [("int32", (*x.shape[:-1], n), depth * 255 * 128, 0)])


def quantised_layer(g):
    """DQ, a product or a convolution, perhaps Relu, Q: of exact numbers, so that integers are equal."""
    x = g.pick(lambda v: v.count > 0 and v.is_exact and v.bound <= 8 and not any(g.is_open(s) for s in v.shape[1:]),
               kinds=("float32",), ranks=(2, 4))
    q, scale, zero = quantise(g, x)
    back = dequantise(g, q, scale, zero, x.bound)
    channels = x.shape[1]
    m = g.integer(1, 9)
    shape = (channels, m) if x.rank == 2 else (m, channels, 1, 1) if g.chance(0.4) else (m, channels, 3, 3)
    depth = channels * math.prod(shape[2:])
    w = g.constant("int8", g.array("int8", shape, -100, 100))
    axis = 1 if x.rank == 2 else 0
    if g.chance(0.5):
        scales = g.constant("float32", np.full((m,), 2.0 ** -9, np.float32))
        weights = g.add("DequantizeLinear", [w, scales], [("float32", shape, 1, 0)], axis=axis)
    else:
        weights = g.add("DequantizeLinear", [w, g.scalar(2.0 ** -9, "float32")], [("float32", shape, 1, 0)])
    bound = depth * x.bound / 4
    if x.rank == 2:
        y = g.add("MatMul", [back, weights], [("float32", (x.shape[0], m), bound, 0)])
    else:
        pads = (shape[2] - 1) // 2
        y = g.add("Conv", [back, weights], [("float32", (x.shape[0], m, *x.shape[2:]), bound, 0)], pads=[pads] * 4,
                  kernel_shape=list(shape[2:]))
    if g.chance(0.5):
        y = g.like(y, "Relu", [y], bound)
    # Powers of two everywhere: quotients are exact, and so is what is rounded.
    q, scale, zero = quantise(g, y)
    return dequantise(g, q, scale, zero, y.bound)


def dynamic(g):
    x = g.pick(lambda v: small(v) and v.count > 0 and v.is_exact, kinds=("float32",))
    q, scale, zero = g.add("DynamicQuantizeLinear", [x], [("uint8", x.shape, 255, 0), ("float32", (), 1, 0),
                                                           ("uint8", (), 255, 0)])
    return dequantise(g, q, scale, zero, x.bound * 1.1)


OPERATORS = [product, product, product_left, gemm, gemm, convolution, convolution, convolution, transposed, einsum,
             recurrent, attention, attention, there_and_back, integer_product, quantised_layer, dynamic]
