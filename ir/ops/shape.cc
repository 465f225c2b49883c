// Operators whose result depends on shapes or attributes alone: Constant, ConstantOfShape, EyeLike, Range,
// Shape, Size. All are known at compile time.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "ir/graph/size_evaluator.h"
#include "ir/ops/support.h"
#include "ir/tensors/magnitude.h"

namespace gcompile::ir {
namespace {

bool decompose_to_constant(RewriteContext& context) {
  if (const auto& sizes = context.graph().value(context.node().results[0]).sizes) {
    const Shape elements = *sizes;
    context.replace_result(0, context.constant_ints(elements));
    return true;
  }
  std::vector<const Tensor*> operands;
  for (int i = 0; i < context.operand_count(); ++i) operands.push_back(context.constant(i));
  const EvaluateContext evaluation(context.graph(), context.id(), operands);
  context.replace_result(0, context.constant(context.node().op->evaluate(evaluation).at(0)));
  return true;
}

// Constant --------------------------------------------------------------------------------------------------

/// Every way of giving the value becomes the attribute `value`.
void normalise_constant(RewriteContext& context) {
  Attributes& attributes = context.mutable_attributes();
  if (attributes.has("value_float")) {
    const float value = attributes.float_of("value_float");
    attributes.set("value", Tensor::of_floats(std::span(&value, 1), {}));
  } else if (attributes.has("value_int")) {
    const std::int64_t value = attributes.int_of("value_int");
    attributes.set("value", Tensor::of_ints(std::span(&value, 1), {}));
  } else if (attributes.has("value_floats")) {
    const auto values = attributes.floats_of("value_floats");
    attributes.set("value", Tensor::of_floats(values, {static_cast<std::int64_t>(values.size())}));
  } else if (attributes.has("value_ints")) {
    const auto values = attributes.ints_of("value_ints");
    attributes.set("value", Tensor::of_ints(values, {static_cast<std::int64_t>(values.size())}));
  } else if (attributes.has("value_string") || attributes.has("value_strings")) {
    operator_error("string tensors are not supported");
  } else if (attributes.has("sparse_value")) {
    operator_error("sparse tensors are not supported");
  }
  for (const char* name : {"value_float", "value_int", "value_floats", "value_ints"}) attributes.erase(name);
}

void infer_constant(InferContext& context) {
  context.set_result(0, context.attributes().tensor_of("value").type());
}

std::vector<Tensor> evaluate_constant(const EvaluateContext& context) {
  return {context.attributes().tensor_of("value")};
}

// ConstantOfShape -------------------------------------------------------------------------------------------

void infer_constant_of_shape(InferContext& context) {
  const Tensor& value = context.attributes().tensor_of("value");
  if (value.count() != 1) operator_error("attribute 'value' must have one element");
  const Shape shape = context.known_sizes(0, "the shape");
  for (const Dim dim : shape) {
    if (!always_less_equal(0, dim)) {
      operator_error(fmt::format("the shape has the dim {}", to_string(dim)),
                     "bounds of --dim that keep it from being negative");
    }
  }
  context.set_result(0, value.element(), shape);
}

std::vector<Tensor> evaluate_constant_of_shape(const EvaluateContext& context) {
  return {Tensor::filled(context.result(0), context.attributes().tensor_of("value").at(0))};
}

Form lower_constant_of_shape(const LowerContext& context) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  form.set_root(form.dag.constant(context.attributes().tensor_of("value").at(0)));
  return form;
}

// EyeLike ---------------------------------------------------------------------------------------------------

void infer_eye_like(InferContext& context) {
  if (context.shape(0).size() != 2) operator_error("input 0 must be a matrix");
  const bool given = context.attributes().has("dtype");
  const ElementType type = given ? computable_type_of(context.attributes(), "dtype") : context.element(0);
  context.set_result(0, type, context.shape(0));
}

Form lower_eye_like(const LowerContext& context) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  Dag& dag = form.dag;
  const int diagonal =
      dag.constant(Scalar::of_integer(ElementType::kInt64, context.attributes().int_of("k")));
  const int one = dag.apply(ScalarOp::kEqual, {dag.iota(Index::axis(1) - Index::axis(0)), diagonal});
  form.set_root(dag.cast(one, context.result(0).element));
  return form;
}

// Range -----------------------------------------------------------------------------------------------------

Scalar range_operand(const NodeView& node, int i, std::string_view name) {
  const Tensor* tensor = node.constant(i);
  if (!tensor) {
    operator_error(fmt::format("{} must be known at compile time", name),
                   "shapes are fixed when the model is compiled; bind the value with --set or --dim");
  }
  return tensor->at(0);
}

void infer_range(InferContext& context) {
  const ElementType type = same_type(context);
  require_computable(context, 0);
  constexpr std::string_view kNames[] = {"start", "limit", "delta"};
  for (int i = 0; i < 3; ++i) require_scalar(context, i, kNames[i]);
  const Scalar delta = range_operand(context, 2, "delta");
  if (delta.as_double() == 0) operator_error("delta is 0");
  if (context.knows_sizes(0) || context.knows_sizes(1)) {
    const auto known = [&](int i) {
      const std::optional<Shape> numbers = known_integers(context.graph(), context.node().operands[i]);
      if (!numbers) operator_error(fmt::format("{} must be a whole number", kNames[i]));
      return numbers->at(0);
    };
    const Dim span = known(1) - known(0);
    const std::int64_t step = known(2);
    context.set_result(0, type, {max(ceil_div(step > 0 ? span : -span, magnitude(step)), 0)});
    return;
  }
  const Scalar start = range_operand(context, 0, "start");
  const Scalar limit = range_operand(context, 1, "limit");
  std::int64_t count = 0;
  if (is_float(type)) {
    const double steps = std::ceil((limit.real - start.real) / delta.real);
    if (!(steps < 0x1p40)) operator_error("the range has no end");
    count = static_cast<std::int64_t>(std::max(0.0, steps));
  } else {
    const std::int64_t span = limit.integer - start.integer;
    const bool up = delta.integer > 0;
    if (up ? span > 0 : span < 0) {
      count = up ? ceil_div(span, delta.integer) : ceil_div(-span, -delta.integer);
    }
  }
  context.set_result(0, type, {count});
}

