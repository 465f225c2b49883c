// BatchNormalization in inference mode is y = x * a + b per channel with a = gamma / sqrt(var + epsilon) and
// b = beta - mean * a. Known statistics are folded into a and b in double, with one rounding each; where
// either would leave its range, y is computed as the operator says it. In training mode mean and variance are
// those of the operand, per channel.

#include <cmath>
#include <optional>

#include "ir/ops/support.h"
#include "ir/tensors/constant_range.h"

namespace gcompile::ir {
namespace {

/// `spatial` (before opset 9) is 1 in every model met; 0 asks for statistics per element, removed since.
void normalise(RewriteContext& context) {
  Attributes& attributes = context.mutable_attributes();
  if (attributes.has("spatial")) {
    if (!attributes.flag("spatial")) operator_error("attribute 'spatial' = 0 is not supported");
    attributes.erase("spatial");
  }
  if (!attributes.has("training_mode") || !attributes.flag("training_mode")) {
    attributes.erase("training_mode");
    attributes.erase("momentum");
  }
  attributes.erase("is_test");  // opset 6
}

void infer(InferContext& context) {
  for (int i = 0; i < 5; ++i) require_float(context, i);
  const Shape& x = context.shape(0);
  if (x.empty()) operator_error("input 0 must have a batch axis");
  const Shape channels = {x.size() > 1 ? x[1] : Dim(1)};
  for (int i = 1; i < 5; ++i) {
    if (context.shape(i) != channels) operator_error("scale, bias, mean and variance must be (C)");
  }
  if (context.attributes().flag("training_mode") && context.result_count() > 3)
    operator_error("in training mode there are three results");
  for (int i = 1; i < context.result_count(); ++i) {
    context.set_result(i, context.operand(i == 2 ? 4 : 3));
  }
  context.set_result(0, context.operand(0));
}

using Line = std::pair<ValueId, ValueId>;

/// a and b as tensors of type `type` and shape (C, 1, ...); nullopt: they cannot stand for the statistics.
std::optional<Line> folded(RewriteContext& context, ElementType type, const Shape& shape) {
  const Tensor& gamma = *context.constant(1);
  const Tensor& beta = *context.constant(2);
  const Tensor& mean = *context.constant(3);
  const Tensor& variance = *context.constant(4);
  const double epsilon = static_cast<double>(context.attributes().float_of("epsilon"));
  Tensor a(TensorType{type, shape}), b(TensorType{type, shape});
  ProductRange range(type, static_cast<std::size_t>(a.count()));
  for (std::int64_t c = 0; c < a.count(); ++c) {
    const double inverse = 1 / std::sqrt(variance.real_at(c) + epsilon), factor = gamma.real_at(c) * inverse;
    a.set(c, Scalar::of_real(type, factor));
    b.set(c, Scalar::of_real(type, beta.real_at(c) - mean.real_at(c) * factor));
    range.add(a.real_at(c), gamma.real_at(c), inverse, static_cast<std::size_t>(c));
    const bool is_shifted = keeps_sum(b.real_at(c), beta.real_at(c), mean.real_at(c));
    if (!std::isfinite(inverse) || !is_shifted) return std::nullopt;
  }
  if (!range.is_kept()) return std::nullopt;
  return Line{context.constant(std::move(a), context.operand_id(1)),
              context.constant(std::move(b), context.operand_id(2))};
}

Line computed(RewriteContext& context, ElementType type, const Shape& shape) {
  std::vector<ValueId> parameter;
  for (int i = 1; i < 5; ++i) {
    const ValueId value = emit_cast(context, context.operand_id(i), type);
    parameter.push_back(emit_reshape(context, value, shape));
  }
  const ValueId epsilon =
      context.constant_scalar(type, static_cast<double>(context.attributes().float_of("epsilon")));
  const ValueId deviation = context.emit("Sqrt", {context.emit("Add", {parameter[3], epsilon})});
  const ValueId a = context.emit("Div", {parameter[0], deviation});
  const ValueId b = context.emit("Sub", {parameter[1], context.emit("Mul", {parameter[2], a})});
  return {a, b};
}

/// (x - mean) / sqrt(var + epsilon) * gamma + beta.
ValueId as_written(RewriteContext& context, ValueId x, ElementType type, const Shape& shape) {
  const auto parameter = [&](int i) {
    return emit_reshape(context, emit_cast(context, context.operand_id(i), type), shape);
  };
  const ValueId epsilon =
      context.constant_scalar(type, static_cast<double>(context.attributes().float_of("epsilon")));
  const ValueId deviation = context.emit("Sqrt", {context.emit("Add", {parameter(4), epsilon})});
  const ValueId standard = context.emit("Div", {context.emit("Sub", {x, parameter(3)}), deviation});
  return context.emit("Add", {context.emit("Mul", {standard, parameter(1)}), parameter(2)});
}

/// What a run makes of the old statistics: old * momentum + new * (1 - momentum).
void emit_running(RewriteContext& context, int result, ValueId statistic) {
  const int operand = result + 2;
  if (!context.has_result(result)) return;
  const ElementType type = context.type(statistic).element;
  const auto momentum = static_cast<double>(context.attributes().float_of("momentum"));
  const ValueId before = emit_cast(context, context.operand_id(operand), type);
  const ValueId now = emit_reshape(context, statistic, context.shape(operand));
  const ValueId old_part = context.emit("Mul", {before, context.constant_scalar(type, momentum)});
  const ValueId new_part = context.emit("Mul", {now, context.constant_scalar(type, 1 - momentum)});
  const ValueId sum = context.emit("Add", {old_part, new_part});
  context.replace_result(result, emit_cast(context, sum, context.element(operand)));
}

/// Mean and variance over all axes but that of the channels, of squares of deviations, so that nothing cancels.
void decompose_training(RewriteContext& context, const Shape& shape) {
  const TensorType x = context.operand(0);
  const ElementType type = compute_type(x.element);
  const auto parameter = [&](int i) {
    return emit_reshape(context, emit_cast(context, context.operand_id(i), type), shape);
  };
  std::vector<std::int64_t> all_but_channels;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != 1) all_but_channels.push_back(i);
  }
  const ValueId axes = context.constant_ints(all_but_channels);
  const ValueId wide = emit_cast(context, context.operand_id(0), type);
  const ValueId mean = context.emit("ReduceMean", {wide, axes});
  const ValueId deviation = context.emit("Sub", {wide, mean});
  const ValueId variance = context.emit("ReduceMean", {context.emit("Mul", {deviation, deviation}), axes});
  const ValueId epsilon =
      context.constant_scalar(type, static_cast<double>(context.attributes().float_of("epsilon")));
  const ValueId root = context.emit("Sqrt", {context.emit("Add", {variance, epsilon})});
  const ValueId scaled = context.emit("Mul", {context.emit("Div", {deviation, root}), parameter(1)});
  const ValueId y = context.emit("Add", {scaled, parameter(2)});
  emit_running(context, 1, mean);
  emit_running(context, 2, variance);
  context.replace_result(0, emit_cast(context, y, x.element));
}

