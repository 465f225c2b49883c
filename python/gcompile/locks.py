"""Locks between processes, which end with the process that holds them."""

from __future__ import annotations

import contextlib
import os
import pathlib
import threading
from typing import Any, Callable, Iterator

try:
    import fcntl
except ImportError:  # Windows: one process at a time is the caller's business
    fcntl = None  # type: ignore[assignment]


class Lock:
    """A file that this process holds, for itself or together with others, until it is released."""

    def __init__(self, path: pathlib.Path, *, shared: bool = False, wait: bool = True):
        """Raises BlockingIOError where another has it and `wait` is false."""
        self._file = None
        while True:
            file = open(path, "a+b")  # pylint: disable=consider-using-with
            try:
                if fcntl is not None:
                    fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
                # Who has removed the file meanwhile held a lock that nobody else will ask for.
                with contextlib.suppress(FileNotFoundError):
                    if os.stat(path).st_ino == os.fstat(file.fileno()).st_ino:
                        self._file = file
                        return
            finally:
                if self._file is not file:
                    file.close()

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


@contextlib.contextmanager
def exclusive(path: pathlib.Path) -> Iterator[None]:
    lock = Lock(path)
    try:
        yield
    finally:
        lock.release()


def in_background(work: Callable[[], Any]) -> threading.Thread:
    """A thread that has begun."""
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread
