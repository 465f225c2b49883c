// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Decision trees without ways, after QuickScorer (Lucchese and others, 2015): rows in the lanes of
// vectors, and a bit for each leaf of a tree. Every node whose comparison fails takes away the leaves of
// its first child; the first leaf that is left is the one. No step waits for another, and memory is read
// in its order.
#pragma once

#include "gcrt/pack.h"
#include "gcrt/parallel.h"
#include "gcrt/scalar/trees.h"

namespace GCRT_NAMESPACE {

// `leaves`: those that are left where the comparison fails. A feature that is at most the threshold takes
// none away.
template <int Words>
struct MaskNode {
  float threshold;
  std::int32_t feature;
  std::uint32_t leaves[Words];
};

// Rows of one block: as many packs as there are words, so that none of them waits for one register.
template <int Words>
constexpr int kMaskRows = Words* kLanes;

inline std::uint32_t first_bit(std::uint32_t word) { return static_cast<std::uint32_t>(__builtin_ctz(word)); }

// The features of rows [row, row + kMaskRows), behind the last of which it stands again.
template <int Words>
inline void turn_rows(const Trees<float, MaskNode<Words>>& t, std::ptrdiff_t row, float* features) {
  for (int k = 0; k < kMaskRows<Words>; ++k) {
    const std::ptrdiff_t from = row + k < t.rows ? row + k : t.rows - 1;
    for (std::ptrdiff_t c = 0; c < t.columns; ++c) {
      features[c * kMaskRows<Words> + k] = t.x[from * t.columns + c];
    }
  }
}

// One tree, rows [row, row + count).
template <class Combine, int Words>
GCRT_INLINE void mask_tree(const Trees<float, MaskNode<Words>>& t, const float* features, std::ptrdiff_t row,
                           int count, std::ptrdiff_t group, std::ptrdiff_t i) {
  constexpr Lanes<kLanes> lane{};
  using Bits = Pack<std::uint32_t, kLanes>;
  const TreeRow tree = t.trees[group * t.of_group + i];
  Bits left[Words][Words];
  for (int p = 0; p < Words; ++p) {
    for (int w = 0; w < Words; ++w) left[p][w] = splat(lane, ~std::uint32_t{0});
  }
  for (std::int32_t n = tree.first; n < tree.first + tree.inner; ++n) {
    const MaskNode<Words>& node = t.nodes[n];
    const float* const feature = features + std::ptrdiff_t{node.feature} * kMaskRows<Words>;
    const Pack<float, kLanes> threshold = splat(lane, node.threshold);
    GCRT_UNROLL
    for (int p = 0; p < Words; ++p) {
      const auto is_left = load(lane, feature + p * kLanes) <= threshold;
      const Bits stays = kLanes > 1 ? (Bits)is_left : 0u - (Bits)is_left;  // of a scalar 0 or 1
      GCRT_UNROLL
      for (int w = 0; w < Words; ++w) left[p][w] &= stays | splat(lane, node.leaves[w]);
    }
  }
  std::uint32_t words[Words][kMaskRows<Words>], leaves[kMaskRows<Words>];
  for (int p = 0; p < Words; ++p) {
    for (int w = 0; w < Words; ++w) store(lane, words[w] + p * kLanes, left[p][w]);
  }
  for (int k = 0; k < kMaskRows<Words>; ++k) {
    leaves[k] = Words == 1 || words[0][k] != 0 ? first_bit(words[0][k]) : 32 + first_bit(words[Words - 1][k]);
  }
  t.template take_rows<Combine>(row, group, i == 0, tree.leaf, leaves, count);
}

// `features` has parts * columns * kMaskRows floats.
template <class Combine, int Words>
inline void sum_trees_by_masks(const Threads* threads, const Trees<float, MaskNode<Words>>& t,
                               float* features, std::ptrdiff_t parts) {
  constexpr int kRows = kMaskRows<Words>;
  const std::ptrdiff_t blocks = (t.rows + kRows - 1) / kRows;
  parallel_parts(
      threads, blocks, blocks, parts, [&](std::ptrdiff_t part, std::ptrdiff_t begin, std::ptrdiff_t end) {
        float* const own = features + part * t.columns * kRows;
        for (std::ptrdiff_t block = begin; block < end; ++block) {
          const std::ptrdiff_t row = block * kRows, rest = t.rows - row;
          turn_rows(t, row, own);
          for (std::ptrdiff_t group = 0; group < t.groups; ++group) {
            for (std::ptrdiff_t i = 0; i < t.of_group; ++i) {
              mask_tree<Combine>(t, own, row, static_cast<int>(rest < kRows ? rest : kRows), group, i);
            }
          }
        }
      });
}

}  // namespace GCRT_NAMESPACE
