#!/usr/bin/env python3
"""Several sizes in one project: each is what a project of that size alone gives, bit for bit; everything else is refused.

    sizes.py --gcompile GCOMPILE [CASE...]
"""

import subprocess

from families import Model
from support import check, equal, manifest, read_npy, run_main

SIZES = [(batch, length) for batch in (1, 3) for length in (1, 5, 16)]


def encoder():
    """Products of all rows and of each row's keys, a softmax over a chosen size, and shapes computed by the model."""
    model = Model()
    model.inputs = ["float[batch,length,12] x", "float[batch,length] mask"]
    model.outputs = ["float[batch,length,12] y", "float[batch,12] mean"]
    for name, shape in (("q", (12, 12)), ("k", (12, 12)), ("v", (12, 12))):
        model.constant(name, "float", shape)
    model.constants += ["int64[1] one = {1}", "int64[4] heads = {0, 0, 3, 4}", "int64[3] joined = {0, 0, 12}"]
    split = [f"{a}_heads = Reshape({a}_rows, heads)" for a in "qkv"]
    model.nodes = [f"{a}_rows = MatMul(x, {a})" for a in "qkv"] + split + [
        "q_t = Transpose<perm = [0, 2, 1, 3]>(q_heads)", "k_t = Transpose<perm = [0, 2, 3, 1]>(k_heads)",
        "v_t = Transpose<perm = [0, 2, 1, 3]>(v_heads)", "scores = MatMul(q_t, k_t)", "m1 = Unsqueeze(mask, one)",
        "m2 = Unsqueeze(m1, one)", "masked = Add(scores, m2)", "weights = Softmax<axis = -1>(masked)", "mixed = MatMul(weights, v_t)",
        "rows = Transpose<perm = [0, 2, 1, 3]>(mixed)", "flat = Reshape(rows, joined)", "y = Add(flat, x)",
        "mean = ReduceMean<axes = [1], keepdims = 0>(y)"]
    return model


def image():
    model = Model()
    model.inputs = ["float[1,3,height,width] x"]
    model.outputs = ["float[1,6,h,w] y"]
    model.constant("s", "float", (8, 3, 3, 3))
    model.constant("t", "float", (6, 8, 3, 3))
    model.nodes = ["a = Conv<pads = [1, 1, 1, 1]>(x, s)", "b = Relu(a)", "c = MaxPool<kernel_shape = [2, 2], strides = [2, 2]>(b)",
                   "y = Conv<pads = [1, 1, 1, 1]>(c, t)"]
    return model


def compiled(world, name, model, *options):
    path = world.folder / f"{name}.onnxtxt"
    path.write_text(model.text())
    out = world.folder / name
    world.run([world.gcompile, path, "-o", out, "--name", "net", "--force", *options])
    return out


def built(world, out, *programs):
    programs = programs or ("net_run",)
    world.run(["make", "-s", "-j2", "-C", out, "ARCH=native", f"BUILD={out / 'build'}",
               *[out / "build" / program for program in programs]])
    return out / "build" / programs[0]


def results(world, runner, folder, *options):
    world.run([runner, "--random", "7", "--output-dir", folder, *options])
    return [read_npy(file) for file in sorted(folder.glob("*.npy"))]


def case_same_as_alone(world):
    joint = compiled(world, "joint", encoder(), "--dim", "batch=1,3", "--dim", "length=16,1,5")
    runner = built(world, joint)
    arenas, weights = [], set()
    for batch, length in SIZES:
        sizes = [f"batch={batch}", f"length={length}"]
        alone = compiled(world, f"alone_{batch}_{length}", encoder(), "--dim", sizes[0], "--dim", sizes[1])
        arenas.append(manifest(alone, "net")["arena_bytes"])
        weights.add(manifest(alone, "net")["weights_bytes"])
        if (batch, length) in ((1, 1), (3, 5), (3, 16)):
            expected = results(world, built(world, alone), alone / "results")
            equal(results(world, runner, alone / "joint", "--dim", sizes[0], "--dim", sizes[1]), expected, f"results of {sizes}")
    what = manifest(joint, "net")
    equal(what["arena_bytes"], max(arenas), "arena")
    equal([schedule["arena_bytes"] for schedule in what["schedules"]], arenas, "arenas")
    check(what["weights_bytes"] <= max(weights) * 1.2, f"weights {what['weights_bytes']}, alone {weights}")
    equal([tuple(schedule["sizes"]) for schedule in what["schedules"]], SIZES, "choices")


