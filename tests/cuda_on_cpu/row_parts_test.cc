// Rows that blocks share: every element once whatever the parts, results that depend on the sizes alone, NaN
// and ties as in a row of one block, and what a later kernel reads of the rows.
#include "gcrt/cuda/row_parts.h"

#include <cmath>
#include <cstring>

#include "device_memory.h"
#include "gcrt/cuda/device/launch.h"

namespace GCRT_NAMESPACE {
namespace {

using cuda_test::Device;

constexpr int kThreads = 64, kGrain = 128;
constexpr int kCounts[] = {0, 1, 5, 127, 128, 129, 640, 1023, 4097, 9000};
constexpr int kParts[] = {1, 2, 3, 7, 100};
constexpr int kResults = 6;

// Sums, extrema, products and positions of each row, and its sum once more from a kernel behind.
template <class T, int L, class Index>
GCRT_GLOBAL(kThreads)
void reduce_rows(const T* x, Index count, Index stride, int parts, float* workspace, std::uint32_t* counters,
                 T* results, std::int64_t* positions) {
  await_previous_grid();
  auto group = make_group<kThreads>();
  const int worker = static_cast<int>(blockIdx.x) / parts;
  const RowPart<Index, kResults> row(count, parts, kGrain, workspace);
  const T* mine = x + stride * worker;
  const auto value = [&](auto lane, Index i) GCRT_LAMBDA_INLINE { return load(lane, mine + i); };
  const T part0 = reduce_add<T, L>(group, row, value);
  const T part1 = reduce_max<T, L>(group, row, value);
  const T part2 = reduce_min<T, L>(group, row, value);
  const T part3 = reduce_mul<T, L>(group, row, [&](auto lane, Index i) GCRT_LAMBDA_INLINE {
    return blend(abs(load(lane, mine + i)) > splat(lane, T(3)), splat(lane, T(2)), splat(lane, T(1)));
  });
  const auto part4 = arg_reduce<T, true, false>(group, row, value);
  const auto part5 = arg_reduce<T, false, true>(group, row, value);
  row.leave(group, 0, part0);
  row.leave(group, 1, part1);
  row.leave(group, 2, part2);
  row.leave(group, 3, part3);
  row.leave(group, 4, part4);
  row.leave(group, 5, part5);
  if (!row.arrives_last(counters)) return;
  const T acc0 = join_add(group, row, 0, part0);
  const T acc1 = join_max(group, row, 1, part1);
  const T acc2 = join_min(group, row, 2, part2);
  const T acc3 = join_mul(group, row, 3, part3);
  const std::int64_t acc4 = join_arg<T, true, false>(group, row, 4, part4);
  const std::int64_t acc5 = join_arg<T, false, true>(group, row, 5, part5);
  row.keep(group, 0, acc0);
  // All threads know them.
  if (group.rank() == kThreads - 1) {
    T* const to = results + worker * 4;
    to[0] = acc0, to[1] = acc1, to[2] = acc2, to[3] = acc3;
    positions[worker * 2] = acc4, positions[worker * 2 + 1] = acc5;
  }
}

template <class T, int L, class Index>
GCRT_GLOBAL(kThreads)
void add_sum(const T* x, Index count, Index stride, int parts, float* workspace, T* y) {
  await_previous_grid();
  auto group = make_group<kThreads>();
  const int worker = static_cast<int>(blockIdx.x) / parts;
  const RowPart<Index, kResults> row(count, parts, kGrain, workspace);
  const T acc0 = row.template kept<T>(0);
  vectorize<L>(group, row, [&](auto lane, Index i) GCRT_LAMBDA_INLINE {
    store(lane, y + stride * worker + i, add(load(lane, x + stride * worker + i), splat(lane, acc0)));
  });
}

// Small whole numbers, so that sums are exact in every order; few fours, so that products are.
template <class T>
std::vector<T> whole_numbers(std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = static_cast<T>(static_cast<int>(i * 37 % 9) - 4);
    if (i % 1500 != 7 && (values[i] == T(4) || values[i] == T(-4))) values[i] = T(1);
  }
  return values;
}

template <class T, int L, class Index>
void check_rows(int rows, int count, int parts) {
  const Index stride = static_cast<Index>((count + 7) / 4 * 4);
  const auto x = whole_numbers<T>(static_cast<std::size_t>(stride) * static_cast<std::size_t>(rows));
  Device<T> device_x(x), results(static_cast<std::size_t>(rows) * 4), y(x);
  Device<std::int64_t> positions(static_cast<std::size_t>(rows) * 2);
  Device<float> workspace(static_cast<std::size_t>(kResults * (rows + rows * parts) * kRowCellBytes / 4));
  Device<std::uint32_t> counters(std::vector<std::uint32_t>(static_cast<std::size_t>(rows), 0));
  Queue queue;
  for (int repeat = 0; repeat < 2; ++repeat) {  // counters are left as they were found
    launch_overlapping(queue, static_cast<unsigned>(rows * parts), kThreads, Group<kThreads>::kScratchBytes,
                       &reduce_rows<T, L, Index>, device_x.data(), static_cast<Index>(count), stride, parts,
                       workspace.data(), counters.data(), results.data(), positions.data());
    launch_overlapping(queue, static_cast<unsigned>(rows * parts), kThreads, Group<kThreads>::kScratchBytes,
                       &add_sum<T, L, Index>, device_x.data(), static_cast<Index>(count), stride, parts,
                       workspace.data(), y.data());
  }
  ASSERT_EQ(queue.error, cudaSuccess);
  const auto got = results.read(), moved = y.read();
  const auto found = positions.read();
  for (int r = 0; r < rows; ++r) {
    const T* row = x.data() + stride * r;
    constexpr bool has_infinity = std::numeric_limits<T>::has_infinity;
    T expected[4] = {0, has_infinity ? T(-kInfinity<T>) : kLowest<T>,
                     has_infinity ? kInfinity<T> : kLargest<T>, 1};
    ArgReduction<T, true, false> largest;
    ArgReduction<T, false, true> smallest;
    for (int i = 0; i < count; ++i) {
      expected[0] = add(expected[0], row[i]);
      expected[1] = max(expected[1], row[i]);
      expected[2] = min(expected[2], row[i]);
      if (row[i] == T(4) || row[i] == T(-4)) expected[3] = mul(expected[3], T(2));
      largest.offer(row[i]);
      smallest.offer(row[i]);
    }
    for (int k = 0; k < 4; ++k) {
      ASSERT_EQ(got[static_cast<std::size_t>(r * 4 + k)], expected[k])
          << "result " << k << " of row " << r << " of " << count << " in " << parts << " parts";
    }
    ASSERT_EQ(found[static_cast<std::size_t>(r * 2)], count == 0 ? -1 : largest.position())
        << count << " in " << parts;
    ASSERT_EQ(found[static_cast<std::size_t>(r * 2 + 1)], count == 0 ? -1 : smallest.position())
        << count << " in " << parts;
    for (int i = 0; i < static_cast<int>(stride); ++i) {
      const std::size_t at =
          static_cast<std::size_t>(stride) * static_cast<std::size_t>(r) + static_cast<std::size_t>(i);
      ASSERT_EQ(moved[at], i < count ? add(x[at], expected[0]) : x[at]) << i << " of " << count;
    }
  }
  for (const std::uint32_t counter : counters.read()) ASSERT_EQ(counter, 0u);
}

template <class T, int L, class Index>
void check_all() {
  for (const int count : kCounts) {
    for (const int parts : kParts) check_rows<T, L, Index>(3, count, parts);
  }
}

TEST(RowParts, Floats) { check_all<float, 4, int>(); }
TEST(RowParts, WideCounters) { check_all<float, 1, std::int64_t>(); }
TEST(RowParts, Doubles) { check_all<double, 2, int>(); }
TEST(RowParts, Integers) { check_all<std::int32_t, 4, int>(); }
TEST(RowParts, LongIntegers) { check_all<std::int64_t, 2, int>(); }
TEST(RowParts, NoRows) {
  EXPECT_EQ(row_parts(0, 1 << 20, 264, 8192), 1);
  check_rows<float, 4, int>(1, 0, 5);
}

template <class Index>
GCRT_GLOBAL(kThreads)
void sum_row(const float* x, Index count, int parts, float* workspace, std::uint32_t* counters, float* y) {
  auto group = make_group<kThreads>();
  const RowPart<Index, 1> row(count, parts, kGrain, workspace);
  const float part0 = reduce_add<float, 4>(
      group, row, [&](auto lane, Index i) GCRT_LAMBDA_INLINE { return load(lane, x + i); });
  row.leave(group, 0, part0);
  if (!row.arrives_last(counters)) return;
  const float acc0 = join_add(group, row, 0, part0);
  if (group.rank() == 0) y[0] = acc0;
}

GCRT_GLOBAL(kThreads) void sum_parts(const float* parts, int count, float* y) {
  auto group = make_group<kThreads>();
  const float sum = combine_add(group, group.rank() < count ? add(0.0f, parts[group.rank()]) : 0.0f);
  if (group.rank() == 0) y[0] = sum;
}

// In whatever order the blocks end, the sum is that of the parts in theirs.
TEST(RowParts, TheOrderOfSumsIsFixed) {
  constexpr int kCount = 50000, kPartsOfRow = 37;
  std::vector<float> x(kCount);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<float>(i * i % 1013)) * 1e3f + 0.1f;
  Device<float> device_x(x), workspace((1 + kPartsOfRow) * 4), y(1), sums(kPartsOfRow), none(4);
  Device<std::uint32_t> counters(std::vector<std::uint32_t>(1, 0));
  Queue queue;
  const int grains = (kCount + kGrain - 1) / kGrain, each = (grains + kPartsOfRow - 1) / kPartsOfRow * kGrain;
  for (int part = 0; part < kPartsOfRow; ++part) {
    const int begin = std::min(part * each, kCount), end = std::min(begin + each, kCount);
    launch(queue, 1, kThreads, Group<kThreads>::kScratchBytes, &sum_row<int>, device_x.data() + begin,
           end - begin, 1, none.data(), counters.data(), sums.data() + part);
  }
  launch(queue, 1, kThreads, Group<kThreads>::kScratchBytes, &sum_parts, sums.data(), kPartsOfRow, y.data());
  const float expected = y.read()[0];
  for (int repeat = 0; repeat < 5; ++repeat) {
    launch(queue, kPartsOfRow, kThreads, Group<kThreads>::kScratchBytes, &sum_row<int>, device_x.data(),
           kCount, kPartsOfRow, workspace.data(), counters.data(), y.data());
    ASSERT_EQ(queue.error, cudaSuccess);
    ASSERT_EQ(y.read()[0], expected);
  }
}

