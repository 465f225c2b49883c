// Element-wise functions against libm in double (floating) and against wide arithmetic (integers).
#include "gcrt/scalar/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "gcrt/scalar/philox.h"

namespace GCRT_NAMESPACE {
namespace {

// The lane counts of emitted loops: tails, loops with 8-byte elements, all others.
template <class F>
void for_each_lane_count(const F& test) {
  test(Lanes<1>{});
  test(Lanes<kLanesFor<double>>{});
  test(Lanes<kLanes>{});
}

// A prime, so that the sweep meets every exponent with ever different fractions.
constexpr std::uint64_t kStride = 1009;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> special_values() {
  std::vector<float> values = {0.0f,
                               -0.0f,
                               1.0f,
                               -1.0f,
                               0.5f,
                               2.0f,
                               kInfinity,
                               -kInfinity,
                               1e-45f,
                               3e38f,
                               -3e38f,
                               1e-38f,
                               88.7228f,
                               88.7229f,
                               -103.97f,
                               -103.98f,
                               -87.4f,
                               89.0f,
                               8192.001f,
                               -1e-45f,
                               -104.5f,
                               std::nanf(""),
                               std::numeric_limits<float>::max(),
                               std::numeric_limits<float>::min()};
  while (values.size() % 16 != 0) values.push_back(0.25f);
  return values;
}

// The error of `actual` in units of the last place of a float near `exact`.
double error_in_ulp(float actual, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(exact)) return std::isnan(actual) ? 0 : 1e30;
  // An overflow to infinity may come one unit early or late.
  if (std::isinf(rounded) || std::isinf(actual)) {
    if (rounded == actual) return 0;
    return std::fabs(exact) < 3.5e38 && std::fabs(actual) > 3.402823e38f &&
                   std::signbit(actual) == std::signbit(exact)
               ? 1
               : 1e30;
  }
  if (std::isnan(actual)) return 1e30;
  if (exact == 0) return actual == 0 && std::signbit(actual) == std::signbit(exact) ? 0 : 1e30;
  int exponent;
  std::frexp(exact, &exponent);
  return std::fabs(static_cast<double>(actual) - exact) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

struct Worst {
  double error = 0;
  float argument = 0;
};

// The largest error of `function` over a sweep of all bit patterns, at the machine's lane count. Results less
// than `least` may be 0.
template <class F, class G>
Worst sweep(const F& function, const G& exact, double least = 0) {
  Worst worst;
  const Lanes<kLanes> lane{};
  std::vector<float> in(kLanes), out(kLanes);
  std::size_t filled = 0;
  const auto flush = [&] {
    store(lane, out.data(), function(load(lane, in.data())));
    for (std::size_t i = 0; i < out.size(); ++i) {
      const double expected = exact(static_cast<double>(in[i]));
      if (out[i] == 0 && expected < least) continue;
      const double error = error_in_ulp(out[i], expected);
      if (error > worst.error) worst = {error, in[i]};
    }
    filled = 0;
  };
  const auto push = [&](float value) {
    in[filled++] = value;
    if (filled == in.size()) flush();
  };
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += kStride) {
    push(bit_cast<float>(static_cast<std::uint32_t>(bits)));
  }
  for (float value : special_values()) push(value);
  while (filled != 0) push(1.0f);
  return worst;
}

// A result must not depend on the lane count: the tail of a loop gives what its body would have given.
template <class F>
void expect_same_at_every_lane_count(const F& function) {
  std::vector<float> in = special_values();
  std::mt19937 random(5);
  for (int i = 0; i < 16 * 400; ++i) in.push_back(bit_cast<float>(static_cast<std::uint32_t>(random())));
  std::uniform_real_distribution<float> near(-30.0f, 30.0f);
  for (int i = 0; i < 16 * 400; ++i) in.push_back(near(random));
  std::vector<float> expected(in.size());
  for (std::size_t i = 0; i < in.size(); ++i) expected[i] = function(in[i]);
  for_each_lane_count([&](auto lane) {
    constexpr int n = decltype(lane)::value;
    for (std::size_t i = 0; i < in.size(); i += n) {
      float out[n];
      store(lane, out, function(load(lane, &in[i])));
      for (std::size_t j = 0; j < n; ++j) {
        if (std::isnan(expected[i + j]) && std::isnan(out[j])) continue;
        ASSERT_EQ(bit_cast<std::uint32_t>(out[j]), bit_cast<std::uint32_t>(expected[i + j]))
            << "at " << in[i + j] << " with " << n << " lanes";
      }
    }
  });
}

#define FLOAT_FUNCTION_TEST(function, bound, exact) FLUSHED_FUNCTION_TEST(function, bound, 0, exact)
#define FLUSHED_FUNCTION_TEST(function, bound, least, exact)           \
  TEST(FloatFunction, function) {                                      \
    const auto f = [](auto x) { return GCRT_NAMESPACE::function(x); }; \
    const Worst worst = sweep(                                         \
        f, [](double x) -> double { return exact; }, least);           \
    EXPECT_LE(worst.error, bound) << "at " << worst.argument;          \
    expect_same_at_every_lane_count(f);                                \
    RecordProperty("ulp", std::to_string(worst.error));                \
  }
FLUSHED_FUNCTION_TEST(exp, 1.1, 2.4e-38, std::exp(x))
FLOAT_FUNCTION_TEST(expm1, 1.7, std::expm1(x))
FLOAT_FUNCTION_TEST(log, 0.9, std::log(x))
FLOAT_FUNCTION_TEST(log1p, 1.5, std::log1p(x))
FLOAT_FUNCTION_TEST(tanh, 5.8, std::tanh(x))
FLUSHED_FUNCTION_TEST(sigmoid, 2.3, 2.4e-38, x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)))
FLUSHED_FUNCTION_TEST(softplus, 1.7, 2.4e-38, x > 50 ? x : std::log1p(std::exp(x)))
FLOAT_FUNCTION_TEST(erf, 5.8, std::erf(x))
FLOAT_FUNCTION_TEST(sin, 2.0, std::sin(x))
FLOAT_FUNCTION_TEST(cos, 2.0, std::cos(x))
FLOAT_FUNCTION_TEST(tan, 3.5, std::tan(x))
FLOAT_FUNCTION_TEST(asin, 1.9, std::asin(x))
FLOAT_FUNCTION_TEST(acos, 1.9, std::acos(x))
FLOAT_FUNCTION_TEST(atan, 2.3, std::atan(x))
FLOAT_FUNCTION_TEST(sinh, 3.5, std::sinh(x))
FLOAT_FUNCTION_TEST(cosh, 3.5, std::cosh(x))
FLOAT_FUNCTION_TEST(asinh, 3.0, std::asinh(x))
FLOAT_FUNCTION_TEST(acosh, 3.0, std::acosh(x))
FLOAT_FUNCTION_TEST(atanh, 3.5, std::atanh(x))
FLOAT_FUNCTION_TEST(sqrt, 0.5, std::sqrt(x))
FLOAT_FUNCTION_TEST(reciprocal, 0.5, 1 / x)
FLOAT_FUNCTION_TEST(floor, 0, std::floor(x))
FLOAT_FUNCTION_TEST(ceil, 0, std::ceil(x))
FLOAT_FUNCTION_TEST(trunc, 0, std::trunc(x))
FLOAT_FUNCTION_TEST(round_half_even, 0, std::nearbyint(x))
FLOAT_FUNCTION_TEST(round_half_even_by_addition, 0, std::nearbyint(x))
FLOAT_FUNCTION_TEST(abs, 0, std::fabs(x))
FLOAT_FUNCTION_TEST(neg, 0, -x)

