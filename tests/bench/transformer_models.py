"""BERT-base, ViT and GPT-2 with random weights."""

import math

import numpy as np

from model_sizes import POSITIONS
from model_writer import ModelWriter


def bert_base(size):
    """BERT-base, uncased: embeddings, 12 layers with the normalisation last, the pooler."""
    g = ModelWriter("bert_base")
    width = size.width
    for name in ("input_ids", "attention_mask", "token_type_ids"):
        g.input(name, np.int64, ["batch", size.tokens])
    words = g.node("Gather", [g.random("embeddings.word", (size.classes, width), 0.6), "input_ids"], "embeddings/words")
    types = g.node("Gather", [g.random("embeddings.type", (2, width), 0.6), "token_type_ids"], "embeddings/types")
    places = g.node("Gather", [g.random("embeddings.position", (POSITIONS["bert_base"], width), 0.6),
                               g.integers("position_ids", [list(range(size.tokens))])], "embeddings/positions")
    x = g.node("Add", [g.node("Add", [words, types], "embeddings/Add"), places], "embeddings/Add_1")
    x = g.norm(x, "embeddings.norm", width)
    # 1 for words, 0 for padding, as the term that is added to the scores.
    mask = g.node("Unsqueeze", ["attention_mask", g.integers("mask_axes", [1, 2])], "mask/Unsqueeze")
    mask = g.node("Cast", [mask], "mask/Cast", to=1)
    mask = g.node("Sub", [g.scalar("one", 1), mask], "mask/Sub")
    mask = g.node("Mul", [mask, g.scalar("lowest", np.finfo(np.float32).min)], "mask/Mul")
    for layer in range(size.layers):
        at = f"layer.{layer}"
        q = g.split_heads(g.linear(x, f"{at}.query", width, width), f"{at}.query", size, [0, 2, 1, 3])
        k = g.split_heads(g.linear(x, f"{at}.key", width, width), f"{at}.key", size, [0, 2, 3, 1])
        v = g.split_heads(g.linear(x, f"{at}.value", width, width), f"{at}.value", size, [0, 2, 1, 3])
        scores = g.node("MatMul", [q, k], f"{at}.attention/MatMul")
        scores = g.node("Div", [scores, g.scalar("root", math.sqrt(size.head_size))], f"{at}.attention/Div")
        scores = g.node("Add", [scores, mask], f"{at}.attention/Add")
        weights = g.node("Softmax", [scores], f"{at}.attention/Softmax", axis=-1)
        mixed = g.merge_heads(g.node("MatMul", [weights, v], f"{at}.attention/MatMul_1"), f"{at}.attention", size)
        y = g.linear(mixed, f"{at}.attention.output", width, width)
        x = g.norm(g.node("Add", [y, x], f"{at}.attention/Add_1"), f"{at}.attention.norm", width)
        y = g.gelu(g.linear(x, f"{at}.intermediate", width, 4 * width), f"{at}.gelu")
        y = g.linear(y, f"{at}.output", 4 * width, width)
        x = g.norm(g.node("Add", [y, x], f"{at}.output/Add_1"), f"{at}.output.norm", width)
    g.output(g.node("Identity", [x], "last_hidden_state"), np.float32, ["batch", size.tokens, width])
    first = g.node("Gather", [x, g.scalar("zero", 0, np.int64)], "pooler/Gather", axis=1)
    pooled = g.node("Tanh", [g.gemm(first, "pooler", width, width, True)], "pooler_output")
    g.output(pooled, np.float32, ["batch", width])
    return g


