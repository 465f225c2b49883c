#!/usr/bin/env python3
"""Where data decides what is read of an image, the channels of a position are read together: RoiAlign, GridSample and
DeformConv, with channels that fill vectors and with those that do not, at the edges of a graph and between convolutions.

    positions.py --gcompile GCOMPILE [CASE...]
"""

from families import verify
from model_text import Model
from support import check, run_main


def regions():
    """Means and largest samples of several images; what is read is also a result; and a constant image."""
    model = Model(opset=22)
    model.inputs = ["float[2,19,9,7] x", "float[3,4] r"]
    model.outputs = ["float[2,12,9,7] v", "float[3,12,3,2] mean", "float[3,12,3,2] most", "float[3,5,2,2] few",
                     "float[3,9,2,2] known"]
    model.constants = ["int64[3] images = {1, 0, 1}"]
    model.constant("w", "float", (12, 19, 3, 3))
    model.constant("u", "float", (5, 19, 1, 1))
    model.constant("t", "float", (2, 9, 6, 5))
    align = "output_height = {}, output_width = {}, sampling_ratio = 2, spatial_scale = 1.5"
    model.nodes = ["v = Conv<pads = [1, 1, 1, 1]>(x, w)", "p = Abs(r)",
                   f"m = RoiAlign<{align.format(3, 2)}>(v, p, images)", "mean = Relu(m)",
                   f'most = RoiAlign<{align.format(3, 2)}, mode = "max">(v, p, images)', "s = Conv(x, u)",
                   f"few = RoiAlign<{align.format(2, 2)}>(s, p, images)",
                   f"known = RoiAlign<{align.format(2, 2)}>(t, p, images)"]
    return model


def samples():
    """Images and volumes by every mode, which a convolution reads, rows read, and nobody reads."""
    model = Model(opset=22)
    model.inputs = ["float[2,17,6,5] x", "float[2,4,3,2] g", "float[2,9,4,5,3] d", "float[2,2,3,4,3] h", "float16[2,8,6,5] q",
                    "float16[2,4,3,2] k"]
    model.outputs = ["float[2,6,4,3] y", "float[2,204] z", "float[2,17,4,3] n", "float[2,9,2,3,4] e", "float16[2,8,4,3] i"]
    model.constants = ["int64[2] rows = {2, 204}"]
    model.constant("w", "float", (6, 17, 3, 3))
    model.nodes = ['a = GridSample<mode = "linear">(x, g)', "y = Conv<pads = [1, 1, 1, 1]>(a, w)",
                   'c = GridSample<mode = "cubic", padding_mode = "border", align_corners = 1>(x, g)', "z = Reshape(c, rows)",
                   'n = GridSample<mode = "nearest", padding_mode = "reflection">(x, g)',
                   'e = GridSample<mode = "linear", padding_mode = "border">(d, h)',
                   'i = GridSample<mode = "linear">(q, k)']
    return model


def deformed():
    """Groups of channels and of offsets, masks, one axis and two; channels that divide into neither alone."""
    model = Model(opset=22)
    model.inputs = ["float[2,16,7,6] x", "float[2,18,4,6] o", "float[2,9,4,6] m", "float[2,36,7,6] p", "float[2,18,7,6] q",
                    "float[2,12,9] s", "float[2,9,9] t"]
    model.outputs = ["float[2,10,4,6] y", "float[2,4,7,6] z", "float[2,4,7,6] u", "float[2,6,9] v"]
    for name, shape in (("w", (10, 16, 3, 3)), ("b", (10,)), ("g", (4, 8, 3, 3)), ("h", (4, 4, 3, 3)), ("l", (6, 4, 3))):
        model.constant(name, "float", shape)
    model.nodes = ["c = DeformConv<pads = [1, 1, 1, 1], strides = [2, 1]>(x, w, o, b, m)", "y = Relu(c)",
                   "z = DeformConv<pads = [1, 1, 1, 1], group = 2, offset_group = 2>(x, g, p)",
                   "u = DeformConv<pads = [2, 2, 2, 2], dilations = [2, 2], group = 4>(x, h, q)",
                   "v = DeformConv<pads = [1, 1], group = 3, offset_group = 3>(s, l, t)"]
    return model


MODELS = {"regions": regions, "samples": samples, "deformed": deformed}


def case_cpp(world):
    for name, model in MODELS.items():
        verify(world, name, model())


def case_cuda(world):
    for name, model in MODELS.items():
        verify(world, name, model(), "--target", "cuda", "--emulate")


def case_channels_fill_vectors(world):
    """One position serves a vector of channels: nothing is gathered where they are enough."""
    model = Model(opset=22)
    model.inputs = ["float[1,16,24,20] x", "float[1,18,24,20] o"]
    model.outputs = ["float[1,8,24,20] y"]
    model.constant("w", "float", (8, 16, 3, 3))
    model.nodes = ["y = DeformConv<pads = [1, 1, 1, 1]>(x, w, o)"]
    path = world.folder / "vectors.onnxtxt"
    path.write_text(model.text())
    world.compile(path, world.folder / "vectors", "--name", "net")
    text = (world.folder / "vectors" / "src" / "net_kernels.cpp").read_text(encoding="utf-8")
    check("gather(" not in text, f"elements are gathered:\n{text}")
    check("vectorize(16," in text, f"channels are no vectors:\n{text}")


if __name__ == "__main__":
    run_main(globals())
