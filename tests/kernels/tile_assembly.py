#!/usr/bin/env python3
"""The inner loops of the register tiles that plans choose, in assembly: sums and row pointers stay in registers.

    tile_assembly.py SOURCE_DIR COMPILER [FLAG...]

Tiles are those of codegen/kernels/machine.cc. In the loop over k, four steps at a time, at most one instruction in
six multiply-adds may touch the stack: row pointers that are reloaded once for the four steps are hidden behind the
multiply-adds, those that are reloaded at every step are not. A tile of 14 rows must be found to be too large. Exit: 0
right, 1 not, 77 not a compiler for x86-64.
"""

import pathlib
import re
import subprocess
import sys
import tempfile

LEVELS = {"kTiles16": "x86-64-v2", "kTiles32": "x86-64-v3", "kTiles64": "x86-64-v4"}
TOO_LARGE = ("x86-64-v4", 14, 2)
ACCESSES_PER_MULTIPLY_ADD = 1 / 6
STEPS = 4

SOURCE = """
#include "gcrt/cpu/gemm.h"
namespace gcrt {
struct Store {
  float* y;
  std::ptrdiff_t row;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    store(lane, y + m * row + n, sums);
  }
};
using Dot = FmaDot<float, RegisterTile<ROWS, VECTORS>>;
template void finish_whole_tiles<Dot, Store>(const TileTask<Dot>&, const void*);
}  // namespace gcrt
"""


def inner_loops(lines):
    """From a label to the jump back to it, with no loop inside."""
    labels, loops = {}, []
    for i, line in enumerate(lines):
        if label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = i
        jump = re.match(r"\s+j\w+\s+(\.L\w+)", line)
        if jump and jump[1] in labels:
            loops.append((labels[jump[1]], i))
    return [lines[a:b + 1] for a, b in loops if not any((c, d) != (a, b) and a <= c and d <= b for c, d in loops)]


def count(lines, pattern):
    return sum(bool(re.search(pattern, line)) for line in lines)


def multiply_adds(lines):
    return count(lines, r"\tv?(fmadd\d+|mul)ps\t")


def stack_accesses(assembly, rows, vectors):
    """Of the loop over k; an error where it has not the multiply-adds of four steps."""
    loop = max(inner_loops(assembly.splitlines()), key=multiply_adds)
    if multiply_adds(loop) != STEPS * rows * vectors:
        raise ValueError(f"{multiply_adds(loop)} multiply-adds, not {STEPS} times {rows}x{vectors}")
    return count(loop, r"\(%r[sb]p[,)]" if count(assembly.splitlines(), r"%rsp, %rbp") else r"\(%rsp[,)]")


def main():
    source_dir, compiler, flags = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    target = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, check=True).stdout
    if not target.startswith("x86_64"):
        print("no compiler for x86-64")
        return 77
    table = (source_dir / "codegen/kernels/machine.cc").read_text()
    tiles = [(level, int(rows), int(vectors))
             for name, level in LEVELS.items()
             for rows, vectors in re.findall(r"\{(\d+), (\d+)\}", re.search(name + r"\[\] = \{(.*)\};", table)[1])]
    wrong = len(tiles) < len(LEVELS)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tile.cc"
        path.write_text(SOURCE)
        for level, rows, vectors in tiles + [TOO_LARGE]:
            command = [compiler, "-std=c++17", "-O2", f"-march={level}", "-fno-exceptions", "-Wno-psabi", *flags,
                       f"-DROWS={rows}", f"-DVECTORS={vectors}", f"-I{source_dir / 'runtime_stub'}", "-S", "-o", "-",
                       str(path)]
            assembly = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            accesses = stack_accesses(assembly, rows, vectors)
            is_small = accesses <= ACCESSES_PER_MULTIPLY_ADD * STEPS * rows * vectors
            print(f"{level} {rows}x{vectors}: {accesses} stack accesses in {STEPS * rows * vectors} multiply-adds")
            wrong = wrong or is_small == ((level, rows, vectors) == TOO_LARGE)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
