#!/usr/bin/env python3
"""Writes docs/errors/CODE.md, a page for every error and warning: cause, example, what to do, and the messages that the
sources give it; and docs/errors.md, which lists them.

    scripts/list_errors.py            writes the files
    scripts/list_errors.py --check    exit 1 unless the files are what the sources say

A code that is in the sources but not in the table below, or the other way round, is an error.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "errors.md"
PAGES = ROOT / "docs" / "errors"
# Command lines with their exact answers, which a test holds to the tool.
ANSWERS = ROOT / "tests" / "project" / "wrong_inputs.txt"
ROOMS = ["base", "ir", "frontend", "passes", "codegen", "driver"]

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
    "E0111": "An opset is a number from 1 on that ONNX has reached or may soon; the file says something else.",
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
    "W0206": "Nothing, if runs have this value. `--set INPUT=VALUE` makes the input a constant, of that value or another; a "
             "run with another value is `NAME_SHAPE_MISMATCH`, and nothing is written "
             "([sizes.md](sizes.md#operands-that-a-run-gives)).",
    "W0207": "Nothing, if the program that reads the output knows the list. An export with numbers as labels, or without "
             "maps (`zipmap=False` of skl2onnx), has none.",
    "W0208": "Nothing: read as many places of the output as the other output says "
             "([sizes.md](sizes.md#sizes-that-only-data-knows)).",
    "E0301": "The operator exists, but not with these types, sizes or attributes; the message says which.",
    "E0302": "The message says what is not supported.",
    "E0303": "The message says which limit or condition is not met.",
    "E0304": "Only dense tensors, and sequences and optionals of them, can be inputs. The number of elements of 4 and 2 bits "
             "is settled when the model is compiled: `--dim` and `--shape` bind sizes.",
    "E0307": "Put the file that the message names back beside the model, whole: `git lfs pull` fetches one that Git LFS "
             "holds, `onnx.save(model, path, save_as_external_data=False)` writes a model without.",
    "E0306": "`--kernel` names a node of the model, as the report lists it beside each step, and a family that serves "
             "its kind of work; `--explain NODE` shows which do.",
    "E0308": "The message names what takes most and what helps. A budget counts what is known to the byte when the project is "
             "written: `--max-flash` the weights, `--max-ram` arena, state and instance, `--max-stack` what the header "
             "tells. [code_size.md](code_size.md) has more.",
    "W0305": "Nothing is less exact than asked for: these products keep more bits, and are slower or have larger "
             "weights. Another `--precision` or `--arch` may suit the model better.",
    "E0401": "Give every open dimension a size with the flags that the message shows. `--dim N=1,2,4` makes a project of "
             "several sizes, from which the caller chooses ([sizes.md](sizes.md)).",
    "E0402": "The flag names an input or an output that the model does not have; the message lists those it has.",
    "E0403": "Two sources give one dimension different sizes.",
    "E0404": "Use `--shape INPUT:1x3x224x224` for dimensions without a usable name; the message lists the names.",
    "W0405": "A name that occurs twice should mean one size; here the shapes say otherwise. Check the result.",
    "E0406": "The values of `--set` must fit the input's type and number of elements.",
    "W0407": "Nothing, if that is meant; else give the sizes that the model is to run with.",
    "W0408": "Nodes of the graph need sizes to be equal, to each other or to a number that the exporter fixed, so that "
             "runs at other sizes return a status. Give `--dim` what is left, or export the model with the dimension open "
             "there too.",
    "W0409": "Check which output is meant to feed the input. Names are a hint only: if the pair is right, nothing has to "
             "be done.",
    "E0410": "Say with `--elements INPUT=COUNT` how many tensors a sequence has; each becomes an input of its own, `INPUT_0`, "
             "`INPUT_1` and so on. `--elements INPUT=none` is an optional without a value, `INPUT=1` one with it.",
    "E0411": "A sequence has 0 tensors or more, an optional 1, or is none.",
    "E0501": "The exporter or an editing tool lost a node. Load the model with `onnx.checker`.",
    "E0502": "Every name must be defined once.",
    "E0503": "A graph has no loops; the message lists the nodes of the cycle.",
    "E0504": "An If has one condition and two graphs without inputs that return the same number of values; the body of a Loop "
             "or Scan takes and gives what the definition lists.",
    "E0505": "A model without outputs computes nothing.",
    "W0509": "Nothing, if that is meant; else look at `--elements` and at the conditions of the model's Ifs.",
    "W0508": "Nothing, if the defaults are what is wanted. To have such an input, remove its initializer from the model.",
    "W0507": "Nothing: both outputs hold the same. List the output once to be rid of the copy.",
    "W0506": "Nothing, if the Constant nodes agree.",
    "E0601": "`--save-onnx` writes standard operators; use `--dump-dir` to see this graph.",
    "E0701": "`--layers` names the kernel that is off; where all kernels are right, a pass has changed the value named "
             "first, and `--disable-pass` and `--pass-limit` find which. Exit code 3. A model that rounding alone moves as "
             "far is no error.",
    "E0702": "Random inputs rarely are a sampling rate or an index that a model expects, and a model may have no outputs "
             "for others. `--set sr=16000` makes such an input a constant; `--data` gives all of them.",
    "E0703": "It is a fault of gcompile's: report it with the model. Until then `--disable-pass` leaves the pass out where "
             "it is not needed, and `--exact` all rewrites that change bits. Exit code 3.",
}

# What it means.
CAUSES = {
    "E0002": "The bytes of the file do not parse as the format that they should have.",
    "E0003": "The file parses, but there is no graph in it.",
    "E0004": "Something of the file is larger or nested deeper than any model needs; a damaged file often looks so.",
    "E0005": "The file is read as ONNX text (`.onnxtxt`, or text on standard input), and a word does not fit there.",
    "E0006": "The model holds a part of the ONNX format that has no meaning here, such as sparse tensors or sequences.",
    "E0007": "The first bytes are those of another format.",
    "E0101": "No record under this name and domain is among the operators of gcompile, and the model has no function of it.",
    "E0102": "A node names a domain for which the model does not say which opset counts.",
    "E0103": "The operator's definition at the model's opset allows other attributes, or another number of inputs or "
             "outputs.",
    "W0110": "One domain is imported more than once, with different versions; the last one counts, as in ONNX Runtime.",
    "E0111": "The version of an imported opset is no positive number, or far beyond any that exists.",
    "W0112": "The opset is newer than those that gcompile was written against.",
    "W0113": "The domain `ai.onnx` and the empty one are the same, and both are imported.",
    "W0114": "A node is written in the form of another opset than the one that is imported.",
    "W0115": "The model carries graphs for training.",
    "E0120": "A function of the model cannot be put in place of its call.",
    "E0121": "Two functions have the same name and domain.",
    "E0201": "The shapes or types of the node's inputs contradict the operator's definition.",
    "E0202": "The shapes of both branches of an If contradict themselves at the sizes that the inputs have.",
    "W0203": "The shapes of one branch of an If contradict themselves, and whether it is taken is known only when the "
             "model runs.",
    "E0204": "The type that the model declares for a value is not the one that its node computes.",
    "W0205": "The shape that the model declares for an output is not the one that its nodes compute.",
    "W0206": "A shape, an axis or the like is an input of the model, and the shapes that the model declares say which it is.",
    "W0207": "No tensor of a run holds strings or maps: positions in the list stand for strings, columns for maps.",
    "W0208": "The size of an output is known when a run has found its elements: it has room for the most that there can be.",
    "E0301": "There is no kernel for what the node asks of an operator that is otherwise supported.",
    "E0302": "The model needs something that no program emitted by gcompile does.",
    "E0303": "What is asked for lies outside a limit, or contradicts something else that is asked for.",
    "E0304": "An input of the model is a map, a sequence of others than tensors, or sparse, or packs elements whose number "
             "is open.",
    "E0307": "The weights of the model lie in a file of their own (ONNX calls it external data) that is missing, cut off, or "
             "not inside the model's folder.",
    "E0306": "`--kernel` names a node that no step of the family's kind computes.",
    "E0308": "The project takes more memory than `--max-flash`, `--max-ram` or `--max-stack` allows.",
    "W0305": "A product is computed in another format than `--precision` names, because the GPU or the values do not "
             "allow it.",
    "E0401": "A dimension of an input has a name or nothing where a size should be, and no option gives it one.",
    "E0402": "`--shape`, `--set`, `--elements` or `--state` names an input or an output that is not there.",
    "E0403": "Options, or an option and the model, give one dimension different sizes.",
    "E0404": "`--dim` names no dimension of the model's inputs.",
    "W0405": "Two inputs have a dimension of the same name, and the model's arithmetic treats them as different sizes.",
    "E0406": "The values that `--set` gives do not fill the input.",
    "W0407": "A size of 0 leaves every output without elements.",
    "W0408": "The graph leaves fewer sizes than `--dim` asks for.",
    "W0409": "Of two outputs of the same type `--state` names the one whose name is less like the input's.",
    "E0410": "An input of the model is a sequence or an optional, and nothing says how many tensors it is.",
    "E0411": "`--elements` gives an input a number of tensors that its type does not allow.",
    "E0501": "A node reads a value that nothing makes.",
    "E0502": "Two nodes, inputs or constants make a value of the same name.",
    "E0503": "Nodes need each other's results, directly or through others.",
    "E0504": "An If, a loop or an operator of sequences is not formed as the operator's definition says.",
    "E0505": "The graph lists no output.",
    "W0509": "An output of the model is a sequence without elements or an optional without a value.",
    "W0508": "An input of the model has an initializer of its name, and gcompile takes that for its value.",
    "W0507": "The graph lists a value twice among its outputs.",
    "W0506": "Two constants have the same name.",
    "E0601": "The graph holds something that no operator of ONNX says.",
    "E0701": "The emitted program computed something else than the expected data, or the evaluator, beyond the tolerance.",
    "E0702": "At the inputs that were tried the model itself has no outputs: an index or a shape is out of range.",
    "E0703": "`--verify-passes` evaluated the graph before and behind every pass, and this one changes an output.",
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
    """code -> set of messages."""
    found = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.cc")):
            text = path.read_text(encoding="utf-8")
            for match in CODE.finditer(text):
                found.setdefault(match[1], set()).add(message_after(text, match.end()))
    return found


def examples():
    """code -> a command and its answer, the first of the tested ones."""
    found = {}
    for block in ANSWERS.read_text(encoding="utf-8").split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("# ")]
        for code in re.findall(r"^(?:error|warning)\[([EW]\d{4})\]", block, re.MULTILINE):
            found.setdefault(code, [line for line in lines if not line.startswith("exit ")])
    return found


def page(code, messages, example):
    lines = [f"# {code}: {GROUPS[code[1:3]]}", "", CAUSES[code], "", "## What to do", "", HELP[code].replace("](", "](../"), ""]
    if example:
        lines += ["## Example", "", *("    " + line if line else "" for line in example), ""]
    lines += ["## Messages", ""]
    for message in sorted(messages):
        shown = "`" + message.replace("`", "'") + "`" if message else "the message of the operator or of the stage"
        lines.append(f"- {shown}")
    return "\n".join(lines) + "\n"


def index(found):
    lines = ["# Errors and warnings", "",
             "Written by `scripts/list_errors.py` from the sources; do not edit. Each has a page with its cause, what to do, an",
             "example where a test has one, and its messages, in which `{}` stands for what they name; `gcompile explain CODE`",
             "prints it. Errors are collected and shown together, each with the node, its operands and a hint; errors",
             "end with exit code 1 if no other is named, warnings do not. Mistakes on the command line (exit code 2), of files (4) and in",
             "gcompile itself (70) have no codes. `--json` prints codes, messages and places for programs.", ""]
    for digits, title in GROUPS.items():
        lines += [f"## {title}", "", "| | |", "|---|---|"]
        for code in sorted((code for code in found if code[1:3] == digits), key=lambda code: code[1:]):
            lines.append(f"| [{code}](errors/{code}.md) | {CAUSES[code].replace('|', chr(92) + '|')} |")
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def documents(found):
    """Path -> text."""
    tried = examples()
    files = {PAGES / f"{code}.md": page(code, messages, tried.get(code)) for code, messages in found.items()}
    return {**files, TARGET: index(found)}


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
    if set(CAUSES) != set(HELP):
        sys.exit(f"list_errors: CAUSES and HELP differ by {', '.join(sorted(set(CAUSES) ^ set(HELP)))}")
    files = documents(found)
    old = set(PAGES.glob("*.md")) - set(files)
    if len(sys.argv) == 1:
        PAGES.mkdir(exist_ok=True)
        for path in old:
            path.unlink()
        for path, text in files.items():
            path.write_text(text, encoding="utf-8")
        print(f"{len(found)} codes in {TARGET.relative_to(ROOT)} and {PAGES.relative_to(ROOT)}/")
    elif old or any(not path.exists() or path.read_text(encoding="utf-8") != text for path, text in files.items()):
        sys.exit("docs/errors.md or a page of docs/errors/ is not what the sources say; run scripts/list_errors.py")


if __name__ == "__main__":
    main()
