#!/usr/bin/env python3
"""A project as firmware by the ways that a user has: its Makefile, its CMakeLists.txt and a glob of its sources, for
cores of ARM's M profile without a system, run on emulated boards.

    firmware.py --gcompile GCOMPILE [CASE...]
"""

import re
import shutil

from model_text import Model
from support import EXAMPLES, Skip, check, contains, equal, flags, manifest, run_main

TRIPLE = "arm-none-eabi"
START, SCRIPT = EXAMPLES / "firmware" / "startup.c", EXAMPLES / "firmware" / "mps2_an500.ld"
HARD = "-mthumb -mfloat-abi=hard"
CORES = {
    "cortex-m0plus": "-mthumb",
    "cortex-m3": "-mthumb",
    "cortex-m4": f"{HARD} -mfpu=fpv4-sp-d16",
    "cortex-m7": f"{HARD} -mfpu=fpv5-d16",
    "cortex-m33": f"{HARD} -mfpu=fpv5-sp-d16",
    "cortex-m55": f"{HARD} -mfpu=auto",
}
# Boards of QEMU with the memory that the example's linker script has.
BOARDS = {"cortex-m3": "mps2-an385", "cortex-m4": "mps2-an386", "cortex-m7": "mps2-an500"}

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
fly (float[1, 8] x) => (float[1, 4] y)
<float[8, 16] a = {%s}, float[16, 4] b = {%s}>
{
  h = MatMul (x, a)
  r = Relu (h)
  y = MatMul (r, b)
}
""" % tuple(", ".join(f"{(i * 37 % 19 - 9) / 16}" for i in range(count)) for count in (128, 64))

MAIN = """#include <stdio.h>
#include "fly/fly.h"
static _Alignas(FLY_ALIGN) unsigned char arena[FLY_ARENA_BYTES + 1], instance[FLY_INSTANCE_BYTES];
int main(void) {
  float x[FLY_INPUT_X_ELEMENTS], y[FLY_OUTPUT_Y_ELEMENTS];
  const fly_memory memory = {.arena = arena, .instance = instance};
  const fly_inputs inputs = {.x = x};
  const fly_outputs outputs = {.y = y};
  for (int i = 0; i < FLY_INPUT_X_ELEMENTS; ++i) x[i] = (float)(i - 3) / 4.0f;
  fly_status status = fly_init(&memory);
  if (status == FLY_OK) status = fly_run(&memory, &inputs, &outputs);
  printf("%s", fly_status_string(status));
  for (int i = 0; i < FLY_OUTPUT_Y_ELEMENTS; ++i) printf(" %d", (int)(1024.0f * y[i]));
  printf("\\n");
  return 0;
}
"""


def needed(*tools):
    for tool in (f"{TRIPLE}-g++", *tools):
        if not shutil.which(tool):
            raise Skip(f"no {tool}: scripts/install_packages.sh test installs it")


def emitted(world, *options):
    world.path("fly.onnxtxt").write_text(MODEL)
    world.path("main.c").write_text(MAIN)
    world.compile(world.path("fly.onnxtxt"), world.path("net"), "--name", "fly", *options)
    return world.path("net")


def linked(world, project, core, library, label):
    """The image of main.c with the library: a script that knows no table of addresses, and no warning."""
    image = world.path(f"{label}_{core}.elf")
    done = world.run([f"{TRIPLE}-gcc", f"-mcpu={core}", *CORES[core].split(), "-Os", f"-I{project}/include", START,
                      world.path("main.c"), library, "-nostartfiles", "--specs=rdimon.specs", "-Wl,--gc-sections",
                      "-Wl,--orphan-handling=place", "-T", SCRIPT, "-lm", "-o", image])
    check("conflicting" not in done.stderr, done.stderr)
    return image


def said_by(world, image, core):
    return world.run(["qemu-system-arm", "-M", BOARDS[core], "-nographic", "-semihosting", "-kernel", image],
                     timeout=60).stdout


def expected(world, project):
    library = world.path("host")
    world.run(["make", "-C", project, f"BUILD={library}", library / "libfly.a"])
    world.run(["cc", f"-I{project}/include", world.path("main.c"), library / "libfly.a", "-lm", "-o", world.path("host.out")])
    said = world.run([world.path("host.out")]).stdout
    check(re.fullmatch(r"FLY_OK( -?\d+){4}\n", said), said)
    return said


def case_make(world):
    """The tutorial's way, for every core; what CXXFLAGS say of the core holds for the weights too."""
    needed("qemu-system-arm")
    project = emitted(world)
    right = expected(world, project)
    for core, options in CORES.items():
        build = world.path(core)
        world.run(["make", "-s", "-C", project, f"BUILD={build}", f"CXX={TRIPLE}-g++", f"CXXFLAGS=-Os -mcpu={core} {options}"])
        check(not list(build.glob("fly_*")), "make alone builds programs of a system that is not there")
        image = linked(world, project, core, build / "libfly.a", "make")
        undefined = world.run([f"{TRIPLE}-nm", "-u", build / "libfly.a"]).stdout
        check("_GLOBAL_OFFSET_TABLE_" not in undefined, f"{core}: addresses come from a table")
        if core in BOARDS:
            equal(said_by(world, image, core), right, f"what {core} computes")


