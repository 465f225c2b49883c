"""A small convolutional classifier of drawn shapes: circle, square, triangle, cross, star."""

import numpy as np

from . import onnx_files as onnx_out
from . import tape

CLASSES = ("circle", "square", "triangle", "cross", "star")
SIZE = 32
# (kind, input channels, output channels, stride) of the depthwise-separable blocks after the stem;
# "residual" adds the block's input to its output.
BLOCKS = (("plain", 16, 32, 2), ("plain", 32, 64, 1), ("residual", 64, 64, 1), ("plain", 64, 160, 2))
STEM_CHANNELS = 16
EPSILON = 1e-5
PIXEL_MEAN = np.array([0.48, 0.50, 0.52], np.float32)
PIXEL_DEVIATION = np.array([0.27, 0.26, 0.25], np.float32)


def draw(random, count):
    """`count` images (count, 32, 32, 3) in 0..1 and their classes: one shape each, lighter than its ground, of any size,
    place and angle."""
    labels = random.integers(0, len(CLASSES), count)

    def column(low, high):
        return random.uniform(low, high, (count, 1, 1))

    radius = column(7, 12)
    row, col = np.mgrid[0:SIZE, 0:SIZE] + 0.5
    x = col - column(12, 20)
    y = row - column(12, 20)
    angle = column(0, 2 * np.pi)
    x, y = x * np.cos(angle) - y * np.sin(angle), x * np.sin(angle) + y * np.cos(angle)
    inside = np.select([(labels == k)[:, None, None] for k in range(len(CLASSES))],
                       [distance_inside(k, x, y, radius) for k in range(len(CLASSES))])
    cover = np.clip(inside + 0.5, 0, 1)[..., None]

    ground = random.uniform(0.1, 0.5, (count, 1, 1, 3))
    slope = random.uniform(-0.2, 0.2, (2, count, 1, 1, 3))
    colour = ground + random.uniform(0.15, 0.5, (count, 1, 1, 3))
    ground = ground + slope[0] * (row / SIZE - 0.5)[..., None] + slope[1] * (col / SIZE - 0.5)[..., None]
    noise = random.normal(0, 1, (count, SIZE, SIZE, 3)) * column(0.01, 0.12)[..., None]
    images = np.clip(ground * (1 - cover) + colour * cover + noise, 0, 1)
    return images.astype(np.float32), labels


def distance_inside(kind, x, y, radius):
    """About how many pixels (x, y) is inside the outline of a shape of circumscribed radius `radius`."""
    r = np.hypot(x, y)
    theta = np.arctan2(y, x)
    if kind == 0:
        return 0.85 * radius - r
    if kind in (1, 2):
        sides = 4 if kind == 1 else 3
        wedge = 2 * np.pi / sides
        return radius * np.cos(wedge / 2) - r * np.cos(theta % wedge - wedge / 2)
    if kind == 3:
        arm = 0.3 * radius
        return np.maximum(np.minimum(radius - np.abs(x), arm - np.abs(y)),
                          np.minimum(radius - np.abs(y), arm - np.abs(x)))
    # A star's outline from a tip at angle 0 to a notch at angle 36 degrees is a straight line; fold the rest onto it.
    wedge = 2 * np.pi / 5
    folded = np.abs((theta + wedge / 2) % wedge - wedge / 2)
    tip = np.array([1.0, 0.0])
    notch = 0.42 * np.array([np.cos(wedge / 2), np.sin(wedge / 2)])
    normal = np.array([notch[1] - tip[1], tip[0] - notch[0]])
    normal /= np.hypot(*normal)
    return radius * (tip @ normal) - r * (np.cos(folded) * normal[0] + np.sin(folded) * normal[1])


