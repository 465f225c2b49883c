// Matrix product C = A * B with B in packed panels and the result handed to an epilogue.
//
// A is M x K, rows `lda` elements apart, contiguous along k. B is packed as [ceil(N / 16)][K][16], zero
// padded (pack_b, or the compiler for constant weights). The epilogue is called as
//   epilogue(Lanes<L>{}, Pack<T, L> sums, std::ptrdiff_t m, std::ptrdiff_t n)
// once for every element, on final sums, with lanes along n and n + L <= N. T is float, double or an integer
// type (sums modulo 2^bits). Nothing is allocated; at most 24 KiB of stack is used.
//
// The driver is written over a policy Dot (dot.h): gemm_int8.h is the same with integer operands.
//
// The order of an element's sum depends on the product and on the element's place in it, never on the block
// that is computed: items begin where tiles begin, and what chooses between algorithms is the whole product.
// So the results are the same bits however the work items are dealt out to threads.
#pragma once

#include "gcrt/cpu/tile.h"

namespace GCRT_NAMESPACE {

// Words of the packed form of a K x N matrix, K in words.
constexpr std::ptrdiff_t packed_b_size(std::ptrdiff_t depth, std::ptrdiff_t columns) {
  return ceil_div(columns, kPanelColumns) * kPanelColumns * depth;
}

// The word where column n (a multiple of the lanes of a vector) starts in a packed B.
constexpr std::ptrdiff_t packed_b_offset(std::ptrdiff_t depth, std::ptrdiff_t n) {
  return n / kPanelColumns * kPanelColumns * depth + n % kPanelColumns;
}

// Packs b[k * stride_k + n * stride_n] for 0 <= k < depth, 0 <= n < columns.
template <class T>
inline void pack_b(std::ptrdiff_t depth, std::ptrdiff_t columns, const T* b, std::ptrdiff_t stride_k,
                   std::ptrdiff_t stride_n, T* packed) {
  for (std::ptrdiff_t n = 0; n < columns; n += kPanelColumns) {
    const T* source = b + n * stride_n;
    const std::ptrdiff_t width = columns - n < kPanelColumns ? columns - n : kPanelColumns;
    if (width < kPanelColumns) {
      for (std::ptrdiff_t k = 0; k < depth; ++k) {
        for (std::ptrdiff_t j = 0; j < kPanelColumns; ++j) {
          packed[k * kPanelColumns + j] = j < width ? source[k * stride_k + j * stride_n] : T(0);
        }
      }
    } else if (stride_n == 1) {
      for (std::ptrdiff_t k = 0; k < depth; ++k) {
        __builtin_memcpy(packed + k * kPanelColumns, source + k * stride_k, kPanelColumns * sizeof(T));
      }
    } else {
      for (std::ptrdiff_t k = 0; k < depth; ++k) {
        GCRT_UNROLL
        for (std::ptrdiff_t j = 0; j < kPanelColumns; ++j) {
          packed[k * kPanelColumns + j] = source[k * stride_k + j * stride_n];
        }
      }
    }
    packed += depth * kPanelColumns;
  }
}

// A product of `rows` rows.
template <class Dot>
struct Product {
  std::ptrdiff_t depth;  // in values, not words
  const typename Dot::Left* a;
  std::ptrdiff_t lda;
  const typename Dot::Right* b_packed;
  std::ptrdiff_t n_origin;  // added to the columns that the epilogue is told: groups of a convolution
  std::ptrdiff_t rows;      // of the whole product: the order of sums follows from it
  const typename Dot::Sum* offsets = nullptr;  // of the columns
  std::ptrdiff_t a_size = 0;  // elements that may be read from `a` on, where words are several

