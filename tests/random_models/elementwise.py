"""Operators on single elements: functions, arithmetic, comparisons, choices, types."""

import math

import numpy as np

from random_graph import BITS, FLOATS, INTEGERS, KIND, SIGNED, UNSIGNED, MOST_MAGNITUDE, NoFit

# Functions of any float: the bound of the result, given that of the operand.
SMOOTH = {
    "Elu": lambda b: max(b, 1), "Selu": lambda b: 1.06 * b + 2, "Celu": lambda b: max(b, 1), "Sigmoid": lambda b: 1,
    "HardSigmoid": lambda b: 1, "Tanh": lambda b: 1, "Softplus": lambda b: b + 0.7, "Softsign": lambda b: 1,
    "Mish": lambda b: b, "HardSwish": lambda b: b, "Erf": lambda b: 1, "Sin": lambda b: 1, "Cos": lambda b: 1,
    "Atan": lambda b: 1.6, "Asinh": lambda b: b, "Gelu": lambda b: b, "Swish": lambda b: b,
}
# Functions of numbers near zero: the largest magnitude, and the bound of the result.
NEAR_ZERO = {"Exp": (4, 55), "Sinh": (3, 10.1), "Cosh": (3, 10.1), "Tan": (1, 1.6)}
# Functions of what Tanh has made smaller than 0.9.
INSIDE = {"Asin": 1.2, "Acos": 2.8, "Atanh": 1.5}
EXACT = {"Abs": 1, "Neg": 1, "Relu": 1, "Identity": 1, "Floor": None, "Ceil": None, "Round": None, "Sign": None}
# Operators that older element types or newer opsets restrict.
FLOAT32_ONLY = {"Celu"}


def smooth(g):
    name = g.one_of(SMOOTH)
    if name == "Swish":
        raise NoFit  # opset 24
    x = g.pick()
    if name in FLOAT32_ONLY and x.kind != "float32":
        raise NoFit
    attributes = {}
    if name in ("Elu", "Celu"):
        attributes["alpha"] = g.one_of([0.5, 1.0])
    if name == "HardSigmoid" and g.chance(0.5):
        attributes.update(alpha=0.25, beta=0.5)
    if name == "Gelu":
        attributes["approximate"] = g.one_of(["none", "tanh"])
    return g.like(x, name, [x], SMOOTH[name](x.bound), **attributes)


def near_zero(g):
    name = g.one_of(NEAR_ZERO)
    most, bound = NEAR_ZERO[name]
    x = g.pick(lambda value: value.bound <= most)
    return g.like(x, name, [x], bound)


def inside(g):
    x = g.pick()
    name = g.one_of(INSIDE)
    small = g.like(x, "Mul", [g.like(x, "Tanh", [x], 1.0), g.scalar(0.875, x.kind)], 0.875)
    return g.like(x, name, [small], INSIDE[name])


def positive(g):
    """Functions of numbers that are at least 1/4."""
    x = g.pick(lambda value: value.bound <= MOST_MAGNITUDE)
    away = g.like(x, "Add", [g.like(x, "Abs", [x], x.bound, x.unit), g.scalar(0.25, x.kind)], x.bound + 0.25)
    name = g.one_of(["Log", "Sqrt", "Reciprocal", "Pow", "Acosh"])
    if name == "Pow":
        exponent = g.one_of([0.5, -0.5, 2.0, 3.0, 1.5, 1.0, 0.0, -1.0])
        return g.like(x, "Pow", [away, g.scalar(exponent, x.kind)], max(64, away.bound) ** max(exponent, 0) + 8)
    if name == "Acosh":
        away = g.like(x, "Add", [away, g.scalar(1.0, x.kind)], away.bound + 1)
    return g.like(x, name, [away], {"Log": 5, "Sqrt": math.sqrt(away.bound), "Reciprocal": 4, "Acosh": 6}[name])


def exact(g):
    name = g.one_of(EXACT)
    x = g.pick(exact=EXACT[name] is None)
    if EXACT[name] is None:
        return g.like(x, name, [x], max(math.ceil(x.bound), 1), 1.0)
    return g.like(x, name, [x], x.bound, x.unit)


