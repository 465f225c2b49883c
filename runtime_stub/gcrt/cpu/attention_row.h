// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Attention of a single row, as a decoder has it: K and V are read where they lie, every element once for
// each query head, and nothing is packed. Rows of K and V are contiguous. Else as attention.h, whose masks
// and online softmax these are.
#pragma once

#include "gcrt/cpu/attention.h"
#include "gcrt/cpu/product/gemv.h"

namespace GCRT_NAMESPACE {

// Keys and values of one head, and elements from one row to the next.
struct KeysAndValues {
  const float* k;
  std::ptrdiff_t k_row;
  const float* v;
  std::ptrdiff_t v_row;
};

// The row of one query head.
template <class Mask, class E>
GCRT_NOINLINE void attend_row(const AttentionShape& shape, const float* q, const KeysAndValues& head,
                              const Mask& mask, const E& epilogue) {
  alignas(64) float scores[kAttentionColumns];
  alignas(64) float sums[kAttentionLargestHead] = {};
  SoftmaxRow state;
  const std::ptrdiff_t seen =
      shape.causal ? larger(0, smaller(shape.columns, shape.past + 1)) : shape.columns;
  for (std::ptrdiff_t c = 0; c < larger(1, seen); c += kAttentionColumns) {
    const std::ptrdiff_t count = smaller(kAttentionColumns, seen - c);
    const float* const k = head.k + c * head.k_row;
    dot_columns(q, k, head.k_row, shape.size, count, scores);
    for (std::ptrdiff_t n = 0; n < count; ++n) scores[n] *= shape.scale;
    const float factor = softmax_step(mask, 0, c, scores, count, count, state);
    add_rows(scores, count, head.v + c * head.v_row, head.v_row, shape.value_size, factor, sums);
  }
  // Where nothing is seen, 0 * infinity is the NaN of a softmax without finite scores.
  const float factor = state.total == 0 && shape.zero_if_empty ? 0.0f : 1.0f / state.total;
  finish_attention<kVectorLanes<float>>(sums, factor, shape.value_size, 0, 0, epilogue);
}

// The row of some query head, waiting to be told where that head lies.
struct RowTask {
  const AttentionShape* shape;
  KeysAndValues head;

  template <class Mask, class E>
  GCRT_INLINE void operator()(const float* q, const Mask& mask, const E& epilogue) const {
    attend_row(*shape, q, head, mask, epilogue);
  }
  // Called like AttentionTask; there is no next row.
  template <class Mask, class E>
  GCRT_INLINE void operator()(const float* q, std::ptrdiff_t, const Mask& mask, const E& epilogue) const {
    attend_row(*shape, q, head, mask, epilogue);
  }
};

// All heads. Query head h reads key head h / group. `keys(key_head)` tells where that one lies, `run(head,
// task)` calls the task.
template <class Keys, class Run>
inline void attention_row(const Threads* threads, const AttentionShape& shape, std::ptrdiff_t key_heads,
                          std::ptrdiff_t group, const Keys& keys, const Run& run) {
  parallel_for(threads, key_heads * group, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    for (std::ptrdiff_t head = begin; head < end; ++head) run(head, RowTask{&shape, keys(head / group)});
  });
}

// The same for as many rows as the run has, in the panels of attention.h where they are several; `slots` and
// `packed` as there.
template <class Keys, class Run>
inline void attention_of_run(const Threads* threads, const AttentionShape& shape, std::ptrdiff_t key_heads,
                             std::ptrdiff_t group, std::ptrdiff_t slots, float* packed, const Keys& keys,
                             const Run& run) {
  if (shape.rows == 1) return attention_row(threads, shape, key_heads, group, keys, run);
  const auto pack = [&](std::ptrdiff_t key_head, float* panels) {
    const KeysAndValues head = keys(key_head);
    pack_attention(shape, head.k, {head.k_row, 1}, head.v, {head.v_row, 1}, panels);
  };
  attention(threads, shape, key_heads, group, slots, packed, pack, run);
}

}  // namespace GCRT_NAMESPACE
