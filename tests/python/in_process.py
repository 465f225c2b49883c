#!/usr/bin/env python3
"""Models in Python's own process: arrays, outputs, sizes, states, threads, memory.

    in_process.py --gcompile GCOMPILE [CASE...]
"""

import gc
import os
import threading
import time

from package import QUICK, model, package, refused
from onnx_bytes import Graph
from support import EXAMPLES, check, equal, run_main

RELU = model("g (float[n] x) => (float[n] y) { y = Relu (x) }")
TWO = model("g (float[2, 3] x, int64[3] k) => (float[2, 3] y, int64[3] l) { y = Neg (x) l = Neg (k) }")


def case_arrays(world):
    """Read where they are, in any layout, converted where numpy calls it the same kind; and what is refused."""
    gcompile = package(world)
    import numpy

    net = gcompile.load(TWO, **QUICK)
    x, k = numpy.arange(6, dtype="float32").reshape(2, 3), numpy.arange(3)
    for outputs in (net(x, k), net(x=x, k=k), net({"x": x, "k": k}), net.run([x, k]), net.run({"k": k, "x": x}), net(x, k=k)):
        equal({name: array.tolist() for name, array in outputs.items()},
              {"y": (-x).tolist(), "l": (-k).tolist()}, "outputs")
    equal((outputs["y"].dtype, outputs["l"].dtype), (numpy.dtype("float32"), numpy.dtype("int64")), "types")
    wide = numpy.arange(24, dtype="float32").reshape(4, 6)
    misplaced = numpy.frombuffer(b"\0" + x.tobytes(), "uint8")[1:].view("float32").reshape(2, 3)
    for array in (wide[::2, ::2], numpy.asfortranarray(x), x.astype(">f4"), x.astype("float64"), misplaced, x[::-1],
                  numpy.broadcast_to(x[:1], (2, 3))):
        equal(net(array, k)["y"].tolist(), (-array).tolist(), "any layout")
    equal(net(x.tolist(), [1, 2, 3])["l"].tolist(), [-1, -2, -3], "lists")

    class Tensor:
        """What PyTorch and others are to numpy."""

        def __dlpack__(self, **_):
            return x.__dlpack__()

        def __dlpack_device__(self):
            return self.device

        device = (1, 0)

    tensor = Tensor()
    equal(net(tensor, k)["y"].tolist(), (-x).tolist(), "DLPack")
    tensor.device = (2, 0)
    with refused(gcompile.InputError, "'x' lies in memory of a device"):
        net(tensor, k)
    for arrays, named, word in (((), {}, "no array for x, k"), ((x,), {"z": k}, "no input is called 'z'; there are x, k"),
                                ((x, k, k), {}, "3 arrays for 2 inputs"), ((x, k), {"x": x}, "'x' is given twice"),
                                ((x[:1], k), {}, "the project takes 'x' (2, 3), 'k' (3,)"),
                                ((x.astype(complex), k), {}, "'x' is float32, the array complex128"),
                                ((x, k.astype(float)), {}, "'k' is int64, the array float64"),
                                ((x, "abc"), {}, "'k' is int64")):
        with refused(gcompile.InputError, word):
            net(*arrays, **named)
    check(issubclass(gcompile.InputError, ValueError), "an InputError is a ValueError")
    with refused(gcompile.InputError, "1 arrays for 2 inputs"):
        net.context().run([x])
    with refused(gcompile.GcompileError, "E0101"):
        gcompile.load(model("g (float[2] x) => (float[2] y) { y = Rleu (x) }"))
    with refused(gcompile.GcompileError, "no such file"):
        gcompile.load("no_such_model.onnx")
    with refused(gcompile.BuildError, "cannot start 'no_such_compiler'"):
        gcompile.load(TWO, variables={"CXX": "no_such_compiler"})
    with refused(gcompile.BuildError, "-fno-such-flag"):
        gcompile.load(TWO, variables={"CXXFLAGS": "-fno-such-flag"})


