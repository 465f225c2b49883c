#!/usr/bin/env python3
"""What gcompile does with models that are wrong, folders that are not its own, and runs that are cut short.

    errors.py --gcompile GCOMPILE [CASE...]
"""

import os
import signal
import subprocess
import time

import growth
from onnx_bytes import FLOAT, INT64, Graph, shape_flags
from support import (EXAMPLES, HERE, SHARED_MODELS, check, contains, equal, read_npy, run_main, shared_model, tree, write_npy)

MODEL, USAGE, FILES, INTERRUPTED = 1, 2, 4, 130
CLASSIFIER = EXAMPLES / "shapes_classifier" / "model.onnx"


def text_model(name):
    return HERE / "models" / f"{name}.onnxtxt"


def nothing_left(world, expected=()):
    equal(sorted(path.name for path in world.folder.iterdir()), sorted(expected), "what lies in the folder")


def case_unsupported(world):
    """Three nodes that nobody knows, in one run, each with operator, opset, operands and a hint."""
    for command in (["-o", world.path("out")], None):
        arguments = command or []
        program = [world.gcompile, *([] if command else ["check"]), text_model("three_foreign"), *arguments]
        said = world.run(program, status=MODEL).stderr
        contains(said, "acme.example.Frobnicate (opset 3)", "acme.example.Defrobnicate (opset 3)",
                 "StringNormalizer (opset 17)", "'a'(float32[2, 3])", "node making 'c'", "node making 'y'",
                 "gcompile ops", "the domain 'acme.example'")
        equal(said.count("is not supported; the model has 1 node of it"), 3, "operators named")
        nothing_left(world)


def case_shapes(world):
    """Every node whose operands do not fit, with the producers of both."""
    said = world.compile(text_model("bad_shapes"), world.path("out"), status=MODEL)
    contains(said, "Add 'y': shapes [2, 3] and [2, 4] do not broadcast", "MatMul 'q'", "'x' float32[2, 3] graph input",
             "'z' float32[2, 4] graph input")
    nothing_left(world)


def case_open_dimensions(world):
    model = text_model("open_dims")
    said = world.compile(model, world.path("out"), status=MODEL)
    contains(said, "input 'x', axis 0: 'batch'", "input 'x', axis 2: 'width'", "input 'z', axis 0: 'batch'",
             "input 'z', axis 1: 'other'", "--dim batch=", "--dim width=", "--dim other=")
    nothing_left(world)
    said = world.compile(model, world.path("out"), "--dim", "batch=2", "--dim", "width=5", status=MODEL)
    contains(said, "input 'z', axis 1: 'other'", "--dim other=")
    check("'width'" not in said, f"a dimension that is bound is called open:\n{said}")
    world.compile(model, world.path("out"), "--dim", "batch=2", "--dim", "width=5", "--shape", "z:2x7")
    contains((world.path("out") / "include/open_dims/open_dims.h").read_text(encoding="utf-8"),
             "float32[2, 3, 5]", "float32[2, 7]")


def case_wrong_declarations(world):
    """The last of two imports of a domain counts, and a declared output shape is a hint: Softmax of opset 13 on
    axis 0 of [2, 3], though opset 9 and [1, 7] are declared."""
    said = world.compile(text_model("wrong_declarations"), world.path("project"), "--name", "plain")
    contains(said, "imports opset 9 of ai.onnx and later 13", "'y' is declared with shape [1, 7], but has [2, 3]")
    runner = world.runner(world.path("project"), "plain")
    x = write_npy(world.path("x.npy"), "float32", [2, 3], [0.0, 5.0, -3.0, 0.0, 5.0, -3.0])
    world.run([runner, x, "--output-dir", world.folder])
    # Columns of equal values: halves. Opset 9 would normalise over all six.
    equal(read_npy(world.path("0_y.npy")), [0.5] * 6, "softmax")


def case_usage(world):
    for arguments in ([CLASSIFIER], [CLASSIFIER, "-o", world.path("out"), "--no-such-flag"],
                      [CLASSIFIER, "-o", world.path("out"), "--name", "Not-A-Name"],
                      [CLASSIFIER, "-o", world.path("out"), "--dim", "N"],
                      [CLASSIFIER, "-o", world.path("out"), "--disable-pass", "no-such-pass"], []):
        done = world.run([world.gcompile, *arguments], status=USAGE)
        check(done.stderr.strip(), f"{arguments}: nothing is said")
    nothing_left(world)


