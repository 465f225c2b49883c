#!/usr/bin/env python3
"""Operands that a run gives, and that the declared shapes decide: runs with others end with a status and write nothing.

    operands.py --gcompile GCOMPILE [CASE...]
"""

from cuda import cxx
from support import WARNINGS, check, contains, run_main

# A value that the declared shape tells, one of two that it leaves, positions that the run computes, and a state.
MODEL = """
<ir_version: 8, opset_import: ["": 17]>
net (float[2,3,3] x, int64[2] shape, int64[1] axes, int64[1] starts, int64[1] ends, float[2] before)
  => (float[6,3] rows, float[2,3] sums, float[2,3,3] part, float[2] after)
<float[2] one = {1.0, 1.0}>
{
  after = Add(before, one)
  rows = Reshape(x, shape)
  sums = ReduceSum<keepdims = 0>(x, axes)
  twice = Concat<axis = 0>(x, x)
  part = Slice(twice, starts, ends)
}
"""

CALLER = r"""
#include <cstdio>

#include "net/net.hpp"

#define CHECK(condition) \
  if (!(condition)) return std::printf("line %d: %s\n", __LINE__, #condition), 1

int main() {
  net::Model model;
  float x[18];
  for (int i = 0; i < 18; ++i) x[i] = static_cast<float>(i);
  float rows[18], sums[6], part[18];
  const auto run = [&](std::int64_t first, std::int64_t second, std::int64_t axis, std::int64_t start, std::int64_t end) {
    const std::int64_t shape[2] = {first, second};
    rows[0] = sums[0] = part[0] = -1;
    return model.run({x, shape, &axis, &start, &end}, {rows, sums, part});
  };
  const auto is_untouched = [&] { return rows[0] == -1 && sums[0] == -1 && part[0] == -1; };
  CHECK(run(6, 3, 1, 0, 2) == NET_OK && rows[17] == 17 && sums[0] == 9 && part[17] == 17);
  CHECK(run(-1, 3, -2, 1, 3) == NET_OK && sums[0] == 9 && part[0] == 9 && part[9] == 0);
  CHECK(run(6, -1, 2, -2, 9) == NET_OK && sums[0] == 3 && part[0] == 0);
  CHECK(run(3, 6, 1, 0, 2) == NET_SHAPE_MISMATCH && is_untouched());
  CHECK(run(6, 3, 0, 0, 2) == NET_SHAPE_MISMATCH && is_untouched());
  CHECK(run(6, 3, 3, 0, 2) == NET_SHAPE_MISMATCH && is_untouched());
  CHECK(run(6, 3, 1, 0, 3) == NET_SHAPE_MISMATCH && is_untouched());
  CHECK(run(6, 3, 1, 1, 3) == NET_OK && rows[17] == 17 && sums[0] == 9 && part[0] == 9);
  return 0;
}
"""


def model_of(world):
    path = world.path("net.onnxtxt")
    path.write_text(MODEL, encoding="utf-8")
    return path


def case_statuses(world):
    """Values that mean the same are taken; others end the run before anything is written."""
    project, source = world.path("project"), world.path("caller.cpp")
    said = world.compile(model_of(world), project, "--name", "net", "--state", "before=after")
    contains(said, "W0206", "the input 'shape' must be such that 'rows' has the shape [6, 3], as with [6, 3]",
             "'axes'", "'starts'", "'ends'")
    contains((project / "include/net/net.h").read_text(encoding="utf-8"), "checked by each run")
    source.write_text(CALLER, encoding="utf-8")
    world.run(["g++", "-std=c++17", "-O1", *WARNINGS, f"-I{project}/include", source, *world.library_objects(project, "net"),
               "-o", world.path("caller")])
    world.run([world.path("caller")])
    refused = world.compile(model_of(world), world.path("set"), "--set", "shape=3,6", "--name", "net")
    contains(refused, "W0205")


def case_programs(world):
    """Programs and verify make inputs up that pass."""
    model, project = model_of(world), world.path("project")
    world.compile(model, project, "--name", "net", "--selftest")
    world.run(["cmake", "-S", project, "-B", project / "build", "-DCMAKE_BUILD_TYPE=Debug"])
    world.run(["cmake", "--build", project / "build"])
    contains(world.run([project / "build/net_run", "--random", "1"]).stdout, "sums float32[2, 3]")
    world.run([project / "build/net_bench", "--repeat", "2"])
    world.run(["ctest", "--test-dir", project / "build", "--no-tests=error"])
    said = world.run([world.gcompile, "verify", model, "--cases", "2"])
    contains(said.stdout + said.stderr, "verified: ")
    said = world.run([world.gcompile, "verify", model, "--verify-passes", "--cases", "1"])
    contains(said.stdout + said.stderr, "verified: ")


def case_cuda(world):
    """The host reads what is checked."""
    model, project = model_of(world), world.path("project")
    done = world.run([world.gcompile, "verify", model, "--target", "cuda", "--emulate", "--cxx", cxx(), "--cases", "2"])
    contains(done.stdout + done.stderr, "verified: ")
    world.compile(model, project, "--name", "net", "--target", "cuda")
    header = (project / "include/net/net.h").read_text(encoding="utf-8")
    check(header.count("checked by each run; host memory") == 4, f"inputs in host memory:\n{header}")


if __name__ == "__main__":
    run_main(globals())
