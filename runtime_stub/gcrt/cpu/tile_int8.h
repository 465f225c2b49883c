// The register tile of integer contractions: rows of 8-bit A times packed panels of B with exact int32 sums.
//
//   C[i][n] = offsets[n] + sum over runs r, sum over k of  rows[r][i][a_offset_r + k] * B[b_offset_r + k][n]
//
// modulo 2^32. B is packed in words of 32 bits: 4 values of k as int8, or 2 as int16; a panel is
// [words][16 columns][values of a word], padded with zeros in k and n. Values of A that meet the padding of
// the last word may be anything, so whole words are read wherever they lie inside the operand.
//
// int8 weights are multiplied as unsigned times signed bytes (vpdpbusd); signed A is read as A + 128, which
// `offsets` makes up for with -128 * sum over k of B[k][n]. int16 weights multiply A widened to int16.
#pragma once

#include "gcrt/cpu/tile.h"

namespace GCRT_NAMESPACE {

// Values of k in one word of packed weights.
template <class TW>
constexpr int kWordDepth = 4 / static_cast<int>(sizeof(TW));

// Rows and vectors per row of the largest integer tile. A wide tile reuses the words of A, which cost more to
// prepare than those of B. Without an instruction for four products, the widened halves of the operands take
// registers as well.
#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || defined(__ARM_FEATURE_MATMUL_INT8)
constexpr int kIntegerRows = 6;
constexpr int kIntegerVectors = GCRT_VECTOR_BYTES == 64 ? 4 : 2;
#else
constexpr int kIntegerRows = 4;
constexpr int kIntegerVectors = GCRT_VECTOR_BYTES == 64 ? 4 : 2;
#endif
constexpr int kIntegerColumns = kIntegerVectors * kLanes;

constexpr std::ptrdiff_t words_of(std::ptrdiff_t depth, std::ptrdiff_t word_depth) {
  return (depth + word_depth - 1) / word_depth;
}

// Where column n (a multiple of kLanes) starts in packed weights of `words` words per column.
template <class TW>
constexpr std::ptrdiff_t packed_word_offset(std::ptrdiff_t words, std::ptrdiff_t n) {
  return (n / kPanelColumns * kPanelColumns * words + n % kPanelColumns) * kWordDepth<TW>;
}

template <class TX, class TW>
struct IntegerTask {
  const TX* const* rows = nullptr;  // row pointers of the first run, or null: row i is base + i * row_stride
  std::ptrdiff_t rows_step = 0;     // row pointers from one run to the next; 0: all runs share them
  const TX* base = nullptr;
  std::ptrdiff_t row_stride = 0;
  const TileRun* runs = nullptr;
  std::ptrdiff_t run_count = 0;
  std::ptrdiff_t run_words = 0;               // words of each run that are read whole
  std::ptrdiff_t word_step = kWordDepth<TW>;  // elements of A from one word to the next
  int tail = 0;                               // values of k after them, where a whole word may not be read
  const TW* b = nullptr;                      // first column of the tile inside its panel
  std::ptrdiff_t panel_stride = 0;            // elements from one panel to the next
  const std::int32_t* offsets = nullptr;      // kIntegerColumns of them
  std::int32_t* partial = nullptr;            // [rows][kIntegerColumns] sums carried between parts of K
  bool resume = false;                        // start from `partial` instead of `offsets`
  bool finish = true;                         // call the epilogue instead of storing to `partial`
  int valid_rows = 0;                         // rows and columns that exist; the rest is computed and dropped
  int valid_columns = 0;
  std::ptrdiff_t m = 0;  // what the epilogue is told about the first row and column
  std::ptrdiff_t n = 0;
};

// The values at `a` as one word in the form that multiplies weights TW; `count` of them, then zeros.
template <class TW, class TX>
GCRT_INLINE std::int32_t operand_word(const TX* a, int count) {
  std::uint32_t word = 0;
  for (int i = 0; i < count; ++i) {
    if constexpr (sizeof(TW) == 1) {
      word |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(a[i])) << (8 * i);
    } else {
      word |= static_cast<std::uint32_t>(static_cast<std::uint16_t>(a[i])) << (16 * i);
    }
  }
  return static_cast<std::int32_t>(word);
}

// A word of A in every lane.
template <class TW, int L, class TX>
GCRT_INLINE Pack<std::int32_t, L> splat_operand(const TX* a) {
  if constexpr (sizeof(TW) == 1) {
    std::int32_t word;
    __builtin_memcpy(&word, a, sizeof(word));
    return splat(Lanes<L>{}, word);
  } else {
    return splat(Lanes<L>{}, operand_word<TW>(a, kWordDepth<TW>));
  }
}

