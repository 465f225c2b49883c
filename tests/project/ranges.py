#!/usr/bin/env python3
"""Sizes with bounds: one project for all of them, right at every size, as small as the project of the largest.

    ranges.py --gcompile GCOMPILE [CASE...]
"""

import subprocess

from families import Model
from sizes import built, compiled, encoder, image, run_caller
from support import check, contains, equal, manifest, run_main

BOUNDS = ["--dim", "batch=1..3", "--dim", "length=1..19@7"]


def verified(world, name, model, *options):
    path = world.folder / f"{name}.onnxtxt"
    path.write_text(model.text())
    shown = world.run([world.gcompile, "verify", path, *options])
    return (shown.stdout + shown.stderr).splitlines()


def case_encoder(world):
    """Corners and sizes between, with two threads and one; the arena is that of the largest sizes alone."""
    lines = verified(world, "encoder", encoder(), *BOUNDS, "--threads", "2")
    for corner in ("batch=1, length=1", "batch=3, length=1", "batch=1, length=19", "batch=3, length=19"):
        check(any(corner in line and line.startswith("ok") for line in lines), f"nothing at {corner}: {lines}")
    equal(sum("y float32" in line for line in lines), 8, "sizes that were tried")
    out = compiled(world, "bounded", encoder(), *BOUNDS)
    alone = compiled(world, "alone", encoder(), "--dim", "batch=3", "--dim", "length=19")
    equal(manifest(out, "net")["weights_bytes"], manifest(alone, "net")["weights_bytes"], "weights")
    check(manifest(out, "net")["arena_bytes"] <= manifest(alone, "net")["arena_bytes"], "arena above that of the largest sizes")
    check((out / "gcrt" / "cpu" / "attention.h").exists(), "scores of attention in memory")
    typical = compiled(world, "typical", encoder(), "--dim", "batch=1..3", "--dim", "length=1..19@19")
    equal(manifest(out, "net")["arena_bytes"], manifest(typical, "net")["arena_bytes"], "arena by another typical size")


def case_empty(world):
    """Nothing of a size may be there at all."""
    verified(world, "empty", encoder(), "--dim", "batch=0..2", "--dim", "length=0..9")


def case_image(world):
    verified(world, "image", image(), "--dim", "height=2..14:2", "--dim", "width=4..12:4")


def kinds():
    """What the prover of sizes has to know: extremes that cancel, long products, remainders of negated sizes, rows of a mask
    that is expanded, parts of which the last is smaller, positions in a concatenation of two open axes."""
    model = Model(opset=18)
    model.inputs = ["float[b,2,s,4] q", "float[b,2,s,4] k", "float[b,2,s,4] v", "float[b,1,1,s] seen", "float[2,n] scores",
                    "float[d,3] parts", "float[2,w] row", "float[1,2,h,x] image", "float[b,4,h,x] map", "float[e,4,4] rows"]
    model.outputs = ["float[o1,o2,o3,o4] attended", "float[2,o5] best", "float[o6,3] part0", "float[o7,3] part3",
                     "float[2,o8] padded", "float[1,o9] pixels", "float[o10,o11,4] mixed", "float[o12,2,8] heads"]
    model.constants = ["int64[1] one = {1}", "int64[1] two = {2}", "int64[1] three = {3}", "int64[1] minus = {-1}", "int64[1] four = {4}",
                       "int64[1] twenty = {20}", "int64[1] zero = {0}", "float half = {0.5}", "int64[3] last = {0,2,8}",
                       "int64[3] as_rows = {0,4,-1}"]
    model.constant("filter", "float", (3, 2, 3, 3))
    model.nodes = [
        "bs = Shape<start = 0, end = 1>(q)", "ss = Shape<start = 2, end = 3>(q)", "wide = Concat<axis = 0>(bs, one, ss, ss)",
        "mask = Expand(seen, wide)", "kt = Transpose<perm = [0,1,3,2]>(k)", "products = MatMul(q, kt)",
        "scaled = Mul(products, half)", "masked = Add(scaled, mask)", "weights = Softmax<axis = -1>(masked)",
        "attended = MatMul(weights, v)",
        "count = Shape<start = 1, end = 2>(scores)", "most = Min(twenty, count)", "best, places = TopK<axis = 1>(scores, most)",
        "part0, part1, part2, part3 = Split<axis = 0, num_outputs = 4>(parts)",
        "width = Shape<start = 1, end = 2>(row)", "negated = Neg(width)", "missing = Mod(negated, four)",
        "pads = Concat<axis = 0>(zero, zero, zero, missing)", "padded = Pad(row, pads)",
        "strided = Conv<strides = [2,2]>(image, filter)", "flat = Flatten<axis = 1>(strided)", "pixels = Relu(flat)",
        "tokens = Reshape(map, as_rows)", "turned = Transpose<perm = [0,2,1]>(tokens)", "gram = MatMul(turned, tokens)",
        "shares = Softmax<axis = -1>(gram)", "mixed = MatMul(shares, turned)",
        "heads = Reshape(rows, last)"]
    return model


