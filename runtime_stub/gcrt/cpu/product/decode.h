// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Matrix product C = A * B by a B of 4 or 8 bit integers with a scale for each column of each block of rows,
//   B[k][n] = (q[k][n] - middle - zero[k / block][n]) * scale[k / block][n]
// which stay packed in memory and are decoded in registers: few rows run at the speed at which memory
// delivers the packed weights. A, rows `lda` elements apart, and C are as in gemm.h.
//
// B is packed in words of 32 bits, integers of consecutive k from the lowest bits on: [ceil(N /
// 16)][words][16]. An integer need not be shifted down: a word with the others masked out, made a float, is q
// * 2^(bits * j), and A is multiplied by 2^-(bits * j) beforehand, which is exact. Integers are unsigned;
// their zero points are taken out of the sums of a chunk of rows, with the sum of A over the chunk. Many rows
// decode a chunk of B into floats instead, and multiply these by the tiles of gemm.h.
//
// As there, the order of an element's sum does not depend on how work items are dealt out.
#pragma once

#include "gcrt/cpu/product/gemm.h"

namespace GCRT_NAMESPACE {

// Integers in a word of 32 bits.
template <int Bits>
struct PackedBits {
  static constexpr int kDepth = 32 / Bits;
  static constexpr float kMiddle = static_cast<float>(1 << (Bits - 1));
  static constexpr std::uint32_t kMask = (1u << Bits) - 1;

  // The power of two by which in_place() is too large.
  static constexpr float excess(int j) {
    return j + 1 == kDepth ? 1.0f : static_cast<float>(std::uint32_t{1} << (Bits * j));
  }
  template <class V>
  static GCRT_INLINE Rebind<V, float> in_place(V words, int j) {
    const V bits = j + 1 == kDepth ? words >> (32 - Bits) : words & (kMask << (Bits * j));
    return convert<float>(bit_cast<std::int32_t>(bits));
  }
  template <class V>
  static GCRT_INLINE Rebind<V, float> value(V words, int j) {
    return convert<float>(bit_cast<std::int32_t>((words >> (Bits * j)) & kMask));
  }
};

// Columns of a panel of packed words.
constexpr int kWordColumns = 32;

// Packed B. Scales and zero points lie in panels of their own: [ceil(N / 32)][ceil(K / block)][32]. Zero:
// std::int8_t or float; void: all are 0. A block has whole words, unless there is only one.
template <int Bits, class Zero>
struct BlockWeights {
  static constexpr int kBits = Bits;
  const std::uint32_t* words;
  const float* scales;
  const Zero* zeros;
  std::ptrdiff_t block;  // rows

  std::ptrdiff_t word_count(std::ptrdiff_t depth) const { return ceil_div(depth, PackedBits<Bits>::kDepth); }
  // Rows between two corrections by zero points: a block, or a part of a long one.
  std::ptrdiff_t chunk() const { return block > 128 && block % 128 == 0 ? 128 : block; }

