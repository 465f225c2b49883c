#!/usr/bin/env python3
"""Compiles the typical instantiations of the CUDA kernels with nvcc for every architecture of the release.

    compile_for_devices.py RUNTIME_DIR WORK_DIR

Exit: 0 no error, no register spilled, no local memory but where it may be; 1 otherwise, 77 without nvcc.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

# One without GCOMPILE_LONG_TESTS=1: an architecture takes minutes, and emitted projects are compiled for four anyway.
ARCHITECTURES = ["sm_75", "sm_80", "sm_87", "sm_90a", "sm_110"]
if os.environ.get("GCOMPILE_LONG_TESTS") != "1":
    ARCHITECTURES = ["sm_80"]
FLAGS = (pathlib.Path(sys.argv[1]) / "flags" / "cuda.txt").read_text().split()
# What may have local memory, and how many bytes spill: recurrences by their definition,
# which call the functions of any activation.
MAY_SPILL = re.compile(r"recurrence_by_definition_kernel")
MOST_SPILLED = 256
SOURCES = sorted(pathlib.Path(__file__).parent.glob("*instances.cu"))
# By the architecture of which alone they are compiled.
OF_ONE = {"hopper_instances.cu": "sm_90a"}
# What ptxas says when it waits for every wgmma.
SERIAL = re.compile(r"\(C75\d\d\)")
SPILL = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
STACK = re.compile(r"(\d+) bytes stack frame")
FUNCTION = re.compile(r"Function properties for (\S+)")


def find_nvcc():
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    for candidate in (shutil.which("nvcc"), f"{home}/bin/nvcc"):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    return None


def knows(nvcc, architecture):
    listed = subprocess.run([nvcc, "--list-gpu-code"], capture_output=True, text=True, check=False).stdout
    return architecture.rstrip("a") in listed.split()


def spills_of(log):
    """(function, bytes) of every function that spills."""
    found = []
    function = "?"
    for line in log.splitlines():
        if match := FUNCTION.search(line):
            function = match.group(1)
        elif match := SPILL.search(line):
            spilled = int(match.group(1)) + int(match.group(2))
            if spilled > (MOST_SPILLED if MAY_SPILL.search(function) else 0) and "warning" not in line:
                found.append((function, spilled))
    return found


def stacks_of(log):
    """(function, bytes) of every function that has local memory."""
    found = []
    function = "?"
    for line in log.splitlines():
        if match := FUNCTION.search(line):
            function = match.group(1)
        elif (match := STACK.search(line)) and int(match.group(1)):
            found.append((function, int(match.group(1))))
    return found


def compile_one(nvcc, architecture, source, runtime, work):
    number = architecture.removeprefix("sm_")
    command = [nvcc, "-std=c++17", "-O2", *FLAGS, "-gencode", f"arch=compute_{number},code={architecture}",
               "-I", str(runtime), "-Xptxas", "-v,--warn-on-spills", "-c", str(source),
               "-o", str(work / f"{source.stem}_{architecture}.o")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    log = done.stdout + done.stderr
    if done.returncode != 0:
        print(log[-4000:])
        print(f"{source.name}, {architecture}: nvcc failed")
        return False
    if SERIAL.search(log):
        print(f"{source.name}, {architecture}: products of warpgroups wait for each other\n{log[-4000:]}")
        return False
    spills = spills_of(log)
    for function, spilled in spills:
        print(f"{architecture}: {spilled} bytes spilled in {function}")
    stacks = [(function, size) for function, size in stacks_of(log) if not MAY_SPILL.search(function)]
    for function, size in stacks:
        print(f"{architecture}: {size} bytes of local memory in {function}")
    registers = [int(n) for n in re.findall(r"Used (\d+) registers", log)]
    print(f"{source.name}, {architecture}: {len(registers)} kernels, at most {max(registers)} registers, {len(spills)} spill")
    return not spills and not stacks


def main():
    nvcc = find_nvcc()
    if nvcc is None:
        print("skipped: no nvcc in PATH or in CUDA_HOME")
        return 77
    runtime = pathlib.Path(sys.argv[1])
    work = pathlib.Path(sys.argv[2])
    is_good = True
    for architecture in ARCHITECTURES:
        if not knows(nvcc, architecture):
            print(f"{architecture}: not known to this nvcc")
            continue
        for source in SOURCES:
            if source.name not in OF_ONE:
                is_good &= compile_one(nvcc, architecture, source, runtime, work)
    for name, architecture in OF_ONE.items():
        if knows(nvcc, architecture):
            is_good &= compile_one(nvcc, architecture, pathlib.Path(__file__).parent / name, runtime, work)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
