"""Models in ONNX text, for tests of emitted projects."""

import math


class Model:
    """A model in ONNX text whose constants are a function of their position."""

    def __init__(self, opset=17):
        self.opset, self.state, self.domains = opset, 1, ""
        self.inputs, self.outputs, self.constants, self.nodes = [], [], [], []

    def constant(self, name, element, shape):
        count, values = 1, []
        for dim in shape:
            count *= dim
        for _ in range(count):
            self.state = (self.state * 1103515245 + 12345) % 2**31
            values.append(round((self.state / 2**31 - 0.5) * 2, 4))
        self.constants.append(f"{element}[{','.join(map(str, shape))}] {name} = {{{', '.join(map(str, values))}}}")
        return name

    def integers(self, name, element, shape, low, high):
        values = []
        for _ in range(math.prod(shape)):
            self.state = (self.state * 1103515245 + 12345) % 2**31
            values.append(low + self.state // 65536 % (high - low + 1))
        self.constants.append(f"{element}[{','.join(map(str, shape))}] {name} = {{{', '.join(map(str, values))}}}")
        return name

    def text(self):
        return (f'<ir_version: 8, opset_import: ["" : {self.opset}{self.domains}]>\n'
                f"g ({', '.join(self.inputs)}) => ({', '.join(self.outputs)})\n<{', '.join(self.constants)}>\n{{\n"
                + "\n".join(self.nodes) + "\n}\n")
