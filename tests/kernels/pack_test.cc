// Packs: memory access at every lane count, 16-bit floats over all patterns, integer dot products.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "gcrt/parallel.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {
namespace {

template <class F>
void for_each_lane_count(const F& test) {
  test(Lanes<1>{});
  test(Lanes<2>{});
  test(Lanes<4>{});
  test(Lanes<8>{});
  test(Lanes<16>{});
}

template <class T>
class PackOfType : public ::testing::Test {};
using ElementTypes = ::testing::Types<float, double, std::int8_t, std::uint8_t, std::int16_t, std::uint16_t,
                                      std::int32_t, std::uint32_t, std::int64_t, std::uint64_t>;
TYPED_TEST_SUITE(PackOfType, ElementTypes);

TYPED_TEST(PackOfType, LoadsAndStoresTouchExactlyTheirLanes) {
  using T = TypeParam;
  for_each_lane_count([](auto lane) {
    constexpr int n = decltype(lane)::value;
    T source[70];
    for (int i = 0; i < 70; ++i) source[i] = static_cast<T>(i + 1);
    T target[70] = {};
    store(lane, target + 1, load(lane, source + 3));
    for (int i = 0; i < 70; ++i) {
      EXPECT_EQ(target[i], i >= 1 && i < n + 1 ? static_cast<T>(i + 3) : T{0}) << "lane count " << n;
    }
    T strided[70] = {};
    store_strided(lane, strided, 3, load_strided(lane, source, 4));
    for (int i = 0; i < 70; ++i) {
      EXPECT_EQ(strided[i], i % 3 == 0 && i / 3 < n ? static_cast<T>(i / 3 * 4 + 1) : T{0});
    }
    T backwards[16] = {};
    store(lane, backwards, load_strided(lane, source + 40, -2));
    for (int i = 0; i < n; ++i) EXPECT_EQ(backwards[i], static_cast<T>(41 - 2 * i));
    T splatted[16] = {};
    store(lane, splatted, splat(lane, T{7}));
    for (int i = 0; i < 16; ++i) EXPECT_EQ(splatted[i], i < n ? T{7} : T{0});
  });
}

TYPED_TEST(PackOfType, GathersIotaAndHalves) {
  using T = TypeParam;
  for_each_lane_count([](auto lane) {
    constexpr int n = decltype(lane)::value;
    T source[70];
    for (int i = 0; i < 70; ++i) source[i] = static_cast<T>(i + 1);
    const auto index = sub(splat(lane, std::int64_t{60}), mul(iota(lane, 5), splat(lane, std::int64_t{2})));
    T gathered[16] = {};
    store(lane, gathered, gather(lane, source, index));
    for (int i = 0; i < n; ++i) EXPECT_EQ(gathered[i], static_cast<T>(61 - 2 * (5 + i)));
    if constexpr (n > 1) {
      T swapped[16] = {};
      const auto value = load(lane, source);
      store(lane, swapped, concatenate(high_half(value), low_half(value)));
      for (int i = 0; i < n; ++i) EXPECT_EQ(swapped[i], source[(i + n / 2) % n]);
    }
    EXPECT_EQ(reduce_add(load(lane, source)), static_cast<T>(n * (n + 1) / 2));
    EXPECT_EQ(reduce_max(load(lane, source)), static_cast<T>(n));
    EXPECT_EQ(reduce_min(load_strided(lane, source + 20, -1)), static_cast<T>(22 - n));
    for (int i = 0; i < 70; ++i) source[i] = static_cast<T>(i % 3 + 1);
    T product = 1;
    for (int i = 0; i < n; ++i) product = mul(product, source[i]);
    EXPECT_EQ(reduce_mul(load(lane, source)), product);
  });
}

TEST(Splat, KeepsTheSignOfZeroAndNan) {
  float values[8];
  store(Lanes<8>{}, values, splat(Lanes<8>{}, -0.0f));
  for (float v : values) EXPECT_TRUE(v == 0 && std::signbit(v));
  store(Lanes<8>{}, values, splat(Lanes<8>{}, std::nanf("")));
  for (float v : values) EXPECT_TRUE(std::isnan(v));
}

TEST(Vectorize, VisitsEveryIndexOnce) {
  for (std::ptrdiff_t count = 0; count < 70; ++count) {
    std::vector<int> visits(static_cast<std::size_t>(count));
    std::ptrdiff_t scalars = 0;
    vectorize(count, [&](auto lane, std::ptrdiff_t i) {
      if (decltype(lane)::value == 1) ++scalars;
      for (int j = 0; j < decltype(lane)::value; ++j) ++visits[static_cast<std::size_t>(i + j)];
    });
    for (int v : visits) EXPECT_EQ(v, 1);
    EXPECT_EQ(scalars, kLanes > 1 ? count % kLanes : count);
  }
}

TEST(ParallelFor, SerialWithoutThreadsAndCompleteWithThem) {
  std::vector<int> visits(100);
  const auto body = [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    for (; begin < end; ++begin) ++visits[static_cast<std::size_t>(begin)];
  };
  parallel_for(nullptr, 100, body);
  Threads threads{
      nullptr, 3,
      [](void*, std::ptrdiff_t count, void (*run)(void*, std::ptrdiff_t, std::ptrdiff_t), void* argument) {
        for (std::ptrdiff_t i = 0; i < count; ++i) run(argument, i, i + 1);
      }};
  parallel_for(&threads, 100, body);
  parallel_for(&threads, 0, body);
  for (int v : visits) EXPECT_EQ(v, 2);
}

// An independent conversion: through the definition of binary16.
double half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return fraction != 0 ? std::nan("") : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Half, EveryPatternLoadsExactlyAndReturns) {
  for_each_lane_count([](auto lane) {
    constexpr int n = decltype(lane)::value;
    for (std::uint32_t base = 0; base < 65536; base += n) {
      Half source[n];
      for (int i = 0; i < n; ++i)
        source[i].bits = static_cast<std::uint16_t>(base + static_cast<std::uint32_t>(i));
      float values[n];
      const auto loaded = load_as_float(lane, source);
      store(lane, values, loaded);
      Half back[n];
      store_from_float(lane, back, loaded);
      for (int i = 0; i < n; ++i) {
        const double expected = half_value(source[i].bits);
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(values[i]));
          ASSERT_EQ(back[i].bits, source[i].bits | 0x200) << "NaN becomes quiet and keeps its payload";
        } else {
          ASSERT_EQ(static_cast<double>(values[i]), expected);
          ASSERT_EQ(std::signbit(values[i]), std::signbit(expected));
          ASSERT_EQ(back[i].bits, source[i].bits);
        }
      }
    }
  });
}

