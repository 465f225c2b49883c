"""A small decoder that continues stories word by word: who has what, asked and answered."""

import math

import numpy as np

from . import onnx_files as onnx_out
from . import tape

NAMES = "anna ben carla dora emil fritz greta hans".split()
COLOURS = "red blue green white black yellow".split()
THINGS = "ball boat book drum hat kite lamp sled".split()
WORDS = [".", "?", "has", "a", "the", "who", "what", *NAMES, *COLOURS, *THINGS]
CONTEXT = 64
WIDTH = 64
HEADS = 4
SIZE = WIDTH // HEADS
INNER = 128
LAYERS = 2
EPSILON = 1e-5
FAR_BELOW = -1e4


def story(random, questions):
    """Two to four facts, then questions about them with their answers, as words."""
    count = int(random.integers(2, 5))
    names, things = (random.choice(words, count, replace=False) for words in (NAMES, THINGS))
    colours = random.choice(COLOURS, count)
    words = []
    for name, colour, thing in zip(names, colours, things):
        words += [name, "has", "a", colour, thing, "."]
    for _ in range(questions):
        fact = int(random.integers(count))
        if random.integers(2):
            words += ["who", "has", "the", things[fact], "?", names[fact], "."]
        else:
            words += ["what", "has", names[fact], "?", "a", colours[fact], things[fact], "."]
    return words


def numbers_of(words):
    return np.array([WORDS.index(word) for word in words], np.int64)


def stories(random, count):
    """(count, CONTEXT) numbers of words: stories as long as fit, cut at the end."""
    return np.stack([numbers_of(story(random, 8)[:CONTEXT]) for _ in range(count)])


