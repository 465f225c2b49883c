#!/usr/bin/env python3
"""A project as a library in a product: results that nobody can mistake, one program text for both targets, installed packages.

    products.py --gcompile GCOMPILE [CASE...]
"""

import os
import re
import signal

from cuda import nvcc, toolkit_folder
from interface import MODEL, program_of, project_of
from support import ROOT, WARNINGS, c_compiler, check, compilers, contains, equal, manifest, run_main

VERSION = re.search(r"project\(gcompile VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))[1]

CONDITIONS = """
#include "net/net.hpp"
int main() {
  net::Model model;
  const float x[6] = {1, 2, 3, 4, 5, 6}, scale = 3;
  float y[6];
  std::int64_t best[2];
  const net_inputs in{x, &scale, nullptr};
  const net_outputs out{y, best, nullptr};
  constexpr net::Status fine = NET_OK;
  static_assert(fine.ok() && fine == NET_OK && NET_WRONG_SIZE != fine);
  net_status status = model.run(in, out);
  if (status != NET_OK || NET_OK != model.status() || model.reset() != model.status() || !model.finish().ok()) return 1;
  switch (model.status().code()) {
    case NET_OK: break;
    default: return 2;
  }
  if (const auto result = model.run(in)) { if (result->y[5] != 18 || (*result).y[0] != 3) return 3; } else return 4;
  const net::Outputs kept = *model.run(in);
  if (kept.y[1] != 6) return 5;
  const auto failed = model.run({nullptr, &scale, nullptr});
  if (failed || failed.status() != NET_NULL_POINTER || model.status() != NET_NULL_POINTER) return 6;
  MISTAKE
  return status;
}
"""
# What would read a failure as success, or lose it.
WRONG = ["if (model.run(in, out)) return 9;", "if (!model.run(in, out)) return 9;", "while (model.reset()) status = NET_OK;",
         "return model.status() ? 1 : 0;", "if (model.run(in, out) && scale > 2) return 9;", "bool b = model.run(in, out); if (b) return 9;",
         "const bool b{model.finish()}; if (b) return 9;", "[](bool) {}(model.reset());", "model.run(in);", "model.run(in, out);",
         "model.status();", "model.finish();", "const net::Outputs y2 = model.run(in); if (y2.y.empty()) return 9;"]


def case_conditions(world):
    """No status and no run of the wrapper is a condition that reads a failure as success; outputs that are not there end the
    program."""
    project = project_of(world)
    for compiler in compilers():
        for standard in ("c++17", "c++20"):
            program_of(world, project, CONDITIONS.replace("MISTAKE", ""), compiler, standard)
            world.run([world.path("caller")])
        source = world.path("wrong.cpp")
        for wrong in WRONG:
            source.write_text(CONDITIONS.replace("MISTAKE", wrong), encoding="utf-8")
            refused = world.run([compiler, "-std=c++17", *WARNINGS, f"-I{project}/include", "-fsyntax-only", source], status=1)
            check("error" in refused.stderr, f"{compiler} takes {wrong}")
        program_of(world, project, CONDITIONS.replace("MISTAKE", "return static_cast<int>(failed->y[0]);"), compiler, "c++17")
        world.run([world.path("caller")], status=-signal.SIGABRT)


BOTH_TARGETS = """
#include "net/net.HEADER"
unsigned char arena[NET_ARENA_BYTES], state[NET_STATE_BYTES];
net_status step(const net_memory* memory, const net_inputs* inputs, const net_outputs* outputs);
net_status step(const net_memory* memory, const net_inputs* inputs, const net_outputs* outputs) {
  net_status status = net_run(memory, inputs, outputs);
  if (status == NET_OK) status = net_enqueue(memory, inputs, outputs);
  if (status == NET_OK) status = net_finish(memory);
  if (status == NET_DEVICE_ERROR && net_device_error(memory)[0] != 0) status = net_reset(memory);
  if (status == NET_UNSUPPORTED_PROCESSOR && net_status_text(status)[0] == 0) net_release(memory);
  return sizeof(arena) + sizeof(state) == 0 ? NET_OK : status;
}
"""
CPP_OF_BOTH_TARGETS = """
net_status of_the_wrapper(net::Model& model, const net_inputs& inputs, const net_outputs& outputs);
net_status of_the_wrapper(net::Model& model, const net_inputs& inputs, const net_outputs& outputs) {
  if (model.run(inputs, outputs) == NET_OK && model.finish().ok() && model.reset().ok()) {
    if (const auto result = model.run(inputs)) return result->y.empty() ? NET_OK : step(&model.memory(), &inputs, &outputs);
  }
  return model.status_text() == model.status_string() ? NET_OK : model.status().code();
}
"""
NO_BLOCKS = "int main(void) { net_memory memory = {0}; net_status status; memory.instance = block; status = net_init(&memory);" \
    " if (status == NET_OK) status = step(&memory, &inputs, &outputs); net_release(&memory);" \
    " return status == NET_OK && net_finish(&memory) == NET_NOT_INITIALIZED ? 0 : 1; }\n"


def case_both_targets(world):
    """One program text serves projects of both targets, in C and C++, without a warning; what one of them alone has is listed."""
    named = []
    for target in ("cpp", "cuda"):
        source = world.path("net.onnxtxt")
        source.write_text(MODEL.partition("net (")[0] + "net (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", encoding="utf-8")
        project = world.path(target)
        world.compile(source, project, "--name", "net", "--target", target)
        emulator = ["-isystem", ROOT / "runtime_stub" / "emulator"] if target == "cuda" else []
        for compiler in compilers():
            for suffix, standard in (("c", "c99"), ("c", "c11"), ("cpp", "c++11"), ("cpp", "c++17"), ("cpp", "c++20")):
                caller = world.path(f"caller.{suffix}")
                wraps = standard in ("c++17", "c++20")
                text = BOTH_TARGETS.replace("HEADER", "hpp" if wraps else "h") + (CPP_OF_BOTH_TARGETS if wraps else "")
                caller.write_text(text, encoding="utf-8")
                world.run([compiler if suffix == "cpp" else c_compiler(compiler), f"-std={standard}", "-Wpedantic", *WARNINGS,
                           *emulator, f"-I{project}/include", "-fsyntax-only", caller])
        header = (project / "include/net/net.h").read_text(encoding="utf-8")
        wrapper = (project / "include/net/net.hpp").read_text(encoding="utf-8")
        named.append({f"NAME_{name}" for name in re.findall(r"\bNET_API [^;(]*?\bnet_(\w+)\(", header)} |
                     {f"NAME_{name}" for name in re.findall(r"^(?:#define |  )NET_(\w+)[ ,]", header, re.MULTILINE)} |
                     {f"NAME::{name}" for name in re.findall(r"^(?:class|struct) (?:\[\[nodiscard\]\] )?(\w+)", wrapper, re.MULTILINE)} |
                     {f"NAME::Model::{name}()" for name in re.findall(r"^  \[\[nodiscard\]\] [\w:*& ]+ (\w+)\(", wrapper, re.MULTILINE)})
    check(all(f"NAME_{name}" in named[0] & named[1] for name in ("run", "finish", "DEVICE_ERROR", "ARENA_BYTES")), f"{named}")
    page = (ROOT / "docs" / "reading_the_output.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \| C\+\+ \| .+ \|$", page, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(NAME[\w:()]+)`", row)} - {"NAME::Model::state()"}  # no state here
    own = {"NAME::DeviceBlock", "NAME::HostBlock", "NAME::Model::get()"}  # of what a wrapper owns, and of Threads
    equal(sorted(name for name in named[0] ^ named[1] if name not in own), sorted(listed), "what one target alone has")


def case_blocks_of_no_bytes(world):
    """Arrays as large as the macros say are arrays, and where nothing is needed there may be none."""
    source = world.path("relu.onnxtxt")
    source.write_text(MODEL.partition("net (")[0] + "net (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", encoding="utf-8")
    project = world.path("relu")
    world.compile(source, project, "--name", "net")
    equal(manifest(project, "net")["arena_bytes"], 0, "the arena")
    text = BOTH_TARGETS.replace("HEADER", "h") + "static _Alignas(64) unsigned char block[NET_INSTANCE_BYTES];\n" \
        "static float x[6], y[6];\nstatic const net_inputs inputs = {x};\nstatic const net_outputs outputs = {y};\n" + NO_BLOCKS
    for compiler in compilers():
        program_of(world, project, text, compiler)
        world.run([world.path("caller")])


CONSUMER = """
cmake_minimum_required(VERSION 3.16)
project(consumer LANGUAGES C CXX)
find_package(first ${VERSION} CONFIG REQUIRED)
find_package(second CONFIG REQUIRED)
add_executable(consumer main.cpp)
target_compile_features(consumer PRIVATE cxx_std_17)
target_compile_definitions(consumer PRIVATE WEIGHTS="${SECOND_WEIGHTS}")
target_link_libraries(consumer PRIVATE first::first second::second first::threads)
"""
CONSUMER_MAIN = """
#include "first/first.hpp"
#include "second/second.hpp"
int main() {
  first::Threads threads(2);
  first::Model one(threads.get());
  second::Model other(WEIGHTS);
  const float x[4] = {1, 2, 3, 4};
  const auto sums = one.run({x});
  const auto again = other.run({x});
  return sums && again && sums->y[0] == 10 && sums->y == again->y ? 0 : 1;
}
"""
VENDOR = """
cmake_minimum_required(VERSION 3.16)
project(vendor LANGUAGES C CXX ASM)
add_subdirectory(${FIRST} first)
"""


def two_projects(world, *flags):
    """Two models for one product; the weights of the second lie in a file."""
    source = world.path("sum.onnxtxt")
    source.write_text(MODEL.partition("net (")[0] + "net (float[1,4] x) => (float[1,2] y) <float[4,2] w = "
                      "{1, 0, 1, 0, 1, 0, 1, 0}> { y = MatMul(x, w) }", encoding="utf-8")
    projects = [world.path("first_project"), world.path("second_project")]
    world.compile(source, projects[0], "--name", "first", *flags)
    world.compile(source, projects[1], "--name", "second", "--weights", "file", *flags)
    return projects


def consumer(world, prefix, *flags, version=VERSION.rpartition(".")[0], status=0):
    """A product that finds both packages."""
    place = world.path("consumer")
    place.mkdir(exist_ok=True)
    (place / "CMakeLists.txt").write_text(CONSUMER, encoding="utf-8")
    (place / "main.cpp").write_text(CONSUMER_MAIN, encoding="utf-8")
    build = world.path(f"consumer_of_{prefix.name}_{version}")
    configured = world.run(["cmake", "-S", place, "-B", build, "-G", "Unix Makefiles", f"-DCMAKE_PREFIX_PATH={prefix}",
                            f"-DVERSION={version}", *flags], status=status)
    if status == 0:
        world.run(["cmake", "--build", build])
        world.run([build / "consumer"])
    return configured


def consumer_by_pkg_config(world, place, *words):
    """The same, by what pkg-config says."""
    environment = {**os.environ, "PKG_CONFIG_PATH": str(place / "pkgconfig"), "PKG_CONFIG_ALLOW_SYSTEM_CFLAGS": "1"}

    def told(*query):
        return world.run(["pkg-config", *words, *query], env=environment).stdout.split()
    source = world.path("main.cpp")
    source.write_text(CONSUMER_MAIN, encoding="utf-8")
    world.run(["g++", "-std=c++17", f'-DWEIGHTS="{told("--variable=weights", "second")[0]}"', source,
               *told("--cflags", "--libs", "first_threads", "second"), "-o", world.path("by_pkg_config")])
    world.run([world.path("by_pkg_config")])
    equal(told("--modversion", "first"), [VERSION], "the version")


def files_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def case_installed_by_cmake(world):
    """Two projects in one prefix, which then is moved; a product finds them by CMake and by pkg-config. A product that takes a
    project in installs nothing of it unless it says so."""
    projects = two_projects(world)
    for name, project in zip(("first", "second"), projects):
        build = world.path(f"build_{name}")
        world.run(["cmake", "-S", project, "-B", build, "-G", "Unix Makefiles", f"-D{name.upper()}_ARCH=", "-DCMAKE_BUILD_TYPE=Debug",
                   f"-D{name.upper()}_BUILD_APPS=OFF"])
        world.run(["cmake", "--build", build, "-j2"])
        world.run(["cmake", "--install", build, "--prefix", world.path("made")])
    prefix = world.path("moved")
    world.path("made").rename(prefix)
    for project in projects:
        project.rename(world.path(f"{project.name}_elsewhere"))
    check({"include/first/first.h", "include/first/first.hpp", "lib/libfirst.a", "lib/libfirst_threads.a",
           "share/licenses/first/LICENSE", "share/second/second.weights.bin"} <= set(files_below(prefix)), files_below(prefix))
    consumer(world, prefix, "-DCMAKE_BUILD_TYPE=Release")
    refused = consumer(world, prefix, version="99", status=1)
    contains(refused.stderr, VERSION)
    consumer_by_pkg_config(world, prefix / "lib")
    vendor = world.path("vendor")
    vendor.mkdir()
    (vendor / "CMakeLists.txt").write_text(VENDOR, encoding="utf-8")
    for said, installs in (([], False), (["-DFIRST_INSTALL=ON"], True)):
        build = world.path(f"vendor_{installs}")
        world.run(["cmake", "-S", vendor, "-B", build, "-G", "Unix Makefiles", "-DFIRST_ARCH=", "-DCMAKE_BUILD_TYPE=Debug",
                   f"-DFIRST={world.path('first_project_elsewhere')}", *said])
        world.run(["cmake", "--build", build, "-j2"])
        world.run(["cmake", "--install", build, "--prefix", world.path(f"of_{installs}")])
        equal(world.path(f"of_{installs}").exists(), installs, "whether the product installs the model")
        cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
        equal("CMAKE_INSTALL_LIBDIR" in cache, installs, "whether the product's cache has folders to install to")


def case_installed_by_make(world):
    """The same by make, through the root of a package that is being made."""
    for name, project in zip(("first", "second"), two_projects(world)):
        world.run(["make", "-C", project, "-j2", "install", "ARCH=", "CXXFLAGS=-O0", "PREFIX=/opt/product",
                   f"DESTDIR={world.path('root of all')}"])
        check(not (project / "build" / f"{name}_run").exists(), "programs are built as well")
    root = world.path("root of all")
    check({"opt/product/lib/libfirst_threads.a", "opt/product/include/second/second.hpp", "opt/product/lib/pkgconfig/first.pc",
           "opt/product/share/licenses/second/LICENSE"} <= set(files_below(root)), files_below(root))
    root.rename(world.path("root"))
    consumer_by_pkg_config(world, world.path("root/opt/product/lib"),
                           *(f"--define-variable={name}={world.path('root')}/opt/product/{folder}" for name, folder in
                             (("libdir", "lib"), ("includedir", "include"),
                              ("weights", "share/second/second.weights.bin"))))


CUDA_CONSUMER = """
cmake_minimum_required(VERSION 3.18)
project(consumer LANGUAGES C CXX)
find_package(net CONFIG REQUIRED)
add_executable(consumer main.cpp)
target_compile_features(consumer PRIVATE cxx_std_17)
target_link_libraries(consumer PRIVATE net::net)
"""


def case_installed_for_cuda(world):
    """A CUDA project, of which a product that has no CUDA sources of its own finds all that it is linked with."""
    compiler = nvcc()
    toolkit = toolkit_folder(world)
    project = world.path("project")
    source = world.path("net.onnxtxt")
    source.write_text(MODEL.partition("net (")[0] + "net (float[2,3] x) => (float[2,3] y) { y = Relu(x) }", encoding="utf-8")
    world.compile(source, project, "--name", "net", "--target", "cuda", "--arch", "sm_80")
    build, prefix = world.path("build"), world.path("prefix")
    world.run(["cmake", "-S", project, "-B", build, "-G", "Unix Makefiles", f"-DCMAKE_CUDA_COMPILER={compiler}",
               "-DNET_BUILD_APPS=OFF"])
    world.run(["cmake", "--build", build])
    world.run(["cmake", "--install", build, "--prefix", prefix])
    place = world.path("consumer")
    place.mkdir()
    (place / "CMakeLists.txt").write_text(CUDA_CONSUMER, encoding="utf-8")
    main = place / "main.cpp"
    main.write_text('#include "net/net.hpp"\nint main() { net::Model model; return model.status().ok(); }\n', encoding="utf-8")
    world.run(["cmake", "-S", place, "-B", place / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCUDAToolkit_ROOT={toolkit}"])
    world.run(["cmake", "--build", place / "build"])
    made = world.path("made")
    world.run(["make", "-C", project, "install", f"PREFIX={made}", f"NVCC={compiler}", "ARCH=sm_80"])
    flags = world.run(["pkg-config", "--cflags", "--libs", "net"],
                      env={**os.environ, "PKG_CONFIG_PATH": str(made / "lib" / "pkgconfig")}).stdout.split()
    world.run(["g++", "-std=c++17", main, f"-I{toolkit}/include", *flags, f"-L{toolkit}/lib64", "-o", world.path("by_pkg_config")])


if __name__ == "__main__":
    run_main(globals())
