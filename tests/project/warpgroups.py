#!/usr/bin/env python3
"""Products and convolutions by the warpgroups of sm_90a: models in the emulator, when they are chosen, and when they are
refused.

    warpgroups.py --gcompile GCOMPILE [CASE...]
"""

import re

from encoder import Encoder, Sizes
from families import Model
from support import check, contains, equal, layers_of, run_main

FAMILY = "product.wgmma"
# 144 rows of 80 columns: no size is a multiple of a tile.
SMALL = Sizes(batch=2, rows=72, heads=4, size=20, inner=200)
PRODUCTS = [f"l{layer}_{name}_p" for layer in range(SMALL.layers)
            for name in ("attention_q", "attention_out", "products_in", "products_back")]
FORCED = [part for node in PRODUCTS for part in ("--kernel", f"{node}={FAMILY}")]


def transformer(world):
    path = world.path("transformer.onnxtxt")
    path.write_text(Encoder(False, SMALL).text())
    return path


def product(world, rows, columns, depth):
    """Its weights are all one number."""
    path = world.path(f"product_{rows}_{columns}_{depth}.onnxtxt")
    path.write_text(f"""<ir_version: 9, opset_import: ["" : 20]>
product (float[{rows}, {depth}] x) => (float[{rows}, {columns}] y)
<int64[2] shape = {{{depth}, {columns}}}>
{{
  w = ConstantOfShape<value = float[1] {{0.25}}>(shape)
  y = MatMul(x, w)
}}
""")
    return path


def families(world, model, *flags):
    """The families of the layers."""
    dump = world.path("dump")
    world.compile(model, world.path("out"), "--force", "--target", "cuda", "--dump-dir", dump, *flags)
    return [layer["family"] for layer in layers_of(dump)]


def verify(world, precision):
    done = world.run([world.gcompile, "verify", transformer(world), "--target", "cuda", "--arch", "sm_90a", "--precision",
                      precision, "--emulate", "--cases", "1", *FORCED])
    contains(done.stdout + done.stderr, "verified: 1 tensor")
    found = families(world, transformer(world), "--arch", "sm_90a", "--precision", precision, *FORCED)
    equal(found.count(FAMILY), len(PRODUCTS), f"products by warpgroups among {found}")


def case_forced_fp16(world):
    verify(world, "fp16")


def case_forced_tf32(world):
    verify(world, "tf32")


def case_chosen(world):
    """By price, where products are not vectors; on sm_90a alone."""
    large, small, few = product(world, 1024, 3072, 768), product(world, 144, 80, 80), product(world, 32, 80, 80)
    for model, arch, precision, expected in ((large, "sm_90a", "fp16", FAMILY), (large, "sm_90a", "bf16", FAMILY),
                                             (small, "sm_90a", "fp16", FAMILY), (few, "sm_90a", "fp16", "product.tile"),
                                             (large, "sm_90a", "fp32", "product.tile"),
                                             (large, "sm_90a,sm_80", "fp16", "product.tile"),
                                             (large, "sm_90", "fp16", "product.tile")):
        found = families(world, model, "--arch", arch, "--precision", precision)
        check(expected in found, f"{model.stem} for {arch} in {precision}: {found}, not {expected}")


def case_refused(world):
    """In words."""
    for sizes, flags, reason in (((1024, 64, 64), ("--arch", "sm_90", "--precision", "fp16"), "other machine code"),
                                 ((1024, 64, 64), ("--arch", "sm_90a"), "--precision fp32"),
                                 ((32, 64, 64), ("--arch", "sm_90a", "--precision", "fp16"), "fewer than 33 rows"),
                                 ((128, 64, 65), ("--arch", "sm_90a", "--precision", "fp16"), "no multiple of 16 bytes")):
        done = world.run([world.gcompile, product(world, *sizes), "--target", "cuda", "-o", world.path("refused"), "--force",
                          "--explain", "y", *flags])
        contains(done.stdout + done.stderr, reason)


CONVOLUTION = "conv.wgmma"
WINDOWS = ("point", "taps", "wide")
FORCED_WINDOWS = [part for node in WINDOWS for part in ("--kernel", f"{node}={CONVOLUTION}")]


