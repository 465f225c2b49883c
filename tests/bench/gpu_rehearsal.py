#!/usr/bin/env python3
"""scripts/gpu_check.sh as it runs on a machine with a GPU, without one: every path but the GPU itself.

    gpu_rehearsal.py --gcompile GCOMPILE [CASE...]

In the place of nvcc, the driver and the programs for a GPU stand scripts that answer as those do: an H100, on which one
suite of tests never ends, the bench breaks off behind its first kernel, and emitted projects compute what those for the
CPU do. The pack is the real one, of this gcompile: it is looked through for symbols that Ubuntu 24.04 does not have, and
gcompile is started in a root that holds nothing but the C and C++ libraries and the pack.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import traceback
import types

import gpu_pack

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = "resnet50"
NVIDIA_SMI = """#!/bin/sh
case "$*" in
    -L) echo "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0)" ;;
    *) echo "NVIDIA H100 80GB HBM3, 1980 MHz, 1980 MHz, 2619 MHz, 580.1, 9.0" ;;
esac
"""
# Objects are empty; programs are the runner of the project for the CPU beside, or print times.
NVCC = """#!/bin/sh
[ "$1" = --version ] && { echo "Cuda compilation tools, release 13.0, V13.0.1"; exit 0; }
while [ $# -gt 0 ]; do
    [ "$1" = -o ] && target=$2
    shift
done
case $target in
    *.o) : >"$target" ;;
    *_bench) printf '#!/bin/sh\\necho "{\\\\"device_min_ms\\\\": 0.19, \\\\"device_median_ms\\\\": 0.2}"\\n' >"$target" ;;
    *_run) printf '#!/bin/sh\\nshift 2\\ncd %s/projects/MODEL_cpp\\nexec build/MODEL_run --weights data/MODEL.weights.bin "$@"\\n' \\
                  "$GPU_REHEARSAL_WORK" >"$target" ;;
esac
chmod +x "$target"
""".replace("MODEL", MODEL)
SANITIZER = """#!/bin/sh
while [ "$1" != 9 ]; do shift; done
shift
exec "$@"
"""
GCOMPILE = """#!/bin/sh
[ "$1" = verify ] && { echo "verified: 1 tensor is right"; exit 0; }
exec "%s" "$@"
"""
TESTS = """#!/bin/sh
case "$*" in
    *--gtest_list_tests*) printf 'CudaHopper.\\n  Sizes\\nBarrier.\\n  One\\nCudaGemm.\\n  Hangs\\nReduce/0.  # TypeParam\\n  One\\n' ;;
    *--gtest_filter=CudaGemm.\\**) sleep 1000 ;;
    *) echo "$*" >>"$GPU_REHEARSAL_WORK/order" ;;
