#!/usr/bin/env python3
"""gcompile installed, as a CMake package, a Python package and a Debian package, and used from there.

    packages.py --gcompile GCOMPILE [CASE...]

The tool's build folder is that of GCOMPILE.
"""

import gzip
import os
import pathlib
import re
import shutil
import struct
import subprocess
import time

from onnx_bytes import FLOAT, Graph, block, blocks, number
from support import EXAMPLES, ROOT, Skip, check, contains, equal, read_npy, run_main, shared_model

CLASSIFIER = EXAMPLES / "shapes_classifier"

PRODUCT = """cmake_minimum_required(VERSION 3.19)
project(product LANGUAGES C CXX)
find_package(gcompile 0.1 REQUIRED)
gcompile_add_model(TARGET first MODEL first/model.onnx)
gcompile_add_model(TARGET second MODEL second/model.onnxtxt OPTIONS --dim n=4 --weights array)
add_library(models STATIC models.c)
target_link_libraries(models PUBLIC first::first second::second)
add_executable(product main.c)
target_link_libraries(product PRIVATE models)
"""
MODELS = """#include <first/first.h>
#include <second/second.h>
#include "models.h"
static _Alignas(64) unsigned char arena[FIRST_ARENA_BYTES > SECOND_ARENA_BYTES ? FIRST_ARENA_BYTES : SECOND_ARENA_BYTES];
static _Alignas(64) unsigned char one[FIRST_INSTANCE_BYTES], two[SECOND_INSTANCE_BYTES];
int run_both(const float *image, float *probabilities, const float *x, float *y) {
  const first_memory memory = {.arena = arena, .instance = one};
  const second_memory other = {.arena = arena, .instance = two};
  const first_inputs inputs = {.image = image};
  const first_outputs outputs = {.probabilities = probabilities};
  const second_inputs given = {.x = x};
  const second_outputs made = {.y = y};
  if (first_init(&memory) != FIRST_OK || first_run(&memory, &inputs, &outputs) != FIRST_OK) return 1;
  return second_init(&other) != SECOND_OK || second_run(&other, &given, &made) != SECOND_OK;
}
"""
MAIN = """#include <math.h>
#include <stdio.h>
#include "models.h"
static float image[3 * 32 * 32];
int main(void) {
  float probabilities[5], sum = 0, y[4];
  const float x[4] = {-1, 2, -3, 4};
  if (run_both(image, probabilities, x, y)) return 1;
  for (int i = 0; i < 5; ++i) sum += probabilities[i];
  printf("%.3f %g %g %g %g\\n", sum, y[0], y[1], y[2], y[3]);
  return 0;
}
"""
SECOND = """<ir_version: 8, opset_import: ["" : 17]>
second (float[n] x) => (float[n] y) <float[1] w = {2}> { a = Relu (x)
y = Mul (a, w) }
"""
RIGHT = "1.000 0 4 0 8\n"


def build_of(world):
    return pathlib.Path(world.gcompile).parent


def installed(world):
    """The tool with its CMake package, in a folder of this test's own."""
    prefix = world.path("usr")
    world.run(["cmake", "--install", build_of(world), "--prefix", prefix, "--component", "tool"])
    return prefix


def write_product(world):
    place = world.path("product")
    for folder in ("first", "second"):
        (place / folder).mkdir(parents=True)
    shutil.copy(EXAMPLES / "shapes_classifier" / "model.onnx", place / "first")
    (place / "second" / "model.onnxtxt").write_text(SECOND)
    for name, text in (("CMakeLists.txt", PRODUCT), ("models.c", MODELS), ("main.c", MAIN),
                       ("models.h", "int run_both(const float *, float *, const float *, float *);\n")):
        (place / name).write_text(text)
    return place


def sources(place):
    return {path.relative_to(place).as_posix(): path.read_bytes() for path in place.rglob("*") if path.is_file()}