def case_damaged_models(world):
    """Cut at many places, with a flipped byte at many others: an error of the model or a project, never a crash."""
    whole = CLASSIFIER.read_bytes()
    source = world.path("damaged.onnx")
    variants = [whole[:size] for size in (0, 1, 10, 100, 5000, len(whole) - 1)]
    variants += [whole[:at] + bytes([whole[at] ^ flip]) + whole[at + 1:] for at, flip in
                 ((0, 255), (9, 1), (40, 128), (60, 8), (1000, 4), (len(whole) - 60, 64), (len(whole) - 8, 255))]
    for index, data in enumerate(variants):
        source.write_bytes(data)
        done = world.run([world.gcompile, source, "-o", world.path("out"), "--force"], status=None, timeout=60)
        check(done.returncode in (0, MODEL), f"variant {index}: exit code {done.returncode}\n{done.stderr[-2000:]}")
        check(done.returncode == 0 or "error" in done.stderr, f"variant {index}: no error is named\n{done.stderr}")
        check(index >= 6 or index == 0 or done.returncode == MODEL, f"variant {index}: a cut model compiles")
    contains(world.compile(world.path("missing.onnx"), world.path("out"), status=FILES), "missing.onnx")


def case_foreign_folder(world):
    """A folder that gcompile did not make stays as it is; with --force files are added to it and none is touched."""
    project = world.path("project")
    project.mkdir()
    (project / "mine.txt").write_text("mine", encoding="utf-8")
    before = tree(project)
    said = world.compile(CLASSIFIER, project, status=FILES)
    contains(said, "was not made by gcompile", "--force")
    equal(tree(project), before, "the foreign folder")
    nothing_left(world, ["project"])

    world.compile(CLASSIFIER, project, "--force")
    check((project / "mine.txt").read_text(encoding="utf-8") == "mine", "--force changed a foreign file")
    check((project / "CMakeLists.txt").exists(), "--force wrote nothing")
    nothing_left(world, ["project"])

    # Now it is ours: another model replaces the first one and leaves the foreign file.
    world.compile(EXAMPLES / "tiny_attention" / "model.onnx", project, "--name", "other")
    files = tree(project)
    check("mine.txt" in files and "src/other.cpp" in files and "src/model.cpp" not in files, f"files: {sorted(files)}")

    # A foreign file in the way of one of ours is never overwritten.
    other = world.path("other")
    other.mkdir()
    (other / "CMakeLists.txt").write_text("mine", encoding="utf-8")
    before = tree(other)
    world.compile(CLASSIFIER, other, "--force", status=FILES)
    equal(tree(other), before, "the folder with a file in the way")


def case_error_keeps_old_output(world):
    """A failed run leaves the output of the run before."""
    project = world.example("shapes_classifier", "project")
    before = tree(project)
    world.compile(text_model("three_foreign"), project, status=MODEL)
    equal(tree(project), before, "the project")
    nothing_left(world, ["project"])