def case_kinds(world):
    sizes = ["b=1..2", "s=1..9", "n=1..40", "d=1..7", "w=5..11", "h=8..13", "x=8..13", "e=1..3"]
    options = [word for size in sizes for word in ("--dim", size)]
    verified(world, "kinds", kinds(), *options)
    world.run([world.gcompile, "check", world.folder / "kinds.onnxtxt", "--target", "cuda", *options])


def case_assumed(world):
    """What is neither so at all sizes nor at none is checked by the run, and said."""
    model = Model(opset=18)
    model.inputs = ["float[1,2,e,4] image", "float[2,g] gated", "float[r,3] data", "int64[t,3] places", "float[c,4] left",
                    "float[f,4] right", "float[2,m] ranked"]
    model.outputs = ["float[1,8,o1,2] blocks", "float[2,o2] glu", "float[o3,3] found", "float[o4,4] sum", "float[2,3] top"]
    model.constants = ["int64[1] three = {3}"]
    model.nodes = ["blocks = SpaceToDepth<blocksize = 2>(image)", "a, b = Split<axis = 1, num_outputs = 2>(gated)",
                   "s = Sigmoid(b)", "glu = Mul(a, s)", "found = GatherElements<axis = 1>(data, places)", "sum = Add(left, right)",
                   "top, at = TopK<axis = 1>(ranked, three)"]
    sizes = ["e=2..5", "g=2..5", "r=1..3", "t=1..3", "c=1..3", "f=1..3", "m=2..4"]
    options = [word for size in sizes for word in ("--dim", size)]
    path = world.folder / "assumed.onnxtxt"
    path.write_text(model.text())
    for target in ("cpp", "cuda"):
        said = world.run([world.gcompile, "check", path, "--target", target, *options]).stderr
        contains(said, "warning[W0408]", "2 x floor(e / 2) = e", "t <= r", "c = f", "3 <= m")
    model.inputs = [text.replace("int64[t,3]", "int64[r,3]") for text in model.inputs]
    verified(world, "assumed_alike", model, "--dim", "e=2..4:2", "--dim", "g=2..4:2", "--dim", "r=1..3", "--dim", "c=1..3",
             "--dim", "f=1..3", "--dim", "m=3..4")


def case_deep(world):
    """A product so deep that its sums would wait in memory between parts: what is planned holds whatever is typical."""
    model = Model()
    model.inputs = ["float[rows,8192] x"]
    model.outputs = ["float[rows,40] y"]
    model.constant("w", "float", (8192, 40))
    model.nodes = ["y = MatMul(x, w)"]
    arenas = {manifest(compiled(world, f"deep_{typical}", model, "--dim", f"rows=1..96@{typical}"), "net")["arena_bytes"]
              for typical in (1, 8, 96)}
    equal(len(arenas), 1, f"arenas {arenas}")
    verified(world, "deep", model, "--dim", "rows=1..96@8")


