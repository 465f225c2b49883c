// Reductions over axes: an expression, an associative combine, an expression on the result.

#include <algorithm>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

struct Reduction {
  Combine combine;
  int (*before)(Dag&, int x);
  int (*after)(Dag&, int accumulated, double elements);
};

int same(Dag&, int x) { return x; }
int same_after(Dag&, int accumulated, double) { return accumulated; }
int mean(Dag& dag, int sum, double elements) {
  return dag.apply(ScalarOp::kDiv, {sum, dag.constant(dag.type(sum), elements)});
}

constexpr Reduction kSum = {Combine::kSum, same, same_after};
constexpr Reduction kMean = {Combine::kSum, same, mean};
constexpr Reduction kMax = {Combine::kMax, same, same_after};

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
  const std::vector<int> axes = reduced_axes(context);
  const bool keep = context.attributes().flag("keepdims");
  Shape out;
  for (int i = 0; i < context.operand(0).rank(); ++i) {
    if (!std::binary_search(axes.begin(), axes.end(), i)) {
      out.push_back(context.shape(0)[static_cast<std::size_t>(i)]);
    } else if (keep) {
      out.push_back(1);
    }
  }
  context.set_result(0, context.element(0), std::move(out));
}

template <const Reduction& kReduction>
Form lower(const LowerContext& context) {
  const TensorType& type = context.operand(0);
  const std::vector<int> axes = reduced_axes(context);
  const bool keep = context.attributes().flag("keepdims");
  LoopForm form;
  std::vector<Index> index(type.shape.size());
  double elements = 1;
  for (int i = 0; i < type.rank(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (std::binary_search(axes.begin(), axes.end(), i)) {
      if (keep) form.store.emplace_back(0);
      elements *= static_cast<double>(type.shape[at]);
      continue;
    }
    index[at] = Index::axis(static_cast<int>(form.extents.size()));
    form.store.push_back(index[at]);
    form.extents.push_back(type.shape[at]);
  }
  form.parallel = static_cast<int>(form.extents.size());
  for (const int axis : axes) {
    index[static_cast<std::size_t>(axis)] = Index::axis(static_cast<int>(form.extents.size()));
    form.extents.push_back(type.shape[static_cast<std::size_t>(axis)]);
  }
  Dag& dag = form.dag;
  const ElementType compute = compute_type(type.element);
  const int x = kReduction.before(dag, dag.cast(dag.load(0, type.element, index), compute));
  form.stages = {Stage{kReduction.combine, x}};
  const int root = kReduction.after(dag, dag.accumulator(0, compute), elements);
  form.set_root(dag.cast(root, type.element));
  return form;
}

template <const Reduction& kReduction>
Operator record(std::string_view name, std::vector<int> versions, Accuracy accuracy,
                std::string_view summary) {
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
  op.lower = lower<kReduction>;
  return op;
}

}  // namespace

#define GC_REDUCTION(name, reduction, accuracy, summary, ...)                                        \
  const Operator& operator_##name() {                                                                \
    static const Operator op = record<reduction>(#name, {__VA_ARGS__}, Accuracy::accuracy, summary); \
    return op;                                                                                       \
  }

GC_REDUCTION(ReduceSum, kSum, kSum, "sum over axes", 1, 11, 13)
GC_REDUCTION(ReduceMean, kMean, kSum, "mean over axes", 1, 11, 13, 18)
GC_REDUCTION(ReduceMax, kMax, kExact, "maximum over axes", 1, 11, 12, 13, 18, 20)

}  // namespace gcompile::ir