def case_outputs(world):
    """Where the caller says, also over an input; never half of one."""
    gcompile = package(world)
    import numpy

    net = gcompile.load(TWO, **QUICK)
    x, k = numpy.arange(6, dtype="float32").reshape(2, 3), numpy.arange(3)
    y, other = numpy.empty((2, 3), "float32"), numpy.empty(3, "int64")
    outputs = net(x, k, out=[y, other])
    check(outputs["y"] is y and outputs["l"] is other, "the arrays that were given")
    equal((y.tolist(), other.tolist()), ((-x).tolist(), (-k).tolist()), "values")
    check(net(x, k, out={"y": y})["y"] is y and net(x, k, out=[None, other])["l"] is other, "some of the outputs")
    before = x.copy()
    equal(net(x, k, out={"y": x})["y"].tolist(), (-before).tolist(), "an output over an input")
    both = numpy.zeros(64, "uint8")
    for out, word in (([y], "1 arrays for 2 outputs"), ({"z": y}, "no output is called 'z'"),
                      ({"y": y.astype("float64")}, "output 'y' is float32 (2, 3), the array float64 (2, 3)"),
                      ({"y": y[:1]}, "the array float32 (1, 3)"), ({"y": [1]}, "needs a numpy array"),
                      ({"y": numpy.asfortranarray(y)}, "not dense"), ([y, other[:2]], "output 'l'"),
                      ([both[:24].view("float32").reshape(2, 3), both[16:40].view("int64")], "shares memory")):
        with refused(gcompile.InputError, word):
            net(x, k, out=out)
    y.flags.writeable = False
    with refused(gcompile.InputError, "not dense, aligned and writeable"):
        net(x, k, out=[y, other])


def case_small_elements(world):
    """What numpy lacks: bfloat16 is float32, elements that share bytes are bytes."""
    gcompile = package(world)
    import numpy

    head = '<ir_version: 10, opset_import: ["" : 21]>\n'
    net = gcompile.load((head + "g (bfloat16[3] x) => (bfloat16[3] y) { y = Neg (x) }").encode(), **QUICK)
    x = numpy.array([1, 1.00390625, -numpy.pi], "float32")
    equal(net(x)["y"].tolist(), [-1, -1, 3.140625], "bfloat16, rounded to even")
    y = numpy.empty(3, "float32")
    check(net(x, out=y)["y"] is y and y[0] == -1, "the caller's array")
    for element, number, values in (("int4", 22, [-8, 7, 3]), ("uint4", 21, [15, 0, 9])):
        graph = Graph()
        graph.node("Identity", ["x"], ["y"])
        graph.input("x", number, [3])
        graph.output("y", number, [3])
        path = world.path(f"{element}.onnx")
        path.write_bytes(graph.model())
        net = gcompile.load(path, **QUICK)
        array = numpy.array(values, net.inputs[0].dtype)
        equal((net.inputs[0].element, net(array)["y"].tolist()), (element, values), element)


def case_data_decides(world):
    """How much of an output there is."""
    gcompile = package(world)
    import numpy

    net = gcompile.load(model("g (float[2, 3] x) => (int64[2, n] y) { y = NonZero (x) }"), **QUICK)
    for x in ([[0, 1, 0], [2, 0, 3]], numpy.zeros((2, 3)), numpy.ones((2, 3))):
        equal(net(x)["y"].tolist(), numpy.array(numpy.nonzero(x)).tolist(), "positions")


