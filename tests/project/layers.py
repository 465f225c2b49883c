#!/usr/bin/env python3
"""NAME_bench --layers: a time for every layer, from a schedule of its own that computes the same.

    layers.py --gcompile GCOMPILE [CASE...]
"""

import json
import os

from support import HERE, check, contains, equal, layers_of, run_main


def program(world, project, source, flags=("-O1",)):
    """A host program of a project called plain, with its library."""
    target = world.path(source.stem)
    world.run(["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", "-pthread",
               f"-I{project}", f"-I{project}/include", f"-I{project}/apps", source, project / "src" / "plain_threads.cpp",
               *world.library_objects(project, "plain", "g++", flags), "-o", target])
    return target


def calls_of(world, model):
    """As (kernel, multiply-adds)."""
    dump = world.path("dump")
    world.compile(model, world.path("dumped"), "--name", "plain", "--dump-dir", dump)
    return [(layer["function"], layer["products"]) for layer in layers_of(dump)]


def classifier(world):
    return HERE.parents[1] / "examples" / "shapes_classifier" / "model.onnx"


def case_every_layer(world):
    """With one thread and with two, as a table and as JSON: all layers in order, with times and bounds."""
    project = world.example("shapes_classifier", "project", "--name", "plain")
    bench = program(world, project, project / "apps" / "bench.cpp")
    expected = calls_of(world, classifier(world))
    check(len(expected) >= 4, f"too few layers for a test: {expected}")
    for threads in ("1", "2"):
        found = json.loads(world.run([bench, "--layers", "--json", "--repeat", "3", "--threads", threads]).stdout)
        equal([(layer["kernel"], layer["multiply_adds"]) for layer in found["layers"]], expected, "layers")
        equal([layer["layer"] for layer in found["layers"]], list(range(len(expected))), "their numbers")
        equal((found["threads"], found["repeat"]), (int(threads), 3), "threads and runs")
        for layer in found["layers"]:
            check(layer["runs"] == 3 and 0 < layer["min_ms"] <= layer["median_ms"], f"times: {layer}")
            check(layer["bound_ms"] > 0 and layer["bytes"] > 0, f"bound: {layer}")
        check(any(layer["weight_bytes"] > 0 for layer in found["layers"]), "no layer has weights")
        total = sum(layer["min_ms"] for layer in found["layers"])
        check(abs(total - found["layers_min_ms"]) <= 1e-3 * total, f"{found['layers_min_ms']} is not the sum {total}")
        check(found["run_min_ms"] > 0, "a run takes no time")
    text = world.run([bench, "--layers", "--repeat", "2"]).stdout
    contains(text, "of bound", f"{len(expected)} layers", *(f"{name} (" for name, _ in expected))
    equal(len(text.splitlines()), len(expected) + 3, "lines")


def case_trace(world):
    """All layers of all runs one after the other, and the pieces of each within it, on the threads that there are."""
    project = world.example("shapes_classifier", "project", "--name", "plain")
    bench = program(world, project, project / "apps" / "bench.cpp")
    expected = [name for name, _ in calls_of(world, classifier(world))]
    for threads in (1, 2):
        path = world.path(f"trace_{threads}.json")
        said = world.run([bench, "--trace", path, "--repeat", "3", "--threads", str(threads)]).stdout
        contains(said, str(path), f"3 runs of {len(expected)} layers")
        events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"]
        whole = [event for event in events if event["tid"] == 0]
        equal([event["name"] for event in whole], expected * 3, "the layers")
        for before, after in zip(whole, whole[1:]):
            check(before["ts"] + before["dur"] <= after["ts"] + 0.01, f"{before} does not end before {after}")
        pieces = [event for event in events if event["tid"] > 0]
        check(bool(pieces) == (threads > 1), f"{len(pieces)} pieces on {threads} threads")
        check({event["tid"] for event in pieces} <= set(range(1, threads + 1)), "pieces of more threads than there are")
        for piece in pieces:
            check(any(layer["ts"] - 0.01 <= piece["ts"] and piece["args"]["layer"] == layer["args"]["layer"] and
                      piece["ts"] + piece["dur"] <= layer["ts"] + layer["dur"] + 0.01 for layer in whole), f"{piece} is of no layer")
    done = world.run([bench, "--trace", "/nonexistent/trace.json", "--repeat", "1"], status=1)
    contains(done.stderr, "cannot write /nonexistent/trace.json")