def vit(size, name):
    """ViT: one joined product for queries, keys and values, the normalisation first."""
    g = ModelWriter(name)
    width, side = size.width, size.image // size.patch
    tokens = side * side + 1
    g.input("image", np.float32, ["batch", 3, size.image, size.image])
    weight = g.random("patches.weight", (width, 3, size.patch, size.patch), 1 / (size.patch * math.sqrt(3)))
    x = g.node("Conv", ["image", weight, g.random("patches.bias", (width,), 0.02)], "patches/Conv",
               kernel_shape=[size.patch] * 2, strides=[size.patch] * 2, pads=[0] * 4, dilations=[1, 1], group=1)
    x = g.node("Reshape", [x, g.integers("flat", [0, width, side * side])], "patches/Reshape")
    x = g.node("Transpose", [x], "patches/Transpose", perm=[0, 2, 1])
    # The token of the class, as often as there are images.
    count = g.node("Gather", [g.node("Shape", ["image"], "class/Shape"), g.scalar("zero", 0, np.int64)], "class/Gather")
    count = g.node("Unsqueeze", [count, g.integers("axis_0", [0])], "class/Unsqueeze")
    shape = g.node("Concat", [count, g.integers("one_token", [1, width])], "class/Concat", axis=0)
    first = g.node("Expand", [g.random("class_token", (1, 1, width), 1.0), shape], "class/Expand")
    x = g.node("Concat", [first, x], "tokens/Concat", axis=1)
    x = g.node("Add", [x, g.random("positions", (1, tokens, width), 0.5)], "tokens/Add")
    for layer in range(size.layers):
        at = f"blocks.{layer}"
        y = g.linear(g.norm(x, f"{at}.norm1", width), f"{at}.qkv", width, 3 * width)
        y = g.node("Reshape", [y, g.integers("joined", [0, tokens, 3, size.heads, size.head_size])], f"{at}.attn/Reshape")
        y = g.node("Transpose", [y], f"{at}.attn/Transpose", perm=[2, 0, 3, 1, 4])
        parts = g.node("Split", [y, g.integers("ones", [1, 1, 1])], [f"{at}.attn/{part}" for part in "qkv"], axis=0)
        q, k, v = (g.node("Squeeze", [part, g.integers("axis_0", [0])], f"{part}_s") for part in parts)
        q = g.node("Mul", [q, g.scalar("scale", 1 / math.sqrt(size.head_size))], f"{at}.attn/Mul")
        k = g.node("Transpose", [k], f"{at}.attn/Transpose_1", perm=[0, 1, 3, 2])
        weights = g.node("Softmax", [g.node("MatMul", [q, k], f"{at}.attn/MatMul")], f"{at}.attn/Softmax", axis=-1)
        mixed = g.merge_heads(g.node("MatMul", [weights, v], f"{at}.attn/MatMul_1"), f"{at}.attn", size)
        x = g.node("Add", [x, g.linear(mixed, f"{at}.proj", width, width, gain=0.5)], f"{at}/Add")
        y = g.gelu(g.linear(g.norm(x, f"{at}.norm2", width), f"{at}.fc1", width, 4 * width), f"{at}.gelu")
        x = g.node("Add", [x, g.linear(y, f"{at}.fc2", 4 * width, width, gain=0.5)], f"{at}/Add_1")
    x = g.node("Gather", [g.norm(x, "norm", width), g.scalar("zero", 0, np.int64)], "head/Gather", axis=1)
    g.output(g.gemm(x, "head", width, size.classes, True), np.float32, ["batch", size.classes])
    return g


def gpt2_decode(size):
    """GPT-2 small, one token behind a cache of keys and values; the cache of the next step is an output."""
    g = ModelWriter("gpt2_decode")
    width = size.width
    cache = ["batch", size.heads, size.tokens, size.head_size]
    grown = ["batch", size.heads, size.tokens + 1, size.head_size]
    g.input("input_ids", np.int64, ["batch", 1])
    g.input("position_ids", np.int64, ["batch", 1])
    words = g.random("wte.weight", (size.classes, width), 0.3)
    x = g.node("Add", [g.node("Gather", [words, "input_ids"], "wte/Gather"),
                       g.node("Gather", [g.random("wpe.weight", (POSITIONS["gpt2_decode"], width), 0.3),
                                         "position_ids"], "wpe/Gather")], "embedded/Add")

    def conv1d(x, name, inputs, outputs, gain=1.0):
        """Its linear layer: a Gemm over all rows, between two reshapes."""
        flat = g.node("Reshape", [x, g.integers(f"rows_{inputs}", [-1, inputs])], f"{name}/Reshape")
        y = g.gemm(flat, name, inputs, outputs, False, gain)
        return g.node("Reshape", [y, g.integers(f"tokens_{outputs}", [-1, 1, outputs])], f"{name}/Reshape_1")

    for layer in range(size.layers):
        at = f"h.{layer}"
        joined = conv1d(g.norm(x, f"{at}.ln_1", width), f"{at}.attn.c_attn", width, 3 * width)
        parts = g.node("Split", [joined, g.integers("thirds", [width] * 3)],
                       [f"{at}.attn/{part}" for part in ("query", "key", "value")], axis=-1)
        q, k, v = (g.split_heads(part, part, size, [0, 2, 1, 3]) for part in parts)
        for kind, new in (("key", k), ("value", v)):
            past = g.input(f"past_key_values.{layer}.{kind}", np.float32, cache)
            g.output(g.node("Concat", [past, new], f"present.{layer}.{kind}", axis=-2), np.float32, grown)
        keys = g.node("Transpose", [f"present.{layer}.key"], f"{at}.attn/Transpose", perm=[0, 1, 3, 2])
        scores = g.node("MatMul", [q, keys], f"{at}.attn/MatMul")
        scores = g.node("Div", [scores, g.scalar("root", math.sqrt(size.head_size))], f"{at}.attn/Div")
        weights = g.node("Softmax", [scores], f"{at}.attn/Softmax", axis=-1)
        mixed = g.merge_heads(g.node("MatMul", [weights, f"present.{layer}.value"], f"{at}.attn/MatMul_1"),
                              f"{at}.attn", size)
        x = g.node("Add", [conv1d(mixed, f"{at}.attn.c_proj", width, width, 0.5), x], f"{at}/Add")
        y = g.gelu_tanh(conv1d(g.norm(x, f"{at}.ln_2", width), f"{at}.mlp.c_fc", width, 4 * width), f"{at}.mlp.act")
        x = g.node("Add", [x, conv1d(y, f"{at}.mlp.c_proj", 4 * width, width, 0.5)], f"{at}/Add_1")
    # The embedding again: exporters leave its transposition in the graph.
    head = g.node("Transpose", [words], "lm_head/Transpose", perm=[1, 0])
    logits = g.node("MatMul", [g.norm(x, "ln_f", width), head], "logits")
    g.output(logits, np.float32, ["batch", 1, size.classes])
    g.outputs.insert(0, g.outputs.pop())
    return g
