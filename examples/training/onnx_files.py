"""Writes ONNX models and their test data, byte for byte the same each time."""

import pathlib
import shutil

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8


ELEMENT_TYPES = {np.float32: TensorProto.FLOAT, np.int64: TensorProto.INT64}


class GraphWriter:
    """Collects nodes in order; a node is called after its first result."""

    def __init__(self, name):
        self.name = name
        self.nodes, self.constants, self.inputs, self.outputs = [], {}, [], []

    def input(self, name, dtype, shape):
        self.inputs.append(helper.make_tensor_value_info(name, ELEMENT_TYPES[dtype], list(shape)))
        return name

    def output(self, name, dtype, shape):
        self.outputs.append(helper.make_tensor_value_info(name, ELEMENT_TYPES[dtype], list(shape)))

    def constant(self, name, value):
        """An initialiser; the same name with the same bytes may be asked for again."""
        tensor = numpy_helper.from_array(np.ascontiguousarray(value), name)
        if self.constants.setdefault(name, tensor) != tensor:
            raise ValueError(f"two constants are called {name}")
        return name

    def node(self, operator, inputs, results, **attributes):
        """Adds a node; returns its result's name, or the list of them when `results` is a list."""
        names = results if isinstance(results, list) else [results]
        attributes = {key: value for key, value in attributes.items() if value is not None}
        self.nodes.append(helper.make_node(operator, inputs, names, name=next(filter(None, names)), **attributes))
        return results

    def model(self):
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, list(self.constants.values()))
        model = helper.make_model(graph, producer_name="gcompile-examples", ir_version=IR_VERSION,
                                  opset_imports=[helper.make_opsetid("", OPSET)])
        onnx.checker.check_model(model, full_check=True)
        return model


def closest_calls(probabilities, labels):
    """The sample of each class that is named right by the smallest margin: the one that shows an error in a runtime
    first, where a saturated softmax would hide it."""
    ordered = np.sort(probabilities, axis=1)
    margin = np.where(probabilities.argmax(axis=1) == labels, ordered[:, -1] - ordered[:, -2], 2)
    return [int(np.argmin(np.where(labels == kind, margin, 2))) for kind in range(probabilities.shape[1])]


def save(folder, model, test_sets):
    """Writes folder/model.onnx and folder/test_data_set_N/{input,output}_K.pb; `test_sets` yields (inputs, outputs),
    each a list of (name, array) in the model's order."""
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for stale in folder.glob("test_data_set_*"):
        shutil.rmtree(stale)
    (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
    for index, (inputs, outputs) in enumerate(test_sets):
        place = folder / f"test_data_set_{index}"
        place.mkdir()
        for kind, tensors in (("input", inputs), ("output", outputs)):
            for position, (name, value) in enumerate(tensors):
                tensor = numpy_helper.from_array(np.ascontiguousarray(value), name)
                (place / f"{kind}_{position}.pb").write_bytes(tensor.SerializeToString(deterministic=True))
