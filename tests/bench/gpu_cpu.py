"""What the machine's processors do while nvcc works on the others: times of the projects for the CPU by threads beside
ONNX Runtime's, and the tests of the tile unit where there is one."""

import importlib.util
import json
import sys
import os
import pathlib
import shutil

import numpy as np

import big_models
from gpu_pack import TILES
from gpu_steps import Failure, Skip

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from gcompile import peers  # noqa: E402  pylint: disable=wrong-import-position

THREADS = (1, 2, 4, 8, 16)
SECONDS_OF_A_CELL = 6
REPEAT = 8


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


def table(check, models, project_of, on, more_than=0):
    """Milliseconds of each model by threads, on `on` cores, beside ONNX Runtime where Python has it; numbers of threads
    beyond the cores, and those that were measured before (up to `more_than`), have no row."""
    rows, wrong = check.saved().get("cpu", []), []
    for model in models:
        for threads in THREADS:
            if not more_than < threads <= len(on) or check.left() < 60:
                continue
            try:
                row = ours(check, model, project_of(model), threads, on)
            except (Failure, ValueError, IndexError) as error:
                wrong.append(f"{model}, {threads} threads: {str(error)[:300]}")
                break
            rows.append({**row, **beside(check, model, threads, on)})
    check.save("cpu", rows)
    if wrong:
        raise Failure("\n".join(wrong))
    return "; ".join(f"{row['model']} x{row['threads']} {row['min_ms']:.2f} ms"
                     f"{' of %.2f' % row['peer_min_ms'] if 'peer_min_ms' in row else ''}" for row in rows) or "no row"


def ours(check, model, project, threads, on):
    program = project / "build" / f"{model}_bench"
    if not program.exists():
        raise Failure(f"{program} was not built")
    command = pinned([program, "--weights", project / "data" / f"{model}.weights.bin", "--json", "--warmup", "2",
                      "--repeat", REPEAT, "--threads", threads], on[:threads])
    measured = json.loads(check.run(command, SECONDS_OF_A_CELL * 3).strip().splitlines()[-1])
    return {"model": model, "threads": threads, "min_ms": measured["min_ms"], "median_ms": measured["median_ms"]}


def beside(check, model, threads, on):
    """ONNX Runtime's times of the same model, in the same place; nothing where it is not here or refuses the model."""
    if importlib.util.find_spec("onnxruntime") is None:
        return {}
    folder = check.work / "peers" / f"{model}_{threads}"
    shutil.rmtree(folder, ignore_errors=True)
    inputs = check.work / "peers" / f"{model}.npz"
    inputs.parent.mkdir(parents=True, exist_ok=True)
    np.savez(inputs, **big_models.example_inputs(model, is_small=check.arguments.small))
    try:
        peer = peers.Peer("onnxruntime", check.work / "models" / model / "model.onnx", inputs, threads, folder,
                          pinned([], on[:threads]))
        times = sorted(clock for clock, _ in peer.times(REPEAT + 2)[2:])
        peer.close()
    except (peers.Refused, OSError) as reason:
        print(f"ONNX Runtime: {model}: {reason}", flush=True)
        return {}
    return {"peer": f"ONNX Runtime {peer.version}", "peer_min_ms": times[0], "peer_median_ms": times[len(times) // 2]}


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
