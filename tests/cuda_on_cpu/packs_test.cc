// Packs in kernels against scalars: memory access at every lane count, and every element-wise function bit
// for bit against the packs of the CPU, which every_function_on_cpu.cc runs.
// clang-format off
#include "gcrt/cuda/device/device.h"  // before any other header of gcrt
// clang-format on

#include <cstring>
#include <random>

#include "device_memory.h"
#include "every_function.h"
#include "gcrt/cuda/device/launch.h"

#define DECLARE_ON_CPU(T) \
  bool apply_on_cpu(int number, int lanes, const T* a, const T* b, const T* c, T* out, std::size_t n);
DECLARE_ON_CPU(float)
DECLARE_ON_CPU(double)
DECLARE_ON_CPU(std::int8_t)
DECLARE_ON_CPU(std::uint8_t)
DECLARE_ON_CPU(std::int16_t)
DECLARE_ON_CPU(std::int32_t)
DECLARE_ON_CPU(std::uint32_t)
DECLARE_ON_CPU(std::int64_t)
#undef DECLARE_ON_CPU

namespace GCRT_NAMESPACE {
namespace {

using cuda_test::Device;

template <class T, int N>
GCRT_GLOBAL(32)
void apply(int number, const T* a, const T* b, const T* c, T* out, std::int32_t* known) {
  const std::ptrdiff_t i = (std::ptrdiff_t{blockIdx.x} * 32 + thread_rank()) * N;
  if (!apply_function<T>(number, Lanes<N>{}, a + i, b + i, c + i, out + i)) atomic_min(known, 0);
}

// Values that matter and values at random. 1024 of them.
template <class T>
std::vector<T> operand(std::uint32_t seed) {
  std::mt19937_64 random(seed);
  std::vector<T> values(1024);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint64_t bits = random();
    if constexpr (std::is_floating_point<T>::value) {
      const T special[] = {0,
                           -T(0),
                           1,
                           -1,
                           T(0.5),
                           2,
                           kInfinity<T>,
                           -kInfinity<T>,
                           kNan<T>,
                           kSmallestNormal<T> / 4,
                           kLargest<T>,
                           T(88.5),
                           T(-104),
                           T(8192.5),
                           T(1e-9),
                           T(2147483647)};
      const T wide = static_cast<T>(std::ldexp(static_cast<double>(bits >> 32) - 2147483648.0, -20));
      const T narrow = static_cast<T>(std::ldexp(static_cast<double>(bits >> 32) - 2147483648.0, -29));
      values[i] = i % 3 == 0 ? special[bits % 16] : i % 3 == 1 ? wide : narrow;
    } else {
      const T special[] = {0, 1, kLargest<T>, kLowest<T>, T(kLargest<T> - 1), static_cast<T>(-1), 7, 2};
      values[i] = i % 3 == 0   ? special[bits % 8]
                  : i % 3 == 1 ? static_cast<T>(bits)
                               : static_cast<T>(bits % 40);
    }
  }
  return values;
}

// Bit for bit, except that the bits of a NaN are not compared. On a GPU the functions of the C library are
// others, right to some units in the last place of a double; in float that may be one unit.
template <class T>
bool same(T a, T b) {
  if ((a != a && b != b) || std::memcmp(&a, &b, sizeof(T)) == 0) return true;
#if defined(__CUDACC__)
  if constexpr (std::is_floating_point<T>::value) {
    using Bits = UnsignedBits<T>;
    constexpr Bits kUnits = sizeof(T) == 8 ? 8 : 1;
    const Bits x = bit_cast<Bits>(a), y = bit_cast<Bits>(b);
    return (x ^ y) >> (8 * sizeof(T) - 1) == 0 && (x < y ? y - x : x - y) <= kUnits;
  }
#endif
  return false;
}

template <class T, int N>
void compare_functions(int expected_count) {
  const std::vector<T> a = operand<T>(1);
  const std::vector<T> b = operand<T>(2);
  const std::vector<T> c = operand<T>(3);
  Device<T> device_a(a);
  Device<T> device_b(b);
  Device<T> device_c(c);
  int number = 0;
  for (;; ++number) {
    std::vector<T> expected(a.size());
    if (!apply_on_cpu(number, N, a.data(), b.data(), c.data(), expected.data(), a.size())) break;
    Device<T> out(a.size());
    Device<std::int32_t> known(std::vector<std::int32_t>{1});
    Queue queue;
    launch(queue, 1024 / 32 / N, 32, 0, &apply<T, N>, number, device_a.data(), device_b.data(),
           device_c.data(), out.data(), known.data());
    ASSERT_EQ(queue.error, cudaSuccess);
    ASSERT_EQ(known.read()[0], 1);
    const std::vector<T> got = out.read();
    for (std::size_t i = 0; i < got.size(); ++i) {
      ASSERT_TRUE(same(got[i], expected[i]))
          << "function " << number << " of " << +a[i] << ", " << +b[i] << ", " << +c[i] << " is " << +got[i]
          << " on the device and " << +expected[i] << " on the CPU, " << N << " lanes";
    }
  }
  EXPECT_EQ(number, expected_count);
}

constexpr int kFloating = 73;
constexpr int kInteger = 48;

TEST(Functions, AreTheSameOnBothTargets) {
  compare_functions<float, 1>(kFloating);
  compare_functions<float, 4>(kFloating);
  compare_functions<double, 2>(kFloating);
  compare_functions<std::int8_t, 4>(kInteger);
  compare_functions<std::uint8_t, 16>(kInteger);
  compare_functions<std::int16_t, 8>(kInteger);
  compare_functions<std::int32_t, 4>(kInteger);
  compare_functions<std::uint32_t, 1>(kInteger);
  compare_functions<std::int64_t, 2>(kInteger);
}

template <class T, int N>
GCRT_GLOBAL(32)
void move_packs(const T* x, T* y) {
  const Lanes<N> lane{};
  const std::ptrdiff_t i = std::ptrdiff_t{thread_rank()} * N;
  store(lane, y + i, load(lane, x + i));
  store_strided(lane, y + 512 + thread_rank(), 32, load_strided(lane, x + thread_rank(), 32));
  const auto backwards = sub(splat(lane, std::int64_t{N - 1}), iota(lane, 0));
  store(lane, y + 1024 + i, gather(lane, x + i, backwards));
  if constexpr (N > 1) {
    const auto value = load(lane, x + i);
    store(lane, y + 1536 + i, concatenate(high_half(value), low_half(value)));
  }
}

template <class T, int N>
void check_moves() {
  std::vector<T> x(512);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i * 5 + 1);
  Device<T> device_x(x);
  Device<T> y(2048);
  Queue queue;
  launch(queue, 1, 32, 0, &move_packs<T, N>, device_x.data(), y.data());
  ASSERT_EQ(queue.error, cudaSuccess);
  const std::vector<T> got = y.read();
  for (std::size_t i = 0; i < 32 * N; ++i) {
    ASSERT_EQ(got[i], x[i]);
    ASSERT_EQ(got[512 + i], x[i]);
    ASSERT_EQ(got[1024 + i], x[i / N * N + (N - 1 - i % N)]);
    if (N == 1) continue;
    ASSERT_EQ(got[1536 + i], x[i / N * N + (i + N / 2) % N]);
  }
}

