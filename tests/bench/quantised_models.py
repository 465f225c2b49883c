"""Quantised forms of models in floats, as the quantisers of the field write them: scales from runs on samples.

Needs onnxruntime, and an onnx package that knows four-bit integers (scripts/install_packages.sh bench).
"""

import math

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

# Their operands and results are integers; those of the second row only move elements or choose among them, so that
# their result has the scale of what they read.
INTEGER_OPERATORS = {"Conv", "Gemm", "Add", "GlobalAveragePool", "MaxPool", "Flatten"}
SAME_SCALE = {"MaxPool", "Flatten"}
# What rounds to integers of their own range may follow directly on a convolution, without integers in between.
ACTIVATIONS = {"Relu", "Clip"}
BLOCK = 32  # weights that share a scale, along the axis that a product sums over


class Rewriter:
    """A model's nodes, written anew one by one."""

    def __init__(self, model):
        self.model = model
        self.nodes = []
        self.constants = {c.name: c for c in model.graph.initializer}
        self.arrays = {name: numpy_helper.to_array(c) for name, c in self.constants.items()}

    def constant(self, name, array):
        self.constants[name] = numpy_helper.from_array(np.asarray(array), name)
        return name

    def node(self, operator, inputs, results, name=None, **attributes):
        outputs = results if isinstance(results, list) else [results]
        self.nodes.append(helper.make_node(operator, inputs, outputs, name=name or outputs[0], **attributes))
        return results

    def finish(self, **opsets):
        """The model of the nodes written, with the constants that they read."""
        graph = self.model.graph
        used = {name for node in self.nodes for name in node.input}
        del graph.node[:], graph.initializer[:]
        graph.node.extend(self.nodes)
        graph.initializer.extend(c for name, c in self.constants.items() if name in used)
        for domain, version in opsets.items():
            domain = "" if domain == "onnx" else domain.replace("_", ".")
            known = [o for o in self.model.opset_import if o.domain == domain]
            (known[0] if known else self.model.opset_import.add(domain=domain)).version = version
        self.model.ir_version = 10
        onnx.checker.check_model(self.model)
        return self.model


def normalisations_folded(model):
    """Conv with a bias for Conv and BatchNormalization, as a quantiser sees a network."""
    r = Rewriter(model)
    behind = {node.input[0]: node for node in model.graph.node if node.op_type == "BatchNormalization"}
    for node in model.graph.node:
        if node.op_type == "Conv" and node.output[0] in behind:
            norm = behind[node.output[0]]
            gamma, beta, mean, variance = (r.arrays[name] for name in norm.input[1:5])
            factor = gamma / np.sqrt(variance + helper.get_node_attr_value(norm, "epsilon"))
            weight = r.constant(f"{node.input[1]}_folded", r.arrays[node.input[1]] * factor.reshape(-1, 1, 1, 1))
            bias = r.constant(f"{node.input[1]}_shift", beta - mean * factor)
            r.arrays |= {name: numpy_helper.to_array(r.constants[name]) for name in (weight, bias)}
            node = helper.make_node("Conv", [node.input[0], weight, bias], [norm.output[0]], name=node.name,
                                    **{a.name: helper.get_attribute_value(a) for a in node.attribute})
        elif node.op_type == "BatchNormalization":
            continue
        r.nodes.append(node)
    return r.finish()


def ranges_of(model, samples):
    """Least and greatest element of every tensor in floats over runs on the samples, by name; both include zero."""
    graph = model.graph
    names = [i.name for i in graph.input] + [name for node in graph.node for name in node.output]
    watched = onnx.ModelProto()
    watched.CopyFrom(model)
    known = {o.name for o in graph.output} | {i.name for i in graph.input}
    watched.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names if name not in known)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(watched.SerializeToString(), options, providers=["CPUExecutionProvider"])
    outputs = [o.name for o in session.get_outputs()]
    ranges = {}
    for sample in samples:
        for name, array in [*sample.items(), *zip(outputs, session.run(outputs, sample))]:
            if array.dtype == np.float32:
                least, greatest = ranges.get(name, (0.0, 0.0))
                ranges[name] = min(least, float(array.min())), max(greatest, float(array.max()))
    return ranges


