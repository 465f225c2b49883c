"""Cells of views.py: a view of an input (slice, part, transposed, reshaped, expanded), what reads it, and the axis whose size
is open. Each cell is a small graph of its own.
"""

import itertools

# Sizes that only a run knows: "n2" is n + 2, "nx2" a multiple of 2, "whole" what a cut leaves some of.
BOUNDS = {"n": "1..7", "m": "1..5", "k": "1..4", "whole": "4..10"}


class NotACell(Exception):
    """What reads it has no such rank or axis, or would need a size that has no name."""


def more(size, by):
    """The number or the name of a size that is larger by so many."""
    return size + by if isinstance(size, int) else f"{size}{by}"


def multiple(size, factor):
    return size * factor if isinstance(size, int) else f"{size}x{factor}"


class Part:
    """One cell's part of a model: everything that it adds has names of its own."""

    def __init__(self, model, name, view, opened):
        self.model, self.prefix, self.view, self.opened = model, name, view, opened
        self.sizes, self.count = set(), 0

    def name(self):
        self.count += 1
        return f"{self.prefix}_{self.count}"

    def shape(self, *sizes, fixed=()):
        """These sizes, with the open axes by name; `fixed`: the axes that cannot be open."""
        if self.opened == "all":
            free = [axis for axis in range(len(sizes)) if axis not in fixed]
            if len(free) < 2:
                raise NotACell
            names = dict(zip(free, ("n", "m", "k", "n")))
        elif self.opened == "none":
            names = {}
        elif self.opened >= len(sizes) or self.opened in [axis % len(sizes) for axis in fixed]:
            raise NotACell
        else:
            names = {self.opened: "n"}
        return [names.get(axis, size) for axis, size in enumerate(sizes)]

    def input(self, shape, element="float"):
        name = self.name()
        if any(size == "?" for size in shape):
            raise NotACell
        self.sizes |= {size for size in shape if isinstance(size, str)}
        self.model.inputs.append(f"{element}[{','.join(map(str, shape))}] {name}")
        return name

    def weights(self, *shape, element="float", low=-3, high=3):
        if any(not isinstance(size, int) for size in shape):
            raise NotACell
        if element in ("float", "double", "float16"):
            return self.model.constant(self.name(), element, shape)
        return self.model.integers(self.name(), element, shape, low, high)

    def values(self, *values, element="int64", scalar=False):
        name = self.name()
        shape = "" if scalar else f"[{len(values)}]"
        self.model.constants.append(f"{element}{shape} {name} = {{{', '.join(map(str, values))}}}")
        return name

    def node(self, operator, *inputs, results=1, **attributes):
        names = [self.name() for _ in range(results)]
        shown = ", ".join(f"{key} = {show(value)}" for key, value in attributes.items())
        self.model.nodes.append(f"{', '.join(names)} = {operator}{f'<{shown}>' if shown else ''}({', '.join(inputs)})")
        return names[0] if results == 1 else names

    def viewed(self, *sizes, element="float", fixed=()):
        """A view of an input whose result has these sizes, some of them open."""
        return self.view(self, self.shape(*sizes, fixed=[axis % len(sizes) for axis in fixed]), element)

    def output(self, name, rank, element="float"):
        self.model.outputs.append(f"{element}[{','.join('abcdef'[:rank])}] {name}")


def show(value):
    return f'"{value}"' if isinstance(value, str) else str(list(value) if isinstance(value, tuple) else value)


# Readers -----------------------------------------------------------------------------------------------------------------

READERS = {}  # by name: adds what reads a view to a part


def reader(function):
    READERS[function.__name__] = function
    return function


def family(name, *variants):
    """One function for several cells: each variant is what is called."""
    def add(function):
        for label, *arguments in variants:
            READERS[f"{name}_{label}"] = lambda part, arguments=arguments: function(part, *arguments)
        return function
    return add


def other(part, shape, element="float"):
    """A further input of this shape, as it lies."""
    return part.input(shape, element)


# Views -------------------------------------------------------------------------------------------------------------------


def whole(part, shape, element):
    return part.input(shape, element), shape


def need_axis(shape, axis):
    if axis >= len(shape):
        raise NotACell


def sliced(axis, before, behind):
    def view(part, shape, element):
        need_axis(shape, axis)
        x = part.input([more(size, before + behind) if i == axis else size for i, size in enumerate(shape)], element)
        end = -behind if behind else 2**31
        return part.node("Slice", x, part.values(before), part.values(end), part.values(axis)), shape
    return view


def stepped(axis, step):
    """Every second element, or all in reverse."""
    def view(part, shape, element):
        need_axis(shape, axis)
        factor = abs(step)
        x = part.input([multiple(size, factor) if i == axis and factor > 1 else size for i, size in enumerate(shape)], element)
        start, end = (0, 2**31) if step > 0 else (-1, -(2**31))
        result = part.node("Slice", x, part.values(start), part.values(end), part.values(axis), part.values(step))
        return result, ["?" if isinstance(size, str) and i == axis and factor > 1 else size for i, size in enumerate(shape)]
    return view


def split(axis, which):
    """One of two parts of unlike sizes; of an axis that is open, one of two halves."""
    def view(part, shape, element):
        need_axis(shape, axis)
        is_open = isinstance(shape[axis], str)
        source = [(multiple(size, 2) if is_open else size + 2) if i == axis else size for i, size in enumerate(shape)]
        x = part.input(source, element)
        if is_open:
            results = part.node("Split", x, results=2, axis=axis, num_outputs=2)
            return results[which], ["?" if i == axis else size for i, size in enumerate(shape)]
        sizes = (2, shape[axis]) if which else (shape[axis], 2)
        return part.node("Split", x, part.values(*sizes), results=2, axis=axis)[which], shape
    return view


