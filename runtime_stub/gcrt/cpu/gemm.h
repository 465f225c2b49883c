// Matrix product C = A * B with B in packed panels and the result handed to an epilogue.
//
// A is M x K, rows `lda` elements apart, contiguous along k. B is packed as [ceil(N / 16)][K][16], zero
// padded (pack_b, or the compiler for constant weights). The epilogue is called as
//   epilogue(Lanes<L>{}, Pack<T, L> sums, std::ptrdiff_t m, std::ptrdiff_t n)
// once for every element, on final sums, with lanes along n and n + L <= N. T is float, double or an integer
// type (sums modulo 2^bits). Nothing is allocated; at most 24 KiB of stack is used.
//
// The order of an element's sum depends on the product and on the element's place in it, never on the block
// that is computed: items begin where tiles begin, and what chooses between algorithms is the whole product.
// So the results are the same bits however the work items are dealt out to threads.
#pragma once

#include "gcrt/cpu/tile.h"

namespace GCRT_NAMESPACE {

// Elements of the packed form of a K x N matrix.
constexpr std::ptrdiff_t packed_b_size(std::ptrdiff_t depth, std::ptrdiff_t columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns * depth;
}

// Where column n (a multiple of the lanes of a vector) starts in a packed B.
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

// Vectors of one row that are computed together, where there are as many.
constexpr int kGemvVectors = 4;

// One row times several panels at once: as many independent sums as hide the latency of an FMA.
template <int Vectors, class T, class E>
GCRT_NOINLINE void gemv_kernel(std::ptrdiff_t depth, const T* a, const T* b, std::ptrdiff_t panel_stride,
                               std::ptrdiff_t m, std::ptrdiff_t n, const E& epilogue) {
  constexpr int L = kVectorLanes<T>;
  constexpr int kPhases = 2;
  using V = Pack<T, L>;
  V acc[kPhases][Vectors];
  GCRT_UNROLL
  for (int j = 0; j < Vectors; ++j) acc[0][j] = acc[1][j] = V{};
  const auto step = [&](int phase, std::ptrdiff_t k) GCRT_LAMBDA_INLINE {
    const V av = splat(Lanes<L>{}, a[k]);
    const T* row = b + k * kPanelColumns;
    GCRT_UNROLL
    for (int j = 0; j < Vectors; ++j) {
      const V bv = load(Lanes<L>{}, row + (j * L / kPanelColumns) * panel_stride + j * L % kPanelColumns);
      acc[phase][j] = multiply_add(av, bv, acc[phase][j]);
    }
  };
  std::ptrdiff_t k = 0;
  for (; k + 2 <= depth; k += 2) {
    step(0, k);
    step(1, k + 1);
  }
  if (k < depth) step(0, k);
  GCRT_UNROLL
  for (int j = 0; j < Vectors; ++j) epilogue(Lanes<L>{}, acc[0][j] + acc[1][j], m, n + j * L);
}

// K is cut into parts of about this many steps when many rows share a panel, so that the panel stays in
// cache.
constexpr std::ptrdiff_t kDepthBlock = 512;
// Rows whose sums may be parked on the stack between two parts of K.
constexpr std::ptrdiff_t kParkedRows = 16 * kTileRows;
// Bytes of A that are used for all columns before the next rows are taken: a part of the second-level cache,
// or of the first-level cache when all of B lies there too.
constexpr std::ptrdiff_t kRowBlockBytes = 512 * 1024;
constexpr std::ptrdiff_t kSmallRowBlockBytes = 12 * 1024;
constexpr std::ptrdiff_t kSmallPanelBytes = 24 * 1024;

// Number of row tiles that fetch the next columns of B, one line per 4 steps of k and row tile.
template <class T>
constexpr int kPrefetchTiles = 4 * kTileColumns<T>* static_cast<int>(sizeof(T)) / 64;

template <class T>
struct Product {
  std::ptrdiff_t depth;
  const T* a;
  std::ptrdiff_t lda;
  const T* b_packed;
  std::ptrdiff_t n_origin;  // added to the columns that the epilogue is told: groups of a convolution
  std::ptrdiff_t rows;      // of the whole product: the order of sums follows from it
};

// Rows and columns of the result; column_begin is a multiple of 16.
struct Block {
  std::ptrdiff_t row_begin;
  std::ptrdiff_t row_end;
  std::ptrdiff_t column_begin;
  std::ptrdiff_t column_end;
};

// For each tile of columns, for each part of K, for each tile of rows. `partial` holds the sums of the rows
// of the block between two parts of K; null: K is one part.
template <class T, class E>
inline void gemm_block(const Product<T>& product, const Block& block, T* partial, const E& epilogue) {
  const std::ptrdiff_t depth = product.depth;
  const std::ptrdiff_t parts = partial != nullptr ? (depth + kDepthBlock - 1) / kDepthBlock : 1;
  const std::ptrdiff_t part = parts > 1 ? ((depth + parts - 1) / parts + 3) / 4 * 4 : depth;
  const T* clamped[kTileRows];
  TileRun run{0, 0};
  TileTask<T> task;
  task.rows_step = 0;
  task.row_stride = product.lda;
  task.runs = &run;
  task.run_count = 1;
  task.panel_stride = depth * kPanelColumns;
  for (std::ptrdiff_t n = block.column_begin; n < block.column_end; n += kTileColumns<T>) {
    task.b = product.b_packed + packed_b_offset(depth, n);
    task.n = product.n_origin + n;
    task.valid_columns = static_cast<int>(smaller(block.column_end - n, kTileColumns<T>));
    const T* const next = product.b_packed + packed_b_offset(depth, n + kTileColumns<T>);
    std::ptrdiff_t k = 0;
    do {
      task.run_length = smaller(depth - k, part);
      run.a_offset = k;
      run.b_offset = k * kPanelColumns;
      task.resume = k > 0;
      task.finish = k + part >= depth;
      int tile = 0;
      for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
        const int tile_rows = next_tile_rows(block.row_end - m);
        const int valid = static_cast<int>(smaller(block.row_end - m, tile_rows));
        task.base = product.a + m * product.lda;
        task.rows = nullptr;
        if (valid < tile_rows) {
          for (int i = 0; i < tile_rows; ++i) clamped[i] = task.base + smaller(i, valid - 1) * product.lda;
          task.rows = clamped;
        }
        task.prefetch = next + (tile++ % kPrefetchTiles<T>)*(depth / 4) * kPanelColumns;
        task.partial = partial == nullptr ? nullptr : partial + (m - block.row_begin) * kTileColumns<T>;
        task.m = m;
        task.valid_rows = valid;
        run_tile(tile_rows, task, epilogue);
        m += tile_rows;
      }
      k += part;
    } while (k < depth);
  }
}