def shapes():
    """A batch and a length joined and parted, a slice up to a size, a sum of two axes, positions of a table, and data made of
    sizes."""
    model = Model()
    model.inputs = ["float[batch,past,6] old", "float[batch,rows,6] new"]
    model.outputs = ["float[n,6] flat", "float[batch,total,3,2] parted", "float[batch,rows,6] latest", "float[batch,total,6] placed",
                     "float[batch,1] mean", "float[batch,6,total] turned", "float[rows,rows] lower"]
    model.constant("table", "float", (40, 6))
    model.constants += ["int64 zero = {0}", "int64 one = {1}", "int64[1] axis = {0}", "int64[1] axis1 = {1}",
                        "int64[2] joined = {-1, 6}", "int64[4] parts = {0, 0, 3, 2}", "int64[1] big = {9223372036854775807}",
                        "int64[2] both = {1, 2}"]
    model.nodes = [
        "all = Concat<axis = 1>(old, new)", "flat = Reshape(all, joined)", "parted = Reshape(all, parts)",
        "shape = Shape(all)", "old_shape = Shape(old)", "new_shape = Shape(new)",
        "past1 = Slice(old_shape, axis1, joined1)", "latest = Slice(all, past1, big, axis1)",
        "total = Gather<axis = 0>(shape, one)", "positions = Range(zero, total, one)", "rows_of = Gather<axis = 0>(table, positions)",
        "placed = Add(all, rows_of)", "count = Cast<to = 1>(total)", "sums = ReduceSum<keepdims = 0>(all, both)",
        "sum1 = Unsqueeze(sums, axis1)", "mean = Div(sum1, count)", "turned = Transpose<perm = [0, 2, 1]>(all)",
        "rows = Gather<axis = 0>(new_shape, one)", "rows1 = Unsqueeze(rows, axis)", "square = Concat<axis = 0>(rows1, rows1)",
        "ones = ConstantOfShape<value = float[1] {1}>(square)", "lower = Trilu<upper = 0>(ones)"]
    model.constants.append("int64[1] joined1 = {2}")
    return model


def case_shapes(world):
    verified(world, "shapes", shapes(), "--dim", "batch=0..2", "--dim", "past=0..20", "--dim", "rows=1..20", "--dim", "past+rows=1..24")


def lines():
    """Running sums and the largest of lines of any length, and images that grow."""
    model = Model()
    model.inputs = ["float[batch,length,5] x", "float[batch,4,length,6] image"]
    model.outputs = ["float[batch,length,5] sums", "float[batch,length,5] across", "float[batch,3,5] best", "int64[batch,3,5] at",
                     "float[batch,6,rows,columns] grown"]
    model.constant("taps", "float", (4, 6, 3, 3))
    model.constants += ["int64 one = {1}", "int64 two = {2}", "int64[1] three = {3}"]
    model.nodes = ["sums = CumSum(x, one)", "across = CumSum(x, two)", "best, at = TopK<axis = 1>(x, three)",
                   "grown = ConvTranspose<strides = [2, 2], pads = [1, 1, 1, 1]>(image, taps)"]
    return model


def case_lines(world):
    verified(world, "lines", lines(), "--dim", "batch=1..3", "--dim", "length=3..40")


def through_floats():
    """Sizes that a model computes in floats, and what is decided by their multiples."""
    model = Model(opset=20)
    model.inputs = ["float[batch,length,4] x", "float[batch,3,length,6] image", "int64[batch] lengths", "float[16] table"]
    model.outputs = ["float[length] angles", "float[few] head", "float[batch,3,twice,12] grown", "float[batch,blocks,4] padded",
                     "float[batch,length,4] rolled", "float[batch,3,length,6] local", "float[length,batch,4] reversed"]
    model.constants = ["int64[1] zero = {0}", "int64[1] one = {1}", "int64[1] two = {2}", "int64[1] back = {-1}", "int64[1] wide = {12}",
                       "float nothing = {0}", "float step = {1}", "float[1] most = {8}", "float[1] half = {0.5}", "float[1] four = {4}",
                       "float[1] third = {3}", "int64[4] none_before = {0, 0, 0, 0}", "int64[1] whole = {4}"]
    model.nodes = ["shape = Shape(x)", "size = Slice(shape, one, two)", "real = Cast<to = 1>(size)", "lead = Slice(shape, zero, one)",
                   # positions, as for rotations
                   "count = Squeeze(real)", "angles = Range(nothing, count, step)",
                   # clamped, as optimisers do it where Min took floats alone
                   "clamped = Min(real, most)", "end = Cast<to = 7>(clamped)", "head = Slice(table, zero, end)",
                   # a scale
                   "quarters = Div(real, half)", "floored = Floor(quarters)", "rows = Cast<to = 7>(floored)",
                   "channels = Constant<value_ints = [3]>()", "sizes = Concat<axis = 0>(lead, channels, rows, wide)",
                   'grown = Resize<mode = "nearest">(image, , , sizes)',
                   # blocks of three
                   "parts = Div(real, third)", "whole_parts = Ceil(parts)", "blocks = Cast<to = 7>(whole_parts)",
                   "three = Cast<to = 7>(third)", "held = Mul(blocks, three)", "missing = Sub(held, size)",
                   "nothing_else = Constant<value_ints = [0]>()", "pads = Concat<axis = 0>(none_before, missing, nothing_else)",
                   "padded = Pad(x, pads)",
                   # the last element comes first
                   "at = Mod(back, size)", "last = Slice(x, at, size, one)", "others = Slice(x, zero, at, one)",
                   "rolled = Concat<axis = 1>(last, others)",
                   "local = LRN<size = 3>(image)", "turned = Transpose<perm = [1, 0, 2]>(x)", "reversed = ReverseSequence(turned, lengths)"]
    return model


