// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Fused attention: softmax(Q K^T * scale + mask) V in one pass over the keys, without a matrix of scores.
//
// A block takes 16 or 64 rows of queries and walks over tiles of keys with a running maximum and a running
// sum per row (online softmax, in base 2). Its warps divide the rows, the keys of a tile, or the columns of
// the result (AttentionTile). Scores stay in registers: the sums of Q K^T lie in the fragments as the left
// operand of the product with V wants them, up to an order of the keys that V follows. The heads that share
// keys and values (grouped queries) are rows of the same product. What warps or blocks make of their keys is
// joined in order: in shared memory, then by the block that ends last.
#pragma once

#include "gcrt/cuda/attention/attention_lanes.h"
#include "gcrt/cuda/device/architectures.h"

namespace GCRT_NAMESPACE {

// Scores of a warp as the left operand: quarter t of a row of 16 keys is keys 2t, 2t + 1, 2t + 8, 2t + 9.
template <bool kIsShuffled, int kFragments>
struct ScoreSlab {
  using Element = float;
  const float (&scores)[1][kFragments][4];
  int slab;
  GCRT_DEVICE void quarter(float (&values)[4], int row, int t) const {
    const int h = (row & 8) != 0 ? 2 : 0;
    values[0] = scores[0][2 * slab][h];
    values[1] = scores[0][2 * slab][h + 1];
    values[2] = scores[0][2 * slab + 1][h];
    values[3] = scores[0][2 * slab + 1][h + 1];
    if constexpr (kIsShuffled) {  // without tensor cores a thread reads the keys of its neighbours too
      GCRT_UNROLL
      for (int i = 0; i < 4; ++i) {
        values[i] = shuffle(values[i], (static_cast<int>(threadIdx.x) & 28) | t);
      }
    }
  }
};

// 16 rows of V as the right operand, in the same order of keys, from column `first` on.
template <class T, int kStride>
struct ValueSlab {
  using Element = float;
  const T* data;
  int first;
  GCRT_DEVICE void quarter(float (&values)[4], int n, int t) const {
    GCRT_UNROLL
    for (int i = 0; i < 4; ++i) {
      values[i] = load_as_float(Lanes<1>{}, data + (2 * t + (i & 1) + 8 * (i >> 1)) * kStride + first + n);
    }
  }
};

// The fragments of N x 8 columns of V that is stored in the precision of the product.
template <int N, class T, int kStride>
GCRT_DEVICE void read_values(std::uint32_t (&columns)[N][2], const ValueSlab<T, kStride>& slab) {
  static_assert(N % 2 == 0, "columns in pairs of eight");
  const int lane = lane_rank();
  const T* const from = slab.data + (lane & 15) * kStride + slab.first + (lane >> 4 << 3);
  const void* addresses[N / 2];
  std::uint32_t loaded[N / 2][4];
  GCRT_UNROLL
  for (int j = 0; j < N / 2; ++j) addresses[j] = from + j * 16;
  ldmatrix_x4_several<true>(loaded, addresses);
  GCRT_UNROLL
  for (int j = 0; j < 2 * N; ++j) columns[j / 2][j % 2] = loaded[j / 4][j % 4];
}

struct TwoFloats {
  float value[2];
};
GCRT_DEVICE TwoFloats max_over_quarters(TwoFloats x) {
  return combine_lanes<4>(x, [](const TwoFloats& a, const TwoFloats& b) {
    return TwoFloats{{b.value[0] > a.value[0] ? b.value[0] : a.value[0],
                      b.value[1] > a.value[1] ? b.value[1] : a.value[1]}};
  });
}

// Scores become weights 2^(score - maximum); returns the factor by which earlier sums shrink.
template <int kFragments>
GCRT_DEVICE TwoFloats update_softmax(float (&scores)[1][kFragments][4], SoftmaxState& state) {
  TwoFloats largest{{state.largest[0], state.largest[1]}};
  GCRT_UNROLL
  for (int j = 0; j < kFragments; ++j) {
    GCRT_UNROLL
    for (int i = 0; i < 4; ++i) {
      float& so_far = largest.value[i / 2];
      if (scores[0][j][i] > so_far) so_far = scores[0][j][i];
    }
  }
  largest = max_over_quarters(largest);
  TwoFloats factor;
  GCRT_UNROLL
  for (int h = 0; h < 2; ++h) {
    const float base = softmax_base(largest.value[h]);
    factor.value[h] = softmax_weight(state.largest[h] - base);
    state.largest[h] = largest.value[h];
    float sum = state.sum[h] * factor.value[h];
    GCRT_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      GCRT_UNROLL
      for (int i = 0; i < 2; ++i) {
        float& score = scores[0][j][2 * h + i];
        score = softmax_weight(score - base);
        sum += score;
      }
    }
    state.sum[h] = sum;
  }
  return factor;
}