def case_verified(world):
    compiled(world, "verified", encoder(), "--dim", "batch=1,3", "--dim", "length=1,5,16")
    world.run([world.gcompile, "verify", world.folder / "verified.onnxtxt", "-q", "--dim", "batch=1,3", "--dim", "length=1,5,16",
               "--threads", "2"])


def case_verified_kernels(world):
    compiled(world, "layers", image(), "--shape", "x:1x3xHxW", "--dim", "H=8,12", "--dim", "W=8")
    world.run([world.gcompile, "verify", world.folder / "layers.onnxtxt", "-q", "--layers", "--shape", "x:1x3xHxW", "--dim", "H=8,12",
               "--dim", "W=8"])


def case_beside_bounds(world):
    """Some sizes chosen, others within bounds: a schedule for each choice, in the order of the command line."""
    options = ["--dim", "length=1..16", "--dim", "batch=1,3"]
    out = compiled(world, "beside", encoder(), *options)
    equal([schedule["sizes"] for schedule in manifest(out, "net")["schedules"]], [[16, 1], [16, 3]], "sizes")
    for target in (["--target", "cpp"], ["--target", "cuda", "--emulate"]):
        shown = world.run([world.gcompile, "verify", world.folder / "beside.onnxtxt", *options, *target])
        check("verified: 16 tensors are right" in shown.stdout + shown.stderr, shown.stdout + shown.stderr)


def case_emulated(world):
    compiled(world, "cuda", encoder(), "--target", "cuda", "--dim", "batch=1,2", "--dim", "length=4,9")
    for options in ((), ("--weights", "array")):
        world.run([world.gcompile, "verify", world.folder / "cuda.onnxtxt", "-q", "--target", "cuda", "--emulate", "--dim", "batch=1,2",
                   "--dim", "length=4,9", *options])


def case_programs(world):
    """Self tests of every choice, the benchmark with its layers, and what programs say of sizes that there are not."""
    out = compiled(world, "programs", image(), "--dim", "height=6,10", "--dim", "width=8", "--selftest")
    runner = built(world, out, "net_run", "net_bench", "net_selftest")
    world.run(["make", "-s", "-C", out, "ARCH=native", f"BUILD={out / 'build'}", "test"])
    for height, macs in ((6, 6 * 8), (10, 10 * 8)):
        shown = world.run([out / "build" / "net_bench", "--layers", "--repeat", "2", "--dim", f"height={height}"]).stdout
        check("Conv" in shown, f"no layers of {macs} pixels: {shown}")
    for option in ("height=7", "height=", "depth=3", "height=x", "6"):
        refused = subprocess.run([runner, "--random", "1", "--dim", option], capture_output=True, text=True, check=False)
        equal(refused.returncode, 1, f"exit code with --dim {option}")
        check("6, 10" in refused.stderr, refused.stderr)


