#!/usr/bin/env python3
"""Facts that stand in one place, and nowhere else.

    facts.py SOURCE_DIR

Exit: 0 each where it belongs, 1 not.
"""

import pathlib
import re
import sys

SOURCES = ("base", "ir", "frontend", "passes", "jinja", "codegen", "driver", "runtime_stub", "templates", "tests", "scripts", "cmake",
           "docs")
KINDS = (".cc", ".h", ".cu", ".cpp", ".py", ".sh", ".txt", ".j2", ".cmake", ".def", ".md")
TOOL = r"(base|ir|frontend|passes|jinja|codegen|driver)/.*\.(cc|h)"

# (what, how it is written, in which files that would be a second copy, where it stands)
FACTS = [
    ("flags that keep two roundings apart", r"-ffp-contract=off", r".*", "runtime_stub/flags/cpp.txt"),
    ("the same of nvcc", r"--fmad=false", r".*", "runtime_stub/flags/cuda.txt"),
    ("what GCC for Windows needs for them", r"-muse-unaligned-vector-move", r".*", "runtime_stub/flags/mingw.txt"),
    ("what clang needs for wide vectors", r"-mprefer-vector-width", r".*", "runtime_stub/flags/clang.txt"),
    ("the largest head of attention", r"\bk\w*(Head|Value)(Size)? (=|<=) 256\b", r"(ir|passes|runtime_stub)/.*", "runtime_stub/gcrt/attention_limit.h"),
    ("ONNX's numbers of element types", r"\{\s*10,\s*(ir::)?ElementType::kFloat16\s*\}", TOOL, "ir/ops/support.cc"),
    ("the shape of a product", r"^(ir::)?Shape product_shape\([^;]*\{", TOOL, "ir/ops/product_shape.cc"),
    ("digits in groups", r"^std::string grouped\([^;]*\{", TOOL, "codegen/report/quantities.cc"),
    ("bytes as people read them", r"^std::string human_bytes\([^;]*\{", TOOL, "codegen/report/quantities.cc"),
]
# Numbers that stand in two files: of rooms which must not know each other, or of a document that quotes another.
SAME_NUMBERS = [
    [("codegen/kinds/attention_heads.h", r"kLargestHead = (\d+);"),
     ("runtime_stub/gcrt/attention_limit.h", r"kAttentionLargestHead = (\d+);")],
    [("README.md", r"takes ([\d.]+) times less time"), ("docs/benchmarks.md", r"The main suite; geometric means ([\d.]+) with one thread")],
    [("README.md", r"\bbert_base (\d+) ms"), ("docs/benchmarks.md", r"\| bert_base \| (\d+)")],
]
# What tells targets apart outside their kernels: codegen/target.h.
TARGETS = re.compile(r'[!=]= *"(cuda|cpp)"|[!=]= *Target::k|Target::k\w+ *[!=]=')
MAY_TELL_TARGETS_APART = ("codegen/choice/", "codegen/calls/", "codegen/kinds/", "codegen/families/", "codegen/packing/", "codegen/loops/", "codegen/target.")


def files_of(root):
    for top in SOURCES:
        for path in sorted((root / top).rglob("*")):
            if path.is_file() and path.suffix in KINDS:
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8", errors="replace")


def main():
    root = pathlib.Path(sys.argv[1])
    assert TARGETS.search('if (target == "cuda")') and TARGETS.search("a != Target::kCpp") and TARGETS.search("Target::kCuda == a")
    found, stands = [], {where: 0 for _, _, _, where in FACTS}
    this = pathlib.Path(__file__).resolve().relative_to(root.resolve()).as_posix()
    for name, text in files_of(root):
        if name == this:
            continue
        for what, written, scope, where in FACTS:
            if not re.fullmatch(scope, name):
                continue
            for match in re.finditer(written, text, re.MULTILINE):
                if name == where:
                    stands[where] += 1
                else:
                    found.append(f"{name}:{text.count(chr(10), 0, match.start()) + 1}: {what}: {where} has it")
        if re.fullmatch(TOOL, name) and not name.startswith(MAY_TELL_TARGETS_APART):
            for match in TARGETS.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{name}:{line}: {match[0]}: what differs between targets is a member of TargetInfo")
    for places in SAME_NUMBERS:
        numbers = {re.search(written, (root / name).read_text(encoding="utf-8"))[1] for name, written in places}
        if len(numbers) != 1:
            found.append(f"{' and '.join(name for name, _ in places)} say {' and '.join(sorted(numbers))}")
    found += [f"{where}: it should have {what}" for what, _, _, where in FACTS if stands[where] == 0]
    print("\n".join(found) or f"{len(FACTS)} facts, each in one place")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
