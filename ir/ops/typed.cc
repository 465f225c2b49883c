// Element-wise operators whose operands differ in type or role:
// Cast, CastLike, Clip, Identity, Pow, Where.

#include <fmt/format.h>

#include <limits>

#include "ir/ops/narrow.h"
#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

// Cast ------------------------------------------------------------------------------------------------------

/// Before opset 6 the type was named, not numbered: "FLOAT" (onnx.proto, enum TensorProto.DataType).
void normalise_cast(RewriteContext& context) {
  constexpr std::pair<std::string_view, ElementType> kNames[] = {
      {"FLOAT", ElementType::kFloat32},  {"UINT8", ElementType::kUInt8},   {"INT8", ElementType::kInt8},
      {"UINT16", ElementType::kUInt16},  {"INT16", ElementType::kInt16},   {"INT32", ElementType::kInt32},
      {"INT64", ElementType::kInt64},    {"BOOL", ElementType::kBool},     {"FLOAT16", ElementType::kFloat16},
      {"DOUBLE", ElementType::kFloat64}, {"UINT32", ElementType::kUInt32}, {"UINT64", ElementType::kUInt64}};
  const auto at = context.attributes().all().find("to");
  if (at == context.attributes().all().end() || kind_of(at->second) != AttributeKind::kString) return;
  const std::string given = std::get<std::string>(at->second);
  for (const auto& [name, type] : kNames) {
    if (name == given) return context.mutable_attributes().set("to", onnx_number_of(type));
  }
  operator_error(fmt::format("attribute 'to' names the type '{}', which is not supported", printable(given)));
}

void infer_cast(InferContext& context) {
  require_one_of(context.attributes(), "round_mode", {"up", "down", "nearest"});
  context.set_result(0, type_of(context.attributes(), "to"), context.shape(0));
}

Form lower_cast_to(const LowerContext& context, ElementType to) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  Dag& dag = form.dag;
  int x = dag.load(0, context.element(0), form.identity());
  if (!is_computable(to)) {
    x = narrowed(dag, dag.cast(x, compute_type(dag.type(x))), to, Narrowing::of(context.attributes()));
  }
  form.set_root(dag.cast(x, context.result(0).element));
  return form;
}

Form lower_cast(const LowerContext& context) { return lower_cast_to(context, context.result(0).element); }

// NarrowCast ------------------------------------------------------------------------------------------------

void infer_narrow_cast(InferContext& context) {
  context.set_result(0, byte_type(type_of(context.attributes(), "to")), context.shape(0));
}

Form lower_narrow_cast(const LowerContext& context) {
  return lower_cast_to(context, type_of(context.attributes(), "to"));
}

// CastLike --------------------------------------------------------------------------------------------------

/// The other tensor gives its type alone: nothing is to wait for its elements, or to move them.
void normalise_cast_like(RewriteContext& context) {
  if (!context.has_operand(0) || !context.has_operand(1)) return;  // inference says what is missing
  Attributes attributes = context.attributes();
  attributes.set("to", onnx_number_of(context.element(1)));
  context.replace_with("Cast", {context.operand_id(0)}, std::move(attributes));
}

void infer_cast_like(InferContext& context) { context.set_result(0, context.element(1), context.shape(0)); }

// Clip ------------------------------------------------------------------------------------------------------

/// Bounds became inputs in opset 11.
void normalise_clip(RewriteContext& context) {
  const ElementType type = context.element(0);
  for (const auto& [name, slot] : {std::pair("min", 1), std::pair("max", 2)}) {
    if (!context.attributes().has(name)) continue;
    const double bound = static_cast<double>(context.attributes().float_of(name));
    context.mutable_attributes().erase(name);
    context.set_operand(slot, context.constant_scalar(type, bound));
  }
}

void infer_clip(InferContext& context) {
  const ElementType type = same_type(context);
  require_computable(context, 0);
  for (int i = 1; i < context.operand_count(); ++i) {
    if (context.has_operand(i)) require_scalar(context, i, i == 1 ? "min" : "max");
  }
  context.set_result(0, type, context.shape(0));
}

/// The upper bound wins when the bounds cross (ONNX: min(max(x, low), high)).
Form lower_clip(const LowerContext& context) {
  const TensorType& type = context.result(0);
  LoopForm form = LoopForm::over(type.shape);
  Dag& dag = form.dag;
  const ElementType compute = compute_type(type.element);
  int x = load_compute(dag, context, 0, type.shape);
  if (context.has_operand(1)) {
    x = dag.apply(ScalarOp::kMax, {x, dag.cast(load_scalar(dag, context, 1), compute)});
  }
  if (context.has_operand(2)) {
    x = dag.apply(ScalarOp::kMin, {x, dag.cast(load_scalar(dag, context, 2), compute)});
  }
  form.set_root(dag.cast(x, type.element));
  return form;
}

// Identity --------------------------------------------------------------------------------------------------

void infer_identity(InferContext& context) { context.set_result(0, context.operand(0)); }

std::vector<Tensor> evaluate_identity(const EvaluateContext& context) { return {*context.value(0)}; }

Form lower_identity(const LowerContext& context) {
  LoopForm form = LoopForm::over(context.result(0).shape);
  form.set_root(form.dag.load(0, context.element(0), form.identity()));
  return form;
}

// Pow -------------------------------------------------------------------------------------------------------

void infer_pow(InferContext& context) { infer_elementwise(context, context.element(0)); }