/// start + i * delta, in the range's own type (16-bit floats in float32).
Form lower_range(const LowerContext& context) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  Dag& dag = form.dag;
  const ElementType type = context.result(0).element;
  const ElementType compute = compute_type(type);
  const int start = dag.cast(load_scalar(dag, context, 0), compute);
  const int delta = dag.cast(load_scalar(dag, context, 2), compute);
  const int steps = dag.apply(ScalarOp::kMul, {dag.cast(dag.iota(Index::axis(0)), compute), delta});
  form.set_root(dag.cast(dag.apply(ScalarOp::kAdd, {start, steps}), type));
  return form;
}

// Shape and Size --------------------------------------------------------------------------------------------

Shape wanted_dims(const NodeView& node) {
  const Shape& shape = node.shape(0);
  const auto rank = static_cast<std::int64_t>(shape.size());
  const auto position = [&](std::string_view name, std::int64_t absent) {
    std::int64_t at = node.attributes().has(name) ? node.attributes().int_of(name) : absent;
    if (at < 0) at += rank;
    return std::clamp<std::int64_t>(at, 0, rank);
  };
  const std::int64_t start = position("start", 0);
  const std::int64_t end = std::max(start, position("end", rank));
  return {shape.begin() + start, shape.begin() + end};
}

void infer_shape(InferContext& context) {
  const Shape dims = wanted_dims(context);
  context.set_result(0, ElementType::kInt64, {static_cast<std::int64_t>(dims.size())});
  context.set_sizes(dims);
}

std::vector<Tensor> evaluate_shape(const EvaluateContext& context) {
  const std::vector<std::int64_t> dims = numbers_of(wanted_dims(context));
  return {Tensor::of_ints(dims, {static_cast<std::int64_t>(dims.size())})};
}

void infer_size(InferContext& context) {
  context.set_result(0, ElementType::kInt64, {});
  context.set_sizes({context.operand(0).count()});
}

std::vector<Tensor> evaluate_size(const EvaluateContext& context) {
  return {Tensor::scalar(Scalar::of_integer(ElementType::kInt64, context.operand(0).count()))};
}

Operator record(std::string_view name, std::vector<int> versions, Arity operands, std::string_view summary,
                void (*infer)(InferContext&)) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.operands = operands;
  op.summary = summary;
  op.infer = infer;
  return op;
}

}  // namespace

const Operator& operator_Constant() {
  static const Operator op = [] {
    Operator o =
        record("Constant", {1, 9, 11, 12, 13, 19, 21, 23, 24, 25}, {0, 0}, "a given tensor", infer_constant);
    o.attributes = {{"value", AttributeKind::kTensor, std::nullopt, true}};
    o.normalise = normalise_constant;
    o.evaluate = evaluate_constant;
    o.decompose = decompose_to_constant;
    return o;
  }();
  return op;
}

const Operator& operator_ConstantOfShape() {
  static const Operator op = [] {
    Operator o = record("ConstantOfShape", {9, 20, 21, 23, 24, 25}, {1, 1}, "a tensor of one value",
                        infer_constant_of_shape);
    const float zero = 0;
    o.attributes = {{"value", AttributeKind::kTensor, Tensor::of_floats(std::span(&zero, 1), {1})}};
    o.evaluate = evaluate_constant_of_shape;
    o.lower = lower_constant_of_shape;
    return o;
  }();
  return op;
}

const Operator& operator_EyeLike() {
  static const Operator op = [] {
    Operator o = record("EyeLike", {9, 22}, {1, 1}, "ones on a diagonal", infer_eye_like);
    o.attributes = {{"dtype", AttributeKind::kInt, std::nullopt},
                    {"k", AttributeKind::kInt, std::int64_t{0}}};
    o.lower = lower_eye_like;
    return o;
  }();
  return op;
}

const Operator& operator_Range() {
  static const Operator op = [] {
    Operator o = record("Range", {11, 27}, {3, 3}, "start, start + delta, ... before limit", infer_range);
    o.attributes = {{"stash_type", AttributeKind::kInt, std::int64_t{1}}};
    o.lower = lower_range;
    return o;
  }();
  return op;
}

const Operator& operator_Shape() {
  static const Operator op = [] {
    Operator o = record("Shape", {1, 13, 15, 19, 21, 23, 24, 25}, {1, 1}, "the dims", infer_shape);
    o.attributes = {{"start", AttributeKind::kInt, std::int64_t{0}},
                    {"end", AttributeKind::kInt, std::nullopt}};
    o.traits.reads_types_only = true;
    o.evaluate = evaluate_shape;
    o.decompose = decompose_to_constant;
    return o;
  }();
  return op;
}

const Operator& operator_Size() {
  static const Operator op = [] {
    Operator o = record("Size", {1, 13, 19, 21, 23, 24, 25}, {1, 1}, "the number of elements", infer_size);
    o.traits.reads_types_only = true;
    o.evaluate = evaluate_size;
    o.decompose = decompose_to_constant;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
