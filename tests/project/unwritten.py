#!/usr/bin/env python3
"""No emitted kernel reads memory that nobody wrote, and every element of the outputs is written: under MemorySanitizer, on the
best level of this processor.

    unwritten.py --gcompile GCOMPILE [CASE...]
"""

import families
from families import Model
from sizes import compiled
from support import HERE, LIBRARY_FLAGS, compilers, contains, flags, library_sources, march_flags, run_main

MSAN = ["-std=c++17", "-O1", "-g", "-fsanitize=memory", "-fno-omit-frame-pointer", *LIBRARY_FLAGS, *flags("clang")]


def run_under_msan(world, name, model, *options):
    project = compiled(world, name, model, *options)
    program = world.path(f"{name}_run")
    world.run([compilers()[-1], *MSAN, march_flags()[-1], f"-I{project}", f"-I{project / 'include'}", f"-I{project / 'data'}",
               HERE / "unwritten.cpp", *library_sources(project, "net"), "-o", program])
    contains(world.run([program]).stdout, "all written")


def byte_windows():
    """Windows that fill whole words of four bytes and ones that do not, at edges and inside."""
    model = Model()
    model.inputs = []
    windows = [(3, 3, 3, 1), (3, 3, 5, 1), (1, 5, 5, 1), (3, 1, 7, 1), (3, 2, 2, 2), (5, 3, 3, 2)]
    for i, (channels, height, width, stride) in enumerate(windows):
        model.inputs.append(f"uint8[1,{channels},11,13] x{i}")
        model.integers(f"w{i}", "int8", (6, channels, height, width), -128, 127)
        rows, columns = (11 + 2 - height) // stride + 1, (13 + 2 - width) // stride + 1
        model.outputs.append(f"int32[1,6,{rows},{columns}] y{i}")
        model.nodes.append(f"y{i} = ConvInteger<pads = [1, 1, 1, 1], strides = [{stride}, {stride}]>(x{i}, w{i})")
    return model


def case_byte_windows(world):
    run_under_msan(world, "windows", byte_windows())


def case_images(world):
    run_under_msan(world, "images", families.images())


if __name__ == "__main__":
    run_main(globals())
