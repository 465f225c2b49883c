"""Operators over rows and windows: reductions, positions, norms, pools, scans; and norms spelled out."""

import math

import numpy as np

from random_graph import MOST_MAGNITUDE, NoFit


def axes_of(g, x):
    return g.some_of(range(x.rank))


def without(shape, axes, keeps):
    return tuple(1 if i in axes else size for i, size in enumerate(shape) if keeps or i not in axes)


def reduction(g):
    x = g.pick(lambda v: v.rank >= 1 and v.count > 0 and v.bound <= MOST_MAGNITUDE)
    axes = axes_of(g, x)
    keeps = g.integer(0, 1)
    name = g.one_of(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
                     "ReduceSumSquare", "ReduceLogSumExp", "ReduceLogSum"])
    n = math.prod(x.shape[i] for i in axes)
    operands = [x, g.longs([a - x.rank if g.chance(0.3) else a for a in axes])]
    shape = without(x.shape, axes, keeps)
    if g.chance(0.1):
        operands, shape, n = [x], (1,) * x.rank if keeps else (), x.count
    if name == "ReduceProd" and (n > 6 or x.bound > 4) or name == "ReduceLogSumExp" and x.bound > 20:
        raise NoFit
    if name == "ReduceLogSum":
        operands[0] = g.like(x, "Add", [g.like(x, "Abs", [x], x.bound, x.unit), g.scalar(0.25, x.kind)], x.bound + 0.25)
    bound = {"ReduceSum": n * x.bound, "ReduceL1": n * x.bound, "ReduceProd": max(x.bound, 1) ** min(n, 6),
             "ReduceL2": math.sqrt(n) * x.bound, "ReduceSumSquare": n * x.bound ** 2,
             "ReduceLogSumExp": x.bound + math.log(n), "ReduceLogSum": 10}.get(name, x.bound)
    unit = x.unit if name in ("ReduceSum", "ReduceL1", "ReduceMax", "ReduceMin") else 0
    if x.kind in ("float16", "bfloat16") and bound > 2000:
        raise NoFit
    return g.add(name, operands, [(x.kind, shape, bound, unit)], keepdims=keeps)


def position(g):
    x = g.pick(lambda v: v.rank >= 1 and v.count > 0, kinds=("float32", "int32"), exact=True)
    axis, keeps = g.integer(0, x.rank - 1), g.integer(0, 1)
    if g.is_open(x.shape[axis]):  # may be empty, and has no position then
        raise NoFit
    return g.add(g.one_of(["ArgMax", "ArgMin"]), [x],
                 [("int64", without(x.shape, [axis], keeps), x.shape[axis], 0)], axis=axis - x.rank if g.chance(0.3) else axis,
                 keepdims=keeps, select_last_index=g.integer(0, 1))


def top(g):
    x = g.pick(lambda v: v.rank >= 1 and v.count > 0, kinds=("float32", "int64"), exact=True)
    axis = g.one_of(i for i, size in enumerate(x.shape) if not g.is_open(size))
    k = g.integer(1, x.shape[axis])
    shape = (*x.shape[:axis], k, *x.shape[axis + 1:])
    return g.add("TopK", [x, g.longs([k])], [(x.kind, shape, x.bound, x.unit), ("int64", shape, x.shape[axis], 0)],
                 axis=axis, largest=g.integer(0, 1))


def soft(g):
    x = g.pick(lambda v: v.rank >= 1 and v.count > 0 and v.bound <= MOST_MAGNITUDE)
    axis = g.integer(-x.rank, x.rank - 1)
    name = g.one_of(["Softmax", "Softmax", "LogSoftmax"])
    return g.like(x, name, [x], 1 if name == "Softmax" else 2 * x.bound + 10, axis=axis)


def hardmax(g):
    x = g.pick(lambda v: v.rank >= 1 and v.count > 0, kinds=("float32",), exact=True)
    return g.like(x, "Hardmax", [x], 1, 1, axis=g.integer(-x.rank, x.rank - 1))


def channel(g, x, low, high, size=None):
    """A parameter of each channel."""
    return g.constant(x.kind, g.array(x.kind, (size or x.shape[1],), low, high))