// Over all floats where results round to 1 or next to it.
TEST(FloatFunction, TanhAndErfStayWithinOne) {
  const auto expect_within_one = [](const auto& function, float low, float high) {
    for (float x = low; x < high;) {
      float in[kLanes], out[kLanes];
      for (float& value : in) value = x = std::nextafterf(x, kInfinity);
      store(Lanes<kLanes>{}, out, function(load(Lanes<kLanes>{}, in)));
      for (int i = 0; i < kLanes; ++i) ASSERT_LE(out[i], 1.0f) << "at " << in[i];
    }
    EXPECT_EQ(function(high), 1.0f);
    EXPECT_EQ(function(-kInfinity), -1.0f);
  };
  expect_within_one([](auto x) { return tanh(x); }, 7.0f, 9.5f);
  expect_within_one([](auto x) { return erf(x); }, 3.0f, 4.5f);
}

// sin and cos lose relative accuracy first where the argument is near a multiple of pi / 2.
TEST(FloatFunction, SinAndCosNearMultiplesOfHalfPi) {
  for (int k = -5215; k <= 5215; ++k) {
    float x = static_cast<float>(k * 1.57079632679489662);
    for (int step = -2; step <= 2; ++step) {
      float at = x;
      for (int i = 0; i < std::abs(step); ++i) at = std::nextafterf(at, step < 0 ? -kInfinity : kInfinity);
      ASSERT_LE(error_in_ulp(sin(at), std::sin(static_cast<double>(at))), 2.0) << at;
      ASSERT_LE(error_in_ulp(cos(at), std::cos(static_cast<double>(at))), 2.0) << at;
    }
  }
}

