#!/usr/bin/env python3
"""Code for a GPU that a project was not made for is refused while it is built: by its sources and by its CMake file.

    cuda_code.py --gcompile GCOMPILE [CASE...]
"""

import shutil

from cuda import nvcc
from support import EXAMPLES, ROOT, Skip, check, contains, run_main

# What it is made for, what that is in CMake, what is refused, and what is taken beside it.
MADE_FOR = (("sm_90a", "made for sm_90a alone", ("sm_90", "sm_80", "sm_120"), ("sm_90a",)),
            ("sm_87", "made for sm_87 and later", ("sm_80", "sm_86"), ("sm_87", "sm_90")),
            ("sm_80,sm_90a", "made for sm_80 and later", ("sm_75",), ("sm_80", "sm_90", "sm_90a", "sm_120")),
            ("compute_100", "made for sm_100 and later", ("sm_90", "sm_90a"), ("sm_100",)))


def project(world, arch, name="m"):
    folder = world.path(f"{name}_{arch.replace(',', '_')}")
    world.compile(EXAMPLES / "tiny_attention" / "model.onnx", folder, "--force", "--name", name, "--target", "cuda", "--arch", arch)
    return folder


def preprocessed(world, folder, source, code):
    """Exit status and words of the preprocessor, which sees the architecture: the rest would take minutes."""
    # For -arch=sm_90a nvcc makes PTX of compute_90 besides, which has none of its instructions.
    target = f"arch={code.replace('sm_', 'compute_')},code={code}"
    done = world.run([nvcc(), "-std=c++17", "-gencode", target, "-E", f"-I{folder}", f"-I{folder}/include", folder / "src" / source,
                      "-o", world.path("preprocessed")], status=None)
    return done.returncode, done.stdout + done.stderr


def case_sources(world):
    for arch, words, refused, taken in MADE_FOR:
        folder = project(world, arch)
        for source in ("m.cu", "m_kernels.cu"):
            for code in refused:
                status, said = preprocessed(world, folder, source, code)
                check(status != 0 and words in said, f"{source} for {arch} is compiled for {code}: {status} {said[-500:]}")
            for code in taken:
                status, said = preprocessed(world, folder, source, code)
                check(status == 0, f"{source} for {arch} is not compiled for {code}: {said[-500:]}")


def case_marks(world):
    """What tells code of sm_90a from that of sm_90 when it was loaded: the runtime has the same version for both."""
    source = world.path("marks.cu")
    source.write_text("""#define GCRT_NAMESPACE marked
#include "gcrt/cuda/device/code_check.h"
struct Owner {};
int main() { return static_cast<int>(marked::check_code<Owner>({90, true})); }
""")
    for code, marked in (("sm_90a", True), ("sm_90", False), ("sm_80", False), ("sm_120", False)):
        target = f"arch={code.replace('sm_', 'compute_')},code={code}"
        done = world.run([nvcc(), "-std=c++17", f"-I{ROOT}/runtime_stub", "-gencode", target, "-cubin", "-Xptxas", "-v", source,
                          "-o", world.path("marks.cubin")])
        check(("bytes smem" in done.stderr) == marked, f"{code}: {done.stderr}")


PRODUCT = """cmake_minimum_required(VERSION 3.18)
project(product LANGUAGES C CXX CUDA)
add_subdirectory(m)
"""


def case_product(world):
    """In a product with architectures of its own, and with a word for this library alone."""
    if not shutil.which("cmake"):
        raise Skip("there is no cmake")
    place = world.path("product")
    place.mkdir()
    (place / "CMakeLists.txt").write_text(PRODUCT)
    shutil.copytree(project(world, "sm_90a"), place / "m")
    build = world.path("build")

    def configured(*flags):
        done = world.run(["cmake", "-S", place, "-B", build, f"-DCMAKE_CUDA_COMPILER={nvcc()}", *flags], status=None)
        return done.returncode, " ".join((done.stdout + done.stderr).split())

    status, said = configured("-DCMAKE_CUDA_ARCHITECTURES=90")
    check(status != 0, "a build for 90 is configured")
    contains(said, "m is made for sm_90a alone, and not for 90 of CMAKE_CUDA_ARCHITECTURES", "M_CUDA_ARCHITECTURES")
    status, said = configured("-DCMAKE_CUDA_ARCHITECTURES=80;90a")
    check(status != 0 and "not for 80" in said, f"a build for 80 too is configured: {said[-500:]}")
    status, said = configured("-DCMAKE_CUDA_ARCHITECTURES=90", "-DM_CUDA_ARCHITECTURES=90a")
    check(status == 0, f"the library's own architecture is refused: {said[-800:]}")


if __name__ == "__main__":
    run_main(globals())
