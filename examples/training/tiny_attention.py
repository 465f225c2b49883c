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
DEPTHS = 5


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
        # One to three mistakes in a text that may have been sound: brackets turned round, dropped or exchanged.
        for _ in range(random.integers(1, 4) if kind else 0):
            first, second = random.choice(length, 2, replace=False)
            change = random.integers(3)
            if change == 0 and tokens[first] < 3:
                tokens[first] = 3 - tokens[first]
            elif change == 1:
                tokens[first] = 3
            else:
                tokens[[first, second]] = tokens[[second, first]]
        if classify(tokens) == kind:
            return np.pad(tokens, (0, LENGTH - length))


def depths(tokens):
    """How many brackets are open after each token; negative when too many were closed."""
    return np.cumsum((tokens == 1).astype(int) - (tokens == 2), axis=-1)


def classify(tokens):
    depth = depths(tokens)
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

        # Positions start as waves of all lengths, so that "before" and "after" are easy to tell.
        angle = np.arange(LENGTH)[:, None] * np.geomspace(1.5, 0.04, WIDTH // 2)
        values = {"tokens.table": random.normal(0, 0.7, (len(VOCABULARY), WIDTH)),
                  "positions": np.concatenate([np.sin(angle), np.cos(angle)], axis=1)}
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

    def logits(self, tokens, hint=None):
        """(count, classes); `hint` is called with the output of the first block."""
        x = tape.gather_rows(self.parameters["tokens.table"], tokens) + self.parameters["positions"]
        for layer in range(LAYERS):
            name = f"layer{layer}"
            x = x + self.attend(self.norm(x, name + ".norm1"), name)
            y = tape.gelu(self.linear(self.norm(x, name + ".norm2"), name + ".widen"))
            x = x + self.linear(y, name + ".narrow")
            if hint and layer == 0:
                hint(x)
        return self.linear(tape.mean(self.norm(x, "norm"), (1,)), "head")

    def probabilities64(self, tokens):
        """The forward pass in float64 with the float32 weights."""
        return tape.softmax(tape.in_float64(self).logits(tokens)).value


def losses(network, probe, tokens, labels):
    """The classifier's loss, and that of a probe which reads the clipped depth at each token from the first block's
    output: it makes the block count early in the training, and is then thrown away."""
    hints = []

    def hint(x):
        target = np.clip(depths(tokens), -1, DEPTHS - 2) + 1
        hints.append(tape.cross_entropy(tape.reshape(x, (-1, WIDTH)) @ probe, target.ravel()))

    return tape.cross_entropy(network.logits(tokens, hint), labels) + hints[0]


def train(steps=600, batch=24, rate=6e-3):
    """The trained network; prints its accuracy on texts that it has not seen."""
    random = np.random.default_rng(40)
    network = Network(random)
    pool, pool_labels = texts(random, 10000)
    probe = tape.Tensor(random.normal(0, WIDTH**-0.5, (WIDTH, DEPTHS)).astype(np.float32))
    optimiser = tape.Adam({**network.parameters, "probe": probe}, rate, steps)
    for step in range(steps):
        chosen = random.integers(0, len(pool), batch)
        loss = losses(network, probe, pool[chosen], pool_labels[chosen])
        tape.backward(loss)
        optimiser.step()
        if step % 50 == 0:
            print(f"  step {step:4d} loss {float(loss.value):.4f}", flush=True)
    tokens, labels = texts(np.random.default_rng(41), 1500)
    score = float((network.logits(tokens).value.argmax(-1) == labels).mean())
    print(f"  held-out accuracy {score:.4f} on {len(tokens)} texts")
    if score < 0.97:
        raise SystemExit("tiny_attention: training did not reach 97 %")
    return network


class Exporter:
    """The network as ONNX, spelled as exporters do: GELU by Erf, one qkv product that is split."""

    def __init__(self, network):
        self.weights = {name: p.value for name, p in network.parameters.items()}
        self.writer = onnx_out.GraphWriter("tiny_attention")

    def scalar(self, name, value):
        return self.writer.constant(name, np.array(value, np.float32))

    def weight(self, name):
        return self.writer.constant(name, self.weights[name])

    def norm(self, x, name):
        return self.writer.node("LayerNormalization", [x, self.weight(name + ".scale"), self.weight(name + ".bias")],
                                name, axis=-1, epsilon=EPSILON)

    def norm_in_steps(self, x, name):
        """The same in primitive operators, as before opset 17."""
        node = self.writer.node
        mean = node("ReduceMean", [x], name + ".mean", axes=[-1])
        centred = node("Sub", [x, mean], name + ".centred")
        square = node("Pow", [centred, self.scalar("two", 2)], name + ".square")
        variance = node("ReduceMean", [square], name + ".variance", axes=[-1])
        variance = node("Add", [variance, self.scalar("epsilon", EPSILON)], name + ".variance.floored")
        x = node("Div", [centred, node("Sqrt", [variance], name + ".deviation")], name + ".scaled")
        x = node("Mul", [x, self.weight(name + ".scale")], name + ".weighted")
        return node("Add", [x, self.weight(name + ".bias")], name)

    def linear(self, x, name):
        product = self.writer.node("MatMul", [x, self.weight(name + ".weight")], name + ".product")
        return self.writer.node("Add", [product, self.weight(name + ".bias")], name)

    def gelu(self, x, name):
        node = self.writer.node
        y = node("Erf", [node("Div", [x, self.scalar("root_two", math.sqrt(2))], name + ".argument")], name + ".erf")
        y = node("Add", [y, self.scalar("one", 1)], name + ".gate")
        return node("Mul", [node("Mul", [x, y], name + ".gated"), self.scalar("half", 0.5)], name)

    def attend(self, x, name):
        node = self.writer.node
        split = node("Split", [self.linear(x, name + ".qkv")], [f"{name}.{part}" for part in ("query", "key", "value")],
                     axis=2)
        by_head = self.writer.constant("shape.by_head", np.array([1, LENGTH, HEADS, WIDTH // HEADS], np.int64))
        split = [node("Reshape", [part, by_head], part + ".by_head") for part in split]
        query, key, value = (node("Transpose", [part], part + ".heads", perm=order)
                             for part, order in zip(split, ([0, 2, 1, 3], [0, 2, 3, 1], [0, 2, 1, 3])))
        scores = node("MatMul", [query, key], name + ".scores")
        scores = node("Mul", [scores, self.scalar("attention.scale", (WIDTH // HEADS) ** -0.5)], name + ".scores.scaled")
        weights = node("Softmax", [scores], name + ".attention", axis=-1)
        mixed = node("Transpose", [node("MatMul", [weights, value], name + ".mixed")], name + ".mixed.by_token",
                     perm=[0, 2, 1, 3])
        joined = self.writer.constant("shape.joined", np.array([1, LENGTH, WIDTH], np.int64))
        return self.linear(node("Reshape", [mixed, joined], name + ".mixed.joined"), name + ".mix")

    def model(self):
        node = self.writer.node
        tokens = self.writer.input("tokens", np.int64, (1, LENGTH))
        x = node("Gather", [self.weight("tokens.table"), tokens], "embedded", axis=0)
        x = node("Add", [x, self.weight("positions")], "placed")
        for layer in range(LAYERS):
            name = f"layer{layer}"
            x = node("Add", [x, self.attend(self.norm(x, name + ".norm1"), name)], name + ".attended")
            y = self.gelu(self.linear(self.norm(x, name + ".norm2"), name + ".widen"), name + ".gelu")
            x = node("Add", [x, self.linear(y, name + ".narrow")], name + ".out")
        x = node("ReduceMean", [self.norm_in_steps(x, "norm")], "pooled", axes=[1], keepdims=0)
        x = node("Gemm", [x, self.weight("head.weight"), self.weight("head.bias")], "head")
        self.writer.output(node("Softmax", [x], "probabilities", axis=-1), np.float32, (1, len(CLASSES)))
        return self.writer.model()


def test_sets(network):
    """The closest call of each class among held-out texts, with the probabilities computed in float64."""
    tokens, labels = texts(np.random.default_rng(42), 300)
    probabilities = network.probabilities64(tokens)
    for chosen in onnx_out.closest_calls(probabilities, labels):
        yield [("tokens", tokens[[chosen]])], [("probabilities", probabilities[[chosen]].astype(np.float32))]


def make(folder):
    network = train()
    onnx_out.save(folder, Exporter(network).model(), test_sets(network))
