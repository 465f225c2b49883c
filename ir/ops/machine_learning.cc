// ai.onnx.ml: ArrayFeatureExtractor and Binarizer.

#include <fmt/format.h>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

void infer_extractor(InferContext& context) {
  require_computable(context, 0);
  if (context.element(1) != ElementType::kInt64) operator_error("the positions must be int64");
  Shape y = context.shape(0);
  if (y.empty()) operator_error("the input must have an axis");
  y.back() = element_count(context.shape(1));
  if (y.size() == 1) y.insert(y.begin(), 1);
  context.set_result(0, context.element(0), std::move(y));
}

/// Elements of the last axis; what has one axis is one row.
bool decompose_extractor(RewriteContext& context) {
  const Shape y = context.result(0).shape;
  const ValueId positions = emit_reshape(context, context.operand_id(1), {element_count(context.shape(1))});
  Attributes attributes;
  attributes.set("axis", std::int64_t{-1});
  const ValueId taken = context.emit("Gather", {context.operand_id(0), positions}, attributes);
  context.replace_result(0, emit_reshape(context, taken, y));
  return true;
}

void infer_binarizer(InferContext& context) {
  require_computable(context, 0);
  context.set_result(0, context.operand(0));
}

Form lower_binarizer(const LowerContext& context) {
  const double threshold = static_cast<double>(context.attributes().float_of("threshold"));
  return elementwise(context, [&](Dag& dag, const std::vector<int>& x) {
    const ElementType compute = is_float(dag.type(x[0])) ? dag.type(x[0]) : ElementType::kFloat64;
    const int number = dag.cast(x[0], compute);
    return dag.apply(ScalarOp::kGreater, {number, dag.constant(compute, threshold)});
  });
}

}  // namespace

const Operator& operator_MlArrayFeatureExtractor() {
  static const Operator op = {
      .name = "ArrayFeatureExtractor",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .operands = {2, 2},
      .summary = "elements of the last axis at given positions",
      .infer = infer_extractor,
      .decompose = decompose_extractor,
  };
  return op;
}

const Operator& operator_MlBinarizer() {
  static const Operator op = {
      .name = "Binarizer",
      .domain = "ai.onnx.ml",
      .versions = {1},
      .attributes = {{"threshold", AttributeKind::kFloat, 0.0f}},
      .summary = "x > threshold, as a number",
      .traits = {.decides = true},
      .infer = infer_binarizer,
      .lower = lower_binarizer,
  };
  return op;
}

}  // namespace gcompile::ir
