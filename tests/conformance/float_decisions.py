"""Integers that a model computes from floats: where a small error becomes a whole step.

A rounding error of a float stays small; where a float decides an integer (a cast, an index of a maximum, a quantised
number, a comparison) it jumps. So these inner values are compared one by one, not only what comes out at the end.
"""

import onnx

FLOATS = {onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE, onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16}
COMPARISONS = {"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "IsNaN", "IsInf"}
# Operator -> position of the indices among its results.
INDICES = {"ArgMax": 0, "ArgMin": 0, "TopK": 1}
# Operator -> position of the zero point of its result among its operands.
RESULT_ZERO_POINTS = {"QuantizeLinear": 2, "QLinearConv": 7, "QLinearMatMul": 7, "QLinearAdd": 7, "QLinearMul": 7,
                      "QLinearConcat": 1, "QLinearGlobalAveragePool": 4, "QLinearAveragePool": 4, "QLinearSigmoid": 4,
                      "QLinearLeakyRelu": 4}


def attribute(node, name, default):
    for item in node.attribute:
        if item.name == name:
            return onnx.helper.get_attribute_value(item)
    return default


def element_types(graph, outer):
    """Element type by name, as far as ONNX inferred it; a branch sees the names around it."""
    types = {**outer, **{tensor.name: tensor.data_type for tensor in graph.initializer}}
    for value in (*graph.input, *graph.value_info, *graph.output):
        if value.type.HasField("tensor_type"):
            types[value.name] = value.type.tensor_type.elem_type
    return types


def quantised_type(node, types, position):
    """The type of a result with a zero point among the operands, which is uint8 where it is left out."""
    has_zero_point = len(node.input) > position and node.input[position]
    if has_zero_point and node.input[position] in types:
        return types[node.input[position]]
    return attribute(node, "output_dtype", 0) or onnx.TensorProto.UINT8


def decisions_of(node, types):
    """Names and element types of the results of one node that are integers (or bools) made of floats."""
    if node.op_type in {"Cast", *INDICES, *COMPARISONS} and node.input[0] not in types:
        raise ValueError(f"{node.op_type} '{node.name}': ONNX does not know the type of '{node.input[0]}'")
    from_floats = bool(node.input) and types.get(node.input[0]) in FLOATS
    if node.op_type == "Cast":
        target = attribute(node, "to", 0)
        return [(node.output[0], target)] if from_floats and target not in FLOATS else []
    if node.op_type in INDICES:
        position = INDICES[node.op_type]
        is_there = len(node.output) > position and node.output[position]
        return [(node.output[position], onnx.TensorProto.INT64)] if from_floats and is_there else []
    if node.op_type in COMPARISONS:
        return [(node.output[0], onnx.TensorProto.BOOL)] if from_floats else []
    if node.op_type == "DynamicQuantizeLinear":
        return [(node.output[i], onnx.TensorProto.UINT8) for i in (0, 2)]
    if node.op_type in RESULT_ZERO_POINTS:
        return [(node.output[0], quantised_type(node, types, RESULT_ZERO_POINTS[node.op_type]))]
    if node.op_type.startswith("QLinear"):
        raise ValueError(f"{node.op_type}: where is the zero point of its result?")
    return []


def decisions_in(graph, outer):
    """The decisions of a graph without its branches, then of its branches."""
    types = element_types(graph, outer)
    own, inner = [], []
    for node in graph.node:
        own += decisions_of(node, types)
        for item in node.attribute:
            for branch in ([item.g] if item.HasField("g") else item.graphs):
                inner += sum(decisions_in(branch, types), [])
    return own, inner


def expose(model):
    """Adds these values to the outputs, except those in branches of If, which cannot leave. Names of both kinds."""
    own, inner = decisions_in(onnx.shape_inference.infer_shapes(model).graph, {})
    taken = {value.name for value in model.graph.output}
    for name, element in own:
        if name not in taken:  # its shape is for the reader to find
            model.graph.output.add(name=name).type.tensor_type.elem_type = element
    return [name for name, _ in own], [name for name, _ in inner]
