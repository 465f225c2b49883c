#!/usr/bin/env python3
"""Long sums in parts: by clusters of blocks from sm_90 on, through memory before. Those of sm_90a are of warpgroups.py.

    clusters.py --gcompile GCOMPILE [CASE...]
"""

import json

from support import check, contains, equal, run_main

LAYERS = """<ir_version: 9, opset_import: ["" : 20]>
layers (float[1, 256, 7, 7] x, float[{rows}, 2048] a) => (float[1, 64, 7, 7] y, float[{rows}, 96] c)
<int64[4] w_shape = {{64, 256, 3, 3}}, int64[2] b_shape = {{2048, 96}}>
{{
  w = ConstantOfShape<value = float[1] {{0.25}}>(w_shape)
  y = Conv<pads = [1, 1, 1, 1]>(x, w)
  b = ConstantOfShape<value = float[1] {{0.125}}>(b_shape)
  c = MatMul(a, b)
}}
"""


def layers_model(world, rows):
    path = world.path("layers.onnxtxt")
    path.write_text(LAYERS.format(rows=rows))
    return path


def compiled(world, rows, arch, precision, *flags):
    """The text of the kernels, and the layers."""
    world.compile(layers_model(world, rows), world.path("out"), "--force", "--name", "m", "--target", "cuda", "--arch", arch,
                  "--precision", precision, *flags)
    layers = json.loads((world.path("out") / "meta" / "m.json").read_text()).get("layers", [])
    return (world.path("out") / "src" / "m_kernels.cu").read_text(), layers


def verify(world, precision):
    kernels, layers = compiled(world, 50, "sm_90", precision)
    equal(kernels.count("SplitInCluster<"), 2, "calls whose parts are added in clusters")
    for word in ("SplitDepth<", "workspace"):
        check(word not in kernels, f"{word} among the kernels")
    for layer in layers:
        equal(layer["moved_bytes"], layer["necessary_bytes"], f"bytes that {layer['function']} moves")
    done = world.run([world.gcompile, "verify", layers_model(world, 50), "--target", "cuda", "--arch", "sm_90", "--precision",
                      precision, "--emulate", "--cases", "1"])
    contains(done.stdout + done.stderr, "verified: 2 tensors")


def case_fp32(world):
    verify(world, "fp32")


def case_fp16(world):
    verify(world, "fp16")


def case_open_rows(world):
    """As many as a run has: no size leaves the parts without room."""
    model = layers_model(world, "rows")
    flags = ["--target", "cuda", "--arch", "sm_90", "--dim", "rows=1..200@50"]
    kernels, _ = compiled(world, "rows", "sm_90", "fp32", "--dim", "rows=1..200@50")
    check("SplitWithin<" not in kernels, "a workspace of typical sizes")
    equal(kernels.count("SplitInCluster<"), 2, "calls whose parts are added in clusters")
    done = world.run([world.gcompile, "verify", model, *flags, "--emulate", "--cases", "1"])
    contains(done.stdout + done.stderr, "verified: 8 tensors")


def case_older_devices(world):
    """They add in memory, also beside later ones."""
    kernels, _ = compiled(world, 50, "sm_80", "fp16")
    contains(kernels, "{workspace}")
    check("SplitInCluster<" not in kernels, "clusters for sm_80")
    kernels, _ = compiled(world, 50, "sm_80,sm_90", "fp16")
    contains(kernels, "{workspace}", "SplitInCluster<")


if __name__ == "__main__":
    run_main(globals())
