#!/usr/bin/env python3
"""Emitted projects on ARM: built by cross compilers without a warning, run by an emulator, and compared with what the
same project computes on this machine. Integers are the same bits; floats, whose sums are of another order on vectors
of another width, lie within the tolerance of DESIGN ("Right means").

    arm.py --gcompile GCOMPILE [CASE...]

64 bits: both levels of AArch64, in one library; 32 bits: cores with NEON and fused multiply-adds, and plain ARMv7 with
its floating-point unit alone.
"""

import math
import re
import shutil

from families import Model, images, lists, windows
from short_integers import short_integers
from support import EXAMPLES, HERE, Skip, check, contains, library_levels, read_npy, run_main

WARNINGS = "-O2 -Wall -Wextra -Wconversion -Wshadow -Werror"
REFUSAL = "the processor lacks instructions that the library was built for"


class Target:
    """A cross compiler, its emulator and processors of it."""

    def __init__(self, triple, emulator):
        self.processor = triple.partition("-")[0]
        self.compiler, self.emulator, self.root = f"{triple}-g++", emulator, f"/usr/{triple}"

    def needed(self):
        for tool in (self.compiler, self.emulator):
            if not shutil.which(tool):
                raise Skip(f"no {tool}: scripts/install_packages.sh test installs it")
        return self

    def build(self, world, project, arch, label="", **variables):
        """The folder of objects and programs that the project's Makefile makes."""
        build = world.path(f"build_{project.name}_{arch.replace('+', '_')}{label}")
        world.run(["make", "-j2", "-C", project, build / "plain_run", f"BUILD={build}", f"CXX={self.compiler}",
                   f"ARCH={arch}", f"CXXFLAGS={WARNINGS}", *(f"{name}={value}" for name, value in variables.items())])
        return build

    def build_by_cmake(self, world, project, arch):
        """The same by its CMakeLists.txt."""
        build = world.path(f"cmake_{project.name}_{arch}")
        world.run(["cmake", "-S", project, "-B", build, "-G", "Unix Makefiles", "-DCMAKE_SYSTEM_NAME=Linux",
                   f"-DCMAKE_SYSTEM_PROCESSOR={self.processor}", f"-DCMAKE_CXX_COMPILER={self.compiler}",
                   f"-DCMAKE_C_COMPILER={self.compiler.replace('g++', 'gcc')}", f"-DCMAKE_CXX_FLAGS={WARNINGS}",
                   f"-DPLAIN_ARCH={arch}"])
        world.run(["cmake", "--build", build, "-j2", "--target", "plain_run"])
        return build

    def outputs(self, world, build, processor, status=0):
        """What the runner writes, by file name, and what it says."""
        folder = world.path(f"outputs_{build.name}_{processor}")
        done = world.run([self.emulator, "-cpu", processor, "-L", self.root, build / "plain_run", "--random", "1",
                          "--output-dir", folder], status=status)
        return values_in(folder), done.stderr


ARM64 = Target("aarch64-linux-gnu", "qemu-aarch64")
ARM32 = Target("arm-linux-gnueabihf", "qemu-arm")
OLD, NEW = "cortex-a53", "cortex-a76"  # without dot products, and with them
CORE32 = "cortex-a7"


def values_in(folder):
    return {path.name: read_npy(path) for path in sorted(folder.iterdir())} if folder.exists() else {}


def compare(expected, actual, where):
    """Integers bit by bit, floats within the tolerance."""
    check(expected.keys() == actual.keys() and expected, f"{where}: outputs {sorted(actual)}, not {sorted(expected)}")
    for name, values in expected.items():
        if all(isinstance(value, int) for value in values):
            check(values == actual[name], f"{where}: {name} has other integers: {differences(values, actual[name])}")
            continue
        finite = [value for value in values if math.isfinite(value)]
        rms = math.sqrt(sum(value * value for value in finite) / max(1, len(finite)))
        worst = max(excess(a, b, rms) for a, b in zip(values, actual[name], strict=True))
        check(worst <= 1, f"{where}: {name} is off by {worst:.3g} times the tolerance")


def excess(expected, actual, rms):
    """The share of the tolerance that the difference takes."""
    if not math.isfinite(expected):
        return 0 if str(expected) == str(actual) else math.inf
    return abs(actual - expected) / (1e-4 * abs(expected) + 1e-5 * max(1, rms))


def differences(expected, actual):
    pairs = [(i, a, b) for i, (a, b) in enumerate(zip(expected, actual)) if a != b]
    return f"{len(pairs)} of {len(expected)}, (place, expected, actual) {pairs[:4]}"


