// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Attention of a few queries, as a step of decoding has them: the lanes of a block divide the keys, and each
// asks for its parts of several keys and values at once. Tensor cores would multiply rows that are not there,
// and a block that walks over tiles of keys waits for each of them. Included by cuda/attention/attention.h.
#pragma once

#include "gcrt/cuda/attention/attention_join.h"
#include "gcrt/cuda/attention/attention_rows.h"
#include "gcrt/cuda/attention/attention_scores.h"

namespace GCRT_NAMESPACE {

// 16 bytes of a row of keys or values, in registers.
template <class T>
struct alignas(16) RowChunk {
  static constexpr int kElements = 16 / static_cast<int>(sizeof(T));
  T element[kElements];

  // From `column` on of a row of `size`; zeros where nothing is. kCopied, `bytes`: see copy_columns().
  template <int kCopied>
  GCRT_DEVICE void read(const T* row, int column, int size, std::ptrdiff_t stride, int bytes, bool exists) {
    if (exists && (kCopied == 16 || bytes == 16) && column + kElements <= size) {
      std::uint32_t words[4];
      load_words(words, row + column);
      memcpy(element, words, sizeof(words));
      return;
    }
    GCRT_UNROLL
    for (int i = 0; i < kElements; ++i) {
      element[i] = kCopied != 16 && exists && column + i < size ? row[(column + i) * stride] : T{};
    }
  }
  GCRT_DEVICE float operator[](int i) const { return load_as_float(Lanes<1>{}, element + i); }
};

// The part of one key or value that a lane has; the other lanes of its group have the others.
template <class Config, class T>
struct LaneRows {
  RowChunk<T> chunk[Config::kLaneChunks];
  template <int kCopied, class Rows>
  GCRT_DEVICE void read(const Rows& rows, int key, int lane, int size, std::ptrdiff_t stride, int bytes,
                        bool exists) {
    const T* const row = rows.row(exists ? key : 0);
    GCRT_UNROLL
    for (int c = 0; c < Config::kLaneChunks; ++c)
      chunk[c].template read<kCopied>(row, Config::column_of(lane, c), size, stride, bytes, exists);
  }
  GCRT_DEVICE void write(T* row, int lane, int size, int bytes) const {
    GCRT_UNROLL
    for (int c = 0; c < Config::kLaneChunks; ++c)
      store_columns<0>(row, chunk[c].element, Config::column_of(lane, c), size, bytes);
  }
};

// What a lane knows of the rows of queries of its block.
template <class Config>
struct LaneQueries {
  float scaled[Config::kRows][Config::kLaneChunks][Config::kElements];  // by the factor of scores, in base 2
  AttentionRow at[Config::kRows];
  int limit[Config::kRows];  // keys that the row sees
};

template <class Config, class TQ>
GCRT_DEVICE LaneQueries<Config> read_queries(const AttentionShape& s, const AttentionGrid& grid, const TQ* q,
                                             int b, int kv_head, int first_row, int lane, int end_key) {
  LaneQueries<Config> queries;
  GCRT_UNROLL
  for (int r = 0; r < Config::kRows; ++r) {
    const bool exists = first_row + r < grid.rows;
    const AttentionRow at = attention_row(s, grid.group, kv_head, exists ? first_row + r : 0);
    const TQ* const row = q + b * s.q.batch + at.head * s.q.head + at.query * s.q.row;
    GCRT_UNROLL
    for (int c = 0; c < Config::kLaneChunks; ++c) {
      GCRT_UNROLL
      for (int i = 0; i < Config::kElements; ++i) {
        const int column = Config::column_of(lane, c) + i;
        queries.scaled[r][c][i] =
            exists && column < s.head_size
                ? load_as_float(Lanes<1>{}, row + column * s.q.column) * (s.scale * kLog2E)
                : 0.0f;
      }
    }
    queries.at[r] = at;
    queries.limit[r] = seen_keys(s, at, end_key);
  }
  return queries;
}

// The running softmax of a lane's keys, and the columns of the result that are its own.
template <class Config>
struct LaneSums {
  float largest[Config::kRows];
  float total[Config::kRows];
  float columns[Config::kRows][Config::kLaneChunks][Config::kElements];

