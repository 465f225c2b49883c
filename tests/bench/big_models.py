#!/usr/bin/python3
"""Writes the models of the benchmarks as ONNX, with random weights: the same bytes each time.

    tests/bench/big_models.py --out DIR [--small] [MODEL...]

Each becomes DIR/MODEL/model.onnx, with --small DIR/MODEL_small/model.onnx: the same nodes, fewer and narrower layers. The
batch size is the symbolic dimension `batch` (gcompile --dim batch=8). Nodes are as exporters write them, which is what
makes the files worth compiling; weights are scaled so that activations stay near 1. Needs numpy and onnx; the floating
ones, which are the default, take 20 seconds, 1.6 GB and 4 GB of memory.

The quantised ones (`MODEL_qdq` and the like, quantised_models.py) have scales that were measured: they need
onnxruntime too (scripts/install_packages.sh bench).

The same architectures as PyTorch modules are in torch_models.py.
"""

import argparse
import pathlib
import zlib

import numpy as np

from convolutional_models import inverted_residuals, resnet
from model_sizes import LARGE, SMALL
from model_writer import save
from transformer_models import bert_base, gpt2_decode, vit

BUILDERS = {
    "resnet18": lambda size: resnet(size, "resnet18"),
    "resnet50": lambda size: resnet(size, "resnet50"),
    "mobilenet_v2": lambda size: inverted_residuals(size, "mobilenet_v2"),
    "efficientnet_b0": lambda size: inverted_residuals(size, "efficientnet_b0"),
    "bert_base": bert_base,
    "vit_tiny": lambda size: vit(size, "vit_tiny"),
    "vit_b16": lambda size: vit(size, "vit_b16"),
    "gpt2_decode": gpt2_decode,
}
# The model of which each is made, and by which function of quantised_models.py.
QUANTISED = {
    "resnet50_qdq": ("resnet50", "with_integer_edges"),
    "mobilenet_v2_qdq": ("mobilenet_v2", "with_integer_edges"),
    "resnet50_a16w8": ("resnet50", "with_wide_integer_edges"),
    "mobilenet_v2_a16w8": ("mobilenet_v2", "with_wide_integer_edges"),
    "bert_dynamic": ("bert_base", "with_dynamic_products"),
    "gpt2_8bit": ("gpt2_decode", "with_8_bit_blocks"),
    "gpt2_4bit": ("gpt2_decode", "with_4_bit_blocks"),
    "gpt2_4bit_nbits": ("gpt2_decode", "with_packed_4_bits"),
    "gpt2_4bit_level4": ("gpt2_decode", "with_packed_4_bits_by_bytes"),
}
NAMES = (*BUILDERS, *QUANTISED)


def size_of(name, is_small):
    return (SMALL if is_small else LARGE)[QUANTISED.get(name, (name,))[0]]


def example_inputs(name, is_small=False, index=0):
    """What a model of one name may be given, by the names of its inputs; batch 1. Each index has numbers of its own."""
    size, base = size_of(name, is_small), QUANTISED.get(name, (name,))[0]
    generator = np.random.default_rng([index, zlib.crc32(base.encode())])
    if base == "bert_base":
        shape = (1, size.tokens)
        return {"input_ids": generator.integers(0, size.classes, shape), "attention_mask": np.ones(shape, np.int64),
                "token_type_ids": np.zeros(shape, np.int64)}
    if base == "gpt2_decode":
        inputs = {"input_ids": generator.integers(0, size.classes, (1, 1)),
                  "position_ids": np.full((1, 1), size.tokens, np.int64)}
        for layer in range(size.layers):
            for kind in ("key", "value"):
                inputs[f"past_key_values.{layer}.{kind}"] = generator.standard_normal(
                    (1, size.heads, size.tokens, size.head_size), np.float32)
        return inputs
    return {"image": generator.standard_normal((1, 3, size.image, size.image), np.float32)}


def build(name, is_small):
    """The model as onnx.ModelProto."""
    if name not in QUANTISED:
        return BUILDERS[name](size_of(name, is_small)).model()
    import quantised_models  # needs more than the others

    base, function = QUANTISED[name]
    samples = [example_inputs(name, is_small, index) for index in range(1, 5)]
    return getattr(quantised_models, function)(build(base, is_small), samples)


def write(name, is_small, out):
    """Writes one model; returns its file."""
    folder = pathlib.Path(out) / (f"{name}_small" if is_small else name)
    save(folder, build(name, is_small), [])
    return folder / "model.onnx"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"of {', '.join(NAMES)}; all in floats by default")
    parser.add_argument("--small", action="store_true", help="few, narrow layers: for tests")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where the model folders are written")
    arguments = parser.parse_args()
    for name in arguments.models:
        if name not in NAMES:
            parser.error(f"no model is called {name}")
    for name in arguments.models or BUILDERS:
        print(write(name, arguments.small, arguments.out), flush=True)


if __name__ == "__main__":
    main()
