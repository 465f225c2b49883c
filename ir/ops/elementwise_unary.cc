// Element-wise operators of one operand: rows of a name and an expression.
// Those with attributes are in activation.cc.

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

template <ScalarOp kOp>
Form lower(const LowerContext& context) {
  return elementwise(context, [](Dag& dag, const std::vector<int>& x) { return dag.apply(kOp, {x[0]}); });
}

void infer_numeric(InferContext& context) {
  require_computable(context, 0);
  if (context.element(0) == ElementType::kBool) operator_error("input 0 must be numeric, not bool");
  context.set_result(0, context.operand(0));
}

void infer_float(InferContext& context) {
  require_float(context, 0);
  context.set_result(0, context.operand(0));
}

void infer_float_test(InferContext& context) {
  require_float(context, 0);
  context.set_result(0, ElementType::kBool, context.shape(0));
}

void infer_not(InferContext& context) {
  if (context.element(0) != ElementType::kBool) operator_error("input 0 must be bool");
  context.set_result(0, context.operand(0));
}

void infer_bitwise(InferContext& context) {
  require_computable(context, 0);
  if (!is_integer(context.element(0))) operator_error("input 0 must be an integer tensor");
  context.set_result(0, context.operand(0));
}

constexpr bool jumps(ScalarOp op) {
  return op == ScalarOp::kSign || op == ScalarOp::kCeil || op == ScalarOp::kFloor ||
         op == ScalarOp::kRoundHalfEven;
}

template <ScalarOp kOp>
Operator unary(std::string_view name, std::vector<int> versions, Accuracy accuracy, std::string_view summary,
               void (*infer)(InferContext&)) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.accuracy = accuracy;
  op.summary = summary;
  op.traits.decides = jumps(kOp);
  op.infer = infer;
  op.lower = lower<kOp>;
  return op;
}

/// The NaN and infinity tests look at the element itself, so 16-bit floats are widened, which is exact.
Form lower_is_inf(const LowerContext& context) {
  const bool negative = context.attributes().flag("detect_negative");
  const bool positive = context.attributes().flag("detect_positive");
  return elementwise(context, [&](Dag& dag, const std::vector<int>& x) {
    if (negative && positive) return dag.apply(ScalarOp::kIsInf, {x[0]});
    if (positive) return dag.apply(ScalarOp::kIsPositiveInf, {x[0]});
    if (negative) return dag.apply(ScalarOp::kIsNegativeInf, {x[0]});
    return dag.constant(ElementType::kBool, 0);
  });
}

Form lower_relu(const LowerContext& context) {
  return elementwise(context, [](Dag& dag, const std::vector<int>& x) {
    return dag.apply(ScalarOp::kMax, {x[0], dag.constant(dag.type(x[0]), 0)});
  });
}

Form lower_softsign(const LowerContext& context) {
  return elementwise(context, [](Dag& dag, const std::vector<int>& x) {
    const int below =
        dag.apply(ScalarOp::kAdd, {dag.apply(ScalarOp::kAbs, {x[0]}), dag.constant(dag.type(x[0]), 1)});
    return dag.apply(ScalarOp::kDiv, {x[0], below});
  });
}

Form lower_mish(const LowerContext& context) {
  return elementwise(context, [](Dag& dag, const std::vector<int>& x) {
    const int gate = dag.apply(ScalarOp::kTanh, {dag.apply(ScalarOp::kSoftplus, {x[0]})});
    return dag.apply(ScalarOp::kMul, {x[0], gate});
  });
}

Form lower_hard_swish(const LowerContext& context) {
  return elementwise(context, [](Dag& dag, const std::vector<int>& x) {
    const ElementType type = dag.type(x[0]);
    const int scaled = dag.apply(ScalarOp::kMul, {x[0], dag.constant(type, 1.0 / 6.0)});
    const int shifted = dag.apply(ScalarOp::kAdd, {scaled, dag.constant(type, 0.5)});
    const int above = dag.apply(ScalarOp::kMax, {shifted, dag.constant(type, 0)});
    return dag.apply(ScalarOp::kMul, {x[0], dag.apply(ScalarOp::kMin, {above, dag.constant(type, 1)})});
  });
}

template <Form (*kLower)(const LowerContext&)>
Operator unary_with(std::string_view name, std::vector<int> versions, Accuracy accuracy,
                    std::string_view summary) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.accuracy = accuracy;
  op.summary = summary;
  op.infer = infer_float;
  op.lower = kLower;
  return op;
}

}  // namespace

