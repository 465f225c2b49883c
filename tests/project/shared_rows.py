#!/usr/bin/env python3
"""Rows of reductions that several blocks of a GPU share: right on the emulator whatever is reduced, of every element type,
through views and with open sizes; used where the model of time finds them faster, and predicted with the bandwidth of
the blocks that run.

    shared_rows.py --gcompile GCOMPILE [CASE...]
"""

import re

from cuda import cxx, nvcc
from support import check, contains, equal, flags, manifest, run_main

# A GPU of 108 multiprocessors: 216 blocks share what has fewer rows, in parts of some thousand elements.
ARCH = ["--target", "cuda", "--arch", "sm_80"]
LONG = 90001  # no multiple of anything


class Model:
    """Nodes of one input or more, each with outputs of its own."""

    def __init__(self, opset=20):
        self.opset, self.inputs, self.outputs, self.nodes, self.constants = opset, [], [], [], []

    def input(self, name, element, shape):
        self.inputs.append(f"{element}[{shape}] {name}")
        return name

    def axes(self, *values):
        """A constant of axes."""
        name = "a" + "_".join(str(v) for v in values).replace("-", "m")
        text = f"int64[{len(values)}] {name} = {{{', '.join(map(str, values))}}}"
        if text not in self.constants:
            self.constants.append(text)
        return name

    def constant(self, name, element, shape, values):
        kind = f"{element}[{shape}]" if shape else element
        self.constants.append(f"{kind} {name} = {{{', '.join(map(str, values))}}}")
        return name

    def output(self, element, shape, expression, name=None):
        name = name or f"y{len(self.outputs)}"
        self.outputs.append(f"{element}[{shape}] {name}")
        self.nodes.append(f"{name} = {expression}")

    def value(self, name, expression):
        self.nodes.append(f"{name} = {expression}")
        return name

    def write(self, world, name):
        text = (f'<ir_version: 9, opset_import: ["" : {self.opset}]>\n{name} ({", ".join(self.inputs)}) => '
                f'({", ".join(self.outputs)})\n')
        if self.constants:
            text += f"<{', '.join(self.constants)}>\n"
        text += "{\n" + "".join(f"  {node}\n" for node in self.nodes) + "}\n"
        path = world.path(f"{name}.onnxtxt")
        path.write_text(text)
        return path


def kernels(world, model, *options):
    """Text of the emitted kernels, and the layers of the manifest."""
    folder = world.path("emitted")
    world.compile(model, folder, "--force", "--name", "m", *ARCH, *options)
    return "".join(path.read_text() for path in sorted((folder / "src").glob("*kernels*.cu"))), manifest(folder, "m").get("layers", [])


def verified(world, model, tensors, *options):
    done = world.run([world.gcompile, "verify", model, *ARCH, "--emulate", "--cases", "2", "--cxx", cxx(), *options])
    contains(done.stdout + done.stderr, "tensors are right")
    check((done.stdout + done.stderr).count("ok  random") >= tensors, "too few tensors were compared")


def reductions():
    """Sums of floats: every way to combine, one row and three, through views that no axis joins."""
    model = Model()
    model.input("x", "float", f"3, {LONG}")
    model.input("image", "float", "1, 2, 300, 300")
    keep = "<keepdims = 0>"
    for name in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp"):
        model.output("float", "", f"{name}{keep}(x)")
        model.output("float", "3", f"{name}{keep}(x, {model.axes(1)})")
    model.output("int64", "3", "ArgMax<axis = 1, keepdims = 0>(x)")
    model.output("int64", "3", "ArgMin<axis = 1, keepdims = 0, select_last_index = 1>(x)")
    # Rows of two axes, of a window within them.
    model.constant("begin", "int64", "2", [3, 4])
    model.constant("end", "int64", "2", [297, 300])
    model.constant("over", "int64", "2", [2, 3])
    model.value("window", "Slice(image, begin, end, over)")
    model.output("float", "1, 2", f"ReduceSum{keep}(window, over)")
    model.output("float", "1, 2", f"ReduceMax{keep}(window, over)")
    model.value("turned", "Transpose<perm = [0, 3, 1, 2]>(image)")
    model.output("float", "2", f"ReduceMean{keep}(turned, {model.axes(0, 1, 3)})")
    return model, len(model.outputs)


