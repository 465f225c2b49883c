// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Attention: softmax(scale * Q K' + mask) V, one block of rows of one head at a time. The scores of a block
// lie on the stack; blocks of columns follow each other with a running maximum and sum (online softmax), so
// that no more memory is needed for longer sequences.
//
// K and V of one key head are packed into the panels of gemm.h first, once for all the rows and query heads
// that read them. The epilogue is that of gemm.h: called once for every element of the result, on final
// values, with lanes along the value's size. At most 60 KiB of stack is used.
#pragma once

#include <type_traits>

#include "gcrt/attention_limit.h"
#include "gcrt/cpu/product/gemm.h"
#include "gcrt/loops.h"
#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

// Columns whose scores lie on the stack at a time: whole panels.
constexpr std::ptrdiff_t kAttentionColumns = 256;
constexpr std::ptrdiff_t kAttentionRows = 2 * UsualTile::kRows;

struct AttentionShape {
  std::ptrdiff_t rows;
  std::ptrdiff_t columns;
  std::ptrdiff_t size;        // of a row of Q and K
  std::ptrdiff_t value_size;  // of a row of V
  float scale;                // of the products, before the mask
  bool causal;                // row i sees columns up to i + past, whatever the mask says
  std::ptrdiff_t past;
  bool zero_if_empty;  // a row all of whose scores are -infinity is zero, not NaN
};

// Elements from one row to the next, and from one element of a row to the next.
struct RowStrides {
  std::ptrdiff_t row;
  std::ptrdiff_t element;
};

// Masks of one head: score(lane, score, row, column) is the score behind the mask. A stride of 0 broadcasts;
// that of columns is 0 or 1.
struct NoMask {
  template <class L, class V>
  GCRT_INLINE V score(L, V score, std::ptrdiff_t, std::ptrdiff_t) const {
    return score;
  }
};
struct AddedMask {
  const float* mask;
  std::ptrdiff_t row_stride;
  std::ptrdiff_t column_stride;
  template <class L, class V>
  GCRT_INLINE V score(L lane, V score, std::ptrdiff_t m, std::ptrdiff_t n) const {
    const float* const row = mask + m * row_stride;
    return score + (column_stride != 0 ? load(lane, row + n) : splat(lane, *row));
  }
};
// What is not 0 keeps its score, the rest has the score `fill`.
struct KeptMask {
  const std::uint8_t* mask;
  std::ptrdiff_t row_stride;
  std::ptrdiff_t column_stride;
  float fill;
  template <class L, class V>
  GCRT_INLINE V score(L lane, V score, std::ptrdiff_t m, std::ptrdiff_t n) const {
    const std::uint8_t* const row = mask + m * row_stride;
    const auto kept = column_stride != 0 ? load(lane, row + n) : splat(lane, *row);
    return select(kept, score, splat(lane, fill));
  }
};

// A mask, and another of what it leaves.
template <class First, class Second>
struct MaskThen {
  First first;
  Second second;
  template <class L, class V>
  GCRT_INLINE V score(L lane, V score, std::ptrdiff_t m, std::ptrdiff_t n) const {
    return second.score(lane, first.score(lane, score, m, n), m, n);
  }
};

constexpr std::ptrdiff_t whole_panels(std::ptrdiff_t columns) {
  return (columns + kPanelColumns - 1) / kPanelColumns * kPanelColumns;
}

// Floats of the packed K, and of the packed K and V, of one key head.
constexpr std::ptrdiff_t packed_keys_size(const AttentionShape& shape) {
  return packed_b_size(shape.size, shape.columns);
}
constexpr std::ptrdiff_t packed_attention_size(const AttentionShape& shape) {
  return packed_keys_size(shape) + shape.columns * whole_panels(shape.value_size);
}

// Columns of one block: all blocks are about equally long.
constexpr std::ptrdiff_t attention_block_columns(std::ptrdiff_t columns) {
  const std::ptrdiff_t blocks = (columns + kAttentionColumns - 1) / kAttentionColumns;
  return blocks <= 1 ? columns : whole_panels((columns + blocks - 1) / blocks);
}

