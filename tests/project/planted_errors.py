#!/usr/bin/env python3
"""`gcompile verify` on programs with planted errors, and on a model that rounding ruins by itself.

    planted_errors.py --gcompile GCOMPILE [CASE...]

A kernel's result is multiplied by 1 + 10 times what the verifier says that rounding does in this kernel, about 1e-6 of
it: far below every tolerance. `verify --layers` must name that kernel, and no other. The error is written into the
emitted text on its way to the compiler, by this script called as the compiler:

    planted_errors.py PLAN COMPILER ARGUMENT...     PLAN: {"blocks": {name: factor}}
"""

import json
import pathlib
import re
import subprocess
import sys

from support import EXAMPLES, EXAMPLE_FLAGS, check, contains, equal, run_main

TIMES = 10
KERNELS = "/src/m_kernels.cpp"

# A small difference of two products, enlarged: float32 leaves two or three digits of it.
ILL_CONDITIONED = """<ir_version: 8, opset_import: ["" : 13]>
differences (float[8, 512] x, float[512, 16] w) => (float[8, 16] y) {
  step = Constant <value = float {0.0001}> ()
  scale = Constant <value = float {1000.0}> ()
  moved = Add (x, step)
  a = MatMul (x, w)
  b = MatMul (moved, w)
  difference = Sub (b, a)
  y = Mul (difference, scale)
}
"""

# States that grow every difference, and planes of one value, of which only the rounding of the mean is left.
INSIDE = """<ir_version: 8, opset_import: ["" : 17]>
inside (float[90, 1, 4] x, float[1, 96, 4] w, float[1, 96, 32] r, float[1, 128, 4] w4, float[1, 128, 32] r4,
        float[1, 32, 4] w1, float[1, 32, 32] r1, float[1, 2, 1, 1] plane) => (gru, lstm, rnn, norm) {
  two = Constant <value = float {2.0}> ()
  five = Constant <value = float {5.0}> ()
  r_large = Mul (r, two)
  r4_large = Mul (r4, five)
  gru = GRU <hidden_size = 32> (x, w, r_large)
  lstm = LSTM <hidden_size = 32> (x, w4, r4_large)
  rnn = RNN <hidden_size = 32> (x, w1, r1)
  shape = Constant <value = int64[4] {1, 2, 5, 7}> ()
  hundred = Constant <value = float {300.0}> ()
  bright = Mul (plane, hundred)
  planes = Expand (bright, shape)
  one = Constant <value = float[2] {1.0, 1.0}> ()
  zero = Constant <value = float[2] {0.0, 0.0}> ()
  norm = InstanceNormalization (planes, one, zero)
}
"""


def blocks_of(text):
    """The functors and kernels of the emitted text: {name: (begin, end)}."""
    starts = [(match.start(), match.group(1)) for match in re.finditer(r"^(?:struct|void|bool) (\w+)", text, re.MULTILINE)]
    ends = [start for start, _ in starts[1:]] + [len(text)]
    return {name: (start, end) for (start, name), end in zip(starts, ends)}


