// What ONNX Runtime called RMSNormalization before ONNX had it: SimplifiedLayerNormalization, in ai.onnx, and
// com.microsoft.SkipSimplifiedLayerNormalization, with the addition before it.

#include <fmt/format.h>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

bool is_read(const NodeView& node, int i) {
  return node.has_result(i) && node.graph().use_count(node.node().results[i]) > 0;
}

/// Replaces result 0 by RMSNormalization of x, and result `inverse`, where read,
/// by 1 / sqrt(mean(x^2) + epsilon).
void normalise_rows(RewriteContext& context, ValueId x, ValueId scale, std::int64_t axis, int inverse) {
  const auto epsilon = static_cast<double>(context.attributes().float_of("epsilon"));
  if (is_read(context, inverse)) {
    const ElementType stash = context.result(inverse).element;
    const ValueId wide = emit_cast(context, x, stash);
    std::vector<std::int64_t> axes;
    for (auto i = axis; i < context.type(x).rank(); ++i) axes.push_back(i);
    const ValueId squares = context.emit("Mul", {wide, wide});
    const ValueId mean = context.emit("ReduceMean", {squares, context.constant_ints(axes)});
    const ValueId shifted = context.emit("Add", {mean, context.constant_scalar(stash, epsilon)});
    context.replace_result(inverse, context.emit("Reciprocal", {context.emit("Sqrt", {shifted})}));
  }
  Attributes attributes;
  attributes.set("axis", axis);
  attributes.set("epsilon", context.attributes().float_of("epsilon"));
  context.replace_result(0, context.emit("RMSNormalization", {x, scale}, attributes));
}

Shape statistics_shape(Shape shape, std::int64_t axis) {
  std::fill(shape.begin() + static_cast<std::ptrdiff_t>(axis), shape.end(), 1);
  return shape;
}

// SimplifiedLayerNormalization: operands X, scale; results Y, inv_std_var.

std::int64_t axis_of(const NodeView& node) {
  return normalise_axis(node.attributes().int_of("axis"), node.operand(0).rank());
}

void infer_simplified(InferContext& context) {
  require_float(context, 0);
  require_float(context, 1);
  const Shape& x = context.shape(0);
  if (broadcast(x, context.shape(1)) != x) {
    operator_error(fmt::format("a scale of shape {} does not broadcast to the input {}",
                               to_string(context.shape(1)), to_string(x)));
  }
  const std::optional<ElementType> stash = element_type_of_onnx(context.attributes().int_of("stash_type"));
  if (!stash || !is_float(*stash)) operator_error("attribute 'stash_type' must name a floating type");
  context.set_result(0, context.element(1), x);
  context.set_result(1, *stash, statistics_shape(x, axis_of(context)));
}

bool decompose_simplified(RewriteContext& context) {
  normalise_rows(context, context.operand_id(0), context.operand_id(1), axis_of(context), 1);
  return true;
}

// SkipSimplifiedLayerNormalization: operands input, skip, gamma, bias;
// results output, mean, inv_std_var, sum.

constexpr int kSkip = 1, kGamma = 2, kBias = 3;
constexpr int kMean = 1, kInverse = 2, kSum = 3;

void infer_skip(InferContext& context) {
  require_float(context, 0);
  const ElementType type = same_type(context);
  const Shape& x = context.shape(0);
  if (x.empty() || broadcast(x, context.shape(kSkip)) != x) {
    operator_error(fmt::format("skip of shape {} does not broadcast to the input {}",
                               to_string(context.shape(kSkip)), to_string(x)));
  }
  for (const int i : {kGamma, kBias}) {
    if (context.has_operand(i) && context.shape(i) != Shape{x.back()}) {
      operator_error(fmt::format("{} must have {} elements, its shape is {}", i == kGamma ? "gamma" : "bias",
                                 x.back(), to_string(context.shape(i))));
    }
  }
  const Shape rows = statistics_shape(x, context.operand(0).rank() - 1);
  context.set_result(0, type, x);
  context.set_result(kMean, ElementType::kFloat32, rows);
  context.set_result(kInverse, ElementType::kFloat32, rows);
  context.set_result(kSum, type, x);
}

bool decompose_skip(RewriteContext& context) {
  ValueId sum = context.emit("Add", {context.operand_id(0), context.operand_id(kSkip)});
  if (context.has_operand(kBias)) sum = context.emit("Add", {sum, context.operand_id(kBias)});
  // No mean is taken off, which leaves it at zero.
  if (is_read(context, kMean)) context.replace_result(kMean, context.constant(Tensor(context.result(kMean))));
  if (context.has_result(kSum)) context.replace_result(kSum, sum);
  normalise_rows(context, sum, context.operand_id(kGamma), context.operand(0).rank() - 1, kInverse);
  return true;
}

}  // namespace

const Operator& operator_SimplifiedLayerNormalization() {
  static const Operator op = {
      .name = "SimplifiedLayerNormalization",
      .versions = {1},
      .operands = {2, 2},
      .results = {1, 2},
      .attributes = {{"axis", AttributeKind::kInt, std::int64_t{-1}},
                     {"epsilon", AttributeKind::kFloat, 1e-5f},
                     {"stash_type", AttributeKind::kInt, std::int64_t{1}}},
      .accuracy = Accuracy::kSum,
      .summary = "RMSNormalization, as ONNX Runtime adds it to ai.onnx",
      .infer = infer_simplified,
      .decompose = decompose_simplified,
  };
  return op;
}

const Operator& operator_MicrosoftSkipSimplifiedLayerNormalization() {
  static const Operator op = {
      .name = "SkipSimplifiedLayerNormalization",
      .domain = "com.microsoft",
      .versions = {1},
      .operands = {3, 4},
      .results = {1, 4},
      .attributes = {{"epsilon", AttributeKind::kFloat, 1e-12f}},
      .accuracy = Accuracy::kSum,
      .summary = "RMSNormalization of x + skip + bias",
      .infer = infer_skip,
      .decompose = decompose_skip,
  };
  return op;
}

}  // namespace gcompile::ir
