#!/usr/bin/env python3
"""Sizes within bounds that nobody has to say: the C++ wrapper finds them in numbers of elements, `verify --data` in shapes.

    told_sizes.py --gcompile GCOMPILE [CASE...]
"""

import math
import zipfile

from families import Model
from growing_state import cache
from sizes import built, compiled, image, run_caller
from support import check, contains, run_main, words_of, write_npy

TOLD_PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "net/net.hpp"

#define CHECK(condition) \
  if (!(condition)) { std::printf("line %d: %s\n", __LINE__, #condition); std::exit(1); }

int main() {
  net::Model model;
  CHECK(model.status() == NET_OK);
  const std::vector<float> x(3 * 8, 0.5f), y(3 * 6 * 2, 0.25f), mask(3 * (4 + 6), 0.0f), odd(7, 0.0f), many(3 * 2 * 30, 0.0f);
  // length and rows by the inputs, the latter behind the former; batch is told.
  const net::Result expected = model.run(net_sizes{3, 4, 6}, net::Inputs{x, y, mask});
  CHECK(model.status() == NET_OK && expected->z.size() == 3 * 4 * 2 && expected->sums.size() == 3 * 10);
  const net::Result found = model.run(net::Told{3}, net::Inputs{x, y, mask});
  CHECK(model.status() == NET_OK && found->z == expected->z && found->sums == expected->sums);
  const net_sizes sizes = net::Model::sizes_of(net::Told{3}, net::Inputs{x, y, mask});
  CHECK(sizes.batch == 3 && sizes.length == 4 && sizes.rows == 6);
  CHECK(!model.run(net::Told{1}, net::Inputs{x, y, mask}) && model.status() == NET_INVALID_SIZES);
  for (const std::int64_t batch : {std::int64_t{0}, std::int64_t{-3}, std::int64_t{4}, INT64_MAX, INT64_MIN}) {
    CHECK(!model.run(net::Told{batch}, net::Inputs{x, y, mask}) && model.status() == NET_INVALID_SIZES);
  }
  for (const net::Inputs& wrong : {net::Inputs{odd, y, mask}, {x, odd, mask}, {x, many, mask}}) {
    CHECK(!model.run(net::Told{3}, wrong) && model.status() == NET_INVALID_SIZES);
  }
  for (const net::Inputs& wrong : {net::Inputs{x, y, odd}, {x, y, x}, {{}, y, mask}}) {
    CHECK(!model.run(net::Told{3}, wrong) && model.status() == NET_WRONG_SIZE);
    CHECK(!model.run(net_sizes{3, 4, 6}, wrong) && model.status() == NET_WRONG_SIZE);
  }
  const net::Span<float> endless(x.data(), SIZE_MAX);
  CHECK(!model.run(net::Told{3}, net::Inputs{endless, endless, endless}) && model.status() == NET_INVALID_SIZES);
#if __cplusplus >= 202002L
  std::vector<float> z(expected->z.size(), -1.0f), sums(expected->sums.size(), -1.0f);
  CHECK(model.run(net::Told{3}, net::InputSpans{x, y, odd}, {z, sums}) == NET_WRONG_SIZE && z[0] == -1.0f);
  CHECK(model.run(net::Told{3}, net::InputSpans{odd, y, mask}, {z, sums}) == NET_INVALID_SIZES && z[0] == -1.0f);
  CHECK(model.run(net::Told{3}, net::InputSpans{x, y, mask}, {z, std::span(sums).first(29)}) == NET_WRONG_SIZE && z[0] == -1.0f);
  CHECK(model.run(net::Told{3}, net::InputSpans{x, y, mask}, {z, sums}) == NET_OK && z == expected->z && sums == expected->sums);
#endif
  return 0;
}
"""

ALONE_PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "net/net.hpp"

#define CHECK(condition) \
  if (!(condition)) { std::printf("line %d: %s\n", __LINE__, #condition); std::exit(1); }

int main() {
  net::Model model;
  const std::vector<float> x(2 * 8, 0.5f), y(2 * 6 * 2, 0.25f), mask(2 * (4 + 6), 0.0f);
  const net::Result found = model.run(net::Inputs{x, y, mask});
  CHECK(model.status() == NET_OK && found->z.size() == 2 * 4 * 2);
  CHECK(!model.run(net::Inputs{mask, y, x}) && model.status() == NET_INVALID_SIZES);
#if __cplusplus >= 202002L
  std::vector<float> z(found->z.size()), sums(2 * 10);
  CHECK(model.run(net::InputSpans{x, y, mask}, {z, sums}) == NET_OK && z == found->z && sums == found->sums);
#endif
  return 0;
}
"""


def two_lengths():
    """Two inputs of two sizes each, and one of the sum of these."""
    model = Model()
    model.inputs = ["float[batch,length,2] x", "float[batch,rows,2] y", "float[batch,joined] mask"]
    model.outputs = ["float[batch,length,2] z", "float[batch,joined] sums"]
    model.constants = ["int64[1] last = {2}"]
    model.nodes = ["all = Concat<axis = 1>(x, y)", "line = ReduceSum<keepdims = 0>(all, last)", "sums = Add(line, mask)", "z = Exp(x)"]
    return model


def case_wrapper(world):
    """The wrapper finds in the inputs' numbers of elements what they tell, and is told the rest; in multiples, too."""
    others = ["--dim", "length=0..8:2", "--dim", "rows=1..20", "--dim", "joined=length+rows"]
    for name, batch, program in (("told", "batch=1..3", TOLD_PROGRAM), ("alone", "batch=2", ALONE_PROGRAM)):
        out = compiled(world, name, two_lengths(), "--dim", batch, *others)
        built(world, out)
        run_caller(world, out, program)
    header = (world.folder / "told" / "include" / "net" / "net.hpp").read_text()
    check("model.run(net::Told{3}, {x, y, mask}))" in header, "the example of the header")
    readme = words_of(world.folder / "told" / "README.md")
    contains(readme, "which tell the sizes of the run but those in `Told`", "model.run(net::Told{3}, {x, y, mask})")
    check("sizes_of" not in (compiled(world, "nothing", image(), "--dim", "height=2", "--dim", "width=4") / "include" / "net" /
                             "net.hpp").read_text(), "sizes of a project of one size")


def case_data(world):
    """Cases from files run at the sizes of their inputs, of which the states' count."""
    model = cache("batch,n,4", ["joined = Concat<axis = 1>(old, new)", "y = Exp(joined)"])
    model.outputs.append("float[batch,n,4] y")
    path = world.path("cache.onnxtxt")
    path.write_text(model.text())
    options = ["--dim", "batch=1..3", "--dim", "past=0..9", "--dim", "rows=1..5", "--dim", "past+rows=1..12"]

    def archive(file, **tensors):
        with zipfile.ZipFile(file, "w") as out:
            for name, (shape, values) in tensors.items():
                out.write(write_npy(world.path("element.npy"), "float32", shape, values), f"{name}.npy")

    def data(name, *cases):
        folder = world.path(name)
        for i, (batch, past, rows, change) in enumerate(cases):
            inner = folder / f"test_data_set_{i}"
            inner.mkdir(parents=True)
            old = [[j / 50 for j in range(past * 4)] for _ in range(batch)]
            new = [[-j / 50 - b for j in range(rows * 4)] for b in range(batch)]
            joined = [value for b in range(batch) for value in old[b] + new[b]]
            archive(inner / "inputs.npz", old=((batch, past, 4), sum(old, [])), new=((batch, rows, 4), sum(new, [])))
            shape = (batch, past + rows, 4)
            archive(inner / "outputs.npz", joined=(shape, joined), y=(shape, [math.exp(value) + change for value in joined]))
        return folder

    right = data("right", (1, 0, 5, 0), (3, 7, 2, 0), (3, 7, 2, 0), (2, 9, 1, 0))
    for states in ([], ["--state", "old=joined"]):
        shown = world.run([world.gcompile, "verify", path, "--data", right, *options, *states])
        contains(shown.stdout + shown.stderr, "batch=3, past=7, rows=2", "verified: 8 tensors are right")
    world.run([world.gcompile, "verify", path, "--data", right, "--layers", "-q", *options])
    for name, case, text, status in (("off", (1, 2, 3, 0.5), "MISMATCH", 3), ("high", (1, 9, 4, 0), "does not run at batch=1, past=9", 4),
                                     ("wide", (4, 1, 1, 0), "does not run at batch=4", 4)):
        done = world.run([world.gcompile, "verify", path, "--data", data(name, case), *options], status=status)
        contains(done.stdout + done.stderr, text)


if __name__ == "__main__":
    run_main(globals())
