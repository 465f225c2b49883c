// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Matrix product of A of 8 or 16 bits with packed constant B, in int32.
//
//   acc(m, n) = offsets[n] + sum over k of a[m * lda + k] * b(k, n)       modulo 2^32
//
// B is packed as [ceil(N / 16)][ceil(K / 4)][16][4] int8_t where A is of 8 bits too, else as
// [ceil(N / 16)][ceil(K / 2)][16][2] int8_t or int16_t, zero padded in both directions; offsets are [sets][N]
// as in dot_int8.h. `split` is the table of the SplitWords, where bytes are multiplied, or null. The epilogue
// is called as in gemm.h, with Pack<int32_t, L>. Reads of A stay inside its M rows. `InTiles`, of bytes only:
// where there is a tile unit, products are formed in it.
#pragma once

#include "gcrt/cpu/product/dot_tiles.h"
#include "gcrt/cpu/product/gemm.h"

namespace GCRT_NAMESPACE {

// How many pieces a thread pool may split a product into, whatever the element types.
template <bool InTiles = false>
inline std::ptrdiff_t gemm_integer_work_items(std::ptrdiff_t rows, std::ptrdiff_t columns,
                                              const Blocking& blocking) {
  return WorkItems<WordDot<std::uint8_t, std::int8_t, InTiles>>(rows, columns, 1, blocking).count();
}

// Work items [work_begin, work_end), counted with the same blocking, which cuts no depth.
template <bool InTiles = false, class TX, class TW, class E>
inline void gemm_integer(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth, const TX* a,
                         std::ptrdiff_t lda, const TW* b_packed, const std::int32_t* offsets,
                         const std::int32_t* split, const Blocking& blocking, const E& epilogue,
                         std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  using Dot = WordDot<TX, TW, InTiles>;
  const std::ptrdiff_t size = (rows - 1) * lda + depth;
  const Product<Dot> product{depth,
                             a,
                             lda,
                             b_packed,
                             0,
                             rows,
                             offsets_as_read<Dot>(offsets, columns),
                             size,
                             nullptr,
                             SplitWords::of(split, ceil_div(columns, kPanelColumns))};
  typename Dot::Unit unit;
  gemm_items(product, columns, blocking, tile_epilogue<Dot>(epilogue, &unit), work_begin, work_end);
}

}  // namespace GCRT_NAMESPACE
