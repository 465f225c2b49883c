// Normalisations as one stitched kernel each: mean, then the mean of squared deviations (two passes, so that
// nothing cancels), then the elements.

#include <fmt/format.h>

#include <functional>

#include "ir/ops/reduced.h"

namespace gcompile::ir {
namespace {

/// The loops and the statistics of one normalisation.
struct Moments {
  LoopForm form;
  ElementType compute = ElementType::kFloat32;
  std::vector<Index> index;  // of operand 0
  int x = -1;
  int deviation = -1;  // x - mean
  int variance = -1;

  int apply(ScalarOp op, int a, int b) { return form.dag.apply(op, {a, b}); }
  int number(double value) { return form.dag.constant(compute, value); }
  /// Element of a parameter, cast to the type computed in.
  int parameter(const NodeView& node, int i, std::vector<Index> at) {
    return form.dag.cast(form.dag.load(i, node.element(i), std::move(at)), compute);
  }
  void finish(int root, ElementType type) { form.set_root(form.dag.cast(root, type)); }
};

/// `centred` false: the "variance" is the mean of squares and the deviation x itself (RMS).
Moments moments_of(LoopForm form, std::vector<Index> index, ElementType type, Dim elements, bool centred) {
  Moments m;
  m.form = std::move(form);
  m.form.final_over_reduced = true;
  m.form.store = index;
  m.index = std::move(index);
  m.compute = compute_type(type);
  Dag& dag = m.form.dag;
  m.x = dag.cast(dag.load(0, type, m.index), m.compute);
  m.deviation = m.x;
  int next = 0;
  if (centred) {
    m.form.stages.push_back({Combine::kSum, m.x});
    const int count = dag.size(m.compute, elements);
    const int mean = m.apply(ScalarOp::kDiv, dag.accumulator(next++, m.compute), count);
    m.deviation = m.apply(ScalarOp::kSub, m.x, mean);
  }
  m.form.stages.push_back({Combine::kSum, m.apply(ScalarOp::kMul, m.deviation, m.deviation)});
  const int count = dag.size(m.compute, elements);
  m.variance = m.apply(ScalarOp::kDiv, dag.accumulator(next, m.compute), count);
  return m;
}

Moments moments_over(const Shape& shape, const std::vector<int>& axes, ElementType type, bool centred) {
  ReducedAxes reduced(shape, axes, false);
  return moments_of(std::move(reduced.form), reduced.index, type, reduced.elements, centred);
}

/// deviation / sqrt(variance + epsilon)
int standardised(Moments& m, float epsilon) {
  const int shifted = m.apply(ScalarOp::kAdd, m.variance, m.number(static_cast<double>(epsilon)));
  return m.apply(ScalarOp::kDiv, m.deviation, m.form.dag.apply(ScalarOp::kSqrt, {shifted}));
}

// LayerNormalization, RMSNormalization ----------------------------------------------------------------------

std::vector<int> axes_from(const NodeView& node) {
  const int rank = node.operand(0).rank();
  std::vector<int> axes;
  for (int i = normalise_axis(node.attributes().int_of("axis"), rank); i < rank; ++i) axes.push_back(i);
  return axes;
}

void infer_layer(InferContext& context) {
  require_float(context, 0);
  axes_from(context);
  for (int i = 1; i < context.operand_count(); ++i) {
    if (!context.has_operand(i)) continue;
    require_float(context, i);
    if (broadcast(context.shape(0), context.shape(i)) != context.shape(0)) {
      operator_error(fmt::format("input {} of shape {} does not broadcast to {}", i,
                                 to_string(context.shape(i)), to_string(context.shape(0))));
    }
  }
  const std::optional<ElementType> stash = element_type_of_onnx(context.attributes().int_of("stash_type"));
  if (!stash || !is_float(*stash)) operator_error("attribute 'stash_type' must name a floating type");
  const std::vector<int> axes = axes_from(context);
  for (int i = 1; i < context.result_count(); ++i) {
    context.set_result(i, *stash, reduced_shape(context.shape(0), axes, true));
  }
  context.set_result(0, context.element(1), context.shape(0));
}

/// Index of a parameter that broadcasts from the right.
std::vector<Index> aligned(const Moments& m, const Shape& parameter) {
  const std::size_t lead = m.index.size() - parameter.size();
  std::vector<Index> at;
  for (std::size_t i = 0; i < parameter.size(); ++i) {
    at.push_back(parameter[i] == 1 ? Index(0) : m.index[i + lead]);
  }
  return at;
}

template <bool kCentred>
Form lower_layer(const LowerContext& context) {
  const ElementType type = context.element(0);
  Moments m = moments_over(context.shape(0), axes_from(context), type, kCentred);
  int y = standardised(m, context.attributes().float_of("epsilon"));
  y = m.apply(ScalarOp::kMul, y, m.parameter(context, 1, aligned(m, context.shape(1))));
  if (context.has_operand(2)) {
    y = m.apply(ScalarOp::kAdd, y, m.parameter(context, 2, aligned(m, context.shape(2))));
  }
  m.finish(y, context.result(0).element);
  return m.form;
}

/// Mean and inverse deviation are wanted only by training: computed by operators of their own.
bool decompose_layer(RewriteContext& context) {
  const bool mean_wanted = context.has_result(1) && context.graph().use_count(context.node().results[1]) > 0;
  const bool inverse_wanted =
      context.has_result(2) && context.graph().use_count(context.node().results[2]) > 0;
  if (context.result_count() == 1 || (!mean_wanted && !inverse_wanted)) return false;
  std::vector<std::int64_t> list;
  for (const int axis : axes_from(context)) list.push_back(axis);
  const ValueId axes = context.constant_ints(list);
  const ElementType stash = context.result(mean_wanted ? 1 : 2).element;
  const ValueId x = emit_cast(context, context.operand_id(0), stash);
  const ValueId mean = context.emit("ReduceMean", {x, axes});
  if (inverse_wanted) {
    const ValueId deviation = context.emit("Sub", {x, mean});
    const ValueId variance = context.emit("ReduceMean", {context.emit("Mul", {deviation, deviation}), axes});
    const ValueId epsilon =
        context.constant_scalar(stash, static_cast<double>(context.attributes().float_of("epsilon")));
    const ValueId root = context.emit("Sqrt", {context.emit("Add", {variance, epsilon})});
    context.replace_result(2, context.emit("Reciprocal", {root}));
  }
  context.replace_result(1, mean);
  const std::string name(context.node().op->name);
  context.replace_result(0, context.emit(name, context.node().operands, context.attributes()));
  return true;
}

// InstanceNormalization, GroupNormalization -----------------------------------------------------------------

void require_channels(const NodeView& node) {
  require_float(node, 0);
  if (node.shape(0).size() < 2) operator_error("input 0 must be (N, C, ...)");
  for (int i = 1; i < 3; ++i) {
    require_float(node, i);
    if (node.shape(i) != Shape{node.shape(0)[1]}) operator_error("scale and bias must be (C)");
  }
}

void infer_instance(InferContext& context) {
  require_channels(context);
  context.set_result(0, context.operand(0));
}

Form scaled_and_shifted(const LowerContext& context, Moments m) {
  int y = standardised(m, context.attributes().float_of("epsilon"));
  y = m.apply(ScalarOp::kMul, y, m.parameter(context, 1, {m.index[1]}));
  y = m.apply(ScalarOp::kAdd, y, m.parameter(context, 2, {m.index[1]}));
  m.finish(y, context.result(0).element);
  return m.form;
}

Form lower_instance(const LowerContext& context) {
  std::vector<int> axes;
  for (int i = 2; i < context.operand(0).rank(); ++i) axes.push_back(i);
  return scaled_and_shifted(context, moments_over(context.shape(0), axes, context.element(0), true));
}

/// Scale and bias were per group before opset 21: repeated for every channel of the group.
void normalise_group(RewriteContext& context) {
  if (context.opset() >= 21 || !context.attributes().has("num_groups")) return;
  const std::int64_t groups = context.attributes().int_of("num_groups");
  const Shape& x = context.shape(0);
  if (x.size() < 2 || groups < 1 || x[1] % groups != 0) return;  // infer says what is wrong
  const Shape repeated = {groups, x[1] / groups};
  for (int i = 1; i < 3; ++i) {
    if (context.shape(i) != Shape{groups} || groups == x[1]) continue;
    const ValueId column = emit_reshape(context, context.operand_id(i), {groups, 1});
    const ValueId wide = context.emit("Expand", {column, context.constant_ints(repeated)});
    context.set_operand(i, emit_reshape(context, wide, {x[1]}));
  }
}

void infer_group(InferContext& context) {
  require_channels(context);
  const std::int64_t groups = context.attributes().int_of("num_groups");
  if (groups < 1 || context.shape(0)[1] % groups != 0) {
    operator_error(fmt::format("{} channels do not divide into {} groups", context.shape(0)[1], groups));
  }
  context.set_result(0, context.operand(0));
}

/// Loops over (N, group | channel in group, spatial...).
Form lower_group(const LowerContext& context) {
  const Shape& x = context.shape(0);
  const std::int64_t groups = context.attributes().int_of("num_groups");
  LoopForm form;
  form.extents = {x[0], groups, x[1] / groups};
  form.parallel = 2;
  std::vector<Index> index = {Index::axis(0), Index::axis(1) * (x[1] / groups) + Index::axis(2)};
  Dim elements = x[1] / groups;
  for (std::size_t i = 2; i < x.size(); ++i) {
    index.push_back(Index::axis(static_cast<int>(form.extents.size())));
    form.extents.push_back(x[i]);
    elements *= x[i];
  }
  return scaled_and_shifted(
      context, moments_of(std::move(form), std::move(index), context.element(0), elements, true));
}

// MeanVarianceNormalization, LpNormalization ----------------------------------------------------------------

void infer_mean_variance(InferContext& context) {
  require_float(context, 0);
  normalise_axes(context.attributes().ints_of("axes"), context.operand(0).rank());
  context.set_result(0, context.operand(0));
}

/// deviation / (sqrt(variance) + 1e-9), as the operator's function body has it.
Form lower_mean_variance(const LowerContext& context) {
  const ElementType type = context.element(0);
  const std::vector<int> axes =
      normalise_axes(context.attributes().ints_of("axes"), context.operand(0).rank());
  Moments m = moments_over(context.shape(0), axes, type, true);
  const int root = m.form.dag.apply(ScalarOp::kSqrt, {m.variance});
  m.finish(m.apply(ScalarOp::kDiv, m.deviation, m.apply(ScalarOp::kAdd, root, m.number(1e-9))), type);
  return m.form;
}

void infer_lp(InferContext& context) {
  require_float(context, 0);
  normalise_axis(context.attributes().int_of("axis"), context.operand(0).rank());
  const std::int64_t p = context.attributes().int_of("p");
  if (p != 1 && p != 2) operator_error(fmt::format("attribute 'p' is {}, only 1 and 2 exist", p));
  context.set_result(0, context.operand(0));
}

/// x / norm; a norm of 0 gives 0.
Form lower_lp(const LowerContext& context) {
  const TensorType& type = context.operand(0);
  ReducedAxes reduced(type.shape, {normalise_axis(context.attributes().int_of("axis"), type.rank())}, false);
  reduced.keep_shape();
  Dag& dag = reduced.form.dag;
  const ElementType compute = compute_type(type.element);
  const int x = dag.cast(dag.load(0, type.element, reduced.index), compute);
  const bool absolute = context.attributes().int_of("p") == 1;
  const int term = absolute ? dag.apply(ScalarOp::kAbs, {x}) : dag.apply(ScalarOp::kMul, {x, x});
  reduced.form.stages = {Stage{Combine::kSum, term}};
  int norm = dag.accumulator(0, compute);
  if (!absolute) norm = dag.apply(ScalarOp::kSqrt, {norm});
  const int zero = dag.constant(compute, 0);
  const int empty = dag.apply(ScalarOp::kEqual, {norm, zero});
  const int y = dag.apply(ScalarOp::kSelect, {empty, zero, dag.apply(ScalarOp::kDiv, {x, norm})});
  reduced.form.set_root(dag.cast(y, type.element));
  return reduced.form;
}

Operator record(std::string_view name, std::vector<int> versions, Arity operands, std::string_view summary,
                void (*infer)(InferContext&), Form (*lower)(const LowerContext&)) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.operands = operands;
  op.accuracy = Accuracy::kSum;
  op.summary = summary;
  op.infer = infer;
  op.lower = lower;
  return op;
}

}  // namespace

