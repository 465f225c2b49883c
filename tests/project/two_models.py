#!/usr/bin/env python3
"""Two emitted models, built for different instruction sets, in one program: two_models.cpp, and what it must print.

    two_models.py --gcompile GCOMPILE [CASE...]
"""

import os

from support import check, compilers, equal, march_flags, run_main, HERE, Skip

# Runs per model: alone, interleaved on one arena, two threads, a pool of threads.
LINES = 5
SANITIZER_OPTIONS = {
    "TSAN_OPTIONS": "halt_on_error=1",
    "ASAN_OPTIONS": "detect_stack_use_after_return=1:detect_leaks=0",
    "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1",
}


def build(world, program, models, compiler="g++", flags=(), level="-O2"):
    """Links two_models.cpp with models {"first": (project, flags)}; all by hand, as a product with its own build
    system would."""
    words = [compiler, "-std=c++17", "-O1", "-pthread", *flags]
    objects = []
    for name, (project, march) in models.items():
        words += [f"-DHAS_{name.upper()}", f"-I{project}/include"]
        library_flags = [flag for flag in (level, march, *flags) if flag]
        objects += world.library_objects(project, name, compiler, library_flags)
        threads = world.path(f"{program}_{name}_threads.o")
        world.run([compiler, "-std=c++17", "-O1", *flags, f"-I{project}", f"-I{project}/include", "-c",
                   project / "src" / f"{name}_threads.cpp", "-o", threads])
        objects.append(threads)
    target = world.path(program)
    world.run([*words, HERE / "two_models.cpp", *objects, "-o", target])
    return target


def checksums(world, program, **options):
    """{model: {kind: [checksum]}} from the lines of a run that succeeded and said nothing else."""
    done = world.run([program], env={**os.environ, **SANITIZER_OPTIONS}, timeout=300, **options)
    equal(done.stderr, "", "what the program says on standard error")
    found = {}
    for line in done.stdout.splitlines():
        model, kind, checksum = line.split()
        found.setdefault(model, []).append((kind, checksum))
    return found


def agree(found, expected, title):
    equal(sorted(found), sorted(expected), "models")
    for model, lines in found.items():
        for kind, checksum in lines:
            check(checksum == expected[model], f"{title}: '{model}' gives other bits in '{kind}': {lines}, alone "
                  f"{expected[model]}")


def solo_checksums(world, models, compiler="g++"):
    """Each model in a program without the other one."""
    result = {}
    for name, model in models.items():
        [(_, checksum)] = checksums(world, build(world, f"solo_{name}", {name: model}, compiler))[name]
        result[name] = checksum
    return result


def run_pair(world, models, title, compiler="g++"):
    expected = solo_checksums(world, models, compiler)
    found = checksums(world, build(world, "both", models, compiler))
    for lines in found.values():
        equal(len(lines), LINES, "lines of a model")
    agree(found, expected, title)
    return expected


def projects(world):
    return (world.example("shapes_classifier", "classifier", "--name", "first"),
            world.example("streaming_denoiser", "denoiser", "--name", "second"))


def case_lowest_and_native(world):
    first, second = projects(world)
    lowest, native = march_flags()[0], march_flags()[-1]
    run_pair(world, {"first": (first, lowest), "second": (second, native)}, "lowest and native")


def case_same_model_twice(world):
    """One model under two names has the same functions inside: the linker must never take one for the other, in
    either order."""
    middle, native = march_flags()[-2:]
    first = world.example("tiny_attention", "one", "--name", "first")
    second = world.example("tiny_attention", "other", "--name", "second")
    alone = run_pair(world, {"first": (first, middle), "second": (second, native)}, "one model twice")
    # Instruction sets that round differently would hide a mix-up in neither model; that they agree is a bonus.
    print(f"         the two builds give {'the same' if len(set(alone.values())) == 1 else 'different'} bits")
    run_pair(world, {"second": (second, native), "first": (first, middle)}, "the other order")


def case_clang(world):
    first, second = projects(world)
    middle, native = march_flags()[-2:]
    run_pair(world, {"first": (first, native), "second": (second, middle)}, "clang", compilers()[1])


def run_sanitized(world, sanitizer, extra=()):
    first, second = projects(world)
    lowest, native = march_flags()[0], march_flags()[-1]
    flags = [f"-fsanitize={sanitizer}", "-g", "-fno-omit-frame-pointer", "-fno-sanitize-recover=all", *extra]
    program = build(world, "both", {"first": (first, lowest), "second": (second, native)}, flags=flags, level="-O1")
    probe = world.run([program], status=None, env={**os.environ, **SANITIZER_OPTIONS})
    if "unexpected memory mapping" in probe.stderr or "ASLR" in probe.stderr:
        raise Skip(f"-fsanitize={sanitizer} cannot run on this kernel: {probe.stderr.splitlines()[0]}")
    found = checksums(world, program)
    for lines in found.values():
        equal(len(lines), LINES, "lines of a model")
        equal(len({checksum for _, checksum in lines}), 1, "different results of one model")


def case_thread_sanitizer(world):
    run_sanitized(world, "thread")


def case_address_sanitizer(world):
    run_sanitized(world, "address,undefined")


if __name__ == "__main__":
    run_main(globals())
