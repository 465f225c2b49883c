#!/usr/bin/env python3
"""Times emitted projects beside ONNX Runtime, OpenVINO and ncnn, in turns within one run.

    compare_peers.py --gcompile BUILD/gcompile [--models DIR] [--threads 1,2] [--rounds R] [--markdown FILE]
                     [--peers NAME,...] [--processor-time] [--work DIR] [MODEL...]

MODEL is one of big_models.py, which is written here, or a folder of DIR with model.onnx and test_data_set_0; all of the
former and the main suite by default. Every model is compiled, built for this machine, and run in rounds: project, ONNX
Runtime, OpenVINO, ncnn, project, ... So all see the same clock and the same neighbours. The table shows the minimum of
all runs of a contender and the median of its turns' medians; the ratio is the fastest peer over the project, above 1 where the
project is ahead, with the geometric mean below. A contender whose results are not the expected ones (those of test_data_set_0, or of
ONNX Runtime without its optimisations) is marked, and no peer's time counts that is: errors are the root mean square of the
difference over that of the expected values, or over 1e-4 if that is more, at most 1e-3 for networks in floats and 0.1 for
those with integers. What the machine does at most is
measured before and after each model. With --processor-time the times are those of the processor, all threads together,
and the median is that of the rounds' minima: for one thread on a machine that others keep busy. Needs the environment of scripts/install_packages.sh bench. Exit: 0, or 1 where a
project could not be made or is wrong.
"""

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
from onnx import numpy_helper

import big_models

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "python"))
from gcompile import peers  # noqa: E402  pylint: disable=wrong-import-position

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MAIN_SUITE = """alphazero_santorini basic_pitch_nmp blazeface_front deeploy_cct_opset20 dtln_2 gtcrn_stream
libtashkeel_tract magika_standard_v2_1 mcunet mlperf_tiny_ic_resnet8_int8 nanodet_m_320 oww_melspectrogram
ppocr_v3_det shufflenet_v2_int8 silero_vad_v6 sinet_softmax super_resolution_10 tract_byte_bidi_lstm
ultraface_rfb320 yunet_n_dynamic""".split()
NETWORKS = """resnet18 resnet50 mobilenet_v2 efficientnet_b0 vit_tiny bert_base gpt2_decode resnet50_qdq mobilenet_v2_qdq
bert_dynamic gpt2_8bit gpt2_4bit gpt2_4bit_nbits gpt2_4bit_level4""".split()
OURS = "gcompile"
WITH_INTEGERS = re.compile("[Qq]uantize|QLinear|Integer|NBits")
LARGEST_ERROR = {False: 1e-3, True: 0.1}  # with integers
LEAST_SCALE = 1e-4  # of values that errors are divided by: behind a sigmoid, 1e-9 is as good as 0
TURN_MS = 120  # that a contender runs before the next one's turn
PAUSE_S = 0.02  # in which the threads of one that has run fall asleep


class CannotCompile(Exception):
    """gcompile, or the compiler of what it wrote, failed: its message."""


@dataclasses.dataclass
class Entry:
    """A contender's times in one row."""

    milliseconds: list
    error: float
    is_right: bool
    medians: list = dataclasses.field(default_factory=list)

    @property
    def best(self):
        return min(self.milliseconds)

    def text(self):
        text = f"{self.best:.3f} / {statistics.median(self.medians):.3f}"
        return text if self.is_right else f"{text} (wrong: {self.error:.1g})"


def calibrated(folder):
    """Builds machine_peak.cc; returns a function that runs it and returns its figures."""
    program = folder / "machine_peak"
    subprocess.run(["g++", "-std=c++17", "-O2", f"-I{ROOT / 'runtime_stub'}", str(HERE / "machine_peak.cc"), "-o",
                    str(program)], check=True)
    return lambda: json.loads(subprocess.run([str(program)], check=True, capture_output=True, text=True).stdout)


def root_mean_square_error(actual, expected):
    """The largest over the outputs; infinite where shapes or values that are no numbers differ."""
    worst = 0.0
    if len(actual) != len(expected):
        return float("inf")
    for a, e in zip(actual, expected):
        if a.size != e.size:
            return float("inf")
        a, e = a.reshape(-1).astype(np.float64), e.reshape(-1).astype(np.float64)
        is_number = np.isfinite(e)
        if not np.array_equal(a[~is_number], e[~is_number], equal_nan=True):
            return float("inf")
        a, e = a[is_number], e[is_number]
        if not np.isfinite(a).all():
            return float("inf")
        if a.size and not np.array_equal(a, e):
            worst = max(worst, float(np.sqrt(np.mean((a - e) ** 2)) / max(np.sqrt(np.mean(e * e)), LEAST_SCALE)))
    return worst


