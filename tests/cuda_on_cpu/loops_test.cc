// Loops and reductions of groups: every element once, every thread the same result,
// NaN and ties as on the CPU.
#include "gcrt/cuda/device/loops.h"

#include <cmath>
#include <cstring>

#include "device_memory.h"
#include "gcrt/cuda/device/launch.h"

namespace GCRT_NAMESPACE {
namespace {

using cuda_test::Device;

constexpr std::ptrdiff_t kCounts[] = {0, 1, 3, 4, 31, 32, 127, 128, 129, 500, 1024, 4095, 4096, 9000};

// Two warps side by side make two groups; a block makes one.
constexpr int rows_of(int threads) { return threads == 32 ? 2 : 1; }

template <int Threads>
GCRT_DEVICE std::ptrdiff_t row_of_thread() {
  return Threads == 32 ? warp_rank() : 0;
}

template <class... P, class... A>
void run_group(int threads, std::size_t shared_bytes, void (*kernel)(P...), A... arguments) {
  Queue queue;
  launch(queue, 1, static_cast<unsigned>(threads * rows_of(threads)), shared_bytes, kernel, arguments...);
  ASSERT_EQ(queue.error, cudaSuccess);
}

template <class F>
void for_each_size(const F& test) {
  test(std::integral_constant<int, 32>{});
  test(std::integral_constant<int, 64>{});
  test(std::integral_constant<int, 256>{});
  test(std::integral_constant<int, 1024>{});
}

template <int Threads, int L>
GCRT_GLOBAL(1024)
void count_visits(std::ptrdiff_t count, std::ptrdiff_t stride, std::int32_t* visits) {
  auto group = make_group<Threads>();
  std::int32_t* row = visits + row_of_thread<Threads>() * stride;
  vectorize<L>(group, count, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE {
    store(lane, row + i, add(load(lane, row + i), splat(lane, std::int32_t{1})));
  });
}

TEST(Vectorize, VisitsEveryElementOnce) {
  for_each_size([](auto size) {
    constexpr int threads = decltype(size)::value;
    for (const std::ptrdiff_t count : kCounts) {
      const std::ptrdiff_t stride = (count + 3) / 4 * 4 + 4;
      const std::vector<std::int32_t> zeros(static_cast<std::size_t>(stride * rows_of(threads)), 0);
      Device<std::int32_t> visits(zeros);
      run_group(threads, Group<threads>::kScratchBytes, &count_visits<threads, 4>, count, stride,
                visits.data());
      run_group(threads, Group<threads>::kScratchBytes, &count_visits<threads, 1>, count, stride,
                visits.data());
      const auto got = visits.read();
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(got[i], static_cast<std::ptrdiff_t>(i) % stride < count ? 2 : 0) << "of " << count;
      }
    }
  });
}

// Every thread writes what it thinks the results are; several reductions in a row use the same scratch.
template <int Threads, class T, int L>
GCRT_GLOBAL(1024)
void reduce_all(const T* x, std::ptrdiff_t count, std::ptrdiff_t stride, T* results) {
  auto group = make_group<Threads>();
  const T* row = x + row_of_thread<Threads>() * stride;
  const auto value = [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE { return load(lane, row + i); };
  T* mine = results + thread_rank() * 5;
  mine[0] = reduce_add<T, L>(group, count, value);
  mine[1] = reduce_max<T, L>(group, count, value);
  mine[2] = reduce_min<T, L>(group, count, value);
  mine[3] = reduce_mul<T, L>(group, count, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE {
    return blend(abs(load(lane, row + i)) > splat(lane, T(3)), splat(lane, T(2)), splat(lane, T(1)));
  });
  T part = 0;
  for (int repeat = 0; repeat < 3; ++repeat) part = add(part, reduce_add_part<T, L>(group, count, value));
  mine[4] = combine_add(group, part);
}

// Small whole numbers, so that the sums are exact in every order.
template <class T>
std::vector<T> whole_numbers(std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<T>(static_cast<int>(i * 37 % 9) - 4);
  return values;
}

template <class T, int L, int Threads>
void check_reductions(std::integral_constant<int, Threads>) {
  for (const std::ptrdiff_t count : kCounts) {
    const std::ptrdiff_t stride = (count + 3) / 4 * 4 + 4;
    const auto x = whole_numbers<T>(static_cast<std::size_t>(stride * rows_of(Threads)));
    Device<T> device_x(x);
    Device<T> results(static_cast<std::size_t>(Threads * rows_of(Threads) * 5));
    run_group(Threads, Group<Threads>::kScratchBytes, &reduce_all<Threads, T, L>,
              static_cast<const T*>(device_x.data()), count, stride, results.data());
    const auto got = results.read();
    for (int thread = 0; thread < Threads * rows_of(Threads); ++thread) {
      const T* row = x.data() + thread / Threads * stride;
      constexpr bool has_infinity = std::numeric_limits<T>::has_infinity;
      T expected[5] = {0, has_infinity ? T(-kInfinity<T>) : kLowest<T>,
                       has_infinity ? kInfinity<T> : kLargest<T>, 1, 0};
      for (std::ptrdiff_t i = 0; i < count; ++i) {
        expected[0] = add(expected[0], row[i]);
        expected[1] = max(expected[1], row[i]);
        expected[2] = min(expected[2], row[i]);
        if (row[i] == 4 || row[i] == -4) expected[3] = mul(expected[3], T(2));
      }
      expected[4] = mul(expected[0], T(3));
      for (int k = 0; k < 5; ++k) {
        ASSERT_EQ(got[static_cast<std::size_t>(thread * 5 + k)], expected[k])
            << count << " elements, result " << k;
      }
    }
  }
}

TEST(Reduce, AgreesWithOneThreadAndAmongThreads) {
  for_each_size([](auto size) {
    check_reductions<float, 4>(size);
    check_reductions<float, 1>(size);
  });
  check_reductions<double, 2>(std::integral_constant<int, 64>{});
  check_reductions<std::int32_t, 4>(std::integral_constant<int, 256>{});
  check_reductions<std::int64_t, 2>(std::integral_constant<int, 32>{});
  check_reductions<std::int8_t, 4>(std::integral_constant<int, 64>{});
}

template <int Threads>
GCRT_GLOBAL(1024)
void sum_floats(const float* x, std::ptrdiff_t count, float* results) {
  auto group = make_group<Threads>();
  results[thread_rank()] = reduce_add<float>(
      group, count, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE { return load(lane, x + i); });
}

TEST(Reduce, IsNearTheExactSumAndTheSameEachTime) {
  std::vector<float> x(9001);
  double exact = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = std::sin(static_cast<float>(i)) + 0.01f;
    exact += static_cast<double>(x[i]);
  }
  for_each_size([&](auto size) {
    constexpr int threads = decltype(size)::value;
    Device<float> device_x(x);
    float first = 0;
    for (int repeat = 0; repeat < 2; ++repeat) {
      Device<float> results(threads * rows_of(threads));
      run_group(threads, Group<threads>::kScratchBytes, &sum_floats<threads>,
                static_cast<const float*>(device_x.data()), std::ptrdiff_t{9001}, results.data());
      const auto got = results.read();
      if (repeat == 0) first = got[0];
      for (const float value : got) ASSERT_EQ(value, first);
    }
    EXPECT_NEAR(static_cast<double>(first), exact, 2e-3);
  });
}

template <int Threads, bool Max, bool Last>
GCRT_GLOBAL(1024)
void find_extremum(const float* x, std::ptrdiff_t count, std::int64_t* results) {
  auto group = make_group<Threads>();
  results[thread_rank()] = arg_reduce<float, Max, Last>(
      group, count, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE { return load(lane, x + i); });
}

template <bool Max, bool Last>
void check_extremum(const std::vector<float>& x) {
  ArgReduction<float, Max, Last> expected;
  for (const float value : x) expected.offer(value);
  for_each_size([&](auto size) {
    constexpr int threads = decltype(size)::value;
    Device<float> device_x(x);
    Device<std::int64_t> results(threads * rows_of(threads));
    run_group(threads, Group<threads>::kScratchBytes, &find_extremum<threads, Max, Last>,
              static_cast<const float*>(device_x.data()), static_cast<std::ptrdiff_t>(x.size()),
              results.data());
    for (const std::int64_t position : results.read()) ASSERT_EQ(position, expected.position());
  });
}

TEST(ArgReduce, FollowsTheRulesOfTheCpu) {
  for (const std::size_t count : {1u, 5u, 32u, 33u, 700u, 3000u}) {
    for (int nans = 0; nans < 3; ++nans) {
      std::vector<float> x(count);
      for (std::size_t i = 0; i < count; ++i) x[i] = static_cast<float>(i * 31 % 50);
      for (int n = 0; n < nans; ++n) x[(count / 2 + static_cast<std::size_t>(n) * 7) % count] = kNan<float>;
      check_extremum<true, false>(x);
      check_extremum<true, true>(x);
      check_extremum<false, false>(x);
      check_extremum<false, true>(x);
    }
  }
}

// The largest of a row kept in shared memory while the group goes over it twice, as a softmax does.
template <int Threads>
GCRT_GLOBAL(1024)
void stitched(const float* x, std::ptrdiff_t count, float* y) {
  GCRT_DYNAMIC_SHARED(unsigned char, shared);
  auto group = make_group<Threads>();
  float* row = reinterpret_cast<float*>(shared + Group<Threads>::kScratchBytes);
  vectorize(group, count,
            [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE { store(lane, row + i, load(lane, x + i)); });
  group.sync();
  const float largest = reduce_max<float>(
      group, count, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE { return load(lane, row + i); });
  const float sum = reduce_add<float>(group, count, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE {
    return exp(load(lane, row + i) - splat(lane, largest));
  });
  vectorize(group, count, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE {
    store(lane, y + i, exp(load(lane, row + i) - splat(lane, largest)) / splat(lane, sum));
  });
}

TEST(Group, StitchesASoftmax) {
  constexpr std::ptrdiff_t count = 1000;
  std::vector<float> x(count);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(static_cast<float>(i)) * 5;
  Device<float> device_x(x);
  Device<float> y(x.size());
  run_group(256, Group<256>::kScratchBytes + count * 4, &stitched<256>,
            static_cast<const float*>(device_x.data()), count, y.data());
  double sum = 0;
  for (const float value : x) sum += std::exp(static_cast<double>(value));
  const auto got = y.read();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double expected = std::exp(static_cast<double>(x[i])) / sum;
    ASSERT_NEAR(static_cast<double>(got[i]), expected, expected * 2e-6);
  }
}

}  // namespace
}  // namespace GCRT_NAMESPACE
