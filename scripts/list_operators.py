#!/usr/bin/env python3
"""Writes docs/operators.md from what `gcompile ops --json` lists.

    scripts/list_operators.py GCOMPILE            writes the file
    scripts/list_operators.py GCOMPILE --check    exit 1 unless the file is what the tool lists
"""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "operators.md"
TITLES = {"ai.onnx": "Standard operators (ai.onnx)"}


def cell(text):
    return text.replace("|", "\\|")


def document(operators):
    lines = ["# Operators", "",
             "Written by `scripts/list_operators.py` from `gcompile ops`; do not edit.", "",
             "Opsets are those in which the definition changed: every one of them is read, and brought to the newest form",
             "at import. A limit of one operator, such as an operand that must be known when the model",
             "is compiled, is an error that says so; `gcompile check MODEL` tells without writing anything.", "",
             "Every operator is there for both targets, `cpp` and `cuda`. The test conformance.cuda_cases runs official cases of",
             "each standard operator on the emulator; tests/conformance/expected_cuda.txt lists those that only `cpp` takes. The",
             "operators of com.microsoft have no official cases: models that use them run on both targets.", "",
             "What ONNX defines by a function of other operators needs no row: it is put in place of the node at import, as a",
             "model's own functions are. So `NegativeLogLikelihoodLoss` and `SoftmaxCrossEntropyLoss` are read.",
             ""]
    for domain in sorted({op["domain"] for op in operators}):
        rows = [op for op in operators if op["domain"] == domain]
        lines += [f"## {TITLES.get(domain, domain)}", "", f"{len(rows)} operator{'s' if len(rows) > 1 else ''}.", "",
                  "| Operator | Opsets | What it computes |", "|---|---|---|"]
        for op in sorted(rows, key=lambda row: row["name"]):
            versions = ", ".join(str(version) for version in op["versions"])
            lines.append(f"| `{op['name']}` | {versions} | {cell(op['summary'])} |")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    listed = subprocess.run([sys.argv[1], "ops", "--json"], capture_output=True, text=True, check=True)
    operators = json.loads(listed.stdout)["operators"]
    text = document(operators)
    if len(sys.argv) == 2:
        TARGET.write_text(text, encoding="utf-8")
        print(f"{len(operators)} operators in {TARGET.relative_to(ROOT)}")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        sys.exit("list_operators: docs/operators.md is out of date; run scripts/list_operators.py GCOMPILE")
    else:
        print(f"{len(operators)} operators, docs/operators.md is up to date")


if __name__ == "__main__":
    main()
