"""What the tests of emitted projects share: running gcompile, building without its build files, judging.

A test is a script with functions `case_*`; `main()` runs those named on the command line, or all. Exit: 0 all hold,
1 something does not, 77 skipped (the last line says why).
"""

import argparse
import contextlib
import json
import os
import pathlib
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
import traceback

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
EXAMPLES = ROOT / "examples"
SHARED_MODELS = ROOT.parent / "shared" / "models"
SKIPPED = 77

# States that the examples' own README files declare.
EXAMPLE_FLAGS = {
    "streaming_denoiser": ["--state", "h_in=h_out", "--state", "cache_in=cache_out"],
    "storyteller": ["--dim", "batch=1", "--dim", "rows=1..63", "--dim", "past=0..63", "--dim", "past+rows=1..64",
                    *(word for layer in (0, 1) for part in ("key", "value")
                      for word in ("--state", f"past_{part}_{layer}=present_{part}_{layer}"))],
}

WARNINGS = ["-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]


def flags(*names):
    """The flags of runtime_stub/flags: what every build of an emitted library is given."""
    return [word for name in names for word in (ROOT / "runtime_stub" / "flags" / f"{name}.txt").read_text().split()]


LIBRARY_FLAGS = [*flags("cpp", "library"), "-fPIC"]


class Failure(Exception):
    """What does not hold."""


class Skip(Exception):
    """What cannot be tried here."""


def check(condition, message):
    if not condition:
        raise Failure(message)


def equal(actual, expected, what):
    check(actual == expected, f"{what}: {actual!r}, expected {expected!r}")


def contains(text, *parts):
    for part in parts:
        check(part in text, f"'{part}' is missing in:\n{text}")


class World:
    """The tool under test and a folder of this run's own."""

    def __init__(self, gcompile, folder):
        self.gcompile = str(gcompile)
        self.folder = pathlib.Path(folder)
        self._objects = {}

    def path(self, name):
        return self.folder / name

    def run(self, command, status=0, **options):
        """Runs a command; `status` None accepts any. Returns what `subprocess.run` does, output as text."""
        options.setdefault("timeout", 600)
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, errors="replace",
                              check=False, stdin=subprocess.DEVNULL, **options)
        if status is not None and done.returncode != status:
            shown = " ".join(str(word) for word in command)
            raise Failure(f"{shown}\nexit code {done.returncode}, expected {status}\n{tail(done.stdout)}"
                          f"{tail(done.stderr)}")
        return done

    def compile(self, model, output, *flags, status=0, **options):
        """`gcompile MODEL -o OUTPUT FLAGS`; returns its standard output and error together."""
        done = self.run([self.gcompile, model, "-o", output, *flags], status=status, **options)
        return done.stdout + done.stderr

    def example(self, name, output, *flags):
        """The project of examples/NAME, as its README makes it."""
        place = self.path(output)
        self.compile(EXAMPLES / name / "model.onnx", place, *EXAMPLE_FLAGS.get(name, []), *flags)
        return place

    def library_objects(self, project, name, compiler="g++", flags=("-O1",), label=""):
        """Compiles the library part of a project without its build files; returns the object files."""
        project = pathlib.Path(project)
        key = (str(project), compiler, tuple(flags), label)
        if key in self._objects:
            return self._objects[key]
        place = self.path(f"objects_{len(self._objects)}")
        place.mkdir()
        objects = []
        for source in library_sources(project, name):
            target = place / (source.name + ".o")
            if source.suffix == ".cpp":
                self.run([compiler, "-std=c++17", *LIBRARY_FLAGS, *flags, f"-I{project}", f"-I{project}/include", "-c",
                          source, "-o", target])
            else:
                self.run([c_compiler(compiler), "-fPIC", f"-I{project}/data", "-c", source, "-o", target])
            objects.append(target)
        self._objects[key] = objects
        return objects


    def runner(self, project, name, flags=("-O0",)):
        """Builds apps/run.cpp with the library and returns the program."""
        objects = self.library_objects(project, name, "g++", flags)
        program = self.path(f"{pathlib.Path(project).name}_run")
        self.run(["g++", "-std=c++17", "-O0", "-pthread", f"-I{project}", f"-I{project}/include", f"-I{project}/apps",
                  pathlib.Path(project) / "apps" / "run.cpp", pathlib.Path(project) / "src" / f"{name}_threads.cpp",
                  *objects, "-o", program])
        return program


NPY_TYPES = {"float32": ("<f4", "f"), "float64": ("<f8", "d"), "float16": ("<f2", "e"), "int64": ("<i8", "q"),
             "int32": ("<i4", "i"), "int16": ("<i2", "h"), "uint16": ("<u2", "H"), "int8": ("|i1", "b"),
             "uint8": ("|u1", "B"), "bool": ("|b1", "?")}


def write_npy(path, element, shape, values):
    """The .npy format, version 1.0."""
    code, letter = NPY_TYPES[element]
    dims = "".join(f"{dim}, " for dim in shape)
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': ({dims}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    data = struct.pack(f"<{len(values)}{letter}", *values)
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
    return path


def read_npy(path):
    """The values of a .npy file in row-major order."""
    data = path.read_bytes()
    start = 10 + struct.unpack("<H", data[8:10])[0]
    header = data[10:start].decode()
    for code, letter in NPY_TYPES.values():
        if f"'{code}'" in header:
            return list(struct.unpack(f"<{(len(data) - start) // struct.calcsize(letter)}{letter}", data[start:]))
    raise Failure(f"{path.name}: {header}")