// The neighbours of every midpoint between two halves decide how rounding goes.
TEST(Half, RoundsToNearestEvenAtEveryMidpoint) {
  for_each_lane_count([](auto lane) {
    constexpr int n = decltype(lane)::value;
    const auto convert_one = [&](float value) {
      Half out[n];
      store_from_float(lane, out, splat(lane, value));
      return out[n - 1].bits;
    };
    for (std::uint16_t bits = 0; bits < 0x7c00; ++bits) {
      const double low = half_value(bits);
      const double high = bits == 0x7bff ? 65536.0 : half_value(static_cast<std::uint16_t>(bits + 1));
      const float middle = static_cast<float>((low + high) / 2);
      const std::uint16_t even = static_cast<std::uint16_t>(bits + (bits & 1));
      ASSERT_EQ(convert_one(middle), even);
      ASSERT_EQ(convert_one(std::nextafterf(middle, 0)), bits);
      ASSERT_EQ(convert_one(std::nextafterf(middle, INFINITY)), bits + 1);
      ASSERT_EQ(convert_one(-middle), even | 0x8000);
    }
    ASSERT_EQ(convert_one(INFINITY), 0x7c00);
    ASSERT_EQ(convert_one(3e38f), 0x7c00);
    ASSERT_EQ(convert_one(1e-40f), 0);
  });
}

