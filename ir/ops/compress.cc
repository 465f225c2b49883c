// Compress: the elements, or slices along an axis, for which a condition holds. How many there are follows from the
// condition: where only a run knows it they are counted (ir/ops/counted.h), and no such node comes here.

#include <fmt/format.h>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// Positions that hold, along the axis or among all elements.
std::vector<std::int64_t> kept_positions(const NodeView& node) {
  const Tensor* condition = node.constant(1);
  if (!condition) {
    operator_error("the condition must be known at compile time", "the size of the result depends on it");
  }
  if (condition->element() != ElementType::kBool || condition->shape().size() != 1) {
    operator_error(
        fmt::format("the condition must be bool of one axis, it is {}", to_string(condition->type())));
  }
  std::vector<std::int64_t> kept;
  for (std::int64_t i = 0; i < condition->count(); ++i) {
    if (condition->int_at(i) != 0) kept.push_back(i);
  }
  return kept;
}

void infer(InferContext& context) {
  const std::vector<std::int64_t> kept = kept_positions(context);
  Shape y = context.shape(0);
  std::size_t axis = 0;
  if (context.attributes().has("axis")) {
    axis = static_cast<std::size_t>(
        normalise_axis(context.attributes().int_of("axis"), static_cast<int>(y.size())));
  } else {
    y = {element_count(y)};
  }
  if (!kept.empty() && !always_less(kept.back(), y[axis])) {
    operator_error(fmt::format("the condition does not fit: it holds for element {} of {}", kept.back(),
                               to_string(y[axis])));
  }
  y[axis] = static_cast<std::int64_t>(kept.size());
  context.set_result(0, context.element(0), std::move(y));
}

bool decompose(RewriteContext& context) {
  const std::vector<std::int64_t> kept = kept_positions(context);
  ValueId x = context.operand_id(0);
  Attributes attributes;
  if (context.attributes().has("axis")) {
    attributes.set("axis", context.attributes().int_of("axis"));
  } else {
    x = emit_reshape(context, x, {element_count(context.shape(0))});
  }
  context.replace_result(0, context.emit("Gather", {x, context.constant_ints(kept)}, attributes));
  return true;
}

}  // namespace

const Operator& operator_Compress() {
  static const Operator op = {
      .name = "Compress",
      .versions = {9, 11},
      .operands = {2, 2},
      .attributes = {{"axis", AttributeKind::kInt, std::nullopt}},
      .summary = "elements for which a condition holds",
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
