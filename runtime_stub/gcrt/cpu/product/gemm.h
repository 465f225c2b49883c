// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Matrix product C = A * B with B in packed panels and the result handed to an epilogue.
//
// A is M x K, rows `lda` elements apart, contiguous along k. B is packed as [ceil(N / 16)][K][16], zero
// padded (pack_b, or the compiler for constant weights). The epilogue is called as
//   epilogue(Lanes<L>{}, Pack<T, L> sums, std::ptrdiff_t m, std::ptrdiff_t n)
// once for every element, on final sums, with lanes along n and n + L <= N. T is float, double or an integer
// type (sums modulo 2^bits). Nothing is allocated.
//
// The driver is written over a policy Dot (dot.h): gemm_int8.h is the same with integer operands. How a
// product is cut into pieces is decided when the model is compiled (Blocking).
//
// The order of an element's sum depends on the product and on the element's place in it, never on the block
// that is computed: items begin where tiles begin, and what chooses between algorithms is the whole product.
// So the results are the same bits however the work items are dealt out to threads.
#pragma once

#include "gcrt/cpu/product/tile.h"
#include "gcrt/parallel.h"

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

// How a product is cut into pieces. Rows and columns are rounded up to whole tiles; 0: all of them.
struct Blocking {
  std::ptrdiff_t item_rows;     // of a work item
  std::ptrdiff_t item_columns;  // of a work item
  std::ptrdiff_t block_rows;    // that stay in a cache while all columns of B pass
  std::ptrdiff_t depth;  // values of k, a multiple of 16, that all of a block is summed over before the
                         // next ones; 0: all of them
};

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
  std::ptrdiff_t a_size = 0;          // elements that may be read from `a` on, where words are several
  typename Dot::Sum* sums = nullptr;  // parked_sums_size, where the depth is cut
  SplitWords split = {};

  std::ptrdiff_t words() const { return ceil_div(depth, Dot::kWordDepth); }
};

// Rows and columns of the result; column_begin is a multiple of 16.
struct Block {
  std::ptrdiff_t row_begin;
  std::ptrdiff_t row_end;
  std::ptrdiff_t column_begin;
  std::ptrdiff_t column_end;
};

// One row times several panels at once: as many independent sums as hide the latency of an FMA. The sums are
// left in `sums`.
template <int Vectors, class Dot>
GCRT_NOINLINE void gemv_kernel(const Product<Dot>& product, std::ptrdiff_t m, std::ptrdiff_t n,
                               typename Dot::Sum* sums) {
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
  for (int j = 0; j < Vectors; ++j) store(Lanes<L>{}, sums + j * L, Dot::add(acc[0][j], acc[1][j]));
}

// The tiles of columns of packed B, one after the other: what a task has to know of each.
template <class Dot>
struct ColumnTiles {
  static_assert(kTileColumns<Dot> % kPanelColumns == 0 || kPanelColumns % kTileColumns<Dot> == 0,
                "a tile has whole panels, or a panel whole tiles");
  using Sum = typename Dot::Sum;
  using Padded = Sum[kTileColumns<Dot>];

  const typename Dot::Right* b_packed;
  std::ptrdiff_t words;  // of a column
  const Sum* offsets;    // of all columns
  std::ptrdiff_t n_origin;
  std::ptrdiff_t column_end;
  Padded& padded;  // offsets at the right edge
  SplitWords split;

