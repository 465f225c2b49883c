"""A project that runs in this process, on numpy arrays."""

from __future__ import annotations

import ctypes
import dataclasses
import os
import pathlib
import threading
import weakref
from typing import TYPE_CHECKING, Any, Mapping, Sequence

import numpy

from .library import Library, Memory, RunError
from .ports import InputError, Port, as_array, in_order

if TYPE_CHECKING:
    from .project import Project

# bridge.cpp: answers of gcompile_call that are no status of a run.
MISFIT, OVERLAP, OUTPUTS_OVERLAP = 1000, 2000, 3000
# How many shapes of inputs a model keeps in mind.
MOST_PLANS = 256

_empty = numpy.empty


@dataclasses.dataclass(frozen=True)
class Timing:
    """Milliseconds of `repeat` runs that follow each other in one process, on `threads` threads."""

    min_ms: float
    median_ms: float
    p90_ms: float
    repeat: int
    threads: int


class _Call(ctypes.Structure):
    """Plan of bridge.cpp."""

    _fields_ = [("sizes", ctypes.c_void_p), ("table", ctypes.c_void_p), ("inputs", ctypes.c_int64), ("outputs", ctypes.c_int64)]


class _Plan:
    """What a run of given shapes takes and makes: the rows of `table`, as bridge.cpp reads them, and its sizes."""

    def __init__(self, inputs: Sequence[Port], outputs: Sequence[Port], shapes: Sequence[tuple[int, ...]],
                 made: Sequence[tuple[int, ...]], most_rank: int, sizes: Any):
        self.inputs, self.made, self.sizes = tuple(shapes), tuple(made), sizes
        self.sizes_at = None if sizes is None else ctypes.addressof(sizes)
        self.table = numpy.zeros((len(inputs) + len(outputs), 5 + most_rank), "int64")
        self.room = [(port.stored_shape(shape), port.stored) for port, shape in zip(outputs, made)]
        rows = [(port.stored_shape(shape), port.stored) for port, shape in zip(inputs, shapes)] + self.room
        for row, (shape, stored) in zip(self.table, rows):
            count = int(numpy.prod(shape, dtype="int64"))
            row[:4] = ord(stored.kind), stored.itemsize, count * stored.itemsize, len(shape)
            row[4:4 + len(shape)] = shape
        self._call = _Call(self.sizes_at, self.table.ctypes.data, len(inputs), len(outputs))
        self.at = ctypes.addressof(self._call)


