// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Decision trees: a thread for each row and group of trees.
#pragma once

#include "gcrt/cuda/device/device.h"
#include "gcrt/cuda/device/launch.h"
#include "gcrt/scalar/trees.h"

namespace GCRT_NAMESPACE {

constexpr int kTreeThreads = 128;

template <class Combine, class T, class Node>
GCRT_GLOBAL(kTreeThreads)
void sum_trees_kernel(Trees<T, Node> t) {
  const std::ptrdiff_t item = std::ptrdiff_t{blockIdx.x} * kTreeThreads + threadIdx.x;
  if (item < t.rows * t.groups) t.template walk<Combine>(item / t.groups, item % t.groups, 0);
}

template <class Combine, class T, class Node>
inline void sum_trees(Queue& queue, const Trees<T, Node>& t) {
  if (t.rows == 0) return;
  launch(queue, dim3(blocks_for(t.rows * t.groups, kTreeThreads)), dim3(kTreeThreads), 0,
         sum_trees_kernel<Combine, T, Node>, t);
}

}  // namespace GCRT_NAMESPACE