// K' in panels; then V in panels, block by block of the columns, as each block is a product of its own.
inline void pack_attention(const AttentionShape& shape, const float* k, RowStrides k_strides, const float* v,
                           RowStrides v_strides, float* packed) {
  pack_b(shape.size, shape.columns, k, k_strides.element, k_strides.row, packed);
  float* values = packed + packed_keys_size(shape);
  const std::ptrdiff_t block = attention_block_columns(shape.columns);
  for (std::ptrdiff_t c = 0; c < shape.columns; c += block) {
    const std::ptrdiff_t columns = smaller(block, shape.columns - c);
    pack_b(columns, shape.value_size, v + c * v_strides.row, v_strides.row, v_strides.element,
           values + c * whole_panels(shape.value_size));
  }
}

// Where the tile kernels leave a block of rows: sums * scale, or what is there * factor of the row + sums.
struct ScaledRows {
  float* rows;
  std::ptrdiff_t pitch;
  float scale;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    store(lane, rows + m * pitch + n, sums * scale);
  }
};
struct AccumulatedRows {
  float* rows;
  std::ptrdiff_t pitch;
  const float* factors;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    float* const at = rows + m * pitch + n;
    store(lane, at, fma(load(lane, at), splat(lane, factors[m]), sums));
  }
};

// Elements from row to row on the stack: whole cache lines, and no power of two, whose rows would compete for
// few cache sets.
constexpr std::ptrdiff_t attention_pitch(std::ptrdiff_t columns) {
  return whole_panels(columns) + kPanelColumns;
}

// Running maximum and sum of a row.
struct SoftmaxRow {
  float top = -kInfinity<float>;
  float total = 0;
};

// Scores [0, count) of a row -> exp(score - maximum so far), [count, width) -> 0. Returns the factor by which
// what was summed with the maximum before shrinks.
template <class Mask>
GCRT_INLINE float softmax_step(const Mask& mask, std::ptrdiff_t row, std::ptrdiff_t column, float* scores,
                               std::ptrdiff_t count, std::ptrdiff_t width, SoftmaxRow& state) {
  const float top = reduce_max<float>(count, [&](auto lane, std::ptrdiff_t n) GCRT_LAMBDA_INLINE {
    const auto score = mask.score(lane, load(lane, scores + n), row, column + n);
    if constexpr (!std::is_same<Mask, NoMask>::value) store(lane, scores + n, score);
    return score;
  });
  const float before = state.top;
  state.top = max(before, top);
  // Nothing seen yet: exp(-infinity - 0) is 0, where -infinity - -infinity would be NaN.
  const float origin = state.top == -kInfinity<float> ? 0.0f : state.top;
  const float total = reduce_add<float>(count, [&](auto lane, std::ptrdiff_t n) GCRT_LAMBDA_INLINE {
    const auto weight = exp(load(lane, scores + n) - splat(lane, origin));
    store(lane, scores + n, weight);
    return weight;
  });
  for (std::ptrdiff_t n = count; n < width; ++n) scores[n] = 0;
  if (column == 0) {
    state.total = total;
    return 0;
  }
  const float factor = exp(before - origin);
  state.total = fma(state.total, factor, total);
  return factor;
}

// The sums of a row times `factor`, to the epilogue.
template <int L, class E>
GCRT_INLINE void finish_attention(const float* sums, float factor, std::ptrdiff_t count, std::ptrdiff_t m,
                                  std::ptrdiff_t n, const E& epilogue) {
  for (; n + L <= count; n += L) epilogue(Lanes<L>{}, load(Lanes<L>{}, sums + n) * factor, m, n);
  if constexpr (L > 1) {
    if (n < count) finish_attention<L / 2>(sums, factor, count, m, n, epilogue);
  }
}