// Scales scores and hides what a row does not see. `first_row` is the thread's first row, the other 8 below.
template <AttentionMaskKind kMask, int kFragments>
GCRT_DEVICE void mask_scores(float (&scores)[1][kFragments][4], const AttentionShape& s,
                             const AttentionGrid& grid, const AttentionMask& mask, int b, int kv_head,
                             int first_row, int first_key, int end_key) {
  const float scale = s.scale * kLog2E;
  GCRT_UNROLL
  for (int h = 0; h < 2; ++h) {
    const int row = first_row + 8 * h;
    const AttentionRow at = attention_row(s, grid.group, kv_head, row < grid.rows ? row : 0);
    const int seen = seen_keys(s, at, end_key) - first_key;
    const RowMask<kMask> row_mask(mask, b, at, first_key);
    GCRT_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      GCRT_UNROLL
      for (int i = 0; i < 2; ++i) {
        float& score = scores[0][j][2 * h + i];
        score = row_mask.seen(score * scale, 8 * j + i, seen);
      }
    }
  }
}

// sums = sums * factor + the products of the scores with `kSlabs` slabs of V from column `first` on.
template <Precision P, class Config, class TK, int kScores>
GCRT_DEVICE void add_values(float (&sums)[1][Config::kFragments][4], const TwoFloats& factor,
                            const float (&scores)[1][kScores][4], const TK* values, int first,
                            LanePosition at) {
  using Product = FloatProduct<P>;
  constexpr int kFragments = Config::kFragments;
  constexpr bool kIsStored = std::is_same<TK, StoredHalf<P>>::value && kHasTensorCores<P>;
  typename Product::template Sums<1, kFragments> step;
  if constexpr (!Product::kIsSplit) {
    GCRT_UNROLL
    for (int i = 0; i < 4 * kFragments; ++i) {
      step.sums[0][i / 4][i % 4] = sums[0][i / 4][i % 4] * factor.value[i % 4 / 2];
    }
  }
  GCRT_UNROLL
  for (int slab = 0; slab < kScores / 2; ++slab) {
    const ScoreSlab<!kHasTensorCores<P>, kScores> slab_p{scores, slab};
    const ValueSlab<TK, Config::kValueStride> slab_v{values + slab * 16 * Config::kValueStride, first};
    if constexpr (kIsStored) {
      std::uint32_t rows[1][4], columns[kFragments][2];
      read_pairs<P>(rows[0][0], rows[0][2], slab_p, at.group, at.thread);
      read_pairs<P>(rows[0][1], rows[0][3], slab_p, at.group + 8, at.thread);
      read_values(columns, slab_v);
      multiply_pairs<P>(step, rows, columns);
    } else {
      Product::multiply(step, slab_p, slab_v, at);
    }
  }
  GCRT_UNROLL
  for (int i = 0; i < 4 * kFragments; ++i) {
    float& sum = sums[0][i / 4][i % 4];
    const float value = step.value(0, i / 4, i % 4);
    sum = Product::kIsSplit ? multiply_add(sum, factor.value[i % 4 / 2], value) : value;
  }
}

// blockIdx: x rows, y part of the keys, z batch and head of the keys. kCopied: see attention().
template <Precision P, class Config, AttentionMaskKind kMask, int kCopied, int kParts, class TQ, class TK,
          class E, class Cache>
