#!/usr/bin/env python3
"""Branches of CUDA projects that inputs choose: the host reads these, so programs keep them where the host can.

    cuda_branches.py --gcompile GCOMPILE [CASE...]

The emulator ends a program whose host code touches device memory.
"""

from cuda import cxx, nvcc
from cuda_layers import built
from support import check, contains, equal, flags, run_main

# Conditions that are an input, come of one, of several, of an element of one, and lie within each other; what decides is read by
# kernels too, and one input is for kernels alone.
STEERED = """
<ir_version: 8, opset_import: ["" : 17]>
steered (bool flag, int64 mode, float[3] levels, int64[2, 2] table, float[rows, 8] x, bool inner)
  => (float[r, 8] a, float[r, 8] b, float[r, 8] c, float[r, 8] d, int64[2, 2] copied)
<int64 one = {1}, int64[1] second = {1}, float[1] none = {0.0}>
{
  a = If (flag) < then_branch = a_then () => (float[r, 8] a1) { a1 = Softmax (x) },
                  else_branch = a_else () => (float[r, 8] a2) { a2 = Exp (x) } >
  is_one = Equal (mode, one)
  b = If (is_one) < then_branch = b_then () => (float[r, 8] b1) { b1 = Sigmoid (a) },
                    else_branch = b_else () => (float[r, 8] b2) { b2 = Neg (a) } >
  level = Gather (levels, second)
  high = Greater (level, none)
  scaled = Mul (x, level)
  either = Or (high, is_one)
  c = If (either) < then_branch = c_then () => (float[r, 8] c1) { c1 = Tanh (scaled) },
                    else_branch = c_else () => (float[r, 8] c2) { c2 = Relu (scaled) } >
  mode_float = Cast <to = 1> (mode)
  shifted = Add (b, mode_float)
  d = If (flag) <
    then_branch = d_then () => (float[r, 8] d1) {
      d1 = If (inner) < then_branch = e_then () => (float[r, 8] e1) { e1 = Abs (shifted) },
                        else_branch = e_else () => (float[r, 8] e2) { e2 = Exp (shifted) } >
    },
    else_branch = d_else () => (float[r, 8] d2) { d2 = Sigmoid (shifted) } >
  copied = Identity (table)
}
"""
# Steps of the host that read weights, at addresses of any alignment, in whole packs and the rest.
COMPUTED = """
<ir_version: 8, opset_import: ["" : 17]>
computed (float[19] levels, int64[7] counts, float[4, 8] x) => (float[4, 8] y)
<float[19] w = {WEIGHTS}, float typical = {10.0}, int64[1] begin = {1}, int64[1] end = {18}, int64[7] ones = {1, 1, 1, 1, 1, 1, 1}>
{
  scaled = Mul (levels, w)
  between = Sigmoid (scaled)
  part = Slice (between, begin, end)
  sum = ReduceSum <keepdims = 0> (part)
  more = Add (counts, ones)
  numbers = Cast <to = 1> (more)
  most = ReduceMax <keepdims = 0> (numbers)
  total = Add (sum, most)
  chosen = Greater (total, typical)
  y = If (chosen) < then_branch = y_then () => (float[4, 8] y1) { y1 = Softmax (x) },
                    else_branch = y_else () => (float[4, 8] y2) { y2 = Exp (x) } >
}
"""

ON_HOST = ("flag", "mode", "levels", "inner")

CALLER = r"""
#include <cstdlib>

#include "plain/plain.hpp"

#define CHECK(condition) \
  if (!(condition)) return std::printf("line %d: %s\n", __LINE__, #condition), 1

int main() {
  plain::Model model;
  const float x[32] = {0.5f, -1.0f}, levels[3] = {0.0f, 0.25f, 0.0f};
  const std::int64_t table[4] = {1, 2, 3, 4}, mode = 1;
  const bool no = false, yes = true;
  for (const bool* const flag : {&no, &yes, &no}) {
    const auto* const chosen = reinterpret_cast<const std::uint8_t*>(flag);
    const auto found = model.run({chosen, &mode, levels, table, x, chosen});
    CHECK(found);
    CHECK((found->a[1] < found->a[2]) && ((found->a[2] == 1.0f) != *flag) && found->copied[3] == 4);
  }
  return 0;
}
"""


