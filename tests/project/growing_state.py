#!/usr/bin/env python3
"""Caches that grow in the state: one project for prompts and single rows, which writes nothing but new rows.

    growing_state.py --gcompile GCOMPILE [CASE...]
"""

import array
import pathlib
import re
import subprocess

import decoder_models
from families import Model
from sizes import built, compiled
from support import check, contains, equal, manifest, run_main

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


def logits(world, project, name, *steps):
    file = world.path(f"{name}.logits")
    world.run([world.path(f"{project}_caller"), file, *map(str, steps)])
    values = array.array("f")
    values.frombytes(file.read_bytes())
    return values


def packed(project):
    """Weights by name, each as often as it is stored."""
    schedule = next((project / "src").glob("net_sequence*past.cpp")).read_text()
    return sorted(re.findall(r"// (\w+) \S+ packed for", schedule))


def choices(world, name, model):
    """Prompts by pieces of 128 rows and single rows, by schedules of their own over one state: what a project with bounds gives."""
    shared = ["--dim", "batch=1", "--dim", "past=0..191", "--dim", "joined=past+sequence", "--dim", "past+sequence=1..192",
              *model.states(), "--selftest"]
    manifests = {}
    for project, rows in ((f"{name}_bounds", "1..192"), (f"{name}_choices", "1,128")):
        out = compiled(world, project, model, "--dim", f"sequence={rows}", *shared)
        built(world, out, "net_run", "net_bench", "net_selftest")
        world.run(["make", "-s", "-C", out, "ARCH=native", f"BUILD={out / 'build'}", "test"])
        world.run(["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{out}/include", HERE / "choices_of_rows.cpp",
                   out / "build" / "libnet.a", "-o", world.path(f"{project}_caller")])
        manifests[project] = manifest(out, "net")
    several, bounds = manifests[f"{name}_choices"], manifests[f"{name}_bounds"]
    equal([schedule["sizes"] for schedule in several["schedules"]], [[1, 0], [128, 0]], "sizes of the schedules")
    equal(several["state_bytes"], bounds["state_bytes"], "bytes of the state")
    equal(packed(out), packed(world.path(f"{name}_bounds")), "weights that products read")
    equal(several["arena_bytes"], max(schedule["arena_bytes"] for schedule in several["schedules"]), "bytes of the arena")
    world.run([out / "build" / "net_bench", "--repeat", "2", "--layers", "--dim", "sequence=1", "--dim", "past=30"])
    for prompt, steps in ((7, [1] * 192), (130, [128] + [1] * 64), (9, [1] * 9 + [128] + [1] * 55)):
        expected = logits(world, f"{name}_bounds", "bounds", prompt, *[1] * (192 - prompt))
        found = logits(world, f"{name}_choices", "choices", *steps)
        equal(len(found), len(expected), "logits")
        worst = max(abs(a - b) for a, b in zip(found, expected))
        check(worst < 2e-5, f"{name}, steps of {steps[:12]}...: logits differ by {worst}")


def case_choices_gpt2(world):
    choices(world, "gpt2", decoder_models.gpt2())


def case_choices_llama(world):
    """Heads of keys that several heads of queries share are read once, where they lie."""
    choices(world, "llama", decoder_models.llama())
    text = "".join(path.read_text() for path in (world.path("llama_choices") / "src").glob("net_sequence*.cpp"))
    check("Expand" not in text, "keys or values are repeated")


def case_choices_grouped(world):
    choices(world, "grouped", decoder_models.llama(grouped_operator=True))


def case_choices_verified(world):
    """On both targets: each choice at corners of its bounds, and each behind the other. Rooms of a state are for the largest choice."""
    model = decoder_models.gpt2()
    path = world.path("gpt2.onnxtxt")
    path.write_text(model.text())
    sizes = ["--dim", "batch=1..2", "--dim", "sequence=1,8", "--dim", "past=0..9", "--dim", "joined=past+sequence", *model.states()]
    for target in (["--target", "cpp"], ["--target", "cuda", "--emulate"]):
        shown = world.run([world.gcompile, "verify", path, *sizes, *target])
        contains(shown.stdout + shown.stderr, "(batch=2, sequence=8, past=0)", "(batch=2, sequence=1, past=8)",
                 "(batch=2, sequence=8, past=1)", "are right")
        done = subprocess.run([world.gcompile, path, "-o", world.path("never"), *sizes, "--dim", "past+sequence=1..7", *target[:2]],
                              capture_output=True, text=True, check=False)
        equal(done.returncode, 2, f"exit code: {done.stderr}")
        contains(done.stderr, "--dim past+sequence: the sum is 8 to 17, never 1 to 7")


