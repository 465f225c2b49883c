#!/usr/bin/env python3
"""Holds the machine code of inner loops to counts of instructions, in sass_instances.cu.

    sass.py RUNTIME_DIR WORK_DIR BUILD_DIR

Needs nvcc, and nvdisasm from PATH, CUDA_HOME or BUILD_DIR/sass_venv (scripts/install_packages.sh sass).
Exit: 0 all hold, 1 one does not, 77 without one of the two tools.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from compile_for_devices import FLAGS, find_nvcc, knows

ARCHITECTURES = ["sm_80", "sm_87", "sm_90a", "sm_120"]
FUNCTION = re.compile(r"^\.text\.(\S+):")
LABEL = re.compile(r"^(\.L_\S+):")
INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;")
BRANCH = re.compile(r"\bBRA\b.*`\((\.L_[^)]*)\)")
PREDICATE = re.compile(r"^@!?U?P\w+\s+")
# What reads a loaded register as a number: the first use of what was fetched.
CONVERSION = re.compile(r"^(HADD2|F2F|PRMT|IMAD\.U32|SHF|LOP3|FFMA|FMUL|FADD|HFMA2|IMAD\.SHL)")


def find_nvdisasm(build):
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    venv = sorted(pathlib.Path(build).glob("sass_venv/lib/python3*/site-packages/nvidia/*/bin/nvdisasm"))
    for candidate in (shutil.which("nvdisasm"), f"{home}/bin/nvdisasm", *map(str, venv)):
        if candidate and os.path.exists(candidate):
            return candidate
    return None


def functions_of(listing):
    """{mangled name: [(label or None, instruction without predicate, branch target or None)]}"""
    found = {}
    current = None
    for line in listing.splitlines():
        if match := FUNCTION.match(line):
            current = found.setdefault(match.group(1), [])
        elif current is None:
            continue
        elif match := LABEL.match(line):
            current.append((match.group(1), None, None))
        elif match := INSTRUCTION.match(line):
            target = BRANCH.search(match.group(1))
            current.append((None, PREDICATE.sub("", match.group(1)), target.group(1) if target else None))
    return found


def loops_of(function):
    """The instructions of every loop, innermost or not: from a label to the last branch back to it."""
    places = {label: i for i, (label, _, _) in enumerate(function) if label}
    ends = {}
    for i, (_, _, target) in enumerate(function):
        if target in places and places[target] < i:
            ends[target] = i
    return [[text for label, text, _ in function[places[target]:end + 1] if text] for target, end in ends.items()]


def issued(instructions):
    """Without what ptxas puts behind every HMMA of sm_120."""
    return [text for text in instructions if text != "NOP"]


def count(instructions, prefix):
    return sum(text.startswith(prefix) for text in instructions)


def loop_with(function, prefix, least=1):
    """The shortest loop with so many instructions that begin thus."""
    matching = [loop for loop in loops_of(function) if count(loop, prefix) >= least]
    return min(matching, key=len) if matching else []


def check_slab(name, function, most):
    """Instructions of one turn: operands, conversions and products of a slab."""
    loop = issued(loop_with(function, "HMMA"))
    return f"{len(loop)} instructions for a slab, at most {most}", 0 < len(loop) <= most


def check_copies(name, function, most):
    """Instructions for one asynchronous copy of 16 bytes on the path without bounds."""
    loops = [path for loop in loops_of(function) for path in straight_paths(loop)]
    wide = [path for path in loops if count(path, "LDGSTS.E.BYPASS.128") + count(path, "LDGSTS.E.128") >= 2]
    if not wide:
        return "no path with copies of 16 bytes", False
    least = min(len(path) / count(path, "LDGSTS") for path in wide)
    return f"{least:.1f} instructions for a copy, at most {most}", least <= most


def check_kernel(name, function, most):
    """Checks a whole kernel: instructions, those of paths that are seldom taken too, and no local memory."""
    texts = issued(text for label, text, _ in function if text)
    local = sum(text.startswith(("LDL", "STL")) for text in texts)
    return f"{len(texts)} instructions, at most {most}; {local} local accesses", 0 < len(texts) <= most and not local


def check_fragments(name, function, least):
    """Fragments of a slab are read while the products of the one before it run, also across the barrier of a step."""
    best, is_across = 0, False
    for loop in loops_of(function):
        products = [i for i, text in enumerate(loop) if text.startswith("HMMA")]
        barriers = [i for i, text in enumerate(loop) if text.startswith("BAR.SYNC")]
        if not products or not barriers:
            continue
        best = max(best, count(loop[products[0]:products[-1]], "LDSM"))
        is_across |= products[0] < barriers[0] < products[-1]
    return (f"{best} fragments read between products, at least {least}; the barrier is {'' if is_across else 'not '}among them",
            best >= least and is_across)


def straight_paths(loop):
    """Pieces of a loop between branches."""
    pieces, piece = [], []
    for text in loop:
        piece.append(text)
        if text.startswith(("BRA", "BSYNC", "BSSY", "EXIT")):
            pieces.append(piece)
            piece = []
    return pieces + [piece]


def check_loads(name, function, least):
    """Loads of 16 bytes that are under way before the first of them is used."""
    best = 0
    for loop in loops_of(function):
        run = 0
        for text in loop:
            if text.startswith("LDG") and ".128" in text.split()[0]:
                run += 1
                best = max(best, run)
            elif CONVERSION.match(text):
                run = 0
    return f"{best} loads of 16 bytes before the first use, at least {least}", best >= least


def check_epilogue(name, function, least):
    """Operands of the epilogue that are read before a result is stored."""
    best = run = 0
    for text in (text for label, text, _ in function if text):
        if text.startswith("LDG.") and ".128" in text.split()[0]:
            run += 1
            best = max(best, run)
        elif text.startswith("STG"):
            run = 0
    return f"{best} loads of 16 bytes before a store, at least {least}", best >= least


def check_waits(name, function, most):
    """The wait for the grid before stands ahead of all loads, the fetches of weights ahead of it."""
    texts = [text for label, text, _ in function if text]
    waits = [i for i, text in enumerate(texts) if text.startswith("ACQBULK")]
    loads = [i for i, text in enumerate(texts) if text.startswith(("LDG", "LDGSTS", "STG", "RED", "ATOMG"))]
    fetches = [i for i, text in enumerate(texts) if text.startswith("CCTL.E.PF2")]
    holds = bool(waits and fetches) and fetches[0] < waits[0] and all(i > waits[0] for i in loads) and len(waits) <= most
    return f"{len(waits)} waits for the grid before, {len(fetches)} fetches, {len(loads)} accesses behind", holds


def check_warpgroups(name, function, most):
    """Products of warpgroups behind copies by tensor maps; the loop waits once for what it has started; no local memory."""
    texts = [text for label, text, _ in function if text]
    products, copies = count(texts, "HGMMA"), count(texts, "UTMALDG.4D")
    local = sum(text.startswith(("LDL", "STL")) for text in texts)
    waits = count(min((loop for loop in loops_of(function) if count(loop, "HGMMA")), key=len, default=[]), "WARPGROUP.DEPBAR")
    numbers = [int(n) for text in texts for n in re.findall(r"\bR(\d+)\b", text)]
    registers = max(numbers, default=0) + 1
    holds = bool(products >= 4 and copies >= 2 and waits == 1 and not local)
    return (f"{products} HGMMA, {copies} UTMALDG, {waits} wait in the loop, {local} local accesses, {registers} registers of "
            f"{most}", holds and registers <= most)


def check_cluster(name, function, parts):
    """Between two barriers of the cluster all parts of a sum are under way before the first is added; nothing before is stored
    to memory, nothing is counted there."""
    texts = [text for label, text, _ in function if text]
    barriers = [i for i, text in enumerate(texts) if text.startswith("UCGABAR_WAIT")]
    pairs = [pair for pair in zip(barriers, barriers[1:]) if count(texts[slice(*pair)], "LD.E.128")]
    if len(pairs) != 1:
        return f"{len(pairs)} pairs of barriers of the cluster between which parts are read, not 1", False
    first, second = pairs[0]
    between = texts[first:second]
    adds = [i for i, text in enumerate(between) if text.startswith("FADD")]
    loads = count(between[:adds[0]] if adds else [], "LD.E.128")
    stores = count(texts[:second], "STG") + count(texts, "ATOM") + count(texts, "RED")
    return f"{loads} parts read before the first sum, of {parts}; {stores} stores of parts", loads == parts and stores == 0


# Kernels of sm_90a, in hopper_instances.cu.
WARPGROUPS = [
    ("9PrecisionE2ELNS_9WgmmaTileE4ELi1Ef", check_warpgroups, 232),
    ("9PrecisionE2ELNS_9WgmmaTileE4ELi2ENS_4Half", check_warpgroups, 232),
    ("9PrecisionE3ELNS_9WgmmaTileE3ELi1ENS_8BFloat16", check_warpgroups, 232),
    ("9PrecisionE3ELNS_9WgmmaTileE0ELi1Ef", check_warpgroups, 128),
    ("9PrecisionE1ELNS_9WgmmaTileE1ELi2Ef", check_warpgroups, 168),
    ("9PrecisionE2ELNS_9WgmmaTileE1ELi2ENS_4Half", check_warpgroups, 168),  # a convolution, as the next
    ("9PrecisionE3ELNS_9WgmmaTileE0ELi8ENS_8BFloat16", check_warpgroups, 128),
    ("9PrecisionE2ELNS_9WgmmaTileE0ELi4ENS_4Half", check_warpgroups, 128),
    ("9PrecisionE2ELNS_9WgmmaTileE0ELi8Ef", check_warpgroups, 128),
    ("9PrecisionE1ELNS_9WgmmaTileE1ELi2Ef", check_cluster, 2),
    ("9PrecisionE2ELNS_9WgmmaTileE0ELi4ENS_4Half", check_cluster, 4),
    ("9PrecisionE2ELNS_9WgmmaTileE0ELi8Ef", check_cluster, 8),
    ("ClusterSumsILi2E", check_cluster, 2),
    ("ClusterSumsILi4E", check_cluster, 4),
    ("ClusterSumsILi8E", check_cluster, 8),
]

# Checks for sm_90 and later.
WAITS = [("gemv_kernel", check_waits, 1), ("tile_kernel", check_waits, 1)]

# Parts of names of tile_kernel.
TILE = "tile_kernelINS_10TileConfigILNS_4TileE"
FP16 = "EEENS_12FloatProductILNS_9PrecisionE2EEENS_8PartSumsIfLi1EEENS_"
HALF = "INS_4HalfELi16E"

# Checks of instances: a part of the mangled name, the check, its bound.
GATES = [
    ("slab_kernelILNS_9PrecisionE0", check_slab, 220),
    ("slab_kernelILNS_9PrecisionE1", check_slab, 80),
    ("slab_kernelILNS_9PrecisionE2Ef", check_slab, 30),
    ("slab_kernelILNS_9PrecisionE3Ef", check_slab, 30),
    ("slab_kernelILNS_9PrecisionE2ENS_4Half", check_slab, 20),
    ("slab_kernelILNS_9PrecisionE3ENS_8BFloat16", check_slab, 20),
    ("copy_kernelINS_11DenseSourceIfLi16", check_copies, 4),
    ("copy_kernelINS_11DenseSourceINS_4HalfELi16", check_copies, 4),
    ("copy_kernelINS_11DenseSourceINS_4HalfELi0", check_copies, 4),
    ("copy_kernelINS_10ConvSourceIfLi16", check_copies, 6),
    ("copy_kernelINS_10ConvSourceINS_4HalfELi16", check_copies, 4),
    ("BatchedOutputINS_16ResidualEpilogue", check_epilogue, 4),
    ("gemv_kernelILi1ENS_12RowsInMemoryIfLi16EEENS_11DenseSourceINS_4Half", check_loads, 4),
    ("gemv_kernelILi1ENS_12RowsInMemoryIfLi16EEENS_11DenseSourceINS_8BFloat16", check_loads, 4),
    ("gemv_kernelILi1ENS_12RowsInMemoryIfLi16EEENS_11DenseSourceIf", check_loads, 4),
    (f"{TILE}2{FP16}11DenseSource{HALF}", check_kernel, 800),
    (f"{TILE}2{FP16}10ConvSource{HALF}", check_kernel, 1300),
    (f"{TILE}5{FP16}11DenseSource{HALF}", check_kernel, 880),
    (f"{TILE}5{FP16}10ConvSource{HALF}", check_kernel, 1380),
    (f"{TILE}2{FP16}11DenseSource{HALF}", check_fragments, 16),
    (f"{TILE}5{FP16}11DenseSource{HALF}", check_fragments, 24),
]


def disassemble(nvcc, nvdisasm, architecture, source, runtime, work):
    number = architecture.removeprefix("sm_")
    cubin = work / f"{source.stem}_{architecture}.cubin"
    subprocess.run([nvcc, "-std=c++17", "-O2", *FLAGS, "-gencode", f"arch=compute_{number},code={architecture}", "-I",
                    str(runtime), "-cubin", str(source), "-o", str(cubin)], check=True)
    return subprocess.run([nvdisasm, "-c", str(cubin)], capture_output=True, text=True, check=True).stdout


def check_all(functions, architecture, gates):
    """Prints a line for each gate; whether all hold. A gate whose instance is missing fails."""
    is_good = True
    for part, check, bound in gates:
        matching = [(name, function) for name, function in functions.items() if part in name]
        for name, function in matching or [(part, [])]:
            text, holds = check(name, function, bound)
            print(f"{'ok  ' if holds else 'FAIL'} {architecture} {part}: {text}")
            is_good &= holds
    return is_good


def main():
    runtime, work, build = map(pathlib.Path, sys.argv[1:4])
    nvcc, nvdisasm = find_nvcc(), find_nvdisasm(build)
    if nvcc is None:
        print("skipped: no nvcc in PATH or in CUDA_HOME")
        return 77
    if nvdisasm is None:
        print("skipped: no nvdisasm; scripts/install_packages.sh sass brings one")
        return 77
    here = pathlib.Path(__file__).parent
    is_good = True
    for architecture in ARCHITECTURES:
        if not knows(nvcc, architecture):
            print(f"{architecture}: not known to this nvcc")
            continue
        can_start_early = int(re.sub(r"\D", "", architecture)) >= 90
        sources = {"sass_instances.cu": GATES + (WAITS if can_start_early else [])}
        if architecture == "sm_90a":
            sources["hopper_instances.cu"] = WARPGROUPS
        for name, gates in sources.items():
            listing = disassemble(nvcc, nvdisasm, architecture, here / name, runtime, work)
            is_good &= check_all(functions_of(listing), architecture, gates)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