GCRT_GLOBAL_BLOCKS(Config::kThreads, 1)
void attention_kernel(AttentionShape s, AttentionGrid grid, const TQ* q, const TK* k, const TK* v,
                      AttentionMask mask, AttentionCopies copies, E epilogue, Cache cache) {
  if (!is_compiled_here<E>()) return;
  await_previous_grid();
  using Product = FloatProduct<P>;
  constexpr int kRows = Config::kRows;
  constexpr int kKeys = Config::kKeys;
  constexpr int kScores = Config::kWarpKeys / 8;
  constexpr int kSlabs = Config::kHeadSize / 16;
  GCRT_DYNAMIC_SHARED(unsigned char, shared);
  TQ* const shared_q = reinterpret_cast<TQ*>(shared);                                // [slab][row][16]
  TK* const shared_k = reinterpret_cast<TK*>(shared_q + kRows * Config::kHeadSize);  // [slab][key][16]
  TK* const shared_v = shared_k + Config::kStages * kKeys * Config::kHeadSize;       // [key][kValueStride]
  const int thread = static_cast<int>(threadIdx.x);
  const LanePosition at = lane_position();
  const int z = static_cast<int>(blockIdx.z);
  const int b = z / s.kv_heads;
  const int kv_head = z - b * s.kv_heads;
  const int first_row = static_cast<int>(blockIdx.x) * kRows;
  const int warp = thread / 32;
  const int warp_row = warp % Config::kWarps.rows * 16;
  const int key_warp = warp % Config::kWarps.keys;
  const int warp_key = key_warp * Config::kWarpKeys;
  const int first_column = warp % Config::kWarps.columns * Config::kWarpColumns;
  const int part = static_cast<int>(blockIdx.y);
  const int first_key = part * grid.split_keys;
  int end_key = first_key + grid.split_keys < s.keys ? first_key + grid.split_keys : s.keys;
  // Among the blocks that read the same keys, the last along the rows writes them to the cache, all of them.
  const bool writes_cache = Cache::kIsThere && blockIdx.x + 1 == gridDim.x;
  if (s.is_causal && !writes_cache) {
    const int last = first_row + kRows < grid.rows ? first_row + kRows - 1 : grid.rows - 1;
    const AttentionRow from = attention_row(s, grid.group, 0, first_row);
    const AttentionRow to = attention_row(s, grid.group, 0, last);
    const int seen = (from.head == to.head ? to.query : s.queries - 1) + s.causal_offset + 1;
    if (seen < end_key) end_key = seen;
  }

  // Where the keys and values of a step lie.
  constexpr bool kIsAhead = Config::kStages == 2;
  const auto stage_of = [&](int key)
                            GCRT_LAMBDA_INLINE { return kIsAhead ? (key - first_key) / kKeys % 2 : 0; };
  const auto keys_at = [&](int key) GCRT_LAMBDA_INLINE {
    return shared_k + stage_of(key) * kKeys * Config::kHeadSize;
  };
  const auto values_at = [&](int key) GCRT_LAMBDA_INLINE {
    return shared_v + stage_of(key) * kKeys * Config::kValueStride;
  };
  // Every thread visits the same 16 bytes of a tile each time, and so stores what it has copied itself.
  const auto each_of_keys = [&](int key, const auto& visit) GCRT_LAMBDA_INLINE {
    TK* const tile = keys_at(key);
    each_chunk<kCopied, TK, kKeys, Config::kHeadSize, Config::kThreads>(
        thread, [&](int row, int column) GCRT_LAMBDA_INLINE {
          const int slab = column / 16;
          visit(row, column, tile + slab * kKeys * 16 + slab_offset<TK, 16>(row, column % 16));
        });
  };
  const auto each_of_values = [&](int key, const auto& visit) GCRT_LAMBDA_INLINE {
    TK* const tile = values_at(key);
    each_chunk<kCopied, TK, kKeys, Config::kColumns, Config::kThreads>(
        thread, [&](int row, int column)
                    GCRT_LAMBDA_INLINE { visit(row, column, tile + row * Config::kValueStride + column); });
  };
  const auto keys = head_rows(k, s.k, cache.k, cache.past, b, kv_head);
  const auto values = head_rows(v, s.v, cache.v, cache.past, b, kv_head);
  const auto load_keys = [&](int key) {
    each_of_keys(key, [&](int row, int column, TK* place) GCRT_LAMBDA_INLINE {
      const bool exists = key + row < s.keys;
      copy_columns<kCopied>(place, keys.row(exists ? key + row : 0), column, s.head_size, s.k.column,
                            copies.k, exists);
    });
    cp_async_commit();
  };
  const auto load_values = [&](int key) {
    each_of_values(key, [&](int row, int column, TK* place) GCRT_LAMBDA_INLINE {
      const bool exists = key + row < s.keys;
      copy_columns<kCopied>(place, values.row(exists ? key + row : 0), column, s.value_size, s.v.column,
                            copies.v, exists);
    });
    cp_async_commit();
  };
  const auto store_keys = [&](int key) {
    if constexpr (Cache::kIsThere) {
      if (!writes_cache) return;
      each_of_keys(key, [&](int row, int column, const TK* place) GCRT_LAMBDA_INLINE {
        if (!cache.k.writes(key + row)) return;
        store_columns<kCopied>(cache.k.joined_row(b, kv_head, key + row), place, column, s.head_size,
                               copies.joined);
      });
    }
  };
  const auto store_values = [&](int key) {
    if constexpr (Cache::kIsThere) {
      if (!writes_cache) return;
      each_of_values(key, [&](int row, int column, const TK* place) GCRT_LAMBDA_INLINE {
        if (!cache.v.writes(key + row)) return;
        store_columns<kCopied>(cache.v.joined_row(b, kv_head, key + row), place, column, s.value_size,
                               copies.joined);
      });
    }
  };
  each_chunk<kCopied, TQ, kRows, Config::kHeadSize, Config::kThreads>(
      thread, [&](int row, int column) GCRT_LAMBDA_INLINE {
        const bool exists = first_row + row < grid.rows;
        const AttentionRow from = attention_row(s, grid.group, kv_head, exists ? first_row + row : 0);
        const int slab = column / 16;
        copy_columns<kCopied>(shared_q + slab * kRows * 16 + slab_offset<TQ, 16>(row, column % 16),
                              q + b * s.q.batch + from.head * s.q.head + from.query * s.q.row, column,
                              s.head_size, s.q.column, copies.q, exists);
      });
  load_keys(first_key);
  if (kIsAhead) load_values(first_key);

  SoftmaxState state{{-kInfinity<float>, -kInfinity<float>}, {0.0f, 0.0f}};
  float sums[Config::kChunks][1][Config::kFragments][4] = {};
  GCRT_NO_UNROLL
  for (int key = first_key; key < end_key; key += kKeys) {
    const int next_key = key + kKeys;
    cp_async_wait<kIsAhead ? 1 : 0>();
    barrier();  // K is there, and V of the step before is no longer read
    if constexpr (!kIsAhead) {
      load_values(key);
    } else if (next_key < end_key) {
      load_keys(next_key);
      load_values(next_key);
    } else {
      cp_async_commit();  // groups of nothing, so that each step counts as many
      cp_async_commit();
    }
    store_keys(key);
    typename Product::template Sums<1, kScores> products;
    const auto multiply_slab = [&](int slab) GCRT_LAMBDA_INLINE {
      const RowSlab<TQ, 16> slab_q{shared_q + (slab * kRows + warp_row) * 16};
      const RowSlab<TK, 16> slab_k{keys_at(key) + (slab * kKeys + warp_key) * 16};
      Product::multiply(products, slab_q, slab_k, at);
    };
    if constexpr (kSlabs <= 4 && !Product::kIsSplit) {
      GCRT_UNROLL
      for (int slab = 0; slab < kSlabs; ++slab) multiply_slab(slab);
    } else {
      GCRT_NO_UNROLL
      for (int slab = 0; slab < kSlabs; ++slab) multiply_slab(slab);
    }
    float scores[1][kScores][4];
    GCRT_UNROLL
    for (int i = 0; i < 4 * kScores; ++i) scores[0][i / 4][i % 4] = products.value(0, i / 4, i % 4);
    mask_scores<kMask>(scores, s, grid, mask, b, kv_head, first_row + warp_row + at.group,
                       key + warp_key + 2 * at.thread, end_key);
    const TwoFloats factor = update_softmax(scores, state);
    cp_async_wait<kIsAhead ? 2 : 0>();
    barrier();  // V is there, and K is no longer read
    if (!kIsAhead && next_key < end_key) load_keys(next_key);
    store_values(key);
    GCRT_UNROLL
    for (int c = 0; c < Config::kChunks; ++c) {
      add_values<P, Config>(sums[c], factor, scores, values_at(key) + warp_key * Config::kValueStride,
                            first_column + c * Config::kFragments * 8, at);
    }
  }
  cp_async_wait<0>();
  barrier();
  float* const result = reinterpret_cast<float*>(shared);
  park_result<Config>(result, state, sums, key_warp, warp_row, first_column, at);
  barrier();
  finish_attention<Config, kParts>(s, grid, result, z, part, first_row, epilogue);
}

