"""Reverse-mode differentiation over NumPy arrays: the training half of the examples.

A `Tensor` holds an array and the rule that sends its gradient to the tensors it came from. `backward` walks the
recorded operations once, newest first. Each function computes in the element type of its inputs: training runs in
float32, and the expected outputs of the examples are the same functions run in float64.

Images are channels last (batch, height, width, channels); the ONNX writers transpose the weights.
"""

import copy
import math

import numpy as np


class Tensor:
    """An array, its gradient after `backward`, and how the gradient flows to its parents."""

    serial_ = 0

    def __init__(self, value, parents=(), rule=None):
        self.value = value
        self.grad = None
        self.parents = [parent for parent in parents if parent.needs_grad]
        self.needs_grad = rule is None or bool(self.parents)
        self.rule = rule if self.parents else None
        Tensor.serial_ += 1
        self.serial = Tensor.serial_

    @property
    def shape(self):
        return self.value.shape

    def accumulate(self, grad):
        """Adds a gradient; one of a broadcast operand is summed back to the operand's shape."""
        if not self.needs_grad:
            return
        extra = grad.ndim - self.value.ndim
        if extra:
            grad = grad.sum(axis=tuple(range(extra)))
        widened = tuple(i for i, size in enumerate(self.value.shape) if size == 1 and grad.shape[i] != 1)
        if widened:
            grad = grad.sum(axis=widened, keepdims=True)
        self.grad = grad if self.grad is None else self.grad + grad

    def __add__(self, other):
        return add(self, other)

    def __mul__(self, other):
        return multiply(self, other)

    def __matmul__(self, other):
        return matmul(self, other)


def constant(value):
    """A tensor that takes no gradient."""
    tensor = Tensor(value)
    tensor.needs_grad = False
    return tensor


def in_float64(network):
    """A copy of the network whose `parameters` are float64 constants of the same values."""
    twin = copy.copy(network)
    twin.parameters = {name: constant(p.value.astype(np.float64)) for name, p in network.parameters.items()}
    return twin


def backward(loss):
    """Fills `grad` of everything that the scalar `loss` depends on."""
    reached = {loss.serial: loss}
    pending = [loss]
    while pending:
        for parent in pending.pop().parents:
            if parent.serial not in reached:
                reached[parent.serial] = parent
                pending.append(parent)
    loss.grad = np.ones_like(loss.value)
    for serial in sorted(reached, reverse=True):
        tensor = reached[serial]
        if tensor.rule is not None:
            tensor.rule(tensor.grad)
            tensor.grad = None


def add(a, b):
    def rule(grad):
        a.accumulate(grad)
        b.accumulate(grad)

    return Tensor(a.value + b.value, (a, b), rule)


def multiply(a, b):
    def rule(grad):
        a.accumulate(grad * b.value)
        b.accumulate(grad * a.value)

    return Tensor(a.value * b.value, (a, b), rule)


def matmul(a, b):
    """a @ b; b is a matrix, or has the same leading axes as a."""

    def rule(grad):
        if b.value.ndim == 2:
            rows = grad.reshape(-1, grad.shape[-1])
            if a.needs_grad:
                a.accumulate((rows @ np.ascontiguousarray(b.value.T)).reshape(a.shape))
            if b.needs_grad:
                b.accumulate(np.ascontiguousarray(a.value.reshape(-1, a.shape[-1]).T) @ rows)
        else:
            a.accumulate(grad @ np.swapaxes(b.value, -1, -2))
            b.accumulate(np.swapaxes(a.value, -1, -2) @ grad)

    if b.value.ndim == 2:
        product = (a.value.reshape(-1, a.shape[-1]) @ b.value).reshape(a.shape[:-1] + (b.shape[-1],))
    else:
        product = a.value @ b.value
    return Tensor(product, (a, b), rule)


def relu(x):
    return Tensor(np.maximum(x.value, 0), (x,), lambda grad: x.accumulate(grad * (x.value > 0)))


def sigmoid(x):
    y = 1 / (1 + np.exp(-x.value))
    return Tensor(y, (x,), lambda grad: x.accumulate(grad * y * (1 - y)))


def tanh(x):
    y = np.tanh(x.value)
    return Tensor(y, (x,), lambda grad: x.accumulate(grad * (1 - y * y)))


def log_energy(x, floor):
    """log(x * x + floor)."""
    energy = x.value * x.value + x.value.dtype.type(floor)
    return Tensor(np.log(energy), (x,), lambda grad: x.accumulate(grad * 2 * x.value / energy))


