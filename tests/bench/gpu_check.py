#!/usr/bin/env python3
"""The steps of scripts/gpu_check.sh, which looks for a GPU first.

One command of nine minutes: emitted projects are right, then the kernels, then times, the sanitizers, and details of layers in
what is left. Every step has a limit of time, and all together --seconds; one that fails leaves the later ones their turn. While nvcc works on
one half of the processors, the other half runs the projects for the CPU. All that was found is one file (--tarball), new
after every step, so that a run that is cut short has brought back what it knows.
"""

import argparse
import concurrent.futures
import datetime
import functools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

import gpu_cpu
import gpu_kernels
import gpu_layers
import gpu_pack
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
# What goals are for, and the precision that most is known of, before all others.
FIRST_CELLS = (("bert_base", 1), ("gpt2_decode", 1), ("resnet50", 1), ("vit_b16", 1), ("bert_base", 8), ("resnet50", 8))
PARTS = ("models", "large", "kernels", "timing")  # large: outputs of the large models alone
ALL_SECONDS = 540
COMPILE_SECONDS = 120  # of torch.compile, which would take all there are
# Distance to the reference over its norm. float32 sums in another order; else operands are rounded to 11 or 8 bits.
MOST_DISTANCE = {"fp32": 1e-4, "tf32": 1e-2, "fp16": 1e-2, "bf16": 6e-2}
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
    check.save("device", found)
    check.architecture = architecture_of(capability)
    return ", ".join(f"{key} {value}" for key, value in found.items())


def architecture_of(capability):
    """What nvcc and gcompile are asked for; never guessed. Of 9.0 with all of its instructions."""
    return "sm_" + capability.replace(".", "") + ("a" if capability == "9.0" else "")


def build(check):
    """gcompile and the programs of tests/cuda_on_gpu, unless they came along."""
    if check.arguments.prebuilt:
        folder = gpu_pack.unpack(check.arguments.prebuilt.resolve(), check.work / "prebuilt")
        check.gcompile, check.programs, check.tiles = folder / "gcompile", folder, folder / gpu_pack.TILES
        # Libraries lie beside the programs; the folder is searched last, and by these programs alone.
        check.loader_path = str(folder / "lib")
        if (folder / "models" / "INDEX.md").exists():
            os.environ.setdefault("GCOMPILE_MODELS", str(folder / "models"))
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
    targets = [*gpu_pack.PROGRAMS, gpu_pack.TILES] + ([] if check.gcompile else ["gcompile"])
    check.run(["cmake", "--build", folder, "-j", jobs(), "--target", *targets], 3000, "build.log")
    check.gcompile = check.gcompile or folder / "gcompile"
    check.programs = folder / "tests" / "cuda_on_gpu"
    check.tiles = next(folder.glob(f"tests/**/{gpu_pack.TILES}"), None)
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
    """What --prebuilt takes elsewhere, the main suite with it."""
    suite = real_models.models_folder()
    return gpu_pack.pack(check, suite, real_models.main_suite(suite) if (suite / "INDEX.md").exists() else [])


def write_models(check):
    """Small ones for verify, large ones for the rest."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:  # a process for each model
        made = [pool.submit(check.run, [sys.executable, HERE / "big_models.py", *flags, "--out", check.work / "models", model], 120)
                for flags in (["--small"], *([] if check.arguments.small else [[]])) for model in check.arguments.models]
    for one in made:
        one.result()
    for model in check.arguments.models if check.arguments.small else []:
        shutil.copytree(check.work / "models" / f"{model}_small", check.work / "models" / model, dirs_exist_ok=True)
    return str(check.work / "models")


def project_name(model, batch, precision, twin=""):
    return f"{model}_b{batch}_{precision}{'_' if twin else ''}{twin}"


def build_project(check, model, batch, precision, twin=""):
    """An emitted CUDA project, built by make. `twin`: the architecture whose code it has instead of the device's own."""
    folder = check.work / "projects" / project_name(model, batch, precision, twin)
    compile_model(check, check.work / "models" / model / "model.onnx", folder, "--dim", f"batch={batch}", "--target", "cuda",
                  "--arch", twin or check.architecture, "--weights", "file", "--name", model, "--precision", precision)
    build_emitted(check, folder, f"NVCC={check.nvcc}")


