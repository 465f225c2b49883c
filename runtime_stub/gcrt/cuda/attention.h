// Fused attention: softmax(Q K^T * scale + mask) V in one pass over the keys, without a matrix of scores.
//
// A block takes 16 or 64 rows of queries, a warp 16 of them, and walks over tiles of keys with a running
// maximum and a running sum per row (online softmax, in base 2). Scores stay in registers: the sums of Q K^T
// lie in the fragments as the left operand of the product with V wants them, up to an order of the keys that
// V follows. The heads that share keys and values (grouped queries) are rows of the same product. Where rows
// are few, parts of the keys go to blocks of their own, and a second kernel joins them in order.
#pragma once

#include <cmath>

#include "gcrt/attention_limit.h"
#include "gcrt/cuda/attention_plan.h"
#include "gcrt/cuda/tile_kernel.h"

namespace GCRT_NAMESPACE {

enum class AttentionMaskKind {
  kNone,
  kAdditive,  // float, added to the scaled scores
  kBoolean,   // uint8_t, 0 hides the key
};

// Factor of a row whose weights sum up to `total`. Without a visible key the row's sums are zero, and the
// factor of infinity makes them NaN, as a softmax over nothing is.
GCRT_INLINE float attention_scale(const AttentionShape& s, float total) {
  return total == 0.0f && s.is_zero_where_empty ? 0.0f : 1.0f / total;
}

// A mask of the shape (batch, heads, queries, keys) by strides in elements, 0 where it is broadcast.
struct AttentionMask {
  const void* data = nullptr;
  std::ptrdiff_t batch = 0;
  std::ptrdiff_t head = 0;
  std::ptrdiff_t query = 0;
  std::ptrdiff_t key = 0;
};

// Partial results of one part of the keys: weighted sums [part][row][stride], then maximum and sum of each
// row.
struct AttentionParts {
  float* sums;
  float* statistics;
  std::ptrdiff_t stride;
  int splits;
  int split_keys;  // per part
};

// Which head and query a row is.
struct AttentionRow {
  int head;
  int query;
};
GCRT_INLINE AttentionRow attention_row(const AttentionShape& s, int kv_head, int row) {
  const int in_group = row / s.queries;
  return {kv_head * (s.heads / s.kv_heads) + in_group, row - in_group * s.queries};
}

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

// 16 rows of V from column `first` on as the right operand, in the same order of keys.
template <int kStride>
struct ValueSlab {
  using Element = float;
  const float* data;
  int first;
  GCRT_DEVICE void quarter(float (&values)[4], int n, int t) const {
    GCRT_UNROLL
    for (int i = 0; i < 4; ++i) {
      values[i] = data[(2 * t + (i & 1) + 8 * (i >> 1)) * kStride + first + n];
    }
  }
};

// Starts the copy of four columns of a row of `size`; columns that do not exist become zeros.
GCRT_DEVICE void copy_columns(float* shared, const float* row, int column, int size, std::ptrdiff_t stride,
                              int bytes, bool exists) {
  const int left = exists ? size - column : 0;
  const int valid = left < 0 ? 0 : (left < 4 ? left : 4);
  if (bytes == 16) {
    cp_async<16>(shared, valid > 0 ? row + column : row, valid * 4);
  } else {
    GCRT_UNROLL
    for (int i = 0; i < 4; ++i) {
      cp_async<4>(shared + i, i < valid ? row + (column + i) * stride : row, i < valid ? 4 : 0);
    }
  }
}

// The largest number of fragments of 8 columns, at most `most`, of which whole ones make up `size` columns.
constexpr int attention_fragments(int size, int most) {
  int fragments = most;
  while (size / 8 % fragments != 0) --fragments;
  return fragments;
}

template <AttentionTile kTile, int kHeadSize, int kValueSize>
struct AttentionConfig {
  static_assert(kHeadSize % 16 == 0 && kValueSize % 16 == 0, "attention_padded sizes");
  static_assert(kHeadSize <= kAttentionLargestHead && kValueSize <= kAttentionLargestHead,
                "larger heads do not fit into registers");
  static constexpr int kRows = attention_rows(kTile);
  static constexpr int kThreads = kRows * 2;
  static constexpr int kKeys = attention_keys(kHeadSize, kValueSize);
  static constexpr int kValueStride = attention_value_stride(kValueSize);
  static constexpr int kResultStride = attention_result_stride(kValueSize);
  static constexpr int kSharedBytes = attention_shared_bytes(kTile, kHeadSize, kValueSize);
  static constexpr int kFragments = attention_fragments(kValueSize, kValueSize > 64 ? 2 : 8);  // of V at once
  static constexpr int kChunks = kValueSize / 8 / kFragments;
};

// Bytes of one copy of each operand.
struct AttentionCopies {
  int q, k, v;
};

// The running softmax of the two rows of a thread.
struct SoftmaxState {
  float largest[2];
  float sum[2];  // of this thread's keys
};

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
    // No key yet: any finite base does, all weights are 0.
    const float base = largest.value[h] == -kInfinity<float> ? 0.0f : largest.value[h];
    factor.value[h] = ::exp2f(state.largest[h] - base);
    state.largest[h] = largest.value[h];
    float sum = state.sum[h] * factor.value[h];
    GCRT_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      GCRT_UNROLL
      for (int i = 0; i < 2; ++i) {
        float& score = scores[0][j][2 * h + i];
        score = ::exp2f(score - base);
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
                             const AttentionMask& mask, int b, int kv_head, int first_row, int first_key,
                             int end_key) {
  constexpr float kLog2E = 1.44269504f;
  const float scale = s.scale * kLog2E;
  GCRT_UNROLL
  for (int h = 0; h < 2; ++h) {
    const int row = first_row + 8 * h;
    const AttentionRow at = attention_row(s, kv_head, row < s.rows() ? row : 0);
    const int limit =
        s.is_causal && at.query + s.causal_offset + 1 < end_key ? at.query + s.causal_offset + 1 : end_key;
    const std::ptrdiff_t line = b * mask.batch + at.head * mask.head + at.query * mask.query;
    GCRT_UNROLL
    for (int j = 0; j < kFragments; ++j) {
      GCRT_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int key = first_key + 8 * j + i;
        float& score = scores[0][j][2 * h + i];
        bool is_seen = key < limit;
        score *= scale;
        if constexpr (kMask == AttentionMaskKind::kAdditive) {
          if (is_seen) {
            const float added = static_cast<const float*>(mask.data)[line + key * mask.key];
            // The lowest float stays one in base 2: a row of nothing else is the mean of V, not empty.
            const float in_base_2 = kLog2E * added;
            score += in_base_2 < kLowest<float> && added >= kLowest<float> ? kLowest<float> : in_base_2;
          }
        } else if constexpr (kMask == AttentionMaskKind::kBoolean) {
          is_seen = is_seen && static_cast<const std::uint8_t*>(mask.data)[line + key * mask.key] != 0;
        }
        if (!is_seen) score = -kInfinity<float>;
      }
    }
  }
}

