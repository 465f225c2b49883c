#!/usr/bin/env python3
"""Every member of the program as JSON is read by something: a template, the compiler, the Python package, a script or a test.

    program_keys.py SOURCE_DIR

First tries itself on a member that nobody reads. Exit: 0 all are read, 1 not.
"""

import pathlib
import re
import sys

WRITERS = ("codegen/emit/*.cc", "codegen/report/*.cc")
READERS = ("templates/**/*.j2", "python/**/*.py", "scripts/*", "tests/**/*.py", "docs/*.md", "docs/*.json", "runtime_stub/gcrt/app/*.h")
READERS_IN_CPP = ("codegen/**/*.cc", "driver/**/*.cc", "tests/**/*.cc")
# out["key"] = ..., {"key", value} of an object, out["key"].push_back(...)
WRITTEN = re.compile(r'\["([a-z]\w*)"\](?:\s*=[^=]|\.push_back|\.emplace_back)|\{"([a-z]\w*)",')
READ_IN_CPP = re.compile(r'\["(\w+)"\](?:\.get|\.size|\.empty|\.is_|\[)|\.(?:at|value|contains|find)\("(\w+)"|: data?_?\["(\w+)"\]')
# For those who read the manifest.
PUBLISHED = {"parameter_bytes"}


def keys_of(pattern, text):
    return {next(filter(None, groups)) for groups in pattern.findall(text)}


def text_of(root, patterns):
    paths = sorted({path for pattern in patterns for path in root.glob(pattern) if path.is_file()})
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in paths)


def unread(written, words, read_in_cpp):
    return sorted(keys_of(WRITTEN, written) - words - read_in_cpp - PUBLISHED)


def main():
    root = pathlib.Path(sys.argv[1])
    written = text_of(root, WRITERS)
    words = set(re.findall(r"\w+", text_of(root, READERS)))
    read_in_cpp = keys_of(READ_IN_CPP, text_of(root, READERS_IN_CPP))
    nobody = "_".join(("no", "such", "key"))  # or this file would read it
    assert unread(f'out["{nobody}"] = 1;', words, read_in_cpp) == [nobody]
    count = len(keys_of(WRITTEN, written))
    assert count > 300, f"only {count} members found"
    found = unread(written, words, read_in_cpp)
    print("\n".join(f"nothing reads the member {key!r}" for key in found) or f"{count} members, each read by something")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
