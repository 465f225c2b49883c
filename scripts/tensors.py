#!/usr/bin/env python3
"""Converts and prints tensor files with the standard library alone.

    scripts/tensors.py convert INPUT.pb OUTPUT.npy     an ONNX TensorProto (test_data_set_K/input_0.pb) for a runner
    scripts/tensors.py print FILE [--labels A,B,..]    the values of a .npy or .pb file, largest first with labels
    scripts/tensors.py picture FILE                    a float [1, 3, H, W] image in 0..1, as text

Sources: github.com/onnx/onnx/blob/main/onnx/onnx.proto (TensorProto), numpy.org/neps/nep-0001-npy-format.html.
Exit: 0 done, 1 the file is not what it should be, 2 usage.
"""

import argparse
import ast
import math
import struct
import sys

# TensorProto.DataType -> NumPy's name, letter of struct.
ELEMENTS = {
    1: ("<f4", "f"), 2: ("|u1", "B"), 3: ("|i1", "b"), 4: ("<u2", "H"), 5: ("<i2", "h"), 6: ("<i4", "i"),
    7: ("<i8", "q"), 9: ("|b1", "?"), 10: ("<f2", "e"), 11: ("<f8", "d"), 12: ("<u4", "I"), 13: ("<u8", "Q"),
}


def varint(data, position):
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, position


def read_pb(data):
    """(dims, NumPy's name of the element type, bytes) of a TensorProto with raw_data."""
    dims, kind, raw, position = [], None, None, 0
    while position < len(data):
        key, position = varint(data, position)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, position = varint(data, position)
        elif wire == 2:
            length, position = varint(data, position)
            value, position = data[position:position + length], position + length
            if len(value) != length:
                raise ValueError("the file ends too early")
        else:
            raise ValueError(f"field {field} has wire type {wire}")
        if field == 1 and wire == 0:
            dims.append(value)
        elif field == 1:
            at = 0
            while at < len(value):
                dim, at = varint(value, at)
                dims.append(dim)
        elif field == 2:
            kind = value
        elif field == 9:
            raw = value
        elif field in (4, 5, 6, 7, 10, 11, 13):
            raise ValueError("the values are not in raw_data")
    if kind not in ELEMENTS:
        raise ValueError(f"element type {kind}")
    name, letter = ELEMENTS[kind]
    raw = raw or b""
    if len(raw) != math.prod(dims) * struct.calcsize(letter):
        raise ValueError(f"{len(raw)} bytes for dimensions {dims}")
    return dims, name, raw


def read_npy(data):
    if data[:6] != b"\x93NUMPY":
        raise ValueError("not a .npy file")
    size = struct.unpack("<H", data[8:10])[0] if data[6] == 1 else struct.unpack("<I", data[8:12])[0]
    start = 10 if data[6] == 1 else 12
    header = ast.literal_eval(data[start:start + size].decode("latin1"))
    if header["fortran_order"] and len(header["shape"]) > 1:
        raise ValueError("Fortran order")
    return list(header["shape"]), header["descr"], data[start + size:]


def write_npy(path, dims, name, raw):
    shape = "(" + "".join(f"{dim}, " for dim in dims).rstrip(" ") + ")"
    header = f"{{'descr': '{name}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode("latin1") + raw)


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return read_npy(data) if data[:1] == b"\x93" else read_pb(data)


def values_of(name, raw):
    letter = next(letter for known, letter in ELEMENTS.values() if known == name)
    return struct.unpack(f"<{len(raw) // struct.calcsize(letter)}{letter}", raw)


def print_values(path, labels):
    dims, name, raw = read(path)
    values = values_of(name, raw)
    if not labels:
        print(f"{name} {dims}: " + " ".join(f"{value:.6g}" for value in values))
        return
    if len(labels) != len(values):
        raise ValueError(f"{len(labels)} labels for {len(values)} values")
    for value, label in sorted(zip(values, labels), reverse=True):
        print(f"  {label:<12} {value:8.4f}  {'#' * round(40 * value)}")


def print_picture(path):
    dims, name, raw = read(path)
    if len(dims) != 4 or dims[0] != 1 or dims[1] != 3 or name != "<f4":
        raise ValueError(f"not a picture: {name} {dims}")
    values, (height, width) = values_of(name, raw), dims[2:]
    plane = height * width
    grey = [sum(values[c * plane + i] for c in range(3)) / 3 for i in range(plane)]
    low, high = min(grey), max(grey)
    shades = " .:-=+*#%@"
    # Two rows in one line: characters are about twice as high as wide.
    for y in range(0, height - 1, 2):
        row = [(grey[y * width + x] + grey[(y + 1) * width + x]) / 2 for x in range(width)]
        print("  " + "".join(shades[int((g - low) / (high - low + 1e-9) * (len(shades) - 1) + 0.5)] for g in row))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    convert = commands.add_parser("convert")
    convert.add_argument("input")
    convert.add_argument("output")
    show = commands.add_parser("print")
    show.add_argument("input")
    show.add_argument("--labels", type=lambda text: text.split(","), default=[])
    commands.add_parser("picture").add_argument("input")
    arguments = parser.parse_args()
    try:
        if arguments.command == "convert":
            write_npy(arguments.output, *read(arguments.input))
        elif arguments.command == "print":
            print_values(arguments.input, arguments.labels)
        else:
            print_picture(arguments.input)
    except (ValueError, IndexError, struct.error, OSError) as error:
        sys.exit(f"tensors: {arguments.input}: {error}")


if __name__ == "__main__":
    main()