// The result of one block in shared memory goes to the epilogue, or as a part to the workspace.
template <class Config, class E>
GCRT_DEVICE void finish_attention(const AttentionShape& s, const AttentionParts& parts, const float* result,
                                  int z, int part, int first_row, const E& epilogue) {
  const int quads = (s.value_size + 3) / 4;
  const int b = z / s.kv_heads;
  for (int i = static_cast<int>(threadIdx.x); i < Config::kRows * quads; i += Config::kThreads) {
    const int row = first_row + i / quads;
    const int column = i % quads * 4;
    if (row >= s.rows()) continue;
    const float* const sums = result + (i / quads) * Config::kResultStride + column;
    const auto values = [sums](auto lanes, int j) GCRT_LAMBDA_INLINE { return load(lanes, sums + j); };
    const int count = s.value_size - column < 4 ? s.value_size - column : 4;
    if (parts.splits > 1) {
      const std::ptrdiff_t at = (std::ptrdiff_t{z} * parts.splits + part) * s.rows() + row;
      store(Lanes<4>{}, parts.sums + at * parts.stride + column, load(Lanes<4>{}, sums));
    } else {
      const AttentionRow to = attention_row(s, z % s.kv_heads, row);
      finish_columns(epilogue.at_batch(std::ptrdiff_t{b} * s.heads + to.head), values, count, to.query,
                     column);
    }
  }
}

