#pragma once
// What operator records share: broadcasting, axes, and builders of element-wise forms.

#include <functional>
#include <vector>

#include "ir/operator.h"

namespace gcompile::ir {

/// Numpy broadcasting (ONNX Broadcasting.md, multidirectional). Throws OperatorError.
Shape broadcast(const Shape& a, const Shape& b);
/// Axis in [0, rank) from one in [-rank, rank). Throws OperatorError.
int normalise_axis(std::int64_t axis, int rank);
/// Sorted, distinct, normalised.
std::vector<int> normalise_axes(const std::vector<std::int64_t>& axes, int rank);

/// Loads operand `i` of the node broadcast to the axes of a form over `result` (right-aligned).
int load_broadcast(Dag& dag, const NodeView& node, int i, const Shape& result);
/// The load above cast to the type it is computed in (float32 for 16-bit floats).
int load_compute(Dag& dag, const NodeView& node, int i, const Shape& result);

/// Element-wise form over the broadcast of all operands: `body` gets the operands in compute type and returns
/// the root, which is cast to the type of result 0.
LoopForm elementwise(const NodeView& node, const std::function<int(Dag&, const std::vector<int>&)>& body);

/// Inference of element-wise operators: result 0 has the broadcast shape of all operands and the given type.
void infer_elementwise(InferContext& context, ElementType result);
/// All operands have one type, else OperatorError.
ElementType same_type(const NodeView& node, int first = 0);
void require_float(const NodeView& node, int i);

/// Smallest form of a type test used by many records: "float16, float32, ..." is refused when not computable.
void require_computable(const NodeView& node, int i);

}  // namespace gcompile::ir
