#!/usr/bin/env python3
"""Runs the shell commands of docs/tutorial.md in their order, and compiles its C, with the classifier as the model.

    tutorial.py GCOMPILE SOURCE_DIR WORK_DIR

Exit: 0 all end well and say what the text says, 1 not, 77 the cross compiler is missing.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys


def main():
    gcompile, root, work = (pathlib.Path(word).resolve() for word in sys.argv[1:])
    if not shutil.which("arm-none-eabi-g++"):
        print("no arm-none-eabi-g++: scripts/install_packages.sh test installs it")
        return 77
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    shutil.copy(root / "examples/shapes_classifier/model.onnx", work / "model.onnx")
    text = (root / "docs/tutorial.md").read_text(encoding="utf-8")
    environment = {**os.environ, "PATH": f"{gcompile.parent}:{os.environ['PATH']}"}
    said = ""
    blocks = re.findall(r"```(sh|c)\n(.*?)```", text, re.DOTALL)
    assert [kind for kind, _ in blocks].count("sh") == 5 and ("c", ) == tuple({kind for kind, _ in blocks} - {"sh"}), blocks
    for kind, block in blocks:
        if kind == "c":
            (work / "classify.c").write_text(block, encoding="utf-8")
            block = "cc -std=c11 -Wall -Wextra -Werror -Ishapes/include -c classify.c"
        for line in block.strip().splitlines():
            done = subprocess.run(["sh", "-ec", line], cwd=work, env=environment, capture_output=True, text=True, check=False, timeout=600)
            print(f"$ {line}\n{done.stdout[-600:]}{done.stderr[-600:]}")
            if done.returncode != 0:
                return 1
            said += done.stdout + done.stderr
    for name in ("ARENA", "STATE", "STACK", "WEIGHTS", "INSTANCE"):
        assert f"SHAPES_{name}_BYTES" in said, name
    for page in ("report.html", "m7.html"):
        assert "Code of a build" in (work / page).read_text(encoding="utf-8"), page
    return 0


if __name__ == "__main__":
    sys.exit(main())