TEST(FloatFunction, ExactWhereMathematicsIs) {
  EXPECT_EQ(exp(0.0f), 1.0f);
  EXPECT_EQ(log(1.0f), 0.0f);
  EXPECT_EQ(sigmoid(0.0f), 0.5f);
  EXPECT_EQ(sigmoid(-200.0f), 0.0f);
  EXPECT_EQ(sigmoid(200.0f), 1.0f);
  EXPECT_EQ(tanh(20.0f), 1.0f);
  EXPECT_EQ(erf(-5.0f), -1.0f);
  EXPECT_EQ(cos(0.0f), 1.0f);
  EXPECT_EQ(exp(-200.0f), 0.0f);
  EXPECT_EQ(exp(200.0f), kInfinity);
  EXPECT_EQ(expm1(-100.0f), -1.0f);
}

TEST(DoubleFunction, IsLibmAtEveryLaneCount) {
  for_each_lane_count([](auto lane) {
    constexpr int n = decltype(lane)::value;
    std::mt19937 random(3);
    std::uniform_real_distribution<double> distribution(-1.0, 1.0);
    for (int round = 0; round < 50; ++round) {
      double in[n];
      for (double& x : in) x = distribution(random);
      const auto v = load(lane, in);
      const auto check = [&](auto result, double (*exact)(double)) {
        double out[n];
        store(lane, out, result);
        for (int i = 0; i < n; ++i) EXPECT_NEAR(out[i], exact(in[i]), 2e-15);
      };
      check(exp(v), [](double x) { return std::exp(x); });
      check(expm1(v), [](double x) { return std::expm1(x); });
      check(log1p(v), [](double x) { return std::log1p(x); });
      check(tanh(v), [](double x) { return std::tanh(x); });
      check(erf(v), [](double x) { return std::erf(x); });
      check(sin(v), [](double x) { return std::sin(x); });
      check(cos(v), [](double x) { return std::cos(x); });
      check(atanh(v), [](double x) { return std::atanh(x); });
      check(sigmoid(v), [](double x) { return 1 / (1 + std::exp(-x)); });
      check(softplus(v), [](double x) { return std::log1p(std::exp(x)); });
      check(sqrt(abs(v)), [](double x) { return std::sqrt(std::fabs(x)); });
      check(floor(v * 10.0), [](double x) { return std::floor(x * 10.0); });
      check(ceil(v * 10.0), [](double x) { return std::ceil(x * 10.0); });
      check(trunc(v * 10.0), [](double x) { return std::trunc(x * 10.0); });
      check(round_half_even(v * 10.0), [](double x) { return std::nearbyint(x * 10.0); });
    }
  });
}

