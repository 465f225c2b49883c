"""Operators that only move elements: views, cuts, copies, positions."""

import math

import numpy as np

from random_graph import FLOATS, INTEGERS, OPEN, NoFit

EVERY = FLOATS + INTEGERS + ("bool",)


def anything(g, test=lambda value: True, ranks=None):
    """Mostly floats of the graph's type."""
    kinds = (g.float_kind,) if g.chance(0.8) else EVERY
    return g.pick(test, kinds=kinds, ranks=ranks)


def moved(g, x, operator, operands, shape, **attributes):
    return g.add(operator, operands, [(x.kind, shape, x.bound, x.unit)], **attributes)


def factors(g, count):
    """A random shape of so many elements."""
    shape = []
    while count > 1 and len(shape) < 4:
        divisors = [d for d in range(2, min(count, 64) + 1) if count % d == 0]
        if not divisors or g.chance(0.2):
            break
        shape.append(g.one_of(divisors))
        count //= shape[-1]
    shape.append(count)
    if g.chance(0.2):
        shape.insert(g.integer(0, len(shape)), 1)
    return tuple(int(i) for i in g.random.permutation(shape))


def reshape(g):
    x = anything(g)
    if 0 in x.shape:
        raise NoFit
    open_axes = [i for i, size in enumerate(x.shape) if g.is_open(size)]
    if open_axes:
        # What is left of an open axis and behind it is joined or kept; the open size itself becomes -1 or 0.
        axis = open_axes[0]
        if len(open_axes) > 1 or axis:
            raise NoFit
        rest = factors(g, x.count // x.shape[0])
        head = g.one_of([0, -1])
        return moved(g, x, "Reshape", [x, g.longs([head, *rest])], (x.shape[0], *rest))
    shape = factors(g, x.count)
    asked = list(shape)
    if g.chance(0.5):
        asked[g.integer(0, len(asked) - 1)] = -1
    for i, size in enumerate(asked):
        if i < x.rank and size == x.shape[i] and size > 0 and g.chance(0.3):
            asked[i] = 0
    return moved(g, x, "Reshape", [x, g.longs(asked)], shape)


def transpose(g):
    x = anything(g, ranks=(2, 3, 4, 5))
    order = [int(i) for i in g.random.permutation(x.rank)]
    if g.chance(0.1):
        return moved(g, x, "Transpose", [x], x.shape[::-1])
    return moved(g, x, "Transpose", [x], [x.shape[i] for i in order], perm=order)


def flatten(g):
    x = anything(g, ranks=(1, 2, 3, 4))
    axis = g.integer(-x.rank, x.rank)
    at = axis + x.rank if axis < 0 else axis
    shape = (math.prod(x.shape[:at]), math.prod(x.shape[at:]))
    return moved(g, x, "Flatten", [x], shape, axis=axis)


def squeeze(g):
    x = anything(g, lambda value: 1 in value.shape)
    axes = [i for i, size in enumerate(x.shape) if size == 1]
    if not g.open_axis and g.chance(0.3):
        return moved(g, x, "Squeeze", [x], [size for size in x.shape if size != 1])
    some = [axes[i] for i in g.some_of(axes)]
    kept = [size for i, size in enumerate(x.shape) if i not in some]
    return moved(g, x, "Squeeze", [x, g.longs([a - x.rank if g.chance(0.3) else a for a in some])], kept)


def unsqueeze(g):
    x = anything(g, ranks=(0, 1, 2, 3))
    count = g.integer(1, 2)
    axes = sorted(int(i) for i in g.random.permutation(x.rank + count)[:count])
    shape = list(x.shape)
    for axis in axes:
        shape.insert(axis, 1)
    return moved(g, x, "Unsqueeze", [x, g.longs(axes)], shape)


def slice_(g):
    x = anything(g, lambda value: any(size > 1 and not g.is_open(size) for size in value.shape))
    axes = [i for i, size in enumerate(x.shape) if size > 1 and not g.is_open(size)]
    some = [axes[i] for i in g.some_of(axes)]
    starts, ends, steps, shape = [], [], [], list(x.shape)
    for axis in some:
        size = x.shape[axis]
        step = g.one_of([1, 1, 1, 2, 3, -1, -2])
        low = g.integer(0, size - 1)
        high = g.integer(low + 1, size)
        if step > 0:
            start, end = low, high
        else:
            start, end = high - 1, low - 1
        shape[axis] = len(range(start, end if end >= 0 else -1, step))
        start = start - size if g.chance(0.3) else start
        if step > 0 and end == size and g.chance(0.5):
            end = 2**63 - 1
        elif end < 0:
            end = -(2**63) + 1
        starts.append(start)
        ends.append(end)
        steps.append(step)
    operands = [x, g.longs(starts), g.longs(ends), g.longs(some), g.longs(steps)]
    if all(step == 1 for step in steps) and g.chance(0.5):
        operands.pop()
    return moved(g, x, "Slice", operands, shape)


def split(g):
    x = anything(g, lambda value: any(size > 1 and not g.is_open(size) for size in value.shape))
    axis = g.one_of(i for i, size in enumerate(x.shape) if size > 1 and not g.is_open(size))
    size = x.shape[axis]
    count = g.integer(2, min(3, size))
    cuts = sorted(int(i) + 1 for i in g.random.permutation(size - 1)[:count - 1])
    parts = [b - a for a, b in zip([0, *cuts], [*cuts, size])]
    operands, attributes = [x, g.longs(parts)], {}
    if g.chance(0.4):
        chunk = -(-size // count)
        parts = [min(chunk, size - i * chunk) for i in range(count)]
        if min(parts) < 1:
            raise NoFit
        operands, attributes = [x], {"num_outputs": count}
    shapes = [(*x.shape[:axis], part, *x.shape[axis + 1:]) for part in parts]
    return g.add("Split", operands, [(x.kind, shape, x.bound, x.unit) for shape in shapes], axis=axis, **attributes)


def concat(g):
    x = anything(g, lambda value: value.rank >= 1)
    axis = g.integer(0, x.rank - 1)
    if g.is_open(x.shape[axis]):
        raise NoFit
    rest = (*x.shape[:axis], *x.shape[axis + 1:])
    found = [v for v in g.every() if v.kind == x.kind and v.rank == x.rank and
             (*v.shape[:axis], *v.shape[axis + 1:]) == rest and not g.is_open(v.shape[axis])]
    operands = [g.one_of(found) for _ in range(g.integer(1, 3))]
    if not any(g.is_open(size) for size in rest) and g.chance(0.3):
        shape = (*x.shape[:axis], g.integer(1, 3), *x.shape[axis + 1:])
        operands.append(g.constant(x.kind, g.array(x.kind, shape)))
    size = sum(v.shape[axis] for v in operands)
    shape = (*x.shape[:axis], size, *x.shape[axis + 1:])
    return g.add("Concat", operands, [(x.kind, shape, max(v.bound for v in operands), min(v.unit for v in operands))],
                 axis=axis - x.rank if g.chance(0.3) else axis)


def expand(g):
    x = anything(g)
    shape = [g.integer(2, 5) if size == 1 and g.chance(0.7) else size for size in x.shape]
    asked = [1 if g.is_open(size) or g.chance(0.3) and size == old else size for size, old in zip(shape, x.shape)]
    if g.chance(0.4):
        shape, asked = [2, *shape], [2, *asked]
    return moved(g, x, "Expand", [x, g.longs(asked)], shape)


def tile(g):
    x = anything(g, ranks=(1, 2, 3, 4))
    repeats = [1 if g.is_open(size) else g.one_of([1, 1, 2, 3]) for size in x.shape]
    return moved(g, x, "Tile", [x, g.longs(repeats)], [size * n for size, n in zip(x.shape, repeats)])


def pad(g):
    x = anything(g, lambda value: value.kind != "bool" and 0 not in value.shape, ranks=(1, 2, 3, 4))
    mode = g.one_of(["constant", "constant", "edge", "reflect", "wrap"])
    begin, end = [], []
    for size in x.shape:
        fixed = g.is_open(size) or g.chance(0.4)
        most = {"constant": 3, "edge": 3, "reflect": size - 1, "wrap": size}[mode]
        low = -1 if mode == "constant" and size > 2 else 0
        begin.append(0 if fixed else g.integer(low, min(3, most)))
        end.append(0 if fixed else g.integer(low, min(3, most)))
    shape = [a + size + b for a, size, b in zip(begin, x.shape, end)]
    operands = [x, g.longs([*begin, *end])]
    bound = x.bound
    if mode == "constant" and g.chance(0.5):
        operands.append(g.scalar(1, x.kind))
        bound = max(bound, 1)
    return g.add("Pad", operands, [(x.kind, shape, bound, x.unit)], mode=mode)


def indices_for(g, shape, size, constant=True):
    """Positions along an axis of `size`: a constant, or computed from an input, so that only the run knows them."""
    if constant or size < 2:
        array = g.random.integers(-size, size, shape).astype(np.int64)
        return g.constant(g.one_of(["int64", "int32"]), array)
    raw = g.constant("int64", g.random.integers(0, size, shape).astype(np.int64))
    like = g.pick(lambda value: value.count == 1 and value.rank <= len(shape), kinds=("int64",))
    sum_ = g.add("Add", [raw, like], [("int64", shape, size + like.bound, 0)])
    return g.add("Mod", [sum_, g.scalar(size, "int64")], [("int64", shape, size, 0)])


def gather(g):
    x = anything(g, lambda value: value.rank >= 1 and 0 not in value.shape)
    axis = g.one_of(i for i, size in enumerate(x.shape) if not g.is_open(size))
    shape = g.one_of([(), (1,), (3,), (2, 2), (5,)])
    at = indices_for(g, shape, x.shape[axis], g.chance(0.6))
    return moved(g, x, "Gather", [x, at], (*x.shape[:axis], *shape, *x.shape[axis + 1:]), axis=axis)


def gather_elements(g):
    x = anything(g, lambda value: value.rank >= 1 and 0 not in value.shape)
    if any(g.is_open(size) for size in x.shape):
        raise NoFit
    axis = g.integer(0, x.rank - 1)
    shape = tuple(g.integer(1, 4) if i == axis else g.integer(1, size) for i, size in enumerate(x.shape))
    return moved(g, x, "GatherElements", [x, indices_for(g, shape, x.shape[axis], g.chance(0.6))], shape, axis=axis)


def gather_nd(g):
    x = anything(g, lambda value: value.rank >= 1 and 0 not in value.shape)
    if any(g.is_open(size) for size in x.shape):
        raise NoFit
    batch = g.integer(0, 1) if x.rank > 1 else 0
    depth = g.integer(1, x.rank - batch)
    head = (*x.shape[:batch], g.integer(1, 4))
    at = np.stack([g.random.integers(-size, size, head) for size in x.shape[batch:batch + depth]], -1)
    shape = (*head, *x.shape[batch + depth:])
    return moved(g, x, "GatherND", [x, g.longs(at)], shape, batch_dims=batch)


def scatter(g):
    x = anything(g, lambda value: value.rank >= 1 and 0 not in value.shape and value.kind != "bool")
    if any(g.is_open(size) for size in x.shape):
        raise NoFit
    if g.chance(0.5):
        depth = g.integer(1, x.rank)
        head = (g.integer(1, 3),)
        count = math.prod(x.shape[:depth])
        if count < head[0]:
            raise NoFit
        places = g.random.permutation(count)[:head[0]]
        at = np.stack(np.unravel_index(places, x.shape[:depth]), -1).astype(np.int64)
        updates = g.constant(x.kind, g.array(x.kind, (*head, *x.shape[depth:])))
        return g.like(x, "ScatterND", [x, g.longs(at), updates], max(x.bound, 4), min(x.unit, 0.125))
    axis = g.integer(0, x.rank - 1)
    shape = tuple(g.integer(1, size) for size in x.shape)
    at = np.zeros(shape, np.int64)
    order = g.random.permutation(x.shape[axis])[:shape[axis]].astype(np.int64)
    at += order.reshape([-1 if i == axis else 1 for i in range(x.rank)])
    reduction = g.one_of(["none", "add", "max", "min", "mul"]) if x.kind in (g.float_kind, "int32", "int64") else "none"
    updates = g.constant(x.kind, g.array(x.kind, shape))
    bound = {"none": max(x.bound, 4), "max": max(x.bound, 4), "min": max(x.bound, 4), "add": x.bound + 4,
             "mul": x.bound * 4}[reduction]
    return g.like(x, "ScatterElements", [x, g.longs(at), updates], bound, 0 if reduction == "mul" else min(x.unit, 0.125),
                  axis=axis, reduction=reduction)


def depth_space(g):
    if g.chance(0.5):
        x = anything(g, lambda v: v.rank == 4 and v.shape[1] % 4 == 0 and not g.is_open(v.shape[1]))
        n, c, h, w = x.shape
        return moved(g, x, "DepthToSpace", [x], (n, c // 4, h * 2, w * 2), blocksize=2, mode=g.one_of(["DCR", "CRD"]))
    x = anything(g, lambda v: v.rank == 4 and v.shape[2] % 2 == 0 and v.shape[3] % 2 == 0 and
                 not g.is_open(v.shape[2]) and not g.is_open(v.shape[3]))
    n, c, h, w = x.shape
    return moved(g, x, "SpaceToDepth", [x], (n, c * 4, h // 2, w // 2), blocksize=2)


def resize(g):
    x = g.pick(lambda value: 0 not in value.shape, kinds=("float32",), ranks=(3, 4))
    mode = g.one_of(["nearest", "linear", "cubic"])
    scales = [1.0] * x.rank
    for axis in range(2, x.rank):
        scales[axis] = 1.0 if g.is_open(x.shape[axis]) else g.one_of([1.0, 2.0, 2.0, 0.5, 3.0])
    shape = [int(math.floor(size * s)) for size, s in zip(x.shape, scales)]
    if 0 in shape or mode == "cubic" and x.rank == 3:
        raise NoFit
    where = g.one_of(["half_pixel", "asymmetric", "pytorch_half_pixel"] if mode == "nearest" else
                     ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"])
    if where == "align_corners" and 1 in shape[2:]:
        raise NoFit
    if g.chance(0.5) or any(g.is_open(size) for size in x.shape):
        operands = [x, None, g.constant("float32", np.array(scales, np.float32))]
    else:
        operands = [x, None, None, g.longs(shape)]
    rounding = g.one_of(["round_prefer_floor", "floor", "ceil"]) if mode == "nearest" else None
    return g.add("Resize", operands, [(x.kind, shape, x.bound * (2 if mode == "cubic" else 1),
                                       x.unit if mode == "nearest" else 0)],
                 mode=mode, coordinate_transformation_mode=where, nearest_mode=rounding)


def trilu(g):
    x = anything(g, ranks=(2, 3))
    operands = [x] if g.chance(0.4) else [x, g.constant("int64", np.array(g.integer(-2, 2), np.int64))]
    return moved(g, x, "Trilu", operands, x.shape, upper=g.integer(0, 1))


def one_hot(g):
    x = g.pick(lambda value: value.rank >= 1 and value.count <= 40, kinds=("int64", "int32"))
    depth = g.integer(2, 6)
    inside = g.add("Mod", [x, g.scalar(depth, x.kind)], [(x.kind, x.shape, depth, 0)])
    values = g.constant(g.float_kind, np.array([0.5, 2.0]))
    axis = g.integer(-1, x.rank)
    shape = list(x.shape)
    shape.insert(x.rank if axis == -1 else axis, depth)
    return g.add("OneHot", [inside, g.scalar(depth, "int64"), values], [(g.float_kind, shape, 2, 0.125)], axis=axis)


def sizes(g):
    """Sizes as values: they are known, so all that is made of them folds."""
    x = anything(g, lambda value: value.rank >= 1)
    shape = g.add("Shape", [x], [("int64", (x.rank,), 4000, 0)])
    if g.chance(0.5):
        axis = g.integer(0, x.rank - 1)
        size = g.add("Gather", [shape, g.longs([axis])], [("int64", (1,), 4000, 0)], axis=0)
        return g.add("ConstantOfShape", [size], [("float32", (x.shape[axis],), 0, 0.125)])
    return g.add("Reshape", [x, shape], [(x.kind, x.shape, x.bound, x.unit)])


def reverse(g):
    x = anything(g, lambda v: v.rank >= 2 and 0 not in v.shape and not any(g.is_open(s) for s in v.shape[:2]))
    time, batch = x.shape[:2]
    lengths = g.longs(g.random.integers(1, time + 1, (batch,)))
    return moved(g, x, "ReverseSequence", [x, lengths], x.shape, time_axis=0, batch_axis=1)


OPERATORS = [reshape, reshape, transpose, transpose, transpose, flatten, squeeze, unsqueeze, slice_, slice_, split, concat,
             concat, expand, tile, pad, pad, gather, gather_elements, gather_nd, scatter, depth_space, resize, trilu,
             one_hot, sizes, reverse]
assert OPEN