def norm(g):
    """Images of channels; each has some spread, or rounding alone would be all that is left."""
    x = g.pick(lambda v: not g.is_open(v.shape[1]) and math.prod(v.shape[2:]) >= 4 and
               not any(g.is_open(s) for s in v.shape[1:]), ranks=(3, 4))
    name = g.one_of(["BatchNormalization", "InstanceNormalization", "GroupNormalization", "LRN"])
    scale, bias = channel(g, x, -1, 2), channel(g, x, -1, 1)
    if name == "BatchNormalization":
        mean, variance = channel(g, x, -1, 1), channel(g, x, 0.5, 2)
        return g.like(x, name, [x, scale, bias, mean, variance], x.bound * 3 + 4, epsilon=0.01)
    if name == "InstanceNormalization":
        return g.like(x, name, [x, scale, bias], 2 * math.sqrt(math.prod(x.shape[2:])) + 1, epsilon=0.25)
    if name == "GroupNormalization":
        groups = g.one_of(n for n in range(1, x.shape[1] + 1) if x.shape[1] % n == 0)
        return g.like(x, name, [x, scale, bias], 2 * math.sqrt(x.count) + 1, num_groups=groups, epsilon=0.25)
    if x.rank != 4 or x.kind != "float32":
        raise NoFit
    return g.like(x, name, [x], x.bound, size=g.one_of([1, 3, 5]), alpha=0.01, beta=0.75, bias=1.0)


def rows(g):
    """LayerNormalization and RMSNormalization."""
    x = g.pick(lambda v: v.count > 0 and v.shape[-1] >= 4 and not g.is_open(v.shape[-1]), ranks=(2, 3, 4))
    axis = g.integer(1, x.rank - 1)
    if any(g.is_open(size) for size in x.shape[axis:]):
        raise NoFit
    scale = g.constant(x.kind, g.array(x.kind, x.shape[axis:], -1, 2))
    bound = 2 * math.sqrt(math.prod(x.shape[axis:])) + 1
    if g.chance(0.3):
        return g.like(x, "RMSNormalization", [x, scale], bound, axis=axis, epsilon=0.25)
    bias = g.constant(x.kind, g.array(x.kind, x.shape[axis:], -1, 1)) if g.chance(0.6) else None
    return g.like(x, "LayerNormalization", [x, scale, bias], bound, axis=axis - x.rank if g.chance(0.3) else axis,
                  epsilon=0.25)


def lp_norm(g):
    x = g.pick(lambda v: v.rank >= 1 and v.count > 0, kinds=("float32",))
    p = g.one_of([1, 2])
    away = g.like(x, "Add", [g.like(x, "Abs", [x], x.bound, x.unit), g.scalar(0.25, x.kind)], x.bound + 0.25)
    return g.like(x, "LpNormalization", [away], 1, axis=g.integer(-x.rank, x.rank - 1), p=p)


def mean_variance(g):
    x = g.pick(lambda v: v.count > 0 and math.prod(v.shape[2:]) >= 4 and not any(g.is_open(s) for s in v.shape[2:]),
               kinds=("float32",), ranks=(4,))
    away = g.like(x, "Add", [x, g.constant("float32", g.array("float32", x.shape[2:], -4, 4))], x.bound + 4)
    return g.like(x, "MeanVarianceNormalization", [away], 100)


