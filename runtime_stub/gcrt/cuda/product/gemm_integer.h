// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Matrix product of 8-bit A with constant B, exact in int32.
//
//   acc(m, n) = offsets[n] + sum over k of a[m * lda + k] * b[n * ldb + k]       modulo 2^32
//
// A is uint8_t or int8_t. B is int8_t or int16_t, stored as [N][ldb] with ldb = K rounded up to 32, zero
// padded. offsets[n] holds minus the zero point of A times the sum of b[n], and is 16-byte aligned. The
// epilogue is called as in gemm.h, with Pack<int32_t, L>; at_batch is not used.
#pragma once

#include "gcrt/cuda/product/gemm.h"
#include "gcrt/scalar/arithmetic.h"

namespace GCRT_NAMESPACE {

// The eight k of a quarter of a slab row.
template <class T>
GCRT_INLINE Pack<std::uint32_t, 2> read_bytes(const RowSlab<T, 32>& slab, int row, int t) {
  return load(Lanes<2>{}, reinterpret_cast<const std::uint32_t*>(slab.at(row, 8 * t)));
}

// Bytes: one product of the tensor cores per slab.
template <class TX, class TW, int M, int N>
GCRT_DEVICE void multiply_bytes(std::int32_t (&sums)[M][N][4], const RowSlab<TX, 32>& a,
                                const RowSlab<TW, 32>& b, LanePosition at) {
  std::uint32_t rows[M][4], columns[N][2];
  GCRT_UNROLL
  for (int i = 0; i < M; ++i) {
    GCRT_UNROLL
    for (int h = 0; h < 2; ++h) {
      const auto words = read_bytes(a, i * 16 + h * 8 + at.group, at.thread);
      rows[i][h] = words[0];
      rows[i][2 + h] = words[1];
    }
  }
  GCRT_UNROLL
  for (int j = 0; j < N; ++j) {
    const auto words = read_bytes(b, j * 8 + at.group, at.thread);
    columns[j][0] = words[0];
    columns[j][1] = words[1];
  }
  mma_int8_tiles<TX, TW>(sums, rows, columns);
}

// 16-bit weights, which no tensor core multiplies. Four k at a time.
template <class TX, class TW, int M, int N>
GCRT_DEVICE void multiply_words(std::int32_t (&sums)[M][N][4], const RowSlab<TX, 32>& a,
                                const RowSlab<TW, 32>& b, LanePosition at) {
  GCRT_NO_UNROLL
  for (int step = 0; step < 8; ++step) {
    const int k = (step + at.group) % 8 * 4;  // the groups read different banks
    Pack<TX, 4> rows[M][2];
    GCRT_UNROLL
    for (int i = 0; i < M; ++i) {
      rows[i][0] = load(Lanes<4>{}, a.at(i * 16 + at.group, k));
      rows[i][1] = load(Lanes<4>{}, a.at(i * 16 + at.group + 8, k));
    }
    GCRT_UNROLL
    for (int j = 0; j < N; ++j) {
      GCRT_UNROLL
      for (int column = 0; column < 2; ++column) {
        const Pack<TW, 4> values = load(Lanes<4>{}, b.at(j * 8 + 2 * at.thread + column, k));
        GCRT_UNROLL
        for (int i = 0; i < M; ++i) {
          GCRT_UNROLL
          for (int h = 0; h < 2; ++h) {
            std::int32_t& sum = sums[i][j][2 * h + column];
            GCRT_UNROLL
            for (int l = 0; l < 4; ++l) sum = multiply_add<std::int32_t>(rows[i][h][l], values[l], sum);
          }
        }
      }
    }
  }
}

template <class TX, class TW>
struct IntegerProduct {
  using Sum = std::int32_t;
  static constexpr int kDepth = 32;  // of a slab
  template <class A, class B>
  static constexpr bool kReadsAhead = false;

  template <int M, int N>
  using Sums = PlainSums<std::int32_t, M, N>;

  template <class S>
  GCRT_DEVICE static void multiply(S& sums, const RowSlab<TX, 32>& a, const RowSlab<TW, 32>& b,
                                   LanePosition at) {
    if constexpr (sizeof(TW) == 1) {
      multiply_bytes(sums.sums, a, b, at);
    } else {
      multiply_words(sums.sums, a, b, at);
    }
  }
};

// Adds offsets[n] to the sums.
template <class E>
struct OffsetEpilogue {
  static constexpr int kMaxLanes = E::kMaxLanes;
  E epilogue;
  const std::int32_t* offsets;

  template <class L, class V, class F = E>
  GCRT_INLINE auto value(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const
      -> decltype(std::declval<const F&>().value(lane, sums, m, n)) {
    return epilogue.value(lane, add(sums, load(lane, offsets + n)), m, n);
  }
  template <class L, class V>
  GCRT_INLINE void put(L lane, V result, std::ptrdiff_t m, std::ptrdiff_t n) const {
    epilogue.put(lane, result, m, n);
  }
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    epilogue(lane, add(sums, load(lane, offsets + n)), m, n);
  }
};

template <Tile kTile, class A, class TW, class Split, class E>
inline void gemm_integer(Queue& queue, int rows, int columns, int depth, A a, std::ptrdiff_t lda, const TW* b,
                         std::ptrdiff_t ldb, const std::int32_t* offsets, const Split& split,
                         const E& epilogue) {
  static_assert(!is_gemv(kTile), "plan with Precision::kInt8");
  const GroupedOutput<OffsetEpilogue<E>> output{{epilogue, offsets}, columns};
  multiply_tiles<kTile, IntegerProduct<ElementOfOperand<A>, TW>>(
      queue, dense_source(a, rows, depth, lda, {}), dense_source(copied_in<16>(b), columns, depth, ldb, {}),
      rows, columns, depth, 1, split, output);
}
template <Tile kTile, class A, class TW, class E>
inline void gemm_integer(Queue& queue, int rows, int columns, int depth, A a, std::ptrdiff_t lda, const TW* b,
                         std::ptrdiff_t ldb, const std::int32_t* offsets, const E& epilogue) {
  gemm_integer<kTile>(queue, rows, columns, depth, a, lda, b, ldb, offsets, SplitDepth<>{}, epilogue);
}

}  // namespace GCRT_NAMESPACE