def merged(world, name, model):
    """One If on a flag, as exporters merge decoders: the encoder's keys are written in one branch, into the state, where the other
    reads them; caches grow in both. Without the cache, rows before are an error of the run."""
    rows = model.CONTEXT
    options = ["--dim", "batch=1..2", "--dim", f"sequence=1..{rows}", "--dim", f"past=0..{rows - 1}", "--dim",
               f"past+sequence=1..{rows}", "--dim", "heard=1..40", "--dim", "heard_before=1..40", *model.states()]
    out = compiled(world, name, model, *options, "--selftest")
    schedule = "".join(path.read_text() for path in (out / "src").glob("net_batch*.cpp"))
    check("memcpy" not in schedule and "identity" not in schedule, "a cache is copied")
    equal(schedule.count("if (sizes->past != 0) return NET_SHAPE_MISMATCH;"), 1, "checks of a branch's sizes")
    weights = re.findall(r"// (\w+) \S+ packed for", schedule)
    equal(sorted(weights), sorted(set(weights)), "packed weights, of which both branches use most")
    shown = world.run([world.gcompile, "verify", world.folder / f"{name}.onnxtxt", *options, "--threads", "2", "--seed", "3"])
    contains(shown.stdout + shown.stderr, "are right", "no outputs", "has not the sizes that it has in the other branch")
    world.run([world.gcompile, "verify", world.folder / f"{name}.onnxtxt", "-q", "--target", "cuda", "--emulate", "--dim", "batch=1..2",
               "--dim", "sequence=1..9", "--dim", "past=0..11", "--dim", "past+sequence=1..12", "--dim", "heard=1..5", "--dim",
               "heard_before=1..5", *model.states()])
    built(world, out, "net_run", "net_selftest")
    world.run(["make", "-s", "-C", out, "ARCH=native", f"BUILD={out / 'build'}", "test"])
    caller = world.path(f"{name}_caller")
    world.run(["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{out}/include", HERE / "merged_decoder.cpp",
               out / "build" / "libnet.a", "-o", caller])
    world.run([caller])


def case_merged(world):
    merged(world, "merged", decoder_models.Whisper())


def case_merged_empty(world):
    merged(world, "merged_empty", decoder_models.Whisper(layers=2, gives_nothing=True))


def case_empty_without_state(world):
    """What a branch gives as nothing stays in a state; where there is none, the output is named."""
    model = decoder_models.Whisper(layers=1, gives_nothing=True)
    path = world.path("empty.onnxtxt")
    path.write_text(model.text())
    states = model.states()
    kept = [state for state in states if "decoder" in state]
    for sizes in (["batch=1..2", "sequence=1..9", "past=0..9", "heard=1..5", "heard_before=1..5"],
                  ["batch=1", "sequence=1", "past=0", "heard=5", "heard_before=5"]):
        for given in ([], [word for state in kept for word in ("--state", state)]):
            done = subprocess.run([world.gcompile, path, "-o", world.path("never"), *(w for s in sizes for w in ("--dim", s)), *given],
                                  capture_output=True, text=True, check=False)
            equal(done.returncode, 1, f"exit code: {done.stderr}")
            contains(done.stderr, "output 'present_0_encoder_key' is float32[0, 4, 1, 8] in one branch, which is nothing",
                     "--state INPUT=present_0_encoder_key keeps it")


