// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// One row times a matrix of the run, which is read where it lies, once, and not packed: of one row that would
// take longer than the product. The matrix is contiguous along the depth (columns are dot products) or along
// the columns (a sum of rows). The epilogue is that of gemm.h. For products with packed matrices see there.
#pragma once

#include "gcrt/cpu/product/tile.h"
#include "gcrt/parallel.h"
#include "gcrt/scalar/arithmetic.h"

namespace GCRT_NAMESPACE {

// Products of `a` with `Columns` columns, which begin `step` elements apart: as many independent sums.
template <int Columns>
GCRT_INLINE void dot_some_columns(const float* a, const float* b, std::ptrdiff_t step, std::ptrdiff_t depth,
                                  float* y) {
  constexpr int L = kVectorLanes<float>;
  Pack<float, L> sums[Columns];
  float rest[Columns];
  GCRT_UNROLL
  for (int j = 0; j < Columns; ++j) {
    sums[j] = Pack<float, L>{};
    rest[j] = 0;
  }
  std::ptrdiff_t k = 0;
  for (; k + L <= depth; k += L) {
    const auto factor = load(Lanes<L>{}, a + k);
    GCRT_UNROLL
    for (int j = 0; j < Columns; ++j) fma_into(sums[j], factor, load(Lanes<L>{}, b + j * step + k));
  }
  for (; k < depth; ++k) {
    for (int j = 0; j < Columns; ++j) rest[j] = fma(a[k], b[j * step + k], rest[j]);
  }
  GCRT_UNROLL
  for (int j = 0; j < Columns; ++j) y[j] = reduce_add(sums[j]) + rest[j];
}

// y[n] = the sum of a[k] * b[n * step + k].
GCRT_INLINE void dot_columns(const float* a, const float* b, std::ptrdiff_t step, std::ptrdiff_t depth,
                             std::ptrdiff_t columns, float* y) {
  constexpr int kTogether = 8;
  std::ptrdiff_t n = 0;
  for (; n + kTogether <= columns; n += kTogether)
    dot_some_columns<kTogether>(a, b + n * step, step, depth, y + n);
  for (; n < columns; ++n) dot_some_columns<1>(a, b + n * step, step, depth, y + n);
}

// `Vectors` vectors of y[] * factor + the sum of a[k] * b[k * step], in two sums that alternate.
template <int L, int Vectors>
GCRT_INLINE void add_some_rows(const float* a, std::ptrdiff_t depth, const float* b, std::ptrdiff_t step,
                               float factor, float* y) {
  Pack<float, L> sums[2][Vectors];
  GCRT_UNROLL
  for (int j = 0; j < Vectors; ++j) {
    sums[0][j] = load(Lanes<L>{}, y + j * L) * factor;
    sums[1][j] = Pack<float, L>{};
  }
  const auto add = [&](int phase, std::ptrdiff_t k) GCRT_LAMBDA_INLINE {
    const auto weight = splat(Lanes<L>{}, a[k]);
    GCRT_UNROLL
    for (int j = 0; j < Vectors; ++j)
      fma_into(sums[phase][j], weight, load(Lanes<L>{}, b + k * step + j * L));
  };
  std::ptrdiff_t k = 0;
  for (; k + 2 <= depth; k += 2) {
    add(0, k);
    add(1, k + 1);
  }
  if (k < depth) add(0, k);
  GCRT_UNROLL
  for (int j = 0; j < Vectors; ++j) store(Lanes<L>{}, y + j * L, sums[0][j] + sums[1][j]);
}

// y[n] = y[n] * factor + the sum of a[k] * b[k * step + n].
template <int L = kVectorLanes<float>>
GCRT_INLINE void add_rows(const float* a, std::ptrdiff_t depth, const float* b, std::ptrdiff_t step,
                          std::ptrdiff_t columns, float factor, float* y) {
  constexpr int kTogether = L == kVectorLanes<float> ? 4 : 1;
  std::ptrdiff_t n = 0;
  for (; n + kTogether * L <= columns; n += kTogether * L)
    add_some_rows<L, kTogether>(a, depth, b + n, step, factor, y + n);
  for (; n + L <= columns; n += L) add_some_rows<L, 1>(a, depth, b + n, step, factor, y + n);
  if constexpr (L > 1) {
    if (n < columns) add_rows<L / 2>(a, depth, b + n, step, columns - n, factor, y + n);
  }
}

// Columns that are computed together, whose sums lie on the stack.
constexpr std::ptrdiff_t kGemvColumns = 256;

// Columns [begin, end), at most kGemvColumns, of a product. `step`: from one column of B to the next where B
// is contiguous along the depth, else from one row to the next.
template <bool AlongDepth, class E>
GCRT_NOINLINE void gemv(std::ptrdiff_t depth, const float* a, const float* b, std::ptrdiff_t step,
                        const E& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
  alignas(64) float y[kGemvColumns] = {};
  const std::ptrdiff_t columns = end - begin;
  if constexpr (AlongDepth) {
    dot_columns(a, b + begin * step, step, depth, columns, y);
  } else {
    add_rows(a, depth, b + begin, step, columns, 0.0f, y);
  }
  finish_block(y, columns, 1, static_cast<int>(columns), 0, begin, epilogue);
}

// Calls run(entry, begin, end) for the columns of every product in a batch.
template <class Run>
inline void for_columns(const Threads* threads, std::ptrdiff_t entries, std::ptrdiff_t columns,
                        const Run& run) {
  const std::ptrdiff_t blocks = ceil_div(columns, kGemvColumns);
  parallel_for(threads, entries * blocks, [&](std::ptrdiff_t first, std::ptrdiff_t last) {
    for (std::ptrdiff_t item = first; item < last; ++item) {
      const std::ptrdiff_t begin = item % blocks * kGemvColumns;
      run(item / blocks, begin, smaller(columns, begin + kGemvColumns));
    }
  });
}

}  // namespace GCRT_NAMESPACE