class Case:
    """One model: its file, its inputs, its project."""

    def __init__(self, name, arguments):
        self.name, self.arguments = name, arguments
        self.folder = arguments.work / name
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        if name in big_models.NAMES:
            self.model = arguments.work / "models" / name / "model.onnx"
            if not self.model.exists():
                big_models.write(name, False, arguments.work / "models")
            self.inputs, self.reference = big_models.example_inputs(name), None
        else:
            self.model = arguments.models / name / "model.onnx"
            self.inputs, self.reference = self._test_data(self.model.parent / "test_data_set_0")
        self.inputs_file = self.folder / "inputs.npz"
        np.savez(self.inputs_file, **self.inputs)
        graph = onnx.load(str(self.model), load_external_data=False).graph
        self.outputs = [output.name for output in graph.output]
        self.has_integers = any(WITH_INTEGERS.search(node.op_type) for node in graph.node)

    def _test_data(self, folder):
        graph = onnx.load(str(self.model), load_external_data=False).graph
        constants = {constant.name for constant in graph.initializer}
        names = [value.name for value in graph.input if value.name not in constants]
        load = lambda kind, i: numpy_helper.to_array(onnx.load_tensor(str(folder / f"{kind}_{i}.pb")))
        return ({name: load("input", i) for i, name in enumerate(names)},
                [load("output", i) for i in range(len(graph.output))])

    def sizes(self):
        """Words for gcompile."""
        return [word for name, value in self.inputs.items() if value.ndim
                for word in ("--shape", f"{name}:{'x'.join(map(str, value.shape))}")]

    def compile(self):
        """Makes and builds the project. Raises CannotCompile."""
        project, build = self.folder / "project", self.folder / "build"
        for command in ([self.arguments.gcompile, self.model, "-o", project, "--name", "m", "-q", *self.sizes()],
                        ["cmake", "-S", project, "-B", build, "-DCMAKE_BUILD_TYPE=Release"],
                        ["cmake", "--build", build, "-j2", "--target", "m_run"]):
            done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
            if done.returncode != 0:
                errors = [line for line in (done.stderr + done.stdout).splitlines() if "error" in line.lower()]
                raise CannotCompile((errors or [f"{command[0]} failed"])[0][:160])
        files = []
        for k, value in enumerate(self.inputs.values()):
            files.append(self.folder / f"input_{k}.npy")
            np.save(files[-1], value)
        self.runner = [str(build / "m_run"), *map(str, files)]

    def our_outputs(self, threads):
        folder = self.folder / f"outputs_{threads}"
        subprocess.run([*self.runner, "--threads", str(threads), "--output-dir", str(folder)], check=True,
                       capture_output=True)
        return [np.load(next(folder.glob(f"{k}_*.npy"))) for k in range(len(self.outputs))]

    def our_times(self, threads, repeat):
        """The times of one turn: what a round adds to the minimum and to the median, in milliseconds."""
        done = subprocess.run([*self.runner, "--repeat", str(repeat), "--threads", str(threads), "--json"], check=True,
                              capture_output=True, text=True)
        result = json.loads(done.stdout[done.stdout.index("{"):])
        least = result["processor_min_ms" if self.arguments.processor_time else "min_ms"]
        return least, least if self.arguments.processor_time else result["median_ms"]

    def their_times(self, peer, repeat):
        """As our_times."""
        by_clock, of_processor = zip(*peer.times(repeat))
        if self.arguments.processor_time:
            return min(of_processor), min(of_processor)
        return min(by_clock), statistics.median(by_clock)

    def judged(self, outputs):
        error = root_mean_square_error(outputs, self.reference)
        return Entry([], error, error <= LARGEST_ERROR[self.has_integers])

    def run(self):
        """{threads: {contender: Entry, or why there is none}}, and the versions of the peers."""
        with contextlib.ExitStack() as stack:
            def start(name, threads):
                peer = peers.Peer(name, self.model, self.inputs_file, threads, self.folder / f"{name}_{threads}")
                stack.callback(peer.close)
                return peer

            if self.reference is None:
                reference = peers.Peer(peers.REFERENCE, self.model, self.inputs_file, 1, self.folder / peers.REFERENCE)
                self.reference = reference.outputs()
                reference.close()
            self.compile()
            rows, turns, versions = {}, [], {}
            for threads in self.arguments.threads:
                row = rows[threads] = {OURS: self.judged(self.our_outputs(threads))}
                turns.append((row[OURS], lambda repeat, t=threads: self.our_times(t, repeat)))
                for name in self.arguments.peers:
                    try:
                        peer = start(name, threads)
                    except peers.Refused as why:
                        row[name] = str(why)
                        continue
                    versions[name] = peer.version
                    row[name] = self.judged(peer.outputs())
                    turns.append((row[name], lambda repeat, p=peer: self.their_times(p, repeat)))
            self._take_turns(turns)
        return rows, versions

    def _take_turns(self, turns):
        repeats = [max(3, min(500, int(TURN_MS / max(turn(2)[0], 0.01)))) for _, turn in turns]
        for _ in range(self.arguments.rounds):
            for (entry, turn), repeat in zip(turns, repeats):
                time.sleep(PAUSE_S)
                least, median = turn(repeat)
                entry.milliseconds.append(least)
                entry.medians.append(median)


