"""A model in this process: compiled and built once, and found in the user's cache from then on."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import tempfile
from typing import Any, Mapping, Sequence

from . import cache, device, library, progress as progress_line, project, tool
from .model import Model
from .progress import Progress
from .project import ModelSource, Project, Sizes

PROJECT, ANSWER = "model", "answer.json"
# What building leaves behind that running does not need.
KEPT = (".so", "_run")


def load(model: ModelSource, *, target: str = "cpp", dims: Sizes | None = None,
         shapes: Mapping[str, Sequence[int | str]] | None = None, sets: Mapping[str, Any] | None = None,
         states: Mapping[str, str] | None = None, name: str | None = None, options: Sequence[str] = (), threads: int = 1,
         variables: Mapping[str, str] | None = None, jobs: int | None = None, progress: Progress = None) -> Model:
    """A callable for a model, a path, bytes or an onnx.ModelProto. The first call with a model, these options, this compiler
    and this version of gcompile compiles and builds; later ones, in any process, take what is in the user's cache.

    dims, shapes, sets, states, name, options: as gcompile.compile takes them.
    threads: on how many a run works. variables: the Makefile's, as Project.build takes them.
    progress: whether a line says what goes on; by default in terminals and notebooks.
    Raises GcompileError for what the tool refuses, BuildError, a GcompileError, where the C++ compiler fails.
    """
    found = cached_project(model, target=target, dims=dims, shapes=shapes, sets=sets, states=states, name=name,
                           options=options, variables=variables, jobs=jobs, progress=progress)
    return found.load(threads=threads, progress=False)


def cached_project(model: ModelSource, *, target: str = "cpp", dims: Sizes | None = None,
                   shapes: Mapping[str, Sequence[int | str]] | None = None, sets: Mapping[str, Any] | None = None,
                   states: Mapping[str, str] | None = None, name: str | None = None, options: Sequence[str] = (),
                   variables: Mapping[str, str] | None = None, jobs: int | None = None, progress: Progress = None) -> Project:
    """The project that load() runs."""
    if target != "cpp":
        device.require(target)
    words = project.option_words(target, dims, shapes, sets, states, options) + (["--name", name] if name else [])
    word, piped = project.model_words(model)
    shown = word if piped is None else "a model in memory"
    if piped is None:
        digest = cache.digest_of_file(word) if os.path.isfile(word) else None
        if digest is None:
            raise tool.GcompileError(4, [], f"cannot read '{word}': no such file")
    else:
        digest = cache.digest(piped)
    # A model without --name is called after its file.
    question = cache.digest(digest, "" if name else os.path.basename(word), words, tool.identity(),
                            library.identity_of_compiler(variables))
    line = progress_line.Line(os.path.basename(shown), progress)
    with tempfile.TemporaryDirectory(prefix="gcompile_") as scratch:
        try:
            beside = cache.remembered(question, word) if piped is None else []
            told = None
            if beside is None:
                line("compile")
                told = tool.answer(["compile", word, "-o", os.path.join(scratch, PROJECT), *words])
                beside = [path for path in told["model_files"] if os.path.abspath(path) != os.path.abspath(word)]
                cache.note(question, word, beside)
            key = cache.digest(question, [cache.digest_of_file(path) for path in beside])

            def make(folder: pathlib.Path) -> None:
                answer = told
                if answer is None:
                    line("compile")
                    answer = tool.answer(["compile", word, "-o", str(folder / PROJECT), *words], piped)
                else:
                    shutil.move(os.path.join(scratch, PROJECT), folder / PROJECT)
                (folder / ANSWER).write_text(json.dumps(answer), encoding="utf-8")
                library.build(folder / PROJECT, answer["name"], variables, jobs, line)
                _drop_objects(folder / PROJECT / "build")

            held = cache.take(key, os.path.abspath(word) if piped is None else shown, make)
        finally:
            line.close()
    return _BuiltProject(held.path / PROJECT, json.loads((held.path / ANSWER).read_text(encoding="utf-8")), model, words, held)


def _drop_objects(build: pathlib.Path) -> None:
    for path in sorted(build.rglob("*"), reverse=True):
        if path.is_dir():
            path.rmdir()
        elif not path.name.endswith(KEPT):
            path.unlink()


class _BuiltProject(Project):
    """One of the cache, which is built, and stays as it is."""

    def build(self, *, jobs: int | None = None, variables: Mapping[str, str] | None = None) -> Project:
        """Nothing is left to do. Raises GcompileError for variables: load() takes them."""
        if variables:
            raise tool.GcompileError(2, [], "a project of the cache is built already: gcompile.load() takes variables")
        return self

    def _built(self, jobs: int | None = None, tell: library.Tell = lambda text: None) -> pathlib.Path:
        return library.find(self.path / "build", self.name)[0]