  // Points the task to the columns from n on, and returns how many the tile has, existing or not. Words
  // [first, first + count) of the columns after them are fetched meanwhile.
  GCRT_INLINE int select(TileTask<Dot>& task, std::ptrdiff_t n, std::ptrdiff_t first, std::ptrdiff_t count) {
    const int columns = next_tile_columns<Dot>(column_end - n);
    const auto at = [&](std::ptrdiff_t column) GCRT_LAMBDA_INLINE {
      return b_packed + packed_b_offset(words, column) * Dot::kWordDepth;
    };
    task.b = at(n);
    task.panel_stride = words * kPanelColumns * Dot::kWordDepth;
    task.n = n_origin + n;
    task.valid_columns = static_cast<int>(smaller(column_end - n, columns));
    task.index = 0;
    if constexpr (Dot::kPrefetches > 0) {
      task.next = at(n + kTileColumns<Dot>) + first * kPanelColumns * Dot::kWordDepth;
      task.next_step = count / 4 * kPanelColumns * Dot::kWordDepth;
    }
    if constexpr (Dot::kSplitsWords) {
      task.split = split.from(n / kPanelColumns);
      task.split_column = n % kPanelColumns * Dot::kWordDepth;
    }
    if constexpr (Dot::kHasOffsets) {
      task.offsets = offsets + n;
      if (task.valid_columns < columns) {
        for (int j = 0; j < columns; ++j) padded[j] = j < task.valid_columns ? offsets[n + j] : 0;
        task.offsets = padded;
      }
    }
    return columns;
  }
};

// How the words of a run of `depth` values are read.
template <class Dot>
GCRT_INLINE void set_run_depth(TileTask<Dot>& task, std::ptrdiff_t depth, bool may_read_on) {
  constexpr int G = Dot::kWordDepth;
  task.run_words = may_read_on ? ceil_div(depth, G) : depth / G;
  task.tail = may_read_on ? 0 : static_cast<int>(depth % G);
}

// Sums that wait between two parts of K: for each tile of columns those of all rows, and of the row that a
// last tile may have too many.
constexpr std::ptrdiff_t parked_rows(std::ptrdiff_t rows) { return rows + 1; }
constexpr std::ptrdiff_t parked_sums_size(std::ptrdiff_t rows, std::ptrdiff_t columns) {
  return parked_rows(rows) * (ceil_div(columns, kPanelColumns) * kPanelColumns);
}

// For each part of K, for each tile of columns, for each tile of rows.
template <class Dot>
GCRT_NOINLINE void gemm_block(const Product<Dot>& product, const Block& block, std::ptrdiff_t part,
                              const TileEpilogue<Dot>& epilogue) {
  constexpr int G = Dot::kWordDepth;
  constexpr std::ptrdiff_t kMost = kStripTiles<Dot> * Dot::kRows;
  const std::ptrdiff_t words = product.words();
  const typename Dot::Left* clamped[Dot::kRows];
  alignas(64) typename Dot::Sum sums[kMost * kTileColumns<Dot>];
  TileRun run{0, 0};
  TileTask<Dot> task;
  task.row_stride = product.lda;
  task.word_step = G;
  task.runs = &run;
  task.run_count = 1;
  alignas(64) typename ColumnTiles<Dot>::Padded padded;
  ColumnTiles<Dot> tiles{product.b_packed, words,  product.offsets, product.n_origin,
                         block.column_end, padded, product.split};
  std::ptrdiff_t k = 0;
  do {
    const std::ptrdiff_t part_words = smaller(part, words - k);
    run.a_offset = k * G;
    run.b_offset = k * kPanelColumns * G;
    task.resume = k > 0;
    task.finish = k + part >= words;
    for (std::ptrdiff_t n = block.column_begin; n < block.column_end;) {
      const int columns = tiles.select(task, n, k, part_words);
      for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
        const std::ptrdiff_t left = block.row_end - m;
        const int rows = Dot::next_rows(left);
        const int valid = static_cast<int>(smaller(left, rows));
        task.tiles = left < kMost ? static_cast<int>(larger(1, left / Dot::kRows)) : kStripTiles<Dot>;
        task.base = product.a + m * product.lda;
        task.rows = nullptr;
        if (valid < rows) {
          for (int i = 0; i < rows; ++i) clamped[i] = task.base + smaller(i, valid - 1) * product.lda;
          task.rows = clamped;
        }
        const std::ptrdiff_t end = m + (task.tiles - 1) * rows + valid;
        const bool may_read_on = G == 1 || (end - 1) * product.lda + words * G <= product.a_size;
        set_run_depth(task, smaller(product.depth - k * G, part * G), may_read_on || !task.finish);
        task.sums = part >= words ? sums : product.sums + n * parked_rows(product.rows) + m * columns;
        task.m = m;
        task.valid_rows = valid;
        run_tile(rows, columns, task, epilogue);
        task.index += task.tiles;
        m = end;
      }
      n += columns;
    }
    k += part;
  } while (k < words);
}