def ratio_of(row):
    """The fastest peer whose results are right over the project; None where there is none."""
    found = [e.best for name, e in row.items() if name != OURS and isinstance(e, Entry) and e.is_right]
    return min(found) / row[OURS].best if found else None


def geometric_mean(values):
    return float(np.exp(np.mean(np.log(values))))


def row_text(name, result, threads, contenders, notes):
    """A row of the table; why a peer has no time goes to `notes`, numbered from 1."""
    if isinstance(result, str):
        return f"| {name} | not compiled: {result.replace('|', '/')} |" + " |" * (len(contenders) + 1)
    row, cells = result[threads], []
    for contender in contenders:
        entry = row[contender]
        if isinstance(entry, str):
            cells.append(f"no [{notes.setdefault(f'{peers.NAMES[contender]}: {entry}', len(notes) + 1)}]")
        else:
            cells.append(entry.text())
    ratio = ratio_of(row)
    return f"| {name} | {' | '.join(cells)} | {row[OURS].error:.1e} | {'' if ratio is None else format(ratio, '.2f')} |"


def table(results, threads, contenders):
    """Markdown: minimum / median in milliseconds, error of ours, ratio; the means of the ratios; the notes."""
    notes = {}
    lines = ["| model | " + " | ".join(peers.NAMES.get(c, c) for c in contenders) + " | error | ratio |",
             "|---" * (len(contenders) + 3) + "|"]
    lines += [row_text(name, result, threads, contenders, notes) for name, result in results.items()]
    means = []
    for group, belongs in (("networks", lambda name: name not in MAIN_SUITE), ("main suite", MAIN_SUITE.__contains__)):
        found = [ratio_of(result[threads]) for name, result in results.items()
                 if belongs(name) and not isinstance(result, str)]
        if found := [ratio for ratio in found if ratio is not None]:
            means.append(f"{group} {geometric_mean(found):.2f}, least {min(found):.2f}")
    lines += ["", f"Geometric mean of the ratios: {'; '.join(means)}."] if means else []
    lines += [f"[{number}] {text}." for text, number in notes.items()]
    return "\n".join(lines)


def machine_text(peaks):
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "CPU")
    spread = lambda key: f"{min(p[key] for p in peaks):.0f} to {max(p[key] for p in peaks):.0f}"
    return (f"{cpu}, {os.cpu_count()} cores; per core {spread('float_gflops')} GFLOP/s ({peaks[0]['float_instructions']}), "
            f"{spread('byte_gops')} GOP/s of bytes ({peaks[0]['byte_instructions']}), memory "
            f"{spread('memory_gbytes')} GB/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")
    parser.add_argument("--gcompile", type=lambda text: pathlib.Path(text).resolve(), required=True)
    parser.add_argument("--models", type=pathlib.Path, default=ROOT.parent / "shared" / "models")
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--threads", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2])
    parser.add_argument("--peers", type=words, default=list(peers.NAMES), help="of " + ",".join(peers.NAMES))
    parser.add_argument("--processor-time", action="store_true", help="not by the clock")
    parser.add_argument("--markdown", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path, help="keeps models and projects here; models are not written again")
    parser.add_argument("names", nargs="*", metavar="MODEL")
    arguments = parser.parse_args()
    if unknown := [name for name in arguments.peers if name not in peers.NAMES]:
        parser.error(f"--peers: {', '.join(unknown)} is not one of {', '.join(peers.NAMES)}")
    for name in arguments.names or NETWORKS + MAIN_SUITE:
        if name not in big_models.NAMES and not (arguments.models / name / "model.onnx").exists():
            parser.error(f"{name} is neither one of big_models.py nor a folder of {arguments.models}")
    with contextlib.ExitStack() as stack:
        if arguments.work is None:
            arguments.work = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gcompile_bench_")))
        arguments.work = arguments.work.resolve()
        arguments.work.mkdir(parents=True, exist_ok=True)
        return compare(arguments)


def compare(arguments):
    peak = calibrated(arguments.work)
    results, versions, peaks, is_good = {}, {}, [peak()], True
    contenders = [OURS, *arguments.peers]
    for name in arguments.names or NETWORKS + MAIN_SUITE:
        try:
            results[name], found = Case(name, arguments).run()
            versions |= found
            is_good &= all(row[OURS].is_right for row in results[name].values())
        except (CannotCompile, peers.Refused) as error:
            results[name], is_good = str(error), False
        peaks.append(peak())
        for threads in arguments.threads:
            print(threads, row_text(name, results[name], threads, contenders, {}), flush=True)
    listed = ", ".join(f"{peers.NAMES[name]} {version}" for name, version in sorted(versions.items()))
    text = (f"{datetime.date.today()}: {machine_text(peaks)}; {listed}; minimum / median of {arguments.rounds} rounds, in "
            f"milliseconds{' of the processor' if arguments.processor_time else ''}; the ratio is the fastest peer over "
            "gcompile.\n")
    for threads in arguments.threads:
        text += f"\n{'One thread' if threads == 1 else f'{threads} threads'}:\n\n{table(results, threads, contenders)}\n"
    print(text)
    if arguments.markdown:
        arguments.markdown.write_text(text)
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
