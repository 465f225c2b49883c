#!/usr/bin/env python3
"""Keeps the code that README.md and docs/ show equal to the code that there is, and the picture to the report.

    scripts/quote.py GCOMPILE            rewrites the quoted blocks
    scripts/quote.py GCOMPILE --check    exit 1 unless they are what the files say

A block of code after a line `<!-- quote FILE "START" TO "END" -->` is the part of FILE from the first line that
contains START to the next one that contains END, both included. `shapes:src/shapes.cpp` is a file of the project that
GCOMPILE makes of examples/shapes_classifier, `attention:src/attention.cu` one of examples/tiny_attention for CUDA; other
names are files of the repository. Lines that begin with + in a block of kind `diff` must be lines of the file that the last
`+++ b/FILE` names, but for additions, which tests/source/additions.py tries. Links to files must lead somewhere.
docs/report.svg has the pictures of memory and time of the report of `shapes`, in the report's own colours.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROJECTS = {"shapes": ["examples/shapes_classifier/model.onnx"],
            "attention": ["examples/tiny_attention/model.onnx", "--target", "cuda"]}
QUOTE = re.compile(r'(<!-- quote (\S+) "([^\n]*?)" TO "([^\n]*?)" -->\n+```\w*\n)((?:(?!```).*\n)*)(```\n)')
DIFF = re.compile(r"(?<!-->\n)```diff\n(.*?)```", re.DOTALL)
DRAWING = re.compile(r'<svg [^>]*aria-label="(?:memory plan|predicted time of every step)">.*?</svg>', re.DOTALL)
PICTURE = ROOT / "docs" / "report.svg"
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


def part(text, start, end):
    """The lines from START to END without their common indentation."""
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if start in line), None)
    if first is None:
        raise LookupError(f"no line contains {start!r}")
    # A closing brace has to be the whole line.
    last = next((i for i in range(first, len(lines)) if (lines[i] == end if end in ("}", "};") else end in lines[i])), None)
    if last is None:
        raise LookupError(f"no line after {start!r} contains {end!r}")
    taken = lines[first:last + 1]
    indent = min(len(line) - len(line.lstrip(" ")) for line in taken if line)
    return "\n".join(line[indent:] for line in taken)


def diff_complaints(name, text):
    found = []
    for block in DIFF.findall(text):
        target = None
        for line in block.splitlines():
            if line.startswith("+++ b/"):
                path = ROOT / line[6:]
                target = set(path.read_text(encoding="utf-8").split("\n")) if path.exists() else set()
            elif line.startswith("+") and not line.startswith("+++"):
                if target is None or line[1:] not in target:
                    found.append(f"{name}: this line of a diff is in no file: {line}")
    return found


def picture(report):
    """Memory and time as the report shows them, one below the other, for a page that is none."""
    style = re.search(r"<style>(.*?)</style>", report, re.DOTALL)[1]
    rules = [rule for rule in style.partition("@media print")[0].split("\n") if rule.startswith("svg .")]
    colours = style.partition("* {")[0].strip()
    drawings, parts, top = DRAWING.findall(report), [], 8
    assert len(drawings) == 2, len(drawings)
    for part in drawings:
        height = int(re.match(r'<svg viewBox="0 0 1000 (\d+)"', part)[1])
        parts.append(part.replace("<svg ", f'<svg x="0" y="{top}" width="1000" height="{height}" ', 1))
        top += height + 20
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 {top}" width="1000" height="{top}">', "<style>",
                      colours, "svg { font: 12px system-ui, sans-serif; fill: var(--ink); }", *rules, ".page { fill: var(--page); }",
                      "</style>", f'<rect class="page" width="1000" height="{top}"/>', *parts, "</svg>"]) + "\n"


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    check = len(sys.argv) == 3
    assert part("a\n  b\n    c\nd", "b", "c") == "b\n  c"
    assert diff_complaints("x", "```diff\n+++ b/LICENSE\n+no such line\n```")
    found, blocks = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for project, (model, *options) in PROJECTS.items():
            subprocess.run([sys.argv[1], "compile", str(ROOT / model), *options, "--name", project,
                            "-o", str(pathlib.Path(folder) / project), "-q"], check=True)

        drawn = picture((pathlib.Path(folder) / "shapes" / "report.html").read_text(encoding="utf-8"))
        if check and (not PICTURE.exists() or PICTURE.read_text(encoding="utf-8") != drawn):
            found.append("docs/report.svg is out of date; run scripts/quote.py GCOMPILE")
        elif not check:
            PICTURE.write_text(drawn, encoding="utf-8")

        def renewed(match):
            nonlocal blocks
            blocks += 1
            project, _, path = match[2].rpartition(":")
            text = ((pathlib.Path(folder) / project if project else ROOT) / path).read_text(encoding="utf-8")
            return match[1] + part(text, match[3], match[4]) + "\n" + match[6]

        for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), *sorted(ROOT.glob("examples/**/*.md"))]:
            name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
            try:
                new = QUOTE.sub(renewed, text)
            except (LookupError, OSError) as error:
                found.append(f"{name}: {error}")
                continue
            if len(QUOTE.findall(text)) != text.count("<!-- quote"):
                found.append(f"{name}: a quote without a block of code after it")
            if new != text and check:
                found.append(f"{name}: quoted code is out of date; run scripts/quote.py GCOMPILE")
            elif new != text:
                path.write_text(new, encoding="utf-8")
            found += diff_complaints(name, new)
            for link in LINK.findall(new):
                if "://" not in link and not (path.parent / link).exists():
                    found.append(f"{name}: no file {link}")
    print("\n".join(found) or f"{blocks} quoted blocks are up to date")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
