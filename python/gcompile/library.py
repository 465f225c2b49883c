"""A project as a shared library in this process: built by its Makefile and one file of this package, called by ctypes."""

from __future__ import annotations

import ctypes
import hashlib
import os
import pathlib
import shlex
import subprocess
from typing import Any, Callable, Mapping

from . import locks
from .tool import GcompileError

BRIDGE = pathlib.Path(__file__).resolve().parent / "bridge.cpp"
MAIN = "extern \"C\" int gcompile_main(int, char**);\nint main(int argc, char** argv) { return gcompile_main(argc, argv); }\n"
# What make and compilers read of the surroundings; other values make another library.
READ_OF_ENVIRONMENT = ("CXX", "CC", "AR", "CXXFLAGS", "CPPFLAGS", "CFLAGS", "ASFLAGS", "LDFLAGS")
Tell = Callable[[str], None]


class BuildError(GcompileError):
    """The C++ compiler failed; the text has what it said. `exit_code` is 4."""

    def __init__(self, text: str):
        super().__init__(4, [], text)


class RunError(GcompileError):
    """A project that refuses to run: `status` is the number of NAME_status, the text what NAME_status_text says."""

    def __init__(self, status: int, text: str):
        super().__init__(1, [], text)
        self.status = status


class Memory(ctypes.Structure):
    """NAME_memory."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("arena", "weights", "state", "instance", "stream", "threads")]


class Library:
    """The functions of bridge.cpp for one project."""

    def __init__(self, path: pathlib.Path):
        self.path = path
        # With and without Python's lock.
        self.held, self.free = ctypes.PyDLL(str(path)), ctypes.CDLL(str(path))
        self.call = self.held.gcompile_call
        pointer, number = ctypes.c_void_p, ctypes.c_int
        self.call.argtypes = [pointer, pointer, ctypes.py_object]
        for name, result, arguments in (
                ("blocks", None, [pointer]), ("weights_path", ctypes.c_char_p, []), ("init", number, [pointer]),
                ("reset", number, [pointer]), ("status_text", ctypes.c_char_p, [number]),
                ("threads_create", pointer, [number]), ("threads_destroy", None, [pointer]),
                ("time", number, [pointer, pointer, pointer, number, number, pointer]),
                ("fill", None, [number, ctypes.c_uint64, pointer, ctypes.c_int64]),
                ("state", number, [number, pointer, pointer, pointer]), ("size_count", number, []),
                ("sizes_text", ctypes.c_char_p, []), ("largest_shape", number, [number, number, pointer]),
                ("find_sizes", number, [pointer, pointer, pointer, pointer]),
                ("output_shape", number, [pointer, number, pointer]), ("held_shape", number, [pointer, number, pointer]),
                ("save_state", number, [pointer, number, pointer]),
                ("load_state", number, [pointer, pointer, number, pointer])):
            function = getattr(self.free, "gcompile_" + name, None)
            if function is not None:
                function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    # Set by __init__; the last five are there where a project has sizes.
    blocks: Any
    weights_path: Any
    init: Any
    reset: Any
    status_text: Any
    threads_create: Any
    threads_destroy: Any
    time: Any
    fill: Any
    state: Any
    size_count: Any
    sizes_text: Any
    largest_shape: Any
    find_sizes: Any
    output_shape: Any
    held_shape: Any
    save_state: Any
    load_state: Any

    def largest(self, which: str, count: int) -> list[tuple[int, ...]]:
        """Shapes of all "inputs" or "outputs" in a run of the largest sizes."""
        found = []
        for index in range(count):
            shape = (ctypes.c_int64 * 64)()
            rank = self.largest_shape(which == "outputs", index, shape)
            found.append(tuple(shape[:rank]))
        return found

    def require(self, status: int, function: str) -> None:
        """Raises RunError for a status that is not 0."""
        if status != 0:
            raise RunError(status, f"{function}: {self.status_text(status).decode()}")


def _said(command: list[str], what: str, **options: Any) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False,
                              stdin=subprocess.DEVNULL, **options)
    except OSError as error:
        raise BuildError(f"{what}: cannot start '{command[0]}': {error.strerror}") from None
    if done.returncode != 0:
        raise BuildError(f"{what}:\n{done.stderr.strip()}")
    return str(done.stdout)


def compiler_of(variables: Mapping[str, str] | None) -> list[str]:
    """The C++ compiler as words: what the Makefile takes."""
    return shlex.split((variables or {}).get("CXX") or os.environ.get("CXX") or "g++")


def identity_of_compiler(variables: Mapping[str, str] | None) -> str:
    """What tells one build from another: the compiler with its version, what make reads, the processor's abilities."""
    version = _said([*compiler_of(variables), "--version"], "the C++ compiler does not tell its version")
    read = {name: os.environ[name] for name in READ_OF_ENVIRONMENT if name in os.environ}
    return repr([version, sorted(read.items()), sorted((variables or {}).items()), _abilities(),
                 hashlib.sha256(BRIDGE.read_bytes()).hexdigest()])