def steered(world):
    path = world.path("steered.onnxtxt")
    path.write_text(STEERED)
    return path


def case_sizes(world):
    """One size, several, and bounds."""
    model = steered(world)
    for dims, tensors in (("4", 10), ("2,5", 20), ("1..5", 20)):
        done = world.run([world.gcompile, "verify", model, "--target", "cuda", "--emulate", "--cxx", cxx(), "--cases", "2",
                          "--dim", f"rows={dims}"])
        contains(done.stdout + done.stderr, f"verified: {tensors} tensors are right")


def case_programs(world):
    """The header says which inputs those are; the benchmark, its layers, and the wrapper run."""
    model, project, main = steered(world), world.path("project"), world.path("caller.cpp")
    world.compile(model, project, "--name", "plain", "--target", "cuda", "--dim", "rows=4")
    header = (project / "include" / "plain" / "plain.h").read_text()
    remarks = [line for line in header.splitlines() if "host memory, for it chooses a branch" in line]
    equal([name for line in remarks for name in ("flag", "mode", "levels", "table", "x", "inner") if f"*{name};" in line], list(ON_HOST),
          "inputs that the header asks for in host memory")
    contains((project / "README.md").read_text(), "The host reads " + ", ".join(f"`{name}`" for name in ON_HOST))
    bench = built(world, project, project / "apps" / "bench.cu")
    contains(world.run([bench, "--repeat", "2"]).stdout, "ms")
    for options in (["--layers"], ["--trace", world.path("trace.json")]):
        check(world.run([bench, "--repeat", "2", *options]).stdout != "", f"{options} says nothing")
    main.write_text(CALLER)
    world.run([built(world, project, main)])


def case_steps_of_the_host(world):
    """The same answer wherever the weights are; as a project whose name is that of what the emitted code has, too."""
    model = world.path("host.onnxtxt")
    # Seventeen numbers around a half, of which the sum is near 8.5, and counts of 1 or 2: seeds decide.
    model.write_text(COMPUTED.replace("WEIGHTS", ", ".join(["40.0", *(f"{i % 5}.5" for i in range(17)), "-40.0"])))
    done = world.run([world.gcompile, "verify", model, "--target", "cuda", "--emulate", "--cxx", cxx(), "--cases", "3"])
    contains(done.stdout + done.stderr, "verified: 3 tensors are right")
    answers = []
    for mode in ("incbin", "file"):
        project = world.path(mode)
        world.compile(model, project, "--name", "plain", "--target", "cuda", "--weights", mode)
        run = built(world, project, project / "apps" / "run.cpp")
        answers.append(world.run([run, "--random", "1"], cwd=project).stdout)
    equal(answers[1], answers[0], "answers with weights in a file")


def case_nvcc(world):
    """The device's own compiler has nothing to say about steps of the host, either."""
    compiler = nvcc()
    model, project = world.path("model.onnxtxt"), world.path("project")
    model.write_text(COMPUTED.replace("WEIGHTS", ", ".join(["1.5"] * 19)))
    world.compile(model, project, "--name", "plain", "--target", "cuda")
    for source in [*sorted((project / "src").glob("*.cu")), project / "apps" / "bench.cu"]:
        world.run([compiler, "-std=c++17", *flags("cuda"), "-arch=sm_80", "-Werror", "all-warnings", "-Xcompiler",
                   "-Wall,-Wextra,-Wconversion,-Wshadow,-Werror", f"-I{project}", f"-I{project}/include", f"-I{project}/apps", "-c",
                   source, "-o", world.path("object.o")])


if __name__ == "__main__":
    run_main(globals())
