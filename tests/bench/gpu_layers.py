"""Times of a project's layers on a GPU, beside what its manifest predicts."""

import csv
import json

# A layer that takes so many times what was predicted has to be explained.
SUSPICIOUS = 1.5


def command(ncu, program, *arguments):
    """Nsight Compute over every kernel of a graph, caches and clocks as they are. Durations in nanoseconds."""
    return [ncu, "--graph-profiling", "node", "--metrics", "gpu__time_duration.sum", "--print-units", "base", "--cache-control",
            "none", "--clock-control", "none", "--csv", program, *arguments]


# What ncu tells of a kernel in some ten passes: what it moves, what its warps wait for, how many there are.
SECTIONS = ("SpeedOfLight", "MemoryWorkloadAnalysis", "ComputeWorkloadAnalysis", "SchedulerStats", "WarpStateStats", "LaunchStats",
            "Occupancy")


def detail_command(ncu, kernels, program, *arguments):
    """As command(), everything about the first `kernels` kernels of a program."""
    sections = [word for section in SECTIONS for word in ("--section", section)]
    return [ncu, "--graph-profiling", "node", *sections, "--page", "raw", "--print-units", "base", "--cache-control", "none",
            "--clock-control", "none", "--csv", "--launch-count", kernels, program, *arguments]


def durations(text):
    """Microseconds of each kernel, in order, of what ncu printed among other things."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        raise ValueError("ncu printed no table")
    rows = csv.DictReader(lines[begin:])
    return [float(row["Metric Value"].replace(",", "")) / 1000 for row in rows
            if row.get("Metric Name") == "gpu__time_duration.sum"]


def predicted(manifest):
    """The layers of a manifest: what they are, their launches, and microseconds, without the gap between kernels."""
    layers = json.loads(manifest.read_text(encoding="utf-8"))["layers"]
    return [{"function": layer["function"], "origins": layer["origins"], "launches": layer["launches"],
             "predicted_us": layer["picoseconds"] / 1e6 - layer["predicted"]["launch"]} for layer in layers]


def measured(layers, times):
    """`layers` with the times of the last run among those of several, by the number of their launches."""
    launches = sum(layer["launches"] for layer in layers)
    if launches == 0 or len(times) < launches or len(times) % launches != 0:
        raise ValueError(f"{len(times)} kernels were seen, which are no runs of {launches}")
    last = iter(times[-launches:])
    return [{**layer, "measured_us": sum(next(last) for _ in range(layer["launches"]))} for layer in layers]


def worst(layers, count=3):
    """Those that lose most beside their prediction, the worst first."""
    late = [layer for layer in layers if layer["measured_us"] > SUSPICIOUS * layer["predicted_us"]]
    return sorted(late, key=lambda layer: layer["predicted_us"] - layer["measured_us"])[:count]