def gru_cell(projected, recurrent, h):
    """One step of a gated recurrent unit (ONNX GRU with linear_before_reset=1): projected = x W + b and recurrent =
    h R + c, both (count, 3 * width) with the gates update, reset, new side by side; h (count, width)."""
    width = h.shape[-1]
    u, r, n = (slice(i * width, (i + 1) * width) for i in range(3))
    update = 1 / (1 + np.exp(-(projected.value[:, u] + recurrent.value[:, u])))
    reset = 1 / (1 + np.exp(-(projected.value[:, r] + recurrent.value[:, r])))
    new = np.tanh(projected.value[:, n] + reset * recurrent.value[:, n])

    def rule(grad):
        inner = grad * (1 - update) * (1 - new * new)
        slope = np.empty_like(projected.value)
        slope[:, u] = grad * (h.value - new) * update * (1 - update)
        slope[:, r] = inner * recurrent.value[:, n] * reset * (1 - reset)
        slope[:, n] = inner
        projected.accumulate(slope)
        slope = slope.copy()
        slope[:, n] *= reset
        recurrent.accumulate(slope)
        h.accumulate(grad * update)

    return Tensor((1 - update) * new + update * h.value, (projected, recurrent, h), rule)


def erf(x):
    """The error function: exact in float64; in float32 Abramowitz and Stegun 7.1.26, |error| < 1.5e-7."""
    if x.dtype == np.float64:
        return np.vectorize(math.erf, otypes=[np.float64])(x)
    t = 1 / (1 + np.float32(0.3275911) * np.abs(x))
    series = np.float32(1.061405429)
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series = series * t + np.float32(coefficient)
    return np.sign(x) * (1 - series * t * np.exp(-x * x))


def gelu(x):
    """x * (1 + erf(x / sqrt 2)) / 2."""
    gate = 0.5 * (1 + erf(x.value * x.value.dtype.type(math.sqrt(0.5))))

    def rule(grad):
        density = np.exp(-0.5 * x.value * x.value) * x.value.dtype.type(1 / math.sqrt(2 * math.pi))
        x.accumulate(grad * (gate + x.value * density))

    return Tensor(x.value * gate, (x,), rule)


def softmax(x):
    """Over the last axis."""
    raised = np.exp(x.value - x.value.max(axis=-1, keepdims=True))
    y = raised / raised.sum(axis=-1, keepdims=True)
    return Tensor(y, (x,), lambda grad: x.accumulate(y * (grad - (grad * y).sum(axis=-1, keepdims=True))))


def cross_entropy(logits, labels):
    """Mean over the batch of -log softmax(logits)[label]."""
    shifted = logits.value - logits.value.max(axis=-1, keepdims=True)
    log_probability = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    rows = np.arange(len(labels))

    def rule(grad):
        slope = np.exp(log_probability)
        slope[rows, labels] -= 1
        logits.accumulate(grad * slope / logits.value.dtype.type(len(labels)))

    return Tensor(-log_probability[rows, labels].mean(), (logits,), rule)


def mean_square(x):
    return Tensor((x.value * x.value).mean(), (x,),
                  lambda grad: x.accumulate(grad * x.value * x.value.dtype.type(2 / x.value.size)))


def mean(x, axes):
    """Mean over `axes`, which go away."""
    count = math.prod(x.shape[axis] for axis in axes)
    scale = x.value.dtype.type(1 / count)
    return Tensor(x.value.mean(axis=axes), (x,),
                  lambda grad: x.accumulate(np.broadcast_to(np.expand_dims(grad * scale, axes), x.shape)))


def reshape(x, shape):
    return Tensor(x.value.reshape(shape), (x,), lambda grad: x.accumulate(grad.reshape(x.shape)))


def transpose(x, order):
    inverse = np.argsort(order)
    return Tensor(x.value.transpose(order), (x,), lambda grad: x.accumulate(grad.transpose(inverse)))


def split_last(x, count):
    """`count` equal parts of the last axis."""
    width = x.shape[-1] // count

    def part(index):
        place = slice(index * width, (index + 1) * width)

        def rule(grad):
            full = np.zeros_like(x.value)
            full[..., place] = grad
            x.accumulate(full)

        return Tensor(x.value[..., place], (x,), rule)

    return [part(index) for index in range(count)]


def unstack(x):
    """The slices along the first axis; their gradients meet in one array before they go on to x."""
    whole = Tensor(x.value, (x,), x.accumulate)

    def part(index):
        def rule(grad):
            if whole.grad is None:
                whole.grad = np.zeros_like(x.value)
            whole.grad[index] += grad

        return Tensor(x.value[index], (whole,), rule)

    return [part(index) for index in range(x.shape[0])]


def stack(parts):
    """Joins tensors along a new first axis."""

    def rule(grad):
        for index, part in enumerate(parts):
            part.accumulate(grad[index])

    return Tensor(np.stack([part.value for part in parts]), parts, rule)


