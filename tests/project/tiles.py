#!/usr/bin/env python3
"""Programs that multiply in the tile unit of x86-64, as far as a machine without one can tell: with the unit
emulated they compute what they should, and a library of several levels takes the level that has it where the processor
and the system do.

    tiles.py --gcompile GCOMPILE [CASE...]
"""

import math
import platform
import re
import shutil

from families import Model
from support import WARNINGS, Skip, check, compilers, contains, equal, library_levels, read_npy, run_main, tree, words_of

LEVEL = "x86_64_v4_amx"
EMULATED = "-DGCRT_EMULATE_TILES"


def network():
    """A quantised convolutional network: windows whose runs of channels fill steps of words and do not, strides, dilations, a
    residual sum, a stem whose windows are gathered, signed and unsigned bytes."""
    model = Model()
    model.inputs, model.outputs = ["uint8[1,3,29,31] x"], ["uint8[1,72,8,4] y"]
    model.constants = [f"float {name} = {{{value}}}" for name, value in
                       (("s", 0.02), ("w", 0.01), ("t", 0.9), ("u", 0.5))]
    model.constants += ["uint8 z = {131}", "int8 i = {-3}", "int8 o = {0}"]
    for name, shape in (("stem", (48, 3, 5, 5)), ("window", (48, 48, 3, 3)), ("down", (72, 48, 3, 3)),
                        ("point", (72, 48, 1, 1)), ("again", (72, 72, 3, 3))):
        model.integers(f"{name}_w", "int8", shape, -64, 64)
        model.integers(f"{name}_b", "int32", shape[:1], -5000, 5000)

    def conv(result, x, zero, name, scale, to, attributes):
        return f"{result} = QLinearConv<{attributes}>({x}, s, {zero}, {name}_w, w, o, {scale}, {to}, {name}_b)"

    same = "pads = [1, 1, 1, 1]"
    model.nodes = [conv("a", "x", "z", "stem", "t", "z", "strides = [2, 2], pads = [2, 2, 2, 2]"),
                   conv("b", "a", "z", "window", "t", "i", "dilations = [1, 2], pads = [1, 2, 1, 2]"),
                   conv("c", "b", "i", "down", "t", "z", same + ", strides = [2, 2]"),
                   conv("d", "b", "i", "point", "t", "z", "strides = [2, 2]"),
                   "c_real = DequantizeLinear(c, s, z)", "d_real = DequantizeLinear(d, s, z)",
                   "sum = Add(c_real, d_real)", "low = Relu(sum)", "e = QuantizeLinear(low, s, z)",
                   conv("y", "e", "z", "again", "u", "z", same + ", strides = [1, 2]")]
    return model


def products():
    """Matrices by a constant one and by each other."""
    model = Model()
    model.inputs = ["uint8[2,35,77] a", "int8[2,77,50] b", "float[70,130] f"]
    model.outputs = ["int32[2,35,50] both", "int32[2,35,45] packed", "float[70,40] rounded"]
    model.integers("w", "int8", (77, 45), -128, 127)
    model.integers("v", "int8", (130, 40), -100, 100)
    model.constants += ["uint8 z = {131}", "int8 i = {-3}"]
    model.nodes = ["both = MatMulInteger(a, b, z, i)", "packed = MatMulInteger(a, w, z)",
                   "q, scale, zero = DynamicQuantizeLinear(f)", "sums = MatMulInteger(q, v, zero)",
                   "real = Cast<to = 1>(sums)", "rounded = Mul(real, scale)"]
    return model


def floats():
    """Matrices by a constant one and by each other, windows of few channels and of many, grouped and strided, a product that
    is cut in depth, and rows that are too few to be split."""
    model = Model()
    model.inputs = ["float[2,80,90] a", "float[2,90,70] b", "float[1,3,20,17] x", "float[3,90] few"]
    model.outputs = ["float[2,80,70] both", "float[2,80,100] packed", "float[1,72,10,9] y", "float[3,100] row"]
    for name, shape in (("w", (90, 100)), ("stem", (64, 3, 5, 5)), ("window", (128, 32, 3, 3)), ("point", (72, 128, 1, 1))):
        model.constant(name, "float", shape)
    model.nodes = ["both = MatMul(a, b)", "packed = MatMul(a, w)", "row = MatMul(few, w)",
                   "s = Conv<pads = [2, 2, 2, 2]>(x, stem)", "t = Relu(s)",
                   "u = Conv<group = 2, dilations = [1, 2], pads = [1, 2, 1, 2]>(t, window)",
                   "y = Conv<strides = [2, 2]>(u, point)"]
    return model


