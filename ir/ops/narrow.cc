#include "ir/ops/narrow.h"

#include <limits>

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

/// x within [-limit, limit]; NaN stays NaN.
int limited(Dag& dag, int x, double limit) {
  const ElementType type = dag.type(x);
  const int low = dag.constant(type, -limit), high = dag.constant(type, limit);
  return dag.apply(ScalarOp::kMin, {dag.apply(ScalarOp::kMax, {x, low}), high});
}

/// The power of two that the mode names, by the bits of a double: there no power of the type is denormal. What is
/// beyond the range becomes the end of it, or NaN.
int power_of_two(Dag& dag, int x, const Narrowing& narrowing) {
  constexpr std::int64_t kFraction = (std::int64_t{1} << 52) - 1;
  const double largest = largest_of(ElementType::kFloat8E8M0), least = 1 / largest;
  const auto number = [&](double value) { return dag.constant(ElementType::kFloat64, value); };
  const auto word = [&](std::int64_t value) {
    return dag.constant(Scalar::of_integer(ElementType::kInt64, value));
  };
  const int wide = dag.cast(x, ElementType::kFloat64);
  const double below = narrowing.saturates ? least : std::numeric_limits<double>::quiet_NaN();
  const double above = narrowing.saturates ? largest : std::numeric_limits<double>::quiet_NaN();
  const int is_low = dag.apply(ScalarOp::kLess, {wide, number(least)});
  const int raised = dag.apply(ScalarOp::kSelect, {is_low, number(below), wide});
  const int is_high = dag.apply(ScalarOp::kGreater, {raised, number(largest)});
  const int inside = dag.apply(ScalarOp::kSelect, {is_high, number(above), raised});
  // NaN has all bits of the exponent, and would carry into the sign.
  const int is_nan = dag.apply(ScalarOp::kIsNan, {inside});
  const int bits = dag.bits(inside, ElementType::kInt64);
  const std::int64_t added = narrowing.power == "up"     ? kFraction
                             : narrowing.power == "down" ? 0
                                                         : (kFraction + 1) / 2;
  const int carried = dag.apply(ScalarOp::kAdd, {bits, word(added)});
  const int power =
      dag.bits(dag.apply(ScalarOp::kBitAnd, {carried, word(~kFraction)}), ElementType::kFloat64);
  return dag.apply(ScalarOp::kSelect, {is_nan, inside, power});
}

/// The nearest of 0, 0.5, 1, 1.5, 2, 3, 4 and 6 with the sign of x, to even where two are as near; the cases of
/// the ONNX project have NaN as -0.
int to_float4(Dag& dag, int x) {
  const ElementType type = dag.type(x);
  const auto number = [&](double value) { return dag.constant(type, value); };
  const int inside = limited(dag, x, largest_of(ElementType::kFloat4E2M1));
  const int size = dag.apply(ScalarOp::kAbs, {inside});
  const int upper =
      dag.apply(ScalarOp::kSelect, {dag.apply(ScalarOp::kLess, {size, number(4)}), number(1), number(2)});
  const int step =
      dag.apply(ScalarOp::kSelect, {dag.apply(ScalarOp::kLess, {size, number(2)}), number(0.5), upper});
  const int steps = dag.apply(ScalarOp::kRoundHalfEven, {dag.apply(ScalarOp::kDiv, {inside, step})});
  const int rounded = dag.apply(ScalarOp::kMul, {steps, step});
  return dag.apply(ScalarOp::kSelect, {dag.apply(ScalarOp::kIsNan, {x}), number(-0.0), rounded});
}

/// The low bits of an integer, or of a float toward zero, as the integer that they stand for.
int low_bits(Dag& dag, int x, ElementType to) {
  const ElementType type = is_float(dag.type(x)) ? ElementType::kInt32 : dag.type(x);
  const ElementType byte = byte_type(to);
  const auto word = [&](std::int64_t value) { return dag.constant(Scalar::of_integer(byte, value)); };
  const int whole = dag.cast(dag.cast(x, type), byte);
  const int low = dag.apply(ScalarOp::kBitAnd, {whole, word((std::int64_t{1} << bits_of(to)) - 1)});
  if (!is_signed(to)) return low;
  const int sign = word(std::int64_t{1} << (bits_of(to) - 1));
  return dag.apply(ScalarOp::kSub, {dag.apply(ScalarOp::kBitXor, {low, sign}), sign});
}

}  // namespace

Narrowing Narrowing::of(const Attributes& attributes) {
  Narrowing out;
  if (attributes.has("saturate")) out.saturates = attributes.flag("saturate");
  if (attributes.has("round_mode")) out.power = attributes.string_of("round_mode");
  return out;
}

ElementType byte_type(ElementType type) {
  if (bits_of(type) >= 8) return type;
  return is_float(type) ? ElementType::kFloat8E4M3FN : compute_type(type);
}

int narrowed(Dag& dag, int x, ElementType to, const Narrowing& narrowing) {
  if (!is_small_float(to)) return bits_of(to) < 8 ? low_bits(dag, x, to) : dag.cast(x, to);
  if (!is_float(dag.type(x)))
    x = dag.cast(x, bits_of(dag.type(x)) > 16 ? ElementType::kFloat64 : ElementType::kFloat32);
  if (to == ElementType::kFloat4E2M1) return dag.cast(to_float4(dag, x), byte_type(to));
  if (to == ElementType::kFloat8E8M0) return dag.cast(power_of_two(dag, x, narrowing), to);
  return dag.cast(narrowing.saturates ? limited(dag, x, largest_of(to)) : x, to);
}

}  // namespace gcompile::ir
