"""PyTorch's modules, through its exporter to ONNX.

    fast = gcompile.from_torch(module, (example,))      # one module, for good
    fast = torch.compile(module, backend="gcompile")    # whatever runs; what cannot be compiled stays PyTorch's

For inference on the CPU: parameters are compiled in, and there are no gradients. Needs PyTorch 2 and the package onnx, if the
exporter does. torch.compile finds the backend by its name where the package is installed, or after `import
gcompile.torch_backend`.
"""

from __future__ import annotations

import copy
import io
import warnings
from typing import Any, Callable, Mapping, Sequence

import torch
from torch.utils import _pytree as pytree

from .load import load
from .tool import GcompileError

OPSET = 17
# How many programs a graph of torch.compile has: one for each set of sizes, of numbers and of parameters.
MOST_PROGRAMS = 16


class NotCompiled(GcompileError):
    """A module that PyTorch does not export, or that means more than its outputs. `exit_code` is 1."""

    def __init__(self, text: str):
        super().__init__(1, [], text)


class TorchModule:
    """A compiled module: tensors in, what the module returns out. `model` is the gcompile.Model behind it."""

    def __init__(self, module: Any, args: Sequence[Any], words: Mapping[str, Any], export: Mapping[str, Any]):
        flat, _ = pytree.tree_flatten(tuple(args))
        self._names = list(export.get("input_names") or [f"x{place}" for place in range(len(flat))])
        versions = [value._version for value in flat if isinstance(value, torch.Tensor)]
        with torch.no_grad():
            results, self._structure = pytree.tree_flatten(module(*args))
        if versions != [value._version for value in flat if isinstance(value, torch.Tensor)]:
            raise NotCompiled("it writes to its inputs, which a compiled model does not")
        if not all(isinstance(value, torch.Tensor) for value in results):
            raise NotCompiled("it returns something that is no tensor")
        self._types = [value.dtype for value in results]
        self.model = load(_exported(module, tuple(args), self._names, export), **words)
        if len(self.model.outputs) != len(results):
            raise NotCompiled(f"it was exported with {len(self.model.outputs)} outputs, and returns {len(results)}")

    def __call__(self, *args: Any) -> Any:
        """One run on tensors of the CPU, in the order of the example's. Raises InputError."""
        flat, _ = pytree.tree_flatten(args)
        values = dict(zip(self._names, flat))
        found = self.model.run([_array(values[port.name]) for port in self.model.inputs])
        results = [torch.from_numpy(array).to(dtype) for array, dtype in zip(found.values(), self._types)]
        return pytree.tree_unflatten(results, self._structure)