const Operator& operator_LayerNormalization() {
  static const Operator op = [] {
    Operator o = record("LayerNormalization", {17}, {2, 3},
                        "(x - mean) / sqrt(var + epsilon) * scale + bias over the last axes", infer_layer,
                        lower_layer<true>);
    o.results = {1, 3};
    o.attributes = {{"axis", AttributeKind::kInt, std::int64_t{-1}},
                    {"epsilon", AttributeKind::kFloat, 1e-5f},
                    {"stash_type", AttributeKind::kInt, std::int64_t{1}}};
    o.decompose = decompose_layer;
    return o;
  }();
  return op;
}

const Operator& operator_RMSNormalization() {
  static const Operator op = [] {
    Operator o =
        record("RMSNormalization", {23}, {2, 2}, "x / sqrt(mean(x^2) + epsilon) * scale over the last axes",
               infer_layer, lower_layer<false>);
    o.attributes = {{"axis", AttributeKind::kInt, std::int64_t{-1}},
                    {"epsilon", AttributeKind::kFloat, 1e-5f},
                    {"stash_type", AttributeKind::kInt, std::int64_t{1}}};
    return o;
  }();
  return op;
}

const Operator& operator_InstanceNormalization() {
  static const Operator op = [] {
    Operator o = record("InstanceNormalization", {1, 6, 22}, {3, 3},
                        "(x - mean) / sqrt(var + epsilon) * scale + bias per sample and channel",
                        infer_instance, lower_instance);
    o.attributes = {{"epsilon", AttributeKind::kFloat, 1e-5f}};
    return o;
  }();
  return op;
}

