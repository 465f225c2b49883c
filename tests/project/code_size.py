#!/usr/bin/env python3
"""What kernels share is compiled once: bytes and instances of emitted code, on the CPU.

    code_size.py --gcompile GCOMPILE [CASE...]
"""

import platform
import sys

from model_text import Model
from support import HERE, Skip, check, run_main

sys.path.insert(0, str(HERE.parent.parent / "scripts"))
import build_cost  # noqa: E402


def functions_of(world, name, model):
    """{function: (instances, bytes)} of schedule and kernels for x86-64-v3."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise Skip("bounds are those of x86-64")
    path = world.path(f"{name}.onnxtxt")
    path.write_text(model.text(), encoding="utf-8")
    _, objects = build_cost.built(world.gcompile, path, world.path(name), arch="x86-64-v3")
    (files,) = objects.values()
    return {function: (count, size) for function, count, size in build_cost.functions(files)}


def case_depthwise(world):
    """Three windows with their edges; channels that fill whole vectors need no code for fewer."""
    model = Model()
    model.inputs, model.outputs = ["float[1,48,20,20] x"], ["float[1,48,10,10] y"]
    last = "x"
    for i, (kernel, stride) in enumerate([(3, 1), (5, 1), (7, 2)]):
        weight, pad = model.constant(f"w{i}", "float", (48, 1, kernel, kernel)), kernel // 2
        result = "y" if kernel == 7 else f"t{i}"
        model.nodes.append(f"{result} = Conv<group = 48, pads = [{pad}, {pad}, {pad}, {pad}], strides = [{stride}, {stride}]>"
                           f"({last}, {weight})")
        last = result
    found = functions_of(world, "depthwise", model)
    count, size = found["depthwise_tiles"]
    check(count <= 13 and size <= 30_000, f"depthwise_tiles: {count} instances, {size} bytes")
    print(f"         {count} instances of depthwise_tiles, {size} bytes", flush=True)


def case_threads(world):
    """Kernels that differ in sizes alone share the loop over their work items, and are short themselves."""
    model = Model()
    model.inputs, model.outputs = ["float[1,32,40,40] x"], ["float[1,96,40,40] y"]
    last, channels = "x", 32
    for i in range(6):
        width = 96 if i == 5 else 32 + 16 * (i % 2) + 16 * (i % 3)
        weight, bias = model.constant(f"w{i}", "float", (width, channels, 1, 1)), model.constant(f"b{i}", "float", (width,))
        model.nodes += [f"c{i} = Conv({last}, {weight}, {bias})", f"{'y' if i == 5 else f'r{i}'} = Relu(c{i})"]
        last, channels = f"r{i}", width
    found = functions_of(world, "threads", model)
    kernels = {name: size for name, (_, size) in found.items() if name.startswith("conv1x1_")}
    check(len(kernels) >= 5 and max(kernels.values()) <= 160, f"{kernels}")
    check(found["run"][0] <= 3, f"{found['run'][0]} functions named run: of threads for {len(kernels)} kernels")


if __name__ == "__main__":
    run_main(globals())
