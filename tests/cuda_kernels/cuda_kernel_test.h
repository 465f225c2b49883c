// Helpers of the tests of CUDA kernels, which run on the emulator and, where there is one, on a GPU: operands
// in device memory of exact size, an epilogue that checks its calls, comparison within a bound per element.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../cuda_on_cpu/device_memory.h"
#include "../kernels/random_values.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/cuda/product/tile_kernel.h"

namespace cuda_kernel_test {

using namespace GCRT_NAMESPACE;

using kernel_test::Random;
using kernel_test::random_values;

// Exact size, so that every access outside is seen.
template <class T>
using DeviceArray = cuda_test::Device<T>;

// Calls body with the operand as kernels for one width of copies take it, if that is 16 bytes, else as those
// that ask at run time do.
template <class T, class F, class... Strides>
void with_copies(const F& body, const T* data, Strides... strides) {
  if (copy_bytes(data, strides...) == 16) {
    body(copied_in<16>(data));
  } else {
    body(data);
  }
}

// Stores each element and counts how often it was handed over. Batch entries follow each other.
template <class T, int kLanesTaken>
struct RecordingEpilogue {
  static constexpr int kMaxLanes = kLanesTaken;
  T* y;
  int* calls;
  std::ptrdiff_t rows;
  std::ptrdiff_t columns;
  std::ptrdiff_t entry;  // elements before this batch entry
  std::ptrdiff_t total;
  template <class L, class V>
  GCRT_DEVICE V value(L, V sums, std::ptrdiff_t, std::ptrdiff_t) const {
    return sums;
  }
  template <class L, class V>
  GCRT_DEVICE void put(L lane, V result, std::ptrdiff_t m, std::ptrdiff_t n) const {
    (*this)(lane, result, m, n);
  }
  template <class L, class V>
  GCRT_DEVICE void operator()(L, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    constexpr int kCount = L::value;
    static_assert(kCount <= kMaxLanes && kLanesOf<V> == kCount, "as many lanes as promised");
    if (m < 0 || m >= rows || n < 0 || n + kCount > columns || n % kCount != 0) {
      atomic_add(&calls[total], 1);
      return;
    }
    T values[kCount];
    std::memcpy(values, &sums, sizeof(values));
    for (int i = 0; i < kCount; ++i) {
      y[entry + m * columns + n + i] = values[i];
      atomic_add(&calls[entry + m * columns + n + i], 1);
    }
  }
  GCRT_INLINE RecordingEpilogue at_batch(std::ptrdiff_t z) const {
    RecordingEpilogue result = *this;
    result.entry = z * rows * columns;
    return result;
  }
};

// The output of a kernel with the record of its epilogue calls.
template <class T>
struct Recorded {
  Recorded(std::ptrdiff_t row_count, std::ptrdiff_t column_count, std::ptrdiff_t entry_count = 1)
      : y(static_cast<std::size_t>(row_count * column_count * entry_count)),
        calls(std::vector<int>(y.size() + 1, 0)),
        rows(row_count),
        columns(column_count) {}
  template <int kLanesTaken>
  RecordingEpilogue<T, kLanesTaken> epilogue() {
    return {y.data(), calls.data(), rows, columns, 0, static_cast<std::ptrdiff_t>(y.size())};
  }

  // Every element was handed over exactly once and differs by no more than tolerance * bound[i].
  void check(const std::vector<double>& expected, const std::vector<double>& bound, double tolerance) const {
    ASSERT_EQ(expected.size(), y.size());
    const std::vector<T> values = y.read();
    const std::vector<int> counts = calls.read();
    EXPECT_EQ(counts.back(), 0) << "calls outside the result";
    int shown = 0;
    for (std::size_t i = 0; i < values.size() && shown < 5; ++i) {
      if (counts[i] != 1) {
        ADD_FAILURE() << "element " << i << " written " << counts[i] << " times";
        ++shown;
      }
      const double got = static_cast<double>(values[i]);
      const bool is_right =
          std::isnan(expected[i]) ? std::isnan(got) : std::fabs(got - expected[i]) <= tolerance * bound[i];
      if (!is_right) {
        ADD_FAILURE() << "element " << i << " is " << got << ", expected " << expected[i] << " within "
                      << tolerance * bound[i];
        ++shown;
      }
    }
  }
  void check_exact(const std::vector<double>& expected) const { check(expected, expected, 0.0); }

