#!/usr/bin/env python3
"""What it takes to build emitted projects: processor time of the compiler, and bytes of code.

    scripts/build_cost.py GCOMPILE MODEL...              a table in Markdown, as docs/code_size.md shows it
    scripts/build_cost.py GCOMPILE MODEL... --functions  the functions that the code of each model consists of

MODEL is a folder of model.onnx; open sizes are those of its test_data_set_0, where it has one. Each file that is compiled for the levels of this architecture is compiled
by the commands of the project's own Makefile, one at a time and without a cache of compilers; seconds are those of the
processor, the sum over the files of a level. Code is the `text` of `size`, without weights.
"""

import argparse
import collections
import os
import pathlib
import re
import resource
import shlex
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "project"))
from onnx_bytes import shape_flags  # noqa: E402

COMMAND = re.compile(r" -c \S+ -o (build/(\w+)/\S+\.o)$")


def run(command, folder=None):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ | {"CCACHE_DISABLE": "1"})
    if done.returncode != 0:
        sys.exit(f"{shlex.join(map(str, command))}: {done.stderr[-2000:]}")
    return done.stdout


def seconds_of_children():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def built(tool, model, project, flags=(), arch="levels"):
    """Seconds and objects of each level."""
    run([tool, model, "-o", project, "--name", "m", "--quiet", *flags])
    seconds, objects = collections.defaultdict(float), collections.defaultdict(list)
    for line in run(["make", "-n", f"ARCH={arch}", "build/libm.a"], project).splitlines():
        match = COMMAND.search(line)
        if not match or match[2] == "src":  # which is compiled once for all levels
            continue
        target = project / match[1]
        target.parent.mkdir(parents=True, exist_ok=True)
        before = seconds_of_children()
        run(shlex.split(line), project)
        seconds[match[2]] += seconds_of_children() - before
        objects[match[2]].append(target)
    return seconds, objects


def code_bytes(objects):
    return sum(int(line.split()[0]) for line in run(["size", *objects]).splitlines()[1:])


def functions(objects):
    """Instances and bytes of each function, by its name without arguments."""
    bytes_of, instances = collections.Counter(), collections.Counter()
    for line in run(["nm", "-S", "-C", *objects]).splitlines():
        parts = line.split(None, 3)
        if len(parts) == 4 and parts[2] in "tTwW":
            name = re.split(r"[<(]", re.sub(r"^(?:void|int|bool) ", "", parts[3]))[0].split("::")[-1]
            bytes_of[name] += int(parts[1], 16)
            instances[name] += 1
    return [(name, instances[name], size) for name, size in bytes_of.most_common() if size > 0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("gcompile", type=pathlib.Path)
    parser.add_argument("models", nargs="+", type=pathlib.Path)
    parser.add_argument("--functions", action="store_true")
    arguments = parser.parse_args()
    if not arguments.functions:
        print("| model | levels | slowest level, s | all levels, s | code, KB |\n|---|---|---|---|---|")
    for model in arguments.models:
        path = model.resolve() / "model.onnx"
        with tempfile.TemporaryDirectory() as folder:
            seconds, objects = built(arguments.gcompile.resolve(), path, pathlib.Path(folder) / "project",
                                     shape_flags(path.parent))
            if arguments.functions:
                for level, files in objects.items():
                    print(f"{path.parent.name} for {level}, {seconds[level]:.1f} s:")
                    for function, count, size in functions(files)[:20]:
                        print(f"{size:9} bytes in {count:3} of {function}")
                continue
            code = sum(code_bytes(files) for files in objects.values())
        print(f"| {path.parent.name} | {len(seconds)} | {max(seconds.values()):.1f} | {sum(seconds.values()):.1f} "
              f"| {code / 1000:.0f} |", flush=True)


if __name__ == "__main__":
    main()
