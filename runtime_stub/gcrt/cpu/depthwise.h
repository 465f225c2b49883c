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
constexpr int kDepthwiseRows = 4;

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
  int skip;  // leading lanes that another vector has handed over already
};

// Hands `Pixels` sums to the epilogue.
template <int Pixels, int L, class T, class E>
GCRT_INLINE void depthwise_finish(const DepthwiseRow<T>& row, const Pack<T, L> (&sum)[Pixels], int ow,
                                  const E& epilogue) {
  if (row.skip == 0) {
    GCRT_UNROLL
    for (int p = 0; p < Pixels; ++p) epilogue(Lanes<L>{}, sum[p], row.m + ow + p, row.channel);
    return;
  }
  alignas(64) T spilled[Pixels * L];
  GCRT_UNROLL
  for (int p = 0; p < Pixels; ++p) store(Lanes<L>{}, spilled + p * L, sum[p]);
  finish_block(spilled + row.skip, L, Pixels, L - row.skip, row.m + ow, row.channel + row.skip, epilogue);
}

// Adds one kernel row to the sums of `Pixels` output pixels. Each input vector is loaded once and used by
// every kernel column that reaches it. `in(i)` gives input pixel i counted from the first tap, `weight(kw)` a
// tap.
template <int Pixels, int KernelW, int StrideW, class V, class In>
GCRT_INLINE void depthwise_kernel_row(V (&sum)[Pixels], const In& in, const V (&weights)[KernelW]) {
  GCRT_UNROLL
  for (int i = 0; i < (Pixels - 1) * StrideW + KernelW; ++i) {
    const V value = in(i);
    GCRT_UNROLL
    for (int kw = 0; kw < KernelW; ++kw) {
      const int shift = i - kw;
      if (shift >= 0 && shift % StrideW == 0 && shift / StrideW < Pixels) {
        sum[shift / StrideW] = multiply_add(value, weights[kw], sum[shift / StrideW]);
      }
    }
  }
}

// Where the taps of a tile of output pixels lie.
enum class DepthwisePlace { inside, at_side, anywhere };

// `Pixels` output pixels of a square kernel. inside: no tap leaves the image. at_side: all kernel rows are
// inside; pixels left and right of the image count as zero. anywhere: kernel rows are clipped as well.
template <DepthwisePlace Place, int Pixels, int Kernel, int StrideW, int L, class T, class E>
GCRT_INLINE void depthwise_known(const DepthwiseRow<T>& row, const Pack<T, L> (&w)[Kernel][Kernel], int ow,
                                 const E& epilogue) {
  using V = Pack<T, L>;
  const ConvShape& s = row.shape;
  const std::ptrdiff_t pixel = s.in_pixel_stride;
  const std::ptrdiff_t step = s.dilation_h * s.in_row_stride;
  const T* const x = row.x + (ow * StrideW * pixel + row.channel);
  const int first = ow * StrideW - s.pad_left;
  V sum[Pixels];
  GCRT_UNROLL
  for (int p = 0; p < Pixels; ++p) sum[p] = V{};
  const auto add_row = [&](const T* line, const V(&weights)[Kernel]) GCRT_LAMBDA_INLINE {
    depthwise_kernel_row<Pixels, Kernel, StrideW>(
        sum,
        [&](int i) GCRT_LAMBDA_INLINE {
          if constexpr (Place != DepthwisePlace::inside) {
            if (static_cast<unsigned>(first + i) >= static_cast<unsigned>(s.in_w)) return V{};
          }
          return load(Lanes<L>{}, line + i * pixel);
        },
        weights);
  };
  if constexpr (Place == DepthwisePlace::anywhere) {
    for (int kh = row.rows.begin; kh < row.rows.end; ++kh) {
      V weights[Kernel];
      GCRT_UNROLL
      for (int kw = 0; kw < Kernel; ++kw) {
        weights[kw] = load(Lanes<L>{}, row.w + (kh * Kernel + kw) * std::ptrdiff_t{s.out_c});
      }
      add_row(x + kh * step, weights);
    }
  } else {
    GCRT_UNROLL
    for (int kh = 0; kh < Kernel; ++kh) add_row(x + kh * step, w[kh]);
  }
  depthwise_finish<Pixels, L>(row, sum, ow, epilogue);
}