def norms():
    """Stages that need one another, and rows that are walked at last."""
    model = Model(18)
    model.input("x", "float", f"2, {LONG}")
    model.input("image", "float", "1, 4, 300, 250")
    model.constant("two", "float", "2", [0.5, 2.0])
    model.constant("minus", "float", "2", [-1.0, 1.0])
    model.constant("four", "float", "4", [0.5, 2.0, 1.0, -1.0])
    model.output("float", f"2, {LONG}", "Softmax<axis = 1>(x)")
    model.output("float", f"2, {LONG}", "LogSoftmax<axis = 1>(x)")
    model.output("float", f"2, {LONG}", "LpNormalization<axis = 1, p = 2>(x)")
    model.output("float", "1, 4, 300, 250", "InstanceNormalization(image, four, four)")
    model.output("float", "1, 4, 300, 250", "GroupNormalization<num_groups = 2>(image, two, minus)")
    model.output("float", "1, 4, 300, 250", "MeanVarianceNormalization<axes = [0, 1, 2, 3]>(image)")
    model.outputs += [f"uint8[2, {LONG}] q", "float q_scale", "uint8 q_zero"]
    model.nodes.append("q, q_scale, q_zero = DynamicQuantizeLinear(x)")
    return model, len(model.outputs)


TYPES = {"float16": ("ReduceSum", "ReduceMax", "ReduceMean"), "bfloat16": ("ReduceSum", "ReduceMin"),
         "double": ("ReduceSum", "ReduceMax", "ReduceProd"), "int32": ("ReduceSum", "ReduceMax", "ReduceProd"),
         "int64": ("ReduceSum", "ReduceMin"), "uint8": ("ReduceMax", "ReduceMin"), "int8": ("ReduceMax", "ReduceMin")}


def types():
    model = Model()
    for element, names in TYPES.items():
        model.input(f"x_{element}", element, f"{2 * LONG}")
        for name in names:
            model.output(element, "", f"{name}<keepdims = 0>(x_{element})")
        if element not in ("bfloat16",):
            model.output("int64", "", f"ArgMax<axis = 0, keepdims = 0>(x_{element})")
    model.input("flags", "bool", f"{2 * LONG}")
    model.output("bool", "", "ReduceMax<keepdims = 0>(flags)")
    return model, len(model.outputs)


def open_sizes():
    model = Model(18)
    model.input("x", "float", "rows, length")
    model.output("float", "", f"ReduceSum<keepdims = 0>(x)")
    model.output("float", "rows", f"ReduceMax<keepdims = 0>(x, {model.axes(1)})")
    model.output("int64", "rows", "ArgMax<axis = 1, keepdims = 0>(x)")
    model.output("float", "rows, length", "Softmax<axis = 1>(x)")
    model.output("float", "rows, length", "MeanVarianceNormalization<axes = [1]>(x)")
    return model, len(model.outputs)


def every_row_is_shared(text, layers):
    functions = {layer["function"]: layer["blocks"] for layer in layers if layer["family"] == "reduce"}
    check(all(blocks >= 8 for blocks in functions.values()), f"blocks {functions}")
    check(text.count("RowPart<") >= max(1, len(functions)), f"{text.count('RowPart<')} kernels share rows, of {len(functions)} layers")
    alone = re.findall(r"reduce(?:_\w+)?<[^>]+>\(group, (?!row)[^,]+", text)
    check(not alone, f"a block has a row for itself: {alone[:3]}")


def static(world, model, name, *options):
    made, tensors = model
    path = made.write(world, name)
    text, layers = kernels(world, path, *options)
    every_row_is_shared(text, layers)
    verified(world, path, tensors, *options)
    return text, layers


def case_reductions(world):
    static(world, reductions(), "reductions")


def case_norms(world):
    text, _ = static(world, norms(), "norms")
    contains(text, "vectorize<1>(group, row, ", "row.keep(group, 0, sum);", "row.kept<float>(1);")


def case_types(world):
    static(world, types(), "types")


