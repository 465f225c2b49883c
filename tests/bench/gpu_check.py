#!/usr/bin/env python3
"""The steps of scripts/gpu_check.sh, which looks for a GPU first.

Three parts, of which each fits ten minutes (--part N); what they find adds up in the folder that --results names.

Every step has a limit of time, and all together --seconds; one that fails leaves the later ones their turn. Emitted
projects are compiled in the background while correctness is checked; timing begins when all is quiet, and takes the
time that is left.
"""

import argparse
import concurrent.futures
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import gpu_layers
import gpu_table
import model_sizes
import peers_on_gpu
from gpu_steps import Check, Failure, Skip, limited

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "tests" / "conformance"))

import real_models  # noqa: E402

EXAMPLES = ("shapes_classifier", "streaming_denoiser", "tiny_attention")
EXAMPLE_FLAGS = {"streaming_denoiser": ["--state", "h_in=h_out", "--state", "cache_in=cache_out"]}
PARTS = ("models", "kernels", "timing")
PART_SECONDS = 540
# Distance to the reference over its norm. float32 sums in another order; else operands are rounded to 11 or 8 bits.
MOST_DISTANCE = {"fp32": 1e-4, "tf32": 1e-2, "fp16": 1e-2, "bf16": 6e-2}
# Small shapes of every kernel: what the sanitizers, which slow kernels down by tens, get through.
SANITIZED = ":".join("""Barrier* Threads* Warp* CopyAsync* TensorCore* LoadMatrix* Reduce* CudaGemm.SmallTileFp32 CudaGemm.Fp16
CudaGemm.LongDepth CudaGemm.SplitDepth* CudaGemm.PartsOfClusters CudaGemv.* CudaConv* CudaGemmInteger.*
CudaAttention.TokensAroundTheTiles CudaAttention.*Mask* CudaAttention.SplitKeys CudaRnn.OneLaunch CudaRnn.LaunchPerStep CudaTopK.ShortLines CudaScatter*
CudaCumulativeSum.Sizes CudaDepthwise* CudaPool*""".split())


def jobs():
    return max(1, os.cpu_count() or 1)


def device(check):
    """Name, clocks, versions."""
    fields = "name,clocks.sm,clocks.max.sm,clocks.mem,driver_version,compute_cap"
    text = check.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], 30).strip().splitlines()[0]
    name, clock, most, memory, driver, capability = (field.strip() for field in text.split(","))
    cuda = re.search(r"release ([\d.]+)", check.run([check.nvcc, "--version"], 30)) if check.nvcc else None
    torch = f"torch {peers_on_gpu.torch.__version__}" if peers_on_gpu.torch is not None else "no torch"
    found = {"date": datetime.date.today().isoformat(), "name": name, "clock": f"{clock} (most {most})",
             "memory_clock": memory, "driver": driver, "cuda": cuda.group(1) if cuda else "none", "torch": torch}
    save(check, "device", found)
    check.architecture = architecture_of(capability)
    return ", ".join(f"{key} {value}" for key, value in found.items())


def architecture_of(capability):
    """What nvcc and gcompile are asked for; never guessed. Of 9.0 with all of its instructions."""
    return "sm_" + capability.replace(".", "") + ("a" if capability == "9.0" else "")


def save(check, key, value):
    path = check.results_file
    results = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if isinstance(value, dict) and key in ("layers", "predicted"):
        value = {**results.get(key, {}), **value}
    results[key] = value
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(results, indent=1), encoding="utf-8")