def leaky(g):
    x = g.pick()
    if g.chance(0.5):
        return g.like(x, "LeakyRelu", [x], x.bound, alpha=g.one_of([0.25, 0.01]))
    shape = tuple(1 if g.chance(0.5) or g.is_open(size) else size for size in x.shape[1:])
    slope = g.constant(x.kind, g.array(x.kind, shape, 0, 1))
    return g.like(x, "PRelu", [x, slope], x.bound)


def steps(g):
    """Functions that jump: of exact numbers."""
    x = g.pick(exact=True)
    name = g.one_of(["ThresholdedRelu", "Shrink", "IsNaN", "IsInf"])
    if name == "ThresholdedRelu":
        return g.like(x, name, [x], x.bound, x.unit, alpha=0.75)
    if name == "Shrink":
        return g.like(x, name, [x], x.bound + 1, min(x.unit, 0.25), lambd=0.75, bias=g.one_of([0.0, 0.25]))
    return g.add(name, [x], [("bool", x.shape, 1, 0)])


def clip(g):
    kind = g.one_of([g.float_kind, g.float_kind, "int32", "int64", "uint8", "int8"])
    x = g.pick(kinds=(kind,))
    low, high = (g.scalar(-1 if kind not in UNSIGNED else 1, kind), g.scalar(2, kind))
    low, high = g.one_of([(low, high), (low, None), (None, high)])
    bound = 2 if low and high else max(x.bound, 2)
    return g.like(x, "Clip", [x, low, high], bound, x.unit)


def other_for(g, x, low=-2, high=2):
    """An operand that x is broadcast with: a constant, or another value. And the shape of both."""
    if g.chance(0.5):
        found = [value for value in g.every() if value.kind == x.kind and broadcast(x.shape, value.shape, g) is not None]
        y = g.one_of(found)
        return y, broadcast(x.shape, y.shape, g)
    shape = [1 if g.is_open(size) or g.chance(0.4) else size for size in x.shape]
    shape = shape[g.integer(0, len(shape)):] if shape and g.chance(0.5) else shape
    y = g.constant(x.kind, g.array(x.kind, shape, low, high, 0.25))
    return y, broadcast(x.shape, y.shape, g)


def broadcast(a, b, g):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b)):
        return None
    return tuple(max(x, y) if 0 not in (x, y) else 0 for x, y in zip(a, b))


def arithmetic(g):
    kind = g.one_of([g.float_kind] * 4 + ["int32", "int64"])
    x = g.pick(lambda value: value.bound <= MOST_MAGNITUDE, kinds=(kind,))
    y, shape = other_for(g, x)
    name = g.one_of(["Add", "Sub", "Mul", "Min", "Max", "Div"])
    unit = min(x.unit, y.unit)
    if name in ("Add", "Sub"):
        bound = x.bound + y.bound
    elif name == "Mul":
        bound, unit = x.bound * y.bound, x.unit * y.unit
    elif name == "Div":
        if kind not in FLOATS:
            y = g.scalar(g.one_of([2, 3, -3, 7]), kind)
            return g.like(x, "Div", [x, y], x.bound)
        y = g.like(y, "Add", [g.like(y, "Abs", [y], y.bound, y.unit), g.scalar(0.5, kind)], y.bound + 0.5)
        bound, unit = x.bound * 2, 0
    else:
        bound = max(x.bound, y.bound)
    operands = [x, y] if g.chance(0.6) or name == "Div" else [y, x]
    return g.add(name, operands, [(kind, shape, bound, unit)])


def remainder(g):
    kind = g.one_of(["int32", "int64", g.float_kind])
    x = g.pick(kinds=(kind,), exact=True)
    y = g.scalar(g.one_of([2, 3, 5] if kind in FLOATS else [2, 3, -3, 5]), kind)
    return g.like(x, "Mod", [x, y], abs(5), min(x.unit, 1), fmod=1 if kind in FLOATS or g.chance(0.3) else 0)


def variadic(g):
    x = g.pick(lambda value: value.bound <= MOST_MAGNITUDE)
    operands, shape = [x], x.shape
    for _ in range(g.integer(0, 3)):
        y, _ = other_for(g, x)
        wider = broadcast(shape, y.shape, g)
        if wider is not None:
            operands.append(y)
            shape = wider
    name = g.one_of(["Sum", "Mean", "Max", "Min"])
    bound, unit = max(v.bound for v in operands), min(v.unit for v in operands)
    if name == "Sum":
        bound = sum(v.bound for v in operands)
    return g.add(name, operands, [(x.kind, shape, bound, 0 if name == "Mean" else unit)])


