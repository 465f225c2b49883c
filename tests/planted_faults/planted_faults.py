#!/usr/bin/env python3
"""Whether the tests see faults: plants those of faults.py one at a time and runs what is meant to fail then.

    planted_faults.py SOURCE_DIR --check [--tests BUILD_DIR]
    planted_faults.py SOURCE_DIR --build FOLDER [--jobs N] [--cmake ARGUMENT]... [NAME]...

--check compares the table with the sources, in no time: every text that a fault replaces is there, once, and every test; with --tests also that CTest has the tests there, at whatever widths of vectors.
Else the sources are copied to FOLDER/tree, where all is built and edited; what lies there already is used again. All tests
must pass there before a fault is planted. Then each of the faults (or those that have a NAME, or begin with one that ends
with a slash) is planted, what sees it is built and run, and the fault is taken back. A fault that does not compile is a
fault of the table.
Exit: 0 enough were killed, 1 not, or the table is wrong.
"""

import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from faults import FAULTS

TESTS = pathlib.Path(__file__).resolve().parent.parent
WANTED, OF = 57, 60  # of so many faults so many are seen at least
FEWEST_FAULTS = OF
WIDTH = r"_[0-9]+$"  # ends the name of a test that is built for each width of vectors


def place_of(test):
    """The source of a test, and the name that CTest has for it: executables are called what their tests are."""
    if test.startswith("random_models."):
        return "tests/random_models/random_models.cc", test.replace(".", r"\.")
    for source in sorted((TESTS / "unit").rglob(f"{test}.cc")):
        return source.relative_to(TESTS.parent).as_posix(), rf"unit\.{test}"
    if test.startswith("cuda_"):
        return f"tests/cuda_kernels/{test[len('cuda_'):]}.cc", rf"cuda_kernels\.{test}\.seed_[0-9]+"
    return f"tests/kernels/{re.sub(WIDTH, '', test)}.cc", rf"kernels\.{test}"


def targets_of(test):
    return ["gcompile", "random_models"] if test.startswith("random_models.") else [test]


def complaints(root):
    """What is wrong with the table."""
    found = []
    names = [fault.name for fault in FAULTS]
    if len(FAULTS) < FEWEST_FAULTS:
        found.append(f"{len(FAULTS)} faults; at least {FEWEST_FAULTS}")
    found += [f"{name} is there twice" for name in sorted(set(names)) if names.count(name) > 1]
    for fault in FAULTS:
        path = root / fault.file
        count = path.read_text(encoding="utf-8").count(fault.old) if path.exists() else None
        if count is None:
            found.append(f"{fault.name}: there is no {fault.file}")
        elif count != 1:
            found.append(f"{fault.name}: {fault.file} has {count} times, not once:\n{fault.old}")
        if fault.old == fault.new:
            found.append(f"{fault.name} changes nothing")
        if not fault.tests:
            found.append(f"{fault.name}: no test is meant to see it")
        found += [f"{fault.name}: no {place_of(test)[0]}" for test in fault.tests if not (root / place_of(test)[0]).exists()]
    return found


def missing_tests(build):
    """Tests of the table that CTest does not have in a build folder, of those kinds that are built there."""
    listed = subprocess.run(["ctest", "--test-dir", build, "--show-only=json-v1"], capture_output=True, text=True, check=True)
    present = [test["name"] for test in json.loads(listed.stdout)["tests"]]
    kinds = {test.partition(".")[0] for test in present}
    wanted = sorted({name for fault in FAULTS for test in fault.tests if (name := place_of(test)[1]).split("\\")[0] in kinds})
    return [f"CTest has no test {name}" for name in wanted
            if not any(re.fullmatch(re.sub(WIDTH, "_[0-9]+", name), test) for test in present)]


def sources_of(root):
    """Names of the files that are built from: all but what builds, tests and git leave."""
    def is_source(folder, name):
        is_left = name in ("__pycache__", ".git") or (pathlib.Path(folder) == root and name.startswith(("build", "out")))
        return not is_left and not (pathlib.Path(folder) / name / "CMakeCache.txt").exists()

    names = set()
    for folder, folders, files in os.walk(root):
        folders[:] = [name for name in folders if is_source(folder, name)]
        names |= {pathlib.Path(folder, name).relative_to(root) for name in files if name != ".git"}
    return names


