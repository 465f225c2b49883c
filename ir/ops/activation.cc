// Activations with attributes: rows of a name, an expression over x, and attribute defaults.

#include <fmt/format.h>

#include <numbers>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// Writes scalar expressions over x without naming the dag at every step.
struct Builder {
  Dag& dag;
  int x;
  const Attributes& attributes;

  int number(double value) const { return dag.constant(dag.type(x), value); }
  int attribute(const char* name) const { return number(static_cast<double>(attributes.float_of(name))); }
  int add(int a, int b) const { return dag.apply(ScalarOp::kAdd, {a, b}); }
  int sub(int a, int b) const { return dag.apply(ScalarOp::kSub, {a, b}); }
  int mul(int a, int b) const { return dag.apply(ScalarOp::kMul, {a, b}); }
  int div(int a, int b) const { return dag.apply(ScalarOp::kDiv, {a, b}); }
  int less(int a, int b) const { return dag.apply(ScalarOp::kLess, {a, b}); }
  int select(int condition, int a, int b) const { return dag.apply(ScalarOp::kSelect, {condition, a, b}); }
  int unary(ScalarOp op, int a) const { return dag.apply(op, {a}); }
  int clip(int a, double low, double high) const {
    return dag.apply(ScalarOp::kMin, {dag.apply(ScalarOp::kMax, {a, number(low)}), number(high)});
  }
};

int elu(const Builder& b) {
  const int grown = b.unary(ScalarOp::kExpm1, b.x);
  const int negative = b.mul(b.attribute("alpha"), grown);
  return b.select(b.less(b.x, b.number(0)), negative, b.x);
}

int selu(const Builder& b) {
  const int grown = b.unary(ScalarOp::kExpm1, b.x);
  const int negative = b.mul(b.attribute("alpha"), grown);
  const int chosen = b.select(b.less(b.x, b.number(0)), negative, b.x);
  return b.mul(b.attribute("gamma"), chosen);
}

int celu(const Builder& b) {
  const int alpha = b.attribute("alpha");
  const int negative = b.mul(alpha, b.unary(ScalarOp::kExpm1, b.div(b.x, alpha)));
  return b.select(b.less(b.x, b.number(0)), negative, b.x);
}

int leaky_relu(const Builder& b) {
  const int negative = b.mul(b.attribute("alpha"), b.x);
  return b.select(b.less(b.x, b.number(0)), negative, b.x);
}

int thresholded_relu(const Builder& b) {
  const int zero = b.number(0);
  return b.select(b.less(b.attribute("alpha"), b.x), b.x, zero);
}

int hard_sigmoid(const Builder& b) {
  const int beta = b.attribute("beta");
  return b.clip(b.add(b.mul(b.attribute("alpha"), b.x), beta), 0, 1);
}

int shrink(const Builder& b) {
  // Integers shrink in float32, as the attributes are floats.
  const int zero = b.number(0), bias = b.attribute("bias");
  const int lowered = b.sub(b.x, bias), lambda = b.attribute("lambd");
  const int high = b.select(b.less(lambda, b.x), lowered, zero), raised = b.add(b.x, bias);
  return b.select(b.less(b.x, b.unary(ScalarOp::kNeg, lambda)), raised, high);
}

int swish(const Builder& b) {
  return b.mul(b.x, b.unary(ScalarOp::kSigmoid, b.mul(b.attribute("alpha"), b.x)));
}

int gelu(const Builder& b) {
  int gate = 0;
  if (b.attributes.string_of("approximate") == "tanh") {
    const int cube = b.mul(b.x, b.mul(b.x, b.x));
    const int inner = b.add(b.x, b.mul(b.number(0.044715), cube));
    gate = b.unary(ScalarOp::kTanh, b.mul(b.number(std::numbers::sqrt2 * std::numbers::inv_sqrtpi), inner));
  } else {
    gate = b.unary(ScalarOp::kErf, b.mul(b.x, b.number(std::numbers::sqrt2 / 2)));
  }
  const int weight = b.add(b.number(1), gate);
  return b.mul(b.mul(b.number(0.5), b.x), weight);
}

void infer_float(InferContext& context) {
  require_float(context, 0);
  context.set_result(0, context.operand(0));
}

void infer_gelu(InferContext& context) {
  const std::string& mode = context.attributes().string_of("approximate");
  if (mode != "none" && mode != "tanh") operator_error("attribute 'approximate' must be 'none' or 'tanh'");
  infer_float(context);
}

void infer_numeric(InferContext& context) {
  require_computable(context, 0);
  context.set_result(0, context.operand(0));
}

/// Before opset 6 the defaults had four decimals.
void normalise_selu(RewriteContext& context) {
  if (context.opset() >= 6) return;
  for (const auto& [name, value] : {std::pair("alpha", 1.6732f), std::pair("gamma", 1.0507f)}) {
    if (!context.attributes().has(name)) context.mutable_attributes().set(name, value);
  }
}

