// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Linear attention: vectors of columns, whose part of the state stays in the first cache from step to step.
#pragma once

#include "gcrt/linear_attention.h"

namespace GCRT_NAMESPACE {

// Heads [begin, end) of the B * H.
template <class E>
inline void linear_attention(const LinearAttentionShape& shape, const LinearAttentionTensors<E>& tensors,
                             std::ptrdiff_t begin, std::ptrdiff_t end) {
  for (std::ptrdiff_t head = begin; head < end; ++head) {
    vectorize<kLanesFor<E>>(shape.value_size, [&](auto lane, std::ptrdiff_t column) GCRT_LAMBDA_INLINE {
      linear_attention_column(shape, tensors, head, lane, column);
    });
  }
}

}  // namespace GCRT_NAMESPACE