// `size` rounded up to whole units; `all` of them if it is 0.
constexpr std::ptrdiff_t whole_pieces(std::ptrdiff_t size, std::ptrdiff_t unit, std::ptrdiff_t all) {
  return ceil_div(size > 0 ? size : larger(1, all), unit) * unit;
}

// Blocks of rows, each of whole tiles. What multiplies in the tile unit cuts the depth itself.
template <class Dot>
inline void gemm_blocks(const Product<Dot>& product, const Blocking& blocking, Block block,
                        const TileEpilogue<Dot>& epilogue) {
  if constexpr (Dot::kGemvVectors > 0) {
    if (product.rows == 1) {
      constexpr int kWide = Dot::kGemvVectors * kVectorLanes<typename Dot::Sum>;
      alignas(64) typename Dot::Sum sums[kWide];
      for (; block.column_begin + kWide <= block.column_end; block.column_begin += kWide) {
        const std::ptrdiff_t n = block.column_begin;
        gemv_kernel<Dot::kGemvVectors>(product, block.row_begin, n, sums);
        epilogue.block(sums, kWide, 1, kWide, block.row_begin, product.n_origin + n, epilogue.epilogue);
      }
    }
  }
  const std::ptrdiff_t part =
      blocking.depth > 0 && !Dot::kInTiles ? blocking.depth / Dot::kWordDepth : larger(1, product.words());
  const std::ptrdiff_t row_end = block.row_end;
  const std::ptrdiff_t step = whole_pieces(blocking.block_rows, Dot::kRows, row_end);
  for (; block.row_begin < row_end; block.row_begin += step) {
    block.row_end = smaller(row_end, block.row_begin + step);
    gemm_block(product, block, part, epilogue);
  }
}

// The work items of one or more products over the same rows, one for each group: lines of columns, each of
// several blocks of rows. Several groups follow each other over the same block of rows, whose channels lie
// side by side in memory, and in the same lines of a cache.
template <class Dot>
class WorkItems {
 public:
  WorkItems(std::ptrdiff_t rows, std::ptrdiff_t columns, int groups, const Blocking& blocking)
      : rows_(rows),
        columns_(columns),
        groups_(groups),
        item_rows_(whole_pieces(blocking.item_rows, Dot::kItemRows, rows)),
        item_columns_(whole_pieces(blocking.item_columns, column_unit(rows), columns)) {}

  std::ptrdiff_t count() const { return groups_ * lines() * row_items(); }

  // Calls run(group, block) for blocks that hold items [begin, end), each element once; neighbours in one
  // block where they are a rectangle.
  template <class F>
  GCRT_INLINE void for_each_block(std::ptrdiff_t begin, std::ptrdiff_t end, const F& run) const {
    if (groups_ > 1) return for_each_block_of_groups(begin, end, run);
    const std::ptrdiff_t across = row_items();
    while (begin < end) {
      const std::ptrdiff_t line = begin / across % lines();
      const std::ptrdiff_t first = begin % across;
      const bool is_whole = first == 0 && end - begin >= across;
      const std::ptrdiff_t count = is_whole ? smaller((end - begin) / across, lines() - line) : 1;
      const std::ptrdiff_t items = is_whole ? count * across : smaller(across - first, end - begin);
      run(0, Block{first * item_rows_, is_whole ? rows_ : smaller(rows_, (first + items) * item_rows_),
                   line * item_columns_, smaller(columns_, (line + count) * item_columns_)});
      begin += items;
    }
  }

