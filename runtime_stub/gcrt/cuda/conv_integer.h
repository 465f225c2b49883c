// 2-D convolution of 8-bit images with constant weights, exact in int32, channels last.
//
//   acc(m, n) = offsets[n] + sum over taps and k of x * w        modulo 2^32
//
// Taps outside the image read `border`, the zero point of x; offsets[n] holds minus that zero point times the
// sum of the weights, so that they add nothing.
#pragma once

#include "gcrt/cuda/conv.h"
#include "gcrt/cuda/gemm_integer.h"

namespace GCRT_NAMESPACE {

namespace conv_parts {

template <class TW>
inline DenseSource<TW> integer_weights(const ConvShape& s, const TW* w) {
  const int columns = s.out_c / s.groups;
  const std::ptrdiff_t ldw = conv_integer_weight_stride(s);
  return dense_source(w, columns, s.kernel_h * s.kernel_w * (s.in_c / s.groups), ldw, {1, columns * ldw, 0});
}

}  // namespace conv_parts

//   x        input, uint8_t or int8_t, see ConvShape
//   w        [groups][OC / groups][conv_integer_weight_stride], int8_t or int16_t, k = (tap, channel of the
//   group),
//            zero padded
//   offsets  [out_c], 16-byte aligned
//   border   the zero point of x
// The epilogue gets Pack<int32_t, L>, m = index of the output pixel in (image, row, column) order and n =
// output channel.
template <Tile kTile, class TX, class TW, class E>
inline void conv2d_integer(Queue& queue, const ConvShape& s, const TX* x, const TW* w,
                           const std::int32_t* offsets, TX border, const SplitDepth& split,
                           const E& epilogue) {
  const DenseSource<TW> weights = conv_parts::integer_weights(s, w);
  const GroupedOutput<OffsetEpilogue<E>> output{{epilogue, offsets}, weights.rows};
  multiply_tiles<kTile, IntegerProduct<TX, TW>>(queue, conv_source(s, x, border), weights,
                                                static_cast<int>(output_pixels(s)), weights.rows,
                                                weights.depth, s.groups, split, output);
}

// The same where is_pointwise(s): a plain product.
template <Tile kTile, class TX, class TW, class E>
inline void conv2d_integer_pointwise(Queue& queue, const ConvShape& s, const TX* x, const TW* w,
                                     const std::int32_t* offsets, const SplitDepth& split,
                                     const E& epilogue) {
  const int rows = static_cast<int>(output_pixels(s));
  const int channels = s.in_c / s.groups;
  const DenseSource<TW> weights = conv_parts::integer_weights(s, w);
  const GroupedOutput<OffsetEpilogue<E>> output{{epilogue, offsets}, weights.rows};
  multiply_tiles<kTile, IntegerProduct<TX, TW>>(
      queue, dense_source(x, rows, channels, s.in_pixel_stride, {1, channels, 0}), weights, rows,
      weights.rows, channels, s.groups, split, output);
}

}  // namespace GCRT_NAMESPACE