def case_through_floats(world):
    verified(world, "through_floats", through_floats(), "--dim", "batch=1..3", "--dim", "length=1..20")


def integers():
    """A product between quantised tensors, and one of rows that are quantised when they come."""
    model = Model()
    model.inputs = ["float[batch,length,16] x"]
    model.outputs = ["float[batch,length,24] y", "float[batch,length,24] z"]
    weights = ", ".join(str(i * 37 % 255 - 127) for i in range(16 * 24))
    model.constants = [f"int8[16,24] w = {{{weights}}}", "float step = {0.02}", "uint8 zero = {128}", "float wide = {0.5}",
                       "float w_step = {0.01}", "int8 w_zero = {0}"]
    model.nodes = ["q = QuantizeLinear(x, step, zero)", "d = DequantizeLinear(q, step, zero)",
                   "w_real = DequantizeLinear(w, w_step, w_zero)", "p = MatMul(d, w_real)", "o = QuantizeLinear(p, wide, zero)",
                   "y = DequantizeLinear(o, wide, zero)", "r, r_step, r_zero = DynamicQuantizeLinear(x)",
                   "sums = MatMulInteger(r, w, r_zero, w_zero)", "real = Cast<to = 1>(sums)", "scaled = Mul(real, r_step)",
                   "z = Mul(scaled, w_step)"]
    return model


def case_integers(world):
    verified(world, "integers", integers(), "--dim", "batch=1..3", "--dim", "length=1..20")


def sequences():
    """Both directions of a recurrence with lengths of their own, the largest of each line, running sums, edges of every kind, an
    equation; sizes that the caller, a scatter and a branch want in memory."""
    model = Model(opset=19)
    model.inputs = ["float[steps,batch,5] x", "int32[batch] lengths", "bool turn"]
    model.outputs = ["float[steps,2,batch,7] y", "float[2,batch,7] last", "float[steps,batch,3] best", "int64[steps,batch,3] places",
                     "float[m,batch,5] first", "float[steps,batch,5] sums", "float[a,b,9] edges", "float[c,d,5] mirrored",
                     "float[batch,steps,steps] scores", "int64[3] shape", "float[9] placed", "int64[3] kept"]
    for name, dims in (("w", (2, 28, 5)), ("r", (2, 28, 7)), ("b", (2, 56)), ("data", (9,))):
        model.constant(name, "float", dims)
    model.constants += ["int64[1] three = {3}", "int64 axis0 = {0}", "int64[6] pads = {2, 1, 0, 3, 0, 4}",
                        "int64[6] turned = {1, 0, 0, 2, 0, 0}", "float[1] update = {4.5}", "int64[1] front = {0}", "int64[1] next = {1}"]
    model.nodes = [
        'y, last, cell = LSTM<hidden_size = 7, direction = "bidirectional">(x, w, r, b, lengths)', "best, places = TopK<axis = -1>(x, three)",
        "shape = Shape(x)", "batches = Slice(shape, next, two)", "first, firsts = TopK<axis = 0, largest = 0>(x, batches)",
        "sums = CumSum(x, axis0)", 'edges = Pad<mode = "edge">(x, pads)', 'mirrored = Pad<mode = "reflect">(x, turned)',
        'scores = Einsum<equation = "sbi,tbi->bst">(x, x)', "placed = ScatterElements<axis = 0>(data, batches, update)",
        "kept = If (turn) <then_branch = g1 () => (int64[3] p) { p = Add(shape, shape) }, else_branch = g2 () => (int64[3] q) "
        "{ q = Identity(shape) }>"]
    model.constants.append("int64[1] two = {2}")
    return model


def case_sequences(world):
    lines = verified(world, "sequences", sequences(), "--dim", "steps=4..40@9", "--dim", "batch=1..3")
    check(any("steps=40, batch=3" in line and line.startswith("ok") for line in lines), f"nothing at the largest: {lines}")
    equal(sum(line.startswith("ok") for line in lines), 8 * 12, f"tensors: {lines}")
    arenas = {manifest(compiled(world, f"sequences_{typical}", sequences(), "--dim", f"steps=4..40@{typical}", "--dim", "batch=1..3"),
                       "net")["arena_bytes"] for typical in (4, 40)}
    equal(len(arenas), 1, f"arenas by typical size {arenas}")


