#!/usr/bin/env python3
"""Behind `ir` nobody asks for an operator's name (docs/design.md, "Operators behind `ir`").

    operator_names.py SOURCE_DIR

An operator's name may be read only by patterns, and written only to make a node. Whoever wants to know something of an
operator asks its record for a trait, or its form. A word of emitted C++ that is an operator's name too ("Max" of MaxPooling) is
none where it is an argument of what writes text. First tries its own rules. Exit: 0 clean, 1 not.
"""

import pathlib
import re
import sys

ROOMS = ["frontend", "passes", "codegen", "driver"]
# Patterns: their subject are given operators, which they name in a table or through is_operator().
PATTERNS = re.compile(r"passes/(rules/(?!support)|forms/attention|forms/join_products)")
# Lines that may stay, and why.
ALLOWED = {
    "passes/engine/rule.cc": (1, "is_operator(), which all patterns ask"),
    "frontend/import/unsupported.cc": (1, "compares two names of the file, to say in which domain an operator does exist"),
    "frontend/import/name_order.cc": (1, "Constant is how the file writes a tensor"),
    "frontend/import/import_node.cc": (6, "Constant, If, Loop, Scan, SequenceMap and FlexAttention have a syntax of their own: a tensor, graphs"),
    "frontend/import/import_sequence.cc": (12, "which operators take or give what is no tensor, so that they become names of values"),
}
COMPARES = re.compile(r"op(?:->|\.)name\s*[!=]=|[!=]=\s*[\w>.()-]*op(?:->|\.)name\b|op_type\(\)\s*[!=]="
                      r"|op(?:->|\.)name\.(?:find|substr|compare|starts_with|rfind)")
LITERAL = re.compile(r'"([A-Z][A-Za-z0-9]*)"')
COMPARED_LITERAL = re.compile(r'[!=]=\s*"([A-Z][A-Za-z0-9]*)"')
# What writes C++, whose words are none of ONNX.
WRITES_TEXT = re.compile(r"(?:fmt::format|fmt::format_to|fmt::join|\bText|[.>](?:line|open|append))$")
REMEDY = """What one wants to know of an operator is a trait of its record (Traits in ir/graph/operator.h) or its form; a law about some
operators is a pattern in passes/rules/; a node is made by emit() or operator_named(). Words of emitted C++ are arguments of
fmt::format(), Text() or CodeText::line(): there they are no operators."""
MAKES_NODE = re.compile(r"(?:emit|emit_node|operator_named|set_op_type)\(\s*$")


def without_comments(text):
    return re.sub(r"(^|\s)//.*", lambda match: match[1] + " " * (len(match[0]) - len(match[1])), text, flags=re.MULTILINE)


def is_text(code, at):
    """Whether what stands at `at` is an argument, at any depth, of what writes text."""
    before = re.sub(r'"(?:[^"\\\n]|\\.)*"', lambda match: '"' + "_" * (len(match[0]) - 2) + '"', code[:at])
    depth = 0
    for i in range(len(before) - 1, -1, -1):
        if before[i] in ";{}" and depth == 0:
            return False
        depth += (before[i] == ")") - (before[i] == "(")
        if depth < 0:
            if WRITES_TEXT.search(before[:i]):
                return True
            depth = 0
    return False


def complaints_of(file, text, names):
    """(line number, what) for every use of a name that is none of a pattern's and makes no node."""
    out, whole, start = [], without_comments(text), 0
    for number, code in enumerate(whole.split("\n"), 1):
        begin, start = start, start + len(code) + 1
        if COMPARES.search(code) or any(m[1] in names for m in COMPARED_LITERAL.finditer(code)):
            out.append((number, "compares an operator's name"))
        elif not PATTERNS.match(file):
            out += [(number, f'"{m[1]}" is an operator') for m in LITERAL.finditer(code)
                    if m[1] in names and not MAKES_NODE.search(code[:m.start()]) and not is_text(whole, begin + m.start())][:1]
    return out


def try_rules():
    names = {"Div", "Relu", "TopK", "Identity"}
    refused = [("passes/graph/fold.cc", 'if (node.op->name == other) return;'), ("passes/graph/fold.cc", 'is("Relu")'),
               ("driver/commands/verify.cc", 'static const std::set<std::string_view> kOps = {"Gemm", "TopK"};'),
               ("passes/rules/weights.cc", 'if (match.node("c").op->name == "Div") f();'),
               ("passes/forms/attention.cc", 'return name != "Relu";'), ("frontend/a.cc", 'node.op_type() == kind'), ("passes/rules/support.cc", 'decides = {"TopK"}'),
               ("codegen/families/a.cc", 'op->name.substr(0, 7)'), ("codegen/families/a.cc", 'line(fmt::format("{}", x)); is("Relu")'),
               ("codegen/families/a.cc", 'fmt::format("{}", op->name == "Relu" ? 1 : 2)'),
               ("codegen/families/a.cc", 'if (names.count("Div")) code.line("Relu");')]
    allowed = [("passes/forms/layout.cc", 'graph.add_node(ir::operator_named("Identity"), {from}, {}, 1)'),
               ("passes/rules/weights.cc", 'op("Div", {x, c})'), ("passes/graph/fold.cc", 'x.emit("Relu", {y})'),
               ("passes/graph/fold.cc", 'return 1;  // "Relu" of a'), ("driver/commands/verify.cc", 'fail("E0101")'),
               ("passes/forms/attention.cc", 'if (is(id, "Div")) return;'), ("passes/graph/cse.cc", "seen[{node.op->name}]"),
               ("codegen/families/a.cc", 'fmt::format("f(x, {}Pooling{{}}, e)",\n  work.is_max ? "Relu" : "Div")'),
               ("codegen/families/a.cc", 'code.line("Relu");')]
    for file, line in refused:
        assert complaints_of(file, line, names), f"the rules allow {line} in {file}"
    for file, line in allowed:
        assert not complaints_of(file, line, names), f"the rules refuse {line} in {file}"


def main():
    try_rules()
    root = pathlib.Path(sys.argv[1])
    names = {name.removeprefix("Microsoft")
             for name in re.findall(r"GC_OPERATOR\((\w+)\)", (root / "ir/ops/operators.def").read_text())}
    assert len(names) > 150
    found = []
    files = [path for room in ROOMS for path in sorted((root / room).rglob("*")) if path.suffix in (".h", ".cc")]
    for path in files:
        file = path.relative_to(root).as_posix()
        complaints = complaints_of(file, path.read_text(encoding="utf-8"), names)
        most = ALLOWED.get(file, (0, ""))[0]
        if len(complaints) > most:
            found += [f"{file}:{number}: {what}" for number, what in complaints]
        elif len(complaints) < most:
            found.append(f"{file}: {len(complaints)} lines are left: lower its number {most} in {pathlib.Path(__file__).name}")
    found += [f"{file}: is no more" for file in sorted(ALLOWED) if not (root / file).exists()]
    print("\n".join(found + [REMEDY]) if found else f"{len(files)} files, none that asks for an operator's name but those {len(ALLOWED)} that may")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