def interrupted_at(world, model, delay, flags):
    process = subprocess.Popen([world.gcompile, str(model), "-o", str(world.path("out")), "--name", "net", *flags],
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    return process.returncode, output


def case_interrupt(world):
    """SIGINT at many moments: nothing or a whole project, exit code 130 or 0, and no leftovers."""
    whole = tree(world.example("shapes_classifier", "whole", "--name", "net", "--selftest", "-O3"))
    codes = []
    for step in range(14):
        # The handler stands after a few milliseconds; before that the signal ends the process as usual (-2).
        code, output = interrupted_at(world, CLASSIFIER, 0.002 * 1.6**step, ["--selftest"])
        check(code in (0, INTERRUPTED, -signal.SIGINT), f"exit code {code}\n{output}")
        codes.append(code)
        if code == 0:
            equal(tree(world.path("out")), whole, "the output of a run that ended well")
            world.run(["rm", "-r", world.path("out")])
        nothing_left(world, ["whole"])
    print(f"         exit codes {codes}")


def case_interrupt_long(world):
    """A model that takes long enough to be interrupted for certain."""
    graph = Graph("chain")
    value = graph.input("x", FLOAT, [64, 64])
    for index in range(20_000):
        graph.node(("Tanh", "Sigmoid", "Erf", "Neg")[index % 4], [value], [f"v{index}"])
        value = f"v{index}"
    graph.output(value, FLOAT, [64, 64])
    model = world.path("chain.onnx")
    model.write_bytes(graph.model())
    code, output = interrupted_at(world, model, 0.3, ["-O0"])
    equal(code, INTERRUPTED, f"exit code after SIGINT\n{output[-1000:]}")
    nothing_left(world, ["chain.onnx"])


def processor_seconds(process):
    """User and system time of a running process so far (proc(5), fields 14 and 15)."""
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def processor_seconds_to_stop(world, model, delay, flags):
    """(exit code, processor seconds between SIGINT after `delay` processor seconds and the end)."""
    command = [world.gcompile, str(model), "-o", str(world.path("out")), "--quiet", *flags]
    with open(os.devnull, "wb") as nowhere:
        process = os.posix_spawn(command[0], command, os.environ,
                                 file_actions=[(os.POSIX_SPAWN_DUP2, nowhere.fileno(), 2)])
    used = 0.0
    while used < delay and os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        time.sleep(0.005)
        used = processor_seconds(process)
    os.kill(process, signal.SIGINT)
    _, status, usage = os.wait4(process, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime - used


def constants_to_fold():
    """A graph whose time goes into constants."""
    graph = Graph("constants")
    shape = graph.constant("shape", INT64, [2], [2048, 2048])
    graph.node("ConstantOfShape", [shape], ["c0"])
    for index in range(12):
        graph.node(("Sin", "Exp", "Tanh")[index % 3], [f"c{index}"], [f"c{index + 1}"])
    graph.node("Add", [graph.input("x", FLOAT, [2048, 2048]), "c12"], ["y"])
    graph.output("y", FLOAT, [2048, 2048])
    return graph


def case_interrupt_anywhere(world):
    """Inside import, folding, rules, fusion, scheduling, planning and emission: within a second, with nothing left."""
    stopped = 0
    for name, graph, flags in (("constants", constants_to_fold(), []),
                               ("softmax", growth.softmax_chain(20_000), []),
                               ("dense", growth.dense_chain(20_000), ["--optimize-for", "size"]),
                               ("sum", growth.sum_of_reductions(10_000), ["--target", "cuda"]),
                               ("elementwise", growth.elementwise_chain(40_000), ["-O0"])):
        model = world.path("model.onnx")
        model.write_bytes(graph.model())
        for delay in (0.1, 0.3, 0.6, 1.0, 1.6, 2.4):
            code, seconds = processor_seconds_to_stop(world, model, delay, flags)
            check(code in (0, INTERRUPTED), f"{name}: exit code {code} after {delay} s")
            check(seconds <= 1.0, f"{name}: {seconds:.2f} s of processor time from SIGINT after {delay} s to the end")
            if code == 0:
                world.run(["rm", "-r", world.path("out")])
            nothing_left(world, ["model.onnx"])
            stopped += code == INTERRUPTED
            if code == 0:
                break
    check(stopped >= 10, f"only {stopped} runs were interrupted")


def case_heard_at_once(world):
    """What one node or a model has many of, in every printer: SIGINT is heard within a second there too."""
    stopped = 0
    for name, graph, flags in (("joined", growth.joined_inputs(40_000), []),
                               ("rows", growth.checked_rows(8_000), ["--target", "cuda"]),
                               ("outputs", growth.many_outputs(20_000), [])):
        model = world.path("model.onnx")
        model.write_bytes(graph.model())
        for delay in (0.3, 0.8, 1.3, 1.8):
            code, seconds = processor_seconds_to_stop(world, model, delay, flags)
            check(code in (0, INTERRUPTED), f"{name}: exit code {code} after {delay} s")
            check(seconds <= 1.0, f"{name}: {seconds:.2f} s of processor time from SIGINT after {delay} s to the end")
            if code == 0:
                world.run(["rm", "-r", world.path("out")])
                break
            nothing_left(world, ["model.onnx"])
            stopped += 1
    check(stopped >= 6, f"only {stopped} runs were interrupted")


def doubling_functions(levels, name="call", bytes_of_names=0):
    """A function that calls another one twice, which does the same: 2**levels nodes of some hundred bytes."""
    graph, functions = Graph(), []
    for level in range(levels):
        body = Graph()
        operator, domain = (f"f{level - 1}", "here") if level else ("Softmax", "")
        body.node(operator, ["a"], ["b"], "first", domain=domain)
        body.node(operator, ["b"], ["c"], "second" + "x" * bytes_of_names, domain=domain)
        functions.append(body.function(f"f{level}", ["a"], ["c"], "here", (("", 17), ("here", 1))))
    graph.input("x", FLOAT, [4, 8])
    graph.node(f"f{levels - 1}", ["x"], ["y"], name, domain="here")
    graph.output("y", FLOAT, [4, 8])
    return graph.model((("", 17), ("here", 1)), functions=functions)


def answer_within(world, command, status, seconds=10.0, megabytes=1024):
    """What is said by a command that ends with `status`, within processor time and memory."""
    log = world.path("log.txt")
    with open(log, "wb") as file:
        process = os.posix_spawn(str(command[0]), [str(word) for word in command], os.environ,
                                 file_actions=[(os.POSIX_SPAWN_DUP2, file.fileno(), 2)])
        _, code, usage = os.wait4(process, 0)
    said = log.read_text(encoding="utf-8", errors="replace")
    log.unlink()
    equal(os.waitstatus_to_exitcode(code), status, f"exit code\n{said[-1000:]}")
    used, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024
    check(used <= seconds and peak <= megabytes, f"{used:.1f} s and {peak} MB, at most {seconds} and {megabytes}")
    return said


def case_calls_that_multiply(world):
    """Functions that call functions: what a small file grows to has limits in nodes and in bytes of names."""
    for levels, names, said in ((24, 0, "calls of functions make more nodes than the limit of"),
                                (15, 20_000, "calls of functions make more bytes of names and values than the limit of")):
        model = world.path("model.onnx")
        model.write_bytes(doubling_functions(levels, bytes_of_names=names))
        contains(answer_within(world, [world.gcompile, model, "-o", world.path("out")], MODEL), "error[E0004]", said)
        nothing_left(world, ["model.onnx"])
    # Ten levels are a model like any other.
    model.write_bytes(doubling_functions(10))
    world.run([world.gcompile, "check", model])


def case_trips_that_multiply(world):
    """Loops that go on, in loops too: the limits of what calls make, for bodies without nodes as well."""
    def loop(body, trips="trips"):
        return f"Loop<body = body (int64 i, bool go, float v) => (bool go, float w) {{ {body} }}>({trips}, yes, v)"

    bodies = ["w = Identity(v)", "w = If(go) <then_branch = a () => (float p) { p = Neg(v) }, else_branch = b () => (float q) "
              "{ q = Exp(v) }>", "w = Neg(v)  " + "x" * 20_000 + " = Exp(v)"]
    nested = "w = Tanh(v)"
    for _ in range(12):
        nested = "w = " + loop(nested, "few")
    for body, trips in [*((body, "trips") for body in bodies), (nested, "few")]:
        model = world.path("model.onnxtxt")
        model.write_text('<ir_version: 8, opset_import: ["": 17]> g (float v) => (float y) '
                         "<int64 trips = {1000000000000000000}, int64 few = {4}, bool yes = {1}> "
                         "{ y = " + loop(body, trips) + " }", encoding="utf-8")
        contains(answer_within(world, [world.gcompile, model, "-o", world.path("out")], MODEL), "error[E0004]", "trips")
        nothing_left(world, ["model.onnxtxt"])


def case_run_time_indices(world):
    """An index out of range is a status, whichever operator takes it; one in range, negative ones too, is not."""
    world.compile(text_model("run_time_indices"), world.path("project"), "--name", "plain")
    runner = world.runner(world.path("project"), "plain", ("-O1",))
    x = write_npy(world.path("x.npy"), "float32", [4, 3], [float(i) for i in range(12)])
    updates = write_npy(world.path("updates.npy"), "float32", [2, 3], [100.0 + i for i in range(6)])

    def run(rows, cells, places, status):
        files = [write_npy(world.path("rows.npy"), "int64", [2], rows),
                 write_npy(world.path("cells.npy"), "int64", [2, 3], cells),
                 write_npy(world.path("places.npy"), "int64", [2, 1], places)]
        return world.run([runner, x, *files, updates, "--output-dir", world.folder], status=status)

    good = ([0, -1], [0, 1, 2, 3, -4, -1], [1, -1])
    run(*good, 0)
    equal(read_npy(world.path("0_picked.npy")), [0, 1, 2, 9, 10, 11], "Gather")
    equal(read_npy(world.path("1_elements.npy")), [0, 4, 8, 9, 1, 11], "GatherElements")
    equal(read_npy(world.path("2_tuples.npy")), [3, 4, 5, 9, 10, 11], "GatherND")
    equal(read_npy(world.path("3_scattered.npy")), [100, 104, 2, 3, 101, 5, 6, 7, 102, 103, 10, 105], "ScatterElements")
    equal(read_npy(world.path("4_placed.npy")), [0, 1, 2, 100, 101, 102, 6, 7, 8, 103, 104, 105], "ScatterND")
    for operand in range(3):
        for bad in (4, -5, 2**62, -2**63):
            inputs = [list(values) for values in good]
            inputs[operand][-1] = bad
            contains(run(*inputs, 1).stderr, "out of range")


def run_branch(world, runner, choose, status):
    files = [write_npy(world.path("choose.npy"), "bool", [], [choose]),
             write_npy(world.path("x.npy"), "float32", [2, 3], [0.0] * 6),
             write_npy(world.path("z.npy"), "float32", [2, 4], [0.0] * 8)]
    return world.run([runner, *files, "--output-dir", world.folder], status=status)


def case_untypable_branch(world):
    """A branch with a shape error compiles with a warning; a run that takes it returns the shape status, one that does
    not is right. --set decides the condition: the good branch without a warning, the bad one as an error."""
    model = text_model("untypable_branch")
    said = world.compile(model, world.path("project"), "--name", "plain")
    contains(said, "warning", "'y/else' of an If cannot be typed", "do not broadcast", "--set")
    runner = world.runner(world.path("project"), "plain")
    run_branch(world, runner, True, 0)
    equal(read_npy(world.path("0_y.npy")), [1.0] * 6, "the good branch")
    contains(run_branch(world, runner, False, 1).stderr, "shapes contradict each other")
    # Random inputs take one or the other: verify compares what has outputs, and says so where nothing has.
    said = world.run([world.gcompile, "verify", model, "--cases", "8"]).stderr
    contains(said, "no outputs  random ", "do not broadcast", "verified: ")
    seed = said.split("no outputs  random ")[1].split(":")[0]
    contains(world.run([world.gcompile, "verify", model, "--seed", seed], status=MODEL).stderr, "E0702", "--set")
    said = world.compile(model, world.path("good"), "--set", "choose=1")
    check("warning[" not in said, f"a warning of a branch that is not there:\n{said}")
    contains(world.compile(model, world.path("bad"), "--set", "choose=0", status=MODEL), "do not broadcast")


def case_shared_foreign_domains(world):
    """Published models with operators of other frameworks: each operator is named, with one of its nodes."""
    for name, operators in (("finn_cybsec_mlp", ["finn.custom_op.fpgadataflow"]), ("deeploy_waveformer", ["RequantShift"]),
                            ("espcn_quant_subpixel", ["onnx.brevitas"]), ("fns_candy", ["Crop", "ImageScaler", "Affine"])):
        said = world.run([world.gcompile, "check", shared_model(name)], status=MODEL).stderr
        contains(said, "is not supported", *operators)


def case_shared_silero(world):
    """The other branch of silero_vad_v6 cannot be typed: a warning, a whole project, and with --set none."""
    model = shared_model("silero_vad_v6")
    flags = ["--name", "net", "--shape", "input:1x576", "--shape", "state:2x1x128"]
    contains(world.compile(model, world.path("project"), *flags), "cannot be typed", "--set")
    contains((world.path("project") / "src/net.cpp").read_text(encoding="utf-8"), "return NET_SHAPE_MISMATCH;")
    said = world.compile(model, world.path("set"), *flags, "--set", "sr=16000")
    check("warning[" not in said, f"a warning although sr is set:\n{said}")


def case_shared_ppocr(world):
    """Sizes that are not divisible by 32 do not fit the model's own additions: an error that names the node and both
    shapes. Sizes that are compile."""
    model = shared_model("ppocr_v3_det")
    for size in ("1x3x100x100", "1x3x40x65"):
        said = world.compile(model, world.path("out"), "--shape", f"x:{size}", status=MODEL)
        contains(said, "Add 'Add_42'", "do not broadcast", "from Resize", "from Add 'Add_35'")
        nothing_left(world)
    world.run([world.gcompile, "check", model, "--shape", "x:1x3x64x96"])


def case_shared_duplicate_opset(world):
    """mcunet imports ai.onnx twice."""
    said = world.compile(shared_model("mcunet"), world.path("out"), *shape_flags(SHARED_MODELS / "mcunet"))
    contains(said, "imports opset 21 of ai.onnx and later 18")


if __name__ == "__main__":
    run_main(globals())
