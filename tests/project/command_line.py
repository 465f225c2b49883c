#!/usr/bin/env python3
"""gcompile as a person or a script meets it: exit codes, messages, results for programs, and what stays behind.

    command_line.py --gcompile GCOMPILE [CASE...]
"""

import json
import os
import re
import shutil
import signal
import subprocess
import time

from support import EXAMPLES, ROOT, Failure, check, contains, equal, run_main, tree

CLASSIFIER = EXAMPLES / "shapes_classifier"
DENOISER = EXAMPLES / "streaming_denoiser"

# Two operators that do not exist, one that does, one whose operand cannot be.
UNSUPPORTED = """<ir_version: 8, opset_import: ["" : 13, "acme" : 1]>
broken (float[2, 3] x) => (float[2, 3] y) {
  a = acme.Frobnicate (x)
  b = Relu (a)
  y = NoSuchOperator (b)
}
"""

DYNAMIC = """<ir_version: 8, opset_import: ["" : 13]>
dynamic (float[N, 3] x) => (float[N, 3] y) {
  y = Relu (x)
}
"""


def case_help(world):
    contains(world.run([world.gcompile, "--help"]).stdout, "Usage:", "gcompile help COMMAND")
    overview = world.run([world.gcompile, "help"]).stdout
    for command in ("compile", "verify", "check", "opt", "ops", "explain", "report", "completion", "manual", "help"):
        contains(overview, f"\n  {command} ")
        shown = world.run([world.gcompile, command, "--help"]).stdout
        equal(world.run([world.gcompile, "help", command]).stdout, shown, f"help of {command}")
        contains(shown, f"Usage: gcompile {command}", "Examples:")
        check(max(map(len, shown.splitlines())) <= 88, f"help of {command} has long lines")
        equal("--data DIR" in shown, command == "verify", f"--data in the help of {command}")
        equal("-o, --output DIR" in shown, command == "compile", f"-o in the help of {command}")
    # Also where the rest is wrong.
    contains(world.run([world.gcompile, "verify", "--no-such", "--help"], status=2).stderr, "--no-such")
    contains(world.run([world.gcompile, "verify", "--help", "--no-such"]).stdout, "Usage: gcompile verify")
    version = world.run([world.gcompile, "--version"]).stdout
    check(re.fullmatch(r"gcompile \d+\.\d+\.\d+\n", version), version)
    contains(world.run([world.gcompile, "explain", "E0401"]).stdout, "E0401: Sizes of the inputs", "--dim N=1,2,4")
    contains(world.run([world.gcompile, "ops", "Conv"]).stdout, "Conv: ", "group (int) = 1")


def case_standard_input(world):
    """The same project, whatever way the model came."""
    for name, place in (("binary", CLASSIFIER / "model.onnx"), ("text", world.path("relu.onnxtxt"))):
        if name == "text":
            place.write_text(DYNAMIC.replace("N", "4"))
        world.compile(place, world.path(f"{name}_file"), "--name", "m", "-q")
        with open(place, "rb") as source:
            subprocess.run([world.gcompile, "-", "-o", world.path(f"{name}_pipe"), "--name", "m", "-q"], stdin=source,
                           check=True, timeout=60)
        check(tree(world.path(f"{name}_file")) == tree(world.path(f"{name}_pipe")), f"{name}: the projects differ")


def case_early_refusal(world):
    """A folder that is refused is refused before the model is read."""
    world.path("mine").mkdir()
    (world.path("mine") / "thesis.txt").write_text("my only copy")
    (world.path("broken.onnx")).write_bytes(b"\x08")
    for place in ("mine", "/usr", "broken.onnx/x"):
        done = world.run([world.gcompile, "broken.onnx", "-o", place], status=4, cwd=world.folder)
        check("[1/5]" not in done.stderr and "ONNX" not in done.stderr, f"{place}: {done.stderr}")
    done = world.run([world.gcompile, "broken.onnx", "-o", "new/deep/x"], status=1, cwd=world.folder)
    check(not world.path("new").exists(), "a folder was made for nothing")


def case_said_once(world):
    world.path("declared.onnxtxt").write_text(DYNAMIC.replace("float[N, 3] y", "float[N, 4] y"))
    said = world.compile(world.path("declared.onnxtxt"), world.path("p"), "--dim", "N=1,2,4")
    equal((said.count("W0205"), said.count("[1/5] read"), said.count("[2/5]")), (1, 1, 3), "warnings and stages")
    said = world.compile(world.path("declared.onnxtxt"), world.path("q"), "--dim", "N=1", "-v")
    check(re.search(r"^  optimise: \d+\.\d{3} s$", said, re.MULTILINE), f"no times: {said}")
    contains(said, "1 node -> 1 call of 1 kernel;", "[2/5] optimise  1 node\n")


