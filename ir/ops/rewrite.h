#pragma once
// Short spellings of nodes that decompositions emit again and again; emit_cast and emit_reshape are
// in support.h.

#include <string>
#include <vector>

#include "ir/ops/support.h"

namespace gcompile::ir {

/// Transpose: result axis i is axis perm[i]; `value` itself when perm is the identity.
ValueId emit_transpose(RewriteContext& context, ValueId value, const std::vector<std::int64_t>& perm);
/// value * factor, a constant of the value's type; `value` itself for 1.
ValueId emit_scale(RewriteContext& context, ValueId value, double factor);
/// Elements [begin, end) of an axis, every step-th.
ValueId emit_slice(RewriteContext& context, ValueId value, std::int64_t axis, Dim begin, Dim end,
                   std::int64_t step = 1);
ValueId emit_concat(RewriteContext& context, std::vector<ValueId> values, std::int64_t axis);
/// int64 of rank 0.
ValueId emit_number(RewriteContext& context, Dim number);
/// first, first + 1, ... in int64 along the one axis of `shape` that is not 1, or along the last.
ValueId emit_counting(RewriteContext& context, Dim first, const Shape& shape);
/// Zeros of a type.
ValueId emit_zeros(RewriteContext& context, const TensorType& type);

/// The name under which a constant that stands for `value` is known: its own, else that of the largest
/// constant it is computed from.
std::string name_as_constant(const Graph& graph, ValueId value);

}  // namespace gcompile::ir
