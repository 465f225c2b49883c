"""A small transformer encoder that reads 32 tokens and says whether their brackets balance."""

import math

import numpy as np

from . import onnx_files as onnx_out
from . import tape

CLASSES = ("balanced", "unclosed", "unexpected")
VOCABULARY = " ()abcdef"
LENGTH = 32
WIDTH = 64
HEADS = 4
INNER = 128
LAYERS = 2
EPSILON = 1e-5


def bracket_text(random, kind):
    """LENGTH tokens: letters and brackets, then padding. `kind` 0: balanced; 1: some bracket is never closed and none
    closes too early; 2: some bracket closes what was not open."""
    while True:
        length = int(random.integers(8, LENGTH + 1))
        tokens = random.integers(3, len(VOCABULARY), length)
        depth, open_rate = 0, random.uniform(0.2, 0.5)
        for place in range(length):
            if random.uniform() < 0.7:
                closes = depth > 0 and (random.uniform() > open_rate or depth >= length - place)
                tokens[place] = 2 if closes else 1
                depth += -1 if closes else 1
        if kind:
            # One mistake in an otherwise sound text: brackets turned round, dropped or exchanged.
            brackets = np.flatnonzero(tokens < 3)
            if len(brackets) > 1:
                first, second = random.choice(brackets, 2, replace=False)
                change = random.integers(3)
                if change == 0:
                    tokens[first] = 3 - tokens[first]
                elif change == 1:
                    tokens[first] = 3
                else:
                    tokens[[first, second]] = tokens[[second, first]]
        if classify(tokens) == kind:
            return np.pad(tokens, (0, LENGTH - length))


def classify(tokens):
    depth = np.cumsum((tokens == 1).astype(int) - (tokens == 2))
    return 2 if depth.min() < 0 else int(depth[-1] > 0)


def texts(random, count):
    """(tokens (count, LENGTH) int64, classes (count,)), every class equally often."""
    labels = random.permutation(np.arange(count) % len(CLASSES))
    return np.stack([bracket_text(random, kind) for kind in labels]).astype(np.int64), labels


class Network:
    """Parameters and the forward pass: pre-norm encoder blocks, mean over the tokens, a linear head."""

    def __init__(self, random):
        def matrix(rows, columns, gain=1.0):
            return random.normal(0, gain * rows**-0.5, (rows, columns))

        values = {"tokens": random.normal(0, 0.5, (len(VOCABULARY), WIDTH)),
                  "positions": random.normal(0, 0.5, (LENGTH, WIDTH))}
        for layer in range(LAYERS):
            for name, array in (("norm1.scale", np.ones(WIDTH)), ("norm1.bias", np.zeros(WIDTH)),
                                ("qkv.weight", matrix(WIDTH, 3 * WIDTH)), ("qkv.bias", np.zeros(3 * WIDTH)),
                                ("mix.weight", matrix(WIDTH, WIDTH, 0.5)), ("mix.bias", np.zeros(WIDTH)),
                                ("norm2.scale", np.ones(WIDTH)), ("norm2.bias", np.zeros(WIDTH)),
                                ("widen.weight", matrix(WIDTH, INNER)), ("widen.bias", np.zeros(INNER)),
                                ("narrow.weight", matrix(INNER, WIDTH, 0.5)), ("narrow.bias", np.zeros(WIDTH))):
                values[f"layer{layer}.{name}"] = array
        values.update({"norm.scale": np.ones(WIDTH), "norm.bias": np.zeros(WIDTH),
                       "head.weight": matrix(WIDTH, len(CLASSES)), "head.bias": np.zeros(len(CLASSES))})
        self.parameters = {k: tape.Tensor(v.astype(np.float32)) for k, v in values.items()}

    def norm(self, x, name):
        p = self.parameters
        return tape.normalise(x, (-1,), EPSILON) * p[name + ".scale"] + p[name + ".bias"]

    def linear(self, x, name):
        return x @ self.parameters[name + ".weight"] + self.parameters[name + ".bias"]

    def attend(self, x, name):
        batch = x.shape[0]
        query, key, value = (tape.reshape(part, (batch, LENGTH, HEADS, WIDTH // HEADS))
                             for part in tape.split_last(self.linear(x, name + ".qkv"), 3))
        query = tape.transpose(query, (0, 2, 1, 3))
        scale = tape.constant(np.array(1 / math.sqrt(WIDTH // HEADS), x.value.dtype))
        weights = tape.softmax(query @ tape.transpose(key, (0, 2, 3, 1)) * scale)
        mixed = tape.transpose(weights @ tape.transpose(value, (0, 2, 1, 3)), (0, 2, 1, 3))
        return self.linear(tape.reshape(mixed, x.shape), name + ".mix")

    def logits(self, tokens):
        x = tape.gather_rows(self.parameters["tokens"], tokens) + self.parameters["positions"]
        for layer in range(LAYERS):
            name = f"layer{layer}"
            x = x + self.attend(self.norm(x, name + ".norm1"), name)
            y = tape.gelu(self.linear(self.norm(x, name + ".norm2"), name + ".widen"))
            x = x + self.linear(y, name + ".narrow")
        return self.linear(tape.mean(self.norm(x, "norm"), (1,)), "head")

    def probabilities64(self, tokens):
        """The forward pass in float64 with the float32 weights."""
        saved = self.parameters
        self.parameters = {k: tape.constant(v.value.astype(np.float64)) for k, v in saved.items()}
        result = tape.softmax(self.logits(tokens)).value
        self.parameters = saved
        return result


def train(steps=700, batch=48, rate=2e-3):
    """The trained network; prints its accuracy on texts that it has not seen."""
    random = np.random.default_rng(40)
    network = Network(random)
    pool, pool_labels = texts(random, 12000)
    optimiser = tape.Adam(network.parameters, rate, steps)
    for step in range(steps):
        chosen = random.integers(0, len(pool), batch)
        loss = tape.cross_entropy(network.logits(pool[chosen]), pool_labels[chosen])
        tape.backward(loss)
        optimiser.step()
        if step % 50 == 0:
            print(f"  step {step:4d} loss {float(loss.value):.4f}", flush=True)
    tokens, labels = texts(np.random.default_rng(41), 1500)
    score = float((network.logits(tokens).value.argmax(-1) == labels).mean())
    print(f"  held-out accuracy {score:.4f} on {len(tokens)} texts")
    if score < 0.95:
        raise SystemExit("tiny_attention: training did not reach 95 %")
    return network
