#!/usr/bin/env python3
"""Real models: compiled, built, run on every test_data_set_*, compared ("What right means" in README.md).

    models_test.py GCOMPILE [--levels 0,3] [MODEL...]

Without MODEL: a few models of the main suite; with GCOMPILE_LONG_TESTS=1 all models that come with expected outputs,
the main suite at -O0 too. Prints the count that verifies, and the reason for each that does not. Every model of the
main suite must verify, and so must every other whose operators we have. Models with foreign operators must end with
exit code 1 and every offending node named.
Exit: 0 right, 1 not, 77 there are no models.
"""

import argparse
import json
import sys

import onnx

import real_models

# Small, and of every kind: convolutions, recurrent, quantised, attention.
SUBSET = ["blazeface_front", "deeploy_cct_opset20", "dtln_2", "mlperf_tiny_ic_resnet8_int8", "silero_vad_v6",
          "super_resolution_10", "tract_byte_bidi_lstm"]

# Models with expected outputs that need not verify, with the reason; one that does after all fails the test.
KNOWN_FAILURES = {
    "deeploy_eegformer": "RequantShift is an operator of Deeploy's own",
    "deeploy_tsdr": "its Squeeze has an attribute 'axes' of one integer, which no version of the operator has",
}

# Where a part of a model's data is not of this model.
DATA = {
    "deeploy_autoencoder1d": "test_data_set_0",  # inputs.npz holds the weights too, without names
    "deeploy_autoencoder2d": "test_data_set_0",
}


def supported_operators(gcompile):
    _, out, _ = real_models.run([gcompile, "ops", "--json"])
    return {("" if row["domain"] == "ai.onnx" else row["domain"], row["name"]) for row in json.loads(out)["operators"]}


def foreign_nodes(path, supported):
    """How gcompile names the nodes whose operator it does not have: found in the model itself, branches included."""
    model = onnx.load(str(path), load_external_data=False)
    local = {(function.domain, function.name) for function in model.functions}
    found = []
    pending = [model.graph]
    while pending:
        graph = pending.pop()
        for node in graph.node:
            operator = ("" if node.domain == "ai.onnx" else node.domain, node.op_type)
            if operator not in supported and operator not in local:
                output = next(name for name in node.output if name)
                found.append(f"node '{node.name}'" if node.name else f"node making '{output}'")
            pending += [attribute.g for attribute in node.attribute if attribute.type == onnx.AttributeProto.GRAPH]
    return found


def check_refusal(gcompile, path, names):
    """What is wrong with how a model with foreign operators is refused."""
    status, out, err = real_models.run([gcompile, "check", "-v", str(path)])
    if status != 1:
        return f"exit {status} instead of 1"
    missing = [name for name in names if name + "(" not in out + err]
    if missing:
        return f"{len(missing)} of {len(names)} foreign nodes are not named: {', '.join(missing[:5])}"
    return ""


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("gcompile")
    parser.add_argument("models", nargs="*")
    parser.add_argument("--levels", default="")
    return parser.parse_args()


def test_verifies(options, folder, names, suite):
    """Failures, printed as they come."""
    failures, right = [], 0
    for name in names:
        levels = options.levels.split(",") if options.levels else ["3"]
        if not options.levels and real_models.is_long() and name in suite:
            levels = ["3", "0"]
        problems = []
        for level in levels:
            problem, _ = real_models.verify(options.gcompile, folder / name / "model.onnx", folder / name / DATA.get(name, ""),
                                            [f"-O{level}", "--name", "m"])
            if problem:
                problems.append(f"-O{level}: {problem}")
        right += not problems
        print(f"{name}: {'verifies' if not problems else problems[0]}", flush=True)
        if bool(problems) != (name in KNOWN_FAILURES):
            failures.append(f"{name}: {problems[0] if problems else 'is right after all: remove it from the list'}")
    print(f"{right} of {len(names)} models with expected outputs verify")
    return failures


def main():
    options = arguments()
    folder = real_models.models_folder()
    if not (folder / "INDEX.md").exists():
        real_models.skip(f"no models in {folder}")
    suite = real_models.main_suite(folder)
    everything = real_models.all_models(folder)
    names = options.models or everything
    if not options.models and not real_models.is_long():
        names = SUBSET

    failures = []
    supported = supported_operators(options.gcompile)
    tested = [name for name in names if real_models.has_expected_outputs(folder / name)]
    for name in everything if not options.models else names:
        nodes = foreign_nodes(folder / name / "model.onnx", supported)
        if not nodes:
            continue
        problem = check_refusal(options.gcompile, folder / name / "model.onnx", nodes)
        print(f"{name}: {len(nodes)} nodes of operators that we do not have: {problem or 'all named, exit 1'}")
        if problem or name in suite:
            failures.append(f"{name}: {problem or 'is of the main suite, and refused'}")
    failures += test_verifies(options, folder, tested, suite)
    for failure in failures:
        print(f"FAILED {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
