#!/usr/bin/env python3
"""What comments and documents point at exists: files of this repository, and laws and rules of docs/design.md.

    references.py SOURCE_DIR

First tries itself on references that lead nowhere. Exit: 0 all lead somewhere, 1 not.
"""

import pathlib
import re
import subprocess
import sys

KINDS = (".md", ".cc", ".h", ".cu", ".py", ".sh", ".txt", ".cmake", ".j2", ".def")
FOLDERS = "base|ir|frontend|passes|jinja|codegen|driver|templates|runtime_stub|tests|scripts|cmake|docs|examples|python"
# A name of letters that stand for others (NAME, CODE, K) is none.
FILE = re.compile(rf"(?<![\w/.\-*{{}}<>$])((?:{FOLDERS})/[\w./*-]*\.(?:cc|h|cu|cuh|py|sh|md|txt|def|cmake|j2|onnxtxt))(?![/\w]|\.\w)")
PLACEHOLDER = re.compile(r"(?<![A-Za-z])[A-Z]+(?![a-z])")
LAW = re.compile(r"\blaws? (\d+)")
# Files of emitted projects, and those that tests make up.
ELSEWHERE = {"tests/selftest.cpp", "templates/x.j2", "templates/no_such_file.j2"}
# Where the gates try themselves on files that there are not.
MADE_UP = re.compile(r"tests/(source|unit/jinja)/.*\.py|tests/planted_faults/.*")


def laws_of(design):
    """Numbers of the list below the heading "Laws"."""
    return {int(number) for number in re.findall(r"^(\d+)\. ", design.partition("\n## Laws\n")[2].partition("\n## ")[0], re.MULTILINE)}


def complaints_of(name, text, exists, laws):
    found, beside = [], name.rpartition("/")[0]
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("#include"):
            continue
        for path in FILE.findall(line):
            if not PLACEHOLDER.search(path.rpartition("/")[2]) and path not in ELSEWHERE and not exists(path) and not exists(f"{beside}/{path}"):
                found.append(f"{name}:{number}: there is no {path}")
        found += [f"{name}:{number}: docs/design.md has no law {law}" for law in LAW.findall(line) if int(law) not in laws]
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    names = subprocess.run(["git", "-C", str(root), "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    known = set(names)
    laws = laws_of((root / "docs" / "design.md").read_text(encoding="utf-8"))

    def exists(path):
        return any(root.glob(path)) if "*" in path else path in known

    assert len(laws) > 10 and 99 not in laws
    assert complaints_of("x", "see ir/no_such_file.h", exists, laws) and complaints_of("x", "(DESIGN law 99)", exists, laws)
    assert not complaints_of("x", "ir/graph/graph.h, ir/ops/NAME.cc, law 4", exists, laws)
    found, searched = [], 0
    for name in names:
        if name.endswith(KINDS) and not MADE_UP.fullmatch(name) and (root / name).exists():
            searched += 1
            found += complaints_of(name, (root / name).read_text(encoding="utf-8", errors="replace"), exists, laws)
    assert searched > 500, f"only {searched} files"
    print("\n".join(found) or f"{searched} files, whose references lead somewhere")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
