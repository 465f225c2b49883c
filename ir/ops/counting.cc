// Counting: 0, 1, 2, ... of a given number, which kernels compute where they need it: as many as there is room for are no
// constant that a project should ship.

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

void infer(InferContext& context) {
  const std::int64_t size = context.attributes().int_of("size");
  if (size < 0) operator_error("size must be 0 or more");
  context.set_result(0, ElementType::kInt64, {size});
}

Form lower(const LowerContext& context) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  form.set_root(form.dag.iota(Index::axis(0)));
  return form;
}

}  // namespace

const Operator& operator_Counting() {
  static const Operator op = {
      .name = "Counting",
      .domain = "gcompile",
      .versions = {1},
      .operands = {0, 0},
      .attributes = {{"size", AttributeKind::kInt, std::nullopt, true}},
      .deterministic = false,  // folding would make a constant of it
      .summary = "0, 1, 2, ... that are computed where they are read",
      .infer = infer,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