def case_cmake(world):
    """A product as docs/cmake.md makes it: two models of one name, nothing written beside them, rebuilt when one changes."""
    prefix, place = installed(world), write_product(world)
    before, build = sources(place), world.path("build")
    world.run(["cmake", "-S", place, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}",
               "-DCMAKE_C_FLAGS=-Wall -Wextra -Werror", "-DFIRST_ARCH=", "-DSECOND_ARCH="])
    world.run(["cmake", "--build", build], timeout=900)
    equal(world.run([build / "product"]).stdout, RIGHT, "what the product prints")
    equal(sources(place), before, "the sources of the product")
    contains(world.run(["ninja", "-C", build]).stdout, "no work to do")
    # A model that changes is compiled again, and nothing else is.
    (place / "second" / "model.onnxtxt").write_text(SECOND.replace("{2}", "{3}"))
    said = world.run(["ninja", "-C", build, "-v"]).stdout
    equal(world.run([build / "product"]).stdout, "1.000 0 6 0 12\n", "after the model has changed")
    check("first_kernels.cpp" not in said, f"the other model was compiled again:\n{said}")
    # One that is wrong stops the build and says why; one that is mended is found.
    (place / "second" / "model.onnxtxt").write_text(SECOND.replace("Relu", "Rleu"))
    done = world.run(["ninja", "-C", build], status=None)
    check(done.returncode != 0, "a wrong model is built")
    contains(done.stdout + done.stderr, "E0101", "did you mean 'Relu'?")
    (place / "second" / "model.onnxtxt").write_text(SECOND)
    world.run(["ninja", "-C", build])
    equal(world.run([build / "product"]).stdout, RIGHT, "after the model was mended")


def case_external_data(world):
    """Weights beside the model are a dependency as it is; what has not changed is not compiled again."""
    prefix, place, build = installed(world), world.path("product"), world.path("build")
    place.mkdir()
    entries = [block(1, key) + block(2, value)
               for key, value in (("location", "net.weights"), ("offset", "0"), ("length", "16"))]
    graph = Graph()
    graph.node("Mul", ["x", "w"], ["y"])
    graph.constants.append(number(1, 4) + number(2, FLOAT) + block(8, "w") + blocks(13, entries) + number(14, 1))
    graph.input("x", FLOAT, [4])
    graph.output("y", FLOAT, [4])
    (place / "net.onnx").write_bytes(graph.model())
    (place / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.19)
project(product LANGUAGES C CXX)
find_package(gcompile REQUIRED)
gcompile_add_model(TARGET net MODEL net.onnx)
add_executable(product main.c)
target_link_libraries(product PRIVATE net::net)
""")
    (place / "main.c").write_text("""#include <net/net.h>