def gather_rows(table, indices):
    def rule(grad):
        full = np.zeros_like(table.value)
        np.add.at(full, indices, grad)
        table.accumulate(full)

    return Tensor(table.value[indices], (table,), rule)


def normalise(x, axes, epsilon, statistics=None):
    """(x - mean) / sqrt(variance + epsilon) over `axes`, or with the given (mean, variance), which are then constants."""
    if statistics is None:
        average = x.value.mean(axis=axes, keepdims=True)
        variance = x.value.var(axis=axes, keepdims=True)
    else:
        average, variance = statistics
    scale = 1 / np.sqrt(variance + x.value.dtype.type(epsilon))
    y = (x.value - average) * scale

    def rule(grad):
        if statistics is None:
            grad = grad - grad.mean(axis=axes, keepdims=True) - y * (grad * y).mean(axis=axes, keepdims=True)
        x.accumulate(grad * scale)

    result = Tensor(y, (x,), rule)
    result.statistics = (average, variance)
    return result


def convolution(x, weight, stride):
    """x (n, h, w, c), weight (3, 3, c, m), padding 1: (n, h/stride, w/stride, m)."""
    batch, height, width, channels = x.shape
    rows, columns = height // stride, width // stride
    padded = np.pad(x.value, ((0, 0), (1, 1), (1, 1), (0, 0)))
    patches = np.empty((batch, rows, columns, 3, 3, channels), x.value.dtype)
    for i in range(3):
        for j in range(3):
            patches[:, :, :, i, j] = padded[:, i:i + height:stride, j:j + width:stride]
    patches = patches.reshape(-1, 9 * channels)
    matrix = weight.value.reshape(9 * channels, -1)

    def rule(grad):
        flat = grad.reshape(-1, grad.shape[-1])
        weight.accumulate((np.ascontiguousarray(patches.T) @ flat).reshape(weight.shape))
        if x.needs_grad:
            slopes = (flat @ np.ascontiguousarray(matrix.T)).reshape(batch, rows, columns, 3, 3, channels)
            full = np.zeros_like(padded)
            for i in range(3):
                for j in range(3):
                    full[:, i:i + height:stride, j:j + width:stride] += slopes[:, :, :, i, j]
            x.accumulate(full[:, 1:-1, 1:-1])

    return Tensor((patches @ matrix).reshape(batch, rows, columns, -1), (x, weight), rule)


def depthwise_convolution(x, weight, stride):
    """x (n, h, w, c), weight (3, 3, c), padding 1: (n, h/stride, w/stride, c)."""
    _, height, width, _ = x.shape
    padded = np.pad(x.value, ((0, 0), (1, 1), (1, 1), (0, 0)))
    places = [(i, j, (slice(None), slice(i, i + height, stride), slice(j, j + width, stride)))
              for i in range(3) for j in range(3)]
    y = sum(padded[place] * weight.value[i, j] for i, j, place in places)

    def rule(grad):
        full = np.zeros_like(padded)
        slope = np.empty_like(weight.value)
        for i, j, place in places:
            full[place] += grad * weight.value[i, j]
            slope[i, j] = (grad * padded[place]).sum(axis=(0, 1, 2))
        weight.accumulate(slope)
        x.accumulate(full[:, 1:-1, 1:-1])

    return Tensor(y, (x, weight), rule)


class Adam:
    """Adam (Kingma and Ba, 2015) with gradient clipping, a linear warm-up and a cosine to zero."""

    def __init__(self, parameters, rate, steps, warm_up=50, clip=1.0):
        self.parameters = parameters
        self.rate, self.steps, self.warm_up, self.clip = rate, steps, warm_up, clip
        self.step_count = 0
        self.moments = {name: (np.zeros_like(p.value), np.zeros_like(p.value)) for name, p in parameters.items()}

    def step(self):
        """Moves every parameter against its gradient, then clears the gradients."""
        self.step_count += 1
        t = self.step_count
        rate = self.rate * min(1, t / self.warm_up) * 0.5 * (1 + math.cos(math.pi * t / self.steps))
        norm = math.sqrt(sum(float((p.grad * p.grad).sum()) for p in self.parameters.values()))
        shrink = min(1, self.clip / (norm + 1e-12))
        for name, p in self.parameters.items():
            first, second = self.moments[name]
            grad = p.grad * p.value.dtype.type(shrink)
            first += 0.1 * (grad - first)
            second += 0.01 * (grad * grad - second)
            move = first / (1 - 0.9**t) / (np.sqrt(second / (1 - 0.99**t)) + 1e-8)
            p.value = (p.value - rate * move).astype(p.value.dtype)
            p.grad = None
