// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Convolution with few output channels, channels last: each output is the dot product of its window, whose
// kernel rows are runs of elements, with weights that lie alike. Lanes hold parts of one sum, so that no lane
// is without work where output channels do not fill a vector.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cpu/product/tile.h"
#include "gcrt/parallel.h"
#include "gcrt/scalar/arithmetic.h"

namespace GCRT_NAMESPACE {

// Whether kernel rows are runs of elements.
constexpr bool has_runs(const ConvShape& s) {
  return s.groups == 1 && s.dilation_w == 1 && s.in_pixel_stride == s.in_c;
}

// Output pixels of one work item, all in one row.
constexpr std::ptrdiff_t kDotPixels = 64;
constexpr std::ptrdiff_t conv2d_dot_work_items(const ConvShape& s) {
  return std::ptrdiff_t{s.batch} * s.out_h * ceil_div(s.out_w, kDotPixels);
}

// Pixels whose sums are taken together, for N output channels: the more, the more often a weight is used.
constexpr int dot_pixels(int channels) {
  constexpr int kSums = GCRT_VECTOR_BYTES == 64 ? 16 : 10;
  return channels * 8 <= kSums ? 8 : channels * 4 <= kSums ? 4 : channels * 2 <= kSums ? 2 : 1;
}

// Some kernel positions of P windows `step` elements apart: sums[P][N]. `x`, `w`: of the first position;
// `length`: elements of each of `lines` kernel rows.
template <int P, int N>
GCRT_NOINLINE void dot_windows(const ConvShape& s, const float* x, std::ptrdiff_t step, const float* w,
                               int lines, std::ptrdiff_t length, float* sums) {
  constexpr Lanes<kLanes> lane{};
  using V = Pack<float, kLanes>;
  const std::ptrdiff_t x_line = s.dilation_h * s.in_row_stride, w_line = std::ptrdiff_t{s.kernel_w} * s.in_c;
  const std::ptrdiff_t w_channel = s.kernel_h * w_line;
  const std::ptrdiff_t whole = length - length % kLanes;
  V acc[P][N] = {};
  float rest[P][N] = {};
  for (int line = 0; line < lines; ++line, x += x_line, w += w_line) {
    const auto add_products = [&](std::ptrdiff_t k, const auto& keep) GCRT_LAMBDA_INLINE {
      V xv[P];
      GCRT_UNROLL
      for (int p = 0; p < P; ++p) xv[p] = keep(load(lane, x + p * step + k));
      GCRT_UNROLL
      for (int n = 0; n < N; ++n) {
        const V wv = load(lane, w + n * w_channel + k);
        GCRT_UNROLL
        for (int p = 0; p < P; ++p) fma_into(acc[p][n], xv[p], wv);
      }
    };
    for (std::ptrdiff_t k = 0; k < whole; k += kLanes)
      add_products(k, [](V v) GCRT_LAMBDA_INLINE { return v; });
    if (whole == length) continue;
    if (whole > 0) {
      // The last vector begins within the one before it, and drops what that had.
      const std::ptrdiff_t last = length - kLanes;
      const auto is_new = convert<std::int32_t>(iota(lane, last - whole)) >= 0;
      add_products(last, [&](V v) GCRT_LAMBDA_INLINE { return blend(is_new, v, V{}); });
    } else {
      for (std::ptrdiff_t k = 0; k < length; ++k) {
        for (int p = 0; p < P; ++p) {
          for (int n = 0; n < N; ++n) rest[p][n] = fma(x[p * step + k], w[n * w_channel + k], rest[p][n]);
        }
      }
    }
  }
  GCRT_UNROLL
  for (int p = 0; p < P; ++p) {
    GCRT_UNROLL
    for (int n = 0; n < N; ++n) sums[p * N + n] = reduce_add(acc[p][n]) + rest[p][n];
  }
}

// Pixels [begin, end) of the output row whose windows begin at (image, y): sums[pixel][N].
template <int N>
GCRT_NOINLINE void dot_row(const ConvShape& s, const float* x, const float* w, int image, int y,
                           std::ptrdiff_t begin, std::ptrdiff_t end, float* sums) {
  constexpr int P = dot_pixels(N);
  const TapRange rows = valid_taps(y, s.dilation_h, s.kernel_h, s.in_h);
  const int lines = rows.end - rows.begin;
  const std::ptrdiff_t channels = s.in_c, step = s.stride_w * channels;
  const float* const line = x + image * s.in_image_stride + (y + rows.begin * s.dilation_h) * s.in_row_stride;
  const float* const w_line = w + rows.begin * s.kernel_w * channels;
  for (std::ptrdiff_t ow = begin; ow < end;) {
    const int column = static_cast<int>(ow) * s.stride_w - s.pad_left;
    const TapRange taps = valid_taps(column, 1, s.kernel_w, s.in_w);
    const float* const first = line + (column + taps.begin) * channels;
    const float* const w_first = w_line + taps.begin * channels;
    const std::ptrdiff_t length = (taps.end - taps.begin) * channels;
    const bool is_inside = length == s.kernel_w * channels;
    if (is_inside && ow + P <= end && column + (P - 1) * s.stride_w + s.kernel_w <= s.in_w) {
      dot_windows<P, N>(s, first, step, w_first, lines, length, sums);
      ow += P;
      sums += P * N;
    } else {
      dot_windows<1, N>(s, first, step, w_first, lines, length, sums);
      ++ow;
      sums += N;
    }
  }
}

// Work items [begin, end) of a convolution to N = out_c channels.
//   x   input, see ConvShape; has_runs()
//   w   [N][kernel_h][kernel_w][in_c]
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel; of
// one channel m = index of the output row in (image, row) order and n = its column.
template <int N, class E>
inline void conv2d_dot(const ConvShape& s, const float* x, const float* w, const E& epilogue,
                       std::ptrdiff_t begin, std::ptrdiff_t end) {
  const std::ptrdiff_t pieces = ceil_div(s.out_w, kDotPixels);
  for (std::ptrdiff_t item = begin; item < end; ++item) {
    const std::ptrdiff_t row = item / pieces, first = item % pieces * kDotPixels;
    const std::ptrdiff_t pixels = smaller(kDotPixels, s.out_w - first);
    alignas(64) float sums[kDotPixels * N];
    dot_row<N>(s, x, w, static_cast<int>(row / s.out_h),
               static_cast<int>(row % s.out_h) * s.stride_h - s.pad_top, first, first + pixels, sums);
    if constexpr (N == 1) {
      finish_block(sums, pixels, 1, static_cast<int>(pixels), row, first, epilogue);
    } else {
      finish_block(sums, N, static_cast<int>(pixels), N, row * s.out_w + first, 0, epilogue);
    }
  }
}

// All of them, shared among threads.
template <int N, class E>
GCRT_NOINLINE void conv2d_dot(const Threads* threads, const ConvShape& s, const float* x, const float* w,
                              const E& epilogue) {
  parallel_for(threads, conv2d_dot_work_items(s), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    conv2d_dot<N>(s, x, w, epilogue, begin, end);
  });
}

}  // namespace GCRT_NAMESPACE
