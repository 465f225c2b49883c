#!/usr/bin/env python3
"""Times emitted CUDA projects beside PyTorch on a GPU, in turns in one run.

    peers_on_gpu.py --projects DIR --results FILE [--seconds S] [--cells MODEL:BATCH:PRECISION,...] [--compile]

DIR/MODEL_bBATCH_PRECISION/build/MODEL_bench is the emitted program. The peers are the same architecture in torch (eager,
captured in one CUDA graph) and, with --compile, what torch.compile makes of it with its best tuning, captured in a CUDA
graph likewise: that is faster than mode "max-autotune", whose graphs are started from Python. Each times its runs
with events on the device, one run behind the other; minimum and median over all rounds go into FILE after every cell.

Without torch, or where a program was not built, the row is left out and a line says so. Exit: 0, or 1 where something
failed to run.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import gpu_table

try:
    import torch
except ImportError:
    torch = None

ROUNDS = 3
SECONDS_OF_RUNS = 0.2  # per round and peer


def update(results_file, rows):
    """Replaces the rows of the same model, precision, batch and peer."""
    path = pathlib.Path(results_file)
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    key = lambda row: (row["model"], row["precision"], row["batch"], row["peer"])
    kept = {key(row): row for row in results.get("timings", [])}
    kept.update({key(row): row for row in rows})
    results["timings"] = list(kept.values())
    path.write_text(json.dumps(results, indent=1), encoding="utf-8")


class Emitted:
    """The bench program of an emitted project."""

    def __init__(self, program, name="gcompile"):
        self.name = name
        self.program = program
        self.repeat = 20
        self.repeat = repeat_for(self.times()[1])

    def times(self):
        # Make's programs look for their weights from the project's folder.
        done = subprocess.run([str(self.program), "--json", "--warmup", "10", "--repeat", str(self.repeat)], check=True,
                              capture_output=True, text=True, timeout=120, cwd=self.program.parents[1])
        measured = json.loads(done.stdout.strip().splitlines()[-1])
        return measured["device_min_ms"], measured["device_median_ms"]


def repeat_for(milliseconds):
    return int(min(1000, max(20, SECONDS_OF_RUNS * 1e3 / max(milliseconds, 1e-3))))


class Captured:
    """A torch module in a CUDA graph."""

    def __init__(self, name, module, inputs):
        self.name = name
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.inference_mode(), torch.cuda.stream(stream):
            for _ in range(3):
                module(*inputs)
        torch.cuda.current_stream().wait_stream(stream)
        torch.cuda.synchronize()
        self.graph = torch.cuda.CUDAGraph()
        with torch.inference_mode(), torch.cuda.graph(self.graph):
            self.results = module(*inputs)
        self.repeat = 20
        self.repeat = repeat_for(self.times()[1])

    def times(self):
        for _ in range(10):
            self.graph.replay()
        ends = [torch.cuda.Event(enable_timing=True) for _ in range(self.repeat + 1)]
        for end in ends:
            self.graph.replay()
            end.record()
        torch.cuda.synchronize()
        times = [a.elapsed_time(b) for a, b in zip(ends, ends[1:])]
        return min(times), statistics.median(times)


def torch_peers(model, batch, precision, with_compile):
    import torch_models

    dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision, torch.float32)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.benchmark = True
    module, inputs = torch_models.build(model, batch, dtype, "cuda")
    yield Captured("graph", module, inputs)
    if with_compile:
        torch._dynamo.reset()
        torch._inductor.config.freezing = True  # folds normalisation into convolutions, as every engine for inference does
        yield Captured("compile", torch.compile(module, mode="max-autotune-no-cudagraphs", fullgraph=True), inputs)


def measure(projects, model, batch, precision, with_compile):
    """Rows of one cell, and the complaints."""
    peers, complaints = [], []
    program = projects / f"{model}_b{batch}_{precision}" / "build" / f"{model}_bench"
    try:
        peers.append(Emitted(program))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
        said = (getattr(error, "stderr", None) or "").strip()
        complaints.append(f"gcompile: {error} {said}")
    twin = projects / f"{model}_b{batch}_{precision}_{gpu_table.TWIN}" / "build" / f"{model}_bench"
    if twin.exists():
        try:
            peers.append(Emitted(twin, gpu_table.TWIN))
        except (OSError, subprocess.SubprocessError, ValueError, KeyError) as error:
            complaints.append(f"{gpu_table.TWIN}: {error}")
    try:
        if torch is not None and torch.cuda.is_available():
            peers.extend(torch_peers(model, batch, precision, with_compile))
    except Exception as error:  # noqa: BLE001  whatever torch raises, the others are still timed
        complaints.append(f"torch: {type(error).__name__}: {str(error)[:300]}")
    samples = {peer.name: [] for peer in peers}
    for _ in range(ROUNDS):
        for peer in peers:
            samples[peer.name].append(peer.times())
    rows = [{"model": model, "batch": batch, "precision": precision, "peer": name,
             "min_ms": min(s[0] for s in taken), "median_ms": statistics.median(s[1] for s in taken)}
            for name, taken in samples.items()]
    return rows, complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--projects", type=pathlib.Path, required=True)
    parser.add_argument("--results", type=pathlib.Path, required=True)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--cells", required=True, help="MODEL:BATCH:PRECISION, separated by commas, in order")
    parser.add_argument("--compile", action="store_true", help="torch.compile too: minutes a cell")
    arguments = parser.parse_args()
    deadline = time.monotonic() + arguments.seconds
    has_failed = False
    if torch is None or not torch.cuda.is_available():
        print("torch: not here, or it sees no GPU; its columns stay empty", flush=True)
    for cell in arguments.cells.split(","):
        model, batch, precision = cell.split(":")
        if time.monotonic() > deadline:
            print(f"{cell}: no time left", flush=True)
            continue
        rows, complaints = measure(arguments.projects, model, int(batch), precision, arguments.compile)
        update(arguments.results, rows)
        shown = ", ".join(f"{row['peer']} {row['min_ms']:.3f} / {row['median_ms']:.3f} ms" for row in rows)
        print(f"{cell}: {shown}", flush=True)
        for complaint in complaints:
            print(f"{cell}: {complaint}", flush=True)
            has_failed = True
        if torch is not None and torch.cuda.is_available():
            torch.cuda.empty_cache()
    return 1 if has_failed else 0


if __name__ == "__main__":
    sys.exit(main())