def _array(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    if value.device.type != "cpu":
        return value  # refused by its DLPack
    value = value.detach()
    return (value.float() if value.dtype == torch.bfloat16 else value).numpy()


def _exported(module: Any, args: tuple[Any, ...], names: Sequence[str], export: Mapping[str, Any]) -> bytes:
    """The module as ONNX. Raises NotCompiled with what the exporter said."""
    file = io.BytesIO()
    try:
        with warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            torch.onnx.export(module, args, file, **{"input_names": list(names), "opset_version": OPSET, **export})
    except Exception as error:  # whatever the exporter throws, there is no model
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise NotCompiled(f"PyTorch does not export it: {type(error).__name__}: {lines[0] if lines else ''}") from error
    return file.getvalue()


def from_torch(module: Any, args: Any, *, input_names: Sequence[str] | None = None, output_names: Sequence[str] | None = None,
               dynamic_axes: Mapping[str, Any] | None = None, opset_version: int = OPSET, **words: Any) -> TorchModule:
    """A module, in evaluation mode, compiled for inputs like `args`, a tensor or a tuple of what it takes.

    input_names, output_names, dynamic_axes, opset_version: as torch.onnx.export takes them; sizes that dynamic_axes leaves
    open are told by `dims`, such as {"batch": "1..64"}.
    words: those of gcompile.load. Raises GcompileError: NotCompiled where PyTorch does not export it."""
    export = {"input_names": input_names, "output_names": output_names, "dynamic_axes": dynamic_axes}
    given = {name: value for name, value in export.items() if value is not None}
    was_training = getattr(module, "training", False)
    try:
        if was_training:
            module.eval()
        example = args if isinstance(args, tuple) else (args,)
        return TorchModule(module, example, words, {**given, "opset_version": opset_version})
    finally:
        if was_training:
            module.train()


class _Graph:
    """A graph of torch.compile. Numbers and parameters among its arguments are compiled in; others are another program, as are
    other sizes."""

    def __init__(self, graph: Any, may_fall_back: bool, words: Mapping[str, Any]):
        self._graph, self._may_fall_back, self._words = graph, may_fall_back, words
        self._programs: dict[Any, Callable[..., Any] | None] = {}
        self._is_said = False

    def __call__(self, *args: Any) -> Any:
        why = self._why_not(args)
        if why:
            return self._fall_back(args, why)
        key = tuple(_identity(value) for value in args)
        if key not in self._programs:
            if len(self._programs) >= MOST_PROGRAMS:
                return self._fall_back(args, f"it was called in more than {MOST_PROGRAMS} ways")
            try:
                self._programs[key] = self._compiled(args)
            except GcompileError as error:
                self._programs[key] = None
                return self._fall_back(args, str(error))
        program = self._programs[key]
        if program is None:
            return self._graph(*args)
        return program(*[value for value in args if not _is_known(value)])

    @staticmethod
    def _why_not(args: Sequence[Any]) -> str:
        tensors = [value for value in args if isinstance(value, torch.Tensor)]
        if any(value.device.type != "cpu" for value in tensors):
            return "its tensors are not on the CPU"
        if torch.is_grad_enabled() and any(value.requires_grad for value in tensors):
            return "gradients are wanted, and a compiled model has none: call it under torch.no_grad()"
        return ""

    def _fall_back(self, args: Sequence[Any], why: str) -> Any:
        if not self._may_fall_back:
            raise NotCompiled(f"gcompile does not run this graph: {why}")
        if not self._is_said:
            self._is_said = True
            warnings.warn(f"gcompile leaves a graph to PyTorch: {why}", RuntimeWarning, stacklevel=2)
        return self._graph(*args)

    def _compiled(self, args: Sequence[Any]) -> Callable[..., Any]:
        graph = copy.deepcopy(self._graph)
        places = [node for node in graph.graph.nodes if node.op == "placeholder"]
        for place, (node, value) in enumerate(zip(places, args)):
            if not _is_known(value):
                continue
            if isinstance(value, torch.Tensor):
                name = f"gcompile_constant_{place}"
                graph.register_buffer(name, value.detach().clone())
                with graph.graph.inserting_before(node):
                    node.replace_all_uses_with(graph.graph.get_attr(name))
            else:
                node.replace_all_uses_with(value)
            graph.graph.erase_node(node)
        graph.recompile()
        return TorchModule(graph, [value for value in args if not _is_known(value)], self._words, {})


def _is_known(value: Any) -> bool:
    """Whether an argument of a graph is compiled in."""
    return not isinstance(value, torch.Tensor) or isinstance(value, torch.nn.Parameter) or hasattr(value, "_dynamo_static_input_type")


def _identity(value: Any) -> Any:
    """What tells an argument for which there is a program from others."""
    if not isinstance(value, torch.Tensor):
        return value if isinstance(value, (int, float, bool, str)) else str(value)
    if _is_known(value):
        return value.data_ptr(), tuple(value.shape), 0 if value.is_inference() else value._version
    return tuple(value.shape), value.dtype


def compile_graph(graph: Any, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None, **_: Any) -> Any:
    """The backend. `options` of torch.compile: those of gcompile.load, and fallback=False, by which a graph that cannot be
    compiled is an error and no warning."""
    words = dict(options or {})
    return _Graph(graph, words.pop("fallback", True), words)


def _register() -> None:
    import torch._dynamo as dynamo  # pylint: disable=import-outside-toplevel

    dynamo.register_backend(compile_graph, name="gcompile")


_register()
