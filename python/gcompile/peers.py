#!/usr/bin/env python3
"""Runtimes beside which projects are timed, each in a process of its own: by `gcompile bench`, and by tests/bench.

    peers.py RUNTIME MODEL.onnx INPUTS.npz THREADS OUTPUTS.npz

is such a process: it loads the model, writes the outputs, prints a line of JSON, {"version": ...} or {"refused": why},
then reads numbers of runs from standard input and answers each with their times in milliseconds, each by the clock and of
the processor, all threads together. A process of its own,
because a runtime may end it, and because the threads of one must not stand in the way of the next.
"""

from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import time
from typing import Any, Mapping, Sequence

import numpy as np

NAMES = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "ncnn": "ncnn"}
# Modules that a runtime needs; PyTorch reads ONNX files by onnx2torch.
MODULES = {"onnxruntime": ("onnxruntime",), "openvino": ("openvino",), "ncnn": ("ncnn", "pnnx"), "torch": ("torch", "onnx2torch")}
REFERENCE = "onnxruntime-plain"  # with its optimisations off: what is right, not what is fast


class Refused(Exception):
    """The runtime does not run this model: why."""


class OnnxRuntime:
    def __init__(self, model: pathlib.Path, inputs: Mapping[str, Any], threads: int, is_plain: bool = False):
        import onnxruntime

        self.version = onnxruntime.__version__
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        if is_plain:
            options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
        self.session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        # Bound once, so that a run copies neither names nor inputs, which must stay.
        self.inputs = inputs
        self.binding = self.session.io_binding()
        for name, value in inputs.items():
            self.binding.bind_cpu_input(name, value)
        for output in self.session.get_outputs():
            self.binding.bind_output(output.name)

    def run(self) -> None:
        self.session.run_with_iobinding(self.binding)

    def outputs(self) -> list[Any]:
        return list(self.binding.copy_outputs_to_cpu())


class OpenVino:
    def __init__(self, model: pathlib.Path, inputs: Mapping[str, Any], threads: int):
        import openvino

        self.version = openvino.__version__.split("-")[0]
        core = openvino.Core()
        network = core.read_model(str(model))
        network.reshape({name: value.shape for name, value in inputs.items()})
        compiled = core.compile_model(network, "CPU", {
            "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_PRECISION_HINT": "f32"})
        self.inputs = inputs  # read where they lie
        self.request = compiled.create_infer_request()
        for name, value in inputs.items():
            self.request.set_tensor(name, openvino.Tensor(value, shared_memory=True))

    def run(self) -> None:
        self.request.infer()

    def outputs(self) -> list[Any]:
        return [tensor.data for tensor in self.request.output_tensors]


class Ncnn:
    """Takes tensors of one sample in floats; pnnx turns the model into its format."""

    ELEMENTS = {"float32": "f32", "float64": "f64", "int32": "i32", "int64": "i64", "uint8": "u8", "bool": "bool"}

    def __init__(self, model: pathlib.Path, inputs: Mapping[str, Any], threads: int):
        import ncnn

        self.version, self.ncnn = ncnn.__version__, ncnn
        if any(value.dtype != np.float32 for value in inputs.values()):
            raise Refused("inputs other than float32")
        if any(value.ndim > 4 or value.ndim > 1 and value.shape[0] != 1 for value in inputs.values()):
            raise Refused("inputs of more than one sample")
        link = pathlib.Path("model.onnx")
        link.symlink_to(model)
        shapes = ",".join(f"[{','.join(map(str, v.shape))}]{self.ELEMENTS[str(v.dtype)]}" for v in inputs.values())
        # Not imported: the package would want torch, the converter does not.
        found = importlib.util.find_spec("pnnx")
        assert found is not None and found.origin is not None
        converter = pathlib.Path(found.origin).parent / "pnnx"
        done = subprocess.run([str(converter), str(link), f"inputshape={shapes}", "fp16=0"], capture_output=True, text=True,
                              errors="replace", timeout=600)
        if done.returncode != 0 or not pathlib.Path("model.ncnn.param").exists():
            raise Refused(f"pnnx ends with status {done.returncode}")
        self.net = ncnn.Net()
        self.net.opt.num_threads = threads
        for narrow in ("fp16_packed", "fp16_storage", "fp16_arithmetic", "bf16_storage"):
            setattr(self.net.opt, f"use_{narrow}", False)
        text = pathlib.Path("model.ncnn.param").read_text()
        foreign = sorted({line.split()[0] for line in text.splitlines()[2:] if "." in line.split()[0]})
        if foreign:
            raise Refused(f"no layer for {', '.join(foreign)}")
        if self.net.load_param("model.ncnn.param") != 0 or self.net.load_model("model.ncnn.bin") != 0:
            raise Refused("a layer is unknown to it")
        # ncnn's tensors are without the axis of samples.
        self.inputs = [ncnn.Mat(np.ascontiguousarray(v[0] if v.ndim > 1 else v)).clone() for v in inputs.values()]
        self.results: list[Any] = []

    def run(self) -> None:
        extractor = self.net.create_extractor()
        for name, value in zip(sorted(self.net.input_names()), self.inputs):
            extractor.input(name, value)
        found = [extractor.extract(name) for name in sorted(self.net.output_names())]
        if any(status != 0 for status, _ in found):
            raise Refused("a layer fails")
        self.results = [value for _, value in found]

    def outputs(self) -> list[Any]:
        return [np.array(value) for value in self.results]


