#!/usr/bin/env python3
"""Emitted libraries under sanitizers: memory that nobody has written to, bounds, undefined behaviour, races.

    sanitized.py --gcompile GCOMPILE [CASE...]

The models are those of the main suite, or the examples where ../shared/models is not there. Three of them are built in each
run, one for each sanitizer, others after each commit; with GCOMPILE_LONG_TESTS=1 all for each.
"""

import os
import shutil
import subprocess

from onnx_bytes import shape_flags
from support import (EXAMPLE_FLAGS, EXAMPLES, HERE, ROOT, SHARED_MODELS, Failure, Skip, check, contains, library_sources,
                     main_suite, march_flags, run_main)

SANITIZERS = ("memory", "address,undefined", "thread")
# Sizes of examples whose callers choose them.
FIXED_SIZES = {"storyteller": ["--dim", "batch=1", "--dim", "rows=4", "--dim", "past=8"]}
# What made-up inputs may not be: a sampling rate that the model does not know.
FIXED_VALUES = {"silero_vad_v6": ["--set", "sr=16000"]}
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=1", "UBSAN_OPTIONS": "print_stacktrace=1", "MSAN_OPTIONS": "print_stats=0"}


def models():
    """(name, file, flags) of each."""
    if SHARED_MODELS.exists():
        return [(name, SHARED_MODELS / name / "model.onnx",
                 [*shape_flags(SHARED_MODELS / name), *FIXED_VALUES.get(name, [])]) for name in main_suite()]
    print("         without ../shared/models: the examples")
    return [(path.parent.name, path, FIXED_SIZES.get(path.parent.name, EXAMPLE_FLAGS.get(path.parent.name, [])))
            for path in sorted(EXAMPLES.glob("*/model.onnx"))]


def in_turn(names, place):
    if os.environ.get("GCOMPILE_LONG_TESTS") == "1":
        return names
    done = subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    turn = int(done.stdout) if done.returncode == 0 else 0
    print(f"         1 of {len(names)} models, the others with other commits")
    return [names[(turn * len(SANITIZERS) + place) % len(names)]]


def build(world, project, compiler, sanitizer):
    """One program of library and driver, for this machine alone; clang has all four sanitizers."""
    flags = [f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", "-g1", "-O1",
             march_flags()[-1],
             f"-I{project}", f"-I{project}/include", f"-I{project}/data"]
    c_compiler = compiler.replace("clang++", "clang")
    objects = []
    for source in [*library_sources(project, "model"), HERE / "sanitized.c"]:
        target = world.path(f"{source.name}.o")
        language = [compiler, "-std=c++17"] if source.suffix == ".cpp" else [c_compiler]
        world.run([*language, *flags, "-c", source, "-o", target])
        objects.append(target)
    program = world.path("program")
    world.run([compiler, *flags, *objects, "-pthread", "-lm", "-o", program])
    for path in objects:
        path.unlink()
    return program


def clang():
    for name in ("clang++-14", "clang++"):
        if shutil.which(name):
            return name
    raise Failure("no clang++: scripts/install_packages.sh test installs it")


def run_sanitized(world, sanitizer):
    found = []
    for name, model, flags in in_turn(models(), SANITIZERS.index(sanitizer)):
        project = world.path("project")
        world.compile(model, project, "--name", "model", "--force", *flags)
        program = build(world, project, clang(), sanitizer)
        done = world.run([program], status=None, env={**os.environ, **OPTIONS})
        if "unexpected memory mapping" in done.stderr or "ASLR" in done.stderr:
            raise Skip(f"-fsanitize={sanitizer} cannot run on this kernel: {done.stderr.splitlines()[0]}")
        is_clean = done.returncode == 0 and done.stdout == "sanitized\n"
        print(f"         {name}: {'clean' if is_clean else f'exit code {done.returncode}'}", flush=True)
        if not is_clean:
            found.append(name)
            print(done.stderr[-3000:])
    check(not found, f"-fsanitize={sanitizer} finds something in {', '.join(found)}")


def case_memory(world):
    run_sanitized(world, "memory")


def case_address(world):
    run_sanitized(world, "address,undefined")


def case_thread(world):
    run_sanitized(world, "thread")


PLANTED = {
    "memory": ("use-of-uninitialized-value", "int main() { int* p = new int; return *p ? 1 : 0; }"),
    "address,undefined": ("heap-buffer-overflow", "int main() { int* p = new int[4]; return p[4] & 0; }"),
    "thread": ("data race", "#include <thread>\nint x; int main() { std::thread t([] { ++x; }); ++x; t.join(); }"),
}


def case_detects(world):
    """Each of them sees what it is for, with these flags."""
    for sanitizer, (said, text) in PLANTED.items():
        source, program = world.path("planted.cpp"), world.path("planted")
        source.write_text(text, encoding="utf-8")
        world.run([clang(), "-std=c++17", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all", "-g1", "-O0", "-pthread",
                   source, "-o",
                   program])
        done = world.run([program], status=None, env={**os.environ, **OPTIONS})
        check(done.returncode != 0, f"-fsanitize={sanitizer} finds nothing")
        contains(done.stderr, said)


if __name__ == "__main__":
    run_main(globals())