TEST(Pow, AgreesWithDoubleForUniformAndMixedExponents) {
  const float exponents[] = {0.0f,  1.0f,  2.0f, 3.0f, 0.5f,      -1.0f,      -2.0f, 2.5f,
                             10.0f, -0.5f, 7.0f, 1e9f, kInfinity, -kInfinity, 0.1f,  std::nanf("")};
  std::vector<float> bases = special_values();
  std::mt19937 random(11);
  for (int i = 0; i < 16 * 50; ++i) bases.push_back(bit_cast<float>(static_cast<std::uint32_t>(random())));
  for_each_lane_count([&](auto lane) {
    constexpr int n = decltype(lane)::value;
    for (std::size_t i = 0; i < bases.size(); i += n) {
      for (float exponent : exponents) {
        float out[n];
        store(lane, out, pow(load(lane, &bases[i]), splat(lane, exponent)));
        for (std::size_t j = 0; j < n; ++j) {
          const double exact = std::pow(static_cast<double>(bases[i + j]), static_cast<double>(exponent));
          const double bound = exponent == 3.0f ? 1.1 : 0.501;
          // The cube of a small number rounds twice among the subnormals.
          ASSERT_LE(error_in_ulp(out[j], exact), std::fabs(exact) < 2e-38 ? 1.5 : bound)
              << bases[i + j] << " ^ " << exponent;
        }
      }
      float out[n];
      store(lane, out, pow(load(lane, &bases[i]), load(lane, exponents)));
      for (std::size_t j = 0; j < n; ++j) {
        const double exact = std::pow(static_cast<double>(bases[i + j]), static_cast<double>(exponents[j]));
        ASSERT_LE(error_in_ulp(out[j], exact), std::fabs(exact) < 2e-38 ? 1.5 : 1.1);
      }
    }
  });
}

TEST(Pow, IntegersWrapAndTruncate) {
  EXPECT_EQ(pow(3, 4), 81);
  EXPECT_EQ(pow(-2, 31), std::numeric_limits<int>::min());
  EXPECT_EQ(pow(2, 32), 0);
  EXPECT_EQ(pow(2, -1), 0);
  EXPECT_EQ(pow(0, -1), 0);
  EXPECT_EQ(pow(-1, -3), -1);
  EXPECT_EQ(pow(0, 0), 1);
  EXPECT_EQ(pow(std::uint8_t{3}, std::uint8_t{6}), std::uint8_t{729 & 255});
  int out[4];
  const int bases[] = {2, 3, -5, 10}, exponents[] = {10, 0, 3, 9};
  store(Lanes<4>{}, out, pow(load(Lanes<4>{}, bases), load(Lanes<4>{}, exponents)));
  EXPECT_EQ(out[0], 1024);
  EXPECT_EQ(out[1], 1);
  EXPECT_EQ(out[2], -125);
  EXPECT_EQ(out[3], 1000000000);
}

/// Bit for bit: near multiples of the divisor, far from them, and whatever floats can be, in one pack.
TEST(FloatArithmetic, FmodIsExact) {
  std::mt19937 random(5);
  const float special[] = {0.0f,  -0.0f, kInfinity, -kInfinity, std::nanf(""), 1.0f,
                           -3.0f, 0.7f,  1e-45f,    3.4e38f,    16777216.0f,   1e-38f};
  const auto any = [&](bool is_usual) {
    const auto pick = [&](int count) { return static_cast<int>(random() % static_cast<unsigned>(count)); };
    if (is_usual) return static_cast<float>(pick(200000) - 100000) * (pick(2) == 0 ? 0.7f : 0.37f);
    if (pick(3) == 0) return special[pick(12)];
    return bit_cast<float>(static_cast<std::uint32_t>(random()));
  };
  for_each_lane_count([&](auto lane) {
    constexpr int n = decltype(lane)::value;
    float a[n], b[n], out[n];
    for (int round = 0; round < 20000; ++round) {
      for (int i = 0; i < n; ++i) {
        b[i] = any(round % 2 == 0);
        a[i] = round % 4 == 0 ? b[i] * static_cast<float>(i + round) : any(round % 2 == 0);
      }
      store(lane, out, fmod(load(lane, a), load(lane, b)));
      for (int i = 0; i < n; ++i) {
        const float expected = std::fmod(a[i], b[i]);
        if (std::isnan(expected) && std::isnan(out[i])) continue;
        ASSERT_EQ(bit_cast<std::uint32_t>(out[i]), bit_cast<std::uint32_t>(expected))
            << a[i] << " mod " << b[i];
      }
    }
  });
}