  // Middle plus zero point of the lanes from column n of a panel on; `at` is the first scale of the panel in
  // its block.
  template <int L>
  GCRT_INLINE Pack<float, L> zero(Lanes<L> lane, std::ptrdiff_t at) const {
    Pack<float, L> sum = splat(lane, PackedBits<Bits>::kMiddle);
    if constexpr (!std::is_void<Zero>::value) sum += convert<float>(load(lane, zeros + at));
    return sum;
  }
};

// Up to so many rows are multiplied by words of B.
constexpr std::ptrdiff_t kDecodedRows = 4;

// Floats that prepare_rows() writes for a row of A: the row, and its sums over chunks.
template <int Bits>
constexpr std::ptrdiff_t prepared_row_size(std::ptrdiff_t depth, std::ptrdiff_t chunk) {
  return ceil_div(depth, PackedBits<Bits>::kDepth) * PackedBits<Bits>::kDepth + ceil_div(depth, chunk);
}

// A as few rows multiply it: element j of a word divided by excess(j), zeros up to whole words;
// then the sums.
template <int Bits, class Zero>
GCRT_NOINLINE void prepare_rows(std::ptrdiff_t rows, std::ptrdiff_t depth, const float* a, std::ptrdiff_t lda,
                                const BlockWeights<Bits, Zero>& b, float* prepared) {
  using Word = PackedBits<Bits>;
  if (rows > kDecodedRows) return;
  const std::ptrdiff_t chunk = b.chunk();
  for (std::ptrdiff_t m = 0; m < rows; ++m) {
    const float* row = a + m * lda;
    float* scaled = prepared + m * prepared_row_size<Bits>(depth, chunk);
    float* sums = scaled + b.word_count(depth) * Word::kDepth;
    for (std::ptrdiff_t begin = 0; begin < depth; begin += chunk) {
      const std::ptrdiff_t end = smaller(depth, begin + chunk);
      float sum[Word::kDepth] = {};
      for (std::ptrdiff_t k = begin; k < end; k += Word::kDepth) {
        if (k + Word::kDepth <= end) {
          GCRT_UNROLL
          for (int j = 0; j < Word::kDepth; ++j) {
            sum[j] += row[k + j];
            scaled[k + j] = row[k + j] * (1.0f / Word::excess(j));
          }
        } else {
          for (int j = 0; j < Word::kDepth; ++j) {
            const float value = k + j < end ? row[k + j] : 0.0f;
            sum[j] += value;
            scaled[k + j] = value * (1.0f / Word::excess(j));
          }
        }
      }
      for (int j = 1; j < Word::kDepth; ++j) sum[0] += sum[j];
      *sums++ = sum[0];
    }
  }
}

// Rows of prepared A times one panel of B.
//   a, row_size  of prepare_rows()
//   sums         [Rows][32]
template <int Rows, int Bits, class Zero>
GCRT_NOINLINE void decode_panel(std::ptrdiff_t depth, const float* a, std::ptrdiff_t row_size,
                                const BlockWeights<Bits, Zero>& b, std::ptrdiff_t panel, float* sums) {
  using Word = PackedBits<Bits>;
  using Vector = Pack<float, kLanes>;
  constexpr int L = kLanes;
  constexpr int kVectors = kWordColumns / L;
  constexpr Lanes<L> lane{};
  // As many sums as hide the latency of a multiply-add.
  constexpr int kPhases = Rows * kVectors >= 8 ? 1 : 8 / (Rows * kVectors);
  constexpr std::ptrdiff_t kAhead = 32 * kWordColumns;  // words that are fetched ahead
  static_assert(kPhases <= Word::kDepth, "a word has an integer for every phase");

  const std::ptrdiff_t words = b.word_count(depth);
  const std::ptrdiff_t chunk_words = ceil_div(b.chunk(), Word::kDepth);
  const std::ptrdiff_t chunks_of_block = ceil_div(b.block, b.chunk());
  const std::uint32_t* word = b.words + panel * words * kWordColumns;
  std::ptrdiff_t scale = panel * ceil_div(depth, b.block) * kWordColumns;
  const float* a_sums = a + words * Word::kDepth;
  Vector total[Rows][kVectors] = {};
  std::ptrdiff_t left_of_block = chunks_of_block;
  for (std::ptrdiff_t w = 0; w < words;) {
    const std::ptrdiff_t end = smaller(words, w + chunk_words);
    Vector sum[kPhases][Rows][kVectors];
    GCRT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const Vector zero = b.zero(lane, scale + v * L);
      GCRT_UNROLL
      for (int i = 0; i < Rows; ++i) {
        sum[0][i][v] = -splat(lane, a_sums[i * row_size]) * zero;
        GCRT_UNROLL
        for (int p = 1; p < kPhases; ++p) sum[p][i][v] = Vector{};
      }
    }
    for (; w < end; ++w) {
      Pack<std::uint32_t, L> packed[kVectors];
      GCRT_UNROLL
      for (int v = 0; v < kVectors; ++v) packed[v] = load(lane, word + v * L);
      GCRT_UNROLL
      for (int n = 0; n < kWordColumns; n += 16) __builtin_prefetch(word + kAhead + n, 0, 2);
      word += kWordColumns;
      GCRT_UNROLL
      for (int j = 0; j < Word::kDepth; ++j) {
        Vector value[kVectors];
        GCRT_UNROLL
        for (int v = 0; v < kVectors; ++v) value[v] = Word::in_place(packed[v], j);
        GCRT_UNROLL
        for (int i = 0; i < Rows; ++i) {
          const Vector left = splat(lane, a[i * row_size + w * Word::kDepth + j]);
          GCRT_UNROLL
          for (int v = 0; v < kVectors; ++v) {
            sum[j % kPhases][i][v] = multiply_add(left, value[v], sum[j % kPhases][i][v]);
          }
        }
      }
    }
    GCRT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const Vector factor = load(lane, b.scales + scale + v * L);
      GCRT_UNROLL
      for (int i = 0; i < Rows; ++i) {
        GCRT_UNROLL
        for (int p = 1; p < kPhases; ++p) sum[0][i][v] += sum[p][i][v];
        total[i][v] = multiply_add(sum[0][i][v], factor, total[i][v]);
      }
    }
    ++a_sums;
    if (--left_of_block == 0) {
      left_of_block = chunks_of_block;
      scale += kWordColumns;
    }
  }
  GCRT_UNROLL
  for (int i = 0; i < Rows; ++i) {
    GCRT_UNROLL
    for (int v = 0; v < kVectors; ++v) store(lane, sums + i * kWordColumns + v * L, total[i][v]);
  }
}

