// Gemm: Y = alpha * A' * B' + beta * C, taken apart into MatMul and element-wise operators.
// The specification has matrices only; some exporters write batches of them, which read alike.

#include <fmt/format.h>

#include <cmath>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// Before opset 7 an attribute allowed C to broadcast; it does so always now.
void normalise(RewriteContext& context) { context.mutable_attributes().erase("broadcast"); }

void infer(InferContext& context) {
  const ElementType type = same_type(context);
  require_computable(context, 0);
  const Attributes& attributes = context.attributes();
  Shape a = context.shape(0);
  Shape b = context.shape(1);
  if (a.size() < 2 || b.size() < 2) {
    operator_error(fmt::format("A and B must be matrices, not {} and {}", to_string(a), to_string(b)));
  }
  if (attributes.flag("transA")) std::swap(a[a.size() - 1], a[a.size() - 2]);
  if (attributes.flag("transB")) std::swap(b[b.size() - 1], b[b.size() - 2]);
  if (a.back() != b[b.size() - 2]) {
    operator_error(fmt::format("inner dimensions differ: {} x {}", to_string(a), to_string(b)));
  }
  Shape y = broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  y.push_back(a[a.size() - 2]);
  y.push_back(b.back());
  if (context.has_operand(2) && broadcast(context.shape(2), y) != y) {
    operator_error(
        fmt::format("C of shape {} does not broadcast to {}", to_string(context.shape(2)), to_string(y)));
  }
  for (const char* name : {"alpha", "beta"}) {
    const float factor = attributes.float_of(name);
    if (!is_float(type) && factor != std::floor(factor)) {
      operator_error(fmt::format("{} = {} is not an integer, but the inputs are", name, factor));
    }
  }
  context.set_result(0, type, std::move(y));
}

/// The operand with its last two axes swapped.
ValueId transposed(RewriteContext& context, ValueId value) {
  const std::size_t rank = context.type(value).shape.size();
  std::vector<std::int64_t> perm;
  for (std::size_t axis = 0; axis < rank; ++axis) perm.push_back(static_cast<std::int64_t>(axis));
  std::swap(perm[rank - 1], perm[rank - 2]);
  return emit_transpose(context, value, perm);
}

bool decompose(RewriteContext& context) {
  const Attributes attributes = context.attributes();
  ValueId a = context.operand_id(0);
  ValueId b = context.operand_id(1);
  if (attributes.flag("transA")) a = transposed(context, a);
  if (attributes.flag("transB")) b = transposed(context, b);
  ValueId y = emit_scale(context, context.emit("MatMul", {a, b}), attributes.float_of("alpha"));
  if (context.has_operand(2)) {
    y = context.emit("Add", {y, emit_scale(context, context.operand_id(2), attributes.float_of("beta"))});
  }
  context.replace_result(0, y);
  return true;
}

}  // namespace

const Operator& operator_Gemm() {
  static const Operator op = {
      .name = "Gemm",
      .versions = {1, 6, 7, 9, 11, 13},
      .operands = {2, 3},
      .attributes = {{"alpha", AttributeKind::kFloat, 1.0f},
                     {"beta", AttributeKind::kFloat, 1.0f},
                     {"transA", AttributeKind::kInt, std::int64_t{0}},
                     {"transB", AttributeKind::kInt, std::int64_t{0}}},
      .accuracy = Accuracy::kSum,
      .summary = "alpha * A * B + beta * C",
      .normalise = normalise,
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
