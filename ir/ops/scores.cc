#include "ir/ops/scores.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace gcompile::ir {
namespace {

struct Row {
  std::string_view name;
  PostTransform transform;
};
constexpr Row kTransforms[] = {{"NONE", PostTransform::kNone},
                               {"SOFTMAX", PostTransform::kSoftmax},
                               {"LOGISTIC", PostTransform::kLogistic},
                               {"SOFTMAX_ZERO", PostTransform::kSoftmaxZero},
                               {"PROBIT", PostTransform::kProbit}};

Attributes along_columns() {
  Attributes attributes;
  attributes.set("axis", std::int64_t{1});
  return attributes;
}

/// Over columns, which stay as one.
ValueId emit_reduced(RewriteContext& context, std::string_view op, ValueId x) {
  const std::vector<std::int64_t> columns = {1};
  return context.emit(op, {x, context.constant_ints(columns)});
}

/// Numbers that are about 0 have no part in the sum, and get what is left of them.
ValueId emit_softmax_zero(RewriteContext& context, ValueId x) {
  constexpr double kAboutZero = 1e-7;
  const ElementType type = context.type(x).element;
  const ValueId most = emit_reduced(context, "ReduceMax", x);
  const ValueId size = context.emit("Abs", {x});
  const ValueId limit = context.constant_scalar(type, kAboutZero);
  const ValueId counts = context.emit("Greater", {size, limit});
  const ValueId shifted = context.emit("Sub", {x, most});
  const ValueId power = context.emit("Exp", {shifted});
  const ValueId nothing = context.constant_scalar(type, 0);
  const ValueId part = context.emit("Where", {counts, power, nothing});
  const ValueId sum = emit_reduced(context, "ReduceSum", part);
  const ValueId scale = context.emit("Exp", {context.emit("Neg", {most})});
  const ValueId rest = context.emit("Mul", {x, scale});
  const ValueId numbers = context.emit("Where", {counts, power, rest});
  return context.emit("Div", {numbers, sum});
}

/// The quantile of the normal distribution by Winitzki's approximation of the inverse error function:
/// sqrt(2) * sign(z) * sqrt(sqrt(v^2 - l / a) - v), z = 2 p - 1, l = log(1 - z^2), v = 2 / (pi a) + l / 2, a = 0.147.
ValueId emit_probit(RewriteContext& context, ValueId p) {
  constexpr double kA = 0.147, kPi = 3.14159;
  const ElementType type = context.type(p).element;
  const auto number = [&](double value) { return context.constant_scalar(type, value); };
  const ValueId one = number(1), twice = emit_scale(context, p, 2);
  const ValueId z = context.emit("Sub", {twice, one});
  const ValueId below = context.emit("Sub", {one, z});
  const ValueId above = context.emit("Add", {one, z});
  const ValueId l = context.emit("Log", {context.emit("Mul", {below, above})});
  const ValueId half = emit_scale(context, l, 0.5), part = number(2 / (kPi * kA));
  const ValueId v = context.emit("Add", {part, half});
  const ValueId square = context.emit("Mul", {v, v});
  const ValueId scaled = emit_scale(context, l, 1 / kA);
  const ValueId root = context.emit("Sqrt", {context.emit("Sub", {square, scaled})});
  const ValueId size = context.emit("Sqrt", {context.emit("Sub", {root, v})});
  const ValueId zero = number(0), is_low = context.emit("Less", {z, zero});
  const ValueId negative = context.emit("Neg", {size});
  return emit_scale(context, context.emit("Where", {is_low, negative, size}), std::sqrt(2.0));
}

}  // namespace

PostTransform post_transform_of(const Attributes& attributes) {
  const std::string& name = attributes.string_of("post_transform");
  for (const Row& row : kTransforms) {
    if (row.name == name) return row.transform;
  }
  operator_error(fmt::format("attribute 'post_transform' is '{}'", printable(name)));
}

ValueId emit_post_transform(RewriteContext& context, ValueId scores, PostTransform transform) {
  if (transform == PostTransform::kProbit) return emit_probit(context, scores);
  if (context.type(scores).shape[1] == 1) return scores;
  switch (transform) {
    case PostTransform::kSoftmax:
      return context.emit("Softmax", {scores}, along_columns());
    case PostTransform::kLogistic:
      return context.emit("Sigmoid", {scores});
    case PostTransform::kSoftmaxZero:
      return emit_softmax_zero(context, scores);
    default:
      return scores;
  }
}

