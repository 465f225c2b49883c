#!/usr/bin/env python3
"""Writes machine_learning_values.txt of tests/unit/frontend: nodes of ai.onnx.ml in every mode and option, and what ONNX Runtime makes of them.

    machine_learning_values.py          needs the packages onnx and onnxruntime

A case is the text of a graph, a line of numbers for each input and one for each output, and an empty line.
"""

import itertools
import pathlib

import numpy as np
import onnx
import onnx.parser
import onnxruntime

HEADER = '<ir_version: 9, opset_import: ["" : 18, "ai.onnx.ml" : {}]>\n'
TYPES = {"float": np.float32, "double": np.float64, "int64": np.int64, "int32": np.int32}
ROWS = np.array([[-1, 2], [1, 0.25], [0.25, -0.125], [0, 0], [3, -2]])
NAN = float("nan")
TRANSFORMS = ["NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO", "PROBIT"]


def text_of(value):
    if isinstance(value, np.ndarray):
        kind = {np.dtype(np.uint8): "uint8", np.dtype(np.float32): "float", np.dtype(np.float64): "double"}[value.dtype]
        return f"{kind}[{value.size}] {{{', '.join(repr(each) for each in value.tolist())}}}"
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(text_of(each) for each in value) + "]"
    return repr(float(value)) if isinstance(value, float) else str(value)


class Cases:
    def __init__(self):
        self.lines = []
        self.refused = []

    def add(self, op, attributes, x, outputs, types=("float",), version=1):
        """`outputs`: types of results, "int64" or "float"."""
        inputs = x if isinstance(x, list) else [np.asarray(x)]
        arrays = [np.ascontiguousarray(each, dtype=TYPES[kind]) for each, kind in zip(inputs, itertools.cycle(types))]
        shown = ", ".join(f"{kind}[{','.join(map(str, a.shape))}] x{i}" for i, (a, kind) in enumerate(zip(arrays, itertools.cycle(types))))
        results = ", ".join(f"{kind} y{i}" for i, kind in enumerate(outputs))
        names = ", ".join(f"y{i}" for i in range(len(outputs)))
        given = ", ".join(f"{name} = {text_of(value)}" for name, value in attributes.items())
        operands = ", ".join(f"x{i}" for i in range(len(arrays)))
        text = f"g ({shown}) => ({results}) {{ {names} = ai.onnx.ml.{op}<{given}>({operands}) }}"
        model = onnx.parser.parse_model(HEADER.format(version) + text)
        try:
            session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
            found = session.run(None, {f"x{i}": a for i, a in enumerate(arrays)})
        except Exception as error:  # noqa: BLE001 - the runtime has types of its own
            self.refused.append(f"{text}: {str(error)[:90]}")
            return
        self.lines.append(f"{version} {text}")
        for array in [*arrays, *found]:
            self.lines.append(" ".join(f"{value:.9g}" if array.dtype != np.float64 else f"{value:.17g}" for value in array.reshape(-1).tolist()))
        self.lines.append("")


def tree(leaves, prefix, modes=("BRANCH_LEQ", "BRANCH_LEQ"), values=(0.25, 1.0), tracks=(0, 0)):
    """Node 0 asks feature 0, node 1 (where it holds) feature 1; leaves 2, 3 and 4, each a dict of targets."""
    at = [(node, target, weight) for node, leaf in zip((2, 3, 4), leaves) for target, weight in leaf.items()]
    return {"nodes_treeids": [0] * 5, "nodes_nodeids": [0, 1, 2, 3, 4], "nodes_featureids": [0, 1, 0, 0, 0],
            "nodes_values": [*map(float, values), 0.0, 0.0, 0.0], "nodes_modes": [*modes, "LEAF", "LEAF", "LEAF"],
            "nodes_truenodeids": [1, 2, 0, 0, 0], "nodes_falsenodeids": [4, 3, 0, 0, 0],
            "nodes_missing_value_tracks_true": [*tracks, 0, 0, 0],
            f"{prefix}_treeids": [0] * len(at), f"{prefix}_nodeids": [a[0] for a in at],
            f"{prefix}_ids": [a[1] for a in at], f"{prefix}_weights": [float(a[2]) for a in at]}


def together(a, b):
    """Two trees in one ensemble."""
    joined = {name: list(values) for name, values in a.items()}
    for name, values in b.items():
        joined[name] += [1] * len(values) if name.endswith("treeids") else values
    return joined