TEST(Packs, LoadStoreGatherAndSplit) {
  check_moves<float, 1>();
  check_moves<float, 2>();
  check_moves<float, 4>();
  check_moves<float, 8>();
  check_moves<float, 16>();
  check_moves<double, 2>();
  check_moves<std::int8_t, 16>();
  check_moves<std::uint8_t, 4>();
  check_moves<std::int16_t, 8>();
  check_moves<std::int64_t, 4>();
}

template <int N>
GCRT_GLOBAL(32)
void round_halves(int number, const float* a, float* out, Half* half) {
  const std::ptrdiff_t i = std::ptrdiff_t{thread_rank()} * N;
  const Lanes<N> lane{};
  through_halves(number, lane, a + i, out + i);
  store_from_float(lane, half + i, load(lane, a + i));
  if (number == 2) store(lane, out + i, load_as_float(lane, half + i));
}

TEST(Packs, RoundTo16Bits) {
  const std::vector<float> values = operand<float>(4);
  const std::vector<float> x(values.begin(), values.begin() + 128);
  Device<float> device_x(x);
  for (int number = 0; number < 3; ++number) {
    Device<float> y(x.size());
    Device<Half> half(x.size());
    Queue queue;
    launch(queue, 1, 32, 0, &round_halves<4>, number, device_x.data(), y.data(), half.data());
    const std::vector<float> got = y.read();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float expected =
          number == 0 ? bfloat16_to_float(float_to_bfloat16(x[i])) : half_to_float(float_to_half(x[i]));
      ASSERT_TRUE(same(got[i], expected)) << x[i];
    }
  }
}

template <int N>
GCRT_GLOBAL(32)
void round_small_floats(int number, const float* a, float* out) {
  const std::ptrdiff_t i = std::ptrdiff_t{thread_rank()} * N;
  through_small_floats(number, Lanes<N>{}, a + i, out + i);
}

// Packs round as single lanes do, which tests/kernels/small_floats_test.cc holds to the formats.
TEST(Packs, RoundTo8Bits) {
  const std::vector<float> values = operand<float>(4);
  const std::vector<float> x(values.begin(), values.begin() + 128);
  Device<float> device_x(x);
  for (int number = 0; number < 5; ++number) {
    Device<float> y(x.size());
    Queue queue;
    launch(queue, 1, 32, 0, &round_small_floats<4>, number, device_x.data(), y.data());
    const std::vector<float> got = y.read();
    for (std::size_t i = 0; i < x.size(); ++i) {
      float expected;
      through_small_floats(number, Lanes<1>{}, &x[i], &expected);
      ASSERT_TRUE(same(got[i], expected)) << x[i];
    }
  }
}

}  // namespace
}  // namespace GCRT_NAMESPACE