  std::ptrdiff_t words() const { return ceil_div(depth, Dot::kWordDepth); }
};

// Rows and columns of the result; column_begin is a multiple of 16.
struct Block {
  std::ptrdiff_t row_begin;
  std::ptrdiff_t row_end;
  std::ptrdiff_t column_begin;
  std::ptrdiff_t column_end;
  GCRT_INLINE bool is_empty() const { return row_begin >= row_end || column_begin >= column_end; }
};

// One row times several panels at once: as many independent sums as hide the latency of an FMA.
template <int Vectors, class Dot, class E>
GCRT_NOINLINE void gemv_kernel(const Product<Dot>& product, std::ptrdiff_t m, std::ptrdiff_t n,
                               const E& epilogue) {
  constexpr int L = kVectorLanes<typename Dot::Sum>;
  constexpr int kPhases = 2;
  const std::ptrdiff_t depth = product.depth;
  const std::ptrdiff_t panel_stride = depth * kPanelColumns;
  const typename Dot::Left* const a = product.a + m * product.lda;
  const typename Dot::Right* const b = product.b_packed + packed_b_offset(depth, n);
  typename Dot::Vector acc[kPhases][Vectors];
  GCRT_UNROLL
  for (int j = 0; j < Vectors; ++j) acc[0][j] = acc[1][j] = typename Dot::Vector{};
  const auto step = [&](int phase, std::ptrdiff_t k) GCRT_LAMBDA_INLINE {
    const typename Dot::Vector av = Dot::broadcast(Dot::read(a + k));
    const typename Dot::Right* row = b + k * kPanelColumns;
    GCRT_UNROLL
    for (int j = 0; j < Vectors; ++j) {
      const std::ptrdiff_t column = (j * L / kPanelColumns) * panel_stride + j * L % kPanelColumns;
      Dot::multiply_add(acc[phase][j], av, load(Lanes<L>{}, row + column));
    }
  };
  std::ptrdiff_t k = 0;
  for (; k + 2 <= depth; k += 2) {
    step(0, k);
    step(1, k + 1);
  }
  if (k < depth) step(0, k);
  GCRT_UNROLL
  for (int j = 0; j < Vectors; ++j) {
    epilogue(Lanes<L>{}, Dot::add(acc[0][j], acc[1][j]), m, product.n_origin + n + j * L);
  }
}

// Rows whose sums may be parked on the stack between two parts of K.
template <class Dot>
constexpr std::ptrdiff_t kParkedRows = 16 * Dot::kRows;
// Bytes of A that are used for all columns before the next rows are taken: a part of the second-level cache,
// or of the first-level cache when all of B lies there too.
constexpr std::ptrdiff_t kRowBlockBytes = 512 * 1024;
constexpr std::ptrdiff_t kSmallRowBlockBytes = 12 * 1024;
constexpr std::ptrdiff_t kSmallPanelBytes = 24 * 1024;

// Number of row tiles that fetch the next columns of B, one line per 4 words and row tile.
template <class Dot>
constexpr int kPrefetchTiles = 4 * kTileColumns<Dot>* static_cast<int>(sizeof(typename Dot::Right)) / 64;

// The tiles of columns of packed B, one after the other: what a task has to know of each.
template <class Dot>
struct ColumnTiles {
  using Sum = typename Dot::Sum;
  using Padded = Sum[kTileColumns<Dot>];

  const typename Dot::Right* b_packed;
  std::ptrdiff_t words;  // of a column
  const Sum* offsets;    // of all columns
  std::ptrdiff_t n_origin;
  std::ptrdiff_t column_end;
  Padded& padded;                             // offsets at the right edge
  const typename Dot::Right* next = nullptr;  // the columns after those of the task

  // Points the task to the columns from n on, and returns how many the tile has, existing or not.
  GCRT_INLINE int select(TileTask<Dot>& task, std::ptrdiff_t n) {
    const int columns = next_tile_columns<Dot>(column_end - n);
    const auto at = [&](std::ptrdiff_t column) GCRT_LAMBDA_INLINE {
      return b_packed + packed_b_offset(words, column) * Dot::kWordDepth;
    };
    task.b = at(n);
    task.panel_stride = words * kPanelColumns * Dot::kWordDepth;
    task.n = n_origin + n;
    task.valid_columns = static_cast<int>(smaller(column_end - n, columns));
    if constexpr (Dot::kPrefetches) next = at(n + kTileColumns<Dot>);
    if constexpr (Dot::kHasOffsets) {
      task.offsets = offsets + n;
      if (task.valid_columns < columns) {
        for (int j = 0; j < columns; ++j) padded[j] = j < task.valid_columns ? offsets[n + j] : 0;
        task.offsets = padded;
      }
    }
    return columns;
  }