def build(check):
    """gcompile and the programs of tests/cuda_on_gpu, unless they came along."""
    if check.arguments.prebuilt:
        folder = check.arguments.prebuilt.resolve()
        check.gcompile, check.programs = folder / "gcompile", folder
        # Its libraries lie beside it; the folder is searched last, and by gcompile alone.
        check.loader_path = str(folder / "lib")
        return f"from {folder}"
    folder = ROOT / os.environ.get("BUILD_DIR", "build")
    flags = ["-DGCOMPILE_TESTS=ON", "-DGCOMPILE_GPU_TESTS=ON",
             f"-DCMAKE_CUDA_ARCHITECTURES={check.architecture.removeprefix('sm_')}"]
    if check.arguments.gcompile:
        check.gcompile = check.arguments.gcompile.resolve()
    if not check.nvcc:
        raise Failure("there is no nvcc")
    check.run(["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja" if shutil.which("ninja") else "Unix Makefiles", *flags,
               f"-DCMAKE_CUDA_COMPILER={check.nvcc}"], 120, "configure.log")
    targets = ["cuda_kernels_on_gpu", "cuda_kernel_bench"] + ([] if check.gcompile else ["gcompile"])
    check.run(["cmake", "--build", folder, "-j", jobs(), "--target", *targets], 3000, "build.log")
    check.gcompile = check.gcompile or folder / "gcompile"
    check.programs = folder / "tests" / "cuda_on_gpu"
    return str(check.gcompile)


def gcompile_environment(check):
    environment = dict(check.environment)
    if check.loader_path:
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(
            filter(None, [environment.get("LD_LIBRARY_PATH"), check.loader_path]))
    return environment


def compile_model(check, model, folder, *flags):
    check.run([check.gcompile, model, "-o", folder, "--force", "-q", *flags], 120, environment=gcompile_environment(check))


def pack(check):
    """gcompile with its libraries and the programs, for --prebuilt elsewhere."""
    folder = check.arguments.pack
    (folder / "lib").mkdir(parents=True, exist_ok=True)
    for program in (check.gcompile, check.programs / "cuda_kernels_on_gpu", check.programs / "cuda_kernel_bench"):
        shutil.copy2(program, folder / program.name)
        subprocess.run(["strip", str(folder / program.name)], check=False)
    for line in check.run(["ldd", check.gcompile], 30).splitlines():
        found = re.search(r"=> (\S*/(lib(?:onnx|onnx_proto|protobuf|fmt|z)\.so\S*))", line)
        if found:
            shutil.copy2(found.group(1), folder / "lib" / found.group(2))
    size = sum(f.stat().st_size for f in folder.rglob("*") if f.is_file())
    return f"{folder}: {size / 2**20:.0f} MiB"


def write_models(check):
    for flags in (["--small"], []):
        check.run([sys.executable, HERE / "big_models.py", *flags, "--out", check.work / "models",
                   *check.arguments.models], 180)
    return str(check.work / "models")


def project_name(model, batch, precision):
    return f"{model}_b{batch}_{precision}"


def build_project(check, model, batch, precision):
    """An emitted CUDA project, built by make."""
    folder = check.work / "projects" / project_name(model, batch, precision)
    compile_model(check, check.work / "models" / model / "model.onnx", folder, "--dim", f"batch={batch}", "--target", "cuda",
                  "--arch", check.architecture, "--weights", "file", "--name", model, "--precision", precision)
    build_emitted(check, folder, f"NVCC={check.nvcc}")


def build_emitted(check, folder, *flags):
    """By make, or by CMake where there is no make."""
    if shutil.which("make"):
        check.run(["make", "-C", folder, "-j4", *flags], 400)
        return
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    check.run(["cmake", "-S", folder, "-B", folder / "build", *generator, f"-DCMAKE_CUDA_COMPILER={check.nvcc}"], 120)
    check.run(["cmake", "--build", folder / "build", "-j", "4"], 400)


def build_reference(check, model):
    """The same model for the CPU, which the outputs are compared with."""
    folder = check.work / "projects" / f"{model}_cpp"
    compile_model(check, check.work / "models" / model / "model.onnx", folder, "--dim", "batch=1", "--weights", "file",
                  "--name", model)
    build_emitted(check, folder)


