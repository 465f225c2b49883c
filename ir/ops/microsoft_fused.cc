// com.microsoft: FusedConv, FusedGemm and FusedMatMul, taken apart again.

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/convolution.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

/// Applies the activation that an attribute names, "" for none, with its parameters in ONNX order.
ValueId activated(RewriteContext& context, ValueId x, const std::string& name,
                  const std::vector<float>& parameters) {
  Attributes attributes;
  const auto take = [&](const char* attribute, std::size_t i) {
    if (i < parameters.size()) attributes.set(attribute, parameters[i]);
  };
  if (name.empty()) return x;
  if (name == "Relu" || name == "Tanh" || name == "Sigmoid" || name == "Softplus" || name == "Softsign") {
    return context.emit(name, {x});
  }
  if (name == "Clip") {
    if (parameters.size() != 2) operator_error("the activation Clip needs two parameters");
    const ElementType type = context.type(x).element;
    return context.emit("Clip", {x, context.constant_scalar(type, parameters[0]),
                                 context.constant_scalar(type, parameters[1])});
  }
  if (name != "LeakyRelu" && name != "Elu" && name != "ThresholdedRelu" && name != "HardSigmoid") {
    operator_error(fmt::format("the activation '{}' is not known", printable(name)));
  }
  take("alpha", 0);
  if (name == "HardSigmoid") take("beta", 1);
  return context.emit(name, {x}, attributes);
}

// FusedConv: activation(Conv(X, W, B) + Z).

void infer_conv(InferContext& context) {
  require_float(context, 0);
  same_type(context);
  Shape y = convolution_shape(context);
  if (context.has_operand(2) && context.shape(2) != Shape{y[1]}) {
    operator_error("the bias must have M elements");
  }
  if (context.has_operand(3) && context.shape(3) != y) {
    operator_error(
        fmt::format("Z must have the shape {}, not {}", to_string(y), to_string(context.shape(3))));
  }
  context.set_result(0, context.element(0), std::move(y));
}

bool decompose_conv(RewriteContext& context) {
  Attributes attributes = context.attributes();
  const std::string activation = attributes.string_of("activation");
  const std::vector<float> parameters = attributes.floats_of("activation_params");
  attributes.erase("activation");
  attributes.erase("activation_params");
  std::vector<ValueId> operands = context.node().operands;
  const ValueId z = context.has_operand(3) ? operands[3] : ValueId{};
  if (operands.size() > 3) operands.pop_back();
  ValueId y = context.emit("Conv", std::move(operands), attributes);
  if (z.valid()) y = context.emit("Add", {y, z});
  context.replace_result(0, activated(context, y, activation, parameters));
  return true;
}

// FusedGemm: activation(Gemm(A, B, C)).

void infer_gemm(InferContext& context) { operator_named("Gemm").infer(context); }

bool decompose_gemm(RewriteContext& context) {
  const Attributes& from = context.attributes();
  const std::string activation = from.string_of("activation");
  std::vector<float> parameters;
  for (const char* name : {"activation_alpha", "activation_beta"}) {
    if (from.has(name)) parameters.push_back(from.float_of(name));
  }
  Attributes attributes;
  for (const char* name : {"alpha", "beta"}) attributes.set(name, from.float_of(name));
  for (const char* name : {"transA", "transB"}) attributes.set(name, from.int_of(name));
  const ValueId y = context.emit("Gemm", context.node().operands, attributes);
  context.replace_result(0, activated(context, y, activation, parameters));
  return true;
}

// FusedMatMul: alpha * A' B'. transBatchX moves axis 0 behind the batch axes, transX swaps the last two.

std::vector<std::int64_t> permutation(const NodeView& node, int i) {
  const bool batch = node.attributes().flag(i == 0 ? "transBatchA" : "transBatchB");
  const bool swap = node.attributes().flag(i == 0 ? "transA" : "transB");
  const std::size_t rank = node.shape(i).size();
  std::vector<std::int64_t> perm;
  for (std::size_t axis = 0; axis < rank; ++axis) perm.push_back(static_cast<std::int64_t>(axis));
  if (rank < 2) return perm;
  if (batch) std::rotate(perm.begin(), perm.begin() + 1, perm.end() - 1);
  if (swap) std::swap(perm[rank - 1], perm[rank - 2]);
  return perm;
}

