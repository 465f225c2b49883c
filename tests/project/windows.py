#!/usr/bin/env python3
"""Emitted projects on Windows: by MinGW as whole programs, by clang for its two ABIs, and what MSVC is shown.

    windows.py --gcompile GCOMPILE [CASE...]

There is no Windows SDK here. MinGW's headers have what differs between the systems; Wine, where it is, runs the programs.
"""

import os
import pathlib
import re
import shutil

from support import EXAMPLE_FLAGS, EXAMPLES, LIBRARY_FLAGS, ROOT, WARNINGS, Skip, check, compilers, contains, equal, run_main

MINGW = "x86_64-w64-mingw32-"
EMULATOR = ROOT / "runtime_stub" / "emulator"
# What no other compiler than GCC and Clang knows, and what Windows does not have.
FOREIGN = re.compile(r'__attribute__|__builtin_|__asm__|__extension__|_Pragma|__typeof|__int128|__restrict__|__PRETTY_FUNCTION__|'
                     r"\b(mmap|sysconf|pthread_\w+|clock_gettime|gettimeofday|posix_memalign|aligned_alloc|popen|pclose|usleep|"
                     r"ssize_t|isatty|fileno|strcasecmp|setenv|dlopen)\b")
ASSEMBLY = re.compile(r"\basm\b")
# Headers of functions for the device alone, whose bodies the host's compiler never gets.
OF_THE_DEVICE = re.compile(r"gcrt/cuda/(device/(device|tensor_core|cluster)|\w+/hopper\w*)\.h$")


def mingw():
    if not shutil.which(MINGW + "g++"):
        raise Skip("there is no MinGW: scripts/install_packages.sh test installs it")
    return MINGW + "g++"


def wine():
    """The command, or nothing."""
    found = next((path for path in (shutil.which("wine64"), shutil.which("wine"), "/usr/lib/wine/wine64")
                  if path and os.access(path, os.X_OK)), None)
    if found is None:
        print("         not run: there is no Wine", flush=True)
    return found


def toolchain(world):
    path = world.path("mingw.cmake")
    path.write_text(f"set(CMAKE_SYSTEM_NAME Windows)\nset(CMAKE_SYSTEM_PROCESSOR x86_64)\n"
                    f"set(CMAKE_C_COMPILER {MINGW}gcc)\nset(CMAKE_CXX_COMPILER {MINGW}g++)\n"
                    f"set(CMAKE_EXE_LINKER_FLAGS_INIT -static)\n", encoding="utf-8")
    return path


def run_under_wine(world, project, program, *words):
    command = wine()
    if command is None:
        return None
    return world.run([command, program, *words], cwd=project, env={**os.environ, "WINEPREFIX": str(world.path("wine")), "WINEDEBUG": "-all",
                                                      "DISPLAY": ""})


def built(world, example, *options):
    """The project and its build folder, by CMake and MinGW without a warning, and its self test where it can run."""
    mingw()
    project = world.example(example, "project", "--name", "m", "--selftest", *options)
    build = world.path("build")
    world.run(["cmake", "-S", project, "-B", build, f"-DCMAKE_TOOLCHAIN_FILE={toolchain(world)}", "-DM_ARCH=x86-64-v3",
               f"-DCMAKE_CXX_FLAGS={' '.join(WARNINGS)}"])
    world.run(["cmake", "--build", build, "-j2"])
    for program in ("run", "bench", "selftest"):
        check((build / f"m_{program}.exe").exists(), f"no m_{program}.exe")
    if done := run_under_wine(world, project, build / "m_selftest.exe"):
        check("ok   run 1:" in done.stdout and "FAIL" not in done.stdout, done.stdout)
    return project, build


def case_transformer(world):
    """On two threads it prints what it prints on Linux."""
    project, build = built(world, "tiny_attention")
    if done := run_under_wine(world, project, build / "m_run.exe", "--random", "1", "--threads", "2"):
        world.run(["make", "-C", project, "ARCH=x86-64-v3", "CXXFLAGS=-O1", "build/m_run"])
        equal(done.stdout.split(), world.run([project / "build" / "m_run", "--random", "1"]).stdout.split(), "values")


def case_state(world):
    built(world, "streaming_denoiser", "--weights", "array")


def case_levels_by_make(world):
    """The library takes the best level that the processor has."""
    mingw()
    project = world.example("shapes_classifier", "project", "--name", "m", "--selftest")
    world.run(["make", f"CXX={MINGW}g++", f"CC={MINGW}gcc", f"AR={MINGW}ar", "ARCH=levels", "LDFLAGS=-static", "-j2",
               f"CXXFLAGS=-O1 {' '.join(WARNINGS)}"], cwd=project)
    if done := run_under_wine(world, project, project / "build" / "m_selftest.exe"):
        check("ok   run 1:" in done.stdout and "FAIL" not in done.stdout, done.stdout)


def case_wrapper(world):
    """What a product includes."""
    project = world.example("tiny_attention", "project", "--name", "m")
    source = world.path("product.cpp")
    source.write_text('#include <windows.h>\n#include "m/m.hpp"\nint main() {\n  m::Threads threads(2);\n'
                      "  m::Model model(threads.get());\n  return model.status() == M_OK ? 0 : 1;\n}\n")
    world.run([mingw(), "-std=c++20", *WARNINGS, f"-I{project}/include", "-c", source, "-o", world.path("product.o")])


