// QuantizeLinear, DequantizeLinear, DynamicQuantizeLinear, the internal Requantize, and ONNX Runtime's
// QLinearAdd and QLinearMul. All of them round where float32 arithmetic rounds and never multiply by a
// reciprocal (DESIGN law 7).

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/narrow.h"
#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

constexpr ElementType kReal = ElementType::kFloat32;

/// One float32 operation with its rounding.
int step(Dag& dag, ScalarOp op, int a, int b) { return dag.round(dag.apply(op, {a, b})); }

/// saturate(rint(x) + zero), zero < 0: none. x is a rounded float32.
int to_integer(Dag& dag, int x, int zero, ElementType type) {
  int rounded = dag.apply(ScalarOp::kRoundHalfEven, {x});
  if (zero >= 0) rounded = step(dag, ScalarOp::kAdd, rounded, dag.cast(zero, kReal));
  return dag.cast(rounded, type);
}

/// x - zero, exact in int32 for integers; storage-only floats go through float32.
int centred(Dag& dag, int x, int zero) {
  const ElementType type = is_float(dag.type(x)) ? kReal : ElementType::kInt32;
  int difference = dag.cast(x, type);
  if (zero >= 0) difference = dag.apply(ScalarOp::kSub, {difference, dag.cast(zero, type)});
  return dag.cast(difference, kReal);
}

bool is_scalar(const Shape& shape) { return shape.empty() || shape == Shape{1}; }

/// Axis of a per-axis or blocked scale; -1 for one scale.
int scale_axis(const NodeView& node) {
  if (is_scalar(node.shape(1))) return -1;
  return normalise_axis(node.attributes().int_of("axis"), node.operand(0).rank());
}

void check_scale(const NodeView& node) {
  const Shape& x = node.shape(0);
  const Shape& scale = node.shape(1);
  const ElementType type = node.element(1);
  if (!is_float(type) || (!is_computable(type) && type != ElementType::kFloat8E8M0)) {
    operator_error(fmt::format("the scale must be floating point, not {}", name_of(type)));
  }
  if (node.has_operand(2) && node.shape(2) != scale && !(is_scalar(node.shape(2)) && is_scalar(scale))) {
    operator_error("scale and zero point must have the same shape");
  }
  const int axis = scale_axis(node);
  if (axis < 0) return;
  const auto at = static_cast<std::size_t>(axis);
  const std::int64_t block = node.attributes().int_of("block_size");
  if (block == 0) {
    if (scale != Shape{x[at]}) {
      operator_error(fmt::format("the scale {} must have one element per index of axis {}, {}",
                                 to_string(scale), axis, x[at]));
    }
    return;
  }
  Shape expected = x;
  if (block > 0) expected[at] = ceil_div(x[at], block);
  if (block < 0 || scale != expected) {
    operator_error(fmt::format("the scale {} does not fit blocks of {} along axis {} of {}", to_string(scale),
                               block, axis, to_string(x)));
  }
}

/// Element of the scale (1) or zero point (2) for the element at the form's axes.
int load_parameter(LoopForm& form, const NodeView& node, int i) {
  std::vector<Index> index(node.shape(i).size(), Index(0));
  const int axis = scale_axis(node);
  const std::int64_t block = axis < 0 ? 0 : node.attributes().int_of("block_size");
  if (axis >= 0 && block == 0) {
    index[0] = Index::axis(axis);
  } else if (axis >= 0) {
    index = form.identity();
    index[axis] = floor_div(Index::axis(axis), block, form.ranges());
  }
  return form.dag.load(i, node.element(i), std::move(index));
}

// QuantizeLinear --------------------------------------------------------------------------------------------

void infer_quantize(InferContext& context) {
  require_computable(context, 0);
  check_scale(context);
  ElementType type = ElementType::kUInt8;
  if (context.has_operand(2)) {
    type = context.element(2);
  } else if (context.attributes().int_of("output_dtype") != 0) {
    type = type_of(context.attributes(), "output_dtype");
  }
  const bool is_quantised = is_integer(type) || (is_small_float(type) && type != ElementType::kFloat8E8M0);
  if (!is_quantised) operator_error(fmt::format("quantising to {} is not supported", name_of(type)));
  context.set_result(0, type, context.shape(0));
}