def compare(g):
    kind = g.one_of([g.float_kind, g.float_kind, "int32", "int64"])
    x = g.pick(kinds=(kind,), exact=True)
    y, shape = other_for(g, x)
    if not y.is_exact:
        raise NoFit
    name = g.one_of(["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"])
    return g.add(name, [x, y], [("bool", shape, 1, 0)])


def logic(g):
    x = g.pick(kinds=("bool",))
    if g.chance(0.3):
        return g.like(x, "Not", [x])
    y, shape = other_for(g, x)
    return g.add(g.one_of(["And", "Or", "Xor"]), [x, y], [("bool", shape, 1, 0)])


def bits(g):
    kind = g.one_of(["int32", "int64", "uint8", "int8"])
    x = g.pick(kinds=(kind,))
    if g.chance(0.2):
        return g.like(x, "BitwiseNot", [x], 300)
    if kind == "uint8" and g.chance(0.3):
        return g.like(x, "BitShift", [x, g.scalar(g.integer(0, 7), kind)], 255, direction=g.one_of(["LEFT", "RIGHT"]))
    y, shape = other_for(g, x)
    return g.add(g.one_of(["BitwiseAnd", "BitwiseOr", "BitwiseXor"]), [x, y], [(kind, shape, 300, 0)])


def integers(g):
    x = g.pick(kinds=("int32", "int64", "int8"))
    return g.like(x, g.one_of(["Abs", "Neg", "Sign"]), [x], x.bound)


def where(g):
    condition = g.pick(kinds=("bool",))
    x = g.pick(kinds=(g.float_kind, "int64", "int32"))
    y, shape = other_for(g, x)
    shape = broadcast(shape, condition.shape, g)
    if shape is None:
        raise NoFit
    return g.add("Where", [condition, x, y], [(x.kind, shape, max(x.bound, y.bound), min(x.unit, y.unit))])


def cast(g):
    """Floats become integers where they are exact; what does not fit in the type is left alone."""
    x = g.pick(kinds=(g.float_kind, "int32", "int64", "uint8", "int8", "bool"))
    to = g.one_of([g.float_kind] * 3 + ["int32", "int64", "uint8", "int8", "bool", "float32"])
    if to == x.kind or (x.is_float and to not in FLOATS and not x.is_exact):
        raise NoFit
    if to in ("uint8", "int8") and (x.kind not in ("bool", "int8", "uint8") or x.bound > 100):
        raise NoFit
    if to == "uint8" and x.kind == "int8" or to == "int8" and x.kind == "uint8" and x.bound > 100:
        raise NoFit
    if to in FLOATS and (x.bound > 1000 or not x.is_exact and BITS[to] > BITS.get(x.kind, 0)):
        raise NoFit
    unit = (x.unit if x.is_float else 1.0) if to in FLOATS else 0
    if g.chance(0.15):
        return g.add("CastLike", [x, g.scalar(1, to)], [(to, x.shape, max(x.bound, 1), unit)])
    return g.add("Cast", [x], [(to, x.shape, max(x.bound, 1), unit)], to=KIND[to])


def dropout(g):
    x = g.pick()
    return g.like(x, "Dropout", [x, g.scalar(0.25, "float32")] if g.chance(0.5) else [x], x.bound, x.unit)


def microsoft(g):
    """What ONNX Runtime's optimiser writes."""
    x = g.pick(lambda value: value.rank >= 1 and not g.is_open(value.shape[-1]), kinds=("float32",))
    name = g.one_of(["Gelu", "QuickGelu", "FastGelu", "BiasGelu"])
    if name == "QuickGelu":
        return g.like(x, name, [x], x.bound, domain="com.microsoft", alpha=g.one_of([1.702, 1.0]))
    if name == "Gelu":
        return g.like(x, name, [x], x.bound, domain="com.microsoft")
    bias = g.constant(x.kind, g.array(x.kind, (x.shape[-1],), -1, 1))
    return g.like(x, name, [x, bias], x.bound + 1, domain="com.microsoft")


OPERATORS = [smooth, smooth, near_zero, inside, positive, exact, leaky, steps, clip, arithmetic, arithmetic, arithmetic,
             remainder, variadic, compare, logic, bits, integers, where, where, cast, cast, dropout, microsoft]
assert INTEGERS and SIGNED and np
