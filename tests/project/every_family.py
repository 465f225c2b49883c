#!/usr/bin/env python3
"""Every kernel family that the tool knows is forced by a test on every target that has it, and says why on the other; here
those that families.py has no model for.

    every_family.py --gcompile GCOMPILE [CASE...]
"""

import os
import re

import families
import warpgroups
from model_text import Model
from support import check, contains, run_main, turn

# Families that a target does not have, and words of the reason. Quantised weights are floats there, and so are packed ones.
IMAGES = "images on the GPU, whose tensor cores the families for all windows use"
NOT_THERE = {
    ("attention.row", "cuda"): "attention.flash has plans for one row", ("conv.dot", "cuda"): IMAGES,
    ("conv.wgmma", "cpp"): "warpgroups of sm_90a", ("product.wgmma", "cpp"): "warpgroups of sm_90a",
    ("conv.winograd2", "cuda"): IMAGES, ("conv.winograd4", "cuda"): IMAGES, ("conv.winograd2_integer", "cuda"): IMAGES,
    ("conv.winograd4_integer", "cuda"): IMAGES, ("conv_transpose.integer", "cuda"): "elements of float32",
    ("product.cublaslt", "cpp"): "a library of CUDA", ("product.decode", "cuda"): "weights without scales of their own",
    ("product.decode_integer", "cuda"): "weights without scales of their own", ("conv.planes", "cuda"): IMAGES,
    ("trees.masks", "cuda"): "a GPU", ("conv.scalar_integer", "cuda"): "a GPU", ("conv.scalar", "cuda"): "a GPU",
    ("conv.depthwise_scalar", "cuda"): "a GPU",
    ("product.scalar_integer", "cuda"): "a GPU",
}
# Which model asks for a family on a target that does not have it: that of the run which forces it on the other, or this.
ASKED = {"conv.wgmma": ("windows_cpp", "first"), "product.wgmma": ("images_cpp", "product")}


def rows():
    """One row by what only the run knows: attention and a product; a product of a few rows by constants; linear attention;
    and convolutions of bytes, which CUDA has too."""
    model = Model(opset=23)
    model.domains = ', "com.microsoft" : 1'
    model.inputs = ["float[1,2,1,12] q", "float[1,2,9,12] k", "float[1,2,9,7] v", "float[2,1,19] row", "float[2,19,21] matrix",
                    "float[3,19] few", "float[2,5,8] a", "float[2,5,8] b", "float[2,5,6] c", "uint8[1,6,5,7] bytes"]
    model.outputs = ["float[1,2,1,7] heads", "float[2,1,21] one", "float[3,13] thin", "float[2,5,6] steps",
                     "int32[1,9,5,7] dense", "int32[1,6,3,5] each"]
    model.constant("w", "float", (19, 13))
    model.integers("d", "int8", (9, 6, 3, 3), -128, 127), model.integers("e", "int8", (6, 1, 3, 3), -128, 127)
    model.nodes = ["heads = Attention(q, k, v)", "one = MatMul(row, matrix)", "thin = MatMul(few, w)",
                   'steps, state = com.microsoft.LinearAttention<q_num_heads = 2, kv_num_heads = 2, update_rule = "linear">(a, b, c)',
                   "dense = ConvInteger<pads = [1, 1, 1, 1]>(bytes, d)", "each = ConvInteger<group = 6>(bytes, e)"]
    return model


FORCED_ROWS = {"heads": ["attention.row", "attention.flash"], "one": ["product.gemv", "product.tile"],
               "thin": ["product.tile", "product.loops"], "steps": ["linear_attention.loops"], "dense": ["conv.integer"],
               "each": ["conv.depthwise_integer", "conv.depthwise_scalar"]}
FORCED_ROWS_CUDA = {"heads": ["attention.flash"], "one": ["product.cublaslt"], "thin": ["product.gemv"],
                    "steps": ["linear_attention.loops"], "dense": ["conv.integer"], "each": ["conv.depthwise_integer"]}


