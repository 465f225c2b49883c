// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// How what warps and blocks make of their keys is joined, in order: in shared memory, then by the block that
// ends last. Included by cuda/attention/attention.h.
#pragma once

#include <cmath>

#include "gcrt/cuda/attention/attention_plan.h"
#include "gcrt/cuda/product/tile_kernel.h"

namespace GCRT_NAMESPACE {

// What the blocks of one launch share.
struct AttentionGrid {
  int rows;           // of all heads that share keys
  int group;          // of those heads
  int split_keys;     // of a part
  float* sums;        // of the parts: [entry][part][rows][stride]
  float* statistics;  // [entry][part][rows][2]
  std::ptrdiff_t stride;
  std::uint32_t* counters;  // [entry][blocks along the rows]
};

// Which head and query a row is.
struct AttentionRow {
  int head;
  int query;
};
GCRT_INLINE AttentionRow attention_row(const AttentionShape& s, int group, int kv_head, int row) {
  if (group == 1) return {kv_head, row};
  const int in_group = row / s.queries;
  return {kv_head * group + in_group, row - in_group * s.queries};
}

// The largest number of fragments of 8 columns, at most `most` and even,
// of which whole ones make up `size` columns.
constexpr int attention_fragments(int size, int most) {
  int fragments = most;
  while (size / 8 % fragments != 0) fragments -= 2;
  return fragments;
}

template <Precision P, AttentionTile kTile, int kHead, int kValue, class TQ, class TK>
struct AttentionConfig {
  static_assert(kHead % 16 == 0 && kValue % 16 == 0, "attention_padded sizes");
  static constexpr AttentionWarps kWarps = attention_warps(kTile);
  static constexpr int kHeadSize = kHead;
  static constexpr int kRows = attention_rows(kTile);
  static constexpr int kThreads = kWarps.count() * 32;
  static constexpr int kWarpKeys = attention_keys(kTile, P, kHead, kValue, static_cast<int>(sizeof(TK)));
  static constexpr int kKeys = kWarpKeys * kWarps.keys;              // of a step
  static constexpr int kColumns = attention_columns(kTile, kValue);  // of the result
  static constexpr int kWarpColumns = kColumns / kWarps.columns;
  static_assert(is_by_lanes(kTile) || kWarpColumns <= attention_largest_columns(P),
                "more columns do not fit into registers");
  static constexpr int kValueStride = attention_value_stride(kColumns, static_cast<int>(sizeof(TK)));
  static constexpr int kResultStride = attention_result_stride(kColumns);
  static constexpr int kSharedBytes = attention_shared_bytes(
      kTile, P, kHead, kValue, static_cast<int>(sizeof(TQ)), static_cast<int>(sizeof(TK)));
  static constexpr int kStages =
      attention_stages(kTile, P, kHead, kValue, static_cast<int>(sizeof(TQ)), static_cast<int>(sizeof(TK)));
  static constexpr int kFragments = attention_fragments(kWarpColumns, kWarpColumns > 64 ? 2 : 8);  // at once
  static constexpr int kChunks = kWarpColumns / 8 / kFragments;
  // By lanes.
  static constexpr int kElements = 16 / static_cast<int>(sizeof(TK));  // of an access
  static constexpr int kLanes = attention_lanes(kHead, kColumns, static_cast<int>(sizeof(TK)));
  static constexpr int kLaneChunks = attention_lane_chunks(kHead, kColumns, static_cast<int>(sizeof(TK)));
  static constexpr int kLoads = attention_lane_loads(kTile, kHead, kColumns, static_cast<int>(sizeof(TK)));
  GCRT_INLINE static constexpr int column_of(int lane, int chunk) {
    return (chunk * kLanes + lane) * kElements;
  }
};

// The running softmax of the two rows of a thread.
struct SoftmaxState {
  float largest[2];
  float sum[2];  // of this thread's keys
};

// What scores are taken from before they are exponents. No key yet: any finite base does, all weights are 0.
GCRT_INLINE float softmax_base(float largest) { return largest == -kInfinity<float> ? 0.0f : largest; }

// 2^x of what is at most 0. Below 2^-126 it is 0: beside the weight of the largest score, which is 1, no sum
// would show it.
GCRT_DEVICE float softmax_weight(float x) {
#if defined(__CUDA_ARCH__)
  float weight;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(weight) : "f"(x));
  return weight;
#else
  return ::exp2f(x);
#endif
}

// What several parts of the keys make of four columns of a row: the sum of their weighted sums, and the
// maximum and the sum of the weights that belong to it.
struct JoinedRow {
  Pack<float, 4> sums;
  float largest;
  float total;
};

// statistics(part) points to maximum and sum of a part, sums(part) to its four columns. In order of the
// parts, all of which are read before the first is added.
template <int kParts, class Statistics, class Sums>
GCRT_DEVICE JoinedRow join_parts(const Statistics& statistics, const Sums& sums) {
  Pack<float, 2> of_part[kParts];
  Pack<float, 4> columns[kParts];
  GCRT_UNROLL
  for (int part = 0; part < kParts; ++part) {
    of_part[part] = load(Lanes<2>{}, statistics(part));
    columns[part] = load(Lanes<4>{}, sums(part));
  }
  JoinedRow row{columns[0], of_part[0][0], of_part[0][1]};
  if constexpr (kParts > 1) {
    GCRT_UNROLL
    for (int part = 1; part < kParts; ++part) {
      if (of_part[part][0] > row.largest) row.largest = of_part[part][0];
    }
    const float base = softmax_base(row.largest);
    row.sums = splat(Lanes<4>{}, 0.0f);
    row.total = 0.0f;
    GCRT_UNROLL
    for (int part = 0; part < kParts; ++part) {
      const float factor = softmax_weight(of_part[part][0] - base);
      row.total = multiply_add(of_part[part][1], factor, row.total);
      row.sums = multiply_add(columns[part], splat(Lanes<4>{}, factor), row.sums);
    }
  }
  return row;
}

