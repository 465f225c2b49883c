// Check: a run goes on where a condition holds, and ends with a status where it does not (ir/graph/checks.h).

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

void infer(InferContext& context) {
  if (context.element(0) != ElementType::kBool || context.operand(0).count() != 1)
    operator_error("the condition must be one bool");
  context.set_result(0, ElementType::kBool, {0});
}

Form lower(const LowerContext&) { return IfForm{}; }

}  // namespace

const Operator& operator_Check() {
  static const Operator op = {
      .name = "Check",
      .domain = "gcompile",
      .versions = {1},
      .operands = {1, 1},
      .attributes = {{"input", AttributeKind::kString, std::nullopt, true},
                     {"example", AttributeKind::kTensor, std::nullopt, true}},
      .deterministic = false,
      .summary = "a condition without which a run ends",
      .infer = infer,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
