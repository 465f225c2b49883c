#!/usr/bin/env python3
"""Wrong command lines and wrong files: what gcompile answers, word for word.

    wrong_inputs.py --gcompile GCOMPILE

wrong_inputs.txt is a transcript: a command line behind "$ ", what it prints to standard error, and "exit CODE". All run
in one folder, that holds files() and nothing else before and after. With GCOMPILE_BLESS=1 the answers are written anew.
"""

import gzip
import io
import json
import os
import pickle
import re
import shlex
import struct
import subprocess
import tarfile
import zipfile

from onnx_bytes import FLOAT, INT64, Graph, block, blocks, number
from support import EXAMPLES, HERE, check, equal, run_main

STAGE = re.compile(r"\[\d/\d\] |  [a-z]+: [0-9.]+ s$")
TRANSCRIPT = HERE / "wrong_inputs.txt"

OPEN = """<ir_version: 8, opset_import: ["" : 17]>
open (float[batch, 3, width] x, float[batch, 4] h) => (float[batch, 3, width] y, float[batch, 4] h_next) {
  y = Relu (x)
  h_next = Tanh (h)
}
"""
FOREIGN = """<ir_version: 8, opset_import: ["" : 17, "acme" : 1]>
foreign (float[2, 3] x) => (float[2, 3] y) {
""" + "".join(f"  a{i} = acme.Frobnicate ({f'a{i - 1}' if i else 'x'})\n" for i in range(12)) + """  b = Sofmax (a11)
  y = Relu (b)
}
"""
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 132\n"


def archive(**members):
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_STORED) as out:
        for name, content in members.items():
            out.writestr(zipfile.ZipInfo(name), content)
    return held.getvalue()


def tarball():
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as out:
        out.addfile(tarfile.TarInfo("model.onnx"))
    return held.getvalue()


def apart():
    """A model whose weights lie beside it."""
    graph = Graph()
    graph.node("Mul", ["x", "w"], ["y"], name="scale")
    entries = [block(1, key) + block(2, value) for key, value in (("location", "apart.weights"), ("length", "4096"))]
    graph.constants.append(number(1, 1024) + number(2, FLOAT) + block(8, "w") + blocks(13, entries) + number(14, 1))
    graph.input("x", FLOAT, [1024])
    graph.output("y", FLOAT, [1024])
    return graph.model()


def frames():
    """A sequence and an optional among the inputs."""
    graph = Graph()
    graph.node("SequenceAt", ["frames", "position"], ["y"])
    graph.constant("position", INT64, [], [2])
    tensor = block(1, number(1, FLOAT) + block(2, block(1, block(2, "size"))))
    graph.inputs.append(block(1, "frames") + block(2, block(4, block(1, tensor))))
    graph.inputs.append(block(1, "mask") + block(2, block(9, block(1, tensor))))
    graph.output("y", FLOAT, ["size"])
    return graph.model()


