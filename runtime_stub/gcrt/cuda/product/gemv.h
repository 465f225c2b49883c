// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Products of up to 8 rows: B is streamed once from memory, no tensor cores.
//
// A warp owns 4 columns; where columns are few, the warps of a block share the depth of the same columns.
// Sums meet by shuffles inside a warp and through shared memory between warps, in a fixed order.
#pragma once

#include "gcrt/cuda/device/architectures.h"
#include "gcrt/cuda/product/tile_load.h"

namespace GCRT_NAMESPACE {

// What one block computes: blockIdx.x columns, blockIdx.y batch entry.
struct GemvGrid {
  int depth;
  int parts;  // warps that share the depth of one set of columns
  int first_entry;
};

// 16 bytes of a row of B as they lie in memory, and four of the values that they hold. Raw, so that all loads
// of a chunk are under way before the first of them is converted.
template <class TB>
struct RawChunk {
  static constexpr int kCount = 16 / static_cast<int>(sizeof(TB));
  Bytes16 bytes;

  GCRT_DEVICE RawChunk() : bytes{} {}
  GCRT_DEVICE explicit RawChunk(const TB* p) : bytes(load_streaming_16(p)) {}
  GCRT_DEVICE Pack<float, 4> four(int first) const {
    if constexpr (sizeof(TB) == 4) {
      return bit_cast_whole<Pack<float, 4>>(bytes);
    } else {
      const Bytes8 half{{bytes.word[first / 2], bytes.word[first / 2 + 1]}};
      const auto bits = bit_cast_whole<Pack<std::uint16_t, 4>>(half);
      if constexpr (std::is_same<TB, Half>::value) {
        return half_to_float(bits);
      } else {
        return bfloat16_to_float(bits);
      }
    }
  }
};

// Four values of a row from p on, of which `valid` exist.
template <class T>
GCRT_INLINE Pack<float, 4> read_four(const T* p, int valid, bool is_aligned) {
  if (is_aligned && valid >= 4) return load_as_float(Lanes<4>{}, p);
  Pack<float, 4> values = {};
  GCRT_UNROLL
  for (int i = 0; i < 4; ++i) {
    if (i < valid) values[i] = load_as_float(Lanes<1>{}, p + i);
  }
  return values;
}

// Sums values[i] over the lanes of a warp; lane l receives the sum of values[l / (32 / kCount)].
template <int kOffset, int kCount>
GCRT_DEVICE float reduce_scatter(const float (&values)[kCount], int lane) {
  if constexpr (kCount > 1) {
    constexpr int kHalf = kCount / 2;
    const bool is_upper = (lane & kOffset) != 0;
    float kept[kHalf];
    GCRT_UNROLL
    for (int i = 0; i < kHalf; ++i) {
      const float sent = is_upper ? values[i] : values[i + kHalf];
      kept[i] = (is_upper ? values[i + kHalf] : values[i]) + shuffle_xor(sent, kOffset);
    }
    if constexpr (kOffset > 1) {
      return reduce_scatter<kOffset / 2>(kept, lane);
    } else {
      return kept[0];
    }
  } else {
    float sum = values[0];
    GCRT_UNROLL
    for (int offset = kOffset; offset > 0; offset /= 2) sum += shuffle_xor(sum, offset);
    return sum;
  }
}

// Adds the products of one chunk of 4 values of k.
template <int kRows>
GCRT_INLINE void multiply_four(float (&sums)[kRows * kGemvColumns], const Pack<float, 4> (&rows)[kRows],
                               const Pack<float, 4> (&columns)[kGemvColumns]) {
  GCRT_UNROLL
  for (int m = 0; m < kRows; ++m) {
    GCRT_UNROLL
    for (int n = 0; n < kGemvColumns; ++n) {
      GCRT_UNROLL
      for (int k = 0; k < 4; ++k) {
        float& sum = sums[m * kGemvColumns + n];
        sum = multiply_add(rows[m][k], columns[n][k], sum);
      }
    }
  }
}

// Rows of A as they lie in memory. What else may stand for A has the same members (gemv_of_rows.h).
template <class TA, int kBytes>
struct RowsInMemory {
  using Element = TA;
  DenseSource<TA, kBytes> source;