def case_sizes(world):
    """The arrays tell them, choices and bounds; what they do not tell is the largest, or what the caller says."""
    gcompile = package(world)
    import numpy

    choices = gcompile.load(RELU, dims={"n": [2, 4]}, **QUICK)
    bounds = gcompile.load(RELU, dims={"n": "1..5"}, **QUICK)
    for net, sizes in ((choices, (2, 4, 2)), (bounds, (1, 5, 3, 1))):
        for size in sizes:
            x = numpy.arange(size, dtype="float32") - 1
            for _ in range(2):
                equal(net(x)["y"].tolist(), [max(value, 0) for value in x.tolist()], "a run")
            y = numpy.empty(size, "float32")
            check(net(x, out=y)["y"] is y, "the caller's array")
        with refused(gcompile.InputError, "no run has inputs of these shapes: 'x' [6]; the sizes are"):
            net(numpy.zeros(6, "float32"))
    equal((bounds.inputs[0].shape, bounds.outputs[0].shape), ((5,), (5,)), "the largest")
    filled = model("g (int64[k] x, float[1] v) => (int64[k] z, float[m, 1] y) <int64[1] axis = {0}>"
                   "{ z = Neg (x) y = Unsqueeze (v, axis) }")
    check(gcompile.load(filled, options=["--dim", "k=1..3"], **QUICK)([1], [2.0])["y"].shape == (1, 1), "an axis more")
    with refused(gcompile.InputError, "no size is called 'k'"):
        bounds.run([numpy.zeros(3, "float32")], sizes={"k": 3})
    with refused(gcompile.InputError, "no run has inputs of these shapes"):
        bounds.run([numpy.zeros(3, "float32")], sizes={"n": 4})
    equal(bounds.run([numpy.zeros(3, "float32")], sizes={"n": 3})["y"].shape, (3,), "told")


def case_states(world):
    """They stay from run to run, each thread's own, and are read and written."""
    gcompile = package(world)
    import numpy

    text = model("g (float[2] x, float[2] h) => (float[2] y, float[2] next) { next = Add (h, x) y = Neg (next) }")
    net = gcompile.load(text, states={"h": "next"}, **QUICK)
    equal([net([1, 2])["y"].tolist() for _ in range(3)], [[-1, -2], [-2, -4], [-3, -6]], "three runs")
    equal(net.states["h"].tolist(), [3, 6], "the state")
    seen = []
    thread = threading.Thread(target=lambda: seen.append(net([1, 2])["y"].tolist()))
    thread.start()
    thread.join()
    equal(seen, [[-1, -2]], "another thread")
    other = net.context()
    equal(other.run([[5, 5]])["y"].tolist(), [-5, -5], "another context")
    net.load_states({"h": [10, 20]})
    equal(net([0, 0])["y"].tolist(), [-10, -20], "a state that was loaded")
    net.reset()
    equal(net([0, 0])["y"].tolist(), [0, 0], "after a reset")
    with refused(gcompile.InputError, "no state is called 'x'; there are h"):
        net.load_states({"x": [1, 2]})
    with refused(gcompile.InputError, "state 'h' is (2,)"):
        net.load_states({"h": numpy.zeros(3, "float32")})


def case_growing_states(world):
    """A run appends to what is there."""
    gcompile = package(world)
    import numpy

    text = model("g (float[rows, 2] x, float[past, 2] old) => (float[1, 2] y, float[all, 2] new) <int64[1] axis = {0}>"
                 "{ new = Concat <axis = 0> (old, x) y = ReduceSum <keepdims = 1> (new, axis) }")
    options = ["--dim", "rows=1..4", "--dim", "past=0..8", "--dim", "past+rows=1..9"]
    net, held = gcompile.load(text, states={"old": "new"}, options=options, **QUICK), numpy.zeros((0, 2), "float32")
    for rows in (2, 1, 4):
        x = numpy.random.rand(rows, 2).astype("float32")
        held = numpy.concatenate([held, x])
        check(numpy.allclose(net(x)["y"][0], held.sum(0)), "the sum of all rows")
        equal(net.states["old"].tolist(), held.tolist(), "what is held")
    kept = net.states
    net.reset()
    equal(net.states["old"].shape, (0, 2), "nothing")
    net.load_states(kept)
    x = numpy.ones((1, 2), "float32")
    check(numpy.allclose(net(x)["y"][0], held.sum(0) + 1), "goes on")
    with refused(gcompile.InputError, "no run has inputs of these shapes"):
        net(numpy.ones((4, 2), "float32"))


