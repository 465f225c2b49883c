#include "ir/loops/scalar_op.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "base/diagnostics.h"

namespace gcompile::ir {
namespace {

constexpr ScalarOpRow kRows[] = {
    {"load", 0, false, 1},
    {"constant", 0, false, 0},
    {"iota", 0, false, 1},
    {"accumulator", 0, false, 0},
    {"cast", 1, false, 1},
    {"bit_cast", 1, false, 0},
    {"round", 1, false, 0},
    {"add", 2, false, 1},
    {"sub", 2, false, 1},
    {"mul", 2, false, 1},
    {"div", 2, false, 6},
    {"mod", 2, false, 10},
    {"fmod", 2, false, 20},
    {"min", 2, false, 2},
    {"max", 2, false, 2},
    {"pow", 2, false, 80},
    {"neg", 1, false, 1},
    {"abs", 1, false, 1},
    {"sign", 1, false, 2},
    {"bit_and", 2, false, 1},
    {"bit_or", 2, false, 1},
    {"bit_xor", 2, false, 1},
    {"bit_not", 1, false, 1},
    {"shift_left", 2, false, 1},
    {"shift_right", 2, false, 1},
    {"less", 2, true, 2},
    {"less_equal", 2, true, 2},
    {"greater", 2, true, 2},
    {"greater_equal", 2, true, 2},
    {"equal", 2, true, 2},
    {"not_equal", 2, true, 2},
    {"logical_and", 2, true, 1},
    {"logical_or", 2, true, 1},
    {"logical_xor", 2, true, 1},
    {"logical_not", 1, true, 1},
    {"select", 3, false, 2},
    {"is_nan", 1, true, 1},
    {"is_inf", 1, true, 2},
    {"is_positive_inf", 1, true, 1},
    {"is_negative_inf", 1, true, 1},
    {"sqrt", 1, false, 8},
    {"reciprocal", 1, false, 6},
    {"floor", 1, false, 1},
    {"ceil", 1, false, 1},
    {"trunc", 1, false, 1},
    {"round_half_even", 1, false, 1},
    {"exp", 1, false, 16},
    {"expm1", 1, false, 24},
    {"log", 1, false, 20},
    {"log1p", 1, false, 24},
    {"erf", 1, false, 20},
    {"tanh", 1, false, 20},
    {"sigmoid", 1, false, 22},
    {"softplus", 1, false, 40},
    {"sin", 1, false, 20},
    {"cos", 1, false, 20},
    {"tan", 1, false, 60},
    {"asin", 1, false, 60},
    {"acos", 1, false, 60},
    {"atan", 1, false, 60},
    {"sinh", 1, false, 60},
    {"cosh", 1, false, 60},
    {"asinh", 1, false, 60},
    {"acosh", 1, false, 60},
    {"atanh", 1, false, 60},
    {"philox_low", 3, false, 120},
    {"philox_high", 3, false, 120},
};
static_assert(std::size(kRows) == kScalarOpCount);

/// NaN of either side wins, as ONNX's reference (numpy.minimum) has it.
double propagate_nan(double a, double b, double picked) {
  return std::isnan(a) ? a : std::isnan(b) ? b : picked;
}

double round_half_even(double x) {
  const double rounded = std::nearbyint(x);  // the default rounding mode is nearest-even
  return rounded == 0 ? std::copysign(0.0, x) : rounded;
}

double evaluate_real(ScalarOp op, double a, double b) {
  switch (op) {
    case ScalarOp::kAdd:
      return a + b;
    case ScalarOp::kSub:
      return a - b;
    case ScalarOp::kMul:
      return a * b;
    case ScalarOp::kDiv:
      return a / b;
    case ScalarOp::kMod: {
      const double r = std::fmod(a, b);
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case ScalarOp::kFmod:
      return std::fmod(a, b);
    case ScalarOp::kMin:
      return propagate_nan(a, b, a < b ? a : b);
    case ScalarOp::kMax:
      return propagate_nan(a, b, a > b ? a : b);
    case ScalarOp::kPow:
      return std::pow(a, b);
    case ScalarOp::kNeg:
      return -a;
    case ScalarOp::kAbs:
      return std::fabs(a);
    case ScalarOp::kSign:
      return std::isnan(a) ? a : a > 0 ? 1 : a < 0 ? -1 : 0;
    case ScalarOp::kSqrt:
      return std::sqrt(a);
    case ScalarOp::kReciprocal:
      return 1 / a;
    case ScalarOp::kFloor:
      return std::floor(a);
    case ScalarOp::kCeil:
      return std::ceil(a);
    case ScalarOp::kTrunc:
      return std::trunc(a);
    case ScalarOp::kRoundHalfEven:
      return round_half_even(a);
    case ScalarOp::kExp:
      return std::exp(a);
    case ScalarOp::kExpm1:
      return std::expm1(a);
    case ScalarOp::kLog:
      return std::log(a);
    case ScalarOp::kLog1p:
      return std::log1p(a);
    case ScalarOp::kErf:
      return std::erf(a);
    case ScalarOp::kTanh:
      return std::tanh(a);
    case ScalarOp::kSigmoid:
      return a >= 0 ? 1 / (1 + std::exp(-a)) : std::exp(a) / (1 + std::exp(a));
    case ScalarOp::kSoftplus:
      return a > 0 ? a + std::log1p(std::exp(-a)) : std::log1p(std::exp(a));
    case ScalarOp::kSin:
      return std::sin(a);
    case ScalarOp::kCos:
      return std::cos(a);
    case ScalarOp::kTan:
      return std::tan(a);
    case ScalarOp::kAsin:
      return std::asin(a);
    case ScalarOp::kAcos:
      return std::acos(a);
    case ScalarOp::kAtan:
      return std::atan(a);
    case ScalarOp::kSinh:
      return std::sinh(a);
    case ScalarOp::kCosh:
      return std::cosh(a);
    case ScalarOp::kAsinh:
      return std::asinh(a);
    case ScalarOp::kAcosh:
      return std::acosh(a);
    case ScalarOp::kAtanh:
      return std::atanh(a);
    default:
      GC_CHECK(!"a floating-point operator");
      return 0;
  }
}

/// Modulo 2^64.
std::uint64_t power_of(std::uint64_t base, std::uint64_t exponent) {
  std::uint64_t power = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if (exponent & 1) power *= base;
  }
  return power;
}

/// Two's complement arithmetic in 64 bits; the caller wraps to the width. Division by zero gives 0.
std::int64_t evaluate_integer(ScalarOp op, std::int64_t a, std::int64_t b, bool is_signed, int bits) {
  const auto ua = static_cast<std::uint64_t>(a);
  const auto ub = static_cast<std::uint64_t>(b);
  const auto wrap = [](std::uint64_t v) { return static_cast<std::int64_t>(v); };
  switch (op) {
    case ScalarOp::kAdd:
      return wrap(ua + ub);
    case ScalarOp::kSub:
      return wrap(ua - ub);
    case ScalarOp::kMul:
      return wrap(ua * ub);
    case ScalarOp::kDiv:
      if (b == 0) return 0;
      if (!is_signed) return wrap(ua / ub);
      return b == -1 ? wrap(0 - ua) : a / b;
    case ScalarOp::kMod: {
      if (b == 0) return 0;
      if (!is_signed) return wrap(ua % ub);
      if (b == -1) return 0;
      const std::int64_t r = a % b;
      return r != 0 && (r < 0) != (b < 0) ? r + b : r;
    }
    case ScalarOp::kFmod:
      if (b == 0) return 0;
      if (!is_signed) return wrap(ua % ub);
      return b == -1 ? 0 : a % b;
    case ScalarOp::kMin:
      return is_signed ? std::min(a, b) : wrap(std::min(ua, ub));
    case ScalarOp::kMax:
      return is_signed ? std::max(a, b) : wrap(std::max(ua, ub));
    case ScalarOp::kPow:
      if (is_signed && b < 0) return a == 1 ? 1 : a == -1 ? (b % 2 ? -1 : 1) : 0;
      return wrap(power_of(ua, ub));
    case ScalarOp::kNeg:
      return wrap(0 - ua);
    case ScalarOp::kAbs:
      return is_signed && a < 0 ? wrap(0 - ua) : a;
    case ScalarOp::kSign:
      return a == 0 ? 0 : is_signed && a < 0 ? -1 : 1;
    case ScalarOp::kBitAnd:
      return a & b;
    case ScalarOp::kBitOr:
      return a | b;
    case ScalarOp::kBitXor:
      return a ^ b;
    case ScalarOp::kBitNot:
      return ~a;
    case ScalarOp::kShiftLeft:
      return ub >= static_cast<std::uint64_t>(bits) ? 0 : wrap(ua << ub);
    case ScalarOp::kShiftRight:
      return ub >= static_cast<std::uint64_t>(bits) ? 0 : wrap(ua >> ub);
    default:
      GC_CHECK(!"an integer operator");
      return 0;
  }
}

template <class T>
bool compare(ScalarOp op, T a, T b) {
  switch (op) {
    case ScalarOp::kLess:
      return a < b;
    case ScalarOp::kLessEqual:
      return a <= b;
    case ScalarOp::kGreater:
      return a > b;
    case ScalarOp::kGreaterEqual:
      return a >= b;
    case ScalarOp::kEqual:
      return a == b;
    default:
      return a != b;
  }
}

/// The four words of Philox 4x32-10 (gcrt/scalar/philox.h has the source).
std::array<std::uint32_t, 4> philox(std::uint64_t position, std::uint64_t key, std::uint64_t stream) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  std::array<std::uint32_t, 4> words = {low(position), high(position), low(stream), high(stream)};
  for (std::uint32_t round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * words[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * words[2];
    const std::uint32_t key_0 = low(key) + round * 0x9E3779B9u, key_1 = high(key) + round * 0xBB67AE85u;
    words = {high(second) ^ words[1] ^ key_0, low(second), high(first) ^ words[3] ^ key_1, low(first)};
  }
  return words;
}

Scalar of_bool(bool value) { return Scalar::of_integer(ElementType::kBool, value); }

}  // namespace

const ScalarOpRow& row_of(ScalarOp op) { return kRows[static_cast<int>(op)]; }

Scalar bits_as(const Scalar& value, ElementType to) {
  GC_CHECK(bits_of(value.type) == bits_of(to));
  const bool is_wide = bits_of(to) == 64;
  std::int64_t bits = value.integer;
  if (is_float(value.type)) {
    bits = is_wide ? std::bit_cast<std::int64_t>(value.real)
                   : std::bit_cast<std::int32_t>(static_cast<float>(value.real));
  }
  if (!is_float(to)) return Scalar::of_integer(to, bits);
  const double real = is_wide ? std::bit_cast<double>(bits)
                              : static_cast<double>(std::bit_cast<float>(static_cast<std::int32_t>(bits)));
  return Scalar::of_real(to, real);
}

Scalar evaluate(ScalarOp op, std::span<const Scalar> arguments) {
  const Scalar& a = arguments[0];
  const Scalar& b = arguments.size() > 1 ? arguments[1] : a;
  switch (op) {
    case ScalarOp::kRound:
      return is_float(a.type) ? Scalar::of_real(a.type, a.real) : a;
    case ScalarOp::kSelect:
      return a.integer ? arguments[1] : arguments[2];
    case ScalarOp::kLess:
    case ScalarOp::kLessEqual:
    case ScalarOp::kGreater:
    case ScalarOp::kGreaterEqual:
    case ScalarOp::kEqual:
    case ScalarOp::kNotEqual:
      if (is_float(a.type)) return of_bool(compare(op, a.real, b.real));
      if (a.type == ElementType::kUInt64) {
        return of_bool(
            compare(op, static_cast<std::uint64_t>(a.integer), static_cast<std::uint64_t>(b.integer)));
      }
      return of_bool(compare(op, a.integer, b.integer));
    case ScalarOp::kPhiloxLow:
    case ScalarOp::kPhiloxHigh: {
      const auto bits = [&](std::size_t i) { return static_cast<std::uint64_t>(arguments[i].integer); };
      const std::array<std::uint32_t, 4> words = philox(bits(0), bits(1), bits(2));
      const std::size_t first = op == ScalarOp::kPhiloxLow ? 0 : 2;
      const std::uint64_t both = words[first] | std::uint64_t{words[first + 1]} << 32;
      return Scalar::of_integer(a.type, static_cast<std::int64_t>(both));
    }
    case ScalarOp::kLogicalAnd:
      return of_bool(a.integer && b.integer);
    case ScalarOp::kLogicalOr:
      return of_bool(a.integer || b.integer);
    case ScalarOp::kLogicalXor:
      return of_bool((a.integer != 0) != (b.integer != 0));
    case ScalarOp::kLogicalNot:
      return of_bool(!a.integer);
    case ScalarOp::kIsNan:
      return of_bool(std::isnan(a.real));
    case ScalarOp::kIsInf:
      return of_bool(std::isinf(a.real));
    case ScalarOp::kIsPositiveInf:
      return of_bool(std::isinf(a.real) && a.real > 0);
    case ScalarOp::kIsNegativeInf:
      return of_bool(std::isinf(a.real) && a.real < 0);
    default:
      break;
  }
  if (is_float(a.type)) {
    Scalar out;
    out.type = a.type;
    out.real = evaluate_real(op, a.real, b.real);
    return out;
  }
  return Scalar::of_integer(a.type,
                            evaluate_integer(op, a.integer, b.integer, is_signed(a.type), bits_of(a.type)));
}

Scalar cast(const Scalar& value, ElementType to) {
  if (is_float(to)) return Scalar::of_real(to, value.as_double());
  if (to == ElementType::kBool) {
    return of_bool(is_float(value.type) ? value.real != 0 : value.integer != 0);
  }
  if (!is_float(value.type)) return Scalar::of_integer(to, value.integer);
  Scalar out;
  out.type = to;
  if (std::isnan(value.real)) return out;
  const double truncated = std::trunc(round_to(value.type, value.real));
  const double lowest = static_cast<double>(integer_lowest(to));
  const double beyond =
      std::ldexp(1.0, bits_of(to) - (is_signed(to) ? 1 : 0));  // one past the highest, exact
  if (truncated <= lowest) {
    out.integer = integer_lowest(to);
  } else if (truncated >= beyond) {
    out.integer = static_cast<std::int64_t>(integer_highest(to));
  } else if (to == ElementType::kUInt64) {
    out.integer = static_cast<std::int64_t>(static_cast<std::uint64_t>(truncated));
  } else {
    out.integer = static_cast<std::int64_t>(truncated);
  }
  return out;
}

}  // namespace gcompile::ir