template <class TX, class TW, class V>
GCRT_INLINE void accumulate_word(V& sum, V a, V b) {
  if constexpr (sizeof(TW) == 1) {
    sum = dot4_u8s8(sum, a, b);
  } else {
    sum = madd_s16(sum, a, b);
  }
  if constexpr (sizeof(V) <= GCRT_NATIVE_BYTES) GCRT_KEEP_IN_REGISTER(sum);
}

// One word of k: `operand(i)` is the word of row i in every lane.
template <int Phase, class TX, class TW, int Rows, int Vectors, class F>
GCRT_INLINE void integer_step(TileSums<Rows, Vectors, std::int32_t>& acc, const F& operand, const TW* b,
                              std::ptrdiff_t panel_stride) {
  constexpr int L = kLanes;
  constexpr int P = Phase % TileSums<Rows, Vectors, std::int32_t>::kPhases;
  Pack<std::int32_t, L> bv[Vectors];
  GCRT_UNROLL
  for (int j = 0; j < Vectors; ++j) {
    __builtin_memcpy(&bv[j],
                     b + (j * L / kPanelColumns) * panel_stride + j * L % kPanelColumns * kWordDepth<TW>,
                     sizeof(bv[j]));
  }
  GCRT_UNROLL
  for (int i = 0; i < Rows; ++i) {
    Pack<std::int32_t, L> av = operand(i);
    if constexpr (sizeof(TW) == 1 && std::is_signed<TX>::value) {
      av ^= splat(Lanes<L>{}, static_cast<std::int32_t>(0x80808080u));
    }
    GCRT_UNROLL
    for (int j = 0; j < Vectors; ++j) accumulate_word<TX, TW>(acc.sum[P][i][j], av, bv[j]);
  }
}

// Where the sums start: offsets, or what an earlier part of K has left.
template <int Rows, int Vectors, class Task>
GCRT_INLINE void start_integer_tile(TileSums<Rows, Vectors, std::int32_t>& acc, const Task& task) {
  constexpr int L = kLanes;
  const std::int32_t* const start = task.resume ? task.partial : task.offsets;
  const std::ptrdiff_t step = task.resume ? kIntegerColumns : 0;
  GCRT_UNROLL
  for (int i = 0; i < Rows; ++i) {
    GCRT_UNROLL
    for (int j = 0; j < Vectors; ++j) {
      acc.sum[0][i][j] = load(Lanes<L>{}, start + i * step + j * L);
      GCRT_UNROLL
      for (int p = 1; p < acc.kPhases; ++p) acc.sum[p][i][j] = Pack<std::int32_t, L>{};
    }
  }
}

// Whole vectors of the largest tile go to the epilogue straight from registers, the rest through the stack.
template <int Rows, int Vectors, class Task, class E>
GCRT_INLINE void finish_integer_tile(const TileSums<Rows, Vectors, std::int32_t>& acc, const Task& task,
                                     const E& epilogue) {
  constexpr int L = kLanes;
  constexpr int kLast = (Vectors - 1) * L;
  alignas(64) std::int32_t spilled[Rows * kIntegerColumns];
  std::int32_t* const sums = task.finish ? spilled : task.partial;
  if constexpr (Rows == kIntegerRows && !HeavyEpilogue<E>::value) {
    if (task.finish && task.valid_rows == Rows) {
      GCRT_UNROLL
      for (int i = 0; i < Rows; ++i) {
        GCRT_UNROLL
        for (int j = 0; j + 1 < Vectors; ++j) {
          epilogue(Lanes<L>{}, acc.sum[0][i][j], task.m + i, task.n + j * L);
        }
      }
      if (task.valid_columns == Vectors * L) {
        GCRT_UNROLL
        for (int i = 0; i < Rows; ++i) {
          epilogue(Lanes<L>{}, acc.sum[0][i][Vectors - 1], task.m + i, task.n + kLast);
        }
        return;
      }
      GCRT_UNROLL
      for (int i = 0; i < Rows; ++i) store(Lanes<L>{}, spilled + i * L, acc.sum[0][i][Vectors - 1]);
      finish_block(spilled, L, Rows, task.valid_columns - kLast, task.m, task.n + kLast, epilogue);
      return;
    }
  }
  GCRT_UNROLL
  for (int i = 0; i < Rows; ++i) {
    GCRT_UNROLL
    for (int j = 0; j < Vectors; ++j) {
      store(Lanes<L>{}, sums + i * kIntegerColumns + j * L, acc.sum[0][i][j]);
    }
  }
  if (task.finish) {
    finish_block(spilled, kIntegerColumns, task.valid_rows, task.valid_columns, task.m, task.n, epilogue);
  }
}