// Few rows: the block has all of them, and columns from a multiple of 16 on.
template <int Bits, class Zero, class Dot>
GCRT_NOINLINE void decode_few_rows(std::ptrdiff_t depth, const BlockWeights<Bits, Zero>& b,
                                   const float* prepared, const Block& block,
                                   const TileEpilogue<Dot>& epilogue) {
  const std::ptrdiff_t row_size = prepared_row_size<Bits>(depth, b.chunk());
  alignas(64) float sums[2 * kWordColumns];
  for (std::ptrdiff_t panel = block.column_begin / kWordColumns; panel * kWordColumns < block.column_end;
       ++panel) {
    const std::ptrdiff_t n = larger(block.column_begin, panel * kWordColumns);
    const std::ptrdiff_t skipped = n - panel * kWordColumns;
    const int columns = static_cast<int>(smaller(block.column_end - n, kWordColumns - skipped));
    for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
      const int rows = block.row_end - m > 1 ? 2 : 1;
      if (rows == 2) {
        decode_panel<2>(depth, prepared + m * row_size, row_size, b, panel, sums);
      } else {
        decode_panel<1>(depth, prepared + m * row_size, row_size, b, panel, sums);
      }
      epilogue.block(sums + skipped, kWordColumns, rows, columns, m, n, epilogue.epilogue);
      m += rows;
    }
  }
}

// Rows [k, k + count) of 16 columns of B as floats, [count up to whole words][16]. k begins a word, n a half
// of a panel.
template <int Bits, class Zero>
GCRT_NOINLINE void decode_rows(std::ptrdiff_t depth, const BlockWeights<Bits, Zero>& b, std::ptrdiff_t n,
                               std::ptrdiff_t k, std::ptrdiff_t count, float* out) {
  using Word = PackedBits<Bits>;
  constexpr int L = kLanes;
  constexpr int kVectors = kPanelColumns / L;
  constexpr Lanes<L> lane{};
  const std::ptrdiff_t panel = n / kWordColumns, column = n % kWordColumns;
  const std::uint32_t* word =
      b.words + (panel * b.word_count(depth) + k / Word::kDepth) * kWordColumns + column;
  const std::ptrdiff_t end = k + count;
  while (k < end) {
    const std::ptrdiff_t block = k / b.block, block_end = smaller(end, (block + 1) * b.block);
    const std::ptrdiff_t at = (panel * ceil_div(depth, b.block) + block) * kWordColumns + column;
    Pack<float, L> scale[kVectors], zero[kVectors];
    GCRT_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      scale[v] = load(lane, b.scales + at + v * L);
      zero[v] = b.zero(lane, at + v * L);
    }
    for (; k < block_end; k += Word::kDepth) {
      GCRT_UNROLL
      for (int v = 0; v < kVectors; ++v) {
        const auto packed = load(lane, word + v * L);
        GCRT_UNROLL
        for (int j = 0; j < Word::kDepth; ++j) {
          store(lane, out + j * kPanelColumns + v * L, (Word::value(packed, j) - zero[v]) * scale[v]);
        }
      }
      word += kWordColumns;
      out += Word::kDepth * kPanelColumns;
    }
  }
}