def files():
    """What lies in the folder, by name."""
    model = (EXAMPLES / "shapes_classifier" / "model.onnx").read_bytes()
    header = json.dumps({"w": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}).encode()
    node = block(1, "x") + block(2, "Placeholder")
    return {
        "model.onnx": model,
        "open.onnxtxt": OPEN.encode(),
        "foreign.onnxtxt": FOREIGN.encode(),
        "empty.onnx": b"",
        "half.onnx": model[:len(model) // 2],
        "binary.onnxtxt": model,
        "typo.onnxtxt": OPEN.replace("Relu (x)", "Relu (x").encode(),
        "apart.onnx": apart(),
        "apart.weights": LFS,
        "frames.onnx": frames(),
        "notes.onnx": b"Dear colleague,\nthe model is in the other folder.\n",
        "text.onnx": OPEN.encode(),
        "page.onnx": b"\n<!DOCTYPE html>\n<html><head><title>model.onnx</title></head></html>\n",
        "pointer.onnx": LFS,
        "model.pt": archive(**{"archive/data.pkl": b"", "archive/data/0": b""}),
        "script.pt": archive(**{"archive/data.pkl": b"", "archive/constants.pkl": b""}),
        "old.pth": pickle.dumps({"weight": 1}, protocol=2),
        "model.keras": archive(**{"config.json": b"{}", "model.weights.h5": b""}),
        "data.npz": archive(**{"x.npy": b""}),
        "models.zip": archive(**{"model.onnx": b""}),
        "model.h5": b"\x89HDF\r\n\x1a\n" + bytes(8),
        "model.tflite": struct.pack("<I", 28) + b"TFL3" + bytes(24),
        "model.ort": struct.pack("<I", 28) + b"ORTM" + bytes(24),
        "frozen.pb": block(1, node),
        "saved.pb": number(1, 1) + block(2, block(1, block(1, ""))),
        "input_0.pb": number(1, 2) + number(2, 1) + block(9, bytes(8)),
        "model.safetensors": struct.pack("<Q", len(header)) + header + bytes(4),
        "model.gguf": b"GGUF" + struct.pack("<I", 3) + bytes(16),
        "model.onnx.gz": gzip.compress(model, mtime=0),
        "model.tar": tarball(),
        "model.xml": b'<?xml version="1.0"?>\n<net name="model" version="11"></net>\n',
        "saved_model/saved_model.pb": number(1, 1),
        "bert/config.json": b"{}",
        "models/first.onnx": model,
        "models/second.onnx": model,
        "mine/thesis.txt": b"my only copy",
    }


def entries_of_transcript():
    """The entries of the transcript: (comment lines, command, answer, exit code)."""
    found, comment, command, answer = [], [], None, []
    for line in TRANSCRIPT.read_text(encoding="utf-8").splitlines():
        if command is None and line.startswith("$ "):
            command = line[2:]
        elif command is None:
            comment.append(line)
        elif line.startswith("exit "):
            found.append((comment, command, "".join(text + "\n" for text in answer), int(line[5:])))
            comment, command, answer = [], None, []
        else:
            answer.append(line)
    check(command is None and not any(comment), "the transcript ends within a block")
    return found


def answer_of(world, command):
    words, _, source = command.partition(" < ")
    words = shlex.split(words)
    check(words[0] == "gcompile", f"{command}: not a command line of gcompile")
    with open(world.path(source) if source else os.devnull, "rb") as standard_input:
        done = subprocess.run([world.gcompile, *words[1:]], cwd=world.folder, stdin=standard_input, capture_output=True,
                              text=True, timeout=60, check=False)
    return done.stderr, done.returncode, done.stdout


def held(folder):
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def case_answers(world):
    for name, content in files().items():
        place = world.path(name)
        place.parent.mkdir(exist_ok=True)
        place.write_bytes(content)
    known, out, is_blessing = entries_of_transcript(), [], os.environ.get("GCOMPILE_BLESS") == "1"
    check(len(known) >= 60, f"{len(known)} command lines, expected 60 at least")
    equal(len({command for _, command, _, _ in known}), len(known), "different command lines")
    wrong = []
    for comment, command, answer, status in known:
        said, code, printed = answer_of(world, command)
        # Stages that went well before are no part of the answer, nor are their seconds.
        said = "".join(line + "\n" for line in said.splitlines() if not STAGE.match(line))
        out += comment + ["$ " + command, said + f"exit {code}"]
        is_summary = printed.startswith("summary: ") and printed.count("\n") == 1 and f" exit_code={code} " in printed
        if "= help: " not in said:
            wrong.append(f"$ {command}\n{said}  does not say what to do next")
        elif code not in (1, 2, 4) or (printed and not is_summary):
            wrong.append(f"$ {command}\n{said}{printed}exit {code}")
        elif not is_blessing and (said, code) != (answer, status):
            wrong.append(f"$ {command}\n{said}exit {code}\n  expected\n{answer}exit {status}")
    check(not wrong, f"{len(wrong)} answers are not right:\n\n" + "\n\n".join(wrong))
    equal(held(world.folder), sorted(files()), "what lies in the folder afterwards")
    if is_blessing:
        TRANSCRIPT.write_text("\n".join(out) + "\n", encoding="utf-8")


if __name__ == "__main__":
    run_main(globals())
