#!/usr/bin/env python3
"""Caches that grow in the state: one project for prompts and single rows, which writes nothing but new rows.

    growing_state.py --gcompile GCOMPILE [CASE...]
"""

import pathlib
import subprocess

import decoder_models
from families import Model
from sizes import built, compiled
from support import check, equal, manifest, run_main

HERE = pathlib.Path(__file__).resolve().parent
SIZES = ["--dim", "batch=1..2", "--dim", "sequence=1..192", "--dim", "past=0..191", "--dim", "joined=past+sequence", "--dim",
         f"past+sequence=1..{decoder_models.CONTEXT}"]


def decoder(world, name, model):
    options = [*SIZES, *model.states()]
    out = compiled(world, name, model, *options, "--selftest")
    rows = 2 * decoder_models.CONTEXT * decoder_models.SIZE * 4  # of all heads' rows in a batch of two
    equal(manifest(out, "net")["state_bytes"], 64 + 4 * rows * model.heads_of_caches, "bytes of the state")
    shown = world.run([world.gcompile, "verify", world.folder / f"{name}.onnxtxt", *options, "--threads", "2"])
    check("verified: 60 tensors are right" in shown.stdout + shown.stderr, shown.stdout + shown.stderr)
    built(world, out, "net_run", "net_bench", "net_selftest")
    world.run(["make", "-s", "-C", out, "ARCH=native", f"BUILD={out / 'build'}", "test"])
    world.run([out / "build" / "net_bench", "--repeat", "2", "--dim", "sequence=1", "--dim", "past=30"])
    caller = world.path(f"{name}_caller")
    world.run(["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{out}/include", HERE / "growing_state.cpp",
               out / "build" / "libnet.a", "-o", caller])
    world.run([caller])


def case_gpt2(world):
    decoder(world, "gpt2", decoder_models.gpt2())


def case_llama(world):
    decoder(world, "llama", decoder_models.llama())


def cache(after, nodes, element="float"):
    model = Model()
    model.inputs = [f"{element}[batch,past,4] old", f"{element}[batch,rows,4] new"]
    model.outputs = [f"{element}[{after}] joined"]
    model.constants += ["int64[1] axis = {1}", "int64[1] one = {1}", "int64[1] last = {9223372036854775807}", "int64[1] zero = {0}"]
    model.nodes = nodes
    return model


def case_recognised(world):
    """However the rows get behind those that are there; what does not leave them is refused, and the state told."""
    grows = ["--state", "old=joined", "--dim", "batch=1..2", "--dim", "past=0..9", "--dim", "rows=1..5"]
    for name, nodes in (("turned", ["a = Transpose<perm = [1, 0, 2]>(old)", "b = Transpose<perm = [1, 0, 2]>(new)",
                                    "c = Concat<axis = 0>(a, b)", "joined = Transpose<perm = [1, 0, 2]>(c)"]),
                        ("twice", ["a = Concat<axis = 1>(old, new)", "joined = Concat<axis = 1>(a, new)"]),
                        ("computed", ["a = Neg(new)", "b = Concat<axis = 1>(old, a)", "joined = Identity(b)"])):
        model = cache("batch,n,4", nodes)
        if name == "computed":
            model.outputs.append("float[batch,n,4] twice")
            model.nodes.append("twice = Add(b, b)")
        out = compiled(world, name, model, *grows)
        text = "".join(path.read_text() for path in (out / "src").glob("net*.cpp"))
        check("memcpy(at<float>(state" not in text, f"{name}: the state is copied")
        world.run([world.gcompile, "verify", world.folder / f"{name}.onnxtxt", "-q", *grows])
    for name, nodes, text in (
            ("before", ["joined = Concat<axis = 1>(new, old)"], "does not hold the input with more behind it"),
            ("changed", ["a = Neg(old)", "joined = Concat<axis = 1>(a, new)"], "does not hold the input with more behind it"),
            ("shifted", ["a = Concat<axis = 1>(old, new)", "b = Slice(a, one, last, axis)",
                         "joined = Concat<axis = 1>(b, new)"], "does not hold the input with more behind it"),
            ("wider", ["a = Concat<axis = 1>(old, new)", "joined = Concat<axis = 2>(a, a)"], "the types differ")):
        path = world.path(f"{name}.onnxtxt")
        path.write_text(cache("batch,n,m" if name == "wider" else "batch,n,4", nodes).text())
        done = subprocess.run([world.gcompile, path, "-o", world.path(name), *grows], capture_output=True, text=True, check=False)
        equal(done.returncode, 2, f"exit code of {name}: {done.stderr}")
        check(text in done.stderr, done.stderr)


def case_two_that_disagree(world):
    """States that append different numbers of rows to one size."""
    model = cache("batch,n,4", ["joined = Concat<axis = 1>(old, new)", "again = Concat<axis = 1>(other, joined)"])
    model.inputs.append("float[batch,past,4] other")
    model.outputs.append("float[batch,m,4] again")
    path = world.path("disagree.onnxtxt")
    path.write_text(model.text())
    done = subprocess.run([world.gcompile, path, "-o", world.path("disagree"), "--state", "old=joined", "--state", "other=again",
                           "--dim", "batch=1", "--dim", "past=0..9", "--dim", "rows=1..5"], capture_output=True, text=True,
                          check=False)
    equal(done.returncode, 2, f"exit code: {done.stderr}")
    check("after a run, and" in done.stderr, done.stderr)


if __name__ == "__main__":
    run_main(globals())
