// Casts between every pair of element types, with the results that C++ leaves undefined.
#include "gcrt/scalar/cast.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

namespace GCRT_NAMESPACE {
namespace {

// The lane counts of emitted loops: tails, loops with 8-byte elements, all others.
template <class F>
void for_each_lane_count(const F& test) {
  test(Lanes<1>{});
  test(Lanes<kLanesFor<double>>{});
  test(Lanes<kLanes>{});
}

// ONNX Cast of one value, written with comparisons in long double, which holds every 64-bit integer.
template <class To, class From>
To expected_cast(From value) {
  if constexpr (std::is_floating_point<From>::value && std::is_integral<To>::value) {
    if (std::isnan(value)) return 0;
    const long double exact = std::trunc(static_cast<long double>(value));
    if (exact <= static_cast<long double>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
    if (exact >= static_cast<long double>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    return static_cast<To>(exact);
  } else {
    return static_cast<To>(value);
  }
}

template <class From>
std::vector<From> values_of() {
  std::vector<From> values;
  std::mt19937_64 random(1);
  if constexpr (std::is_floating_point<From>::value) {
    const From infinity = std::numeric_limits<From>::infinity();
    values = {From(0),
              From(-0.0),
              From(0.5),
              From(-0.5),
              From(0.999),
              From(-0.999),
              From(1.5),
              From(-1.5),
              infinity,
              -infinity,
              std::numeric_limits<From>::quiet_NaN(),
              From(1e30),
              From(-1e30)};
    // On both sides of every boundary of an integer type.
    for (int power : {7, 8, 15, 16, 31, 32, 63, 64}) {
      for (From sign : {From(1), From(-1)}) {
        const From boundary = sign * std::ldexp(From(1), power);
        for (From v : {boundary, std::nextafter(boundary, From(0)), std::nextafter(boundary, 2 * boundary),
                       boundary - 1, boundary + 1, boundary - From(0.5), boundary + From(0.5)}) {
          values.push_back(v);
        }
      }
    }
    for (int i = 0; i < 400; ++i) {
      values.push_back(std::ldexp(static_cast<From>(static_cast<std::int64_t>(random())),
                                  -static_cast<int>(random() % 70)));
    }
  } else {
    values = {std::numeric_limits<From>::min(),
              std::numeric_limits<From>::max(),
              From{0},
              From{1},
              static_cast<From>(-1),
              From{127},
              static_cast<From>(128),
              static_cast<From>(255),
              static_cast<From>(256),
              static_cast<From>(-129)};
    for (int i = 0; i < 200; ++i) values.push_back(static_cast<From>(random() >> (random() % 64)));
  }
  while (values.size() % 16 != 0) values.push_back(From{3});
  return values;
}

template <class From, class To>
void test_pair() {
  const std::vector<From> values = values_of<From>();
  for_each_lane_count([&](auto lane) {
    constexpr std::size_t n = decltype(lane)::value;
    for (std::size_t i = 0; i < values.size(); i += n) {
      To out[n];
      store(lane, out, cast<To>(lane, load(lane, &values[i])));
      std::uint8_t truth[n];
      store(lane, truth, cast_bool(lane, load(lane, &values[i])));
      for (std::size_t j = 0; j < n; ++j) {
        const From value = values[i + j];
        const To expected = expected_cast<To>(value);
        if (!std::isnan(static_cast<double>(expected))) {
          ASSERT_EQ(out[j], expected) << "from " << +value << " with " << n << " lanes";
        } else {
          ASSERT_TRUE(std::isnan(static_cast<double>(out[j])));
        }
        ASSERT_EQ(truth[j], value != From{0} ? 1 : 0);
      }
    }
  });
}

template <class From>
class CastFrom : public ::testing::Test {};
using ElementTypes = ::testing::Types<float, double, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
                                      std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(CastFrom, ElementTypes);

TYPED_TEST(CastFrom, ToFloating) {
  test_pair<TypeParam, float>();
  test_pair<TypeParam, double>();
}
TYPED_TEST(CastFrom, ToSmallIntegers) {
  test_pair<TypeParam, std::int8_t>();
  test_pair<TypeParam, std::uint8_t>();
  test_pair<TypeParam, std::int16_t>();
  test_pair<TypeParam, std::uint16_t>();
}
TYPED_TEST(CastFrom, ToLargeIntegers) {
  test_pair<TypeParam, std::int32_t>();
  test_pair<TypeParam, std::uint32_t>();
  test_pair<TypeParam, std::int64_t>();
  test_pair<TypeParam, std::uint64_t>();
}

// A double just beside a midpoint of two halves: rounding to float first would land on the midpoint.
TEST(CastToHalf, RoundsDoubleOnce) {
  for_each_lane_count([](auto lane) {
    const double midpoint = 1.0 + 0x1p-11;
    const auto half = [&](double x) { return reduce_max(cast<Half>(lane, splat(lane, x))); };
    EXPECT_EQ(half(midpoint), 1.0f);
    EXPECT_EQ(half(midpoint + 0x1p-40), 1.0f + 0x1p-10f);
    EXPECT_EQ(half(midpoint - 0x1p-40), 1.0f);
    EXPECT_EQ(half(-midpoint - 0x1p-40), -1.0f - 0x1p-10f);
    EXPECT_EQ(half(1 + 0x1p-10 + 0x1p-11), 1.0f + 0x1p-9f);
    EXPECT_EQ(half(1 + 0x1p-10 + 0x1p-11 - 0x1p-40), 1.0f + 0x1p-10f);
    EXPECT_EQ(half(65520.0), std::numeric_limits<float>::infinity());
    EXPECT_EQ(half(65519.999999999), 65504.0f);
    EXPECT_EQ(half(1e300), std::numeric_limits<float>::infinity());
    EXPECT_EQ(half(0x1p-25), 0.0f);
    EXPECT_EQ(half(0x1p-25 + 0x1p-60), 0x1p-24f);
    const double bf_midpoint = 1.0 + 0x1p-8;
    const auto bfloat = [&](double x) { return reduce_max(cast<BFloat16>(lane, splat(lane, x))); };
    EXPECT_EQ(bfloat(bf_midpoint), 1.0f);
    EXPECT_EQ(bfloat(bf_midpoint + 0x1p-40), 1.0f + 0x1p-7f);
    EXPECT_EQ(bfloat(bf_midpoint - 0x1p-40), 1.0f);
    EXPECT_TRUE(std::isnan(bfloat(std::nan(""))));
  });
}

TEST(CastToHalf, RoundsFloatsAndIntegers) {
  for_each_lane_count([](auto lane) {
    EXPECT_EQ(reduce_max(cast<Half>(lane, splat(lane, 2049))), 2048.0f);
    EXPECT_EQ(reduce_max(cast<Half>(lane, splat(lane, 2051))), 2052.0f);
    EXPECT_EQ(reduce_max(cast<Half>(lane, splat(lane, std::uint8_t{255}))), 255.0f);
    EXPECT_EQ(reduce_max(cast<BFloat16>(lane, splat(lane, 257.0f))), 256.0f);
    EXPECT_EQ(reduce_max(cast<BFloat16>(lane, splat(lane, std::int64_t{259}))), 260.0f);
  });
}

TEST(CastBool, NanIsTrueAndMinusZeroIsFalse) {
  for_each_lane_count([](auto lane) {
    EXPECT_EQ(reduce_min(cast_bool(lane, splat(lane, std::nanf("")))), 1);
    EXPECT_EQ(reduce_max(cast_bool(lane, splat(lane, -0.0f))), 0);
    EXPECT_EQ(reduce_min(cast_bool(lane, splat(lane, 1e-45f))), 1);
  });
}

template <class To>
void test_saturate() {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = {-infinity, -1e30f,        -2147483904.0f, -32769.0f, -0.0f,
                               0.0f,      2147483648.0f, 1e30f,          infinity};
  for (int half = -600; half <= 600; ++half) {
    const float value = static_cast<float>(half) / 2;  // every tie around the range
    values.insert(values.end(), {value, std::nextafter(value, -infinity), std::nextafter(value, infinity)});
  }
  for_each_lane_count([&](auto lane) {
    constexpr int n = decltype(lane)::value;
    for (std::size_t i = 0; i + n <= values.size(); ++i) {
      alignas(64) float from[n];
      alignas(64) To actual[n];
      std::copy_n(&values[i], n, from);
      for (const float shift : {0.0f, 1.0f, -128.0f, 133.0f, 255.0f}) {
        const auto expect = [&](float largest) {
          for (int j = 0; j < n; ++j) {
            const float value = values[i + static_cast<std::size_t>(j)];
            if (std::abs(value) > largest) continue;
            EXPECT_EQ(actual[j], expected_cast<To>(std::nearbyint(value) + shift)) << value << " " << shift;
          }
        };
        store(lane, actual, saturate<To>(lane, load(lane, from), shift));
        expect(infinity);
        store(lane, actual, saturate_word<To>(lane, load(lane, from), shift));
        expect(2147480000.0f);
      }
    }
  });
}

TEST(Saturate, RoundsToNearestEvenAndStaysInTheRange) {
  test_saturate<std::int8_t>();
  test_saturate<std::uint8_t>();
}

TEST(NumbersOnly, MinAndMax) {
  for_each_lane_count([](auto lane) {
    const auto low = splat(lane, -2.5f), high = splat(lane, 3.0f);
    float smaller[kLanes] = {}, larger[kLanes] = {};
    store(lane, smaller, at_most(high, low));
    store(lane, larger, at_least(low, high));
    for (int j = 0; j < lane.value; ++j) {
      EXPECT_EQ(smaller[j], -2.5f);
      EXPECT_EQ(larger[j], 3.0f);
    }
  });
}

}  // namespace
}  // namespace GCRT_NAMESPACE