C_PROGRAM = r"""
#include <cstdio>
#include <cstdlib>
#include <vector>
#include "net/net.hpp"

#define CHECK(condition) \
  if (!(condition)) { std::printf("line %d: %s\n", __LINE__, #condition); std::exit(1); }

int main() {
  net::Model model;
  CHECK(model.status() == NET_OK);
  const net_sizes good{6, 8}, off{7, 8}, low{0, 8}, high{6, 16};
  std::int64_t shape[NET_MAX_RANK] = {};
  CHECK(net_output_shape(&good, 0, shape) == NET_OK && shape[0] == 1 && shape[1] == 6 && shape[2] == 3 && shape[3] == 4);
  CHECK(net_input_shape(&good, 0, shape) == NET_OK && shape[2] == 6 && shape[3] == 8);
  for (const net_sizes& bad : {off, low, high}) {
    CHECK(net_output_shape(&bad, 0, shape) == NET_INVALID_SIZES && net_input_shape(&bad, 0, shape) == NET_INVALID_SIZES);
  }
  const std::vector<float> x(3 * 6 * 8, 0.5f);
  const net::Result found = model.run(good, net::Inputs{x});
  CHECK(model.status() == NET_OK && found->y.size() == 6 * 3 * 4);
  CHECK(!model.run(high, net::Inputs{x}) && model.status() == NET_INVALID_SIZES);
  std::vector<float> y(found->y.size(), -1.0f);
  CHECK(model.run(off, {x.data()}, {y.data()}) == NET_INVALID_SIZES);
  for (const float value : y) CHECK(value == -1.0f);
  CHECK(model.run(good, {x.data()}, {y.data()}) == NET_OK && y == found->y);
  return 0;
}
"""


def case_interface(world):
    out = compiled(world, "interface", image(), "--dim", "height=2..14:2", "--dim", "width=4..12:4", "--selftest")
    runner = built(world, out, "net_run", "net_bench", "net_selftest")
    world.run(["make", "-s", "-C", out, "ARCH=native", f"BUILD={out / 'build'}", "test"])
    check("Conv" in world.run([out / "build" / "net_bench", "--layers", "--repeat", "2", "--dim", "height=8"]).stdout, "no layers")
    refused = subprocess.run([runner, "--random", "1", "--dim", "height=3"], capture_output=True, text=True, check=False)
    equal(refused.returncode, 1, "exit code")
    check("2 to 14, a multiple of 2" in refused.stderr, refused.stderr)
    run_caller(world, out, C_PROGRAM)


def case_sum(world):
    """Two names of one axis: what is added to a concatenation is as long as it."""
    model = Model()
    model.inputs = ["float[past,4] x", "float[rows,4] y", "float[joined,4] z"]
    model.outputs = ["float[n,4] sum"]
    model.nodes = ["all = Concat<axis = 0>(x, y)", "sum = Add(all, z)"]
    bounds = ["--dim", "past=0..9", "--dim", "rows=1..5"]
    verified(world, "sum", model, *bounds, "--dim", "joined=past+rows")
    apart = subprocess.run([world.gcompile, world.folder / "sum.onnxtxt", "-o", world.folder / "apart", *bounds, "--dim",
                            "joined=1..14"], capture_output=True, text=True, check=False)
    equal(apart.returncode, 0, f"exit code: {apart.stderr}")
    check("runs at 50 of the 700 combinations" in apart.stderr, apart.stderr)
    check("--dim joined=past+rows where it is always that" in apart.stderr.replace("rows+past", "past+rows"), apart.stderr)


