// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Linear attention by its definition, a column of values at a time: no column reads what another one makes.
// What the kernels of the CPU and of CUDA share.
#pragma once

#include "gcrt/pack.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {

// B samples, T steps, H heads; so many results of each step as there are heads or query heads. Where there
// are fewer keys than heads, or queries than results, these share them in turn.
struct LinearAttentionShape {
  std::ptrdiff_t batch, steps, query_heads, key_heads, heads, results, size, value_size;
  std::ptrdiff_t factors;  // of each step and head: 1, or one for each of `size`
  std::ptrdiff_t rates;    // of each step: 1, or one for each head
  float scale;
};

// Optional pointers may be null. The state may be the past.
template <class E>
struct LinearAttentionTensors {
  const E* q;        // [B][T][query heads][size]
  const E* k;        // [B][T][key heads][size]
  const E* v;        // [B][T][H][value size]
  const E* past;     // [B][H][size][value size]; optional
  const E* factors;  // [B][T][H][factors]; optional
  const E* rates;    // [B][T][rates]; optional
  E* state;          // [B][H][size][value size]
  E* y;              // [B][T][results][value size]
};

// The columns of `lane` from `column` on, of head number b * H + h.
template <class E, class L>
GCRT_INLINE void linear_attention_column(const LinearAttentionShape& shape,
                                         const LinearAttentionTensors<E>& t, std::ptrdiff_t number, L lane,
                                         std::ptrdiff_t column) {
  const std::ptrdiff_t size = shape.size, width = shape.value_size, heads = shape.heads;
  const std::ptrdiff_t head = number % heads, group = shape.results / heads;
  E* const state = t.state + number * size * width + column;
  for (std::ptrdiff_t i = 0; i < size; ++i) {
    store(lane, state + i * width,
          t.past != nullptr ? load(lane, t.past + (number * size + i) * width + column) : splat(lane, E(0)));
  }
  for (std::ptrdiff_t step = 0; step < shape.steps; ++step) {
    const std::ptrdiff_t token = number / heads * shape.steps + step;
    const E* const k = t.k + (token * shape.key_heads + head * shape.key_heads / heads) * size;
    auto fresh = load(lane, t.v + (token * heads + head) * width + column);
    if (t.factors != nullptr) {
      const E* const factor = t.factors + (token * heads + head) * shape.factors;
      for (std::ptrdiff_t i = 0; i < size; ++i) {
        store(lane, state + i * width, load(lane, state + i * width) * factor[shape.factors == 1 ? 0 : i]);
      }
    }
    if (t.rates != nullptr) {
      auto known = splat(lane, E(0));
      for (std::ptrdiff_t i = 0; i < size; ++i) known = known + load(lane, state + i * width) * k[i];
      fresh = (fresh - known) * t.rates[token * shape.rates + (shape.rates == 1 ? 0 : head)];
    }
    for (std::ptrdiff_t i = 0; i < size; ++i) {
      store(lane, state + i * width, load(lane, state + i * width) + fresh * k[i]);
    }
    for (std::ptrdiff_t result = head * group; result < (head + 1) * group; ++result) {
      const std::ptrdiff_t query = result * shape.query_heads / shape.results;
      const E* const q = t.q + (token * shape.query_heads + query) * size;
      auto sum = splat(lane, E(0));
      for (std::ptrdiff_t i = 0; i < size; ++i) sum = sum + load(lane, state + i * width) * q[i];
      store(lane, t.y + (token * shape.results + result) * width + column, sum * E(shape.scale));
    }
  }
}

}  // namespace GCRT_NAMESPACE
