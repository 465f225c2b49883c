#!/usr/bin/env python3
"""Pipelines of scikit-learn, and boosted trees of LightGBM and XGBoost, against ONNX Runtime.

    pipelines.py --gcompile build/gcompile [--only NAME...] [--rows 1 1000] [--target cpp|cuda] [--time]

Needs the packages scikit-learn, skl2onnx, lightgbm, xgboost, onnxmltools, onnx and onnxruntime; exits with 77 and a line
where one is missing. Each model is compiled for so many rows, and `gcompile verify` compares it with the outputs of ONNX
Runtime. With --time both run in one thread, in turns, and a table says how much faster the compiled one is.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import warnings

MISSING = 77
FEATURES = 20

try:
    import lightgbm
    import numpy as np
    import onnx
    import onnx.numpy_helper
    import onnxmltools
    import onnxruntime
    import xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType
    from skl2onnx import to_onnx
    from sklearn.cluster import KMeans
    from sklearn.compose import make_column_transformer
    from sklearn.datasets import make_classification
    from sklearn.decomposition import PCA
    from sklearn.ensemble import ExtraTreesClassifier, GradientBoostingClassifier, RandomForestClassifier, RandomForestRegressor
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler
    from sklearn.svm import SVC, SVR, OneClassSVM
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(MISSING)


def data():
    x, y = make_classification(3000, FEATURES, n_informative=12, n_redundant=2, n_classes=3, random_state=0)
    x = x.astype(np.float32)
    x[:, 0] = np.round(x[:, 0])
    target = (x @ np.linspace(-1, 1, FEATURES) + 3 * np.sin(x[:, 1])).astype(np.float32)
    return x, {"class": y, "binary": (y > 0).astype(int), "word": np.array(["red", "green", "blue"])[y], "number": target}


def scikit_models():
    """Name: pipeline and what it learns."""
    encoder = make_column_transformer((OneHotEncoder(handle_unknown="ignore", sparse_output=False), [0]), remainder="passthrough")
    return {
        "scaler_logistic": (make_pipeline(StandardScaler(), LogisticRegression()), "class"),
        "logistic_words": (make_pipeline(StandardScaler(), LogisticRegression()), "word"),
        "imputer_forest": (make_pipeline(SimpleImputer(), RandomForestClassifier(100, max_depth=6, random_state=0)), "class"),
        "forest_binary": (RandomForestClassifier(100, max_depth=6, random_state=0), "binary"),
        "forest_numbers": (RandomForestRegressor(100, max_depth=6, random_state=0), "number"),
        "extra_trees": (ExtraTreesClassifier(100, max_depth=10, random_state=0), "class"),
        "boosting": (GradientBoostingClassifier(n_estimators=34, random_state=0), "class"),
        "boosting_binary": (GradientBoostingClassifier(n_estimators=100, random_state=0), "binary"),
        "svc": (make_pipeline(StandardScaler(), SVC(random_state=0)), "binary"),
        "svc_probability": (make_pipeline(MinMaxScaler(), SVC(probability=True, random_state=0)), "class"),
        "svr": (make_pipeline(StandardScaler(), SVR(C=10)), "number"),
        "one_class": (OneClassSVM(), "number"),
        "ridge": (make_pipeline(PCA(10), Ridge()), "number"),
        "neighbours": (KNeighborsClassifier(5), "class"),
        "bayes_words": (GaussianNB(), "word"),
        "perceptron": (make_pipeline(StandardScaler(), MLPClassifier((32,), max_iter=40, random_state=0)), "class"),
        "normalizer_logistic": (make_pipeline(Normalizer(), LogisticRegression()), "binary"),
        "one_hot_logistic": (make_pipeline(encoder, LogisticRegression(max_iter=300)), "class"),
        "k_means": (KMeans(8, n_init=1, random_state=0), "class"),
    }


def boosters():
    return {
        "lightgbm_numbers": (lightgbm.LGBMRegressor(n_estimators=100, verbose=-1), "number"),
        "lightgbm_classes": (lightgbm.LGBMClassifier(n_estimators=34, verbose=-1), "class"),
        "lightgbm_binary": (lightgbm.LGBMClassifier(n_estimators=100, verbose=-1), "binary"),
        "xgboost_numbers": (xgboost.XGBRegressor(n_estimators=100, max_depth=6), "number"),
        "xgboost_classes": (xgboost.XGBClassifier(n_estimators=34, max_depth=6), "class"),
        "xgboost_binary": (xgboost.XGBClassifier(n_estimators=100, max_depth=6), "binary"),
    }


def converted(name, model, x):
    types = [("X", FloatTensorType([None, FEATURES]))]
    if name.startswith("lightgbm"):
        return onnxmltools.convert_lightgbm(model, initial_types=types, zipmap=False)
    if name.startswith("xgboost"):
        return onnxmltools.convert_xgboost(model, initial_types=types)
    # Without maps where there are classes; not everything takes the option.
    options = {"zipmap": False} if hasattr(model, "predict_proba") or name == "svc" else None
    return to_onnx(model, x[:1], options=options, target_opset={"": 18, "ai.onnx.ml": 3})


def session_of(proto):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])


def as_tensor(value, words):
    """What a project gives: positions for strings, columns for maps."""
    if isinstance(value, list):
        return np.array([list(row.values()) for row in value], dtype=np.float32)
    if value.dtype.kind in "OU":
        return np.array([words.index(str(word)) for word in value.reshape(-1)], dtype=np.int64).reshape(value.shape)
    return value


def write_data(folder, session, outputs, x, words):
    folder.mkdir(parents=True, exist_ok=True)
    names = [output.name for output in session.get_outputs()]
    tensors = {"input_0": (session.get_inputs()[0].name, x)}
    for i, (name, value) in enumerate(zip(names, outputs)):
        tensors[f"output_{i}"] = (name, as_tensor(value, words))
    for file, (name, value) in tensors.items():
        (folder / f"{file}.pb").write_bytes(onnx.numpy_helper.from_array(np.ascontiguousarray(value), name).SerializeToString())


def run(command):
    return subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)


def verified(gcompile, model, data_folder, shape, target):
    answer = run([gcompile, "verify", model, "--shape", shape, "--data", data_folder, "--target", target])
    return answer.returncode == 0, (answer.stdout + answer.stderr).strip().splitlines()


def bench_of(gcompile, model, shape, folder):
    """The program that times the project, and the bytes of its weights."""
    answer = run([gcompile, model, "-o", folder, "--shape", shape, "--json"])
    if answer.returncode != 0:
        raise RuntimeError(answer.stderr)
    build = folder / "build"
    for command in (["cmake", "-S", folder, "-B", build], ["cmake", "--build", build, "-j2"]):
        answer = run(command)
        if answer.returncode != 0:
            raise RuntimeError(answer.stdout + answer.stderr)
    weights = sum(path.stat().st_size for path in (folder / "data").glob("*.weights.bin"))
    return next(build.glob("*_bench")), weights


def timed(bench, session, x):
    """Least microseconds of both, in turns."""
    name = session.get_inputs()[0].name
    runs = 2000 if len(x) == 1 else 20
    ours, theirs = [], []
    for _ in range(5):
        answer = json.loads(run([bench, "--threads", "1", "--repeat", runs, "--json"]).stdout)
        ours.append(answer["min_ms"] * 1e3)
        for _ in range(runs):
            begin = time.perf_counter()
            session.run(None, {name: x})
            theirs.append((time.perf_counter() - begin) * 1e6)
    return min(ours), min(theirs)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gcompile", required=True)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--rows", nargs="*", type=int, default=[1, 1000])
    parser.add_argument("--target", default="cpp")
    parser.add_argument("--time", action="store_true")
    parser.add_argument("--keep", help="a folder for the models and projects")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore")
    onnxruntime.set_default_logger_severity(4)
    x, targets = data()
    words = sorted(set(targets["word"].tolist()))
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(arguments.keep or temporary)
        for name, (model, target) in {**scikit_models(), **boosters()}.items():
            if arguments.only and name not in arguments.only:
                continue
            proto = converted(name, model.fit(x, targets[target]), x)
            path = folder / f"{name}.onnx"
            folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(proto.SerializeToString())
            session = session_of(proto)
            entry = session.get_inputs()[0].name
            for rows in arguments.rows:
                shape = f"{entry}:{rows}x{FEATURES}"
                place = folder / f"{name}_{rows}"
                outputs = session.run(None, {entry: x[:rows]})
                write_data(place / "data", session, outputs, x[:rows], words)
                is_right, lines = verified(arguments.gcompile, path, place / "data", shape, arguments.target)
                line = f"{name:20} {rows:5} rows: {'right' if is_right else 'WRONG'}"
                if not is_right:
                    failed.append(name)
                    line += "".join("\n    " + text for text in lines[-6:])
                elif arguments.time:
                    bench, weights = bench_of(arguments.gcompile, path, shape, place / "project")
                    ours, theirs = timed(bench, session, x[:rows])
                    line += f", {ours:9.1f} us, ONNX Runtime {theirs:9.1f} us, {theirs / ours:5.1f} times, weights {weights} bytes"
                print(line, flush=True)
    if failed:
        print(f"wrong: {', '.join(sorted(set(failed)))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
