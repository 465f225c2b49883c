// QLinearConv, QLinearMatMul and ONNX Runtime's QGemm: an exact integer product, the bias in int32, and one
// requantisation with m = f32(f32(sx * sw) / sy) (DESIGN law 7).

#include <fmt/format.h>

#include "ir/ops/convolution.h"
#include "ir/ops/product_shape.h"
#include "ir/ops/reshaped.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// Value of the node that made `value`, as a constant, when its operands are known.
ValueId folded(RewriteContext& context, ValueId value) {
  Graph& graph = context.mutable_graph();
  const NodeId producer = graph.value(value).producer;
  if (!producer.valid()) return value;
  std::vector<const Tensor*> operands;
  for (const ValueId operand : graph.node(producer).operands) {
    operands.push_back(graph.constant(operand));
    if (!operands.back()) return value;
  }
  const ValueId constant =
      graph.add_constant(evaluate_node(graph, producer, operands).at(0), name_as_constant(graph, value));
  graph.erase_node(producer);
  return constant;
}

ValueId float32_scale(RewriteContext& context, ValueId scale, const Shape& shape) {
  const bool same_type = context.type(scale).element == ElementType::kFloat32;
  if (!same_type) scale = folded(context, emit_cast(context, scale, ElementType::kFloat32));
  if (context.type(scale).shape != shape) scale = folded(context, emit_reshape(context, scale, shape));
  return scale;
}

ValueId multiplier_of(RewriteContext& context, ValueId x, ValueId w, ValueId y) {
  const ValueId product = folded(context, context.emit("Mul", {x, w}));
  return folded(context, context.emit("Div", {product, y}));
}

bool is_scalar(const Shape& shape) { return shape.empty() || shape == Shape{1}; }

void require_scales(const NodeView& node) {
  for (const int i : {1, 4, 6}) require_float(node, i);
  for (const int i : {2, 5, 7}) {
    if (!is_integer(node.element(i)))
      operator_error(fmt::format("input {}, a zero point, must be an integer", i));
  }
  if (node.element(2) != node.element(0) || node.element(5) != node.element(3)) {
    operator_error("a zero point must have the type of its tensor");
  }
}

// QLinearConv: x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias --------------------------------

void normalise_conv(RewriteContext& context) { normalise_window_of(context, 3, 2); }

void infer_conv(InferContext& context) {
  require_scales(context);
  const Shape& x = context.shape(0);
  const Shape& w = context.shape(3);
  const Window window = window_of(context.attributes());
  const std::int64_t group = context.attributes().int_of("group");
  if (w.size() != x.size()) operator_error("x and w must have the same rank");
  if (group < 1 || w[0] % group != 0 || w[1] * group != x[1]) {
    operator_error("the weight does not fit the input channels",
                   "the weight must be (M, C/group, kernel...) and M a multiple of group");
  }
  for (const int i : {1, 2, 6, 7}) require_scalar(context, i, "scale and zero point of x and y");
  for (const int i : {4, 5}) {
    if (!is_scalar(context.shape(i)) && context.shape(i) != Shape{w[0]}) {
      operator_error("scale and zero point of w must be scalars or (M)");
    }
  }
  if (context.has_operand(8) &&
      (context.shape(8) != Shape{w[0]} || context.element(8) != ElementType::kInt32)) {
    operator_error("the bias must be (M) of int32");
  }
  Shape y = {x[0], w[0]};
  for (int i = 0; i < window.spatial(); ++i) {
    y.push_back(window_count(window, i, x[i + 2], false));
  }
  context.set_result(0, context.element(7), std::move(y));
}

bool decompose_conv(RewriteContext& context) {
  const std::vector<ValueId> operands = context.node().operands;
  const Shape weights = context.shape(3);
  const Shape scales = is_scalar(context.shape(4)) ? Shape{} : Shape{weights[0]};
  ValueId sum =
      context.emit("ConvInteger", {operands[0], operands[3], operands[2], operands[5]}, context.attributes());
  if (context.has_operand(8)) {
    Shape channels(weights.size() - 1, 1);
    channels[0] = weights[0];
    const bool known = context.constant(8) != nullptr;
    const ValueId reshaped = emit_reshape(context, operands[8], channels);
    sum = context.emit("Add", {sum, known ? folded(context, reshaped) : reshaped});
  }
  const ValueId y_scale = float32_scale(context, operands[6], {}),
                w_scale = float32_scale(context, operands[4], scales),
                x_scale = float32_scale(context, operands[1], {});
  const ValueId multiplier = multiplier_of(context, x_scale, w_scale, y_scale);
  Attributes attributes;
  attributes.set("axis", std::int64_t{1});
  context.replace_result(0,
                         context.emit("Requantize", {sum, multiplier, operands[7]}, std::move(attributes)));
  return true;
}