C_PROGRAM = r"""
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include "net/net.hpp"

#define CHECK(condition) \
  if (!(condition)) { std::printf("line %d: %s\n", __LINE__, #condition); std::exit(1); }

int main() {
  net::Model model;
  CHECK(model.status() == NET_OK);
  const net_sizes good{3, 5}, bad{3, 6}, none{0, 0};
  std::int64_t shape[NET_MAX_RANK] = {};
  CHECK(net_output_shape(&good, 0, shape) == NET_OK && shape[0] == 3 && shape[1] == 5 && shape[2] == 12);
  CHECK(net_output_shape(&good, 1, shape) == NET_OK && shape[0] == 3 && shape[1] == 12);
  CHECK(net_input_shape(&good, 1, shape) == NET_OK && shape[0] == 3 && shape[1] == 5);
  CHECK(net_output_shape(&bad, 0, shape) == NET_INVALID_SIZES && net_input_shape(&none, 0, shape) == NET_INVALID_SIZES);
  CHECK(net_output_shape(&good, 2, shape) == NET_INVALID_ARGUMENT && net_output_shape(&good, -1, shape) == NET_INVALID_ARGUMENT);
  CHECK(net_output_shape(nullptr, 0, shape) == NET_NULL_POINTER && net_output_shape(&good, 0, nullptr) == NET_NULL_POINTER);
  CHECK(std::strstr(net_status_text(NET_INVALID_SIZES), "sizes") != nullptr);

  const std::vector<float> x(3 * 5 * 12, 0.5f), mask(3 * 5, 0.0f);
  const net::Result found = model.run(net::Inputs{x, mask});
  CHECK(model.status() == NET_OK && found->y.size() == x.size() && found->mean.size() == 36);
  const net::Result named = model.run(good, net::Inputs{x, {mask.data(), mask.size()}});
  CHECK(model.status() == NET_OK && named->y == found->y);
  CHECK(!model.run(net::Inputs{x, x}) && model.status() == NET_INVALID_SIZES);
  CHECK(!model.run(bad, net::Inputs{x, mask}) && model.status() == NET_INVALID_SIZES);
  CHECK(!model.run(good, net::Inputs{x, x}) && model.status() == NET_WRONG_SIZE);

  std::vector<float> y(x.size(), -1.0f), mean(36, -1.0f);
  CHECK(model.run(bad, {x.data(), mask.data()}, {y.data(), mean.data()}) == NET_INVALID_SIZES);
  for (const float value : y) CHECK(value == -1.0f);
  CHECK(net_run(&model.memory(), nullptr, nullptr, nullptr) == NET_NULL_POINTER);
  CHECK(model.run(good, {x.data(), mask.data()}, {y.data(), mean.data()}) == NET_OK && y == found->y);
  static_assert(net::inputs::x::rank == 3 && net::outputs::y::elements == NET_OUTPUT_Y_ELEMENTS);
#if __cplusplus >= 202002L
  y.assign(y.size(), -1.0f);
  CHECK(model.run(bad, net::InputSpans{x, mask}, {y, mean}) == NET_INVALID_SIZES);
  CHECK(model.run(good, net::InputSpans{x, mask}, {y, std::span(mean).first(35)}) == NET_WRONG_SIZE && y[0] == -1.0f);
  CHECK(model.run(good, net::InputSpans{x, x}, {y, mean}) == NET_WRONG_SIZE && y[0] == -1.0f);
  CHECK(model.run(good, net::InputSpans{x, mask}, {y, mean}) == NET_OK && y == found->y);
#endif
  return 0;
}
"""


def run_caller(world, out, text):
    """A program of a caller of the project, by strict warnings and under sanitizers."""
    source = world.folder / "sizes_of_the_caller.cpp"
    source.write_text(text)
    program = world.folder / "sizes_of_the_caller"
    for standard in ("c++17", "c++20"):
        world.run(["g++", f"-std={standard}", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-fsanitize=address,undefined",
                   f"-I{out / 'include'}", source, out / "build" / "libnet.a",
                   out / "src" / "net_threads.cpp", f"-I{out}", "-pthread", "-o", program])
        world.run([program])


def case_interface(world):
    out = compiled(world, "interface", encoder(), "--dim", "batch=1,3", "--dim", "length=1,5,16")
    built(world, out)
    run_caller(world, out, C_PROGRAM)


RANKS_PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "net/net.hpp"

