// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Max and average pooling, channels last: a thread combines the window of one output pixel for four channels,
// neighbouring threads take neighbouring channels.
#pragma once

#include "gcrt/cuda/image/conv.h"
#include "gcrt/pooling.h"
#include "gcrt/scalar/arithmetic.h"

namespace GCRT_NAMESPACE {

constexpr int kPoolThreads = 128;

// Which taps the divisor of an average counts: those inside the image, or below these bounds.
struct PoolCount {
  bool counts_padding;
  int end_h;
  int end_w;
};

// Channels [channel, channel + L) of the window whose taps are `rows` and `columns`.
template <int L, class T, class P>
GCRT_INLINE Pack<T, L> pool_window(const ConvShape& s, const T* pixel, const TapRange& rows,
                                   const TapRange& columns, const P& pooling) {
  using V = Pack<T, L>;
  V sum = pooling.template start<V>();
  for (int kh = rows.begin; kh < rows.end; ++kh) {
    const T* const line = pixel + kh * s.dilation_h * s.in_row_stride;
    for (int kw = columns.begin; kw < columns.end; ++kw) {
      sum = pooling.combine(sum, load(Lanes<L>{}, line + kw * s.dilation_w * s.in_pixel_stride));
    }
  }
  return sum;
}

// L channels per thread; C is a multiple of L, and reads of L channels are aligned.
template <int L, class T, class P, class E>
GCRT_GLOBAL_BLOCKS(kPoolThreads, 1)
void pool_kernel(ConvShape s, const T* x, P pooling, PoolCount counted, E epilogue) {
  await_previous_grid();
  const unsigned runs = static_cast<unsigned>(s.in_c / L);
  const unsigned index = blockIdx.x * kPoolThreads + threadIdx.x;
  const int m = static_cast<int>(index / runs);
  const int channel = static_cast<int>(index % runs) * L;
  const int line = m / s.out_w;
  const int image = line / s.out_h;
  if (image >= s.batch) return;
  const int top = (line - image * s.out_h) * s.stride_h - s.pad_top;
  const int left = (m - line * s.out_w) * s.stride_w - s.pad_left;
  const TapRange rows = valid_taps(top, s.dilation_h, s.kernel_h, s.in_h);
  const TapRange columns = valid_taps(left, s.dilation_w, s.kernel_w, s.in_w);
  int count = (rows.end - rows.begin) * (columns.end - columns.begin);
  if (counted.counts_padding) {
    count = valid_taps(0, s.dilation_h, s.kernel_h, counted.end_h - top).end *
            valid_taps(0, s.dilation_w, s.kernel_w, counted.end_w - left).end;
  }
  const T* const pixel =
      x + image * s.in_image_stride + top * s.in_row_stride + left * s.in_pixel_stride + channel;
  const Pack<T, L> sum = pool_window<L>(s, pixel, rows, columns, pooling);
  epilogue(Lanes<L>{}, pooling.finish(sum, count), m, channel);
}

template <class T, class P, class E>
inline void pool2d(Queue& queue, const ConvShape& s, const T* x, const P& pooling, const PoolCount& counted,
                   const E& epilogue) {
  constexpr int L = E::kMaxLanes;
  const auto run = [&](auto lanes) {
    constexpr int kRun = decltype(lanes)::value;
    const std::ptrdiff_t threads = output_pixels(s) * (s.in_c / kRun);
    if (threads <= 0) return;
    launch_overlapping(queue, dim3(static_cast<unsigned>(ceil_div(threads, kPoolThreads))),
                       dim3(kPoolThreads), 0, pool_kernel<kRun, T, P, E>, s, x, pooling, counted, epilogue);
  };
  if constexpr (L > 1) {
    const bool is_strided = ((s.in_pixel_stride | s.in_row_stride | s.in_image_stride) % L) != 0;
    if (s.in_c % L == 0 && !is_strided && reinterpret_cast<std::uintptr_t>(x) % (L * sizeof(T)) == 0) {
      run(Lanes<L>{});
      return;
    }
  }
  run(Lanes<1>{});
}

// Max pooling over float, double or integers. out_c == in_c; groups is not read. The epilogue gets
// Pack<T, L>, m = index of the output pixel in (image, row, column) order and n = channel.
template <class T, class E>
inline void max_pool2d(Queue& queue, const ConvShape& s, const T* x, const E& epilogue) {
  pool2d(queue, s, x, MaxPooling{}, PoolCount{false, 0, 0}, epilogue);
}

// Average pooling over float or double. With count_include_pad the divisor counts padding, at the end up to
// pad_bottom and pad_right, but nothing that ceil_mode adds beyond.
template <class T, class E>
inline void average_pool2d(Queue& queue, const ConvShape& s, const T* x, bool count_include_pad,
                           int pad_bottom, int pad_right, const E& epilogue) {
  const PoolCount counted{count_include_pad, s.in_h + pad_bottom, s.in_w + pad_right};
  pool2d(queue, s, x, AveragePooling{}, counted, epilogue);
}

}  // namespace GCRT_NAMESPACE