def copy_sources(root, tree):
    """Makes `tree` what `root` is; files that are the same keep their times."""
    wanted = sources_of(root)
    for name in sources_of(tree) - wanted if tree.exists() else []:
        (tree / name).unlink()
    for name in wanted:
        to = tree / name
        if to.exists() and to.read_bytes() == (root / name).read_bytes():
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / name, to)
    shared = tree.parent / "shared"  # data beside the sources
    if (root.parent / "shared").exists() and not shared.exists():
        shared.symlink_to((root.parent / "shared").resolve())


class Tree:
    """A copy of the sources, with its build folder."""

    def __init__(self, root, folder, jobs, options):
        self.root = folder / "tree"
        self.build = self.root / "build"
        self.jobs = jobs
        copy_sources(root, self.root)
        if not (self.build / "build.ninja").exists():
            done = self.run(["cmake", "-S", self.root, "-B", self.build, "-G", "Ninja", "-DGCOMPILE_TESTS=ON", *options])
            if done.returncode != 0:
                sys.exit(f"cannot configure:\n{done.stdout}")

    @staticmethod
    def run(command, **environment):
        kept = {name: value for name, value in os.environ.items() if name != "GCOMPILE_LONG_TESTS"}
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                              check=False, env={**kept, **environment})

    def built(self, tests):
        """What the compiler says of it; empty: it compiles."""
        targets = sorted({target for test in tests for target in targets_of(test)})
        done = self.run(["cmake", "--build", self.build, "-j", str(self.jobs), "--target", *targets])
        return "" if done.returncode == 0 else done.stdout or "no word"

    def failure(self, tests):
        """What a test says that fails; empty: all pass."""
        names = "|".join(place_of(test)[1] for test in tests)
        done = self.run(["ctest", "--test-dir", self.build, "-R", f"^({names})$", "--no-tests=error", "--stop-on-failure",
                         "--output-on-failure"], GCOMPILE_SEED="1")
        return "" if done.returncode == 0 else done.stdout or "no word"

    def verdict(self, fault):
        path = self.root / fault.file
        right = path.read_text(encoding="utf-8")
        path.write_text(right.replace(fault.old, fault.new), encoding="utf-8")
        try:
            if self.built(fault.tests):
                return "does not compile"
            return "killed" if self.failure(fault.tests) else "survived"
        finally:
            path.write_text(right, encoding="utf-8")


def chosen(names):
    if not names:
        return FAULTS
    some = [fault for fault in FAULTS
            if any(fault.name == name or (name.endswith("/") and fault.name.startswith(name)) for name in names)]
    if not some:
        sys.exit(f"there is no fault of these names: {' '.join(names)}")
    return some


def plant(arguments):
    """Exit code."""
    faults = chosen(arguments.names)
    tree = Tree(arguments.source, arguments.build.resolve(), arguments.jobs, arguments.cmake)
    tests = sorted({test for fault in faults for test in fault.tests})
    said = tree.built(tests) or tree.failure(tests)
    if said:
        print(f"{said[-4000:]}\nthe tests do not pass without a fault")
        return 1
    print(f"{len(tests)} tests pass without a fault", flush=True)
    verdicts = []
    for fault in faults:
        begin = time.monotonic()
        verdicts.append(tree.verdict(fault))
        print(f"{verdicts[-1]:8} {fault.name} ({time.monotonic() - begin:.0f} s)", flush=True)
    killed = verdicts.count("killed")
    wanted = -(-len(faults) * WANTED // OF)
    wrong = verdicts.count("does not compile")
    print(f"{killed} of {len(faults)} faults killed, {verdicts.count('survived')} survived, {wrong} did not compile; "
          f"at least {wanted} are wanted")
    return 0 if killed >= wanted and wrong == 0 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("names", nargs="*")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--tests", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--cmake", action="append", default=[])
    arguments = parser.parse_intermixed_args()
    found = complaints(arguments.source) + (missing_tests(arguments.tests) if arguments.tests else [])
    if found:
        print("\n".join(found))
        return 1
    if arguments.check:
        print(f"{len(FAULTS)} faults can be planted")
        return 0
    if not arguments.build:
        parser.error("--check or --build FOLDER")
    return plant(arguments)


if __name__ == "__main__":
    sys.exit(main())