 private:
  template <class F>
  GCRT_INLINE void for_each_block_of_groups(std::ptrdiff_t begin, std::ptrdiff_t end, const F& run) const {
    while (begin < end) {
      const std::ptrdiff_t row = begin / (groups_ * lines()) * item_rows_;
      const std::ptrdiff_t line = begin % lines();
      const std::ptrdiff_t count = smaller(lines() - line, end - begin);
      run(static_cast<int>(begin / lines() % groups_),
          Block{row, smaller(rows_, row + item_rows_), line * item_columns_,
                smaller(columns_, (line + count) * item_columns_)});
      begin += count;
    }
  }
  // Columns that an item has a multiple of: whole panels and whole tiles, or whole blocks of a single row.
  static std::ptrdiff_t column_unit(std::ptrdiff_t rows) {
    constexpr int kWide = Dot::kGemvVectors * kVectorLanes<typename Dot::Sum>;
    return larger(kPanelColumns, rows == 1 && kWide > 0 ? kWide : kTileColumns<Dot>);
  }
  std::ptrdiff_t row_items() const { return ceil_div(rows_, item_rows_); }
  std::ptrdiff_t lines() const { return ceil_div(columns_, item_columns_); }

  std::ptrdiff_t rows_, columns_, groups_, item_rows_, item_columns_;
};

template <class Dot>
GCRT_NOINLINE void gemm_items(const Product<Dot>& product, std::ptrdiff_t columns, const Blocking& blocking,
                              const TileEpilogue<Dot>& epilogue, std::ptrdiff_t work_begin,
                              std::ptrdiff_t work_end) {
  WorkItems<Dot>(product.rows, columns, 1, blocking)
      .for_each_block(work_begin, work_end,
                      [&](int, const Block& block) { gemm_blocks(product, blocking, block, epilogue); });
}

// How many pieces a thread pool may split a product of elements T into.
template <class Tile = UsualTile, class T = float>
inline std::ptrdiff_t gemm_work_items(std::ptrdiff_t rows, std::ptrdiff_t columns, const Blocking& blocking) {
  return WorkItems<typename Tile::template Dot<T>>(rows, columns, 1, blocking).count();
}

// Work items [work_begin, work_end), which must have been counted with the same tile and blocking.
//   sums  parked_sums_size elements if the blocking cuts the depth
template <class Tile = UsualTile, class T, class E>
inline void gemm(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth, const T* a,
                 std::ptrdiff_t lda, const T* b_packed, const Blocking& blocking, const E& epilogue,
                 std::ptrdiff_t work_begin, std::ptrdiff_t work_end, T* sums = nullptr) {
  using Dot = typename Tile::template Dot<T>;
  typename Dot::Unit unit;
  gemm_items(Product<Dot>{depth, a, lda, b_packed, 0, rows, nullptr, 0, sums}, columns, blocking,
             tile_epilogue<Dot>(epilogue, &unit), work_begin, work_end);
}

// All of them, shared among threads.
template <class Tile = UsualTile, class T, class E>
GCRT_NOINLINE void gemm(const Threads* threads, std::ptrdiff_t rows, std::ptrdiff_t columns,
                        std::ptrdiff_t depth, const T* a, std::ptrdiff_t lda, const T* b_packed,
                        const Blocking& blocking, const E& epilogue, T* sums = nullptr) {
  parallel_for(threads, gemm_work_items<Tile, T>(rows, columns, blocking),
               [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
                 gemm<Tile>(rows, columns, depth, a, lda, b_packed, blocking, epilogue, begin, end, sums);
               });
}

// The whole product.
template <class Tile = UsualTile, class T, class E>
inline void gemm(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth, const T* a,
                 std::ptrdiff_t lda, const T* b_packed, const E& epilogue) {
  gemm<Tile>(rows, columns, depth, a, lda, b_packed, Blocking{}, epilogue, 0,
             gemm_work_items<Tile, T>(rows, columns, Blocking{}));
}

}  // namespace GCRT_NAMESPACE
