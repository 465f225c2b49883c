"""Inputs, outputs and states as numpy sees them: types, packed elements, what is taken for an array."""

from __future__ import annotations

import dataclasses
from typing import Any, Mapping, Sequence

import numpy

# Bits of elements that share bytes.
PACKED_BITS = {"int4": 4, "uint4": 4, "float4e2m1": 4, "int2": 2, "uint2": 2}
# What numpy has in place of an element that it lacks.
NUMPY_TYPES = {"bfloat16": "float32", "int4": "int8", "int2": "int8", "uint4": "uint8", "uint2": "uint8"}
# The number by which DLPack names memory that this processor reads: of the host, page-locked by CUDA or ROCm.
HOST_DEVICES = (1, 3, 11)


class InputError(ValueError):
    """An array that a model does not take: its name, its type, its shape, or that it is missing."""


@dataclasses.dataclass(frozen=True)
class Port:
    """An input or an output. `element` is ONNX's name, such as float32; bfloat16 is float32 in numpy, integers of 4
    and 2 bits are bytes, and of floats of 8 and 4 bits the arrays have the codes, a byte each."""

    name: str
    element: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> numpy.dtype[Any]:
        if self.element.startswith(("float8", "float4")):
            return numpy.dtype("uint8")
        return numpy.dtype(NUMPY_TYPES.get(self.element, self.element))

    @property
    def stored(self) -> numpy.dtype[Any]:
        """The type of the elements in memory; bytes where several share one."""
        if self.element == "bfloat16":
            return numpy.dtype("uint16")
        return numpy.dtype("uint8") if self.element in PACKED_BITS else self.dtype

    @property
    def is_converted(self) -> bool:
        """Whether memory holds something else than arrays do."""
        return self.element == "bfloat16" or self.element in PACKED_BITS

    def stored_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the array that lies in memory."""
        if self.element not in PACKED_BITS:
            return shape
        count = 1
        for size in shape:
            count *= size
        return ((count * PACKED_BITS[self.element] + 7) // 8,)

    def packed(self, array: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
        """What lies in memory for an array of `dtype`."""
        if self.element == "bfloat16":
            words = numpy.ascontiguousarray(array, "float32").view("uint32")
            rounded = (words + numpy.uint32(0x7FFF) + ((words >> 16) & 1)) >> 16
            made: Any = numpy.where(numpy.isnan(array), (words >> 16) | 0x40, rounded)
            return numpy.asarray(made.reshape(array.shape), "uint16")
        bits = PACKED_BITS[self.element]
        values = array.astype("uint8", copy=False).ravel() & ((1 << bits) - 1)
        room = numpy.zeros(self.stored_shape(array.shape)[0] * (8 // bits), "uint8")
        room[:values.size] = values
        parts: Any = room.reshape(-1, 8 // bits) << numpy.arange(0, 8, bits, dtype="uint8")
        return numpy.asarray(parts.sum(axis=1), "uint8")

    def unpacked(self, stored: numpy.ndarray[Any, Any], shape: tuple[int, ...]) -> numpy.ndarray[Any, Any]:
        """The array of `dtype` for what lies in memory."""
        if self.element == "bfloat16":
            return (stored.astype("uint32") << 16).view("float32").reshape(shape)
        bits, count = PACKED_BITS[self.element], int(numpy.prod(shape))
        values = (stored[:, None] >> numpy.arange(0, 8, bits, dtype="uint8")) & ((1 << bits) - 1)
        flat = values.ravel()[:count].astype("int16")
        if self.element.startswith("int"):
            flat = (flat ^ (1 << (bits - 1))) - (1 << (bits - 1))
        return flat.astype(self.dtype).reshape(shape)


def as_array(value: Any, port: Port) -> numpy.ndarray[Any, Any]:
    """An array of the port's type, dense in C's order. It is `value` itself where that is one, and the same memory where
    it is a tensor in memory of the host that tells of itself by DLPack, such as PyTorch's. Raises InputError."""
    if not isinstance(value, numpy.ndarray):
        value = _from_outside(value, port)
    if value.dtype.name == "bfloat16":  # ml_dtypes
        value = value.astype("float32")
    if value.dtype == "uint16" and port.element == "bfloat16":  # its bits, as ONNX's older helpers have them
        value = (value.astype("uint32") << 16).view("float32")
    if value.dtype != port.dtype and not numpy.can_cast(value.dtype, port.dtype, "same_kind"):
        raise InputError(f"input '{port.name}' is {port.element}, the array {value.dtype}")
    return numpy.require(value, port.dtype, ["C", "A"])


def _from_outside(value: Any, port: Port) -> numpy.ndarray[Any, Any]:
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        kind = int(value.__dlpack_device__()[0])
        if kind not in HOST_DEVICES:
            raise InputError(f"input '{port.name}' lies in memory of a device (DLPack's number {kind}), which this program "
                             "does not read; copy it to the host first")
        try:
            return numpy.from_dlpack(value)
        except (BufferError, TypeError, AttributeError, RuntimeError):
            pass  # a type that numpy lacks, or one that numpy takes by itself
    if getattr(value, "requires_grad", False):
        value = value.detach()
    try:
        return numpy.asarray(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InputError(f"input '{port.name}' cannot be made an array: {error}") from None


def in_order(names: Sequence[str], arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
    """One for each input, of arrays in order and arrays by name; one dictionary may stand for all. Raises InputError."""
    if len(arrays) == 1 and isinstance(arrays[0], Mapping):
        named, arrays = {**arrays[0], **named}, ()
    if len(arrays) > len(names):
        raise InputError(f"{len(arrays)} arrays for {len(names)} inputs: {', '.join(names) or 'none'}")
    values = dict(zip(names, arrays))
    for name, array in named.items():
        if name not in names:
            raise InputError(f"no input is called '{name}'; there are {', '.join(names) or 'none'}")
        if name in values:
            raise InputError(f"input '{name}' is given twice")
        values[name] = array
    missing = [name for name in names if name not in values]
    if missing:
        raise InputError(f"no array for {', '.join(missing)}")
    return [values[name] for name in names]