def case_host_of_cuda(world):
    """Against the runtime's declarations that the emulator has: schedule, kernels, programs."""
    compiler = mingw()
    project = world.example("streaming_denoiser", "project", "--name", "m", "--target", "cuda", "--selftest")
    for source in [*(project / "src").glob("*.cu"), *(project / "apps").glob("*.c*"), *(project / "tests").glob("*.cpp")]:
        world.run([compiler, "-std=c++17", "-O0", *WARNINGS, "-isystem", EMULATOR, f"-I{project}",
                   f"-I{project}/include", f"-I{project}/apps", "-x", "c++", "-c", source, "-o", world.path(f"{source.name}.o")])


def case_clang(world):
    """Clang for MinGW's ABI compiles the library, for MSVC's takes the weights in."""
    searched = world.run([mingw(), "-x", "c++", "-E", "-v", "/dev/null"]).stderr
    headers = searched.split("search starts here:\n")[-1].split("End of search list")[0].split()
    compiler = compilers()[-1]
    project = world.example("tiny_attention", "project", "--name", "m")
    for source in (project / "src").glob("*.cpp"):
        world.run([compiler, "--target=x86_64-w64-windows-gnu", "-std=c++17", "-O1", "-march=x86-64-v3",
                   *(word for folder in headers if "c++" in folder for word in ("-isystem", folder)), *(flag for flag in LIBRARY_FLAGS if flag != "-fPIC"), *WARNINGS, f"-I{project}", f"-I{project}/include", "-c",
                   source, "-o", world.path(f"{source.stem}.o")])
    weights = world.path("weights.obj")
    for how in (["--target=x86_64-pc-windows-msvc"], ["--driver-mode=cl", "--target=x86_64-pc-windows-msvc"]):
        world.run([compiler.replace("clang++", "clang"), *how, f"-I{project}/data", "-c", project / "src" / "m_weights.S", "-o",
                   weights])
        contains(world.run([MINGW + "nm", weights]).stdout, " R m_weights_data")


def preprocess_as_msvc(world, project, source, **options):
    """As it would read a source; of CUDA, where nvcc runs it for the host. Headers of the system are empty."""
    system = world.path("system")
    for path in project.rglob("*"):
        if path.suffix in (".h", ".hpp", ".cu", ".cpp", ".c"):
            for header in re.findall(r"#include <([^>]+)>", path.read_text(encoding="utf-8")):
                (system / header).parent.mkdir(parents=True, exist_ok=True)
                (system / header).touch()
    language = ["-x", "c"] if source.suffix == ".c" else ["-x", "c++", "-std=c++17"]
    cuda = ["-D__CUDACC__", "-D__CUDACC_VER_MAJOR__=13"] if source.suffix == ".cu" else []
    return world.run([compilers()[-1], "--target=x86_64-pc-windows-msvc", "-U__clang__", "-nostdinc", "-E", *language, *cuda,
                      f"-I{system}", f"-I{project}", f"-I{project}/include", f"-I{project}/apps", source], **options)


def shown_to_msvc(world, project, source):
    """Its lines with those that it includes: (file, text)."""
    file = None
    for line in preprocess_as_msvc(world, project, source).stdout.splitlines():
        if match := re.match(r'# \d+ "([^"]*)"', line):
            file = match[1]
        elif file:
            yield file, line


def case_what_msvc_is_shown(world):
    """No attribute, function or statement that it does not know."""
    source = world.path("probe.cpp")
    source.write_text('#include "gcrt/config.h"\n#if GCRT_MSVC\nvoid probe() { __builtin_trap(); }\n#endif\n')
    count = 0
    for example, options in (("shapes_classifier", []), ("tiny_attention", ["--precision", "fp16", "--arch", "sm_90a"]),
                             ("streaming_denoiser", []), ("storyteller", [])):
        project = world.path(example)
        world.compile(EXAMPLES / example / "model.onnx", project, "--name", "m", "--target", "cuda", "--weights", "array",
                      "--selftest", *options, *EXAMPLE_FLAGS.get(example, []))
        found = list(shown_to_msvc(world, project, source))
        check(any(FOREIGN.search(line) for _, line in found), "the probe is not found")
        wrapper = world.path("wrapper.cpp")
        wrapper.write_text('#include "m/m.hpp"\n')
        for path in [wrapper, *(file for folder in ("src", "apps", "tests") for file in (project / folder).glob("*.c*"))]:
            for file, line in shown_to_msvc(world, project, path):
                count += 1
                check(not FOREIGN.search(line), f"{file}: {line}")
                check(not ASSEMBLY.search(line) or OF_THE_DEVICE.search(file), f"{file}: {line}")
    check(count > 10000, f"only {count} lines")


def case_msvc_is_refused(world):
    """By the kernels for CPUs, in a sentence; by a CUDA project whose weights are a file taken in, in another."""
    project = world.example("tiny_attention", "cpp", "--name", "m")
    source = world.path("kernels.cpp")
    source.write_text('#include "gcrt/pack_types.h"\n')
    contains(preprocess_as_msvc(world, project, source, status=1).stderr, "GCC or Clang is needed, which may be clang-cl")
    cmake = (world.example("tiny_attention", "cuda", "--name", "m", "--target", "cuda") / "CMakeLists.txt").read_text()
    contains(cmake, "MSVC cannot take in m.weights.bin")


if __name__ == "__main__":
    run_main(globals())
