// TopK, ScatterND, ScatterElements and CumSum on the emulator, bit for bit against the kernels of the CPU
// where the order of sums is the same.
#include "gcrt/cuda/library.h"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "cuda_kernel_test.h"
#include "gcrt/cpu/library.h"
#include "gcrt/cpu/scan.h"
#include "gcrt/cuda/scan.h"
#include "gcrt/cuda/scatter.h"

namespace cuda_kernel_test {
namespace {

std::size_t size(std::ptrdiff_t n) { return static_cast<std::size_t>(n); }

template <class T>
void expect_same(const DeviceArray<T>& got, const std::vector<T>& expected, const char* name) {
  const std::vector<T> values = got.read();
  ASSERT_EQ(values.size(), expected.size());
  int shown = 0;
  for (std::size_t i = 0; i < expected.size() && shown < 3; ++i) {
    if (std::memcmp(&values[i], &expected[i], sizeof(T)) != 0) {
      ADD_FAILURE() << name << "[" << i << "] is " << +values[i] << ", expected " << +expected[i];
      ++shown;
    }
  }
}

// Values with many ties, and NaN, infinities and zeros of both signs.
template <class T>
std::vector<T> tied_values(std::size_t count, std::uint32_t seed, std::uint32_t different) {
  Random random(seed);
  std::vector<T> values(count);
  for (T& value : values) {
    const std::uint32_t pick = random.next() % (different + 6);
    value = static_cast<T>(static_cast<int>(random.next() % different) - static_cast<int>(different / 2));
    if constexpr (std::is_floating_point<T>::value) {
      using Limits = std::numeric_limits<T>;
      const T special[] = {
          Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(), -Limits::infinity(), T(0), -T(0)};
      if (pick < 6) value = special[pick];
    } else if (pick == 0) {
      value = std::numeric_limits<T>::min();
    } else if (pick == 1) {
      value = std::numeric_limits<T>::max();
    }
  }
  return values;
}

template <bool Largest, class T>
void check_top_k(int outer, int extent, int inner, int k, std::uint32_t different = 1u << 20) {
  SCOPED_TRACE(::testing::Message() << outer << " x " << extent << " x " << inner << ", k " << k << ", "
                                    << different << " values" << (Largest ? ", largest" : ", smallest"));
  const auto x =
      tied_values<T>(size(outer * extent * inner), static_cast<std::uint32_t>(extent + k), different);
  std::vector<T> values(size(outer * k * inner));
  std::vector<std::int64_t> positions(values.size());
  top_k<Largest>(outer, extent, inner, k, x.data(), values.data(), positions.data());
  const DeviceArray<T> x_device(x);
  DeviceArray<T> values_device(values.size());
  DeviceArray<std::int64_t> positions_device(values.size());
  Queue queue;
  top_k<Largest>(queue, outer, extent, inner, k, x_device.data(), values_device.data(),
                 positions_device.data());
  expect_no_error(queue);
  expect_same(values_device, values, "values");
  expect_same(positions_device, positions, "positions");
}

TEST(CudaTopK, ShortLines) {
  for (const int extent : {1, 2, 3, 31, 32, 33, 100, 1000, 2048}) {
    for (const int k : {1, 2, 5, extent / 2, extent}) {
      if (k > extent) continue;
      check_top_k<true, float>(2, extent, 1, k);
      check_top_k<false, float>(1, extent, 3, k, 5);
    }
  }
}

TEST(CudaTopK, LongLines) {
  for (const std::uint32_t different : {1u, 3u, 300u, 1u << 20}) {
    for (const int k : {1, 7, 1500, 2048, 2049, 5000}) {
      check_top_k<true, float>(1, 5000, 1, k, different);
      check_top_k<false, float>(1, 5000, 2, k, different);
    }
    check_top_k<true, double>(2, 2500, 1, 40, different);
    check_top_k<false, std::int64_t>(1, 2500, 1, 2400, different);
  }
}

TEST(CudaTopK, Types) {
  for (const int extent : {40, 2100}) {
    check_top_k<true, double>(2, extent, 1, 30);
    check_top_k<false, double>(2, extent, 1, 30);
    check_top_k<true, std::int8_t>(1, extent, 1, 30, 100);
    check_top_k<false, std::int16_t>(1, extent, 1, 30, 100);
    check_top_k<true, std::int32_t>(1, extent, 1, 30);
    check_top_k<false, std::int32_t>(1, extent, 1, 30);
    check_top_k<true, std::int64_t>(1, extent, 1, 30);
    check_top_k<true, std::uint8_t>(1, extent, 1, 30, 100);
    check_top_k<false, std::uint16_t>(1, extent, 1, 30, 100);
    check_top_k<false, std::uint32_t>(1, extent, 1, 30);
    check_top_k<true, std::uint64_t>(1, extent, 1, 30);
  }
}

// A queue with a trap word on the device.
struct TrapQueue {
  TrapQueue() : trap(std::vector<int>{0}) { queue.trap = trap.data(); }
  DeviceArray<int> trap;
  Queue queue;
};

template <class I>
std::vector<I> random_indices(std::size_t count, std::int64_t extent, std::uint32_t seed) {
  Random random(seed);
  std::vector<I> indices(count);
  for (I& index : indices) {
    const auto wide =
        static_cast<std::int64_t>(random.next() % (2 * static_cast<std::uint32_t>(extent))) - extent;
    index = static_cast<I>(wide);
  }
  return indices;
}

template <class T>
std::vector<T> data_values(std::size_t count, std::uint32_t seed) {
  auto values = random_values<T>(count, seed);
  if constexpr (std::is_floating_point<T>::value) {
    // Sums and products whose order shows.
    for (T& value : values) value = T(1.5) * value + (value > 0 ? T(0.3) : T(-0.3));
  }
  return values;
}

// y starts as a copy of the data (is_in_place), or undefined.
template <class Combine, class T, class I>
void check_scatter_nd(std::vector<std::int64_t> shape, int depth, int tuples, bool is_in_place = false) {
  SCOPED_TRACE(::testing::Message() << tuples << " tuples of " << depth << " axes");
  std::int64_t extents[4] = {}, strides[4] = {}, count = 1, targets = 1, slice = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    extents[d] = shape[d];
    strides[d] = count;
    count *= shape[d];
    (d < size(depth) ? targets : slice) *= shape[d];
  }
  const auto data = data_values<T>(size(count), 1);
  const auto updates = data_values<T>(size(tuples * slice), 2);
  std::vector<I> indices(size(tuples * depth));
  for (int d = 0; d < depth; ++d) {
    const auto axis = random_indices<I>(size(tuples), shape[size(d)], static_cast<std::uint32_t>(d + 3));
    for (int t = 0; t < tuples; ++t) indices[size(t * depth + d)] = axis[size(t)];
  }
  std::vector<T> expected(data);
  ASSERT_TRUE(scatter_nd<Combine>(count, tuples, depth, slice, extents, strides, expected.data(),
                                  indices.data(), updates.data(), expected.data()));
  const DeviceArray<T> data_device(data), updates_device(updates);
  const DeviceArray<I> indices_device(indices);
  DeviceArray<T> in_place(data), apart(data.size());
  DeviceArray<T>& y = is_in_place ? in_place : apart;
  constexpr bool kReplaces = std::is_same<Combine, ScatterReplace>::value;
  DeviceArray<std::uint32_t> scratch(size(scatter_scratch_words(kReplaces, targets, tuples)));
  TrapQueue q;
  scatter_nd<Combine>(q.queue, count, tuples, depth, slice, extents,
                      is_in_place ? y.data() : data_device.data(), indices_device.data(),
                      updates_device.data(), y.data(), scratch.data());
  expect_no_error(q.queue);
  EXPECT_EQ(q.trap.read()[0], 0);
  expect_same(y, expected, "y");
}

template <class Combine, class T, class I>
void check_scatter_elements(std::vector<std::int64_t> shape, std::vector<std::int64_t> box, int axis) {
  std::int64_t extents[4] = {}, strides[4] = {}, boxes[4] = {}, count = 1, updates_count = 1;
  const int rank = static_cast<int>(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    extents[d] = shape[d];
    boxes[d] = box[d];
    strides[d] = count;
    count *= shape[d];
    updates_count *= box[d];
  }
  SCOPED_TRACE(::testing::Message() << updates_count << " updates of " << count << ", axis " << axis);
  const auto data = data_values<T>(size(count), 1);
  const auto updates = data_values<T>(size(updates_count), 2);
  const auto indices = random_indices<I>(size(updates_count), shape[size(axis)], 3);
  std::vector<T> expected(data.size());
  ASSERT_TRUE(scatter_elements<Combine>(count, rank, axis, extents, strides, boxes, data.data(),
                                        indices.data(), updates.data(), expected.data()));
  const DeviceArray<T> data_device(data), updates_device(updates);
  const DeviceArray<I> indices_device(indices);
  DeviceArray<T> y(data.size());
  constexpr bool kReplaces = std::is_same<Combine, ScatterReplace>::value;
  DeviceArray<std::uint32_t> scratch(size(scatter_scratch_words(kReplaces, count, updates_count)));
  TrapQueue q;
  scatter_elements<Combine>(q.queue, count, rank, axis, extents, strides, boxes, data_device.data(),
                            indices_device.data(), updates_device.data(), y.data(), scratch.data());
  expect_no_error(q.queue);
  EXPECT_EQ(q.trap.read()[0], 0);
  expect_same(y, expected, "y");
}

template <class Combine>
void check_scatters() {
  check_scatter_nd<Combine, float, std::int64_t>({5, 6, 7}, 1, 3);
  check_scatter_nd<Combine, float, std::int64_t>({5, 6, 7}, 2, 100, true);
  check_scatter_nd<Combine, float, std::int32_t>({5, 6, 7}, 3, 500);
  check_scatter_nd<Combine, float, std::int64_t>({5, 6}, 0, 1);
  check_scatter_nd<Combine, float, std::int64_t>({5, 6}, 1, 0);
  check_scatter_nd<Combine, std::int64_t, std::int64_t>({70, 50}, 2, 3000);
  check_scatter_nd<Combine, float, std::int64_t>({300, 3}, 1, 9000);
  check_scatter_nd<Combine, std::uint8_t, std::int64_t>({3, 2}, 1, 2049);
  check_scatter_elements<Combine, float, std::int64_t>({5, 6, 7}, {3, 6, 2}, 1);
  check_scatter_elements<Combine, double, std::int32_t>({4, 300}, {4, 700}, 1);
  check_scatter_elements<Combine, float, std::int64_t>({70, 80}, {100, 60}, 0);
  check_scatter_elements<Combine, std::int32_t, std::int64_t>({9}, {20}, 0);
}
TEST(CudaScatter, Replace) { check_scatters<ScatterReplace>(); }
TEST(CudaScatter, Add) { check_scatters<ScatterAdd>(); }
TEST(CudaScatter, Multiply) { check_scatters<ScatterMul>(); }
TEST(CudaScatter, Max) { check_scatters<ScatterMax>(); }
TEST(CudaScatter, Min) { check_scatters<ScatterMin>(); }

// One word of the key of a sort of many pairs is not enough.
TEST(CudaScatter, ManyPlaces) {
  check_scatter_nd<ScatterAdd, float, std::int64_t>({70000}, 1, 10000);
  check_scatter_elements<ScatterAdd, float, std::int64_t>({3, 30000}, {3, 3000}, 1);
}

template <class Combine>
void check_trap(int tuples, std::int64_t bad) {
  const std::vector<float> data(60, 1.0f), updates(size(tuples * 6), 2.0f);
  std::vector<std::int64_t> indices(size(tuples), 3);
  indices[size(tuples / 2)] = bad;
  const std::int64_t extents[] = {10}, strides[] = {1}, box[] = {tuples};
  constexpr bool kReplaces = std::is_same<Combine, ScatterReplace>::value;
  const DeviceArray<float> data_device(data), updates_device(updates);
  const DeviceArray<std::int64_t> indices_device(indices);
  DeviceArray<float> y(data.size());
  DeviceArray<std::uint32_t> scratch(size(scatter_scratch_words(kReplaces, 10, tuples)));
  TrapQueue q;
  scatter_nd<Combine>(q.queue, 60, tuples, 1, 6, extents, data_device.data(), indices_device.data(),
                      updates_device.data(), y.data(), scratch.data());
  expect_no_error(q.queue);
  EXPECT_EQ(q.trap.read()[0], 1);
  expect_same(y, data, "y");
  q.trap.write({0});
  DeviceArray<float> line(10);
  scatter_elements<Combine>(q.queue, 10, 1, 0, extents, strides, box, data_device.data(),
                            indices_device.data(), updates_device.data(), line.data(), scratch.data());
  expect_no_error(q.queue);
  EXPECT_EQ(q.trap.read()[0], 1);
  expect_same(line, std::vector<float>(10, 1.0f), "line");
}
TEST(CudaScatter, IndexOutOfRange) {
  for (const std::int64_t bad :
       {std::int64_t{10}, std::int64_t{-11}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    check_trap<ScatterReplace>(1, bad);
    check_trap<ScatterReplace>(300, bad);
    check_trap<ScatterAdd>(7, bad);
    check_trap<ScatterAdd>(3000, bad);
  }
}

template <class T>
void check_sum(int outer, int extent, int inner) {
  for (const bool exclusive : {false, true}) {
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(::testing::Message() << outer << " x " << extent << " x " << inner
                                        << (exclusive ? " exclusive" : "") << (reverse ? " reverse" : ""));
      const auto x = random_values<T>(size(outer * extent * inner), 1);
      std::vector<T> expected(x.size());
      cumulative_sum(ScanShape{outer, extent, inner, exclusive, reverse}, x.data(), expected.data(), nullptr);
      const DeviceArray<T> x_device(x);
      DeviceArray<T> y(x.size());
      Queue queue;
      cumulative_sum(queue, outer, extent, inner, exclusive, reverse, x_device.data(), y.data());
      expect_no_error(queue);
      if (std::is_integral<T>::value || extent <= 64 || outer * inner >= 8192) {
        expect_same(y, expected, "y");
        continue;
      }
      const std::vector<T> got = y.read();
      for (std::size_t i = 0; i < expected.size(); ++i) {
        ASSERT_NEAR(static_cast<double>(got[i]), static_cast<double>(expected[i]),
                    extent * (sizeof(T) == 4 ? 1e-6 : 1e-14))
            << i;
      }
    }
  }
}

TEST(CudaCumulativeSum, Sizes) {
  for (const int extent : {1, 2, 31, 64, 65, 1023, 1024, 1025, 3000}) {
    for (const int inner : {1, 3}) {
      check_sum<float>(2, extent, inner);
      check_sum<double>(1, extent, inner);
      check_sum<std::int32_t>(2, extent, inner);
      check_sum<std::int64_t>(1, extent, inner);
      check_sum<std::uint32_t>(1, extent, inner);
    }
  }
  check_sum<float>(91, 70, 91);
}

TEST(CudaCumulativeProduct, Lines) {
  for (const int extent : {1, 64, 1025}) {
    for (const bool exclusive : {false, true}) {
      const auto x = random_values<std::int32_t>(size(extent), 1);
      std::vector<std::int32_t> expected(x.size());
      cumulative_product(ScanShape{1, extent, 1, exclusive, true}, x.data(), expected.data(), nullptr);
      const DeviceArray<std::int32_t> x_device(x);
      DeviceArray<std::int32_t> y(x.size());
      Queue queue;
      cumulative_product(queue, 1, extent, 1, exclusive, true, x_device.data(), y.data());
      expect_no_error(queue);
      expect_same(y, expected, "y");
    }
  }
}

TEST(CudaCumulativeSum, Infinities) {
  std::vector<float> x(2000, 1.0f);
  x[500] = kInfinity<float>;
  const DeviceArray<float> x_device(x);
  DeviceArray<float> y(x.size());
  Queue queue;
  cumulative_sum(queue, 1, 2000, 1, true, false, x_device.data(), y.data());
  const std::vector<float> got = y.read();
  EXPECT_EQ(got[500], 500.0f);
  EXPECT_EQ(got[501], kInfinity<float>);
  EXPECT_EQ(got[1999], kInfinity<float>);
}

}  // namespace
}  // namespace cuda_kernel_test