def pool(g):
    ranks = (3, 4, 5) if g.chance(0.9) else (3,)
    x = g.pick(lambda v: 0 not in v.shape, ranks=ranks)
    if g.chance(0.2):
        name = g.one_of(["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
        if name == "GlobalLpPool" and x.kind != "float32":
            raise NoFit
        bound = x.bound * math.sqrt(x.count) if name == "GlobalLpPool" else x.bound
        return g.add(name, [x], [(x.kind, (*x.shape[:2], *(1 for _ in x.shape[2:])), bound, 0)])
    spatial = x.shape[2:]
    if any(g.is_open(size) for size in spatial):
        raise NoFit
    name = g.one_of(["MaxPool", "AveragePool", "LpPool"])
    if x.kind != "float32" and name == "LpPool":
        raise NoFit
    kernel = [g.integer(1, min(3, size)) for size in spatial]
    strides = [g.integer(1, 3) for _ in spatial]
    dilations = [g.integer(1, 2) if name == "MaxPool" and g.chance(0.3) else 1 for _ in spatial]
    attributes = {"kernel_shape": kernel, "strides": strides}
    if name == "MaxPool":
        attributes["dilations"] = dilations
    # A pad has to be smaller than the kernel, or a window would lie outside.
    pads = [g.integer(0, k - 1) if g.chance(0.5) else 0 for k in kernel + kernel]
    shape = []
    ceil = g.integer(0, 1) if name != "LpPool" else 0
    for i, size in enumerate(spatial):
        reach = size + pads[i] + pads[i + len(spatial)] - dilations[i] * (kernel[i] - 1) - 1
        if reach < 0:
            raise NoFit
        out = (-(-reach // strides[i]) if ceil else reach // strides[i]) + 1
        if ceil and (out - 1) * strides[i] >= size + pads[i]:
            out -= 1
        shape.append(out)
    attributes["pads"] = pads
    if ceil:
        attributes["ceil_mode"] = ceil
    if name == "AveragePool":
        attributes["count_include_pad"] = g.integer(0, 1)
    if name == "LpPool":
        attributes["p"] = g.one_of([1, 2])
    bound = x.bound * (math.prod(kernel) if name == "LpPool" else 1)
    unit = x.unit if name == "MaxPool" else 0
    return g.add(name, [x], [(x.kind, (*x.shape[:2], *shape), bound, unit)], **attributes)


def scan(g):
    x = g.pick(lambda v: v.rank >= 1 and v.count > 0 and v.bound <= MOST_MAGNITUDE, kinds=("float32", "int32", "int64"))
    axis = g.integer(-x.rank, x.rank - 1)
    bound = x.bound * x.shape[axis]
    return g.like(x, "CumSum", [x, g.constant("int64", np.array(axis, np.int64))], bound, x.unit,
                  exclusive=g.integer(0, 1), reverse=g.integer(0, 1))


def spelled_layer_norm(g):
    x = g.pick(lambda v: v.count > 0 and v.shape[-1] >= 4 and not g.is_open(v.shape[-1]), kinds=("float32",),
               ranks=(2, 3, 4))
    one = without(x.shape, [x.rank - 1], 1)

    def mean(value, bound):
        return g.add("ReduceMean", [value, g.longs([-1])], [(x.kind, one, bound, 0)], keepdims=1)

    centred = g.like(x, "Sub", [x, mean(x, x.bound)], 2 * x.bound)
    square = g.one_of([lambda: g.like(x, "Mul", [centred, centred], 4 * x.bound ** 2),
                       lambda: g.like(x, "Pow", [centred, g.scalar(2, x.kind)], 4 * x.bound ** 2)])()
    variance = mean(square, 4 * x.bound ** 2)
    away = g.add("Add", [variance, g.scalar(0.25, x.kind)], [(x.kind, one, variance.bound + 1, 0)])
    root = g.add("Sqrt", [away], [(x.kind, one, 2 * x.bound + 1, 0)])
    bound = 2 * math.sqrt(x.shape[-1])
    if g.chance(0.5):
        normal = g.like(x, "Div", [centred, root], bound)
    else:
        normal = g.like(x, "Mul", [centred, g.add("Reciprocal", [root], [(x.kind, one, 2, 0)])], bound)
    scale = g.constant(x.kind, g.array(x.kind, x.shape[-1:], -1, 2))
    return g.like(x, "Add", [g.like(x, "Mul", [normal, scale], 2 * bound), g.scalar(0.5, x.kind)], 2 * bound + 1)


def spelled_rms_norm(g):
    x = g.pick(lambda v: v.count > 0 and v.shape[-1] >= 4 and not g.is_open(v.shape[-1]), ranks=(2, 3, 4))
    if x.bound ** 2 > (3e4 if x.kind == "float16" else 1e30):
        raise NoFit
    one = without(x.shape, [x.rank - 1], 1)
    square = g.like(x, "Mul", [x, x], x.bound ** 2)
    mean = g.add("ReduceMean", [square, g.longs([-1])], [(x.kind, one, square.bound, 0)], keepdims=1)
    away = g.add("Add", [mean, g.scalar(0.25, x.kind)], [(x.kind, one, square.bound + 1, 0)])
    root = g.add("Sqrt", [away], [(x.kind, one, x.bound + 1, 0)])
    return g.like(x, "Div", [x, root], 2 * math.sqrt(x.shape[-1]))


def spelled_softmax(g):
    x = g.pick(lambda v: v.rank >= 1 and v.count > 0, kinds=("float32",))
    axis = g.integer(0, x.rank - 1)
    one = without(x.shape, [axis], 1)
    top_ = g.add("ReduceMax", [x, g.longs([axis])], [(x.kind, one, x.bound, x.unit)], keepdims=1)
    power = g.like(x, "Exp", [g.like(x, "Sub", [x, top_], 2 * x.bound)], 1)
    total = g.add("ReduceSum", [power, g.longs([axis])], [(x.kind, one, x.shape[axis], 0)], keepdims=1)
    return g.like(x, "Div", [power, total], 1)


def spelled_gelu(g):
    x = g.pick()
    half = g.like(x, "Mul", [x, g.scalar(0.5, x.kind)], x.bound / 2)
    erf = g.like(x, "Erf", [g.like(x, "Div", [x, g.scalar(1.4140625, x.kind)], x.bound)], 1)
    return g.like(x, "Mul", [half, g.like(x, "Add", [erf, g.scalar(1, x.kind)], 2)], x.bound)


OPERATORS = [reduction, reduction, reduction, position, top, soft, soft, hardmax, norm, norm, rows, lp_norm, mean_variance,
             pool, pool, scan, spelled_layer_norm, spelled_rms_norm, spelled_softmax, spelled_gelu]
