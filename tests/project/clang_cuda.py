#!/usr/bin/env python3
"""Emitted CUDA projects with Clang as compiler of CUDA: each source for host and devices, by CMake, and by make.

    clang_cuda.py --gcompile GCOMPILE [CASE...]

Clang knows the CUDA Toolkits that are older than itself. That of Debian 12 takes this one behind a folder of links
(`Toolkit`): a header is missing that nobody uses, `fatbinary` has other options, and `ptxas` no longer knows the
architecture that CMake tries a compiler with.
"""

import pathlib
import re
import shutil

from cuda import EXAMPLE_FLAGS, EXAMPLES, MODELS, toolkit_folder
from support import ROOT, WARNINGS, Skip, check, contains, flags, run_main
from warpgroups import product

LEAST = int(re.search(r'"Clang (\d+) or later is needed to compile CUDA',
                      (ROOT / "runtime_stub/gcrt/config.h").read_text(encoding="utf-8"))[1])
ARCHITECTURES = ["sm_80", "sm_90a"]
TOLERANT = [*WARNINGS, "-Wno-unknown-cuda-version"]
# A program in front of the compiler: what stands in place of it, with the words of an older toolkit.
WORDS = r"s/^sm_52$/sm_75/; s/=sm_52,/=sm_75,/; s/^--image=profile=sm_/--image3=kind=elf,sm=/"


def clang():
    for version in range(LEAST + 9, LEAST - 1, -1):
        if found := shutil.which(f"clang++-{version}"):
            return found
    raise Skip(f"there is no Clang {LEAST} or later")


def toolkit(world):
    """The CUDA Toolkit as the Clang here takes it."""
    real = toolkit_folder(world)
    if not (real / "include" / "cuda_runtime.h").exists():
        raise Skip(f"{real} is not a CUDA Toolkit")
    place = world.path("cuda")
    for folder in ("bin", "include"):
        (place / folder).mkdir(parents=True)
        for entry in (real / folder).iterdir():
            (place / folder / entry.name).symlink_to(entry.resolve())
    for entry in real.iterdir():
        if entry.name not in ("bin", "include"):
            (place / entry.name).symlink_to(entry.resolve())
    (place / "include" / "texture_fetch_functions.h").touch()
    for tool in ("ptxas", "fatbinary"):
        wrapper = place / "bin" / tool
        wrapper.unlink()
        wrapper.write_text(f"""#!/bin/sh
for word in "$@"; do
  shift
  case $word in
    --image=profile=compute_*) ;;
    *) set -- "$@" "$(printf %s "$word" | sed '{WORDS}')" ;;
  esac
done
exec {real}/bin/{tool} "$@"
""")
        wrapper.chmod(0o755)
    # It tells CMake where it lies, and CMake tells Clang.
    (place / "bin" / "nvcc").unlink()
    shutil.copy2(real / "bin" / "nvcc", place / "bin" / "nvcc")
    return place


def compiles(world, project):
    """Every CUDA source, host and devices, without a warning."""
    compiler, cuda = clang(), toolkit(world)
    for source in sorted((project / "src").glob("*.cu")) + [project / "apps" / "bench.cu"]:
        world.run([compiler, "-std=c++17", "-O1", *flags("cpp"), *TOLERANT, f"--cuda-path={cuda}",
                   *(f"--cuda-gpu-arch={arch}" for arch in ARCHITECTURES), f"-I{project}", f"-I{project}/include",
                   f"-I{project}/apps", "-c", source, "-o", world.path(f"{source.stem}.o")])


def example(world, model, *precision):
    return world.example(MODELS[model], model, "--target", "cuda", "--name", "m", *precision)


def case_convolutions(world):
    compiles(world, example(world, "classifier"))


def case_state(world):
    compiles(world, example(world, "denoiser", "--precision", "bf16"))


def case_attention(world):
    compiles(world, example(world, "attention"))


def case_attention_fp16(world):
    compiles(world, example(world, "attention", "--precision", "fp16"))


def case_decoder(world):
    """With sizes of a run's own, and caches that grow in place."""
    place = world.path("decoder")
    world.compile(EXAMPLES / "storyteller" / "model.onnx", place, "--target", "cuda", "--name", "m", "--precision", "fp16",
                  *EXAMPLE_FLAGS["storyteller"])
    compiles(world, place)


def case_warpgroups(world):
    """wgmma, TMA and barriers of sm_90a."""
    place = world.path("large")
    world.compile(product(world, 1024, 3072, 768), place, "--target", "cuda", "--name", "m", "--arch", "sm_90a", "--precision",
                  "fp16")
    contains("".join(path.read_text() for path in (place / "src").glob("*.cu")), "wgmma")
    compiler, cuda, ptx = clang(), toolkit(world), world.path("large.ptx")
    command = [compiler, "-std=c++17", "-O1", *flags("cpp"), *TOLERANT, f"--cuda-path={cuda}", "--cuda-gpu-arch=sm_90a",
               "--cuda-device-only", "-S", f"-I{place}", f"-I{place}/include", place / "src" / "m_kernels.cu", "-o", ptx]
    if f"clang++-{LEAST}" in compiler:
        contains(world.run(command, status=1).stderr, "Clang 20 or later is needed for kernels of warpgroups")
        command += ["-U__clang_major__", "-D__clang_major__=20", "-Wno-builtin-macro-redefined", "-Wno-unknown-attributes"]
    world.run(command)
    contains(ptx.read_text(), "wgmma.mma_async", "cp.async.bulk.tensor", "mbarrier.try_wait")
    done = world.run([cuda / "bin" / "ptxas", "-arch=sm_90a", "-v", ptx, "-o", world.path("large.cubin")])
    check("(C75" not in done.stderr, f"ptxas waits for every wgmma:\n{done.stderr}")


def case_cmake(world):
    """A whole project, programs too."""
    project, cuda = example(world, "attention", "--precision", "fp16", "--selftest"), toolkit(world)
    build = world.path("build")
    world.run(["cmake", "-S", project, "-B", build, f"-DCMAKE_CUDA_COMPILER={clang()}", f"-DCUDAToolkit_ROOT={cuda}",
               "-DCMAKE_CUDA_ARCHITECTURES=80-real", f"-DCMAKE_CUDA_FLAGS={' '.join(TOLERANT)}"])
    done = world.run(["cmake", "--build", build, "-v"])
    contains(done.stdout, *flags("cpp"), "-fno-exceptions")
    check("--threads" not in done.stdout, "an option of nvcc")
    for program in ("run", "bench", "selftest"):
        check((build / f"m_{program}").exists(), f"no m_{program}")


def case_make(world):
    project, cuda = example(world, "attention", "--precision", "fp16"), toolkit(world)
    world.run(["make", f"NVCC={clang()}", "ARCH=sm_80", f"CUDA={cuda}", f"NVCCFLAGS=-O1 {' '.join(TOLERANT)}", "all"],
              cwd=project)


if __name__ == "__main__":
    run_main(globals())