template <class T, class E>
GCRT_NOINLINE void gemm_in_parts(const Product<T>& product, Block block, const E& epilogue) {
  // One row more than kParkedRows may be computed and dropped.
  alignas(64) T partial[(kParkedRows + 1) * kTileColumns<T>];
  const std::ptrdiff_t row_end = block.row_end;
  for (; block.row_begin < row_end; block.row_begin += kParkedRows) {
    block.row_end = smaller(row_end, block.row_begin + kParkedRows);
    gemm_block(product, block, partial, epilogue);
  }
}

template <class T, class E>
inline void gemm_rectangle(const Product<T>& product, Block block, const E& epilogue) {
  const std::ptrdiff_t depth = product.depth;
  if (product.rows == 1) {
    constexpr std::ptrdiff_t kWide = kGemvVectors * kVectorLanes<T>;
    for (; block.column_begin + kWide <= block.column_end; block.column_begin += kWide) {
      gemv_kernel<kGemvVectors>(depth, product.a + block.row_begin * product.lda,
                                product.b_packed + packed_b_offset(depth, block.column_begin),
                                depth * kPanelColumns, block.row_begin, product.n_origin + block.column_begin,
                                epilogue);
    }
  }
  if (product.rows > 2 * kTileRows && depth > 2 * kDepthBlock) {
    gemm_in_parts(product, block, epilogue);
    return;
  }
  const std::ptrdiff_t row_bytes = (depth + 1) * static_cast<std::ptrdiff_t>(sizeof(T));
  const bool small = row_bytes * (block.column_end - block.column_begin) <= kSmallPanelBytes;
  std::ptrdiff_t step = (small ? kSmallRowBlockBytes : kRowBlockBytes) / row_bytes / kTileRows * kTileRows;
  if (step < kTileRows) step = kTileRows;
  const std::ptrdiff_t row_end = block.row_end;
  for (; block.row_begin < row_end; block.row_begin += step) {
    block.row_end = smaller(row_end, block.row_begin + step);
    gemm_block(product, block, static_cast<T*>(nullptr), epilogue);
  }
}

// Rows per work item when rows are split; fewer rows than two items are split by columns instead.
constexpr std::ptrdiff_t kItemRows = 4 * kTileRows;

// Columns per work item otherwise: whole panels and whole tiles, or whole blocks of a single row.
template <class T>
constexpr std::ptrdiff_t item_columns(std::ptrdiff_t rows) {
  return larger(kPanelColumns, rows == 1 ? kGemvVectors * kVectorLanes<T> : kTileColumns<T>);
}

// How many pieces a thread pool may split the columns of a product into.
template <class T>
constexpr std::ptrdiff_t column_items(std::ptrdiff_t rows, std::ptrdiff_t columns) {
  return (columns + item_columns<T>(rows) - 1) / item_columns<T>(rows);
}

// How many pieces a thread pool may split a product into.
template <class T>
constexpr std::ptrdiff_t gemm_work_items(std::ptrdiff_t rows, std::ptrdiff_t columns) {
  return rows >= 2 * kItemRows ? (rows + kItemRows - 1) / kItemRows : column_items<T>(rows, columns);
}

// Work items [work_begin, work_end) of gemm. Each element is computed by exactly one item.
template <class T, class E>
inline void gemm(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth, const T* a,
                 std::ptrdiff_t lda, const T* b_packed, const E& epilogue, std::ptrdiff_t work_begin,
                 std::ptrdiff_t work_end) {
  const Product<T> product{depth, a, lda, b_packed, 0, rows};
  if (rows >= 2 * kItemRows) {
    const Block block{work_begin * kItemRows, smaller(rows, work_end * kItemRows), 0, columns};
    if (block.row_begin < block.row_end) gemm_rectangle(product, block, epilogue);
  } else {
    const std::ptrdiff_t width = item_columns<T>(rows);
    const Block block{0, rows, work_begin * width, smaller(columns, work_end * width)};
    if (block.column_begin < block.column_end) gemm_rectangle(product, block, epilogue);
  }
}

// The whole product.
template <class T, class E>
inline void gemm(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth, const T* a,
                 std::ptrdiff_t lda, const T* b_packed, const E& epilogue) {
  if (rows > 0) {
    gemm_rectangle(Product<T>{depth, a, lda, b_packed, 0, rows}, Block{0, rows, 0, columns}, epilogue);
  }
}

}  // namespace GCRT_NAMESPACE