class _Facts:
    """What is the same for all contexts of a model: its library, ports, states and weights."""

    def __init__(self, path: pathlib.Path, library: Library, manifest: Mapping[str, Any], inputs: Sequence[Port],
                 outputs: Sequence[Port]):
        self.library, self.inputs, self.outputs = library, tuple(inputs), tuple(outputs)
        self.input_names = [port.name for port in inputs]
        self.names = [port.name for port in outputs]
        blocks = (ctypes.c_int64 * 6)()
        library.blocks(blocks)
        self.arena, self.state, self.weights_bytes, self.instance, self.alignment, self.most_rank = (int(x) for x in blocks)
        self.counted = [(index, port["counted"]["axis"], port["counted"]["output"])
                        for index, port in enumerate(manifest["outputs"]) if "counted" in port]
        self.is_plain = not self.counted and not any(port.is_converted for port in (*inputs, *outputs))
        self.size_names = [(size["name"], size["c_name"]) for size in manifest.get("sizes", [])]
        self.states = self._states()
        self.state_shapes = tuple(port.shape for port, _, _ in self.states)
        self.grows = library.held_shape is not None
        self.weights: Any = None
        if library.weights_path():
            self.weights = self.block(self.weights_bytes)
            whole = numpy.fromfile(path / "data" / f"{manifest['name']}.weights.bin", "uint8")
            if whole.size != self.weights_bytes:
                raise RunError(-1, f"the weights of {path} have {whole.size} bytes, not {self.weights_bytes}")
            self.weights[:] = whole
        self.plans: dict[Any, _Plan] = {}
        self.lock = threading.Lock()
        if not self.size_names:
            self.plans[None] = _Plan(self.inputs, self.outputs, [port.shape for port in inputs],
                                     [port.shape for port in outputs], self.most_rank, None)

    def block(self, count: int) -> Any:
        """Bytes at an aligned address. All ones are NaN in every floating type: whoever reads what nobody wrote shows it."""
        room = numpy.full(count + self.alignment, 0xFF, "uint8")
        start = -room.ctypes.data % self.alignment
        return room[start:start + count]

    def _states(self) -> list[tuple[Port, str, int]]:
        """Each with its name in C and its place in the memory of states."""
        found: list[tuple[Port, str, int]] = []
        names, numbers, shape = (ctypes.c_char_p * 3)(), (ctypes.c_int64 * 2)(), (ctypes.c_int64 * (self.most_rank + 1))()
        while True:
            rank = self.library.state(len(found), names, numbers, shape)
            if rank < 0:
                return found
            name, c_name, element = (text.decode() for text in names)  # type: ignore[union-attr]
            found.append((Port(name, element, tuple(shape[:rank])), c_name, numbers[1]))

    def plan(self, shapes: tuple[tuple[int, ...], ...], held: tuple[tuple[int, ...], ...],
             sizes: Mapping[str, int] | None) -> _Plan:
        """The plan of a run whose inputs have these shapes. Raises InputError."""
        if not self.size_names:
            if sizes:
                raise InputError("this project has no sizes to choose")
            for port, shape in zip(self.inputs, shapes):
                if shape != port.shape:
                    shown = ", ".join(str(shape) for shape in shapes)
                    wanted = ", ".join(f"'{port.name}' {port.shape}" for port in self.inputs)
                    raise InputError(f"the arrays have shapes {shown}; the project takes {wanted}")
            return self.plans[None]
        key = (shapes, held, tuple(sorted(sizes.items())) if sizes else ())
        with self.lock:
            if key not in self.plans:
                if len(self.plans) >= MOST_PLANS:
                    self.plans.clear()
                self.plans[key] = self._sized_plan(shapes, held, sizes or {})
            return self.plans[key]

    def _sized_plan(self, shapes: Sequence[tuple[int, ...]], held: Sequence[tuple[int, ...]], sizes: Mapping[str, int]) -> _Plan:
        numbers, told = self.told(sizes)
        of_inputs, of_states = self.rows(shapes, len(self.inputs)), self.rows(held, len(self.states))
        if not self.library.find_sizes(of_inputs.ctypes.data, of_states.ctypes.data, told, numbers):
            shown = ", ".join(f"'{port.name}' {list(shape)}" for port, shape in zip(self.inputs, shapes))
            raise InputError(f"no run has inputs of these shapes: {shown}; the sizes are\n{self.library.sizes_text().decode()}")
        made = []
        for index in range(len(self.outputs)):
            shape = (ctypes.c_int64 * (self.most_rank + 1))()
            rank = self.library.output_shape(numbers, index, shape)
            if rank < 0:
                raise InputError(f"no run has these sizes; the sizes are\n{self.library.sizes_text().decode()}")
            made.append(tuple(shape[:rank]))
        return _Plan(self.inputs, self.outputs, shapes, made, self.most_rank, numbers)

    def told(self, sizes: Mapping[str, int]) -> tuple[Any, Any]:
        """Numbers for all sizes of a run, and which of them the caller has told."""
        count = len(self.size_names)
        numbers, told = (ctypes.c_int64 * count)(), (ctypes.c_bool * count)()
        for name, size in sizes.items():
            places = [i for i, names in enumerate(self.size_names) if name in names]
            if not places:
                raise InputError(f"no size is called '{name}'; the sizes are\n{self.library.sizes_text().decode()}")
            numbers[places[0]], told[places[0]] = int(size), True
        return numbers, told

    def rows(self, shapes: Sequence[tuple[int, ...]], count: int) -> Any:
        """Shapes as gcompile_find_sizes takes them."""
        rows = numpy.full((count, self.most_rank + 1), -1, "int64")
        for row, shape in zip(rows, shapes):
            if len(shape) > self.most_rank:
                raise InputError(f"no tensor of this model has {len(shape)} dimensions")
            row[0] = len(shape)
            row[1:1 + len(shape)] = shape
        return rows


