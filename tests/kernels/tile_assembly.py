#!/usr/bin/env python3
"""The inner loops of the register tiles that plans choose, in assembly: sums and row pointers stay in registers.

    tile_assembly.py SOURCE_DIR COMPILER [FLAG...]

Tiles are those of codegen/choice/machine.cc, with the epilogue of a layer that clips its sums: its constants may not
take registers from them. In the loop over k, four steps at a time, no vector may go to the stack or come from there, and
at most one instruction in six multiply-adds may touch it: row pointers that are reloaded once for the four steps are
hidden behind the multiply-adds, those that are reloaded at every step are not. A tile that is too large must be found to
be so. On AArch64, whose registers hold four steps of all rows, nothing at all may touch the stack, of the tiles of integers
(gcrt/cpu/product/dot_int8.h) neither, and no multiply-add needs a lane spread first where an instruction takes lanes. Steps of
the tile unit (gcrt/cpu/product/dot_tiles.h) are four products and their four loads, and little else. Exit: 0 right, 1 not, 77 no
compiler for x86-64 or AArch64.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

STEPS = 4


class Machine:
    """What a compiler's assembly for a processor looks like."""

    def __init__(self, levels, too_large, accesses, jump, multiply_add, stack, integers=None):
        self.levels, self.too_large, self.accesses = levels, too_large, accesses
        self.jump, self.multiply_add, self.stack, self.integers = jump, multiply_add, stack, integers or {}


MACHINES = {
    "x86_64": Machine({"kTiles16": "x86-64-v2", "kTiles32": "x86-64-v3", "kTiles64": "x86-64-v4"}, ("x86-64-v4", 14, 2),
                      1 / 6, r"\s+j\w+\s+(\.L\w+)", r"\tv?(fmadd\d+|mul)ps\s", None),
    # Machines for integers: level, multiply-adds of four steps, lanes that are spread first.
    "aarch64": Machine({"kTiles16Of32": "armv8-a"}, ("armv8-a", 8, 4), 0, r"\s+(?:b\.?\w*|cbn?z\t\w+,)\s+(\.L\w+)",
                       r"\t(fmla|sdot|smull2?)\t", r"\[(sp|x29)[],]",
                       {"armv8.2-a+dotprod": (STEPS * 8 * 2, 0), "armv8-a": (STEPS * 4 * 2 * 2, STEPS * 4)}),
}

SOURCE = """
#include "gcrt/cpu/product/gemm_int8.h"
#include "gcrt/scalar/scalar.h"
namespace gcrt {
template <class T>
struct Clip {
  T* y;
  std::ptrdiff_t row;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    store(lane, y + m * row + n, min(max(sums, splat_like<V>(T(0))), splat_like<V>(T(6))));
  }
};
#if ROWS
using Dot = FmaDot<float, RegisterTile<ROWS, VECTORS, 2>>;
#else
using Dot = IntegerDot<std::uint8_t, std::int8_t>;
#endif
template void finish_whole_tiles<Dot, Clip<Dot::Sum>>(const TileTask<Dot>&, const void*);
}  // namespace gcrt
"""


TILE_UNIT_LEVEL = "x86_64_v4_amx"  # runtime_stub/flags/levels.txt
TILE_UNIT_SOURCE = """
#include "gcrt/cpu/product/dot_bfloat16.h"
namespace gcrt {
#if PRODUCTS
template void multiply_block<2, 2>(PartTiles<PRODUCTS>&, int, int, const float*, const float*, std::ptrdiff_t, float*,
                                   float*, std::ptrdiff_t);
#else
template void multiply_steps<SIGNED, 2, 2>(ByteTiles&, const TileSteps&);
#endif
}  // namespace gcrt
"""
# Products of bfloat16, for each of float32: the registers that a step loads.
PART_LOADS = {1: 4, 3: 8, 6: 14}


def inner_loops(lines, jump_pattern):
    """From a label to the jump back to it, with no loop inside."""
    labels, loops = {}, []
    for i, line in enumerate(lines):
        if label := re.match(r"(\.L\w+):", line):
            labels[label[1]] = i
        jump = re.match(jump_pattern, line)
        if jump and jump[1] in labels:
            loops.append((labels[jump[1]], i))
    return [lines[a:b + 1] for a, b in loops if not any((c, d) != (a, b) and a <= c and d <= b for c, d in loops)]


def count(lines, pattern):
    return sum(bool(re.search(pattern, line)) for line in lines)


def loop_over_k(machine, assembly, multiply_adds):
    """The shortest with the multiply-adds of four steps: where words of A lie apart there is another."""
    loops = inner_loops(assembly.splitlines(), machine.jump)
    found = [loop for loop in loops if count(loop, machine.multiply_add) == multiply_adds]
    if not found:
        raise ValueError(f"no loop of {multiply_adds} multiply-adds, but of "
                         f"{[count(loop, machine.multiply_add) for loop in loops]}")
    return min(found, key=len)


