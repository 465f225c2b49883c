// The register tile that every dense float kernel shares: rows of A times packed panels of B, accumulated
// in registers and handed to an epilogue.
//
//   C[i][n] = sum over runs r, sum over k < run_length of  rows[r][i][a_offset_r + k] * B[b_offset_r + 16
//   k][n]
//
// A matrix product has one run of length K. A convolution has one run per kernel tap (or per kernel row), and
// a row pointer per output pixel, so no im2col buffer exists. Row pointers are reloaded once per run; inside
// a run they are constant and one index register walks, which measures 95-97 % of the FMA peak at 6x16 and
// 12x32.
#pragma once

#include <type_traits>

#include "gcrt/config.h"
#include "gcrt/isa.h"
#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

// Columns of one packed panel of B: [ceil(N / 16)][K][16], zero padded. The same for every machine.
constexpr int kPanelColumns = 16;

// Rows of the largest register tile: 2 vectors per row, as many rows as the register file holds.
#if GCRT_VECTOR_BYTES == 64
constexpr int kTileRows = 12;
#elif GCRT_VECTOR_BYTES == 32
constexpr int kTileRows = 6;
#elif defined(__aarch64__)
constexpr int kTileRows = 8;
#else
constexpr int kTileRows = 4;
#endif

// Lanes of one machine vector of T, and columns of one register tile.
template <class T>
constexpr int kVectorLanes = GCRT_VECTOR_BYTES / static_cast<int>(sizeof(T));
template <class T>
constexpr int kTileColumns = 2 * kVectorLanes<T>;

constexpr std::ptrdiff_t smaller(std::ptrdiff_t a, std::ptrdiff_t b) { return a < b ? a : b; }
constexpr std::ptrdiff_t larger(std::ptrdiff_t a, std::ptrdiff_t b) { return a < b ? b : a; }

struct TileRun {
  std::ptrdiff_t a_offset;  // elements past each row pointer
  std::ptrdiff_t b_offset;  // elements past TileTask::b
};

template <class T>
struct TileTask {
  const T* const* rows = nullptr;  // row pointers of the first run, or null: row i is base + i * row_stride
  std::ptrdiff_t rows_step = 0;    // row pointers from one run to the next; 0: all runs share them
  const T* base = nullptr;
  std::ptrdiff_t row_stride = 0;
  const TileRun* runs;
  std::ptrdiff_t run_count;
  std::ptrdiff_t run_length;
  const T* b;                   // first column of the tile inside its panel
  std::ptrdiff_t panel_stride;  // elements from one panel to the next
  const T* prefetch;            // B that will be wanted soon: one line is fetched every 4 steps of k
  T* partial = nullptr;         // [rows][kTileColumns] sums carried between parts of a long K, or null
  bool resume = false;          // start from `partial` instead of zero
  bool finish = true;           // call the epilogue instead of storing to `partial`
  int valid_rows;               // rows and columns that exist; the rest is computed and dropped
  int valid_columns;
  std::ptrdiff_t m;  // what the epilogue is told about the first row and column
  std::ptrdiff_t n;
};

// a * b + c: fused for floats, modulo 2^bits for integers.
template <class V>
GCRT_INLINE V multiply_add(V a, V b, V c) {
  using T = ElementOf<V>;
  if constexpr (std::is_floating_point<T>::value) {
    return fma(a, b, c);
  } else {
    using U = UnsignedBits<T>;
    return bit_cast<T>(bit_cast<U>(a) * bit_cast<U>(b) + bit_cast<U>(c));
  }
}

// The epilogue on a block of sums that lie in memory with `stride` elements from row to row: full vectors,
// then halves down to one lane, so that nothing past the last column is read or written.
template <int L, class T, class E>
GCRT_INLINE void finish_lanes(const T* sums, std::ptrdiff_t stride, int rows, int columns, std::ptrdiff_t m,
                              std::ptrdiff_t n, const E& epilogue) {
  for (; columns >= L; columns -= L) {
    for (int i = 0; i < rows; ++i) epilogue(Lanes<L>{}, load(Lanes<L>{}, sums + i * stride), m + i, n);
    sums += L;
    n += L;
  }
  if constexpr (L > 1) {
    if (columns > 0) finish_lanes<L / 2>(sums, stride, rows, columns, m, n, epilogue);
  }
}

template <class T, class E>
GCRT_NOINLINE void finish_block(const T* sums, std::ptrdiff_t stride, int rows, int columns, std::ptrdiff_t m,
                                std::ptrdiff_t n, const E& epilogue) {
  finish_lanes<kVectorLanes<T>>(sums, stride, rows, columns, m, n, epilogue);
}

