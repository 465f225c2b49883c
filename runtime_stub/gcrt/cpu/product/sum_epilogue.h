// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// How kernels of cores without vectors hand sums to an epilogue: by a function of the epilogue alone, so that
// all epilogues share what sums.
#pragma once

#include <cstddef>

#include "gcrt/cpu/product/store.h"
#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

// Rows that are summed together, and the length of one: k in whole words of four.
constexpr int kLineRows = 2;
constexpr std::ptrdiff_t line_words(std::ptrdiff_t depth) { return ceil_div(depth, 4) * 4; }

// Sums [kSumColumns][step] of some rows, of which step is the most, that are handed over at once.
constexpr int kSumColumns = 16;
template <class Sum>
struct SumEpilogue {
  void (*finish)(const void* epilogue, const Sum* sums, int step, int rows, int columns, std::ptrdiff_t m,
                 std::ptrdiff_t n);
  const void* epilogue;
};
template <class Sum, class E>
GCRT_NOINLINE void finish_sums(const void* epilogue, const Sum* sums, int step, int rows, int columns,
                               std::ptrdiff_t m, std::ptrdiff_t n) {
  const E copy = *static_cast<const E*>(epilogue);
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) copy(Lanes<1>{}, sums[j * step + i], m + i, n + j);
  }
}
template <class Sum, class E>
GCRT_INLINE SumEpilogue<Sum> sum_epilogue(const E& epilogue) {
  return {&finish_sums<Sum, E>, &epilogue};
}

}  // namespace GCRT_NAMESPACE