#define GC_UNARY(name, scalar, infer, accuracy, summary, ...)                                      \
  const Operator& operator_##name() {                                                              \
    static const Operator op =                                                                     \
        unary<ScalarOp::scalar>(#name, {__VA_ARGS__}, Accuracy::accuracy, summary, infer_##infer); \
    return op;                                                                                     \
  }
#define GC_UNARY_WITH(name, lower, accuracy, summary, ...)                                           \
  const Operator& operator_##name() {                                                                \
    static const Operator op = unary_with<lower>(#name, {__VA_ARGS__}, Accuracy::accuracy, summary); \
    return op;                                                                                       \
  }

GC_UNARY(Abs, kAbs, numeric, kExact, "|x|", 1, 6, 13)
GC_UNARY(Neg, kNeg, numeric, kExact, "-x", 1, 6, 13)
GC_UNARY(Sign, kSign, numeric, kExact, "-1, 0 or 1", 9, 13)
GC_UNARY(Not, kLogicalNot, not, kExact, "logical negation", 1)
GC_UNARY(BitwiseNot, kBitNot, bitwise, kExact, "bitwise complement", 18)
GC_UNARY(IsNaN, kIsNan, float_test, kExact, "whether x is NaN", 9, 13, 20)
GC_UNARY(Ceil, kCeil, float, kExact, "smallest integer not below x", 1, 6, 13)
GC_UNARY(Floor, kFloor, float, kExact, "largest integer not above x", 1, 6, 13)
GC_UNARY(Round, kRoundHalfEven, float, kExact, "nearest integer, halves to even", 11, 22)
GC_UNARY(Sqrt, kSqrt, float, kRounding, "square root", 1, 6, 13)
GC_UNARY(Reciprocal, kReciprocal, float, kRounding, "1 / x", 1, 6, 13)
GC_UNARY(Exp, kExp, float, kFunction, "e^x", 1, 6, 13)
GC_UNARY(Log, kLog, float, kFunction, "natural logarithm", 1, 6, 13)
GC_UNARY(Erf, kErf, float, kFunction, "error function", 9, 13)
GC_UNARY(Tanh, kTanh, float, kFunction, "hyperbolic tangent", 1, 6, 13)
GC_UNARY(Sigmoid, kSigmoid, float, kFunction, "1 / (1 + e^-x)", 1, 6, 13)
GC_UNARY(Softplus, kSoftplus, float, kFunction, "log(1 + e^x)", 1, 22)
GC_UNARY(Sin, kSin, float, kFunction, "sine", 7, 22)
GC_UNARY(Cos, kCos, float, kFunction, "cosine", 7, 22)
GC_UNARY(Tan, kTan, float, kFunction, "tangent", 7, 22)
GC_UNARY(Asin, kAsin, float, kFunction, "inverse sine", 7, 22)
GC_UNARY(Acos, kAcos, float, kFunction, "inverse cosine", 7, 22)
GC_UNARY(Atan, kAtan, float, kFunction, "inverse tangent", 7, 22)
GC_UNARY(Sinh, kSinh, float, kFunction, "hyperbolic sine", 9, 22)
GC_UNARY(Cosh, kCosh, float, kFunction, "hyperbolic cosine", 9, 22)
GC_UNARY(Asinh, kAsinh, float, kFunction, "inverse hyperbolic sine", 9, 22)
GC_UNARY(Acosh, kAcosh, float, kFunction, "inverse hyperbolic cosine", 9, 22)
GC_UNARY(Atanh, kAtanh, float, kFunction, "inverse hyperbolic tangent", 9, 22)
GC_UNARY_WITH(HardSwish, lower_hard_swish, kRounding, "x * clip(x / 6 + 1/2, 0, 1)", 14, 22)
GC_UNARY_WITH(Mish, lower_mish, kFunction, "x * tanh(softplus(x))", 18, 22)
GC_UNARY_WITH(Softsign, lower_softsign, kRounding, "x / (1 + |x|)", 1, 22)

const Operator& operator_Relu() {
  static const Operator op = [] {
    Operator o = unary_with<lower_relu>("Relu", {1, 6, 13, 14}, Accuracy::kExact, "max(x, 0)");
    o.infer = infer_numeric;
    return o;
  }();
  return op;
}

const Operator& operator_IsInf() {
  static const Operator op = [] {
    Operator o = unary_with<lower_is_inf>("IsInf", {10, 20}, Accuracy::kExact, "whether x is infinite");
    o.attributes = {{"detect_negative", AttributeKind::kInt, std::int64_t{1}},
                    {"detect_positive", AttributeKind::kInt, std::int64_t{1}}};
    o.infer = infer_float_test;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