def case_open_sizes(world):
    """As many parts as a run's sizes ask for, none included."""
    made, tensors = open_sizes()
    path = made.write(world, "open")
    sizes = ["--dim", "rows=0..40@2", "--dim", "length=1..90000@80000"]
    text, layers = kernels(world, path, *sizes)
    every_row_is_shared(text, layers)
    contains(text, "const int parts = row_parts(")
    verified(world, path, tensors, *sizes)


def case_prediction(world):
    """With the bandwidth of the blocks that run: in a row of one block that of one multiprocessor."""
    model = Model()
    model.input("x", "float", "1, 3, 1080, 1920")
    model.output("float", "", "ReduceMax<keepdims = 0>(x)")
    path = model.write(world, "whole")
    for arch, gigabytes in (("sm_80", 1555), ("sm_87", 204), ("sm_90a", 4800)):
        world.compile(path, world.path("whole"), "--force", "--name", "m", "--target", "cuda", "--arch", arch)
        layer = manifest(world.path("whole"), "m")["layers"][0]
        check(layer["blocks"] >= 32, f"{arch}: {layer['blocks']} blocks")
        floor = 24883200 / gigabytes / 1e3
        check(floor < layer["picoseconds"] / 1e6 < 3 * floor + 3, f"{arch}: {layer['picoseconds'] / 1e6:.1f} us, {floor:.1f} at least")
    # Few rows that are too short to be shared.
    short = Model()
    short.input("x", "float", "1, 20000")
    short.output("float", "", "ReduceMax<keepdims = 0>(x)")
    world.compile(short.write(world, "short"), world.path("short"), "--force", "--name", "m", "--target", "cuda", "--arch", "sm_90a")
    layer = manifest(world.path("short"), "m")["layers"][0]
    equal(layer["blocks"], 1, "blocks")
    one_multiprocessor = 80000 / 64 / 1.755e3
    check(layer["predicted"]["cache"] >= 0.99 * one_multiprocessor, f"{layer['predicted']}: one multiprocessor moves 64 bytes a clock")


def case_prediction_of_lines(world):
    """One long line of TopK and of CumSum is one block's, which walks it in rounds."""
    model = Model()
    model.input("x", "float", "1, 1000000")
    model.constant("k", "int64", "1", [100])
    model.constant("last", "int64", "", [1])
    model.outputs += ["float[1, 100] best", "int64[1, 100] where"]
    model.nodes.append("best, where = TopK(x, k)")
    model.output("float", "1, 1000000", "CumSum(x, last)")
    world.compile(model.write(world, "lines"), world.path("lines"), "--force", "--name", "m", "--target", "cuda", "--arch", "sm_90a")
    layers = {layer["function"]: layer for layer in manifest(world.path("lines"), "m")["layers"]}
    check(len(layers) == 2, f"layers {list(layers)}")
    for name, layer in layers.items():
        equal(layer["blocks"], 1, f"blocks of {name}")
        # Four megabytes, five times, by one multiprocessor; a thousand rounds, each as long as memory takes.
        least = 4e6 * 5 / 64 / 1.755e3 if "top" in name else 976 * 479 / 1.755e3
        check(layer["picoseconds"] / 1e6 > least, f"{name}: {layer['picoseconds'] / 1e6:.1f} us, at least {least:.1f}")


def case_nvcc(world):
    """All of them by the real compiler, without warnings."""
    for name, made in (("norms", norms()), ("types", types())):
        path = made[0].write(world, f"{name}_nvcc")
        folder = world.path(f"{name}_nvcc_out")
        world.compile(path, folder, "--force", "--name", "m", *ARCH)
        for source in sorted((folder / "src").glob("*kernels*.cu")):
            done = world.run([nvcc(), "-std=c++17", "-O1", *flags("cuda"), "-gencode", "arch=compute_80,code=sm_80", f"-I{folder}",
                              f"-I{folder}/include", "-c", source, "-o", world.path(f"{name}.o"), "-Xptxas", "-v"])
            check("warning" not in done.stderr, done.stderr[-2000:])
            spilled = [int(n) for n in re.findall(r"(\d+) bytes spill stores", done.stderr)]
            check(spilled and max(spilled) == 0, f"registers are spilled: {spilled}")


if __name__ == "__main__":
    run_main(globals())
