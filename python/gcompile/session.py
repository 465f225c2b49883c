"""ONNX Runtime's calls, answered by compiled projects.

    session = gcompile.InferenceSession("model.onnx")
    outputs = session.run(None, {"image": image})

What has no meaning here is refused by a sentence, or, where it only asks for speed, taken and left alone.
"""

from __future__ import annotations

import collections
import ctypes
import dataclasses
import os
import threading
import warnings
from typing import Any, Mapping, Sequence

import numpy

from . import project, tool
from .load import load
from .model import Model
from .ports import InputError, Port
from .project import ModelSource, Sizes

# ONNX Runtime's names of element types, where they are not ONNX's own.
TYPE_NAMES = {"float32": "float", "float64": "double"}
# How many specialisations a session of a model with open sizes keeps; more lie in the cache.
MOST_MODELS = 64


@dataclasses.dataclass(frozen=True)
class NodeArg:
    """An input or an output: `type` as in "tensor(float)"; in `shape` open sizes are names, or None."""

    name: str
    type: str
    shape: list[Any]


@dataclasses.dataclass(frozen=True)
class ModelMetadata:
    """What a model says of itself."""

    producer_name: str
    graph_name: str
    domain: str
    description: str
    graph_description: str
    version: int
    custom_metadata_map: dict[str, str]


class SessionOptions:
    """Threads, and sizes that become fixed; what else ONNX Runtime has here may be set and changes nothing."""

    def __init__(self) -> None:
        self.intra_op_num_threads = 0  # 0: all processors
        self.dims: dict[str, int] = {}
        for name in ("inter_op_num_threads", "log_severity_level", "log_verbosity_level"):
            setattr(self, name, 0)
        for name in ("enable_cpu_mem_arena", "enable_mem_pattern", "enable_mem_reuse", "use_deterministic_compute"):
            setattr(self, name, True)
        self.enable_profiling = False
        self.logid = ""
        self.execution_mode = self.execution_order = self.graph_optimization_level = None

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """That size is a number from now on."""
        self.dims[name] = int(size)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Changes nothing."""

    def register_custom_ops_library(self, path: str) -> None:
        """Refused: operators of other libraries are not compiled."""
        raise NotImplementedError(f"'{path}': gcompile compiles no operators of other libraries; `gcompile ops` lists those "
                                  "that there are")


class OrtValue:
    """An array, as ONNX Runtime hands it over."""

    def __init__(self, array: numpy.ndarray[Any, Any]):
        self._array = array

    @staticmethod
    def ortvalue_from_numpy(array: numpy.ndarray[Any, Any], device_type: str = "cpu", device_id: int = 0) -> OrtValue:
        _expect_host(device_type)
        return OrtValue(array)

    @staticmethod
    def ortvalue_from_shape_and_type(shape: Sequence[int], element_type: Any, device_type: str = "cpu",
                                     device_id: int = 0) -> OrtValue:
        _expect_host(device_type)
        return OrtValue(numpy.empty(shape, element_type))

    def numpy(self) -> numpy.ndarray[Any, Any]:
        return self._array

    def shape(self) -> list[int]:
        return list(self._array.shape)

    def data_type(self) -> str:
        return f"tensor({TYPE_NAMES.get(self._array.dtype.name, self._array.dtype.name)})"

    def element_type(self) -> str:
        return str(self._array.dtype.name)

    def device_name(self) -> str:
        return "cpu"

    def data_ptr(self) -> int:
        return self._array.ctypes.data

    def is_tensor(self) -> bool:
        return True

    def has_value(self) -> bool:
        return True

    def __dlpack__(self, **words: Any) -> Any:
        return self._array.__dlpack__(**words)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


def _expect_host(device_type: str) -> None:
    if device_type not in ("cpu", "cuda_pinned"):
        raise ValueError(f"a session runs on the CPU, and takes no memory of '{device_type}'")


class IOBinding:
    """Inputs and outputs that stay from run to run."""

    def __init__(self, session: InferenceSession):
        self._session = session
        self.inputs: dict[str, Any] = {}
        self.outputs: dict[str, Any] = {}  # None: a new array
        self.results: list[Any] = []

    def bind_cpu_input(self, name: str, array: Any) -> None:
        self.inputs[name] = array

    def bind_input(self, name: str, device_type: str, device_id: int, element_type: Any, shape: Sequence[int],
                   buffer_ptr: int) -> None:
        _expect_host(device_type)
        self.inputs[name] = _at(buffer_ptr, element_type, shape)

    def bind_ortvalue_input(self, name: str, value: Any) -> None:
        self.inputs[name] = value.numpy()

    def bind_output(self, name: str, device_type: str = "cpu", device_id: int = 0, element_type: Any = None,
                    shape: Sequence[int] | None = None, buffer_ptr: int | None = None) -> None:
        _expect_host(device_type)
        self.outputs[name] = None if buffer_ptr is None else _at(buffer_ptr, element_type, shape or ())

    def bind_ortvalue_output(self, name: str, value: Any) -> None:
        self.outputs[name] = value.numpy()

    def clear_binding_inputs(self) -> None:
        self.inputs.clear()

    def clear_binding_outputs(self) -> None:
        self.outputs.clear()

    def synchronize_inputs(self) -> None:
        """Nothing is under way."""

    def synchronize_outputs(self) -> None:
        """Nothing is under way."""

    def copy_outputs_to_cpu(self) -> list[Any]:
        return list(self.results)

    def get_outputs(self) -> list[OrtValue]:
        return [OrtValue(array) for array in self.results]


def _at(address: int, element_type: Any, shape: Sequence[int]) -> numpy.ndarray[Any, Any]:
    """The array that lies there, which the caller keeps."""
    dtype = numpy.dtype(element_type)
    count = int(numpy.prod(shape, dtype="int64")) * dtype.itemsize
    return numpy.frombuffer((ctypes.c_uint8 * count).from_address(address), dtype).reshape(shape)


@dataclasses.dataclass(frozen=True)
class Declared:
    """A port as `gcompile check --ports` tells it. `prefix`: of the names of a sequence's tensors, else ""."""

    name: str
    element: str
    shape: list[Any] | None
    prefix: str
    optional: bool

    @property
    def is_open(self) -> bool:
        return bool(self.prefix) or self.optional or self.shape is None or any(isinstance(size, str) for size in self.shape)

    def argument(self) -> NodeArg:
        text = f"tensor({TYPE_NAMES.get(self.element, self.element)})"
        text = f"seq({text})" if self.prefix else text
        shape = [size or None if isinstance(size, str) else size for size in self.shape or []]
        return NodeArg(self.name, f"optional({text})" if self.optional else text, shape)


