"""A random graph under construction: values with what is known of them, and the nodes that made them.

A value has its type, its shape, a bound of its magnitude and, where it is exact, its unit: every element is a multiple
of the unit, and so few bits wide that any order of computation gives the same bits. Decisions (comparisons, rounding,
positions, casts to integers) are only made of exact values: elsewhere a last bit would flip them, which says nothing
about a compiler. Bounds keep numbers where tolerances mean something.

Shapes are computed here, by rules of this generator's own: they are written into the model as value_info, so that the
shape inference of the compiler is compared with a second opinion.
"""

import dataclasses
import math

import numpy as np
import onnx
from onnx import helper, numpy_helper

FLOATS = ("float32", "float16", "float64", "bfloat16")
SIGNED = ("int64", "int32", "int8", "int16")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = SIGNED + UNSIGNED
KIND = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16,
}
# Bits of a number that is exact in the type.
BITS = {"float32": 22, "float16": 10, "float64": 50, "bfloat16": 7}

# A dimension that stands for an open one: no other size is a multiple of it, so that it is found in every shape.
OPEN = 11
SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 12, 16, 17)
MOST_ELEMENTS = 3000
MOST_MAGNITUDE = 64.0


class NoFit(Exception):
    """The operator finds no operands here."""


@dataclasses.dataclass(frozen=True)
class Value:
    """`bound`: of the magnitude of every element; `unit`: 0 where elements are rounded."""
    name: str
    kind: str
    shape: tuple
    bound: float
    unit: float = 0.0
    constant: bool = False

    @property
    def rank(self):
        return len(self.shape)

    @property
    def count(self):
        return math.prod(self.shape)

    @property
    def is_float(self):
        return self.kind in FLOATS

    @property
    def is_exact(self):
        return self.unit > 0 or not self.is_float


def tensor(name, kind, array):
    """A TensorProto; bfloat16, which NumPy has not, is cut off a float32 that has no more bits."""
    if kind != "bfloat16":
        return numpy_helper.from_array(np.ascontiguousarray(array).astype(kind).reshape(array.shape), name)
    words = (np.ascontiguousarray(array, dtype=np.float32).view(np.uint32) >> 16).astype(np.uint16)
    return helper.make_tensor(name, KIND[kind], array.shape, words.tobytes(), raw=True)