TEST(BFloat16, LoadsAndRounds) {
  for_each_lane_count([](auto lane) {
    constexpr int n = decltype(lane)::value;
    for (std::uint32_t base = 0; base < 65536; ++base) {
      BFloat16 source[n];
      for (auto& s : source) s.bits = static_cast<std::uint16_t>(base);
      const auto loaded = load_as_float(lane, source);
      float values[n];
      store(lane, values, loaded);
      BFloat16 back[n];
      store_from_float(lane, back, loaded);
      const bool is_nan = (base & 0x7fff) > 0x7f80;
      ASSERT_EQ(bit_cast<std::uint32_t>(values[n - 1]), base << 16);
      ASSERT_EQ(back[n - 1].bits, is_nan ? base | 0x40 : base);
      if (is_nan || (base & 0x7fff) == 0x7f80) continue;
      // Just below, at and just above the midpoint to the next value away from zero.
      const std::uint32_t middle = (base << 16) | 0x8000;
      const std::uint32_t expected[] = {base, base + (base & 1), base + 1};
      for (std::uint32_t d = 0; d < 3; ++d) {
        store_from_float(lane, back, splat(lane, bit_cast<float>(middle - 1 + d)));
        ASSERT_EQ(back[0].bits, expected[d]);
      }
    }
  });
}

TEST(Dot, ExactAtTheExtremesAndAtRandom) {
  for_each_lane_count([](auto lane) {
    constexpr int n = decltype(lane)::value;
    std::mt19937 random(7);
    for (int round = 0; round < 2000; ++round) {
      std::uint8_t u[4 * n];
      std::int8_t s[4 * n];
      std::int16_t a[2 * n], b[2 * n];
      for (int i = 0; i < 4 * n; ++i) {
        u[i] = static_cast<std::uint8_t>(round == 0 ? 255 : random());
        s[i] = static_cast<std::int8_t>(round == 0 ? 0x80 : random());
      }
      for (int i = 0; i < 2 * n; ++i) {
        a[i] = static_cast<std::int16_t>(round == 0 ? 0x8000 : random());
        b[i] = static_cast<std::int16_t>(round == 0 ? 0x8000 : random());
      }
      std::int32_t words[4][n], out[n];
      std::memcpy(words[0], u, sizeof(u));
      std::memcpy(words[1], s, sizeof(s));
      std::memcpy(words[2], a, sizeof(a));
      std::memcpy(words[3], b, sizeof(b));
      const std::int32_t start = static_cast<std::int32_t>(random());
      const auto acc = splat(lane, start);
      store(lane, out, dot4_u8s8(acc, load(lane, words[0]), load(lane, words[1])));
      for (int i = 0; i < n; ++i) {
        std::int64_t sum = start;
        for (int j = 0; j < 4; ++j) sum += u[4 * i + j] * s[4 * i + j];
        ASSERT_EQ(out[i], static_cast<std::int32_t>(static_cast<std::uint32_t>(sum)));
      }
      store(lane, out, madd_s16(acc, load(lane, words[2]), load(lane, words[3])));
      for (int i = 0; i < n; ++i) {
        const std::int64_t sum =
            start + std::int64_t{a[2 * i]} * b[2 * i] + std::int64_t{a[2 * i + 1]} * b[2 * i + 1];
        ASSERT_EQ(out[i], static_cast<std::int32_t>(static_cast<std::uint32_t>(sum)));
      }
    }
  });
}

TEST(Fma, RoundsOnceWhereTheMachineCan) {
  for_each_lane_count([](auto lane) {
    constexpr int n = decltype(lane)::value;
    const float one_up = 1.0f + 0x1p-23f;
    const double one_up_double = 1.0 + 0x1p-52;
    float f[n];
    store(lane, f, fma(splat(lane, one_up), splat(lane, one_up), splat(lane, -1.0f)));
    double d[n];
    store(lane, d, fma(splat(lane, one_up_double), splat(lane, one_up_double), splat(lane, -1.0)));
    for (int i = 0; i < n; ++i) {
      EXPECT_EQ(f[i], GCRT_HAS_FMA ? 0x1p-22f + 0x1p-46f : 0x1p-22f);
      EXPECT_EQ(d[i], GCRT_HAS_FMA ? 0x1p-51 + 0x1p-104 : 0x1p-51);
    }
  });
}

}  // namespace
}  // namespace GCRT_NAMESPACE