TEST(FloatArithmetic, SpecialCases) {
  const float nan = std::nanf("");
  for_each_lane_count([&](auto lane) {
    constexpr int n = decltype(lane)::value;
    const auto expect = [&](auto result, float expected) {
      float out[n];
      store(lane, out, result);
      for (float o : out) {
        if (std::isnan(expected)) {
          EXPECT_TRUE(std::isnan(o));
        } else {
          EXPECT_EQ(o, expected);
        }
      }
    };
    const auto s = [&](float x) { return splat(lane, x); };
    expect(max(s(nan), s(1)), nan);
    expect(max(s(1), s(nan)), nan);
    expect(min(s(nan), s(1)), nan);
    expect(min(s(1), s(nan)), nan);
    expect(max(s(-3), s(2)), 2);
    expect(min(s(-3), s(2)), -3);
    expect(max(s(-kInfinity), s(kInfinity)), kInfinity);
    expect(sign(s(-4)), -1);
    expect(sign(s(0.1f)), 1);
    expect(sign(s(-0.0f)), 0);
    expect(sign(s(nan)), nan);
    expect(fmod(s(-7), s(3)), -1);
    expect(fmod(s(7.5f), s(-2)), 1.5f);
    expect(fmod(s(1), s(0)), nan);
    expect(div(s(1), s(0)), kInfinity);
    const auto expect_bool = [&](auto result, int expected) {
      std::uint8_t out[n];
      store(lane, out, result);
      for (std::uint8_t o : out) EXPECT_EQ(o, expected);
    };
    expect_bool(is_nan(s(nan)), 1);
    expect_bool(is_nan(s(kInfinity)), 0);
    expect_bool(is_inf(s(kInfinity)), 1);
    expect_bool(is_inf(s(-kInfinity)), 1);
    expect_bool(is_inf(s(-kInfinity), false, true), 0);
    expect_bool(is_inf(s(kInfinity), true, false), 0);
    expect_bool(is_inf(s(nan)), 0);
    expect_bool(less(s(nan), s(1)), 0);
    expect_bool(not_equal(s(nan), s(nan)), 1);
    expect_bool(equal(s(0.0f), s(-0.0f)), 1);
  });
}

// Integers against 64-bit (for 64-bit elements: 128-bit) arithmetic reduced to the type.
template <class T>
class IntegerArithmetic : public ::testing::Test {};
using IntegerTypes = ::testing::Types<std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t,
                                      std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(IntegerArithmetic, IntegerTypes);

__extension__ typedef __int128 Wide;

template <class T>
std::vector<T> integer_values() {
  using L = std::numeric_limits<T>;
  std::vector<T> values = {L::min(), L::max(), static_cast<T>(L::max() - 1), static_cast<T>(L::min() + 1)};
  for (const int v : {0, 1, 2, 3, 7, -1, -2, -7, 100, -100, 63, 31}) values.push_back(static_cast<T>(v));
  std::mt19937_64 random(2);
  // Packs of anything, of usual numbers, and of those around powers of two at which paths part.
  for (int i = 0; i < 48; ++i) values.push_back(static_cast<T>(random()));
  for (int i = 0; i < 64; ++i) values.push_back(static_cast<T>(random() % 1000));
  for (const int power : {31, 51, 52}) {
    const std::uint64_t near = (std::uint64_t{1} << power) - 2;
    for (unsigned i = 0; i < 64; ++i)
      values.push_back(static_cast<T>(i % 8 < 4 ? near + i % 4 : -near - i % 4));
  }
  return values;
}