// blockIdx: x rows, y part of the keys, z batch and head of the keys.
template <Precision P, class Config, AttentionMaskKind kMask, int kHeadSize, class E>
GCRT_GLOBAL_BLOCKS(Config::kThreads, 1)
void attention_kernel(AttentionShape s, const float* q, const float* k, const float* v, AttentionMask mask,
                      AttentionCopies copies, AttentionParts parts, E epilogue) {
  await_previous_grid();
  using Product = FloatProduct<P>;
  constexpr int kRows = Config::kRows;
  constexpr int kKeys = Config::kKeys;
  constexpr int kSlabs = kHeadSize / 16;
  GCRT_DYNAMIC_SHARED(float, shared);
  float* const shared_q = shared;                        // [slab][row][16]
  float* const shared_k = shared_q + kRows * kHeadSize;  // [slab][key][16]
  float* const shared_v = shared_k + kKeys * kHeadSize;  // [key][kValueStride]
  const int thread = static_cast<int>(threadIdx.x);
  const LanePosition at = lane_position();
  const int z = static_cast<int>(blockIdx.z);
  const int b = z / s.kv_heads;
  const int kv_head = z % s.kv_heads;
  const int first_row = static_cast<int>(blockIdx.x) * kRows;
  const int warp_row = thread / 32 * 16;
  const int part = static_cast<int>(blockIdx.y);
  const int first_key = part * parts.split_keys;
  int end_key = first_key + parts.split_keys < s.keys ? first_key + parts.split_keys : s.keys;
  if (s.is_causal) {
    const int last = first_row + kRows < s.rows() ? first_row + kRows - 1 : s.rows() - 1;
    const bool is_one_head = first_row / s.queries == last / s.queries;
    const int seen = (is_one_head ? last % s.queries : s.queries - 1) + s.causal_offset + 1;
    if (seen < end_key) end_key = seen;
  }

  const auto load_keys = [&](int key) {
    const float* const base = k + b * s.k.batch + kv_head * s.k.head;
    for (int i = thread; i < kKeys * kHeadSize / 4; i += Config::kThreads) {
      const int row = i / 4 % kKeys;
      const int slab = i / 4 / kKeys;
      const bool exists = key + row < s.keys;
      copy_columns(shared_k + i * 4, base + (exists ? key + row : 0) * s.k.row, slab * 16 + i % 4 * 4,
                   s.head_size, s.k.column, copies.k, exists);
    }
    cp_async_commit();
  };
  const auto load_values = [&](int key) {
    constexpr int kQuads = (Config::kValueStride - 4) / 4;
    const float* const base = v + b * s.v.batch + kv_head * s.v.head;
    for (int i = thread; i < kKeys * kQuads; i += Config::kThreads) {
      const int row = i / kQuads;
      const bool exists = key + row < s.keys;
      copy_columns(shared_v + row * Config::kValueStride + i % kQuads * 4,
                   base + (exists ? key + row : 0) * s.v.row, i % kQuads * 4, s.value_size, s.v.column,
                   copies.v, exists);
    }
    cp_async_commit();
  };

  for (int i = thread; i < kRows * kHeadSize / 4; i += Config::kThreads) {
    const int row = i / 4 % kRows;
    const int slab = i / 4 / kRows;
    const bool exists = first_row + row < s.rows();
    const AttentionRow from = attention_row(s, kv_head, exists ? first_row + row : 0);
    copy_columns(shared_q + i * 4, q + b * s.q.batch + from.head * s.q.head + from.query * s.q.row,
                 slab * 16 + i % 4 * 4, s.head_size, s.q.column, copies.q, exists);
  }
  load_keys(first_key);

  SoftmaxState state{{-kInfinity<float>, -kInfinity<float>}, {0.0f, 0.0f}};
  float sums[Config::kChunks][1][Config::kFragments][4] = {};
  for (int key = first_key; key < end_key; key += kKeys) {
    cp_async_wait<0>();
    barrier();  // K is there, and V of the step before is no longer read
    load_values(key);
    typename Product::template Sums<1, kKeys / 8> products;
    GCRT_NO_UNROLL
    for (int slab = 0; slab < kSlabs; ++slab) {
      const RowSlab<float, 16> slab_q{shared_q + (slab * kRows + warp_row) * 16};
      const RowSlab<float, 16> slab_k{shared_k + slab * kKeys * 16};
      Product::multiply(products, slab_q, slab_k, at);
    }
    float scores[1][kKeys / 8][4];
    GCRT_UNROLL
    for (int i = 0; i < kKeys / 2; ++i) scores[0][i / 4][i % 4] = products.value(0, i / 4, i % 4);
    mask_scores<kMask>(scores, s, mask, b, kv_head, first_row + warp_row + at.group, key + 2 * at.thread,
                       end_key);
    const TwoFloats factor = update_softmax(scores, state);
    cp_async_wait<0>();
    barrier();  // V is there, and K is no longer read
    if (key + kKeys < end_key) load_keys(key + kKeys);
    GCRT_UNROLL
    for (int c = 0; c < Config::kChunks; ++c) {
      typename Product::template Sums<1, Config::kFragments> step;
      GCRT_UNROLL
      for (int slab = 0; slab < kKeys / 16; ++slab) {
        const ScoreSlab<!kHasTensorCores<P>, kKeys / 8> slab_p{scores, slab};
        const ValueSlab<Config::kValueStride> slab_v{shared_v + slab * 16 * Config::kValueStride,
                                                     c * Config::kFragments * 8};
        Product::multiply(step, slab_p, slab_v, at);
      }
      GCRT_UNROLL
      for (int i = 0; i < 4 * Config::kFragments; ++i) {
        float& sum = sums[c][0][i / 4][i % 4];
        sum = multiply_add(sum, factor.value[i % 4 / 2], step.value(0, i / 4, i % 4));
      }
    }
  }

  cp_async_wait<0>();
  barrier();
  float total[2];
  GCRT_UNROLL
  for (int h = 0; h < 2; ++h) {
    total[h] = state.sum[h] + shuffle_xor(state.sum[h], 1);
    total[h] += shuffle_xor(total[h], 2);
  }
  GCRT_UNROLL
  for (int h = 0; h < 2; ++h) {
    const int row = warp_row + 8 * h + at.group;
    if (parts.splits > 1 && at.thread == 0 && first_row + row < s.rows()) {
      float* const to =
          parts.statistics + 2 * ((std::ptrdiff_t{z} * parts.splits + part) * s.rows() + first_row + row);
      to[0] = state.largest[h];
      to[1] = total[h];
    }
    const float scale = parts.splits > 1 ? 1.0f : attention_scale(s, total[h]);
    float* const to = shared + row * Config::kResultStride + 2 * at.thread;
    GCRT_UNROLL
    for (int c = 0; c < Config::kChunks; ++c) {
      GCRT_UNROLL
      for (int j = 0; j < Config::kFragments; ++j) {
        to[(c * Config::kFragments + j) * 8] = sums[c][0][j][2 * h] * scale;
        to[(c * Config::kFragments + j) * 8 + 1] = sums[c][0][j][2 * h + 1] * scale;
      }
    }
  }
  barrier();
  finish_attention<Config>(s, parts, shared, z, part, first_row, epilogue);
}