# Errors of floats() in units of the root mean square of an output, least and most: of its elements the largest.
PRECISIONS = {"bf16": (1e-3, 2e-2), "bf16x3": (5e-6, 5e-5), "bf16x6": (0, 5e-6)}


def written(world, name, model):
    path = world.path(f"{name}.onnxtxt")
    path.write_text(model.text())
    return path


def project_of(world, model, *options):
    project = world.path("project")
    world.compile(written(world, "model", model), project, "--name", "plain", *options)
    return project


def needs_x86():
    if platform.machine() not in ("x86_64", "AMD64"):
        raise Skip("the tile unit is of x86-64")


def outputs(world, project, label, arch, **variables):
    """What the runner of a library writes that make builds so."""
    build, folder = world.path(f"build_{label}"), world.path(f"outputs_{label}")
    world.run(["make", "-C", project, build / "plain_run", f"BUILD={build}", f"ARCH={arch}", "CXXFLAGS=-O1",
               *(f"{name}={value}" for name, value in variables.items())])
    world.run([build / "plain_run", "--random", "1", "--output-dir", folder])
    return tree(folder)


def verify_emulated(world, model, *options):
    path = written(world, "model", model)
    for compiler in compilers():
        world.run([world.gcompile, "verify", path, "-q", *options, "--cxx",
                   f"{compiler} {EMULATED} -DGCRT_VECTOR_BYTES=64"])


def needs_vnni():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        if "avx512_vnni" not in file.read().split():
            raise Skip("the level with tiles has AVX-512, which this machine has not")


def case_network(world):
    verify_emulated(world, network())


def case_products(world):
    verify_emulated(world, products())


def case_floats(world):
    for precision in PRECISIONS:
        verify_emulated(world, floats(), "--precision", precision)


def case_floats_of_levels(world):
    """The level with tiles errs as --precision says, and all others compute what they compute without it."""
    needs_x86()
    exact = project_of(world, floats())
    check(LEVEL not in (exact / "Makefile").read_text(), "floats are multiplied in tiles unasked")
    found = outputs(world, exact, "exact", "x86-64-v3")
    projects = {}
    for precision in PRECISIONS:
        projects[precision] = world.path(precision)
        world.compile(world.path("model.onnxtxt"), projects[precision], "--name", "plain", "--precision", precision)
        contains((projects[precision] / "Makefile").read_text(), f"LEVELS := {' '.join(library_levels(in_tiles=True))}\n")
        readme = words_of(projects[precision] / "README.md")
        equal("with AMX" in readme, precision != "bf16x6", f"README speaks of fewer bits than float32 with {precision}")
        text = (projects[precision] / "src" / "plain_kernels.cpp").read_text()
        equal(len(re.findall(rf"\b(?:gemm|conv2d)<InBfloat16<{ {'bf16': 1, 'bf16x3': 3, 'bf16x6': 6}[precision] }, ", text)), 5,
              f"kernels with --precision {precision}")
        if precision == "bf16":
            equal(outputs(world, projects[precision], "others", "x86-64-v3"), found, "outputs of a level without tiles")
    needs_vnni()
    reference = {path: read_npy(world.path("outputs_exact") / path) for path in found if path.endswith(".npy")}
    equal(len(reference), 4, "outputs")
    for precision, (least, most) in PRECISIONS.items():
        outputs(world, projects[precision], precision, "levels", CPPFLAGS=EMULATED)
        for path, values in reference.items():
            others = read_npy(world.path(f"outputs_{precision}") / path)
            error = max(abs(a - b) for a, b in zip(values, others))
            error /= math.sqrt(sum(value * value for value in values) / len(values))
            if len(values) == 300:  # whose rows are too few
                check(error < 1e-6, f"{path} errs by {error} with {precision}")
            else:
                check(least <= error <= most, f"{path} errs by {error} with {precision}")


def case_floats_for_one_level(world):
    """Both compilers take the instruction, without a warning; a level that has no tile unit is not asked."""
    needs_x86()
    project = project_of(world, floats(), "--cpu", "sapphirerapids", "--precision", "bf16x3")
    for compiler in compilers():
        build = world.path(f"build_{compiler}")
        world.run(["make", "-C", project, build / "plain_run", f"BUILD={build}", f"CXX={compiler}",
                   f"CXXFLAGS=-O1 {' '.join(WARNINGS)} -Wno-psabi"])
        code = world.run(["objdump", "-d", build / "one" / "src" / "plain_kernels.cpp.o"]).stdout
        for instruction in ("ldtilecfg", "tileloadd", "tdpbf16ps", "tilestored", "tilerelease"):
            contains(code, instruction)
    texts = []
    for label, options in (("asked", ["--precision", "bf16x3"]), ("unasked", [])):
        world.compile(world.path("model.onnxtxt"), world.path(label), "--name", "plain", "--cpu", "icelake-server", *options)
        texts.append((world.path(label) / "src" / "plain_kernels.cpp").read_text())
    check(texts[0] == texts[1], "kernels for a processor without a tile unit are others")