#include <stdio.h>
static _Alignas(64) unsigned char arena[NET_ARENA_BYTES + 1], instance[NET_INSTANCE_BYTES];
int main(void) {
  const net_memory memory = {.arena = arena, .instance = instance};
  const float x[4] = {1, 2, 3, 4};
  float y[4];
  const net_inputs inputs = {.x = x};
  const net_outputs outputs = {.y = y};
  if (net_init(&memory) != NET_OK || net_run(&memory, &inputs, &outputs) != NET_OK) return 1;
  printf("%g %g %g %g\\n", y[0], y[1], y[2], y[3]);
  return 0;
}
""")

    def weights_of(*values):
        (place / "net.weights").write_bytes(struct.pack("<4f", *values))

    weights_of(1, 1, 1, 1)
    world.run(["cmake", "-S", place, "-B", build, "-G", "Ninja", f"-DCMAKE_PREFIX_PATH={prefix}", "-DNET_ARCH="])
    for values in ((1, 1, 1, 1), (1, 0.5, 2, -1)):
        weights_of(*values)
        world.run(["ninja", "-C", build])
        expected = " ".join(f"{value * (index + 1):g}" for index, value in enumerate(values)) + "\n"
        equal(world.run([build / "product"]).stdout, expected, f"outputs for the weights {values}")
    # CMake may run for another reason.
    time.sleep(1.1)
    (place / "CMakeLists.txt").touch()
    memory = build / "gcompile" / "net.made_of"
    before = memory.stat().st_mtime_ns
    check(before > (place / "net.weights").stat().st_mtime_ns, "the weights are newer than what is made of them")
    world.run(["ninja", "-C", build])
    equal(memory.stat().st_mtime_ns, before, "when the model was last compiled")


def case_cross_build(world):
    """The same for AArch64, with the gcompile of this machine; run by QEMU."""
    prefix, place, build = installed(world), write_product(world), world.path("build")
    toolchain = world.path("aarch64.cmake")
    toolchain.write_text("set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\n"
                         "set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)\nset(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)\n"
                         "set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)\nset(CMAKE_FIND_ROOT_PATH /usr/aarch64-linux-gnu)\n")
    world.run(["cmake", "-S", place, "-B", build, "-G", "Ninja", f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",
               f"-Dgcompile_DIR={next(prefix.rglob('gcompileConfig.cmake')).parent}", "-DFIRST_ARCH=", "-DSECOND_ARCH="])
    world.run(["cmake", "--build", build], timeout=900)
    equal(world.run(["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", build / "product"]).stdout, RIGHT, "what it prints")


FIVE_LINES = """import gcompile, numpy
project = gcompile.compile(MODEL)
image = numpy.load(INPUT)
outputs = project.run(image)
numpy.save(OUTPUT, next(iter(outputs.values())))
"""
MORE = """import gcompile, numpy, onnx
proto = onnx.load(MODEL)
project = gcompile.compile(proto, FOLDER, name="net", dims={})
assert project.verify(DATA, layers=True).ok
assert [port.shape for port in project.inputs] == [(1, 3, 32, 32)], project.inputs
for wrong, word in ((dict(), "no array for image"), (dict(imagge=1), "no input is called 'imagge'"),
                    (dict(image=numpy.zeros((2, 3, 32, 32))), "the project takes 'image' (1, 3, 32, 32)"),
                    (dict(image=numpy.zeros((1, 3, 32, 32), complex)), "the array complex128")):
    try:
        project.run(**wrong)
        raise AssertionError(word)
    except ValueError as error:
        assert word in str(error), error
try:
    gcompile.compile(b"<html>")
    raise AssertionError("a web page")
except gcompile.GcompileError as error:
    assert error.exit_code == 1 and error.errors[0]["code"] == "E0007", error.errors
text = b'<ir_version: 8, opset_import: ["" : 17]> g (float[n] x, float[2] h) => (float[n] y, float[2] h_next) {' \
       b' one = Constant <value_float = 1.0> () y = Relu (x) h_next = Add (h, one) }'
project = gcompile.compile(text, dims={"n": [2, 3]}, states={"h": "h_next"})
assert project.run([-1, 2])["y"].tolist() == [0, 2]
assert project.run({"x": [-1, 2, 3]}, threads=2)["y"].tolist() == [0, 2, 3]
assert project.states["h"].tolist() == [2, 2]
project.reset()
project.run(x=[1, 2])
assert project.states["h"].tolist() == [1, 1]
assert gcompile.check(text, dims={"n": 2})["calls"] == 2
"""


def python_of(world):
    """A fresh environment in which pip has installed this source tree, with the tool under test. numpy and onnx are
    Debian's."""
    venv = world.path("venv")
    world.run(["/usr/bin/python3", "-m", "venv", "--system-site-packages", venv])
    world.run([venv / "bin" / "pip", "install", "--no-index", ROOT],
              env={**os.environ, "GCOMPILE_EXECUTABLE": world.gcompile})
    return venv / "bin" / "python"


def assignments(**values):
    return "".join(f"{name} = {str(value)!r}\n" for name, value in values.items())


def five_lines_are_right(world, python, model, sample):
    """A model compiled and run in five lines gives what the project gives that is built and run by hand."""
    image, made = world.path("image.npy"), world.path("python.npy")
    world.run(["python3", ROOT / "scripts" / "tensors.py", "convert", sample / "input_0.pb", image])
    world.run([python, "-c", assignments(MODEL=model, INPUT=image, OUTPUT=made) + FIVE_LINES], cwd=world.folder, timeout=900)
    world.compile(model, world.path("project"), "--name", "model")
    world.run(["make", "-C", world.path("project"), "-j2", "build/model_run"], timeout=900)
    world.run([world.path("project") / "build" / "model_run", image, "--output-dir", world.path("by_hand")])
    by_hand, = world.path("by_hand").iterdir()
    equal(read_npy(made), read_npy(by_hand), "outputs")


