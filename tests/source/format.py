#!/usr/bin/env python3
"""The house style over all tracked sources: clang-format 14, lengths of files, no stray whitespace.

    format.py SOURCE_DIR CLANG_FORMAT

Exit: 0 clean, 1 not.
"""

import pathlib
import re
import subprocess
import sys

MOST_LINES = 500


def files_of(root):
    """Tracked files when this is a checkout, else every file outside build folders."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=False)
    if listed.returncode == 0 and listed.stdout:
        names = [name for name in listed.stdout.decode().split("\0") if name and (root / name).exists()]
    else:
        names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
        names = [name for name in names if not name.startswith(("build", "out/", ".git/"))]
    return sorted(names)


def is_data(name):
    """Lists that a program writes are as long as what they list."""
    return name.endswith(".txt") and not name.endswith("CMakeLists.txt")


# A comment is a sentence that names its subject.
FRAGMENT = re.compile(r"""(^|\s)(//[/<]*|/\*+|\{#|#|\"\"\"|<!--)\s*Of\b""")


def complaints_of(name, text):
    found = []
    lines = text.split("\n")
    if len(lines) - 1 > MOST_LINES and not is_data(name):
        found.append(f"{name}: {len(lines) - 1} lines; at most {MOST_LINES}")
    if text and not text.endswith("\n"):
        found.append(f"{name}: no newline at the end")
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            found.append(f"{name}:{number}: whitespace at the end of the line")
        if FRAGMENT.search(line):
            found.append(f"{name}:{number}: a comment that begins with 'Of': say what it is that is of something")
        if "\t" in line and not name.endswith("Makefile.j2"):
            found.append(f"{name}:{number}: a tab")
    return found


def main():
    root, clang_format = pathlib.Path(sys.argv[1]), sys.argv[2]
    assert complaints_of("x.cc", "a \n") and complaints_of("x.cc", "a") and complaints_of("x.cc", "a\n" * 501)
    assert all(complaints_of("x.cc", mark + " Of a form.\n") for mark in ("///", "//", "a;  //", "/*", "#"))
    assert not complaints_of("x.txt", "a\n" * 501)
    names = files_of(root)
    sources = [name for name in names if name.endswith((".cc", ".h"))]
    assert len(sources) > 100, f"only {len(sources)} sources found"
    found = []
    for name in names:
        if name.endswith((".cc", ".h", ".py", ".sh", ".cmake", ".j2", ".txt", ".def")):
            found += complaints_of(name, (root / name).read_text(encoding="utf-8"))
    result = subprocess.run([clang_format, "--dry-run", "-Werror", "--ferror-limit=3", *sources], cwd=root,
                            capture_output=True, text=True, check=False)
    print("\n".join(found) + result.stderr or f"{len(sources)} sources are formatted")
    return 1 if found or result.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