def layers():
    """(name, kind, weight shape, stride) of the convolutions in order; each is followed by a batch normalisation."""
    table = [("stem", "full", (3, 3, 3, STEM_CHANNELS), 2)]
    for index, (_, inputs, outputs, stride) in enumerate(BLOCKS):
        table.append((f"block{index}.depthwise", "depthwise", (3, 3, inputs), stride))
        table.append((f"block{index}.pointwise", "pointwise", (inputs, outputs), 1))
    return table


class Network:
    """Parameters, running statistics and the forward pass."""

    def __init__(self, random):
        self.parameters = {}
        self.running = {}
        for name, kind, shape, _ in layers():
            fan_in = 9 if kind == "depthwise" else np.prod(shape[:-1])
            self.parameters[name + ".weight"] = random.normal(0, np.sqrt(2 / fan_in), shape)
            self.parameters[name + ".scale"] = np.ones(shape[-1])
            self.parameters[name + ".bias"] = np.zeros(shape[-1])
            self.running[name] = (np.zeros(shape[-1], np.float32), np.ones(shape[-1], np.float32))
        width = BLOCKS[-1][2]
        self.parameters["head.weight"] = random.normal(0, np.sqrt(1 / width), (width, len(CLASSES)))
        self.parameters["head.bias"] = np.zeros(len(CLASSES))
        self.parameters = {k: tape.Tensor(v.astype(np.float32)) for k, v in self.parameters.items()}

    def convolve(self, x, name, kind, stride, training):
        """Convolution and batch normalisation; in training the running statistics follow the batch's."""
        weight = self.parameters[name + ".weight"]
        if kind == "full":
            x = tape.convolution(x, weight, stride)
        elif kind == "depthwise":
            x = tape.depthwise_convolution(x, weight, stride)
        else:
            x = x @ weight
        if training:
            x = tape.normalise(x, (0, 1, 2), EPSILON)
            self.running[name] = tuple((0.95 * old + 0.05 * new.ravel()).astype(np.float32)
                                       for old, new in zip(self.running[name], x.statistics))
        else:
            x = tape.normalise(x, (0, 1, 2), EPSILON, tuple(v.astype(x.value.dtype) for v in self.running[name]))
        return x * self.parameters[name + ".scale"] + self.parameters[name + ".bias"]

    def logits(self, images, training=False):
        x = tape.constant((images - PIXEL_MEAN.astype(images.dtype)) / PIXEL_DEVIATION.astype(images.dtype))
        table = layers()
        x = tape.relu(self.convolve(x, table[0][0], table[0][1], table[0][3], training))
        for index, (kind, *_) in enumerate(BLOCKS):
            depthwise, pointwise = table[1 + 2 * index:3 + 2 * index]
            y = tape.relu(self.convolve(x, depthwise[0], depthwise[1], depthwise[3], training))
            y = self.convolve(y, pointwise[0], pointwise[1], pointwise[3], training)
            x = tape.relu(x + y if kind == "residual" else y)
        return tape.mean(x, (1, 2)) @ self.parameters["head.weight"] + self.parameters["head.bias"]

    def probabilities64(self, images):
        """The forward pass in float64 with the float32 weights: what a perfect runtime would answer."""
        return tape.softmax(tape.in_float64(self).logits(images.astype(np.float64))).value


def turned(random, images):
    """The images mirrored and transposed at random: a drawn shape stays what it is."""
    if random.integers(2):
        images = images[:, ::-1]
    if random.integers(2):
        images = images[:, :, ::-1]
    return images.transpose(0, 2, 1, 3) if random.integers(2) else images


def accuracy(network, images, labels):
    hits = [network.logits(images[i:i + 250]).value.argmax(-1) == labels[i:i + 250] for i in range(0, len(images), 250)]
    return float(np.concatenate(hits).mean())


