"""CUDA projects: whether there is a device, and what Python does with them."""

from __future__ import annotations

import ctypes

from .tool import GcompileError


def count() -> int:
    """How many CUDA devices the driver sees; 0 where there is no driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    found = ctypes.c_int(0)
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(found)) != 0:
        return 0
    return found.value


def require(target: str) -> None:
    """Raises GcompileError (4) where `target` needs a device and there is none."""
    if target == "cuda" and count() == 0:
        raise GcompileError(4, [], "there is no CUDA device that the driver sees: a model for target='cuda' runs on the machine "
                            "that has one; gcompile.compile(model, target='cuda').verify(options=['--emulate']) tries it here")
