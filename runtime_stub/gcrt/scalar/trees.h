// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Decision trees as tables: inner nodes, tree behind tree, and what leaves hold.
#pragma once

#include <cstdint>

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// Goes to its second child unless the feature is at most the threshold, so with NaN as well. Children are
// counted within their tree, inner nodes before leaves.
template <class T, class Feature, class Child>
struct TreeNode {
  T threshold;
  Feature feature;
  Child children[2];

  GCRT_INLINE std::uint32_t next(const T* row) const {
    return static_cast<std::uint32_t>(children[row[feature] <= threshold ? 0 : 1]);
  }
};
static_assert(sizeof(TreeNode<float, std::uint16_t, std::uint8_t>) == 8, "written by the compiler so");
static_assert(sizeof(TreeNode<float, std::uint16_t, std::uint16_t>) == 12, "written by the compiler so");
static_assert(sizeof(TreeNode<double, std::int32_t, std::int32_t>) == 24, "written by the compiler so");

// `depth` is the longest way to a leaf; leaf 0 of the tree is leaf `leaf` of all.
struct TreeRow {
  std::int32_t first, inner, depth, leaf;
};

// Weights, which are bytes, as what lies there.
template <class Entry>
GCRT_INLINE const Entry* table(const std::uint8_t* bytes) {
  return static_cast<const Entry*>(static_cast<const void*>(bytes));
}

// How values of leaves are combined.
struct TreeSum {
  template <class T>
  static GCRT_INLINE T of(T a, T b) {
    return a + b;
  }
};
struct TreeMin {
  template <class T>
  static GCRT_INLINE T of(T a, T b) {
    return b < a ? b : a;
  }
};
struct TreeMax {
  template <class T>
  static GCRT_INLINE T of(T a, T b) {
    return b > a ? b : a;
  }
};

// x (rows, columns) -> y (rows, groups, width): each group has as many trees, and a leaf `width` values.
// Behind the nodes lie as many more as a tree has leaves, which may be read: a walk that has ended does so,
// and does not care.
template <class T, class Node>
struct Trees {
  const T* x;
  const TreeRow* trees;
  const Node* nodes;
  const T* values;
  T* y;
  std::ptrdiff_t rows, columns, groups, of_group, width;

  // What a leaf adds to the result of a row and a group.
  template <class Combine>
  GCRT_INLINE void take(std::ptrdiff_t row, std::ptrdiff_t group, bool is_first, std::ptrdiff_t leaf) const {
    T* const sums = y + (row * groups + group) * width;
    const T* const given = values + leaf * width;
    for (std::ptrdiff_t v = 0; v < width; ++v) sums[v] = is_first ? given[v] : Combine::of(sums[v], given[v]);
  }

  // The same of rows that follow each other, of which row k has reached leaf first + leaves[k].
  template <class Combine, int Count>
  GCRT_INLINE void take_rows(std::ptrdiff_t row, std::ptrdiff_t group, bool is_first, std::ptrdiff_t first,
                             const std::uint32_t (&leaves)[Count], int count) const {
    if (width != 1) {
      for (int k = 0; k < count; ++k) take<Combine>(row + k, group, is_first, first + leaves[k]);
      return;
    }
    T* const sums = y + row * groups + group;
    const T* const given = values + first;
    if (is_first) {
      for (int k = 0; k < count; ++k) sums[k * groups] = given[leaves[k]];
    } else {
      for (int k = 0; k < count; ++k) sums[k * groups] = Combine::of(sums[k * groups], given[leaves[k]]);
    }
  }

  // One row, tree after tree from tree `i` of the group on.
  template <class Combine>
  GCRT_INLINE void walk(std::ptrdiff_t row, std::ptrdiff_t group, std::ptrdiff_t i) const {
    for (; i < of_group; ++i) {
      const TreeRow tree = trees[group * of_group + i];
      const Node* const node = nodes + tree.first;
      const auto inner = static_cast<std::uint32_t>(tree.inner);
      std::uint32_t at = 0;
      while (at < inner) at = node[at].next(x + row * columns);
      take<Combine>(row, group, i == 0, tree.leaf + static_cast<std::ptrdiff_t>(at - inner));
    }
  }
};

}  // namespace GCRT_NAMESPACE
