#!/usr/bin/env python3
"""Code generation does not read back what it printed: facts are carried as values, text is only written.

    printed_text.py SOURCE_DIR

Counts the searches in strings in codegen/, file by file. The numbers below may only sink; a file that is not listed has
none. First tries its own rule. Exit: 0 as listed, 1 not.
"""

import pathlib
import re
import sys

SEARCH = re.compile(r"""\.r?find\(['"]|\.find\((?:fmt::|\w*name)|\.substr\(|\breplace_all\(|\bmentions_word\("""
                    r"""|\.find_(?:first|last)_(?:not_)?of\(|\bstrlen\(|\.compare\(|\bstd::regex|\.(?:starts|ends)_with\(""")
ALLOWED = {
    # What is read is no printed code.
    "codegen/choice/machine.cc": (1, "names of processors by how they begin"),
    "codegen/choice/trained_numbers.cc": (2, "digits of a number"),
    "codegen/emit/file_set.cc": (5, "paths of files"),
    "codegen/emit/compile_flags.cc": (1, "the first line of a file of flags"),
    "codegen/emit/emit.cc": (6, "the #includes of embedded headers; paths"),
    "codegen/emit/file_marks.cc": (6, "paths; digests of texts, which stand in them"),
    "codegen/emit/program_json.cc": (2, "names of architectures"),
    "codegen/emit/schedule_json.cc": (1, "types by their spelling"),
    "codegen/report/charts.cc": (1, "names are cut to their tiles"),
    "codegen/loops/c_types.cc": (1, "a literal needs a point"),
    "codegen/loops/identifiers.cc": (2, "identifiers that the name of a size may not be"),
    "codegen/program/weights_file.cc": (1, "the payload behind its header"),
}


def lines_of(text):
    return [number for number, line in enumerate(text.split("\n"), 1) if SEARCH.search(re.sub(r"(^|\s)//.*", "", line))]


def try_rule():
    for line in ("if (atom.find(' ') != npos)", "name.substr(0, 3)", 'text = replace_all(text, "@", name);',
                 "checks.resize(size - strlen(tail));"):
        assert lines_of(line), f"the rule allows {line}"
    for line in ("const auto at = map.find(id);", "stages.find(value)", "// text.find('a')", "find_operator(a, b)"):
        assert not lines_of(line), f"the rule refuses {line}"


def main():
    try_rule()
    root = pathlib.Path(sys.argv[1])
    found, left = [], 0
    files = [path for path in sorted((root / "codegen").rglob("*")) if path.suffix in (".h", ".cc")]
    for path in files:
        file = path.relative_to(root).as_posix()
        lines = lines_of(path.read_text(encoding="utf-8"))
        most = ALLOWED.get(file, (0, ""))[0]
        left += len(lines)
        if len(lines) > most:
            found += [f"{file}:{line}: searches in text" for line in lines]
        elif len(lines) < most:
            found.append(f"{file}: {len(lines)} lines are left: lower its number {most} in {pathlib.Path(__file__).name}")
    found += [f"{file}: is no more" for file in sorted(ALLOWED) if not (root / file).exists()]
    print("\n".join(found) or f"{len(files)} files, {left} lines that search in text, as listed")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
