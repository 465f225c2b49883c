// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Depthwise 2-D convolution, channels last: a thread sums several output pixels of one row for four channels,
// neighbouring threads take neighbouring channels.
#pragma once

#include "gcrt/cuda/image/conv.h"

namespace GCRT_NAMESPACE {

constexpr int kDepthwiseThreads = 128;
constexpr int kDepthwisePixels = 4;
constexpr int kDepthwiseChannels = 4;

// The output pixels and channels of one thread.
struct DepthwisePlace {
  int image, row, column;  // of the first pixel
  int channel;
  int pixels;    // that exist
  int channels;  // that exist
};

// False for the threads behind the last one.
GCRT_INLINE bool depthwise_place(const ConvShape& s, DepthwisePlace& place) {
  const unsigned quads = static_cast<unsigned>((s.out_c + kDepthwiseChannels - 1) / kDepthwiseChannels);
  const int strips = (s.out_w + kDepthwisePixels - 1) / kDepthwisePixels;
  const unsigned index = blockIdx.x * kDepthwiseThreads + threadIdx.x;
  const int line = static_cast<int>(index / quads);  // strip of a row of an image
  const int rows = line / strips;
  place.channel = static_cast<int>(index % quads) * kDepthwiseChannels;
  place.column = (line - rows * strips) * kDepthwisePixels;
  place.image = rows / s.out_h;
  place.row = rows - place.image * s.out_h;
  const int columns_left = s.out_w - place.column;
  const int channels_left = s.out_c - place.channel;
  place.pixels = columns_left < kDepthwisePixels ? columns_left : kDepthwisePixels;
  place.channels = channels_left < kDepthwiseChannels ? channels_left : kDepthwiseChannels;
  return place.image < s.batch;
}

// Blocks of a launch over all output pixels and channels.
inline unsigned depthwise_blocks(const ConvShape& s) {
  const std::ptrdiff_t strips = ceil_div(s.out_w, kDepthwisePixels) * s.out_h * s.batch;
  return static_cast<unsigned>(ceil_div(strips * ceil_div(s.out_c, kDepthwiseChannels), kDepthwiseThreads));
}

// The values of channels first to first + valid - 1 as the type of the sums; each `multiplier` of them share
// one element. `is_run`: they may be read as one.
template <class Sum, class T>
GCRT_INLINE Pack<Sum, 4> read_channels(const T* p, int valid, bool is_run, int first, int multiplier) {
  Pack<Sum, 4> values = {};
  if (is_run && valid == 4) {
    const Pack<T, 4> run = load(Lanes<4>{}, p + first);
    GCRT_UNROLL
    for (int i = 0; i < 4; ++i) values[i] = static_cast<Sum>(run[i]);
  } else {
    GCRT_UNROLL
    for (int i = 0; i < 4; ++i) {
      if (i < valid) values[i] = static_cast<Sum>(p[(first + i) / multiplier]);
    }
  }
  return values;
}

// Which accesses may take four channels at once.
struct DepthwiseAccess {
  bool is_input_run;
  bool is_weight_run;
};

// Sums start at offsets[channel], if there are any; taps outside the image read `fill`. kKernel and kStride
// are those along the row, and dilation_w is 1, or kKernel is 0: not known.
template <int kKernel, int kStride, class Sum, class TX, class TW, class E>
GCRT_GLOBAL_BLOCKS(kDepthwiseThreads, 1)
void depthwise_kernel(ConvShape s, const TX* x, const TW* w, const Sum* offsets, TX fill,
                      DepthwiseAccess access, E epilogue) {
  await_previous_grid();
  using V = Pack<Sum, 4>;
  constexpr int kPixels = kDepthwisePixels;
  constexpr int kInputs = kKernel > 0 ? (kPixels - 1) * kStride + kKernel : kPixels;
  DepthwisePlace at;
  if (!depthwise_place(s, at)) return;
  const int multiplier = s.out_c / s.in_c;
  V sums[kPixels];
  GCRT_UNROLL
  for (int p = 0; p < kPixels; ++p) {
    GCRT_UNROLL
    for (int i = 0; i < 4; ++i) {
      sums[p][i] = offsets != nullptr && i < at.channels ? offsets[at.channel + i] : Sum{};
    }
  }
  const int top = at.row * s.stride_h - s.pad_top;
  const int left = at.column * s.stride_w - s.pad_left;
  const TX* const image = x + at.image * s.in_image_stride;
  const auto read_input = [&](const TX* line, bool is_row, int iw) GCRT_LAMBDA_INLINE {
    if (is_row && static_cast<unsigned>(iw) < static_cast<unsigned>(s.in_w)) {
      return read_channels<Sum>(line + iw * s.in_pixel_stride, at.channels, access.is_input_run, at.channel,
                                multiplier);
    }
    return splat(Lanes<4>{}, static_cast<Sum>(fill));
  };
  const auto read_weights = [&](int tap) GCRT_LAMBDA_INLINE {
    return read_channels<Sum>(w + std::ptrdiff_t{tap} * s.out_c, at.channels, access.is_weight_run,
                              at.channel, 1);
  };
  for (int kh = 0; kh < s.kernel_h; ++kh) {
    const int ih = top + kh * s.dilation_h;
    const bool is_row = static_cast<unsigned>(ih) < static_cast<unsigned>(s.in_h);
    const TX* const line = image + (is_row ? ih : 0) * s.in_row_stride;
    if constexpr (kKernel > 0) {
      V inputs[kInputs];
      GCRT_UNROLL
      for (int i = 0; i < kInputs; ++i) inputs[i] = read_input(line, is_row, left + i);
      GCRT_UNROLL
      for (int kw = 0; kw < kKernel; ++kw) {
        const V weight = read_weights(kh * kKernel + kw);
        GCRT_UNROLL
        for (int p = 0; p < kPixels; ++p) sums[p] = multiply_add(inputs[p * kStride + kw], weight, sums[p]);
      }
    } else {
      for (int kw = 0; kw < s.kernel_w; ++kw) {
        const V weight = read_weights(kh * s.kernel_w + kw);
        GCRT_UNROLL
        for (int p = 0; p < kPixels; ++p) {
          const V input = read_input(line, is_row, left + p * s.stride_w + kw * s.dilation_w);
          sums[p] = multiply_add(input, weight, sums[p]);
        }
      }
    }
  }
  const std::ptrdiff_t m = (std::ptrdiff_t{at.image} * s.out_h + at.row) * s.out_w + at.column;
  GCRT_UNROLL
  for (int p = 0; p < kPixels; ++p) {
    if (p < at.pixels) finish_pack(epilogue, sums[p], at.channels, m + p, at.channel);
  }
}

template <DepthwiseWindow kWindow, class Sum, class TX, class TW, class E>
inline void launch_depthwise(Queue& queue, const ConvShape& s, const TX* x, const TW* w, const Sum* offsets,
                             TX fill, const E& epilogue) {
  constexpr bool kIs3 = kWindow == DepthwiseWindow::k3 || kWindow == DepthwiseWindow::k3Stride2;
  constexpr int kKernel = kIs3 ? 3 : (kWindow == DepthwiseWindow::k5 ? 5 : 0);
  constexpr int kStride = kWindow == DepthwiseWindow::k3Stride2 ? 2 : 1;
  const auto fits = [](const auto* p) { return reinterpret_cast<std::uintptr_t>(p) % (4 * sizeof(*p)) == 0; };
  const bool is_strided = (s.in_pixel_stride | s.in_row_stride | s.in_image_stride) % 4 != 0;
  const DepthwiseAccess access{s.out_c == s.in_c && !is_strided && fits(x), s.out_c % 4 == 0 && fits(w)};
  if (output_pixels(s) <= 0) return;
  launch_overlapping(queue, dim3(depthwise_blocks(s)), dim3(kDepthwiseThreads), 0,
                     depthwise_kernel<kKernel, kStride, Sum, TX, TW, E>, s, x, w, offsets, fill, access,
                     epilogue);
}

// A depthwise convolution: groups == in_c, out_c a multiple of in_c, output channel c reads input channel
// c / (out_c / in_c). kWindow is depthwise_window(s), or kAny.
//   x  input, see ConvShape
//   w  [kernel_h * kernel_w][out_c]
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <DepthwiseWindow kWindow, class E>
inline void depthwise2d(Queue& queue, const ConvShape& s, const float* x, const float* w, const E& epilogue) {
  launch_depthwise<kWindow, float>(queue, s, x, w, nullptr, 0.0f, epilogue);
}

}  // namespace GCRT_NAMESPACE