def case_usage(world):
    model = CLASSIFIER / "model.onnx"
    for words, part in (
        ([], "model"),
        ([model], "-o DIR"),
        ([model, "-o", "x", "--no-such-option"], "--no-such-option"),
        ([model, "-o", "x", "-O7"], "-O"),
        ([model, "-o", "x", "--name", "Not-A-Name"], "--name"),
        ([model, "-o", "x", "--name", "while"], "--name"),
        ([model, "-o", "x", "--state", "in"], "--state"),
        ([model, "-o", "x", "--state", "no=such"], "--state"),
        ([model, "-o", "x", "--dim", "N"], "--dim"),
        ([model, "-o", "x", "--cpu", "native;evil"], "--cpu"),
        ([model, "-o", "x", "--weights", "elsewhere"], "--weights"),
        ([model, "-o", "x", "--gemm", "cublaslt"], "--gemm needs --target cuda"),
        ([model, "-o", "x", "--target", "cuda", "--arch", "sm_20"], "not an architecture of sm_75 or later"),
        ([model, "-o", "x", "--target", "cuda", "--arch", "sm_80,"], "'' is not an architecture"),
        ([model, "-o", "x", "--target", "cuda", "--arch", "sm_80x"], "'sm_80x' is not an architecture"),
        ([model, "-o", "x", "--target", "cuda", "--arch", "compute_70"], "'compute_70' is not an architecture"),
        ([model, "-o", "x", "--target", "cuda", "--precision", "int4"], "fp32, tf32, fp16, bf16, bf16x3, bf16x6"),
        ([model, "-o", "x", "--target", "cuda", "--precision", "bf16x3"], "--precision bf16x3 needs --target cpp"),
        ([model, "-o", "x", "--precision", "tf32"], "--precision tf32 needs --target cuda"),
        ([model, "-o", "x", "--precision", "bf16x6", "--exact"], "--exact and --precision bf16x6 contradict"),
        ([model, "-o", "x", "--disable-pass", "forms"], "forms"),
        ([model, "-o", "x", "--disable-pass", "no-such-pass"], "fuse"),
        ([model, "-o", "x", "-q", "-v"], "contradict"),
    ):
        done = world.run([world.gcompile, *words], status=2, cwd=world.folder)
        check(re.search(r"^error(\[E\d{4}\])?: ", done.stderr, re.MULTILINE), done.stderr)
        contains(done.stderr, part)
        check(not world.path("x").exists(), f"{words} left something behind")


def case_files(world):
    missing = world.run([world.gcompile, world.path("missing.onnx"), "-o", world.path("x")], status=4)
    contains(missing.stderr, "missing.onnx", "No such file")
    nowhere = world.run([world.gcompile, CLASSIFIER / "model.onnx", "-o", "/proc/nowhere/x"], status=4)
    contains(nowhere.stderr, "error: ", "/proc/nowhere")
    world.run([world.gcompile, "verify", CLASSIFIER / "model.onnx", "--data", world.path("missing")], status=4)


def case_model_errors(world):
    broken = world.path("broken.onnxtxt")
    broken.write_text(UNSUPPORTED)
    for command in (["check", broken], [broken, "-o", world.path("x")]):
        done = world.run([world.gcompile, *command], status=1)
        contains(done.stderr, "Frobnicate", "acme", "NoSuchOperator")
    check(not world.path("x").exists(), "an unsupported model left something behind")
    told = json.loads(world.run([world.gcompile, "check", broken, "--json"], status=1).stdout)
    equal(told["exit_code"], 1, "exit code in JSON")
    check(all(error["message"] for error in told["errors"]), "errors in JSON have messages")
    garbage = world.path("garbage.onnx")
    garbage.write_bytes(b"\x07not a model")
    contains(world.run([world.gcompile, "check", garbage], status=1).stderr, "garbage")


def case_open_dimension(world):
    model = world.path("dynamic.onnxtxt")
    model.write_text(DYNAMIC)
    contains(world.run([world.gcompile, "check", model], status=1).stderr, "N", "--dim N=")
    world.run([world.gcompile, "check", model, "--dim", "N=4"])
    world.run([world.gcompile, "check", model, "--shape", "x:5x3"])


