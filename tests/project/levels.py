#!/usr/bin/env python3
"""Libraries that hold their kernels for several levels of x86-64: each processor runs the best that it can, by code that
is no other level's, and one below all of them gets a status. Processors are those of an emulator.

    levels.py --gcompile GCOMPILE [CASE...]
"""

import platform
import shutil

from support import HERE, Failure, Skip, check, contains, equal, library_levels, run_main

# A processor of the emulator for each level that it can emulate, and the name that its bits must agree with.
PROCESSORS = {"x86_64_v3": "Haswell", "x86_64_v2": "Nehalem"}
TOO_OLD = "core2duo"
REFUSAL = "the processor lacks instructions that the library was built for"


def emulator():
    if platform.machine() not in ("x86_64", "AMD64"):
        raise Skip("levels are those of x86-64")
    if not shutil.which("qemu-x86_64"):
        raise Failure("no qemu-x86_64: scripts/install_packages.sh test installs it")
    return "qemu-x86_64"


def make(world, project, arch, **variables):
    """Builds a project by its Makefile; returns the folder of objects and programs."""
    build = world.path(f"build_{arch}_{variables.get('CXXFLAGS', '')}")
    world.run(["make", "-C", project, build / "plain_run", f"BUILD={build}", f"ARCH={arch}",
               *(f"{name}={value}" for name, value in variables.items())])
    return build


def outputs_on(world, processor, build, status=0):
    """What the runner writes, as bytes by file name, and what it says."""
    folder = world.path(f"outputs_{processor}_{build.name}")
    done = world.run([emulator(), "-cpu", processor, build / "plain_run", "--random", "1", "--output-dir", folder],
                     status=status)
    files = {path.name: path.read_bytes() for path in sorted(folder.iterdir())} if folder.exists() else {}
    return files, done.stderr


def case_each_processor_takes_its_best(world):
    """Outputs are, bit by bit, those of a library of the expected level alone; no two levels agree here."""
    project = world.example("tiny_attention", "project", "--name", "plain")
    build = make(world, project, "levels")
    found = {}
    for level, processor in PROCESSORS.items():
        alone = make(world, project, library_levels()[level].removeprefix("-march="))
        expected, _ = outputs_on(world, processor, alone)
        actual, _ = outputs_on(world, processor, build)
        check(expected and actual == expected, f"{processor} does not run {level}")
        found[level] = actual
    check(found["x86_64_v3"] != found["x86_64_v2"], "the levels agree in every bit: nothing was shown")


def case_too_old_a_processor(world):
    """A status and a sentence, no signal: of a library of several levels, and of one that was built for a newer one."""
    project = world.example("shapes_classifier", "project", "--name", "plain")
    for arch, processor in (("levels", TOO_OLD), ("x86-64-v3", PROCESSORS["x86_64_v2"]),
                            ("x86-64-v4", PROCESSORS["x86_64_v3"])):
        files, said = outputs_on(world, processor, make(world, project, arch), status=1)
        contains(said, REFUSAL)
        equal(files, {}, f"outputs on {processor}")


def case_nothing_is_shared(world):
    """A function that the linker could take from another level's object may use instructions that this processor does
    not have: what may be defined twice belongs to one level's namespace."""
    project = world.path("project")
    world.compile(HERE / "models" / "many_operators.onnxtxt", project, "--name", "plain", "-O0")
    build = make(world, project, "levels", CXXFLAGS="-O0")  # inlines nothing that it need not
    for level in library_levels():
        objects = sorted((build / level).rglob("*.o"))
        check(objects, f"no objects of {level}")
        for line in world.run(["nm", "-C", "--defined-only", *objects]).stdout.splitlines():
            words = line.split(" ", 2)
            if len(words) == 3 and words[1] in "ABDRTVWu":  # all that other objects see
                contains(words[2], f"plain_gcrt::{level}::")


if __name__ == "__main__":
    run_main(globals())