def convolutions(world, height=13, width=14, channels=64):
    """Pointwise; 3 x 3 taps and a residual; dilated taps of unequal sides. Patches reach beyond the edges."""
    model = Model()
    model.inputs = [f"float[1,{channels},{height},{width}] x"]
    model.outputs = [f"float[1,24,{height},{width}] y"]
    for name, shape in (("w1", (channels, channels, 1, 1)), ("w2", (channels, channels, 3, 3)), ("w3", (24, channels, 3, 2)),
                        ("b", (channels,))):
        model.constant(name, "float", shape)
    model.nodes = ["point = Conv(x, w1, b)", "first = Relu(point)", "taps = Conv<pads = [1, 1, 1, 1]>(first, w2, b)",
                   "sum = Add(taps, first)", "second = Relu(sum)",
                   "wide = Conv<pads = [2, 1, 2, 0], dilations = [2, 1]>(second, w3)", "y = LeakyRelu(wide)"]
    path = world.path(f"convolutions_{height}_{channels}.onnxtxt")
    path.write_text(model.text())
    return path


def verify_convolutions(world, precision):
    model, flags = convolutions(world), ("--arch", "sm_90a", "--precision", precision, *FORCED_WINDOWS)
    done = world.run([world.gcompile, "verify", model, "--target", "cuda", "--emulate", "--cases", "1", *flags])
    contains(done.stdout + done.stderr, "verified: 1 tensor")
    found = families(world, model, *flags)
    equal(found.count(CONVOLUTION), len(WINDOWS), f"convolutions by warpgroups among {found}")


def case_convolutions_fp16(world):
    verify_convolutions(world, "fp16")


def case_convolutions_tf32(world):
    verify_convolutions(world, "tf32")


def calls_in_parts(world, model, *flags):
    """The calls whose sums the blocks of a cluster share."""
    out = world.path("in_parts")
    world.compile(model, out, "--force", "--target", "cuda", *flags)
    text = "".join(source.read_text() for source in sorted((out / "src").glob("*.cu")))
    return re.findall(r"(?:gemm|conv2d)_wgmma\w*<.*/\*parts\*/ [248]>", text)


def case_parts(world):
    """Long sums of few tiles, of 16 bits from end to end and of floats, where an epilogue reads a residual."""
    model = Model()
    model.inputs, model.outputs = ["float[70,1096] x"], ["float[70,76] y"]
    for name, shape in (("w1", (1096, 700)), ("b", (700,)), ("w2", (700, 76)), ("w3", (1096, 76))):
        model.constant(name, "float", shape)
    model.nodes = ["wide = MatMul(x, w1)", "biased = Add(wide, b)", "hidden = Relu(biased)", "back = MatMul(hidden, w2)",
                   "side = MatMul(x, w3)", "y = Add(back, side)"]
    path = world.path("long_sums.onnxtxt")
    path.write_text(model.text())
    flags = ("--arch", "sm_90a", "--precision", "fp16")
    done = world.run([world.gcompile, "verify", path, "--target", "cuda", "--emulate", "--cases", "1", *flags])
    contains(done.stdout + done.stderr, "verified: 1 tensor")
    found = calls_in_parts(world, path, *flags)
    equal(len(found), 3, f"calls in parts: {found}")
    # Above the emulator runs convolutions in parts too.
    found = calls_in_parts(world, convolutions(world), *flags, *FORCED_WINDOWS)
    check(found, "no convolution in parts")


def case_convolutions_refused(world):
    """In words."""
    half = ("--arch", "sm_90a", "--precision", "fp16")
    for sizes, flags, reason in (((13, 14, 64), ("--arch", "sm_90", "--precision", "fp16"), "other machine code"),
                                 ((2, 14, 64), half, "fewer than 33 pixels"), ((13, 14, 40), half, "no whole steps"),
                                 ((13, 14, 66), half, "no multiple of 16 bytes")):
        done = world.run([world.gcompile, convolutions(world, *sizes), "--target", "cuda", "-o", world.path("refused"), "--force",
                          "--explain", "taps", *flags])
        contains(done.stdout + done.stderr, reason)


# What is forced here, for tests/project/every_family.py.
FORCED_FAMILIES = (FAMILY, CONVOLUTION)


if __name__ == "__main__":
    run_main(globals())
