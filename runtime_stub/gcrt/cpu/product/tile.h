// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The register tile that every dense kernel shares: rows of A times packed panels of B, accumulated in
// registers and handed to an epilogue.
//
//   C[i][n] = offsets[n] + sum over runs r, sum over k of  rows[r][i][a_offset_r + k] * B[b_offset_r + k][n]
//
// where k counts words (dot.h), and offsets are zero unless the policy has any. A matrix product has one run
// of length K. A convolution has one run per kernel tap (or per kernel row), and a row pointer per output
// pixel, so no im2col buffer exists. Row pointers are reloaded once per run; inside a run they are constant
// and one index register walks, which measures 95-97 % of the FMA peak at 6x16 and 12x32.
#pragma once

#include "gcrt/cpu/product/dot.h"
#include "gcrt/cpu/product/store.h"

namespace GCRT_NAMESPACE {

// Columns of one packed panel of B: [ceil(N / 16)][words of K][16], zero padded. The same for every machine.
constexpr int kPanelColumns = 16;

// Columns of the largest register tile.
template <class Dot>
constexpr int kTileColumns = Dot::kVectors* kVectorLanes<typename Dot::Sum>;

constexpr std::ptrdiff_t smaller(std::ptrdiff_t a, std::ptrdiff_t b) { return a < b ? a : b; }
constexpr std::ptrdiff_t larger(std::ptrdiff_t a, std::ptrdiff_t b) { return a < b ? b : a; }

struct TileRun {
  std::ptrdiff_t a_offset;  // elements past each row pointer
  std::ptrdiff_t b_offset;  // elements past TileTask::b
};

// Words of B that are in two parts: one lies in B, the other here. The words of panel p are those from
// starts[p] to starts[p + 1]; they count from the first of the panel on, and ascend.
struct SplitWords {
  const std::int32_t* starts = nullptr;  // [panels + 1]; null: B holds whole words
  const std::int32_t* words = nullptr;
  const std::int8_t* rests = nullptr;  // of each word [16 columns][4]

  // Reads a table [panels + 1] of starts, then words, then rests; or null.
  static GCRT_INLINE SplitWords of(const std::int32_t* table, std::ptrdiff_t panels) {
    if (table == nullptr) return {};
    const std::int32_t* const words = table + panels + 1;
    return {table, words, reinterpret_cast<const std::int8_t*>(words + table[panels])};
  }
  // The words of the panels from `panel` on.
  GCRT_INLINE SplitWords from(std::ptrdiff_t panel) const {
    return {starts != nullptr ? starts + panel : nullptr, words, rests};
  }
};

template <class Dot>
struct TileTask {
  using Left = typename Dot::Left;
  using Right = typename Dot::Right;
  using Sum = typename Dot::Sum;

  const Left* const* rows = nullptr;  // pointers of the first run, or null: row i is base + i * row_stride
  std::ptrdiff_t rows_step = 0;       // row pointers from one run to the next; 0: all runs share them
  const Left* base = nullptr;
  std::ptrdiff_t row_stride = 0;
  const TileRun* runs;
  std::ptrdiff_t run_count;         // at least 1
  std::ptrdiff_t run_words;         // of each run, read whole
  std::ptrdiff_t word_step;         // elements of A from one word to the next, unless words follow each other
  int tail;                         // values of k after them, where a whole word may not be read
  const Right* b;                   // first column of the tile inside its panel
  std::ptrdiff_t panel_stride;      // elements from one panel to the next
  const Right* next = nullptr;      // the columns after these, of which each tile of rows fetches its share
  std::ptrdiff_t next_step = 0;     // elements in a quarter of a panel of them
  int index = 0;                    // of the tile of rows, among those of the same columns
  int tiles = 1;                    // of rows: more of the largest follow, Rows * row_stride elements apart
  const Sum* offsets;               // of the columns
  SplitWords split = {};            // from the first panel of the tile on
  std::ptrdiff_t split_column = 0;  // elements to the first column of the tile in its panel
  Sum* sums;                        // [rows of all][columns], for the epilogue or the next part of a long K
  bool resume = false;              // start from `sums`
  bool finish = true;               // call the epilogue
  int valid_rows;                   // rows of the last tile and columns that exist; the rest is dropped
  int valid_columns;
  std::ptrdiff_t m;  // what the epilogue is told about the first row and column
  std::ptrdiff_t n;

