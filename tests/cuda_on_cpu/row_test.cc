// Rows in registers: every element is read once, every reduction sees all of them, whatever is left over in
// the last slot.
#include "gcrt/cuda/row.h"

#include <cmath>

#include "device_memory.h"
#include "gcrt/cuda/device/launch.h"

namespace GCRT_NAMESPACE {
namespace {

using cuda_test::Device;

// Results of one thread.
constexpr int kResults = 5;

template <int Threads, class T, int Count, int L>
GCRT_GLOBAL(1024)
void walk_row(const T* x, std::int32_t* reads, T* y, T* results) {
  auto group = make_group<Threads>();
  const std::ptrdiff_t which = Threads == kWarpThreads ? warp_rank() : 0;
  const T* mine = x + which * Count;
  constexpr Row<Count, L> row{};
  const auto kept = keep(group, row, [&](auto lane, auto i) GCRT_LAMBDA_INLINE {
    std::int32_t* counters = reads + which * Count + i;
    for (int k = 0; k < L; ++k) ++counters[k];
    return load(lane, mine + i);
  });
  T* result = results + thread_rank() * kResults;
  result[0] = reduce_add<T>(group, row, kept);
  result[1] = reduce_max<T>(group, row, kept);
  result[2] = reduce_min<T>(group, row, kept);
  const T largest = result[1];
  const auto twice = keep(group, row, [&](auto lane, auto i) GCRT_LAMBDA_INLINE {
    return add(kept(lane, i), splat(lane, largest));
  });
  result[3] = reduce_add<T>(group, row, twice);
  result[4] = reduce_mul<T>(group, row, [&](auto lane, auto i) GCRT_LAMBDA_INLINE {
    return blend(abs(kept(lane, i)) > splat(lane, T(3)), splat(lane, T(2)), splat(lane, T(1)));
  });
  vectorize(group, row, [&](auto lane, auto i) GCRT_LAMBDA_INLINE {
    store(lane, y + which * Count + i, sub(twice(lane, i), kept(lane, i)));
  });
}

template <int Threads, class T, int Count, int L>
void check_row() {
  // Two warps side by side make two groups; a block makes one.
  constexpr int rows = Threads == kWarpThreads ? 2 : 1;
  std::vector<T> x(static_cast<std::size_t>(Count * rows));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(static_cast<int>(i * 37 % 9) - 4);
  // Powers of two within the range of the element: few, so that products are exact.
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % 61 != 7 && (x[i] == T(4) || x[i] == T(-4))) x[i] = T(1);
  }
  Device<T> device_x(x), y(x.size()), results(static_cast<std::size_t>(Threads * rows * kResults));
  Device<std::int32_t> reads(std::vector<std::int32_t>(x.size(), 0));
  Queue queue;
  launch(queue, 1, Threads * rows, Group<Threads>::kScratchBytes, &walk_row<Threads, T, Count, L>,
         device_x.data(), reads.data(), y.data(), results.data());
  ASSERT_EQ(queue.error, cudaSuccess);
  for (const std::int32_t count : reads.read()) ASSERT_EQ(count, 1) << Count << " elements";
  const auto got = results.read();
  const auto written = y.read();
  for (int r = 0; r < rows; ++r) {
    const T* row = x.data() + r * Count;
    T expected[kResults] = {0, row[0], row[0], 0, 1};
    for (int i = 0; i < Count; ++i) {
      expected[0] = add(expected[0], row[i]);
      expected[1] = max(expected[1], row[i]);
      expected[2] = min(expected[2], row[i]);
      if (row[i] == T(4) || row[i] == T(-4)) expected[4] = mul(expected[4], T(2));
    }
    for (int i = 0; i < Count; ++i) expected[3] = add(expected[3], add(row[i], expected[1]));
    for (int thread = r * Threads; thread < (r + 1) * Threads; ++thread) {
      for (int k = 0; k < kResults; ++k) {
        ASSERT_EQ(got[static_cast<std::size_t>(thread * kResults + k)], expected[k])
            << Count << " elements by " << Threads << " threads, result " << k;
      }
    }
    for (int i = 0; i < Count; ++i) ASSERT_EQ(written[static_cast<std::size_t>(r * Count + i)], expected[1]);
  }
}

template <int Threads>
void check_lengths() {
  check_row<Threads, float, 1, 1>();
  check_row<Threads, float, 31, 1>();
  check_row<Threads, float, 32, 1>();
  check_row<Threads, float, 33, 1>();
  check_row<Threads, float, 197, 1>();
  check_row<Threads, float, 4, 4>();
  check_row<Threads, float, 124, 4>();
  check_row<Threads, float, 128, 4>();
  check_row<Threads, float, 1000, 4>();
  check_row<Threads, float, 770, 2>();
}

TEST(Row, OfAWarpIsReadOnceAndReducedWhole) { check_lengths<32>(); }
TEST(Row, OfABlockIsReadOnceAndReducedWhole) {
  check_lengths<128>();
  check_lengths<512>();
  check_row<256, float, 8192, 4>();
  check_row<512, float, 5001, 1>();
}
TEST(Row, HasElementsOfEveryType) {
  check_row<32, double, 66, 2>();
  check_row<128, std::int64_t, 300, 2>();
  check_row<32, std::int32_t, 333, 1>();
  check_row<128, std::int8_t, 640, 4>();
}

// Values that are the same in all elements of a pack are kept once.
template <int Threads>
GCRT_GLOBAL(64)
void keep_scalars(float* y) {
  auto group = make_group<Threads>();
  constexpr Row<96, 4> row{};
  const auto kept =
      keep(group, row, [&](auto, auto i) GCRT_LAMBDA_INLINE { return static_cast<float>(i / 4); });
  static_assert(sizeof(kept) == 4, "one float for the only slot");
  vectorize(group, row,
            [&](auto lane, auto i) GCRT_LAMBDA_INLINE { store(lane, y + i, splat(lane, kept(lane, i))); });
}

TEST(Row, KeepsOneValueForAPack) {
  Device<float> y(96);
  Queue queue;
  launch(queue, 1, 32, 0, &keep_scalars<32>, y.data());
  ASSERT_EQ(queue.error, cudaSuccess);
  const auto got = y.read();
  for (std::size_t i = 0; i < got.size(); ++i) ASSERT_EQ(got[i], static_cast<float>(i / 4));
}

}  // namespace
}  // namespace GCRT_NAMESPACE
