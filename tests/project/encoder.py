#!/usr/bin/env python3
"""A transformer encoder of two layers becomes at most seven kernels per layer, and computes what it did before.

    encoder.py --gcompile GCOMPILE [CASE...]
"""

import typing

from support import check, equal, layers_of, run_main

MOST_KERNELS = 7


class Sizes(typing.NamedTuple):
    batch: int = 2
    rows: int = 24
    heads: int = 2
    size: int = 16
    inner: int = 64
    layers: int = 2

    @property
    def width(self):
        return self.heads * self.size


class Numbers:
    """Small numbers that are a function of their position."""

    def __init__(self):
        self.state = 1

    def next(self):
        self.state = (self.state * 1103515245 + 12345) % 2**31
        return round((self.state / 2**31 - 0.5) / 4, 5)


class Encoder:
    """The model in ONNX text, as exporters write it. `norm_first`: before attention and products, not behind."""

    def __init__(self, norm_first, sizes=Sizes()):
        self.norm_first = norm_first
        self.sizes = sizes
        self.numbers = Numbers()
        self.constants = [f"int64[4] split = {{{self.sizes.batch}, {self.sizes.rows}, {self.sizes.heads}, {self.sizes.size}}}",
                          f"int64[3] merged = {{{self.sizes.batch}, {self.sizes.rows}, {self.sizes.width}}}", "float root = {4.0}"]
        self.nodes = []

    def constant(self, name, shape):
        count = 1
        for dim in shape:
            count *= dim
        values = ", ".join(str(self.numbers.next()) for _ in range(count))
        self.constants.append(f"float[{', '.join(map(str, shape))}] {name} = {{{values}}}")
        return name

    def linear(self, x, name, inputs, outputs):
        self.nodes.append(f"{name}_p = MatMul({x}, {self.constant(name + '_w', (inputs, outputs))})")
        self.nodes.append(f"{name} = Add({name}_p, {self.constant(name + '_b', (outputs,))})")
        return name

    def norm(self, x, name):
        scale, bias = self.constant(name + "_s", (self.sizes.width,)), self.constant(name + "_b", (self.sizes.width,))
        self.nodes.append(f"{name} = LayerNormalization<axis = -1>({x}, {scale}, {bias})")
        return name

    def heads(self, x, permutation):
        self.nodes.append(f"{x}_s = Reshape({x}, split)")
        self.nodes.append(f"{x}_h = Transpose<perm = {permutation}>({x}_s)")
        return f"{x}_h"

    def attention(self, x, at):
        q = self.heads(self.linear(x, f"{at}q", self.sizes.width, self.sizes.width), [0, 2, 1, 3])
        k = self.heads(self.linear(x, f"{at}k", self.sizes.width, self.sizes.width), [0, 2, 3, 1])
        v = self.heads(self.linear(x, f"{at}v", self.sizes.width, self.sizes.width), [0, 2, 1, 3])
        self.nodes += [f"{at}a = MatMul({q}, {k})", f"{at}d = Div({at}a, root)", f"{at}m = Add({at}d, mask)",
                       f"{at}p = Softmax({at}m)", f"{at}o = MatMul({at}p, {v})",
                       f"{at}t = Transpose<perm = [0, 2, 1, 3]>({at}o)", f"{at}j = Reshape({at}t, merged)"]
        return self.linear(f"{at}j", f"{at}out", self.sizes.width, self.sizes.width)

    def products(self, x, at):
        inner = self.linear(x, f"{at}in", self.sizes.width, self.sizes.inner)
        self.nodes.append(f"{at}g = Gelu({inner})")
        return self.linear(f"{at}g", f"{at}back", self.sizes.inner, self.sizes.width)

    def block(self, x, at, inside):
        if self.norm_first:
            self.nodes.append(f"{at}r = Add({x}, {inside(self.norm(x, at + 'n'), at)})")
            return f"{at}r"
        self.nodes.append(f"{at}r = Add({inside(x, at)}, {x})")
        return self.norm(f"{at}r", at + "n")

    def text(self):
        x = "x"
        for layer in range(self.sizes.layers):
            x = self.block(x, f"l{layer}_attention_", self.attention)
            x = self.block(x, f"l{layer}_products_", self.products)
        self.nodes.append(f"y = Identity({x})")
        shape = f"float[{self.sizes.batch}, {self.sizes.rows}, {self.sizes.width}]"
        return ("<ir_version: 9, opset_import: [\"\" : 20]>\n"
                f"encoder ({shape} x, float[{self.sizes.batch}, 1, 1, {self.sizes.rows}] mask) => ({shape} y)\n"
                f"<{', '.join(self.constants)}>\n{{\n" + "\n".join(self.nodes) + "\n}\n")