def train(steps=500, batch=64):
    """The trained network; prints its accuracy on images that it has not seen."""
    random = np.random.default_rng(20)
    network = Network(random)
    pool, pool_labels = draw(random, 8000)
    optimiser = tape.Adam(network.parameters, 2e-2, steps, clip=5.0)
    for step in range(steps):
        chosen = random.integers(0, len(pool), batch)
        images = turned(random, pool[chosen])
        loss = tape.cross_entropy(network.logits(images, training=True), pool_labels[chosen])
        tape.backward(loss)
        optimiser.step()
        if step % 50 == 0:
            print(f"  step {step:4d} loss {float(loss.value):.4f}", flush=True)
    score = accuracy(network, *draw(np.random.default_rng(21), 2000))
    print(f"  held-out accuracy {score:.4f} on 2000 images")
    if score < 0.97:
        raise SystemExit("shapes_classifier: training did not reach 97 %")
    return network


def channels_first(kind, weight):
    """A weight in ONNX's order (outputs, inputs / groups, height, width)."""
    if kind == "full":
        return weight.transpose(3, 2, 0, 1)
    if kind == "depthwise":
        return weight.transpose(2, 0, 1)[:, None]
    return weight.T[:, :, None, None]


def graph(network):
    """The network as ONNX, batch normalisations left for the compiler to fold."""
    writer = onnx_out.GraphWriter("shapes_classifier")
    weights = {name: p.value for name, p in network.parameters.items()}

    def convolve(x, name, kind, shape, stride):
        weight = channels_first(kind, weights[name + ".weight"])
        x = writer.node("Conv", [x, writer.constant(name + ".weight", weight)], name, strides=[stride, stride],
                        kernel_shape=weight.shape[2:], pads=[0 if kind == "pointwise" else 1] * 4,
                        group=shape[-1] if kind == "depthwise" else 1)
        mean, variance = network.running[name]
        operands = [writer.constant(f"{name}.norm.{key}", value)
                    for key, value in (("scale", weights[name + ".scale"]), ("bias", weights[name + ".bias"]),
                                       ("mean", mean), ("variance", variance))]
        return writer.node("BatchNormalization", [x] + operands, name + ".norm", epsilon=EPSILON)

    x = writer.input("image", np.float32, (1, 3, SIZE, SIZE))
    x = writer.node("Sub", [x, writer.constant("pixel.mean", PIXEL_MEAN.reshape(1, 3, 1, 1))], "pixel.centred")
    x = writer.node("Div", [x, writer.constant("pixel.deviation", PIXEL_DEVIATION.reshape(1, 3, 1, 1))], "pixel.scaled")
    table = layers()
    x = writer.node("Relu", [convolve(x, *table[0])], "stem.relu")
    for index, (kind, *_) in enumerate(BLOCKS):
        depthwise, pointwise = table[1 + 2 * index:3 + 2 * index]
        y = writer.node("Relu", [convolve(x, *depthwise)], depthwise[0] + ".relu")
        y = convolve(y, *pointwise)
        if kind == "residual":
            y = writer.node("Add", [x, y], f"block{index}.sum")
        x = writer.node("Relu", [y], f"block{index}.relu")
    x = writer.node("GlobalAveragePool", [x], "pool")
    x = writer.node("Flatten", [x], "features", axis=1)
    x = writer.node("Gemm", [x, writer.constant("head.weight", weights["head.weight"].T),
                             writer.constant("head.bias", weights["head.bias"])], "head", transB=1)
    x = writer.node("Softmax", [x], "probabilities", axis=1)
    writer.output(x, np.float32, (1, len(CLASSES)))
    return writer.model()


def test_sets(network):
    """The closest call of each class among held-out images, with the probabilities computed in float64."""
    images, labels = draw(np.random.default_rng(22), 200)
    probabilities = network.probabilities64(images)
    for chosen in onnx_out.closest_calls(probabilities, labels):
        yield ([("image", images[[chosen]].transpose(0, 3, 1, 2))],
               [("probabilities", probabilities[[chosen]].astype(np.float32))])


def make(folder):
    network = train()
    onnx_out.save(folder, graph(network), test_sets(network))