#define CHECK(condition) \
  if (!(condition)) { std::printf("line %d: %s\n", __LINE__, #condition); std::exit(1); }

int main() {
  const net_sizes one{1, 1}, flat{1, 3}, tall{4, 1}, full{4, 3}, bad{2, 3};
  CHECK(net_output_rank(&one, 0) == 1 && net_output_rank(&flat, 0) == 2 && net_output_rank(&full, 0) == 3);
  CHECK(net_output_rank(&full, 1) == 2 && net_output_rank(&flat, 1) == 2);
  CHECK(net_output_rank(&bad, 0) == -1 && net_output_rank(nullptr, 0) == -1 && net_output_rank(&one, 2) == -1);
  std::int64_t shape[NET_MAX_RANK] = {};
  CHECK(net_output_shape(&flat, 0, shape) == NET_OK && shape[0] == 3 && shape[1] == 5);
  CHECK(net_output_shape(&one, 0, shape) == NET_OK && shape[0] == 5);
  CHECK(net_output_shape(&full, 0, shape) == NET_OK && shape[0] == 4 && shape[1] == 3 && shape[2] == 5);
  net::Model model;
  for (const net_sizes& sizes : {one, flat, tall, full}) {
    const auto count = static_cast<std::size_t>(sizes.batch * sizes.rows) * 5;
    const std::vector<float> x(count, 0.5f);
    CHECK(model.run(sizes, net::Inputs{x})->y.size() == count && model.status() == NET_OK);
    CHECK(model.run(net::Inputs{x})->y.size() == count && model.status() == NET_OK);
#if __cplusplus >= 202002L
    std::vector<float> y(count), sums(static_cast<std::size_t>(sizes.batch) * 5);
    CHECK(model.run(sizes, net::InputSpans{x}, {y, sums}) == NET_OK && y[0] == 1.0f);
    CHECK(model.run(sizes, net::InputSpans{x}, {std::span(y).first(count - 1), sums}) == NET_WRONG_SIZE);
#endif
  }
  return 0;
}
"""


def squeezed():
    """The outputs' dimensions are fewer at sizes of one."""
    model = Model()
    model.inputs = ["float[batch,rows,5] x"]
    model.outputs = ["float[any] y", "float[a,b] sums"]
    model.constants = ["int64[1] axis = {1}"]
    model.nodes = ["s = Squeeze(x)", "y = Add(s, s)", "sums = ReduceSum<keepdims = 0>(x, axis)"]
    return model


def case_ranks(world):
    """Each choice has the dimensions that its sizes leave."""
    options = ["--dim", "batch=1,4", "--dim", "rows=1,3"]
    out = compiled(world, "ranks", squeezed(), *options)
    runner = built(world, out)
    run_caller(world, out, RANKS_PROGRAM)
    for batch, rows, shape in ((1, 1, "(5,)"), (1, 3, "(3, 5)"), (4, 1, "(4, 5)"), (4, 3, "(4, 3, 5)")):
        results(world, runner, world.path(f"{batch}_{rows}"), "--dim", f"batch={batch}", "--dim", f"rows={rows}")
        header = (world.path(f"{batch}_{rows}") / "0_y.npy").read_bytes()[:128].decode("latin-1")
        check(f"'shape': {shape}" in header, f"{header}, expected {shape}")
    for target in (["--target", "cpp"], ["--target", "cuda", "--emulate"]):
        shown = world.run([world.gcompile, "verify", world.folder / "ranks.onnxtxt", *options, *target])
        check("verified: 8 tensors are right" in shown.stdout + shown.stderr, shown.stdout + shown.stderr)


def case_refused(world):
    """One error names what is wrong; nothing is written."""
    path = world.folder / "refused.onnxtxt"
    path.write_text(encoder().text())
    many = ",".join(str(i) for i in range(1, 10))
    for options, text in ((["--dim", "batch=1,2"], "length"), (["--dim", "batch=1,2", "--dim", "batch=3,4"], "twice"),
                          (["--dim", f"batch={many}", "--dim", f"length={many}"], "64"), (["--dim", "bach=1,2"], "batch"),
                          (["--dim", "batch=1,", "--dim", "length=1"], "not of the form")):
        result = subprocess.run([world.gcompile, path, "-o", world.folder / "refused", *options], capture_output=True, text=True,
                                check=False)
        check(result.returncode in (1, 2) and text in result.stderr, f"{options}: {result.returncode} {result.stderr}")
        check(not (world.folder / "refused").exists(), "something was written")


if __name__ == "__main__":
    run_main(globals())