// One noinline instance per tile shape and epilogue.
template <int Rows, int Vectors, class TX, class TW, class E>
GCRT_NOINLINE void integer_kernel(const IntegerTask<TX, TW>& task, const E& epilogue) {
  constexpr int L = kLanes;
  constexpr std::ptrdiff_t kWord = kPanelColumns * kWordDepth<TW>;
  TileSums<Rows, Vectors, std::int32_t> acc;
  start_integer_tile(acc, task);
  const std::ptrdiff_t panel_stride = task.panel_stride;
  const std::ptrdiff_t step = task.word_step;
  const TX* const* rows = task.rows;
  const TileRun* const runs_end = task.runs + task.run_count;
  for (const TileRun* run = task.runs; run != runs_end; ++run) {
    const TX* a[Rows];
    if (rows == nullptr) {
      a[0] = task.base;
      GCRT_UNROLL
      for (int i = 1; i < Rows; ++i) a[i] = a[i - 1] + task.row_stride;
    } else {
      GCRT_UNROLL
      for (int i = 0; i < Rows; ++i) a[i] = rows[i];
      rows += task.rows_step;
    }
    const TW* b = task.b + run->b_offset;
    std::ptrdiff_t k = run->a_offset;
    const auto operand = [&](int i) GCRT_LAMBDA_INLINE { return splat_operand<TW, L>(a[i] + k); };
    std::ptrdiff_t words = task.run_words;
    for (; words >= 4; words -= 4) {
      integer_step<0, TX>(acc, operand, b, panel_stride);
      k += step;
      integer_step<1, TX>(acc, operand, b + kWord, panel_stride);
      k += step;
      integer_step<2, TX>(acc, operand, b + 2 * kWord, panel_stride);
      k += step;
      integer_step<3, TX>(acc, operand, b + 3 * kWord, panel_stride);
      k += step;
      b += 4 * kWord;
    }
    for (; words > 0; --words) {
      integer_step<0, TX>(acc, operand, b, panel_stride);
      k += step;
      b += kWord;
    }
    if (task.tail > 0) {
      std::int32_t word[Rows];
      for (int i = 0; i < Rows; ++i) word[i] = operand_word<TW>(a[i] + k, task.tail);
      integer_step<0, TX>(
          acc, [&](int i) GCRT_LAMBDA_INLINE { return splat(Lanes<L>{}, word[i]); }, b, panel_stride);
    }
  }
  GCRT_UNROLL
  for (int p = 1; p < acc.kPhases; ++p) {
    GCRT_UNROLL
    for (int i = 0; i < Rows; ++i) {
      GCRT_UNROLL
      for (int j = 0; j < Vectors; ++j) {
        acc.sum[0][i][j] = bit_cast<std::int32_t>(bit_cast<std::uint32_t>(acc.sum[0][i][j]) +
                                                  bit_cast<std::uint32_t>(acc.sum[p][i][j]));
      }
    }
  }
  finish_integer_tile(acc, task, epilogue);
}

// Rows of the next tile when `remaining` rows are left: kIntegerRows, half of them, or 1. Rows too many are
// computed and dropped where that is cheaper than another tile.
constexpr int next_integer_rows(std::ptrdiff_t remaining) {
  return remaining > kIntegerRows / 2 ? kIntegerRows : remaining > 1 ? kIntegerRows / 2 : 1;
}

// Columns of the next tile when `remaining` columns are left: kIntegerVectors, 2 or 1 vectors, of which at
// most the last has columns too many.
constexpr int next_integer_columns(std::ptrdiff_t remaining) {
  if (remaining > (kIntegerVectors - 1) * kLanes) return kIntegerColumns;
  return remaining > kLanes ? 2 * kLanes : kLanes;
}

// Runs the instance for `rows` and `columns`, results of the two functions above.
template <class TX, class TW, class E>
GCRT_INLINE void run_integer_tile(int rows, int columns, const IntegerTask<TX, TW>& task, const E& epilogue) {
  const auto run = [&](auto row_count) GCRT_LAMBDA_INLINE {
    constexpr int R = decltype(row_count)::value;
    if (columns == kIntegerColumns) return integer_kernel<R, kIntegerVectors>(task, epilogue);
    if constexpr (kIntegerVectors > 2) {
      if (columns == 2 * kLanes) return integer_kernel<R, 2>(task, epilogue);
    }
    integer_kernel<R, 1>(task, epilogue);
  };
  if (rows == kIntegerRows) return run(Lanes<kIntegerRows>{});
  if (rows > 1) return run(Lanes<kIntegerRows / 2>{});
  run(Lanes<1>{});
}

}  // namespace GCRT_NAMESPACE
