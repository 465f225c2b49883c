// The geometry of a 2-D convolution or pooling over channels-last images. 1-D is height 1.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// Input element (b, h, w, c) lies at b * in_image_stride + h * in_row_stride + w * in_pixel_stride + c; a
// pixel stride larger than in_c reads a slice of a wider tensor. Output sizes are given, so that ceil_mode,
// output_padding and asymmetric end padding need no field of their own: taps outside the input are skipped.
struct ConvShape {
  int batch;
  int in_h, in_w, in_c;
  int out_h, out_w, out_c;
  int kernel_h, kernel_w;
  int stride_h, stride_w;
  int pad_top, pad_left;
  int dilation_h, dilation_w;
  int groups;
  std::ptrdiff_t in_pixel_stride;
  std::ptrdiff_t in_row_stride;
  std::ptrdiff_t in_image_stride;
};

constexpr std::ptrdiff_t output_pixels(const ConvShape& s) {
  return std::ptrdiff_t{s.batch} * s.out_h * s.out_w;
}

// True if the convolution is one matrix product over all pixels of all images: pixel i of the output sees
// pixel i of the input only, and pixels are evenly spaced.
constexpr bool is_pointwise(const ConvShape& s) {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
         s.pad_left == 0 && s.out_h == s.in_h && s.out_w == s.in_w &&
         (s.out_h == 1 || s.in_row_stride == s.in_w * s.in_pixel_stride) &&
         (s.batch == 1 || s.in_image_stride == std::ptrdiff_t{s.in_h} * s.in_w * s.in_pixel_stride);
}

// True if the convolution of one row, without padding, is one matrix product: the windows are runs of
// elements, each stride_w pixels behind the one before it.
constexpr bool is_framing(const ConvShape& s) {
  return s.groups == 1 && s.batch == 1 && s.in_h == 1 && s.out_h == 1 && s.kernel_h == 1 && s.pad_top == 0 &&
         s.pad_left == 0 && s.dilation_w == 1 && s.in_pixel_stride == s.in_c &&
         std::ptrdiff_t{s.out_w - 1} * s.stride_w + s.kernel_w <= s.in_w;
}

// Whether kernels of bytes copy the window of each output pixel together: its taps would not fill the words
// that are multiplied. Where is_framing() they lie together already. Weights are packed accordingly.
constexpr std::ptrdiff_t kGatheredDepth = 256;
constexpr bool gathers_windows(const ConvShape& s) {
  const std::ptrdiff_t taps = std::ptrdiff_t{s.kernel_h} * s.kernel_w;
  return s.groups == 1 && taps > 1 && s.in_c % 4 != 0 && (taps * s.in_c <= kGatheredDepth || is_framing(s));
}

// Kernel positions [begin, end) whose input coordinate origin + k * dilation lies in [0, size).
struct TapRange {
  int begin;
  int end;
};
GCRT_INLINE TapRange valid_taps(int origin, int dilation, int taps, int size) {
  int begin = 0;
  int end = taps;
  if (origin < 0) begin = (-origin + dilation - 1) / dilation;
  if (origin + (taps - 1) * dilation >= size)
    end = size > origin ? (size - origin + dilation - 1) / dilation : 0;
  return {begin < end ? begin : end, end};
}

// Kernel positions that reach output coordinates congruent to `phase` modulo the stride: first, first + step,
// ..., `count` of them: the taps of one phase of a transposed convolution.
struct PhaseTaps {
  int first;
  int step;
  int count;
};
constexpr PhaseTaps phase_taps(int phase, int pad, int stride, int dilation, int taps) {
  PhaseTaps result{0, 1, 0};
  int last = -1;
  for (int k = 0; k < taps; ++k) {
    if ((phase + pad - k * dilation) % stride != 0) continue;
    if (result.count == 0) result.first = k;
    if (result.count == 1) result.step = k - last;
    last = k;
    ++result.count;
  }
  return result;
}

}  // namespace GCRT_NAMESPACE