/// Old exporters name the statistics even where nobody reads them; only who reads them asks for training.
void require_unused_statistics(const NodeView& node) {
  for (int i = 1; i < node.result_count(); ++i) {
    if (node.has_result(i) && node.graph().use_count(node.node().results[i]) > 0) {
      operator_error("running statistics are not computed", "export the model for inference");
    }
  }
}

bool decompose(RewriteContext& context) {
  const TensorType x = context.operand(0);
  // 16-bit floats are scaled and shifted in float32 and rounded once.
  const ElementType type = compute_type(x.element);
  Shape shape = {x.rank() > 1 ? x.shape[1] : Dim(1)};
  for (int i = 2; i < x.rank(); ++i) shape.push_back(1);
  if (context.attributes().flag("training_mode")) {
    decompose_training(context, shape);
    return true;
  }
  require_unused_statistics(context);
  bool known = true;
  for (int i = 1; i < 5; ++i) known = known && context.constant(i) != nullptr;
  const auto line = known ? folded(context, type, shape) : std::optional(computed(context, type, shape));
  const ValueId wide = emit_cast(context, context.operand_id(0), type);
  const ValueId y = line ? context.emit("Add", {context.emit("Mul", {wide, line->first}), line->second})
                         : as_written(context, wide, type, shape);
  context.replace_result(0, emit_cast(context, y, x.element));
  return true;
}

}  // namespace

const Operator& operator_BatchNormalization() {
  static const Operator op = {
      .name = "BatchNormalization",
      .versions = {1, 6, 7, 9, 14, 15},
      .operands = {5, 5},
      .results = {1, 5},
      .attributes = {{"epsilon", AttributeKind::kFloat, 1e-5f},
                     {"momentum", AttributeKind::kFloat, 0.9f},
                     {"training_mode", AttributeKind::kInt, std::int64_t{0}}},
      .accuracy = Accuracy::kRounding,
      .summary = "(x - mean) / sqrt(var + epsilon) * scale + bias per channel",
      .normalise = normalise,
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
