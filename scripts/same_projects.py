#!/usr/bin/env python3
"""Whether two builds of gcompile write the same bytes: nothing in a project may follow from the compiler of the tool, which
chooses for instance in what order arguments are evaluated.

    same_projects.py GCOMPILE GCOMPILE FOLDER...

Compiles every model.onnx below the folders by both, for both targets; models that are refused have to be refused by both with
the same words. Exit: 0 all are the same, 1 some differ or there are none.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import tempfile


# Digests of texts that sources, weights and the manifest hold.
MARKS = re.compile(rb'_(?:MARK|MARK_OF_\w+|STRUCTURE) (?:!= )?0x[0-9a-f]+u?|"weights_structure": "[0-9a-f]{16}"'
                   rb'|(?<=GCWEIGHT\x02.{23}).{8}|"sha256": "[0-9a-f]{64}"', re.DOTALL)


def without_marks(content):
    """A difference in one file changes digests in others: the report is of the file."""
    return MARKS.sub(b"", content)


def written(tool, model, target, out):
    """Exit code and words of a compilation, and the bytes of every file."""
    done = subprocess.run([tool, model, "-o", out, "--target", target, "--quiet"], capture_output=True)
    files = {path.relative_to(out): without_marks(path.read_bytes()) for path in sorted(out.rglob("*")) if path.is_file()}
    return done.returncode, done.stderr, files


def difference(tools, model, target):
    """What differs, or nothing."""
    with tempfile.TemporaryDirectory() as folder:
        (code, words, files), (other_code, other_words, others) = (
            written(tool, model, target, pathlib.Path(folder) / str(i) / "project") for i, tool in enumerate(tools))
    if (code, words) != (other_code, other_words):
        return f"exit {code} and {other_code}: {words.decode()[:200]} / {other_words.decode()[:200]}"
    differing = sorted(str(path) for path in files.keys() | others.keys() if files.get(path) != others.get(path))
    return ", ".join(differing)


def main():
    if len(sys.argv) < 4:
        sys.exit("usage: same_projects.py GCOMPILE GCOMPILE FOLDER...")
    tools = sys.argv[1:3]
    models = sorted(path for folder in sys.argv[3:] for path in pathlib.Path(folder).rglob("model.onnx"))
    works = [(model, target) for model in models for target in ("cpp", "cuda")]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("JOBS", os.cpu_count() or 1))) as pool:
        for (model, target), found in zip(works, pool.map(lambda work: difference(tools, *work), works)):
            if found:
                failed += 1
                print(f"{model} for {target}: {found}")
    print(f"{len(works)} projects by {tools[0]} and {tools[1]}, {failed} differ")
    return 1 if failed or not works else 0


if __name__ == "__main__":
    sys.exit(main())
