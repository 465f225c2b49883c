"""ResNet, MobileNetV2 and EfficientNet with random weights, normalisations not folded."""

import math

import numpy as np

from model_writer import ModelWriter

# What keeps a layer's results as large as its operands, by what made these of numbers around zero: a rectifier leaves
# half of their squares, x * sigmoid(x) about as much.
GAIN = {"Relu": math.sqrt(2), "Clip": math.sqrt(2), "Silu": 1.5, None: 1.0}


class ConvolutionalWriter(ModelWriter):
    def convolution(self, x, name, inputs, outputs, kernel=1, stride=1, behind=None, groups=1, has_bias=False):
        """`behind`: what the operand comes from, a key of GAIN."""
        fan_in = inputs // groups * kernel * kernel
        weight = self.random(f"{name}.weight", (outputs, inputs // groups, kernel, kernel),
                             GAIN[behind] / math.sqrt(fan_in))
        bias = [self.random(f"{name}.bias", (outputs,), 0.1)] if has_bias else []
        return self.node("Conv", [x, weight, *bias], f"{name}/Conv", kernel_shape=[kernel] * 2, strides=[stride] * 2,
                         pads=[kernel // 2] * 4, dilations=[1, 1], group=groups)

    def normalised(self, x, name, inputs, outputs, *shape, gain=1.0, **details):
        """A convolution and its batch normalisation."""
        y = self.convolution(x, name, inputs, outputs, *shape, **details)
        statistics = [self.random(f"{name}.gamma", (outputs,), 0.1 * gain, gain),
                      self.random(f"{name}.beta", (outputs,), 0.1), self.random(f"{name}.mean", (outputs,), 0.1),
                      self.random(f"{name}.variance", (outputs,), 0.02, 1.0)]
        return self.node("BatchNormalization", [y, *statistics], f"{name}/BatchNormalization", epsilon=1e-5)

    def activated(self, x, name, function):
        if function == "Clip":
            return self.node("Clip", [x, self.scalar("zero", 0), self.scalar("six", 6)], f"{name}/Clip")
        if function == "Silu":
            return self.node("Mul", [x, self.node("Sigmoid", [x], f"{name}/Sigmoid")], f"{name}/Mul")
        return self.node(function, [x], f"{name}/{function}")

    def classified(self, x, channels, size, behind):
        x = self.node("Flatten", [self.node("GlobalAveragePool", [x], "pool/GlobalAveragePool")], "Flatten", axis=1)
        self.output(self.gemm(x, "head", channels, size.classes, True, GAIN[behind]), np.float32,
                    ["batch", size.classes])
        return self


def resnet(size, name):
    """ResNet v1.5: the stride is in the 3x3 convolution. Of basic blocks, or of bottlenecks."""
    g = ConvolutionalWriter(name)
    widening = 4 if size.has_bottlenecks else 1
    g.input("image", np.float32, ["batch", 3, size.image, size.image])
    x = g.activated(g.normalised("image", "stem", 3, size.width, 7, 2), "stem", "Relu")
    x = g.node("MaxPool", [x], "stem/MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = size.width
    for stage, blocks in enumerate(size.blocks):
        inner = size.width << stage
        outputs = widening * inner
        for block in range(blocks):
            at = f"layer{stage + 1}.{block}"
            stride = 2 if stage > 0 and block == 0 else 1
            layers = ([(1, 1), (3, stride), (1, 1)] if size.has_bottlenecks else [(3, stride), (3, 1)])
            y, width = x, channels
            for index, (kernel, step) in enumerate(layers, 1):
                is_last = index == len(layers)
                y = g.normalised(y, f"{at}.conv{index}", width, outputs if is_last else inner, kernel, step,
                                 behind="Relu", gain=0.25 if is_last else 1.0)
                y, width = y if is_last else g.activated(y, f"{at}.conv{index}", "Relu"), inner
            if stride > 1 or channels != outputs:
                x = g.normalised(x, f"{at}.downsample", channels, outputs, 1, stride, behind="Relu")
            x, channels = g.activated(g.node("Add", [y, x], f"{at}/Add"), at, "Relu"), outputs
    return g.classified(x, channels, size, None)


def inverted_residuals(size, name):
    """MobileNetV2 and EfficientNet: expand, one filter for each channel, weigh the channels, project."""
    g = ConvolutionalWriter(name)
    function = size.activation
    g.input("image", np.float32, ["batch", 3, size.image, size.image])
    x = g.activated(g.normalised("image", "stem", 3, size.stem, 3, 2), "stem", function)
    channels, behind = size.stem, function
    for stage, (expansion, outputs, repeats, first_stride, kernel) in enumerate(size.stages):
        for block in range(repeats):
            at = f"blocks.{stage}.{block}"
            stride, inner = first_stride if block == 0 else 1, channels * expansion
            y = x
            if expansion > 1:
                y = g.activated(g.normalised(y, f"{at}.expand", channels, inner, behind=behind), f"{at}.expand", function)
                behind = function
            y = g.normalised(y, f"{at}.depthwise", inner, inner, kernel, stride, behind=behind, groups=inner)
            y = g.activated(y, f"{at}.depthwise", function)
            # Gates are near one half: the projection makes up for it.
            gain = 1.0
            if size.squeeze:
                squeezed = max(1, channels // size.squeeze)
                s = g.node("GlobalAveragePool", [y], f"{at}.gate/GlobalAveragePool")
                s = g.convolution(s, f"{at}.gate.reduce", inner, squeezed, behind=function, has_bias=True)
                s = g.activated(s, f"{at}.gate", "Silu")
                s = g.convolution(s, f"{at}.gate.expand", squeezed, inner, behind="Silu", has_bias=True)
                y = g.node("Mul", [y, g.node("Sigmoid", [s], f"{at}.gate/Sigmoid_1")], f"{at}.gate/Mul_1")
                gain = 2.0
            is_residual = stride == 1 and channels == outputs
            y = g.normalised(y, f"{at}.project", inner, outputs, behind=function, gain=gain * (0.5 if is_residual else 1.0))
            x = g.node("Add", [x, y], f"{at}/Add") if is_residual else y
            channels, behind = outputs, None
    x = g.activated(g.normalised(x, "last", channels, size.head, behind=behind), "last", function)
    return g.classified(x, size.head, size, None)
