#!/usr/bin/env python3
"""Emitted CUDA projects: right on the emulator, compiled for every GPU by nvcc, built by make alone.

    cuda.py --gcompile GCOMPILE [CASE...]
"""

import ctypes
import json
import os
import pathlib
import re
import shutil

from support import EXAMPLE_FLAGS, EXAMPLES, HERE, Failure, Skip, check, contains, equal, flags, run_main, words_of

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


def toolkit_folder(world):
    """The folder of the CUDA Toolkit that `nvcc` belongs to, by its own word: what is on the path may be a script that calls it."""
    top = re.search(r"^#\$ TOP=(.+)", world.run([nvcc(), "-dryrun", "x.cu"]).stderr, re.M)
    return pathlib.Path(top[1]).resolve()


def has_gpu():
    """By the driver."""
    try:
        return ctypes.CDLL("libcuda.so.1").cuInit(0) == 0
    except OSError:
        return False


def cxx():
    """CXX if it is set, through ccache where there is one: the emulator is the same in every case."""
    name = os.environ.get("CXX", "c++")
    return f"ccache {name}" if shutil.which("ccache") and "ccache" not in name else name


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


PRECISIONS = ["tf32", "fp16", "bf16"]
# The share of weights that are in 16 bits. Biases, tables, depthwise filters and recurrences stay float32.
SHARES = {"classifier": "0.55", "denoiser": "0.84", "attention": "0.53"}


def weights_bytes(project):
    return int(re.search(r"M_WEIGHTS_BYTES (\d+)u", (project / "include" / "m" / "m.h").read_text())[1])


def reduced(world, model):
    """Right by the tolerance of each precision on every data set, and further off than float32 may be."""
    plain = weights_bytes(world.example(MODELS[model], f"{model}_fp32", "--target", "cuda", "--name", "m"))
    for precision in PRECISIONS:
        flags = ["--target", "cuda", "--precision", precision, "--name", "m"]
        project = world.example(MODELS[model], f"{model}_{precision}", *flags)
        kernels = "".join(path.read_text() for path in (project / "src").glob("m_kernels*.cu"))
        contains(kernels, f"<Precision::k{precision.capitalize()}, ")
        check("Precision::kFp32" not in kernels, f"products in float32 beside {precision}")
        contains((project / "meta" / "m.json").read_text(), f"--precision {precision}")
        contains(words_of(project / "README.md"), f"multiply in {precision}")
        share = weights_bytes(project) / plain
        if precision == "tf32":
            equal(share, 1, "weights of tf32")
        else:
            equal(f"{share:.2f}", SHARES[model], f"weights of {precision}, of those of fp32")
        done = world.run([world.gcompile, "verify", EXAMPLES / MODELS[model] / "model.onnx", "--data",
                          EXAMPLES / MODELS[model], "--emulate", "--json", "-q", "--cxx", cxx(), *flags,
                          *EXAMPLE_FLAGS.get(MODELS[model], [])])
        findings = json.loads(done.stdout)["findings"]
        check(len(findings) >= 3, f"{precision}: {len(findings)} findings")
        # These outputs have a root mean square below 1: float32 may be off by 1e-4 of the element and 1e-5.
        errors = [(abs(float(f["expected"]) - float(f["actual"])), abs(float(f["expected"]))) for f in findings if "at" in f]
        check(any(error > 1e-4 * value + 1e-5 for error, value in errors), f"{precision} is as exact as float32: {errors}")
        print(f"         {model}, {precision}: weights {share:.3f}, at most "
              f"{max(f.get('rms_ratio', 0) for f in findings):.2f} of the tolerance", flush=True)


def case_precision_classifier(world):
    reduced(world, "classifier")


def case_precision_denoiser(world):
    reduced(world, "denoiser")


def case_precision_attention(world):
    reduced(world, "attention")