def rounded_up(number, digits=3):
    """So that a scale does not depend on the last bits of the run that it was measured in."""
    unit = 10.0 ** (math.floor(math.log10(number)) + 1 - digits)
    return np.float32(math.ceil(number / unit) * unit)


def symmetric(weight, axis, limit, block=None):
    """Integers and scales of a weight: a scale per index of `axis`, or per `block` elements along it, or one."""
    if axis is None:
        scale = np.abs(weight).max() / limit
        spread = scale
    elif block is None:
        scale = np.abs(weight).max(axis=tuple(a for a in range(weight.ndim) if a != axis)) / limit
        spread = scale.reshape([-1 if a == axis else 1 for a in range(weight.ndim)])
    else:
        rows, columns = weight.shape
        scale = np.abs(weight.reshape(rows // block, block, columns)).max(axis=1) / limit
        spread = np.repeat(scale, block, axis=0)
    return np.clip(np.rint(weight / spread), -limit, limit).astype(np.int8), np.asarray(scale, np.float32)


def with_integer_edges(model, samples, activations=np.uint8, **opsets):
    """QDQ form: activations unsigned with a zero point, weights int8 per output channel, biases int32."""
    highest = int(np.iinfo(activations).max)
    model = normalisations_folded(model)
    ranges = ranges_of(model, samples)
    r = Rewriter(model)
    readers = {}
    for node in model.graph.node:
        for name in node.input:
            readers.setdefault(name, []).append(node)
        if node.op_type in SAME_SCALE:
            ranges[node.output[0]] = ranges[node.input[0]]
    scales, done = {}, {}

    def edge(name, result=None):
        """Rounded to integers and back; once for all readers."""
        if name in done:
            return done[name]
        least, greatest = ranges[name]
        scales[name] = scale = rounded_up((greatest - least) / highest)
        quantisation = [r.constant(f"{name}_scale", scale),
                        r.constant(f"{name}_zero", activations(min(highest, round(-least / float(scale)))))]
        integers = r.node("QuantizeLinear", [name, *quantisation], f"{name}_q")
        done[name] = r.node("DequantizeLinear", [integers, *quantisation], result or f"{name}_dq", f"{name}_dq")
        return done[name]

    def constant_edge(name, integers, scale, axis=0):
        zero = r.constant(f"{name}_zero", np.zeros(scale.shape, integers.dtype))
        return r.node("DequantizeLinear", [r.constant(f"{name}_q", integers), r.constant(f"{name}_scale", scale), zero],
                      f"{name}_dq", axis=axis)

    for node in model.graph.node:
        if node.op_type in INTEGER_OPERATORS:
            names = [edge(name) if name in ranges else name for name in node.input]
            if node.op_type in ("Conv", "Gemm"):  # either with its outputs first
                integers, scale = symmetric(r.arrays[node.input[1]], 0, 127)
                names[1] = constant_edge(node.input[1], integers, scale)
                bias_scale = scale * scales[node.input[0]]
                names[2] = constant_edge(node.input[2], np.rint(r.arrays[node.input[2]] / bias_scale).astype(np.int32),
                                         bias_scale)
            node.input[:] = names
        r.nodes.append(node)
    for output in model.graph.output:
        producer = next(node for node in r.nodes if output.name in node.output)
        producer.output[0] = raw = f"{output.name}_raw"
        ranges[raw] = ranges[output.name]
        edge(raw, output.name)
    # Between a convolution and its activation nothing is rounded: nobody asked for an edge there.
    return r.finish(**opsets)


def with_wide_integer_edges(model, samples):
    """The same with activations of 16 bits."""
    return with_integer_edges(model, samples, np.uint16, onnx=21)


def constant_products(r, node):
    """The right side of a product with a constant, and its bias; None for other nodes."""
    if node.op_type == "MatMul" and node.input[1] in r.arrays:
        return r.arrays[node.input[1]], None
    if node.op_type == "Gemm" and not any(a.name == "transB" and a.i for a in node.attribute):
        return r.arrays[node.input[1]], node.input[2]
    return None


def with_dynamic_products(model, _samples):
    """Products with constants in integers, the left side rounded by each run's own range."""
    r = Rewriter(model)
    rounded = {}
    for node in model.graph.node:
        if node.op_type != "MatMul" or node.input[1] not in r.arrays:
            r.nodes.append(node)
            continue
        x, weight = node.input
        result = node.output[0]
        if x not in rounded:
            rounded[x] = r.node("DynamicQuantizeLinear", [x], [f"{x}_q", f"{x}_scale", f"{x}_zero"])
        integers, scale = symmetric(r.arrays[weight], None, 127)
        right = [r.constant(f"{weight}_q", integers), r.constant(f"{weight}_zero", np.int8(0))]
        left, left_scale, left_zero = rounded[x]
        sums = r.node("MatMulInteger", [left, right[0], left_zero, right[1]], f"{result}_sums")
        factor = r.node("Mul", [left_scale, r.constant(f"{weight}_scale", scale)], f"{result}_factor")
        floats = r.node("Cast", [sums], f"{result}_floats", to=TensorProto.FLOAT)
        r.node("Mul", [floats, factor], result)
    return r.finish()


def with_weights(model, product, **opsets):
    """Every product with a constant through `product(r, x, name, weight, result)`; the bias of a Gemm is added after."""
    r = Rewriter(model)
    # The embedding is the last product's weight too; only there it is quantised.
    for node in model.graph.node:
        if node.op_type == "Transpose" and node.input[0] in r.arrays:
            r.arrays[node.output[0]] = r.arrays[node.input[0]].transpose(helper.get_node_attr_value(node, "perm"))
            continue
        found = constant_products(r, node)
        if found is None:
            r.nodes.append(node)
            continue
        weight, bias = found
        result = node.output[0]
        product(r, node.input[0], node.input[1], weight, result if bias is None else f"{result}_product")
        if bias is not None:
            r.node("Add", [f"{result}_product", bias], result)
    return r.finish(**opsets)


def packed_nibbles(integers):
    """Two to a byte, the first in the low half."""
    flat = (integers.reshape(-1).astype(np.uint8) & 15).reshape(-1, 2)
    return flat[:, 0] | flat[:, 1] << 4


def with_8_bit_blocks(model, _samples):
    """Weights int8 with a scale for 32 of them, made floats by DequantizeLinear."""
    def product(r, x, name, weight, result):
        integers, scale = symmetric(weight, 0, 127, BLOCK)
        floats = r.node("DequantizeLinear", [r.constant(f"{name}_q", integers), r.constant(f"{name}_scale", scale)],
                        f"{name}_dq", axis=0, block_size=BLOCK)
        r.node("MatMul", [x, floats], result)

    return with_weights(model, product, onnx=21)


def with_4_bit_blocks(model, _samples):
    """Weights int4 with a scale for 32 of them, made floats by DequantizeLinear."""
    def product(r, x, name, weight, result):
        integers, scale = symmetric(weight, 0, 7, BLOCK)
        r.constants[f"{name}_q"] = helper.make_tensor(f"{name}_q", TensorProto.INT4, weight.shape,
                                                      packed_nibbles(integers).tobytes(), raw=True)
        floats = r.node("DequantizeLinear", [f"{name}_q", r.constant(f"{name}_scale", scale)], f"{name}_dq", axis=0,
                        block_size=BLOCK)
        r.node("MatMul", [x, floats], result)

    return with_weights(model, product, onnx=21)


def with_packed_4_bits(model, _samples, level=0):
    """Products as com.microsoft.MatMulNBits: weights [N, K / 32, 16], the zero point 8; `level` says how the other side may
    be rounded."""
    def product(r, x, name, weight, result):
        integers, scale = symmetric(weight, 0, 7, BLOCK)
        depth, columns = weight.shape
        packed = packed_nibbles(np.ascontiguousarray((integers + 8).T)).reshape(columns, depth // BLOCK, BLOCK // 2)
        r.node("MatMulNBits", [x, r.constant(f"{name}_q", packed),
                               r.constant(f"{name}_scale", np.ascontiguousarray(scale.T).reshape(-1))], result,
               domain="com.microsoft", K=depth, N=columns, bits=4, block_size=BLOCK, accuracy_level=level)

    return with_weights(model, product, com_microsoft=1)


def with_packed_4_bits_by_bytes(model, samples):
    """The same, where the other side may be rounded to 8 bits."""
    return with_packed_4_bits(model, samples, 4)