// Small tiles do not have enough independent sums to hide the latency of an FMA; they keep several sums per
// element, for k modulo the number of phases.
constexpr int tile_phases(int accumulators) { return accumulators >= 8 ? 1 : accumulators >= 4 ? 2 : 4; }

template <int Rows, int Vectors, class T>
struct TileSums {
  static constexpr int kPhases = tile_phases(Rows * Vectors);
  using V = Pack<T, kVectorLanes<T>>;
  V sum[kPhases][Rows][Vectors];
};

// One step of k: an outer product of one column of A and one row of B.
template <int Phase, int Rows, int Vectors, class T>
GCRT_INLINE void tile_step(TileSums<Rows, Vectors, T>& acc, const T* const (&a)[Rows], std::ptrdiff_t k,
                           const T* b, std::ptrdiff_t panel_stride) {
  constexpr int L = kVectorLanes<T>;
  constexpr int P = Phase % TileSums<Rows, Vectors, T>::kPhases;
  Pack<T, L> bv[Vectors];
  GCRT_UNROLL
  for (int j = 0; j < Vectors; ++j) {
    bv[j] = load(Lanes<L>{}, b + (j * L / kPanelColumns) * panel_stride + j * L % kPanelColumns);
  }
  GCRT_UNROLL
  for (int i = 0; i < Rows; ++i) {
    const Pack<T, L> av = splat(Lanes<L>{}, a[i][k]);
    GCRT_UNROLL
    for (int j = 0; j < Vectors; ++j) acc.sum[P][i][j] = multiply_add(av, bv[j], acc.sum[P][i][j]);
  }
}

// An epilogue of many operations says `static constexpr bool kIsHeavy = true`: it is called from one loop
// over sums parked on the stack. Unrolled over every register of every tile shape it would only bloat the
// code.
template <class E, class = void>
struct HeavyEpilogue : std::false_type {};
template <class E>
struct HeavyEpilogue<E, std::enable_if_t<E::kIsHeavy>> : std::true_type {};

// Hands the sums to the epilogue straight from registers where whole vectors exist, through the stack at the
// right and lower edge, or parks them for the next part of K.
template <int Rows, int Vectors, class T, class E>
GCRT_INLINE void finish_tile(const TileSums<Rows, Vectors, T>& acc, const TileTask<T>& task,
                             const E& epilogue) {
  constexpr int L = kVectorLanes<T>;
  alignas(64) T spilled[Rows * Vectors * L];
  const int columns = task.valid_columns;
  if constexpr (!HeavyEpilogue<E>::value) {
    if (task.finish && task.valid_rows == Rows) {
      constexpr int kLast = (Vectors - 1) * L;
      GCRT_UNROLL
      for (int i = 0; i < Rows; ++i) {
        GCRT_UNROLL
        for (int j = 0; j + 1 < Vectors; ++j)
          epilogue(Lanes<L>{}, acc.sum[0][i][j], task.m + i, task.n + j * L);
      }
      if (columns == Vectors * L) {
        GCRT_UNROLL
        for (int i = 0; i < Rows; ++i) {
          epilogue(Lanes<L>{}, acc.sum[0][i][Vectors - 1], task.m + i, task.n + kLast);
        }
        return;
      }
      GCRT_UNROLL
      for (int i = 0; i < Rows; ++i) store(Lanes<L>{}, spilled + i * L, acc.sum[0][i][Vectors - 1]);
      finish_block(spilled, L, Rows, columns - kLast, task.m, task.n + kLast, epilogue);
      return;
    }
  }
  T* const sums = task.finish ? spilled : task.partial;
  const std::ptrdiff_t stride = task.finish ? Vectors * L : kTileColumns<T>;
  GCRT_UNROLL
  for (int i = 0; i < Rows; ++i) {
    GCRT_UNROLL
    for (int j = 0; j < Vectors; ++j) store(Lanes<L>{}, sums + i * stride + j * L, acc.sum[0][i][j]);
  }
  if (task.finish) finish_block(spilled, stride, task.valid_rows, columns, task.m, task.n, epilogue);
}