def twins(check):
    """Cells that are built for sm_90 too: if the kernels of sm_90a alone fail, there is something to time."""
    return [(*cell, gpu_table.TWIN) for cell in cells(check)
            if check.architecture == f"{gpu_table.TWIN}a" and cell[1] == 1 and cell[2] == "fp16"]


def build_emitted(check, folder, *flags):
    """By make, or by CMake where there is no make."""
    on = check.cores_of_builds
    if shutil.which("make"):
        check.run(gpu_cpu.pinned(["make", "-C", folder, "-j4", *flags], on), 400)
        return
    generator = ["-G", "Ninja"] if shutil.which("ninja") else []
    check.run(["cmake", "-S", folder, "-B", folder / "build", *generator, f"-DCMAKE_CUDA_COMPILER={check.nvcc}"], 120)
    check.run(gpu_cpu.pinned(["cmake", "--build", folder / "build", "-j", "4"], on), 400)


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
    found = [(model, batch, "fp16") for model, batch in FIRST_CELLS]
    found += [(model, 1, precision) for precision in gpu_table.PRECISIONS for model, batch in FIRST_CELLS
              if batch == 1 and precision != "fp16"]
    return [cell for cell in found if cell[0] in check.arguments.models and cell[2] in check.arguments.precisions]


class Background:
    """Builds that run while other steps do."""

    def __init__(self, check):
        # A compilation of a large model takes 2 GB. The projects for the CPU come first, for they are run meanwhile.
        self.pool = concurrent.futures.ThreadPoolExecutor(max(1, min(8, len(check.cores_of_builds))))
        self.builds = {}
        times = "timing" in check.arguments.parts
        for model in check.arguments.models:
            self.builds[f"{model}_cpp"] = self.pool.submit(build_reference, check, model)
        for twin in twins(check) if times else []:
            self.builds[project_name(*twin)] = self.pool.submit(build_project, check, *twin)
        for cell in cells(check):
            if times or cell[1] == 1:
                self.builds[project_name(*cell)] = self.pool.submit(build_project, check, *cell)

    def references(self, check):
        """Waits for the projects for the CPU alone."""
        mine = [build for name, build in self.builds.items() if name.endswith("_cpp")]
        concurrent.futures.wait(mine, timeout=min(90, check.left()))

    def wait(self, check):
        """Raises what went wrong, of all of them."""
        limit = check.left() if check.arguments.dry_run else min(120, check.left())
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
    deadline = time.monotonic() + min(130, check.left())

    def complaint(case):
        name, arguments = case
        command = [check.gcompile, "verify", *arguments, "--target", "cuda", "--arch", check.architecture, "--name", "m"]
        command = gpu_cpu.pinned(command, check.cores_of_builds)
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


def kernel_bench(check):
    program = gpu_kernels.program(check, "cuda_kernel_bench")
    # What is said until it stops, if it does, is worth having.
    status, text = limited([program, "--json"], min(60, check.left()), gpu_kernels.environment(check))
    (check.arguments.results / "kernel_bench.log").write_text(text, encoding="utf-8")
    rows = [json.loads(line) for line in text.splitlines() if line.startswith("{") and line.endswith("}")]
    check.save("kernels", rows)
    if status != 0:
        raise Failure(f"{'not done in time' if status is None else f'exit status {status}'} behind {len(rows)} kernels: {text[-300:]}")
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
        limit = min(110, check.left())
        text = check.run([*command, "--cells", ",".join(wanted), "--seconds", limit - 20], limit, "timing.log")
        print(text, flush=True)
        return f"{len(wanted)} cells"
    if peers_on_gpu.torch is None:
        raise Skip("there is no torch")
    done, wrong = 0, []
    end = time.monotonic() + min(COMPILE_SECONDS, check.left() - 60)
    for cell in wanted:
        if end - time.monotonic() < 10:
            break
        try:
            print(check.run([*command, "--compile", "--cells", cell], end - time.monotonic()), flush=True)
            done += 1
        except Failure as failure:
            wrong.append(str(failure))
    if wrong and not all("not done after" in line for line in wrong):
        raise Failure("\n".join(wrong))
    return f"{done} of {len(wanted)} cells in the time there was"


