#!/usr/bin/env python3
"""Projects from Python: opened, timed, verified without another build, shown.

    projects.py --gcompile GCOMPILE [CASE...]
"""

import io
import re
import sys
import types

from package import QUICK, ROOT, model, package, refused
from support import EXAMPLES, check, contains, equal, run_main

CLASSIFIER = EXAMPLES / "shapes_classifier"
RELU = model("g (float[n] x) => (float[n] y) { y = Relu (x) }")


def case_opened(world):
    """A folder that the tool has written, before and after make, also where sizes are formulas."""
    gcompile = package(world)
    import numpy

    world.compile(CLASSIFIER / "model.onnx", world.path("net"), "--name", "shapes")
    project = gcompile.open(world.path("net"))
    equal((project.name, project.target, [port.shape for port in project.inputs]), ("shapes", "cpp", [(1, 3, 32, 32)]), "figures")
    check(project.answer["arena_bytes"] > 0 and project.answer["calls"] > 0, "figures of a run")
    image = numpy.random.rand(1, 3, 32, 32).astype("float32")
    probabilities = project.run(image)["probabilities"]
    check(abs(float(probabilities.sum()) - 1) < 1e-5, "probabilities")
    check(numpy.array_equal(project.run(image, threads=2)["probabilities"], probabilities), "the same with two threads")
    timing = project.bench(repeat=10)
    check(0 < timing.min_ms <= timing.median_ms <= timing.p90_ms and timing.repeat == 10, f"{timing}")
    with refused(gcompile.GcompileError, "knows no model"):
        project.verify()
    with refused(gcompile.GcompileError, "is no project of gcompile"):
        gcompile.open(world.folder)
    built = gcompile.open(world.path("net")).build(variables={"CXXFLAGS": "-O1"})
    check((world.path("net") / "build" / "shapes_run").exists(), "the runner")
    check(numpy.allclose(built.run(image)["probabilities"], probabilities, atol=1e-6), "built by another option")
    # What changes is built again, and is what runs, also in this process.
    small = gcompile.compile(RELU, dims={"n": 2}, name="small")
    equal(small.run([-1, 2])["y"].tolist(), [0, 2], "as it was written")
    text = small.path / "src" / "small_kernels.cpp"
    text.write_text(re.sub(r"\b0\.0f\b|\b0\.f\b", "1.0f", text.read_text()))
    small.build(variables={"CXXFLAGS": "-O1"})
    equal(small.run([-1, 2])["y"].tolist(), [1, 2], "as it was changed")
    bounds = gcompile.compile(RELU, options=["--dim", "n=1..5"], name="net")
    equal([port.shape for port in gcompile.open(bounds.path).inputs], [(5,)], "the largest sizes")
    check(re.fullmatch(r"\d+\.\d+\.\d+", gcompile.__version__), gcompile.__version__)


def case_verified(world):
    """What was built is what is judged, a library that is wrong is found; and what a build is needed for."""
    gcompile = package(world)
    loaded = gcompile.load(CLASSIFIER / "model.onnx")
    check(loaded.project.verify(CLASSIFIER / "test_data_set_0"), "the shipped case")
    check(loaded.project.verify(cases=2, seed=7).ok and loaded.project.verify(layers=True).kernels, "random cases, layers")
    project = gcompile.compile(RELU, dims={"n": [2, 4]})
    check(project.verify().ok, "choices")
    text = project.path / "src" / f"{project.name}_kernels.cpp"
    wrong = re.sub(r"\b0\.0f\b|\b0\.f\b", "1.0f", text.read_text())
    check(wrong != text.read_text(), "nothing to plant")
    text.write_text(wrong)
    found = project.verify()
    check(not found and not all(row["ok"] for row in found.findings), f"{found}")
    runner = project.path / "build" / "no_such_runner"
    with refused(gcompile.GcompileError, "there is no runner"):
        project.verify(options=["--runner", str(runner)], layers=False)
    for words, said in ((["--layers"], "inner values"), (["--cxx", "g++"], "nothing is compiled")):
        told = world.run([world.gcompile, "verify", CLASSIFIER / "model.onnx", "--runner", runner, *words], status=2)
        contains(told.stderr, "contradict each other", said)