  static constexpr std::size_t shared_bytes(int) { return 0; }
  GCRT_INLINE int rows() const { return source.rows; }
  GCRT_INLINE bool is_aligned() const {
    return source.width.bytes() >= 4 * static_cast<int>(sizeof(TA));  // four values
  }
  // All threads of the block call it, behind the grid before. `offset`: of the shared memory that is left.
  template <int kOffset>
  GCRT_DEVICE void make() const {}
  template <int kOffset>
  GCRT_DEVICE const TA* row(int entry, int m) const {
    return source.data + source.batch.offset(entry) +
           (m < source.rows ? m : source.rows - 1) * source.row_stride;
  }
};

template <int kRows, class A, class B, class Output>
GCRT_GLOBAL_BLOCKS(kGemvThreads, 1)
void gemv_kernel(A a, B b, GemvGrid grid, Output output) {
  if (!is_compiled_here<Output>()) return;
  using TB = typename B::Element;
  constexpr int kCount = kRows * kGemvColumns;
  constexpr int kChunk = 16 / static_cast<int>(sizeof(TB));  // values of k per load of B
  GCRT_DYNAMIC_SHARED(float, shared);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int part = warp % grid.parts;
  const int groups = kGemvWarps / grid.parts;
  const int entry = grid.first_entry + static_cast<int>(blockIdx.y);
  const int first = static_cast<int>(blockIdx.x) * groups * kGemvColumns;
  const int column = first + warp / grid.parts * kGemvColumns;

  const TB* b_rows[kGemvColumns];
  constexpr int kSumBytes = kGemvWarps * kCount * static_cast<int>(sizeof(float));
  GCRT_UNROLL
  for (int n = 0; n < kGemvColumns; ++n) {
    const int clamped = column + n < b.rows ? column + n : b.rows - 1;
    b_rows[n] = b.data + b.batch.offset(entry) + clamped * b.row_stride;
  }
  const int step = grid.parts * 32 * kChunk;
  int k = (part * 32 + lane) * kChunk;
  const bool is_a_aligned = a.is_aligned();
  const bool is_b_aligned = b.width.bytes() == 16;
  const bool is_aligned = is_a_aligned && is_b_aligned;
  // The first of B is on its way while the kernel before still makes A: weights into registers, of what a
  // kernel may have written the lines into the cache.
  RawChunk<TB> raw[kGemvColumns];
  const auto read_b = [&]() GCRT_LAMBDA_INLINE {
    GCRT_UNROLL
    for (int n = 0; n < kGemvColumns; ++n) raw[n] = RawChunk<TB>(b_rows[n] + k);
  };
  bool is_read = false;
  if constexpr (B::kIsConstant) {
    is_read = is_aligned && k + kChunk <= grid.depth;
    if (is_read) read_b();
  } else {
    GCRT_UNROLL
    for (int n = 0; n < kGemvColumns; ++n) {
      if (k < grid.depth) prefetch(b_rows[n] + k);
    }
  }
  await_previous_grid();
  a.template make<kSumBytes>();
  const typename A::Element* a_rows[kRows];
  GCRT_UNROLL
  for (int m = 0; m < kRows; ++m) a_rows[m] = a.template row<kSumBytes>(entry, m);
  float sums[kCount] = {};
  if (is_aligned) {
    for (; k + kChunk <= grid.depth; k += step) {
      if (!is_read) read_b();
      is_read = false;
      GCRT_UNROLL
      for (int i = 0; i < kChunk; i += 4) {
        Pack<float, 4> rows[kRows], columns[kGemvColumns];
        GCRT_UNROLL
        for (int m = 0; m < kRows; ++m) rows[m] = load_as_float(Lanes<4>{}, a_rows[m] + k + i);
        GCRT_UNROLL
        for (int n = 0; n < kGemvColumns; ++n) columns[n] = raw[n].four(i);
        multiply_four<kRows>(sums, rows, columns);
      }
    }
  }
  for (; k < grid.depth; k += step) {
    GCRT_UNROLL
    for (int i = 0; i < kChunk; i += 4) {
      const int valid = grid.depth - k - i;
      Pack<float, 4> rows[kRows], columns[kGemvColumns];
      GCRT_UNROLL
      for (int n = 0; n < kGemvColumns; ++n) columns[n] = read_four(b_rows[n] + k + i, valid, is_b_aligned);
      GCRT_UNROLL
      for (int m = 0; m < kRows; ++m) rows[m] = read_four(a_rows[m] + k + i, valid, is_a_aligned);
      multiply_four<kRows>(sums, rows, columns);
    }
  }
  const float sum = reduce_scatter<16>(sums, lane);
  constexpr int kHolders = 32 / kCount;  // lanes that hold the same sum
  if (lane % kHolders == 0) shared[warp * kCount + lane / kHolders] = sum;
  barrier();
  const int thread = static_cast<int>(threadIdx.x);
  const int m = thread % kRows;
  const int n = first + thread / kRows * kGemvColumns;
  if (thread >= groups * kRows || m >= a.rows() || n >= b.rows) return;
  const float* const parts = shared + thread / kRows * grid.parts * kCount + m * kGemvColumns;
  const auto total = [&](auto lanes, int i) GCRT_LAMBDA_INLINE {
    auto result = load(lanes, parts + i);
    for (int p = 1; p < grid.parts; ++p) result = result + load(lanes, parts + p * kCount + i);
    return result;
  };
  finish_columns(output.at(entry), total, b.rows - n < 4 ? b.rows - n : 4, m, output.first_column(entry) + n);
}

// Products of rows of `a`, each of `depth` values, with all rows of `b`;
// the tile says for how many rows at most.
template <Tile kTile, class A, class B, class Output>
inline void gemv(Queue& queue, const A& a, int depth, const B& b, int entries, const Output& output) {
  constexpr int kRows = size_of(kTile).rows;
  constexpr int kChunk = 16 / static_cast<int>(sizeof(typename B::Element));
  if (a.rows() <= 0 || b.rows <= 0) return;
  GemvGrid grid{depth, gemv_parts(b.rows, depth, entries, kChunk), 0};
  const unsigned blocks = static_cast<unsigned>(gemv_blocks(b.rows, grid.parts));
  const std::size_t shared_bytes =
      kGemvWarps * kRows * kGemvColumns * sizeof(float) + a.shared_bytes(a.rows() * depth);
  for (grid.first_entry = 0; grid.first_entry < entries; grid.first_entry += kMaxGridZ) {
    const int left = entries - grid.first_entry;
    launch_overlapping(queue, dim3(blocks, static_cast<unsigned>(left < kMaxGridZ ? left : kMaxGridZ)),
                       dim3(kGemvThreads), shared_bytes, gemv_kernel<kRows, A, B, Output>, a, b, grid,
                       output);
  }
}

template <Tile kTile, class TA, int kBytesOfA, class B, class Output>
inline void gemv(Queue& queue, const DenseSource<TA, kBytesOfA>& a, const B& b, int entries,
                 const Output& output) {
  gemv<kTile>(queue, RowsInMemory<TA, kBytesOfA>{a}, a.depth, b, entries, output);
}

}  // namespace GCRT_NAMESPACE
