// com.microsoft: Gelu and its relatives (ContribOperators.md of ONNX Runtime).

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

void infer(InferContext& context) {
  require_float(context, 0);
  infer_elementwise(context, same_type(context));
  if (context.result(0) != context.operand(0)) operator_error("the bias does not broadcast to the input");
}

/// x, or x + bias when there is a second operand.
ValueId biased(RewriteContext& context) {
  const ValueId x = context.operand_id(0);
  return context.has_operand(1) ? context.emit("Add", {x, context.operand_id(1)}) : x;
}

template <bool kTanh>
bool decompose_gelu(RewriteContext& context) {
  Attributes attributes;
  attributes.set("approximate", std::string(kTanh ? "tanh" : "none"));
  context.replace_result(0, context.emit("Gelu", {biased(context)}, attributes));
  return true;
}

/// x * sigmoid(alpha * x)
bool decompose_quick_gelu(RewriteContext& context) {
  const ValueId x = context.operand_id(0);
  const double alpha = context.attributes().float_of("alpha");
  const ValueId gate = context.emit("Sigmoid", {emit_scale(context, x, alpha)});
  context.replace_result(0, context.emit("Mul", {x, gate}));
  return true;
}

Operator record(std::string_view name, Arity operands, bool (*decompose)(RewriteContext&),
                std::string_view summary) {
  Operator o;
  o.name = name;
  o.domain = "com.microsoft";
  o.versions = {1};
  o.operands = operands;
  o.accuracy = Accuracy::kFunction;
  o.summary = summary;
  o.infer = infer;
  o.decompose = decompose;
  return o;
}

}  // namespace

const Operator& operator_MicrosoftBiasGelu() {
  static const Operator op = record("BiasGelu", {2, 2}, decompose_gelu<false>, "Gelu of x + bias");
  return op;
}

const Operator& operator_MicrosoftFastGelu() {
  static const Operator op = record("FastGelu", {1, 2}, decompose_gelu<true>, "Gelu of x + bias with tanh");
  return op;
}

const Operator& operator_MicrosoftGelu() {
  static const Operator op = record("Gelu", {1, 1}, decompose_gelu<false>, "x * (1 + erf(x / sqrt(2))) / 2");
  return op;
}

const Operator& operator_MicrosoftQuickGelu() {
  static const Operator op = [] {
    Operator o = record("QuickGelu", {1, 1}, decompose_quick_gelu, "x * sigmoid(alpha * x)");
    o.attributes = {{"alpha", AttributeKind::kFloat, 1.702f}};
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
