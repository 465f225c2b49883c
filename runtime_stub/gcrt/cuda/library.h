// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// TopK on dense row-major tensors.
#pragma once

#include "gcrt/cuda/sort.h"

namespace GCRT_NAMESPACE {

// Values as unsigned integers in the order of TopK, best last: larger (or smaller) values are better, NaN
// counts as the largest value, and zeros of both signs are equal.
template <class T>
using TopKKey = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
template <bool Largest, class T>
GCRT_HOST_DEVICE TopKKey<T> top_k_key(T value) {
  using Key = TopKKey<T>;
  constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);
  Key key = 0;
  if constexpr (std::is_floating_point<T>::value) {
    if (value != value) {
      key = ~Key{0};
    } else {
      if (value != T(0)) memcpy(&key, &value, sizeof(key));
      key = (key & kSign) != 0 ? ~key : key | kSign;
    }
  } else if constexpr (std::is_signed<T>::value) {
    key = static_cast<Key>(static_cast<std::make_signed_t<Key>>(value)) ^ kSign;
  } else {
    key = value;
  }
  return Largest ? key : ~key;
}

struct TopKSize {
  int extent;
  int k;
  std::ptrdiff_t inner;
};

constexpr int kTopKThreads = 1024;
constexpr int kTopKBins = 256;
constexpr int kTopKWords = kTopKBins + kTopKThreads / kWarpThreads + 4;  // bins, counts of warps, results

template <class T>
constexpr std::size_t kTopKSharedBytes = kTopKWords * 4 + kSortInBlock*(sizeof(TopKKey<T>) + 4);

// A line that one block works on, and the block's shared memory.
template <bool Largest, class T>
struct TopKLine {
  using Key = TopKKey<T>;
  const T* x;
  T* values;
  std::int64_t* positions;
  std::ptrdiff_t inner;
  int extent;
  Key* keys;     // [kSortInBlock]
  int* indices;  // [kSortInBlock]
  int* bins;     // [kTopKBins]
  int* in_warp;  // [warps]
  int* found;    // digit, keys above it, keys with it, slots taken

  GCRT_DEVICE Key key(int j) const { return top_k_key<Largest>(x[j * inner]); }
};

// The k best keys are those whose masked bits are above `prefix`, and the first `ties` of those equal to it.
template <class Key>
struct TopKBound {
  Key prefix;
  Key mask;
  int ties;
};

// Finds the bound by one digit of 8 bits after the other, highest first.
template <bool Largest, class T>
GCRT_DEVICE TopKBound<TopKKey<T>> find_bound(const TopKLine<Largest, T>& line, int k) {
  using Key = TopKKey<T>;
  const int thread = thread_rank();
  TopKBound<Key> bound{0, 0, k};
  for (int shift = 8 * static_cast<int>(sizeof(Key)) - 8; shift >= 0; shift -= 8) {
    if (thread < kTopKBins) line.bins[thread] = 0;
    barrier();
    for (int j = thread; j < line.extent; j += kTopKThreads) {
      const Key key = line.key(j);
      if ((key & bound.mask) == bound.prefix) atomic_add(&line.bins[(key >> shift) & 255u], 1);
    }
    barrier();
    if (thread < kTopKBins) {
      int above = 0;
      for (int bin = thread + 1; bin < kTopKBins; ++bin) above += line.bins[bin];
      const int own = line.bins[thread];
      if (above < bound.ties && bound.ties <= above + own) {
        line.found[0] = thread;
        line.found[1] = above;
        line.found[2] = own;
      }
    }
    barrier();
    bound.prefix |= static_cast<Key>(line.found[0]) << shift;
    bound.mask |= Key{255} << shift;
    bound.ties -= line.found[1];
    const bool takes_all = line.found[2] == bound.ties;
    barrier();
    if (takes_all) break;
  }
  return bound;
}

// Hands the positions of the k best to take(slot, j), in any order of slots.
template <bool Largest, class T, class F>
GCRT_DEVICE void gather_best(const TopKLine<Largest, T>& line, int k, const F& take) {
  const TopKBound<TopKKey<T>> bound = find_bound(line, k);
  const int thread = thread_rank();
  int* const taken = line.found + 3;
  if (thread == 0) *taken = 0;
  barrier();
  int ties = 0;  // met so far
  for (int start = 0; start < line.extent; start += kTopKThreads) {
    const int j = start + thread;
    const auto masked = j < line.extent ? line.key(j) & bound.mask : 0;
    if (j < line.extent && masked > bound.prefix) take(atomic_add(taken, 1), j);
    const bool is_tie = j < line.extent && masked == bound.prefix;
    const int met = barrier_count(is_tie);
    if (met == 0 || ties >= bound.ties) continue;
    const std::uint32_t lanes = ballot(is_tie);
    if (lane_rank() == 0) line.in_warp[warp_rank()] = count_bits(lanes);
    barrier();
    int rank = ties + count_bits(lanes & ((std::uint32_t{1} << lane_rank()) - 1u));
    for (int w = 0; w < warp_rank(); ++w) rank += line.in_warp[w];
    if (is_tie && rank < bound.ties) take(k - bound.ties + rank, j);
    ties += met;
  }
  barrier();
}

