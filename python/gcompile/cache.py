"""Projects that were compiled and built before: the user's cache, and `gcompile cache`.

    gcompile cache list|size|clear

It lies in $XDG_CACHE_HOME/gcompile, or ~/.cache/gcompile, or where GCOMPILE_CACHE says, and keeps at most GCOMPILE_CACHE_BYTES
(8 GiB): what was not used for the longest time goes first. An entry is named by a digest of all that it is made of. It
appears as a whole; a process that has loaded it holds it, so that no other removes it meanwhile.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import shutil
import sys
from typing import Any, Callable, Sequence

from . import locks
from .tool import GcompileError

MOST_BYTES = 8 << 30
DESCRIPTION = "entry.json"


@dataclasses.dataclass(frozen=True)
class Entry:
    """`used`: seconds since 1970."""

    key: str
    path: pathlib.Path
    model: str
    bytes: int
    used: float


def folder() -> pathlib.Path:
    """Where the cache lies."""
    given = os.environ.get("GCOMPILE_CACHE")
    if given:
        return pathlib.Path(given)
    base = os.environ.get("XDG_CACHE_HOME")
    return (pathlib.Path(base) if base else pathlib.Path.home() / ".cache") / "gcompile"


def most_bytes() -> int:
    """How much the cache keeps. Raises ValueError for a setting that is no number."""
    text = os.environ.get("GCOMPILE_CACHE_BYTES")
    if text is None:
        return MOST_BYTES
    if not text.isdigit():
        raise ValueError(f"GCOMPILE_CACHE_BYTES is a number of bytes, not '{text}'")
    return int(text)


def digest(*parts: Any) -> str:
    """A name for what is made of these: bytes, and whatever repr() tells from anything else."""
    state = hashlib.sha256()
    for part in parts:
        data = part if isinstance(part, bytes) else repr(part).encode()
        state.update(f"{len(data)} ".encode())
        state.update(data)
    return state.hexdigest()[:40]


def digest_of_file(path: str | os.PathLike[str]) -> str:
    state = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            state.update(block)
    return state.hexdigest()


def _size(place: pathlib.Path) -> int:
    return sum(path.lstat().st_size for path in place.rglob("*") if not path.is_dir())


class Held:
    """An entry that stays at least as long as this object does."""

    def __init__(self, path: pathlib.Path, lock: locks.Lock):
        self.path, self._lock = path, lock

    def __del__(self) -> None:
        self._lock.release()


def take(key: str, model: str, make: Callable[[pathlib.Path], None]) -> Held:
    """The entry of that name; where there is none, `make` fills a new folder first. One process at a time makes it, and
    what a killed one has left is made again."""
    root = folder()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise GcompileError(4, [], f"nothing can be kept in '{root}': {error.strerror}; GCOMPILE_CACHE names another folder") from None
    place, name = root / key, root / f"{key}.lock"
    while True:
        lock = locks.Lock(name, shared=True)
        if (place / DESCRIPTION).exists():
            os.utime(place / DESCRIPTION)
            return Held(place, lock)
        lock.release()
        with locks.exclusive(name):
            if (place / DESCRIPTION).exists():
                continue
            part = root / f"{key}.part"
            for left in (part, place):
                shutil.rmtree(left, ignore_errors=True)
            part.mkdir()
            try:
                make(part)
                said = {"model": model, "bytes": _size(part)}
                (part / DESCRIPTION).write_text(json.dumps(said), encoding="utf-8")
                os.replace(part, place)
            finally:
                shutil.rmtree(part, ignore_errors=True)
        shrink(most_bytes(), keep=key)


def remembered(question: str, model: str) -> list[str] | None:
    """What note() has kept: the paths, beside the model, of the files that it reads."""
    try:
        found = json.loads((folder() / "files" / f"{question}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return [os.path.join(os.path.dirname(model), name) for name in found]


def note(question: str, model: str, files: Sequence[str]) -> None:
    place = folder() / "files"
    place.mkdir(parents=True, exist_ok=True)
    part = place / f"{question}.{os.getpid()}.part"
    part.write_text(json.dumps([os.path.relpath(name, os.path.dirname(model)) for name in files]), encoding="utf-8")
    os.replace(part, place / f"{question}.json")


def entries() -> list[Entry]:
    """What is there, the last used first."""
    found = []
    for path in folder().glob("*/" + DESCRIPTION):
        with contextlib.suppress(OSError, ValueError, KeyError):
            told = json.loads(path.read_text(encoding="utf-8"))
            found.append(Entry(path.parent.name, path.parent, told["model"], told["bytes"], path.stat().st_mtime))
    return sorted(found, key=lambda entry: (-entry.used, entry.key))


def shrink(limit: int, keep: str = "") -> list[Entry]:
    """Removes entries, those first that were not used for the longest time, until the others have `limit` bytes at most;
    never those that a process holds, nor `keep`. Returns what it has removed."""
    for path in folder().glob("*.part"):  # a process that was killed has left it
        _remove(path.name.partition(".")[0])
    removed, total = [], sum(entry.bytes for entry in entries())
    for entry in reversed(entries()):
        if total <= limit:
            break
        if entry.key != keep and _remove(entry.key):
            removed.append(entry)
            total -= entry.bytes
    return removed


def _remove(key: str) -> bool:
    name = folder() / f"{key}.lock"
    try:
        lock = locks.Lock(name, wait=False)
    except BlockingIOError:
        return False
    # Renamed first, so that no half of an entry is ever under its name.
    gone = folder() / f"{key}.gone"
    try:
        shutil.rmtree(gone, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):
            os.replace(folder() / key, gone)
        for left in (gone, folder() / f"{key}.part"):
            shutil.rmtree(left, ignore_errors=True)
        name.unlink()
    finally:
        lock.release()
    return True


def clear() -> list[Entry]:
    """Removes all that no process holds, also what killed ones have left. Returns the entries that it has removed."""
    before = entries()
    if folder().is_dir():
        for key in sorted({path.name.partition(".")[0] for path in folder().iterdir() if path.name != "files"}):
            _remove(key)
    shutil.rmtree(folder() / "files", ignore_errors=True)
    left = {entry.key for entry in entries()}
    return [entry for entry in before if entry.key not in left]


def _human(count: int) -> str:
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"


def main(words: Sequence[str]) -> int:
    """`gcompile cache WORDS...`."""
    parser = argparse.ArgumentParser(prog="gcompile cache", description=f"What gcompile.load() keeps in {folder()}.")
    parser.add_argument("what", choices=("list", "size", "clear"), help="the entries, the last used first; the bytes of all; "
                        "or remove all that no process has loaded")
    parser.add_argument("--json", action="store_true", help="for programs")
    given = parser.parse_args(words)
    shown = clear() if given.what == "clear" else entries()
    total = sum(entry.bytes for entry in shown)
    if given.json:
        rows = [{"key": entry.key, "model": entry.model, "bytes": entry.bytes, "used": entry.used} for entry in shown]
        told = {"folder": str(folder()), "bytes": total, "most_bytes": most_bytes(), "entries": rows}
        print(json.dumps(told, indent=2))
        return 0
    if given.what == "list":
        for entry in shown:
            print(f"{entry.key[:12]}  {_human(entry.bytes):>10}  {entry.model}")
    kept = "removed" if given.what == "clear" else "kept"
    print(f"{len(shown)} {'model' if len(shown) == 1 else 'models'} {kept}, {_human(total)}"
          + ("" if given.what == "clear" else f" of {_human(most_bytes())}") + f", in {folder()}")
    sys.stdout.flush()
    return 0