/// quotient + zero within the range of a type, zero < 0: none. Of integers it is rounded before.
int quantised(Dag& dag, int quotient, int zero, ElementType to, const Narrowing& narrowing) {
  if (is_small_float(to)) {
    if (zero >= 0) quotient = step(dag, ScalarOp::kAdd, quotient, dag.cast(zero, kReal));
    return narrowed(dag, quotient, to, narrowing);
  }
  const ElementType byte = byte_type(to);
  const int whole = to_integer(dag, quotient, zero, byte);
  if (byte == to) return whole;
  const int low = dag.constant(Scalar::of_integer(byte, integer_lowest(to)));
  const int high = dag.constant(Scalar::of_integer(byte, static_cast<std::int64_t>(integer_highest(to))));
  return dag.apply(ScalarOp::kMin, {dag.apply(ScalarOp::kMax, {whole, low}), high});
}

Form lower_quantize_to(const LowerContext& context, ElementType to) {
  const TensorType& result = context.result(0);
  LoopForm form = LoopForm::over(result.shape);
  const int scale = load_parameter(form, context, 1);
  const int zero = context.has_operand(2) ? load_parameter(form, context, 2) : -1;
  Dag& dag = form.dag;
  const int x = dag.cast(dag.load(0, context.element(0), form.identity()), kReal);
  const int quotient = step(dag, ScalarOp::kDiv, x, dag.cast(scale, kReal));
  const int y = quantised(dag, quotient, zero, to, Narrowing::of(context.attributes()));
  form.set_root(dag.cast(y, result.element));
  return form;
}

Form lower_quantize(const LowerContext& context) {
  return lower_quantize_to(context, context.result(0).element);
}

// NarrowQuantizeLinear --------------------------------------------------------------------------------------

void infer_narrow_quantize(InferContext& context) {
  check_scale(context);
  context.set_result(0, byte_type(type_of(context.attributes(), "output_dtype")), context.shape(0));
}

Form lower_narrow_quantize(const LowerContext& context) {
  return lower_quantize_to(context, type_of(context.attributes(), "output_dtype"));
}

// DequantizeLinear ------------------------------------------------------------------------------------------

void infer_dequantize(InferContext& context) {
  check_scale(context);
  if (context.has_operand(2) && context.element(2) != context.element(0)) {
    operator_error("the zero point must have the type of input 0");
  }
  const bool given = context.attributes().int_of("output_dtype") != 0;
  if (!given) require_float(context, 1);
  const ElementType type =
      given ? computable_type_of(context.attributes(), "output_dtype") : context.element(1);
  context.set_result(0, type, context.shape(0));
}

Form lower_dequantize(const LowerContext& context) {
  const TensorType& result = context.result(0);
  LoopForm form = LoopForm::over(result.shape);
  const int scale = load_parameter(form, context, 1);
  const int zero = context.has_operand(2) ? load_parameter(form, context, 2) : -1;
  Dag& dag = form.dag;
  const int difference = centred(dag, dag.load(0, context.element(0), form.identity()), zero);
  const int y = dag.apply(ScalarOp::kMul, {difference, dag.cast(scale, kReal)});
  form.set_root(dag.cast(y, result.element));
  return form;
}

// DynamicQuantizeLinear -------------------------------------------------------------------------------------

void infer_dynamic(InferContext& context) {
  if (context.element(0) != kReal) operator_error("input 0 must be float32");
  context.set_result(0, ElementType::kUInt8, context.shape(0));
  context.set_result(1, kReal, {});
  context.set_result(2, ElementType::kUInt8, {});
}

/// What the operator's definition says, but where all elements are 0: there it says 0 / 0, and the scale is 1
/// as in ONNX Runtime.
bool decompose_dynamic(RewriteContext& context) {
  const auto constant = [&](double value) { return context.constant_scalar(kReal, value); };
  const ValueId x = context.operand_id(0);
  Attributes whole;
  whole.set("keepdims", std::int64_t{0});
  const ValueId low = context.emit("Min", {context.emit("ReduceMin", {x}, whole), constant(0)});
  const ValueId high = context.emit("Max", {context.emit("ReduceMax", {x}, whole), constant(0)});
  const ValueId range = context.emit("Sub", {high, low});
  const ValueId step = context.emit("Div", {range, constant(255)});
  const ValueId scale =
      context.emit("Where", {context.emit("Equal", {range, constant(0)}), constant(1), step});
  const ValueId below = context.emit("Neg", {context.emit("Div", {low, scale})});
  const ValueId clipped = context.emit("Clip", {below, constant(0), constant(255)});
  const ValueId zero = emit_cast(context, context.emit("Round", {clipped}), ElementType::kUInt8);
  context.replace_result(0, context.emit("QuantizeLinear", {x, scale, zero}));
  context.replace_result(1, scale);
  context.replace_result(2, zero);
  return true;
}