  GCRT_DEVICE LaneSums() {
    GCRT_UNROLL
    for (int r = 0; r < Config::kRows; ++r) {
      largest[r] = -kInfinity<float>;
      total[r] = 0.0f;
      each(r, [](float& sum, int, int) GCRT_LAMBDA_INLINE { sum = 0.0f; });
    }
  }
  template <class Visit>
  GCRT_DEVICE void each(int r, const Visit& visit) {
    GCRT_UNROLL
    for (int c = 0; c < Config::kLaneChunks; ++c) {
      GCRT_UNROLL
      for (int i = 0; i < Config::kElements; ++i) visit(columns[r][c][i], c, i);
    }
  }
  // Scores of row r become weights of the values of their keys.
  template <class T>
  GCRT_DEVICE void add(int r, const float (&scores)[Config::kLoads],
                       const LaneRows<Config, T> (&values)[Config::kLoads]) {
    float most = largest[r];
    GCRT_UNROLL
    for (int l = 0; l < Config::kLoads; ++l) most = scores[l] > most ? scores[l] : most;
    const float base = softmax_base(most);
    const float factor = softmax_weight(largest[r] - base);
    largest[r] = most;
    float weights[Config::kLoads];
    float sum = total[r] * factor;
    GCRT_UNROLL
    for (int l = 0; l < Config::kLoads; ++l) {
      weights[l] = softmax_weight(scores[l] - base);
      sum += weights[l];
    }
    total[r] = sum;
    each(r, [&](float& column, int c, int i) GCRT_LAMBDA_INLINE {
      column *= factor;
      GCRT_UNROLL
      for (int l = 0; l < Config::kLoads; ++l) {
        column = multiply_add(weights[l], values[l].chunk[c][i], column);
      }
    });
  }
  // Together with the lanes of the warp that have the same columns of other keys, in a fixed order.
  GCRT_DEVICE void join_lanes() {
    GCRT_UNROLL
    for (int distance = Config::kLanes; distance < kWarpThreads; distance *= 2) {
      GCRT_UNROLL
      for (int r = 0; r < Config::kRows; ++r) {
        const float other = shuffle_xor(largest[r], distance);
        const float most = other > largest[r] ? other : largest[r];
        const float base = softmax_base(most);
        const float mine = softmax_weight(largest[r] - base);
        largest[r] = most;
        const auto joined = [&](float value) GCRT_LAMBDA_INLINE {
          const float scaled = value * mine;
          return scaled + shuffle_xor(scaled, distance);
        };
        total[r] = joined(total[r]);
        each(r, [&](float& column, int, int) GCRT_LAMBDA_INLINE { column = joined(column); });
      }
    }
  }
};

// blockIdx: x rows, y part of the keys, z batch and head of the keys.
template <class Config, AttentionMaskKind kMask, int kCopied, int kParts, class TQ, class TK, class E,
          class Cache>
GCRT_GLOBAL_BLOCKS(Config::kThreads, 1)
void attention_lanes_kernel(AttentionShape s, AttentionGrid grid, const TQ* q, const TK* k, const TK* v,
                            AttentionMask mask, AttentionCopies copies, E epilogue, Cache cache) {
  if (!is_compiled_here<E>()) return;
  await_previous_grid();
  constexpr int kRows = Config::kRows, kLoads = Config::kLoads;
  GCRT_DYNAMIC_SHARED(float, result);
  const int warp = warp_rank();
  const int lane = lane_rank() % Config::kLanes;
  const int worker = static_cast<int>(threadIdx.x) / Config::kLanes;
  constexpr int kWorkers = Config::kThreads / Config::kLanes;
  const int z = static_cast<int>(blockIdx.z);
  const int b = z / s.kv_heads;
  const int kv_head = z - b * s.kv_heads;
  const int first_row = static_cast<int>(blockIdx.x) * kRows;
  const int part = static_cast<int>(blockIdx.y);
  const int first_key = part * grid.split_keys;
  const int end_key = first_key + grid.split_keys < s.keys ? first_key + grid.split_keys : s.keys;
  // Among the blocks that read the same keys, the last along the rows writes them to the cache.
  const bool writes_cache = Cache::kIsThere && blockIdx.x + 1 == gridDim.x;
  const auto queries = read_queries<Config>(s, grid, q, b, kv_head, first_row, lane, end_key);
  const auto key_rows = head_rows(k, s.k, cache.k, cache.past, b, kv_head);
  const auto value_rows = head_rows(v, s.v, cache.v, cache.past, b, kv_head);

  LaneSums<Config> sums;
  GCRT_NO_UNROLL
  for (int first = first_key + worker; first - worker < end_key; first += kLoads * kWorkers) {
    LaneRows<Config, TK> keys[kLoads], values[kLoads];
    GCRT_UNROLL
    for (int l = 0; l < kLoads; ++l) {
      const int key = first + l * kWorkers;
      keys[l].template read<kCopied>(key_rows, key, lane, s.head_size, s.k.column, copies.k, key < end_key);
    }
    GCRT_UNROLL
    for (int l = 0; l < kLoads; ++l) {
      const int key = first + l * kWorkers;
      values[l].template read<kCopied>(value_rows, key, lane, s.value_size, s.v.column, copies.v,
                                       key < end_key);
    }
    if constexpr (Cache::kIsThere) {
      GCRT_UNROLL
      for (int l = 0; l < kLoads; ++l) {
        const int key = first + l * kWorkers;
        if (!writes_cache || key >= end_key) continue;
        if (cache.k.writes(key))
          keys[l].write(cache.k.joined_row(b, kv_head, key), lane, s.head_size, copies.joined);
        if (cache.v.writes(key))
          values[l].write(cache.v.joined_row(b, kv_head, key), lane, s.value_size, copies.joined);
      }
    }
    GCRT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      float scores[kLoads];
      GCRT_UNROLL
      for (int l = 0; l < kLoads; ++l) {
        float sum = 0.0f;
        GCRT_UNROLL
        for (int c = 0; c < Config::kLaneChunks; ++c) {
          GCRT_UNROLL
          for (int i = 0; i < Config::kElements; ++i) {
            sum = multiply_add(queries.scaled[r][c][i], keys[l].chunk[c][i], sum);
          }
        }
        GCRT_UNROLL
        for (int distance = 1; distance < Config::kLanes; distance *= 2) sum += shuffle_xor(sum, distance);
        const int key = first + l * kWorkers;
        scores[l] = RowMask<kMask>(mask, b, queries.at[r], key).seen(sum, 0, queries.limit[r] - key);
      }
      sums.add(r, scores, values);
    }
  }
  sums.join_lanes();
  float* const statistics = result + Config::kWarps.keys * kRows * Config::kResultStride;
  if (lane_rank() < Config::kLanes) {
    GCRT_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const int row = warp * kRows + r;
      sums.each(r, [&](float& column, int c, int i) GCRT_LAMBDA_INLINE {
        const int at = Config::column_of(lane, c) + i;
        if (at < Config::kColumns) result[row * Config::kResultStride + at] = column;
      });
      if (lane == 0) {
        statistics[2 * row] = sums.largest[r];
        statistics[2 * row + 1] = sums.total[r];
      }
    }
  }
  barrier();
  finish_attention<Config, kParts>(s, grid, result, z, part, first_row, epilogue);
}

}  // namespace GCRT_NAMESPACE
