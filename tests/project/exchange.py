#!/usr/bin/env python3
"""Weights that are exchanged without a build, and files of different runs that are mixed.

    exchange.py --gcompile GCOMPILE [CASE...]
"""

import random
import re
import shutil

from support import check, contains, equal, manifest, run_main, tree

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
net (float[1, 3, 9, 8] image, float[2, 12] x) => (float[1, 4, 9, 8] y, float[2, 5] z, float[2, 1] s, float[2, 5] g)
<{constants}, float root = {{1.4142135}}, float half = {{0.5}}>
{{
  c = Conv <pads = [1, 1, 1, 1]> (image, w, b)
  p = PRelu (c, slope)
  n = BatchNormalization (p, scale, shift, mean, variance)
  y = PRelu (n, slopes)
  h = MatMul (x, first)
  hb = Add (h, hidden_bias)
  r = PRelu (hb, leak)
  m = Mul (r, gain)
  z = Gemm <transB = 1> (m, second, z_bias)
  one = Gemm (m, single, single_bias)
  t = Mul (one, temperature)
  s = Tanh (t)
  q = Div (z, root)
  e = Erf (q)
  p1 = Add (e, half)
  g = Mul (z, p1)
}}
"""
SHAPES = {"w": (4, 3, 3, 3), "b": (4,), "slope": (1,), "scale": (4,), "shift": (4,), "mean": (4,), "variance": (4,),
          "slopes": (4, 1, 1), "first": (12, 6), "hidden_bias": (6,), "leak": (1,), "gain": (), "second": (5, 6), "z_bias": (5,),
          "single": (6, 1), "single_bias": (1,), "temperature": (1,)}


def model(seed, hidden=6):
    """Trained from another seed; slopes begin as multiples of 0.25, as untrained ones do."""
    values, rows = random.Random(seed), []
    for name, shape in SHAPES.items():
        shape = tuple(hidden if size == 6 else size for size in shape)
        count = 1
        for size in shape:
            count *= size
        low = 0.5 if name == "variance" else -1
        numbers = [round(values.uniform(low, 1), 9) for _ in range(count)]
        if seed == 0 and name in ("slope", "leak"):
            numbers = [0.25 * (1 + len(rows))]
        rows.append(f"float[{', '.join(map(str, shape))}] {name} = {{{', '.join(map(str, numbers))}}}" if shape else
                    f"float {name} = {{{numbers[0]}}}")
    return MODEL.format(constants=", ".join(rows))


def emitted(world, name, text, *options):
    world.path(f"{name}.onnxtxt").write_text(text)
    world.compile(world.path(f"{name}.onnxtxt"), world.path(name), "--name", "net", *options)
    return world.path(name)


def outputs(world, runner, label, *options, status=0):
    place = world.path(f"out_{label}")
    said = world.run([runner, "--random", "3", "--output-dir", place, *options], status=status).stderr
    return ({path.name: path.read_bytes() for path in sorted(place.glob("*.npy"))}, said)


def case_without_a_build(world):
    """What was built for one training runs another, as its own project does; what fits nothing is refused."""
    old, new = (emitted(world, name, model(seed), "--weights", "file") for name, seed in (("old", 0), ("new", 1)))
    other = emitted(world, "other", model(1, hidden=7), "--weights", "file")
    runners = {}
    for place in (old, new):
        world.run(["make", "-j2", "-C", place, "build/net_run", "CXXFLAGS=-O1"])
        runners[place.name] = place / "build" / "net_run"
    # From any folder, as make built it.
    before, right = outputs(world, runners["old"], "old")[0], outputs(world, runners["new"], "new")[0]
    check(before and before != right, "both trainings give the same")
    taken = new / "data" / "net.weights.bin"
    equal(outputs(world, runners["old"], "taken", "--weights", taken)[0], right, "with the weights of the other training")
    equal(manifest(old, "net")["weights_structure"], manifest(new, "net")["weights_structure"], "structure")
    check(manifest(old, "net")["weights_structure"] != manifest(other, "net")["weights_structure"], "one structure for two")
    contains(outputs(world, runners["old"], "other", "--weights", other / "data" / "net.weights.bin", status=1)[1], "weights")
    content = taken.read_bytes()
    for at in (0, 8, 17, 24, 33, 64, len(content) // 2, len(content) - 1):
        damaged = world.path("damaged.bin")
        damaged.write_bytes(content[:at] + bytes([content[at] ^ 4]) + content[at + 1:])
        found, said = outputs(world, runners["old"], f"damaged_{at}", "--weights", damaged, status=1)
        contains(said, "weights")
        check(not found, f"outputs with damage at {at}")


def changed(before, after):
    first, second = tree(before), tree(after)
    equal(sorted(first), sorted(second), "files")
    return {path for path in first if first[path] != second[path]}


def case_texts(world):
    """Training changes no source, for either target."""
    for target in ("cpp", "cuda"):
        for weights in ("incbin", "array", "file", "extern"):
            places = [emitted(world, f"{target}_{weights}_{seed}", model(seed), "--target", target, "--weights", weights,
                              "--selftest") for seed in (0, 1)]
            data = "src/net_weights.c" if weights == "array" else "data/net.weights.bin"
            text = "".join(path.read_text() for path in places[0].glob("src/*kernels*"))
            contains(text, "0.70710", "0.5f")  # the root by its reciprocal
            equal(changed(*places), {data, "data/net.golden.bin", "meta/net.json", "report.html"}, f"{target}, {weights}")


def sources_of(project):
    return [path.relative_to(project) for folder in ("src", "apps", "tests", "include/net") if (project / folder).exists()
            for path in sorted((project / folder).iterdir()) if path.suffix in (".h", ".hpp", ".cpp", ".cu")]


PARTS = """<ir_version: 8, opset_import: ["" : 17]>
net (float[6, 8] x, float[6, 5] v) => (float[13, 6] y, float[6, 8] n, float[9, 10] p)
<float[1] first = {0.12345678}, float[1] second = {0.7654321}, float[1] third = {-0.31415927}, float[1] fourth = {1.2345679},
 int64[4] pads = {1, 1, 2, 1}, float[1] fill = {0.4444449}>
{
  a = Mul (x, first)
  b = Mul (v, second)
  c = Concat <axis = 1> (a, b)
  d = Transpose <perm = [1, 0]> (c)
  y = Add (d, third)
  e = Mul (x, fourth)
  n = Softmax (e)
  q = Add (x, third)
  p = Pad (q, pads, fill)
}
"""


def case_parts(world):
    """Numbers of kernels with several parts and stages, for either target: each part reads its own."""
    world.path("parts.onnxtxt").write_text(PARTS)
    for options in ((), ("--target", "cuda", "--emulate")):
        world.run([world.gcompile, "verify", world.path("parts.onnxtxt"), *options])
    project = emitted(world, "parts", PARTS)
    text = "".join(path.read_text() for path in project.glob("src/*kernels*"))
    for number in ("0.12345678f", "0.7654321f", "0.31415927f", "1.2345679f", "0.4444449f"):
        check(number not in text, f"{number} is a literal")


PARTS_OF_A_WIDTH = """<ir_version: 8, opset_import: ["" : 22]>
net (TYPE[6, 8] x) => (TYPE[9, 10] p, TYPE[6, 8] s, TYPE[6, 8] m, float[6, 8] c)
<int64[4] pads = {1, 1, 2, 1}, float[1] fill = {{fill}}, float other = {{other}}, float[1] scale = {{scale}}, float[1] slope = {{slope}}>
{
  fill_wide = Cast <to = NUMBER> (fill)
  other_wide = Cast <to = NUMBER> (other)
  scale_wide = Cast <to = NUMBER> (scale)
  slope_wide = Cast <to = NUMBER> (slope)
  p = Pad (x, pads, fill_wide)
  zero = Sub (x, x)
  above = Greater (x, zero)
  s = Where (above, x, other_wide)
  m = Mul (x, scale_wide)
  a = PRelu (x, slope_wide)
  c = Cast <to = 1> (a)
}
"""


def case_of_other_widths(world):
    """What training changes is no literal where it is a number of 16 or 64 bits, on the CPU and the GPU, moved or computed with."""
    for type_name, number in (("float16", "10"), ("bfloat16", "16"), ("double", "11")):
        text = PARTS_OF_A_WIDTH.replace("TYPE", type_name).replace("NUMBER", number)
        trained = [text.replace("{fill}", values[0]).replace("{other}", values[1]).replace("{scale}", values[2])
                   .replace("{slope}", values[3]) for values in (("0.4444", "-0.7171", "1.2345", "0.2525"),
                                                                 ("0.5678", "0.3131", "-0.8765", "0.1818"))]
        for options in ((), ("--exact",), ("--target", "cuda")):
            label = type_name + "".join(options)
            places = [emitted(world, f"{label}_{i}", one, "--weights", "file", *options) for i, one in enumerate(trained)]
            equal(changed(*places), {"data/net.weights.bin", "meta/net.json", "report.html"}, label)
        world.path(f"{type_name}.onnxtxt").write_text(trained[0])
        options = ("--exact",) if number == "10" else ("--target", "cuda", "--emulate")
        world.run([world.gcompile, "verify", world.path(f"{type_name}.onnxtxt"), *options])


def mixed(project, other, path):
    """The files of one project with one of another's in it, in a folder of their own."""
    place = project.parent / "mixed"
    shutil.rmtree(place, ignore_errors=True)
    shutil.copytree(project, place)
    shutil.copy(other / path, place / path)
    return place


