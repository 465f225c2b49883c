#include "ir/tensors/element_type.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace gcompile::ir {
namespace {

struct Row {
  std::string_view name;
  int bits;
  bool floating;
  bool integer;
  bool is_signed;
  bool computable;
};

constexpr Row kRows[kElementTypeCount] = {
    {"float32", 32, true, false, true, true},
    {"float64", 64, true, false, true, true},
    {"float16", 16, true, false, true, true},
    {"bfloat16", 16, true, false, true, true},
    {"int8", 8, false, true, true, true},
    {"int16", 16, false, true, true, true},
    {"int32", 32, false, true, true, true},
    {"int64", 64, false, true, true, true},
    {"uint8", 8, false, true, false, true},
    {"uint16", 16, false, true, false, true},
    {"uint32", 32, false, true, false, true},
    {"uint64", 64, false, true, false, true},
    {"bool", 8, false, false, false, true},
    {"int4", 4, false, true, true, false},
    {"uint4", 4, false, true, false, false},
    {"int2", 2, false, true, true, false},
    {"uint2", 2, false, true, false, false},
    {"float8e4m3fn", 8, true, false, true, false},
    {"float8e4m3fnuz", 8, true, false, true, false},
    {"float8e5m2", 8, true, false, true, false},
    {"float8e5m2fnuz", 8, true, false, true, false},
    {"float8e8m0", 8, true, false, false, false},
    {"float4e2m1", 4, true, false, true, false},
};

/// How the codes of a small float with a sign divide: sign, exponent, fraction. Exponent 0 is that of 1 without
/// the leading bit, as IEEE 754 has it.
struct SmallFloat {
  int exponent_bits;
  int fraction_bits;
  int bias;
  int largest;        // code of the largest finite value
  int above;          // code of what is larger, without its sign
  int nan;            // code of NaN, without its sign
  bool has_one_zero;  // the code of -0 is NaN, which has no sign
};

SmallFloat small_float(ElementType type) {
  switch (type) {
    case ElementType::kFloat8E4M3FN:
      return {4, 3, 7, 0x7e, 0x7f, 0x7f, false};
    case ElementType::kFloat8E4M3FNUZ:
      return {4, 3, 8, 0x7f, 0x80, 0x80, true};
    case ElementType::kFloat8E5M2:
      return {5, 2, 15, 0x7b, 0x7c, 0x7e, false};
    case ElementType::kFloat8E5M2FNUZ:
      return {5, 2, 16, 0x7f, 0x80, 0x80, true};
    default:
      return {2, 1, 1, 7, 7, 0, false};  // float4e2m1, which has neither infinities nor NaN
  }
}

/// A power of two or NaN; the code is the exponent.
constexpr int kPowerBias = 127, kPowerNan = 255;

double power_value(int code) {
  return code == kPowerNan ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, code - kPowerBias);
}

int power_code(double value) {
  if (!(value >= std::ldexp(1.0, -kPowerBias)) || value > std::ldexp(1.0, kPowerBias)) return kPowerNan;
  int exponent = 0;
  const double fraction = std::frexp(value, &exponent);  // of [0.5, 1)
  return exponent - (fraction < 0.75 ? 1 : 0) + kPowerBias;
}

const Row& row(ElementType type) { return kRows[static_cast<int>(type)]; }

}  // namespace

std::string_view name_of(ElementType type) { return row(type).name; }

std::optional<ElementType> element_type_from_name(std::string_view name) {
  for (int i = 0; i < kElementTypeCount; ++i) {
    if (kRows[i].name == name) return static_cast<ElementType>(i);
  }
  return std::nullopt;
}

int bits_of(ElementType type) { return row(type).bits; }

std::int64_t bytes_of(ElementType type, std::int64_t count) {
  const int bits = bits_of(type);
  return bits >= 8 ? count * (bits / 8) : (count * bits + 7) / 8;
}

bool is_float(ElementType type) { return row(type).floating; }
bool is_integer(ElementType type) { return row(type).integer; }
bool is_signed(ElementType type) { return row(type).is_signed; }
bool is_computable(ElementType type) { return row(type).computable; }

std::int64_t integer_lowest(ElementType type) {
  if (!is_signed(type)) return 0;
  return bits_of(type) == 64 ? std::numeric_limits<std::int64_t>::min()
                             : -(std::int64_t{1} << (bits_of(type) - 1));
}

std::uint64_t integer_highest(ElementType type) {
  const int magnitude_bits = bits_of(type) - (is_signed(type) ? 1 : 0);
  return magnitude_bits == 64 ? std::numeric_limits<std::uint64_t>::max()
                              : (std::uint64_t{1} << magnitude_bits) - 1;
}

