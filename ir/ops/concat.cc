// Concat: one region per operand, so that no element asks where it comes from (DESIGN law 1).

#include <fmt/format.h>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

/// Before opset 4 the axis was optional, and 1 by default.
void normalise(RewriteContext& context) {
  if (context.opset() < 4 && !context.attributes().has("axis")) {
    context.mutable_attributes().set("axis", std::int64_t{1});
  }
}

void infer(InferContext& context) {
  const ElementType type = same_type(context);
  Shape out = context.shape(0);
  const auto axis = static_cast<std::size_t>(
      normalise_axis(context.attributes().int_of("axis"), static_cast<int>(out.size())));
  for (int i = 1; i < context.operand_count(); ++i) {
    Shape next = context.shape(i);
    if (next.size() != out.size()) operator_error("inputs must have the same rank");
    const Dim length = next[axis];
    next[axis] = out[axis];
    if (!assume_equal_shapes(next, out)) {
      operator_error(fmt::format("inputs 0 and {} differ outside axis {}: {} and {}", i, axis,
                                 to_string(context.shape(0)), to_string(context.shape(i))));
    }
    out[axis] += length;
  }
  context.set_result(0, type, std::move(out));
}

Form lower(const LowerContext& context) {
  const TensorType& result = context.result(0);
  const int axis = normalise_axis(context.attributes().int_of("axis"), result.rank());
  const auto at = static_cast<std::size_t>(axis);
  LoopForm form = LoopForm::over(result.shape);
  Dim start = 0;
  for (int i = 0; i < context.operand_count(); ++i) {
    const Dim length = context.shape(i)[at];
    if (length == 0) continue;
    std::vector<Index> index = form.identity();
    index[at] = index[at] - Index(start);
    Region region{form.ranges(), form.dag.load(i, result.element, std::move(index))};
    region.box[at] = {start, start + length};
    form.regions.push_back(std::move(region));
    start += length;
  }
  return form;
}

}  // namespace

const Operator& operator_Concat() {
  static const Operator op = {
      .name = "Concat",
      .versions = {1, 4, 11, 13},
      .operands = {1, -1},
      .attributes = {{"axis", AttributeKind::kInt, std::nullopt, true}},
      .summary = "operands one after another along an axis",
      .normalise = normalise,
      .infer = infer,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