def _release(library: Library, threads: int, process: int) -> None:
    # In a child that was forked the threads are not there to be waited for.
    if os.getpid() == process:
        library.threads_destroy(threads)


class Context:
    """Memory for runs that follow each other: arena, state and threads. One thread at a time uses it."""

    def __init__(self, facts: _Facts, threads: int):
        if threads < 1:
            raise ValueError(f"a model cannot run on {threads} threads")
        self._facts, self.threads = facts, threads
        library = facts.library
        self._blocks = [facts.block(size) for size in (facts.arena, facts.state, facts.instance)]
        arena, state, instance = (block.ctypes.data for block in self._blocks)
        weights = None if facts.weights is None else facts.weights.ctypes.data
        pool = library.threads_create(threads) if threads > 1 else None
        if threads > 1 and not pool:
            raise RunError(-1, f"cannot start {threads} threads")
        self._memory = Memory(arena, weights, state, instance, None, pool)
        self._memory_at = ctypes.addressof(self._memory)
        if pool:
            weakref.finalize(self, _release, library, pool, os.getpid())
        library.require(library.init(self._memory_at), "init")
        self._is_used = threading.Lock()
        self._input_count = len(facts.inputs)
        self._fixed_plan = facts.plans.get(None)
        self._first_output = facts.names[0] if len(facts.names) == 1 else None

    def run(self, arrays: Sequence[Any], out: Any = None, sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
        """Runs on arrays in the order of the inputs; `out` and `sizes` as in Model.run. Raises InputError, RunError."""
        if len(arrays) != self._input_count:
            raise InputError(f"{len(arrays)} arrays for {self._input_count} inputs: {', '.join(self._facts.input_names)}")
        if not self._is_used.acquire(False):  # pylint: disable=consider-using-with
            raise RunError(-1, "two threads use one context at the same time; each needs one of its own")
        try:
            plan: Any = self._known_plan(arrays) if sizes is None and self._facts.is_plain else None
            made = None if plan is None else self._room(plan, out)
            if made is not None:
                status = self._facts.library.call(self._memory_at, plan.at, (*arrays, *made))
                if status == 0:
                    return {self._first_output: made[0]} if self._first_output else dict(zip(self._facts.names, made))
                if status < MISFIT:
                    self._facts.library.require(status, "run")
            return self._run(arrays, out, sizes)
        finally:
            self._is_used.release()

    def _known_plan(self, arrays: Sequence[Any]) -> Any:
        """The plan of arrays of such shapes, if there was one before."""
        if self._fixed_plan is not None:
            return self._fixed_plan
        try:
            return self._facts.plans.get((tuple([array.shape for array in arrays]), self._held(), ()))
        except (AttributeError, TypeError):  # a list, a tensor
            return None

    @staticmethod
    def _room(plan: _Plan, out: Any) -> Any:
        """Arrays for the outputs, which the library judges; None where `out` is not simply all of them."""
        if out is None:
            return [_empty(shape, stored) for shape, stored in plan.room]
        if isinstance(out, numpy.ndarray):
            out = (out,)
        return out if isinstance(out, (list, tuple)) and len(out) == len(plan.room) else None

    def _run(self, arrays: Sequence[Any], out: Any, sizes: Mapping[str, int] | None) -> dict[str, Any]:
        """As run(), for arrays of any kind."""
        facts = self._facts
        given = [as_array(array, port) for port, array in zip(facts.inputs, arrays)]
        plan = facts.plan(tuple(array.shape for array in given), self._held(), sizes)
        stored = [port.packed(array) if port.is_converted else array for port, array in zip(facts.inputs, given)]
        wanted = self._wanted(out, plan)
        made = [numpy.empty(shape, kind) if array is None or port.is_converted else array
                for array, port, (shape, kind) in zip(wanted, facts.outputs, plan.room)]
        status = OVERLAP
        while status >= OVERLAP:
            status = facts.library.call(self._memory_at, plan.at, (*stored, *made))
            if status >= OVERLAP:
                stored[status - OVERLAP] = stored[status - OVERLAP].copy()
        if status >= MISFIT:
            place = status - MISFIT - len(stored)
            raise RunError(-1, f"output '{facts.names[place]}' does not fit" if place >= 0 else "an input does not fit")
        facts.library.require(status, "run")
        for index, port in enumerate(facts.outputs):
            if port.is_converted:
                made[index] = port.unpacked(made[index], plan.made[index])
                if wanted[index] is not None:
                    numpy.copyto(wanted[index], made[index])
                    made[index] = wanted[index]
        counts = [int(made[count]) for _, _, count in facts.counted]
        for (index, axis, _), count in zip(facts.counted, counts):
            made[index] = made[index][(slice(None),) * axis + (slice(0, max(count, 0)),)]
        return dict(zip(facts.names, made))

    def _wanted(self, out: Any, plan: _Plan) -> list[Any]:
        """The caller's arrays for outputs, None where there is none."""
        ports = self._facts.outputs
        if out is None:
            return [None] * len(ports)
        if isinstance(out, Mapping):
            unknown = [name for name in out if name not in self._facts.names]
            if unknown:
                raise InputError(f"no output is called '{unknown[0]}'; there are {', '.join(self._facts.names)}")
            wanted = [out.get(name) for name in self._facts.names]
        else:
            wanted = [out] if isinstance(out, numpy.ndarray) else list(out)
            if len(wanted) != len(ports):
                raise InputError(f"{len(wanted)} arrays for {len(ports)} outputs: {', '.join(self._facts.names)}")
        for array, port, shape in zip(wanted, ports, plan.made):
            if array is None:
                continue
            if not isinstance(array, numpy.ndarray):
                raise InputError(f"output '{port.name}' needs a numpy array, not {type(array).__name__}")
            if array.dtype != port.dtype or array.shape != shape:
                raise InputError(f"output '{port.name}' is {port.dtype} {shape}, the array {array.dtype} {array.shape}")
            if not array.flags.carray:
                raise InputError(f"the array for output '{port.name}' is not dense, aligned and writeable")
        for index, array in enumerate(wanted):
            if array is not None and any(other is not None and numpy.may_share_memory(array, other) for other in wanted[:index]):
                raise InputError(f"the array for output '{ports[index].name}' shares memory with another one")
        return wanted

    def _held(self) -> tuple[tuple[int, ...], ...]:
        """Shapes of the states as they are, where that tells the sizes of runs."""
        if not self._facts.grows:
            return self._facts.state_shapes
        return tuple([self._state_shape(index) for index in range(len(self._facts.states))])

    def _state_shape(self, index: int) -> tuple[int, ...]:
        port = self._facts.states[index][0]
        if not self._facts.grows:
            return port.shape
        shape = (ctypes.c_int64 * (self._facts.most_rank + 1))()
        self._facts.library.require(self._facts.library.held_shape(self._memory_at, index, shape), "held_sizes")
        return tuple(shape[:len(port.shape)])

    def reset(self) -> None:
        """The next run begins with an empty state."""
        self._facts.library.require(self._facts.library.reset(self._memory_at), "reset")

    @property
    def states(self) -> dict[str, Any]:
        """Copies of the states by the names of the inputs that they stand for."""
        found = {}
        for index, (port, _, offset) in enumerate(self._facts.states):
            shape = self._state_shape(index)
            array = numpy.empty(port.stored_shape(shape), port.stored)
            if self._facts.grows:
                saved = self._facts.library.save_state(self._memory_at, index, array.ctypes.data)
                self._facts.library.require(saved, "save_state")
            else:
                array.view("uint8").reshape(-1)[:] = self._blocks[1][offset:offset + array.nbytes]
            found[port.name] = port.unpacked(array, shape) if port.is_converted else array
        return found

    def load_states(self, states: Mapping[str, Any], sizes: Mapping[str, int] | None = None) -> None:
        """Puts arrays in the place of states, by name. Where states grow, all of them, and their sizes are those of the
        arrays, unless `sizes` tells others. Raises InputError."""
        facts = self._facts
        known = {port.name: index for index, (port, _, _) in enumerate(facts.states)}
        unknown = [name for name in states if name not in known]
        if unknown:
            raise InputError(f"no state is called '{unknown[0]}'; there are {', '.join(known) or 'none'}")
        arrays = {known[name]: as_array(array, facts.states[known[name]][0]) for name, array in states.items()}
        numbers = self._sizes_of_states(arrays, sizes or {}) if facts.grows else None
        for index, array in arrays.items():
            port, _, offset = facts.states[index]
            stored = port.packed(array) if port.is_converted else array
            if numbers is not None:
                loaded = facts.library.load_state(self._memory_at, numbers, index, stored.ctypes.data)
                facts.library.require(loaded, "load_state")
            elif array.shape != port.shape:
                raise InputError(f"state '{port.name}' is {port.shape}, the array {array.shape}")
            else:
                self._blocks[1][offset:offset + stored.nbytes] = stored.reshape(-1).view("uint8")

    def _sizes_of_states(self, arrays: Mapping[int, Any], sizes: Mapping[str, int]) -> Any:
        facts = self._facts
        if len(arrays) != len(facts.states):
            raise InputError(f"states that grow are given together: {', '.join(port.name for port, _, _ in facts.states)}")
        numbers, told = facts.told(sizes)
        shapes = [arrays[index].shape for index in range(len(facts.states))]
        if not facts.library.find_sizes(None, facts.rows(shapes, len(shapes)).ctypes.data, told, numbers):
            raise InputError(f"no run begins with states of these shapes: {', '.join(map(str, shapes))}")
        return numbers


class Model:
    """A callable: `model(x)`, `model(x=x)`, `model({"x": x})` give a dictionary of arrays by the names of the outputs.

    Every thread of Python that calls it has memory, states and threads of its own; the weights are there once. Other
    threads of Python run meanwhile. Arrays of the right type that lie dense are read where they are."""

    def __init__(self, project: Project, library: Library, threads: int = 1):
        self._facts = _Facts(project.path, library, project.manifest, project.inputs, project.outputs)
        self.project = project
        self.threads = threads
        self._local = threading.local()
        self._input_count = len(self._facts.inputs)
        _models.add(self)
        self._context()  # a model that cannot run says so at once

    def __repr__(self) -> str:
        def shown(ports: Sequence[Port]) -> str:
            return ", ".join(f"{port.name}: {port.element}{list(port.shape)}" for port in ports)

        return f"<gcompile.Model {self.project.name} ({shown(self.inputs)}) -> ({shown(self.outputs)})>"

    def _repr_html_(self) -> str:
        return self.project._repr_html_()

    @property
    def inputs(self) -> tuple[Port, ...]:
        """In the model's order; where sizes are chosen, of the largest."""
        return self._facts.inputs

    @property
    def outputs(self) -> tuple[Port, ...]:
        return self._facts.outputs

    def _context(self) -> Context:
        found: Context | None = getattr(self._local, "context", None)
        if found is None:
            found = self._local.context = Context(self._facts, self.threads)
        return found

    def context(self, threads: int | None = None) -> Context:
        """Memory, states and threads of their own, for one more row of runs."""
        return Context(self._facts, self.threads if threads is None else threads)

    def __call__(self, *arrays: Any, out: Any = None, **named: Any) -> dict[str, Any]:
        """One run: arrays in the order of the inputs, by name, or a dictionary. `out` as in run(). Raises InputError for
        inputs that do not fit, RunError where the project refuses to run."""
        if named or len(arrays) != self._input_count or (arrays and isinstance(arrays[0], Mapping)):
            arrays = tuple(in_order(self._facts.input_names, arrays, named))
        try:
            context = self._local.context
        except AttributeError:
            context = self._context()
        return context.run(arrays, out)  # type: ignore[no-any-return]

    def run(self, inputs: Mapping[str, Any] | Sequence[Any], *, out: Any = None,
            sizes: Mapping[str, int] | None = None) -> dict[str, Any]:
        """The same with all inputs in a dictionary or a list.

        out: arrays that the outputs are written to: one, one for each output, or a dictionary of some.
        sizes: sizes of the run that the inputs do not tell, by name; the largest otherwise."""
        given = ({}, inputs) if isinstance(inputs, Mapping) else (inputs, {})
        return self._context().run(in_order(self._facts.input_names, tuple(given[0]), given[1]), out, sizes)

    @property
    def states(self) -> dict[str, Any]:
        """Copies of this thread's states, by the names of the inputs that they stand for."""
        return self._context().states

    def load_states(self, states: Mapping[str, Any], sizes: Mapping[str, int] | None = None) -> None:
        """Puts arrays in the place of this thread's states (Context.load_states)."""
        self._context().load_states(states, sizes)

    def reset(self) -> None:
        """This thread's next run begins with an empty state."""
        self._context().reset()

    def bench(self, *arrays: Any, repeat: int = 100, warmup: int = 3, threads: int | None = None, seed: int = 1,
              **named: Any) -> Timing:
        """Times runs of the library itself, on these arrays, or on random ones like NAME_bench."""
        facts, context = self._facts, self.context(threads)
        given = in_order(self._facts.input_names, arrays, named) if arrays or named else self.random_inputs(seed)
        arrays_of = [as_array(array, port) for port, array in zip(facts.inputs, given)]
        plan = facts.plan(tuple(array.shape for array in arrays_of), context._held(), None)
        stored = [port.packed(array) if port.is_converted else array for port, array in zip(facts.inputs, arrays_of)]
        stored += [numpy.empty(shape, kind) for shape, kind in plan.room]
        addresses = (ctypes.c_void_p * max(len(stored), 1))(*[array.ctypes.data for array in stored])
        times = numpy.empty(warmup + repeat, "float64")
        for begin, count in ((0, warmup), (warmup, repeat)):
            status = facts.library.time(context._memory_at, plan.sizes_at, addresses, len(facts.inputs), count,
                                        times[begin:].ctypes.data)
            facts.library.require(status, "run")
        found = numpy.sort(times[warmup:])
        return Timing(float(found[0]), float(numpy.median(found)), float(found[int(0.9 * (repeat - 1) + 0.5)]), repeat,
                      context.threads)

    def random_inputs(self, seed: int = 1) -> list[Any]:
        """Inputs of the largest sizes as NAME_run --random makes them: floats from [-1, 1), integers 0 or 1."""
        found = []
        for index, port in enumerate(self.inputs):
            stored = numpy.zeros(port.stored_shape(port.shape), port.stored)
            self._facts.library.fill(index, seed + index, stored.ctypes.data, stored.nbytes)
            found.append(port.unpacked(stored, port.shape) if port.is_converted else stored)
        return found


_models: weakref.WeakSet[Model] = weakref.WeakSet()


def _forget_contexts() -> None:
    """In a child that was forked: its parent's threads are not there."""
    for model in _models:
        model._local = threading.local()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_contexts)
