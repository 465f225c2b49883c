// Transpose: result[i_perm...] = x[...]; a view whenever the consumer takes strides.

#include <algorithm>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

void normalise(RewriteContext& context) {
  if (context.attributes().has("perm")) return;
  std::vector<std::int64_t> reversed;
  for (int axis = static_cast<int>(context.shape(0).size()); axis-- > 0;) reversed.push_back(axis);
  context.mutable_attributes().set("perm", reversed);
}

void infer(InferContext& context) {
  const auto& perm = context.attributes().ints_of("perm");
  const Shape& shape = context.shape(0);
  // Other operators count axes from the end as well; perm does not (ONNX Transpose-21).
  const bool counts_from_end =
      std::any_of(perm.begin(), perm.end(), [](std::int64_t axis) { return axis < 0; });
  std::vector<int> sorted = normalise_axes(perm, static_cast<int>(shape.size()));
  if (counts_from_end || sorted.size() != shape.size()) operator_error("perm must name every axis once");
  Shape out;
  for (const std::int64_t axis : perm) out.push_back(shape[axis]);
  context.set_result(0, context.element(0), std::move(out));
}

Form lower(const LowerContext& context) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  const auto& perm = context.attributes().ints_of("perm");
  std::vector<Index> index(perm.size());
  for (std::size_t i = 0; i < perm.size(); ++i) {
    index[perm[i]] = Index::axis(static_cast<int>(i));
  }
  form.set_root(form.dag.load(0, context.element(0), std::move(index)));
  return form;
}

}  // namespace

const Operator& operator_Transpose() {
  static const Operator op = {
      .name = "Transpose",
      .versions = {1, 13, 21},
      .attributes = {{"perm", AttributeKind::kInts, std::nullopt}},
      .summary = "permutes axes",
      .normalise = normalise,
      .infer = infer,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
