"""What travels to a machine that has a GPU and nothing else, and what comes back from it: one file each way.

The pack holds gcompile with its libraries, the programs of tests/cuda_on_gpu, the tests of the tile unit, and as much of
the main suite as fits beside the tree. It must run where the C library is that of Ubuntu 24.04.
"""

import json
import pathlib
import re
import shutil
import subprocess
import tarfile

from gpu_steps import Failure

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACK = "gpu_check_pack.tar.xz"
PROGRAMS = ("cuda_kernels_on_gpu", "cuda_kernel_bench")
TILES = "kernels_tiles_test"
# The most bytes of the tree, and of the pack beside it: what is taken along is 64 MiB at most.
MOST_BYTES = 60 << 20
# Symbols of the C and C++ libraries of Ubuntu 24.04.
MOST_SYMBOLS = {"GLIBC": (2, 39), "GLIBCXX": (3, 4, 33), "CXXABI": (1, 3, 15)}
# Libraries that any such machine has, or that lie in the pack; cuBLASLt comes with PyTorch (gpu_kernels.environment).
BASE = re.compile(r"(lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|gomp|cublasLt|cublas)\.so|ld-linux|linux-vdso)")


def too_new(program):
    """Symbol versions that a program or library asks for, beyond those of MOST_SYMBOLS."""
    data = pathlib.Path(program).read_bytes()
    found = set()
    for name, numbers in re.findall(rb"\b(GLIBC|GLIBCXX|CXXABI)_(\d+(?:\.\d+)+)\b", data):
        version = tuple(map(int, numbers.split(b".")))
        if version > MOST_SYMBOLS[name.decode()]:
            found.add(f"{name.decode()}_{numbers.decode()}")
    return sorted(found)


def needed(program):
    """Names of the libraries that a program is linked with, by its own word."""
    said = subprocess.run(["objdump", "-p", str(program)], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^\s*NEEDED\s+(\S+)", said, re.M)


def missing(folder):
    """Complaints about the programs and libraries of a folder, on a bare machine."""
    files = [file for file in sorted(folder.rglob("*")) if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]
    packed = {file.name for file in files}
    for file in files:
        for symbol in too_new(file):
            yield f"{file.name} asks for {symbol}, which Ubuntu 24.04 does not have"
        for library in needed(file):
            if library not in packed and not BASE.match(library):
                yield f"{file.name} needs {library}, which is not in the pack"


def tree_bytes():
    """The files that travel with the tree: what git knows, and what it does not ignore."""
    said = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                          capture_output=True, check=True).stdout
    files = [ROOT / name for name in said.decode().split("\0") if name]
    return sum(file.stat().st_size for file in files if file.is_file())


def add_programs(check, folder):
    (folder / "lib").mkdir(parents=True, exist_ok=True)
    programs = [check.gcompile, *(check.programs / name for name in PROGRAMS)]
    if check.tiles and check.tiles.exists():
        programs.append(check.tiles)
    for program in programs:
        target = folder / ("gcompile" if program == check.gcompile else program.name)
        shutil.copy2(program, target)
        subprocess.run(["strip", str(target)], check=False, capture_output=True)
    for program in programs:
        for line in check.run(["ldd", program], 30).splitlines():
            found = re.search(r"^\s*(\S+) => (/\S+)", line)
            if found and not BASE.match(found.group(1)):
                shutil.copy2(found.group(2), folder / "lib" / found.group(1))


def add_models(folder, suite, names, room):
    """Models with their first data set, the small ones first, while they fit; returns those that were left out."""
    left_out = []

    def files_of(name):
        place = suite / name
        return [place / "model.onnx", *sorted((place / "test_data_set_0").glob("*"))]

    sized = sorted((sum(file.stat().st_size for file in files_of(name)), name) for name in names)
    for size, name in sized:
        if size > room:
            left_out.append(name)
            continue
        room -= size
        for file in files_of(name):
            target = folder / "models" / file.relative_to(suite)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, target)
    if (folder / "models").is_dir():
        taken = [name for _, name in sized if name not in left_out]
        rows = "".join(f"| {name}* | |\n" for name in sorted(taken))
        (folder / "models" / "INDEX.md").write_text(f"| model | |\n|---|---|\n{rows}", encoding="utf-8")
    return left_out


def compressed(folder, file, preset=6):
    file.unlink(missing_ok=True)
    with tarfile.open(file, "w:xz", preset=preset) as archive:
        for entry in sorted(folder.rglob("*")):
            archive.add(entry, str(entry.relative_to(folder)), recursive=False)
    return file.stat().st_size


def pack(check, suite, names):
    """Writes the pack into the folder of --pack; says how large it is beside the tree, and what had no room."""
    folder = check.work / "pack"
    shutil.rmtree(folder, ignore_errors=True)
    add_programs(check, folder)
    if complaints := list(missing(folder)):
        raise Failure("\n".join(complaints))
    (folder / "pack.json").write_text(json.dumps({"architecture": check.architecture}), encoding="utf-8")
    target = check.arguments.pack
    target.mkdir(parents=True, exist_ok=True)
    tree = tree_bytes()
    programs = compressed(folder, target / PACK, 1)  # a little more than it will be; weights hardly shrink
    left_out = add_models(folder, suite, names, MOST_BYTES - tree - programs) if names else []
    size = compressed(folder, target / PACK)
    if tree + size > MOST_BYTES:
        raise Failure(f"tree and pack are {(tree + size) / 2**20:.1f} MiB, of {MOST_BYTES >> 20} that travel")
    said = f"{target / PACK}: {size / 2**20:.1f} MiB, beside a tree of {tree / 2**20:.1f}; {len(names) - len(left_out)} models"
    return said + (f", without {', '.join(left_out)}" if left_out else "")


def unpack(place, folder):
    """The folder of a pack: `place` itself, or where the archive there was opened."""
    file = place / PACK if place.is_dir() else place
    if not file.exists():
        return place  # opened already
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with tarfile.open(file) as archive:
            archive.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else archive.extractall(folder)
    except tarfile.ReadError:  # a Python without xz
        subprocess.run(["tar", "-xf", str(file), "-C", str(folder)], check=True)
    return folder


def bring_back(results, file):
    """All that a run has found so far, as one file: what is left where the run is cut short."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(file.name + ".part")
    with tarfile.open(part, "w:gz") as archive:
        archive.add(results, "gpu_check")
    part.replace(file)
