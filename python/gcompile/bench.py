"""`gcompile bench`: a model timed beside what else runs it on this machine.

    gcompile bench MODEL [--against onnxruntime,openvino,torch] [--threads N] [--json] [OPTION...]

Builds the model as gcompile.load() does, and runs it and the others in turns, each on the same random inputs, each in threads
of its own: the others in processes of their own, by their own fastest calls. Other options are those of `gcompile compile`.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import pathlib
import platform
import statistics
import sys
import tempfile
import time
from typing import Any, Sequence

import numpy

from . import peers, tool
from .load import load
from .model import Model
from .session import Declared

NAMES = {**peers.NAMES, "torch": "PyTorch"}
USUAL = ("onnxruntime", "openvino", "torch")
TURN_MS = 120  # that one runs before the next one's turn
PAUSE_S = 0.02  # in which the threads of one that has run fall asleep


def processor() -> str:
    """What is measured on, as the system calls it."""
    name = platform.processor() or platform.machine()
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    return f"{name}, {os.cpu_count()} processors"


def _lack(peer: str) -> str:
    """Why a peer cannot be asked; empty where it can."""
    missing = [module for module in peers.MODULES[peer] if importlib.util.find_spec(module) is None]
    return f"not installed: pip install {' '.join(missing)}" if missing else ""


def _difference(expected: Sequence[Any], actual: Sequence[Any]) -> float | None:
    """The largest root mean square difference of floats, relative to the output's own."""
    worst = 0.0
    for one, other in zip(expected, actual):
        one, other = numpy.asarray(one, "float64"), numpy.asarray(other, "float64")
        if one.shape != other.shape:
            return None
        if one.size:
            size = max(float(numpy.sqrt(numpy.mean(one**2))), 1e-4)
            worst = max(worst, float(numpy.sqrt(numpy.mean((one - other) ** 2))) / size)
    return worst


class _Ours:
    """The project, in this process."""

    def __init__(self, model: Model, inputs: Sequence[Any], threads: int):
        self._model, self._inputs, self._threads = model, inputs, threads
        self.outputs = list(model(*inputs).values())

    def times(self, repeat: int) -> tuple[float, float]:
        found = self._model.bench(*self._inputs, repeat=repeat, warmup=1, threads=self._threads)
        return found.min_ms, found.median_ms


class _Theirs:
    def __init__(self, peer: peers.Peer):
        self._peer, self.outputs = peer, peer.outputs()

    def times(self, repeat: int) -> tuple[float, float]:
        by_clock = [milliseconds for milliseconds, _ in self._peer.times(repeat)]
        return min(by_clock), statistics.median(by_clock)


def compare(model: str, against: Sequence[str], *, threads: int = 1, rounds: int = 8, options: Sequence[str] = (),
            seed: int = 1) -> dict[str, Any]:
    """What --json prints: the processor, and for each contender its times in milliseconds, or why there are none."""
    ours = load(model, options=options, threads=threads)
    declared = [Declared(**port) for port in tool.answer(["check", model, "--ports"])["inputs"]]
    inputs = ours.random_inputs(seed)
    by_name = {port.name: array for port, array in zip(ours.inputs, inputs)}
    rows: list[dict[str, Any]] = [{"name": "gcompile", "version": tool.version()}]
    contenders: list[Any] = [_Ours(ours, inputs, threads)]
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gcompile_bench_")))
        # Others have no inputs that are states or constants of the project.
        fits = [port.name for port in declared] == list(by_name)
        numpy.savez(folder / "inputs.npz", **by_name)
        for name in against:
            why = _lack(name) or ("" if fits else "the options turn inputs into constants or states, which it would still take")
            if not why:
                try:
                    peer = peers.Peer(name, model, folder / "inputs.npz", threads, folder / name)
                    stack.callback(peer.close)
                    contenders.append(_Theirs(peer))
                    rows.append({"name": NAMES[name], "version": peer.version,
                                 "difference": _difference(contenders[0].outputs, contenders[-1].outputs)})
                    continue
                except (peers.Refused, OSError) as error:
                    why = str(error)
            rows.append({"name": NAMES[name], "refused": why})
        _take_turns(contenders, [row for row in rows if "refused" not in row], rounds)
    return {"model": os.path.abspath(model), "processor": processor(), "threads": threads, "rounds": rounds, "contenders": rows}


def _take_turns(contenders: Sequence[Any], rows: Sequence[dict[str, Any]], rounds: int) -> None:
    repeats = [max(3, min(500, int(TURN_MS / max(contender.times(2)[0], 0.01)))) for contender in contenders]
    found: list[list[tuple[float, float]]] = [[] for _ in contenders]
    for _ in range(rounds):
        for turns, contender, repeat in zip(found, contenders, repeats):
            time.sleep(PAUSE_S)
            turns.append(contender.times(repeat))
    for row, turns in zip(rows, found):
        row["min_ms"] = min(least for least, _ in turns)
        row["median_ms"] = statistics.median(median for _, median in turns)


def text_of(told: dict[str, Any]) -> str:
    """The table, for people."""
    ours = told["contenders"][0]
    threads = "1 thread" if told["threads"] == 1 else f"{told['threads']} threads"
    lines = [f"{told['model']}", f"on {told['processor']}; {threads}, {told['rounds']} rounds in turn", "",
             f"{'':<24}{'minimum':>12}{'median':>12}{'times ours':>12}{'differs by':>12}"]
    for row in told["contenders"]:
        name = f"{row['name']} {row.get('version', '')}".strip()
        if "refused" in row:
            lines.append(f"{name:<24}{row['refused']}")
            continue
        line = f"{name:<24}{row['min_ms']:>9.3f} ms{row['median_ms']:>9.3f} ms"
        if row is not ours:
            gap = "other shapes" if row["difference"] is None else f"{row['difference']:.1e}"
            line += f"{row['min_ms'] / ours['min_ms']:>12.2f}{gap:>12}"
        lines.append(line)
    return "\n".join(lines)


def main(words: Sequence[str]) -> int:
    """`gcompile bench WORDS...`."""
    parser = argparse.ArgumentParser(prog="gcompile bench", allow_abbrev=False,
                                     description="Times a model beside what else runs it here. Options that are not listed are "
                                                 "those of `gcompile compile`.")
    parser.add_argument("model", help="an .onnx file")
    parser.add_argument("--against", default=",".join(USUAL), help=f"of {', '.join(NAMES)}; usually {', '.join(USUAL)}")
    parser.add_argument("--threads", type=int, default=1, help="of each contender (1)")
    parser.add_argument("--rounds", type=int, default=8, help="how often each has its turn (8)")
    parser.add_argument("--json", action="store_true", help="for programs")
    given, options = parser.parse_known_args(list(words))
    against = [name for name in given.against.split(",") if name]
    unknown = [name for name in against if name not in NAMES]
    if unknown:
        parser.error(f"--against: {', '.join(unknown)} is not one of {', '.join(NAMES)}")
    if given.threads < 1 or given.rounds < 1:
        parser.error("--threads and --rounds are positive numbers")
    told = compare(given.model, against, threads=given.threads, rounds=given.rounds, options=options)
    print(json.dumps(told, indent=2) if given.json else text_of(told))
    sys.stdout.flush()
    return 0
