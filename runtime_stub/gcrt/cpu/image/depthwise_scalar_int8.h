// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Depthwise convolution of integer images with constant weights on cores without vectors, channels last: four
// channels together where DSP instructions multiply halves (gcrt/isa/halves.h), else one after the other.
// What lies outside the image is skipped.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cpu/product/scalar_int8.h"
#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

// The taps of a window that lie in the image: `x` and `w` are at the first of them.
struct TapGrid {
  int rows, columns;
  std::ptrdiff_t x_row, x_column, w_row, w_column;
};

// sums[0..3] of four channels.
template <class T>
GCRT_NOINLINE inline void sum_four_channels(const TapGrid& taps, const T* x, std::int32_t zero,
                                            const std::int8_t* w, std::int32_t* sums) {
  const std::int32_t less = halves(-zero, -zero);
  std::int32_t s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  const std::ptrdiff_t x_column = taps.x_column, w_column = taps.w_column;
  for (int i = taps.rows; i > 0; --i, x += taps.x_row, w += taps.w_row) {
    const T* from = x;
    const std::int8_t* by = w;
    for (int j = taps.columns; j > 0; --j, from += x_column, by += w_column) {
      const std::int32_t values = word_of_bytes(from), weights = word_of_bytes(by);
      const std::int32_t even = even_bytes<T>(values, less), by_even = even_bytes(weights);
      s0 = add_lower(s0, even, by_even);
      s2 = add_upper(s2, even, by_even);
      const std::int32_t odd = odd_bytes<T>(values, less), by_odd = odd_bytes(weights);
      s1 = add_lower(s1, odd, by_odd);
      s3 = add_upper(s3, odd, by_odd);
    }
  }
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
  sums[3] = s3;
}

template <class T, class TW>
GCRT_NOINLINE inline std::int32_t sum_channel(const TapGrid& taps, const T* x, std::int32_t zero,
                                              const TW* w) {
  std::int32_t sum = 0;
  const std::ptrdiff_t x_column = taps.x_column, w_column = taps.w_column;
  for (int i = taps.rows; i > 0; --i, x += taps.x_row, w += taps.w_row) {
    const T* from = x;
    const TW* by = w;
    for (int j = taps.columns; j > 0; --j, from += x_column, by += w_column) {
      sum = add_product(sum, *from - zero, *by);
    }
  }
  return sum;
}

// Output pixels [begin, end) in (image, row, column) order.
template <bool InHalves, class T, class TW>
GCRT_NOINLINE inline void depthwise2d_scalar_pixels(const ConvShape& s, const T* x, std::int32_t zero,
                                                    const TW* w, const SumEpilogue<std::int32_t>& epilogue,
                                                    std::ptrdiff_t begin, std::ptrdiff_t end) {
  const int multiplier = s.out_c / s.in_c;
  for (std::ptrdiff_t m = begin; m < end; ++m) {
    const std::ptrdiff_t y = m / s.out_w;
    const int top = static_cast<int>(y % s.out_h) * s.stride_h - s.pad_top;
    const int left = static_cast<int>(m - y * s.out_w) * s.stride_w - s.pad_left;
    const TapRange rows = valid_taps(top, s.dilation_h, s.kernel_h, s.in_h);
    const TapRange columns = valid_taps(left, s.dilation_w, s.kernel_w, s.in_w);
    const TapGrid taps{rows.end - rows.begin,
                       columns.end - columns.begin,
                       s.dilation_h * s.in_row_stride,
                       s.dilation_w * s.in_pixel_stride,
                       std::ptrdiff_t{s.kernel_w} * s.out_c,
                       s.out_c};
    const T* const from = x + y / s.out_h * s.in_image_stride + top * s.in_row_stride +
                          left * s.in_pixel_stride + rows.begin * taps.x_row + columns.begin * taps.x_column;
    const TW* const by = w + rows.begin * taps.w_row + columns.begin * taps.w_column;
    for (int n = 0; n < s.out_c; n += kSumColumns) {
      const int width = s.out_c - n < kSumColumns ? s.out_c - n : kSumColumns;
      std::int32_t sums[kSumColumns];
      int j = 0;
      if constexpr (InHalves && sizeof(TW) == 1) {
        for (; multiplier == 1 && j + 4 <= width; j += 4) {
          sum_four_channels(taps, from + n + j, zero, by + n + j, sums + j);
        }
      }
      for (; j < width; ++j) {
        const int channel = multiplier == 1 ? n + j : (n + j) / multiplier;
        sums[j] = sum_channel(taps, from + channel, zero, by + n + j);
      }
      epilogue.finish(epilogue.epilogue, sums, 1, 1, width, m, n);
    }
  }
}

//   x     input of 8 bits, see ConvShape: groups == in_c, out_c a multiple of in_c, and output channel c
//         reads input channel c / (out_c / in_c)
//   zero  its zero point
//   w     [kernel_h * kernel_w][out_c], int8_t or, where they do not fit, int16_t
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel. One
// thread does all.
template <bool InHalves = kMultipliesHalves, class T, class TW, class E>
inline void depthwise2d_scalar(const Threads*, const ConvShape& s, const T* x, T zero, const TW* w,
                               const E& epilogue) {
  depthwise2d_scalar_pixels<InHalves>(s, x, zero, w, sum_epilogue<std::int32_t>(epilogue), 0,
                                      output_pixels(s));
}

// The same for output rows [begin, end) of one image.
template <bool InHalves = kMultipliesHalves, class T, class TW, class E>
inline void depthwise2d_scalar(const ConvShape& s, const T* x, T zero, const TW* w, const E& epilogue,
                               std::ptrdiff_t begin, std::ptrdiff_t end) {
  depthwise2d_scalar_pixels<InHalves>(s, x, zero, w, sum_epilogue<std::int32_t>(epilogue), begin * s.out_w,
                                      end * s.out_w);
}

}  // namespace GCRT_NAMESPACE