def case_weights_of_a_file(world):
    """Read once, whoever runs."""
    gcompile = package(world)
    import numpy

    image, expected = numpy.ones((1, 3, 32, 32), "float32"), None
    for words in ([], ["--weights", "file"], ["--weights", "array"], ["--weights", "extern"]):
        net = gcompile.load(CLASSIFIER / "model.onnx", options=words)
        found = net(image)["probabilities"]
        expected = found if expected is None else expected
        check(numpy.array_equal(found, expected), f"{words}")
    check(gcompile.load(CLASSIFIER / "model.onnx", options=["--weights", "file"]).project.verify().ok, "verified")


def case_cuda(world):
    """Without a device, a sentence; compiling and verifying on the emulator go on."""
    gcompile = package(world)
    from gcompile import device

    project = gcompile.compile(RELU, target="cuda", dims={"n": 4})
    check(project.verify(options=["--emulate"]).ok, "on the emulator")
    if device.count() > 0:
        equal(project.run([-1, 2, -3, 4])["y"].tolist(), [0, 2, 0, 4], "a run")
        return
    for call in (lambda: gcompile.load(RELU, target="cuda", dims={"n": 4}), project.load, lambda: project.run([1, 2, 3, 4])):
        with refused(gcompile.GcompileError, "there is no CUDA device that the driver sees"):
            call()


def case_page(world):
    """What a notebook shows: figures, names as text, the picture of the memory in colours of its own."""
    gcompile = package(world)
    page = gcompile.load(CLASSIFIER / "model.onnx")._repr_html_()
    contains(page, "image: float32[1, 3, 32, 32]", "arena", "multiply-adds", 'aria-label="memory plan"', "--k0:", ".gcompile-plan svg ")
    check(not re.search(r"(?<!gcompile-plan )\bsvg \.", page), "a rule for all pictures of the notebook")
    text = model("g (float[2] x) => (float[2] y) { y = Relu (x) }").replace(b"x", b"x1")
    project = gcompile.compile(text)
    project.manifest["inputs"][0]["name"] = "<script>"
    contains(project._repr_html_(), "&lt;script&gt;: float32[2]")


def case_progress(world):
    """A line in a terminal, which goes when all is done; lines for a function; nothing in a file."""
    gcompile = package(world)

    class Terminal(io.StringIO):
        def isatty(self):
            return self.is_terminal

    usual, said = sys.stderr, []
    try:
        for number, is_terminal in enumerate((True, False)):
            sys.stderr = Terminal()
            sys.stderr.is_terminal = is_terminal
            gcompile.load(RELU, dims={"n": number + 1}, **QUICK)
            said.append(sys.stderr.getvalue())
    finally:
        sys.stderr = usual
    contains(said[0], "\r\033[K", "compile", "build: 1 compiled", "build: link")
    check(said[0].endswith("\r\033[K") and said[1] == "", f"{said}")
    # A notebook, as far as it is asked.
    notebook, shown = types.ModuleType("IPython"), []
    handle = types.SimpleNamespace(update=lambda text, raw: shown.append(text["text/plain"]))
    notebook.get_ipython = lambda: types.SimpleNamespace(kernel=None)
    notebook.display = types.SimpleNamespace(display=lambda text, raw, display_id: shown.append(text["text/plain"]) or handle)
    sys.modules["IPython"] = notebook
    try:
        gcompile.load(RELU, dims={"n": 7}, **QUICK)
    finally:
        del sys.modules["IPython"]
    check("compile (0 s)" in shown[0] and re.search(r": done in [0-9.]+ s$", shown[-1]), f"{shown}")
    told = []
    gcompile.load(RELU, dims={"n": 3}, progress=told.append, **QUICK)
    check(told[0] == "a model in memory: compile" and told[-1].endswith("build: link"), f"{told}")
    told.clear()
    gcompile.load(RELU, dims={"n": 3}, progress=told.append, **QUICK)
    equal(told, [], "what is said of a model that is in the cache")
    check((ROOT / "python" / "gcompile" / "py.typed").exists(), "the package is typed")


if __name__ == "__main__":
    run_main(globals())
