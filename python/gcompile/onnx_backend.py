"""ONNX's own backend interface, onnx.backend.base.Backend, for its test runner and for whoever calls backends by it.

    import gcompile.onnx_backend as backend
    outputs = backend.run_model(model, [x])

Needs the package onnx.
"""

from __future__ import annotations

from typing import Any, Sequence

import numpy
from onnx import TensorProto, helper
from onnx.backend.base import Backend, BackendRep, namedtupledict

from . import project, tool
from .load import load
from .session import Specialisations

try:
    from onnx.helper import np_dtype_to_tensor_dtype as _number_of_type
except ImportError:  # before ONNX 1.13
    from onnx.mapping import NP_TYPE_TO_TENSOR_TYPE

    def _number_of_type(dtype: numpy.dtype[Any]) -> int:
        return int(NP_TYPE_TO_TENSOR_TYPE[dtype])

# How the tool says that it wants the value of an input, not its shape alone.
WANTS_VALUES = ("must be known at compile time", "must be constants", "must be a constant")


class Representation(BackendRep):  # type: ignore[misc]
    """A model that was prepared. It is compiled when a run tells the shapes of its inputs; where it cannot do without the
    values of some, these are compiled in, and other values are another program."""

    def __init__(self, model: Any, **words: Any):
        self._model, self._words = model, words
        self._shapes = Specialisations(model, at_once=False, **words)
        self._tuple = namedtupledict("Outputs", [port.name for port in self._shapes.outputs])

    def run(self, inputs: Any, **_: Any) -> tuple[Any, ...]:
        """Outputs for the inputs, in the order of the model or by name; the values have names, too."""
        ports = self._shapes.inputs
        if isinstance(inputs, dict):
            inputs = [inputs.get(port.name) for port in ports]
        values = [_plain(value) for value in inputs] + [None] * (len(ports) - len(inputs))
        try:
            found = self._shapes.run(values)
        except tool.GcompileError as error:
            if not any(text in str(error) for text in WANTS_VALUES):
                raise
            found = self._with_values(values, error)
        return self._tuple(*[found[port.name] for port in self._shapes.outputs])  # type: ignore[no-any-return]

    def _with_values(self, values: Sequence[Any], error: tool.GcompileError) -> Any:
        """Integers first, then all, tensors of sequences among them."""
        for kinds in ("iub", "iubf"):
            known = [value is not None and (kinds == "iubf" if isinstance(value, (list, tuple))
                                            else numpy.asarray(value).dtype.kind in kinds) for value in values]
            try:
                return self._run_with(values, known)
            except tool.GcompileError as other:
                if not any(text in str(other) for text in WANTS_VALUES):
                    raise
        raise error

    def _run_with(self, values: Sequence[Any], known: Sequence[bool]) -> Any:
        ports = self._shapes.inputs
        options = list(self._words.get("options", ()))
        for port, value in zip(ports, values):
            options += Specialisations._sizes(port, value)
        sets = {}
        for port, value, is_known in zip(ports, values, known):
            if is_known:
                sets.update({f"{port.prefix}{place}": each for place, each in enumerate(value)} if port.prefix else {port.name: value})
        words = {name: value for name, value in self._words.items() if name != "options"}
        model = load(self._model, sets=sets, options=options, **words)
        flat = [array for port, value, is_known in zip(ports, values, known) if not is_known and value is not None
                for array in (value if port.prefix else [value])]
        found = model.run(flat)
        return {port.name: Specialisations._gathered(port, found) for port in self._shapes.outputs}


def _plain(value: Any) -> Any:
    """The value of an optional, which older helpers of ONNX read as an array of one object."""
    return value.item() if isinstance(value, numpy.ndarray) and value.dtype == object and value.shape == () else value


class GcompileBackend(Backend):  # type: ignore[misc]
    """`words` are those of gcompile.load: threads, options, variables."""

    @classmethod
    def is_compatible(cls, model: Any, device: str = "CPU", **words: Any) -> bool:
        """Whether the model can be compiled, whatever its open sizes may turn out to be."""
        if not cls.supports_device(device):
            return False
        try:
            project.check(model)
        except tool.GcompileError as error:
            return all(each["code"] == "E0401" for each in error.errors) and bool(error.errors)
        return True

    @classmethod
    def prepare(cls, model: Any, device: str = "CPU", **words: Any) -> Representation:
        if not cls.supports_device(device):
            raise ValueError(f"gcompile's backend runs on the CPU, not on '{device}'")
        return Representation(model, **words)

    @classmethod
    def run_model(cls, model: Any, inputs: Any, device: str = "CPU", **words: Any) -> tuple[Any, ...]:
        return cls.prepare(model, device, **words).run(inputs)

    @classmethod
    def run_node(cls, node: Any, inputs: Any, device: str = "CPU",
                 outputs_info: Sequence[tuple[Any, tuple[int, ...]]] | None = None, **words: Any) -> tuple[Any, ...]:
        """One node, on inputs in its order; `opset_version` is that of ONNX's own domain."""
        given = [name for name in node.input if name]
        arrays = [numpy.asarray(array) for array in inputs]
        types = [helper.make_tensor_value_info(name, _number_of_type(array.dtype), array.shape) for name, array in zip(given, arrays)]
        infos: list[Any] = list(outputs_info or []) or [(None, None)] * len(node.output)
        results = [helper.make_tensor_value_info(name, TensorProto.UNDEFINED if kind is None else _number_of_type(numpy.dtype(kind)),
                                                 shape) for name, (kind, shape) in zip(node.output, infos) if name]
        opset = words.pop("opset_version", None)
        imports = [helper.make_opsetid(node.domain, opset)] if opset else None
        model = helper.make_model(helper.make_graph([node], "node", types, results), opset_imports=imports)
        return cls.run_model(model, arrays, device, **words)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device.partition(":")[0] == "CPU"


is_compatible = GcompileBackend.is_compatible
prepare = GcompileBackend.prepare
run_model = GcompileBackend.run_model
run_node = GcompileBackend.run_node
supports_device = GcompileBackend.supports_device
