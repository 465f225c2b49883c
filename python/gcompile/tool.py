"""The tool that is in the package: the command `gcompile`, and its answers for programs."""

from __future__ import annotations

import functools
import importlib
import json
import os
import pathlib
import subprocess
import sys
from importlib import metadata
from typing import Any, Sequence

EXECUTABLE = pathlib.Path(__file__).resolve().parent / "bin" / "gcompile"


class GcompileError(Exception):
    """What gcompile refuses. `exit_code`: 1 the model, 2 an option, 4 a file, 70 a mistake in gcompile. `errors`: a list
    of dictionaries with code, message, location, details and help (docs/json.md)."""

    def __init__(self, exit_code: int, errors: Sequence[dict[str, Any]], text: str):
        super().__init__(text)
        self.exit_code = exit_code
        self.errors = list(errors)


def executable() -> str:
    """The executable of the package, or what the environment variable GCOMPILE_EXECUTABLE names."""
    return os.environ.get("GCOMPILE_EXECUTABLE") or str(EXECUTABLE)


def answer(words: Sequence[str], model: bytes | None = None, accepted: Sequence[int] = (0,)) -> dict[str, Any]:
    """What `gcompile WORDS... --json` prints; `model` goes to its standard input. Raises GcompileError for an exit code
    that is not accepted."""
    done = subprocess.run([executable(), *words, "--json", "-q"], input=model, capture_output=True, check=False,
                          stdin=subprocess.DEVNULL if model is None else None)
    text = done.stderr.decode("utf-8", "replace").strip()
    try:
        told: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        raise GcompileError(done.returncode, [], text or f"gcompile ended with {done.returncode}") from None
    if done.returncode not in accepted:
        raise GcompileError(done.returncode, told["errors"], text)
    return told


def identity() -> list[Any]:
    """What tells one tool from another, without starting it: its version may stay while it changes."""
    try:
        status = os.stat(executable())
    except OSError as error:
        raise GcompileError(4, [], f"there is no tool '{executable()}': {error.strerror}") from None
    return [version(), status.st_size, status.st_mtime_ns]


def version() -> str:
    """The version of this package; where it was not installed, that of the tool."""
    try:
        return metadata.version("gcompile")
    except metadata.PackageNotFoundError:
        return _version_of(executable())


@functools.lru_cache(maxsize=None)
def _version_of(program: str) -> str:
    try:
        return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    except (OSError, subprocess.CalledProcessError) as error:
        raise GcompileError(4, [], f"the tool '{program}' does not start: {error}") from None


# Commands of this package: what the tool itself, which knows no Python, cannot do.
COMMANDS = {"bench": "gcompile.bench", "cache": "gcompile.cache"}


def main() -> None:
    """The command line: a command of this package, or the tool in place of this process."""
    if len(sys.argv) > 1 and sys.argv[1] in COMMANDS:
        try:
            sys.exit(importlib.import_module(COMMANDS[sys.argv[1]]).main(sys.argv[2:]))
        except GcompileError as error:
            print(error, file=sys.stderr)
            sys.exit(error.exit_code)
    os.execv(executable(), ["gcompile", *sys.argv[1:]])
