// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// TopK by its definition: a thread for every element, which counts those before it.
#pragma once

#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/top_k_order.h"

namespace GCRT_NAMESPACE {

constexpr int kRankThreads = 256;

template <bool Largest, class T>
GCRT_GLOBAL(kRankThreads)
void top_k_by_rank_kernel(std::ptrdiff_t count, TopKByRank<Largest, T> store) {
  const std::ptrdiff_t element = std::ptrdiff_t{blockIdx.x} * kRankThreads + threadIdx.x;
  if (element < count) store(element);
}

// Ranks `count` elements, in one launch.
template <bool Largest, class T>
inline void top_k_by_rank(Queue& queue, std::ptrdiff_t count, const TopKByRank<Largest, T>& store) {
  if (count == 0) return;
  launch(queue, dim3(blocks_for(count, kRankThreads)), dim3(kRankThreads), 0,
         top_k_by_rank_kernel<Largest, T>, count, store);
}

}  // namespace GCRT_NAMESPACE
