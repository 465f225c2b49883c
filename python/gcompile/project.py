"""Projects: made of a model or opened, built by make, run on numpy arrays, timed, verified."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import tempfile
from typing import Any, Mapping, Sequence, Union

import numpy

from . import device, library, page, progress as progress_line, runner, tool
from .model import Model, Timing
from .ports import Port, in_order
from .progress import Progress
from .tool import GcompileError

ModelSource = Union[str, "os.PathLike[str]", bytes, Any]
Sizes = Mapping[str, Union[int, str, Sequence[int]]]


@dataclasses.dataclass(frozen=True)
class Verification:
    """Whether a project computes what it should. `findings` and `kernels` are as docs/json.md describes them."""

    ok: bool
    findings: list[dict[str, Any]]
    failures: list[str]
    kernels: list[dict[str, Any]]

    def __bool__(self) -> bool:
        return self.ok


def model_words(model: ModelSource) -> tuple[str, bytes | None]:
    """How the command line names a model, and what goes to standard input."""
    if isinstance(model, (bytes, bytearray)):
        return "-", bytes(model)
    if hasattr(model, "SerializeToString"):  # onnx.ModelProto
        return "-", model.SerializeToString()
    return os.fspath(model), None


def option_words(target: str, dims: Sizes | None, shapes: Mapping[str, Sequence[int | str]] | None,
                 sets: Mapping[str, Any] | None, states: Mapping[str, str] | None, options: Sequence[str]) -> list[str]:
    def listed(value: Any) -> str:
        items = numpy.ravel(numpy.asarray(value)).tolist()
        return ",".join(str(item).lower() if isinstance(item, bool) else str(item) for item in items)

    words = ["--target", target]
    for name, sizes in (dims or {}).items():
        words += ["--dim", f"{name}={listed(sizes)}"]
    for name, shape in (shapes or {}).items():
        words += ["--shape", f"{name}:" + "x".join(str(size) for size in shape)]
    for name, value in (sets or {}).items():
        words += ["--set", f"{name}={listed(value)}"]
    for source, result in (states or {}).items():
        words += ["--state", f"{source}={result}"]
    return words + [str(word) for word in options]


def compile(model: ModelSource, output: str | os.PathLike[str] | None = None, *, target: str = "cpp", dims: Sizes | None = None,
            shapes: Mapping[str, Sequence[int | str]] | None = None, sets: Mapping[str, Any] | None = None,
            states: Mapping[str, str] | None = None, name: str | None = None, options: Sequence[str] = ()) -> Project:
    """Compiles a model, a path, bytes or an onnx.ModelProto, into the folder `output`, or one that goes with the project.

    dims: sizes of open dimensions by name; a list, or bounds, let each run choose: {"batch": [1, 4], "length": "1..256"}.
    shapes: of inputs by name. sets: values of inputs that become constants. states: {input: output of the run before}.
    options: further options of `gcompile compile`, such as ["-O2", "--optimize-for", "size"].
    Raises GcompileError.
    """
    held = tempfile.TemporaryDirectory(prefix="gcompile_") if output is None else None
    place = pathlib.Path(held.name) / "project" if held else pathlib.Path(os.fspath(output))  # type: ignore[arg-type]
    words = option_words(target, dims, shapes, sets, states, options)
    naming = ["--name", name] if name else []
    word, piped = model_words(model)
    told = tool.answer(["compile", word, "-o", str(place), *naming, *words], piped)
    return Project(place, told, model, words, held)


def open(folder: str | os.PathLike[str]) -> Project:  # pylint: disable=redefined-builtin
    """A project that is there already, such as `gcompile model.onnx -o folder` makes. Raises GcompileError (4)."""
    place = pathlib.Path(os.fspath(folder))
    manifests = sorted((place / "meta").glob("*.json"))
    if len(manifests) != 1:
        raise GcompileError(4, [], f"'{place}' is no project of gcompile: there is no meta/NAME.json in it")
    told = json.loads(manifests[0].read_text(encoding="utf-8"))
    if told.get("generator") != "gcompile":
        raise GcompileError(4, [], f"'{place}' is no project of gcompile: {manifests[0].name} is of another program")
    return Project(place, {**told.get("statistics", {}), **told})


def check(model: ModelSource, *, target: str = "cpp", dims: Sizes | None = None,
          shapes: Mapping[str, Sequence[int | str]] | None = None, sets: Mapping[str, Any] | None = None,
          states: Mapping[str, str] | None = None, options: Sequence[str] = ()) -> dict[str, Any]:
    """What `gcompile check` answers: figures of a model that can be compiled. Raises GcompileError, with all errors."""
    word, piped = model_words(model)
    return tool.answer(["check", word, *option_words(target, dims, shapes, sets, states, options)], piped)


class Project:
    """A folder of sources at `path`. `answer` holds its figures, such as arena_bytes (docs/json.md)."""

    def __init__(self, path: pathlib.Path, answer: dict[str, Any], model: ModelSource | None = None,
                 words: Sequence[str] | None = None, held: Any = None):
        self.path = path
        self.answer = answer
        self.name: str = answer["name"]
        self.target: str = answer["target"]
        self.manifest: dict[str, Any] = json.loads((path / "meta" / f"{self.name}.json").read_text(encoding="utf-8"))
        self._model, self._words, self._held = model, None if words is None else list(words), held
        self._variables: Mapping[str, str] | None = None
        self._loaded: dict[int, Model] = {}
        self._last: Model | None = None  # the one that has the states of the last run
        self._runner: runner.Runner | None = None

    def __repr__(self) -> str:
        return f"<gcompile.Project {self.name} ({self.target}) in {self.path}>"

    def _repr_html_(self) -> str:
        return page.html_of(self)

    @property
    def inputs(self) -> tuple[Port, ...]:
        """In the model's order; where sizes are chosen, of the largest."""
        return self._ports("inputs")

    @property
    def outputs(self) -> tuple[Port, ...]:
        return self._ports("outputs")

    def _ports(self, which: str) -> tuple[Port, ...]:
        return tuple(Port(port["name"], port["element"], shape) for port, shape in zip(self.manifest[which], self._shapes(which)))

    def _shapes(self, which: str) -> list[tuple[int, ...]]:
        """Numbers; the library tells them where the manifest has formulas."""
        schedules = self.manifest.get("schedules")
        shapes = schedules[-1][which] if schedules else [port["shape"] for port in self.manifest[which]]
        if all(isinstance(size, int) for shape in shapes for size in shape):
            return [tuple(shape) for shape in shapes]
        return library.Library(self._built()).largest(which, len(shapes))

    def _built(self, jobs: int | None = None, tell: library.Tell = lambda text: None) -> pathlib.Path:
        """The library for this process, current."""
        return library.build(self.path, self.name, self._variables, jobs, tell)

    def build(self, *, jobs: int | None = None, variables: Mapping[str, str] | None = None) -> Project:
        """Builds library and runner by make; `variables` are the Makefile's: {"CXX": "clang++", "ARCH": "levels"}, and hold
        for what is built later. Raises BuildError where the compiler fails."""
        if variables != self._variables:
            self._loaded.clear()
            self._last = None
        self._variables = variables
        library.make(self.path, [f"build/{self.name}_run"], variables, jobs, lambda text: None)
        return self

    def load(self, *, threads: int = 1, jobs: int | None = None, progress: Progress = None) -> Model:
        """The project in this process, as a callable; builds it first where that is still to be done. Raises BuildError,
        and GcompileError where a CUDA project finds no device."""
        device.require(self.target)
        if self.target != "cpp":
            raise GcompileError(2, [], f"{self!r} runs in a process of its own, by run()")
        if threads not in self._loaded:
            line = progress_line.Line(self.name, progress)
            try:
                built = self._built(jobs, line)
            finally:
                line.close()
            self._loaded[threads] = Model(self, library.Library(built), threads)
        return self._loaded[threads]

    def reset(self) -> None:
        """The next run begins with empty states."""
        for model in self._loaded.values():
            model.reset()
        self._runner = None

    @property
    def states(self) -> dict[str, numpy.ndarray[Any, Any]]:
        """Copies of the states by the names of the inputs that they stand for."""
        if self.target != "cpp":
            return dict(self._runner.states) if self._runner else {}
        return (self._last or self.load()).states

    def run(self, *arrays: Any, threads: int = 1, **named: Any) -> dict[str, numpy.ndarray[Any, Any]]:
        """One run: arrays in the order of the inputs, or by name, which may also be a dictionary in their place. Returns the
        outputs by name. States stay from run to run. Builds first where that is still to be done. Raises InputError, a
        ValueError, for inputs that do not fit, RunError where the project refuses to run."""
        if self.target == "cpp":
            model, last = self.load(threads=threads), self._last
            if last is not None and last is not model and last.states:
                model.load_states(last.states)
            self._last = model
            return model(*arrays, **named)
        device.require(self.target)
        if self._runner is None:
            self.build()
            program = self.path / "build" / f"{self.name}_run"
            self._runner = runner.Runner(program, self.manifest, self.inputs, self.manifest["state_bytes"] > 1)
        return self._runner.run(in_order([port.name for port in self.inputs], arrays, named))

    def bench(self, *arrays: Any, repeat: int = 100, warmup: int = 3, threads: int = 1, seed: int = 1, **named: Any) -> Timing:
        """Times runs of the library in this process, on these arrays, or on random ones (Model.bench)."""
        return self.load().bench(*arrays, repeat=repeat, warmup=warmup, threads=threads, seed=seed, **named)

    def verify(self, data: str | os.PathLike[str] | None = None, *, layers: bool = False, cases: int | None = None,
               seed: int | None = None, threads: int = 1, options: Sequence[str] = ()) -> Verification:
        """Compares what the project computes with the outputs of `data` (input_K.pb and output_K.pb, or inputs.npz and
        outputs.npz), or on random inputs with the evaluator's. What is built is what load() has built; `layers`, and CUDA
        projects, need a build of their own. Raises GcompileError, except for differences, which are what it returns."""
        if self._model is None or self._words is None:
            raise GcompileError(2, [], f"{self!r} was opened, and knows no model to compare with; gcompile.compile() keeps it")
        word, piped = model_words(self._model)
        words = ["verify", word, *self._words, "--threads", str(threads), *options]
        for option, value in (("--data", data), ("--cases", cases), ("--seed", seed)):
            if value is not None:
                words += [option, str(value)]
        if layers:
            words.append("--layers")
        elif self.target == "cpp" and "--runner" not in options:
            words += ["--runner", str(self._built().with_name(f"{self.name}_python_run").resolve())]
        told = tool.answer(words, piped, accepted=(0, 3))
        return Verification(told["ok"], told["findings"], told["failures"], told["kernels"])
