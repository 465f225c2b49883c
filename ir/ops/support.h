#pragma once
// What operator records share: broadcasting, axes, and builders of element-wise forms.

#include <functional>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "ir/forms/form.h"
#include "ir/graph/operator.h"
#include "ir/sizes/sizes.h"

namespace gcompile::ir {

/// Numpy broadcasting (ONNX Broadcasting.md, multidirectional). Throws OperatorError.
Shape broadcast(const Shape& a, const Shape& b);
/// Whether a size is one, for what depends on that. OperatorError where it is one in some runs only:
/// `trouble`, and the bounds that decide it.
bool is_one(Dim size, const std::string& trouble);
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

/// The broadcast shape of all operands.
Shape broadcast_of_operands(const NodeView& node);
/// Inference of element-wise operators: result 0 has the broadcast shape of all operands and the given type.
void infer_elementwise(InferContext& context, ElementType result);
/// All operands have one type, else OperatorError.
ElementType same_type(const NodeView& node, int first = 0);
void require_float(const NodeView& node, int i);
/// The text of an attribute is one of those known, else OperatorError.
void require_one_of(const Attributes& attributes, std::string_view name,
                    std::initializer_list<std::string_view> known);

/// The type that ONNX's TensorProto.DataType numbers `number`, as attributes `to` and `dtype` give it;
/// nullopt for strings, complex numbers and numbers unknown.
std::optional<ElementType> element_type_of_onnx(std::int64_t number);
/// The same as an attribute gives it; OperatorError for the others.
ElementType type_of(const Attributes& attributes, std::string_view name);
/// The same; OperatorError when nothing computes in the type.
ElementType computable_type_of(const Attributes& attributes, std::string_view name);

/// ONNX's number of a type (the inverse of element_type_of_onnx).
std::int64_t onnx_number_of(ElementType type);
/// Adds a Cast of `value` to `type`; `value` itself when it has the type.
ValueId emit_cast(RewriteContext& context, ValueId value, ElementType type);
/// Adds a Reshape of `value` to `shape`; `value` itself when it has the shape.
ValueId emit_reshape(RewriteContext& context, ValueId value, const Shape& shape);

/// Value of operand `i` when it is known and has one element.
std::optional<Scalar> constant_scalar(const NodeView& node, int i);
/// Operand `i` of at most one element as a scalar of the form in its own type: a literal when known.
int load_scalar(Dag& dag, const NodeView& node, int i);
/// Shape checks of operands that must be scalars ([] or [1]).
void require_scalar(const NodeView& node, int i, std::string_view what);

/// Integer index `id` (any integer type) as int64 with negative values counted from the end of `extent`.
int wrap_index(Dag& dag, int id, Dim extent);

/// Before opset 7 the attributes `broadcast` and `axis` said where operand 1 lies in operand 0: it is
/// reshaped to the same effect.
void normalise_legacy_broadcast(RewriteContext& context);

/// Operators of the softmax family before opset 13: the axis split a matrix. The node becomes a Reshape
/// around the operator along the last axis.
void normalise_flattened_axis(RewriteContext& context);

/// Smallest form of a type test used by many records: "float16, float32, ..." is refused when not computable.
void require_computable(const NodeView& node, int i);

}  // namespace gcompile::ir
