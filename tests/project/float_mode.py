#!/usr/bin/env python3
"""Denormal numbers count as zeros while a model runs that multiplies floats, on every thread of it, and not behind it.

    float_mode.py --gcompile GCOMPILE [CASE...]
"""

from support import HERE, equal, run_main

MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[64,256] x) => (float[64,512] product, float[64,256] half)
<int64[2] shape = {256, 512}, float one = {0.5}>
{
  w = ConstantOfShape<value = float[1] {0.25}>(shape)
  product = PRODUCT
  half = Mul(x, one)
}
"""


def lines(world, product, *flags):
    model = world.path("m.onnxtxt")
    model.write_text(MODEL.replace("PRODUCT", product))
    project = world.path("project")
    world.compile(model, project, "--name", "m", *flags)
    objects = world.library_objects(project, "m")
    program = world.path("program")
    world.run(["g++", "-std=c++17", "-O1", "-pthread", f"-I{project}", f"-I{project}/include", HERE / "float_mode.cpp",
               project / "src" / "m_threads.cpp", *objects, "-o", program])
    return world.run([program]).stdout.splitlines()


def case_zeros(world):
    equal(lines(world, "MatMul(x, w)"), ["product zeros, half zeros, caller numbers"] * 2, "what was computed")


def case_exact(world):
    equal(lines(world, "MatMul(x, w)", "--exact"), ["product numbers, half numbers, caller numbers"] * 2, "--exact")


def case_without_products(world):
    """Comparisons and the like see every bit, where nothing multiplies matrices."""
    equal(lines(world, "Concat<axis = 1>(x, x)"), ["product numbers, half numbers, caller numbers"] * 2, "elements alone")


if __name__ == "__main__":
    run_main(globals())
