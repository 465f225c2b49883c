"""Hostile data for `verify`, and hostile output folders, each made from random numbers: what hostile.py tries."""

import collections
import os
import struct
import subprocess
import zlib

from hostile_models import compiled, damaged, ended, kind, small_graph
from onnx_bytes import FLOAT, block, number, tensor

# The variable of the environment that says where gcompile is.
TOOL = "HOSTILE_TOOL"

# Data for `verify`, of a model that wants float32[4, 8].


def verified(folder):
    graph = small_graph()
    graph.node("Exp", ["x"], ["y"])
    (folder / "model.onnx").write_bytes(ended(graph, "y", [4, 8]))
    (folder / "data").mkdir()
    return ["verify", folder / "model.onnx", "--data", folder / "data"]


def npy(header, data=b"", version=1):
    header = header.encode()
    size = struct.pack("<H" if version == 1 else "<I", len(header))
    return b"\x93NUMPY" + bytes((version, 0)) + size + header + data


def zipped(entries):
    """A .zip whose directory may lie. An entry: name, packed bytes, method, size that is said, checksum."""
    archive, directory = b"", b""
    for name, packed, method, size, checksum in entries:
        name = name.encode()
        fields = struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 33, checksum, len(packed), size, len(name), 0)
        directory += b"PK\1\2" + struct.pack("<H", 20) + fields + struct.pack("<HHHII", 0, 0, 0, 0, len(archive)) + name
        archive += b"PK\3\4" + fields + name + packed
    end = struct.pack("<HHHHIIH", 0, 0, len(entries) & 0xFFFF, len(entries) & 0xFFFF, len(directory), len(archive), 0)
    return archive + directory + b"PK\5\6" + end


Bomb = collections.namedtuple("Bomb", "packed size checksum")
BOMBS = {}


def bomb(megabytes):
    """An .npy of zeros, deflated to a thousandth."""
    if megabytes not in BOMBS:
        size = megabytes << 20
        head = npy(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size},)}}")
        packer = zlib.compressobj(9, zlib.DEFLATED, -15)
        packed, checksum, piece = packer.compress(head), zlib.crc32(head), bytes(1 << 20)
        for _ in range(megabytes):
            packed += packer.compress(piece)
            checksum = zlib.crc32(piece, checksum)
        BOMBS[megabytes] = Bomb(packed + packer.flush(), len(head) + size, checksum)
    return BOMBS[megabytes]


@kind
def bombs_of_data(r, folder):
    command = verified(folder)
    each, count = bomb(r.choice((16, 64))), r.choice((1, 5, 40, 200))
    entries = [(f"a{i}.npy", each.packed, 8, each.size, each.checksum) for i in range(count)]
    for name in ("inputs.npz", "outputs.npz"):
        (folder / "data" / name).write_bytes(zipped(entries))
    return command


@kind
def lying_archives(r, folder):
    command = verified(folder)
    whole = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4, 8)}", bytes(128))
    entries = []
    for i in range(r.choice((0, 1, 3, 2000))):
        entries.append((r.choice((f"a{i}.npy", "a.npy", "../../x.npy", "/etc/x.npy", "x.txt", "")), whole,
                        r.choice((0, 0, 8, 99)),
                        r.choice((len(whole), 0, 2**32 - 1, 2**31)), r.choice((zlib.crc32(whole), 0))))
    data = zipped(entries)
    if r.random() < 0.5:
        data = damaged(r, data)
    for name in ("inputs.npz", "outputs.npz")[:r.randint(1, 2)]:
        (folder / "data" / name).write_bytes(data)
    return command


@kind
def lying_arrays(r, folder):
    command = verified(folder)
    shape = r.choice(("(99999999999999999,)", "(4, 8)", "(0, 99999999999999999)", "(-1,)", "(" * 5000,
                      "(" + "1, " * 5000 + ")", "(4294967296, 4294967296)"))
    descr, order = r.choice(("<f4", "<f8", "|O", ">f4", "<U9", "|V999999999")), r.choice(("True", "False", "x"))
    header = f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}}}"
    array = npy(header, bytes(r.choice((0, 128, 5))), r.choice((1, 2, 3, 9)))
    data = zipped([("x.npy", array, 0, len(array), zlib.crc32(array))])
    for name in ("inputs.npz", "outputs.npz"):
        (folder / "data" / name).write_bytes(data)
    return command


@kind
def tensors_of_data(r, folder):
    """input_0.pb: what ONNX calls a tensor, or something else."""
    command = verified(folder)
    path = folder / "data" / "input_0.pb"
    good = tensor("x", FLOAT, [4, 8], [1.0] * 32)
    what = r.randrange(9)
    if what == 0:
        os.mkfifo(path)
    elif what == 1:
        path.symlink_to("/dev/zero")
    elif what == 2:
        path.mkdir()
    elif what == 3:
        path.write_bytes(tensor("x", FLOAT, r.choice(([2**31 - 1], [2**62, 4], [-1], [1] * 500, [4, 9])), [1.0] * 32))
    elif what == 4:
        place = block(13, block(1, "location") + block(2, "/etc/passwd"))
        path.write_bytes(number(1, 4) + number(1, 8) + number(2, 1) + place + number(14, 1))
    elif what == 5:
        path.write_bytes(good[:r.randrange(len(good))])
    else:
        path.write_bytes(damaged(r, good) + b"\0")
    if r.random() < 0.3:
        os.mkfifo(folder / "data" / "inputs.npz")
    (folder / "data" / f"input_{r.choice((3, 2**31, 99999999999999999999))}.pb").write_bytes(good)
    return command


# Output folders.


@kind
def output_folders(r, folder):
    """A project of before, whose list of files lies, or in which something else lies in the place of a file."""
    graph = small_graph()
    graph.node("Exp", ["x"], ["y"])
    command = compiled(folder, ended(graph, "y", [4, 8]))
    out = folder / "out"
    what = r.randrange(8)
    if what == 0:
        out.symlink_to(out)
    elif what == 1:
        os.mkfifo(out)
    elif what == 2:
        out.write_bytes(b"a file")
    elif what == 3:
        out.symlink_to(folder / "nowhere" / "x")
    else:
        subprocess.run([os.environ[TOOL], *map(str, command), "--quiet"], check=True)
        lists = sorted((out / "meta").glob("*.json"))
        lie = r.choice(("../kept", "/etc/passwd", "meta/../../kept", ".", "", "x" * 100_000, "src"))
        if what == 4:
            for path in lists:
                path.write_text(path.read_text(encoding="utf-8").replace('"README.md"', f'"{lie}"'), encoding="utf-8")
        elif what == 5:
            for path in lists:
                path.write_bytes(damaged(r, path.read_bytes()))
        elif what == 6:
            for path in lists:
                path.write_bytes(r.choice((b"[" * 1_000_000, b'{"files":' * 100_000, b"\0" * 100, b"")))
        else:
            victim = r.choice([out / "README.md", out / "CMakeLists.txt", *sorted((out / "src").glob("*.cpp"))])
            victim.unlink()
            r.choice((os.mkfifo, os.mkdir, lambda path: os.symlink(folder / "kept", path)))(victim)
        if r.random() < 0.3:
            command.append("--force")
    return command
