#!/usr/bin/env python3
"""How long the tool itself takes to build, and why.

    build_times.py reach [--check]      how many of the tool's sources each header reaches; whether any reaches too many
    build_times.py clean [OPTION...]    the tool alone, from clean, on two cores, without a cache; options go to CMake
    build_times.py edits BUILD_DIR      from an edit to what says that it is right: an operator's record and a unit test, a
                                        template or a header of the runtime and the tool. BUILD_DIR has the tests

Times are of this machine as it is: let nothing else run beside.
"""

import collections
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOMS = ("base", "ir", "frontend", "passes", "jinja", "codegen", "driver")
INCLUDE = re.compile(r'^#include [<"]([^>"]+)[>"]', re.MULTILINE)
# What a header costs is paid by every source that it reaches. Headers that are dear, or that change often, and how many sources
# each may reach: a little more than it does. Whoever exceeds one includes the header where it is needed, or declares a name.
MOST = {
    "ir/graph/graph.h": 329,
    "ir/forms/form.h": 231,
    "codegen/calls/kernel_call.h": 117,
    "codegen/program/program.h": 55,
    "gcrt/cuda/product/tile_model.h": 45,
    "nlohmann/json.hpp": 40,
}
CORES = 2


def included(path):
    """What a file includes: files of the tree as paths, others as they are named."""
    for name in INCLUDE.findall(path.read_text(encoding="utf-8")):
        yield next((folder / name for folder in (ROOT, ROOT / "runtime_stub") if (folder / name).is_file()), name)


def sources_reached():
    """{header: how many sources include it, directly or by another header}, and the number of sources."""
    direct, reached = {}, collections.Counter()
    sources = sorted(path for room in ROOMS for path in (ROOT / room).rglob("*.cc"))
    for source in sources:
        found, waiting = set(), [source]
        while waiting:
            file = waiting.pop()
            if file not in direct:
                direct[file] = list(included(file)) if isinstance(file, pathlib.Path) else []
            waiting += [header for header in direct[file] if header not in found]
            found.update(direct[file])
        reached.update(name_of(header) for header in found)
    return reached, len(sources)


def name_of(header):
    """As an #include names it."""
    return header if isinstance(header, str) else header.relative_to(ROOT).as_posix().removeprefix("runtime_stub/")


def reach(check):
    reached, sources = sources_reached()
    if not check:
        print(f"of {sources} sources")
        for header, count in sorted(reached.items(), key=lambda item: (-item[1], item[0]))[:60]:
            print(f"{count:5} {header}")
        return 0
    assert sources > 300 and reached["ir/sizes/dim.h"] > 100, "no sources found"
    found = [f"{header} is not there any more: take it out of the list" for header in MOST if not reached[header]]
    found += [f"{header} reaches {reached[header]} sources, more than {most}" for header, most in MOST.items() if reached[header] > most]
    print("\n".join(found) or f"{len(MOST)} headers, none of which reaches more of {sources} sources than it may")
    return 1 if found else 0


def timed(command, **more):
    """Seconds on the clock, and of processors."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic() - begin, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def slowest(build, count):
    """The outputs that took longest, of Ninja's log."""
    lines = (build / ".ninja_log").read_text(encoding="utf-8").splitlines()[1:]
    times = {words[3]: (int(words[1]) - int(words[0])) / 1000 for words in map(str.split, lines)}
    return sorted(times.items(), key=lambda item: -item[1])[:count]


def clean(options):
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder)
        environment = {**os.environ, "CCACHE_DISABLE": "1"}
        timed(["cmake", "-S", ROOT, "-B", build, "-G", "Ninja", "-DGCOMPILE_TESTS=OFF", "-DCCACHE_PROGRAM=", *options], env=environment)
        clock, processor = timed(["cmake", "--build", build, "-j", str(CORES), "--target", "gcompile"], env=environment)
        print(f"the tool alone, from clean: {clock:.0f} s with {CORES} jobs, {processor:.0f} s of processors")
        for output, seconds in slowest(build, 15):
            print(f"{seconds:7.1f} s {output}")
    return 0


def edited(file, build, target, test=()):
    """Seconds from a line more in a file to the target, and its tests."""
    path = ROOT / file
    content = path.read_bytes()
    try:
        path.write_bytes(content + (b"\n" if file.endswith(".j2") else b"// edited\n"))
        clock, _ = timed(["cmake", "--build", build, "--target", target], env={**os.environ, "CCACHE_DISABLE": "1"})
        if test:
            clock += timed([build / test[0], *test[1:]])[0]
    finally:
        path.write_bytes(content)
    print(f"{clock:6.1f} s from an edit of {file} to {'a green ' if test else ''}{target}", flush=True)
    timed(["cmake", "--build", build, "--target", target])


def edits(build):
    build = pathlib.Path(build).resolve()
    for target in ("gcompile", "operators_map_test"):
        timed(["cmake", "--build", build, "--target", target])
    edited("ir/ops/elementwise_unary.cc", build, "operators_map_test", ["tests/unit/operators_map_test", "--gtest_filter=*Relu*"])
    edited("templates/library/kernels.cpp.j2", build, "gcompile")
    edited("runtime_stub/gcrt/pack.h", build, "gcompile")
    return 0


def main():
    if sys.argv[1:] in (["reach"], ["reach", "--check"]):
        return reach("--check" in sys.argv)
    if sys.argv[1:2] == ["clean"]:
        return clean(sys.argv[2:])
    if len(sys.argv) == 3 and sys.argv[1] == "edits":
        return edits(sys.argv[2])
    print(__doc__.strip())
    return 1


if __name__ == "__main__":
    sys.exit(main())
