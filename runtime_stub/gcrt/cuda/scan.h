// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Running sums: of a block, and, as running products, along an axis.
#pragma once

#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/scalar/running.h"

namespace GCRT_NAMESPACE {

constexpr int kScanThreads = 1024;

// Sums over kScanThreads values at a time, in the order of the threads; the next ones go on from there. All
// threads call it. The order of additions is fixed.
template <class T, class Combine = RunningSum>
class BlockScan {
 public:
  static constexpr int kWarps = kScanThreads / kWarpThreads;
  static constexpr std::size_t kSharedBytes = (kWarps + 1) * sizeof(T);

  GCRT_DEVICE explicit BlockScan(T* slots) : slots_(slots) {}

  // The sum of all values before this thread's.
  GCRT_DEVICE T exclusive(T value) {
    T sum = value;  // over the lanes up to this one
    GCRT_UNROLL
    for (int distance = 1; distance < kWarpThreads; distance *= 2) {
      const T other = shuffle_up(sum, distance);
      if (lane_rank() >= distance) sum = Combine::of(other, sum);
    }
    if (lane_rank() == kWarpThreads - 1) slots_[warp_rank()] = sum;
    const T before_lane = shuffle_up(sum, 1);
    barrier();
    if (warp_rank() == 0) {
      T warps = slots_[lane_rank()];
      GCRT_UNROLL
      for (int distance = 1; distance < kWarps; distance *= 2) {
        const T other = shuffle_up(warps, distance);
        if (lane_rank() >= distance) warps = Combine::of(other, warps);
      }
      slots_[lane_rank()] = warps;
    }
    barrier();
    const T total = Combine::of(before_, slots_[kWarps - 1]);
    T result = before_;
    if (warp_rank() > 0) result = Combine::of(result, slots_[warp_rank() - 1]);
    if (lane_rank() > 0) result = Combine::of(result, before_lane);
    before_ = total;
    barrier();
    return result;
  }

 private:
  static_assert(kWarps == kWarpThreads, "one warp sums the warps");
  T* slots_;
  T before_ = Combine::template identity<T>();
};

// ---- CumSum and CumProd.

struct CumulativeLines {
  std::ptrdiff_t lines;
  std::ptrdiff_t extent;
  std::ptrdiff_t inner;
  bool exclusive;
  bool reverse;

  // Where element j of a line lies, counted in the order of the sum.
  GCRT_HOST_DEVICE std::ptrdiff_t at(std::ptrdiff_t line, std::ptrdiff_t j) const {
    return (line / inner * extent + (reverse ? extent - 1 - j : j)) * inner + line % inner;
  }
};

constexpr int kLineThreads = 128;

// A thread takes a line, in order.
template <class Combine, class T>
GCRT_GLOBAL(kLineThreads)
void cumulative_kernel(CumulativeLines s, const T* x, T* y) {
  const std::ptrdiff_t line = std::ptrdiff_t{blockIdx.x} * kLineThreads + threadIdx.x;
  if (line >= s.lines) return;
  T sum = Combine::template identity<T>();
  for (std::ptrdiff_t j = 0; j < s.extent; ++j) {
    const std::ptrdiff_t at = s.at(line, j);
    const T value = x[at];
    if (s.exclusive) y[at] = sum;
    sum = Combine::of(sum, value);
    if (!s.exclusive) y[at] = sum;
  }
}

// A block takes a line.
template <class Combine, class T>
GCRT_GLOBAL(kScanThreads)
void cumulative_long_kernel(CumulativeLines s, const T* x, T* y) {
  GCRT_DYNAMIC_SHARED(T, slots);
  BlockScan<T, Combine> scan(slots);
  for (std::ptrdiff_t first = 0; first < s.extent; first += kScanThreads) {
    const std::ptrdiff_t j = first + thread_rank();
    const std::ptrdiff_t at = s.at(blockIdx.x, j);
    const T value = j < s.extent ? x[at] : Combine::template identity<T>();
    const T before = scan.exclusive(value);
    if (j < s.extent) y[at] = s.exclusive ? before : Combine::of(before, value);
  }
}

// Running sums or products along the middle axis of [outer][extent][inner]; x may be y. Exclusive: the
// element itself is not counted. One launch. Where a block takes a line, sums of floats are rounded in
// another order than on the CPU.
template <class Combine, class T>
inline void cumulative(Queue& queue, std::ptrdiff_t outer, std::ptrdiff_t extent, std::ptrdiff_t inner,
                       bool exclusive, bool reverse, const T* x, T* y) {
  constexpr std::ptrdiff_t kManyLines = 8192;
  constexpr std::ptrdiff_t kShortLine = 64;
  const CumulativeLines s{outer * inner, extent, inner, exclusive, reverse};
  if (s.lines == 0 || extent == 0) return;
  if (extent <= kShortLine || s.lines >= kManyLines) {
    launch(queue, dim3(blocks_for(s.lines, kLineThreads)), dim3(kLineThreads), 0,
           cumulative_kernel<Combine, T>, s, x, y);
  } else {
    launch(queue, dim3(static_cast<unsigned>(s.lines)), dim3(kScanThreads),
           BlockScan<T, Combine>::kSharedBytes, cumulative_long_kernel<Combine, T>, s, x, y);
  }
}

template <class T>
inline void cumulative_sum(Queue& queue, std::ptrdiff_t outer, std::ptrdiff_t extent, std::ptrdiff_t inner,
                           bool exclusive, bool reverse, const T* x, T* y) {
  cumulative<RunningSum>(queue, outer, extent, inner, exclusive, reverse, x, y);
}
template <class T>
inline void cumulative_product(Queue& queue, std::ptrdiff_t outer, std::ptrdiff_t extent,
                               std::ptrdiff_t inner, bool exclusive, bool reverse, const T* x, T* y) {
  cumulative<RunningProduct>(queue, outer, extent, inner, exclusive, reverse, x, y);
}

}  // namespace GCRT_NAMESPACE