def case_branches(world):
    """Results of an If that are of unlike sizes: one that is never smaller, two that are assumed to be equal, and numbers, which are
    refused."""
    model = Model()
    model.inputs = ["float[old,4] a", "float[new,4] b", "float[other,4] c", "bool flag"]
    model.outputs = ["float[n,4] longer", "float[m,4] either"]
    model.constants = ["int64[1] zero = {0}"]
    model.nodes = ["longer, either = If(flag)<then_branch = g1 () => (float[x,4] p, float[y,4] q) { p = Concat<axis = 0>(a, b) "
                   "q = Neg(b) }, else_branch = g2 () => (float[z,4] r, float[w,4] s) { r = Neg(b) s = Identity(c) }>"]
    path = world.path("branches.onnxtxt")
    path.write_text(model.text())
    options = ["--dim", "old=0..3", "--dim", "new=1..5", "--dim", "other=1..5"]
    for target in (["--target", "cpp"], ["--target", "cuda", "--emulate"]):
        for seed in ("1", "2"):
            shown = world.run([world.gcompile, "verify", path, *options, "--seed", seed, *target])
            contains(shown.stdout + shown.stderr, "are right", "no outputs")
    done = subprocess.run([world.gcompile, path, "-o", world.path("numbers"), "--dim", "old=2", "--dim", "new=1", "--dim", "other=1"],
                          capture_output=True, text=True, check=False)
    equal(done.returncode, 1, f"exit code: {done.stderr}")
    contains(done.stderr, "in one branch and", "in the other")


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
        check("memcpy(state[" not in text, f"{name}: the state is copied")
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


def attention_models():
    """Attention operators over caches, positions that are computed, and a cache that rows are scattered into."""
    shapes = "float[batch,rows,16] q", "float[batch,rows,16] k", "float[batch,rows,16] v"
    caches = "float[batch,4,past,4] past_k", "float[batch,4,past,4] past_v"
    presents = "float[batch,4,n,4] present_k", "float[batch,4,m,4] present_v"
    several = Model()
    several.domains = ', "com.microsoft" : 1'
    several.inputs = [*shapes, "int32[batch,joined] mask", *caches]
    several.outputs = ["float[batch,rows,16] y", *presents]
    several.nodes = ["y, present_k, present_v = com.microsoft.MultiHeadAttention<num_heads = 4, unidirectional = 1>"
                     "(q, k, v, , mask, , past_k, past_v)"]
    yield "several_heads", several, ["past_k=present_k", "past_v=present_v"]
    joined = Model()
    joined.domains = ', "com.microsoft" : 1'
    joined.inputs = ["float[batch,rows,16] x", "int32[batch,joined] mask", "float[2,batch,4,past,4] old"]
    joined.outputs = ["float[batch,rows,16] y", "float[2,batch,4,n,4] new"]
    joined.constant("w", "float", (16, 48))
    joined.constant("b", "float", (48,))
    joined.nodes = ["y, new = com.microsoft.Attention<num_heads = 4, unidirectional = 1>(x, w, b, mask, old)"]
    yield "joined_cache", joined, ["old=new"]
    standard = Model(23)
    standard.inputs = [*shapes, "float[batch,1,rows,joined] mask", *caches, "int64[batch,rows] positions"]
    standard.outputs = ["float[batch,rows,16] y", *presents]
    standard.constant("cosines", "float", (40, 2))
    standard.constant("sines", "float", (40, 2))
    standard.nodes = ["kk = RotaryEmbedding<num_heads = 4>(k, cosines, sines, positions)",
                      "y, present_k, present_v = Attention<q_num_heads = 4, kv_num_heads = 4, is_causal = 1, left_window_size = 9>"
                      "(q, kk, v, mask, past_k, past_v)"]
    yield "standard", standard, ["past_k=present_k", "past_v=present_v"]


def case_attention_operators(world):
    sizes = ["--dim", "batch=1..2", "--dim", "past=0..30", "--dim", "rows=1..20", "--dim", "past+rows=1..32", "--dim",
             "joined=past+rows"]
    for name, model, states in attention_models():
        options = [*sizes, *(word for state in states for word in ("--state", state))]
        out = compiled(world, name, model, *options)
        text = "".join(path.read_text() for path in (out / "src").glob("net*.cpp"))
        check("memcpy(state[" not in text, f"{name}: the state is copied")
        world.run([world.gcompile, "verify", world.folder / f"{name}.onnxtxt", "-q", *options])