void require_pair(PostTransform transform) {
  if (transform != PostTransform::kProbit) return;
  operator_error("the transform PROBIT of one score for two classes leaves the second one open");
}

ValueId emit_pair(RewriteContext& context, ValueId score, PostTransform transform, Pair pair) {
  const ElementType type = context.type(score).element;
  ValueId other;
  if (transform == PostTransform::kLogistic || pair == Pair::kNegative) {
    other = context.emit("Neg", {score});
  } else {
    const ValueId one = context.constant_scalar(type, 1);
    other = context.emit("Sub", {one, score});
  }
  const ValueId both = emit_concat(context, {other, score}, 1);
  return transform == PostTransform::kLogistic ? context.emit("Sigmoid", {both}) : both;
}

ClassLabels class_labels(const Attributes& attributes, std::string_view of_numbers) {
  ClassLabels labels;
  if (attributes.has("classlabels_strings")) {
    const std::size_t count = attributes.strings_of("classlabels_strings").size();
    labels.are_strings = count > 0;
    for (std::size_t i = 0; i < count; ++i) labels.numbers.push_back(static_cast<std::int64_t>(i));
  }
  if (attributes.has(of_numbers)) {
    const std::vector<std::int64_t>& numbers = attributes.ints_of(of_numbers);
    if (labels.are_strings && !numbers.empty()) operator_error("classes have labels of two types");
    if (!labels.are_strings) labels.numbers = numbers;
  }
  if (labels.numbers.empty()) operator_error("there is no class label");
  return labels;
}

ValueId emit_best_label(RewriteContext& context, ValueId scores, const ClassLabels& labels) {
  Attributes attributes = along_columns();
  attributes.set("keepdims", std::int64_t{0});
  const ValueId best = context.emit("ArgMax", {scores}, attributes);
  bool are_positions = true;
  for (std::size_t i = 0; i < labels.numbers.size(); ++i) {
    are_positions = are_positions && labels.numbers[i] == static_cast<std::int64_t>(i);
  }
  return are_positions ? best : context.emit("Gather", {context.constant_ints(labels.numbers), best});
}

ValueId emit_label_above(RewriteContext& context, ValueId score, double threshold, std::int64_t above,
                         std::int64_t below) {
  const TensorType type = context.type(score);
  const ValueId limit = context.constant_scalar(type.element, threshold);
  const ValueId is_above = context.emit("Greater", {score, limit});
  const std::vector<std::int64_t> high = {above}, low = {below};
  const ValueId of_above = context.constant_ints(high), of_below = context.constant_ints(low);
  const ValueId label = context.emit("Where", {is_above, of_above, of_below});
  return emit_reshape(context, label, {type.shape[0]});
}

Shape rows_of(const NodeView& node, int operand) {
  require_computable(node, operand);
  const Shape& shape = node.shape(operand);
  if (shape.size() == 1) return {1, shape[0]};
  if (shape.size() != 2)
    operator_error(fmt::format("input {} must be (rows, features), not {}", operand, to_string(shape)));
  return shape;
}

ValueId emit_rows(RewriteContext& context, int operand, bool keeps_double) {
  const ElementType type = context.element(operand);
  const ElementType wanted =
      keeps_double && type == ElementType::kFloat64 ? ElementType::kFloat64 : ElementType::kFloat32;
  return emit_reshape(context, emit_cast(context, context.operand_id(operand), wanted),
                      rows_of(context, operand));
}

ValueId emit_affine(RewriteContext& context, ValueId x, const std::vector<float>& weights,
                    const std::vector<float>& shifts, std::int64_t targets) {
  const std::int64_t features = static_cast<std::int64_t>(weights.size()) / targets;
  std::vector<float> columns(weights.size());
  for (std::int64_t i = 0; i < targets; ++i) {
    for (std::int64_t k = 0; k < features; ++k)
      columns[static_cast<std::size_t>(k * targets + i)] =
          weights[static_cast<std::size_t>(i * features + k)];
  }
  const ElementType type = context.type(x).element;
  const ValueId floats = context.constant(Tensor::of_floats(columns, {features, targets}));
  const ValueId matrix = emit_cast(context, floats, type);
  const ValueId product = context.emit("MatMul", {x, matrix});
  if (shifts.empty()) return product;
  const ValueId row = context.constant(Tensor::of_floats(shifts, {1, targets}));
  return context.emit("Add", {product, emit_cast(context, row, type)});
}

}  // namespace gcompile::ir