  DeviceArray<T> y;
  DeviceArray<int> calls;
  std::ptrdiff_t rows;
  std::ptrdiff_t columns;
};

inline void expect_no_error(const Queue& queue) {
  EXPECT_EQ(queue.error, cudaSuccess) << cudaGetErrorString(queue.error);
}

// What the device has: clusters, and shared memory for the blocks of a kernel.
inline int device_attribute(cudaDeviceAttr attribute) {
  int value = 0;
  EXPECT_EQ(cudaDeviceGetAttribute(&value, attribute, 0), cudaSuccess);
  return value;
}
inline bool has_clusters() { return device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9; }
inline bool has_room(int shared_bytes) {
  return shared_bytes <= device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

// A queue with counters, which kernels find and leave at 0.
struct CountingQueue : Queue {
  CountingQueue() : words(std::vector<std::uint32_t>(4096, 0)) { counters = words.data(); }
  DeviceArray<std::uint32_t> words;
};
inline void expect_no_error(const CountingQueue& queue) {
  expect_no_error(static_cast<const Queue&>(queue));
  for (const std::uint32_t word : queue.words.read()) ASSERT_EQ(word, 0u) << "a counter is left behind";
}

// How weights are stored for a precision, and the error of a product relative to the sum of magnitudes.
template <Precision P>
struct PrecisionOf {
  using Weight = float;
  // The rest of a factor is below 2^-10, of which tensor cores read all but 3 units of 2^-23: what is dropped
  // are the product of two rests and those units of both factors, 2^-20 + 6 * 2^-23.
  static constexpr double kTolerance = 1.7e-6;
};
template <>
struct PrecisionOf<Precision::kTf32> {
  using Weight = Tf32;
  static constexpr double kTolerance = 1.1e-3;  // 2 * 2^-11 and a little
};
template <>
struct PrecisionOf<Precision::kFp16> {
  using Weight = Half;
  static constexpr double kTolerance = 1.1e-3;
};
template <>
struct PrecisionOf<Precision::kBf16> {
  using Weight = BFloat16;
  static constexpr double kTolerance = 8.5e-3;
};

template <class T>
T to_weight(float value) {
  if constexpr (std::is_same<T, float>::value) {
    return value;
  } else if constexpr (std::is_same<T, Tf32>::value) {
    return {bit_cast<float>((bit_cast<std::uint32_t>(value) + 0x1000u) & 0xffffe000u)};
  } else {
    T result;
    store_from_float(Lanes<1>{}, &result, value);
    return result;
  }
}

// Values as memory holds them, which are then changed to what that is.
template <class T>
std::vector<T> stored(std::vector<float>& values) {
  std::vector<T> result;
  for (float& value : values) {
    result.push_back(to_weight<T>(value));
    if constexpr (!std::is_same<T, Tf32>::value) value = load_as_float(Lanes<1>{}, &result.back());
  }
  return result;
}

// [rows][depth] as the compiler stores constant weights: rows padded with zeros to a multiple of `unit`.
template <class T>
std::vector<T> pad_rows(const std::vector<float>& values, int rows, int depth, int unit) {
  const int stride = (depth + unit - 1) / unit * unit;
  std::vector<T> padded(static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride),
                        to_weight<T>(0.0f));
  for (int r = 0; r < rows; ++r) {
    for (int k = 0; k < depth; ++k) {
      padded[static_cast<std::size_t>(r * stride + k)] =
          to_weight<T>(values[static_cast<std::size_t>(r * depth + k)]);
    }
  }
  return padded;
}

}  // namespace cuda_kernel_test