def layered(check):
    """Cells whose layers are looked at: (name in the results, program with its arguments, manifest)."""
    for model in check.arguments.models:
        for batch in (1, 8):
            place = check.work / "projects" / project_name(model, batch, "fp16")
            manifest = place / "meta" / f"{model}.json"
            if manifest.exists() and (batch == 1 or (model, batch) in FIRST_CELLS):
                yield model if batch == 1 else f"{model} b{batch}", [
                    place / "build" / f"{model}_run", "--weights", place / "data" / f"{model}.weights.bin", "--random", "1"], manifest


def layers(check):
    """Every layer of the models that have goals, by Nsight Compute, beside its prediction."""
    said = []
    ncu = shutil.which("ncu", path=check.environment["PATH"])
    for name, program, manifest in layered(check):
        told = gpu_layers.predicted(manifest)
        whole = json.loads(manifest.read_text(encoding="utf-8"))["layers"]
        check.save("predicted", {name: sum(layer["picoseconds"] for layer in whole) / 1e6})
        shutil.copy2(manifest, check.arguments.results / f"manifest_{name.replace(' ', '_')}.json")
        if not ncu or check.arguments.dry_run:
            continue
        text = check.run(gpu_layers.command(ncu, *program, "--repeat", "2"), 60, f"layers_{name.replace(' ', '_')}.log")
        found = gpu_layers.measured(told, gpu_layers.durations(text))
        check.save("layers", {name: found})
        said.append(f"{name}: {len(gpu_layers.worst(found, len(found)))} of {len(found)} late")
    if not ncu or check.arguments.dry_run:
        raise Skip("predictions alone" if check.arguments.dry_run else "there is no ncu: predictions alone")
    return "; ".join(said)


def layers_in_detail(check):
    """What Nsight Compute counts in each layer: a file for each model, for whoever makes its kernels faster."""
    ncu = shutil.which("ncu", path=check.environment["PATH"])
    if not ncu or check.arguments.dry_run:
        raise Skip("runs on a GPU, with ncu")
    done = 0
    for name, program, manifest in layered(check):
        if check.left() < 10:
            break
        kernels = sum(layer["launches"] for layer in gpu_layers.predicted(manifest))
        check.run(gpu_layers.detail_command(ncu, kernels, *program), 60, f"detail_{name.replace(' ', '_')}.csv")
        done += 1
    return f"{done} models"


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


def cpu_table(check, background, on, more_than=0):
    """`on`: the cores, of which the first ones are for fewer threads; of more threads than `more_than`."""
    if background:
        background.references(check)
    return gpu_cpu.table(check, check.arguments.models, lambda model: check.work / "projects" / f"{model}_cpp", on, more_than)


