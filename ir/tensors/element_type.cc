#include "ir/tensors/element_type.h"

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
    {"float8e4m3fn", 8, true, false, true, false},
    {"float8e4m3fnuz", 8, true, false, true, false},
    {"float8e5m2", 8, true, false, true, false},
    {"float8e5m2fnuz", 8, true, false, true, false},
};

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
  return bits >= 8 ? count * (bits / 8) : (count + 1) / 2;
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

float float8_to_float(ElementType type, std::uint8_t bits) {
  const bool e4 = type == ElementType::kFloat8E4M3FN || type == ElementType::kFloat8E4M3FNUZ;
  const bool fnuz = type == ElementType::kFloat8E4M3FNUZ || type == ElementType::kFloat8E5M2FNUZ;
  const int fraction_bits = e4 ? 3 : 2;
  const int bias = (e4 ? 7 : 15) + (fnuz ? 1 : 0);
  const int exponent_mask = e4 ? 15 : 31;
  const int exponent = (bits >> fraction_bits) & exponent_mask;
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const bool negative = (bits & 0x80) != 0;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  if (fnuz) {
    if (bits == 0x80) return kNan;
  } else if (e4) {
    if ((bits & 0x7f) == 0x7f) return kNan;
  } else if (exponent == exponent_mask) {
    if (fraction != 0) return kNan;
    return negative ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::infinity();
  }
  const float magnitude = exponent == 0 ? std::ldexp(static_cast<float>(fraction), 1 - bias - fraction_bits)
                                        : std::ldexp(static_cast<float>((1 << fraction_bits) + fraction),
                                                     exponent - bias - fraction_bits);
  return negative ? -magnitude : magnitude;
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
      return value;
  }
}

}  // namespace gcompile::ir
