#!/usr/bin/env python3
"""States that only products read are of 16 bits in --precision fp16 and bf16 (CUDA): half of the bytes, and no other result.

    short_states.py --gcompile GCOMPILE [CASE...]
"""

import re

import decoder_models
import growing_state
import ranges
from cuda import cxx
from cuda_sizes import CUDA, linked, objects, stepped
from families import Model
from sizes import compiled, encoder
from support import EXAMPLE_FLAGS, EXAMPLES, HERE, check, contains, equal, manifest, run_main

# Sizes of growing caches, at the corners of fewer sizes.
FEW = ["--dim", "batch=1..2", "--dim", "sequence=1..9", "--dim", "past=0..11", "--dim", "joined=past+sequence", "--dim", "past+sequence=1..12"]


def verified(world, model, *options):
    done = world.run([world.gcompile, "verify", model, *CUDA, "--emulate", "--cxx", cxx(), *options])
    contains(done.stdout + done.stderr, "verified: ", "are right")


def states_of(project, name="net"):
    """The element type of each state, as the header says."""
    text = (project / "include" / name / f"{name}.h").read_text()
    return re.findall(r"^  \w+ \w+\[\d+\]; /\*\*< \".*\" (\w+)\[", text, re.MULTILINE)


def case_storyteller(world):
    """A decoder of text as PyTorch exports it, whose queries, keys and values are one product."""
    project = world.example("storyteller", "short", "--name", "net", *CUDA, "--precision", "fp16")
    equal(states_of(project), ["float16"] * 4, "states")
    plain = world.example("storyteller", "plain", "--name", "net", *CUDA)
    equal(states_of(plain), ["float32"] * 4, "states of fp32")
    equal(2 * manifest(project, "net")["state_bytes"], manifest(plain, "net")["state_bytes"], "bytes of the state")
    for precision in ("fp16", "bf16"):
        verified(world, EXAMPLES / "storyteller" / "model.onnx", *EXAMPLE_FLAGS["storyteller"], "--precision", precision)


def case_llama(world):
    """Queries share keys, which are rotated before they are kept: prompts and steps, saved and loaded."""
    model = decoder_models.llama()
    project = stepped(world, "llama", model, "--precision", "bf16", element_bytes=2)
    equal(states_of(project), ["bfloat16"] * 4, "states")
    verified(world, world.folder / "llama.onnxtxt", *FEW, *model.states(), "--precision", "bf16")
    # The planted error: rows are loaded as if their elements had 32 bits.
    header = project / "gcrt/cuda/device/state_copy.h"
    text = header.read_text()
    begin = text.index("load_rows(")
    contains(text[begin:], "rows.rank, rows.element_bytes")
    header.write_text(text[:begin] + text[begin:].replace("rows.rank, rows.element_bytes", "rows.rank, 4"))
    program = linked(world, "planted_caller", objects(world, project, HERE / "growing_state_cuda.cpp"))
    check(world.run([program], status=None).returncode != 0, "a state that was loaded wrong is not found")


def case_kept(world):
    """--keep-fp32 with the node that writes a state, of that one alone."""
    model = decoder_models.llama()
    project = compiled(world, "kept", model, *growing_state.SIZES, *model.states(), *CUDA, "--precision", "fp16", "--keep-fp32",
                       "present_0_key", "--keep-fp32", "present_0_value")
    equal(states_of(project), ["float32", "float32", "float16", "float16"], "states")
    verified(world, world.folder / "kept.onnxtxt", *FEW, *model.states(), "--precision", "fp16", "--keep-fp32", "present_0_key",
             "--keep-fp32", "present_0_value")


def case_choices(world):
    """One type for the schedules of all choices, though some could keep 16 bits."""
    model = decoder_models.llama()
    choices = ["--dim", "batch=1", "--dim", "sequence=1,5", "--dim", "past=0..11", "--dim", "joined=past+sequence", "--dim",
               "past+sequence=1..12"]
    for precision in ("fp16", "bf16"):
        project = compiled(world, precision, model, *choices, *model.states(), *CUDA, "--precision", precision)
        equal(len(set(states_of(project))), 1, "types of states")
        verified(world, world.folder / f"{precision}.onnxtxt", *choices, *model.states(), "--precision", precision)


