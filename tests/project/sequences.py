#!/usr/bin/env python3
"""Sequences and optionals: the inputs and outputs that a project has of them, their test data, and what is saved.

    sequences.py --gcompile GCOMPILE [CASE...]
"""

import random

from onnx_bytes import FLOAT, INT64, Graph, block, blocks, number, tensor
from support import contains, equal, manifest, read_npy, run_main, write_npy

SHOWN = ["--elements", "frames=3", "--elements", "mask=none", "--shape", "frames:1x3x4x4"]  # of docs/sizes.md
FRAME = [1, 3, 4, 4]


def port(name, dims, kind):
    """A value of a sequence (field 4 of a type) or an optional (field 9)."""
    shape = blocks(1, [number(1, dim) if isinstance(dim, int) else block(2, dim) for dim in dims])
    return block(1, name) + block(2, block(kind, block(1, block(1, number(1, FLOAT) + block(2, shape)))))


def branch(*nodes):
    graph = Graph("branch")
    for operator, operands, result in nodes:
        graph.node(operator, operands, [result])
    graph.output(nodes[-1][2], FLOAT, ["?"] * 4)
    return graph


def video(world):
    """Frames are made positive one by one, the run chooses one, and it is masked where there is a mask."""
    body = Graph("body")
    body.input("frame", FLOAT, ["?"] * 4)
    body.node("Relu", ["frame"], ["positive"])
    body.output("positive", FLOAT, ["?"] * 4)
    graph = Graph("video")
    graph.inputs += [port("frames", ["batch", 3, "height", "width"], 4), port("mask", [4, 4], 9)]
    graph.input("which", INT64, [])
    graph.node("SequenceMap", ["frames"], ["positives"], body=body)
    graph.node("SequenceAt", ["positives", "which"], ["chosen"])
    graph.node("OptionalHasElement", ["mask"], ["is_masked"])
    graph.node("If", ["is_masked"], ["y"], else_branch=branch(("Neg", ["chosen"], "bare")),
               then_branch=branch(("OptionalGetElement", ["mask"], "value"), ("Mul", ["chosen", "value"], "masked")))
    graph.outputs.append(port("positives", ["batch", 3, "height", "width"], 4))
    graph.output("y", FLOAT, FRAME)
    world.path("video.onnx").write_bytes(graph.model(opsets=(("", 18),)))
    return world.path("video.onnx")


def some_frames(count):
    values = random.Random(1)
    return [[round(values.uniform(-1, 1), 2) for _ in range(48)] for _ in range(count)]


def case_interface(world):
    """Each element is an input or an output of its own; a position that a run gives is checked in the run."""
    world.compile(video(world), world.path("project"), *SHOWN, "-O1")
    told = manifest(world.path("project"), "video")
    equal([each["name"] for each in told["inputs"]], ["frames_0", "frames_1", "frames_2", "which"], "inputs")
    equal([each["name"] for each in told["outputs"]], ["positives_0", "positives_1", "positives_2", "y"], "outputs")
    runner = world.runner(world.path("project"), "video")
    frames = some_frames(3)
    files = [write_npy(world.path(f"{k}.npy"), "float32", FRAME, frame) for k, frame in enumerate(frames)]
    for which, status in ((0, 0), (-1, 0), (3, 1), (-4, 1)):
        position = write_npy(world.path("which.npy"), "int64", [], [which])
        done = world.run([runner, *files, position, "--output-dir", world.folder], status=status)
        if status:
            contains(done.stderr, "out of range")
            continue
        y = read_npy(world.path("3_y.npy"))
        equal([round(value, 2) for value in y], [-max(value, 0.0) for value in frames[which]], "y")


def case_data(world):
    """The numbers of elements are those of the data, a project for each."""
    model = video(world)
    for index, (count, mask) in enumerate(((2, None), (1, [0.5] * 16))):
        folder = world.path(f"test_data_set_{index}")
        folder.mkdir()
        frames = some_frames(count)
        positives = [[max(value, 0.0) for value in frame] for frame in frames]
        y = [-value if mask is None else value * 0.5 for value in positives[-1]]
        held = {"input_0": block(1, "frames") + number(2, 1) + blocks(3, [tensor("", FLOAT, FRAME, frame) for frame in frames]),
                "input_1": number(2, 0) if mask is None else number(2, 1) + block(3, tensor("", FLOAT, [4, 4], mask)),
                "input_2": tensor("which", INT64, [], [-1]),
                "output_0": number(2, 1) + blocks(3, [tensor("", FLOAT, FRAME, frame) for frame in positives]),
                "output_1": tensor("y", FLOAT, FRAME, y)}
        for name, content in held.items():
            (folder / f"{name}.pb").write_bytes(content)
    done = world.run([world.gcompile, "verify", model, "--data", world.folder, "-O0"])
    contains(done.stderr, "positives_1 float32[1, 3, 4, 4]: equal", "test_data_set_1: y", "verified: 5 tensors are right")


def case_saved(world):
    """What is saved has inputs and outputs that are tensors."""
    saved = world.path("saved.onnx")
    world.run([world.gcompile, "opt", video(world), *SHOWN, "--save-onnx", saved])
    contains(world.run([world.gcompile, "verify", saved, "-O0"]).stderr, "positives_2 float32[1, 3, 4, 4]: equal")


if __name__ == "__main__":
    run_main(globals())
