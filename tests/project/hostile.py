#!/usr/bin/env python3
"""Hostile files and folders: each is answered within ten seconds of processor time and 1 GiB, by a project or by an error
that is told, and touches nothing outside of its output folder.

    hostile.py --gcompile GCOMPILE [CASE...]

What is tried is made from numbers: number N is the same everywhere. A part is tried by default, another one after each
commit; with GCOMPILE_LONG_TESTS=1 all. HOSTILE_NUMBER=N tries that one alone and leaves what it made.
"""

import collections
import os
import random
import signal
import subprocess
import time

import hostile_data
import hostile_graphs
from hostile_data import TOOL
from hostile_models import KINDS
from support import ROOT, check, equal, run_main

MODULES = hostile_data, hostile_graphs  # they fill KINDS
COUNT, STEP = 1000, 5
SECONDS, MEGABYTES = 10.0, 1024
# Exit codes of the model, of the command line, of files, of verify (something differs).
ANSWERS = (0, 1, 2, 3, 4)
NO_COMPILER = "/bin/false"


def answer(command):
    """(exit code, processor seconds, megabytes, what was said); by a signal, for those that do not end."""
    read, write = os.pipe()
    child = os.posix_spawn(command[0], command, {**os.environ, "CXX": NO_COMPILER},
                           file_actions=[(os.POSIX_SPAWN_DUP2, write, 2), (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY,
                                                                           0),
                                         (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0)])
    os.close(write)
    os.set_blocking(read, False)
    said, end = b"", time.monotonic() + 60
    while True:
        try:
            piece = os.read(read, 1 << 16)
            if not piece:
                break
            said = (said + piece)[-20_000:]
        except BlockingIOError:
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                break
            time.sleep(0.002)
    os.close(read)
    _, status, usage = os.wait4(child, 0)
    return (os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024,
            said.decode(errors="replace"))


def try_number(world, index):
    """What is wrong; an empty string: nothing."""
    make = KINDS[index % len(KINDS)]
    folder = world.path(str(index))
    folder.mkdir()
    (folder / "kept").write_bytes(b"kept")
    command = [world.gcompile, *map(os.fspath, make(random.Random(index), folder))]
    before = sorted(os.listdir(folder))
    code, seconds, megabytes, said = answer(command)
    after = sorted(set(os.listdir(folder)) - {"out"})
    wrong = []
    # Data that fits is verified, with a compiler that makes nothing.
    if NO_COMPILER not in said and (code not in ANSWERS or "internal compiler error" in said):
        wrong.append(f"exit code {code}")
    if code != 0 and not said.strip():
        wrong.append("nothing is said")
    if seconds > SECONDS or megabytes > MEGABYTES:
        wrong.append(f"{seconds:.1f} s, {megabytes} MB")
    if after != sorted(set(before) - {"out"}) or (folder / "kept").read_bytes() != b"kept":
        wrong.append(f"the folder holds {after}")
    if any(ord(c) < 32 and c not in "\n\t" for c in said):
        wrong.append("control characters are printed")
    if not wrong and "HOSTILE_NUMBER" not in os.environ:
        subprocess.run(["rm", "-rf", str(folder)], check=True)
    return f"{index} ({make.__name__}): {', '.join(wrong)}\n{said[-600:]}" if wrong else "", code, seconds, megabytes


def numbers():
    if "HOSTILE_NUMBER" in os.environ:
        return [int(os.environ["HOSTILE_NUMBER"])]
    if os.environ.get("GCOMPILE_LONG_TESTS") == "1":
        return range(COUNT)
    done = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    turn = int(done.stdout) if done.returncode == 0 else 0
    # Each kind in every run: a step that shares no factor with their number.
    step = next(step for step in range(STEP, 0, -1) if all(step % p or len(KINDS) % p for p in range(2, step + 1)))
    return range(turn % step, COUNT, step)


def case_answered(world):
    os.environ[TOOL] = world.gcompile
    found, codes, slowest, largest, tried = [], collections.Counter(), 0.0, 0, 0
    for index in numbers():
        wrong, code, seconds, megabytes = try_number(world, index)
        codes[code] += 1
        slowest, largest, tried = max(slowest, seconds), max(largest, megabytes), tried + 1
        if wrong:
            print(wrong, flush=True)
            found.append(index)
    print(f"         {tried} of {COUNT}, exit codes {dict(sorted(codes.items()))}, at most {slowest:.1f} s and {largest} MB")
    equal(found, [], "numbers that were not answered as they must be")
    check(len(codes) > 1, "all end alike: nothing was tried")


if __name__ == "__main__":
    run_main(globals())