TYPED_TEST(IntegerArithmetic, AgreesWithWideArithmetic) {
  using T = TypeParam;
  const std::vector<T> values = integer_values<T>();
  constexpr int width = static_cast<int>(8 * sizeof(T));
  for_each_lane_count([&](auto lane) {
    constexpr std::size_t n = decltype(lane)::value;
    for (std::size_t i = 0; i < values.size(); i += n) {
      for (T y : values) {
        const auto a = load(lane, &values[i]);
        const auto b = splat(lane, y);
        const auto check = [&](auto result, const char* name, auto exact) {
          T out[n];
          store(lane, out, result);
          for (std::size_t j = 0; j < n; ++j) {
            const T expected = static_cast<T>(exact(Wide{values[i + j]}, Wide{y}));
            ASSERT_EQ(out[j], expected)
                << name << "(" << +values[i + j] << ", " << +y << ") with " << n << " lanes";
          }
        };
        check(add(a, b), "add", [](Wide p, Wide q) { return p + q; });
        check(sub(a, b), "sub", [](Wide p, Wide q) { return p - q; });
        check(mul(a, b), "mul",
              [](Wide p, Wide q) { return static_cast<std::uint64_t>(p) * static_cast<std::uint64_t>(q); });
        check(div(a, b), "div", [](Wide p, Wide q) { return q == 0 ? Wide{0} : p / q; });
        check(fmod(a, b), "fmod", [](Wide p, Wide q) { return q == 0 ? Wide{0} : p % q; });
        check(mod(a, b), "mod", [](Wide p, Wide q) { return q == 0 ? Wide{0} : (p % q + q) % q; });
        check(neg(a), "neg", [](Wide p, Wide) { return -p; });
        check(abs(a), "abs", [](Wide p, Wide) { return p < 0 ? -p : p; });
        check(sign(a), "sign", [](Wide p, Wide) { return Wide{(p > 0) - (p < 0)}; });
        check(min(a, b), "min", [](Wide p, Wide q) { return p < q ? p : q; });
        check(max(a, b), "max", [](Wide p, Wide q) { return p > q ? p : q; });
        check(bit_and(a, b), "bit_and", [](Wide p, Wide q) { return p & q; });
        check(bit_or(a, b), "bit_or", [](Wide p, Wide q) { return p | q; });
        check(bit_xor(a, b), "bit_xor", [](Wide p, Wide q) { return p ^ q; });
        check(bit_not(a), "bit_not", [](Wide p, Wide) { return ~p; });
        check(shift_left(a, b), "shift_left", [](Wide p, Wide q) {
          return q < 0 || q >= width
                     ? Wide{0}
                     : static_cast<Wide>(static_cast<std::uint64_t>(p) << static_cast<int>(q));
        });
        check(shift_right(a, b), "shift_right", [](Wide p, Wide q) {
          return q < 0 || q >= width ? Wide{p < 0 ? -1 : 0} : p >> static_cast<int>(q);
        });
        check(select(less(a, b), a, b), "select less", [](Wide p, Wide q) { return p < q ? p : q; });
        const auto check_bool = [&](auto result, auto exact) {
          std::uint8_t out[n];
          store(lane, out, result);
          for (std::size_t j = 0; j < n; ++j) ASSERT_EQ(out[j], exact(values[i + j], y) ? 1 : 0);
        };
        check_bool(less_equal(a, b), [](T p, T q) { return p <= q; });
        check_bool(greater(a, b), [](T p, T q) { return p > q; });
        check_bool(greater_equal(a, b), [](T p, T q) { return p >= q; });
        check_bool(equal(a, b), [](T p, T q) { return p == q; });
        check_bool(not_equal(a, b), [](T p, T q) { return p != q; });
      }
    }
  });
}

// kat_vectors of Random123: counter, key, block.
TEST(Philox, KnownAnswers) {
  for_each_lane_count([](auto lane) {
    const auto check = [&](std::uint64_t position, std::uint64_t stream, std::uint64_t key, std::uint64_t low,
                           std::uint64_t high) {
      const auto p = splat(lane, position), k = splat(lane, key), s = splat(lane, stream);
      EXPECT_EQ(reduce_min(philox_low(p, k, s)), low);
      EXPECT_EQ(reduce_max(philox_high(p, k, s)), high);
    };
    check(0, 0, 0, 0xe169c58d6627e8d5, 0x9b00dbd8bc57ac4c);
    check(~0ull, ~0ull, ~0ull, 0x41c83b0e408f276d, 0x6d5451fda20bc7c6);
    check(0x85a308d3243f6a88, 0x0370734413198a2e, 0x299f31d0a4093822, 0x94fdccebd16cfe09, 0x24126ea15001e420);
  });
}

TEST(Logical, TruthTables) {
  for_each_lane_count([](auto lane) {
    for (int p = 0; p < 2; ++p) {
      for (int q = 0; q < 2; ++q) {
        const auto a = splat(lane, static_cast<std::uint8_t>(p));
        const auto b = splat(lane, static_cast<std::uint8_t>(q));
        EXPECT_EQ(reduce_max(logical_and(a, b)), p & q);
        EXPECT_EQ(reduce_min(logical_or(a, b)), p | q);
        EXPECT_EQ(reduce_min(logical_xor(a, b)), p ^ q);
        EXPECT_EQ(reduce_max(logical_not(a)), 1 - p);
      }
    }
  });
}

}  // namespace
}  // namespace GCRT_NAMESPACE