def case_python(world):
    """pip install . in a fresh environment; the package compiles, runs, verifies, refuses, and goes without a trace."""
    python = python_of(world)
    tool, venv = python.parent / "gcompile", python.parent.parent
    equal(world.run([tool, "--version"]).stdout, world.run([world.gcompile, "--version"]).stdout, "version")
    model, sample = CLASSIFIER / "model.onnx", CLASSIFIER / "test_data_set_0"
    five_lines_are_right(world, python, model, sample)
    world.run([python, "-c", assignments(MODEL=model, FOLDER=world.path("net"), DATA=sample) + MORE], cwd=world.folder,
              timeout=900)
    world.run([python.parent / "pip", "uninstall", "-y", "gcompile"])
    left = [path for path in venv.rglob("*gcompile*") if "__pycache__" not in str(path)]
    equal(left, [], "what is left of the package")
    # The same sources make the same package.
    environment = {**os.environ, "GCOMPILE_EXECUTABLE": world.gcompile, "PYTHONPATH": str(ROOT / "python")}
    wheels = []
    for place in ("one", "two"):
        world.path(place).mkdir()
        world.run([python, "-c", f"import build_backend; build_backend.build_wheel({str(world.path(place))!r})"],
                  env=environment)
        wheels += [path.read_bytes() for path in world.path(place).iterdir()]
    check(wheels[0] == wheels[1], "two wheels of the same sources differ")


def case_python_main_suite(world):
    """Five lines for a model of the main suite."""
    model = shared_model("deeploy_cct_opset20")
    five_lines_are_right(world, python_of(world), model, model.parent / "test_data_set_0")


def case_shells(world):
    """What the shells complete; each reads its script with its own parser first."""
    prefix = installed(world)
    script = prefix / "share" / "bash-completion" / "completions" / "gcompile"

    def bash(*words):
        line = f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}"
        return world.run(["bash", "-c", line + "; _gcompile 2>/dev/null; echo ${COMPREPLY[@]}"],
                         cwd=world.folder).stdout.split()

    equal(bash("gcompile", "ver"), ["verify", "version"], "commands")
    equal(bash("gcompile", "verify", "--em"), ["--emulate"], "options of verify")
    equal(bash("gcompile", "check", "--em"), [], "options of check")
    equal(bash("gcompile", "m.onnx", "--target", "cu"), ["cuda"], "values")
    equal(bash("gcompile", "m.onnx", "-O"), ["-O0", "-O1", "-O2", "-O3"], "levels")
    equal(bash("gcompile", "completion", "z"), ["zsh"], "shells")
    world.path("net.onnx").write_bytes(b"")
    equal(bash("gcompile", "verify", "n"), ["net.onnx"], "files")
    zsh = prefix / "share" / "zsh" / "vendor-completions" / "_gcompile"
    world.run(["zsh", "-n", zsh])
    equal(world.run(["zsh", "-fc", f"autoload -Uz compinit; compinit -D -u; source {zsh}; print $_comps[gcompile]"]).stdout,
          "_gcompile\n", "zsh knows who completes")
    fish = prefix / "share" / "fish" / "vendor_completions.d" / "gcompile.fish"

    def fish_completes(line):
        shown = world.run(["fish", "--no-config", "-c", f"source {fish}; complete -C '{line}'"], cwd=world.folder,
                          env={**os.environ, "HOME": str(world.folder)}).stdout
        return [row.split("\t")[0] for row in shown.splitlines()]

    equal(fish_completes("gcompile ver"), ["verify", "version"], "commands in fish")
    equal(fish_completes("gcompile verify --em"), ["--emulate"], "options in fish")
    equal(fish_completes("gcompile m.onnx --target cu"), ["cuda"], "values in fish")


