// Gemm: Y = alpha * A' * B' + beta * C, taken apart into MatMul and element-wise operators.

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
  const Shape& a = context.shape(0);
  const Shape& b = context.shape(1);
  if (a.size() != 2 || b.size() != 2) {
    operator_error(fmt::format("A and B must be matrices, not {} and {}", to_string(a), to_string(b)));
  }
  const std::size_t a_rows = attributes.flag("transA") ? 1 : 0;
  const std::size_t b_rows = attributes.flag("transB") ? 1 : 0;
  if (a[1 - a_rows] != b[b_rows]) {
    operator_error(fmt::format("inner dimensions differ: A {}{} x B {}{}", to_string(a), a_rows ? "'" : "",
                               to_string(b), b_rows ? "'" : ""));
  }
  Shape y = {a[a_rows], b[1 - b_rows]};
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

bool decompose(RewriteContext& context) {
  const Attributes attributes = context.attributes();
  ValueId a = context.operand_id(0);
  ValueId b = context.operand_id(1);
  if (attributes.flag("transA")) a = emit_transpose(context, a, {1, 0});
  if (attributes.flag("transB")) b = emit_transpose(context, b, {1, 0});
  ValueId y = emit_scale(context, context.emit("MatMul", {a, b}), attributes.float_of("alpha"));
  if (context.has_operand(2)) {
    y = context.emit("Add", {y, emit_scale(context, context.operand_id(2), attributes.float_of("beta"))});
  }
  context.replace_result(0, y);
  return true;
}

}  // namespace

const Operator& operator_Gemm() {
  static const Operator op = [] {
    Operator o;
    o.name = "Gemm";
    o.versions = {1, 6, 7, 9, 11, 13};
    o.operands = {2, 3};
    o.attributes = {{"alpha", AttributeKind::kFloat, 1.0f},
                    {"beta", AttributeKind::kFloat, 1.0f},
                    {"transA", AttributeKind::kInt, std::int64_t{0}},
                    {"transB", AttributeKind::kInt, std::int64_t{0}}};
    o.accuracy = Accuracy::kSum;
    o.summary = "alpha * A * B + beta * C";
    o.normalise = normalise;
    o.infer = infer;
    o.decompose = decompose;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
