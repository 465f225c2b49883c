// 2-D convolution, channels last, as a product whose rows are output pixels.
#pragma once

#include "gcrt/cuda/conv_load.h"
#include "gcrt/cuda/gemm.h"

namespace GCRT_NAMESPACE {

// True if pixel i of the output sees pixel i of the input only, and pixels are evenly spaced.
constexpr bool is_pointwise(const ConvShape& s) {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
         s.pad_left == 0 && s.out_h == s.in_h && s.out_w == s.in_w &&
         (s.out_h == 1 || s.in_row_stride == s.in_w * s.in_pixel_stride) &&
         (s.batch == 1 || s.in_image_stride == s.in_h * s.in_w * s.in_pixel_stride);
}

constexpr std::ptrdiff_t output_pixels(const ConvShape& s) {
  return std::ptrdiff_t{s.batch} * s.out_h * s.out_w;
}

// Elements between the rows of packed weights: one row per output channel, k = (tap, channel of the group).
constexpr std::ptrdiff_t conv_weight_stride(const ConvShape& s) {
  return ceil_div(std::ptrdiff_t{s.kernel_h} * s.kernel_w * (s.in_c / s.groups), 16) * 16;
}

// The tile of a convolution; a product of vectors for pointwise convolutions of up to 8 pixels.
constexpr Plan plan_conv2d(const DeviceModel& device, Precision precision, const ConvShape& s,
                           bool allow_split = true) {
  const std::ptrdiff_t depth = std::ptrdiff_t{s.kernel_h} * s.kernel_w * (s.in_c / s.groups);
  if (is_pointwise(s)) {
    return plan_gemm(device, precision, output_pixels(s), s.out_c / s.groups, depth, s.groups, allow_split);
  }
  return plan_tiles(device, precision, output_pixels(s), s.out_c / s.groups, depth, s.groups, allow_split);
}

// Floats of workspace for the plan's splits.
constexpr std::ptrdiff_t conv2d_workspace_size(const ConvShape& s, int splits) {
  return gemm_workspace_size(output_pixels(s), s.out_c / s.groups, s.groups, splits);
}

namespace conv_parts {

template <class TW>
inline DenseSource<TW> weights(const ConvShape& s, const TW* w) {
  const int columns = s.out_c / s.groups;
  const std::ptrdiff_t ldw = conv_weight_stride(s);
  return dense_source(w, columns, s.kernel_h * s.kernel_w * (s.in_c / s.groups), ldw, {1, columns * ldw, 0});
}

}  // namespace conv_parts

//   x  input, see ConvShape
//   w  [groups][OC / groups][conv_weight_stride], zero padded, in the storage type of the precision
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <Precision P, Tile kTile, class TW, class E>
inline void conv2d(Queue& queue, const ConvShape& s, const float* x, const TW* w, const SplitDepth& split,
                   const E& epilogue) {
  const DenseSource<TW> weights = conv_parts::weights(s, w);
  multiply_tiles<kTile, FloatProduct<P>>(queue, conv_source(s, x, 0.0f), weights,
                                         static_cast<int>(output_pixels(s)), weights.rows, weights.depth,
                                         s.groups, split, GroupedOutput<E>{epilogue, weights.rows});
}
template <Precision P, Tile kTile, class TW, class E>
inline void conv2d(Queue& queue, const ConvShape& s, const float* x, const TW* w, const E& epilogue) {
  conv2d<P, kTile>(queue, s, x, w, SplitDepth{}, epilogue);
}

// The same where is_pointwise(s): a plain product. conv2d computes such shapes too, with more index
// arithmetic and no tiles for vectors.
template <Precision P, Tile kTile, class TW, class E>
inline void conv2d_pointwise(Queue& queue, const ConvShape& s, const float* x, const TW* w,
                             const SplitDepth& split, const E& epilogue) {
  const int rows = static_cast<int>(output_pixels(s));
  const int channels = s.in_c / s.groups;
  const DenseSource<TW> weights = conv_parts::weights(s, w);
  const DenseSource<float> pixels = dense_source(x, rows, channels, s.in_pixel_stride, {1, channels, 0});
  const GroupedOutput<E> output{epilogue, weights.rows};
  if constexpr (is_gemv(kTile)) {
    gemv<kTile>(queue, pixels, weights, s.groups, output);
  } else {
    multiply_tiles<kTile, FloatProduct<P>>(queue, pixels, weights, rows, weights.rows, channels, s.groups,
                                           split, output);
  }
}
template <Precision P, Tile kTile, class TW, class E>
inline void conv2d_pointwise(Queue& queue, const ConvShape& s, const float* x, const TW* w,
                             const E& epilogue) {
  conv2d_pointwise<P, kTile>(queue, s, x, w, SplitDepth{}, epilogue);
}

}  // namespace GCRT_NAMESPACE