void infer_matmul(InferContext& context) {
  const ElementType type = same_type(context);
  require_float(context, 0);
  Shape shapes[2];
  for (int i = 0; i < 2; ++i) {
    if (context.shape(i).size() < 2) operator_error("both inputs must have rank 2 or more");
    for (const std::int64_t axis : permutation(context, i)) {
      shapes[i].push_back(context.shape(i)[axis]);
    }
  }
  const auto& [a, b] = shapes;
  if (a.back() != b[b.size() - 2]) {
    operator_error(fmt::format("inner dimensions differ: {} x {}", to_string(a), to_string(b)));
  }
  Shape out = broadcast(Shape(a.begin(), a.end() - 2), Shape(b.begin(), b.end() - 2));
  out.push_back(a[a.size() - 2]);
  out.push_back(b.back());
  context.set_result(0, type, std::move(out));
}

bool decompose_matmul(RewriteContext& context) {
  const ValueId a = emit_transpose(context, context.operand_id(0), permutation(context, 0));
  const ValueId b = emit_transpose(context, context.operand_id(1), permutation(context, 1));
  const double alpha = context.attributes().float_of("alpha");
  context.replace_result(0, emit_scale(context, context.emit("MatMul", {a, b}), alpha));
  return true;
}

Operator record(std::string_view name, Arity operands, std::string_view summary) {
  Operator o;
  o.name = name;
  o.domain = "com.microsoft";
  o.versions = {1};
  o.operands = operands;
  o.accuracy = Accuracy::kSum;
  o.summary = summary;
  return o;
}

}  // namespace

const Operator& operator_MicrosoftFusedConv() {
  static const Operator op = [] {
    Operator o = record("FusedConv", {2, 4}, "activation of a convolution plus a tensor");
    o.attributes = {{"activation", AttributeKind::kString, std::string()},
                    {"activation_params", AttributeKind::kFloats, std::vector<float>{}},
                    {"group", AttributeKind::kInt, std::int64_t{1}}};
    for (AttributeSpec& attribute : window_attributes()) o.attributes.push_back(std::move(attribute));
    o.normalise = normalise_convolution;
    o.infer = infer_conv;
    o.decompose = decompose_conv;
    return o;
  }();
  return op;
}

const Operator& operator_MicrosoftFusedGemm() {
  static const Operator op = [] {
    Operator o = record("FusedGemm", {2, 3}, "activation of alpha * A * B + beta * C");
    o.attributes = {{"activation", AttributeKind::kString, std::string()},
                    {"activation_alpha", AttributeKind::kFloat, std::nullopt},
                    {"activation_beta", AttributeKind::kFloat, std::nullopt},
                    {"alpha", AttributeKind::kFloat, 1.0f},
                    {"beta", AttributeKind::kFloat, 1.0f},
                    {"transA", AttributeKind::kInt, std::int64_t{0}},
                    {"transB", AttributeKind::kInt, std::int64_t{0}}};
    o.infer = infer_gemm;
    o.decompose = decompose_gemm;
    return o;
  }();
  return op;
}

const Operator& operator_MicrosoftFusedMatMul() {
  static const Operator op = [] {
    Operator o = record("FusedMatMul", {2, 2}, "alpha * A * B with transpositions");
    o.attributes = {{"alpha", AttributeKind::kFloat, 1.0f},
                    {"transA", AttributeKind::kInt, std::int64_t{0}},
                    {"transB", AttributeKind::kInt, std::int64_t{0}},
                    {"transBatchA", AttributeKind::kInt, std::int64_t{0}},
                    {"transBatchB", AttributeKind::kInt, std::int64_t{0}}};
    o.infer = infer_matmul;
    o.decompose = decompose_matmul;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
