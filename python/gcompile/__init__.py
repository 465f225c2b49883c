"""ONNX models as C++ and CUDA projects, from Python.

    import gcompile
    model = gcompile.load("model.onnx")     # compiled and built once; from the user's cache from then on
    outputs = model(image)                  # numpy arrays in, a dictionary of numpy arrays out

    project = gcompile.compile("model.onnx", "folder")
    assert project.verify().ok

A project is a folder of sources that needs a compiler and nothing else: Python is not needed to use it.
"""

from __future__ import annotations

from typing import Any

from . import tool as _tool
from .library import BuildError, RunError
from .load import load
from .model import Context, Model, Timing
from .ports import InputError, Port
from .project import Project, Verification, check, compile, open  # pylint: disable=redefined-builtin
from .session import InferenceSession, IOBinding, OrtValue, SessionOptions
from .tool import GcompileError

__all__ = ["BuildError", "Context", "GcompileError", "IOBinding", "InferenceSession", "InputError", "Model", "OrtValue", "Port",
           "Project", "RunError", "SessionOptions", "Timing", "Verification", "check", "compile", "from_torch", "load", "open"]


def from_torch(module: Any, args: Any, **words: Any) -> Any:
    """A module of PyTorch as a callable for tensors (gcompile.torch_backend.from_torch)."""
    from . import torch_backend  # pylint: disable=import-outside-toplevel

    return torch_backend.from_torch(module, args, **words)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _tool.version()
    raise AttributeError(f"module 'gcompile' has no attribute '{name}'")
