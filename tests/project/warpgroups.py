#!/usr/bin/env python3
"""Products by the warpgroups of sm_90a: a transformer in the emulator, when they are chosen, and when they are refused.

    warpgroups.py --gcompile GCOMPILE [CASE...]
"""

from encoder import Encoder, Sizes
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
    """Of the layers."""
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
    """By price: for large products on sm_90a alone."""
    large, small = product(world, 1024, 3072, 768), product(world, 144, 80, 80)
    for model, arch, precision, expected in ((large, "sm_90a", "fp16", FAMILY), (large, "sm_90a", "bf16", FAMILY),
                                             (small, "sm_90a", "fp16", "product.tile"),
                                             (large, "sm_90a", "fp32", "product.tile"),
                                             (large, "sm_90a,sm_80", "fp16", "product.tile"),
                                             (large, "sm_90", "fp16", "product.tile")):
        found = families(world, model, "--arch", arch, "--precision", precision)
        check(expected in found, f"{model.stem} for {arch} in {precision}: {found}, not {expected}")


def case_refused(world):
    """In words."""
    for sizes, flags, reason in (((1024, 64, 64), ("--arch", "sm_90", "--precision", "fp16"), "other machine code"),
                                 ((1024, 64, 64), ("--arch", "sm_90a"), "--precision fp32"),
                                 ((127, 64, 64), ("--arch", "sm_90a", "--precision", "fp16"), "fewer than 128 rows"),
                                 ((128, 64, 65), ("--arch", "sm_90a", "--precision", "fp16"), "no multiple of 16 bytes")):
        done = world.run([world.gcompile, product(world, *sizes), "--target", "cuda", "-o", world.path("refused"), "--force",
                          "--explain", "y", *flags])
        contains(done.stdout + done.stderr, reason)


if __name__ == "__main__":
    run_main(globals())