// Requantize ------------------------------------------------------------------------------------------------

/// Multiplier (1) or zero point (2): a scalar, one element per index of `axis`, or aligned from the right.
std::vector<Index> requantize_index(const NodeView& node, int i) {
  const Shape& shape = node.shape(i);
  const Shape& result = node.shape(0);
  if (is_scalar(shape)) return std::vector<Index>(shape.size(), Index(0));
  if (shape.size() == 1) {
    const int axis = normalise_axis(node.attributes().int_of("axis"), static_cast<int>(result.size()));
    if (shape[0] != result[axis]) {
      operator_error(fmt::format("input {} has {} elements for axis {}", i, shape[0], axis));
    }
    return {Index::axis(axis)};
  }
  if (broadcast(result, shape) != result) operator_error(fmt::format("input {} does not broadcast", i));
  const std::size_t lead = result.size() - shape.size();
  std::vector<Index> index;
  for (std::size_t k = 0; k < shape.size(); ++k) {
    index.push_back(shape[k] == 1 ? Index(0) : Index::axis(static_cast<int>(k + lead)));
  }
  return index;
}

void infer_requantize(InferContext& context) {
  if (context.element(0) != ElementType::kInt32) operator_error("the accumulator must be int32");
  if (context.element(1) != kReal) operator_error("the multiplier must be float32");
  const ElementType type = context.element(2);
  if (!is_computable(type) || !is_integer(type)) operator_error("the zero point must be an integer");
  requantize_index(context, 1);
  requantize_index(context, 2);
  context.set_result(0, type, context.shape(0));
}

Form lower_requantize(const LowerContext& context) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  Dag& dag = form.dag;
  const int sum = dag.cast(dag.load(0, ElementType::kInt32, form.identity()), kReal);
  const int multiplier = dag.load(1, kReal, requantize_index(context, 1));
  const int zero = dag.load(2, context.element(2), requantize_index(context, 2));
  const int scaled = step(dag, ScalarOp::kMul, sum, multiplier);
  form.set_root(to_integer(dag, scaled, zero, context.result(0).element));
  return form;
}

// QLinearAdd, QLinearMul (com.microsoft) --------------------------------------------------------------------
// Operands: A, A_scale, A_zero_point, B, B_scale, B_zero_point, C_scale, C_zero_point.

void infer_qlinear(InferContext& context) {
  const ElementType type = context.element(0);
  if (type != ElementType::kInt8 && type != ElementType::kUInt8) operator_error("A must be int8 or uint8");
  for (const int i : {0, 3}) {
    if (context.element(i) != type) operator_error("A and B must have the same type");
  }
  for (const int i : {1, 2, 4, 5, 6, 7}) {
    if (!context.has_operand(i)) continue;
    require_scalar(context, i, "a scale or zero point");
    const bool scale = i == 1 || i == 4 || i == 6;
    if (context.element(i) != (scale ? kReal : type))
      operator_error(fmt::format("input {} has the wrong type", i));
  }
  context.set_result(0, type, broadcast(context.shape(0), context.shape(3)));
}

template <ScalarOp kOp>
Form lower_qlinear(const LowerContext& context) {
  const TensorType& result = context.result(0);
  LoopForm form = LoopForm::over(result.shape);
  Dag& dag = form.dag;
  const auto zero_point = [&](int i) { return context.has_operand(i) ? load_scalar(dag, context, i) : -1; };
  const auto dequantised = [&](int i) {
    const int zero = zero_point(i + 2);
    const int difference = centred(dag, load_broadcast(dag, context, i, result.shape), zero);
    return step(dag, ScalarOp::kMul, difference, load_scalar(dag, context, i + 1));
  };
  const int b = dequantised(3), a = dequantised(0);
  const int combined = step(dag, kOp, a, b);
  const int quotient = step(dag, ScalarOp::kDiv, combined, load_scalar(dag, context, 6));
  form.set_root(to_integer(dag, quotient, zero_point(7), result.element));
  return form;
}

Operator record(std::string_view domain, std::string_view name, std::vector<int> versions, Arity operands,
                std::string_view summary, void (*infer)(InferContext&), Form (*lower)(const LowerContext&)) {
  Operator op;
  op.domain = domain;
  op.name = name;
  op.versions = std::move(versions);
  op.operands = operands;
  op.accuracy = Accuracy::kRounding;
  op.summary = summary;
  op.traits.quantised = true;
  op.infer = infer;
  op.lower = lower;
  return op;
}