// Output columns [ow, out_w), the largest tiles first.
template <DepthwisePlace Place, int Pixels, int Kernel, int StrideW, int L, class T, class E>
GCRT_INLINE void depthwise_rest(const DepthwiseRow<T>& row, const Pack<T, L> (&w)[Kernel][Kernel], int ow,
                                const E& epilogue) {
  for (; ow + Pixels <= row.shape.out_w; ow += Pixels) {
    depthwise_known<Place, Pixels, Kernel, StrideW, L>(row, w, ow, epilogue);
  }
  if constexpr (Pixels > 1) {
    if (ow < row.shape.out_w) depthwise_rest<Place, Pixels / 2, Kernel, StrideW, L>(row, w, ow, epilogue);
  }
}

// All output columns of a square kernel with known width and stride.
template <int Kernel, int StrideW, int L, class T, class E>
GCRT_INLINE void depthwise_known_row(const DepthwiseRow<T>& row, const Pack<T, L> (&w)[Kernel][Kernel],
                                     const TapRange& inner, const E& epilogue) {
  constexpr int P = kDepthwisePixels;
  if (row.rows.begin > 0 || row.rows.end < Kernel) {
    depthwise_rest<DepthwisePlace::anywhere, P, Kernel, StrideW, L>(row, w, 0, epilogue);
    return;
  }
  int ow = 0;
  if (inner.end >= 2 * P) {
    if (inner.begin > 0) {
      depthwise_known<DepthwisePlace::at_side, P, Kernel, StrideW, L>(row, w, 0, epilogue);
      ow = P;
    }
    for (; ow + P <= inner.end; ow += P) {
      depthwise_known<DepthwisePlace::inside, P, Kernel, StrideW, L>(row, w, ow, epilogue);
    }
  }
  depthwise_rest<DepthwisePlace::at_side, P, Kernel, StrideW, L>(row, w, ow, epilogue);
}

// Output columns [begin, end) of any kernel, `Pixels` at a time; the taps of all of them are columns of
// `taps`.
template <int Pixels, int L, class Load, class T, class E>
GCRT_INLINE void depthwise_any(const DepthwiseRow<T>& row, const Load& load_channels, const TapRange& taps,
                               int ow, const E& epilogue) {
  using V = Pack<T, L>;
  const ConvShape& s = row.shape;
  const std::ptrdiff_t step = s.stride_w * s.in_pixel_stride;
  V sum[Pixels];
  GCRT_UNROLL
  for (int p = 0; p < Pixels; ++p) sum[p] = V{};
  for (int kh = row.rows.begin; kh < row.rows.end; ++kh) {
    const T* const line = row.x + (kh * s.dilation_h * s.in_row_stride + ow * step);
    const T* const w = row.w + std::ptrdiff_t{kh} * s.kernel_w * s.out_c;
    for (int kw = taps.begin; kw < taps.end; ++kw) {
      const V weight = load(Lanes<L>{}, w + kw * std::ptrdiff_t{s.out_c});
      const T* const x = line + kw * s.dilation_w * s.in_pixel_stride;
      GCRT_UNROLL
      for (int p = 0; p < Pixels; ++p) sum[p] = multiply_add(load_channels(x + p * step), weight, sum[p]);
    }
  }
  depthwise_finish<Pixels, L>(row, sum, ow, epilogue);
}

