"""ONNX files byte by byte, after onnx.proto: names may be anything, and no onnx package is needed.

Field numbers are those of https://github.com/onnx/onnx/blob/main/onnx/onnx.proto. A name is str or bytes.
"""

import struct

FLOAT, INT64, BOOL = 1, 7, 9
FORMATS = {FLOAT: "f", INT64: "q", BOOL: "?"}


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field, value):
    return varint(field << 3) + varint(value)


def block(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def blocks(field, contents):
    return b"".join(block(field, content) for content in contents)


def tensor(name, element, dims, values):
    raw = struct.pack(f"<{len(values)}{FORMATS[element]}", *values)
    return b"".join(number(1, dim) for dim in dims) + number(2, element) + block(8, name) + block(9, raw)


def value_info(name, element, dims):
    """A dimension is a size, or a name."""
    shape = blocks(1, [block(2, dim) if isinstance(dim, (str, bytes)) else number(1, dim) for dim in dims])
    return block(1, name) + block(2, block(1, number(1, element) + block(2, shape)))


def attribute(name, value):
    if isinstance(value, int):
        return block(1, name) + number(3, value) + number(20, 2)
    if isinstance(value, float):
        return block(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, (str, bytes)):
        return block(1, name) + block(4, value) + number(20, 3)
    if isinstance(value, Graph):
        return block(1, name) + block(6, value.content()) + number(20, 5)
    return block(1, name) + b"".join(number(8, item) for item in value) + number(20, 7)


class Graph:
    def __init__(self, name="graph"):
        self.name = name
        self.nodes, self.constants, self.inputs, self.outputs, self.infos = [], [], [], [], []

    def node(self, operator, inputs, outputs, name="", domain="", documentation="", **attributes):
        self.nodes.append(b"".join([
            blocks(1, inputs), blocks(2, outputs), block(3, name), block(4, operator),
            blocks(5, [attribute(key, value) for key, value in attributes.items()]),
            block(6, documentation), block(7, domain)
        ]))

    def constant(self, name, element, dims, values):
        self.constants.append(tensor(name, element, dims, values))
        return name

    def input(self, name, element, dims):
        self.inputs.append(value_info(name, element, dims))
        return name

    def output(self, name, element, dims):
        self.outputs.append(value_info(name, element, dims))

    def content(self):
        return b"".join([blocks(1, self.nodes), block(2, self.name), blocks(5, self.constants),
                         blocks(11, self.inputs), blocks(12, self.outputs), blocks(13, self.infos)])

    def model(self, opsets=(("", 17),), producer="test", documentation="", functions=()):
        return b"".join([number(1, 8), block(2, producer), block(3, producer), block(6, documentation),
                         block(7, self.content()), blocks(8, imports(opsets)), blocks(25, functions)])

    def function(self, name, inputs, outputs, domain, opsets=(("", 17),)):
        """The nodes as the body of a function."""
        return b"".join([block(1, name), blocks(4, inputs), blocks(5, outputs), blocks(7, self.nodes),
                         blocks(9, imports(opsets)), block(10, domain)])


def imports(opsets):
    return [block(1, domain) + number(2, version) for domain, version in opsets]


def fields(data):
    """(field number, value) of a message: an int for numbers, bytes for the rest."""
    at = 0

    def read_varint():
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = read_varint()
        kind = key & 7
        if kind == 0:
            yield key >> 3, read_varint()
            continue
        size = {1: 8, 5: 4}.get(kind)
        size = read_varint() if size is None else size
        yield key >> 3, data[at:at + size]
        at += size


def pick(data, field):
    return [value for number_, value in fields(data) if number_ == field]


def input_names(model):
    """Names of the graph's inputs that are no initialisers, in order."""
    graph = pick(model, 7)[0]
    constants = {pick(constant, 8)[0] for constant in pick(graph, 5) if pick(constant, 8)}
    names = [pick(info, 1)[0] for info in pick(graph, 11)]
    return [name.decode() for name in names if name not in constants]


def tensor_dims(data):
    dims = []
    for value in pick(data, 1):
        dims += [value] if isinstance(value, int) else unpacked(value)
    return dims


def unpacked(data):
    values, value, shift = [], 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value, shift = 0, 0
    return values


def shape_flags(folder):
    """`--shape` for every input of FOLDER/model.onnx, as in its first test data set."""
    names = input_names((folder / "model.onnx").read_bytes())
    flags = []
    for index, name in enumerate(names):
        path = folder / "test_data_set_0" / f"input_{index}.pb"
        if not path.exists():
            break
        dims = tensor_dims(path.read_bytes())
        flags += ["--shape", f"{name}:{'x'.join(map(str, dims))}"]
    return flags