def features(cases):
    x = np.array([[-1, 2, 0], [1, 0.25, 3], [0, 0, 0], [-2, -0.5, -1]])
    for offset, scale in (([0.5], [2.0]), ([0.5, 1.0, -1.0], [2.0, 0.5, 3.0])):
        for kind in TYPES:
            cases.add("Scaler", {"offset": offset, "scale": scale}, x, ["float"], (kind,))
    for norm in ("MAX", "L1", "L2"):
        for kind in ("float", "int64"):
            cases.add("Normalizer", {"norm": norm}, x, ["float"], (kind,))
    holes = np.where(x == 0, NAN, x)
    for values in ([9.0], [7.0, 8.0, 9.0]):
        for kind in ("float", "double"):
            cases.add("Imputer", {"imputed_value_floats": values, "replaced_value_float": 0.25}, x, [kind], (kind,))
            cases.add("Imputer", {"imputed_value_floats": values}, x, [kind], (kind,))
    for values in ([9], [7, 8, 9]):
        cases.add("Imputer", {"imputed_value_int64s": values, "replaced_value_int64": 3}, x, ["int64"], ("int64",))
    cases.add("Binarizer", {"threshold": 0.25}, x, ["float"])
    cases.add("FeatureVectorizer", {"inputdimensions": [3, 2]}, [x, ROWS[:4]], ["float"])
    cases.add("FeatureVectorizer", {"inputdimensions": [3, 2]}, [x, ROWS[:4]], ["float"], ("int64",))
    return holes


def encoders(cases):
    numbers = np.array([[3, 1, 2], [7, -1, 3]])
    for kind in ("int64", "int32", "float", "double"):
        cases.add("OneHotEncoder", {"cats_int64s": [3, 1, 2, -1], "zeros": 1}, numbers, ["float"], (kind,))
    for version in (2, 4):
        cases.add("LabelEncoder", {"keys_int64s": [3, 1, 2], "values_int64s": [30, 10, 20], "default_int64": -5}, numbers, ["int64"], ("int64",), version)
        cases.add("LabelEncoder", {"keys_int64s": [3, 1, 2], "values_floats": [0.5, 1.5, 2.5], "default_float": 9.5}, numbers, ["float"], ("int64",), version)
        cases.add("LabelEncoder", {"keys_floats": [3.0, 1.0, -1.0], "values_int64s": [30, 10, 20]}, numbers, ["int64"], ("float",), version)
        cases.add("LabelEncoder", {"keys_floats": [3.0, 1.0], "values_floats": [30.0, 10.0]}, np.where(numbers == 2, NAN, numbers), ["float"], ("float",), version)


def linear(cases):
    coefficients = [0.2, 0.3, 0.1, -0.4, 0.5, 0.6]
    for transform in TRANSFORMS:
        for targets in (1, 2, 3):
            cases.add("LinearRegressor", {"coefficients": coefficients[:2 * targets], "intercepts": [0.3, 0.1, -0.2][:targets], "targets": targets, "post_transform": transform}, ROWS, ["float"])
            if targets == 1 and transform == "PROBIT":
                continue
            for kind in ("float", "int64") if transform == "NONE" else ("float",):
                cases.add("LinearClassifier", {"coefficients": coefficients[:2 * targets], "intercepts": [0.3, 0.1, -0.2][:targets], "classlabels_ints": [7, 9, 11][:max(targets, 2)], "post_transform": transform}, ROWS, ["int64", "float"], (kind,))
    cases.add("LinearRegressor", {"coefficients": coefficients[:2]}, ROWS, ["float"])


