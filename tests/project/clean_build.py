#!/usr/bin/env python3
"""Emitted sources in an empty world: no warning from two compilers, nothing included from outside, usable from C, by
CMake alone or inside a product, and by make.

    clean_build.py --gcompile GCOMPILE [CASE...]
"""

import os
import pathlib
import shutil

from onnx_bytes import shape_flags
from support import (HERE, SHARED_MODELS, WARNINGS, c_compiler, check, compilers, contains, equal,
                     library_levels, library_sources, main_suite, manifest, march_flags, run_main, shared_model)

# Where a compiler and its standard library live; anything else must come from the project itself.
SYSTEM = ("/usr/include/c++/", "/usr/include/x86_64-linux-gnu/", "/usr/include/aarch64-linux-gnu/", "/usr/lib/gcc/",
          "/usr/lib/llvm-", "/usr/lib/clang/", "/usr/include/")
# Below /usr/include the packages of Debian lie as well; the C library has no folders of these names.
FOREIGN = ("onnx", "google", "fmt", "nlohmann", "CLI", "gtest", "gmock", "zlib.h")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}


def emptied(world, project):
    """The project alone in a new place; the run that made it is gone."""
    place = world.path(f"elsewhere_{project.name}")
    shutil.move(project, place)
    return place


def compile_source(world, compiler, source, flags, project, target="/dev/null"):
    """Compiles without a word of complaint and checks every file that was read."""
    dependencies = world.path("dependencies.d")
    done = world.run([compiler, *flags, "-MD", "-MF", dependencies, "-c", source, "-o", target], env=ENVIRONMENT,
                     cwd=world.folder)
    equal(done.stderr, "", f"{compiler} {source.name}")
    for word in dependencies.read_text(encoding="utf-8").replace("\\\n", " ").split()[1:]:
        path = pathlib.Path(os.path.normpath(word))
        if project in path.parents or path == source:
            continue
        check(str(path).startswith(SYSTEM), f"{source.name} includes {path}")
        foreign = str(path).startswith("/usr/include/") and path.relative_to("/usr/include").parts[0] in FOREIGN
        check(not foreign, f"{source.name} includes {path}")


def compile_all(world, project, name, compiler, level=("-O1",)):
    """The library with the flags that forbid most, the programs with all warnings."""
    includes = [f"-I{project}", f"-I{project}/include", f"-I{project}/apps"]
    # The thread pool is no part of the library, but of products that are built as it is.
    for source in [*library_sources(project, name), project / "src" / f"{name}_threads.cpp"]:
        if source.suffix == ".cpp":
            flags = ["-std=c++17", "-Wpedantic", *WARNINGS, "-fno-exceptions", "-fno-rtti", *level, *includes[:2]]
        else:
            flags = ["-std=c99", "-pedantic", *WARNINGS] if source.suffix == ".c" else [f"-I{project}/data"]
        compile_source(world, compiler if source.suffix == ".cpp" else c_compiler(compiler), source, flags, project)
    for source in [*sorted((project / "apps").glob("*.cpp")), *sorted((project / "tests").glob("*.cpp"))]:
        compile_source(world, compiler, source, ["-std=c++17", *WARNINGS, "-O0", *includes], project)
    # Each header stands alone, and may be included twice.
    for header in [*sorted(project.glob("include/*/*.h*")), *sorted(project.glob("src/*.h"))]:
        source = world.path(f"{header.name}.cpp")
        source.write_text(f'#include "{header}"\n#include "{header}"\n', encoding="utf-8")
        compile_source(world, compiler, source, ["-std=c++17", *WARNINGS, "-O0", *includes], project)
    source = world.path("header.c")
    source.write_text(f'#include "{name}/{name}.h"\nint main(void) {{ return 0; }}\n', encoding="utf-8")
    compile_source(world, c_compiler(compiler), source,
                   ["-std=c99", "-pedantic", *WARNINGS, f"-I{project}/include"], project)


def check_example(world, example):
    project = emptied(world, world.example(example, example, "--name", "plain", "--selftest"))
    for compiler in compilers():
        # The widest and the narrowest vectors take other paths through the runtime.
        for march in (march_flags()[0], march_flags()[-1]) if compiler == "g++" else march_flags()[-1:]:
            compile_all(world, project, "plain", compiler, [flag for flag in ("-O1", march) if flag])


def case_warnings_classifier(world):
    check_example(world, "shapes_classifier")