def case_threads(world):
    """Eight threads of Python at once, each of which has threads of the project; a context is one thread's."""
    gcompile = package(world)
    import numpy

    net = gcompile.load(EXAMPLES / "shapes_classifier" / "model.onnx", threads=2)
    inputs = [numpy.random.rand(1, 3, 32, 32).astype("float32") for _ in range(8)]
    expected = [net(x)["probabilities"] for x in inputs]
    wrong = []

    def work(index):
        for i in range(40):
            place = (index + i) % 8
            if not numpy.array_equal(net(inputs[place])["probabilities"], expected[place]):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    equal(wrong, [], "threads that saw other results")
    context, begun, refusals = net.context(), threading.Event(), []

    def use():
        begun.set()
        for _ in range(200):
            try:
                context.run([inputs[0]])
            except gcompile.RunError as error:
                refusals.append(str(error))

    both = [threading.Thread(target=use) for _ in range(2)]
    for thread in both:
        thread.start()
    for thread in both:
        thread.join()
    check(all("each needs one of its own" in text for text in refusals), f"{refusals[:1]}")
    with refused(ValueError, "0 threads"):
        net.context(threads=0)


def case_forks(world):
    """A child that was forked has contexts of its own."""
    gcompile = package(world)
    import numpy

    net, x = gcompile.load(EXAMPLES / "shapes_classifier" / "model.onnx", threads=2), numpy.zeros((1, 3, 32, 32), "float32")
    expected = net(x)["probabilities"].tolist()
    child = os.fork()
    if child == 0:
        os._exit(0 if net(x)["probabilities"].tolist() == expected else 1)  # pylint: disable=protected-access
    end = time.monotonic() + 60
    done = (0, 0)
    while done[0] == 0 and time.monotonic() < end:
        done = os.waitpid(child, os.WNOHANG)
        time.sleep(0.01)
    equal(done, (child, 0), "the child")


def resident():
    """Bytes of this process that are in memory."""
    with open("/proc/self/statm", encoding="utf-8") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def case_memory(world):
    """A million calls take no memory, nor do a hundred contexts."""
    gcompile = package(world)
    import numpy

    net, x = gcompile.load(RELU, dims={"n": 4}, **QUICK), numpy.zeros(4, "float32")
    bounds = gcompile.load(RELU, options=["--dim", "n=1..800"], **QUICK)
    for size in range(1, 801):
        bounds(numpy.zeros(size, "float32"))
    for _ in range(1000):
        net(x)
    gc.collect()
    before = resident()
    for _ in range(1000000):
        net(x)
    for size in range(1, 801):
        bounds(numpy.zeros(size, "float32"))
    for _ in range(100):
        thread = threading.Thread(target=net, args=(x,))
        thread.start()
        thread.join()
    gc.collect()
    check(resident() - before < 4 << 20, f"{resident() - before} bytes more")


def case_overhead(world):
    """What a call costs beyond NAME_run: 5 us at most on a machine that does nothing else, here 20."""
    gcompile = package(world)
    import numpy

    net, x = gcompile.load(RELU, dims={"n": 4}, **QUICK), numpy.zeros(4, "float32")
    least = 1.0
    for _ in range(50):
        begin = time.perf_counter()
        for _ in range(1000):
            net(x)
        least = min(least, (time.perf_counter() - begin) / 1000)
    beyond = 1e6 * least - 1e3 * net.bench(repeat=1000).min_ms
    print(f"         {beyond:.2f} us beyond a run")
    check(beyond < 20, f"{beyond} us beyond a run")


if __name__ == "__main__":
    run_main(globals())
