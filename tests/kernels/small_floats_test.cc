// Floats of 8 bits: every code, and every number at which rounding turns.

#include "gcrt/small_floats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "gcrt/scalar/scalar.h"
#include "kernel_test.h"

namespace kernel_test {
namespace {

// What a code stands for, by the words of the format: written down here once more, as numbers.
struct Format {
  int exponent_bits, fraction_bits, bias;
  bool has_infinity, has_one_zero;
};

template <class F>
Format format_of();
template <>
Format format_of<Float8E4M3FN>() {
  return {4, 3, 7, false, false};
}
template <>
Format format_of<Float8E4M3FNUZ>() {
  return {4, 3, 8, false, true};
}
template <>
Format format_of<Float8E5M2>() {
  return {5, 2, 15, true, false};
}
template <>
Format format_of<Float8E5M2FNUZ>() {
  return {5, 2, 16, false, true};
}

double value_of(const Format& f, int code) {
  const int magnitude = code & 127, exponent = magnitude >> f.fraction_bits;
  const int fraction = magnitude & ((1 << f.fraction_bits) - 1);
  const double sign = code > 127 ? -1 : 1;
  if (f.has_one_zero && code == 128) return NAN;
  if (f.has_infinity && exponent == (1 << f.exponent_bits) - 1) return fraction == 0 ? sign * INFINITY : NAN;
  if (!f.has_infinity && !f.has_one_zero && magnitude == 127) return NAN;
  const double part = std::ldexp(fraction, -f.fraction_bits);
  return sign * (exponent == 0 ? std::ldexp(part, 1 - f.bias) : std::ldexp(1 + part, exponent - f.bias));
}

// The code of one number, from every lane of a pack.
template <class F, class L>
int code_of(L lane, float value) {
  F out[L::value];
  store_from_float(lane, out, splat(lane, value));
  for (const F& each : out) EXPECT_EQ(each.bits, out[0].bits);
  return out[0].bits;
}

template <class Body>
void for_each_lane_count(const Body& body) {
  body(Lanes<1>{});
  body(Lanes<4>{});
  body(Lanes<8>{});
  body(Lanes<16>{});
}

template <class F>
class SmallFloat : public testing::Test {};
using Formats = testing::Types<Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2, Float8E5M2FNUZ>;
TYPED_TEST_SUITE(SmallFloat, Formats);

TYPED_TEST(SmallFloat, EveryCodeLoadsExactlyAndReturns) {
  const Format format = format_of<TypeParam>();
  for_each_lane_count([&](auto lane) {
    constexpr int n = decltype(lane)::value;
    for (int first = 0; first < 256; first += n) {
      TypeParam codes[n];
      for (int i = 0; i < n; ++i) codes[i].bits = static_cast<std::uint8_t>(first + i);
      float values[n];
      store(lane, values, load_as_float(lane, codes));
      for (int i = 0; i < n; ++i) {
        const double want = value_of(format, first + i);
        if (std::isnan(want)) {
          EXPECT_TRUE(std::isnan(values[i])) << first + i;
          EXPECT_TRUE(std::isnan(value_of(format, code_of<TypeParam>(lane, values[i]))));
          continue;
        }
        EXPECT_EQ(static_cast<double>(values[i]), want) << first + i;
        EXPECT_EQ(std::signbit(values[i]), std::signbit(want));
        EXPECT_EQ(code_of<TypeParam>(lane, values[i]), first + i);
      }
    }
  });
}

TYPED_TEST(SmallFloat, RoundsToNearestEvenAtEveryMidpoint) {
  const Format format = format_of<TypeParam>();
  const int largest = static_cast<int>(TypeParam::kLargest), above = static_cast<int>(TypeParam::kAbove);
  for_each_lane_count([&](auto lane) {
    for (int code = 0; code <= largest; ++code) {
      // Behind the largest lies what would be the next number, had the exponent one more.
      const double low = value_of(format, code);
      const double step = code > 0 ? low - value_of(format, code - 1) : value_of(format, 1);
      const double next = code < largest ? value_of(format, code + 1) : low + step;
      const float middle = static_cast<float>((low + next) / 2);
      const int upper = code < largest ? code + 1 : above;
      const int even = code % 2 == 0 ? code : upper;
      const auto negative = [&](int c) { return format.has_one_zero && (c == 0 || c == 128) ? c : c | 128; };
      for (const float sign : {1.0f, -1.0f}) {
        const auto want = [&](int c) { return sign > 0 ? c : negative(c); };
        EXPECT_EQ(code_of<TypeParam>(lane, sign * middle), want(even)) << middle;
        EXPECT_EQ(code_of<TypeParam>(lane, sign * std::nextafter(middle, 0.0f)), want(code)) << middle;
        EXPECT_EQ(code_of<TypeParam>(lane, sign * std::nextafter(middle, INFINITY)), want(upper)) << middle;
      }
    }
    const int nan = static_cast<int>(TypeParam::kNan);
    for (const float large : {1e6f, 3e38f, INFINITY}) {
      EXPECT_EQ(code_of<TypeParam>(lane, large), above);
      EXPECT_EQ(code_of<TypeParam>(lane, -large), above | 128);
    }
    EXPECT_EQ(code_of<TypeParam>(lane, NAN) | 128, nan | 128);
    EXPECT_EQ(code_of<TypeParam>(lane, 1e-40f), 0);
    EXPECT_EQ(code_of<TypeParam>(lane, -0.0f), format.has_one_zero ? 0 : 128);
  });
}

TEST(PowerOfTwo, EveryCodeLoadsExactlyAndReturns) {
  for_each_lane_count([&](auto lane) {
    constexpr int n = decltype(lane)::value;
    for (int code = 0; code < 256; ++code) {
      Float8E8M0 codes[n];
      for (Float8E8M0& each : codes) each.bits = static_cast<std::uint8_t>(code);
      float values[n];
      store(lane, values, load_as_float(lane, codes));
      if (code == 255) {
        EXPECT_TRUE(std::isnan(values[n - 1]));
      } else {
        EXPECT_EQ(static_cast<double>(values[n - 1]), std::ldexp(1.0, code - 127)) << code;
      }
      EXPECT_EQ(code_of<Float8E8M0>(lane, values[n - 1]), code);
      if (code >= 254) continue;
      const float middle = static_cast<float>(std::ldexp(1.5, code - 127));
      EXPECT_EQ(code_of<Float8E8M0>(lane, middle), code + 1);
      EXPECT_EQ(code_of<Float8E8M0>(lane, std::nextafter(middle, 0.0f)), code);
    }
    for (const float none : {0.0f, -0.0f, -1.0f, 1e-39f, 3e38f, INFINITY, -INFINITY, NAN}) {
      EXPECT_EQ(code_of<Float8E8M0>(lane, none), 255) << none;
    }
  });
}

}  // namespace
}  // namespace kernel_test