def library_sources(project, name):
    """Everything in src/ but the host code."""
    sources = sorted(path for path in (project / "src").iterdir() if path.suffix in (".cpp", ".c", ".S"))
    return [path for path in sources if path.name != f"{name}_threads.cpp"]


def c_compiler(cxx):
    return cxx.replace("clang++", "clang").replace("g++", "gcc")


def compilers():
    """g++ and, which the tests' packages install, clang++-14."""
    found = ["g++"]
    for name in ("clang++-14", "clang++"):
        if shutil.which(name):
            return found + [name]
    raise Failure("no clang++: scripts/install_packages.sh test installs it")


def march_flags():
    """Instruction sets that this machine can run, from the least to the most."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return ["", "-march=native"]
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        words = set(file.read().split())
    middle = ["-march=x86-64-v3"] if {"avx2", "fma", "bmi2", "f16c"} <= words else []
    return ["-march=x86-64", *middle, "-march=native"]


def library_levels(architecture=platform.machine(), in_tiles=False):
    """What a library for no processor in particular is compiled for, the best first: {name: flags}. `in_tiles`: it
    multiplies bytes in the tile unit where there is one."""
    lines = (ROOT / "runtime_stub" / "flags" / "levels.txt").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" ", 2) for line in lines]
    return {name: flags for of, name, flags in rows
            if of == architecture and (in_tiles or "-mamx-tile" not in flags.split())} or {"one": ""}


def manifest(project, name):
    return json.loads((pathlib.Path(project) / "meta" / f"{name}.json").read_text(encoding="utf-8"))


def layers_of(dump):
    """The calls of the program that the templates saw, by --dump-dir: what the report says of each call, in order."""
    report = json.loads((pathlib.Path(dump) / "program.json").read_text(encoding="utf-8"))["report"]
    return [{**of_graph, **of_time} for of_graph, of_time in zip(report["graph"]["rows"], report["time"]["rows"])]


def words_of(path):
    """Its text on one line, whose words are where they are wherever lines break."""
    return " ".join(pathlib.Path(path).read_text(encoding="utf-8").split())


def tree(folder):
    """Every file below a folder by relative path: mode bits and bytes."""
    folder = pathlib.Path(folder)
    found = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir():
            found[name + "/"] = (path.stat().st_mode & 0o777, b"")
        else:
            found[name] = (path.stat().st_mode & 0o777, path.read_bytes())
    return found


def turn():
    """A number that is another one with each commit, for what has its turn; GCOMPILE_ROTATION, if that is set."""
    if "GCOMPILE_ROTATION" in os.environ:
        return int(os.environ["GCOMPILE_ROTATION"])
    done = subprocess.run(["git", "-C", str(ROOT), "rev-list", "--count", "HEAD"], capture_output=True, text=True, check=False)
    return int(done.stdout) if done.returncode == 0 else 0


def tail(text, lines=40):
    kept = text.splitlines()[-lines:]
    return "\n".join(line[:400] for line in kept) + ("\n" if kept else "")


def shared_model(name):
    """A published model that is not part of this project."""
    path = SHARED_MODELS / name / "model.onnx"
    if not path.exists():
        candidates = sorted((SHARED_MODELS / name).glob("*.onnx")) if (SHARED_MODELS / name).is_dir() else []
        if not candidates:
            raise Skip(f"no {name} in ../shared/models")
        path = candidates[0]
    return path


def main_suite():
    """Names of the models that the index of ../shared/models marks."""
    index = SHARED_MODELS / "INDEX.md"
    if not index.exists():
        raise Skip("no ../shared/models")
    names = []
    for line in index.read_text(encoding="utf-8").splitlines():
        cell = line.split("|")[1].strip() if line.startswith("| ") else ""
        if cell.endswith("*"):
            names.append(cell[:-1])
    check(len(names) == 20, f"the main suite has {len(names)} models, expected 20")
    return names


def main(namespace):
    parser = argparse.ArgumentParser()
    parser.add_argument("--gcompile", required=True, type=pathlib.Path)
    parser.add_argument("--keep", help="work in this folder and leave it there")
    parser.add_argument("cases", nargs="*")
    arguments = parser.parse_args()
    known = {name[len("case_"):]: value for name, value in namespace.items() if name.startswith("case_")}
    unknown = sorted(set(arguments.cases) - set(known))
    if unknown:
        parser.error(f"no such case: {unknown}; there are {sorted(known)}")
    failed, skipped = [], []
    with contextlib.ExitStack() as stack:
        folder = arguments.keep or stack.enter_context(tempfile.TemporaryDirectory(prefix="gcompile_test_"))
        for name in arguments.cases or known:
            place = pathlib.Path(folder) / name
            place.mkdir(parents=True)
            try:
                known[name](World(arguments.gcompile.resolve(), place))
                print(f"ok       {name}", flush=True)
            except Skip as skip:
                skipped.append(name)
                print(f"skipped  {name}: {skip}", flush=True)
            except (Failure, subprocess.TimeoutExpired) as failure:
                failed.append(name)
                print(f"FAILED   {name}: {failure}", flush=True)
            except Exception:  # a bug of the test counts as a failure and must not hide the other cases
                failed.append(name)
                print(f"FAILED   {name}:\n{traceback.format_exc()}", flush=True)
            if not arguments.keep:
                shutil.rmtree(place, ignore_errors=True)
    if failed:
        return 1
    return SKIPPED if skipped and len(skipped) == len(arguments.cases or known) else 0


def run_main(namespace):
    os.umask(0o022)
    sys.exit(main(namespace))