class Specialisations:
    """A model whose arrays tell its open sizes: compiled for those of the first run, and for others when they come, unless
    `dims` or `options` leave nothing open: then `at_once`."""

    def __init__(self, model: ModelSource, dims: Sizes | None = None, options: Sequence[str] = (), threads: int = 1,
                 at_once: bool = True, **words: Any):
        word, piped = project.model_words(model)
        self.told = tool.answer(["check", word, "--ports"], piped)
        self.inputs = [Declared(**port) for port in self.told["inputs"]]
        self.outputs = [Declared(**port) for port in self.told["outputs"]]
        self._model, self._dims, self._options = model, dict(dims or {}), list(options)
        self._words = {"threads": threads, **words}
        self._models: collections.OrderedDict[Any, Model] = collections.OrderedDict()
        self._lock = threading.Lock()
        sized = self._dims or any(word.startswith(("--dim", "--shape", "--elements")) for word in self._options)
        self._is_fixed = bool(sized) or not any(port.is_open for port in self.inputs)
        if self._is_fixed and at_once:
            self._of((), ())

    def of(self, values: Sequence[Any]) -> Model:
        """The model that takes values of such shapes: arrays, lists of them for sequences, None for an optional's lack."""
        if self._is_fixed:
            return self._of((), ())
        return self._of(tuple(self._key(port, value) for port, value in zip(self.inputs, values)), values)

    def _of(self, key: Any, values: Sequence[Any]) -> Model:
        with self._lock:
            if key not in self._models:
                options = [word for port, value in zip(self.inputs, values) for word in self._sizes(port, value)]
                self._models[key] = load(self._model, dims=self._dims, options=[*self._options, *options], **self._words)
                if len(self._models) > MOST_MODELS:
                    self._models.popitem(last=False)
            self._models.move_to_end(key)
            return self._models[key]

    @staticmethod
    def _key(port: Declared, value: Any) -> Any:
        if value is None:
            return None
        return tuple(numpy.shape(each) for each in value) if port.prefix else numpy.shape(value)

    @staticmethod
    def _sizes(port: Declared, value: Any) -> list[str]:
        def shape(name: str, array: Any) -> list[str]:
            sizes = numpy.shape(array)
            return ["--shape", f"{name}:{'x'.join(map(str, sizes))}"] if sizes or port.shape is None else []

        if value is None:
            return ["--elements", f"{port.name}=none"]
        if port.prefix:
            each = [word for place, array in enumerate(value) for word in shape(f"{port.prefix}{place}", array)]
            return ["--elements", f"{port.name}={len(value)}", *each]
        return shape(port.name, value) if port.is_open else []

    def run(self, values: Sequence[Any], out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """One run; sequences are lists."""
        model = self.of(values)
        flat = [array for port, value in zip(self.inputs, values) if value is not None
                for array in (value if port.prefix else [value])]
        found = model.run(flat, out=out or None)
        return {port.name: self._gathered(port, found) for port in self.outputs}

    @staticmethod
    def _gathered(port: Declared, found: Mapping[str, Any]) -> Any:
        if not port.prefix:
            return found.get(port.name)
        places = [name[len(port.prefix):] for name in found if name.startswith(port.prefix)]
        return [found[f"{port.prefix}{place}"] for place in sorted(int(place) for place in places if place.isdigit())]


class InferenceSession:
    """A model behind ONNX Runtime's calls. One whose sizes are open is compiled when a run tells them, and again for others;
    `dims` and `options`, as gcompile.load takes them, settle them once (`dims={"batch": "1..64"}`)."""

    def __init__(self, path_or_bytes: ModelSource, sess_options: Any = None, providers: Sequence[Any] | None = None,
                 provider_options: Sequence[Any] | None = None, *, dims: Sizes | None = None, options: Sequence[str] = (),
                 **words: Any):
        _expect_providers(providers)
        self._options = sess_options or SessionOptions()
        threads = int(getattr(self._options, "intra_op_num_threads", 0)) or os.cpu_count() or 1
        sizes = {**getattr(self._options, "dims", {}), **(dims or {})}
        self._models = Specialisations(path_or_bytes, sizes, options, threads, **words)
        self._names = [port.name for port in self._models.outputs]

    def get_inputs(self) -> list[NodeArg]:
        return [port.argument() for port in self._models.inputs]

    def get_outputs(self) -> list[NodeArg]:
        return [port.argument() for port in self._models.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """None: initializers are compiled in."""
        return []

    def get_modelmeta(self) -> ModelMetadata:
        told = self._models.told
        return ModelMetadata(told["producer"], told["graph"], told["domain"], told["description"], told["graph_description"],
                             told["model_version"], dict(told["metadata"]))

    def get_providers(self) -> list[str]:
        return ["CPUExecutionProvider"]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        return {"CPUExecutionProvider": {}}

    def set_providers(self, providers: Sequence[Any] | None = None, provider_options: Sequence[Any] | None = None) -> None:
        _expect_providers(providers)

    def get_session_options(self) -> Any:
        return self._options

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None) -> list[Any]:
        """The outputs of these names, or all. Raises InputError, a ValueError, for names, types and shapes that the model
        does not have."""
        return self._run(output_names, input_feed, {})

    def _run(self, names: Sequence[str] | None, feed: Mapping[str, Any], out: Mapping[str, Any]) -> list[Any]:
        wanted = list(names) if names else self._names
        for name in wanted:
            if name not in self._names:
                raise InputError(f"no output is called '{name}'; there are {', '.join(self._names)}")
        inputs = self._models.inputs
        for name in feed:
            if all(name != port.name for port in inputs):
                raise InputError(f"no input is called '{name}'; there are {', '.join(port.name for port in inputs) or 'none'}")
        missing = [port.name for port in inputs if port.name not in feed and not port.optional]
        if missing:
            raise InputError(f"Required inputs ({missing}) are missing from input feed ({list(feed)}).")
        found = self._models.run([_checked(port, feed.get(port.name)) for port in inputs], out)
        return [found[name] for name in wanted]

    def io_binding(self) -> IOBinding:
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: Any = None) -> None:
        """Outputs that have an array are written there."""
        out = {name: array for name, array in iobinding.outputs.items() if array is not None}
        iobinding.results = self._run(list(iobinding.outputs) or None, iobinding.inputs, out)

    def run_with_ort_values(self, output_names: Sequence[str] | None, input_dict_ort_values: Mapping[str, Any],
                            run_options: Any = None) -> list[OrtValue]:
        feed = {name: value.numpy() for name, value in input_dict_ort_values.items()}
        return [OrtValue(array) for array in self.run(output_names, feed)]


