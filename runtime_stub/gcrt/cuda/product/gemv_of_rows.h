// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Products of up to 8 rows that every block makes for itself, in shared memory: the normalisation ahead of a
// product with weights costs no launch, and less than one to do again in each block.
//
// `make` is a functor, passed by value:
//
//   struct Rows {
//     // Writes all rows, one behind the other. All threads of a block call it; its group's scratch lies
//     // `scratch` bytes from the start of the dynamic shared memory.
//     GCRT_DEVICE void operator()(float* y, std::ptrdiff_t scratch) const;
//   };
#pragma once

#include "gcrt/cuda/device/loops.h"
#include "gcrt/cuda/product/gemm.h"

namespace GCRT_NAMESPACE {

template <class F>
struct MadeRows {
  using Element = float;
  using Block = Group<kGemvThreads>;
  static_assert(Block::kScratchBytes % 16 == 0, "rows begin behind it");

  F make_rows;
  int count;
  int depth;  // a multiple of 4

  static constexpr std::size_t shared_bytes(int values) {
    return Block::kScratchBytes + static_cast<std::size_t>(values) * sizeof(float);
  }
  GCRT_INLINE int rows() const { return count; }
  GCRT_INLINE bool is_aligned() const { return true; }
  template <int kOffset>
  GCRT_DEVICE float* first_row() const {
    GCRT_DYNAMIC_SHARED(unsigned char, shared);
    return reinterpret_cast<float*>(shared + kOffset + Block::kScratchBytes);
  }
  template <int kOffset>
  GCRT_DEVICE void make() const {
    make_rows(first_row<kOffset>(), kOffset);
    barrier();
  }
  template <int kOffset>
  GCRT_DEVICE const float* row(int, int m) const {
    return first_row<kOffset>() + (m < count ? m : count - 1) * depth;
  }
};

// Like gemm() with a tile of vectors. rows * depth floats fit the shared memory that needs no permission.
template <Precision P, Tile kTile, class F, class B, class E>
inline void gemv_of_rows(Queue& queue, int rows, int columns, int depth, const F& make, B b,
                         std::ptrdiff_t ldb, const E& epilogue) {
  static_assert(is_gemv(kTile), "few rows");
  gemv<kTile>(queue, MadeRows<F>{make, rows, depth}, depth,
              dense_source(b, columns, depth, ldb, BatchStrides{}), 1, BatchedOutput<E>{epilogue});
}

}  // namespace GCRT_NAMESPACE