def case_one_or_more(world):
    """What a size of one makes another computation is refused, with the bounds that settle it, which are tried."""
    squeeze = Model()
    squeeze.inputs = ["float[b,t,5] x"]
    squeeze.outputs = ["float[any] y"]
    squeeze.nodes = ["s = Squeeze(x)", "y = Softmax<axis = 0>(s)"]
    cut = Model()
    cut.inputs = ["float[b,t,5] x"]
    cut.outputs = ["float[any] y"]
    cut.constants = ["int64[1] two = {2}", "int64[1] last = {99}", "int64[1] zero = {0}"]
    cut.nodes = ["rest = Slice(x, two, last, zero)", "y = Squeeze(rest)"]
    for name, model, options, good in (
            ("squeeze", squeeze, ["b=1..4", "t=3"], (["b=2..4", "t=3"], ["b=1", "t=3"])),
            ("squeeze", squeeze, ["b=2..4", "t=1..9"], (["b=2..4", "t=2..9"], ["b=2..4", "t=1"])),
            ("squeeze", squeeze, ["b=0..4", "t=3"], (["b=2..4", "t=3"], ["b=1", "t=3"])),
            ("cut", cut, ["b=2..8", "t=2..3"], (["b=4..8", "t=2..3"], ["b=3", "t=2..3"]))):
        path = world.folder / f"{name}.onnxtxt"
        path.write_text(model.text())
        for target in ("cpp", "cuda"):
            dims = [word for option in options for word in ("--dim", option)]
            refused = world.run([world.gcompile, "check", path, *dims, "--target", target], status=1).stderr
            for settled in good:
                changed = next(new for old, new in zip(options, settled) if old != new)
                check(f"--dim {changed}" in refused, refused)
                dims = [word for option in settled for word in ("--dim", option)]
                world.run([world.gcompile, "check", path, "--target", target, *dims])
    verified(world, "squeeze", squeeze, "--dim", "b=2..4", "--dim", "t=3")
    # An equality that the model needs settles it too.
    model = Model()
    model.inputs = ["float[b,t,5] x", "float[b,3] z"]
    model.outputs = ["float[any] y"]
    model.constants = ["int64[1] zero = {0}"]
    model.nodes = ["row = Squeeze(z, zero)", "s = Squeeze(x)", "y = Add(s, row)"]
    path = world.folder / "settled.onnxtxt"
    path.write_text(model.text().replace("5] x", "3] x"))
    world.run([world.gcompile, "check", path, "--dim", "b=1..4", "--dim", "t=2..4"])


def case_refused(world):
    """What sizes with bounds cannot have is told, by the node where it is one, and nothing is written."""
    model = Model()
    model.inputs = ["float[a,4] x", "float[b,4] y"]
    model.outputs = ["float[c,4] z"]
    model.nodes = ["z = Add(x, y)"]
    path = world.folder / "refused.onnxtxt"
    path.write_text(model.text())
    for options, text in ((["--dim", "a=1..4", "--dim", "a=2,3", "--dim", "b=1"], "--dim gives sizes for 'a' twice"),
                          (["--dim", "a=1..4", "--dim", "b=a+d"], "nothing gives 'd' a size"),
                          (["--dim", "a=1..4", "--dim", "b=1", "--dim", "bb=a+1"], "--dim bb: no input has a dimension of that name"),
                          (["--dim", "a=1..4", "--dim", "b=a+1", "--dim", "b=a+2"], "--dim is given twice for 'b'"),
                          (["--dim", "a=4..1", "--dim", "b=1"], "not of the form"),
                          (["--dim", "a=5..7:4", "--dim", "b=1"], "multiple"),
                          (["--dim", "a=1..4@9", "--dim", "b=1"], "typical"),
                          (["--dim", "a=1..4", "--dim", "a+q=1..4", "--dim", "b=1"], "no size of its own"),
                          (["--dim", "a=2..4", "--dim", "b=6..8"], "do not broadcast")):
        result = subprocess.run([world.gcompile, path, "-o", world.folder / "refused", *options], capture_output=True, text=True,
                                check=False)
        check(result.returncode in (1, 2) and text in result.stderr, f"{options}: {result.returncode} {result.stderr}")
        check(not (world.folder / "refused").exists(), "something was written")
    # Rows of a table of positions: there are only so many.
    model = Model()
    model.inputs = ["float[s,2] x"]
    model.outputs = ["float[t,2] z"]
    model.constants = ["float[3,2] table = {1, 2, 3, 4, 5, 6}", "int64[1] zero = {0}"]
    model.nodes = ["n = Shape<end = 1>(x)", "rows = Slice(table, zero, n)", "z = Add(x, rows)"]
    path.write_text(model.text())
    result = world.run([world.gcompile, path, "-o", world.folder / "narrowed", "--dim", "s=1..4"])
    check("give s an upper bound of 3" in result.stderr, result.stderr)
    world.compile(path, world.folder / "bounded", "--dim", "s=1..3")


if __name__ == "__main__":
    run_main(globals())
