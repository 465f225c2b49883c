#!/usr/bin/python3
"""Writes the measurements of gpu_check.py into docs/benchmarks.md, between two markers.

    tests/bench/gpu_table.py RESULTS.json [docs/benchmarks.md]

RESULTS.json has `device` (what nvidia-smi and the tools say), `timings` (a row for model, precision, batch and peer) and
`kernels` (what cuda_kernel_bench printed). What is missing is "not measured" in the table.
"""

import json
import pathlib
import sys

import gpu_layers
from model_sizes import ON_A_GPU, goals_of

BEGIN, END = "<!-- gpu_check: begin -->", "<!-- gpu_check: end -->"
MODELS = {"resnet50": "ResNet-50, 224x224", "bert_base": "BERT-base, 128 tokens", "vit_b16": "ViT-B/16, 224x224",
          "gpt2_decode": "GPT-2 small, one token behind 128"}
PRECISIONS = ("fp32", "tf32", "fp16", "bf16")
BATCHES = (1, 8)
PEERS = ("gcompile", "graph", "compile")  # gcompile, torch eager with CUDA graph, torch.compile
TWIN = "sm_90"  # a peer too: gcompile without the instructions of sm_90a
NOT_MEASURED = "not measured"


def milliseconds(row):
    return f"{row['min_ms']:.3f} / {row['median_ms']:.3f}" if row else NOT_MEASURED


def timing_rows(timings):
    """A row for each model, precision and batch of which something was measured, and how many there are in all."""
    found = {(t["model"], t["precision"], t["batch"], t["peer"]): t for t in timings}
    rows, possible = [], 0
    for precision in PRECISIONS:
        for batch in BATCHES:
            for model, title in MODELS.items():
                possible += 1
                ours, graph, compiled = (found.get((model, precision, batch, peer)) for peer in PEERS)
                if not (ours or graph or compiled):
                    continue
                ratio = f"{ours['min_ms'] / compiled['min_ms']:.2f}" if ours and compiled else ""
                rows.append(f"| {title} | {precision} | {batch} | {milliseconds(ours)} | {milliseconds(graph)} | "
                            f"{milliseconds(compiled)} | {ratio} |")
    if not rows:
        missing = f"{NOT_MEASURED} | {NOT_MEASURED} | {NOT_MEASURED}"
        rows.append(f"| {'; '.join(MODELS.values())} | {', '.join(PRECISIONS)} | {', '.join(map(str, BATCHES))} | {missing} | |")
        return rows
    if len(rows) < possible:
        rows += ["", f"{possible - len(rows)} of {possible} rows were not measured."]
    return rows


def kernel_rows(kernels):
    """In microseconds; what is a ceiling itself, or is bound by another, has no percent."""
    for k in kernels:
        percent = f"{k['percent']:.0f}" if k["percent"] < 100 else ""
        yield f"| {k['name']} | {1000 * k['min_ms']:.3g} / {1000 * k['median_ms']:.3g} | {k['rate']:.1f} {k['unit']} | {percent} |"


def cpu_rows(rows):
    """A table of the processors that the machine has beside its GPU: nothing where they were not asked."""
    if not rows:
        return []
    threads = sorted({row["threads"] for row in rows})
    peer = next((row["peer"] for row in rows if "peer" in row), None)
    lines = ["", f"On the processors of the same machine, ms (minimum), by threads{f'; {peer} behind the stroke' if peer else ''}:", "",
             "| model | " + " | ".join(map(str, threads)) + " |", "|---|" + "---:|" * len(threads)]
    for model in dict.fromkeys(row["model"] for row in rows):
        found = {row["threads"]: f"{row['min_ms']:.2f}" + (f" / {row['peer_min_ms']:.2f}" if "peer" in row else "")
                 for row in rows if row["model"] == model}
        lines.append(f"| {MODELS[model]} | " + " | ".join(found.get(n, "") for n in threads) + " |")
    return lines


def render(results):
    """The text between the markers."""
    device = results.get("device")
    lines = []
    if not device:
        lines += ["Not measured: no GPU was at hand.", ""]
    else:
        lines += [f"{device['date']}, {device['name']}, SM clock {device['clock']}, memory clock {device['memory_clock']},",
                  f"driver {device['driver']}, CUDA {device['cuda']}, {device['torch']}.", ""]
    lines += ["| model | precision | batch | gcompile, ms: min / median | torch eager with CUDA graph | torch.compile "
              "max-autotune | ratio of minima |", "|---|---|---|---|---|---|---|", *timing_rows(results.get("timings", []))]
    lines += ["", "Kernels alone, in percent of what the same run measured as the ceiling: `mma.sync` of the same precision for "
              "attention", "and products, memory bandwidth for products with a vector and for maps.", "",
              "| kernel | us: min / median | rate | percent |", "|---|---|---|---|"]
    lines += list(kernel_rows(results.get("kernels", []))) or [f"| attention, gemv, map, gemm | {NOT_MEASURED} | | |"]
    lines += cpu_rows(results.get("cpu", []))
    return "\n".join(lines) + "\n"


def verdict(results):
    """A row for each model that has a goal: what was wanted, what was reached, and which layers are late."""
    device = results.get("device", {}).get("name", "no GPU")
    goals = goals_of(device)
    lines = [f"Verdict, batch 1, fp16, on {device}{'' if goals else ', for which there are no goals'}. Late layers take more than "
             f"{gpu_layers.SUSPICIOUS} times what was predicted, in us: measured / predicted.", "",
             "| model | goal, us | predicted | reached | for sm_90 | best peer | verdict | worst layers |",
             "|---|---:|---:|---:|---:|---:|---|---|"]
    times = {(t["model"], t["peer"]): 1000 * t["min_ms"] for t in results.get("timings", [])
             if t["precision"] == "fp16" and t["batch"] == 1}
    for model in ON_A_GPU:
        goal = goals.get(model)
        reached = times.get((model, "gcompile"))
        peers = [times[model, peer] for peer in PEERS[1:] if (model, peer) in times]
        told = results.get("predicted", {}).get(model)
        layers = results.get("layers", {}).get(model)
        late = "not measured" if layers is None else "; ".join(
            f"{layer['function']} {layer['measured_us']:.1f} / {layer['predicted_us']:.1f}"
            for layer in gpu_layers.worst(layers)) or "none is late"
        said = NOT_MEASURED if reached is None else "" if goal is None else "reached" if reached <= goal else \
            f"{reached / goal:.2f}x of the goal"
        numbers = " | ".join("" if number is None else f"{number:.0f}"
                             for number in (goal, told, reached, times.get((model, TWIN)), min(peers, default=None)))
        lines.append(f"| {MODELS[model]} | {numbers} | {said} | {late} |")
    return "\n".join(lines) + "\n"


def insert(document, text):
    """`document` with `text` between the markers; ValueError where they are not there once each, in order."""
    if document.count(BEGIN) != 1 or document.count(END) != 1:
        raise ValueError(f"the markers {BEGIN} and {END} must be there once")
    before, rest = document.split(BEGIN)
    if END not in rest:
        raise ValueError(f"{END} stands before {BEGIN}")
    return f"{before}{BEGIN}\n{text}{END}{rest.split(END)[1]}"


def write(results_file, document):
    results = json.loads(pathlib.Path(results_file).read_text(encoding="utf-8"))
    path = pathlib.Path(document)
    path.write_text(insert(path.read_text(encoding="utf-8"), render(results)), encoding="utf-8")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    root = pathlib.Path(__file__).resolve().parents[2]
    write(sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else root / "docs" / "benchmarks.md")


if __name__ == "__main__":
    main()