def machines(cases):
    kernels = [("LINEAR", [0.0, 0.0, 0.0]), ("POLY", [0.5, 0.3, 2.0]), ("POLY", [0.5, 0.3, 3.0]), ("RBF", [0.5, 0.0, 0.0]), ("SIGMOID", [0.5, 0.3, 0.0])]
    vectors = [0.1, 0.2, -0.3, 0.5, 1.0, -1.0]
    for kernel, parameters in kernels:
        shared = {"kernel_type": kernel, "kernel_params": parameters}
        for one_class in (0, 1):
            cases.add("SVMRegressor", {**shared, "coefficients": [0.2, 0.3, -0.25], "n_supports": 3, "support_vectors": vectors, "rho": [-0.1], "one_class": one_class}, ROWS, ["float"])
        for classes in (2, 3):
            pairs = classes * (classes - 1) // 2
            for coefficients in ([0.5, -0.4, 0.3, 0.2, -0.1, 0.6], [0.5, 0.4, 0.3, 0.2, 0.1, 0.6]):
                svm = {**shared, "classlabels_ints": [7, 9, 11][:classes], "vectors_per_class": [1, 2] if classes == 2 else [1, 1, 1],
                       "support_vectors": vectors, "coefficients": coefficients[:3 * (classes - 1)], "rho": [0.1, -0.05, 0.2][:pairs]}
                cases.add("SVMClassifier", svm, ROWS, ["int64", "float"])
                if kernel != "RBF":
                    continue
                for transform in TRANSFORMS[1:4]:
                    cases.add("SVMClassifier", {**svm, "post_transform": transform}, ROWS, ["int64", "float"])
                sure = {"prob_a": [-3.2, 2.4, -1.7][:pairs], "prob_b": [0.1, -0.3, 0.2][:pairs]}
                for transform in TRANSFORMS:
                    cases.add("SVMClassifier", {**svm, **sure, "post_transform": transform}, ROWS, ["int64", "float"])
    cases.add("SVMRegressor", {"kernel_params": [0.0, 0.0, 0.0], "coefficients": [0.2, 0.3], "rho": [-0.1]}, ROWS, ["float"])
    for classes in (1, 2, 3):
        for coefficients in ([0.5, -0.4, 0.3, 0.2, -0.1, 0.6], [0.5, 0.4, 0.3, 0.2, 0.1, 0.6]):
            for transform in ("NONE", "LOGISTIC", "SOFTMAX"):
                cases.add("SVMClassifier", {"kernel_params": [0.0, 0.0, 0.0], "classlabels_ints": [7, 9, 11][:classes], "coefficients": coefficients[:2 * classes], "rho": [0.1, 0.7, 0.9], "post_transform": transform}, ROWS, ["int64", "float"])


def trees(cases):
    x = np.array([[-1, 2], [0.25, 1], [0.25, 1.5], [0.5, 0], [NAN, 0.5], [NAN, NAN], [0, NAN], [np.inf, -np.inf], [-np.inf, np.inf]])
    leaves = [{0: 1.5}, {0: -2.25}, {0: 4.0}]
    modes = ["BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ"]
    for first, second in [(mode, mode) for mode in modes] + [("BRANCH_LEQ", "BRANCH_EQ"), ("BRANCH_GT", "BRANCH_NEQ")]:
        for tracks in ((0, 0), (1, 1), (1, 0)):
            one = tree(leaves, "target", (first, second), (0.25, 1.0), tracks)
            for kind in ("float", "double"):
                cases.add("TreeEnsembleRegressor", {"n_targets": 1, **one}, x, ["float"], (kind,), 3)
    for values in ((float("1e38") * 10, 1.0),):
        for tracks in ((0, 0), (1, 1)):
            one = tree(leaves, "target", values=(3.4e38, 1.0), tracks=tracks)
            cases.add("TreeEnsembleRegressor", {"n_targets": 1, **one}, x, ["float"], ("float",), 1)
    cases.add("TreeEnsembleRegressor", {"n_targets": 1, **tree(leaves, "target")}, np.array([[-1, 2], [0, 1], [3, 0]]), ["float"], ("int64",), 1)
    two = together(tree(leaves, "target"), tree([{0: 0.5}, {0: 3.0}, {0: -1.0}], "target", ("BRANCH_GT", "BRANCH_LT")))
    sparse = together(tree([{0: 1.5, 1: 2.0}, {1: -2.25}, {2: 4.0}], "target"), tree([{0: 0.5}, {0: 3.0, 2: -1.5}, {1: -1.0}], "target"))
    apart = together(tree([{0: 1.5}, {0: -2.25}, {0: 4.0}], "target"), tree([{1: 0.5}, {1: 3.0}, {1: -1.0}], "target"))
    for aggregate in ("SUM", "AVERAGE", "MIN", "MAX"):
        cases.add("TreeEnsembleRegressor", {"n_targets": 1, "aggregate_function": aggregate, **two}, x, ["float"], ("float",), 3)
        cases.add("TreeEnsembleRegressor", {"n_targets": 1, "aggregate_function": aggregate, "base_values": [0.125], **two}, x, ["float"], ("float",), 3)
        for several, targets in ((sparse, 3), (apart, 2)):
            cases.add("TreeEnsembleRegressor", {"n_targets": targets, "aggregate_function": aggregate, **several}, x, ["float"], ("float",), 3)
            cases.add("TreeEnsembleRegressor", {"n_targets": targets, "aggregate_function": aggregate, "base_values": [0.5, -0.25, 1.0][:targets], **several}, x, ["float"], ("float",), 3)
    for transform in TRANSFORMS:
        cases.add("TreeEnsembleRegressor", {"n_targets": 3, "post_transform": transform, **sparse}, x, ["float"], ("float",), 3)
        cases.add("TreeEnsembleRegressor", {"n_targets": 1, "post_transform": transform, **tree([{0: 0.5}, {0: 0.25}, {0: 0.75}], "target")}, x, ["float"], ("float",), 3)