def case_manual(world):
    """Every option is in it, and groff has nothing to say."""
    page = installed(world) / "share" / "man" / "man1" / "gcompile.1.gz"
    text = gzip.decompress(page.read_bytes())
    plain = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-bcou", "-rLL=100n"], input=text, capture_output=True,
                           timeout=60, check=True)
    equal(plain.stderr, b"", "warnings of groff")
    shown = plain.stdout.decode()
    helps = [world.run([world.gcompile, "help", name]).stdout for name in ("compile", "verify", "check", "opt", "ops")]
    options = set(re.findall(r"^  (?:-\w, )?(--[a-z-]+)", "".join(helps), re.MULTILINE))
    check(len(options) > 30, f"options: {sorted(options)}")
    contains(shown, *options, "gcompile completion bash|zsh|fish")


def case_documents(world):
    """What an installed page points to is installed as well."""
    folder = installed(world) / "share" / "doc" / "gcompile"
    pages = sorted(folder.rglob("*.md"))
    check(len(pages) > 50 and folder / "errors" / "E0401.md" in pages, f"{len(pages)} pages")
    missing = [f"{page.relative_to(folder)}: {link}" for page in pages
               for link in re.findall(r"\]\(([^)#: ]+)(?:#[^)]*)?\)", re.sub(r"`[^`]*`|```.*?```", "", page.read_text(), flags=re.DOTALL))
               if not (page.parent / link).exists()]
    equal(missing, [], "links to pages that are not there")
    said = world.run([world.gcompile, "explain", "E0101"]).stdout
    check(not re.search(r"\((base|ir|frontend|passes|jinja|codegen|driver)/", said), said)


def case_target_alone(world):
    """The target gcompile makes all that is installed: scripts/demo.sh builds nothing else."""
    build = build_of(world)
    if not (build / "build.ninja").exists():
        raise Skip("the build is not by Ninja")
    commands = world.run(["ninja", "-C", build, "-t", "commands", "gcompile"]).stdout
    contains(commands, *(f"gcompile {words}" for words in ("manual", "completion bash", "completion zsh", "completion fish")))
    made = re.findall(r'FILES "([^"]*)"', (build / "cmake_install.cmake").read_text())
    check(made, "nothing is installed")
    for path in made:
        if path.startswith(str(build / "package")) and path.endswith("log.gz"):
            check(f"> {pathlib.Path(path).name}" not in commands and pathlib.Path(path).exists(), f"{path} needs a build")


def case_debian(world):
    """Made by CPack, without errors of lintian; installs into an empty root, and leaves nothing when it goes."""
    world.run(["cpack", "-G", "DEB", "-B", world.folder / "made", "--config", build_of(world) / "CPackConfig.cmake"],
              timeout=900)
    package, = (world.folder / "made").glob("*.deb")
    said = world.run(["lintian", "--fail-on", "error", "--allow-root", package], status=None)
    equal(said.returncode, 0, f"lintian: {said.stdout}{said.stderr}")
    root = world.path("root")
    for folder in ("updates", "info", "triggers"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").write_text("")

    def dpkg(*words):
        # Without the libraries that it depends on, the root being empty.
        return world.run(["dpkg", f"--root={root}", "--force-depends", "--force-not-root", "--force-script-chrootless",
                          "--force-bad-path", f"--log={world.path('log')}", *words])

    def files():
        return sorted(path.relative_to(root).as_posix() for path in root.rglob("*")
                      if path.is_file() and "var/lib/dpkg" not in path.as_posix())

    dpkg("--install", package)
    held = files()
    for name in ("usr/bin/gcompile", "usr/share/man/man1/gcompile.1.gz", "usr/share/doc/gcompile/copyright"):
        check(name in held, f"{name} is not among {held}")
    version = world.run([root / "usr/bin/gcompile", "--version"]).stdout.split()[1]
    contains(world.run(["dpkg-deb", "-f", package]).stdout, f"Version: {version}-1", "Depends: ", "libonnx")
    dpkg("--purge", "gcompile")
    equal(files(), [], "what is left")


if __name__ == "__main__":
    run_main(globals())