def scattered():
    model = Model(24)
    model.inputs = ["float[batch,2,room,4] cache", "float[batch,2,rows,4] fresh", "int64[batch] places"]
    model.outputs = ["float[batch,2,room,4] y", "float[batch,2,room,4] z"]
    model.nodes = ["y = TensorScatter(cache, fresh, places)", "z = TensorScatter<mode = \"circular\">(cache, fresh, places)"]
    return model


def case_scattered(world):
    compiled(world, "scattered", scattered(), "--dim", "batch=1..2", "--dim", "room=8..12", "--dim", "rows=1..7")
    world.run([world.gcompile, "verify", world.folder / "scattered.onnxtxt", "-q", "--dim", "batch=1..2", "--dim", "room=8..12",
               "--dim", "rows=1..7"])


def case_grouped(world):
    """GroupQueryAttention, whose samples have keys of their own number: rows are scattered into the state."""
    decoder(world, "grouped", decoder_models.llama(grouped_operator=True))


def case_fixed_room(world):
    """Caches of one size that rows are written into, by an operator or by a choice at every position."""
    scatter = Model(24)
    scatter.inputs = ["float[2,3,9,4] cache", "float[2,3,2,4] fresh", "int64[2] places"]
    scatter.outputs = ["float[2,3,9,4] joined", "float[2,3,9,4] y"]
    scatter.nodes = ["joined = TensorScatter(cache, fresh, places)", "y = Exp(joined)"]
    choice = Model()
    choice.inputs = ["float[9,4] cache", "float[1,4] fresh", "int64[1] at"]
    choice.outputs = ["float[9,4] joined", "float[9,4] y"]
    choice.constants = ["int64[9,1] rows = {0, 1, 2, 3, 4, 5, 6, 7, 8}"]
    choice.nodes = ["here = Equal(rows, at)", "joined = Where(here, fresh, cache)", "y = Exp(joined)"]
    read_before = Model(24)
    read_before.inputs, read_before.outputs = scatter.inputs, ["float[2,3,9,4] joined", "float[2,3,9,4] y"]
    read_before.nodes = ["joined = TensorScatter(cache, fresh, places)", "y = Sub(joined, cache)"]
    for name, model, copies in (("scatter", scatter, 0), ("choice", choice, 0), ("read_before", read_before, 1)):
        out = compiled(world, name, model, "--state", "cache=joined", "--selftest")
        text = "".join(path.read_text() for path in (out / "src").glob("net*.cpp"))
        equal(text.count("memcpy(state["), copies, f"copies to the state of {name}")
        built(world, out, "net_selftest")
        world.run(["make", "-s", "-C", out, "ARCH=native", f"BUILD={out / 'build'}", "test"])
        world.run([world.gcompile, "verify", world.folder / f"{name}.onnxtxt", "-q", "--state", "cache=joined"])
        world.run([world.gcompile, "verify", world.folder / f"{name}.onnxtxt", "-q", "--state", "cache=joined", "--target", "cuda",
                   "--emulate"])


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


def case_a_run_of_no_rows(world):
    """Within bounds it leaves the state as it is; as a choice it is a schedule that appends nothing, and refused."""
    path = world.path("none.onnxtxt")
    path.write_text(cache("batch,n,4", ["joined = Concat<axis = 1>(old, new)"]).text())
    options = ["--state", "old=joined", "--dim", "batch=1", "--dim", "past=0..9"]
    world.run([world.gcompile, "verify", path, "-q", *options, "--dim", "rows=0..5"])
    done = subprocess.run([world.gcompile, path, "-o", world.path("none"), *options, "--dim", "rows=0,5"], capture_output=True,
                          text=True, check=False)
    equal(done.returncode, 1, f"exit code: {done.stderr}")
    check("the state 'old' grows in one run and not in another" in done.stderr, done.stderr)


if __name__ == "__main__":
    run_main(globals())