def case_every_product_may_be_in_tiles(world):
    """Compares the models that the other cases run."""
    for label, model, count in (("network", network(), 5), ("products", products(), 3)):
        path, project = written(world, label, model), world.path(label)
        world.compile(path, project, "--name", "plain")
        kernels = "".join(source.read_text() for source in (project / "src").glob("*kernels*.cpp"))
        calls = re.findall(r"(?:gemm_integer|conv2d_integer|multiply_integers)<kInTiles>\(", kernels)
        equal(len(calls), count, f"kernels of the {label} that multiply in tiles")


def case_levels(world):
    """Where processor and system have the unit the level with tiles runs, else the one below; all compute the same
    integers."""
    needs_x86()
    project = project_of(world, products())
    makefile = (project / "Makefile").read_text()
    contains(makefile, f"LEVELS := {' '.join(library_levels(in_tiles=True))}\n")
    found = outputs(world, project, "levels", "levels")
    equal(outputs(world, project, "v3", "x86-64-v3"), found, "outputs of one level")
    needs_vnni()
    emulated = {"CPPFLAGS": EMULATED}
    equal(outputs(world, project, "emulated", "levels", **emulated), found, "outputs of the level with tiles")
    # The level ran: with a unit that multiplies wrongly others come out.
    header = project / "gcrt/isa/tiles.h"
    text = header.read_text()
    spoiled = text.replace("factor * ", "2 * factor * ")
    check(spoiled != text, "nothing is spoiled")
    header.write_text(spoiled)
    check(outputs(world, project, "spoiled", "levels", **emulated) != found, "another level runs")


def case_one_level(world):
    """For a processor that has the unit: both compilers take the instructions, without a warning, and another processor gets
    a status."""
    needs_x86()
    project = project_of(world, network(), "--cpu", "sapphirerapids")
    for compiler in compilers():
        build = world.path(f"build_{compiler}")
        world.run(["make", "-C", project, build / "plain_run", f"BUILD={build}", f"CXX={compiler}",
                   f"CXXFLAGS=-O1 {' '.join(WARNINGS)} -Wno-psabi"])
        code = world.run(["objdump", "-d", build / "one" / "src" / "plain_kernels.cpp.o"]).stdout
        for instruction in ("ldtilecfg", "tileloadd", "tdpbusd", "tdpbssd", "tilestored", "tilerelease"):
            contains(code, instruction)
        if shutil.which("qemu-x86_64"):
            refused = world.run(["qemu-x86_64", "-cpu", "max", build / "plain_run", "--random", "1"], status=1)
            contains(refused.stderr, "the processor lacks instructions that the library was built for")


def case_without_tiles(world):
    """A program that multiplies no bytes, too few rows of them or too short ones knows nothing of the level."""
    model = Model()
    model.inputs = ["uint8[15,77] a", "uint8[70,31] b", "float[70,77] f"]
    model.outputs = ["int32[15,45] few", "int32[70,9] short", "float[70,45] floats"]
    model.integers("w", "int8", (77, 45), -128, 127)
    model.integers("v", "int8", (31, 9), -128, 127)
    model.constant("u", "float", (77, 45))
    model.nodes = ["few = MatMulInteger(a, w)", "short = MatMulInteger(b, v)", "floats = MatMul(f, u)"]
    project = project_of(world, model)
    levels = library_levels("x86_64")
    check(LEVEL not in levels, "the level is of all libraries")
    contains((project / "Makefile").read_text(), f"LEVELS := {' '.join(levels)}\n")
    for name in [*(project / "src").glob("*.cpp"), project / "CMakeLists.txt", project / "Makefile"]:
        # Registers have tiles too, and so have matrices that are turned.
        text = re.sub(r"(?:Usual|Wide|Register)Tile|turn(?:ed)?_tiles", "", name.read_text())
        check("tile" not in text.lower(), f"{name.name} speaks of tiles")


if __name__ == "__main__":
    run_main(globals())