const Operator& operator_GroupNormalization() {
  static const Operator op = [] {
    Operator o = record("GroupNormalization", {18, 21}, {3, 3},
                        "(x - mean) / sqrt(var + epsilon) * scale + bias per sample and group of channels",
                        infer_group, lower_group);
    o.attributes = {{"epsilon", AttributeKind::kFloat, 1e-5f},
                    {"num_groups", AttributeKind::kInt, std::nullopt, true},
                    {"stash_type", AttributeKind::kInt, std::int64_t{1}}};
    o.normalise = normalise_group;
    return o;
  }();
  return op;
}

const Operator& operator_MeanVarianceNormalization() {
  static const Operator op = [] {
    Operator o = record("MeanVarianceNormalization", {9, 13}, {1, 1}, "(x - mean) / sqrt(var) over axes",
                        infer_mean_variance, lower_mean_variance);
    o.attributes = {{"axes", AttributeKind::kInts, std::vector<std::int64_t>{0, 2, 3}}};
    return o;
  }();
  return op;
}

const Operator& operator_LpNormalization() {
  static const Operator op = [] {
    Operator o = record("LpNormalization", {1, 22}, {1, 1}, "x / norm along an axis", infer_lp, lower_lp);
    o.attributes = {{"axis", AttributeKind::kInt, std::int64_t{-1}},
                    {"p", AttributeKind::kInt, std::int64_t{2}}};
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
