// ArgMax, ArgMin: position of the extremum along one axis. Hardmax: one at the first maximum.

#include "ir/ops/reduced.h"

namespace gcompile::ir {
namespace {

std::vector<int> axis_of(const NodeView& node) {
  return {normalise_axis(node.attributes().int_of("axis"), node.operand(0).rank())};
}

void infer_arg(InferContext& context) {
  require_computable(context, 0);
  const std::vector<int> axes = axis_of(context);
  if (context.shape(0)[static_cast<std::size_t>(axes[0])] == 0) operator_error("the axis has no elements");
  const bool keep = context.attributes().flag("keepdims");
  context.set_result(0, ElementType::kInt64, reduced_shape(context.shape(0), axes, keep));
}

template <Combine kCombine>
Form lower_arg(const LowerContext& context) {
  const TensorType& type = context.operand(0);
  ReducedAxes reduced(type.shape, axis_of(context), context.attributes().flag("keepdims"));
  Dag& dag = reduced.form.dag;
  const int x = dag.cast(dag.load(0, type.element, reduced.index), compute_type(type.element));
  reduced.form.stages = {Stage{kCombine, x, context.attributes().flag("select_last_index")}};
  reduced.form.set_root(dag.accumulator(0, ElementType::kInt64));
  return reduced.form;
}

template <Combine kCombine>
Operator arg(std::string_view name, std::string_view summary) {
  Operator op;
  op.name = name;
  op.versions = {1, 11, 12, 13};
  op.attributes = {{"axis", AttributeKind::kInt, std::int64_t{0}},
                   {"keepdims", AttributeKind::kInt, std::int64_t{1}},
                   {"select_last_index", AttributeKind::kInt, std::int64_t{0}}};
  op.summary = summary;
  op.traits.gives_positions = true;
  op.infer = infer_arg;
  op.lower = lower_arg<kCombine>;
  return op;
}

void infer_hardmax(InferContext& context) {
  require_float(context, 0);
  axis_of(context);
  context.set_result(0, context.operand(0));
}

Form lower_hardmax(const LowerContext& context) {
  const TensorType& type = context.operand(0);
  ReducedAxes reduced(type.shape, axis_of(context), false);
  reduced.keep_shape();
  Dag& dag = reduced.form.dag;
  const int x = dag.cast(dag.load(0, type.element, reduced.index), compute_type(type.element));
  reduced.form.stages = {Stage{Combine::kArgMax, x}};
  const int here = dag.iota(Index::axis(reduced.form.parallel));
  const int first = dag.accumulator(0, ElementType::kInt64);
  reduced.form.set_root(dag.cast(dag.apply(ScalarOp::kEqual, {here, first}), type.element));
  return reduced.form;
}

}  // namespace

const Operator& operator_ArgMax() {
  static const Operator op = arg<Combine::kArgMax>("ArgMax", "position of the largest element along an axis");
  return op;
}

const Operator& operator_ArgMin() {
  static const Operator op =
      arg<Combine::kArgMin>("ArgMin", "position of the smallest element along an axis");
  return op;
}

const Operator& operator_Hardmax() {
  static const Operator op = {
      .name = "Hardmax",
      .versions = {1, 11, 13},
      .attributes = {{"axis", AttributeKind::kInt, std::int64_t{-1}}},
      .summary = "one at the first maximum along an axis, zero elsewhere",
      .traits = {.decides = true},
      .normalise = normalise_flattened_axis,
      .infer = infer_hardmax,
      .lower = lower_hardmax,
  };
  return op;
}

}  // namespace gcompile::ir