TEST(RowParts, NanIsTheExtremum) {
  for (const int nan_at : {0, 500, 1999}) {
    std::vector<float> x(2000);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 31 % 50);
    x[static_cast<std::size_t>(nan_at)] = kNan<float>;
    Device<float> device_x(x), workspace(kResults * 10 * 4), results(4);
    Device<std::int64_t> positions(2);
    Device<std::uint32_t> counters(std::vector<std::uint32_t>(1, 0));
    Queue queue;
    launch(queue, 7, kThreads, Group<kThreads>::kScratchBytes, &reduce_rows<float, 4, int>, device_x.data(),
           2000, 2000, 7, workspace.data(), counters.data(), results.data(), positions.data());
    EXPECT_EQ(positions.read(), (std::vector<std::int64_t>{nan_at, nan_at}));
    for (const int k : {0, 1, 2}) EXPECT_TRUE(std::isnan(results.read()[static_cast<std::size_t>(k)]));
  }
}

TEST(RowParts, AsManyAsTheDeviceTakes) {
  EXPECT_EQ(row_parts(1, 6220800, 264, 8192), 264);
  EXPECT_EQ(row_parts(64, 262144, 264, 8192), 4);
  EXPECT_EQ(row_parts(1, 16383, 264, 8192), 1);
  EXPECT_EQ(row_parts(264, 1 << 30, 264, 8192), 1);
  EXPECT_EQ(row_parts(5, 1 << 30, 264, 8192), 52);
}

}  // namespace
}  // namespace GCRT_NAMESPACE