def case_core_by_arch(world):
    """ARCH is the core of every file, also of weights that are an array; the caller may want tables of addresses."""
    needed()
    project = emitted(world, "--weights", "array")
    for core in ("cortex-m0plus", "cortex-m33"):
        build = world.path(core)
        world.run(["make", "-s", "-C", project, f"BUILD={build}", f"CXX={TRIPLE}-g++", f"ARCH={core}", "CXXFLAGS=-Os -mthumb"])
        world.run([f"{TRIPLE}-gcc", f"-mcpu={core}", "-mthumb", f"-I{project}/include", START, world.path("main.c"),
                   build / "libfly.a", "-nostartfiles", "--specs=rdimon.specs", "-T", SCRIPT, "-lm", "-o", build / "elf"])
    build = world.path("pic")
    world.run(["make", "-s", "-C", project, f"BUILD={build}", f"CXX={TRIPLE}-g++", "CXXFLAGS=-Os -mcpu=cortex-m7 -mthumb -fPIC"])
    contains(world.run([f"{TRIPLE}-nm", "-u", build / "libfly.a"]).stdout, "_GLOBAL_OFFSET_TABLE_")


def case_cmake(world):
    """cmake --build of all that there is, by a toolchain file of a system called Generic."""
    needed("qemu-system-arm")
    project, build = emitted(world, "--selftest"), world.path("build")
    world.run(["cmake", "-S", project, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={EXAMPLES}/firmware/cortex_m7.cmake"])
    world.run(["cmake", "--build", build, "-j2"])
    world.run(["cmake", "--build", build, "--target", "fly_threads"])
    image = linked(world, project, "cortex-m7", build / "libfly.a", "cmake")
    equal(said_by(world, image, "cortex-m7"), expected(world, project), "what it computes")


def case_glob(world):
    """Every source of src/, as build systems of vendors take a folder: the threads are no thread there."""
    needed("qemu-system-arm")
    project, core = emitted(world), "cortex-m7"
    objects = []
    for source in sorted((project / "src").glob("*.[cS]*")):
        objects.append(world.path(source.name + ".o"))
        words = ["-std=c++17", *flags("cpp", "library"), "-Wall", "-Wextra", "-Werror"] if source.suffix == ".cpp" else []
        world.run([f"{TRIPLE}-g++" if words else f"{TRIPLE}-gcc", f"-mcpu={core}", *CORES[core].split(), "-Os", *words,
                   f"-I{project}", f"-I{project}/include", f"-I{project}/data", "-c", source, "-o", objects[-1]])
    check(any("threads" in path.name for path in objects), "no source of threads")
    library = world.path("libglob.a")
    world.run([f"{TRIPLE}-ar", "rcs", library, *objects])
    equal(said_by(world, linked(world, project, core, library, "glob"), core), expected(world, project), "what it computes")


def case_processors(world):
    """Cores of the M profile are known: no hint at another profile, no weights that grow, no stack for a tile unit."""
    emitted(world)
    model = EXAMPLES / "shapes_classifier" / "model.onnx"
    size = world.run([world.gcompile, "check", model, "--optimize-for", "size"]).stdout
    figures = re.compile(r"(arena|weights)_bytes=(\d+)")
    for core in (*CORES, "cortex-m23", "cortex-m85", "cortex-m33+nodsp"):
        done = world.run([world.gcompile, "check", model, "--cpu", core])
        check("generic" not in done.stderr and "did you mean" not in done.stderr, f"{core}: {done.stderr}")
        small, least = dict(figures.findall(done.stdout)), dict(figures.findall(size))
        # Kernels of such cores keep two windows as 16 bits beside the image.
        most = {"arena": 1.02 * int(least["arena"]), "weights": int(least["weights"])}
        check(all(int(small[key]) <= most[key] for key in most), f"{core}: {small}, for size {least}")
    for core in ("cortex-m56", "cortex-r52", "cortex-m"):
        said = world.run([world.gcompile, "check", model, "--cpu", core]).stderr
        contains(said, f"--cpu {core}: gcompile has no figures of it")
        check("cortex-a" not in said, said)
    for goal in ("size", "speed"):
        place = world.path(goal)
        world.compile(world.path("fly.onnxtxt"), place, "--name", "fly", "--cpu", "cortex-m7",
                      *(["--optimize-for", "speed"] if goal == "speed" else []))
        equal("--optimize-for size" in manifest(place, "fly")["options"], goal == "size", f"for {goal}")


def byte_layers():
    """A dense convolution with a scale per channel, a depthwise one, and a product, all of bytes; channels fill no word."""
    model = Model(opset=13)
    model.inputs, model.outputs = ["uint8[1,6,9,7] x"], ["int8[5,11] y", "uint8[1,10,5,4] seen"]
    model.integers("w", "int8", (10, 6, 3, 3), -128, 127), model.integers("d", "int8", (10, 1, 3, 3), -128, 127)
    model.integers("m", "int8", (40, 11), -128, 127), model.integers("b", "int32", (10,), -3000, 3000)
    scales = ", ".join(str(0.01 + i / 1000) for i in range(10))
    model.constants += ["float scale = {0.02}", "uint8 zero = {131}", f"float[10] w_scale = {{{scales}}}", "int8 w_zero = {0}",
                        "float y_scale = {0.3}", "int8 y_zero = {-7}", "float wide = {4}", "int64[2] rows = {5, 40}",
                        "int8[10] w_zeros = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0}"]
    model.nodes = ["dense = QLinearConv<pads = [1, 1, 1, 1]>(x, scale, zero, w, w_scale, w_zeros, y_scale, zero, b)",
                   "seen = QLinearConv<group = 10, pads = [1, 1, 1, 1], strides = [2, 2]>"
                   "(dense, y_scale, zero, d, w_scale, w_zeros, y_scale, zero)",
                   "flat = Reshape(seen, rows)",
                   "y = QLinearMatMul(flat, y_scale, zero, m, scale, w_zero, wide, y_zero)"]
    return model


BYTES = """#include <stdio.h>
#include "bytes/bytes.h"
static _Alignas(BYTES_ALIGN) unsigned char arena[BYTES_ARENA_BYTES + 1], instance[BYTES_INSTANCE_BYTES];
int main(void) {
  static uint8_t x[BYTES_INPUT_X_ELEMENTS], seen[BYTES_OUTPUT_SEEN_ELEMENTS];
  static int8_t y[BYTES_OUTPUT_Y_ELEMENTS];
  const bytes_memory memory = {.arena = arena, .instance = instance};
  const bytes_inputs inputs = {.x = x};
  const bytes_outputs outputs = {.y = y, .seen = seen};
  for (int i = 0; i < BYTES_INPUT_X_ELEMENTS; ++i) x[i] = (uint8_t)(i * 89 + i / 7);
  bytes_status status = bytes_init(&memory);
  if (status == BYTES_OK) status = bytes_run(&memory, &inputs, &outputs);
  printf("%s", bytes_status_string(status));
  for (int i = 0; i < BYTES_OUTPUT_Y_ELEMENTS; ++i) printf(" %d", y[i]);
  for (int i = 0; i < BYTES_OUTPUT_SEEN_ELEMENTS; ++i) printf(" %d", seen[i]);
  printf("\\n");
  return 0;
}
"""


def case_bytes(world):
    """Layers of bytes on cores without vectors, with DSP instructions and without, are the host's integers, by a
    few kilobytes of code."""
    needed("qemu-system-arm")
    world.path("bytes.onnxtxt").write_text(byte_layers().text())
    world.path("main.c").write_text(BYTES)
    project, library = world.path("host"), world.path("host_build")
    world.compile(world.path("bytes.onnxtxt"), project, "--name", "bytes")
    world.run(["make", "-C", project, f"BUILD={library}", library / "libbytes.a"])
    world.run(["cc", f"-I{project}/include", world.path("main.c"), library / "libbytes.a", "-lm", "-o",
               world.path("host.out")])
    right = world.run([world.path("host.out")]).stdout
    check(right.startswith("BYTES_OK ") and len(set(right.split())) > 40, right)
    for core in ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7"):
        project, build = world.path(core), world.path(f"{core}_build")
        world.compile(world.path("bytes.onnxtxt"), project, "--name", "bytes", "--cpu", core)
        families = {choice["families"][0]["family"] for choice in manifest(project, "bytes")["choices"]}
        check({"conv.scalar_integer", "conv.depthwise_scalar", "product.scalar_integer"} <= families, f"{core}: {families}")
        world.run(["make", "-s", "-C", project, f"BUILD={build}", f"CXX={TRIPLE}-g++",
                   f"CXXFLAGS=-Os -mcpu={core} {CORES[core]} -Werror", build / "libbytes.a"])
        board = BOARDS.get(core, BOARDS["cortex-m4"])  # which executes all that a core without its instructions does
        image = linked(world, project, core, build / "libbytes.a", "bytes")
        equal(world.run(["qemu-system-arm", "-M", board, "-nographic", "-semihosting", "-kernel", image], timeout=60).stdout,
              right, f"what {core} computes")
        code = [int(line.split()[0]) for line in world.run([f"{TRIPLE}-size", build / "libbytes.a"]).stdout.splitlines()
                if "bytes_kernels" in line]
        check(len(code) == 1 and code[0] < 8000, f"{core}: {code} bytes of kernels")


TILES = """<ir_version: 8, opset_import: ["" : 17]>
wide (uint8[64, 256] x) => (int32[64, 256] y)
<int8[256, 256] w = {%s}>
{
  y = MatMulInteger (x, w)
}
""" % ", ".join(str(i * 7 % 15 - 7) for i in range(65536))


def case_stack(world):
    """The stack that NAME_STACK_BYTES tells has room for a tile unit only where there may be one, and for vectors of a width
    only where they are of it."""
    needed()
    world.path("wide.onnxtxt").write_text(TILES)
    world.path("stack.c").write_text('#include "wide/wide.h"\nint bytes = WIDE_STACK_BYTES;\n')
    found = {}
    for cpu in ("native", "x86-64-v4", "x86-64-v3", "cortex-m7"):
        project = world.path(f"wide_{cpu}")
        world.compile(world.path("wide.onnxtxt"), project, "--name", "wide", "--cpu", cpu)
        for compiler in ("gcc", f"{TRIPLE}-gcc"):
            text = world.run([compiler, "-E", "-P", f"-I{project}/include", world.path("stack.c")]).stdout
            found[cpu, compiler] = int(re.search(r"int bytes = (\d+)u;", text)[1])
    arm = f"{TRIPLE}-gcc"
    equal(found["native", "gcc"], found["x86-64-v4", "gcc"] + (18 << 10), "with a tile unit")
    check(found["cortex-m7", arm] < found["native", arm], "a core without vectors takes less than one that may have them")
    check(found["cortex-m7", arm] < found["x86-64-v3", "gcc"] < found["x86-64-v4", "gcc"], f"{found}")
    check(all(found[cpu, "gcc"] == found[cpu, arm] for cpu, _ in found if cpu != "native"), f"{found}")


if __name__ == "__main__":
    run_main(globals())