  // Where tile `tile` of the task fetches kPrefetches lines, next_step apart, every 4 words.
  GCRT_INLINE const Right* share(int tile) const {
    constexpr int kQuarters =
        4 * (kTileColumns < Dot >> kPanelColumns ? kTileColumns<Dot> / kPanelColumns : 1);
    const int quarter = Dot::kPrefetches * (index + tile) % kQuarters;
    return next + quarter / 4 * panel_stride + quarter % 4 * next_step;
  }
};

// Tiles of one task: as many as share what starting costs, while their sums stay in the first cache.
template <class Dot>
constexpr int kStripTiles = Dot::kInTiles ? 1 : 4;

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

// With a copy of the epilogue: what it stores may lie anywhere, so that the compiler would read again
// whatever it is handed by reference.
template <class T, class E>
GCRT_NOINLINE void finish_block(const T* sums, std::ptrdiff_t stride, int rows, int columns, std::ptrdiff_t m,
                                std::ptrdiff_t n, const E& epilogue) {
  const E copy = epilogue;
  finish_lanes<kVectorLanes<T>>(sums, stride, rows, columns, m, n, copy);
}

// Small tiles do not have enough independent sums to hide the latency of an FMA; they keep several sums per
// element, for k modulo the number of phases.
constexpr int tile_phases(int accumulators) { return accumulators >= 8 ? 1 : accumulators >= 4 ? 2 : 4; }

template <int Rows, int Vectors, class Dot>
struct TileSums {
  static constexpr int kPhases = tile_phases(Rows * Vectors);
  typename Dot::Accumulator sum[kPhases][Rows][Vectors];
};

// The words of a vector of columns of B, whose elements may be narrower than what they are multiplied as.
template <class Dot>
GCRT_INLINE void read_factors(const typename Dot::Right* b, typename Dot::Vector& words) {
  using Right = typename Dot::Right;
  constexpr int kCount = kVectorLanes<typename Dot::Sum> * Dot::kWordDepth;
  if constexpr (kCount * sizeof(Right) == sizeof(words)) {
    __builtin_memcpy(&words, b, sizeof(words));
  } else {
    words = bit_cast_whole<typename Dot::Vector>(convert<std::int16_t>(load(Lanes<kCount>{}, b)));
  }
}

// One word of k: an outer product of one column of A and one row of B. `factor(i)` is the word of row i, in a
// form that multiplies words of B.
template <int Phase, bool InPairs = false, int Rows, int Vectors, class Dot, class F>
GCRT_INLINE void tile_step(TileSums<Rows, Vectors, Dot>& acc, const F& factor, const typename Dot::Right* b,
                           std::ptrdiff_t panel_stride) {
  constexpr int L = kVectorLanes<typename Dot::Sum>;
  constexpr int P = Phase % TileSums<Rows, Vectors, Dot>::kPhases;
  typename Dot::Vector bv[Vectors];
  GCRT_UNROLL
  for (int j = 0; j < Vectors; ++j) {
    const std::ptrdiff_t column = j * L % kPanelColumns * Dot::kWordDepth;
    read_factors<Dot>(b + (j * L / kPanelColumns) * panel_stride + column, bv[j]);
  }
  GCRT_UNROLL
  for (int i = 0; i < Rows; ++i) {
    const auto av = factor(i);
    GCRT_UNROLL
    for (int j = 0; j < Vectors; ++j) {
      if constexpr (InPairs) {
        Dot::multiply_add_pairs(acc.sum[P][i][j], av, bv[j]);
      } else {
        Dot::multiply_add(acc.sum[P][i][j], av, bv[j]);
      }
    }
  }
}

// Four words of k, those of each row in the lanes of a vector, `words(i)`.
template <int Rows, int Vectors, class Dot, class F>
GCRT_INLINE void tile_steps_by_lane(TileSums<Rows, Vectors, Dot>& acc, const F& words,
                                    const typename Dot::Right* b, std::ptrdiff_t panel_stride) {
  constexpr std::ptrdiff_t kPanelRow = kPanelColumns * Dot::kWordDepth;
  typename Dot::Vector row[Rows];
  GCRT_UNROLL
  for (int i = 0; i < Rows; ++i) row[i] = words(i);
  const auto step = [&](auto lane) GCRT_LAMBDA_INLINE {
    constexpr int I = decltype(lane)::value;
    tile_step<I>(
        acc, [&](int i) GCRT_LAMBDA_INLINE { return Dot::template lane<I>(row[i]); }, b + I * kPanelRow,
        panel_stride);
  };
  step(Lanes<0>{});
  step(Lanes<1>{});
  step(Lanes<2>{});
  step(Lanes<3>{});
}

// Where the sums of tile `tile` lie.
template <int Rows, int Vectors, class Dot>
GCRT_INLINE typename Dot::Sum* sums_of(const TileTask<Dot>& task, int tile) {
  return task.sums + tile * (Rows * Vectors * kVectorLanes<typename Dot::Sum>);
}

// Where the sums start: offsets or zero, or what an earlier part of K has left.
template <int Rows, int Vectors, class Dot>
GCRT_INLINE void start_tile(TileSums<Rows, Vectors, Dot>& acc, const TileTask<Dot>& task, int tile) {
  constexpr Lanes<kVectorLanes<typename Dot::Sum>> lane{};
  const typename Dot::Sum* const parked = sums_of<Rows, Vectors>(task, tile);
  GCRT_UNROLL
  for (int p = 0; p < acc.kPhases; ++p) {
    GCRT_UNROLL
    for (int i = 0; i < Rows; ++i) {
      GCRT_UNROLL
      for (int j = 0; j < Vectors; ++j) acc.sum[p][i][j] = typename Dot::Accumulator{};
    }
  }
  const auto start_from = [&](const typename Dot::Sum* sums, std::ptrdiff_t step) GCRT_LAMBDA_INLINE {
    GCRT_UNROLL
    for (int i = 0; i < Rows; ++i) {
      GCRT_UNROLL
      for (int j = 0; j < Vectors; ++j) {
        acc.sum[0][i][j] = Dot::begin(load(lane, sums + i * step + j * lane.value));
      }
    }
  };
  if constexpr (Dot::kHasOffsets) {
    start_from(task.resume ? parked : task.offsets, task.resume ? Vectors * lane.value : 0);
  } else {
    if (task.resume) start_from(parked, Vectors * lane.value);
  }
}

// The next split word in each panel of a tile, counted from the first of the panel on; runs come in the order
// of their words. Nothing is read before it is known that there are any: compilers made that a load under a
// mask, and one that masks all of an address that is not mapped takes hundreds of cycles.
template <int Vectors, class Dot>
struct Rests {
  static constexpr int L = kVectorLanes<typename Dot::Sum>;
  static constexpr int kPanels = Vectors * L > kPanelColumns ? Vectors* L / kPanelColumns : 1;
  static constexpr int kVectors = Vectors / kPanels;  // of a panel
  std::int32_t next[kPanels] = {};
};

// Adds the products of one run with the parts of its words that are not in B.
template <int Rows, int Vectors, class Dot>
GCRT_INLINE void add_rests(TileSums<Rows, Vectors, Dot>& acc, const typename Dot::Left* const (&a)[Rows],
                           const TileRun& run, std::ptrdiff_t step, const TileTask<Dot>& task,
                           Rests<Vectors, Dot>& rests) {
  if (task.split.starts == nullptr) return;
  using Panels = Rests<Vectors, Dot>;
  constexpr std::ptrdiff_t kPanelRow = kPanelColumns * Dot::kWordDepth;
  const std::ptrdiff_t first = run.b_offset / kPanelRow;
  const std::ptrdiff_t count = task.run_words + (task.tail > 0 ? 1 : 0);
  GCRT_UNROLL
  for (int p = 0; p < Panels::kPanels; ++p) {
    const std::int32_t begin = task.split.starts[p], end = task.split.starts[p + 1];
    std::int32_t next = begin + rests.next[p];
    while (next < end && task.split.words[next] < first) ++next;  // of parts of K that came before
    for (; next < end && task.split.words[next] - first < count; ++next) {
      const std::ptrdiff_t word = task.split.words[next] - first;
      const std::ptrdiff_t k = run.a_offset + word * step;
      const int values = word < task.run_words ? Dot::kWordDepth : task.tail;
      const typename Dot::Right* const rest = task.split.rests + next * kPanelRow + task.split_column;
      typename Dot::Vector bv[Panels::kVectors];
      GCRT_UNROLL
      for (int j = 0; j < Panels::kVectors; ++j)
        __builtin_memcpy(&bv[j], rest + j * Panels::L * Dot::kWordDepth, sizeof(bv[j]));
      GCRT_UNROLL
      for (int i = 0; i < Rows; ++i) {
        const auto av =
            Dot::broadcast(values == Dot::kWordDepth ? Dot::read(a[i] + k) : Dot::read(a[i] + k, values));
        GCRT_UNROLL
        for (int j = 0; j < Panels::kVectors; ++j)
          Dot::multiply_add(acc.sum[0][i][p * Panels::kVectors + j], av, bv[j]);
      }
    }
    rests.next[p] = next - begin;
  }
}

// All words of all runs, for tile `tile` of the task.
template <int Rows, int Vectors, class Dot>
GCRT_INLINE void sum_runs(TileSums<Rows, Vectors, Dot>& acc, const TileTask<Dot>& task, int tile) {
  using Left = typename Dot::Left;
  using Right = typename Dot::Right;
  constexpr std::ptrdiff_t kPanelRow = kPanelColumns * Dot::kWordDepth;
  start_tile(acc, task, tile);
  const std::ptrdiff_t panel_stride = task.panel_stride;
  const std::ptrdiff_t step = Dot::kStepIsWord ? Dot::kWordDepth : task.word_step;
  const Left* const* rows = task.rows;
  const Right* prefetch = Dot::kPrefetches > 0 ? task.share(tile) : nullptr;
  const std::ptrdiff_t prefetch_step = task.next_step;
  const Left* const base = task.base + tile * (Rows * task.row_stride);
  const TileRun* const runs_end = task.runs + task.run_count;
  Rests<Vectors, Dot> rests;
  const TileRun* run = task.runs;
  do {  // not `for`: sums that no run might change lie on the stack around the loop
    const Left* a[Rows];
    if (rows == nullptr) {
      a[0] = base;
      GCRT_UNROLL
      for (int i = 1; i < Rows; ++i) a[i] = a[i - 1] + task.row_stride;
    } else {
      GCRT_UNROLL
      for (int i = 0; i < Rows; ++i) a[i] = rows[i];
      rows += task.rows_step;
    }
    const Right* b = task.b + run->b_offset;
    std::ptrdiff_t k = run->a_offset;
    const auto factor = [&](int i) GCRT_LAMBDA_INLINE { return Dot::broadcast(Dot::read(a[i] + k)); };
    std::ptrdiff_t words = task.run_words;
    const auto prefetch_next = [&]() GCRT_LAMBDA_INLINE {
      if constexpr (Dot::kPrefetches > 0) {
        GCRT_UNROLL
        for (int i = 0; i < Dot::kPrefetches; ++i) __builtin_prefetch(prefetch + i * prefetch_step, 0, 2);
        prefetch += kPanelRow;
      }
    };
    if constexpr (!Dot::kReadsLanes) {
      // The step is a constant, so that one register walks and the words lie at displacements.
      if (Dot::kStepIsWord || step == Dot::kWordDepth) {
        for (; words >= 4; words -= 4) {
          prefetch_next();
          const auto four_steps = [&](auto pairs) GCRT_LAMBDA_INLINE {
            constexpr bool kInPairs = decltype(pairs)::value;
            tile_step<0, kInPairs>(acc, factor, b, panel_stride);
            k += Dot::kWordDepth;
            tile_step<1, kInPairs>(acc, factor, b + kPanelRow, panel_stride);
            k += Dot::kWordDepth;
            tile_step<2, kInPairs>(acc, factor, b + 2 * kPanelRow, panel_stride);
            k += Dot::kWordDepth;
            tile_step<3, kInPairs>(acc, factor, b + 3 * kPanelRow, panel_stride);
            k += Dot::kWordDepth;
            b += 4 * kPanelRow;
          };
          if constexpr (Dot::kHasPairs) {
            if (task.split.starts != nullptr) {
              GCRT_FORGET(b);
              GCRT_FORGET(k);
              four_steps(std::true_type{});
              continue;
            }
          }
          four_steps(std::false_type{});
        }
      }
    } else {
      const auto by_lane = [&](std::ptrdiff_t distance) GCRT_LAMBDA_INLINE {
        for (; words >= 4; words -= 4) {
          prefetch_next();
          tile_steps_by_lane(
              acc, [&](int i) GCRT_LAMBDA_INLINE { return Dot::read_lanes(a[i] + k, distance); }, b,
              panel_stride);
          k += 4 * distance;
          b += 4 * kPanelRow;
        }
      };
      if (Dot::kStepIsWord || step == Dot::kWordDepth) {
        by_lane(Dot::kWordDepth);
      } else {
        by_lane(step);
      }
    }
    for (; words > 0; --words) {
      tile_step<0>(acc, factor, b, panel_stride);
      k += step;
      b += kPanelRow;
    }
    if constexpr (Dot::kWordDepth > 1) {
      if (task.tail > 0) {
        typename Dot::Word last[Rows];
        for (int i = 0; i < Rows; ++i) last[i] = Dot::read(a[i] + k, task.tail);
        tile_step<0>(
            acc, [&](int i) GCRT_LAMBDA_INLINE { return Dot::broadcast(last[i]); }, b, panel_stride);
      }
    }
    if constexpr (Dot::kSplitsWords) add_rests(acc, a, *run, step, task, rests);
  } while (++run != runs_end);
  GCRT_UNROLL
  for (int p = 1; p < acc.kPhases; ++p) {
    GCRT_UNROLL
    for (int i = 0; i < Rows; ++i) {
      GCRT_UNROLL
      for (int j = 0; j < Vectors; ++j) acc.sum[0][i][j] = Dot::add(acc.sum[0][i][j], acc.sum[p][i][j]);
    }
  }
}

// Tiles whose sums go to memory: one instance for all epilogues.
template <int Rows, int Vectors, class Dot>
GCRT_NOINLINE void sum_tile(const TileTask<Dot>& task) {
  constexpr int L = kVectorLanes<typename Dot::Sum>;
  for (int tile = 0; tile < task.tiles; ++tile) {
    TileSums<Rows, Vectors, Dot> acc;
    sum_runs(acc, task, tile);
    typename Dot::Sum* const sums = sums_of<Rows, Vectors>(task, tile);
    GCRT_UNROLL
    for (int i = 0; i < Rows; ++i) {
      GCRT_UNROLL
      for (int j = 0; j < Vectors; ++j)
        store(Lanes<L>{}, sums + (i * Vectors + j) * L, Dot::total(acc.sum[0][i][j]));
    }
  }
}

// An epilogue of many operations says `static constexpr bool kIsHeavy = true`: it is called from one loop
// over sums in memory. Unrolled over every register of a tile it would only bloat the code.
template <class E, class = void>
struct HeavyEpilogue : std::false_type {};
template <class E>
struct HeavyEpilogue<E, std::enable_if_t<E::kIsHeavy>> : std::true_type {};

// What the drivers know of an epilogue, so that they and all tiles but one are compiled once for all of them.
template <class Dot>
struct TileEpilogue {
  using Sum = typename Dot::Sum;

