#!/usr/bin/env python3
"""Times projects of sizes with bounds beside projects of one size, in turns within one run.

    compare_sizes.py --gcompile BUILD/gcompile --models DIR [--threads T] [--rounds R] [--processor-time]
                     [--work DIR] [MODEL...]

MODEL is a row of the table below: a folder of DIR with model.onnx, the options that give it bounds, and sizes within them. The
project with bounds is compiled once, and one for each size alone; all are built for this machine. In every round each runs for
a turn, so that all see the same clock and the same neighbours. The table shows the minimum of all runs and the median of the
turns' medians, with the ratio of either, above 1 where the project with bounds is slower, and the arena beside that of the size
alone. With --processor-time minima are of the processor's time, all threads together: for one thread on a machine that
others keep busy. Exit: 0, or 1 where a project could not be made.
"""

import argparse
import dataclasses
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile


@dataclasses.dataclass
class Open:
    """Bounds of a model's dimensions, and the sizes at which it is timed; the last are the largest."""

    bounds: dict
    sizes: list
    options: tuple = ()


def of_images(options, largest=960):
    sizes = [{"H": 64, "W": 96}, {"H": 320, "W": 480}, {"H": largest, "W": largest}]
    return Open({"H": f"32..{largest}:32", "W": f"32..{largest}:32"}, sizes, options)


MODELS = {
    "ppocr_v3_det": of_images(("--shape", "x:1x3xHxW")),
    "rapidocr_v1_1_det": of_images(("--shape", "image:1x3xHxW")),
    "ppocr_cls": Open({"H": "48", "W": "32..640:32"}, [{"H": 48, "W": w} for w in (64, 192, 640)], ("--shape", "x:1x3xHxW")),
    "ppocr_v4_cls": Open({"H": "48", "W": "32..640:32"}, [{"H": 48, "W": w} for w in (64, 192, 640)], ("--shape", "x:1x3xHxW")),
    "yunet_n_dynamic": Open({"height": "32..640:32", "width": "32..640:32"},
                            [{"height": 64, "width": 96}, {"height": 320, "width": 320}, {"height": 640, "width": 640}],
                            ("--dim", "batch=1")),
    "super_resolution_10": Open({"batch_size": "1..4"}, [{"batch_size": n} for n in (1, 2, 4)]),
}


def words(dims):
    return [word for name, size in dims.items() for word in ("--dim", f"{name}={size}")]


@dataclasses.dataclass
class Contender:
    project: pathlib.Path
    options: list
    minima: list = dataclasses.field(default_factory=list)
    medians: list = dataclasses.field(default_factory=list)

    def arena(self):
        return json.loads((self.project / "meta" / "net.json").read_text(encoding="utf-8"))["arena_bytes"]

    def turn(self, threads, repeat, processor_time):
        shown = subprocess.run([self.project / "build" / "net_bench", "--json", "--threads", str(threads), "--repeat", str(repeat),
                                *self.options], check=True, capture_output=True, text=True).stdout
        times = json.loads(shown)
        self.minima.append(times["processor_min_ms" if processor_time else "min_ms"])
        self.medians.append(times["median_ms"])
        return times["median_ms"]


def made(arguments, model, folder, options):
    project = folder / "project"
    subprocess.run([arguments.gcompile, model, "-o", project, "--name", "net", "--quiet", *options], check=True)
    build = project / "build"
    subprocess.run(["make", "-s", "-j2", "-C", project, "ARCH=native", f"BUILD={build}", build / "net_bench"], check=True)
    return project


def compare(arguments, name, work):
    row = MODELS[name]
    model = arguments.models / name / "model.onnx"
    bounded = made(arguments, model, work / name / "bounds", [*row.options, *words(row.bounds)])
    open_dims = [key for key, value in row.bounds.items() if ".." in value]
    for i, dims in enumerate(row.sizes):
        alone = Contender(made(arguments, model, work / name / str(i), [*row.options, *words(dims)]), [])
        several = Contender(bounded, words({key: dims[key] for key in open_dims}))
        pair = [alone, several]
        repeat = max(3, int(arguments.turn_ms / max(contender.turn(arguments.threads, 3, arguments.processor_time) for contender in pair)))
        for contender in pair:
            contender.minima.clear(), contender.medians.clear()
        for _ in range(arguments.rounds):
            for contender in pair:
                contender.turn(arguments.threads, repeat, arguments.processor_time)
            pair.reverse()
        least = [min(contender.minima) for contender in (alone, several)]
        middle = [statistics.median(contender.medians) for contender in (alone, several)]
        sizes = " x ".join(str(dims[key]) for key in open_dims)
        print(f"| {name} | {sizes} | {least[0]:.3f} | {least[1]:.3f} | {least[1] / least[0]:.2f} | {middle[0]:.3f} | "
              f"{middle[1]:.3f} | {middle[1] / middle[0]:.2f} | {several.arena() / alone.arena():.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gcompile", required=True, type=pathlib.Path)
    parser.add_argument("--models", required=True, type=pathlib.Path)
    parser.add_argument("--threads", default=1, type=int)
    parser.add_argument("--rounds", default=10, type=int)
    parser.add_argument("--turn-ms", default=120, type=float)
    parser.add_argument("--processor-time", action="store_true", help="minima not by the clock")
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("names", metavar="MODEL", nargs="*")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - set(MODELS))
    if unknown:
        parser.error(f"not in the table: {', '.join(unknown)}")
    print("| model | sizes | min alone, ms | with bounds | ratio | median alone, ms | with bounds | ratio | arena |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.names or MODELS:
            try:
                compare(arguments, name, arguments.work or pathlib.Path(folder))
            except subprocess.CalledProcessError as error:
                print(f"{name}: {error}", file=sys.stderr)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
