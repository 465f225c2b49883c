// BatchNormalization in inference mode is y = x * a + b per channel with a = gamma / sqrt(var + epsilon) and
// b = beta - mean * a. Known statistics are folded into a and b in double, with one rounding each; where
// either would leave its range, y is computed as the operator says it.

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
  if (attributes.has("training_mode")) {
    if (attributes.flag("training_mode")) {
      operator_error("training mode is not supported", "export the model for inference");
    }
    attributes.erase("training_mode");
  }
  attributes.erase("momentum");
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
  for (int i = 1; i < context.result_count(); ++i) {
    context.set_result(i, context.operand(3));
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

/// Old exporters name the statistics even where nobody reads them; only who reads them asks for training.
void require_unused_statistics(const NodeView& node) {
  for (int i = 1; i < node.result_count(); ++i) {
    if (node.has_result(i) && node.graph().use_count(node.node().results[i]) > 0) {
      operator_error("running statistics are not computed", "export the model for inference");
    }
  }
}

bool decompose(RewriteContext& context) {
  require_unused_statistics(context);
  const TensorType x = context.operand(0);
  // 16-bit floats are scaled and shifted in float32 and rounded once.
  const ElementType type = compute_type(x.element);
  Shape shape = {x.rank() > 1 ? x.shape[1] : Dim(1)};
  for (int i = 2; i < x.rank(); ++i) shape.push_back(1);
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
      .attributes = {{"epsilon", AttributeKind::kFloat, 1e-5f}},
      .accuracy = Accuracy::kRounding,
      .summary = "(x - mean) / sqrt(var + epsilon) * scale + bias per channel (inference only)",
      .normalise = normalise,
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