def cells(check):
    """(model, batch, precision), what matters most first; those of --cells alone where it is there."""
    if check.arguments.cells:
        return [(model, int(batch), precision) for model, batch, precision in
                (cell.split(":") for cell in check.arguments.cells.split(","))]
    order = [p for p in ("fp16", "tf32", "fp32", "bf16") if p in check.arguments.precisions]
    return [(model, batch, precision) for batch in gpu_table.BATCHES for precision in order
            for model in ("bert_base", "gpt2_decode", "vit_b16", "resnet50") if model in check.arguments.models]


class Background:
    """Builds that run while other steps do."""

    def __init__(self, check):
        # A compilation of a large model takes 2 GB.
        self.pool = concurrent.futures.ThreadPoolExecutor(max(1, min(8, jobs() // 2)))
        self.builds = {}
        compares, times = ("models" in check.arguments.parts), ("timing" in check.arguments.parts)
        for model in check.arguments.models if compares else []:
            self.builds[f"{model}_cpp"] = self.pool.submit(build_reference, check, model)
        for cell in cells(check):
            if times or cell[1] == 1:
                self.builds[project_name(*cell)] = self.pool.submit(build_project, check, *cell)

    def wait(self, check):
        """Raises what went wrong, of all of them."""
        limit = check.left() if check.arguments.dry_run else min(300, check.left())
        concurrent.futures.wait(self.builds.values(), timeout=max(1, limit))
        wrong = []
        for name, build_of_it in self.builds.items():
            if not build_of_it.done():
                build_of_it.cancel()
                wrong.append(f"{name}: not done")
            elif not build_of_it.cancelled() and build_of_it.exception() is not None:
                wrong.append(f"{name}: {build_of_it.exception()}")
        self.pool.shutdown(wait=False, cancel_futures=True)
        if wrong:
            raise Failure("\n".join(wrong))
        return f"{len(self.builds)} projects"


def verify_cases(check):
    """(name, arguments of gcompile verify)."""
    for name in EXAMPLES:
        folder = ROOT / "examples" / name
        yield name, [folder / "model.onnx", "--data", folder, *EXAMPLE_FLAGS.get(name, [])]
    for name in check.arguments.models:
        for precision in check.arguments.precisions:
            yield f"{name}_small {precision}", [check.work / "models" / f"{name}_small" / "model.onnx", "--dim", "batch=2",
                                                "--precision", precision]
    suite = real_models.models_folder()
    if not (suite / "INDEX.md").exists():
        print(f"the main suite is not here: {suite}", flush=True)
        return
    for name in real_models.main_suite(suite):
        yield name, [suite / name / "model.onnx", "--data", suite / name / "test_data_set_0"]


def verify(check):
    """Emitted projects on the GPU against expected outputs or the evaluator."""

    all_cases = list(verify_cases(check))
    if check.arguments.dry_run:
        raise Skip(f"{len(all_cases)} models would be verified")
    deadline = time.monotonic() + min(200, check.left())

    def complaint(case):
        name, arguments = case
        command = [check.gcompile, "verify", *arguments, "--target", "cuda", "--arch", check.architecture, "--name", "m"]
        status, said = limited(command, deadline - time.monotonic(), gcompile_environment(check))
        if "no GPU is used" in said:
            return f"{name}: gcompile sees no GPU"
        return None if status == 0 else f"{name}: {'not done in time' if status is None else said[-600:]}"

    with concurrent.futures.ThreadPoolExecutor(max(1, jobs() // 4)) as pool:
        wrong = list(filter(None, pool.map(complaint, all_cases)))
    if wrong:
        raise Failure(f"{len(wrong)} of {len(all_cases)} models:\n" + "\n".join(wrong))
    return f"{len(all_cases)} models are right"


def compare_large(check):
    """The large models at batch 1: outputs on the GPU against those of the project for the CPU, same random inputs."""
    import numpy as np

    if check.arguments.dry_run:
        raise Skip("runs on a GPU")
    said, wrong = [], []
    for model in check.arguments.models:
        expected = run_once(check, model, f"{model}_cpp", "--threads", min(16, jobs()))
        for precision in check.arguments.precisions:
            actual = run_once(check, model, project_name(model, 1, precision))
            worst = 0.0
            for name in sorted(file.name for file in expected.glob("*.npy")):
                want, got = (np.load(folder / name).astype(np.float64) for folder in (expected, actual))
                distance = np.linalg.norm(got - want) / max(np.linalg.norm(want), 1e-30)
                worst = max(worst, distance if np.isfinite(distance) else np.inf)
            said.append(f"{model} {precision} {worst:.1e}")
            if not worst <= MOST_DISTANCE[precision]:
                wrong.append(f"{said[-1]}, at most {MOST_DISTANCE[precision]:.0e} is right")
    if wrong:
        raise Failure("; ".join(wrong))
    return "distance to the CPU: " + ", ".join(said)


def run_once(check, model, project, *flags):
    folder = check.work / "outputs" / project
    folder.mkdir(parents=True, exist_ok=True)
    place = check.work / "projects" / project
    check.run([place / "build" / f"{model}_run", "--weights", place / "data" / f"{model}.weights.bin", "--random", "1",
               "--output-dir", folder, *flags], 120)
    return folder


def program_environment(check):
    """For programs that may need cuBLASLt: the libraries that come with a Python package of CUDA lie beside it."""
    folders = [str(folder) for place in sys.path if place for folder in sorted(pathlib.Path(place).glob("nvidia/*/lib"))]
    path = os.pathsep.join(filter(None, [check.environment.get("LD_LIBRARY_PATH"), *folders]))
    return dict(check.environment, LD_LIBRARY_PATH=path)


def kernel_tests(check, limit, tool=None):
    """The tests of device code; `tool`: memcheck or racecheck, over small shapes."""
    program = check.programs / "cuda_kernels_on_gpu"
    if check.arguments.dry_run:
        raise Skip(f"{program} was built" if program.exists() else "nothing was built")
    command, shards = [str(program), "--gtest_brief=1"], 1
    if tool:
        sanitizer = shutil.which("compute-sanitizer", path=check.environment["PATH"])
        if not sanitizer:
            raise Skip("there is no compute-sanitizer")
        command = [sanitizer, "--tool", tool, "--error-exitcode", "9", *command, f"--gtest_filter={SANITIZED}"]
        shards = max(1, min(6, jobs() // 2))
    limit = min(limit, check.left())

    def complaint(shard):
        environment = dict(program_environment(check), GTEST_TOTAL_SHARDS=str(shards), GTEST_SHARD_INDEX=str(shard))
        status, said = limited(command, limit, environment)
        (check.arguments.results / f"kernels_{tool or 'plain'}_{shard}.log").write_text(said, encoding="utf-8")
        if tool and "Device not supported" in said:
            raise Skip("compute-sanitizer does not work on this machine")
        if status is None:
            return f"part {shard} of {shards}: not done after {limit:.0f} s: {said[-300:]}"
        return None if status == 0 else f"part {shard} of {shards}: exit status {status}: {said[-1200:]}"

    with concurrent.futures.ThreadPoolExecutor(shards) as pool:
        wrong = list(filter(None, pool.map(complaint, range(shards))))
    if wrong:
        raise Failure("\n".join(wrong))
    return f"{shards} processes" if tool else "all tests"


def kernel_bench(check):
    program = check.programs / "cuda_kernel_bench"
    if check.arguments.dry_run:
        raise Skip(f"{program} was built" if program.exists() else "nothing was built")
    said = check.run([program, "--json"], 90, "kernel_bench.log", program_environment(check)).splitlines()
    rows = [json.loads(line) for line in said if line.startswith("{")]
    save(check, "kernels", rows)
    device(check)  # the clock right after work, not that of an idle device
    return "; ".join(f"{row['name']} {row['percent']:.0f} %" for row in rows if row["percent"] < 100)


def timing(check, with_compile):
    """Ours and torch in turns; the process that compiles is given one cell at a time, for it may take all the time."""
    if check.arguments.dry_run:
        raise Skip("runs on a GPU")
    wanted = [":".join(map(str, cell)) for cell in cells(check)]
    command = [sys.executable, "-u", HERE / "peers_on_gpu.py", "--projects", check.work / "projects", "--results",
               check.results_file]
    if not with_compile:
        limit = min(150, 0.6 * check.left())  # torch.compile has the rest
        text = check.run([*command, "--cells", ",".join(wanted), "--seconds", limit - 20], limit, "timing.log")
        print(text, flush=True)
        return f"{len(wanted)} cells"
    if peers_on_gpu.torch is None:
        raise Skip("there is no torch")
    done, wrong = 0, []
    for cell in wanted:
        if check.left() < 45:
            break
        try:
            print(check.run([*command, "--compile", "--cells", cell], check.left() - 12), flush=True)
            done += 1
        except Failure as failure:
            wrong.append(str(failure))
    if wrong and not all("not done after" in line for line in wrong):
        raise Failure("\n".join(wrong))
    return f"{done} of {len(wanted)} cells in the time there was"


def layers(check):
    """Every layer of the models that have goals, by Nsight Compute, beside its prediction."""
    said = []
    ncu = shutil.which("ncu", path=check.environment["PATH"])
    for model in check.arguments.models:
        place = check.work / "projects" / project_name(model, 1, "fp16")
        manifest = place / "meta" / f"{model}.json"
        if not manifest.exists():
            continue
        told = gpu_layers.predicted(manifest)
        whole = json.loads(manifest.read_text(encoding="utf-8"))["layers"]
        save(check, "predicted", {model: sum(layer["picoseconds"] for layer in whole) / 1e6})
        if not ncu or check.arguments.dry_run:
            continue
        program = [place / "build" / f"{model}_run", "--weights", place / "data" / f"{model}.weights.bin", "--random", "1",
                   "--repeat", "2"]
        text = check.run(gpu_layers.command(ncu, *program), 60, f"layers_{model}.log")
        found = gpu_layers.measured(told, gpu_layers.durations(text))
        save(check, "layers", {model: found})
        said.append(f"{model}: {len(gpu_layers.worst(found, len(found)))} of {len(found)} late")
    if not ncu or check.arguments.dry_run:
        raise Skip("predictions alone" if check.arguments.dry_run else "there is no ncu: predictions alone")
    return "; ".join(said)


def write_tables(check):
    """Into the folder of the results; into the document where that is asked for."""
    document = ROOT / "docs" / "benchmarks.md"
    results = json.loads(check.results_file.read_text(encoding="utf-8")) if check.results_file.exists() else {}
    text = gpu_table.render(results)
    gpu_table.insert(document.read_text(encoding="utf-8"), text)  # it has its markers
    said = gpu_table.verdict(results)
    (check.arguments.results / "verdict.md").write_text(said, encoding="utf-8")
    (check.arguments.results / "tables.md").write_text(text, encoding="utf-8")
    print(said, flush=True)
    if check.arguments.document and not check.arguments.dry_run:
        gpu_table.write(check.results_file, document)
    return f"verdict.md and tables.md in {check.arguments.results}"


def parse():
    words = lambda text: [word for word in text.split(",") if word]
    parser = argparse.ArgumentParser(prog="scripts/gpu_check.sh", description="Checks and times CUDA projects on a GPU.",
                                     epilog="Exit: 0 all is well, 1 something failed, 2 usage, 3 there is no GPU.")
    parser.add_argument("--seconds", type=float, default=None,
                        help=f"of the whole run (590; {PART_SECONDS} with --part; no limit with --dry-run)")
    parser.add_argument("--part", type=int, choices=range(1, len(PARTS) + 1),
                        help="one of the parts: " + ", ".join(f"{i} {part}" for i, part in enumerate(PARTS, 1)))
    parser.add_argument("--prebuilt", type=pathlib.Path, help="what --pack left: nothing but emitted projects is built")
    parser.add_argument("--gcompile", type=pathlib.Path, help="a gcompile that is built already")
    parser.add_argument("--dry-run", action="store_true", help="builds everything for sm_90 and runs nothing on a GPU")
    parser.add_argument("--pack", type=pathlib.Path, help="as --dry-run, for the programs alone, which are left here")
    parser.add_argument("--parts", type=words, default=list(PARTS), help="of " + ",".join(PARTS))
    parser.add_argument("--models", type=words, default=list(model_sizes.ON_A_GPU), help="of the four large ones")
    parser.add_argument("--precisions", type=words, default=list(gpu_table.PRECISIONS))
    parser.add_argument("--cells", help="what is timed, in order: MODEL:BATCH:PRECISION,...")
    parser.add_argument("--work", type=pathlib.Path, help="where models and projects go (BUILD/gpu_check)")
    parser.add_argument("--results", type=pathlib.Path,
                        help="folder of numbers, logs and tables; a later run adds to them (WORK/results)")
    parser.add_argument("--document", action="store_true", help="writes the tables into docs/benchmarks.md too")
    arguments = parser.parse_args()
    for name, known in (("parts", PARTS), ("models", model_sizes.ON_A_GPU), ("precisions", gpu_table.PRECISIONS)):
        if unknown := [word for word in getattr(arguments, name) if word not in known]:
            parser.error(f"--{name}: {', '.join(unknown)} is not one of {', '.join(known)}")
    arguments.dry_run |= arguments.pack is not None
    if arguments.part:
        arguments.parts = [PARTS[arguments.part - 1]]
    arguments.seconds = arguments.seconds or (86400 if arguments.dry_run else PART_SECONDS if arguments.part else 590)
    arguments.work = (arguments.work or ROOT / os.environ.get("BUILD_DIR", "build") / "gpu_check").resolve()
    arguments.results = (arguments.results or arguments.work / "results").resolve()
    return arguments


def run_steps(check):
    arguments = check.arguments
    if not arguments.dry_run:
        check.step("device", device, check)
    has_tools = check.step("build", build, check)
    if arguments.pack:
        check.step("pack", pack, check)
        return
    background = None
    if check.gcompile and {"models", "timing"} & set(arguments.parts) and check.step("models", write_models, check):
        if check.nvcc:
            background = Background(check)
        if "models" in arguments.parts:
            check.step("emitted projects on the GPU", verify, check)
    if "kernels" in arguments.parts and has_tools:
        check.step("kernels alone", kernel_bench, check)
        check.step("tests of the kernels", kernel_tests, check, 90)
        check.step("tests of the kernels under memcheck", kernel_tests, check, 75, "memcheck")
        check.step("tests of the kernels under racecheck", kernel_tests, check, 75, "racecheck")
    if background:
        check.step("large projects", background.wait, check)
        if "models" in arguments.parts:
            check.step("large models on the GPU", compare_large, check)
    if "timing" in arguments.parts:
        if background:
            check.step("timing", timing, check, False)
            check.step("layers", layers, check)
            check.step("timing with torch.compile", timing, check, True)
    check.step("tables", write_tables, check)


def main():
    check = Check(parse())
    check.work.mkdir(parents=True, exist_ok=True)
    check.arguments.results.mkdir(parents=True, exist_ok=True)
    if not check.nvcc:
        print("gpu_check: there is no nvcc: emitted projects cannot be built")
    run_steps(check)
    print(f"\n{'step':44s} {'state':8s} seconds")
    for name, state, seconds, _ in check.steps:
        print(f"{name:44s} {state:8s} {seconds:7.0f}")
    failed = [name for name, state, _, _ in check.steps if state == "FAILED"]
    print(f"gpu_check: {len(failed)} of {len(check.steps)} steps failed, {time.monotonic() - check.start:.0f} s")
    return 1 if failed or not check.nvcc else 0


if __name__ == "__main__":
    sys.exit(main())