  // Row tile `index` fetches its share of the next columns.
  GCRT_INLINE void prefetch(TileTask<Dot>& task, int index) const {
    if constexpr (Dot::kPrefetches) {
      task.prefetch = next + (index % kPrefetchTiles<Dot>)*(words / 4) * kPanelColumns * Dot::kWordDepth;
    }
  }
};

// How the words of a run of `depth` values are read.
template <class Dot>
GCRT_INLINE void set_run_depth(TileTask<Dot>& task, std::ptrdiff_t depth, bool may_read_on) {
  constexpr int G = Dot::kWordDepth;
  task.run_words = may_read_on ? ceil_div(depth, G) : depth / G;
  task.tail = may_read_on ? 0 : static_cast<int>(depth % G);
}

// For each tile of columns, for each part of K, for each tile of rows. `partial` holds the sums of the rows
// of the block between two parts of K; null: K is one part.
template <class Dot, class E>
inline void gemm_block(const Product<Dot>& product, const Block& block, typename Dot::Sum* partial,
                       const E& epilogue) {
  constexpr int G = Dot::kWordDepth;
  const std::ptrdiff_t words = product.words();
  const std::ptrdiff_t parts = partial != nullptr ? ceil_div(words, Dot::kDepthBlock) : 1;
  const std::ptrdiff_t part = parts > 1 ? (ceil_div(words, parts) + 3) / 4 * 4 : words;
  const typename Dot::Left* clamped[Dot::kRows];
  TileRun run{0, 0};
  TileTask<Dot> task;
  task.row_stride = product.lda;
  task.word_step = G;
  task.runs = &run;
  task.run_count = 1;
  alignas(64) typename ColumnTiles<Dot>::Padded padded;
  ColumnTiles<Dot> tiles{product.b_packed, words, product.offsets, product.n_origin,
                         block.column_end, padded};
  for (std::ptrdiff_t n = block.column_begin; n < block.column_end;) {
    const int columns = tiles.select(task, n);
    std::ptrdiff_t k = 0;
    do {
      run.a_offset = k * G;
      run.b_offset = k * kPanelColumns * G;
      task.resume = k > 0;
      task.finish = k + part >= words;
      int tile = 0;
      for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
        const int rows = Dot::next_rows(block.row_end - m);
        const int valid = static_cast<int>(smaller(block.row_end - m, rows));
        task.base = product.a + m * product.lda;
        task.rows = nullptr;
        if (valid < rows) {
          for (int i = 0; i < rows; ++i) clamped[i] = task.base + smaller(i, valid - 1) * product.lda;
          task.rows = clamped;
        }
        const bool may_read_on = G == 1 || (m + valid - 1) * product.lda + words * G <= product.a_size;
        set_run_depth(task, smaller(product.depth - k * G, part * G), may_read_on || !task.finish);
        tiles.prefetch(task, tile++);
        task.partial = partial == nullptr ? nullptr : partial + (m - block.row_begin) * kTileColumns<Dot>;
        task.m = m;
        task.valid_rows = valid;
        run_tile(rows, columns, task, epilogue);
        m += rows;
      }
      k += part;
    } while (k < words);
    n += columns;
  }
}

template <class Dot, class E>
GCRT_NOINLINE void gemm_in_parts(const Product<Dot>& product, Block block, const E& epilogue) {
  alignas(64) typename Dot::Sum partial[kParkedRows<Dot> * kTileColumns<Dot>];
  const std::ptrdiff_t row_end = block.row_end;
  for (; block.row_begin < row_end; block.row_begin += kParkedRows<Dot>) {
    block.row_end = smaller(row_end, block.row_begin + kParkedRows<Dot>);
    gemm_block(product, block, partial, epilogue);
  }
}

