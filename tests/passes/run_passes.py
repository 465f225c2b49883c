#!/usr/bin/env python3
"""Runs the RUN lines of a model in ONNX text and checks what `gcompile` prints.

    # RUN: opt %s --disable-pass fuse
    # CHECK: Conv({{.*}}) {{.*}}pads=[1, 1]     the text occurs in a line after the last match
    # CHECK-NEXT: Relu(                         ... in the very next line
    # CHECK-NOT: BatchNormalization             ... in no line between its neighbours
    # CHECK-COUNT-2: Conv(                      ... two lines, one after the other

`RUN(NAME):` pairs with lines `NAME:`, `NAME-NEXT:` and so on. %s is the model. {{...}} is a regular expression;
everything else is literal, but a run of blanks matches any run of blanks. RUN-FAILS expects a non-zero exit and
checks standard error as well.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

RUN = re.compile(r"^\s*#\s*RUN(-FAILS)?(?:\((\w+)\))?:\s*(.*)$")
CHECK = re.compile(r"^\s*#\s*(\w+?)(-NEXT|-NOT|-COUNT-\d+)?:\s*(.*?)\s*$")


def to_regex(text):
    parts = re.split(r"\{\{(.*?)\}\}", text)
    literal = [re.sub(r"(?:\\ |\s)+", r"\\s+", re.escape(part)) for part in parts[::2]]
    out = literal[0]
    for expression, rest in zip(parts[1::2], literal[1:]):
        out += f"(?:{expression})" + rest
    return re.compile(out)


def parse(source):
    """The runs, as (prefix, arguments, fails), and the checks by prefix, as (line number, kind, regex, text)."""
    runs, checks = [], {}
    for number, line in enumerate(source.splitlines(), 1):
        if match := RUN.match(line):
            runs.append((match[2] or "CHECK", match[3].split(), bool(match[1])))
        elif match := CHECK.match(line):
            checks.setdefault(match[1], []).append((number, match[2] or "", to_regex(match[3]), match[3]))
    return runs, {prefix: checks.get(prefix, []) for prefix, _, _ in runs}


def check(lines, checks):
    """The first complaint, or None."""
    position, forbidden = 0, []

    def search(regex):
        return next((i for i in range(position, len(lines)) if regex.search(lines[i])), None)

    def forbidden_before(end):
        for number, regex, text in forbidden:
            for line in lines[position:end]:
                if regex.search(line):
                    return f"line {number}: '{text}' must not occur, but does: {line}"
        return None

    for number, kind, regex, text in checks:
        if kind == "-NOT":
            forbidden.append((number, regex, text))
            continue
        times = int(kind[len("-COUNT-"):]) if kind.startswith("-COUNT-") else 1
        for _ in range(times):
            at = search(regex)
            if at is None:
                return f"line {number}: '{text}' does not occur after line {position} of the output"
            if kind == "-NEXT" and at != position:
                return f"line {number}: '{text}' is not in the next line, which is: {lines[position]}"
            if complaint := forbidden_before(at):
                return complaint
            forbidden = []
            position = at + 1
    return forbidden_before(len(lines))


def run_file(gcompile, path):
    runs, checks = parse(path.read_text())
    if not runs:
        return [f"{path}: no RUN line"]
    complaints = []
    for prefix, arguments, fails in runs:
        if not checks[prefix]:
            complaints.append(f"{path}: no line {prefix}:")
            continue
        command = [gcompile] + [str(path) if a == "%s" else a for a in arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        output = done.stdout + (done.stderr if fails else "")
        if (done.returncode != 0) != fails:
            complaint = f"exit code {done.returncode}"
        else:
            complaint = check(output.splitlines(), checks[prefix])
        if complaint:
            complaints.append(f"{path}: {complaint}\n$ {' '.join(command)}\n{output}{done.stderr}")
    return complaints


def self_test():
    """The checker must be able to fail."""
    output = ["a = Conv(x)", "b = Relu(a)", "c = Relu(b)"]
    cases = [("# CHECK: Conv(\n# CHECK-NEXT: Relu(a)", True), ("# CHECK: Conv(\n# CHECK-NEXT: Relu(b)", False),
             ("# CHECK: Relu(\n# CHECK: Conv(", False), ("# CHECK-COUNT-2: Relu(\n# CHECK-NOT: Relu(", True),
             ("# CHECK-COUNT-3: Relu(", False), ("# CHECK-NOT: Relu(\n# CHECK: c =", False),
             ("# CHECK: Conv(\n# CHECK-NOT: Relu(", False), ("# CHECK: b   = {{R.lu}}(a)", True),
             ("# CHECK: b = R.lu", False), ("# CHECK-NOT: Gemm\n# CHECK: c", True)]
    for text, good in cases:
        _, checks = parse("# RUN: opt\n" + text)
        assert (check(output, checks["CHECK"]) is None) == good, text
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model.onnxtxt"
        for text, good in [("# RUN: hello %s\n# CHECK: hello {{.*}}model", True), ("# RUN: hello\n", False),
                           ("# CHECK: hello\n", False), ("# RUN: hello\n# CHECK: goodbye", False),
                           ("# RUN-FAILS: hello\n# CHECK: hello", False)]:
            model.write_text(text)
            assert (not run_file("/bin/echo", model)) == good, text
    print("ok")


def main():
    if sys.argv[1:] == ["--self-test"]:
        self_test()
        return 0
    complaints = [c for path in sys.argv[2:] for c in run_file(sys.argv[1], Path(path))]
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
