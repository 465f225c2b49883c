#include "ir/ops/microsoft_mask.h"

#include <fmt/format.h>

namespace gcompile::ir {

void require_score_bias(const NodeView& node, int mask, int bias, const ScoreSizes& s) {
  if (node.has_operand(mask)) {
    const Shape& shape = node.shape(mask);
    const bool fits = shape == Shape{s.batch} || shape == Shape{2 * s.batch} ||
                      shape == Shape{3 * s.batch + 2} || shape == Shape{s.batch, s.columns} ||
                      shape == Shape{s.batch, s.rows, s.columns} ||
                      (shape.size() == 4 && shape[0] == s.batch && shape[1] == 1 &&
                       always_less_equal(s.columns, shape[2]) && always_less_equal(s.columns, shape[3]));
    if (!fits) {
      operator_error(
          fmt::format("a mask of shape {} is not supported", to_string(shape)),
          "key lengths (batch) or (3 * batch + 2), ends and starts (2 * batch), and masks (batch, total), "
          "(batch, sequence, total) and (batch, 1, max, max) are");
    }
  }
  const Shape scores = {s.batch, s.heads, s.rows, s.columns};
  if (node.has_operand(bias) && broadcast(node.shape(bias), scores) != scores) {
    operator_error(fmt::format("attention_bias of shape {} does not broadcast to the scores {}",
                               to_string(node.shape(bias)), to_string(scores)));
  }
}

namespace {

/// Which columns take part, bool, broadcasting to the scores.
ValueId allowed_columns(RewriteContext& context, int operand, const ScoreSizes& s) {
  ValueId mask = context.operand_id(operand);
  const Shape shape = context.shape(operand);
  const ValueId zero = context.constant_scalar(context.element(operand), 0);
  if (shape.size() == 1) {
    const ValueId column = emit_counting(context, 0, {1, 1, 1, s.columns});
    mask = emit_cast(context, mask, ElementType::kInt64);
    const auto bound = [&](Dim begin) {
      const ValueId part = shape[0] == s.batch ? mask : emit_slice(context, mask, 0, begin, begin + s.batch);
      return emit_reshape(context, part, {s.batch, 1, 1, 1});
    };
    const ValueId before_end = context.emit("Less", {column, bound(0)});
    if (shape[0] != 2 * s.batch) return before_end;
    return context.emit("And", {before_end, context.emit("LessOrEqual", {bound(s.batch), column})});
  }
  if (shape.size() == 2) mask = emit_reshape(context, mask, {s.batch, 1, 1, s.columns});
  if (shape.size() == 3) mask = emit_reshape(context, mask, {s.batch, 1, s.rows, s.columns});
  if (shape.size() == 4) {
    mask = emit_slice(context, mask, 2, s.columns - s.rows, s.columns);
    mask = emit_slice(context, mask, 3, 0, s.columns);
  }
  return context.emit("Less", {zero, mask});
}

}  // namespace

ValueId emit_score_bias(RewriteContext& context, int mask, int added, const ScoreSizes& s) {
  ValueId bias;
  if (context.has_operand(mask)) {
    const ElementType type = context.element(0);
    const ValueId zero = context.constant_scalar(type, 0);
    const ValueId filter = context.constant_scalar(type, context.attributes().float_of("mask_filter_value"));
    bias = context.emit("Where", {allowed_columns(context, mask, s), zero, filter});
  }
  if (!context.has_operand(added)) return bias;
  const ValueId given = context.operand_id(added);
  return bias.valid() ? context.emit("Add", {bias, given}) : given;
}

}  // namespace gcompile::ir