// Hands a row to the epilogue. Without a visible key its sums are zero, and the factor of infinity makes them
// NaN, as a softmax over nothing is.
template <class E>
GCRT_DEVICE void finish_row(const AttentionShape& s, const AttentionGrid& grid, const JoinedRow& joined,
                            int b, int kv_head, int row, int column, const E& epilogue) {
  const float scale = joined.total == 0.0f && s.is_zero_where_empty ? 0.0f : 1.0f / joined.total;
  const AttentionRow to = attention_row(s, grid.group, kv_head, row);
  const int count = s.value_size - column < 4 ? s.value_size - column : 4;
  finish_pack(epilogue.at_batch(std::ptrdiff_t{b} * s.heads + to.head),
              joined.sums * splat(Lanes<4>{}, scale), count, to.query, column);
}

// What the warps left in shared memory, [warp][row][kResultStride] and then [warp][row][2], goes to the
// epilogue, or as a part of the keys to the workspace, of which the last block takes it there.
template <class Config, int kParts, class E>
GCRT_DEVICE void finish_attention(const AttentionShape& s, const AttentionGrid& grid, const float* result,
                                  int z, int part, int first_row, const E& epilogue) {
  constexpr int kQuads = Config::kColumns / 4;
  constexpr int kKeyWarps = Config::kWarps.keys;
  const float* const statistics = result + kKeyWarps * Config::kRows * Config::kResultStride;
  const int b = z / s.kv_heads;
  const int kv_head = z - b * s.kv_heads;
  const auto each_quad = [&](const auto& visit) {
    GCRT_NO_UNROLL
    for (int i = static_cast<int>(threadIdx.x); i < Config::kRows * kQuads; i += Config::kThreads) {
      const int row = i / kQuads, column = i % kQuads * 4;
      if (first_row + row < grid.rows && column < s.value_size) visit(row, column);
    }
  };
  const std::ptrdiff_t first = std::ptrdiff_t{z} * kParts * grid.rows + first_row;
  each_quad([&](int row, int column) GCRT_LAMBDA_INLINE {
    const JoinedRow joined = join_parts<kKeyWarps>(
        [&](int warp) { return statistics + 2 * (warp * Config::kRows + row); },
        [&](int warp) { return result + (warp * Config::kRows + row) * Config::kResultStride + column; });
    if constexpr (kParts > 1) {
      const std::ptrdiff_t at = first + std::ptrdiff_t{part} * grid.rows + row;
      store(Lanes<4>{}, grid.sums + at * grid.stride + column, joined.sums);
      if (column == 0)
        store(Lanes<2>{}, grid.statistics + 2 * at, Pack<float, 2>{joined.largest, joined.total});
    } else {
      finish_row(s, grid, joined, b, kv_head, first_row + row, column, epilogue);
    }
  });
  if constexpr (kParts > 1) {
    if (!arrives_last(grid.counters + z * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x), kParts))
      return;
    each_quad([&](int row, int column) GCRT_LAMBDA_INLINE {
      const JoinedRow joined = join_parts<kParts>(
          [&](int p) { return grid.statistics + 2 * (first + std::ptrdiff_t{p} * grid.rows + row); },
          [&](int p) {
            return grid.sums + (first + std::ptrdiff_t{p} * grid.rows + row) * grid.stride + column;
          });
      finish_row(s, grid, joined, b, kv_head, first_row + row, column, epilogue);
    });
  } else {
    static_cast<void>(part), static_cast<void>(first);
  }
}

// Leaves what a warp has summed, and the statistics of its rows, in shared memory.
template <class Config>
GCRT_DEVICE void park_result(float* result, const SoftmaxState& state,
                             const float (&sums)[Config::kChunks][1][Config::kFragments][4], int key_warp,
                             int warp_row, int first_column, LanePosition at) {
  float* const statistics = result + Config::kWarps.keys * Config::kRows * Config::kResultStride;
  GCRT_UNROLL
  for (int h = 0; h < 2; ++h) {
    float total = state.sum[h] + shuffle_xor(state.sum[h], 1);
    total += shuffle_xor(total, 2);
    const int row = key_warp * Config::kRows + warp_row + 8 * h + at.group;
    if (at.thread == 0 && first_column == 0) {
      statistics[2 * row] = state.largest[h];
      statistics[2 * row + 1] = total;
    }
    float* const to = result + row * Config::kResultStride + first_column + 2 * at.thread;
    GCRT_UNROLL
    for (int c = 0; c < Config::kChunks; ++c) {
      GCRT_UNROLL
      for (int j = 0; j < Config::kFragments; ++j) {
        to[(c * Config::kFragments + j) * 8] = sums[c][0][j][2 * h];
        to[(c * Config::kFragments + j) * 8 + 1] = sums[c][0][j][2 * h + 1];
      }
    }
  }
}

}  // namespace GCRT_NAMESPACE
