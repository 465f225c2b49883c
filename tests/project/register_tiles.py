#!/usr/bin/env python3
"""Register tiles beyond single products of floats: other elements, and convolutions whose groups are joined.

    register_tiles.py --gcompile GCOMPILE [CASE...]
"""

from families import families_of, verify
from model_text import Model
from support import check, run_main


def wide_products():
    """By tiles too: doubles and integers, by weights and by matrices of the run, of all rows and of few."""
    model = Model()
    model.inputs = ["double[3,25,13] a", "double[2,13,37] b", "int64[5,11] c", "int64[11,19] d", "int32[2,9,18] e",
                    "uint32[7,5] f", "uint64[6,5] g", "double[1,13] r"]
    model.outputs = ["double[3,25,37] y", "double[2,13,5] z", "int64[5,19] m", "int32[2,9,33] n", "uint32[7,17] o",
                     "uint64[6,3] p", "double[1,37] q", "double[1,40] s"]
    for name, shape in (("w", (13, 37)), ("t", (37, 5)), ("v", (13, 40))):
        model.constant(name, "double", shape)
    model.constants = model.constants + ["int64 first = {0}", "float thousands = {1000}"]
    for name, element, shape in (("k", 6, (18, 33)), ("l", 12, (5, 17)), ("h", 13, (5, 3))):
        model.constant(f"{name}_floats", "float", shape)
        model.nodes += [f"{name}_absolute = Abs({name}_floats)", f"{name}_scaled = Mul({name}_absolute, thousands)",
                        f"{name} = Cast<to = {element}>({name}_scaled)"]
    model.nodes += ["y0 = MatMul(a, w)", "y = Relu(y0)", "z = MatMul(b, t)", "m = MatMul(c, d)", "n = MatMul(e, k)",
                    "o = MatMul(f, l)", "p = MatMul(g, h)", "b0 = Gather<axis = 0>(b, first)", "q = MatMul(r, b0)",
                    "s = MatMul(r, v)"]
    return model


def case_wide_products_cpp(world):
    verify(world, "wide_products", wide_products())
    verify(world, "wide_products", wide_products(), "-O0")
    calls = families_of(world, world.folder / "wide_products.onnxtxt", "wide")
    check(sorted(calls) == ["product.loops"] + 7 * ["product.tile"], f"other kernels: {calls}")


def case_wide_products_cuda(world):
    verify(world, "wide_products", wide_products(), "--target", "cuda", "--emulate")


GROUPS = [(1, 1, 24), (2, 3, 8), (4, 4, 16), (3, 5, 6), (8, 8, 6), (16, 8, 4), (4, 20, 3), (2, 1, 5)]


def grouped():
    """Windows of a few channels of a group, and as many results."""
    model = Model()
    for i, (channels, results, groups) in enumerate(GROUPS):
        model.inputs.append(f"float[3,{channels * groups},9,7] x{i}")
        model.constant(f"w{i}", "float", (results * groups, channels, 3, 3))
        model.constant(f"b{i}", "float", (results * groups,))
        window = ["pads = [1, 1, 1, 1]", "strides = [2, 1], pads = [1, 0, 1, 2]", "dilations = [1, 2]"][i % 3]
        high, wide = [(9, 7), (5, 7), (7, 3)][i % 3]
        model.nodes += [f"c{i} = Conv<group = {groups}, {window}>(x{i}, w{i}, b{i})", f"y{i} = Relu(c{i})"]
        model.outputs.append(f"float[3,{results * groups},{high},{wide}] y{i}")
    return model


def case_groups_are_joined(world):
    """In panels that they would leave empty; not where sums must be as they are written."""
    direct = [word for i in range(len(GROUPS)) for word in ("--kernel", f"c{i}=conv.direct")]
    verify(world, "grouped", grouped(), *direct, "--threads", "3")
    verify(world, "grouped", grouped(), *direct, "--exact")
    path = world.folder / "grouped.onnxtxt"
    for options, expected in (((), 6), (("--exact",), 0)):
        world.compile(path, world.folder / "told", *direct, *options)
        texts = "".join(file.read_text() for file in sorted((world.folder / "told" / "src").glob("*kernels*.cpp")))
        count = texts.count("Each of the groups here is")
        check(count == expected, f"{count} of {len(GROUPS)} have joined groups {options}")


if __name__ == "__main__":
    run_main(globals())