// QLinearMatMul: a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
// -------------------------------------

/// A scale or zero point aligned from the right to the product: one, (rows) as (rows, 1), (columns), or with
/// all axes of its tensor.
Shape aligned(const Shape& parameter, const Shape& tensor, bool rows) {
  if (is_scalar(parameter)) return {};
  const std::int64_t lines = tensor[tensor.size() - (rows ? 2 : 1)];
  if (parameter == Shape{lines}) return rows ? Shape{lines, 1} : Shape{lines};
  Shape full = tensor;
  full[full.size() - (rows ? 1 : 2)] = 1;
  if (parameter != full) {
    operator_error(fmt::format("a scale or zero point of shape {} does not fit {}", to_string(parameter),
                               to_string(tensor)));
  }
  return full;
}

/// Rank 1 operands become matrices; the result loses the added axis again.
void normalise_matmul(RewriteContext& context) {
  std::vector<ValueId> operands = context.node().operands;
  Shape a = context.shape(0), b = context.shape(3);
  if (a.empty() || b.empty()) operator_error("scalars cannot be multiplied as matrices");
  const bool a_vector = a.size() == 1, b_vector = b.size() == 1;
  if (!a_vector && !b_vector) return;
  if (a_vector) operands[0] = emit_reshape(context, operands[0], a = {1, a[0]});
  if (b_vector) operands[3] = emit_reshape(context, operands[3], b = {b[0], 1});
  const ValueId product = context.emit("QLinearMatMul", operands);
  Shape out = context.type(product).shape;
  if (b_vector) out.pop_back();
  if (a_vector) out.erase(out.end() - (b_vector ? 1 : 2));
  become_reshape(context, product, out);
}

void infer_matmul(InferContext& context) {
  require_scales(context);
  const Shape out = product_shape(context.shape(0), context.shape(3));
  for (const int i : {1, 2}) aligned(context.shape(i), context.shape(0), true);
  for (const int i : {4, 5}) aligned(context.shape(i), context.shape(3), false);
  for (const int i : {6, 7}) aligned(context.shape(i), out, true);
  context.set_result(0, context.element(7), out);
}

bool decompose_matmul(RewriteContext& context) {
  const std::vector<ValueId> operands = context.node().operands;
  const Shape a = context.shape(0), b = context.shape(3), y = context.result(0).shape;
  const ValueId sum = context.emit("MatMulInteger", {operands[0], operands[3], operands[2], operands[5]});
  const auto scale = [&](int i, const Shape& tensor, bool rows) {
    return float32_scale(context, context.operand_id(i), aligned(context.shape(i), tensor, rows));
  };
  const ValueId y_scale = scale(6, y, true), b_scale = scale(4, b, false), a_scale = scale(1, a, true);
  const ValueId multiplier = multiplier_of(context, a_scale, b_scale, y_scale);
  const ValueId zero = emit_reshape(context, operands[7], aligned(context.shape(7), y, true));
  const ValueId known = context.constant(7) ? folded(context, zero) : zero;
  context.replace_result(0, context.emit("Requantize", {sum, multiplier, known}));
  return true;
}

// QGemm: A, a_scale, a_zero, B, b_scale, b_zero, C, y_scale, y_zero -----------------------------------------
// alpha scales the sum of A' B' and C, which are integers; the result is float32 where there is no y_scale.

std::vector<std::int64_t> order_of(const NodeView& node, const char* flag) {
  return node.attributes().flag(flag) ? std::vector<std::int64_t>{1, 0} : std::vector<std::int64_t>{0, 1};
}

