#!/usr/bin/env python3
"""gcompile.InferenceSession: ONNX Runtime's calls, and its answers on real models.

    session.py --gcompile GCOMPILE [CASE...]
"""

import os
import pathlib
import warnings

from package import ROOT, model, package, refused
from support import SHARED_MODELS, SKIPPED, Failure, Skip, check, equal, main_suite, run_main, turn

TEXT = model('g (float[batch, 3] x, int64[2] k) => (float[batch, 3] y, int64[2] l, bool[batch, 3] z) '
             '<float[1] zero = {0}> { y = Relu (x) l = Neg (k) z = Less (x, zero) }')
QUICK = {"variables": {"CXXFLAGS": "-O0"}}


def case_calls(world):
    """Names, types, shapes; outputs by name; other sizes when they come; what is refused."""
    gcompile = package(world)
    import numpy

    path = world.path("net.onnxtxt")
    path.write_bytes(TEXT)
    options = gcompile.SessionOptions()
    options.intra_op_num_threads, options.graph_optimization_level = 1, 99
    session = gcompile.InferenceSession(str(path), options, providers=["CPUExecutionProvider"], **QUICK)
    equal([(each.name, each.type, each.shape) for each in session.get_inputs()],
          [("x", "tensor(float)", ["batch", 3]), ("k", "tensor(int64)", [2])], "inputs")
    equal([each.type for each in session.get_outputs()], ["tensor(float)", "tensor(int64)", "tensor(bool)"], "outputs")
    equal((session.get_providers(), session.get_overridable_initializers()), (["CPUExecutionProvider"], []), "providers")
    equal((session.get_modelmeta().graph_name, session.get_session_options() is options), ("g", True), "what it says of itself")
    k = numpy.array([1, 2])
    for batch in (2, 1, 2):
        x = numpy.arange(3 * batch, dtype="float32").reshape(batch, 3) - 2
        y, negative, z = session.run(None, {"x": x, "k": k})
        equal((y.tolist(), negative.tolist(), z.tolist()), (numpy.maximum(x, 0).tolist(), [-1, -2], (x < 0).tolist()), "a run")
    equal([array.tolist() for array in session.run(["l", "l"], {"k": k, "x": x})], [[-1, -2], [-1, -2]], "outputs by name")
    for feed, names, word in (({"x": x}, None, "Required inputs (['k']) are missing"),
                              ({"x": x, "k": k, "z": k}, None, "no input is called 'z'"),
                              ({"x": x, "k": k}, ["q"], "no output is called 'q'"),
                              ({"x": x.astype("float64"), "k": k}, None, "Actual: (tensor(double)) , expected: (tensor(float))"),
                              ({"x": x[0], "k": k}, None, "Invalid rank for input: x Got: 1 Expected: 2"),
                              ({"x": x, "k": k[:1]}, None, "Got invalid dimensions for input: k index: 0 Got: 1 Expected: 2")):
        with refused(ValueError, word):
            session.run(names, feed)
    fixed = gcompile.InferenceSession(TEXT, dims={"batch": "1..4"}, **QUICK)
    for batch in (1, 4):
        equal(fixed.run(["y"], {"x": numpy.ones((batch, 3), "float32"), "k": k})[0].shape, (batch, 3), "within bounds")
    options.add_free_dimension_override_by_name("batch", 2)
    one = gcompile.InferenceSession(TEXT, options, **QUICK)
    with refused(ValueError, "the project takes 'x' (2, 3)"):
        one.run(None, {"x": numpy.ones((1, 3), "float32"), "k": k})
    with refused(NotImplementedError, "no operators of other libraries"):
        options.register_custom_ops_library("ops.so")


def case_providers(world):
    """One that is not there is refused, or, where the CPU is allowed too, said."""
    gcompile = package(world)
    with refused(ValueError, "run on the CPU, and have no TensorrtExecutionProvider"):
        gcompile.InferenceSession(TEXT, providers=["TensorrtExecutionProvider"])
    with refused(ValueError, "gcompile.compile(model, target='cuda')"):
        gcompile.InferenceSession(TEXT, providers=[("CUDAExecutionProvider", {"device_id": 0})])
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        gcompile.InferenceSession(TEXT, providers=["CUDAExecutionProvider", "CPUExecutionProvider"])
    check(len(said) == 1 and "have no CUDAExecutionProvider" in str(said[0].message), f"{said}")
    with refused(gcompile.GcompileError, "E0101"):
        gcompile.InferenceSession(model("g (float[2] x) => (float[2] y) { y = Rleu (x) }"))


def case_bindings(world):
    """Inputs and outputs that stay, by array and by address."""
    gcompile = package(world)
    import numpy

    session = gcompile.InferenceSession(TEXT, dims={"batch": 2}, **QUICK)
    x, k, y = numpy.ones((2, 3), "float32"), numpy.array([1, 2]), numpy.zeros((2, 3), "float32")
    binding = session.io_binding()
    binding.bind_cpu_input("x", x)
    binding.bind_input("k", "cpu", 0, numpy.int64, (2,), k.ctypes.data)
    binding.bind_output("y", "cpu", 0, numpy.float32, (2, 3), y.ctypes.data)
    binding.bind_output("l")
    session.run_with_iobinding(binding)
    equal((y.tolist(), binding.copy_outputs_to_cpu()[1].tolist()), (x.tolist(), [-1, -2]), "outputs")
    x[:] = 5
    session.run_with_iobinding(binding)
    equal(y[1].tolist(), [5, 5, 5], "the next run")
    value = binding.get_outputs()[0]
    equal((value.shape(), value.data_type(), value.data_ptr()), ([2, 3], "tensor(float)", y.ctypes.data), "a value")
    binding.clear_binding_outputs()
    binding.bind_ortvalue_output("z", gcompile.OrtValue.ortvalue_from_shape_and_type((2, 3), numpy.bool_))
    binding.bind_ortvalue_input("x", gcompile.OrtValue.ortvalue_from_numpy(-x))
    session.run_with_iobinding(binding)
    check(binding.get_outputs()[0].numpy().all(), "values")
    found, = session.run_with_ort_values(["y"], {"x": gcompile.OrtValue(x), "k": gcompile.OrtValue(k)})
    equal(found.numpy().tolist(), x.tolist(), "by values")
    with refused(ValueError, "takes no memory of 'cuda'"):
        binding.bind_output("y", "cuda")


def case_models(world):
    """The main suite beside ONNX Runtime: three models in turn, in long tests all twenty."""
    python = pathlib.Path(world.gcompile).parent / "bench_venv" / "bin" / "python"
    if not python.exists():
        raise Skip(f"no {python}; `scripts/install_packages.sh bench` makes it")
    if not SHARED_MODELS.is_dir():
        raise Skip("no ../shared/models")
    names = main_suite()
    if os.environ.get("GCOMPILE_LONG_TESTS") != "1":
        names = names[turn() % 7::7]
    package(world)
    done = world.run([python, ROOT / "tests" / "python" / "beside_onnxruntime.py", *names], status=None, timeout=7200)
    print(done.stdout, end="", flush=True)
    if done.returncode == SKIPPED:
        raise Skip(done.stdout.strip())
    if done.returncode != 0:
        raise Failure(done.stderr)


if __name__ == "__main__":
    run_main(globals())