class Network:
    """Token and position tables; per layer attention to earlier words and a GELU in between, each behind a
    normalisation; the logits of the next word."""

    def __init__(self, random):
        def normal(deviation, *shape):
            return tape.Tensor(random.normal(0, deviation, shape).astype(np.float32))

        def ones():
            return tape.Tensor(np.ones(WIDTH, np.float32))

        def zeros(width):
            return tape.Tensor(np.zeros(width, np.float32))

        # Positions start as waves of all lengths, so that "the word before" is easy to find.
        angle = np.arange(CONTEXT)[:, None] * np.geomspace(1.5, 0.02, WIDTH // 2)
        waves = 0.7 * np.concatenate([np.sin(angle), np.cos(angle)], axis=1)
        self.parameters = {"words.table": normal(0.7, len(WORDS), WIDTH),
                           "positions.table": tape.Tensor(waves.astype(np.float32))}
        for layer in range(LAYERS):
            name = f"layer{layer}"
            for part, inputs, outputs in (("qkv", WIDTH, 3 * WIDTH), ("mix", WIDTH, WIDTH), ("widen", WIDTH, INNER),
                                          ("narrow", INNER, WIDTH)):
                self.parameters[f"{name}.{part}.weight"] = normal(inputs**-0.5, inputs, outputs)
                self.parameters[f"{name}.{part}.bias"] = zeros(outputs)
            for norm in ("norm1", "norm2"):
                self.parameters[f"{name}.{norm}.scale"] = ones()
                self.parameters[f"{name}.{norm}.bias"] = zeros(WIDTH)
        self.parameters["norm.scale"] = ones()
        self.parameters["norm.bias"] = zeros(WIDTH)
        self.parameters["head.weight"] = normal(WIDTH**-0.5, WIDTH, len(WORDS))

    def norm(self, x, name):
        return tape.normalise(x, (-1,), EPSILON) * self.parameters[name + ".scale"] + self.parameters[name + ".bias"]

    def linear(self, x, name):
        return x @ self.parameters[name + ".weight"] + self.parameters[name + ".bias"]

    def attend(self, x, name, caches):
        batch, rows, _ = x.shape
        query, key, value = (tape.transpose(tape.reshape(part, (batch, rows, HEADS, SIZE)), (0, 2, 1, 3))
                             for part in tape.split_last(self.linear(x, name + ".qkv"), 3))
        if caches is not None:
            caches += [key.value, value.value]
        scale = tape.constant(np.array(1 / math.sqrt(SIZE), x.value.dtype))
        later = tape.constant((np.triu(np.ones((rows, rows)), 1) * FAR_BELOW).astype(x.value.dtype))
        weights = tape.softmax(query @ tape.transpose(key, (0, 1, 3, 2)) * scale + later)
        mixed = tape.transpose(weights @ value, (0, 2, 1, 3))
        return self.linear(tape.reshape(mixed, x.shape), name + ".mix")

    def logits(self, ids, caches=None, hint=None):
        """(count, rows, words); `caches` is filled with keys and values, layer by layer; `hint` is called with the output of
        the first."""
        positions = tape.gather_rows(self.parameters["positions.table"], np.arange(ids.shape[1]))
        x = tape.gather_rows(self.parameters["words.table"], ids) + positions
        for layer in range(LAYERS):
            name = f"layer{layer}"
            x = x + self.attend(self.norm(x, name + ".norm1"), name, caches)
            x = x + self.linear(tape.gelu(self.linear(self.norm(x, name + ".norm2"), name + ".widen")), name + ".narrow")
            if hint and layer == 0:
                hint(x)
        return self.norm(x, "norm") @ self.parameters["head.weight"]


def answers_in(ids):
    """Places (in all rows, one after another) of words behind which a word of an answer follows: from "?" up to "."."""
    places = []
    for row, words in enumerate(ids):
        inside = False
        for place, word in enumerate(words[:-1]):
            inside = WORDS[word] == "?" or (inside and WORDS[word] != ".")
            if inside:
                places.append(row * (len(words) - 1) + place)
    return np.array(places)


def score(network, random, count):
    """The part of the words of answers that the network finds."""
    ids = stories(random, count)
    right = network.logits(ids[:, :-1]).value.argmax(-1) == ids[:, 1:]
    return float(right.ravel()[answers_in(ids)].mean())


def subjects(ids):
    """The last name or thing before or at every word that its sentence is about: a fact's name, what a question asks
    for."""
    about = np.zeros_like(ids)
    for row, words in enumerate(ids):
        told = 0
        for place, word in enumerate(words):
            new = WORDS[word] in NAMES or WORDS[word] in THINGS
            begins = place == 0 or WORDS[words[place - 1]] in (".", "the", "has")
            told = 0 if WORDS[word] in ("who", "what") else word if new and begins else told
            about[row, place] = told
    return about


def loss_of(network, probe, ids):
    """The loss of every next word, and of those of answers once more: the others are half chance. A probe reads what a sentence is
    about from the first layer: it makes the layer look back early in the training, and is then thrown away."""
    hints = []

    def hint(x):
        hints.append(tape.cross_entropy(tape.reshape(x, (-1, WIDTH)) @ probe, subjects(ids[:, :-1]).ravel()))

    logits = tape.reshape(network.logits(ids[:, :-1], hint=hint), (-1, len(WORDS)))
    following, places = ids[:, 1:].ravel(), answers_in(ids)
    asked = tape.cross_entropy(tape.gather_rows(logits, places), following[places])
    return tape.cross_entropy(logits, following) + asked + hints[0]


def train(steps=1200, batch=24, rate=4e-3):
    """The trained network; prints how many words of answers it finds in stories that it has not seen."""
    random = np.random.default_rng(60)
    network = Network(random)
    probe = tape.Tensor(random.normal(0, WIDTH**-0.5, (WIDTH, len(WORDS))).astype(np.float32))
    optimiser = tape.Adam({**network.parameters, "probe": probe}, rate, steps)
    for step in range(steps):
        ids = stories(random, batch)
        loss = loss_of(network, probe, ids)
        tape.backward(loss)
        optimiser.step()
        if step % 50 == 0:
            print(f"  step {step:4d} loss {float(loss.value):.4f}", flush=True)
    found = score(network, np.random.default_rng(61), 200)
    print(f"  {found:.4f} of the words of answers")
    if found < 0.99:
        raise SystemExit("storyteller: training did not reach 99 %")
    return network


class Exporter:
    """The network as ONNX with caches, as exporters write decoders: a mask of positions, sizes read from shapes, keys and
    values given back with the new rows behind the old."""

    def __init__(self, network):
        self.weights = {name: p.value for name, p in network.parameters.items()}
        self.writer = onnx_out.GraphWriter("storyteller")

    def ints(self, *values):
        return self.writer.constant("ints." + "_".join(map(str, values)), np.array(values, np.int64))

    def number(self, value):
        return self.writer.constant(f"number.{value}", np.array(value, np.int64))

    def scalar(self, name, value):
        return self.writer.constant(name, np.array(value, np.float32))

    def weight(self, name):
        return self.writer.constant(name, self.weights[name])

    def norm(self, x, name):
        return self.writer.node("LayerNormalization", [x, self.weight(name + ".scale"), self.weight(name + ".bias")],
                                name, axis=-1, epsilon=EPSILON)

    def linear(self, x, name):
        product = self.writer.node("MatMul", [x, self.weight(name + ".weight")], name + ".product")
        return self.writer.node("Add", [product, self.weight(name + ".bias")], name)

    def gelu(self, x, name):
        node = self.writer.node
        y = node("Erf", [node("Div", [x, self.scalar("root_two", math.sqrt(2))], name + ".argument")], name + ".erf")
        y = node("Add", [y, self.scalar("one", 1)], name + ".gate")
        return node("Mul", [node("Mul", [x, y], name + ".gated"), self.scalar("half", 0.5)], name)

    def size(self, value, axis, name):
        shape = self.writer.node("Shape", [value], name + ".shape")
        return self.writer.node("Gather", [shape, self.number(axis)], name, axis=0)

    def mask(self, ids, cache):
        """The positions of the new words, and what is added to scores: far below zero for later words."""
        node = self.writer.node
        past, rows = self.size(cache, 2, "past.size"), self.size(ids, 1, "rows.size")
        total = node("Add", [past, rows], "total.size")
        positions = node("Range", [past, total, self.number(1)], "positions")
        columns = node("Range", [self.number(0), total, self.number(1)], "columns")
        later = node("Greater", [columns, node("Unsqueeze", [positions, self.ints(1)], "positions.column")], "later")
        hidden = node("Cast", [later], "later.as_float", to=onnx_out.TensorProto.FLOAT)
        return positions, node("Mul", [hidden, self.scalar("far_below", FAR_BELOW)], "mask")

    def attend(self, x, mask, layer):
        node, name = self.writer.node, f"layer{layer}"
        split = node("Split", [self.linear(x, name + ".qkv")], [f"{name}.{part}" for part in ("query", "key", "value")],
                     axis=2)
        by_head = self.ints(0, 0, HEADS, SIZE)
        query, key, value = (node("Transpose", [node("Reshape", [part, by_head], part + ".by_head")], part + ".heads",
                                  perm=[0, 2, 1, 3]) for part in split)
        key, value = (node("Concat", [f"past_{part}_{layer}", new], f"present_{part}_{layer}", axis=2)
                      for part, new in (("key", key), ("value", value)))
        scores = node("MatMul", [query, node("Transpose", [key], name + ".keys", perm=[0, 1, 3, 2])], name + ".scores")
        scores = node("Mul", [scores, self.scalar("attention.scale", SIZE**-0.5)], name + ".scores.scaled")
        weights = node("Softmax", [node("Add", [scores, mask], name + ".scores.masked")], name + ".attention", axis=-1)
        mixed = node("Transpose", [node("MatMul", [weights, value], name + ".mixed")], name + ".mixed.by_word",
                     perm=[0, 2, 1, 3])
        return self.linear(node("Reshape", [mixed, self.ints(0, 0, WIDTH)], name + ".mixed.joined"), name + ".mix")

    def model(self):
        node = self.writer.node
        ids = self.writer.input("ids", np.int64, ("batch", "rows"))
        caches = [(part, layer) for layer in range(LAYERS) for part in ("key", "value")]
        for part, layer in caches:
            self.writer.input(f"past_{part}_{layer}", np.float32, ("batch", HEADS, "past", SIZE))
        positions, mask = self.mask(ids, "past_key_0")
        x = node("Gather", [self.weight("words.table"), ids], "embedded", axis=0)
        x = node("Add", [x, node("Gather", [self.weight("positions.table"), positions], "placed", axis=0)], "words")
        for layer in range(LAYERS):
            name = f"layer{layer}"
            x = node("Add", [x, self.attend(self.norm(x, name + ".norm1"), mask, layer)], name + ".attended")
            y = self.gelu(self.linear(self.norm(x, name + ".norm2"), name + ".widen"), name + ".gelu")
            x = node("Add", [x, self.linear(y, name + ".narrow")], name + ".out")
        node("MatMul", [self.norm(x, "norm"), self.weight("head.weight")], "logits")
        self.writer.output("logits", np.float32, ("batch", "rows", len(WORDS)))
        for part, layer in caches:
            self.writer.output(f"present_{part}_{layer}", np.float32, ("batch", HEADS, "past + rows", SIZE))
        return self.writer.model()


def test_sets(network):
    """A prompt, one word behind it, and two sequences with some words behind others; the numbers are those of float64."""
    twin = tape.in_float64(network)
    ids = stories(np.random.default_rng(62), 2)
    names = [f"{part}_{layer}" for layer in range(LAYERS) for part in ("key", "value")]
    for batch, past, rows in ((1, 0, 24), (1, 24, 1), (2, 30, 5)):
        told = ids[:batch, :past + rows]
        caches = []
        logits = twin.logits(told, caches).value[:, past:]
        yield ([("ids", told[:, past:])] + [(f"past_{name}", cache[:, :, :past].astype(np.float32))
                                            for name, cache in zip(names, caches)],
               [("logits", logits.astype(np.float32))] + [(f"present_{name}", cache.astype(np.float32))
                                                          for name, cache in zip(names, caches)])


def write_words(path):
    """The words by their numbers, for programs in C."""
    listed = "".join(f'    "{word}",\n' for word in WORDS)
    path.write_text("/* The words of the storyteller by their numbers; written by make_models.py. */\n"
                    f"static const char* const kWords[] = {{\n{listed}}};\n")


def make(folder):
    network = train()
    onnx_out.save(folder, Exporter(network).model(), test_sets(network))
    write_words(folder / "words.inc")