def ensembles(cases):
    """TreeEnsemble of version 5: two nodes and three leaves, of all modes. Without transforms 1 and 2, which ONNX Runtime
    takes the other way round than the specification."""
    x = np.array([[0.5, 1], [0.5, 2], [0.25, 3], [1, 1], [NAN, 1], [0, NAN], [0.75, 2]])
    for kind, number in (("float", np.float32), ("double", np.float64)):
        for mode in range(7):
            for tracks in ([0, 0], [1, 1]):
                first = 0 if mode == 6 else mode
                given = {"tree_roots": [0], "nodes_featureids": [0, 1], "nodes_modes": np.array([first, 6], np.uint8), "nodes_splits": np.array([0.5, 0], number),
                         "nodes_truenodeids": [1, 0], "nodes_trueleafs": [0, 1], "nodes_falsenodeids": [2, 1], "nodes_falseleafs": [1, 1],
                         "nodes_missing_value_tracks_true": tracks, "leaf_targetids": [0, 1, 0], "leaf_weights": np.array([0.5, 0.25, 1.5], number),
                         "n_targets": 2, "membership_values": np.array([1, 2], number)}
                cases.add("TreeEnsemble", given, x, [kind], (kind,), 5)
                if mode == 0 and tracks == [0, 0]:
                    for aggregate, transform in itertools.product((0, 1, 2, 3), (0, 3, 4)):
                        cases.add("TreeEnsemble", {**given, "aggregate_function": aggregate, "post_transform": transform}, x, [kind], (kind,), 5)


def classifiers(cases):
    x = np.array([[-1, 2], [0.25, 1], [0.25, 1.5], [0.5, 0]])
    forests = {1: [[{0: 0.75}, {0: -0.25}, {0: 0.0}]],
               2: [[{0: 0.75}, {0: 0.25}, {0: 0.5}], [{0: 0.75}, {0: -0.25}, {0: 0.0}], [{1: 0.75}, {1: 0.25}, {1: 0.5}], [{1: 0.75}, {1: -0.25}, {1: 0.0}],
                   [{0: 0.75, 1: 0.25}, {0: 0.125, 1: 0.875}, {0: 0.5, 1: 0.5}], [{0: 0.75, 1: -0.25}, {0: -0.125, 1: 0.875}, {0: 0.5, 1: -0.5}]],
               3: [[{0: 0.5, 1: 0.25, 2: 0.25}, {0: 0.125, 1: 0.25, 2: 0.625}, {1: 1.0, 0: 0.0, 2: 0.0}], [{0: -0.5, 1: -0.25}, {2: -1.0}, {1: 1.0}]]}
    for classes, all_leaves in forests.items():
        for leaves in all_leaves:
            for base in ([], [0.125], [0.125, -0.5], [0.125, -0.5, 0.25]):
                for transform in TRANSFORMS if len(base) < 2 or classes > 2 else TRANSFORMS[:2]:
                    scored = {target for leaf in leaves for target in leaf}
                    is_open = classes == 2 and len(scored) == 1 and (transform == "PROBIT" or (len(base) == 2 and 1 in scored))
                    if is_open or len(base) > max(classes, 1) or (classes > 2 and 0 < len(base) < 3):
                        continue  # refused: ONNX Runtime reads beyond what it has, leaves weights out, or refuses too
                    given = {"classlabels_int64s": [10, 20, 30][:classes], "post_transform": transform, **tree(leaves, "class")}
                    if base:
                        given["base_values"] = base
                    cases.add("TreeEnsembleClassifier", given, x, ["int64", "float"], ("float",), 3)
    for kind in ("double", "int64", "int32"):
        given = {"classlabels_int64s": [10, 20, 30], **tree(forests[3][0], "class")}
        cases.add("TreeEnsembleClassifier", given, np.array([[-1, 2], [0, 1], [3, 0]]), ["int64", "float"], (kind,), 3)


def main():
    onnxruntime.set_default_logger_severity(4)
    cases = Cases()
    features(cases)
    encoders(cases)
    linear(cases)
    machines(cases)
    trees(cases)
    ensembles(cases)
    classifiers(cases)
    target = pathlib.Path(__file__).resolve().parents[1] / "unit" / "frontend" / "machine_learning_values.txt"
    target.write_text("\n".join(cases.lines))
    print(f"{cases.lines.count('')} cases; ONNX Runtime refuses {len(cases.refused)}:")
    for line in cases.refused:
        print("  " + line[:60] + " ... " + line[-90:])


if __name__ == "__main__":
    main()
