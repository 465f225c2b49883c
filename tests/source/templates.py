#!/usr/bin/env python3
"""Templates only render (docs/design.md, rule 1): short, and without comparisons of values or arithmetic.

    templates.py SOURCE_DIR

First tries its own rules on tags that must be refused. Exit: 0 clean, 1 not.
"""

import pathlib
import re
import sys

MOST_LINES = 250
TAG = re.compile(r"\{%[-+]?(.*?)[-+]?%\}|\{\{-?(.*?)-?\}\}", re.DOTALL)
STRING = re.compile(r'"[^"]*"|\'[^\']*\'')
# What computes or compares; a filter is `|`, a name may have a dot.
COMPUTES = re.compile(r"==|!=|<|>|[-+*/%~]|\b(?:in|is)\b|\b\d+\b")
SET = re.compile(r"^\s*set\b")


def complaints_of(name, text):
    found = []
    lines = text.count("\n")
    if lines > MOST_LINES:
        found.append(f"{name}: {lines} lines; at most {MOST_LINES}: what is the same for every model is a header of gcrt")
    for match in TAG.finditer(text):
        inner = STRING.sub('""', match[1] if match[1] is not None else match[2])
        is_loop = re.match(r"^\s*for\s+\w+(\s*,\s*\w+)?\s+in\s+(.*)$", inner, re.DOTALL)
        if SET.search(inner) or COMPUTES.search(is_loop[2] if is_loop else inner):
            line = text.count("\n", 0, match.start()) + 1
            found.append(f"{name}:{line}: {match[0]} computes; the program should say it (codegen/emit)")
    return found


def main():
    for refused in ("{% if a == 1 %}", "{{ a + b }}", "{% if n > limit %}", "{% if kind != 'x' %}", "{% if loop.index % two %}",
                    "{% set a = b %}", "{{- a * b -}}", "{% if 'x' in names %}", "x\n" * (MOST_LINES + 1)):
        assert complaints_of("x", refused), f"the rules allow {refused[:40]!r}"
    for allowed in ("{% if a and not b.c %}", "{{ a | join(', ') }}", "{{- a -}}", "{%+ if a +%}", '{{ "{" }}', "{% for a in b.c %}",
                    '{% include "a-b.j2" %}', "a + b == c"):
        assert not complaints_of("x", allowed), f"the rules refuse {allowed!r}"
    root = pathlib.Path(sys.argv[1])
    paths = sorted((root / "templates").rglob("*.j2"))
    assert len(paths) > 15, f"only {len(paths)} templates found"
    found = [complaint for path in paths
             for complaint in complaints_of(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))]
    print("\n".join(found) or f"{len(paths)} templates, which only render")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