// Joins the parts of the keys in order. blockIdx.y is the batch and head of the keys.
constexpr int kJoinThreads = 128;
template <class E>
GCRT_GLOBAL_BLOCKS(kJoinThreads, 1)
void join_attention_kernel(AttentionShape s, AttentionParts parts, E epilogue) {
  await_previous_grid();
  const int quads = (s.value_size + 3) / 4;
  const int index = static_cast<int>(blockIdx.x) * kJoinThreads + static_cast<int>(threadIdx.x);
  const int row = index / quads;
  const int column = index % quads * 4;
  if (row >= s.rows()) return;
  const int z = static_cast<int>(blockIdx.y);
  const std::ptrdiff_t first = std::ptrdiff_t{z} * parts.splits * s.rows() + row;
  float largest = -kInfinity<float>;
  for (int part = 0; part < parts.splits; ++part) {
    const float value = parts.statistics[2 * (first + std::ptrdiff_t{part} * s.rows())];
    if (value > largest) largest = value;
  }
  const float base = largest == -kInfinity<float> ? 0.0f : largest;
  float total = 0;
  Pack<float, 4> sums = {};
  for (int part = 0; part < parts.splits; ++part) {
    const std::ptrdiff_t at = first + std::ptrdiff_t{part} * s.rows();
    const float factor = ::exp2f(parts.statistics[2 * at] - base);
    total = multiply_add(parts.statistics[2 * at + 1], factor, total);
    sums = multiply_add(load(Lanes<4>{}, parts.sums + at * parts.stride + column), splat(Lanes<4>{}, factor),
                        sums);
  }
  sums = sums * splat(Lanes<4>{}, attention_scale(s, total));
  const AttentionRow to = attention_row(s, z % s.kv_heads, row);
  const int count = s.value_size - column < 4 ? s.value_size - column : 4;
  finish_pack(epilogue.at_batch(std::ptrdiff_t{z / s.kv_heads} * s.heads + to.head), sums, count, to.query,
              column);
}

