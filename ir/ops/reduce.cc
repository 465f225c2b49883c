// Reductions over axes: an expression, an associative combine, an expression on the result.

#include <algorithm>

#include "ir/ops/reduced.h"

namespace gcompile::ir {
namespace {

struct Reduction {
  Combine combine;
  int (*before)(Dag&, int x);
  int (*after)(Dag&, int accumulated, Dim elements);
  /// Roots and logarithms of integers are computed in float64.
  bool real = false;
};

int same(Dag&, int x) { return x; }
int same_after(Dag&, int accumulated, Dim) { return accumulated; }
int absolute(Dag& dag, int x) { return dag.apply(ScalarOp::kAbs, {x}); }
int square(Dag& dag, int x) { return dag.apply(ScalarOp::kMul, {x, x}); }
int mean(Dag& dag, int sum, Dim elements) {
  return dag.apply(ScalarOp::kDiv, {sum, dag.size(dag.type(sum), elements)});
}
int root(Dag& dag, int sum, Dim) { return dag.apply(ScalarOp::kSqrt, {sum}); }
int logarithm(Dag& dag, int sum, Dim) { return dag.apply(ScalarOp::kLog, {sum}); }

constexpr Reduction kSum = {Combine::kSum, same, same_after};
constexpr Reduction kMean = {Combine::kSum, same, mean};
constexpr Reduction kMax = {Combine::kMax, same, same_after};
constexpr Reduction kMin = {Combine::kMin, same, same_after};
constexpr Reduction kProduct = {Combine::kProduct, same, same_after};
constexpr Reduction kSumSquare = {Combine::kSum, square, same_after};
constexpr Reduction kAbsolute = {Combine::kSum, absolute, same_after};
constexpr Reduction kNorm = {Combine::kSum, square, root, true};
constexpr Reduction kLogSum = {Combine::kSum, same, logarithm, true};

/// Axes became an input in opset 13 (ReduceSum) and 18 (the others).
void normalise(RewriteContext& context) { context.attribute_to_operand("axes", 1); }

std::vector<int> reduced_axes(const NodeView& node) {
  const int rank = node.operand(0).rank();
  std::vector<std::int64_t> axes;
  if (node.has_operand(1)) axes = node.constant_ints(1, "axes");
  if (!axes.empty()) return normalise_axes(axes, rank);
  std::vector<int> all;
  for (int i = 0; i < rank && !node.attributes().flag("noop_with_empty_axes"); ++i) all.push_back(i);
  return all;
}

void infer(InferContext& context) {
  require_computable(context, 0);
  const bool keep = context.attributes().flag("keepdims");
  context.set_result(0, context.element(0), reduced_shape(context.shape(0), reduced_axes(context), keep));
}

template <const Reduction& kReduction>
Form lower(const LowerContext& context) {
  const TensorType& type = context.operand(0);
  ReducedAxes reduced(type.shape, reduced_axes(context), context.attributes().flag("keepdims"));
  LoopForm& form = reduced.form;
  Dag& dag = form.dag;
  const bool widen = kReduction.real && !is_float(type.element);
  const ElementType compute = widen ? ElementType::kFloat64 : compute_type(type.element);
  const int x = kReduction.before(dag, dag.cast(dag.load(0, type.element, reduced.index), compute));
  form.stages = {Stage{kReduction.combine, x}};
  const int value = kReduction.after(dag, dag.accumulator(0, compute), reduced.elements);
  form.set_root(dag.cast(value, type.element));
  return form;
}

/// log(sum(exp(x - max))) + max; the maximum is left out where it is infinite.
Form lower_log_sum_exp(const LowerContext& context) {
  const TensorType& type = context.operand(0);
  ReducedAxes reduced(type.shape, reduced_axes(context), context.attributes().flag("keepdims"));
  LoopForm& form = reduced.form;
  Dag& dag = form.dag;
  const ElementType compute = is_float(type.element) ? compute_type(type.element) : ElementType::kFloat64;
  const int x = dag.cast(dag.load(0, type.element, reduced.index), compute);
  const int max = dag.accumulator(0, compute);
  const int infinite = dag.apply(ScalarOp::kIsInf, {max});
  const int shift = dag.apply(ScalarOp::kSelect, {infinite, dag.constant(compute, 0), max});
  const int power = dag.apply(ScalarOp::kExp, {dag.apply(ScalarOp::kSub, {x, shift})});
  form.stages = {Stage{Combine::kMax, x}, Stage{Combine::kSum, power}};
  const int log = dag.apply(ScalarOp::kLog, {dag.accumulator(1, compute)});
  form.set_root(dag.cast(dag.apply(ScalarOp::kAdd, {log, shift}), type.element));
  return form;
}

Operator record(std::string_view name, std::vector<int> versions, Accuracy accuracy, std::string_view summary,
                Form (*lower_to)(const LowerContext&)) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.operands = {1, 2};
  op.attributes = {{"keepdims", AttributeKind::kInt, std::int64_t{1}},
                   {"noop_with_empty_axes", AttributeKind::kInt, std::int64_t{0}}};
  op.accuracy = accuracy;
  op.summary = summary;
  op.normalise = normalise;
  op.infer = infer;
  op.lower = lower_to;
  return op;
}

}  // namespace

#define GC_REDUCTION(name, lower_to, accuracy, summary, ...)                                        \
  const Operator& operator_##name() {                                                               \
    static const Operator op = record(#name, {__VA_ARGS__}, Accuracy::accuracy, summary, lower_to); \
    return op;                                                                                      \
  }

GC_REDUCTION(ReduceSum, lower<kSum>, kSum, "sum over axes", 1, 11, 13)
GC_REDUCTION(ReduceMean, lower<kMean>, kSum, "mean over axes", 1, 11, 13, 18)
GC_REDUCTION(ReduceMax, lower<kMax>, kExact, "maximum over axes", 1, 11, 12, 13, 18, 20)
GC_REDUCTION(ReduceMin, lower<kMin>, kExact, "minimum over axes", 1, 11, 12, 13, 18, 20)
GC_REDUCTION(ReduceProd, lower<kProduct>, kSum, "product over axes", 1, 11, 13, 18)
GC_REDUCTION(ReduceSumSquare, lower<kSumSquare>, kSum, "sum of squares over axes", 1, 11, 13, 18)
GC_REDUCTION(ReduceL1, lower<kAbsolute>, kSum, "sum of absolute values over axes", 1, 11, 13, 18)
GC_REDUCTION(ReduceL2, lower<kNorm>, kSum, "root of the sum of squares over axes", 1, 11, 13, 18)
GC_REDUCTION(ReduceLogSum, lower<kLogSum>, kSum, "logarithm of the sum over axes", 1, 11, 13, 18, 28)
GC_REDUCTION(ReduceLogSumExp, lower_log_sum_exp, kSum, "logarithm of the sum of exponentials over axes", 1,
             11, 13, 18, 28)

}  // namespace gcompile::ir