def parse():
    words = lambda text: [word for word in text.split(",") if word]
    parser = argparse.ArgumentParser(prog="scripts/gpu_check.sh", description="Checks and times CUDA projects on a GPU.",
                                     epilog="Exit: 0 all is well, 1 something failed, 2 usage, 3 there is no GPU.")
    parser.add_argument("--seconds", type=float, default=None,
                        help=f"of the whole run ({ALL_SECONDS}; no limit with --dry-run)")
    parser.add_argument("--prebuilt", type=pathlib.Path, help="what --pack left: nothing but emitted projects is built")
    parser.add_argument("--gcompile", type=pathlib.Path, help="a gcompile that is built already")
    parser.add_argument("--dry-run", action="store_true", help="builds everything for sm_90a and runs nothing on a GPU")
    parser.add_argument("--pack", type=pathlib.Path, help="as --dry-run, for the programs alone, which are left here")
    parser.add_argument("--parts", type=words, default=list(PARTS), help="of " + ",".join(PARTS))
    parser.add_argument("--models", type=words, default=list(model_sizes.ON_A_GPU), help="of the four large ones")
    parser.add_argument("--precisions", type=words, default=["fp16", "fp32"], help="of " + ",".join(gpu_table.PRECISIONS))
    parser.add_argument("--cells", help="what is timed, in order: MODEL:BATCH:PRECISION,...")
    parser.add_argument("--work", type=pathlib.Path, help="where models and projects go (BUILD/gpu_check)")
    parser.add_argument("--results", type=pathlib.Path,
                        help="folder of numbers, logs and tables; a later run adds to them (WORK/results)")
    parser.add_argument("--tarball", type=pathlib.Path, help="that folder as one file, new after every step (RESULTS.tgz)")
    parser.add_argument("--suite-seconds", type=float, default=20, help="of the tests of one kind of kernel (20)")
    parser.add_argument("--small", action="store_true", help="small models in the place of the large ones: a rehearsal")
    parser.add_argument("--document", action="store_true", help="writes the tables into docs/benchmarks.md too")
    arguments = parser.parse_args()
    for name, known in (("parts", PARTS), ("models", model_sizes.ON_A_GPU), ("precisions", gpu_table.PRECISIONS)):
        if unknown := [word for word in getattr(arguments, name) if word not in known]:
            parser.error(f"--{name}: {', '.join(unknown)} is not one of {', '.join(known)}")
    arguments.dry_run |= arguments.pack is not None
    arguments.seconds = arguments.seconds or (86400 if arguments.dry_run else ALL_SECONDS)
    arguments.work = (arguments.work or ROOT / os.environ.get("BUILD_DIR", "build") / "gpu_check").resolve()
    arguments.results = (arguments.results or arguments.work / "results").resolve()
    arguments.tarball = (arguments.tarball or arguments.results.with_name(arguments.results.name + ".tgz")).resolve()
    return arguments


def run_steps(check):
    arguments = check.arguments
    if not arguments.dry_run:
        check.step("device", device, check)
    has_tools = check.step("build", build, check)
    if arguments.pack:
        if has_tools:
            check.step("pack", pack, check)
        return
    timed, check.cores_of_builds = gpu_cpu.shares(gpu_cpu.cores())
    if "models" not in arguments.parts:
        check.cores_of_builds = gpu_cpu.cores()  # no table is made beside them
    background = None
    if check.gcompile and {"models", "large", "timing"} & set(arguments.parts) and check.step("models", write_models, check):
        if check.nvcc:
            background = Background(check)
    if "models" in arguments.parts:
        # On the GPU and on half of the processors; the others have a table of their own meanwhile.
        with concurrent.futures.ThreadPoolExecutor(1) as beside:
            cpu = beside.submit(check.step, "projects for the CPU", cpu_table, check, background, timed)
            if background:
                check.step("emitted projects on the GPU", verify, check)
            cpu.result()
        check.step("tile unit", gpu_cpu.tile_unit, check)
    if background:
        check.step("large projects", background.wait, check)
        if "models" in arguments.parts:
            check.step("projects for the CPU on all processors", cpu_table, check, background, gpu_cpu.cores(), len(timed))
        if {"models", "large"} & set(arguments.parts):
            check.step("large models on the GPU", compare_large, check)
    if "kernels" in arguments.parts and has_tools:
        check.step("tests of the kernels", gpu_kernels.run_suites, check)
        check.step("kernels alone", kernel_bench, check)
    if "timing" in arguments.parts and background:
        check.step("timing", timing, check, False)
        check.step("timing with torch.compile", timing, check, True)
        check.step("layers", layers, check)
    check.step("tables", write_tables, check)
    if "kernels" in arguments.parts and has_tools:
        for tool in ("memcheck", "racecheck"):
            check.step(f"tests of the kernels under {tool}", gpu_kernels.sanitize, check, 75, tool, max(1, min(6, jobs() // 2)))
    if "timing" in arguments.parts and background:
        check.step("layers in detail", layers_in_detail, check)  # takes minutes: what is left


def main():
    check = Check(parse())
    check.work.mkdir(parents=True, exist_ok=True)
    check.arguments.results.mkdir(parents=True, exist_ok=True)
    if not check.arguments.pack:
        check.after_step = functools.partial(gpu_pack.bring_back, check.arguments.results, check.arguments.tarball)
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
