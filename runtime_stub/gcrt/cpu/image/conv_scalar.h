// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Convolution with constant weights on cores without vectors, channels last: the windows of two output pixels
// are written side by side, and then multiplied by all output channels. What lies outside the image is zero.
// A Way says of what types, how a window is written, and what multiplies: here of floats, of bytes in the
// header conv_scalar_int8.h.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cpu/product/sum_epilogue.h"
#include "gcrt/isa/isa.h"
#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

// The window of output pixel m, of the channels of a group from x on.
template <class Writer, class T>
GCRT_NOINLINE inline void write_window(const ConvShape& s, const T* x, T zero, std::ptrdiff_t m,
                                       Writer line) {
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

// Output pixels [begin, end) in (image, row, column) order. Weights are [out_c][line_words()].
template <class Way>
GCRT_NOINLINE inline void conv2d_scalar_pixels(const ConvShape& s, const typename Way::Left* x,
                                               typename Way::Left zero, const typename Way::Right* w,
                                               typename Way::Word* lines,
                                               const SumEpilogue<typename Way::Sum>& epilogue,
                                               std::ptrdiff_t begin, std::ptrdiff_t end) {
  const int channels = s.in_c / s.groups, columns = s.out_c / s.groups;
  const std::ptrdiff_t words = line_words(std::ptrdiff_t{s.kernel_h} * s.kernel_w * channels) / 4;
  for (std::ptrdiff_t m = begin; m < end; m += kLineRows) {
    const int rows = m + 1 < end ? 2 : 1;
    for (int group = 0; group < s.groups; ++group) {
      for (int i = 0; i < kLineRows; ++i) {
        write_window(s, x + group * channels, zero, i < rows ? m + i : m, typename Way::Writer(lines, i));
      }
      for (int n = 0; n < columns; n += kSumColumns) {
        const int width = columns - n < kSumColumns ? columns - n : kSumColumns;
        const int column = group * columns + n;
        typename Way::Sum sums[kSumColumns * kLineRows];
        Way::multiply(lines, w + column * 4 * words, words, width, sums);
        epilogue.finish(epilogue.epilogue, sums, kLineRows, rows, width, m, column);
      }
    }
  }
}

// Each k is [row].
struct FloatLineWriter {
  float* row;
  std::ptrdiff_t k = 0;
  FloatLineWriter(float* lines, int i) : row(lines + i) {}
  GCRT_INLINE void put_zeros(std::ptrdiff_t count) {
    for (; count > 0; --count) row[2 * k++] = 0;
  }
  GCRT_INLINE void put_values(const float* from, std::ptrdiff_t count, float) {
    for (; count > 0; --count) row[2 * k++] = *from++;
  }
};

// Eight sums, two values and four weights are in registers.
struct FloatLines {
  using Left = float;
  using Right = float;
  using Word = float;
  using Sum = float;
  using Writer = FloatLineWriter;

  static GCRT_NOINLINE void multiply(const float* lines, const float* w, std::ptrdiff_t words, int columns,
                                     float* sums) {
    constexpr int kTogether = 4;
    const float* const end = lines + 8 * words;
    for (int j = 0, together; j < columns; j += together, w += together * 4 * words) {
      together = columns - j < kTogether ? 1 : kTogether;
      const std::ptrdiff_t step = together == 1 ? 0 : 4 * words;
      const float* from[kTogether];
      GCRT_UNROLL
      for (int n = 0; n < kTogether; ++n) from[n] = w + n * step;
      float acc[kTogether][2] = {};
      const float* x = lines;
      do {
        GCRT_UNROLL
        for (int k = 0; k < 4; ++k) {
          GCRT_UNROLL
          for (int n = 0; n < kTogether; ++n) {
            fma_into(acc[n][0], x[2 * k], from[n][k]);
            fma_into(acc[n][1], x[2 * k + 1], from[n][k]);
          }
        }
        GCRT_UNROLL
        for (int n = 0; n < kTogether; ++n) from[n] += 4;
        x += 8;
      } while (x != end);
      GCRT_UNROLL
      for (int n = 0; n < kTogether; ++n) {
        if (n < together) sums[2 * (j + n)] = acc[n][0];
        if (n < together) sums[2 * (j + n) + 1] = acc[n][1];
      }
    }
  }
};

//   x      input, see ConvShape
//   w      [out_c][kernel_h][kernel_w][in_c / g], zero padded to a multiple of four
//   lines  twice as many floats as weights of an output channel
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel. There
// is one set of lines, so that one thread does all.
template <class E>
inline void conv2d_scalar(const Threads*, const ConvShape& s, const float* x, const float* w, float* lines,
                          const E& epilogue) {
  conv2d_scalar_pixels<FloatLines>(s, x, 0.0f, w, lines, sum_epilogue<float>(epilogue), 0, output_pixels(s));
}
// The same for output rows [begin, end) of one image.
template <class E>
inline void conv2d_scalar(const ConvShape& s, const float* x, const float* w, float* lines, const E& epilogue,
                          std::ptrdiff_t begin, std::ptrdiff_t end) {
  conv2d_scalar_pixels<FloatLines>(s, x, 0.0f, w, lines, sum_epilogue<float>(epilogue), begin * s.out_w,
                                   end * s.out_w);
}

}  // namespace GCRT_NAMESPACE