// One noinline instance per tile shape and epilogue.
template <int Rows, int Vectors, class T, class E>
GCRT_NOINLINE void tile_kernel(const TileTask<T>& task, const E& epilogue) {
  constexpr int L = kVectorLanes<T>;
  using V = Pack<T, L>;
  TileSums<Rows, Vectors, T> acc;
  GCRT_UNROLL
  for (int p = 0; p < acc.kPhases; ++p) {
    GCRT_UNROLL
    for (int i = 0; i < Rows; ++i) {
      GCRT_UNROLL
      for (int j = 0; j < Vectors; ++j) acc.sum[p][i][j] = V{};
    }
  }
  if (task.resume) {
    GCRT_UNROLL
    for (int i = 0; i < Rows; ++i) {
      GCRT_UNROLL
      for (int j = 0; j < Vectors; ++j) {
        acc.sum[0][i][j] = load(Lanes<L>{}, task.partial + i * kTileColumns<T> + j * L);
      }
    }
  }
  const std::ptrdiff_t panel_stride = task.panel_stride;
  const std::ptrdiff_t length = task.run_length;
  const T* const* rows = task.rows;
  const T* prefetch = task.prefetch;
  const TileRun* const runs_end = task.runs + task.run_count;
  for (const TileRun* run = task.runs; run != runs_end; ++run) {
    const T* a[Rows];
    if (rows == nullptr) {
      a[0] = task.base;
      GCRT_UNROLL
      for (int i = 1; i < Rows; ++i) a[i] = a[i - 1] + task.row_stride;
    } else {
      GCRT_UNROLL
      for (int i = 0; i < Rows; ++i) a[i] = rows[i];
      rows += task.rows_step;
    }
    const T* b = task.b + run->b_offset;
    std::ptrdiff_t k = run->a_offset;
    const std::ptrdiff_t end = k + length;
    for (; k + 4 <= end; k += 4) {
      __builtin_prefetch(prefetch, 0, 2);
      prefetch += kPanelColumns;
      tile_step<0, Rows, Vectors>(acc, a, k, b, panel_stride);
      tile_step<1, Rows, Vectors>(acc, a, k + 1, b + kPanelColumns, panel_stride);
      tile_step<2, Rows, Vectors>(acc, a, k + 2, b + 2 * kPanelColumns, panel_stride);
      tile_step<3, Rows, Vectors>(acc, a, k + 3, b + 3 * kPanelColumns, panel_stride);
      b += 4 * kPanelColumns;
    }
    for (; k < end; ++k) {
      tile_step<0, Rows, Vectors>(acc, a, k, b, panel_stride);
      b += kPanelColumns;
    }
  }
  GCRT_UNROLL
  for (int p = 1; p < acc.kPhases; ++p) {
    GCRT_UNROLL
    for (int i = 0; i < Rows; ++i) {
      GCRT_UNROLL
      for (int j = 0; j < Vectors; ++j) acc.sum[0][i][j] = acc.sum[0][i][j] + acc.sum[p][i][j];
    }
  }
  finish_tile<Rows, Vectors>(acc, task, epilogue);
}

// Rows of the next tile when `remaining` rows are left. The tile sizes are kTileRows, 8, 6, 4, 2 and 1; one
// row too many is computed and dropped where that is cheaper than another tile.
constexpr int next_tile_rows(std::ptrdiff_t remaining) {
  if (remaining + 1 >= kTileRows) return kTileRows;
  if (kTileRows > 8 && remaining >= 7) return 8;
  if (kTileRows > 6 && remaining >= 5) return 6;
  if (kTileRows > 4 && remaining >= 3) return 4;
  return remaining >= 2 ? 2 : 1;
}

// Runs the instance for `rows` (a result of next_tile_rows) and the columns of the task.
template <class T, class E>
GCRT_INLINE void run_tile(int rows, const TileTask<T>& task, const E& epilogue) {
  const bool wide = task.valid_columns > kVectorLanes<T>;
  const auto run = [&](auto row_count) GCRT_LAMBDA_INLINE {
    constexpr int R = decltype(row_count)::value;
    if (wide) {
      tile_kernel<R, 2>(task, epilogue);
    } else {
      tile_kernel<R, 1>(task, epilogue);
    }
  };
  if (rows == kTileRows) return run(Lanes<kTileRows>{});
  if constexpr (kTileRows > 8) {
    if (rows == 8) return run(Lanes<8>{});
  }
  if constexpr (kTileRows > 6) {
    if (rows == 6) return run(Lanes<6>{});
  }
  if constexpr (kTileRows > 4) {
    if (rows == 4) return run(Lanes<4>{});
  }
  if (rows == 2) return run(Lanes<2>{});
  run(Lanes<1>{});
}

}  // namespace GCRT_NAMESPACE