def _checked(port: Declared, value: Any) -> Any:
    """The value, which ONNX Runtime converts no more than this: arrays have the declared type and rank."""
    if port.prefix or value is None:
        return value
    if isinstance(value, numpy.ndarray) and value.dtype != Port(port.name, port.element, ()).dtype \
            and value.dtype.name != port.element:
        actual = TYPE_NAMES.get(value.dtype.name, value.dtype.name)
        raise InputError(f"Unexpected input data type. Actual: (tensor({actual})) , expected: ({port.argument().type}), of the "
                         f"input '{port.name}'")
    rank = len(numpy.shape(value))
    if port.shape is not None and rank != len(port.shape):
        raise InputError(f"Invalid rank for input: {port.name} Got: {rank} Expected: {len(port.shape)}")
    for axis, (size, actual_size) in enumerate(zip(port.shape or (), numpy.shape(value))):
        if not isinstance(size, str) and size != actual_size:
            raise InputError(f"Got invalid dimensions for input: {port.name} index: {axis} Got: {actual_size} Expected: {size}")
    return value


def _expect_providers(providers: Sequence[Any] | None) -> None:
    names = [each if isinstance(each, str) else each[0] for each in providers or ["CPUExecutionProvider"]]
    others = [name for name in names if name != "CPUExecutionProvider"]
    if not others:
        return
    why = f"gcompile's sessions run on the CPU, and have no {', '.join(others)}"
    if "CUDAExecutionProvider" in others:
        why += "; gcompile.compile(model, target='cuda') makes a project for GPUs"
    if "CPUExecutionProvider" not in names:
        raise ValueError(why)
    warnings.warn(why, RuntimeWarning, stacklevel=3)
