// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Linear attention: a thread for every column of every head.
#pragma once

#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/linear_attention.h"

namespace GCRT_NAMESPACE {

constexpr int kColumnThreads = 64;

template <class E>
GCRT_GLOBAL(kColumnThreads)
void linear_attention_kernel(LinearAttentionShape shape, LinearAttentionTensors<E> tensors) {
  const std::ptrdiff_t at = std::ptrdiff_t{blockIdx.x} * kColumnThreads + threadIdx.x;
  const std::ptrdiff_t head = at / shape.value_size;
  if (head < shape.batch * shape.heads) {
    linear_attention_column(shape, tensors, head, Lanes<1>{}, at % shape.value_size);
  }
}

// One launch.
template <class E>
inline void linear_attention(Queue& queue, const LinearAttentionShape& shape,
                             const LinearAttentionTensors<E>& tensors) {
  const std::ptrdiff_t columns = shape.batch * shape.heads * shape.value_size;
  launch(queue, dim3(blocks_for(columns, kColumnThreads)), dim3(kColumnThreads), 0,
         linear_attention_kernel<E>, shape, tensors);
}

}  // namespace GCRT_NAMESPACE