def case_warnings_denoiser(world):
    check_example(world, "streaming_denoiser")


def case_warnings_attention(world):
    check_example(world, "tiny_attention")


def case_warnings_operators(world):
    """At -O0 every operator has a kernel of its own."""
    for level in ("-O0", "-O3"):
        project = world.path(f"many{level}")
        world.compile(HERE / "models" / "many_operators.onnxtxt", project, "--name", "plain", level)
        project = emptied(world, project)
        for compiler in compilers():
            compile_all(world, project, "plain", compiler, ("-O1", march_flags()[-1]))


def case_warnings_weights(world):
    """The other ways to bring weights: C99 words, a file, the caller's pointer."""
    for kind in ("array", "file", "extern"):
        project = emptied(world, world.example("shapes_classifier", kind, "--name", "plain", "--weights", kind))
        for compiler in compilers():
            compile_all(world, project, "plain", compiler, ("-O0",))


def case_include_check_detects(world):
    """compile_source() sees a foreign header and a warning."""
    folder = world.path("project")
    folder.mkdir()
    for text in ("#include <onnx/onnx_pb.h>\n", "int f(long x) { return x; }\n", f"#include \"{world.path('h.h')}\"\n"):
        world.path("h.h").write_text("\n", encoding="utf-8")
        source = folder / "source.cpp"
        source.write_text(text, encoding="utf-8")
        try:
            compile_source(world, "g++", source, ["-std=c++17", *WARNINGS], folder)
        except Exception:  # pylint: disable=broad-except
            continue
        check(False, f"not seen: {text}")


C_MAIN = """
#include "plain/plain.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *block(size_t bytes) {
  void *data = aligned_alloc(PLAIN_ALIGN, (bytes / PLAIN_ALIGN + 1) * PLAIN_ALIGN);
  if (data == NULL) exit(1);
  memset(data, 0xff, bytes);
  return data;
}

int main(void) {
  static float image[3072];
  float probabilities[PLAIN_OUTPUT_PROBABILITIES_ELEMENTS], sum = 0;
  plain_memory memory = {0};
  plain_inputs inputs;
  plain_outputs outputs;
  int i;
  inputs.image = image;
  outputs.probabilities = probabilities;
  memory.arena = block(PLAIN_ARENA_BYTES);
  memory.instance = block(PLAIN_INSTANCE_BYTES);
  if (plain_run(&memory, &inputs, &outputs) != PLAIN_NOT_INITIALIZED) return 2;
  if (plain_init(&memory) != PLAIN_OK) return 3;
  if (plain_run(&memory, &inputs, &outputs) != PLAIN_OK) return 4;
  for (i = 0; i < 5; ++i) sum += probabilities[i];
  outputs.probabilities = NULL;
  if (plain_run(&memory, &inputs, &outputs) != PLAIN_NULL_POINTER) return 5;
  printf("%s %.3f\\n", plain_describe()->outputs[0].name, (double)sum);
  free(memory.arena);
  free(memory.instance);
  return 0;
}
"""


def case_c_program(world):
    """A C main, compiled as C and linked by the C compiler: the library needs no C++ library."""
    project = emptied(world, world.example("shapes_classifier", "project", "--name", "plain"))
    source = world.path("main.c")
    source.write_text(C_MAIN, encoding="utf-8")
    for compiler in compilers():
        objects = world.library_objects(project, "plain", compiler, ("-O1", march_flags()[-1]))
        program = world.path("program")
        world.run([c_compiler(compiler), "-std=c11", "-pedantic", *WARNINGS, f"-I{project}/include", source, *objects,
                   "-lm", "-o", program], env=ENVIRONMENT)
        equal(world.run([program], env={}).stdout, "probabilities 1.000\n", "what the program prints")


PRODUCT = """
cmake_minimum_required(VERSION 3.16)
project(product LANGUAGES C CXX ASM)
set(CMAKE_CXX_FLAGS "-O1 -march=x86-64 -DPRODUCT_FLAG")
add_subdirectory(${FIRST} first)
add_subdirectory(${SECOND} second)
add_executable(product main.cpp)
target_link_libraries(product PRIVATE first::first second::second second::threads)
"""
PRODUCT_MAIN = """
#include <cstdio>
#include "first/first.hpp"
#include "second/second.hpp"

int main() {
  first::Model one;
  second::Threads threads(2);
  second::Model other(threads.get());
  std::printf("%s %s %d\\n", one.status_text(), other.status_text(), threads.get() != nullptr);
}
"""