template <int (*kBody)(const Builder&)>
Form lower(const LowerContext& context) {
  return elementwise(context, [&](Dag& dag, const std::vector<int>& operands) {
    const int x =
        is_float(dag.type(operands[0])) ? operands[0] : dag.cast(operands[0], ElementType::kFloat32);
    return kBody({dag, x, context.attributes()});
  });
}

template <int (*kBody)(const Builder&)>
Operator record(std::string_view name, std::vector<int> versions, Accuracy accuracy, std::string_view summary,
                std::vector<std::pair<std::string_view, float>> attributes) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  for (const auto& [attribute, value] : attributes) {
    op.attributes.push_back({attribute, AttributeKind::kFloat, value});
  }
  op.accuracy = accuracy;
  op.summary = summary;
  op.infer = infer_float;
  op.lower = lower<kBody>;
  return op;
}

// SwiGLU: a gate and what it lets through.

void infer_gated(InferContext& context) {
  require_float(context, 0);
  const ElementType type = same_type(context);
  if (context.shape(1) != context.shape(0)) {
    operator_error(fmt::format("A and B have the shapes {} and {}", to_string(context.shape(0)),
                               to_string(context.shape(1))));
  }
  context.set_result(0, type, context.shape(0));
}

bool decompose_gated(RewriteContext& context) {
  const ValueId gate = context.emit("Swish", {context.operand_id(0)}, context.attributes());
  context.replace_result(0, context.emit("Mul", {gate, context.operand_id(1)}));
  return true;
}

}  // namespace

const Operator& operator_Elu() {
  static const Operator op =
      record<elu>("Elu", {1, 6, 22}, Accuracy::kFunction, "x < 0 ? alpha * (e^x - 1) : x", {{"alpha", 1.0f}});
  return op;
}

const Operator& operator_Selu() {
  static const Operator op = [] {
    Operator o =
        record<selu>("Selu", {1, 6, 22}, Accuracy::kFunction, "gamma * (x < 0 ? alpha * (e^x - 1) : x)",
                     {{"alpha", 1.67326319217681884765625f}, {"gamma", 1.05070102214813232421875f}});
    o.normalise = normalise_selu;
    return o;
  }();
  return op;
}

const Operator& operator_Celu() {
  static const Operator op = record<celu>("Celu", {12, 28}, Accuracy::kFunction,
                                          "x < 0 ? alpha * (e^(x / alpha) - 1) : x", {{"alpha", 1.0f}});
  return op;
}

const Operator& operator_LeakyRelu() {
  static const Operator op = record<leaky_relu>("LeakyRelu", {1, 6, 16}, Accuracy::kRounding,
                                                "x < 0 ? alpha * x : x", {{"alpha", 0.01f}});
  return op;
}

const Operator& operator_ThresholdedRelu() {
  static const Operator op = [] {
    Operator o = record<thresholded_relu>("ThresholdedRelu", {10, 22}, Accuracy::kExact, "x > alpha ? x : 0",
                                          {{"alpha", 1.0f}});
    o.traits.decides = true;
    return o;
  }();
  return op;
}

const Operator& operator_HardSigmoid() {
  static const Operator op =
      record<hard_sigmoid>("HardSigmoid", {1, 6, 22}, Accuracy::kRounding, "clip(alpha * x + beta, 0, 1)",
                           {{"alpha", 0.2f}, {"beta", 0.5f}});
  return op;
}

const Operator& operator_Shrink() {
  static const Operator op = [] {
    Operator o =
        record<shrink>("Shrink", {9}, Accuracy::kRounding, "x < -lambd ? x + bias : x > lambd ? x - bias : 0",
                       {{"bias", 0.0f}, {"lambd", 0.5f}});
    o.traits.decides = true;
    o.infer = infer_numeric;
    return o;
  }();
  return op;
}

const Operator& operator_Swish() {
  static const Operator op =
      record<swish>("Swish", {24}, Accuracy::kFunction, "x * sigmoid(alpha * x)", {{"alpha", 1.0f}});
  return op;
}

const Operator& operator_SwiGLU() {
  static const Operator op = {
      .name = "SwiGLU",
      .versions = {28},
      .operands = {2, 2},
      .attributes = {{"alpha", AttributeKind::kFloat, 1.0f}},
      .accuracy = Accuracy::kFunction,
      .summary = "a * sigmoid(alpha * a) * b",
      .infer = infer_gated,
      .decompose = decompose_gated,
  };
  return op;
}

const Operator& operator_Gelu() {
  static const Operator op = [] {
    Operator o = record<gelu>("Gelu", {20}, Accuracy::kFunction, "x * (1 + erf(x / sqrt(2))) / 2", {});
    o.attributes = {{"approximate", AttributeKind::kString, std::string("none")}};
    o.infer = infer_gelu;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
