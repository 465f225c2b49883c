#!/usr/bin/env python3
"""What no fast kernel takes is computed all the same: more than two spatial axes, doubles, 16-bit floats, recurrences whose
weights only the run knows. The expected numbers are numpy's, from the definitions in ONNX's specification.

    every_type.py --gcompile GCOMPILE [CASE...]
"""

import itertools

from families import Model
from support import Skip, run_main

try:
    import numpy as np
except ImportError:
    np = None


# Definitions -------------------------------------------------------------------------------------------------------------


def windows(x, kernel, strides, pads, dilations, outside):
    """For every position of the result: its index, and the taps of x there as (N, C, kernel...)."""
    spatial = len(kernel)
    padded = np.pad(x, [(0, 0), (0, 0)] + [(pads[i], pads[i + spatial]) for i in range(spatial)], constant_values=outside)
    counts = [(padded.shape[i + 2] - (kernel[i] - 1) * dilations[i] - 1) // strides[i] + 1 for i in range(spatial)]
    for at in itertools.product(*map(range, counts)):
        yield at, padded[(slice(None), slice(None)) + tuple(
            slice(a * s, a * s + (k - 1) * d + 1, d) for a, s, k, d in zip(at, strides, kernel, dilations))]


def stacked(parts, spatial):
    """(N, C, positions...) of the pairs (position, (N, C))."""
    parts = list(parts)
    counts = [1 + max(at[i] for at, _ in parts) for i in range(spatial)]
    return np.stack([value for _, value in parts], -1).reshape(parts[0][1].shape + tuple(counts))


def conv(x, w, bias, strides, pads, dilations, group):
    outputs, inputs = w.shape[0] // group, w.shape[1]
    taps = lambda part: np.stack([
        (part[:, None, m // outputs * inputs:(m // outputs + 1) * inputs] * w[None, m:m + 1]).sum(
            tuple(range(2, part.ndim + 1)))[:, 0] + bias[m] for m in range(w.shape[0])], 1)
    return stacked(((at, taps(part)) for at, part in windows(x, w.shape[2:], strides, pads, dilations, 0)), w.ndim - 2)


def conv_transpose(x, w, bias, strides, pads, group, output_padding):
    kernel, spatial = w.shape[2:], w.ndim - 2
    inputs, outputs = w.shape[0] // group, w.shape[1]
    full = [(x.shape[i + 2] - 1) * strides[i] + kernel[i] + output_padding[i] for i in range(spatial)]
    y = np.zeros((x.shape[0], outputs * group, *full), x.dtype)
    for at in itertools.product(*map(range, x.shape[2:])):
        for tap in itertools.product(*map(range, kernel)):
            to = tuple(a * s + t for a, s, t in zip(at, strides, tap))
            for c in range(w.shape[0]):
                g = c // inputs
                y[(slice(None), slice(g * outputs, (g + 1) * outputs)) + to] += (
                    x[(slice(None), slice(c, c + 1)) + at] * w[(slice(c, c + 1), slice(None)) + tap])
    crop = tuple(slice(pads[i], full[i] - pads[i + spatial]) for i in range(spatial))
    return y[(slice(None), slice(None)) + crop] + bias.reshape((1, -1) + (1,) * spatial)


def pool(x, kernel, strides, pads, reduce, outside):
    axes = tuple(range(2, x.ndim))
    return stacked(((at, reduce(part, axes)) for at, part in windows(x, kernel, strides, pads, [1] * len(kernel), outside)),
                   len(kernel))


def positions(x, kernel, strides, pads, lowest, by_columns=False):
    """The place of the first maximum of every window, in all of x; `by_columns`: the first spatial axis of a plane goes fastest."""
    planes = x.reshape((-1,) + x.shape[2:])
    numbers = np.arange(x.size).reshape(planes.shape)
    if by_columns:
        numbers = np.arange(x.size).reshape((len(planes),) + x.shape[:1:-1]).transpose(0, *range(x.ndim - 2, 0, -1))
    taps = lambda values, outside: windows(values.reshape(x.shape), kernel, strides, pads, [1] * len(kernel), outside)
    flat = lambda part: part.reshape(part.shape[:2] + (-1,))
    return stacked(((at, np.take_along_axis(flat(where), flat(np.where(where < 0, lowest, part)).argmax(-1)[..., None], -1)[..., 0])
                    for (at, part), (_, where) in zip(taps(planes, lowest), taps(numbers, -1))), len(kernel))


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_step(x, w, r, b, h, c, p):
    units = h.shape[-1]
    i, o, f, g = np.split(x @ w.T + h @ r.T + b[:4 * units] + b[4 * units:], 4, -1)
    i, f = sigmoid(i + p[:units] * c), sigmoid(f + p[2 * units:] * c)
    c = f * c + i * np.tanh(g)
    return sigmoid(o + p[units:2 * units] * c) * np.tanh(c), c


def gru_step(linear):
    def step(x, w, r, b, h, c, p):
        units = h.shape[-1]
        (wz, wr, wh), (rz, rr, rh) = np.split(w, 3), np.split(r, 3)
        bz, br, bh, cz, cr, ch = np.split(b, 6)
        z, gate = sigmoid(x @ wz.T + h @ rz.T + bz + cz), sigmoid(x @ wr.T + h @ rr.T + br + cr)
        state = gate * (h @ rh.T + ch) if linear else (gate * h) @ rh.T + ch
        return (1 - z) * np.tanh(x @ wh.T + bh + state) + z * h, c
    return step


def rnn_step(x, w, r, b, h, c, p):
    units = h.shape[-1]
    return np.maximum(x @ w.T + h @ r.T + b[:units] + b[units:], 0), c


def recurrence(step, x, w, r, b, lengths, h, c, p):
    """Y, Y_h and Y_c of both directions, the second from the end."""
    steps, batch, directions = x.shape[0], x.shape[1], w.shape[0]
    y, h, c = np.zeros((steps, directions, batch, h.shape[-1]), x.dtype), h.copy(), c.copy()
    for d, n in itertools.product(range(directions), range(batch)):
        for t in range(lengths[n]) if d == 0 else reversed(range(lengths[n])):
            h[d, n], c[d, n] = step(x[t, n], w[d], r[d], b[d], h[d, n], c[d, n], p[d])
            y[t, d, n] = h[d, n]
    return y, h, c


# Models ------------------------------------------------------------------------------------------------------------------


class Case:
    """A model, its inputs and what it gives for them."""

    TYPES = {"float32": "float", "float64": "double", "float16": "float16", "int64": "int64", "int32": "int32"}

    def __init__(self, opset=17):
        if np is None:
            raise Skip("no numpy; `scripts/install_packages.sh build` installs it")
        self.random = np.random.RandomState(7)
        self.model, self.inputs, self.outputs = Model(opset), {}, {}

    def info(self, name, value):
        return f"{self.TYPES[value.dtype.name]}[{','.join(map(str, value.shape))}] {name}"

    def input(self, name, value):
        self.model.inputs.append(self.info(name, value))
        self.inputs[name] = value
        return value

    def reals(self, name, element, *shape):
        return self.input(name, (self.random.rand(*shape) * 2 - 1).astype(element))

    def node(self, text, **results):
        self.model.nodes.append(text)
        for name, value in results.items():
            self.outputs[name] = value
            self.model.outputs.append(self.info(name, value))

    def verify(self, world, *options):
        path, data = world.folder / "model.onnxtxt", world.folder / "data"
        data.mkdir()
        path.write_text(self.model.text())
        np.savez(data / "inputs.npz", **self.inputs)
        np.savez(data / "outputs.npz", **self.outputs)
        world.run([world.gcompile, "verify", path, "--data", data, "-q", *options])


def three_axes(element):
    case = Case(26)
    x, w = case.reals("x", element, 2, 4, 5, 6, 4), case.reals("w", element, 6, 2, 3, 2, 3)
    b, u, v = case.reals("b", element, 6), case.reals("u", element, 4, 3, 2, 3, 2), case.reals("v", element, 6)
    case.node("y = Conv<group = 2, strides = [2, 1, 1], pads = [1, 0, 2, 1, 1, 1], dilations = [1, 2, 1]>(x, w, b)",
              y=conv(x, w, b, [2, 1, 1], [1, 0, 2, 1, 1, 1], [1, 2, 1], 2))
    case.node('s = Conv<auto_pad = "SAME_UPPER", group = 2>(x, w, b)',
              s=conv(x, w, b, [1, 1, 1], [1, 0, 1, 1, 1, 1], [1, 1, 1], 2))
    case.node("t = ConvTranspose<group = 2, strides = [2, 1, 3], pads = [1, 0, 0, 0, 1, 1], output_padding = [1, 0, 2]>"
              "(x, u, v)", t=conv_transpose(x, u, v, [2, 1, 3], [1, 0, 0, 0, 1, 1], 2, [1, 0, 2]))
    window = "kernel_shape = [2, 3, 2], strides = [2, 1, 2], pads = [1, 1, 0, 0, 1, 1]"
    taps = ([2, 3, 2], [2, 1, 2], [1, 1, 0, 0, 1, 1])
    case.node(f"m = MaxPool<{window}>(x)", m=pool(x, *taps, np.max, -np.inf))
    case.node(f"a = AveragePool<{window}, count_include_pad = 1>(x)", a=pool(x, *taps, np.mean, 0))
    case.node(f"e = AveragePool<{window}>(x)", e=pool(x, *taps, np.nanmean, np.nan))
    cubes = lambda part, axes: (np.abs(part)**3).sum(axes)**(1 / 3)
    case.node(f"l = LpPool<{window}, p = 3>(x)", l=pool(x, *taps, cubes, 0).astype(element))
    return case


def four_axes():
    case = Case()
    x, w, b = (case.reals(*args) for args in (("x", "float32", 1, 2, 4, 3, 3, 4), ("w", "float32", 3, 2, 2, 2, 1, 2),
                                              ("b", "float32", 3)))
    case.node("y = Conv(x, w, b)", y=conv(x, w, b, [1] * 4, [0] * 8, [1] * 4, 1))
    return case


def integer_images():
    """Bytes: maxima and where they are, and exact sums."""
    case = Case()
    case.TYPES = {**case.TYPES, "uint8": "uint8"}
    x = case.input("x", case.random.randint(0, 256, (1, 2, 4, 5, 4)).astype(np.uint8))
    w = case.input("w", case.random.randint(0, 256, (3, 2, 2, 2, 3)).astype(np.uint8))
    case.node("m = MaxPool<kernel_shape = [2, 2, 3], pads = [1, 0, 1, 0, 1, 1]>(x)",
              m=pool(x, [2, 2, 3], [1] * 3, [1, 0, 1, 0, 1, 1], np.max, 0))
    few = case.input("few", case.random.randint(1, 4, (2, 2, 5, 4)).astype(np.uint8))
    for name, order in (("rows", 0), ("columns", 1)):
        case.node(f"{name}_m, {name} = MaxPool<kernel_shape = [3, 2], pads = [1, 1, 1, 0], storage_order = {order}>(few)",
                  **{f"{name}_m": pool(few, [3, 2], [1, 1], [1, 1, 1, 0], np.max, 0),
                     name: positions(few, [3, 2], [1, 1], [1, 1, 1, 0], 0, order == 1)})
    f = case.reals("f", "float32", 2, 3, 4, 3, 5)
    case.node("deep_m, deep = MaxPool<kernel_shape = [2, 2, 2], strides = [2, 1, 2]>(f)",
              deep_m=pool(f, [2] * 3, [2, 1, 2], [0] * 6, np.max, -np.inf),
              deep=positions(f, [2] * 3, [2, 1, 2], [0] * 6, -np.inf))
    case.node("c = ConvInteger<pads = [0, 1, 1, 1, 0, 1]>(x, w)",
              c=conv(x.astype(np.int32), w.astype(np.int32), np.zeros(3, np.int32), [1] * 3, [0, 1, 1, 1, 0, 1], [1] * 3,
                     1).astype(np.int32))
    return case


def recurrences(element):
    """Both directions, sequences of several lengths, every optional operand."""
    case = Case(14)
    steps, batch, inputs, units = 5, 3, 4, 6
    x, c = case.reals("x", element, steps, batch, inputs), case.reals("c", element, 2, batch, units)
    h = case.reals("h", element, 2, batch, units)
    lengths = case.input("lengths", np.array([5, 0, 3], np.int32))
    p = case.reals("p", element, 2, 3 * units)
    for name, operator, gates, step, attributes in (
            ("lstm", "LSTM", 4, lstm_step, ""), ("gru", "GRU", 3, gru_step(False), ""),
            ("linear", "GRU", 3, gru_step(True), ", linear_before_reset = 1"),
            ("rnn", "RNN", 1, rnn_step, ', activations = ["Relu", "Relu"]')):
        w, r = (case.reals(f"{name}_{part}", element, 2, gates * units, width)
                for part, width in (("w", inputs), ("r", units)))
        b = case.reals(f"{name}_b", element, 2, 2 * gates * units)
        y, last, cells = recurrence(step, x, w, r, b, lengths, h, c, p)
        results = {f"{name}_y": y, f"{name}_h": last}
        more = ""
        if operator == "LSTM":
            results["lstm_c"], more = cells, ", c, p"
        case.node(f'{", ".join(results)} = {operator}<hidden_size = {units}, direction = "bidirectional"{attributes}>'
                  f"(x, {name}_w, {name}_r, {name}_b, lengths, h{more})", **results)
    return case


def halves():
    """Elements that 16 bits hold exactly; sums that they do not hold on the way."""
    case = Case(26)
    x = case.input("x", (case.random.permutation(2 * 9 * 3).reshape(2, 9, 3) / 4 - 5).astype(np.float16))
    order = np.argsort(-x, 1, kind="stable")[:, :4]
    case.model.constants.extend(["int64[1] four = {4}", "int64 one = {1}"])
    case.node("best, at = TopK<axis = 1>(x, four)", best=np.take_along_axis(x, order, 1), at=order)
    wide = np.cumsum(x.astype(np.float32), 1)
    case.node("sums = CumSum(x, one)", sums=wide.astype(np.float16))
    # In float16, 2048 + 1 is 2048.
    ones, bins = case.input("ones", np.ones(3000, np.float16)), np.arange(3000) % 2
    case.input("bins", bins.reshape(-1, 1).astype(np.int64))
    start = case.input("start", np.array([1500, -3], np.float16))
    case.node('counts = ScatterND<reduction = "add">(start, bins, ones)',
              counts=(start.astype(np.float32) + np.bincount(bins)).astype(np.float16))
    low = case.input("low", np.array([[3, -2, 1], [0, 5, -7]], np.float16))
    case.node("products = CumProd<exclusive = 1>(low, one)", products=np.array([[1, 3, -6], [1, 0, 0]], np.float16))
    index, update = case.input("index", np.array([[2, 0]])), case.input("update", np.array([[-4, 9]], np.float16))
    for name, combine in (("add", np.add), ("mul", np.multiply), ("max", np.maximum), ("min", np.minimum)):
        y = low.copy()
        for i, value in zip(index[0], update[0]):
            y[0, i] = combine(y[0, i], value)
        case.node(f'{name} = ScatterElements<axis = 1, reduction = "{name}">(low, index, update)', **{name: y})
    # The same of bfloat16, which numpy does not have, on numbers that it holds.
    small = case.input("small", case.random.permutation(2 * 7).reshape(2, 7).astype(np.float32))
    order = np.argsort(small, 1, kind="stable")[:, :4]
    for line in ("b = Cast<to = 16>(small)", "tb, bat = TopK<largest = 0>(b, four)", "sb = CumSum<reverse = 1>(b, one)"):
        case.model.nodes.append(line)
    case.node("least = Cast<to = 1>(tb)", least=np.take_along_axis(small, order, 1))
    case.node("lat = Identity(bat)", lat=order)
    case.node("rest = Cast<to = 1>(sb)", rest=np.cumsum(small[:, ::-1], 1)[:, ::-1].copy())
    return case


def on_both(make):
    return (lambda world: make().verify(world)), (lambda world: make().verify(world, "--target", "cuda", "--emulate"))


case_three_axes_cpp, case_three_axes_cuda = on_both(lambda: three_axes("float32"))
case_three_axes_of_doubles_cpp, case_three_axes_of_doubles_cuda = on_both(lambda: three_axes("float64"))
case_four_axes_cpp, case_four_axes_cuda = on_both(four_axes)
case_integer_images_cpp, case_integer_images_cuda = on_both(integer_images)
case_recurrences_cpp, case_recurrences_cuda = on_both(lambda: recurrences("float32"))
case_recurrences_of_doubles_cpp, case_recurrences_of_doubles_cuda = on_both(lambda: recurrences("float64"))
case_halves_cpp, case_halves_cuda = on_both(halves)


if __name__ == "__main__":
    run_main(globals())