def case_cmake_subproject(world):
    """Two models in one product: targets do not clash, flags are the product's, kernels for every level, apps are not
    built."""
    first = emptied(world, world.example("shapes_classifier", "first_project", "--name", "first"))
    second = emptied(world, world.example("streaming_denoiser", "second_project", "--name", "second"))
    product = world.path("product")
    product.mkdir()
    flags = PRODUCT if march_flags()[0] else PRODUCT.replace("-march=x86-64 ", "")
    (product / "CMakeLists.txt").write_text(flags, encoding="utf-8")
    (product / "main.cpp").write_text(PRODUCT_MAIN, encoding="utf-8")
    build = product / "build"
    configured = world.run(["cmake", "-S", product, "-B", build, "-G", "Unix Makefiles", f"-DFIRST={first}",
                            f"-DSECOND={second}"], env=ENVIRONMENT)
    check("warning" not in configured.stderr.lower(), configured.stderr)
    built = world.run(["cmake", "--build", build, "--verbose"], env=ENVIRONMENT).stdout
    kernels = [line for line in built.splitlines() if "_kernels.cpp" in line and " -c " in line]
    levels = library_levels()
    equal(len(kernels), 2 * len(levels), "kernel compilations")
    for line in kernels:
        contains(line, "-DPRODUCT_FLAG", "-O1", "-fno-exceptions")
        check("-march=native" not in line, f"a subproject is for this machine only: {line}")
    for model in ("first", "second"):
        for level, march in levels.items():
            check(any(f"-D{model.upper()}_LEVEL={level}" in line and march in line for line in kernels),
                  f"{model} has no kernels for {level}")
    check("run.cpp" not in built, "a subproject builds its programs")
    equal(world.run([build / "product"], env={}).stdout, "ok ok 1\n", "what the product prints")


def run_runner(world, runner, project):
    """What the runner writes, started in a folder that is not the project's."""
    outputs = world.path("outputs/of a/run")  # the runner makes what is missing
    world.run([runner, "--random", "1", "--output-dir", outputs], cwd=world.folder, env={})
    shapes = manifest(project, "plain")["outputs"]
    equal(sorted(path.name for path in outputs.iterdir()),
          sorted(f"{index}_{tensor['c_name']}.npy" for index, tensor in enumerate(shapes)), "files of outputs")
    first = {path.name: path.read_bytes() for path in outputs.iterdir()}
    shutil.rmtree(world.path("outputs"))
    blocked = world.run([runner, "--random", "1", "--output-dir", runner / "below"], status=1, env={})
    contains(blocked.stderr, "error: cannot make the folder", "Not a directory")
    return first


def case_cmake_and_make(world):
    """Both build files, alone, in a world of compilers only; the same program comes out."""
    project = emptied(world, world.example("shapes_classifier", "project", "--name", "plain", "--selftest"))
    build = world.path("cmake_build")
    world.run(["cmake", "-S", project, "-B", build, "-G", "Unix Makefiles"], env=ENVIRONMENT)
    built = world.run(["cmake", "--build", build, "--verbose"], env=ENVIRONMENT)
    kernels = [line for line in built.stdout.splitlines() if "_kernels.cpp" in line and " -c " in line]
    contains(kernels[0], "-march=native")
    check("warning" not in built.stderr, built.stderr)
    by_cmake = run_runner(world, build / "plain_run", project)
    tested = world.run(["ctest", "--test-dir", build, "--output-on-failure", "--no-tests=error"], env=ENVIRONMENT)
    contains(tested.stdout, "100% tests passed")

    world.run(["make", "-C", project, "BUILD=" + str(world.path("make_build"))], env=ENVIRONMENT)
    by_make = run_runner(world, world.path("make_build") / "plain_run", project)
    equal(by_make, by_cmake, "outputs of the runner that make built")


def case_main_suite(world):
    """Long: every model of the main suite, as the compiler emits it at -O3 and -O0, on two compilers."""
    for model in main_suite():
        for level in ("-O3", "-O0"):
            project = world.path(f"{model}{level}")
            world.compile(shared_model(model), project, "--name", "plain", level,
                          *shape_flags(SHARED_MODELS / model))
            project = emptied(world, project)
            for compiler in compilers():
                compile_all(world, project, "plain", compiler, ("-O0", march_flags()[-1]))
            shutil.rmtree(project)
            print(f"         {model} {level}", flush=True)


if __name__ == "__main__":
    run_main(globals())
