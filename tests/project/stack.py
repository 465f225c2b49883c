#!/usr/bin/env python3
"""NAME_STACK_BYTES is at least what the longest chain of calls takes of the stack, as the compiler tells it of each function,
for every width of vectors, and is no figure of wider ones.

    stack.py --gcompile GCOMPILE [CASE...]

The run of a project is measured by interface.py, where this machine has its instructions. Each processor has one of the models
at one level of optimisation, others after each commit; with GCOMPILE_LONG_TESTS=1 all.
"""

import collections
import os
import re
import shutil

import every_family
import families
from support import LIBRARY_FLAGS, check, run_main, turn

ATTENTION = """<ir_version: 8, opset_import: ["" : 23]>
net (float[1,2,40,64] q, float[1,2,80,64] k, float[1,2,80,96] v, float[40,80] m) => (float[1,2,40,96] y) {
  y = Attention(q, k, v, m)
}
"""
PACKED = """<ir_version: 8, opset_import: ["" : 17]>
net (float[40,256] x, float[1,256] z) => (float[40,512] y, float[1,512] u) {
  w = Constant<value = float[1] {0.5}>() s = Constant<value = int64[2] {256,512}>() e = Expand(w, s)
  y = MatMul(x, e) u = MatMul(z, e)
}
"""


def of_family(run, number):
    """The model of a test of families, and what forces some of them."""
    make, forced, more = every_family.RUNS[run]
    return make().text(), [*list(families.rounds(forced))[number], *more]


def models():
    """By name: the text, and options."""
    return {"attention": (ATTENTION, []), "packed": (PACKED, ["--weight-bits", "4"]), "images": of_family("images_cpp", 0),
            "lists": of_family("lists_cpp", 0), "windows": of_family("windows_cpp", 0), "dots": of_family("windows_cpp", 3),
            "bytes": of_family("byte_products_cpp", 0), "byte_windows": of_family("byte_windows_cpp", 0)}


# What a project is compiled for: its compiler, and flags.
TILES = ["-march=x86-64-v4", "-mavx512vnni", "-mamx-tile", "-mamx-int8", "-mamx-bf16"]
PROCESSORS = {"x86-64-v2": ("g++", ["-march=x86-64-v2"]), "x86-64-v3": ("g++", ["-march=x86-64-v3"]),
              "x86-64-v4": ("g++", ["-march=x86-64-v4", "-mavx512vnni"]), "native": ("g++", TILES),
              "sapphirerapids": ("g++", TILES),
              "cortex-a72": ("aarch64-linux-gnu-g++", ["-mcpu=cortex-a72"]),
              "cortex-a7": ("arm-linux-gnueabihf-g++", ["-mcpu=cortex-a7", "-mfpu=neon-vfpv4"]),
              "cortex-m7": ("arm-none-eabi-g++", ["-mcpu=cortex-m7", "-mfloat-abi=hard", "-mfpu=fpv5-d16"])}
LEVELS = ("-O1", "-O2", "-O3")
WORD = 16  # the address that a call leaves, with what keeps the stack aligned


def longest_chain(folder):
    """Bytes that functions which call each other take, of all files of -fcallgraph-info=su in a folder."""
    taken, calls = {}, collections.defaultdict(set)
    for path in folder.glob("*.ci"):
        text = path.read_text(encoding="utf-8")
        for name, label in re.findall(r'node: \{ title: "([^"]*)" label: "([^"]*)"', text):
            for size in re.findall(r"(\d+) bytes", label):
                taken[name] = max(taken.get(name, 0), int(size))
        for caller, callee in re.findall(r'edge: \{ sourcename: "([^"]*)" targetname: "([^"]*)"', text):
            calls[caller].add(callee)
    chains = {}

    def chain(name, above=()):
        if name not in chains:
            below = [chain(callee, (*above, name)) for callee in sorted(calls[name]) if callee not in (*above, name)]
            chains[name] = taken.get(name, 0) + WORD + max(below, default=0)
        return chains[name]

    return max(chain(name) for name in sorted(taken))


def measured(world, cpu, name, level):
    """What is taken and what is told."""
    compiler, flags = PROCESSORS[cpu]
    text, options = models()[name]
    folder = world.path(f"{cpu}_{name}{level}")
    folder.mkdir()
    (folder / "net.onnxtxt").write_text(text, encoding="utf-8")
    (folder / "stack.c").write_text('#include "net/net.h"\nint bytes = NET_STACK_BYTES;\n', encoding="utf-8")
    world.compile(folder / "net.onnxtxt", folder / "project", "--name", "net", "--cpu", cpu, *options)
    include = [f"-I{folder}/project", f"-I{folder}/project/include"]
    kept = [flag for flag in LIBRARY_FLAGS if compiler == "g++" or not flag.startswith("-mprefer")]
    for source in sorted((folder / "project" / "src").glob("*.cpp")):
        if not source.name.endswith("_threads.cpp"):
            world.run([compiler, "-std=c++17", *flags, *kept, level, "-w", "-fcallgraph-info=su", *include, "-c", source,
                       "-o", folder / f"{source.stem}.o"])
    told = world.run([compiler.replace("g++", "gcc"), "-E", "-P", *include, folder / "stack.c"]).stdout
    return longest_chain(folder), int(re.search(r"int bytes = (\d+)u;", told)[1])


def case_chains(world):
    """What is told is enough, and no third more than the longest of them needs."""
    names = list(models())
    is_long = os.environ.get("GCOMPILE_LONG_TESTS") == "1"
    for place, cpu in enumerate(PROCESSORS):
        if not shutil.which(PROCESSORS[cpu][0]):
            print(f"         {cpu}: no {PROCESSORS[cpu][0]}: scripts/install_packages.sh test installs it")
            continue
        number = turn() + place
        pairs = [(name, level) for name in names for level in LEVELS] if is_long else [
            (names[number % len(names)], LEVELS[number // len(names) % len(LEVELS)])]
        for name, level in pairs:
            taken, told = measured(world, cpu, name, level)
            print(f"         {cpu} {name} {level}: {taken} of {told}", flush=True)
            check(taken <= told, f"{cpu} {name} {level}: {taken} of {told}")
            check(told <= taken * 3 // 2 or name not in ("attention", "packed", "images"), f"{cpu} {name}: {taken} of {told}")


if __name__ == "__main__":
    run_main(globals())
