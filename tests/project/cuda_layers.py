#!/usr/bin/env python3
"""Layers of CUDA projects: their times by events beside predictions, traces of runs, and their names in profilers.

    cuda_layers.py --gcompile GCOMPILE [CASE...]

On the emulator, where times mean nothing: who ran, in which order, and what is told of it.
"""

import json
import os

from cuda import cxx, nvcc
from cuda_sizes import EMULATOR
from layers import BRANCH, ROWS
from support import check, contains, equal, flags, manifest, run_main

# What header-only nvtx3 declares of what is used.
NVTX = """
#pragma once
#include <cstdio>
inline int nvtxRangePushA(const char* name) { return std::printf("begin %s\\n", name); }
inline int nvtxRangePop() { return std::printf("end\\n"); }
"""


def built(world, project, main, *definitions):
    """A program of a project called plain, over the emulator."""
    target = world.path(f"{project.name}_{main.stem}{''.join(definitions)}")
    target.mkdir()
    common = [*cxx().split(), "-std=c++17", "-O1", *flags("cpp"), "-pthread", f"-I{EMULATOR}", f"-I{project}", f"-I{project}/include",
              f"-I{project}/apps", f"-I{project}/data", f"-I{world.folder}"]
    files = []
    for source in [*sorted((project / "src").glob("*.cu")), *(project / "src").glob("*.S"), *sorted(EMULATOR.glob("*.cc")), main]:
        files.append(target / f"{source.name}.o")
        language = "assembler-with-cpp" if source.suffix == ".S" else "c++"
        own = [] if source.parent == EMULATOR else ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
        world.run([*common, *own, *(f"-D{name}" for name in definitions), "-x", language, "-c", source, "-o", files[-1]])
    world.run(["g++", "-pthread", *files, "-o", target / "program"])
    return target / "program"


def classifier(world):
    project = world.example("shapes_classifier", "project", "--name", "plain", "--target", "cuda")
    return project, manifest(project, "plain")["layers"]


def timed(world, program, *options):
    return json.loads(world.run([program, "--layers", "--json", "--repeat", "2", *options]).stdout)


def events_of(path):
    return [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]


def check_in_order(events):
    """One behind the other, as they are on a device without overlap."""
    for before, after in zip(events, events[1:]):
        check(before["dur"] >= 0 and before["ts"] + before["dur"] <= after["ts"] + 0.01, f"{before} does not end before {after}")


def case_times(world):
    """Every layer of the manifest with its prediction, in the report too; a trace of the same."""
    project, layers = classifier(world)
    bench = built(world, project, project / "apps" / "bench.cu")
    told = timed(world, bench)
    equal([(layer["layer"], layer["kernel"], layer["family"], layer["computes"], layer["multiply_adds"]) for layer in told["layers"]],
          [(i, layer["function"], layer["family"], layer["origins"], layer["multiply_adds"]) for i, layer in enumerate(layers)], "layers")
    for layer, of in zip(told["layers"], layers):
        check(layer["runs"] == 2 and 0 < layer["min_ms"] <= layer["median_ms"], f"times: {layer}")
        check(abs(layer["predicted_ms"] * 1e9 - of["picoseconds"]) < 1, f"{layer['predicted_ms']} ms are not {of['picoseconds']} ps")
    for key, part in (("layers_min_ms", "min_ms"), ("predicted_ms", "predicted_ms")):
        total = sum(layer[part] for layer in told["layers"])
        check(abs(total - told[key]) <= 1e-3 * total, f"{key}: {told[key]} is not the sum {total}")
    check(told["run_min_ms"] > 0 and told["event_ms"] >= 0, "a run takes no time")
    text = world.run([bench, "--layers", "--repeat", "1"]).stdout
    contains(text, "of predicted", f"{len(layers)} layers", *(f"{layer['function']} ({layer['family']})" for layer in layers))
    file, page = world.path("layers.json"), world.path("measured.html")
    file.write_text(json.dumps(told))
    world.run([world.gcompile, "report", project, "--layers", file, "-o", page])
    contains(page.read_text(), "<h3>Measured</h3>", "keep them from overlapping", "of predicted</th>\n</tr>")
    contains(world.run([bench, "--compare", file, "--repeat", "1"]).stdout, layers[0]["function"])
    trace = world.path("trace.json")
    contains(world.run([bench, "--trace", trace, "--repeat", "3"]).stdout, f"3 runs of {len(layers)} layers")
    events = events_of(trace)
    equal([event["name"] for event in events], 3 * [layer["function"] for layer in layers], "layers of the trace")
    check_in_order(events)