inline int attention_copy_bytes(const float* data, const AttentionStrides& strides) {
  return strides.column == 1 ? copy_bytes(data, strides.batch, strides.head, strides.row) : 4;
}

// kHeadSize and kValueSize are attention_padded(head_size) and attention_padded(value_size), at most
// kAttentionLargestHead; kTile and `split` come from plan_attention, the workspace from
// attention_workspace_size. batch * kv_heads < 65536. The epilogue is called as in gemm.h, on at_batch(b *
// heads + h), with m = query and n = column of the head.
template <Precision P, AttentionTile kTile, int kHeadSize, int kValueSize, AttentionMaskKind kMask, class E>
inline void attention(Queue& queue, const AttentionShape& s, const float* q, const float* k, const float* v,
                      const AttentionMask& mask, const SplitDepth& split, const E& epilogue) {
  using Config = AttentionConfig<kTile, kHeadSize, kValueSize>;
  if (s.batch <= 0 || s.rows() <= 0) return;
  const AttentionCopies copies{attention_copy_bytes(q, s.q), attention_copy_bytes(k, s.k),
                               attention_copy_bytes(v, s.v)};
  const unsigned entries = static_cast<unsigned>(s.batch * s.kv_heads);
  const std::ptrdiff_t stride = ceil_div(s.value_size, 4) * 4;
  float* const statistics =
      split.workspace + std::ptrdiff_t{s.batch} * s.kv_heads * split.splits * s.rows() * stride;
  const int steps = (s.keys + Config::kKeys - 1) / Config::kKeys;
  const int split_keys = (steps + split.splits - 1) / split.splits * Config::kKeys;
  const AttentionParts parts{split.workspace, statistics, stride, split.splits, split_keys};
  launch_overlapping(queue,
                     dim3(static_cast<unsigned>(ceil_div(s.rows(), Config::kRows)),
                          static_cast<unsigned>(split.splits), entries),
                     dim3(Config::kThreads), Config::kSharedBytes,
                     attention_kernel<P, Config, kMask, kHeadSize, E>, s, q, k, v, mask, copies, parts,
                     epilogue);
  if (split.splits > 1) {
    const std::ptrdiff_t threads = s.rows() * (stride / 4);
    launch_overlapping(queue, dim3(static_cast<unsigned>(ceil_div(threads, kJoinThreads)), entries),
                       dim3(kJoinThreads), 0, join_attention_kernel<E>, s, parts, epilogue);
  }
}

}  // namespace GCRT_NAMESPACE
