// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Decision trees, several ways at a time: each step of a way waits for memory, and nothing else does. A
// step takes no branch: who has arrived stays. Values are added tree by tree in their order, however rows
// are shared.
#pragma once

#include "gcrt/parallel.h"
#include "gcrt/scalar/trees.h"

namespace GCRT_NAMESPACE {

// So many ways at a time, and rows for which a tree stays in the cache.
constexpr int kTreeWays = 8;
constexpr std::ptrdiff_t kTreeRows = 64;

template <class T, class Node>
GCRT_INLINE std::uint32_t next_of(const Node& node, const T* row, std::uint32_t at, std::uint32_t inner) {
  const std::uint32_t next = node.next(row);
  return at < inner ? next : at;
}

// One tree, kTreeWays rows.
template <class Combine, class T, class Node>
GCRT_INLINE void walk_rows(const Trees<T, Node>& t, std::ptrdiff_t row, std::ptrdiff_t group,
                           std::ptrdiff_t i) {
  const TreeRow tree = t.trees[group * t.of_group + i];
  const Node* const nodes = t.nodes + tree.first;
  const T* const x = t.x + row * t.columns;
  const auto inner = static_cast<std::uint32_t>(tree.inner);
  std::uint32_t at[kTreeWays] = {};
  for (std::int32_t level = 0; level < tree.depth; ++level) {
    GCRT_UNROLL
    for (int k = 0; k < kTreeWays; ++k) at[k] = next_of(nodes[at[k]], x + k * t.columns, at[k], inner);
  }
  t.template take_rows<Combine>(row, group, i == 0, std::ptrdiff_t{tree.leaf} - tree.inner, at, kTreeWays);
}

// One row, kTreeWays trees.
template <class Combine, class T, class Node>
GCRT_INLINE void walk_trees(const Trees<T, Node>& t, std::ptrdiff_t row, std::ptrdiff_t group,
                            std::ptrdiff_t i) {
  const TreeRow* const trees = t.trees + group * t.of_group + i;
  const T* const x = t.x + row * t.columns;
  std::uint32_t at[kTreeWays] = {};
  std::int32_t depth = 0;
  for (int k = 0; k < kTreeWays; ++k) depth = depth < trees[k].depth ? trees[k].depth : depth;
  for (std::int32_t level = 0; level < depth; ++level) {
    GCRT_UNROLL
    for (int k = 0; k < kTreeWays; ++k) {
      at[k] = next_of(t.nodes[trees[k].first + static_cast<std::ptrdiff_t>(at[k])], x, at[k],
                      static_cast<std::uint32_t>(trees[k].inner));
    }
  }
  for (int k = 0; k < kTreeWays; ++k) {
    const auto leaf = static_cast<std::ptrdiff_t>(at[k]) - trees[k].inner + trees[k].leaf;
    t.template take<Combine>(row, group, i + k == 0, leaf);
  }
}

// Blocks [begin, end) of kTreeRows rows.
template <class Combine, class T, class Node>
inline void trees_in_blocks(const Trees<T, Node>& t, std::ptrdiff_t begin, std::ptrdiff_t end) {
  for (std::ptrdiff_t block = begin; block < end; ++block) {
    const std::ptrdiff_t first = block * kTreeRows;
    const std::ptrdiff_t last = first + kTreeRows < t.rows ? first + kTreeRows : t.rows;
    const std::ptrdiff_t whole = first + (last - first) / kTreeWays * kTreeWays;
    for (std::ptrdiff_t group = 0; group < t.groups; ++group) {
      for (std::ptrdiff_t i = 0; i < t.of_group; ++i) {
        for (std::ptrdiff_t row = first; row < whole; row += kTreeWays) walk_rows<Combine>(t, row, group, i);
      }
      for (std::ptrdiff_t row = whole; row < last; ++row) {
        std::ptrdiff_t i = 0;
        for (; i + kTreeWays <= t.of_group; i += kTreeWays) walk_trees<Combine>(t, row, group, i);
        if (i < t.of_group) t.template walk<Combine>(row, group, i);
      }
    }
  }
}

template <class Combine, class T, class Node>
inline void sum_trees(const Threads* threads, const Trees<T, Node>& t) {
  parallel_for(threads, (t.rows + kTreeRows - 1) / kTreeRows,
               [&](std::ptrdiff_t begin, std::ptrdiff_t end) { trees_in_blocks<Combine>(t, begin, end); });
}

}  // namespace GCRT_NAMESPACE
