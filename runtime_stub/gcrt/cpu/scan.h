// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
#pragma once
// Running sums and products along the middle axis of [outer][extent][inner]. Whoever takes part, each line is
// combined element by element, in its order: lines are taken side by side, so that no sum waits for the one
// before it.

#include <cstddef>

#include "gcrt/pack.h"
#include "gcrt/parallel.h"
#include "gcrt/scalar/running.h"

namespace GCRT_NAMESPACE {

/// `outer`, `extent`, `inner` count elements. Exclusive: an element is not part of its own sum. Reverse: from
/// the last element to the first.
struct ScanShape {
  std::ptrdiff_t outer, extent, inner;
  bool exclusive, reverse;

  std::ptrdiff_t step() const { return reverse ? -inner : inner; }
  /// Where the sums of a line begin, from its first element.
  std::ptrdiff_t start() const { return reverse ? (extent - 1) * inner : 0; }
};

/// Lines whose elements lie side by side, in `Packs` packs.
template <class Combine, int Packs, int N, class T>
GCRT_INLINE void combine_packs(Lanes<N> lane, const ScanShape& shape, const T* x, T* y) {
  Pack<T, N> sums[Packs];
  GCRT_UNROLL
  for (int p = 0; p < Packs; ++p) sums[p] = splat(lane, Combine::template identity<T>());
  for (std::ptrdiff_t j = 0, at = shape.start(); j < shape.extent; ++j, at += shape.step()) {
    GCRT_UNROLL
    for (int p = 0; p < Packs; ++p) {
      const Pack<T, N> before = sums[p];
      sums[p] = Combine::of(before, load(lane, x + at + p * N));
      store(lane, y + at + p * N, shape.exclusive ? before : sums[p]);
    }
  }
}

/// Lines that lie one behind the other.
template <class Combine, int Lines, class T>
GCRT_INLINE void combine_lines(const ScanShape& shape, const T* x, T* y) {
  T sums[Lines];
  GCRT_UNROLL
  for (int line = 0; line < Lines; ++line) sums[line] = Combine::template identity<T>();
  for (std::ptrdiff_t j = 0, at = shape.start(); j < shape.extent; ++j, at += shape.step()) {
    GCRT_UNROLL
    for (int line = 0; line < Lines; ++line) {
      const T before = sums[line];
      sums[line] = Combine::of(before, x[at + line * shape.extent]);
      y[at + line * shape.extent] = shape.exclusive ? before : sums[line];
    }
  }
}

/// y may be x. A work item is a number of lines side by side.
template <class Combine, class T>
inline void cumulative(const ScanShape& shape, const T* x, T* y, const Threads* threads) {
  constexpr int L = kLanesFor<T>, kAbreast = 8, kLines = 4;
  if (shape.inner == 1) {
    parallel_for(threads, ceil_div(shape.outer, kLines), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      std::ptrdiff_t line = begin * kLines;
      const std::ptrdiff_t last = end * kLines < shape.outer ? end * kLines : shape.outer;
      for (; line + kLines <= last; line += kLines)
        combine_lines<Combine, kLines>(shape, x + line * shape.extent, y + line * shape.extent);
      for (; line < last; ++line)
        combine_lines<Combine, 1>(shape, x + line * shape.extent, y + line * shape.extent);
    });
    return;
  }
  const std::ptrdiff_t blocks = ceil_div(shape.inner, kAbreast * L);
  parallel_for(threads, shape.outer * blocks, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    for (std::ptrdiff_t item = begin; item < end; ++item) {
      const std::ptrdiff_t base = item / blocks * shape.extent * shape.inner;
      std::ptrdiff_t i = item % blocks * kAbreast * L;
      const std::ptrdiff_t last = i + kAbreast * L < shape.inner ? i + kAbreast * L : shape.inner;
      if (last - i == kAbreast * L) {
        combine_packs<Combine, kAbreast>(Lanes<L>{}, shape, x + base + i, y + base + i);
        continue;
      }
      for (; i + L <= last; i += L) combine_packs<Combine, 1>(Lanes<L>{}, shape, x + base + i, y + base + i);
      for (; i < last; ++i) combine_packs<Combine, 1>(Lanes<1>{}, shape, x + base + i, y + base + i);
    }
  });
}

template <class T>
inline void cumulative_sum(const ScanShape& shape, const T* x, T* y, const Threads* threads) {
  cumulative<RunningSum>(shape, x, y, threads);
}
template <class T>
inline void cumulative_product(const ScanShape& shape, const T* x, T* y, const Threads* threads) {
  cumulative<RunningProduct>(shape, x, y, threads);
}

}  // namespace GCRT_NAMESPACE