def trees():
    """Two trees of rows that only the run knows."""
    model = Model()
    model.domains = ', "ai.onnx.ml" : 3'
    model.inputs, model.outputs = ["float[11,3] features"], ["float[11,1] voted"]
    model.nodes = ["""voted = ai.onnx.ml.TreeEnsembleRegressor<n_targets = 1, nodes_treeids = [0, 0, 0, 0, 0, 1, 1, 1],
        nodes_nodeids = [0, 1, 2, 3, 4, 0, 1, 2], nodes_featureids = [2, 0, 0, 0, 0, 1, 0, 0],
        nodes_values = [0.25, -0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], nodes_truenodeids = [1, 2, 0, 0, 0, 1, 0, 0],
        nodes_falsenodeids = [4, 3, 0, 0, 0, 2, 0, 0],
        nodes_modes = ["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
        target_treeids = [0, 0, 0, 1, 1], target_nodeids = [2, 3, 4, 1, 2], target_ids = [0, 0, 0, 0, 0],
        target_weights = [0.5, 0.25, -1.0, 2.0, 3.5]>(features)"""]
    return model


def boxes():
    """The best of overlapping boxes, which data counts."""
    model = Model()
    model.inputs, model.outputs = ["float[2,9,4] places", "float[2,3,9] points", "int64[1] most", "float[1] share"], ["int64[n,3] left"]
    model.nodes = ["left = NonMaxSuppression(places, points, most, share)"]
    return model


RUNS = {**families.RUNS, "boxes_cpp": (boxes, {"left": ["suppress.lines"]}, ()),
        "boxes_cuda": (boxes, {"left": ["suppress.lines"]}, families.CUDA), "trees_cpp": (trees, {"voted": ["trees.masks", "trees.loops"]}, ()),
        "trees_cuda": (trees, {"voted": ["trees.loops"]}, families.CUDA), "rows_cpp": (rows, FORCED_ROWS, ()),
        "rows_cuda": (rows, FORCED_ROWS_CUDA, (*families.CUDA, "--gemm", "cublaslt"))}


def case_forced_cpp(world):
    """One round in turn, both in the long run."""
    families.force(world, "rows_cpp", (3, 1), None if os.environ.get("GCOMPILE_LONG_TESTS") == "1" else turn() % 2, RUNS)


def case_forced_cuda(world):
    families.force(world, "rows_cuda", runs=RUNS)


def case_forced_trees(world):
    families.force(world, "trees_cpp", (2, 1), runs=RUNS)
    families.force(world, "trees_cuda", runs=RUNS)


def case_forced_boxes(world):
    families.force(world, "boxes_cpp", (3, 1), runs=RUNS)
    families.force(world, "boxes_cuda", runs=RUNS)


def known(world):
    """The families, as the tool lists them."""
    model = world.path("no.onnxtxt")
    model.write_text(families.images().text())
    told = world.compile(model, world.path("no"), "--kernel", "thin=no.family", status=2)
    return re.search(r"there are (.*)", told)[1].split(", ")


def forced_pairs():
    """(family, target): run and node that force it."""
    pairs = {(family, "cuda"): None for family in warpgroups.FORCED_FAMILIES}
    for run, (_, forced, options) in RUNS.items():
        target = "cuda" if "cuda" in options else "cpp"
        pairs.update({(family, target): (run, node) for node, names in forced.items() for family in names})
    return pairs


def case_is_forced(world):
    """A family that is new has a row in a table FORCED_... for each target, here or in families.py, or one in NOT_THERE."""
    names, forced = known(world), forced_pairs()
    check(len(names) > 30, f"{names}")
    gone = sorted({family for family, _ in [*forced, *NOT_THERE]} - set(names))
    check(not gone, f"{gone} are no families")
    for family in names:
        for target in ("cpp", "cuda"):
            pair = (family, target)
            check((pair in forced) != (pair in NOT_THERE),
                  f"{family} for {target}: {'forced, and yet in NOT_THERE' if pair in forced else case_is_forced.__doc__}")


def case_says_why(world):
    forced = forced_pairs()
    for (family, target), reason in NOT_THERE.items():
        run, node = ASKED.get(family) or forced[(family, "cuda" if target == "cpp" else "cpp")]
        model = world.path("asked.onnxtxt")
        model.write_text(RUNS[run][0]().text())
        told = world.compile(model, world.path("refused"), "--target", target, "--kernel", f"{node}={family}", status=1)
        contains(told, "E0302", f"refuses: {family}: ", reason)


if __name__ == "__main__":
    run_main(globals())
