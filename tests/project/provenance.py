#!/usr/bin/env python3
"""Weights are called what the model calls the tensor that they came from: no offset is `w_constant`.

    provenance.py --gcompile GCOMPILE [CASE...]
"""

import re

from support import EXAMPLES, check, run_main, shared_model

NAMELESS = re.compile(r"\bw_constant(?:_\d+)?\b")
OFFSET = re.compile(r"\bw_[a-z0-9_]+\b")


def offsets_of(project):
    """Names of the blocks of weights, from the sources."""
    text = "".join(path.read_text(encoding="utf-8") for path in sorted((project / "src").iterdir())
                   if path.suffix in (".cpp", ".h"))
    return set(OFFSET.findall(text)), set(NAMELESS.findall(text))


def require_names(world, project):
    names, nameless = offsets_of(project)
    check(names, f"{project.name} has no weights")
    check(not nameless, f"{project.name}: {len(nameless)} of {len(names)} weights have no name: {sorted(nameless)}")


def case_examples(world):
    for example in sorted(path.parent.name for path in EXAMPLES.glob("*/model.onnx")):
        require_names(world, world.example(example, example))


def shared(world, name):
    output = world.path(name)
    world.compile(shared_model(name), output, "--name", "m")
    require_names(world, output)


def case_attention(world):
    shared(world, "deeploy_cct_opset20")


def case_recurrent(world):
    shared(world, "gtcrn_stream")


def case_quantised(world):
    shared(world, "shufflenet_v2_int8")


def case_normalised(world):
    shared(world, "mlperf_tiny_vww_mobilenet_fp32")


def case_licences(world):
    """Every file of text says whose it is, and under which licence; formats without comments have LICENSE beside them."""
    for example, options in (("shapes_classifier", ["--pack", "zephyr", "--pack", "arduino", "--weights", "array"]), ("tiny_attention", ["--target", "cuda"])):
        project = world.path(f"licences_{example}")
        world.run([world.gcompile, EXAMPLES / example / "model.onnx", "-q", "-o", project, *options])
        silent = []
        for path in sorted(project.rglob("*")):
            is_text = path.suffix in (".c", ".cpp", ".cu", ".h", ".hpp", ".S", ".html", ".txt") or path.name == "Makefile"
            head = path.read_text(encoding="utf-8")[:2000] if is_text and path.is_file() else None
            if head is not None and not ("SPDX-License-Identifier: 0BSD" in head and "SPDX-FileCopyrightText: " in head):
                silent.append(str(path.relative_to(project)))
        check(not silent, f"{example}: files that name no licence: {silent}")


if __name__ == "__main__":
    run_main(globals())
