// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// 2-D convolution of 8-bit images with constant weights, exact in int32, channels last.
//
//   acc(m, n) = offsets[n] + sum over taps and k of x * w        modulo 2^32
//
// Taps outside the image read `border`, the zero point of x; offsets[n] holds minus that zero point times the
// sum of the weights, so that they add nothing.
#pragma once

#include "gcrt/cuda/image/conv.h"
#include "gcrt/cuda/product/gemm_integer.h"

namespace GCRT_NAMESPACE {

//   x        input, uint8_t or int8_t, see ConvShape
//   w        [groups][OC / groups][conv_integer_weight_stride], int8_t or int16_t, k = (tap, channel of the
//            group), zero padded
//   offsets  [out_c], 16-byte aligned
//   border   the zero point of x
// The epilogue gets Pack<int32_t, L>, m = index of the output pixel in (image, row, column) order and n =
// output channel.
template <Tile kTile, class X, class TW, class Split, class E>
inline void conv2d_integer(Queue& queue, const ConvShape& s, X x, const TW* w, const std::int32_t* offsets,
                           ElementOfOperand<X> border, const Split& split, const E& epilogue) {
  const auto weights = conv_parts::weights(s, w, conv_integer_weight_stride(s));
  conv_parts::multiply<kTile, IntegerProduct<ElementOfOperand<X>, TW>>(queue, s, x, border, weights, split,
                                                                       OffsetEpilogue<E>{epilogue, offsets});
}

// The same where is_pointwise(s).
template <Tile kTile, class X, class TW, class Split, class E>
inline void conv2d_integer_pointwise(Queue& queue, const ConvShape& s, X x, const TW* w,
                                     const std::int32_t* offsets, const Split& split, const E& epilogue) {
  const auto weights = conv_parts::weights(s, w, conv_integer_weight_stride(s));
  conv_parts::multiply_pointwise<kTile, IntegerProduct<ElementOfOperand<X>, TW>>(
      queue, s, x, weights, split, OffsetEpilogue<E>{epilogue, offsets});
}

}  // namespace GCRT_NAMESPACE
