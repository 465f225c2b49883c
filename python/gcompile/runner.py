"""Runs of a project's own runner, a process each, with arrays in files: what CUDA projects take."""

from __future__ import annotations

import pathlib
import subprocess
import tempfile
from typing import Any, Mapping, Sequence

import numpy

from .ports import InputError, Port, as_array
from .tool import GcompileError

# With which a project's runner ends where no run has inputs of the arrays' shapes; gcrt/app/tensor.h has it.
NO_SUCH_SHAPES = 3


class Runner:
    """Keeps the states between runs."""

    def __init__(self, program: pathlib.Path, manifest: Mapping[str, Any], inputs: Sequence[Port], has_states: bool):
        self._program, self._manifest, self._inputs, self._has_states = program, manifest, inputs, has_states
        self.states: dict[str, numpy.ndarray[Any, Any]] = {}

    def run(self, arrays: Sequence[Any]) -> dict[str, numpy.ndarray[Any, Any]]:
        """One run on arrays in the order of the inputs. Raises InputError, and GcompileError where the program fails."""
        given = [as_array(array, port) for port, array in zip(self._inputs, arrays)]
        with tempfile.TemporaryDirectory(prefix="gcompile_run_") as name:
            folder = pathlib.Path(name)
            command = [str(self._program), "--output-dir", str(folder / "out")]
            for index, array in enumerate(given):
                numpy.save(folder / f"{index}.npy", array)
                command.append(str(folder / f"{index}.npy"))
            for state, array in self.states.items():
                numpy.save(folder / f"state_{state}.npy", array)
                command += ["--state", f"{state}={folder / f'state_{state}.npy'}"]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == NO_SUCH_SHAPES or "must be" in done.stderr:
                raise InputError(done.stderr.strip().removeprefix("error: "))
            if done.returncode != 0:
                text = done.stderr.strip() or f"the program ended with {done.returncode}"
                raise GcompileError(done.returncode, [], text)
            outputs = {port["name"]: numpy.load(folder / "out" / f"{index}_{port['c_name']}.npy")
                       for index, port in enumerate(self._manifest["outputs"])}
            if self._has_states:
                # Files state_<index>_<name>.npy.
                files = sorted((folder / "out").glob("state_*.npy"))
                self.states = {path.stem.split("_", 2)[2]: numpy.load(path) for path in files}
        return outputs