// QuantizeLinear, DequantizeLinear (com.microsoft) ---------------------------------------------------------

template <const Operator& (*op)()>
void normalise_as(RewriteContext& context) {
  const std::vector<ValueId> operands = context.node().operands;
  context.replace_with(op().name, operands, context.attributes());
}

/// ONNX had no integers of 4 and 16 bits before opset 21; there they are since version 1.
Operator as_in_onnx(const Operator& onnx, void (*normalise)(RewriteContext&)) {
  Operator o = onnx;
  o.domain = "com.microsoft";
  o.versions = {1};
  o.normalise = normalise;
  return o;
}

}  // namespace

const Operator& operator_QuantizeLinear() {
  static const Operator op = [] {
    Operator o = record("", "QuantizeLinear", {10, 13, 19, 21, 23, 24, 25, 28}, {2, 3},
                        "saturate(round(x / scale) + zero point)", infer_quantize, lower_quantize);
    // precision: the quotient is float32 whatever the scale's type.
    o.attributes = {{"axis", AttributeKind::kInt, std::int64_t{1}},
                    {"block_size", AttributeKind::kInt, std::int64_t{0}},
                    {"output_dtype", AttributeKind::kInt, std::int64_t{0}},
                    {"precision", AttributeKind::kInt, std::int64_t{0}},
                    {"saturate", AttributeKind::kInt, std::int64_t{1}}};
    return o;
  }();
  return op;
}

const Operator& operator_NarrowQuantizeLinear() {
  static const Operator op = [] {
    Operator o = operator_QuantizeLinear();
    o.domain = "gcompile";
    o.name = "NarrowQuantizeLinear";
    o.versions = {1};
    o.summary = "QuantizeLinear to a type of less than 8 bits, a byte each";
    o.infer = infer_narrow_quantize;
    o.lower = lower_narrow_quantize;
    return o;
  }();
  return op;
}

const Operator& operator_DequantizeLinear() {
  static const Operator op = [] {
    Operator o = record("", "DequantizeLinear", {10, 13, 19, 21, 23, 24, 25, 28}, {2, 3},
                        "(x - zero point) * scale", infer_dequantize, lower_dequantize);
    o.traits.quantised = false;
    o.traits.unpacks = true;
    o.attributes = {{"axis", AttributeKind::kInt, std::int64_t{1}},
                    {"block_size", AttributeKind::kInt, std::int64_t{0}},
                    {"output_dtype", AttributeKind::kInt, std::int64_t{0}}};
    return o;
  }();
  return op;
}

const Operator& operator_DynamicQuantizeLinear() {
  static const Operator op = [] {
    Operator o = record("", "DynamicQuantizeLinear", {11}, {1, 1},
                        "QuantizeLinear to uint8, with scale and zero point of the input's own range",
                        infer_dynamic, nullptr);
    o.results = {3, 3};
    o.decompose = decompose_dynamic;
    return o;
  }();
  return op;
}

const Operator& operator_Requantize() {
  static const Operator op = [] {
    Operator o = record("gcompile", "Requantize", {1}, {3, 3},
                        "saturate(round(float(accumulator) * multiplier) + zero point)", infer_requantize,
                        lower_requantize);
    o.attributes = {{"axis", AttributeKind::kInt, std::int64_t{-1}}};
    return o;
  }();
  return op;
}

const Operator& operator_MicrosoftDequantizeLinear() {
  static const Operator op =
      as_in_onnx(operator_DequantizeLinear(), normalise_as<&operator_DequantizeLinear>);
  return op;
}

const Operator& operator_MicrosoftQuantizeLinear() {
  static const Operator op = as_in_onnx(operator_QuantizeLinear(), normalise_as<&operator_QuantizeLinear>);
  return op;
}

const Operator& operator_QLinearAdd() {
  static const Operator op = record("com.microsoft", "QLinearAdd", {1}, {7, 8}, "quantised a + b",
                                    infer_qlinear, lower_qlinear<ScalarOp::kAdd>);
  return op;
}

const Operator& operator_QLinearMul() {
  static const Operator op = record("com.microsoft", "QLinearMul", {1}, {7, 8}, "quantised a * b",
                                    infer_qlinear, lower_qlinear<ScalarOp::kMul>);
  return op;
}

}  // namespace gcompile::ir
