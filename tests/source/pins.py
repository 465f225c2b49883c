#!/usr/bin/env python3
"""What scripts install from PyPI is pinned with digests, and SECURITY.md tells the limits that the sources have.

    pins.py SOURCE_DIR

First tries its own rules on what must be refused. Exit: 0 all is pinned and told, 1 not.
"""

import pathlib
import re
import sys

INSTALL = re.compile(r"\bpip3?(?:[\"']\s*,\s*[\"']|\s+)install\b")
PIN = re.compile(r"[a-z0-9_.-]+==[0-9][\w.]*(?: --hash=sha256:[0-9a-f]{64})+")
# Numbers of SECURITY.md: its words, the file and the text that gives the number.
LIMITS = {
    "bytes of the model's file": ("frontend/files/limits.h", r"file_bytes = \(std::int64_t\{1\} << (\d+)\) - 1", "2^{}"),
    "bytes of external data": ("frontend/files/limits.h", r"external_bytes = std::int64_t\{1\} << (\d+)", "2^{}"),
    "elements of one tensor": ("frontend/files/limits.h", r"tensor_elements = \(std::int64_t\{1\} << (\d+)\) - 1", "2^{}"),
    "axes of one tensor": ("frontend/files/limits.h", r"int rank = (\d+)", "{}"),
    "bytes computed while importing": ("frontend/files/limits.h", r"folded_bytes = std::int64_t\{1\} << (\d+)", "2^{}"),
    "nodes, functions inlined": ("frontend/files/limits.h", r"int nodes = ([\d']+)", "{}"),
    "nodes that calls of functions and trips of loops make": ("frontend/files/limits.h", r"int nodes_of_calls = ([\d']+)", "{}"),
    "bytes of names and values that these make": ("frontend/files/limits.h", r"bytes_of_calls = std::int64_t\{1\} << (\d+)",
                                                               "2^{}"),
    "Ifs and loops inside each other": ("frontend/files/limits.h", r"int graph_nesting = (\d+)", "{}"),
    "functions inside functions": ("frontend/files/limits.h", r"int function_nesting = (\d+)", "{}"),
    "messages inside messages": ("frontend/files/wire_scan.h", r"kMaximumMessageDepth = (\d+)", "{}"),
    "choices of sizes": ("driver/data/size_choices.cc", r"kMostChoices = (\d+)", "{}"),
}


def unpinned(name, text):
    """Complaints about a script."""
    return [f"{name}:{number}: installs without digests" for number, line in enumerate(joined(text).splitlines(), 1)
            if INSTALL.search(line) and not line.lstrip().startswith("#") and not re.search(r"install \.(\s|$)", line)
            and not ("--require-hashes" in line or "--no-index" in line)]


def joined(text):
    return text.replace("\\\n", " ")


def bad_pins(name, text):
    lines = [" ".join(line.split()) for line in joined(text).splitlines() if line.strip() and not line.startswith("#")]
    return [f"{name}: {line[:60]!r} is no pin with digests" for line in lines if not PIN.fullmatch(line)]


def untold(root):
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|$", (root / "SECURITY.md").read_text(encoding="utf-8"), re.MULTILINE))
    found = []
    for words, (path, pattern, form) in LIMITS.items():
        number = re.search(pattern, (root / path).read_text(encoding="utf-8"))
        told = form.format(number[1].replace("'", ",")) if number else None
        if told is None or rows.get(words) != told:
            found.append(f"SECURITY.md: {words!r} is {rows.get(words)}, in {path} {told}")
    return found


def main():
    assert unpinned("x", "python -m pip install numpy==1.2\n") and unpinned("x", '["pip", "install", "numpy"]')
    assert not unpinned("x", "pip install \\\n --require-hashes -r x\n# pip install x\n")
    assert bad_pins("x", "numpy==1.2\n") and bad_pins("x", "numpy>=1.2 --hash=sha256:" + "0" * 64)
    assert not bad_pins("x", "# of\nnumpy==1.2 \\\n    --hash=sha256:" + "0" * 64)
    root = pathlib.Path(sys.argv[1])
    found, lists = untold(root), sorted((root / "scripts" / "modules").glob("*.txt"))
    assert lists
    for path in lists:
        found += bad_pins(path.name, path.read_text(encoding="utf-8"))
    for folder in ("scripts", "tests", ".ci"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in (".sh", ".py") and path.name != "pins.py" or path.parent.name == ".ci" and path.is_file():
                found += unpinned(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    print("\n".join(found) or f"{len(lists)} lists of modules, pinned; {len(LIMITS)} limits, as told")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