// q, and k and v, are float or stored in the precision of the products. kHeadSize and kValueSize are
// attention_padded(head_size) and attention_padded(value_size); kTile and the parts of `split` come from
// plan_attention, the workspace from attention_workspace_size, and the queue has attention_counters words
// that are 0. kCopied 16: rows of all operands begin at multiples of 16 bytes, columns are dense, and
// neither kHeadSize nor the tile's columns are padded; 0: that is asked at run time. batch * kv_heads <
// 65536. The epilogue is called as in gemm.h, on at_batch(b * heads + h), with m = query and n = column of
// the head. With an AttentionCache, k and v are the new rows alone.
template <Precision P, AttentionTile kTile, int kHeadSize, int kValueSize, AttentionMaskKind kMask,
          int kCopied = 0, int kParts, class TQ, class TK, class E, class Cache = NoAttentionCache>
inline void attention(Queue& queue, const AttentionShape& s, const TQ* q, const TK* k, const TK* v,
                      const AttentionMask& mask, const SplitDepth<kParts>& split, const E& epilogue,
                      const Cache& cache = {}) {
  using Config = AttentionConfig<P, kTile, kHeadSize, kValueSize, TQ, TK>;
  if (s.batch <= 0 || s.rows() <= 0) return;
  const AttentionCopies copies = attention_copies(attention_copy_bytes(q, s.q), s, k, v, cache);
  const unsigned entries = static_cast<unsigned>(s.batch * s.kv_heads);
  const std::ptrdiff_t stride = ceil_div(s.value_size, 4) * 4;
  float* const statistics =
      split.workspace + std::ptrdiff_t{s.batch} * s.kv_heads * kParts * s.rows() * stride;
  const int steps = (s.keys + Config::kKeys - 1) / Config::kKeys;
  const int split_keys = (steps + kParts - 1) / kParts * Config::kKeys;
  const AttentionGrid grid{s.rows(), s.heads / s.kv_heads, split_keys, split.workspace, statistics,
                           stride,   queue.counters};
  const dim3 blocks(static_cast<unsigned>(ceil_div(s.rows(), Config::kRows)), static_cast<unsigned>(kParts),
                    entries);
  const auto start = [&](auto kernel) {
    launch_overlapping(queue, blocks, dim3(Config::kThreads), Config::kSharedBytes, kernel, s, grid, q, k, v,
                       mask, copies, epilogue, cache);
  };
  if constexpr (is_by_lanes(kTile)) {
    start(attention_lanes_kernel<Config, kMask, kCopied, kParts, TQ, TK, E, Cache>);
  } else {
    start(attention_kernel<P, Config, kMask, kCopied, kParts, TQ, TK, E, Cache>);
  }
}

template <Precision P, AttentionTile kTile, int kHeadSize, int kValueSize, AttentionMaskKind kMask,
          int kCopied = 0, int kParts, class TQ, class TK, class E, class Cache = NoAttentionCache>
inline void attention(Queue& queue, const AttentionShape& s, const TQ* q, const TK* k, const TK* v,
                      const AttentionMask& mask, const SplitWithin<kParts>& split, const E& epilogue,
                      const Cache& cache = {}) {
  with_split(split, [&](const auto& key_split) {
    attention<P, kTile, kHeadSize, kValueSize, kMask, kCopied>(queue, s, q, k, v, mask, key_split, epilogue,
                                                               cache);
  });
}

}  // namespace GCRT_NAMESPACE
