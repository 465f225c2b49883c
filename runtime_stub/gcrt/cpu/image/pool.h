// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Max and average pooling, channels last: vectors along channels, windows clipped to the image.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cpu/product/tile.h"
#include "gcrt/parallel.h"
#include "gcrt/pooling.h"
#include "gcrt/scalar/arithmetic.h"

namespace GCRT_NAMESPACE {

// Vectors of channels pooled side by side, so that the latency of one combine hides behind the others.
constexpr int kPoolVectors = 4;

// The input elements of one output pixel.
template <class T>
struct PoolWindow {
  const T* x;  // pixel of the first tap inside the image
  std::ptrdiff_t row_step;
  std::ptrdiff_t pixel_step;
  int rows;
  int columns;
  int count;  // divisor of an average
  std::ptrdiff_t m;
};

template <int Vectors, int L, class T, class P, class E>
GCRT_INLINE void pool_vectors(const PoolWindow<T>& window, const P& pooling, std::ptrdiff_t channel,
                              const E& epilogue) {
  using V = Pack<T, L>;
  V sum[Vectors];
  GCRT_UNROLL
  for (int j = 0; j < Vectors; ++j) sum[j] = pooling.template start<V>();
  const T* line = window.x + channel;
  for (int kh = 0; kh < window.rows; ++kh) {
    const T* pixel = line;
    for (int kw = 0; kw < window.columns; ++kw) {
      GCRT_UNROLL
      for (int j = 0; j < Vectors; ++j) sum[j] = pooling.combine(sum[j], load(Lanes<L>{}, pixel + j * L));
      pixel += window.pixel_step;
    }
    line += window.row_step;
  }
  GCRT_UNROLL
  for (int j = 0; j < Vectors; ++j) {
    epilogue(Lanes<L>{}, pooling.finish(sum[j], window.count), window.m, channel + j * L);
  }
}

template <int L, class T, class P, class E>
GCRT_INLINE void pool_tail(const PoolWindow<T>& window, const P& pooling, std::ptrdiff_t channel,
                           std::ptrdiff_t channels, const E& epilogue) {
  for (; channel + L <= channels; channel += L) pool_vectors<1, L>(window, pooling, channel, epilogue);
  if constexpr (L > 1) {
    if (channel < channels) pool_tail<L / 2>(window, pooling, channel, channels, epilogue);
  }
}

// Lanes of the pooling vectors: one machine vector of floats, also for narrow integers, so that an epilogue
// that widens them stays in one vector.
template <class T>
constexpr int kPoolLanes = sizeof(T) > 4 ? kVectorLanes<T> : kLanes;

// Output rows [row_begin, row_end) of one image. `end_h` and `end_w` bound the coordinates that an average
// counts: the image, or the image with its padding.
template <class T, class P, class E>
GCRT_NOINLINE void pool_rows(const ConvShape& s, const T* image, const P& pooling, int b, int row_begin,
                             int row_end, bool count_include_pad, int end_h, int end_w, const E& epilogue) {
  PoolWindow<T> window;
  window.row_step = s.dilation_h * s.in_row_stride;
  window.pixel_step = s.dilation_w * s.in_pixel_stride;
  window.m = (std::ptrdiff_t{b} * s.out_h + row_begin) * s.out_w;
  for (int oh = row_begin; oh < row_end; ++oh) {
    const int y = oh * s.stride_h - s.pad_top;
    const TapRange rows = valid_taps(y, s.dilation_h, s.kernel_h, s.in_h);
    window.rows = rows.end - rows.begin;
    const int counted_rows =
        count_include_pad ? valid_taps(0, s.dilation_h, s.kernel_h, end_h - y).end : window.rows;
    for (int ow = 0; ow < s.out_w; ++ow, ++window.m) {
      const int x = ow * s.stride_w - s.pad_left;
      const TapRange columns = valid_taps(x, s.dilation_w, s.kernel_w, s.in_w);
      window.columns = columns.end - columns.begin;
      window.count =
          counted_rows *
          (count_include_pad ? valid_taps(0, s.dilation_w, s.kernel_w, end_w - x).end : window.columns);
      window.x = image + ((y + rows.begin * s.dilation_h) * s.in_row_stride +
                          (x + columns.begin * s.dilation_w) * s.in_pixel_stride);
      constexpr int L = kPoolLanes<T>;
      std::ptrdiff_t channel = 0;
      for (; channel + kPoolVectors * L <= s.in_c; channel += kPoolVectors * L) {
        pool_vectors<kPoolVectors, L>(window, pooling, channel, epilogue);
      }
      pool_tail<L>(window, pooling, channel, s.in_c, epilogue);
    }
  }
}

template <class T, class P, class E>
inline void pool2d(const ConvShape& s, const T* x, const P& pooling, bool count_include_pad, int end_h,
                   int end_w, const E& epilogue, std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  while (work_begin < work_end) {
    const int b = static_cast<int>(work_begin / s.out_h);
    const int row = static_cast<int>(work_begin - std::ptrdiff_t{b} * s.out_h);
    const int end = static_cast<int>(smaller(s.out_h, row + (work_end - work_begin)));
    pool_rows(s, x + b * s.in_image_stride, pooling, b, row, end, count_include_pad, end_h, end_w, epilogue);
    work_begin += end - row;
  }
}

// Output rows of all images.
inline std::ptrdiff_t pool2d_work_items(const ConvShape& s) { return std::ptrdiff_t{s.batch} * s.out_h; }

// Work items [work_begin, work_end) of a max pooling over float, double or integers. out_c == in_c; groups is
// not read. The epilogue gets m = index of the output pixel in (image, row, column) order and n = channel.
template <class T, class E>
inline void max_pool2d(const ConvShape& s, const T* x, const E& epilogue, std::ptrdiff_t work_begin,
                       std::ptrdiff_t work_end) {
  pool2d(s, x, MaxPooling{}, false, 0, 0, epilogue, work_begin, work_end);
}
// All of them, shared among threads.
template <class T, class E>
GCRT_NOINLINE void max_pool2d(const Threads* threads, const ConvShape& s, const T* x, const E& epilogue) {
  parallel_for(threads, pool2d_work_items(s),
               [&](std::ptrdiff_t begin, std::ptrdiff_t end) { max_pool2d(s, x, epilogue, begin, end); });
}

// Work items [work_begin, work_end) of an average pooling over float or double. With count_include_pad the
// divisor counts padding, at the end up to pad_bottom and pad_right, but nothing that ceil_mode adds beyond.
template <class T, class E>
inline void average_pool2d(const ConvShape& s, const T* x, bool count_include_pad, int pad_bottom,
                           int pad_right, const E& epilogue, std::ptrdiff_t work_begin,
                           std::ptrdiff_t work_end) {
  pool2d(s, x, AveragePooling{}, count_include_pad, s.in_h + pad_bottom, s.in_w + pad_right, epilogue,
         work_begin, work_end);
}
// All of them, shared among threads.
template <class T, class E>
GCRT_NOINLINE void average_pool2d(const Threads* threads, const ConvShape& s, const T* x,
                                  bool count_include_pad, int pad_bottom, int pad_right, const E& epilogue) {
  parallel_for(threads, pool2d_work_items(s), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    average_pool2d(s, x, count_include_pad, pad_bottom, pad_right, epilogue, begin, end);
  });
}

}  // namespace GCRT_NAMESPACE
