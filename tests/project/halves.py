#!/usr/bin/env python3
"""Models of 16-bit floats: normalisations in every spelling keep outliers, and layers are float32 between each other on the CPU.

    halves.py --gcompile GCOMPILE [CASE...]
"""

import itertools
import math
import zipfile

from cuda import cxx
from families import Model
from support import contains, equal, manifest, run_main, write_npy

ROWS, COLUMNS = 5, 24
NUMBERS = {"two": 2, "one": 1, "count": COLUMNS, "half": 0.5, "minus_half": -0.5, "eps": 2**-10}
MEANS = ["q = Pow(x, two)\nm = ReduceMean(q, axes)", "q = Mul(x, x)\nm = ReduceMean(q, axes)",
         "q = Mul(x, x)\nt = ReduceSum(q, axes)\nm = Div(t, count)", "t = ReduceSumSquare(x, axes)\nm = Div(t, count)",
         "l = ReduceL2(x, axes)\nt = Mul(l, l)\nm = Div(t, count)"]
QUOTIENTS = ["s = Sqrt(e)\nn = Div(x, s)", "s = Sqrt(e)\nr = Reciprocal(s)\nn = Mul(x, r)", "s = Sqrt(e)\nr = Div(one, s)\nn = Mul(x, r)",
             "s = Pow(e, half)\nn = Div(x, s)", "r = Pow(e, minus_half)\nn = Mul(r, x)"]


def renamed(text, i):
    """Nodes of one spelling, with names of their own."""
    for name in "qmtlesrn":
        text = text.replace(f"{name} =", f"{name}{i} =")
        for before, after in itertools.product("( ", ",)"):
            text = text.replace(f"{before}{name}{after}", f"{before}{name}{i}{after}")
    return text


def norms():
    """Each spelling of x / sqrt(mean(x * x) + eps) * g is an output."""
    model = Model(opset=18)
    model.inputs = [f"float16[{ROWS},{COLUMNS}] x", f"float16[{COLUMNS}] g"]
    model.constants = ["int64[1] axes = {-1}"] + [f"float f_{name} = {{{value}}}" for name, value in NUMBERS.items()]
    model.nodes = [f"{name} = Cast<to = 10>(f_{name})" for name in NUMBERS]
    for i, (mean, quotient) in enumerate(itertools.product(MEANS, QUOTIENTS)):
        model.outputs.append(f"float16[{ROWS},{COLUMNS}] y{i}")
        model.nodes.append(renamed(f"{mean}\ne = Add(m, eps)\n{quotient}\n", i) + f"y{i} = Mul(n{i}, g)")
    return model


def archive(world, file, **tensors):
    with zipfile.ZipFile(file, "w") as out:
        for name, (shape, values) in tensors.items():
            out.write(write_npy(world.path("element.npy"), "float16", shape, values), f"{name}.npy")


def data_of_norms(world, outputs):
    """Rows of outliers, of numbers whose squares vanish, and of ordinary ones."""
    folder = world.path("data")
    (folder / "test_data_set_0").mkdir(parents=True)
    scales = [3000, 1, 0.0001, 60000, 250]
    x = [round(math.sin(1 + 3 * i + row) * scale * (1 if i % 7 == 2 else 0.25) * 1024) / 1024 if scale >= 1 else
         scale * math.sin(1 + 3 * i + row) for row, scale in enumerate(scales) for i in range(COLUMNS)]
    g = [(i % 5 - 2) / 2 for i in range(COLUMNS)]
    archive(world, folder / "test_data_set_0" / "inputs.npz", x=((ROWS, COLUMNS), x), g=((COLUMNS,), g))
    y = []
    for row in range(ROWS):
        values = x[row * COLUMNS:][:COLUMNS]
        deviation = math.sqrt(sum(value * value for value in values) / COLUMNS + NUMBERS["eps"])
        y += [value / deviation * gain for value, gain in zip(values, g)]
    archive(world, folder / "test_data_set_0" / "outputs.npz", **{f"y{i}": ((ROWS, COLUMNS), y) for i in range(outputs)})
    return folder


def verify_norms(world, *options):
    model = norms()
    path = world.path("norms.onnxtxt")
    path.write_text(model.text())
    done = world.run([world.gcompile, "verify", path, "--data", data_of_norms(world, len(model.outputs)), *options])
    contains(done.stdout + done.stderr, f"verified: {len(model.outputs)} tensors are right")


def case_norms_cpp(world):
    verify_norms(world)


def case_norms_cuda(world):
    verify_norms(world, "--target", "cuda", "--emulate", "--cxx", cxx())


def layers():
    """Convolutions of halves, one behind the other; the weights are inputs, so that nothing is folded."""
    model = Model()
    model.inputs = ["float16[1,4,8,8] x", "float16[4,4,3,3] w"]
    model.outputs = ["float16[1,4,8,8] y"]
    last = "x"
    for i in range(6):
        model.nodes += [f"c{i} = Conv<pads = [1, 1, 1, 1]>({last}, w)", f"r{i} = Tanh(c{i})"]
        last = f"r{i}"
    model.nodes.append(f"y = Identity({last})")
    return model


def types_in(world, *options):
    path = world.path("layers.onnxtxt")
    path.write_text(layers().text())
    folder = world.path("dump" + "".join(options).replace("-", ""))
    world.run([world.gcompile, "check", path, "--dump-dir", folder, *options])
    last = sorted(folder.glob("[0-9][0-9]-*.txt"))[-1].read_text()
    return last.count(" f16["), last.count(" f32[")


def case_layers(world):
    """Halves are the inputs and the output; --exact and -O0 keep those of the model between layers, and a GPU too."""
    equal(types_in(world)[0], 3, "halves")
    for options in (["--exact"], ["-O0"], ["--target", "cuda"]):
        halves = types_in(world, *options)[0]
        if halves <= 3:
            raise AssertionError(f"{options}: {halves} halves")
    for options in ([], ["--exact"]):
        done = world.run([world.gcompile, "verify", world.path("layers.onnxtxt"), *options])
        contains(done.stdout + done.stderr, "verified: 1 tensor is right")


def case_state(world):
    """A cache of 16 bits grows in its state, which keeps the model's type."""
    model = Model(opset=18)
    model.inputs, model.outputs = ["float16[1,past,4] old", "float16[1,rows,4] x"], ["float16[1,both,4] joined", "float16[1,both,4] y"]
    model.nodes = ["t = Mul(x, x)", "new = Tanh(t)", "joined = Concat<axis = 1>(old, new)", "e = Exp(joined)", "y = Mul(e, e)"]
    path = world.path("state.onnxtxt")
    path.write_text(model.text())
    options = ["--dim", "past=0..9", "--dim", "rows=1..5", "--dim", "past+rows=1..12", "--state", "old=joined"]
    world.run([world.gcompile, path, "-o", world.path("state"), "--name", "net", *options])
    states = manifest(world.path("state"), "net")
    equal(states["state_bytes"], 192, "bytes of 12 rows of 4 halves, aligned, and of their length")
    done = world.run([world.gcompile, "verify", path, *options])
    contains(done.stdout + done.stderr, "verified: ", "are right")


if __name__ == "__main__":
    run_main(globals())