def case_foreign_folder(world):
    target = world.path("precious")
    target.mkdir()
    (target / "thesis.txt").write_text("my only copy")
    contains(world.compile(CLASSIFIER / "model.onnx", target, status=4), "precious", "--force")
    equal(tree(target), {"thesis.txt": (0o644, b"my only copy")}, "a foreign folder")
    world.compile(CLASSIFIER / "model.onnx", target, "--force", "-q")
    equal((target / "thesis.txt").read_text(), "my only copy", "a foreign file after --force")
    check((target / "CMakeLists.txt").exists(), "--force wrote the project")


def case_same_bytes(world):
    """Two folders, two locales, two time zones, two working directories."""
    worlds = [
        ({"LC_ALL": "C", "TZ": "UTC", "HOME": "/nonexistent"}, world.folder, "a"),
        ({"LC_ALL": "de_DE.UTF-8", "LANG": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu"}, ROOT, "b/deeper/still"),
    ]
    trees = []
    for environment, place, name in worlds:
        output = world.path(name)
        output.parent.mkdir(parents=True, exist_ok=True)
        world.compile(DENOISER / "model.onnx", output, "--name", "denoiser", "--selftest", "--state", "h_in=h_out",
                      env={**os.environ, **environment}, cwd=place)
        trees.append(tree(output))
    check(trees[0] == trees[1], f"differ: {[k for k in trees[0] if trees[0].get(k) != trees[1].get(k)]}")
    for path, (_, content) in trees[0].items():
        for secret in (str(world.folder).encode(), str(ROOT).encode()):
            check(secret not in content, f"{path} holds the path {secret}")
    # A second run changes nothing, not even a time.
    before = {path: path.stat().st_mtime_ns for path in world.path("a").rglob("*") if path.is_file()}
    contains(world.compile(DENOISER / "model.onnx", world.path("a"), "--name", "denoiser", "--selftest", "--state",
                           "h_in=h_out"),
             "0 of them changed")
    equal({path: path.stat().st_mtime_ns for path in before}, before, "modification times")


def case_results_for_programs(world):
    done = world.run([world.gcompile, CLASSIFIER / "model.onnx", "-o", world.path("p"), "--json", "-q"])
    equal(done.stderr, "", "standard error with -q")
    told = json.loads(done.stdout)
    manifest = json.loads((world.path("p") / "meta" / "p.json").read_text())
    header = (world.path("p") / "include" / "p" / "p.h").read_text()
    for key in ("arena", "weights", "state"):
        figure = told[f"{key}_bytes"]
        equal(manifest[f"{key}_bytes"], figure, f"{key}_bytes in the manifest")
        contains(header, f"#define P_{key.upper()}_BYTES {max(figure, 1)}u")  # C has no array of 0
    equal((world.path("p") / "data" / "p.weights.bin").stat().st_size, told["weights_bytes"], "the weights file")
    check_json = json.loads(world.run([world.gcompile, "check", CLASSIFIER / "model.onnx", "--json"]).stdout)
    equal(check_json["weights_bytes"], told["weights_bytes"], "weights in the JSON of check")
    check(told["arena_bytes"] >= told["arena_lower_bound"] > 0, "the arena is at least its bound")
    equal(manifest["generator"], "gcompile", "generator")
    ops = json.loads(world.run([world.gcompile, "ops", "--json"]).stdout)["operators"]
    check({"Conv", "Relu", "LSTM", "If"} <= {op["name"] for op in ops}, "ops lists the operators")
    opt = json.loads(world.run([world.gcompile, "opt", CLASSIFIER / "model.onnx", "--json", "-q"]).stdout)
    check("Conv" in opt["graph"] and opt["passes"], "opt tells graph and passes")


def case_dumps(world):
    dumps = world.path("dumps")
    world.compile(CLASSIFIER / "model.onnx", world.path("p"), "--dump-dir", dumps, "--save-onnx",
                  world.path("saved.onnx"))
    names = sorted(path.name for path in dumps.iterdir() if path.name != ".gcompile")
    equal(names[0], "00-imported.txt", "first dump")
    check("program.json" in names and len(names) > 4, f"dumps: {names}")
    check(json.loads((dumps / "program.json").read_text())["steps"], "the program's steps are dumped")
    check("passes.txt" not in names, "seconds are dumped without -v")
    world.compile(CLASSIFIER / "model.onnx", world.path("timed"), "-v", "--dump-dir", world.path("timed_dumps"))
    contains(world.path("timed_dumps").joinpath("passes.txt").read_text(), "seconds", "fuse")
    # A folder of dumps may be filled again, one that holds anything else may not; a file is replaced as a whole.
    saved = world.path("saved.onnx")
    saved.chmod(0o640)
    before = saved.stat().st_ino
    world.compile(CLASSIFIER / "model.onnx", world.path("p"), "--dump-dir", dumps, "--save-onnx", saved)
    check(saved.stat().st_ino != before, "--save-onnx wrote into the file that was there")
    equal(saved.stat().st_mode & 0o777, 0o640, "mode of the saved model")
    os.symlink("saved.onnx", world.path("link.onnx"))
    world.run([world.gcompile, "opt", CLASSIFIER / "model.onnx", "-q", "--save-onnx", world.path("link.onnx")])
    check(world.path("link.onnx").is_symlink(), "--save-onnx replaced a link")
    world.run([world.gcompile, "opt", CLASSIFIER / "model.onnx", "-q", "--save-onnx", "/dev/null"])
    mine = world.path("mine")
    mine.mkdir()
    (mine / "program.json").write_text("my only copy")
    for command in (["compile", "-o", world.path("p"), "--dump-dir"], ["verify", "--keep"]):
        done = world.run([world.gcompile, command[0], CLASSIFIER / "model.onnx", *command[1:], mine], status=4)
        contains(done.stderr, "was not made by gcompile")
    equal(tree(mine), {"program.json": (0o644, b"my only copy")}, "a folder of the user's")
    # What was saved is a model again, and the same function.
    world.run([world.gcompile, "check", world.path("saved.onnx")])
    shutil.copytree(CLASSIFIER / "test_data_set_0", world.path("data"))
    world.run([world.gcompile, "verify", world.path("saved.onnx"), "--data", world.path("data"), "-q"])


def case_colors(world):
    command = [world.gcompile, world.path("missing.onnx"), "-o", world.path("x")]
    check("\x1b" not in world.run(command, status=4).stderr, "colour in a pipe")
    check("\x1b[" in world.run([*command, "--color", "always"], status=4).stderr, "no colour with --color always")


def case_verify(world):
    done = world.run([world.gcompile, "verify", CLASSIFIER / "model.onnx", "--data", CLASSIFIER, "--json", "-q"])
    told = json.loads(done.stdout)
    check(told["ok"] and len(told["findings"]) == 5, f"five data sets verify: {done.stdout}")
    # States are fed with those of the data.
    world.run([world.gcompile, "verify", DENOISER / "model.onnx", "--data", DENOISER / "test_data_set_2", "-q",
               "--state", "h_in=h_out", "--state", "cache_in=cache_out"])
    # Inner values, against the evaluator; without data the inputs are random.
    told = json.loads(world.run([world.gcompile, "verify", DENOISER / "model.onnx", "--layers", "--cases", "2",
                                 "--json", "-q"]).stdout)
    check(told["ok"] and told["inner_values"] >= 4, f"inner values: {told}")


def case_verify_finds_a_mismatch(world):
    data = world.path("data")
    shutil.copytree(CLASSIFIER / "test_data_set_0", data)
    expected = bytearray((data / "output_0.pb").read_bytes())
    expected[-1] ^= 0x40  # the exponent of the last float
    (data / "output_0.pb").write_bytes(expected)
    done = world.run([world.gcompile, "verify", CLASSIFIER / "model.onnx", "--data", data], status=3)
    contains(done.stderr, "error[E0701]", "MISMATCH", "expected ", "got ")


def case_interrupt(world):
    """Ctrl-C while the compiler runs: exit code 130, nothing left."""
    temporary = world.path("tmp")
    temporary.mkdir()
    slow = world.path("slow_cxx")
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    process = subprocess.Popen([world.gcompile, "verify", CLASSIFIER / "model.onnx", "--cxx", str(slow)],
                               env={**os.environ, "TMPDIR": str(temporary)}, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    deadline = time.monotonic() + 60
    while not list(temporary.glob("*/*/model/Makefile")):
        if time.monotonic() > deadline:
            process.kill()
            raise Failure("verify did not begin to build")
        time.sleep(0.05)
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=30)
    equal(process.returncode, 130, f"exit code after SIGINT; {output.decode(errors='replace')}")
    equal(list(temporary.iterdir()), [], "what is left in TMPDIR")


def case_a_compiler_that_fails(world):
    """Whatever it fails at, by whatever way it is named: it is the user's, and no mistake of gcompile's."""
    always, links, dies = world.path("failing_cxx"), world.path("failing_ld"), world.path("dying_cxx")
    always.write_text("#!/bin/sh\necho no such flag >&2\nexit 1\n")
    links.write_text('#!/bin/sh\ncase " $* " in *" -c "*) exec g++ "$@" ;; esac\necho no such library >&2\nexit 1\n')
    dies.write_text("#!/bin/sh\nkill -9 $$\n")
    for path in (always, links, dies):
        path.chmod(0o755)
    world.path("m.onnxtxt").write_text(DYNAMIC.replace("N", "4"))
    verify = [world.gcompile, "verify", world.path("m.onnxtxt")]
    for compiler, part in ((always, "no such flag"), (links, "no such library"), (dies, "exit code 137"),
                           ("g++ --no-such-option", "--no-such-option"), (world.path("none"), "cannot run")):
        done = world.run([*verify, "--cxx", compiler], status=4)
        contains(done.stderr, part, "= help: ")
    contains(world.run(verify, status=4, env={**os.environ, "CXX": str(always)}).stderr, "does not build", "no such flag")
    # The usual one, found in PATH.
    world.path("bin").mkdir()
    shutil.copy(always, world.path("bin") / "c++")
    environment = {**os.environ, "PATH": f"{world.path('bin')}:{os.environ['PATH']}"}
    environment.pop("CXX", None)
    contains(world.run(verify, status=4, env=environment).stderr, "the compiler 'c++' does not build")


def case_words_before_the_command(world):
    """Options may stand before the command, and what looks like one but is a value is none."""
    world.path("m.onnxtxt").write_text(DYNAMIC)
    model = world.path("m.onnxtxt")
    equal(world.run([world.gcompile, "-q", "check", model, "--dim", "N=4"]).stdout, "", "what -q check prints")
    contains(world.run([world.gcompile, "--dim", "N=4", "-v", "check", model]).stdout, "command=check")
    equal(json.loads(world.run([world.gcompile, "--json", "check", "none.onnx"], status=4).stdout)["command"], "check", "")
    equal(json.loads(world.run([world.gcompile, "-O7", "--json", "check", model], status=2).stdout)["command"], "check", "")
    equal(world.run([world.gcompile, "version"]).stdout, world.run([world.gcompile, "--version"]).stdout, "version")
    world.run([world.gcompile, "-q", "-o", "check", model, "--dim", "N=4"], cwd=world.folder)
    check((world.path("check") / "CMakeLists.txt").exists(), "-o check is no folder")


def case_output_that_cannot_be_written(world):
    """An answer that is lost is no success: a full disk, a closed stream."""
    world.path("m.onnxtxt").write_text(DYNAMIC.replace("N", "4"))
    model = world.path("m.onnxtxt")
    for words in (["check", model], ["check", model, "--json"], [model, "-o", world.path("p")], ["opt", model], ["ops"],
                  ["explain", "E0401"], ["help"], ["version"], ["manual"], ["completion", "bash"],
                  ["check", world.path("none"), "--json"]):
        for target in (">/dev/full", ">&-"):
            done = world.run(["sh", "-c", f'"$@" {target}', "sh", world.gcompile, *words], status=4)
            contains(done.stderr, "error: cannot write to standard output: ")
    done = world.run([world.gcompile, "opt", model, "-q", "--save-onnx", "/nodir/x.onnx"], status=4)
    check("saved" not in done.stderr, done.stderr)
    done = world.run([world.gcompile, "opt", model, "--save-onnx", "/nodir/x.onnx"], status=4)
    check("saved" not in done.stderr, done.stderr)


def case_summary_of_any_name(world):
    """Words of a shell, as text where it is text."""
    world.path("m.onnxtxt").write_text(DYNAMIC.replace("N", "4"))
    for name in ("füße", "with blank", "it's", "back\\slash", "new\nline", "bad\udcff", "\x1b[31m", "$HOME`id`", "plain"):
        line = world.run([world.gcompile, "m.onnxtxt", "-o", name], cwd=world.folder, env={**os.environ, "LC_ALL": "C.UTF-8"})
        printed = line.stdout
        check(printed.count("\n") == 1 and "\x1b" not in printed, f"{printed!r}")
        if name == "füße":
            contains(printed, "output='füße' ")
        word = printed[printed.index(" output=") + 1:]
        said = subprocess.run(["bash", "-c", word.rpartition(" files=")[0] + '; printf %s "$output"'], check=True,
                              capture_output=True).stdout
        equal(said, os.fsencode(name), "the name that a shell reads")


if __name__ == "__main__":
    run_main(globals())