template <bool Largest, class T>
GCRT_GLOBAL_BLOCKS(kTopKThreads, 1)
void top_k_kernel(TopKSize size, const T* x, T* values, std::int64_t* positions) {
  using Key = TopKKey<T>;
  GCRT_DYNAMIC_SHARED(unsigned char, shared);
  const std::ptrdiff_t outer = blockIdx.x / size.inner;
  const std::ptrdiff_t within = blockIdx.x % size.inner;
  const std::ptrdiff_t inner = size.inner;
  TopKLine<Largest, T> line;
  line.x = x + outer * size.extent * inner + within;
  line.values = values + outer * size.k * inner + within;
  line.positions = positions + outer * size.k * inner + within;
  line.inner = inner;
  line.extent = size.extent;
  line.keys = reinterpret_cast<Key*>(shared);
  line.indices = reinterpret_cast<int*>(shared + kSortInBlock * sizeof(Key));
  line.bins = line.indices + kSortInBlock;
  line.in_warp = line.bins + kTopKBins;
  line.found = line.in_warp + kTopKThreads / kWarpThreads;
  const int thread = thread_rank();
  const int threads = static_cast<int>(blockDim.x);

  if (size.k > kSortInBlock) {
    // In the results themselves.
    T* const v = line.values;
    std::int64_t* const p = line.positions;
    gather_best(line, size.k, [&](int slot, int j) {
      v[slot * inner] = line.x[j * inner];
      p[slot * inner] = j;
    });
    sort_in_block(
        size.k,
        [&](int i, int j) {
          const Key a = top_k_key<Largest>(v[i * inner]);
          const Key b = top_k_key<Largest>(v[j * inner]);
          return a != b ? a > b : p[i * inner] < p[j * inner];
        },
        [&](int i, int j) {
          const T value = v[i * inner];
          const std::int64_t position = p[i * inner];
          v[i * inner] = v[j * inner];
          p[i * inner] = p[j * inner];
          v[j * inner] = value;
          p[j * inner] = position;
        });
    return;
  }
  int count = size.k;
  if (size.extent <= kSortInBlock) {
    count = size.extent;
    for (int j = thread; j < count; j += threads) {
      line.keys[j] = line.key(j);
      line.indices[j] = j;
    }
    barrier();
  } else {
    gather_best(line, size.k, [&](int slot, int j) {
      line.keys[slot] = line.key(j);
      line.indices[slot] = j;
    });
  }
  sort_in_block(
      count,
      [&](int i, int j) {
        return line.keys[i] != line.keys[j] ? line.keys[i] > line.keys[j] : line.indices[i] < line.indices[j];
      },
      [&](int i, int j) {
        const Key key = line.keys[i];
        const int index = line.indices[i];
        line.keys[i] = line.keys[j];
        line.indices[i] = line.indices[j];
        line.keys[j] = key;
        line.indices[j] = index;
      });
  for (int i = thread; i < size.k; i += threads) {
    const int j = line.indices[i];
    line.values[i * inner] = line.x[j * inner];
    line.positions[i * inner] = j;
  }
}

// x [outer][extent][inner] -> values, positions [outer][k][inner], best first; ties go to the smaller
// position. The results are those of the CPU. extent < 2^30. One launch.
template <bool Largest, class T>
inline void top_k(Queue& queue, std::ptrdiff_t outer, int extent, std::ptrdiff_t inner, int k, const T* x,
                  T* values, std::int64_t* positions) {
  if (k == 0 || outer * inner == 0) return;
  int threads = kTopKThreads;
  if (extent <= kSortInBlock) {
    threads = kWarpThreads;
    while (threads < kTopKThreads / 2 && 2 * threads < extent) threads *= 2;
  }
  launch(queue, dim3(static_cast<unsigned>(outer * inner)), dim3(static_cast<unsigned>(threads)),
         kTopKSharedBytes<T>, top_k_kernel<Largest, T>, TopKSize{extent, k, inner}, x, values, positions);
}

}  // namespace GCRT_NAMESPACE