def same_everywhere(world, model, *options, plain=False, by_cmake=False):
    """The project of a model on x86, on both levels of AArch64 and on a core of 32 bits; `plain`: on one without NEON
    as well."""
    ARM64.needed(), ARM32.needed()
    project = world.path("project")
    world.compile(model, project, "--name", "plain", *options)
    native = world.path("native")
    world.run(["make", "-j2", "-C", project, native / "plain_run", f"BUILD={native}"])
    world.run([native / "plain_run", "--random", "1", "--output-dir", world.path("expected")])
    expected = values_in(world.path("expected"))
    build = (ARM64.build_by_cmake if by_cmake else ARM64.build)(world, project, "levels")
    for processor in (OLD, NEW):
        compare(expected, ARM64.outputs(world, build, processor)[0], processor)
    for arch in (CORE32, *(["armv7-a+fp"] if plain else [])):
        compare(expected, ARM32.outputs(world, ARM32.build(world, project, arch), CORE32)[0], arch)


def saved(world, model):
    path = world.path("model.onnxtxt")
    path.write_text(model.text())
    return path


class Integers(Model):
    """Quantised operators on bytes; weights cover their whole range, -128 among them."""

    def whole(self, name, element, shape, low, high):
        count = math.prod(shape)
        values = []
        for _ in range(count):
            self.state = (self.state * 1103515245 + 12345) % 2**31
            values.append(low + self.state // 64 % (high - low + 1))
        values[0] = low
        self.constants.append(f"{element}[{','.join(map(str, shape))}] {name} = {{{', '.join(map(str, values))}}}")
        return name

    def scalar(self, element, value):
        name = f"{element}_{str(value).replace('.', '_').replace('-', 'm')}"
        text = f"{element} {name} = {{{value}}}"
        if text not in self.constants:
            self.constants.append(text)
        return name

    def conv(self, y, x, element, w, attributes, scale):
        zero = {"uint8": 131, "int8": -5}[element]
        a, az = self.scalar("float", 0.05), self.scalar(element, zero)
        self.nodes.append(f"{y} = QLinearConv<{attributes}>({x}, {a}, {az}, {w}, {self.scalar('float', 0.02)}, "
                          f"{self.scalar('int8', 0)}, {self.scalar('float', scale)}, {az})")


def integers():
    model = Integers()
    model.inputs = ["uint8[1,24,13,11] u", "int8[1,24,13,11] s", "uint8[1,3,17,15] image", "uint8[9,50] left",
                    "int8[9,50] signed_left"]
    model.outputs = ["uint8[1,20,13,11] a", "int8[1,24,13,11] b", "uint8[1,18,8,7] c", "int8[1,24,13,11] d",
                     "uint8[1,24,6,5] e", "int32[1,10,13,11] f", "int32[9,19] g", "int32[9,19] h", "int8[1,7,13,11] i",
                     "int32[9,9] j", "int32[50,50] k", "int8[1,13,26,22] l"]
    model.conv("a", "u", "uint8", model.whole("wa", "int8", (20, 24, 3, 3), -128, 127), "pads = [1, 1, 1, 1]", 0.6)
    model.conv("b", "s", "int8", model.whole("wb", "int8", (24, 24, 1, 1), -128, 127), "group = 1", 0.3)
    model.conv("c", "image", "uint8", model.whole("wc", "int8", (18, 3, 3, 3), -128, 127), "strides = [2, 2]", 0.3)
    model.conv("d", "s", "int8", model.whole("wd", "int8", (24, 1, 3, 3), -128, 127), "group = 24, pads = [1, 1, 1, 1]",
               0.2)
    model.conv("e", "u", "uint8", model.whole("we", "int8", (24, 1, 3, 3), -128, 127), "group = 24, strides = [2, 2]", 0.2)
    model.conv("i", "s", "int8", model.whole("wi", "int8", (7, 24, 3, 3), -128, 127), "pads = [1, 1, 1, 1]", 0.9)
    model.nodes.append(f"f = ConvInteger(u, {model.whole('wf', 'uint8', (10, 24, 1, 1), 0, 255)}, "
                       f"{model.scalar('uint8', 131)}, {model.scalar('uint8', 7)})")
    w = model.whole("wg", "int8", (50, 19), -128, 127)
    model.nodes += [f"g = MatMulInteger(left, {w}, {model.scalar('uint8', 131)})", f"h = MatMulInteger(signed_left, {w})",
                    "columns = Transpose(signed_left)",
                    f"j = MatMulInteger(left, columns, {model.scalar('uint8', 131)})",
                    f"k = MatMulInteger(columns, left, {model.scalar('int8', -5)}, {model.scalar('uint8', 7)})"]
    model.whole("wl", "int8", (24, 13, 4, 4), -128, 127)
    tenth, zero = model.scalar("float", 0.1), model.scalar("int8", -5)
    model.nodes += [f"fs = DequantizeLinear(s, {tenth}, {zero})", f"fl = DequantizeLinear(wl, {tenth})",
                    "up = ConvTranspose<strides = [2, 2], pads = [1, 1, 1, 1]>(fs, fl)",
                    f"l = QuantizeLinear(up, {model.scalar('float', 9.5)}, {zero})"]
    return model


def case_integers(world):
    """Dot products with SDOT, SMULL and int16; Winograd in both sizes; requantisation; strides, borders, tails of words."""
    same_everywhere(world, saved(world, integers()), "--kernel", "a=conv.winograd4_integer", "--kernel",
                    "i=conv.winograd2_integer")


def case_short_integers(world):
    """Integers of 16 bits, by SMLAL on pairs of int16: bytes of weights are widened."""
    same_everywhere(world, saved(world, short_integers()))


# Names of values, not of types, operators or attributes, which stand between angle brackets.
VALUE_NAME = re.compile(r"(?<!\w)(?!float\b|int\d+\b)([a-z]\w*)")


def joined(*models):
    """One model of several, whose names get the number of their model."""
    result = Model()
    for number, model in enumerate(models):
        for place in ("inputs", "outputs", "constants", "nodes"):
            for text in getattr(model, place):
                parts = re.split(r"(<[^>]*>)", text)
                parts[::2] = [VALUE_NAME.sub(rf"\1_{number}", part) for part in parts[::2]]
                getattr(result, place).append("".join(parts))
    return result


def case_floats(world):
    """Winograd in both sizes; direct, grouped, depthwise and transposed convolutions; pools, a product, a recurrence, and
    kernels with their own control."""
    forced = {"first": "winograd4", "second": "winograd2", "deep": "direct", "point": "winograd4"}
    same_everywhere(world, saved(world, joined(windows(), images(), lists())),
                    *(part for node, family in forced.items() for part in ("--kernel", f"{node}_0=conv.{family}")))


def case_attention(world):
    """By the other build file, whose library has both levels as well."""
    same_everywhere(world, EXAMPLES / "tiny_attention" / "model.onnx", by_cmake=True)


def case_operators(world):
    same_everywhere(world, HERE / "models" / "many_operators.onnxtxt", plain=True)


STUB = """
#include "{header}"
namespace plain_gcrt {{ namespace {level} {{
extern const std::uint64_t needs;
const std::uint64_t needs = 0;
plain_status run(const plain_memory*, const std::byte*, const plain_inputs*, const plain_outputs*);
plain_status run(const plain_memory*, const std::byte*, const plain_inputs*, const plain_outputs*) {{
  return PLAIN_BAD_WEIGHTS;
}}
}} }}
"""


def case_each_processor_takes_its_best(world):
    """The lowest level is put out of order: a processor that can do better does not notice."""
    project = world.example("shapes_classifier", "project", "--name", "plain")
    build = ARM64.needed().build(world, project, "levels")
    lowest = list(library_levels("aarch64"))[-1]
    good = {processor: ARM64.outputs(world, build, processor)[0] for processor in (OLD, NEW)}
    check(good[OLD] == good[NEW] and good[OLD], "levels of AArch64 differ in what floats are multiplied by")
    stub = world.path("stub.cpp")
    stub.write_text(STUB.format(header=project / "include" / "plain" / "plain.h", level=lowest).replace(
        "#include", "#include <cstddef>\n#include <cstdint>\n#include", 1))
    world.run([ARM64.compiler, "-std=c++17", "-c", stub, "-o", build / lowest / "src" / "plain.cpp.o"])
    build = ARM64.build(world, project, "levels")
    check(ARM64.outputs(world, build, NEW)[0] == good[NEW], f"{NEW} does not take the level with dot products")
    ARM64.outputs(world, build, OLD, status=1)


def case_too_old_a_processor(world):
    """A status and a sentence, no signal."""
    project = world.example("shapes_classifier", "project", "--name", "plain")
    build = ARM64.needed().build_by_cmake(world, project, NEW)
    outputs, said = ARM64.outputs(world, build, OLD, status=1)
    contains(said, REFUSAL)
    check(not outputs, f"outputs on {OLD}")
    check(ARM64.outputs(world, build, NEW)[0], f"no outputs on {NEW}")


if __name__ == "__main__":
    run_main(globals())