def last_argument(text, opening):
    """Where the last argument of the call whose parenthesis opens at `opening` begins and ends."""
    depth, begin = 0, opening + 1
    for i in range(opening, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
            if depth == 0:
                return begin, i
        elif text[i] == "," and depth == 1:
            begin = i + 1
    raise ValueError("unbalanced")


def planted(block, factor):
    """The block with every value that it stores to floats y multiplied; None where it stores none."""
    if not re.search(r"float\* y\b", block):
        return None
    out, at, count = "", 0, 0
    for match in re.finditer(r"\bstore(?:_strided)?\(lane, y\b", block):
        begin, end = last_argument(block, match.start() + match.group().index("("))
        out += block[at:begin] + f" ({block[begin:end].strip()}) * {factor:.9g}f"
        at, count = end, count + 1
    return out + block[at:] if count else None


def compile_planted(plan_path, command):
    """As the compiler: the kernels with the planted errors instead of the emitted ones."""
    plan = json.loads(pathlib.Path(plan_path).read_text(encoding="utf-8"))
    for i, word in enumerate(command):
        if not word.endswith(KERNELS):
            continue
        text = pathlib.Path(word).read_text(encoding="utf-8")
        blocks = sorted(blocks_of(text).items(), key=lambda item: item[1], reverse=True)
        for name, (begin, end) in blocks:
            if name in plan["blocks"]:
                text = text[:begin] + planted(text[begin:end], plan["blocks"][name]) + text[end:]
        command[i] = word.replace(KERNELS, "/src/planted.cpp")
        pathlib.Path(command[i]).write_text(text, encoding="utf-8")
    return subprocess.run(command, check=False).returncode


def verify_layers(world, model, flags, keep, compiler):
    done = world.run([world.gcompile, "verify", model, "--layers", "--json", "-q", "--name", "m", "--keep", keep,
                      "--cxx", compiler, *flags], status=None)
    check(done.returncode in (0, 3), f"exit {done.returncode}: {done.stderr}")
    return json.loads(done.stdout)


def kernel_calls(project):
    """Pairs of kernel and the nodes it computes, of every call in the schedule."""
    text = (project / "src" / "m.cpp").read_text(encoding="utf-8")
    found = re.findall(r"^((?:  // .*\n)+)  (?:if \(!)?(\w+)\(", text, re.MULTILINE)
    calls = []
    for comment, function in found:
        words = " ".join(line.strip()[3:] for line in comment.strip().split("\n"))
        calls.append((function, words.split(" -> ")[0]))
    return calls


def plant_in(world, model, flags):
    clean = verify_layers(world, model, flags, world.path("clean"), "c++")
    check(clean["ok"], f"the sound program: {clean}")
    noise = {}  # by origins
    for kernel in clean["kernels"]:
        noise[kernel["origins"]] = max(noise.get(kernel["origins"], 0), kernel["noise"])
    project = world.path("clean") / "0" / "m"
    text = (project / "src" / "m_kernels.cpp").read_text(encoding="utf-8")
    blocks = blocks_of(text)
    calls = [(function, origins) for function, origins in kernel_calls(project) if noise.get(origins, 0) > 0]
    # What each block takes part in: its own calls, or those of the kernels that use it as a functor, comments apart.
    code = {name: re.sub(r"//.*", "", text[slice(*span)]) for name, span in blocks.items()}
    users = {name: sorted({origins for function, origins in calls
                           if function == name or re.search(rf"\b{name}\b", code[function])})
             for name, span in blocks.items() if planted(text[slice(*span)], 1) is not None}
    users = {name: origins for name, origins in users.items() if origins}
    reached = {origins for found in users.values() for origins in found}
    check(len(reached) >= 0.8 * len({origins for _, origins in calls}), f"errors reach only {reached} of {calls}")
    missed = []
    for half in (0, 1):
        chosen = sorted(users)[half::2]
        plan = world.path(f"plan_{half}.json")
        plan.write_text(json.dumps({"blocks": {
            name: 1 + TIMES * max(noise[origins] for origins in users[name]) for name in chosen}}), encoding="utf-8")
        told = verify_layers(world, model, flags, world.path(f"planted_{half}"),
                             f"{sys.executable} {pathlib.Path(__file__).resolve()} {plan} c++")
        wanted = {origins for name in chosen for origins in users[name]}
        named = {kernel["origins"] for kernel in told["kernels"] if not kernel["ok"]}
        check(not told["ok"], "verify ends with 0 although kernels are off")
        missed += [f"{origins}: not named" for origins in wanted - named]
        missed += [f"{origins}: named, but sound" for origins in named - wanted]
    check(not missed, "\n".join(missed))
    print(f"{len(reached)} kernels with planted errors, all named")


def plant_in_example(world, name):
    plant_in(world, EXAMPLES / name / "model.onnx", EXAMPLE_FLAGS.get(name, []))


def case_classifier(world):
    plant_in_example(world, "shapes_classifier")


def case_denoiser(world):
    plant_in_example(world, "streaming_denoiser")


def case_attention(world):
    plant_in_example(world, "tiny_attention")


def case_ill_conditioned(world):
    """Beyond the tolerance, and no fault of the program: verify says so and ends with 0."""
    model = world.path("differences.onnxtxt")
    model.write_text(ILL_CONDITIONED, encoding="utf-8")
    told = json.loads(world.run([world.gcompile, "verify", model, "--json", "-q", "--cases", "5"]).stdout)
    worst = max(finding.get("worst_ratio", 0) for finding in told["findings"])
    check(worst > 1, f"the model is meant to be beyond the tolerance: {told}")
    check(any(finding.get("ill_conditioned") for finding in told["findings"]), f"nothing is said of it: {told}")
    done = world.run([world.gcompile, "verify", model, "--cases", "5"])
    contains(done.stdout + done.stderr, "ill-conditioned", "only within the model's own rounding noise")


def case_inside(world):
    """What rounds inside of recurrences and of normalisations is measured there."""
    model = world.path("inside.onnxtxt")
    model.write_text(INSIDE, encoding="utf-8")
    told = json.loads(world.run([world.gcompile, "verify", model, "--json", "-q", "--cases", "6"]).stdout)
    doubtful = {finding["value"] for finding in told["findings"] if finding.get("ill_conditioned")}
    equal(doubtful, {"gru", "lstm", "rnn", "norm"}, "outputs beyond the tolerance, none of them wrong")


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1].endswith(".json"):
        sys.exit(compile_planted(sys.argv[1], sys.argv[2:]))
    run_main(globals())