float half_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const int exponent = (bits >> 10) & 31;
  const std::uint32_t fraction = bits & 1023u;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (static_cast<std::uint32_t>(exponent + 112) << 23) | (fraction << 13));
}

std::uint16_t float_to_half(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  // 65520 is the midpoint between the largest half and the next power of two.
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude < 0x38800000u) {  // below 2^-14: a multiple of 2^-24, rounded by the FPU's own nearest-even
    const float scaled = std::ldexp(std::bit_cast<float>(magnitude), 24);
    return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(scaled)));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float bfloat16_to_float(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t float_to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

bool is_small_float(ElementType type) { return type >= ElementType::kFloat8E4M3FN; }

double small_float_value(ElementType type, std::uint8_t code) {
  if (type == ElementType::kFloat8E8M0) return power_value(code);
  const SmallFloat format = small_float(type);
  const int sign = 1 << (format.exponent_bits + format.fraction_bits);
  const int magnitude = code & (sign - 1);
  const bool negative = (code & sign) != 0;
  const double nan = std::copysign(std::numeric_limits<double>::quiet_NaN(), negative ? -1.0 : 1.0);
  if (format.has_one_zero && code == sign) return std::numeric_limits<double>::quiet_NaN();
  if (magnitude > format.largest) {
    if (magnitude != format.above || format.above == format.nan) return nan;
    return std::copysign(std::numeric_limits<double>::infinity(), nan);
  }
  const int exponent = magnitude >> format.fraction_bits, one = 1 << format.fraction_bits;
  const int fraction = (magnitude & (one - 1)) + (exponent == 0 ? 0 : one);
  const double value = std::ldexp(fraction, std::max(exponent, 1) - format.bias - format.fraction_bits);
  return negative ? -value : value;
}

std::uint8_t small_float_code(ElementType type, double value) {
  if (type == ElementType::kFloat8E8M0) return static_cast<std::uint8_t>(power_code(value));
  const SmallFloat format = small_float(type);
  const int sign = std::signbit(value) ? 1 << (format.exponent_bits + format.fraction_bits) : 0;
  // The cases of the ONNX project have NaN as -0 in float4e2m1.
  if (std::isnan(value)) return static_cast<std::uint8_t>(format.nan == 0 ? 8 : format.nan | sign);
  int magnitude = value == 0 ? 0 : format.above;
  if (std::isfinite(value) && value != 0) {
    int exponent = 0;
    std::frexp(value, &exponent);
    // Steps of the codes around the value; the product is exact, and so is the code of a value that carries.
    const int step = std::max(exponent - 1, 1 - format.bias) - format.fraction_bits;
    const double steps = std::nearbyint(std::ldexp(std::abs(value), -step));
    const int binade = step + format.fraction_bits + format.bias - 1;  // 0: the one of the smallest
    const double code = steps + static_cast<double>(binade) * (1 << format.fraction_bits);
    if (code <= format.largest) magnitude = static_cast<int>(code);
  }
  if (format.has_one_zero && (magnitude == 0 || magnitude == format.above)) {
    return static_cast<std::uint8_t>(magnitude);
  }
  return static_cast<std::uint8_t>(magnitude | sign);
}

double largest_of(ElementType type) {
  if (type == ElementType::kFloat8E8M0) return power_value(kPowerNan - 1);
  return small_float_value(type, static_cast<std::uint8_t>(small_float(type).largest));
}

double round_to(ElementType type, double value) {
  switch (type) {
    case ElementType::kFloat32:
      return static_cast<float>(value);
    case ElementType::kFloat16: {
      // Halves have 11 significant bits and floats 24: rounding to odd first makes double rounding harmless.
      float narrowed = static_cast<float>(value);
      if (static_cast<double>(narrowed) != value && std::isfinite(narrowed) && std::isfinite(value)) {
        std::uint32_t bits = std::bit_cast<std::uint32_t>(narrowed);
        if (std::abs(static_cast<double>(narrowed)) > std::abs(value)) --bits;
        narrowed = std::bit_cast<float>(bits | 1u);
      }
      return half_to_float(float_to_half(narrowed));
    }
    case ElementType::kBFloat16: {
      float narrowed = static_cast<float>(value);
      if (static_cast<double>(narrowed) != value && std::isfinite(narrowed) && std::isfinite(value)) {
        std::uint32_t bits = std::bit_cast<std::uint32_t>(narrowed);
        if (std::abs(static_cast<double>(narrowed)) > std::abs(value)) --bits;
        narrowed = std::bit_cast<float>(bits | 1u);
      }
      return bfloat16_to_float(float_to_bfloat16(narrowed));
    }
    default:
      return is_small_float(type) ? small_float_value(type, small_float_code(type, value)) : value;
  }
}

}  // namespace gcompile::ir