class Transposed(Encoder):
    """As PyTorch writes nn.MultiheadAttention: (rows, batch, width), one product for queries, keys and values, and
    heads that are split through (rows, batch * heads, size)."""

    def __init__(self, norm_first, sizes=Sizes()):
        super().__init__(norm_first, sizes)
        batch, rows, heads, size = sizes.batch, sizes.rows, sizes.heads, sizes.size
        self.constants += [f"int64[4] parts = {{{rows}, {batch}, 3, {sizes.width}}}",
                           f"int64[3] all_heads = {{{rows}, {batch * heads}, {size}}}",
                           f"int64[4] by_heads = {{{batch}, {heads}, {rows}, {size}}}",
                           f"int64[2] matrix = {{{rows * batch}, {sizes.width}}}",
                           f"int64[3] joined = {{{rows}, {batch}, {sizes.width}}}",
                           *(f"int64 part{i} = {{{i}}}" for i in range(3))]

    def attention(self, x, at):
        self.nodes.append(f"{at}x = Transpose<perm = [1, 0, 2]>({x})")
        self.nodes.append(f"{at}f = Reshape({self.linear(at + 'x', at + 'qkv', self.sizes.width, 3 * self.sizes.width)}, parts)")
        self.nodes.append(f"{at}s = Transpose<perm = [2, 0, 1, 3]>({at}f)")
        for i, part in enumerate("qkv"):
            self.nodes += [f"{at}{part}g = Gather<axis = 0>({at}s, part{i})", f"{at}{part}r = Reshape({at}{part}g, all_heads)",
                           f"{at}{part}t = Transpose<perm = [1, 0, 2]>({at}{part}r)", f"{at}{part} = Reshape({at}{part}t, by_heads)"]
        self.nodes += [f"{at}columns = Transpose<perm = [0, 1, 3, 2]>({at}k)", f"{at}a = MatMul({at}q, {at}columns)",
                       f"{at}d = Div({at}a, root)", f"{at}m = Add({at}d, mask)", f"{at}p = Softmax({at}m)",
                       f"{at}o = MatMul({at}p, {at}v)", f"{at}t = Transpose<perm = [2, 0, 1, 3]>({at}o)",
                       f"{at}j = Reshape({at}t, matrix)"]
        out = self.linear(f"{at}j", f"{at}out", self.sizes.width, self.sizes.width)
        self.nodes += [f"{out}_r = Reshape({out}, joined)", f"{out}_t = Transpose<perm = [1, 0, 2]>({out}_r)"]
        return f"{out}_t"


MODELS = {"norm_last": (Encoder, False), "norm_first": (Encoder, True), "transposed": (Transposed, False)}


def write_model(world, name):
    path = world.path(name + ".onnxtxt")
    kind, norm_first = MODELS[name]
    path.write_text(kind(norm_first).text())
    return path


def count(world, target):
    for name in MODELS:
        model = write_model(world, name)
        dump = world.path(f"dump_{target}_{model.stem}")
        world.compile(model, world.path(f"{target}_{model.stem}"), "--target", target, "--dump-dir", dump)
        layers = layers_of(dump)
        families = [layer["family"] for layer in layers]
        listed = "\n".join(f"{layer['family']}: {layer['origins']}" for layer in layers)
        check(len(layers) <= MOST_KERNELS * Sizes().layers, f"{len(layers)} kernels for {Sizes().layers} layers:\n{listed}")
        equal(families.count("attention.flash"), Sizes().layers, f"attention kernels in\n{listed}")
        equal(families.count("copy"), 0, f"copies in\n{listed}")


def verify(world, *flags):
    for name in MODELS:
        done = world.run([world.gcompile, "verify", write_model(world, name), "--cases", "1", *flags])
        check("verified" in done.stdout + done.stderr, f"not verified:\n{done.stdout}{done.stderr}")


def case_kernels(world):
    count(world, "cpp")


def case_kernels_cuda(world):
    count(world, "cuda")


def case_results(world):
    verify(world)
    verify(world, "--exact")


def case_results_cuda(world):
    verify(world, "--target", "cuda", "--emulate")


if __name__ == "__main__":
    run_main(globals())