# Weights that float16 holds, that are too large for it, and that it would round to a few bits.
RANGES = """<ir_version: 8, opset_import: ["" : 13]>
ranges (float[9, 4] x) => (float[9, 2] a, float[9, 2] b, float[9, 2] c)
<float[4, 2] usual = {0.5, -0.25, 1.5, 0.1, 0.3, 2.0, -1.0, 0.7},
 float[4, 2] large = {70000.0, 1.0, 2.0, -80000.0, 90000.0, 3.0, 4.0, 5.0},
 float[4, 2] small = {0.00001, 0.00002, -0.00003, 0.00001, 0.000015, 0.00002, 0.00001, -0.00001}> {
  a = MatMul (x, usual)
  b = MatMul (x, large)
  c = MatMul (x, small)
}
"""


def case_range_of_float16(world):
    """Products with weights out of its range stay TF32, with a warning and a line in the report."""
    model = world.path("ranges.onnxtxt")
    model.write_text(RANGES)
    told = world.compile(model, world.path("ranges"), "--target", "cuda", "--precision", "fp16", "--name", "m")
    contains(told, "warning[W0305]", "'large' is out of the range of float16", "'small' is out of the range")
    check("usual" not in told, f"a warning too many:\n{told}")
    kernels = (world.path("ranges") / "src" / "m_kernels.cu").read_text()
    contains(kernels, "Precision::kFp16", "const Half* b", "Precision::kTf32", "const Tf32* b")
    contains((world.path("ranges") / "report.html").read_text(), "out of the range of float16", ", tf32; ", ", fp16; ")
    done = world.run([world.gcompile, "verify", model, "--target", "cuda", "--precision", "fp16", "--emulate", "--cxx",
                      cxx()])
    contains(done.stderr, "verified: 3 tensors")


# Maps with work for more threads than a Jetson Orin has: aligned, with a column cut off, of two parts, in halves,
# looked up, and in the place of an operand.
LARGE_MAPS = """<ir_version: 8, opset_import: ["" : 13]>
maps (float[2, 3, 700, 260] x, float[2, 3, 700, 133] z, int64[900] rows)
  => (float[2, 3, 700, 393] joined, float[2, 3, 699, 259] cut, float16[3, 2, 700, 260] halves, bool[2, 3, 700, 260] signs,
      float[2, 3, 900, 133] picked, float[2, 3, 700, 260] last)
<float zero = {0.0}, int64 rows_axis = {2}, int64[2] starts = {1, 0}, int64[2] ends = {700, 259}, int64[2] axes = {2, 3}> {
  positive = Relu (x)
  joined = Concat <axis = 3> (positive, z)
  some = Slice (x, starts, ends, axes)
  cut = Sigmoid (some)
  turned = Transpose <perm = [1, 0, 2, 3]> (x)
  halves = Cast <to = 10> (turned)
  signs = Greater (x, zero)
  picked = Gather <axis = 2> (z, rows)
  sums = CumSum (x, rows_axis)
  last = Exp (sums)
}
"""


def case_large_maps(world):
    """Threads of large maps have several packs each; the same values as on the CPU."""
    model = world.path("maps.onnxtxt")
    model.write_text(LARGE_MAPS)
    # On the larger device only maps of unaligned elements have more packs than threads.
    for architecture, maps in (("sm_87", 7), ("sm_90", 2)):
        flags = ["--target", "cuda", "--arch", architecture, "--name", "m"]
        world.compile(model, world.path(architecture), *flags)
        kernels = (world.path(architecture) / "src" / "m_kernels.cu").read_text()
        equal(kernels.count("map_packs<4, "), maps, f"maps of four packs per thread for {architecture}")
    done = world.run([world.gcompile, "verify", model, "--emulate", "--cxx", cxx(), "--arch", "sm_87", "--target", "cuda"])
    contains(done.stderr, "verified: 6 tensors")


def case_tensor_cores_of_sm_75(world):
    """What they do not multiply is said to be float32."""
    for precision, is_told in (("fp32", False), ("fp16", False), ("tf32", True), ("bf16", True)):
        told = world.compile(EXAMPLES / MODELS["attention"] / "model.onnx", world.path("old"), "--target", "cuda", "--arch",
                             "sm_75,sm_90a", "--precision", precision)
        equal(f"sm_75: its tensor cores do not take {precision}" in told, is_told, f"a warning of {precision}")


