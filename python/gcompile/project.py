"""Projects: made of a model, built by make, run on numpy arrays, verified."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import tempfile
from typing import Any, Mapping, Sequence, Union

import numpy

from . import tool
from .tool import GcompileError

Model = Union[str, "os.PathLike[str]", bytes, Any]
# With which a project's runner ends where no run has inputs of the arrays' shapes; gcrt/app/tensor.h has it.
NO_SUCH_SHAPES = 3
Sizes = Mapping[str, Union[int, Sequence[int]]]


@dataclasses.dataclass(frozen=True)
class Port:
    """An input or an output. `element` is ONNX's name, such as float32; bfloat16 is float32 in numpy, integers of 4
    and 2 bits are bytes, and of floats of 8 and 4 bits the arrays have the codes, a byte each."""

    name: str
    element: str
    shape: tuple[int, ...]

    @property
    def dtype(self) -> numpy.dtype[Any]:
        if self.element.startswith(("float8", "float4")):
            return numpy.dtype("uint8")
        others = {"bfloat16": "float32", "int4": "int8", "int2": "int8", "uint4": "uint8", "uint2": "uint8"}
        return numpy.dtype(others.get(self.element, self.element))


@dataclasses.dataclass(frozen=True)
class Verification:
    """Whether a project computes what it should. `findings` and `kernels` are as docs/json.md describes them."""

    ok: bool
    findings: list[dict[str, Any]]
    failures: list[str]
    kernels: list[dict[str, Any]]

    def __bool__(self) -> bool:
        return self.ok


def _model_words(model: Model) -> tuple[str, bytes | None]:
    """How the command line names a model, and what goes to standard input."""
    if isinstance(model, (bytes, bytearray)):
        return "-", bytes(model)
    if hasattr(model, "SerializeToString"):  # onnx.ModelProto
        return "-", model.SerializeToString()
    return os.fspath(model), None


def _option_words(target: str, dims: Sizes | None, shapes: Mapping[str, Sequence[int | str]] | None,
                  sets: Mapping[str, Any] | None, states: Mapping[str, str] | None, options: Sequence[str]) -> list[str]:
    def listed(value: Any) -> str:
        return ",".join(str(item) for item in numpy.ravel(numpy.asarray(value)).tolist())

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


def compile(model: Model, output: str | os.PathLike[str] | None = None, *, target: str = "cpp", dims: Sizes | None = None,
            shapes: Mapping[str, Sequence[int | str]] | None = None, sets: Mapping[str, Any] | None = None,
            states: Mapping[str, str] | None = None, name: str | None = None, options: Sequence[str] = ()) -> Project:
    """Compiles a model, a path, bytes or an onnx.ModelProto, into the folder `output`, or one that goes with the project.

    dims: sizes of open dimensions by name; a list lets each run choose: {"batch": [1, 4]}.
    shapes: of inputs by name. sets: values of inputs that become constants. states: {input: output of the run before}.
    options: further options of `gcompile compile`, such as ["-O2", "--optimize-for", "size"].
    Raises GcompileError.
    """
    held = tempfile.TemporaryDirectory(prefix="gcompile_") if output is None else None
    place = pathlib.Path(held.name) / "project" if held else pathlib.Path(os.fspath(output))  # type: ignore[arg-type]
    words = _option_words(target, dims, shapes, sets, states, options)
    naming = ["--name", name] if name else []
    word, piped = _model_words(model)
    told = tool.answer(["compile", word, "-o", str(place), *naming, *words], piped)
    return Project(place, told, model, words, bool(states), held)


def check(model: Model, *, target: str = "cpp", dims: Sizes | None = None,
          shapes: Mapping[str, Sequence[int | str]] | None = None, sets: Mapping[str, Any] | None = None,
          states: Mapping[str, str] | None = None, options: Sequence[str] = ()) -> dict[str, Any]:
    """What `gcompile check` answers: figures of a model that can be compiled. Raises GcompileError, with all errors."""
    word, piped = _model_words(model)
    return tool.answer(["check", word, *_option_words(target, dims, shapes, sets, states, options)], piped)


class Project:
    """A folder of sources at `path`. `answer` holds its figures, such as arena_bytes (docs/json.md)."""

    def __init__(self, path: pathlib.Path, answer: dict[str, Any], model: Model, words: Sequence[str], has_states: bool,
                 held: Any):
        self.path = path
        self.answer = answer
        self.name: str = answer["name"]
        self.target: str = answer["target"]
        self.manifest: dict[str, Any] = json.loads((path / "meta" / f"{self.name}.json").read_text(encoding="utf-8"))
        self._model, self._words, self._held = model, list(words), held
        self._has_states = has_states
        self._states: dict[str, numpy.ndarray[Any, Any]] = {}
        self._runner: pathlib.Path | None = None

    def __repr__(self) -> str:
        return f"<gcompile.Project {self.name} ({self.target}) in {self.path}>"

    @property
    def inputs(self) -> tuple[Port, ...]:
        """In the model's order; where sizes are chosen, of the largest."""
        return self._ports("inputs")

    @property
    def outputs(self) -> tuple[Port, ...]:
        return self._ports("outputs")

    def _ports(self, which: str) -> tuple[Port, ...]:
        schedules = self.manifest.get("schedules")
        ports = self.manifest[which]
        shapes = schedules[-1][which] if schedules else [port["shape"] for port in ports]
        return tuple(Port(port["name"], port["element"], tuple(shape)) for port, shape in zip(ports, shapes))

    def build(self, *, jobs: int | None = None, variables: Mapping[str, str] | None = None) -> Project:
        """Builds library and runner by make; `variables` are the Makefile's: {"CXX": "clang++", "ARCH": "levels"}.
        Raises GcompileError (4) where the compiler fails."""
        given = [f"{key}={value}" for key, value in (variables or {}).items()]
        program = f"build/{self.name}_run"
        done = subprocess.run(["make", "-C", str(self.path), f"-j{jobs or os.cpu_count() or 1}", program, *given],
                              capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise GcompileError(4, [], f"make {program} failed in {self.path}:\n{done.stderr}")
        self._runner = self.path / program
        return self

    def reset(self) -> None:
        """The next run begins with states of zero."""
        self._states.clear()

    def run(self, *arrays: Any, threads: int = 1, **named: Any) -> dict[str, numpy.ndarray[Any, Any]]:
        """One run: arrays in the order of the inputs, or by name, which may also be a dictionary in their place. Returns the
        outputs by name. States stay from run to run. Builds first where that is still to be done.
        Raises ValueError for inputs that do not fit, GcompileError where the program fails."""
        if len(arrays) == 1 and isinstance(arrays[0], Mapping):
            named, arrays = {**arrays[0], **named}, ()
        given = self._given(arrays, named)
        self._check_shapes(given)
        if self._runner is None:
            self.build()
        with tempfile.TemporaryDirectory(prefix="gcompile_run_") as folder:
            return self._run_in(pathlib.Path(folder), given, threads)

    def _given(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[numpy.ndarray[Any, Any]]:
        ports = self.inputs
        if len(arrays) > len(ports):
            raise ValueError(f"{len(arrays)} arrays for {len(ports)} inputs: {', '.join(port.name for port in ports)}")
        values = {port.name: array for port, array in zip(ports, arrays)}
        for name, array in named.items():
            if name not in {port.name for port in ports}:
                raise ValueError(f"no input is called '{name}'; there are {', '.join(port.name for port in ports)}")
            if name in values:
                raise ValueError(f"input '{name}' is given twice")
            values[name] = array
        missing = [port.name for port in ports if port.name not in values]
        if missing:
            raise ValueError(f"no array for {', '.join(missing)}")
        given = []
        for port in ports:
            array = numpy.asarray(values[port.name])
            if not numpy.can_cast(array.dtype, port.dtype, "same_kind"):
                raise ValueError(f"input '{port.name}' is {port.element}, the array {array.dtype}")
            given.append(numpy.array(array, port.dtype, order="C"))
        return given

    def _check_shapes(self, given: Sequence[numpy.ndarray[Any, Any]]) -> None:
        """That a project without choices or bounds takes the arrays; else the runner finds sizes that fit."""
        if self.manifest.get("sizes"):
            return
        for port, array in zip(self.inputs, given):
            if tuple(array.shape) != port.shape:
                shown = ", ".join(str(tuple(array.shape)) for array in given)
                wanted = ", ".join(f"'{port.name}' {port.shape}" for port in self.inputs)
                raise ValueError(f"the arrays have shapes {shown}; the project takes {wanted}")

    def _run_in(self, folder: pathlib.Path, given: Sequence[numpy.ndarray[Any, Any]],
                threads: int) -> dict[str, numpy.ndarray[Any, Any]]:
        command = [str(self._runner), "--output-dir", str(folder / "out"), "--threads", str(threads)]
        for index, array in enumerate(given):
            numpy.save(folder / f"{index}.npy", array)
            command.append(str(folder / f"{index}.npy"))
        for name, state in self._states.items():
            numpy.save(folder / f"state_{name}.npy", state)
            command += ["--state", f"{name}={folder / f'state_{name}.npy'}"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == NO_SUCH_SHAPES:
            raise ValueError(done.stderr.strip().removeprefix("error: "))
        if done.returncode != 0:
            raise GcompileError(done.returncode, [], done.stderr.strip() or f"the program ended with {done.returncode}")
        outputs = {port["name"]: numpy.load(folder / "out" / f"{index}_{port['c_name']}.npy")
                   for index, port in enumerate(self.manifest["outputs"])}
        if self._has_states:
            # Files state_<index>_<name>.npy.
            files = sorted((folder / "out").glob("state_*.npy"))
            self._states = {path.stem.split("_", 2)[2]: numpy.load(path) for path in files}
        return outputs

    def verify(self, data: str | os.PathLike[str] | None = None, *, layers: bool = False, cases: int | None = None,
               seed: int | None = None, threads: int = 1, options: Sequence[str] = ()) -> Verification:
        """Builds the project once more, and compares its outputs with those of `data` (input_K.pb and output_K.pb, or
        inputs.npz and outputs.npz), or on random inputs with the evaluator's. Raises GcompileError, except for
        differences, which are what it returns."""
        word, piped = _model_words(self._model)
        words = ["verify", word, *self._words, "--threads", str(threads), *options]
        for option, value in (("--data", data), ("--cases", cases), ("--seed", seed)):
            if value is not None:
                words += [option, str(value)]
        told = tool.answer(words + (["--layers"] if layers else []), piped, accepted=(0, 3))
        return Verification(told["ok"], told["findings"], told["failures"], told["kernels"])