def case_profile(world):
    """A library with marks: the same answers, and a trace at the end of the process."""
    project, layers = classifier(world)
    answer = world.run([built(world, project, project / "apps" / "run.cpp"), "--random", "1"]).stdout
    profiled = built(world, project, project / "apps" / "run.cpp", "PLAIN_PROFILE")
    path = world.path("profile.json")
    done = world.run([profiled, "--random", "1"], env={**os.environ, "PLAIN_PROFILE_FILE": str(path)})
    contains(done.stderr, f"{path}: layers of the first 1 runs")
    equal(done.stdout, answer, "answer of a library with marks")
    names = [layer["function"] for layer in layers]
    equal([event["name"] for event in events_of(path)], names, "layers")
    world.run([profiled, "--random", "1", "--repeat", "2"], cwd=world.folder)
    events = events_of(world.path("plain_profile.json"))
    check(len(events) >= 2 * len(names), f"{len(events)} events")
    equal([event["name"] for event in events], len(events) // len(names) * names, "layers of all runs")
    check_in_order(events)
    for text, words in (((project / "CMakeLists.txt").read_text(), ("option(PLAIN_PROFILE", "option(PLAIN_NVTX")),
                        ((project / "Makefile").read_text(), ("-DPLAIN_PROFILE", "-DPLAIN_NVTX"))):
        contains(text, *words)


NAMED = r"""
#include "support.h"

int main() {
  using namespace plain_app;
  using namespace plain_gcrt;
  Tensors tensors(*plain_describe());
  const Model model("", 1);
  std::printf("captured\n");
  model.run_with(&tensors, plain_enqueue);
}
"""


def case_nvtx(world):
    """Single launches of a layer lie in a range of its name; the plain library knows no nvtx3."""
    project, layers = classifier(world)
    for path in [*(project / "src").iterdir(), *(project / "include" / "plain").iterdir()]:
        check(path.suffix == ".S" or "nvtx" not in path.read_text(), f"{path.name} knows nvtx")
    main = world.path("named.cpp")
    main.write_text(NAMED)
    world.path("nvtx3").mkdir()
    world.path("nvtx3/nvToolsExt.h").write_text(NVTX)
    said = world.run([built(world, project, main, "PLAIN_NVTX")]).stdout
    ranges = [line for layer in layers for line in (f"begin {layer['function']}", "end")]
    equal(said.split("captured\n")[1].splitlines(), ranges, "ranges of single launches")
    equal(said.split("captured\n")[0].splitlines(), ranges, "ranges of the capture")
    equal(world.run([built(world, project, main)]).stdout, "captured\n", "ranges of the plain library")


def case_sizes(world):
    """With several sizes the layers of the one that runs, and with bounds those that there are."""
    model = world.path("rows.onnxtxt")
    model.write_text(ROWS.replace("NUMBERS", ", ".join(str(i % 7 - 3) for i in range(48))))
    for dims, rows in (("3,5", ("3", "5")), ("1..8", ("3", "8"))):
        project = world.path(f"rows_{len(dims)}")
        world.compile(model, project, "--name", "plain", "--target", "cuda", "--dim", f"rows={dims}")
        schedules = manifest(project, "plain")["schedules"]
        bench = built(world, project, project / "apps" / "bench.cu")
        profiled = built(world, project, project / "apps" / "run.cpp", "PLAIN_PROFILE")
        for number, size in enumerate(rows):
            layers = [layer["function"] for layer in schedules[min(number, len(schedules) - 1)]["layers"]]
            told = timed(world, bench, "--dim", f"rows={size}")["layers"]
            equal([layer["kernel"] for layer in told], layers, f"layers at {size}")
            equal(told[0]["multiply_adds"], int(size) * 48, f"multiply-adds of a product at {size}")
            equal(told[-1]["bytes"], int(size) * 2 * 6 * 4, f"bytes of a softmax at {size}")
            path = world.path(f"profile_{len(dims)}_{size}.json")
            world.run([profiled, "--dim", f"rows={size}", "--random", "1"], env={**os.environ, "PLAIN_PROFILE_FILE": str(path)})
            equal([event["name"] for event in events_of(path)], layers, f"trace at {size}")


BRANCHES = r"""
#include "layers.h"

#include "support.h"

int main() {
  using namespace plain_app;
  Tensors tensors(*plain_describe());
  const Model model("", 1);
  for (const bool choice : {true, false}) {
    const std::uint8_t value = choice ? 1 : 0;
    DeviceClock clock(Layers::all().size());
    model.run_with(&tensors, [&](const plain_memory* memory, const plain_inputs* inputs, const plain_outputs* outputs) {
      plain_inputs chosen = *inputs;
      chosen.choose = &value;
      return Layers::run(&clock, memory, &chosen, outputs);
    });
    clock.each([&](std::size_t layer, double, double) { std::printf("%s ", Layers::all()[layer].computes); });
    std::printf("\n");
  }
}
"""


def case_branches(world):
    """Layers of a branch that a run does not take have no time."""
    model, project, main = world.path("branches.onnxtxt"), world.path("project"), world.path("both.cpp")
    model.write_text(BRANCH)
    world.compile(model, project, "--name", "plain", "--target", "cuda")
    main.write_text(BRANCHES)
    lines = world.run([built(world, project, main)]).stdout.splitlines()
    equal(len(lines), 2, "runs")
    check("Softmax" in lines[0] and "Exp" not in lines[0] and "CumSum" in lines[0], lines[0])
    check("Exp" in lines[1] and "Softmax" not in lines[1] and "CumSum" in lines[1], lines[1])


def case_nvcc(world):
    """Marked libraries and the benchmark by nvcc, without a warning."""
    compiler = nvcc()
    project, _ = classifier(world)
    for source, definitions in (("src/plain.cu", ("PLAIN_PROFILE",)), ("src/plain.cu", ("PLAIN_NVTX",)), ("apps/bench.cu", ())):
        world.run([compiler, "-std=c++17", *flags("cuda"), "-arch=sm_80", "-Werror", "all-warnings", "-Xcompiler",
                   "-Wall,-Wextra,-Wconversion,-Wshadow,-Werror", *(f"-D{name}" for name in definitions), f"-I{project}",
                   f"-I{project}/include", f"-I{project}/apps", "-c", project / source, "-o", world.path("object.o")])
    world.run(["make", "-C", project, "-j2", f"NVCC={compiler}", "ARCH=sm_80", "NVCCFLAGS=-O1", "PROFILE=1", "NVTX=1", "build/plain_bench"])


if __name__ == "__main__":
    run_main(globals())