void infer_gemm(InferContext& context) {
  for (const int i : {0, 3}) {
    if (!is_integer(context.element(i))) operator_error(fmt::format("input {} must be integers", i));
    if (context.shape(i).size() != 2) operator_error(fmt::format("input {} must be a matrix", i));
    if (context.has_operand(i + 2) && context.element(i + 2) != context.element(i))
      operator_error("a zero point must have the type of its tensor");
  }
  for (const int i : {1, 4, 7}) {
    if (context.has_operand(i)) require_float(context, i);
  }
  for (const int i : {1, 2, 7, 8}) {
    if (context.has_operand(i)) require_scalar(context, i, "scale and zero point of A and Y");
  }
  const auto lines = [&](int i, const char* flag, std::size_t axis) {
    return context.shape(i)[axis ^ static_cast<std::size_t>(context.attributes().flag(flag))];
  };
  const Dim columns = lines(3, "transB", 1);
  const Shape out =
      product_shape({lines(0, "transA", 0), lines(0, "transA", 1)}, {lines(3, "transB", 0), columns});
  for (const int i : {4, 5}) {
    if (context.has_operand(i) && !is_scalar(context.shape(i)) && context.shape(i) != Shape{columns})
      operator_error("scale and zero point of B must be scalars or (N)");
  }
  if (context.has_operand(6) &&
      (context.element(6) != ElementType::kInt32 || broadcast(context.shape(6), out) != out)) {
    operator_error("C must be of int32 and fit (M, N)");
  }
  if (context.has_operand(8) && !context.has_operand(7)) operator_error("the zero point of Y needs a scale");
  if (context.has_operand(7) && !context.has_operand(8)) operator_error("the scale of Y needs a zero point");
  context.set_result(0, context.has_operand(8) ? context.element(8) : ElementType::kFloat32, out);
}

bool decompose_gemm(RewriteContext& context) {
  const Shape scales = is_scalar(context.shape(4)) ? Shape{} : context.shape(4);
  const auto optional = [&](int i) { return context.operand_id(i); };
  const ValueId a = emit_transpose(context, optional(0), order_of(context, "transA")),
                b = emit_transpose(context, optional(3), order_of(context, "transB"));
  const ValueId columns = context.constant(3) ? folded(context, b) : b;
  ValueId sum = context.emit("MatMulInteger", {a, columns, optional(2), optional(5)});
  if (context.has_operand(6)) sum = context.emit("Add", {sum, optional(6)});
  const ValueId b_scale = float32_scale(context, optional(4), scales),
                a_scale = float32_scale(context, optional(1), {});
  const double alpha = context.attributes().float_of("alpha");
  const ValueId product =
      folded(context, context.emit("Mul", {folded(context, emit_scale(context, a_scale, alpha)), b_scale}));
  if (!context.has_operand(7)) {
    context.replace_result(0, context.emit("Mul", {emit_cast(context, sum, ElementType::kFloat32), product}));
    return true;
  }
  const ValueId multiplier =
      folded(context, context.emit("Div", {product, float32_scale(context, optional(7), {})}));
  context.replace_result(0, context.emit("Requantize", {sum, multiplier, optional(8)}));
  return true;
}

}  // namespace

const Operator& operator_QGemm() {
  static const Operator op = {
      .name = "QGemm",
      .domain = "com.microsoft",
      .versions = {1},
      .operands = {6, 9},
      .attributes = {{"alpha", AttributeKind::kFloat, 1.0f},
                     {"transA", AttributeKind::kInt, std::int64_t{0}},
                     {"transB", AttributeKind::kInt, std::int64_t{0}}},
      .accuracy = Accuracy::kRounding,
      .summary = "quantised alpha * (A * B + C)",
      .traits = {.quantised = true},
      .infer = infer_gemm,
      .decompose = decompose_gemm,
  };
  return op;
}

const Operator& operator_QLinearConv() {
  static const Operator op = [] {
    Operator o;
    o.name = "QLinearConv";
    o.versions = {10};
    o.operands = {8, 9};
    o.attributes = window_attributes();
    o.attributes.push_back({"group", AttributeKind::kInt, std::int64_t{1}});
    o.accuracy = Accuracy::kRounding;
    o.summary = "quantised convolution";
    o.traits.quantised = true;
    o.normalise = normalise_conv;
    o.infer = infer_conv;
    o.decompose = decompose_conv;
    return o;
  }();
  return op;
}

const Operator& operator_QLinearMatMul() {
  static const Operator op = {
      .name = "QLinearMatMul",
      .versions = {10, 21},
      .operands = {8, 8},
      .accuracy = Accuracy::kRounding,
      .summary = "quantised matrix product",
      .traits = {.quantised = true},
      .normalise = normalise_matmul,
      .infer = infer_matmul,
      .decompose = decompose_matmul,
  };
  return op;
}

}  // namespace gcompile::ir