class Torch:
    """The model as modules of PyTorch, one after the other."""

    def __init__(self, model: pathlib.Path, inputs: Mapping[str, Any], threads: int):
        import onnx2torch
        import torch

        self.version = torch.__version__.partition("+")[0]
        torch.set_num_threads(threads)
        self.module = onnx2torch.convert(str(model)).eval()
        self.inputs, self.no_grad = [torch.from_numpy(value) for value in inputs.values()], torch.no_grad
        self.results: list[Any] = []

    def run(self) -> None:
        with self.no_grad():
            found = self.module(*self.inputs)
        self.results = list(found) if isinstance(found, (list, tuple)) else [found]

    def outputs(self) -> list[Any]:
        return [value.numpy() for value in self.results]


RUNTIMES: dict[str, Any] = {"onnxruntime": OnnxRuntime, "openvino": OpenVino, "ncnn": Ncnn, "torch": Torch,
            REFERENCE: lambda model, inputs, threads: OnnxRuntime(model, inputs, threads, is_plain=True)}


def serve(runtime: str, model: str, inputs: str, threads: str, outputs: str) -> int:
    # What libraries print goes to standard error.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def answer(value: Any) -> None:
        answers.write(json.dumps(value) + "\n")

    try:
        peer = RUNTIMES[runtime](pathlib.Path(model).resolve(), dict(np.load(inputs)), int(threads))
        peer.run()
        np.savez(outputs, *peer.outputs())
    except Exception as error:  # whatever a runtime throws, it does not run the model
        answer({"refused": " ".join(str(error).split())[:160] or type(error).__name__})
        return 1
    answer({"version": peer.version})
    for line in sys.stdin:
        times = []
        for _ in range(int(line)):
            used, start = time.process_time(), time.perf_counter()
            peer.run()
            end = time.perf_counter()
            times.append(((end - start) * 1e3, (time.process_time() - used) * 1e3))
        answer(times)
    return 0


class Peer:
    """A runtime's process, seen from outside. Raises Refused where the model does not run."""

    def __init__(self, runtime: str, model: str | os.PathLike[str], inputs: pathlib.Path, threads: int, folder: pathlib.Path,
                 started_by: Sequence[str] = ()):
        """`started_by`: words before its own command, which name the processors it may use, say."""
        folder.mkdir(parents=True)
        self.outputs_file = folder / "outputs.npz"
        self.log = (folder / "log").open("w+")
        self.process = subprocess.Popen(
            [*started_by, sys.executable, str(pathlib.Path(__file__).resolve()), runtime, str(pathlib.Path(model).resolve()),
             str(inputs.resolve()), str(threads), str(self.outputs_file.resolve())],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True)
        try:
            first = self._answer()
            if "refused" in first:
                raise Refused(first["refused"])
        except Refused:
            self.close()
            raise
        self.version = first["version"]

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Refused(f"its process ended with status {self.process.wait()}")
        return json.loads(line)

    def outputs(self) -> list[Any]:
        with np.load(self.outputs_file) as file:
            return [file[name] for name in file.files]

    def times(self, repeat: int) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{repeat}\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        self.process.communicate(timeout=60)
        self.log.close()


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    sys.exit(serve(*sys.argv[1:]))
