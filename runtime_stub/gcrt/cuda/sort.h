// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Sorting: by one block in place, and stably by many blocks.
#pragma once

#include "gcrt/cuda/device/launch.h"
#include "gcrt/cuda/scan.h"
#include "gcrt/cuda/sort_plan.h"

namespace GCRT_NAMESPACE {

// Sorts `count` entries, anywhere in memory that the block alone uses, by all its threads: a network of
// comparisons whose entries past the end would be last. before(i, j): entry i must stand before entry j,
// never both ways; swap(i, j) exchanges them. Begins after a barrier and ends with one.
template <class Before, class Swap>
GCRT_DEVICE void sort_in_block(int count, const Before& before, const Swap& swap) {
  const int threads = static_cast<int>(blockDim.x);
  int pairs = 1;
  while (2 * pairs < count) pairs *= 2;
  const auto exchange = [&](int low, int high) {
    if (high < count && before(high, low)) swap(low, high);
  };
  for (int half = 1; half < count; half *= 2) {
    // Two sorted runs of `half` meet head to tail.
    for (int i = static_cast<int>(threadIdx.x); i < pairs; i += threads) {
      const int within = i & (half - 1);
      const int start = 2 * (i - within);
      exchange(start + within, start + 2 * half - 1 - within);
    }
    barrier();
    for (int step = half / 2; step > 0; step /= 2) {
      for (int i = static_cast<int>(threadIdx.x); i < pairs; i += threads) {
        const int low = 2 * i - (i & (step - 1));
        exchange(low, low + step);
      }
      barrier();
    }
  }
}

// ---- Stable sort of pairs by one digit of 8 bits after the other.
// A block counts and moves kSortChunk pairs.

GCRT_HOST_DEVICE int count_bits(std::uint32_t bits) {
  bits = bits - ((bits >> 1) & 0x55555555u);
  bits = (bits & 0x33333333u) + ((bits >> 2) & 0x33333333u);
  return static_cast<int>((((bits + (bits >> 4)) & 0x0f0f0f0fu) * 0x01010101u) >> 24);
}

struct SortPairs {
  std::uint32_t* keys;
  std::uint32_t* values;
};

// counts[digit][block]: how many of the block's keys have the digit. Count is std::uint32_t; kernels in
// headers are templates.
template <class Count>
GCRT_GLOBAL(kSortThreads)
void count_digits_kernel(int count, int shift, const std::uint32_t* keys, Count* counts) {
  GCRT_DYNAMIC_SHARED(Count, histogram);
  const int thread = static_cast<int>(threadIdx.x);
  histogram[thread] = 0;
  barrier();
  const int first = static_cast<int>(blockIdx.x) * kSortChunk;
  const int last = count - first < kSortChunk ? count : first + kSortChunk;
  for (int i = first + thread; i < last; i += kSortThreads) {
    atomic_add(&histogram[keys[i] >> shift & 255u], Count{1});
  }
  barrier();
  counts[static_cast<unsigned>(thread) * gridDim.x + blockIdx.x] = histogram[thread];
}

// Each count becomes the sum of those before it.
template <class Count>
GCRT_GLOBAL(kScanThreads)
void sum_counts_kernel(int count, Count* counts) {
  GCRT_DYNAMIC_SHARED(Count, slots);
  BlockScan<Count> scan(slots);
  for (int first = 0; first < count; first += kScanThreads) {
    const int i = first + static_cast<int>(threadIdx.x);
    const Count sum = scan.exclusive(i < count ? counts[i] : Count{0});
    if (i < count) counts[i] = sum;
  }
}

// Moves the pairs of a chunk, in their order, behind those of smaller digits and of earlier chunks.
template <class Count>
GCRT_GLOBAL(kSortThreads)
void move_pairs_kernel(int count, int shift, SortPairs from, SortPairs to, const Count* counts) {
  constexpr int kWarps = kSortThreads / kWarpThreads;
  GCRT_DYNAMIC_SHARED(Count, shared);
  Count* const next = shared;           // [256] where the next pair with a digit goes
  Count* const in_warp = shared + 256;  // [kWarps][256] pairs of this round
  const int thread = static_cast<int>(threadIdx.x);
  next[thread] = counts[static_cast<unsigned>(thread) * gridDim.x + blockIdx.x];
  for (int w = 0; w < kWarps; ++w) in_warp[w * 256 + thread] = 0;
  barrier();
  const int first = static_cast<int>(blockIdx.x) * kSortChunk;
  const int last = count - first < kSortChunk ? count : first + kSortChunk;
  for (int start = first; start < last; start += kSortThreads) {
    const int i = start + thread;
    const bool exists = i < last;
    const std::uint32_t key = exists ? from.keys[i] : 0u;
    const std::uint32_t digit = key >> shift & 255u;
    // The lanes with the same digit.
    std::uint32_t same = ballot(exists);
    GCRT_UNROLL
    for (int bit = 0; bit < 8; ++bit) {
      const bool is_set = (digit >> bit & 1u) != 0;
      const std::uint32_t set = ballot(is_set);
      same &= is_set ? set : ~set;
    }
    const int rank = count_bits(same & ((std::uint32_t{1} << lane_rank()) - 1u));
    if (exists && rank == 0) {
      in_warp[warp_rank() * 256 + static_cast<int>(digit)] = static_cast<Count>(count_bits(same));
    }
    barrier();
    if (exists) {
      Count at = next[digit] + static_cast<Count>(rank);
      for (int w = 0; w < warp_rank(); ++w) at += in_warp[w * 256 + static_cast<int>(digit)];
      to.keys[at] = key;
      to.values[at] = from.values[i];
    }
    barrier();
    for (int w = 0; w < kWarps; ++w) {
      next[thread] += in_warp[w * 256 + thread];
      in_warp[w * 256 + thread] = 0;
    }
    barrier();
  }
}

// Sorts `count` pairs by keys of at most `bits` bits; equal keys keep their order. `counts` holds
// sort_counts(count). Returns which of the two holds the result. 3 launches for every 8 bits.
inline SortPairs sort_pairs(Queue& queue, int count, int bits, SortPairs pairs, SortPairs other,
                            std::uint32_t* counts) {
  const unsigned blocks = blocks_for(count, kSortChunk);
  for (int shift = 0; shift < bits; shift += 8) {
    launch(queue, dim3(blocks), dim3(kSortThreads), 256 * 4, count_digits_kernel<std::uint32_t>, count, shift,
           pairs.keys, counts);
    launch(queue, dim3(1), dim3(kScanThreads), BlockScan<std::uint32_t>::kSharedBytes,
           sum_counts_kernel<std::uint32_t>, static_cast<int>(256 * blocks), counts);
    launch(queue, dim3(blocks), dim3(kSortThreads), (1 + kSortThreads / kWarpThreads) * 256 * 4,
           move_pairs_kernel<std::uint32_t>, count, shift, pairs, other, counts);
    const SortPairs result = other;
    other = pairs;
    pairs = result;
  }
  return pairs;
}

}  // namespace GCRT_NAMESPACE
