// Depthwise 2-D convolution, channels last: vectors along channels, several output pixels per step.
//
// Each vector of channels is carried through a block of rows before the next one is taken, so that every
// input line is fetched once and then read from the first-level cache by all kernel rows. Inside the image,
// input vectors of neighbouring pixels are loaded once and used by all kernel columns; at the border the taps
// are clipped, pixel by pixel.
#pragma once

#include "gcrt/cpu/conv_shape.h"
#include "gcrt/cpu/tile.h"

namespace GCRT_NAMESPACE {

// Output pixels per step: as many as fill the latency of an FMA without spilling.
constexpr int kDepthwisePixels = GCRT_VECTOR_BYTES == 64 ? 8 : 4;
// Output rows through which one vector of channels is carried.
constexpr int kDepthwiseRows = 8;

// Input channels of L consecutive output channels, of which `multiplier` share one input channel.
template <bool IsMultiplied, int L>
struct ChannelLoad {
  GCRT_INLINE ChannelLoad(std::ptrdiff_t channel, int) : first(channel) {}
  template <class T>
  GCRT_INLINE Pack<T, L> operator()(const T* pixel) const {
    return load(Lanes<L>{}, pixel + first);
  }
  std::ptrdiff_t first;
};
template <int L>
struct ChannelLoad<true, L> {
  GCRT_INLINE ChannelLoad(std::ptrdiff_t channel, int multiplier) {
    for (int i = 0; i < L; ++i) index[i] = (channel + i) / multiplier;
  }
  template <class T>
  GCRT_INLINE Pack<T, L> operator()(const T* pixel) const {
    if constexpr (L == 1) {
      return pixel[index[0]];
    } else {
      return gather(Lanes<L>{}, pixel, load(Lanes<L>{}, index));
    }
  }
  std::int64_t index[L];
};

// One vector of channels of one output row.
template <class T>
struct DepthwiseRow {
  const ConvShape& shape;
  const T* x;  // input pixel of tap (0, 0) of output column 0; may lie outside the image
  const T* w;  // weights of the channels at tap (0, 0)
  TapRange rows;
  std::ptrdiff_t m;  // output pixel of column 0
  std::ptrdiff_t channel;
};

// `Pixels` output pixels whose kernel columns are all inside. KernelW and StrideW are 0 if not known.
template <int Pixels, int KernelW, int StrideW, int L, class Load, class T, class E>
GCRT_INLINE void depthwise_pixels(const DepthwiseRow<T>& row, const Load& load_channels, int ow,
                                  const E& epilogue) {
  using V = Pack<T, L>;
  const ConvShape& s = row.shape;
  const std::ptrdiff_t pixel = s.in_pixel_stride;
  const std::ptrdiff_t taps = s.out_c;
  V sum[Pixels];
  GCRT_UNROLL
  for (int p = 0; p < Pixels; ++p) sum[p] = V{};
  for (int kh = row.rows.begin; kh < row.rows.end; ++kh) {
    const T* const x = row.x + (kh * s.dilation_h * s.in_row_stride + ow * s.stride_w * pixel);
    const T* const w = row.w + std::ptrdiff_t{kh} * s.kernel_w * taps;
    if constexpr (KernelW != 0) {
      constexpr int kInputs = (Pixels - 1) * StrideW + KernelW;
      V in[kInputs];
      GCRT_UNROLL
      for (int i = 0; i < kInputs; ++i) in[i] = load_channels(x + i * pixel);
      GCRT_UNROLL
      for (int kw = 0; kw < KernelW; ++kw) {
        const V weight = load(Lanes<L>{}, w + kw * taps);
        GCRT_UNROLL
        for (int p = 0; p < Pixels; ++p) sum[p] = multiply_add(in[p * StrideW + kw], weight, sum[p]);
      }
    } else {
      for (int kw = 0; kw < s.kernel_w; ++kw) {
        const V weight = load(Lanes<L>{}, w + kw * taps);
        const T* const tap = x + kw * s.dilation_w * pixel;
        GCRT_UNROLL
        for (int p = 0; p < Pixels; ++p) {
          sum[p] = multiply_add(load_channels(tap + p * s.stride_w * pixel), weight, sum[p]);
        }
      }
    }
  }
  GCRT_UNROLL
  for (int p = 0; p < Pixels; ++p) epilogue(Lanes<L>{}, sum[p], row.m + ow + p, row.channel);
}

// Output columns [begin, end) whose taps are clipped at the left or right.
template <int L, class Load, class T, class E>
GCRT_INLINE void depthwise_edge(const DepthwiseRow<T>& row, const Load& load_channels, int begin, int end,
                                const E& epilogue) {
  using V = Pack<T, L>;
  const ConvShape& s = row.shape;
  for (int ow = begin; ow < end; ++ow) {
    const TapRange columns = valid_taps(ow * s.stride_w - s.pad_left, s.dilation_w, s.kernel_w, s.in_w);
    V sum = {};
    for (int kh = row.rows.begin; kh < row.rows.end; ++kh) {
      const T* const x = row.x + (kh * s.dilation_h * s.in_row_stride + ow * s.stride_w * s.in_pixel_stride);
      const T* const w = row.w + std::ptrdiff_t{kh} * s.kernel_w * s.out_c;
      for (int kw = columns.begin; kw < columns.end; ++kw) {
        sum = multiply_add(load_channels(x + kw * s.dilation_w * s.in_pixel_stride),
                           load(Lanes<L>{}, w + kw * std::ptrdiff_t{s.out_c}), sum);
      }
    }
    epilogue(Lanes<L>{}, sum, row.m + ow, row.channel);
  }
}

// Output columns whose taps are all inside: [begin, end).
GCRT_INLINE TapRange inner_columns(const ConvShape& s) {
  const int reach = (s.kernel_w - 1) * s.dilation_w;
  int begin = (s.pad_left + s.stride_w - 1) / s.stride_w;
  const int last = s.in_w - 1 - reach + s.pad_left;  // of ow * stride_w
  int end = last < 0 ? 0 : last / s.stride_w + 1;
  if (end > s.out_w) end = s.out_w;
  if (begin > end) begin = end;
  return {begin, end};
}

// Output rows [row_begin, row_end) of one image for one vector of channels.
template <int KernelW, int StrideW, bool IsMultiplied, int L, class T, class E>
GCRT_NOINLINE void depthwise_channels(const ConvShape& s, const T* image, const T* w, std::ptrdiff_t channel,
                                      int b, int row_begin, int row_end, const E& epilogue) {
  constexpr int P = kDepthwisePixels;
  const ChannelLoad<IsMultiplied, L> load_channels(channel, s.out_c / s.in_c);
  const TapRange inner = inner_columns(s);
  DepthwiseRow<T> row{s, nullptr, w + channel, {0, 0}, 0, channel};
  for (int oh = row_begin; oh < row_end; ++oh) {
    const int y = oh * s.stride_h - s.pad_top;
    row.x = image + (y * s.in_row_stride - s.pad_left * s.in_pixel_stride);
    row.rows = valid_taps(y, s.dilation_h, s.kernel_h, s.in_h);
    row.m = (std::ptrdiff_t{b} * s.out_h + oh) * s.out_w;
    depthwise_edge<L>(row, load_channels, 0, inner.begin, epilogue);
    int ow = inner.begin;
    for (; ow + P <= inner.end; ow += P) {
      depthwise_pixels<P, KernelW, StrideW, L>(row, load_channels, ow, epilogue);
    }
    if constexpr (P > 4) {
      if (ow + 4 <= inner.end) {
        depthwise_pixels<4, KernelW, StrideW, L>(row, load_channels, ow, epilogue);
        ow += 4;
      }
    }
    if (ow + 2 <= inner.end) {
      depthwise_pixels<2, KernelW, StrideW, L>(row, load_channels, ow, epilogue);
      ow += 2;
    }
    if (ow < inner.end) {
      depthwise_pixels<1, KernelW, StrideW, L>(row, load_channels, ow, epilogue);
      ++ow;
    }
    depthwise_edge<L>(row, load_channels, ow, s.out_w, epilogue);
  }
}

// Channels from `channel` on: full vectors, then halves down to one. The tail shares one kernel for all
// sizes.
template <int KernelW, int StrideW, bool IsMultiplied, int L, class T, class E>
GCRT_INLINE void depthwise_rows(const ConvShape& s, const T* image, const T* w, std::ptrdiff_t channel, int b,
                                int row_begin, int row_end, const E& epilogue) {
  for (; channel + L <= s.out_c; channel += L) {
    depthwise_channels<KernelW, StrideW, IsMultiplied, L>(s, image, w, channel, b, row_begin, row_end,
                                                          epilogue);
  }
  if constexpr (L > 1) {
    if (channel < s.out_c) {
      depthwise_rows<0, 0, IsMultiplied, L / 2>(s, image, w, channel, b, row_begin, row_end, epilogue);
    }
  }
}

inline std::ptrdiff_t depthwise2d_work_items(const ConvShape& s) { return std::ptrdiff_t{s.batch} * s.out_h; }

// Work items [work_begin, work_end) of a depthwise convolution whose kernel width and stride are known (0:
// any). KernelW and StrideW other than 0 require dilation_w 1 and out_c == in_c.
template <int KernelW, int StrideW, bool IsMultiplied, class T, class E>
inline void depthwise2d_fixed(const ConvShape& s, const T* x, const T* w, const E& epilogue,
                              std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  while (work_begin < work_end) {
    const int b = static_cast<int>(work_begin / s.out_h);
    const int row = static_cast<int>(work_begin - std::ptrdiff_t{b} * s.out_h);
    const int end =
        static_cast<int>(smaller(smaller(s.out_h, row + kDepthwiseRows), row + (work_end - work_begin)));
    depthwise_rows<KernelW, StrideW, IsMultiplied, kVectorLanes<T>>(s, x + b * s.in_image_stride, w, 0, b,
                                                                    row, end, epilogue);
    work_begin += end - row;
  }
}

// Work items [work_begin, work_end) of a depthwise convolution: groups == in_c, out_c a multiple of in_c,
// output channel c reads input channel c / (out_c / in_c).
//   x  input, see ConvShape
//   w  [kernel_h * kernel_w][out_c]
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <class T, class E>
inline void depthwise2d(const ConvShape& s, const T* x, const T* w, const E& epilogue,
                        std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  if (s.out_c != s.in_c) {
    depthwise2d_fixed<0, 0, true>(s, x, w, epilogue, work_begin, work_end);
  } else if (s.dilation_w == 1 && s.kernel_w == 3 && s.stride_w == 1) {
    depthwise2d_fixed<3, 1, false>(s, x, w, epilogue, work_begin, work_end);
  } else if (s.dilation_w == 1 && s.kernel_w == 3 && s.stride_w == 2) {
    depthwise2d_fixed<3, 2, false>(s, x, w, epilogue, work_begin, work_end);
  } else if (s.dilation_w == 1 && s.kernel_w == 5 && s.stride_w == 1) {
    depthwise2d_fixed<5, 1, false>(s, x, w, epilogue, work_begin, work_end);
  } else {
    depthwise2d_fixed<0, 0, false>(s, x, w, epilogue, work_begin, work_end);
  }
}

// The whole convolution.
template <class T, class E>
inline void depthwise2d(const ConvShape& s, const T* x, const T* w, const E& epilogue) {
  depthwise2d(s, x, w, epilogue, 0, depthwise2d_work_items(s));
}

}  // namespace GCRT_NAMESPACE
