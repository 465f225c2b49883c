// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Convolution of integer images with constant weights on cores without vectors, channels last: the windows of
// two output pixels are written side by side, widened and less their zero point, and then multiplied by all
// output channels (scalar_int8.h). What lies outside the image is zero.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cpu/product/scalar_int8.h"
#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

// The window of output pixel m, of the channels of a group from x on.
template <bool InHalves, class T>
GCRT_NOINLINE inline void write_window(const ConvShape& s, const T* x, std::int32_t zero, std::ptrdiff_t m,
                                       LineWriter<InHalves> line) {
  const int channels = s.in_c / s.groups;
  const bool joins_taps = s.dilation_w == 1 && s.in_pixel_stride == channels;
  const std::ptrdiff_t y = m / s.out_w;
  const int top = static_cast<int>(y % s.out_h) * s.stride_h - s.pad_top;
  const int left = static_cast<int>(m - y * s.out_w) * s.stride_w - s.pad_left;
  const TapRange rows = valid_taps(top, s.dilation_h, s.kernel_h, s.in_h);
  const TapRange taps = valid_taps(left, s.dilation_w, s.kernel_w, s.in_w);
  const std::ptrdiff_t step = s.dilation_w * s.in_pixel_stride,
                       of_row = std::ptrdiff_t{s.kernel_w} * channels;
  x += y / s.out_h * s.in_image_stride + top * s.in_row_stride + left * s.in_pixel_stride;
  line.put_zeros(rows.begin * of_row);
  for (int kh = rows.begin; kh < rows.end; ++kh) {
    const T* from = x + kh * s.dilation_h * s.in_row_stride + taps.begin * step;
    line.put_zeros(taps.begin * channels);
    const int runs = joins_taps ? 1 : taps.end - taps.begin;
    const int length = joins_taps ? (taps.end - taps.begin) * channels : channels;
    for (int i = 0; i < runs; ++i, from += step) line.put_values(from, length, zero);
    line.put_zeros((s.kernel_w - taps.end) * channels);
  }
  line.put_zeros(line_words(s.kernel_h * of_row) - line.k);
}

// Output pixels [begin, end) in (image, row, column) order.
template <bool InHalves, class T, class TW>
GCRT_NOINLINE inline void conv2d_scalar_pixels(const ConvShape& s, const T* x, std::int32_t zero, const TW* w,
                                               std::int32_t* lines, const SumEpilogue& epilogue,
                                               std::ptrdiff_t begin, std::ptrdiff_t end) {
  const int channels = s.in_c / s.groups, columns = s.out_c / s.groups;
  const std::ptrdiff_t words = line_words(std::ptrdiff_t{s.kernel_h} * s.kernel_w * channels) / 4;
  for (std::ptrdiff_t m = begin; m < end; m += kLineRows) {
    const int rows = m + 1 < end ? 2 : 1;
    for (int group = 0; group < s.groups; ++group) {
      for (int i = 0; i < kLineRows; ++i) {
        write_window(s, x + group * channels, zero, i < rows ? m + i : m, LineWriter<InHalves>(lines, i));
      }
      for (int n = 0; n < columns; n += kSumColumns) {
        const int width = columns - n < kSumColumns ? columns - n : kSumColumns;
        const int column = group * columns + n;
        std::int32_t sums[kSumColumns * kLineRows];
        multiply_lines<InHalves>(lines, w + column * 4 * words, words, width, sums);
        epilogue.finish(epilogue.epilogue, sums, kLineRows, rows, width, m, column);
      }
    }
  }
}

//   x      input of 8 bits, see ConvShape
//   zero   its zero point
//   w      [out_c][kernel_h][kernel_w][in_c / g], whole words as in scalar_int8.h
//   lines  4 * ceil(kernel_h * kernel_w * in_c / g / 4) words
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel. There
// is one set of lines, so that one thread does all.
template <bool InHalves = kMultipliesHalves, class T, class TW, class E>
inline void conv2d_scalar(const Threads*, const ConvShape& s, const T* x, T zero, const TW* w,
                          std::int32_t* lines, const E& epilogue) {
  conv2d_scalar_pixels<InHalves>(s, x, zero, w, lines, sum_epilogue(epilogue), 0, output_pixels(s));
}

// The same for output rows [begin, end) of one image.
template <bool InHalves = kMultipliesHalves, class T, class TW, class E>
inline void conv2d_scalar(const ConvShape& s, const T* x, T zero, const TW* w, std::int32_t* lines,
                          const E& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
  conv2d_scalar_pixels<InHalves>(s, x, zero, w, lines, sum_epilogue(epilogue), begin * s.out_w,
                                 end * s.out_w);
}

}  // namespace GCRT_NAMESPACE
