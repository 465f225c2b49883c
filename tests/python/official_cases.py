#!/usr/bin/env python3
"""The official cases of ONNX through gcompile.onnx_backend, by the runner of onnx.backend.test, beside the list of
tests/conformance, which other code writes: emit_cases.cc compiles the cases in memory and calls them from C++.

    official_cases.py --gcompile GCOMPILE [CASE...]

Some cases in turn; with GCOMPILE_LONG_TESTS=1 all, which takes two hours of two cores. OFFICIAL_CASES=PATTERN takes those
whose names it matches.
"""

import concurrent.futures
import os
import re
import unittest

from package import ROOT, package, refused
from support import Skip, check, equal, run_main, turn

LISTS = ROOT / "tests" / "conformance"
STRIDE = 48
# Cases that end otherwise here than in the list, and why: the runner compares by tolerances of its own.
DIFFERENCES = {
    "test_loop16_seq_none": "error",  # the runner asks for the length of a tensor without axes
}


def backend_of(world):
    package(world)
    try:
        import numpy
        import onnx.backend.test
        from gcompile import onnx_backend
    except ImportError as error:
        raise Skip(f"{error}: scripts/install_packages.sh test installs it") from None
    # Debian 12's runner asks for a name that Debian 12's numpy has no more.
    if not hasattr(numpy, "object"):
        numpy.object = object
    return onnx.backend.test, onnx_backend


class Quick:
    """The backend with options under which builds are short."""

    def __init__(self, backend):
        self._backend = backend

    def prepare(self, model, device="CPU", **words):
        return self._backend.prepare(model, device, variables={"CXXFLAGS": "-O0", "ARCH": ""}, jobs=1, **words)

    def supports_device(self, device):
        return self._backend.supports_device(device)


def expected_results():
    """{name in the runner: result}, of the list that belongs to Debian 12's cases."""
    found = {}
    for line in (LISTS / "expected_debian_12.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            name, _, result = line.partition(" ")
            found[name.rpartition("/")[2]] = result.partition(",")[0].partition(":")[0]
    return found


def result_of(case):
    """pass, unsupported, wrong, or what else happened; and its text."""
    result = unittest.TestResult()
    case.run(result)
    if result.skipped:
        return "skipped", result.skipped[0][1]
    if result.errors:
        text = result.errors[0][1].strip()
        for kind, means in (("tool.GcompileError", "unsupported"), ("ports.InputError", "wrong")):  # data that do not fit the model
            if re.search(rf"^gcompile\.{kind}", text, re.MULTILINE):
                return means, text.splitlines()[-1]
        return "error", text.splitlines()[-1]
    if result.failures:
        return "wrong", result.failures[0][1].strip()[-300:]
    return "pass", ""


def case_as_the_list_says(world):
    test, backend = backend_of(world)
    expected = expected_results()
    cases = {}
    for group in test.BackendTest(Quick(backend), __name__).test_cases.values():
        for name in dir(group):
            if name.startswith("test_") and name.endswith("_cpu") and name[:-len("_cpu")] in expected:
                cases[name[:-len("_cpu")]] = group(name)
    check(len(cases) > 0.95 * len(expected), f"only {len(cases)} of the {len(expected)} cases of the list are in the runner")
    names = sorted(cases)
    word = os.environ.get("OFFICIAL_CASES")
    if word is not None:
        names = [name for name in names if re.search(word, name)]
    elif os.environ.get("GCOMPILE_LONG_TESTS") != "1":
        names = names[turn() % STRIDE::STRIDE]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        results = dict(zip(names, pool.map(lambda name: result_of(cases[name]), names)))
    counts, surprises = {}, []
    for name, (result, text) in results.items():
        counts[result] = counts.get(result, 0) + 1
        wanted = DIFFERENCES.get(name, expected[name])
        if result != wanted:
            surprises.append(f"{name}: {result}, the list says {wanted}: {text}")
    print(f"         {len(names)} cases: " + ", ".join(f"{count} {result}" for result, count in sorted(counts.items())), flush=True)
    equal(surprises, [], "cases that end otherwise")


def case_interface(world):
    """What calls backends by hand: models, nodes, devices, what can be compiled."""
    _, backend = backend_of(world)
    import numpy
    import onnx.helper

    def graph(kind):
        ports = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n"]) for name in "xy"]
        made = onnx.helper.make_graph([onnx.helper.make_node(kind, ["x"], ["y"])], "g", ports[:1], ports[1:])
        return onnx.helper.make_model(made, opset_imports=[onnx.helper.make_opsetid("", 13)])

    quick = {"variables": {"CXXFLAGS": "-O0"}}
    x = numpy.array([-1, 2], "float32")
    prepared = backend.prepare(graph("Relu"), **quick)
    outputs = prepared.run([x])
    equal((outputs[0].tolist(), outputs["y"].tolist(), prepared.run({"x": x[:1]})[0].tolist()), ([0, 2], [0, 2], [0]), "outputs")
    node = onnx.helper.make_node("Add", ["a", "b"], ["c"])
    equal(backend.run_node(node, [x, x], outputs_info=[(numpy.float32, (2,))], opset_version=13, **quick)[0].tolist(), [-2, 4], "a node")
    check(backend.supports_device("CPU") and backend.supports_device("CPU:0") and not backend.supports_device("CUDA"), "devices")
    check(backend.is_compatible(graph("Relu")) and not backend.is_compatible(graph("Rleu")), "what can be compiled")
    with refused(ValueError, "not on 'CUDA'"):
        backend.prepare(graph("Relu"), "CUDA")


if __name__ == "__main__":
    run_main(globals())
