#!/usr/bin/env python3
"""The quantised models in small compute nearly what those in floats compute, from integers that use their range.

Exit: 0 all hold, 1 something does not, 77 without onnxruntime or an onnx package that knows four-bit integers.
"""

import sys
import unittest

import numpy as np

import big_models

try:
    import onnxruntime
    from onnx import TensorProto, numpy_helper

    import quantised_models
    TensorProto.INT4
except (ImportError, AttributeError) as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

# Root mean square of the difference over that of the outputs. Weights of four bits with a scale for 32 of them are off by
# some 8 % each.
LARGEST_ERROR = {"gpt2_4bit": 0.3, "gpt2_4bit_nbits": 0.3, "gpt2_4bit_level4": 0.3}


def outputs(model, inputs):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)


class Quantised(unittest.TestCase):
    def test_near_the_model_in_floats(self):
        for name, (base, _) in big_models.QUANTISED.items():
            inputs = big_models.example_inputs(name, True)
            expected = outputs(big_models.build(base, True), inputs)[0]
            actual = outputs(big_models.build(name, True), inputs)[0]
            error = np.sqrt(np.mean((actual - expected) ** 2) / np.mean(expected ** 2))
            self.assertGreater(error, 1e-5, f"{name} is not quantised")
            self.assertLess(error, LARGEST_ERROR.get(name, 0.1), name)

    def test_integers_use_their_range(self):
        model = big_models.build("mobilenet_v2_qdq", True)
        constants = {c.name: numpy_helper.to_array(c) for c in model.graph.initializer}
        weights = [c for c in constants.values() if c.dtype == np.int8 and c.ndim > 1]
        self.assertTrue(weights)
        for weight in weights:
            self.assertTrue((np.abs(weight.astype(int)).reshape(weight.shape[0], -1).max(axis=1) == 127).all())
        rounded = [node.output[0] for node in model.graph.node if node.op_type == "QuantizeLinear"]
        watched = quantised_models.onnx.ModelProto()
        watched.CopyFrom(model)
        del watched.graph.output[:]
        watched.graph.output.extend(quantised_models.helper.make_empty_tensor_value_info(name) for name in rounded)
        for name, found in zip(rounded, outputs(watched, big_models.example_inputs("mobilenet_v2_qdq", True, 1))):
            self.assertGreater(int(found.max()) - int(found.min()), 100, name)
            is_cut = (found == 255) | (found == 0) & (constants[f"{name.removesuffix('_q')}_zero"] != 0)
            self.assertLessEqual(np.mean(is_cut), 0.1, name)

    def test_same_bytes(self):
        for name in ("resnet50_qdq", "gpt2_4bit"):
            first, second = (big_models.build(name, True).SerializeToString(deterministic=True) for _ in range(2))
            self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main()
