// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// 2-D convolution, channels last, as a product whose rows are output pixels.
#pragma once

#include "gcrt/cuda/image/conv_load.h"
#include "gcrt/cuda/image/conv_plan.h"
#include "gcrt/cuda/product/gemm.h"

namespace GCRT_NAMESPACE {

namespace conv_parts {

// Rows of one output channel each, `ldw` elements apart: a multiple of 16 bytes, as all packed weights lie.
template <class TW>
inline DenseSource<TW, 16> weights(const ConvShape& s, const TW* w, std::ptrdiff_t ldw) {
  const int columns = s.out_c / s.groups;
  return dense_source(copied_in<16>(w), columns, s.kernel_h * s.kernel_w * (s.in_c / s.groups), ldw,
                      {1, columns * ldw, 0});
}

// Any convolution as one Product of pixels and weights; taps outside the image read `fill`.
template <Tile kTile, class Product, class X, class T, class W, class Split, class E>
inline void multiply(Queue& queue, const ConvShape& s, X x, T fill, const W& weights, const Split& split,
                     const E& epilogue) {
  multiply_tiles<kTile, Product>(queue, conv_source(s, x, fill), weights, static_cast<int>(output_pixels(s)),
                                 weights.rows, weights.depth, s.groups, split,
                                 GroupedOutput<E>{epilogue, weights.rows});
}

// The same where is_pointwise(s): a plain product.
template <Tile kTile, class Product, class X, class W, class Split, class E>
inline void multiply_pointwise(Queue& queue, const ConvShape& s, X x, const W& weights, const Split& split,
                               const E& epilogue) {
  const int rows = static_cast<int>(output_pixels(s));
  const int channels = s.in_c / s.groups;
  const auto pixels = dense_source(x, rows, channels, s.in_pixel_stride, {1, channels, 0});
  const GroupedOutput<E> output{epilogue, weights.rows};
  if constexpr (is_gemv(kTile)) {
    gemv<kTile>(queue, pixels, weights, s.groups, output);
  } else {
    multiply_tiles<kTile, Product>(queue, pixels, weights, rows, weights.rows, channels, s.groups, split,
                                   output);
  }
}

}  // namespace conv_parts

//   x  input, see ConvShape; float, or stored in the precision of the product; a pointer or copied_in<>()
//   w  [groups][OC / groups][conv_weight_stride], zero padded, in the storage type of the precision
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <Precision P, Tile kTile, class X, class TW, class Split, class E>
inline void conv2d(Queue& queue, const ConvShape& s, X x, const TW* w, const Split& split,
                   const E& epilogue) {
  const auto weights = conv_parts::weights(s, w, conv_weight_stride(s));
  conv_parts::multiply<kTile, FloatProduct<P>>(queue, s, x, ElementOfOperand<X>{}, weights, split, epilogue);
}
template <Precision P, Tile kTile, class X, class TW, class E>
inline void conv2d(Queue& queue, const ConvShape& s, X x, const TW* w, const E& epilogue) {
  conv2d<P, kTile>(queue, s, x, w, SplitDepth<>{}, epilogue);
}

// The same where is_pointwise(s). conv2d computes such shapes too, with more index arithmetic and no tiles
// for vectors.
template <Precision P, Tile kTile, class X, class TW, class Split, class E>
inline void conv2d_pointwise(Queue& queue, const ConvShape& s, X x, const TW* w, const Split& split,
                             const E& epilogue) {
  const auto weights = conv_parts::weights(s, w, conv_weight_stride(s));
  conv_parts::multiply_pointwise<kTile, FloatProduct<P>>(queue, s, x, weights, split, epilogue);
}
template <Precision P, Tile kTile, class X, class TW, class E>
inline void conv2d_pointwise(Queue& queue, const ConvShape& s, X x, const TW* w, const E& epilogue) {
  conv2d_pointwise<P, kTile>(queue, s, x, w, SplitDepth<>{}, epilogue);
}

}  // namespace GCRT_NAMESPACE
