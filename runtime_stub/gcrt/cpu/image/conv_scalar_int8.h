// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Convolution of integer images with constant weights on cores without vectors (conv_scalar.h): windows are
// widened and less their zero point (scalar_int8.h).
#pragma once

#include "gcrt/cpu/image/conv_scalar.h"
#include "gcrt/cpu/product/scalar_int8.h"

namespace GCRT_NAMESPACE {

template <bool InHalves, class T, class TW>
struct IntegerLines {
  using Left = T;
  using Right = TW;
  using Word = std::int32_t;
  using Sum = std::int32_t;
  using Writer = LineWriter<InHalves>;
  static GCRT_INLINE void multiply(const std::int32_t* lines, const TW* w, std::ptrdiff_t words, int columns,
                                   std::int32_t* sums) {
    multiply_lines<InHalves>(lines, w, words, columns, sums);
  }
};

//   x      input of 8 bits, see ConvShape
//   zero   its zero point
//   w      [out_c][kernel_h][kernel_w][in_c / g], whole words as in scalar_int8.h
//   lines  4 * ceil(kernel_h * kernel_w * in_c / g / 4) words
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel. There
// is one set of lines, so that one thread does all.
template <bool InHalves = kMultipliesHalves, class T, class TW, class E>
inline void conv2d_scalar(const Threads*, const ConvShape& s, const T* x, T zero, const TW* w,
                          std::int32_t* lines, const E& epilogue) {
  conv2d_scalar_pixels<IntegerLines<InHalves, T, TW>>(
      s, x, zero, w, lines, sum_epilogue<std::int32_t>(epilogue), 0, output_pixels(s));
}

// The same for output rows [begin, end) of one image.
template <bool InHalves = kMultipliesHalves, class T, class TW, class E>
inline void conv2d_scalar(const ConvShape& s, const T* x, T zero, const TW* w, std::int32_t* lines,
                          const E& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
  conv2d_scalar_pixels<IntegerLines<InHalves, T, TW>>(
      s, x, zero, w, lines, sum_epilogue<std::int32_t>(epilogue), begin * s.out_w, end * s.out_w);
}

}  // namespace GCRT_NAMESPACE