def chosen(axis, position):
    """One entry of a further axis."""
    def view(part, shape, element):
        if axis > len(shape):
            raise NotACell
        x = part.input([*shape[:axis], 3, *shape[axis:]], element)
        return part.node("Gather", x, part.values(position, scalar=True), axis=axis), shape
    return view


def transposed(*order):
    def view(part, shape, element):
        if len(order) != len(shape):
            raise NotACell
        source = [shape[order.index(axis)] for axis in range(len(shape))]
        return part.node("Transpose", part.input(source, element), perm=order), shape
    return view


def expanded(axis):
    def view(part, shape, element):
        need_axis(shape, axis)
        x = part.input([1 if i == axis else size for i, size in enumerate(shape)], element)
        if isinstance(shape[axis], int):
            return part.node("Expand", x, part.values(*[size if i == axis else 1 for i, size in enumerate(shape)])), shape
        size = part.node("Shape", part.input([shape[axis]]))
        ones = [part.values(1)] * (len(shape) - 1)
        return part.node("Expand", x, part.node("Concat", *ones[:axis], size, *ones[axis:], axis=0)), shape
    return view


def parted(part, shape, element):
    """The last two axes lie as one; an open one of them is what remains."""
    if len(shape) < 2 or all(isinstance(size, str) for size in shape[-2:]):
        raise NotACell
    rows, columns = shape[-2:]
    joined = rows * columns if isinstance(rows, int) and isinstance(columns, int) else (
        multiple(rows, columns) if isinstance(columns, int) else multiple(columns, rows))
    to = [0] * (len(shape) - 2) + [size if isinstance(size, int) else -1 for size in (rows, columns)]
    result = part.node("Reshape", part.input([*shape[:-2], joined], element), part.values(*to))
    return result, shape[:-2] + ["?" if isinstance(size, str) else size for size in (rows, columns)]


def heads(part, shape, element):
    """Rows that lie as (rows, heads * size), as attention parts them: the axis before the rows is within the last one."""
    if len(shape) != 4 or not isinstance(shape[1], int) or not isinstance(shape[3], int):
        raise NotACell
    x = part.input([shape[0], shape[2], shape[1] * shape[3]], element)
    rows = part.node("Reshape", x, part.values(0, 0, shape[1], shape[3]))
    return part.node("Transpose", rows, perm=(0, 2, 1, 3)), shape


def joined(axis):
    """Two axes become one; where it is open, two of its entries are always together."""
    def view(part, shape, element):
        need_axis(shape, axis)
        size = shape[axis]
        if isinstance(size, int) and size % 2 != 0:
            pair = (size, 1)
        else:
            pair = (size // 2 if isinstance(size, int) else size, 2)
        x = part.input([*shape[:axis], *pair, *shape[axis + 1:]], element)
        to = [-1 if i == axis else 0 for i in range(axis + 1)] + [-1 if isinstance(s, str) else s for s in shape[axis + 1:]]
        if to.count(-1) > 1:
            raise NotACell
        result = part.node("Reshape", x, part.values(*to))
        return result, ["?" if isinstance(size, str) and i == axis else s for i, s in enumerate(shape)]
    return view


def after(first, second):
    """The second view of the first one."""
    def view(part, shape, element):
        class Inner:
            """The part, whose first input is a view."""
            is_first = True

            def __getattr__(self, name):
                return getattr(part, name)

            def input(self, source, element="float"):
                if not self.is_first:
                    return part.input(source, element)
                self.is_first = False
                name, made = first(part, source, element)
                if made != source:
                    raise NotACell
                return name
        return second(Inner(), shape, element)
    return view


def views():
    """By name."""
    out = {"whole": whole}
    for axis in range(4):
        out[f"tail{axis}"] = sliced(axis, 2, 0)
        out[f"both{axis}"] = sliced(axis, 1, 2)
        out[f"step{axis}"] = stepped(axis, 2)
        out[f"first{axis}"] = split(axis, 0)
        out[f"second{axis}"] = split(axis, 1)
        out[f"expand{axis}"] = expanded(axis)
        out[f"entry{axis}"] = chosen(axis, 1)
        out[f"join{axis}"] = joined(axis)
    for axis in range(3):
        out[f"reverse{axis}"] = stepped(axis, -1)
    for rank in (2, 3, 4):
        for order in itertools.permutations(range(rank)):
            moved = sum(a != i for i, a in enumerate(order))
            if order != tuple(range(rank)) and (rank < 4 or moved == 2 or order in ((3, 2, 1, 0), (0, 2, 3, 1), (1, 2, 0, 3))):
                out["turn" + "".join(map(str, order))] = transposed(*order)
    out["parted"], out["heads"] = parted, heads
    for axis in range(3):
        out[f"tail{axis}_of_turn"] = after(any_turn, sliced(axis, 1, 0))
        out[f"turn_of_both{axis}"] = after(sliced(axis, 1, 1), any_turn)
    out["tail0_of_both1"] = after(sliced(1, 1, 1), sliced(0, 1, 0))
    out["tail1_of_tail2"] = after(sliced(2, 1, 0), sliced(1, 1, 0))
    out["expand0_of_tail1"] = after(sliced(1, 1, 0), expanded(0))
    out["entry1_of_tail0"] = after(sliced(0, 1, 0), chosen(1, 2))
    return out


def any_turn(part, shape, element):
    """The axis before the last one comes first."""
    rank = len(shape)
    if rank < 3:
        raise NotACell
    return transposed(*[1, 0, 2, 3][:rank] if rank == 3 else [0, 2, 1, 3])(part, shape, element)
