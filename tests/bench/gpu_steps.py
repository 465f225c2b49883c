"""Steps of gpu_check.py: each with a limit of time, none in the way of the next."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import threading
import time


class Check:
    """What is known about this run: where things are, how much time is left, how the steps went."""

    def __init__(self, arguments):
        self.arguments = arguments
        self.start = time.monotonic()
        self.work = arguments.work
        self.results_file = arguments.results / "results.json"
        self.steps = []
        self.lock = threading.RLock()  # of the results: steps run beside each other
        self.gcompile = None
        self.programs = None  # folder of cuda_kernels_on_gpu and cuda_kernel_bench
        self.tiles = None  # the tests of the tile unit
        self.cores_of_builds = list(range(os.cpu_count() or 1))
        self.after_step = None  # what else is done when a step is over
        self.loader_path = None  # of a gcompile that was built elsewhere
        self.architecture = "sm_90a"
        self.environment = dict(os.environ)
        self.nvcc = next((p for p in (os.environ.get("NVCC"), shutil.which("nvcc"), "/usr/local/cuda/bin/nvcc")
                          if p and os.access(p, os.X_OK)), None)
        if self.nvcc:
            folder = str(pathlib.Path(self.nvcc).parent)
            self.environment["PATH"] = folder + os.pathsep + self.environment["PATH"]
            self.environment["NVCC"] = self.nvcc

    def left(self):
        return self.arguments.seconds - (time.monotonic() - self.start)

    def step(self, name, function, *arguments):
        """Runs one step, which returns what it has to say; exceptions are failures and are told."""
        begin = time.monotonic()
        print(f"== {name}", flush=True)
        try:
            said, state = function(*arguments), "ok"
        except Skip as reason:
            said, state = str(reason), "skipped"
        except Exception as error:  # noqa: BLE001  the later steps have their turn whatever happened
            said, state = f"{type(error).__name__}: {error}" if not isinstance(error, Failure) else str(error), "FAILED"
        seconds = time.monotonic() - begin
        self.steps.append((name, state, seconds, said or ""))
        print(f"== {name}: {state} in {seconds:.0f} s{': ' + said if said else ''}", flush=True)
        if self.after_step:
            with self.lock:
                self.after_step()
        return state == "ok"

    def saved(self):
        """What was found so far."""
        return json.loads(self.results_file.read_text(encoding="utf-8")) if self.results_file.exists() else {}

    def save(self, key, value):
        with self.lock:
            results = self.saved()
            if isinstance(value, dict) and isinstance(results.get(key), dict) and key != "device":
                value = {**results[key], **value}
            results[key] = value
            self.results_file.parent.mkdir(parents=True, exist_ok=True)
            self.results_file.write_text(json.dumps(results, indent=1), encoding="utf-8")

    def run(self, command, limit, log=None, environment=None):
        """Output of a command that must succeed within `limit` seconds, or within what is left."""
        limit = min(limit, self.left())
        status, text = limited(command, limit, environment or self.environment)
        if log:
            (self.arguments.results / log).write_text(text, encoding="utf-8")
        if status is None:
            raise Failure(f"not done after {limit:.0f} s: {short(command)}")
        if status != 0:
            raise Failure(f"exit status {status}: {short(command)}\n{text[-1500:]}")
        return text


class Failure(Exception):
    pass


class Skip(Exception):
    pass


def limited(command, seconds, environment):
    """Exit status, None where it took too long, and what it said. What it started ends with it."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen([str(word) for word in command], stdout=said, stderr=subprocess.STDOUT, env=environment,
                                   start_new_session=True)
        try:
            status = process.wait(max(seconds, 0))
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if not isinstance(error, subprocess.TimeoutExpired):
                raise
            status = None
        said.seek(0)
        return status, said.read()


def short(command):
    return " ".join(str(word) for word in command)[:300]