// Rows [row_begin, row_end), at most kAttentionRows, of one head.
template <class Mask, class E>
GCRT_NOINLINE void attention_rows(const AttentionShape& shape, const float* q, std::ptrdiff_t q_row,
                                  const float* packed, const Mask& mask, const E& epilogue,
                                  std::ptrdiff_t row_begin, std::ptrdiff_t row_end) {
  alignas(64) float scores[kAttentionRows * attention_pitch(kAttentionColumns)];
  alignas(64) float sums[kAttentionRows * attention_pitch(kAttentionLargestHead)];
  SoftmaxRow state[kAttentionRows];
  float factors[kAttentionRows];
  const std::ptrdiff_t rows = row_end - row_begin;
  const auto seen = [&](std::ptrdiff_t row) {
    return shape.causal ? larger(0, smaller(shape.columns, row + shape.past + 1)) : shape.columns;
  };
  const std::ptrdiff_t block = attention_block_columns(shape.columns);
  const std::ptrdiff_t pitch = attention_pitch(block);
  const std::ptrdiff_t sums_pitch = attention_pitch(shape.value_size);
  // At least one block, even of rows that see nothing: it clears the sums.
  const std::ptrdiff_t end = larger(1, seen(row_end - 1));
  for (std::ptrdiff_t c = 0; c < end; c += block) {
    const std::ptrdiff_t all = smaller(block, shape.columns - c);
    const std::ptrdiff_t columns = smaller(block, end - c);
    const Product<FmaDot<float>> keys{
        shape.size, q + row_begin * q_row, q_row, packed + packed_b_offset(shape.size, c), 0, rows};
    gemm_block(keys, Block{0, rows, 0, columns}, shape.size,
               tile_epilogue<FmaDot<float>>(ScaledRows{scores, pitch, shape.scale}));
    for (std::ptrdiff_t i = 0; i < rows; ++i) {
      const std::ptrdiff_t count = larger(0, smaller(columns, seen(row_begin + i) - c));
      factors[i] = softmax_step(mask, row_begin + i, c, scores + i * pitch, count, all, state[i]);
    }
    const Product<FmaDot<float>> values{
        all, scores, pitch, packed + packed_keys_size(shape) + c * whole_panels(shape.value_size), 0, rows};
    const Block block_of_sums{0, rows, 0, shape.value_size};
    if (c == 0) {
      gemm_block(values, block_of_sums, all,
                 tile_epilogue<FmaDot<float>>(ScaledRows{sums, sums_pitch, 1.0f}));
    } else {
      gemm_block(values, block_of_sums, all,
                 tile_epilogue<FmaDot<float>>(AccumulatedRows{sums, sums_pitch, factors}));
    }
  }
  for (std::ptrdiff_t i = 0; i < rows; ++i) {
    // Where nothing is seen, 0 * infinity is the NaN of a softmax without finite scores.
    const float factor = state[i].total == 0 && shape.zero_if_empty ? 0.0f : 1.0f / state[i].total;
    finish_attention<kVectorLanes<float>>(sums + i * sums_pitch, factor, shape.value_size, row_begin + i, 0,
                                          epilogue);
  }
}

constexpr std::ptrdiff_t attention_row_blocks(const AttentionShape& shape) {
  return (shape.rows + kAttentionRows - 1) / kAttentionRows;
}

// A block of rows of some query head, waiting to be told where that head lies.
struct AttentionTask {
  const AttentionShape* shape;
  const float* packed;
  std::ptrdiff_t row_begin;

  template <class Mask, class E>
  GCRT_INLINE void operator()(const float* q, std::ptrdiff_t q_row, const Mask& mask,
                              const E& epilogue) const {
    attention_rows(*shape, q, q_row, packed, mask, epilogue, row_begin,
                   smaller(shape->rows, row_begin + kAttentionRows));
  }
};

// All heads. Query head h reads key head h / group. `pack(key_head, packed)` calls pack_attention,
// `run(head, task)` calls the task. `packed` has packed_attention_size floats for each of `slots` parts of
// the work: a key head is packed by each part that begins or goes on with it, so that none waits for another.
template <class Pack, class Run>
inline void attention(const Threads* threads, const AttentionShape& shape, std::ptrdiff_t key_heads,
                      std::ptrdiff_t group, std::ptrdiff_t slots, float* packed, const Pack& pack,
                      const Run& run) {
  const std::ptrdiff_t size = packed_attention_size(shape);
  const std::ptrdiff_t blocks = attention_row_blocks(shape);
  const std::ptrdiff_t tasks = group * blocks;  // of one key head
  parallel_parts(threads, key_heads * tasks, key_heads, slots,
                 [&](std::ptrdiff_t part, std::ptrdiff_t item, std::ptrdiff_t end) {
                   float* const panels = packed + part * size;
                   for (std::ptrdiff_t at = -1; item < end; ++item) {
                     const std::ptrdiff_t key_head = item / tasks, task = item % tasks;
                     if (key_head != at) pack(key_head, panels);
                     at = key_head;
                     run(key_head * group + task / blocks,
                         AttentionTask{&shape, panels, task % blocks * kAttentionRows});
                   }
                 });
}

}  // namespace GCRT_NAMESPACE
