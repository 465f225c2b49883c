#!/usr/bin/env python3
"""Every operator has a test that names it: a unit test, or an official case of the ONNX project.

    operator_tests.py GCOMPILE SOURCE_DIR

Official cases are read from GCOMPILE_ONNX_CASES, else from Debian's libonnx-testdata. Exit: 0 all have, 1 not.
"""

import json
import os
import pathlib
import re
import subprocess
import sys

DEBIAN = "/usr/lib/python3/dist-packages/onnx/backend/test/data/node"


def named_in_cases(folder):
    """Operators of the official cases: NodeProto.op_type is field 4, a string."""
    names = set()
    for path in pathlib.Path(folder).glob("test_*/model.onnx"):
        for match in re.finditer(rb"\x22(.)", path.read_bytes(), re.DOTALL):
            text = match.string[match.end():match.end() + match[1][0]]
            if re.fullmatch(rb"[A-Z][A-Za-z0-9]+", text):
                names.add(text.decode())
    return names


def main():
    gcompile, root = sys.argv[1], pathlib.Path(sys.argv[2])
    listed = json.loads(subprocess.run([gcompile, "ops", "--json"], capture_output=True, check=True).stdout)["operators"]
    words = set()
    for path in (root / "tests" / "unit").rglob("*_test.cc"):
        words |= set(re.findall(r"[A-Za-z][A-Za-z0-9]+", path.read_text(encoding="utf-8")))
    assert "Quux" not in words and "Relu" in words
    cases = named_in_cases(os.environ.get("GCOMPILE_ONNX_CASES") or DEBIAN)
    missing = [op["name"] for op in listed
               if op["name"] not in words and (op["domain"] != "ai.onnx" or op["name"] not in cases)]
    print("\n".join(f"no test names {name}" for name in missing)
          or f"{len(listed)} operators, each named by a unit test or one of the official cases of {len(cases)} operators")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
