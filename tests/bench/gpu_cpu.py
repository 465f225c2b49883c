"""What the machine's processors do while nvcc works on the others: times of the projects for the CPU by threads, and the
tests of the tile unit where there is one."""

import json
import os
import pathlib
import shutil

from gpu_pack import TILES
from gpu_steps import Failure, Skip

THREADS = (1, 2, 4, 8, 16)
SECONDS_OF_A_CELL = 6


def cores():
    return sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else list(range(os.cpu_count() or 1))


def shares(all_cores):
    """Cores of the timings, and of what is compiled beside them: one half each, or all where there is but one."""
    half = len(all_cores) // 2
    return (all_cores[:half], all_cores[half:]) if half else (all_cores, all_cores)


def pinned(command, to):
    """`command` on these cores alone."""
    taskset = shutil.which("taskset")
    return [taskset, "-c", ",".join(map(str, to)), *command] if taskset else command


def table(check, models, project_of, on):
    """Milliseconds of each model by threads, on `on` cores; numbers of threads beyond them have no row."""
    rows, wrong = [], []
    for model in models:
        project = project_of(model)
        program = project / "build" / f"{model}_bench"
        if not program.exists():
            wrong.append(f"{model}: {program} was not built")
            continue
        for threads in THREADS:
            if threads > len(on) or check.left() < 60:
                break
            command = pinned([program, "--weights", project / "data" / f"{model}.weights.bin", "--json", "--warmup", "2",
                              "--repeat", "8", "--threads", threads], on[:threads])
            try:
                said = check.run(command, SECONDS_OF_A_CELL * 3)
                measured = json.loads(said.strip().splitlines()[-1])
            except (Failure, ValueError, IndexError) as error:
                wrong.append(f"{model}, {threads} threads: {str(error)[:300]}")
                break
            rows.append({"model": model, "threads": threads, "min_ms": measured["min_ms"], "median_ms": measured["median_ms"]})
    check.save("cpu", rows)
    if wrong:
        raise Failure("\n".join(wrong))
    return "; ".join(f"{row['model']} x{row['threads']} {row['min_ms']:.2f} ms" for row in rows) or "no row"


def has_tile_unit():
    info = pathlib.Path("/proc/cpuinfo")
    return info.exists() and " amx_tile" in info.read_text(encoding="utf-8", errors="replace")


def tile_unit(check):
    """The tests of int8 and bfloat16 products by AMX, which few machines can run."""
    tests = check.tiles or (check.programs / TILES if check.programs else None)
    if not tests or not tests.exists():
        raise Skip("its tests were not built")
    if not has_tile_unit():
        raise Skip("this processor has none")
    check.run([tests, "--gtest_brief=1"], 60, "tiles.log")
    return "right"
