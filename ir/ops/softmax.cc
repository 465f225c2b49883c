// Softmax and LogSoftmax along one axis, as one stitched kernel: max, sum of exp(x - max), quotient.
// Before opset 13 the axis split a matrix (flatten semantics): normalised by Reshape around the operator.

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

void infer(InferContext& context) {
  require_float(context, 0);
  normalise_axis(context.attributes().int_of("axis"), static_cast<int>(context.shape(0).size()));
  context.set_result(0, context.operand(0));
}

template <bool kLog>
Form lower(const LowerContext& context) {
  const TensorType& type = context.operand(0);
  const int rank = type.rank();
  const int axis = normalise_axis(context.attributes().int_of("axis"), rank);
  // Parallel axes are the others in order, the reduced axis comes last.
  LoopForm form;
  form.parallel = rank - 1;
  form.final_over_reduced = true;
  std::vector<Index> index(static_cast<std::size_t>(rank));
  for (int i = 0; i < rank; ++i) {
    if (i == axis) continue;
    index[i] = Index::axis(static_cast<int>(form.extents.size()));
    form.extents.push_back(type.shape[i]);
  }
  index[axis] = Index::axis(rank - 1);
  form.extents.push_back(type.shape[axis]);
  form.store = index;
  Dag& dag = form.dag;
  const ElementType compute = compute_type(type.element);
  const int x = dag.cast(dag.load(0, type.element, index), compute);
  const int shifted = dag.apply(ScalarOp::kSub, {x, dag.accumulator(0, compute)});
  const int power = dag.apply(ScalarOp::kExp, {shifted});
  form.stages = {Stage{Combine::kMax, x}, Stage{Combine::kSum, power}};
  const int sum = dag.accumulator(1, compute);
  const int root = kLog ? dag.apply(ScalarOp::kSub, {shifted, dag.apply(ScalarOp::kLog, {sum})})
                        : dag.apply(ScalarOp::kDiv, {power, sum});
  form.set_root(dag.cast(root, type.element));
  return form;
}

Operator record(std::string_view name, Form (*lower_to)(const LowerContext&), std::string_view summary) {
  Operator op;
  op.name = name;
  op.versions = {1, 11, 13};
  op.attributes = {{"axis", AttributeKind::kInt, std::int64_t{-1}}};
  op.accuracy = Accuracy::kFunction;
  op.summary = summary;
  op.normalise = normalise_flattened_axis;
  op.infer = infer;
  op.lower = lower_to;
  return op;
}

}  // namespace

const Operator& operator_Softmax() {
  static const Operator op = record("Softmax", lower<false>, "exp(x) / sum(exp(x)) along an axis");
  return op;
}

const Operator& operator_LogSoftmax() {
  static const Operator op = record("LogSoftmax", lower<true>, "x - log(sum(exp(x))) along an axis");
  return op;
}

}  // namespace gcompile::ir
