"""The tests of device code on a GPU: a process for each suite, so that a kernel that never ends takes nothing along."""

import concurrent.futures
import os
import pathlib
import re
import shutil
import sys

from gpu_steps import Failure, Skip, limited

# What no device has run yet, and what may hang one: last, and alone.
LAST = re.compile("Hopper|Warpgroup|Wgmma|Cluster|TensorMap")
# Small shapes of every kernel: what the sanitizers, which slow kernels down by tens, get through.
SANITIZED = ":".join("""Barrier* Threads* Warp* CopyAsync* TensorCore* LoadMatrix* Reduce* RowParts.NanIsTheExtremum CudaGemm.SmallTileFp32
CudaGemm.Fp16 CudaGemm.LongDepth CudaGemm.SplitDepth* CudaGemm.PartsOfClusters CudaGemv.* CudaConv* CudaGemmInteger.*
CudaAttention.TokensAroundTheTiles CudaAttention.*Mask* CudaAttention.SplitKeys CudaRnn.OneLaunch CudaRnn.LaunchPerStep CudaTopK.ShortLines CudaScatter*
CudaCumulativeSum.Sizes CudaDepthwise* CudaPool*""".split())


def environment(check):
    """For programs that may need cuBLASLt: the libraries that come with a Python package of CUDA lie beside it."""
    folders = [str(folder) for place in sys.path if place for folder in sorted(pathlib.Path(place).glob("nvidia/*/lib"))]
    path = os.pathsep.join(filter(None, [check.environment.get("LD_LIBRARY_PATH"), check.loader_path, *folders]))
    return dict(check.environment, LD_LIBRARY_PATH=path)


def program(check, name="cuda_kernels_on_gpu"):
    found = check.programs / name
    if check.arguments.dry_run:
        raise Skip(f"{found} was built" if found.exists() else "nothing was built")
    return found


def suites(check, tests):
    """Names of the suites, in the order in which they run: two lists."""
    listed = check.run([tests, "--gtest_list_tests"], 30, environment=environment(check))
    names = re.findall(r"^(\w+(?:/\w+)*)\.", listed, re.M)
    return [n for n in names if not LAST.search(n)], [n for n in names if LAST.search(n)]


def run_suites(check, workers=4):
    """Every suite by itself; of those that may hang the device one at a time, when all others are done."""
    tests = program(check)
    first, last = suites(check, tests)
    results, logs = {}, check.arguments.results / "kernels"
    logs.mkdir(parents=True, exist_ok=True)

    def run(suite):
        limit = min(check.arguments.suite_seconds, check.left())
        status, said = limited([tests, "--gtest_brief=1", f"--gtest_filter={suite}.*"], limit, environment(check))
        (logs / f"{suite.replace('/', '_')}.log").write_text(said, encoding="utf-8")
        results[suite] = "right" if status == 0 else f"not done after {limit:.0f} s" if status is None else \
            f"exit status {status}: {said[-600:]}"

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        list(pool.map(run, first))
    for suite in last:
        run(suite)
    check.save("suites", results)
    wrong = [f"{suite}: {said}" for suite, said in results.items() if said != "right"]
    if wrong:
        raise Failure(f"{len(wrong)} of {len(results)} suites:\n" + "\n".join(wrong))
    return f"{len(results)} suites are right"


def sanitize(check, limit, tool, workers):
    """`tool`: memcheck or racecheck, over small shapes."""
    tests = program(check)
    sanitizer = shutil.which("compute-sanitizer", path=check.environment["PATH"])
    if not sanitizer:
        raise Skip("there is no compute-sanitizer")
    limit = min(limit, check.left())
    if limit < 20:
        raise Skip("no time is left")
    command = [sanitizer, "--tool", tool, "--error-exitcode", "9", tests, "--gtest_brief=1", f"--gtest_filter={SANITIZED}"]

    def complaint(shard):
        shard_environment = dict(environment(check), GTEST_TOTAL_SHARDS=str(workers), GTEST_SHARD_INDEX=str(shard))
        status, said = limited(command, limit, shard_environment)
        (check.arguments.results / f"kernels_{tool}_{shard}.log").write_text(said, encoding="utf-8")
        if "Device not supported" in said:
            raise Skip("compute-sanitizer does not work on this machine")
        if status is None:
            return f"part {shard} of {workers}: not done after {limit:.0f} s: {said[-300:]}"
        return None if status == 0 else f"part {shard} of {workers}: exit status {status}: {said[-1200:]}"

    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        wrong = list(filter(None, pool.map(complaint, range(workers))))
    if wrong:
        raise Failure("\n".join(wrong))
    return f"{workers} processes"
