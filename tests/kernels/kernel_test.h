// Helpers of the kernel tests: reproducible operands, an epilogue that checks its calls, tolerant comparison.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gcrt/pack.h"
#include "gcrt/parallel.h"
#include "random_values.h"

namespace kernel_test {

using namespace GCRT_NAMESPACE;

// Stores each element and counts how often it was handed over. Rows are `stride` apart.
template <class T>
struct RecordingEpilogue {
  T* y;
  int* calls;
  std::ptrdiff_t rows;
  std::ptrdiff_t columns;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    if (m < 0 || m >= rows || n < 0 || n + L::value > columns) {
      ++calls[rows * columns];
      return;
    }
    store(lane, y + m * columns + n, sums);
    for (int i = 0; i < L::value; ++i) ++calls[m * columns + n + i];
  }
};

// The output of a kernel with the record of its epilogue calls.
template <class T>
struct Recorded {
  Recorded(std::ptrdiff_t row_count, std::ptrdiff_t column_count)
      : y(static_cast<std::size_t>(row_count * column_count), static_cast<T>(77)),
        calls(static_cast<std::size_t>(row_count * column_count + 1), 0),
        rows(row_count),
        columns(column_count) {}
  RecordingEpilogue<T> epilogue() { return {y.data(), calls.data(), rows, columns}; }

  // Every element was written exactly once, and equals the reference up to rounding.
  template <class R>
  void check(const std::vector<R>& expected, double tolerance) const {
    ASSERT_EQ(expected.size(), y.size());
    EXPECT_EQ(calls.back(), 0) << "calls outside the result";
    int shown = 0;
    for (std::size_t i = 0; i < y.size() && shown < 5; ++i) {
      if (calls[i] != 1) {
        ADD_FAILURE() << "element " << i << " written " << calls[i] << " times";
        ++shown;
      }
      const double got = static_cast<double>(y[i]);
      const double want = static_cast<double>(expected[i]);
      if (got != want && !(std::fabs(got - want) <= tolerance * (1.0 + std::fabs(want)))) {
        ADD_FAILURE() << "element " << i << " is " << got << ", expected " << want;
        ++shown;
      }
    }
  }

  std::vector<T> y;
  std::vector<int> calls;
  std::ptrdiff_t rows;
  std::ptrdiff_t columns;
};

// The result of run(epilogue, 0, items); in the pieces of 2, 3, 4 and 16 threads and item by item it must be
// the same bits.
template <class T, class Run>
Recorded<T> in_any_pieces(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t items, const Run& run) {
  Recorded<T> whole(rows, columns);
  run(whole.epilogue(), 0, items);
  for (const std::ptrdiff_t pieces :
       {std::ptrdiff_t{2}, std::ptrdiff_t{3}, std::ptrdiff_t{4}, std::ptrdiff_t{16}, items}) {
    Recorded<T> part(rows, columns);
    for (std::ptrdiff_t p = 0; p < pieces; ++p) {
      run(part.epilogue(), items * p / pieces, items * (p + 1) / pieces);
    }
    EXPECT_EQ(part.calls, whole.calls) << "in " << pieces << " pieces";
    EXPECT_EQ(std::memcmp(part.y.data(), whole.y.data(), whole.y.size() * sizeof(T)), 0)
        << "other bits in " << pieces << " pieces";
  }
  return whole;
}

// What Threads call, here in one thread: the last range first, in as many ranges as `context`, an int, says.
// Whoever relies on their order or number is found out.
inline void last_range_first(void* context, std::ptrdiff_t count,
                             void (*body)(void*, std::ptrdiff_t, std::ptrdiff_t), void* argument) {
  const std::ptrdiff_t wanted = *static_cast<const int*>(context);
  const std::ptrdiff_t pieces = count < wanted ? count : wanted;
  for (std::ptrdiff_t p = pieces; p-- > 0;) body(argument, count * p / pieces, count * (p + 1) / pieces);
}

// Threads of a kernel that is one parallel loop, whose ranges wait for nobody: run as last_range_first does,
// with a count of the loops, none of which may begin inside another.
struct OneLoop {
  explicit OneLoop(int ranges) : pieces(ranges), threads{this, ranges, &OneLoop::parallel_for} {}
  OneLoop(const OneLoop&) = delete;

  static void parallel_for(void* context, std::ptrdiff_t count,
                           void (*body)(void*, std::ptrdiff_t, std::ptrdiff_t), void* argument) {
    auto* const self = static_cast<OneLoop*>(context);
    EXPECT_FALSE(self->is_running) << "a parallel loop inside a work item";
    self->is_running = true;
    last_range_first(&self->pieces, count, body, argument);
    self->is_running = false;
    ++self->loops;
  }

  int pieces;
  Threads threads;
  int loops = 0;
  bool is_running = false;
};

}  // namespace kernel_test