def stack_accesses(machine, assembly, loop):
    """Those of all registers, and of vectors."""
    stack = machine.stack
    if not stack:
        stack = r"\(%r[sb]p[,)]" if count(assembly.splitlines(), r"%rsp, %rbp") else r"\(%rsp[,)]"
    accesses = [line for line in loop if re.search(stack, line)]
    return len(accesses), count(accesses, r"%[xyz]mm|\b[qv]\d")


def main():
    source_dir, compiler, flags = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3:]
    if not shutil.which(compiler):
        print(f"no {compiler}: scripts/install_packages.sh test installs it")
        return 77
    target = subprocess.run([compiler, "-dumpmachine"], capture_output=True, text=True, check=True).stdout
    machine = MACHINES.get(target.partition("-")[0])
    if not machine:
        print(f"nothing is known of {target.strip()}")
        return 77
    table = (source_dir / "codegen/choice/machine.cc").read_text()
    tiles = [(level, int(rows), int(vectors))
             for name, level in machine.levels.items()
             for rows, vectors in re.findall(r"\{(\d+), (\d+)\}", re.search(name + r"\[\] = \{(.*)\};", table)[1])]
    wrong = len(tiles) < len(machine.levels)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tile.cc"
        path.write_text(SOURCE)

        def loop_of(level, rows, vectors, multiply_adds):
            command = [compiler, "-std=c++17", "-O2", f"-march={level}", "-fno-exceptions", "-Wno-psabi", *flags,
                       f"-DROWS={rows}", f"-DVECTORS={vectors}", f"-I{source_dir / 'runtime_stub'}", "-S", "-o", "-",
                       str(path)]
            assembly = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            loop = loop_over_k(machine, assembly, multiply_adds)
            return loop, stack_accesses(machine, assembly, loop)

        for level, rows, vectors in tiles + [machine.too_large]:
            multiply_adds = STEPS * rows * vectors
            loop, (accesses, of_vectors) = loop_of(level, rows, vectors, multiply_adds)
            is_small = of_vectors == 0 and accesses <= machine.accesses * multiply_adds
            print(f"{level} {rows}x{vectors}: {accesses} stack accesses, {of_vectors} of vectors, and {instructions(loop)} "
                  f"instructions in {multiply_adds} multiply-adds")
            wrong = wrong or is_small == ((level, rows, vectors) == machine.too_large)
        for level, (multiply_adds, spread) in machine.integers.items():
            loop, (accesses, _) = loop_of(level, 0, 0, multiply_adds)
            lanes = count(loop, r"\t(dup|ins|umov)\t")
            print(f"{level} bytes: {accesses} stack accesses, {lanes} lanes spread and {instructions(loop)} instructions in "
                  f"{multiply_adds} multiply-adds")
            wrong = wrong or accesses > 0 or lanes > spread
        if target.startswith("x86_64"):
            wrong = not check_tile_unit(source_dir, machine, [compiler, *flags], pathlib.Path(folder)) or wrong
    return 1 if wrong else 0


def check_tile_unit(source_dir, machine, compiler, folder):
    """One step: its products and loads, five instructions that walk, one that counts and at most two beside them; the parts
    of floats lie far apart, which takes two instructions more for each load."""
    levels = (source_dir / "runtime_stub/flags/levels.txt").read_text()
    march = re.search(rf"^x86_64 {TILE_UNIT_LEVEL} (.*)$", levels, re.M)[1].split()
    path, is_right = folder / "tile_unit.cc", True
    path.write_text(TILE_UNIT_SOURCE)

    def check(product, macro, products, most_loads, walking):
        command = [*compiler, "-std=c++17", "-O2", *march, "-fno-exceptions", "-Wno-psabi", f"-D{macro}",
                   f"-I{source_dir / 'runtime_stub'}", "-S", "-o", "-", str(path)]
        assembly = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        loop = min((loop for loop in inner_loops(assembly.splitlines(), machine.jump)
                    if count(loop, rf"\t{product}\s") == products), key=len)
        loads, (accesses, _) = count(loop, r"\ttileloadd\s"), stack_accesses(machine, assembly, loop)
        print(f"{TILE_UNIT_LEVEL} {product} {macro}: {accesses} stack accesses, {loads} loads and {instructions(loop)} "
              f"instructions in {products} products")
        return accesses == 0 and loads == most_loads and instructions(loop) <= products + loads + walking + 1 + 2

    for signed, product in (("false", "tdpbusd"), ("true", "tdpbssd")):
        is_right = check(product, f"SIGNED={signed}", 4, 4, 5) and is_right
    for products, loads in PART_LOADS.items():
        is_right = check("tdpbf16ps", f"PRODUCTS={products}", 4 * products, loads, 2 * loads) and is_right
    return is_right


def instructions(loop):
    return count(loop, r"^\t[a-z]")


if __name__ == "__main__":
    sys.exit(main())
