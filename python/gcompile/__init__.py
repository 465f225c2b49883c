"""ONNX models as C++ and CUDA projects, from Python.

    import gcompile
    project = gcompile.compile("model.onnx")
    outputs = project.run(image)            # numpy arrays in, a dictionary of numpy arrays out
    assert project.verify().ok

A project is a folder of sources that needs a compiler and nothing else: Python is not needed to use it.
"""

from .project import Port, Project, Verification, check, compile  # pylint: disable=redefined-builtin
from .tool import GcompileError

__all__ = ["GcompileError", "Port", "Project", "Verification", "check", "compile"]
