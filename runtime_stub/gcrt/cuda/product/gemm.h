// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Matrix product C = A * B with the result handed to an epilogue.
//
// A is M x K, float or stored in the precision of the product, rows `lda` elements apart, contiguous along k.
// Operands are pointers, or copied_in<BYTES>(pointer) where the width of their copies is known
// (tile_load.h): then the kernel has code for that width alone.
// The epilogue is one of epilogue.h, called on final sums (Pack<float, L>).
// Nothing is allocated and nothing waits.
#pragma once

#include "gcrt/cuda/product/gemv.h"
#include "gcrt/cuda/product/tile_kernel.h"

namespace GCRT_NAMESPACE {

// Batch entry z multiplies a + z1 * a_outer + z2 * a_inner with the like of b, where z1 = z / inner_count and
// z2 = z % inner_count. One entry, by default.
struct GemmBatch {
  int count = 1;
  int inner_count = 1;
  std::ptrdiff_t a_outer = 0;
  std::ptrdiff_t a_inner = 0;
  std::ptrdiff_t b_outer = 0;
  std::ptrdiff_t b_inner = 0;

  BatchStrides strides_a() const { return {inner_count, a_outer, a_inner}; }
  BatchStrides strides_b() const { return {inner_count, b_outer, b_inner}; }
};

template <class T>
inline DenseSource<T> dense_source(const T* data, int rows, int depth, std::ptrdiff_t row_stride,
                                   const BatchStrides& batch) {
  const CopyWidth<0> width(copy_bytes(data, row_stride, batch.outer, batch.inner));
  return {data, row_stride, rows, depth, width, batch};
}
template <int kBytes, class T>
inline DenseSource<T, kBytes> dense_source(CopiedIn<kBytes, T> a, int rows, int depth,
                                           std::ptrdiff_t row_stride, const BatchStrides& batch) {
  return {a.data, row_stride, rows, depth, CopyWidth<kBytes>(kBytes), batch};
}

template <int kBytes, class T>
inline DenseSource<T, kBytes, true> dense_source(WeightsIn<kBytes, T> b, int rows, int depth,
                                                 std::ptrdiff_t row_stride, const BatchStrides& batch) {
  return {b.data, row_stride, rows, depth, CopyWidth<kBytes>(kBytes), batch};
}

// B stored as [N][ldb], contiguous along k: constant weights (ldb = K rounded up to 16, zero padded, float,
// Half for kFp16, BFloat16 for kBf16), or a matrix of floats known at run time, any ldb.
template <Precision P, Tile kTile, class A, class B, class Split, class E>
inline void gemm(Queue& queue, int rows, int columns, int depth, A a, std::ptrdiff_t lda, B b,
                 std::ptrdiff_t ldb, const GemmBatch& batch, const Split& split, const E& epilogue) {
  const auto source_a = dense_source(a, rows, depth, lda, batch.strides_a());
  const auto source_b = dense_source(b, columns, depth, ldb, batch.strides_b());
  if constexpr (is_gemv(kTile)) {
    gemv<kTile>(queue, source_a, source_b, batch.count, BatchedOutput<E>{epilogue});
  } else {
    multiply_tiles<kTile, FloatProduct<P>>(queue, source_a, source_b, rows, columns, depth, batch.count,
                                           split, BatchedOutput<E>{epilogue});
  }
}
template <Precision P, Tile kTile, class A, class B, class E>
inline void gemm(Queue& queue, int rows, int columns, int depth, A a, std::ptrdiff_t lda, B b,
                 std::ptrdiff_t ldb, const E& epilogue) {
  gemm<P, kTile>(queue, rows, columns, depth, a, lda, b, ldb, GemmBatch{}, SplitDepth<>{}, epilogue);
}

// The same by packed weights with as many rows as only the run knows: up to eight as vectors, more in tiles.
template <Precision P, Tile kTile, class A, class B, class Split, class E>
inline void gemm_any_rows(Queue& queue, int rows, int columns, int depth, A a, std::ptrdiff_t lda, B b,
                          std::ptrdiff_t ldb, const GemmBatch& batch, const Split& split, const E& epilogue) {
  if (rows <= 1) {
    gemm<P, Tile::kGemv1>(queue, rows, columns, depth, a, lda, b, ldb, batch, SplitDepth<>{}, epilogue);
  } else if (rows <= 8) {
    gemm<P, Tile::kGemv8>(queue, rows, columns, depth, a, lda, b, ldb, batch, SplitDepth<>{}, epilogue);
  } else {
    gemm<P, kTile>(queue, rows, columns, depth, a, lda, b, ldb, batch, split, epilogue);
  }
}

// B of any strides, known at run time: element (k, n) is b[k * stride_k + n * stride_n].
template <Precision P, Tile kTile, class A, class Split, class E>
inline void gemm_strided(Queue& queue, int rows, int columns, int depth, A a, std::ptrdiff_t lda,
                         const float* b, std::ptrdiff_t stride_k, std::ptrdiff_t stride_n,
                         const GemmBatch& batch, const Split& split, const E& epilogue) {
  static_assert(!is_gemv(kTile), "plan_tiles, not plan_gemm, for a B of any strides");
  const auto source_a = dense_source(a, rows, depth, lda, batch.strides_a());
  const BatchStrides batch_b = batch.strides_b();
  const int bytes = stride_n == 1 ? copy_bytes(b, stride_k, batch_b.outer, batch_b.inner) : 4;
  const StridedSource source_b{b, stride_k, stride_n, columns, depth, bytes, batch_b};
  multiply_tiles<kTile, FloatProduct<P>>(queue, source_a, source_b, rows, columns, depth, batch.count, split,
                                         BatchedOutput<E>{epilogue});
}

}  // namespace GCRT_NAMESPACE
