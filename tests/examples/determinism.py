#!/usr/bin/env python3
"""Same input, same bytes: two runs in other folders, languages, time zones and homes give one project.

    determinism.py GCOMPILE WORK_DIR MODEL [GCOMPILE_OPTION...]

Exit: 0 equal, 1 not.
"""

import os
import pathlib
import shutil
import subprocess
import sys


def tree(root):
    """Relative path -> (mode, bytes)."""
    return {path.relative_to(root).as_posix(): (path.stat().st_mode, path.read_bytes())
            for path in sorted(root.rglob("*")) if path.is_file()}


def differences(first, second):
    found = [f"only once: {name}" for name in sorted(first.keys() ^ second.keys())]
    return found + [f"differs: {name}" for name in sorted(first.keys() & second.keys()) if first[name] != second[name]]


def main():
    gcompile, work, model, *options = sys.argv[1:]
    work = pathlib.Path(work)
    shutil.rmtree(work, ignore_errors=True)
    settings = [
        ("one", {"LANG": "C", "LC_ALL": "C", "TZ": "UTC", "HOME": "/"}, "absolute"),
        ("another/folder with a space", {"LANG": "de_DE.UTF-8", "LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Kathmandu",
                                         "HOME": "/nonexistent", "COLUMNS": "40", "TERM": "dumb"}, "relative"),
    ]
    trees = []
    for folder, environment, kind in settings:
        place = work / folder
        place.mkdir(parents=True)
        shutil.copy(model, place / "model.onnx")
        base = place if kind == "absolute" else pathlib.Path(".")
        subprocess.run([gcompile, "compile", str(base / "model.onnx"), "-o", str(base / "out"), "--name", "net", "-q",
                        *options], cwd=place, env={"PATH": os.environ["PATH"], **environment}, check=True)
        trees.append(tree(place / "out"))
    # The comparison sees a changed byte and a missing file.
    changed = dict(trees[0])
    name, (mode, data) = next(iter(changed.items()))
    changed[name] = (mode, data + b"x")
    assert differences(trees[0], changed) == [f"differs: {name}"]
    del changed[name]
    assert differences(trees[0], changed) == [f"only once: {name}"]

    assert len(trees[0]) > 10, "a project of too few files"
    found = differences(*trees)
    for name, (_, data) in trees[0].items():
        if str(work).encode() in data or b"/home/" in data:
            found.append(f"holds a path: {name}")
    print("\n".join(found) or f"{len(trees[0])} files, byte for byte the same")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