  // The largest tiles, all of which exist: their sums go to the epilogue straight from registers.
  void (*whole_tiles)(const TileTask<Dot>& task, const void* epilogue);
  // A block of sums in memory, see finish_block.
  void (*block)(const Sum* sums, std::ptrdiff_t stride, int rows, int columns, std::ptrdiff_t m,
                std::ptrdiff_t n, const void* epilogue);
  const void* epilogue;
  typename Dot::Unit* unit;  // of the work item
};

template <class Dot, class E>
GCRT_NOINLINE GCRT_LEAVE_CONSTANTS void finish_whole_tiles(const TileTask<Dot>& task, const void* epilogue) {
  constexpr int L = kVectorLanes<typename Dot::Sum>;
  const E call = *static_cast<const E*>(epilogue);  // copies, as in finish_block
  const std::ptrdiff_t n = task.n;
  for (int tile = 0; tile < task.tiles; ++tile) {
    TileSums<Dot::kRows, Dot::kVectors, Dot> acc;
    sum_runs(acc, task, tile);
    const std::ptrdiff_t m = task.m + tile * Dot::kRows;
    GCRT_UNROLL
    for (int i = 0; i < Dot::kRows; ++i) {
      GCRT_UNROLL
      for (int j = 0; j < Dot::kVectors; ++j)
        call(Lanes<L>{}, Dot::total(acc.sum[0][i][j]), m + i, n + j * L);
    }
  }
}

template <class Dot, class E>
GCRT_INLINE TileEpilogue<Dot> tile_epilogue(const E& epilogue, typename Dot::Unit* unit = nullptr) {
  using Sum = typename Dot::Sum;
  TileEpilogue<Dot> out{nullptr, nullptr, &epilogue, unit};
  if constexpr (!HeavyEpilogue<E>::value && !Dot::kInTiles) out.whole_tiles = &finish_whole_tiles<Dot, E>;
  out.block = [](const Sum* sums, std::ptrdiff_t stride, int rows, int columns, std::ptrdiff_t m,
                 std::ptrdiff_t n, const void* call) {
    finish_block(sums, stride, rows, columns, m, n, *static_cast<const E*>(call));
  };
  return out;
}

// Columns of the next tile when `remaining` columns are left: those of kVectors, 2 or 1 vectors, of which at
// most the last has columns too many.
template <class Dot>
constexpr int next_tile_columns(std::ptrdiff_t remaining) {
  constexpr int L = kVectorLanes<typename Dot::Sum>;
  if (remaining > (Dot::kVectors - 1) * L) return kTileColumns<Dot>;
  return remaining > L ? 2 * L : L;
}

// The instance for `rows` of a tile and `columns`, results of Dot::next_rows and of next_tile_columns.
template <int Rows, class Dot>
GCRT_INLINE void sum_tile_of(int rows, int columns, const TileTask<Dot>& task) {
  constexpr int L = kVectorLanes<typename Dot::Sum>;
  if constexpr (Rows > 1) {
    if (rows != Rows) return sum_tile_of<Dot::shorter(Rows)>(rows, columns, task);
  }
  if (columns == kTileColumns<Dot>) return sum_tile<Rows, Dot::kVectors>(task);
  if constexpr (Dot::kVectors > 2) {
    if (columns == 2 * L) return sum_tile<Rows, 2>(task);
  }
  sum_tile<Rows, 1>(task);
}
template <class Dot>
GCRT_NOINLINE void run_tile(int rows, int columns, const TileTask<Dot>& task,
                            const TileEpilogue<Dot>& epilogue) {
  if constexpr (Dot::kInTiles) {
    run_in_tiles(rows, columns, task, epilogue);
  } else {
    const bool is_whole = task.valid_rows == Dot::kRows && task.valid_columns == kTileColumns<Dot>;
    if (task.finish && is_whole && epilogue.whole_tiles != nullptr) {
      return epilogue.whole_tiles(task, epilogue.epilogue);
    }
    sum_tile_of<Dot::kRows>(rows, columns, task);
    if (!task.finish) return;
    const int valid_rows = (task.tiles - 1) * rows + task.valid_rows;
    epilogue.block(task.sums, columns, valid_rows, task.valid_columns, task.m, task.n, epilogue.epilogue);
  }
}

}  // namespace GCRT_NAMESPACE
