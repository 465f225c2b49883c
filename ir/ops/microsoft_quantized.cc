// com.microsoft: operators of bytes that ONNX Runtime's quantisation writes for what computes in floats:
// QLinearAveragePool, QLinearConcat, QLinearGlobalAveragePool, QLinearLeakyRelu, QLinearSigmoid,
// QLinearSoftmax and QLinearWhere. Each becomes the operator of floats between DequantizeLinear and
// QuantizeLinear, which the passes know how to move and to join.

#include <fmt/format.h>

#include "ir/ops/rewrite.h"
#include "ir/ops/window.h"

namespace gcompile::ir {
namespace {

/// The real numbers of a tensor whose elements, scale and zero point are operands i, i + 1 and i + 2.
ValueId dequantised(RewriteContext& context, int i) {
  for (const int needed : {i, i + 1}) {
    if (!context.has_operand(needed)) operator_error(fmt::format("input {} is missing", needed));
  }
  return context.emit("DequantizeLinear",
                      {context.operand_id(i), context.operand_id(i + 1), context.operand_id(i + 2)});
}

/// The node becomes QuantizeLinear of `y` by the scale and the zero point that are operands i and i + 1, to
/// the type of operand `like` where there is no zero point.
void quantise(RewriteContext& context, ValueId y, int i, int like = 0) {
  if (!context.has_operand(i))
    operator_error(fmt::format("input {}, the scale of the result, is missing", i));
  Attributes attributes;
  if (!context.has_operand(i + 1)) attributes.set("output_dtype", onnx_number_of(context.element(like)));
  context.replace_with("QuantizeLinear", {y, context.operand_id(i), context.operand_id(i + 1)},
                       std::move(attributes));
}

void require_channels_first(const RewriteContext& context) {
  if (context.attributes().has("channels_last") && context.attributes().flag("channels_last")) {
    operator_error("channels_last = 1 is not supported", "quantise a model whose channels come first");
  }
}

// Operands of one tensor: X, X_scale, X_zero_point, Y_scale, Y_zero_point.

void normalise_average_pool(RewriteContext& context) {
  require_channels_first(context);
  normalise_window(context, {});
  Attributes attributes = context.attributes();
  attributes.erase("channels_last");
  quantise(context, context.emit("AveragePool", {dequantised(context, 0)}, std::move(attributes)), 3);
}

void normalise_global_average_pool(RewriteContext& context) {
  require_channels_first(context);
  quantise(context, context.emit("GlobalAveragePool", {dequantised(context, 0)}), 3);
}

void normalise_leaky_relu(RewriteContext& context) {
  quantise(context, context.emit("LeakyRelu", {dequantised(context, 0)}, context.attributes()), 3);
}

void normalise_sigmoid(RewriteContext& context) {
  quantise(context, context.emit("Sigmoid", {dequantised(context, 0)}), 3);
}

/// The attribute `opset` says what `axis` means: before 13 all axes from there on are one.
void normalise_softmax(RewriteContext& context) {
  const Attributes& given = context.attributes();
  const Shape shape = context.shape(0);
  const int rank = static_cast<int>(shape.size());
  const int axis = normalise_axis(given.has("axis") ? given.int_of("axis") : -1, rank);
  const bool is_flattened = given.has("opset") && given.int_of("opset") < 13;
  ValueId x = dequantised(context, 0);
  Attributes attributes;
  attributes.set("axis", std::int64_t{is_flattened ? -1 : axis});
  if (is_flattened) {
    Shape matrix = {1, 1};
    for (int i = 0; i < rank; ++i) matrix[i < axis ? 0 : 1] *= shape[i];
    x = emit_reshape(context, x, matrix);
  }
  quantise(context, emit_reshape(context, context.emit("Softmax", {x}, std::move(attributes)), shape), 3);
}

// The operands are the scale and the zero point of the result, and then three for each tensor.
void normalise_concat(RewriteContext& context) {
  const int count = static_cast<int>(context.node().operands.size()) - 2;
  if (count < 3 || count % 3 != 0) operator_error("the inputs must be a scale, a zero point and triples");
  std::vector<ValueId> parts;
  for (int i = 0; i < count; i += 3) parts.push_back(dequantised(context, i + 2));
  Attributes attributes;
  if (context.attributes().has("axis")) attributes.set("axis", context.attributes().int_of("axis"));
  quantise(context, context.emit("Concat", std::move(parts), std::move(attributes)), 0, 2);
}

// A condition, three operands for each branch, and two for the result.
void normalise_where(RewriteContext& context) {
  const ValueId x = dequantised(context, 1), y = dequantised(context, 4);
  quantise(context, context.emit("Where", {context.operand_id(0), x, y}), 7, 1);
}

void infer_normalised(InferContext&) { operator_error("it is normalised to operators of floats"); }

Operator record(std::string_view name, Arity operands, std::string_view summary,
                void (*normalise)(RewriteContext&), std::vector<AttributeSpec> attributes = {}) {
  Operator o;
  o.name = name;
  o.domain = "com.microsoft";
  o.versions = {1};
  o.operands = operands;
  o.attributes = std::move(attributes);
  o.accuracy = Accuracy::kRounding;
  o.summary = summary;
  o.traits.quantised = true;
  o.normalise = normalise;
  o.infer = infer_normalised;
  return o;
}

constexpr std::int64_t kOff = 0;

}  // namespace

const Operator& operator_QLinearAveragePool() {
  static const Operator op = [] {
    std::vector<AttributeSpec> attributes = window_attributes();
    for (const char* name : {"ceil_mode", "channels_last", "count_include_pad"}) {
      attributes.push_back({name, AttributeKind::kInt, kOff});
    }
    return record("QLinearAveragePool", {4, 5}, "quantised mean over sliding windows", normalise_average_pool,
                  std::move(attributes));
  }();
  return op;
}

const Operator& operator_QLinearConcat() {
  static const Operator op =
      record("QLinearConcat", {5, -1}, "quantised operands one after another along an axis", normalise_concat,
             {{"axis", AttributeKind::kInt, std::nullopt, true}});
  return op;
}

const Operator& operator_QLinearGlobalAveragePool() {
  static const Operator op =
      record("QLinearGlobalAveragePool", {5, 5}, "quantised mean over the spatial axes",
             normalise_global_average_pool, {{"channels_last", AttributeKind::kInt, kOff}});
  return op;
}

const Operator& operator_QLinearLeakyRelu() {
  static const Operator op = record("QLinearLeakyRelu", {4, 5}, "quantised x < 0 ? alpha * x : x",
                                    normalise_leaky_relu, {{"alpha", AttributeKind::kFloat, 0.01f}});
  return op;
}

const Operator& operator_QLinearSigmoid() {
  static const Operator op = record("QLinearSigmoid", {4, 5}, "quantised 1 / (1 + e^-x)", normalise_sigmoid);
  return op;
}

const Operator& operator_QLinearSoftmax() {
  static const Operator op =
      record("QLinearSoftmax", {5, 5}, "quantised exp(x) / sum(exp(x)) along an axis", normalise_softmax,
             {{"axis", AttributeKind::kInt, std::int64_t{-1}}, {"opset", AttributeKind::kInt, std::nullopt}});
  return op;
}

const Operator& operator_QLinearWhere() {
  static const Operator op =
      record("QLinearWhere", {9, 9}, "condition ? a : b of quantised operands", normalise_where);
  return op;
}

}  // namespace gcompile::ir