def sliding(reader):
    """The last two lines of an image go before the next one. `reader` makes y of `joined`."""
    model = Model()
    model.inputs = ["float[1,64,1,16] x", "float[1,64,2,16] cache"]
    model.outputs = ["float[1,64,1,16] y", "float[1,64,2,16] next"]
    model.constant("w", "float", (64, 64, 3, 3))
    model.constants += ["int64[1] zero = {0}", "int64[1] one = {1}", "int64[1] three = {3}", "int64[1] axis = {2}"]
    model.nodes = ["joined = Concat<axis = 2>(cache, x)", *reader, "next = Slice(joined, one, three, axis)"]
    return model


CONVOLUTION = "c = Conv<pads = [0, 1, 0, 1]>(joined, w)"


def case_sliding(world):
    """A state of one size; in float32 where something beside products reads it."""
    options = [*CUDA, "--state", "cache=next"]
    for precision, element in (("fp16", "float16"), ("bf16", "bfloat16"), ("tf32", "float32")):
        project = compiled(world, precision, sliding([CONVOLUTION, "y = Relu(c)"]), *options, "--precision", precision)
        equal(states_of(project), [element], f"states of {precision}")
        verified(world, world.folder / f"{precision}.onnxtxt", "--state", "cache=next", "--precision", precision)
    summed = sliding([CONVOLUTION, "first = Slice(joined, zero, one, axis)", "y = Add(c, first)"])
    equal(states_of(compiled(world, "summed", summed, *options, "--precision", "fp16")), ["float32"], "of a state that is added")


def case_selftest(world):
    """What the evaluator made, from run to run; half of a state is found by the second run."""
    project = compiled(world, "tested", sliding([CONVOLUTION, "y = Relu(c)"]), *CUDA, "--state", "cache=next", "--precision", "fp16",
                       "--selftest")
    equal(states_of(project), ["float16"], "states")
    golden, schedule = next((project / "data").glob("*.golden.bin")), project / "src" / "net.cu"
    program = linked(world, "right", objects(world, project, project / "tests" / "selftest.cpp"))
    contains(world.run([program, golden]).stdout, "ok   run 0: y, 0 of", "ok   run 1: y, 0 of")
    kept = "copy(queue, state[state_cache], arena[at_next], 4096)"
    contains(schedule.read_text(), kept)
    schedule.write_text(schedule.read_text().replace("4096)", "2048)"))
    program = linked(world, "wrong", objects(world, project, project / "tests" / "selftest.cpp"))
    contains(world.run([program, golden], status=1).stdout, "ok   run 0", "FAIL run 1")


def case_gpt2(world):
    """A mask that leaves -10000 and one that is added behind it: attention, with short caches."""
    model = decoder_models.gpt2()
    project = compiled(world, "gpt2", model, *FEW, *model.states(), *CUDA, "--precision", "fp16")
    equal(states_of(project), ["float16"] * 4, "states")
    contains("".join(path.read_text() for path in (project / "src").glob("net_kernels*.cu")), "kBooleanThenAdditive")
    verified(world, world.folder / "gpt2.onnxtxt", *FEW, *model.states(), "--precision", "fp16")


def case_open_shapes(world):
    """Values between products and attention, of any number of rows."""
    path = world.path("encoder.onnxtxt")
    path.write_text(encoder().text())
    verified(world, path, *ranges.BOUNDS, "--precision", "fp16")
    out = compiled(world, "bounded", encoder(), *ranges.BOUNDS, *CUDA, "--precision", "fp16")
    contains("".join(path.read_text() for path in (out / "src").glob("net_kernels*.cu")), "const Half* q, const Half* k, const Half* v")


if __name__ == "__main__":
    run_main(globals())