// Many rows: for each tile of columns a part of K is decoded, and all rows of a block are multiplied by it.
template <int Bits, class Zero, class Dot>
GCRT_NOINLINE void decode_many_rows(std::ptrdiff_t depth, const float* a, std::ptrdiff_t lda,
                                    const BlockWeights<Bits, Zero>& b, Block block,
                                    const TileEpilogue<Dot>& epilogue) {
  constexpr int kColumns = kTileColumns<Dot> < kPanelColumns ? kPanelColumns : kTileColumns<Dot>;
  constexpr std::ptrdiff_t kPart = kColumns > kPanelColumns ? 128 : 256;
  constexpr std::ptrdiff_t kRows = 96 / Dot::kRows * Dot::kRows, kMost = kStripTiles<Dot> * Dot::kRows;
  alignas(64) float decoded[kPart * kColumns];
  alignas(64) float sums[(kRows + 1) * kColumns];
  const float* clamped[Dot::kRows];
  TileRun run{0, 0};
  TileTask<Dot> task;
  task.row_stride = lda;
  task.runs = &run;
  task.run_count = 1;
  task.panel_stride = kPart * kPanelColumns;
  task.next = decoded;
  task.tail = 0;
  const std::ptrdiff_t row_end = block.row_end;
  for (; block.row_begin < row_end; block.row_begin += kRows) {
    block.row_end = smaller(row_end, block.row_begin + kRows);
    for (std::ptrdiff_t first = block.column_begin; first < block.column_end; first += kColumns) {
      const std::ptrdiff_t column_end = smaller(block.column_end, first + kColumns);
      for (std::ptrdiff_t k = 0; k < depth; k += kPart) {
        task.run_words = smaller(kPart, depth - k);
        for (std::ptrdiff_t n = first; n < column_end; n += kPanelColumns) {
          decode_rows(depth, b, n, k, task.run_words, decoded + (n - first) * kPart);
        }
        run.a_offset = k;
        task.resume = k > 0;
        task.finish = k + kPart >= depth;
        for (std::ptrdiff_t n = first; n < column_end;) {
          const int columns = next_tile_columns<Dot>(column_end - n);
          task.b = decoded + packed_b_offset(kPart, n - first);
          task.n = n;
          task.valid_columns = static_cast<int>(smaller(column_end - n, columns));
          for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
            const std::ptrdiff_t left = block.row_end - m;
            const int rows = Dot::next_rows(left);
            task.tiles = left < kMost ? static_cast<int>(larger(1, left / Dot::kRows)) : kStripTiles<Dot>;
            task.valid_rows = static_cast<int>(smaller(left, rows));
            task.base = a + m * lda;
            task.rows = nullptr;
            if (task.valid_rows < rows) {
              for (int i = 0; i < rows; ++i) clamped[i] = task.base + smaller(i, task.valid_rows - 1) * lda;
              task.rows = clamped;
            }
            task.sums = sums + (n - first) * (kRows + 1) + (m - block.row_begin) * columns;
            task.m = m;
            run_tile(rows, columns, task, epilogue);
            m += (task.tiles - 1) * rows + task.valid_rows;
          }
          n += columns;
        }
      }
    }
  }
}

// Work items [work_begin, work_end) of gemm_work_items<Tile>(rows, columns, blocking).
//   prepared  by prepare_rows(), where rows are at most kDecodedRows
template <class Tile = UsualTile, int Bits, class Zero, class E>
inline void gemm_decoded(std::ptrdiff_t rows, std::ptrdiff_t columns, std::ptrdiff_t depth, const float* a,
                         std::ptrdiff_t lda, const BlockWeights<Bits, Zero>& b, const float* prepared,
                         const Blocking& blocking, const E& epilogue, std::ptrdiff_t work_begin,
                         std::ptrdiff_t work_end) {
  using Dot = FmaDot<float, Tile>;
  const TileEpilogue<Dot> finish = tile_epilogue<Dot>(epilogue);
  WorkItems<Dot>(rows, columns, 1, blocking)
      .for_each_block(work_begin, work_end, [&](int, const Block& block) {
        if (rows <= kDecodedRows) {
          decode_few_rows(depth, b, prepared, block, finish);
        } else {
          decode_many_rows(depth, a, lda, b, block, finish);
        }
      });
}

}  // namespace GCRT_NAMESPACE
