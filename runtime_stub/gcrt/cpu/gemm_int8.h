// Matrix product of 8-bit A with packed constant B, exact in int32.
//
//   acc(m, n) = offsets[n] + sum over k of a[m * lda + k] * b(k, n)       modulo 2^32
//
// A is uint8_t or int8_t. B is packed as [ceil(N / 16)][ceil(K / 4)][16][4] int8_t, or
// [ceil(N / 16)][ceil(K / 2)][16][2] int16_t, zero padded in both directions. Where A is signed and B is
// int8_t, offsets[n] must include -128 * sum over k of b(k, n) (see tile_int8.h). The epilogue is called as
// in gemm.h, with Pack<int32_t, L>. Reads of A stay inside its M rows.
#pragma once

#include "gcrt/cpu/gemm.h"
#include "gcrt/cpu/tile_int8.h"

namespace GCRT_NAMESPACE {

template <class TX, class TW>
struct IntegerProduct {
  std::ptrdiff_t depth;
  const TX* a;
  std::ptrdiff_t lda;
  std::ptrdiff_t a_size;  // elements that may be read from `a` on
  const TW* b_packed;
  const std::int32_t* offsets;
  std::ptrdiff_t n_origin;  // added to the columns that the epilogue is told: groups of a convolution
};

// Points the task to the weights and offsets of the tile of columns from n on and returns its columns,
// existing or not. `padded` serves at the right edge.
template <class TX, class TW>
GCRT_INLINE int select_columns(IntegerTask<TX, TW>& task, const TW* b_packed, std::ptrdiff_t words,
                               const std::int32_t* offsets, std::ptrdiff_t n, std::ptrdiff_t column_end,
                               std::int32_t (&padded)[kIntegerColumns]) {
  const int columns = next_integer_columns(column_end - n);
  task.b = b_packed + packed_word_offset<TW>(words, n);
  task.panel_stride = words * kPanelColumns * kWordDepth<TW>;
  task.valid_columns = static_cast<int>(smaller(column_end - n, columns));
  task.offsets = offsets + n;
  if (task.valid_columns < columns) {
    for (int j = 0; j < columns; ++j) padded[j] = j < task.valid_columns ? offsets[n + j] : 0;
    task.offsets = padded;
  }
  return columns;
}

// How the words of a run of `depth` values are read.
template <class TX, class TW>
GCRT_INLINE void set_run_depth(IntegerTask<TX, TW>& task, std::ptrdiff_t depth, bool may_read_on) {
  constexpr int G = kWordDepth<TW>;
  task.run_words = may_read_on ? words_of(depth, G) : depth / G;
  task.tail = may_read_on ? 0 : static_cast<int>(depth % G);
}

// For each tile of columns, for each tile of rows.
template <class TX, class TW, class E>
inline void gemm_integer_block(const IntegerProduct<TX, TW>& product, const Block& block, const E& epilogue) {
  const std::ptrdiff_t words = words_of(product.depth, kWordDepth<TW>);
  const TX* clamped[kIntegerRows];
  alignas(64) std::int32_t padded[kIntegerColumns];
  const TileRun run{0, 0};
  IntegerTask<TX, TW> task;
  task.row_stride = product.lda;
  task.runs = &run;
  task.run_count = 1;
  for (std::ptrdiff_t n = block.column_begin; n < block.column_end;) {
    const int columns =
        select_columns(task, product.b_packed, words, product.offsets, n, block.column_end, padded);
    task.n = product.n_origin + n;
    for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
      const int rows = next_integer_rows(block.row_end - m);
      const int valid = static_cast<int>(smaller(block.row_end - m, rows));
      task.base = product.a + m * product.lda;
      task.rows = nullptr;
      if (valid < rows) {
        for (int i = 0; i < rows; ++i) clamped[i] = task.base + smaller(i, valid - 1) * product.lda;
        task.rows = clamped;
      }
      const std::ptrdiff_t end = (m + valid - 1) * product.lda + words * kWordDepth<TW>;
      set_run_depth(task, product.depth, end <= product.a_size);
      task.m = m;
      task.valid_rows = valid;
      run_integer_tile(rows, columns, task, epilogue);
      m += rows;
    }
    n += columns;
  }
}

template <class TX, class TW, class E>
inline void gemm_integer_rectangle(const IntegerProduct<TX, TW>& product, Block block, const E& epilogue) {
  const std::ptrdiff_t row_bytes = product.depth + 1;
  const std::ptrdiff_t weights =
      row_bytes * (block.column_end - block.column_begin) * static_cast<std::ptrdiff_t>(sizeof(TW));
  const std::ptrdiff_t bytes = weights <= kSmallPanelBytes ? kSmallRowBlockBytes : kRowBlockBytes;
  const std::ptrdiff_t step = larger(1, bytes / row_bytes / kIntegerRows) * kIntegerRows;
  const std::ptrdiff_t row_end = block.row_end;
  for (; block.row_begin < row_end; block.row_begin += step) {
    block.row_end = smaller(row_end, block.row_begin + step);
    gemm_integer_block(product, block, epilogue);
  }
}

// Rows and columns per work item: rows are split, or columns where there are fewer rows than two items.
constexpr std::ptrdiff_t kIntegerItemRows = 4 * kIntegerRows;
constexpr std::ptrdiff_t kIntegerItemColumns = larger(kPanelColumns, kIntegerColumns);

// How many pieces a thread pool may split a product into.
constexpr std::ptrdiff_t gemm_integer_work_items(std::ptrdiff_t rows, std::ptrdiff_t columns) {
  return rows >= 2 * kIntegerItemRows ? words_of(rows, kIntegerItemRows)
                                      : words_of(columns, kIntegerItemColumns);
}

// Work items [work_begin, work_end). Each element is computed by exactly one item.
template <class TX, class TW, class E>
inline void gemm_integer(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth, const TX* a,
                         std::ptrdiff_t lda, const TW* b_packed, const std::int32_t* offsets,
                         const E& epilogue, std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  const IntegerProduct<TX, TW> product{depth, a, lda, (rows - 1) * lda + depth, b_packed, offsets, 0};
  Block block{0, rows, 0, columns};
  if (rows >= 2 * kIntegerItemRows) {
    block.row_begin = work_begin * kIntegerItemRows;
    block.row_end = smaller(rows, work_end * kIntegerItemRows);
  } else {
    block.column_begin = work_begin * kIntegerItemColumns;
    block.column_end = smaller(columns, work_end * kIntegerItemColumns);
  }
  if (block.row_begin < block.row_end && block.column_begin < block.column_end) {
    gemm_integer_rectangle(product, block, epilogue);
  }
}

}  // namespace GCRT_NAMESPACE