template <int L, class Load, class T, class E>
GCRT_INLINE void depthwise_any_row(const DepthwiseRow<T>& row, const Load& load_channels,
                                   const TapRange& inner, const E& epilogue) {
  constexpr int P = kDepthwisePixels;
  const ConvShape& s = row.shape;
  int ow = 0;
  while (ow < s.out_w) {
    if (ow >= inner.begin && ow + P <= inner.end) {
      depthwise_any<P, L>(row, load_channels, {0, s.kernel_w}, ow, epilogue);
      ow += P;
    } else {
      const TapRange taps = valid_taps(ow * s.stride_w - s.pad_left, s.dilation_w, s.kernel_w, s.in_w);
      depthwise_any<1, L>(row, load_channels, taps, ow, epilogue);
      ++ow;
    }
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

// Output rows [row_begin, row_end) of one image for one vector of channels. Kernel is 0 if not known.
template <int Kernel, int StrideW, bool IsMultiplied, int L, class T, class E>
GCRT_NOINLINE void depthwise_channels(const ConvShape& s, const T* image, const T* w, std::ptrdiff_t channel,
                                      int skip, int b, int row_begin, int row_end, const E& epilogue) {
  const TapRange inner = inner_columns(s);
  DepthwiseRow<T> row{s, nullptr, w + channel, {0, 0}, 0, channel, skip};
  const auto start_row = [&](int oh) GCRT_LAMBDA_INLINE {
    const int y = oh * s.stride_h - s.pad_top;
    row.x = image + (y * s.in_row_stride - s.pad_left * s.in_pixel_stride);
    row.rows = valid_taps(y, s.dilation_h, s.kernel_h, s.in_h);
    row.m = (std::ptrdiff_t{b} * s.out_h + oh) * s.out_w;
  };
  if constexpr (Kernel != 0) {
    Pack<T, L> weights[Kernel][Kernel];
    GCRT_UNROLL
    for (int kh = 0; kh < Kernel; ++kh) {
      GCRT_UNROLL
      for (int kw = 0; kw < Kernel; ++kw) {
        weights[kh][kw] = load(Lanes<L>{}, row.w + (kh * Kernel + kw) * std::ptrdiff_t{s.out_c});
      }
    }
    for (int oh = row_begin; oh < row_end; ++oh) {
      start_row(oh);
      depthwise_known_row<Kernel, StrideW, L>(row, weights, inner, epilogue);
    }
  } else {
    const ChannelLoad<IsMultiplied, L> load_channels(channel, s.out_c / s.in_c);
    for (int oh = row_begin; oh < row_end; ++oh) {
      start_row(oh);
      depthwise_any_row<L>(row, load_channels, inner, epilogue);
    }
  }
}

// All channels. The last vector of channels overlaps the one before it and skips what that has done; with
// fewer channels than lanes, vectors are halved.
template <int Kernel, int StrideW, bool IsMultiplied, int L, class T, class E>
GCRT_INLINE void depthwise_rows(const ConvShape& s, const T* image, const T* w, int channel, int b,
                                int row_begin, int row_end, const E& epilogue) {
  for (; channel + L <= s.out_c; channel += L) {
    depthwise_channels<Kernel, StrideW, IsMultiplied, L>(s, image, w, channel, 0, b, row_begin, row_end,
                                                         epilogue);
  }
  if (channel == s.out_c) return;
  if (s.out_c >= L) {
    const int last = s.out_c - L;
    depthwise_channels<Kernel, StrideW, IsMultiplied, L>(s, image, w, last, channel - last, b, row_begin,
                                                         row_end, epilogue);
  } else if constexpr (L > 1) {
    depthwise_rows<0, 0, IsMultiplied, L / 2>(s, image, w, channel, b, row_begin, row_end, epilogue);
  }
}

inline std::ptrdiff_t depthwise2d_work_items(const ConvShape& s) { return std::ptrdiff_t{s.batch} * s.out_h; }

// Work items [work_begin, work_end) of a depthwise convolution with a square Kernel x Kernel window and
// stride StrideW along the row, dilation_w 1 and out_c == in_c; or of any other, with Kernel 0.
template <int Kernel, int StrideW, bool IsMultiplied, class T, class E>
inline void depthwise2d_fixed(const ConvShape& s, const T* x, const T* w, const E& epilogue,
                              std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  while (work_begin < work_end) {
    const int b = static_cast<int>(work_begin / s.out_h);
    const int row = static_cast<int>(work_begin - std::ptrdiff_t{b} * s.out_h);
    const int end =
        static_cast<int>(smaller(smaller(s.out_h, row + kDepthwiseRows), row + (work_end - work_begin)));
    depthwise_rows<Kernel, StrideW, IsMultiplied, kVectorLanes<T>>(s, x + b * s.in_image_stride, w, 0, b, row,
                                                                   end, epilogue);
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
  const int kernel = s.dilation_w == 1 && s.kernel_h == s.kernel_w ? s.kernel_w : 0;
  if (s.out_c != s.in_c) {
    depthwise2d_fixed<0, 0, true>(s, x, w, epilogue, work_begin, work_end);
  } else if (kernel == 3 && s.stride_w == 1) {
    depthwise2d_fixed<3, 1, false>(s, x, w, epilogue, work_begin, work_end);
  } else if (kernel == 3 && s.stride_w == 2) {
    depthwise2d_fixed<3, 2, false>(s, x, w, epilogue, work_begin, work_end);
  } else if (kernel == 5 && s.stride_w == 1) {
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