def check_that_none_mix(world, label, one, two):
    """Wherever two projects differ, the preprocessor stops with a source of the other; how many of them differ."""
    units, differing = [path for path in sources_of(one) if path.suffix in (".cpp", ".cu")], 0
    for path in sources_of(one):
        if (one / path).read_bytes() == (two / path).read_bytes():
            continue
        differing += 1
        place, stopped = mixed(one, two, path), 0
        for unit in [path] if path in units else units + [path]:
            done = world.run(["g++", "-E", "-x", "c++", "-std=c++20", f"-I{place}", f"-I{place}/include", f"-I{place}/apps",
                              "-o", "/dev/null", place / unit], status=None)
            stopped += "files of different runs of gcompile are mixed here" in done.stderr
        check(stopped > 0, f"{label}: nothing tells that {path} is of another run")
    return differing


def case_mixed_runs(world):
    """Every generated source and header knows its run; what is the same in two runs belongs to both."""
    for target, sizes in (("cpp", ()), ("cuda", ()), ("cpp", ("--shape", "x:Nx12", "--dim", "N=1,2"))):
        options = ("--target", target, *sizes, "--selftest")
        texts = [model(1, hidden=hidden).replace("float[2, 12] x", "float[N, 12] x" if sizes else "float[2, 12] x")
                 .replace("[2, ", "[N, " if sizes else "[2, ") for hidden in (6, 7)]
        label = target + ("_sizes" if sizes else "")
        one, two = (emitted(world, f"{label}_{i}", text, *options) for i, text in enumerate(texts))
        for path in sources_of(one):
            check(path.name == "net_files.h" or re.search(r"#(if|define) NET_(INTERFACE_MARK|MARK_OF_\w+) ", (one / path).read_text()),
                  f"{label}: {path} has no mark")
        check(check_that_none_mix(world, label, one, two) > 4, f"{label}: one in the other")


LEAKY = """<ir_version: 8, opset_import: ["" : 17]>
net (float[8, 12] x) => (float[8, 12] y) { y = LeakyRelu <alpha = {alpha}> (x) }
"""


def case_small_changes(world):
    """A change within one kernel changes that source and the list of digests alone, and they do not mix."""
    for target, kernels in (("cpp", "src/net_kernels.cpp"), ("cuda", "src/net_kernels.cu")):
        one, two = (emitted(world, f"{target}_{alpha}", LEAKY.replace("{alpha}", alpha), "--target", target) for alpha in ("0.1", "0.3"))
        sources = {str(path) for path in sources_of(one)}
        found = changed(one, two) & sources
        equal(found - {"apps/layers.h"}, {kernels, "src/net_files.h"}, "sources")
        equal(check_that_none_mix(world, target, one, two), len(found), "files that differ")


if __name__ == "__main__":
    run_main(globals())
