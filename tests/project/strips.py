#!/usr/bin/env python3
"""Chains of convolutions in strips of rows: right, with the same bits for any number of threads, and in less memory.

    strips.py --gcompile GCOMPILE [CASE...]
"""

from families import Model
from range_kernels import opened
from ranges import verified
from support import check, contains, equal, manifest, read_npy, run_main


def strips_of(world, name, model, *options):
    """Compiles the model. Returns the strips of the schedule, and the bytes of the arena."""
    path = world.folder / f"{name}.onnxtxt"
    path.write_text(model.text())
    out = world.folder / name
    world.run([world.gcompile, path, "-o", out, "--name", "net", "--force", *options])
    text = "".join(file.read_text() for file in sorted((out / "src").glob("*.cpp")))
    return text.count("in_strips("), manifest(out, "net")["arena_bytes"]


def verify(world, name, *options):
    world.run([world.gcompile, "verify", world.folder / f"{name}.onnxtxt", "-q", *options])


def same_for_any_threads(world, name):
    out = world.folder / name
    world.run(["make", "-s", "-C", out, "ARCH=native", out / "build" / "net_run", f"BUILD={out / 'build'}"])
    results = []
    for threads in ("1", "2", "3"):
        world.run([out / "build" / "net_run", "--random", "5", "--threads", threads, "--output-dir", out / threads])
        results.append([read_npy(file) for file in sorted((out / threads).glob("*.npy"))])
    check(results[0] == results[1] == results[2], f"{name}: other bits with more threads")


def residuals(size, channels, batch=1):
    """A stem and two inverted residuals, of which the second adds what it was given."""
    model = Model()
    model.inputs = [f"float[{batch},3,{size},{size + 3}] x"]
    rows, columns = (size + 1) // 2, (size + 4) // 2
    rows, columns = (rows + 1) // 2, (columns + 1) // 2
    model.outputs = [f"float[{batch},8,{rows},{columns}] y"]
    wide = 6 * channels
    for name, shape in (("s", (channels, 3, 3, 3)), ("e", (wide, channels, 1, 1)), ("d", (wide, 1, 3, 3)), ("p", (8, wide, 1, 1)),
                        ("f", (48, 8, 1, 1)), ("g", (48, 1, 5, 5)), ("q", (8, 48, 1, 1))):
        model.constant(name, "float", shape)
    model.nodes = ["stem = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>(x, s)", "low = Relu(stem)",
                   "wide = Conv(low, e)", "wide_low = Relu(wide)",
                   f"deep = Conv<group = {wide}, strides = [2, 2], pads = [1, 1, 1, 1]>(wide_low, d)", "deep_low = Relu(deep)",
                   "narrow = Conv(deep_low, p)", "again = Conv(narrow, f)", "again_low = Relu(again)",
                   "deeper = Conv<group = 48, pads = [2, 2, 2, 2]>(again_low, g)", "last = Conv(deeper, q)",
                   "y = Add(last, narrow)"]
    return model


def case_for_size(world):
    """The image of the input and the result are most of what remains, the second residual in its operand's place."""
    strips, arena = strips_of(world, "size", residuals(61, 7), "--optimize-for", "size")
    equal(strips, 2, "strips")
    whole, larger = strips_of(world, "speed", residuals(61, 7))
    equal(whole, 0, "strips of small images, for speed")
    check(4 * arena < larger, f"{arena} bytes in strips, {larger} without")
    verify(world, "size", "--optimize-for", "size")


def case_for_speed(world):
    """The expanded image has 5 MB."""
    strips, arena = strips_of(world, "large", residuals(258, 12))
    equal(strips, 1, "strips")
    check(arena < 129 * 131 * 72 * 4, f"{arena} bytes")
    verify(world, "large")
    same_for_any_threads(world, "large")


def edges(size, channels):
    """A convolution of planes, whose result is planes, by way of a map that no convolution takes in."""
    model = Model()
    model.inputs = [f"float[1,3,{size},{size + 5}] x", f"float[1,{channels},{size},{size + 5}] s"]
    model.outputs = [f"float[1,{channels},{size},{size + 5}] y", f"float[1,{channels},{size},{size + 5}] z"]
    model.constant("w", "float", (channels, 3, 3, 3))
    model.constant("v", "float", (channels, channels, 1, 1))
    model.nodes = ["y = Conv<pads = [1, 1, 1, 1]>(x, w)", "t = Conv(s, v)", "u = Relu(t)", "z = Mul(u, t)"]
    return model