class Graph:
    """`random`: a numpy Generator; `open_axis`: whether sizes that are multiples of OPEN will be those of a symbol."""

    def __init__(self, random, float_kind="float32", open_axis=False, outer=None):
        self.random, self.float_kind, self.open_axis, self.outer = random, float_kind, open_axis, outer
        self.nodes, self.initializers, self.inputs, self.values, self.infos = [], [], [], [], {}
        self.data, self.used, self.symbols, self.fed_back = {}, set(), {}, []
        self.prefix = "" if outer is None else f"{outer.prefix}b{len(outer.nodes)}_{outer.branches}_"
        self.branches = 0
        self.number = 0
        self.operators = set()

    # Numbers

    def chance(self, probability):
        return self.random.random() < probability

    def integer(self, low, high):
        """A number of low ... high, both among them."""
        return int(self.random.integers(low, high + 1))

    def one_of(self, items):
        items = list(items)
        if not items:
            raise NoFit
        return items[self.integer(0, len(items) - 1)]

    def some_of(self, items, least=1):
        items = list(items)
        count = self.integer(least, len(items))
        return sorted(int(i) for i in self.random.permutation(len(items))[:count])

    def is_open(self, size):
        return self.open_axis and size > 0 and size % OPEN == 0

    # Values

    def fresh(self, stem):
        self.number += 1
        return f"{self.prefix}{stem}{self.number}"

    def array(self, kind, shape, low=-4.0, high=4.0, step=0.125):
        """Multiples of `step`; integers are whole."""
        if kind == "bool":
            return np.asarray(self.random.random(shape) < 0.5)
        if kind in INTEGERS:
            low = max(low, 0) if kind in UNSIGNED else low
            return np.asarray(self.random.integers(int(low), int(high) + 1, shape), kind)
        count = int((high - low) / step)
        steps = self.random.integers(0, count + 1, shape)
        return np.asarray(low + steps * step, np.float32 if kind == "bfloat16" else kind)

    def constant(self, kind, array, bound=None, unit=0.125):
        name = self.fresh("c")
        array = np.asarray(array)
        if bound is None:
            bound = float(np.max(np.abs(array.astype(np.float64)), initial=0))
        self.initializers.append(tensor(name, kind, array))
        return Value(name, kind, tuple(array.shape), bound, unit if kind in FLOATS else 0.0, True)

    def weights(self, shape, depth, kind=None):
        """Floats of a product over `depth` terms whose sums stay near the size of the other factor."""
        scale = 1.0 / math.sqrt(max(depth, 1))
        array = self.random.normal(0, scale, shape).clip(-2.5 * scale, 2.5 * scale)
        kind = kind or self.float_kind
        if kind == "bfloat16":
            array = (array.astype(np.float32).view(np.uint32) & 0xffff0000).view(np.float32)
        return self.constant(kind, array.astype(np.float32 if kind == "bfloat16" else kind), unit=0)

    def longs(self, numbers):
        return self.constant("int64", np.array(numbers, dtype=np.int64))

    def scalar(self, number, kind=None):
        """`number` has few bits."""
        kind = kind or self.float_kind
        return self.constant(kind, np.array(number, dtype=np.float32 if kind == "bfloat16" else kind), unit=2.0 ** -10)

    def input(self, kind, shape, symbol="n"):
        """`symbol`: the name of the axis of OPEN elements."""
        value = Value(self.fresh("x"), kind, tuple(shape), 4.0, 0.125 if kind in FLOATS else 0.0)
        self.inputs.append(value)
        self.symbols[value.name] = symbol
        self.data[value.name] = self.array(kind, shape)
        self.values.append(value)
        return value

    def every(self):
        """Those that a node may read, also the outer graph's."""
        return (self.outer.every() if self.outer else []) + self.values

    def pick(self, test=lambda value: True, kinds=None, ranks=None, exact=False):
        """One that fits, rather a late one."""
        kinds = kinds or (self.float_kind,)
        found = [value for value in self.every()
                 if value.kind in kinds and (ranks is None or value.rank in ranks) and (not exact or value.is_exact)
                 and test(value)]
        if not found:
            raise NoFit
        at = max(int(self.random.integers(0, len(found))) for _ in range(2))
        return found[at]

    def add(self, operator, operands, results, domain="", **attributes):
        """One node; `results` are (kind, shape, bound, unit). Returns the values, or the one."""
        for kind, shape, bound, _ in results:
            if math.prod(shape) > MOST_ELEMENTS or bound > 1e30:
                raise NoFit
            assert kind in KIND
        names = [value.name if value is not None else "" for value in operands]
        while names and not names[-1]:
            names.pop()
        out = []
        for kind, shape, bound, unit in results:
            if unit and kind in FLOATS and bound / unit >= 2.0 ** BITS[kind]:
                unit = 0.0
            out.append(Value(self.fresh("v"), kind, tuple(int(d) for d in shape), float(bound), unit))
        node = helper.make_node(operator, names, [value.name for value in out], name=self.fresh("n"), domain=domain)
        for key, attribute in sorted(attributes.items()):
            if attribute is not None:
                node.attribute.append(attribute if isinstance(attribute, onnx.AttributeProto)
                                      else helper.make_attribute(key, attribute))
        self.nodes.append(node)
        self.operators.add(operator)
        self.use(names)
        self.values += out
        for value in out:
            self.infos[value.name] = value
        return out[0] if len(out) == 1 else out

    def use(self, names):
        self.used.update(names)
        if self.outer is not None:
            self.outer.use(names)

    def like(self, value, operator, operands, bound=None, unit=0.0, **attributes):
        """One result of the type and shape of `value`."""
        return self.add(operator, operands, [(value.kind, value.shape, value.bound if bound is None else bound, unit)],
                        **attributes)

    def captures(self):
        """What branches read: their nodes are no nodes of this graph."""
        return {name for node in self.nodes for attribute in node.attribute if attribute.HasField("g")
                for inner in attribute.g.node for name in inner.input}

    def leaves(self):
        return [value for value in self.values if value.name not in self.used and value.name in self.infos]

    def proto(self, outputs, name):
        def info(value):
            symbol = self.symbols.get(value.name, "n")
            shape = [symbol if self.is_open(size) and size == OPEN else None if self.is_open(size) else size
                     for size in value.shape]
            return helper.make_tensor_value_info(value.name, KIND[value.kind], shape)

        inner = [info(value) for key, value in self.infos.items() if key not in {out.name for out in outputs}]
        return helper.make_graph(self.nodes, name, [info(value) for value in self.inputs] if self.outer is None else [],
                                 [info(value) for value in outputs], self.initializers, value_info=inner)
