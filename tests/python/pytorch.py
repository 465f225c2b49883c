#!/usr/bin/env python3
"""Modules of PyTorch, where there is one: with_torch.py in the interpreter that GCOMPILE_TORCH_PYTHON names.

    pytorch.py --gcompile GCOMPILE [CASE...]
"""

import os
import sys

from package import ROOT, package
from support import SKIPPED, Failure, Skip, run_main


def case_modules(world):
    """from_torch and torch.compile."""
    package(world)
    python = os.environ.get("GCOMPILE_TORCH_PYTHON") or sys.executable
    done = world.run([python, ROOT / "tests" / "python" / "with_torch.py"], status=None, timeout=900)
    if done.returncode == SKIPPED:
        raise Skip(done.stdout.strip())
    if done.returncode != 0:
        raise Failure(done.stdout + done.stderr)


if __name__ == "__main__":
    run_main(globals())
