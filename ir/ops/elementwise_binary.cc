// Element-wise operators of two or more operands with multidirectional broadcasting: arithmetic, logic,
// comparisons and bits. Variadic ones fold from the left.

#include <fmt/format.h>

#include <algorithm>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

void infer_same(InferContext& context) { infer_elementwise(context, same_type(context)); }

void infer_compare(InferContext& context) {
  same_type(context);
  infer_elementwise(context, ElementType::kBool);
}

void infer_logic(InferContext& context) {
  if (same_type(context) != ElementType::kBool) operator_error("inputs must be bool");
  infer_elementwise(context, ElementType::kBool);
}

void infer_bits(InferContext& context) {
  if (!is_integer(same_type(context))) operator_error("inputs must be integers");
  infer_same(context);
}

template <ScalarOp kOp>
Form lower(const LowerContext& context) {
  return elementwise(context, [](Dag& dag, const std::vector<int>& x) {
    int folded = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) folded = dag.apply(kOp, {folded, x[i]});
    return folded;
  });
}

Form lower_mean(const LowerContext& context) {
  return elementwise(context, [](Dag& dag, const std::vector<int>& x) {
    int sum = x[0];
    for (std::size_t i = 1; i < x.size(); ++i) sum = dag.apply(ScalarOp::kAdd, {sum, x[i]});
    return dag.apply(ScalarOp::kDiv, {sum, dag.constant(dag.type(sum), static_cast<double>(x.size()))});
  });
}

void infer_mean(InferContext& context) {
  require_float(context, 0);
  infer_same(context);
}

constexpr bool commutes(ScalarOp op) {
  switch (op) {
    case ScalarOp::kAdd:
    case ScalarOp::kMul:
    case ScalarOp::kMin:
    case ScalarOp::kMax:
    case ScalarOp::kEqual:
    case ScalarOp::kLogicalAnd:
    case ScalarOp::kLogicalOr:
    case ScalarOp::kLogicalXor:
    case ScalarOp::kBitAnd:
    case ScalarOp::kBitOr:
    case ScalarOp::kBitXor:
      return true;
    default:
      return false;
  }
}

template <ScalarOp kOp>
Operator record(std::string_view name, std::vector<int> versions, Accuracy accuracy, std::string_view summary,
                void (*infer)(InferContext&), int operands) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.operands = operands < 0 ? Arity{1, -1} : Arity{operands, operands};
  op.accuracy = accuracy;
  op.summary = summary;
  op.traits.commutative = commutes(kOp);
  if (operands == 2) op.normalise = normalise_legacy_broadcast;
  op.infer = infer;
  op.lower = lower<kOp>;
  return op;
}

void infer_mod(InferContext& context) {
  const ElementType type = same_type(context);
  if (is_float(type) && !context.attributes().flag("fmod")) {
    operator_error("floating point needs fmod = 1");
  }
  infer_same(context);
}

Form lower_mod(const LowerContext& context) {
  const ScalarOp op = context.attributes().flag("fmod") ? ScalarOp::kFmod : ScalarOp::kMod;
  return elementwise(context, [op](Dag& dag, const std::vector<int>& x) {
    return dag.apply(op, {x[0], x[1]});
  });
}

void infer_shift(InferContext& context) {
  const ElementType type = same_type(context);
  if (!is_integer(type) || is_signed(type)) operator_error("inputs must be unsigned integers");
  const std::string& direction = context.attributes().string_of("direction");
  if (direction != "LEFT" && direction != "RIGHT") {
    operator_error("attribute 'direction' must be 'LEFT' or 'RIGHT'");
  }
  infer_same(context);
}

Form lower_shift(const LowerContext& context) {
  const bool left = context.attributes().string_of("direction") == "LEFT";
  return elementwise(context, [left](Dag& dag, const std::vector<int>& x) {
    return dag.apply(left ? ScalarOp::kShiftLeft : ScalarOp::kShiftRight, {x[0], x[1]});
  });
}

/// Before opset 7 a slope of more than one element had one per channel.
void normalise_prelu(RewriteContext& context) {
  if (context.opset() >= 7 || element_count(context.shape(1)) == 1) return;
  Shape shape(std::max<std::size_t>(context.shape(0).size(), 2) - 1, 1);
  shape[0] = element_count(context.shape(1));
  context.set_operand(1, emit_reshape(context, context.operand_id(1), shape));
}

void infer_prelu(InferContext& context) {
  infer_same(context);
  if (context.result(0).shape != context.shape(0)) {
    operator_error(fmt::format("the slope {} does not broadcast to {}", to_string(context.shape(1)),
                               to_string(context.shape(0))));
  }
}