def case_edges_of_the_graph(world):
    """Layouts are converted as the rows come: no image lies in memory twice."""
    strips, arena = strips_of(world, "edges", edges(41, 19), "--optimize-for", "size")
    equal(strips, 2, "strips")
    check(arena < 41 * 46 * 19 * 4, f"{arena} bytes")
    verify(world, "edges", "--optimize-for", "size")
    strips, arena = strips_of(world, "large_edges", edges(211, 32))
    equal(strips, 1, "strips of large images, for speed; of y other kernels run before its layout is converted")
    verify(world, "large_edges")
    same_for_any_threads(world, "large_edges")


BOUNDS = ("--dim", "height=1..258", "--dim", "width=1..261")


def case_bounds(world):
    """As many strips as at the largest size alone, in the same arena, for speed and for size; right at all."""
    model = opened(residuals(258, 12), ["float[1,3,height,width] x"])
    for name, options in (("speed", ()), ("least", ("--optimize-for", "size"))):
        strips, arena = strips_of(world, name, model, *BOUNDS, *options)
        alone = strips_of(world, f"{name}_alone", model, "--dim", "height=258", "--dim", "width=261", *options)
        equal((strips, arena), alone, f"strips and arena, {name}")
        check(strips > 0, f"no strips, {name}")
        lines = verified(world, name, model, *BOUNDS, *options, "--threads", "3")
        contains("\n".join(lines), "height=1, width=1", "height=258, width=261")
    same_for_any_threads(world, "speed")


def case_pools(world):
    model = Model()
    model.inputs = ["float[1,3,45,38] x"]
    model.outputs = ["float[1,11,11,10] y"]
    model.constant("w", "float", (11, 3, 5, 5))
    model.nodes = ["a = Conv<strides = [2, 2], pads = [2, 2, 2, 2]>(x, w)", "b = Relu(a)",
                   "c = MaxPool<kernel_shape = [3, 3], pads = [1, 1, 1, 1]>(b)",
                   "y = AveragePool<kernel_shape = [3, 2], strides = [2, 2], pads = [1, 1, 0, 0], ceil_mode = 1>(c)"]
    equal(strips_of(world, "pools", model, "--optimize-for", "size")[0], 1, "strips")
    verify(world, "pools", "--optimize-for", "size")


def case_batches_stay_whole(world):
    equal(strips_of(world, "batch", residuals(33, 5, batch=2), "--optimize-for", "size")[0], 0, "strips")


def case_readers_need_whole_images(world):
    """What is an output too, or read twice, or by a window of other axes."""
    model = Model()
    model.inputs = ["float[1,8,40,40] x"]
    model.outputs = ["float[1,24,40,40] a", "float[1,24,40,40] b", "float[1,8,40,40] d"]
    for name, shape in (("v", (24, 8, 1, 1)), ("w", (24, 1, 3, 3)), ("u", (8, 24, 1, 1))):
        model.constant(name, "float", shape)
    model.nodes = ["a = Conv(x, v)", "b = Conv<group = 24, pads = [1, 1, 1, 1]>(a, w)",
                   "c = Conv(x, v)", "c_low = Relu(c)", "e = Conv<group = 24, pads = [1, 1, 1, 1]>(c_low, w)",
                   "f = Add(e, c_low)", "d = Conv(f, u)"]
    # The sum of e and c_low reads c_low beside. Results that nobody else reads become planes as they are made.
    equal(strips_of(world, "readers", model, "--optimize-for", "size")[0], 3, "strips")
    verify(world, "readers", "--optimize-for", "size")


def case_integers(world):
    model = Model()
    model.inputs = ["uint8[1,8,37,29] x"]
    model.outputs = ["uint8[1,9,19,15] y"]
    model.constants = ["float s = {0.05}", "float t = {0.02}", "uint8 z = {128}", "int8 n = {0}"]
    for name, shape in (("e", (30, 8, 1, 1)), ("d", (30, 1, 3, 3)), ("p", (9, 30, 1, 1))):
        model.integers(name, "int8", shape, -127, 127)
    model.nodes = ["a = QLinearConv(x, s, z, e, t, n, s, z)",
                   "b = QLinearConv<group = 30, strides = [2, 2], pads = [1, 1, 1, 1]>(a, s, z, d, t, n, s, z)",
                   "y = QLinearConv(b, s, z, p, t, n, s, z)"]
    equal(strips_of(world, "integers", model, "--optimize-for", "size")[0], 1, "strips")
    verify(world, "integers", "--optimize-for", "size")


if __name__ == "__main__":
    run_main(globals())
