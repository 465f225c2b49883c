// OneHot and Trilu: elements chosen by comparing a position with an index.

#include <fmt/format.h>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

std::int64_t depth_of(const NodeView& node) {
  require_scalar(node, 1, "depth");
  const Tensor* depth = node.constant(1);
  if (!depth) {
    operator_error("depth must be known at compile time",
                   "shapes are fixed when the model is compiled; bind the value with --set");
  }
  const Scalar value = cast(depth->at(0), ElementType::kInt64);
  if (value.integer < 0) operator_error(fmt::format("depth is {}", value.integer));
  return value.integer;
}

int axis_of(const NodeView& node) {
  return normalise_axis(node.attributes().int_of("axis"), node.operand(0).rank() + 1);
}

void infer_one_hot(InferContext& context) {
  require_computable(context, 0);
  require_computable(context, 2);
  if (context.shape(2) != Shape{2}) operator_error("values must be (off, on)");
  Shape out = context.shape(0);
  out.insert(out.begin() + axis_of(context), depth_of(context));
  context.set_result(0, context.element(2), std::move(out));
}

/// Indices in [-depth, depth) count, negative ones from the end; others are off everywhere.
Form lower_one_hot(const LowerContext& context) {
  const int axis = axis_of(context);
  LoopForm form = LoopForm::over(context.result(0).shape);
  Dag& dag = form.dag;
  std::vector<Index> index = form.identity();
  index.erase(index.begin() + axis);
  const int hot = wrap_index(dag, dag.load(0, context.element(0), std::move(index)), depth_of(context));
  const ElementType type = context.element(2);
  const ElementType compute = compute_type(type);
  const int off = dag.cast(dag.load(2, type, {Index(0)}), compute);
  const int on = dag.cast(dag.load(2, type, {Index(1)}), compute);
  const int here = dag.apply(ScalarOp::kEqual, {dag.iota(Index::axis(axis)), hot});
  form.set_root(dag.cast(dag.apply(ScalarOp::kSelect, {here, on, off}), type));
  return form;
}

void infer_trilu(InferContext& context) {
  require_computable(context, 0);
  if (context.shape(0).size() < 2) operator_error("input 0 must have two axes or more");
  if (context.has_operand(1)) {
    if (context.element(1) != ElementType::kInt64) operator_error("k must be int64");
    require_scalar(context, 1, "k");
  }
  context.set_result(0, context.operand(0));
}

/// Upper keeps column - row >= k, lower keeps column - row <= k.
Form lower_trilu(const LowerContext& context) {
  const TensorType& type = context.result(0);
  LoopForm form = LoopForm::over(type.shape);
  Dag& dag = form.dag;
  const int last = type.rank() - 1;
  const int diagonal = dag.iota(Index::axis(last) - Index::axis(last - 1));
  const int k = context.has_operand(1) ? load_scalar(dag, context, 1) : dag.constant(ElementType::kInt64, 0);
  const bool upper = context.attributes().flag("upper");
  const int kept = dag.apply(upper ? ScalarOp::kGreaterEqual : ScalarOp::kLessEqual, {diagonal, k});
  const int x = load_compute(dag, context, 0, type.shape);
  const int zero = dag.constant(dag.type(x), 0);
  form.set_root(dag.cast(dag.apply(ScalarOp::kSelect, {kept, x, zero}), type.element));
  return form;
}

}  // namespace

const Operator& operator_OneHot() {
  static const Operator op = {
      .name = "OneHot",
      .versions = {9, 11, 28},
      .operands = {3, 3},
      .attributes = {{"axis", AttributeKind::kInt, std::int64_t{-1}}},
      .summary = "on at the index, off elsewhere",
      .traits = {.decides = true},
      .infer = infer_one_hot,
      .lower = lower_one_hot,
  };
  return op;
}

const Operator& operator_Trilu() {
  static const Operator op = {
      .name = "Trilu",
      .versions = {14},
      .operands = {1, 2},
      .attributes = {{"upper", AttributeKind::kInt, std::int64_t{1}}},
      .summary = "upper or lower triangle of matrices",
      .infer = infer_trilu,
      .lower = lower_trilu,
  };
  return op;
}

}  // namespace gcompile::ir
