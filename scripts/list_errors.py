#!/usr/bin/env python3
"""Writes docs/errors.md: every error and warning code with the messages that the sources give it.

    scripts/list_errors.py            writes the file
    scripts/list_errors.py --check    exit 1 unless the file is what the sources say

A code that is in the sources but not in the table below, or the other way round, is an error.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "errors.md"
ROOMS = ["ir", "frontend", "passes", "codegen", "driver"]

GROUPS = {
    "00": "The file",
    "01": "Operators, opsets and functions",
    "02": "Types and shapes",
    "03": "Tensors and what cannot be compiled",
    "04": "Sizes of the inputs",
    "05": "The graph",
    "06": "Writing ONNX",
    "07": "Verification",
}

# What to do about it.
HELP = {
    "E0002": "Fetch the file again: it is empty, or cut off.",
    "E0003": "Check that the file is a model and not a single tensor.",
    "E0004": "The model exceeds a limit that protects the compiler. Keep large weights in external data.",
    "E0005": "The text form is that of `onnx.parser`; the message says where it stops to be so.",
    "E0006": "The model uses a part of the format that this compiler cannot read. It is named so that nothing is "
             "dropped in silence.",
    "E0007": "The message says what the file is, and by which command a model is made of it.",
    "E0101": "`gcompile ops` lists what is supported; all unsupported operators of the model are reported in one "
             "run. [adding_an_operator.md](adding_an_operator.md) shows how to add one.",
    "E0102": "Add the missing `opset_import` to the model.",
    "E0103": "The node's attributes or inputs are not what the operator's definition allows.",
    "W0110": "Remove one of the imports from the model.",
    "E0111": "An opset is a number from 1 on; the file says something else.",
    "W0112": "Most operators do not change between opsets; verify the result.",
    "W0113": "Harmless, unless the exporter meant another version of the domain.",
    "W0114": "The model was written for another opset than it declares.",
    "W0115": "Nothing: training information plays no part in inference.",
    "E0120": "The call of the function does not fit its definition, or functions call each other in a circle.",
    "E0121": "Remove one of the definitions.",
    "E0201": "The operands listed below the message do not fit the operator. If a size is wrong, look at the sizes "
             "that the inputs were given.",
    "E0202": "Neither branch fits the sizes that the inputs have; look at `--dim` and `--shape`.",
    "W0203": "The emitted program works as long as it takes the other branch; a run that takes this one returns "
             "`NAME_SHAPE_MISMATCH`. `--set INPUT=VALUE` makes the condition known and removes the branch.",
    "E0204": "The model contradicts itself; export it again.",
    "W0205": "Nothing: declared output shapes are hints, and the computed one counts.",
    "E0301": "The operator exists, but not with these types, sizes or attributes; the message says which.",
    "E0302": "The message says what is not supported.",
    "E0303": "The message says which limit or condition is not met.",
    "E0304": "Only dense tensors can be inputs.",
    "E0306": "`--kernel` names a node of the model, as the report lists it beside each step, and a family that serves "
             "its kind of work; `--explain NODE` shows which do.",
    "W0305": "Nothing is less exact than asked for: these products keep more bits, and are slower or have larger "
             "weights. Another `--precision` or `--arch` may suit the model better.",
    "E0401": "Give every open dimension a size with the flags that the message shows. `--dim N=1,2,4` makes a project of "
             "several sizes, from which the caller chooses ([sizes.md](sizes.md)).",
    "E0402": "The flag names an input that the model does not have; the message lists those it has.",
    "E0403": "Two sources give one dimension different sizes.",
    "E0404": "Use `--shape INPUT:1x3x224x224` for dimensions without a usable name; the message lists the names.",
    "W0405": "A name that occurs twice should mean one size; here the shapes say otherwise. Check the result.",
    "E0406": "The values of `--set` must fit the input's type and number of elements.",
    "E0501": "The exporter or an editing tool lost a node. Load the model with `onnx.checker`.",
    "E0502": "Every name must be defined once.",
    "E0503": "A graph has no loops; the message lists the nodes of the cycle.",
    "E0504": "An If has one condition and two graphs without inputs that return the same number of values.",
    "E0505": "A model without outputs computes nothing.",
    "W0507": "Nothing: both outputs hold the same. List the output once to be rid of the copy.",
    "W0506": "Nothing, if the Constant nodes agree.",
    "E0601": "`--save-onnx` writes standard operators; use `--dump-dir` to see this graph.",
    "E0701": "`--layers` names the kernel that is off; where all kernels are right, a pass has changed the value named "
             "first, and `--disable-pass` and `--pass-limit` find which. Exit code 3. A model that rounding alone moves as "
             "far is no error.",
    "E0702": "Random inputs rarely are a sampling rate or an index that a model expects, and a model may have no outputs "
             "for others. `--set sr=16000` makes such an input a constant; `--data` gives all of them.",
}

CODE = re.compile(r'"([EW]\d{4})"')
LITERALS = re.compile(r'(?:"(?:[^"\\]|\\.)*"\s*)+')
WORDS = re.compile(r'"((?:[^"\\]|\\.)*)"')


def message_after(text, start):
    """The first string after a code that is a sentence, within its statement; "" when it is built elsewhere."""
    if re.match(r",\s*\w+\s*,", text[start:]):
        return ""
    end = text.find(";\n", start)
    limit = min(len(text) if end < 0 else end, start + 400)
    # A diagnostic that is filled field by field.
    if re.match(r";\s*\w+\.message\s*=", text[start:]):
        limit = text.find(";\n", start + 2)
    for literal in LITERALS.finditer(text, start, limit):
        words = "".join(WORDS.findall(literal[0]))
        if " " in words and re.search("[a-z]{3}", words):
            return words.replace('\\"', '"')
    return ""


def scan():
    """code -> sorted set of (message, file)."""
    found = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.cc")):
            text = path.read_text(encoding="utf-8")
            for match in CODE.finditer(text):
                place = (message_after(text, match.end()), path.relative_to(ROOT).as_posix())
                found.setdefault(match[1], set()).add(place)
    return found


def document(found):
    lines = ["# Errors and warnings", "",
             "Written by `scripts/list_errors.py` from the sources; do not edit. `{}` stands for what the message",
             "names. Errors are collected and shown together, each with the node, its operands and a hint; errors",
             "end with exit code 1 if no other is named, warnings do not. Mistakes on the command line (exit code 2), of files (4) and in",
             "gcompile itself (70) have no codes. `--json` prints codes, messages and places for programs.", ""]
    for digits, title in GROUPS.items():
        lines += [f"## {title}", ""]
        for code in sorted((code for code in found if code[1:3] == digits), key=lambda code: code[1:]):
            lines += [f"### {code}", "", HELP[code], ""]
            for message, file in sorted(found[code]):
                lines.append(f"- {'`' + message.replace('`', chr(39)) + '`' if message else 'the message of the operator or of the stage'} ({file})")
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    found = scan()
    unknown = sorted(set(found) - set(HELP))
    if unknown:
        sys.exit(f"list_errors: say in HELP what to do about {', '.join(unknown)}")
    gone = sorted(set(HELP) - set(found))
    if gone:
        sys.exit(f"list_errors: nothing gives {', '.join(gone)}; remove it from HELP")
    text = document(found)
    if len(sys.argv) == 1:
        TARGET.write_text(text, encoding="utf-8")
        print(f"{len(found)} codes in {TARGET.relative_to(ROOT)}")
    elif not TARGET.exists() or TARGET.read_text(encoding="utf-8") != text:
        sys.exit("list_errors: docs/errors.md is out of date; run scripts/list_errors.py")
    else:
        print(f"{len(found)} codes, docs/errors.md is up to date")


if __name__ == "__main__":
    main()