def case_emulate_sm_75(world):
    """A device of sm_75 runs code of its own, also of a project that is for later ones too."""
    for model, precision, arch, gpus in (("denoiser", "fp32", "sm_75", {"sm_75"}),
                                         ("classifier", "fp16", "sm_75,sm_90a", {"sm_75", "sm_90a"})):
        done = world.run([world.gcompile, "verify", EXAMPLES / MODELS[model] / "model.onnx", "--target", "cuda", "--emulate",
                          "--arch", arch, "--precision", precision, "--cases", "1", "--cxx", cxx(),
                          *EXAMPLE_FLAGS.get(MODELS[model], [])])
        equal(set(re.findall(r"ok +random 1 as (\w+): ", done.stdout + done.stderr)), gpus, "runs")


def budget():
    """Most registers and bytes of shared memory of any kernel, by model: cuda_budget.txt."""
    rows = {}
    for line in (HERE / "cuda_budget.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            model, registers = line.split()
            rows[model] = int(registers)
    return rows


def compile_for_gpus(world, model, precision="fp32", architectures=tuple(ARCHITECTURES)):
    """Every source for every architecture: no warning, no spill, registers within the budget."""
    compiler = nvcc()
    project = world.example(MODELS[model], model, "--target", "cuda", "--precision", precision, "--name", "m")
    known = world.run([compiler, "--list-gpu-code"]).stdout
    targets = []
    for number in architectures:
        if f"sm_{number.rstrip('a')}" in known:
            targets += ["-gencode", f"arch=compute_{number},code=sm_{number}"]
    check(targets, "nvcc knows none of the architectures")
    most = 0
    for source in sorted((project / "src").glob("*.cu")):
        done = world.run([compiler, "-std=c++17", "-O3", *flags("cuda"), "--threads", "2", *targets, "-Xptxas",
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


def case_nvcc_classifier_bf16(world):
    compile_for_gpus(world, "classifier", "bf16", ("80", "90a"))


def case_nvcc_attention_fp16(world):
    compile_for_gpus(world, "attention", "fp16", ("80", "90a"))


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
    if not (toolkit_folder(world) / "include" / "cublasLt.h").exists():
        raise Skip("there is no cuBLASLt")
    plain = world.example(MODELS["attention"], "plain", "--target", "cuda", "--name", "m")
    project = world.example(MODELS["attention"], "library", "--target", "cuda", "--name", "m", "--gemm", "cublaslt")
    for folder, wanted in ((plain, False), (project, True)):
        equal((folder / "gcrt/cuda/product/cublaslt.h").exists(), wanted, "brings the header")
        for build in ("Makefile", "CMakeLists.txt"):
            equal("cublasLt" in (folder / build).read_text(), wanted, f"{build} links the library")
    world.run(["make", "-j2", f"NVCC={compiler}", "ARCH=sm_80", "build/m_run"], cwd=project)
    contains(world.run(["ldd", project / "build" / "m_run"]).stdout, "libcublasLt.so")


# More entries than a grid has room for in one launch: each product is two.
MANY_ENTRIES = """<ir_version: 8, opset_import: ["" : 17]>
many (float[66000, 1, 3] x, float[66000, 3, 5] y) => (float[66000, 1, 5] z) { z = MatMul (x, y) }
"""


def case_many_entries(world):
    """The graph has a step for each launch of a product."""
    world.path("many.onnxtxt").write_text(MANY_ENTRIES)
    done = world.run([world.gcompile, "verify", world.path("many.onnxtxt"), "--target", "cuda", "--emulate", "--cases", "1",
                      "--cxx", cxx()])
    contains(done.stderr, "verified: 1 tensor is right")


def case_long_emulation(world):
    """What would take long is not begun unless it is asked for."""
    if has_gpu():
        raise Skip("there is a GPU")
    world.path("large.onnxtxt").write_text(
        '<ir_version: 8, opset_import: ["" : 17]>\n'
        "g (float[9000, 9000] x, float[9000, 9000] y) => (float[9000, 9000] z) { z = MatMul(x, y) }\n")
    done = world.run([world.gcompile, "verify", world.path("large.onnxtxt"), "--target", "cuda"], status=2)
    contains(done.stderr, "about 61 minutes of one core for each run; --emulate if it shall")


# y is not finished before the last read of x.
PORTS = """<ir_version: 8, opset_import: ["" : 17]>
ports (float[100] x, float[100] bias) => (float[100] y, float[100] z) {
  y = Add (x, bias)
  z = Mul (x, y)
}
"""


def case_memory_of_the_caller(world):
    """Inputs and outputs on the device, on the host, elsewhere than before, not aligned, and one over another."""
    world.path("ports.onnxtxt").write_text(PORTS)
    project = world.path("ports")
    world.compile(world.path("ports.onnxtxt"), project, "--target", "cuda", "--name", "m", "-O0")
    schedule = (project / "src" / "m.cu").read_text()
    contains(schedule, "at<float>(in_x, 0)", "at<float>(out_y, 0)", "at<float>(out_z, 0)")
    emulator = HERE.parent.parent / "runtime_stub" / "emulator"
    sources = [project / "src" / "m.cu", *(project / "src").glob("m_kernels*.cu"), *emulator.glob("*.cc"),
               HERE / "memory_of_the_caller.cpp"]
    world.run([*cxx().split(), "-std=c++17", "-O1", *flags("cpp"), "-pthread", f"-I{emulator}", f"-I{project}",
               f"-I{project}/include", "-x", "c++", *sources, "-o", world.path("caller")])
    equal(world.run([world.path("caller")]).stdout, "right 14 times\n", "runs")


def driver_of(world, capability):
    """A folder with a driver library that knows one device, or none."""
    folder = world.path(f"driver_{capability}")
    folder.mkdir()
    (folder / "driver.c").write_text(f"""
int cuInit(unsigned flags) {{ return (int)flags; }}
int cuDeviceGet(int *device, int ordinal) {{ return *device = 7, ordinal >= {capability and 1} ? 101 : 0; }}
int cuDeviceGetAttribute(int *value, int attribute, int device) {{
  *value = attribute == 75 ? {capability // 10} : {capability % 10};
  return attribute == 75 || attribute == 76 ? (device == 7 ? 0 : 101) : 1;
}}
""")
    world.run(["cc", "-shared", "-fPIC", folder / "driver.c", "-o", folder / "libcuda.so.1"])
    return str(folder)


def case_gpu_of_the_driver(world):
    """The driver says which GPU there is. Then verify has nvcc make the code that it runs, else it takes the emulator."""
    model = world.path("small.onnxtxt")
    model.write_text('<ir_version: 8, opset_import: ["" : 17]>\ng (float[4] x) => (float[4] y) { y = Neg(x) }\n')
    compiler = world.path("nvcc")  # says how it was called
    compiler.write_text('#!/bin/sh\necho "$@"\nexit 1\n')
    compiler.chmod(0o755)
    for capability, arch, status, text in (
            (0, "sm_90a", 0, "no GPU is used"),
            (90, "sm_80,sm_90a", 4, "-gencode arch=compute_90a,code=sm_90a "),
            (120, "sm_80,compute_90", 4, "-gencode arch=compute_90,code=compute_90 "),
            (75, "sm_80,sm_90a", 2, "compute capability 7.5, which runs nothing of --arch sm_80,sm_90a")):
        done = world.run([world.gcompile, "verify", model, "--target", "cuda", "--arch", arch, "--cxx", cxx()], status=None,
                         env={**os.environ, "LD_LIBRARY_PATH": driver_of(world, capability), "NVCC": str(compiler)})
        contains(done.stdout + done.stderr, text)
        equal(done.returncode, status, f"exit code with a device of {capability}")


def case_without_a_gpu(world):
    """The runner says what is missing."""
    compiler = nvcc()
    if has_gpu():
        raise Skip("there is a GPU")
    project = world.example(MODELS["classifier"], "alone", "--target", "cuda", "--name", "m")
    world.run(["make", "-j2", f"NVCC={compiler}", "ARCH=sm_80", "build/m_run"], cwd=project)
    done = world.run([project / "build" / "m_run", "--random", "1"], status=1)
    contains(done.stderr, "error: cuda")


if __name__ == "__main__":
    run_main(globals())
