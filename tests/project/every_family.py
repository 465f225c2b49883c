#!/usr/bin/env python3
"""Every kernel family that the tool knows is forced by a test on every target that has it, and says why on the other.

    every_family.py --gcompile GCOMPILE [CASE...]
"""

import re

import families
import warpgroups
from support import check, contains, run_main

# Families that a target does not have, and words of the reason. Quantised weights are floats there, and so are packed ones.
IMAGES = "images on the GPU, whose tensor cores the families for all windows use"
NOT_THERE = {
    ("attention.row", "cuda"): "attention.flash has plans for one row", ("conv.dot", "cuda"): IMAGES,
    ("conv.wgmma", "cpp"): "warpgroups of sm_90a", ("product.wgmma", "cpp"): "warpgroups of sm_90a",
    ("conv.winograd2", "cuda"): IMAGES, ("conv.winograd4", "cuda"): IMAGES, ("conv.winograd2_integer", "cuda"): IMAGES,
    ("conv.winograd4_integer", "cuda"): IMAGES, ("conv_transpose.integer", "cuda"): "elements of float32",
    ("product.cublaslt", "cpp"): "a library of CUDA", ("product.decode", "cuda"): "weights without scales of their own",
    ("product.decode_integer", "cuda"): "weights without scales of their own",
}
# Which model asks for a family on a target that does not have it: that of the run which forces it on the other, or this.
ASKED = {"conv.wgmma": ("windows_cpp", "first"), "product.wgmma": ("images_cpp", "product")}


def known(world):
    """The families, as the tool lists them."""
    model = world.path("no.onnxtxt")
    model.write_text(families.images().text())
    told = world.compile(model, world.path("no"), "--kernel", "thin=no.family", status=2)
    return re.search(r"there are (.*)", told)[1].split(", ")


def forced_pairs():
    """(family, target): run and node that force it."""
    pairs = {(family, "cuda"): None for family in warpgroups.FORCED_FAMILIES}
    for run, (_, forced, options) in families.RUNS.items():
        target = "cuda" if "cuda" in options else "cpp"
        pairs.update({(family, target): (run, node) for node, names in forced.items() for family in names})
    return pairs


def case_is_forced(world):
    """A family that is new has a row in a table of FORCED in families.py for each target, or one in NOT_THERE."""
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
        model.write_text(families.RUNS[run][0]().text())
        told = world.compile(model, world.path("refused"), "--target", target, "--kernel", f"{node}={family}", status=1)
        contains(told, "E0302", f"refuses: {family}: ", reason)


if __name__ == "__main__":
    run_main(globals())