template <class Dot, class E>
inline void gemm_rectangle(const Product<Dot>& product, Block block, const E& epilogue) {
  const std::ptrdiff_t depth = product.depth;
  if constexpr (Dot::kGemvVectors > 0) {
    if (product.rows == 1) {
      constexpr std::ptrdiff_t kWide = Dot::kGemvVectors * kVectorLanes<typename Dot::Sum>;
      for (; block.column_begin + kWide <= block.column_end; block.column_begin += kWide) {
        gemv_kernel<Dot::kGemvVectors>(product, block.row_begin, block.column_begin, epilogue);
      }
    }
  }
  if (product.rows > 2 * Dot::kRows && product.words() > 2 * Dot::kDepthBlock) {
    gemm_in_parts(product, block, epilogue);
    return;
  }
  const std::ptrdiff_t row_bytes = (depth + 1) * static_cast<std::ptrdiff_t>(sizeof(typename Dot::Left));
  const std::ptrdiff_t column_bytes = (depth + 1) * static_cast<std::ptrdiff_t>(sizeof(typename Dot::Right));
  const bool small = column_bytes * (block.column_end - block.column_begin) <= kSmallPanelBytes;
  std::ptrdiff_t step = (small ? kSmallRowBlockBytes : kRowBlockBytes) / row_bytes / Dot::kRows * Dot::kRows;
  if (step < Dot::kRows) step = Dot::kRows;
  const std::ptrdiff_t row_end = block.row_end;
  for (; block.row_begin < row_end; block.row_begin += step) {
    block.row_end = smaller(row_end, block.row_begin + step);
    gemm_block(product, block, static_cast<typename Dot::Sum*>(nullptr), epilogue);
  }
}

// Rows per work item when rows are split; fewer rows than two items are split by columns instead.
template <class Dot>
constexpr std::ptrdiff_t kItemRows = 4 * Dot::kRows;

// Columns per work item otherwise: whole panels and whole tiles, or whole blocks of a single row.
template <class Dot>
constexpr std::ptrdiff_t item_columns(std::ptrdiff_t rows) {
  constexpr int kWide = Dot::kGemvVectors * kVectorLanes<typename Dot::Sum>;
  return larger(kPanelColumns, rows == 1 && kWide > 0 ? kWide : kTileColumns<Dot>);
}

// How many pieces a thread pool may split a product into: blocks of rows, or else of columns of each of
// `groups` products over the same rows.
template <class Dot>
constexpr std::ptrdiff_t product_work_items(std::ptrdiff_t rows, std::ptrdiff_t columns, int groups = 1) {
  return rows >= 2 * kItemRows<Dot> ? ceil_div(rows, kItemRows<Dot>)
                                    : groups * ceil_div(columns, item_columns<Dot>(rows));
}

// What work items [work_begin, work_end) compute of the product of group `group`. Each element belongs to
// exactly one item.
template <class Dot>
GCRT_INLINE Block work_block(std::ptrdiff_t rows, std::ptrdiff_t columns, int group,
                             std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  constexpr std::ptrdiff_t kRows = kItemRows<Dot>;
  if (rows >= 2 * kRows) return {work_begin * kRows, smaller(rows, work_end * kRows), 0, columns};
  const std::ptrdiff_t width = item_columns<Dot>(rows);
  const std::ptrdiff_t before = group * ceil_div(columns, width);
  return {0, rows, larger(0, work_begin - before) * width, smaller(columns, (work_end - before) * width)};
}

// How many pieces a thread pool may split a product into.
template <class T>
constexpr std::ptrdiff_t gemm_work_items(std::ptrdiff_t rows, std::ptrdiff_t columns) {
  return product_work_items<FmaDot<T>>(rows, columns);
}

// Work items [work_begin, work_end) of gemm.
template <class T, class E>
inline void gemm(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth, const T* a,
                 std::ptrdiff_t lda, const T* b_packed, const E& epilogue, std::ptrdiff_t work_begin,
                 std::ptrdiff_t work_end) {
  const Block block = work_block<FmaDot<T>>(rows, columns, 0, work_begin, work_end);
  if (block.is_empty()) return;
  gemm_rectangle(Product<FmaDot<T>>{depth, a, lda, b_packed, 0, rows}, block, epilogue);
}

// The whole product.
template <class T, class E>
inline void gemm(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth, const T* a,
                 std::ptrdiff_t lda, const T* b_packed, const E& epilogue) {
  gemm(rows, columns, depth, a, lda, b_packed, epilogue, 0, gemm_work_items<T>(rows, columns));
}

}  // namespace GCRT_NAMESPACE