/// x ^ 0.5 is infinity at -infinity, and 0 at -0, where the root is NaN and -0.
int half_power(Dag& dag, int x) {
  const ElementType type = dag.type(x);
  const auto number = [&](double value) { return dag.constant(type, value); };
  const double infinity = std::numeric_limits<double>::infinity();
  const int root = dag.apply(ScalarOp::kSqrt, {dag.apply(ScalarOp::kAdd, {x, number(0)})});
  return dag.apply(ScalarOp::kSelect,
                   {dag.apply(ScalarOp::kEqual, {x, number(-infinity)}), number(infinity), root});
}

/// Exponents met in practice as products, roots and quotients; -1 when there is no such form.
int special_power(Dag& dag, int x, double exponent) {
  const bool real = is_float(dag.type(x));
  if (exponent == 1) return x;
  if (exponent == 2) return dag.apply(ScalarOp::kMul, {x, x});
  if (exponent == 3) return dag.apply(ScalarOp::kMul, {dag.apply(ScalarOp::kMul, {x, x}), x});
  if (exponent == 0.5 && real) return half_power(dag, x);
  if (exponent == -1 && real) return dag.apply(ScalarOp::kReciprocal, {x});
  return -1;
}

/// The base's type is the result's. An integer base with a floating exponent is raised in float64.
Form lower_pow(const LowerContext& context) {
  const TensorType& result = context.result(0);
  LoopForm form = LoopForm::over(result.shape);
  Dag& dag = form.dag;
  int base = load_compute(dag, context, 0, result.shape);
  int power = -1;
  if (const std::optional<Scalar> exponent = constant_scalar(context, 1)) {
    power = special_power(dag, base, exponent->as_double());
  }
  if (power < 0) {
    int exponent = load_compute(dag, context, 1, result.shape);
    if (!is_float(dag.type(base)) && is_float(dag.type(exponent))) {
      base = dag.cast(base, ElementType::kFloat64);
    }
    exponent = dag.cast(exponent, dag.type(base));
    power = dag.apply(ScalarOp::kPow, {base, exponent});
  }
  form.set_root(dag.cast(power, result.element));
  return form;
}

// Where -----------------------------------------------------------------------------------------------------

void infer_where(InferContext& context) {
  if (context.element(0) != ElementType::kBool) operator_error("input 0, the condition, must be bool");
  const ElementType type = same_type(context, 1);
  context.set_result(0, type, broadcast_of_operands(context));
}

Form lower_where(const LowerContext& context) {
  return elementwise(context, [](Dag& dag, const std::vector<int>& x) {
    return dag.apply(ScalarOp::kSelect, {x[0], x[1], x[2]});
  });
}

Operator record(std::string_view name, std::vector<int> versions, Arity operands, std::string_view summary,
                void (*infer)(InferContext&), Form (*lower)(const LowerContext&)) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.operands = operands;
  op.summary = summary;
  op.infer = infer;
  op.lower = lower;
  return op;
}

}  // namespace

const Operator& operator_Cast() {
  static const Operator op = [] {
    Operator o = record("Cast", {1, 6, 9, 13, 19, 21, 23, 24, 25, 28}, {1, 1},
                        "conversion to another element type; floats to integers truncate and saturate",
                        infer_cast, lower_cast);
    o.traits.keeps_elements = true;
    o.attributes = {{"to", AttributeKind::kInt, std::nullopt, true},
                    {"saturate", AttributeKind::kInt, std::int64_t{1}},
                    {"round_mode", AttributeKind::kString, std::string("up")}};
    o.normalise = normalise_cast;
    return o;
  }();
  return op;
}

const Operator& operator_NarrowCast() {
  static const Operator op = [] {
    Operator o = record("NarrowCast", {1}, {1, 1}, "values of a type of less than 8 bits, a byte each",
                        infer_narrow_cast, lower_narrow_cast);
    o.domain = "gcompile";
    o.attributes = {{"to", AttributeKind::kInt, std::nullopt, true}};
    return o;
  }();
  return op;
}

const Operator& operator_CastLike() {
  static const Operator op = [] {
    Operator o = record("CastLike", {15, 19, 21, 23, 24, 25}, {2, 2},
                        "conversion to the element type of another tensor", infer_cast_like, lower_cast);
    o.attributes = {{"saturate", AttributeKind::kInt, std::int64_t{1}},
                    {"round_mode", AttributeKind::kString, std::string("up")}};
    o.normalise = normalise_cast_like;
    return o;
  }();
  return op;
}

const Operator& operator_Clip() {
  static const Operator op = [] {
    Operator o = record("Clip", {1, 6, 11, 12, 13}, {1, 3},
                        "min(max(x, low), high); absent bounds do not bind: infinity stays infinity",
                        infer_clip, lower_clip);
    o.normalise = normalise_clip;
    return o;
  }();
  return op;
}

const Operator& operator_Identity() {
  static const Operator op = [] {
    Operator o =
        record("Identity", {1, 13, 14, 16, 19, 21, 23, 24, 25}, {1, 1}, "x", infer_identity, lower_identity);
    o.traits.keeps_elements = true;
    o.evaluate = evaluate_identity;
    return o;
  }();
  return op;
}

const Operator& operator_Pow() {
  static const Operator op = [] {
    Operator o = record("Pow", {1, 7, 12, 13, 15}, {2, 2}, "a to the power of b, in the type of a", infer_pow,
                        lower_pow);
    o.accuracy = Accuracy::kFunction;
    o.normalise = normalise_legacy_broadcast;
    return o;
  }();
  return op;
}

const Operator& operator_Where() {
  static const Operator op = record("Where", {9, 16}, {3, 3}, "condition ? a : b", infer_where, lower_where);
  return op;
}

}  // namespace gcompile::ir