def case_profile(world):
    """A library with a clock: a product's own runs, with the same results, by CMake and by make."""
    project = world.example("shapes_classifier", "project", "--name", "plain")
    expected = [name for name, _ in calls_of(world, classifier(world))]
    world.run(["make", "-C", project, "-j2", "PROFILE=1", "BUILD=profiled", "CXXFLAGS=-O1", "profiled/plain_run"])
    world.run(["cmake", "-S", project, "-B", project / "by_cmake", "-DPLAIN_PROFILE=ON", "-DCMAKE_BUILD_TYPE=Debug"])
    world.run(["cmake", "--build", project / "by_cmake", "--target", "plain_run", "-j2"])
    plain = program(world, project, project / "apps" / "run.cpp")
    answer = world.run([plain, "--random", "1"]).stdout
    for number, built in enumerate((project / "profiled" / "plain_run", project / "by_cmake" / "plain_run")):
        path = world.path(f"profile_{number}.json")
        done = world.run([built, "--random", "1"], env={**os.environ, "PLAIN_PROFILE_FILE": str(path)})
        equal(done.stdout, answer, "answer of a library with a clock")
        contains(done.stderr, "layers of the first 1 runs")
        events = [event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X" and event["tid"] == 0]
        equal([event["name"] for event in events], expected, "the layers")
    done = world.run([built, "--random", "1", "--threads", "2", "--repeat", "3"], cwd=world.folder)
    events = json.loads(world.path("plain_profile.json").read_text())["traceEvents"]
    check({event["tid"] for event in events if event["ph"] == "X"} <= {0, 1, 2} and len(events) > 4 * len(expected), "pieces of threads")


def case_profile_of_sizes(world):
    """One trace for all schedules, and with bounds the layers of the one that there is."""
    model = world.path("rows.onnxtxt")
    model.write_text(ROWS.replace("NUMBERS", ", ".join(str(i % 7 - 3) for i in range(48))))
    for dims, runs in ((("--dim", "rows=3,5"), ("rows=3", "rows=5")), (("--dim", "rows=1..8"), ("rows=3", "rows=8"))):
        project = world.path(f"sized_{len(dims[1])}")
        world.compile(model, project, "--name", "plain", *dims)
        world.run(["make", "-C", project, "-j2", "PROFILE=1", "BUILD=profiled", "CXXFLAGS=-O1", "profiled/plain_run",
                   "profiled/plain_bench"])
        world.run(["make", "-C", project, "-j2", "BUILD=plainly", "CXXFLAGS=-O1", "plainly/plain_run"])
        for size in runs:
            asked = ["--dim", size, "--random", "1"]
            done = world.run([project / "profiled" / "plain_run", *asked], cwd=world.folder)
            equal(done.stdout, world.run([project / "plainly" / "plain_run", *asked]).stdout, f"answer at {size}")
            events = json.loads(world.path("plain_profile.json").read_text())["traceEvents"]
            computed = [event["args"]["computes"] for event in events if event["ph"] == "X" and event["tid"] == 0]
            check(len(computed) >= 2 and "MatMul" in computed[0] and "Softmax" in computed[-1], f"layers at {size}: {computed}")
        bench = project / "profiled" / "plain_bench"
        for size in runs:
            told = json.loads(world.run([bench, "--dim", size, "--layers", "--json", "--repeat", "1"]).stdout)["layers"]
            rows = int(size.split("=")[1])
            product, last = told[0], told[-1]
            equal((product["multiply_adds"], product["bytes"]), (rows * 8 * 6, rows * (8 + 6) * 4), f"figures of a product at {size}")
            check(0 < product["weight_bytes"] == told[0]["weight_bytes"], f"weights at {size}: {product}")
            equal((last["multiply_adds"], last["bytes"], last["weight_bytes"]), (0, rows * 2 * 6 * 4, 0), f"figures of a softmax at {size}")
        trace = world.path("trace.json")
        world.run([bench, "--dim", runs[0], "--trace", trace, "--repeat", "2"])
        events = json.loads(trace.read_text())["traceEvents"]
        equal(sum(event["ph"] == "X" and event["tid"] == 0 for event in events), 2 * len(computed), "layers of two runs")


def case_compare(world):
    """Layers are found again by the nodes that they compute; what has none in the other build is said."""
    project = world.example("shapes_classifier", "project", "--name", "plain")
    other = world.example("shapes_classifier", "other", "--name", "plain", "-O0")
    theirs = program(world, other, other / "apps" / "bench.cpp").rename(world.path("theirs"))
    bench = program(world, project, project / "apps" / "bench.cpp")
    said = world.run([bench, "--compare", theirs, "--repeat", "2", "--warmup", "1"]).stdout
    lines = said.splitlines()
    contains(lines[0], str(theirs))
    softmax = next(line.split() for line in lines if "Softmax 'probabilities'" in line)
    check(float(softmax[0]) >= 0 and float(softmax[1]) >= 0, f"times of both: {softmax}")
    check(any("Relu 'stem.relu' (of the other alone)" in line for line in lines), said)
    check(lines[-1].endswith("a run"), lines[-1])
    file = world.path("layers.json")
    file.write_text(world.run([bench, "--layers", "--json", "--repeat", "2"]).stdout)
    said = world.run([bench, "--compare", file, "--repeat", "2"]).stdout
    check("of the other alone" not in said and " - " not in said, said)
    for words, message in ((("--compare", "nothing"), "cannot read nothing"), (("--compare", file, "--json"), "--compare takes"),
                           (("--compare", file, "--layers"), "--compare takes")):
        contains(world.run([bench, *words], status=1, cwd=world.folder).stderr, message)
    file.write_text('{"min_ms": 1}')
    contains(world.run([bench, "--compare", file, "--repeat", "1"], status=1).stderr, "has no times of layers")


def case_of_bytes(world):
    """Integer products are held against the rate of integer products."""
    model = world.path("products.onnxtxt")
    numbers = ", ".join(str(i % 7 - 3) for i in range(32 * 16))
    model.write_text(PRODUCTS.replace("NUMBERS", numbers))
    project = world.path("project")
    world.compile(model, project, "--name", "plain")
    bench = program(world, project, project / "apps" / "bench.cpp")
    layers = json.loads(world.run([bench, "--layers", "--json", "--repeat", "1"]).stdout)["layers"]
    kinds = {layer["computes"].split(" ")[0]: layer["multiplies_bytes"] for layer in layers if layer["multiply_adds"]}
    equal(kinds, {"MatMulInteger": True, "MatMul": False}, "whether products are of bytes")


def case_branches(world):
    """Layers of a branch that no run takes have no row, and the others keep their numbers."""
    project = world.path("project")
    model = world.path("branches.onnxtxt")
    model.write_text(BRANCH)
    world.compile(model, project, "--name", "plain")
    source = world.path("both.cpp")
    source.write_text(BRANCHES)
    equal(world.run([program(world, project, source)]).stdout, "0 2\n1 2\n", "layers that were timed")


def case_same_results(world):
    """The schedule with a clock computes what the library's does, bit for bit; the library has none."""
    for example in ("shapes_classifier", "streaming_denoiser", "tiny_attention"):
        project = world.example(example, example, "--name", "plain")
        source = world.path(f"same_{example}.cpp")
        source.write_text(SAME_RESULTS)
        equal(world.run([program(world, project, source)]).stdout, "same\n", example)
        for path in [*(project / "src").iterdir(), *(project / "include" / "plain").iterdir(), project / "apps" / "run.cpp"]:
            check("layers.h" not in path.read_text() and "LayerClock" not in path.read_text(), f"{path.name} has a clock")


def case_several_levels(world):
    """A library that holds several levels says so; it has the same benchmark otherwise."""
    project = world.example("shapes_classifier", "project", "--name", "plain")
    build = world.path("build")
    world.run(["make", "-C", project, build / "plain_bench", f"BUILD={build}", "ARCH=levels", "CXXFLAGS=-O0"])
    contains(world.run([build / "plain_bench", "--layers"], status=1).stderr, "a library of one level", "PLAIN_ARCH=native")
    contains(world.run([build / "plain_bench", "--repeat", "1"]).stdout, "min ")


PRODUCTS = """
<ir_version: 8, opset_import: ["" : 17]>
products (uint8[8, 32] x, float[8, 32] y) => (int32[8, 16] sums, float[8, 16] products)
<int8[32, 16] w = {NUMBERS}, float[32, 16] v = {NUMBERS}>
{
  sums = MatMulInteger(x, w)
  products = MatMul(y, v)
}
"""

BRANCH = """
<ir_version: 8, opset_import: ["" : 17]>
branch (bool choose, float[4, 8] x) => (float[4, 8] z)
<int64 axis = {1}>
{
  y = If (choose) < then_branch = yes () => (float[4, 8] a) { a = Softmax(x) },
                    else_branch = no () => (float[4, 8] b) { b = Exp(x) } >
  z = CumSum(y, axis)
}
"""

ROWS = """
<ir_version: 8, opset_import: ["" : 17]>
rows (float[rows, 8] x) => (float[rows, 6] y)
<float[8, 6] w = {NUMBERS}>
{
  p = MatMul(x, w)
  y = Softmax(p)
}
"""

SAME_RESULTS = r"""
#include "layers.h"

int main() {
  using namespace plain_app;
  Tensors first(*plain_describe()), second(*plain_describe());
  std::uint64_t seed = 1;
  for (std::size_t i = 0; i < first.inputs.size(); ++i) {
    first.inputs[i].fill(&seed);
    second.inputs[i].bytes = first.inputs[i].bytes;
  }
  const Model one("", 1), other("", 2);
  LayerClock clock(Layers::all().size(), 2);
  for (int run = 0; run < 2; ++run) {  // the second on the state that the first has left
    one.run(&first);
    other.run_with(&second, [&](auto... arguments) { return Layers::run(arguments..., &clock); });
    for (std::size_t i = 0; i < first.outputs.size(); ++i) {
      if (first.outputs[i].bytes != second.outputs[i].bytes) std::printf("output %zu of run %d differs\n", i, run);
    }
  }
  for (std::size_t i = 0; i < Layers::all().size(); ++i) {
    if (clock.of(i).size() != 2) std::printf("layer %zu was timed %zu times\n", i, clock.of(i).size());
  }
  std::printf("same\n");
}
"""

BRANCHES = r"""
#include "layers.h"

int main() {
  using namespace plain_app;
  Tensors tensors(*plain_describe());
  const Model model("", 1);
  for (const bool choice : {true, false}) {
    LayerClock clock(Layers::all().size(), 1);
    for (Tensor& tensor : tensors.inputs) std::fill(tensor.bytes.begin(), tensor.bytes.end(), static_cast<unsigned char>(choice));
    model.run_with(&tensors, [&](auto... arguments) { return Layers::run(arguments..., &clock); });
    const char* separator = "";
    for (std::size_t i = 0; i < Layers::all().size(); ++i) {
      if (clock.of(i).empty()) continue;
      std::printf("%s%zu", separator, i);
      separator = " ";
    }
    std::printf("\n");
  }
}
"""

if __name__ == "__main__":
    run_main(globals())
