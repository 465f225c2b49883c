#!/usr/bin/env python3
"""Emitted CUDA projects: right on the emulator, compiled for every GPU by nvcc, built by make alone.

    cuda.py --gcompile GCOMPILE [CASE...]
"""

import os
import pathlib
import re
import shutil

from support import EXAMPLE_FLAGS, EXAMPLES, HERE, Failure, Skip, check, contains, equal, run_main

MODELS = {"classifier": "shapes_classifier", "denoiser": "streaming_denoiser", "attention": "tiny_attention"}
ARCHITECTURES = ["80", "87", "90a", "110"]
LIBRARIES = {"linux-vdso.so.1", "libstdc++.so.6", "libgcc_s.so.1", "libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2",
             "libdl.so.2", "librt.so.1", "libpthread.so.0"}
MOST_BYTES = 3 << 20  # of the runner, without weights


def nvcc():
    for candidate in (shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc"):
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise Skip("there is no nvcc")


def verify(world, model, *flags):
    done = world.run([world.gcompile, "verify", EXAMPLES / MODELS[model] / "model.onnx", "--target", "cuda", "--emulate",
                      "--name", "m", "--cases", "2", *EXAMPLE_FLAGS.get(MODELS[model], []), *flags])
    contains(done.stdout + done.stderr, "verified")


def case_emulate_classifier(world):
    verify(world, "classifier")


def case_emulate_denoiser(world):
    verify(world, "denoiser")


def case_emulate_attention(world):
    verify(world, "attention")
    verify(world, "attention", "-O0")


def case_emulate_cublaslt(world):
    """Products left to the library, which the emulator has too."""
    verify(world, "attention", "--gemm", "cublaslt")


def budget():
    """Most registers and bytes of shared memory of any kernel, by model: cuda_budget.txt."""
    rows = {}
    for line in (HERE / "cuda_budget.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            model, registers = line.split()
            rows[model] = int(registers)
    return rows


def compile_for_gpus(world, model):
    """Every source for every architecture: no warning, no spill, registers within the budget."""
    compiler = nvcc()
    project = world.example(MODELS[model], model, "--target", "cuda", "--name", "m")
    known = world.run([compiler, "--list-gpu-code"]).stdout
    flags = []
    for number in ARCHITECTURES:
        if f"sm_{number.rstrip('a')}" in known:
            flags += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
    check(flags, "nvcc knows none of the architectures")
    most = 0
    for source in sorted((project / "src").glob("*.cu")):
        done = world.run([compiler, "-std=c++17", "-O3", "--fmad=false", "--threads", "2", *flags, "-Xptxas",
                          "-v,--warn-on-spills", f"-I{project}", f"-I{project}/include", "-c", source, "-o",
                          world.path(f"{source.stem}.o")])
        text = done.stdout + done.stderr
        check("warning" not in text, f"{source.name}: {text[-3000:]}")
        for spilled in re.findall(r"(\d+) bytes spill (?:stores|loads)", text):
            equal(int(spilled), 0, f"{source.name}: bytes spilled")
        most = max([most, *map(int, re.findall(r"Used (\d+) registers", text))])
    check(most > 0, "nvcc did not say how many registers the kernels use")
    print(f"         {model}: at most {most} registers", flush=True)
    check(most <= budget()[model], f"{most} registers, the budget is {budget()[model]}")


def case_nvcc_classifier(world):
    compile_for_gpus(world, "classifier")


def case_nvcc_denoiser(world):
    compile_for_gpus(world, "denoiser")


def case_nvcc_attention(world):
    compile_for_gpus(world, "attention")


def case_architectures(world):
    """--arch in the build files: machine code and PTX, each once."""
    for flags, make, cmake in (((), "sm_80 sm_87 sm_90 compute_90", "80-real;87-real;90-real;90-virtual"),
                               (("--arch", "sm_90a,compute_90,sm_90a"), "sm_90a compute_90", "90a-real;90-virtual")):
        project = world.example(MODELS["attention"], f"for_{len(flags)}", "--target", "cuda", "--name", "m", *flags)
        contains((project / "Makefile").read_text(), f"ARCH ?= {make}\n")
        contains((project / "CMakeLists.txt").read_text(), f'set(CMAKE_CUDA_ARCHITECTURES "{cmake}")')


def case_make(world):
    """By make alone; the runner needs nothing but the C++ library, and is small."""
    compiler = nvcc()
    project = world.example(MODELS["classifier"], "made", "--target", "cuda", "--name", "m")
    world.run(["make", "-j2", f"NVCC={compiler}", "ARCH=sm_80", "build/m_run"], cwd=project)
    runner = project / "build" / "m_run"
    needed = {pathlib.Path(word).name for word in re.findall(r"\S+\.so\S*", world.run(["ldd", runner]).stdout)}
    check(needed <= LIBRARIES, f"the runner needs {sorted(needed - LIBRARIES)}")
    weights = next((project / "data").glob("*.weights.bin")).stat().st_size
    size = runner.stat().st_size - weights
    check(size < MOST_BYTES, f"the runner has {size} bytes beside its weights")


def case_cublaslt(world):
    """An opt-in: products are the library's, and only then is it needed."""
    compiler = nvcc()
    if not (pathlib.Path(compiler).resolve().parent.parent / "include" / "cublasLt.h").exists():
        raise Skip("there is no cuBLASLt")
    plain = world.example(MODELS["attention"], "plain", "--target", "cuda", "--name", "m")
    project = world.example(MODELS["attention"], "library", "--target", "cuda", "--name", "m", "--gemm", "cublaslt")
    for folder, wanted in ((plain, False), (project, True)):
        equal((folder / "gcrt" / "cuda" / "cublaslt.h").exists(), wanted, "brings the header")
        for build in ("Makefile", "CMakeLists.txt"):
            equal("cublasLt" in (folder / build).read_text(), wanted, f"{build} links the library")
    world.run(["make", "-j2", f"NVCC={compiler}", "ARCH=sm_80", "build/m_run"], cwd=project)
    contains(world.run(["ldd", project / "build" / "m_run"]).stdout, "libcublasLt.so")


def case_long_emulation(world):
    """What would take long is not begun unless it is asked for."""
    if pathlib.Path("/dev/nvidiactl").exists():
        raise Skip("there is a GPU")
    world.path("large.onnxtxt").write_text(
        '<ir_version: 8, opset_import: ["" : 17]>\n'
        "g (float[9000, 9000] x, float[9000, 9000] y) => (float[9000, 9000] z) { z = MatMul(x, y) }\n")
    done = world.run([world.gcompile, "verify", world.path("large.onnxtxt"), "--target", "cuda"], status=2)
    contains(done.stderr, "about 61 minutes of one core for each run; --emulate if it shall")


def case_without_a_gpu(world):
    """The runner says what is missing."""
    compiler = nvcc()
    if pathlib.Path("/dev/nvidiactl").exists():
        raise Skip("there is a GPU")
    project = world.example(MODELS["classifier"], "alone", "--target", "cuda", "--name", "m")
    world.run(["make", "-j2", f"NVCC={compiler}", "ARCH=sm_80", "build/m_run"], cwd=project)
    done = world.run([project / "build" / "m_run", "--random", "1"], status=1)
    contains(done.stderr, "error: cuda")


if __name__ == "__main__":
    run_main(globals())
