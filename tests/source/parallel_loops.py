#!/usr/bin/env python3
"""A parallel loop is the outermost one of a step (DESIGN law 22): none lies in a loop, which would be a barrier for each of
its turns, and none in the item of another, which would wait for the others.

    parallel_loops.py SOURCE_DIR GCOMPILE

Reads the kernels of runtime_stub/gcrt/cpu and gcrt itself, and those of a project that has products of a batch in every form.
First tries its own rule. Exit: 0 none found, 1 some.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

# What runs in threads, told them by its first argument; without them, `nullptr`, it is an ordinary function.
CALL = re.compile(r"\b(\w+)(?:<[^;{}()]*>)?\(\s*threads\b")
LOOP = re.compile(r"\b(?:for|while)\s*\(")
ITEM = re.compile(r"\((?:threads|nullptr)\b[^;]*\[&\]\([^)]*\)(?: GCRT_LAMBDA_INLINE)? $")

BATCHES = """<ir_version: 8, opset_import: ["" : 17]>
g (float[6,3,40,50] a, float[6,1,50,30] b, uint8[5,2,33,20] c, int8[5,2,20,18] d, float[4,3,20,9] e)
  => (float[6,3,40,30] product, int32[5,2,33,18] integers, float[4,3,20,7] stacked)
<float[4,1,9,7] w = {WEIGHTS}>
{
  product = MatMul(a, b)
  integers = MatMulInteger(c, d)
  stacked = MatMul(e, w)
}
""".replace("WEIGHTS", ", ".join(f"0.{i % 9 + 1}" for i in range(4 * 9 * 7)))


def faults(text):
    """Numbers of lines with a parallel loop inside a loop or an item."""
    text = re.sub(r"//[^\n]*|\"[^\"\n]*\"", lambda match: " " * len(match.group()), text)
    found, blocks, head = [], [], 0
    for i, character in enumerate(text):
        if character in ";{}":
            statement = text[head:i]
            for call in CALL.finditer(statement):
                before = statement[:call.start()]
                if LOOP.search(before) or any(blocks):
                    found.append(text.count("\n", 0, head + call.start()) + 1)
            if character == "{":
                blocks.append(bool(LOOP.search(statement) or ITEM.search(statement)))
            elif character == "}" and blocks:
                blocks.pop()
            # The heads of a loop hold semicolons.
            if character != ";" or statement.count("(") <= statement.count(")"):
                head = i + 1
    return found


def try_rule():
    for text in ("for (int b = 0; b < n; ++b) {\n  parallel_for(threads, 3, [&](int begin, int end) {\n  });\n}",
                 "while (more()) parallel_for(threads, 3, body);",
                 "parallel_for(threads, 3, [&](int begin, int end) {\n  multiply<4>(threads, a);\n});",
                 "for (;;) {\n  if (x) {\n    winograd<4>(threads, shape);\n  }\n}"):
        assert faults(text), f"the rule allows {text}"
    for text in ("for (int i = 0; i < n; ++i) {\n  sum(i);\n}\nparallel_for(threads, 3, [&](int begin, int end) {\n  f(begin);\n});",
                 "for (;;) {\n  multiply(nullptr, a);\n}", "// for (;;) {\nparallel_for(threads, 3, body);",
                 "parallel_for(threads, 3, [&](int begin, int end) {\n  for (; begin < end; ++begin) {\n    f(begin);\n  }\n});"):
        assert not faults(text), f"the rule refuses {text}"


def main():
    try_rule()
    root, gcompile = pathlib.Path(sys.argv[1]), sys.argv[2]
    files = sorted([*(root / "runtime_stub" / "gcrt").glob("*.h"), *(root / "runtime_stub" / "gcrt" / "cpu").rglob("*.h")])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "batches.onnxtxt").write_text(BATCHES, encoding="utf-8")
        subprocess.run([gcompile, folder / "batches.onnxtxt", "-o", folder / "out", "--name", "net", "-q"], check=True)
        files += sorted((folder / "out" / "src").glob("*.cpp"))
        texts = {file: file.read_text(encoding="utf-8") for file in files}
    found = [f"{file}:{line}: a parallel loop in a loop, or in a work item" for file, text in texts.items()
             for line in faults(text)]
    if not any("parallel_entries" in text for file, text in texts.items() if file.suffix == ".cpp"):
        found.append("no product of the batches runs in threads: nothing was read")
    print("\n".join(found) or f"{len(files)} files, no parallel loop in a loop or a work item")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
