"""What a long call is doing: one line in a terminal or in a notebook, nothing elsewhere."""

from __future__ import annotations

import sys
import time
from typing import Any, Callable, Union

Progress = Union[bool, Callable[[str], None], None]


class Line:
    """Shows the last thing that it was told. `progress`: a function that takes the text; True and False say whether there
    is a line; None: where standard error is a terminal, or in a notebook."""

    def __init__(self, what: str, progress: Progress = None):
        self._what, self._begin, self._is_open = what, time.monotonic(), False
        self._function = progress if callable(progress) else None
        notebook = _notebook()
        self._display: Any = None
        self._is_wanted = progress is True or (progress is None and (notebook is not None or _is_terminal()))
        self._notebook = notebook if self._is_wanted else None

    def __call__(self, text: str) -> None:
        if self._function:
            self._function(f"{self._what}: {text}")
        elif self._is_wanted:
            self._show(f"{self._what}: {text} ({time.monotonic() - self._begin:.0f} s)")

    def _show(self, text: str) -> None:
        self._is_open = True
        if self._notebook is None:
            sys.stderr.write(f"\r\033[K{text}" if _is_terminal() else text + "\n")
            sys.stderr.flush()
        elif self._display is None:
            self._display = self._notebook.display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._display.update({"text/plain": text}, raw=True)

    def close(self) -> None:
        """Takes the line away."""
        if not self._is_open:
            return
        self._is_open = False
        if self._display is not None:
            self._show(f"{self._what}: done in {time.monotonic() - self._begin:.1f} s")
        elif _is_terminal():
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


def _notebook() -> Any:
    """The module that shows things in the notebook whose cells this process runs; None where it runs none."""
    interactive = sys.modules.get("IPython")
    shell = interactive.get_ipython() if interactive is not None and hasattr(interactive, "get_ipython") else None
    if shell is None or not hasattr(shell, "kernel"):
        return None
    from IPython import display  # pylint: disable=import-outside-toplevel,import-error

    return display