def _abilities() -> list[str]:
    """What -march=native depends on, as far as the system tells."""
    found = list(os.uname()[4:])
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                if line.startswith(("flags", "Features", "model name", "cpu family", "model\t")):
                    found.append(line.strip())
                elif not line.strip():
                    break
    except OSError:
        pass
    return found


def make(project: pathlib.Path, targets: list[str], variables: Mapping[str, str] | None, jobs: int | None, tell: Tell) -> None:
    """`make TARGETS` in a project, telling how many compilers it has started. Raises BuildError."""
    given = [f"{key}={value}" for key, value in (variables or {}).items()]
    command = ["make", "-C", str(project), f"-j{jobs or os.cpu_count() or 1}", *targets, *given]
    try:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True,
                              errors="replace") as process:
            assert process.stdout is not None and process.stderr is not None
            said: list[str] = []
            reader = locks.in_background(lambda: said.extend(process.stderr or ()))
            started = 0
            for line in process.stdout:
                if " -c " in line:
                    started += 1
                    tell(f"build: {started} compiled")
            reader.join()
    except OSError as error:
        raise BuildError(f"cannot start make: {error.strerror}") from None
    if process.returncode != 0:
        raise BuildError(f"make {' '.join(targets)} failed in {project}:\n{''.join(said).strip()}")


def build(project: pathlib.Path, name: str, variables: Mapping[str, str] | None, jobs: int | None,
          tell: Tell = lambda text: None) -> pathlib.Path:
    """Builds the library of a C++ project in its folder build, unless it is there and current, and NAME_python_run beside it;
    returns its path. Raises BuildError."""
    place = project / "build"
    place.mkdir(exist_ok=True)
    with locks.exclusive(place / "python.lock"):
        tell("build")
        archives = [place / f"lib{name}.a", place / f"lib{name}_threads.a"]
        make(project, [f"build/{archive.name}" for archive in archives], variables, jobs, tell)
        # Named by what it is made of: a process that has loaded one would be given the same again under the same name.
        made_of = [identity_of_compiler(variables), [archive.stat().st_mtime_ns for archive in archives]]
        library = place / f"{name}_python_{hashlib.sha256(repr(made_of).encode()).hexdigest()[:12]}.so"
        if not library.exists():
            tell("build: link")
            _link(project, name, variables, archives, library)
        for older in find(place, name):
            if older != library:
                older.unlink()
    return library


def find(build: pathlib.Path, name: str) -> list[pathlib.Path]:
    """The libraries that lie there."""
    return sorted(build.glob(f"{name}_python_{'[0-9a-f]' * 12}.so"))


def _link(project: pathlib.Path, name: str, variables: Mapping[str, str] | None, archives: list[pathlib.Path],
          library: pathlib.Path) -> None:
    """The library, in place at once, after the runner that needs it."""
    compiler = compiler_of(variables)
    flags = shlex.split((variables or {}).get("CXXFLAGS", os.environ.get("CXXFLAGS", "")))
    part = library.with_name(f"{name}_python.part.so")
    _said([*compiler, "-O1", *flags, "-std=c++17", "-fPIC", "-shared", "-fvisibility=hidden", "-pthread", f"-DGCOMPILE_MODEL={name}",
           f"-DGCOMPILE_UPPER={name.upper()}", f"-I{project}", f"-I{project}/include", f"-I{project}/apps", str(BRIDGE),
           *map(str, archives), f"-Wl,-soname,{library.name}", "-o", str(part)], f"the library of {project} does not build")
    main = library.with_name("python_run.cpp")
    main.write_text(MAIN)
    _said([*compiler, str(main), str(part), "-Wl,-rpath,$ORIGIN", "-o", str(library.with_name(f"{name}_python_run"))],
          f"the runner of {project} does not build")
    os.replace(part, library)