Form lower_prelu(const LowerContext& context) {
  return elementwise(context, [](Dag& dag, const std::vector<int>& x) {
    const int negative = dag.apply(ScalarOp::kLess, {x[0], dag.constant(dag.type(x[0]), 0)});
    return dag.apply(ScalarOp::kSelect, {negative, dag.apply(ScalarOp::kMul, {x[0], x[1]}), x[0]});
  });
}

}  // namespace

#define GC_ELEMENTWISE(name, scalar, infer, operands, accuracy, summary, ...)                              \
  const Operator& operator_##name() {                                                                      \
    static const Operator op = record<ScalarOp::scalar>(#name, {__VA_ARGS__}, Accuracy::accuracy, summary, \
                                                        infer_##infer, operands);                          \
    return op;                                                                                             \
  }

GC_ELEMENTWISE(Add, kAdd, same, 2, kRounding, "a + b", 1, 6, 7, 13, 14)
GC_ELEMENTWISE(Sub, kSub, same, 2, kRounding, "a - b", 1, 6, 7, 13, 14)
GC_ELEMENTWISE(Mul, kMul, same, 2, kRounding, "a * b", 1, 6, 7, 13, 14)
GC_ELEMENTWISE(Div, kDiv, same, 2, kRounding, "a / b; integers truncate toward zero, and give 0 when b is 0",
               1, 6, 7, 13, 14)
GC_ELEMENTWISE(Max, kMax, same, -1, kExact, "largest operand; NaN wins", 1, 6, 8, 12, 13)
GC_ELEMENTWISE(Min, kMin, same, -1, kExact, "smallest operand; NaN wins", 1, 6, 8, 12, 13)
GC_ELEMENTWISE(Sum, kAdd, same, -1, kRounding, "sum of the operands", 1, 6, 8, 13)
GC_ELEMENTWISE(Equal, kEqual, compare, 2, kExact, "a == b", 1, 7, 11, 13, 19)
GC_ELEMENTWISE(Less, kLess, compare, 2, kExact, "a < b", 1, 7, 9, 13)
GC_ELEMENTWISE(LessOrEqual, kLessEqual, compare, 2, kExact, "a <= b", 12, 16)
GC_ELEMENTWISE(Greater, kGreater, compare, 2, kExact, "a > b", 1, 7, 9, 13)
GC_ELEMENTWISE(GreaterOrEqual, kGreaterEqual, compare, 2, kExact, "a >= b", 12, 16)
GC_ELEMENTWISE(And, kLogicalAnd, logic, 2, kExact, "logical and", 1, 7)
GC_ELEMENTWISE(Or, kLogicalOr, logic, 2, kExact, "logical or", 1, 7)
GC_ELEMENTWISE(Xor, kLogicalXor, logic, 2, kExact, "logical exclusive or", 1, 7)
GC_ELEMENTWISE(BitwiseAnd, kBitAnd, bits, 2, kExact, "bitwise and", 18)
GC_ELEMENTWISE(BitwiseOr, kBitOr, bits, 2, kExact, "bitwise or", 18)
GC_ELEMENTWISE(BitwiseXor, kBitXor, bits, 2, kExact, "bitwise exclusive or", 18)

const Operator& operator_Mean() {
  static const Operator op = [] {
    Operator o = record<ScalarOp::kAdd>("Mean", {1, 6, 8, 13}, Accuracy::kRounding, "mean of the operands",
                                        infer_mean, -1);
    o.lower = lower_mean;
    return o;
  }();
  return op;
}

const Operator& operator_Mod() {
  static const Operator op = [] {
    Operator o = record<ScalarOp::kMod>(
        "Mod", {10, 13, 28}, Accuracy::kExact,
        "remainder with the sign of b, or of a with fmod = 1; integers by zero give 0", infer_mod, 2);
    o.attributes = {{"fmod", AttributeKind::kInt, std::int64_t{0}}};
    o.traits.decides = true;
    o.lower = lower_mod;
    return o;
  }();
  return op;
}

const Operator& operator_BitShift() {
  static const Operator op = [] {
    Operator o = record<ScalarOp::kShiftLeft>("BitShift", {11, 28}, Accuracy::kExact,
                                              "shift of unsigned integers; by the width or more gives 0",
                                              infer_shift, 2);
    o.attributes = {{"direction", AttributeKind::kString, std::nullopt, true}};
    o.lower = lower_shift;
    return o;
  }();
  return op;
}

const Operator& operator_PRelu() {
  static const Operator op = [] {
    Operator o = record<ScalarOp::kMul>("PRelu", {1, 6, 7, 9, 16}, Accuracy::kRounding,
                                        "x < 0 ? slope * x : x", infer_prelu, 2);
    o.normalise = normalise_prelu;
    o.traits.commutative = false;
    o.lower = lower_prelu;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