esac
"""
BENCH = """#!/bin/sh
echo '{"name": "graph node", "min_ms": 0.0013, "median_ms": 0.0014, "rate": 1, "unit": "nodes/us", "percent": 100}'
echo 'error: launch: unspecified launch failure' >&2
exit 1
"""


def check(condition, message):
    if not condition:
        raise AssertionError(message)


def script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


def state_of(said, step):
    found = re.search(rf"^{re.escape(step)} +(\w+) +\d+$", said, re.M)
    check(found, f"no step '{step}' in:\n{said[-3000:]}")
    return found.group(1)


def case_run(gcompile, folder):
    """All steps, some of which fail, in one command; what was found comes back as one file."""
    tools, pack, work = folder / "tools", folder / "pack", folder / "work"
    for path, text in ((tools / "nvidia-smi", NVIDIA_SMI), (tools / "nvcc", NVCC), (tools / "compute-sanitizer", SANITIZER),
                       (pack / "gcompile", GCOMPILE % gcompile), (pack / "cuda_kernels_on_gpu", TESTS),
                       (pack / "cuda_kernel_bench", BENCH)):
        script(path, text)
    environment = dict(os.environ, PATH=f"{tools}{os.pathsep}{os.environ['PATH']}", NVCC=str(tools / "nvcc"),
                       PYTHON=sys.executable, GPU_REHEARSAL_WORK=str(work), GCOMPILE_MODELS=str(folder / "none"))
    begin = time.monotonic()
    done = subprocess.run([ROOT / "scripts" / "gpu_check.sh", "--prebuilt", pack, "--work", work, "--models", MODEL, "--small",
                           "--suite-seconds", "2", "--precisions", "fp16", "--tarball", folder / "back.tgz"],
                          capture_output=True, text=True, env=environment, timeout=400, check=False)
    said = done.stdout + done.stderr
    check(done.returncode == 1, f"exit status {done.returncode}: two steps fail\n{said[-4000:]}")
    for step, state in (("device", "ok"), ("build", "ok"), ("models", "ok"), ("projects for the CPU", "ok"),
                        ("emitted projects on the GPU", "ok"), ("large projects", "ok"), ("large models on the GPU", "ok"),
                        ("tests of the kernels", "FAILED"), ("kernels alone", "FAILED"), ("timing", "ok"), ("tables", "ok"),
                        ("tests of the kernels under memcheck", "ok"), ("tests of the kernels under racecheck", "ok")):
        check(state_of(said, step) == state, f"{step} is {state_of(said, step)}, not {state}:\n{said[-4000:]}")
    steps = re.findall(r"^== ([^:\n]+)$", said, re.M)
    order = [steps.index(step) for step in ("emitted projects on the GPU", "tests of the kernels", "timing",
                                            "tests of the kernels under memcheck")]
    check(order == sorted(order), f"steps are in the order {steps}")
    check(steps[steps.index("timing") + 1] == "timing with torch.compile", f"what is behind the timing: {steps}")
    check(steps[-1] == "layers in detail", f"what takes minutes is not the last step: {steps}")
    print(f"         {time.monotonic() - begin:.0f} s", flush=True)
    with tarfile.open(folder / "back.tgz") as archive:
        archive.extractall(folder / "back")
    results = json.loads((folder / "back" / "gpu_check" / "results.json").read_text(encoding="utf-8"))
    suites = results["suites"]
    check(suites["CudaGemm"] == "not done after 2 s", f"suites: {suites}")
    check(suites["CudaHopper"] == suites["Barrier"] == suites["Reduce/0"] == "right", f"suites: {suites}")
    ran = (work / "order").read_text(encoding="utf-8").splitlines()
    plain = [line for line in ran if "gtest_filter=" in line and ":" not in line]
    check("CudaHopper.*" in plain[-1], f"the suite that may hang is not the last one: {plain}")
    check([row["name"] for row in results["kernels"]] == ["graph node"], f"kernels: {results['kernels']}")
    peers = {row["peer"] for row in results["timings"]}
    check({"gcompile", "sm_90"} <= peers, f"peers: {peers}")
    check(results["cpu"] and results["cpu"][0]["threads"] == 1, f"cpu: {results['cpu']}")
    verdict = (folder / "back" / "gpu_check" / "verdict.md").read_text(encoding="utf-8")
    check("| ResNet-50, 224x224 | 205 |" in verdict and "reached" in verdict, verdict)


def case_pack(gcompile, folder):
    """It holds what it needs, is opened again, and runs where there is nothing else."""
    fakes, target = folder / "programs", folder / "to"
    for name, text in (("cuda_kernels_on_gpu", TESTS), ("cuda_kernel_bench", BENCH)):
        script(fakes / name, text)
    suite = folder / "suite"
    for name, size in (("small", 1000), ("large", 5000)):
        (suite / name / "test_data_set_0").mkdir(parents=True)
        (suite / name / "model.onnx").write_bytes(os.urandom(size))
        (suite / name / "test_data_set_0" / "input_0.pb").write_bytes(b"x")
    arguments = types.SimpleNamespace(pack=target)

    def run(command, _limit):
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False).stdout

    stub = types.SimpleNamespace(gcompile=gcompile, programs=fakes, tiles=None, architecture="sm_90a", arguments=arguments,
                                 work=folder / "work", run=run)
    print(f"         {gpu_pack.pack(stub, suite, ['small', 'large'])}", flush=True)
    opened = gpu_pack.unpack(target, folder / "opened")
    check(sorted(path.name for path in (opened / "models").iterdir()) == ["INDEX.md", "large", "small"], "models")
    check(json.loads((opened / "pack.json").read_text(encoding="utf-8")) == {"architecture": "sm_90a"}, "its architecture")
    check(gpu_pack.add_models(folder / "less", suite, ["small", "large"], 2000) == ["large"], "what has no room is said")
    in_bare_root(opened, folder / "root")


def in_bare_root(pack, root):
    """gcompile compiles a model where there is the loader, the C and C++ libraries, and the pack."""
    (root / "pack").mkdir(parents=True)
    shutil.copytree(pack, root / "pack", dirs_exist_ok=True)
    listed = subprocess.run(["ldd", str(pack / "gcompile")], capture_output=True, text=True, check=True,
                            env=dict(os.environ, LD_LIBRARY_PATH=str(pack / "lib"))).stdout
    for path in re.findall(r"(/\S+)", listed):
        library = pathlib.Path(path)
        if pack in library.parents:
            continue
        check(gpu_pack.BASE.match(library.name), f"{library} is of this machine alone")
        target = root / (path[1:] if "ld-linux" in path else f"lib/{library.name}")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target)
    shutil.copy2(ROOT / "examples" / "tiny_attention" / "model.onnx", root / "model.onnx")
    (root / "tmp").mkdir()
    command = ["chroot", str(root), "/pack/gcompile", "model.onnx", "-o", "/tmp/out", "--target", "cuda", "--arch", "sm_90a", "-q"]
    if os.geteuid() != 0:
        command = ["unshare", "--map-root-user", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False,
                          env={"LD_LIBRARY_PATH": "/lib:/pack/lib", "PATH": os.environ["PATH"], "TMPDIR": "/tmp"})
    check(done.returncode == 0, f"in a bare root: exit status {done.returncode}: {done.stderr[-1000:]}")
    check(list((root / "tmp" / "out" / "src").glob("*_kernels.cu")), "no kernels were emitted there")


def case_symbols(_gcompile, folder):
    """What a newer C library has is found, and named."""
    program = folder / "program"
    program.write_bytes(b"\x7fELF\0GLIBC_2.34\0GLIBC_2.41\0GLIBCXX_3.4.30\0CXXABI_1.3.13\0GLIBCXX_3.4.34\0")
    check(gpu_pack.too_new(program) == ["GLIBCXX_3.4.34", "GLIBC_2.41"], f"{gpu_pack.too_new(program)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gcompile", type=pathlib.Path, required=True)
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    wrong = 0
    for name in arguments.cases or ["symbols", "pack", "run"]:
        with tempfile.TemporaryDirectory() as folder:
            try:
                globals()[f"case_{name}"](arguments.gcompile.resolve(), pathlib.Path(folder))
                print(f"ok       {name}", flush=True)
            except Exception:  # noqa: BLE001  the other cases have their turn
                traceback.print_exc()
                print(f"FAILED   {name}", flush=True)
                wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
