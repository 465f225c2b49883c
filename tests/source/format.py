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
FRAGMENT = re.compile(r"""(^|\s)(//[/<]*|/\*+|\{#|#|\"\"\"|<!--)\s*(Of|Whose)\b""")


# A line that is a comment and nothing else: its indent and mark, and what it says.
COMMENT = re.compile(r"(\s*(?://[/!]?|#))(?: (\S.*))?$")


def orphans_of(lines):
    """Lines, by their places, that are the one last word of a sentence above them."""
    found, above = [], None
    for i, line in enumerate([*lines, ""]):
        match = COMMENT.match(line)
        said = (match[1], match[2]) if match and match[2] else None
        if above and i > 1 and (said is None or said[0] != above[0]):
            before = COMMENT.match(lines[i - 2])
            goes_on = before and before[1] == above[0] and before[2] and not before[2].endswith((".", ":", ";", "!", "?", "|", "}", ")"))
            if goes_on and re.fullmatch(r"[\w('`\"-][^\s]*", above[1]) and not re.search(r"[{}=<>\\]|^[-=]+$", above[1]):
                found.append(i - 1)
        above = said
    return found


def long_prose(text):
    """Numbers of the lines of Markdown that could be broken and are longer than 127 columns: no code, no tables."""
    found, is_code = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("```"):
            is_code = not is_code
        elif not is_code and len(line) > 127 and not line.startswith(("|", "    ", "<!--", "![")) and " " in line.strip()[:127]:
            found.append(number)
    return found


def complaints_of(name, text):
    found = []
    lines = text.split("\n")
    if name.endswith((".cc", ".h", ".cu", ".cuh", ".cpp", ".def", ".py", ".sh", ".cmake", "CMakeLists.txt")):
        found += [f"{name}:{i + 1}: '{lines[i].strip()}' ends a comment alone: break its lines elsewhere" for i in orphans_of(lines)]
    if name.endswith(".md"):
        return [f"{name}:{number}: a line of more than 127 columns" for number in long_prose(text)]
    if len(lines) - 1 > MOST_LINES and not is_data(name):
        found.append(f"{name}: {len(lines) - 1} lines; at most {MOST_LINES}")
    if text and not text.endswith("\n"):
        found.append(f"{name}: no newline at the end")
    for number, line in enumerate(lines, 1):
        if line != line.rstrip():
            found.append(f"{name}:{number}: whitespace at the end of the line")
        if FRAGMENT.search(line):
            found.append(f"{name}:{number}: a comment that begins with 'Of' or 'Whose': say what it is that is of something")
        if name.startswith("runtime_stub/gcrt/") and len(line) > 110:
            found.append(f"{name}:{number}: beyond the 110 columns of emitted files")
        if "\t" in line and not name.endswith("Makefile.j2"):
            found.append(f"{name}:{number}: a tab")
    return found


def main():
    root, clang_format = pathlib.Path(sys.argv[1]), sys.argv[2]
    assert complaints_of("x.cc", "a \n") and complaints_of("x.cc", "a") and complaints_of("x.cc", "a\n" * 501)
    assert all(complaints_of("x.cc", mark + " Of a form.\n") for mark in ("///", "//", "a;  //", "/*", "#"))
    assert not complaints_of("x.txt", "a\n" * 501)
    assert complaints_of("runtime_stub/gcrt/x.h", "// " + "word " * 22 + "a\n") and not complaints_of("x.h", "// " + "word " * 22 + "a\n")
    assert complaints_of("x.md", "word " * 30) and not complaints_of("x.md", "| " + "word " * 30 + "\n```\n" + "word " * 30 + "\n```\n")
    assert all(complaints_of("x.h", text) for text in ("// One word is\n// left.\nint x;\n", "  /// One (word\n  /// is) left\n  /// (gcrt/pack.h).\n",
                                                       "# One word is\n# left\n"))
    assert not any(complaints_of("x.h", text) for text in ("// One sentence.\n// Another.\n", "// Two words\n// are left.\n",
                                                           "int x;  // one\n        // word\n", "// a is\n// }\n", "// left.\n",
                                                           "// A paragraph is\n//\n// left\n"))
    names = files_of(root)
    sources = [name for name in names if name.endswith((".cc", ".h"))]
    assert len(sources) > 100, f"only {len(sources)} sources found"
    found = []
    for name in names:
        if name.endswith((".cc", ".h", ".cu", ".cuh", ".cpp", ".py", ".sh", ".cmake", ".j2", ".txt", ".def")) \
                or name.endswith(".md") and not name.startswith("docs/errors"):
            found += complaints_of(name, (root / name).read_text(encoding="utf-8"))
    result = subprocess.run([clang_format, "--dry-run", "-Werror", "--ferror-limit=3", *sources], cwd=root,
                            capture_output=True, text=True, check=False)
    print("\n".join(found) + result.stderr or f"{len(sources)} sources are formatted")
    return 1 if found or result.returncode else 0


if __name__ == "__main__":
    sys.exit(main())
