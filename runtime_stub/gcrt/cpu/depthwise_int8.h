// Depthwise 2-D convolution of 8-bit images with int16 weights, exact in int32, channels last: vectors along
// channels, several output pixels per step.
#pragma once

#include "gcrt/cpu/depthwise.h"

namespace GCRT_NAMESPACE {

template <class TX>
struct IntegerDepthwise {
  const ConvShape& shape;
  const TX* image;
  const std::int16_t* w;
  const std::int32_t* offsets;
  TX border;
};

// Weights zero-extended to int32 lanes: since the upper half is zero, a multiply-add of int16 pairs is one
// product.
template <int L>
GCRT_INLINE Pack<std::int32_t, L> widen_weights(const std::int16_t* w) {
  return convert<std::int32_t>(bit_cast<std::uint16_t>(load(Lanes<L>{}, w)));
}

// `Pixels` output pixels of row `oh` from column `ow` on, for one vector of channels.
template <int Pixels, bool IsInside, bool IsMultiplied, int L, class TX, class E>
GCRT_INLINE void depthwise_integer_pixels(const IntegerDepthwise<TX>& d, std::ptrdiff_t channel,
                                          const ChannelLoad<IsMultiplied, L>& load_channels, int oh, int ow,
                                          std::ptrdiff_t m, const E& epilogue) {
  using V = Pack<std::int32_t, L>;
  const ConvShape& s = d.shape;
  V sum[Pixels];
  GCRT_UNROLL
  for (int p = 0; p < Pixels; ++p) sum[p] = load(Lanes<L>{}, d.offsets + channel);
  const int y = oh * s.stride_h - s.pad_top;
  const int x = ow * s.stride_w - s.pad_left;
  const std::int16_t* w = d.w + channel;
  const TX* const origin = d.image + (y * s.in_row_stride + x * s.in_pixel_stride);
  for (int kh = 0; kh < s.kernel_h; ++kh) {
    const int ih = y + kh * s.dilation_h;
    const bool is_row = IsInside || static_cast<unsigned>(ih) < static_cast<unsigned>(s.in_h);
    for (int kw = 0; kw < s.kernel_w; ++kw, w += s.out_c) {
      const V weight = widen_weights<L>(w);
      const TX* const tap =
          origin + (kh * s.dilation_h * s.in_row_stride + kw * s.dilation_w * s.in_pixel_stride);
      GCRT_UNROLL
      for (int p = 0; p < Pixels; ++p) {
        const int iw = x + p * s.stride_w + kw * s.dilation_w;
        V value;
        if (IsInside || (is_row && static_cast<unsigned>(iw) < static_cast<unsigned>(s.in_w))) {
          value = convert<std::int32_t>(load_channels(tap + p * s.stride_w * s.in_pixel_stride));
        } else {
          value = splat(Lanes<L>{}, static_cast<std::int32_t>(d.border));
        }
        sum[p] = madd_s16(sum[p], value, weight);
      }
    }
  }
  GCRT_UNROLL
  for (int p = 0; p < Pixels; ++p) epilogue(Lanes<L>{}, sum[p], m + p, channel);
}

// `Pixels` output pixels of a square kernel without dilation along the row. Each input vector is widened once
// and used by every kernel column that reaches it.
template <int Pixels, bool IsInside, int Kernel, int StrideW, int L, class TX, class E>
GCRT_INLINE void depthwise_integer_known(const IntegerDepthwise<TX>& d, std::ptrdiff_t channel,
                                         const Pack<std::int32_t, L> (&weights)[Kernel][Kernel], int oh,
                                         int ow, std::ptrdiff_t m, const E& epilogue) {
  using V = Pack<std::int32_t, L>;
  const ConvShape& s = d.shape;
  const int y = oh * s.stride_h - s.pad_top;
  const int x = ow * StrideW - s.pad_left;
  const std::ptrdiff_t pixel = s.in_pixel_stride;
  const TX* line = d.image + (y * s.in_row_stride + x * pixel + channel);
  V sum[Pixels];
  GCRT_UNROLL
  for (int p = 0; p < Pixels; ++p) sum[p] = load(Lanes<L>{}, d.offsets + channel);
  GCRT_UNROLL
  for (int kh = 0; kh < Kernel; ++kh) {
    const int ih = y + kh * s.dilation_h;
    const bool is_row = IsInside || static_cast<unsigned>(ih) < static_cast<unsigned>(s.in_h);
    GCRT_UNROLL
    for (int i = 0; i < (Pixels - 1) * StrideW + Kernel; ++i) {
      V value;
      if (IsInside || (is_row && static_cast<unsigned>(x + i) < static_cast<unsigned>(s.in_w))) {
        value = convert<std::int32_t>(load(Lanes<L>{}, line + i * pixel));
      } else {
        value = splat(Lanes<L>{}, static_cast<std::int32_t>(d.border));
      }
      GCRT_UNROLL
      for (int kw = 0; kw < Kernel; ++kw) {
        const int shift = i - kw;
        if (shift >= 0 && shift % StrideW == 0 && shift / StrideW < Pixels) {
          V& target = sum[shift / StrideW];
          target = madd_s16(target, value, weights[kh][kw]);
          if constexpr (sizeof(V) <= GCRT_NATIVE_BYTES) GCRT_KEEP_IN_REGISTER(target);
        }
      }
    }
    line += s.dilation_h * s.in_row_stride;
  }
  GCRT_UNROLL
  for (int p = 0; p < Pixels; ++p) epilogue(Lanes<L>{}, sum[p], m + p, channel);
}

// Calls tile(Lanes<pixels>{}, is_inside, ow) over the output columns of row `oh`.
template <int Pixels, class F>
GCRT_INLINE void for_each_depthwise_tile(const ConvShape& s, int oh, const F& tile) {
  const int y = oh * s.stride_h - s.pad_top;
  const bool is_inside = y >= 0 && y + (s.kernel_h - 1) * s.dilation_h < s.in_h;
  const TapRange inner = is_inside ? inner_columns(s) : TapRange{0, 0};
  int ow = 0;
  while (ow < s.out_w) {
    const bool is_inner = ow >= inner.begin && ow < inner.end;
    if (is_inner && ow + Pixels <= inner.end) {
      tile(Lanes<Pixels>{}, std::true_type{}, ow);
      ow += Pixels;
    } else if (ow + Pixels / 2 <= s.out_w && (!is_inner || ow + Pixels / 2 > inner.end)) {
      tile(Lanes<Pixels / 2>{}, std::false_type{}, ow);
      ow += Pixels / 2;
    } else {
      tile(Lanes<1>{}, std::false_type{}, ow);
      ++ow;
    }
  }
}

// One output row for one vector of channels. Kernel is 0 if not known.
template <int Kernel, int StrideW, bool IsMultiplied, int L, class TX, class E>
GCRT_NOINLINE void depthwise_integer_row(const IntegerDepthwise<TX>& d, std::ptrdiff_t channel, int oh,
                                         std::ptrdiff_t m, const E& epilogue) {
  const ConvShape& s = d.shape;
  if constexpr (Kernel != 0) {
    Pack<std::int32_t, L> weights[Kernel][Kernel];
    GCRT_UNROLL
    for (int kh = 0; kh < Kernel; ++kh) {
      GCRT_UNROLL
      for (int kw = 0; kw < Kernel; ++kw) {
        weights[kh][kw] = widen_weights<L>(d.w + channel + (kh * Kernel + kw) * std::ptrdiff_t{s.out_c});
      }
    }
    for_each_depthwise_tile<kDepthwisePixels>(
        s, oh, [&](auto pixels, auto is_inside, int ow) GCRT_LAMBDA_INLINE {
          depthwise_integer_known<pixels.value, is_inside.value, Kernel, StrideW, L>(d, channel, weights, oh,
                                                                                     ow, m + ow, epilogue);
        });
  } else {
    const ChannelLoad<IsMultiplied, L> load_channels(channel, s.out_c / s.in_c);
    for_each_depthwise_tile<kDepthwisePixels>(
        s, oh, [&](auto pixels, auto is_inside, int ow) GCRT_LAMBDA_INLINE {
          depthwise_integer_pixels<pixels.value, is_inside.value, IsMultiplied, L>(d, channel, load_channels,
                                                                                   oh, ow, m + ow, epilogue);
        });
  }
}

template <int Kernel, int StrideW, bool IsMultiplied, int L, class TX, class E>
GCRT_INLINE void depthwise_integer_channels(const IntegerDepthwise<TX>& d, int channel, int oh,
                                            std::ptrdiff_t m, const E& epilogue) {
  for (; channel + L <= d.shape.out_c; channel += L) {
    depthwise_integer_row<Kernel, StrideW, IsMultiplied, L>(d, channel, oh, m, epilogue);
  }
  if constexpr (L > 1) {
    if (channel < d.shape.out_c) {
      depthwise_integer_channels<0, 0, IsMultiplied, L / 2>(d, channel, oh, m, epilogue);
    }
  }
}

inline std::ptrdiff_t depthwise2d_integer_work_items(const ConvShape& s) {
  return std::ptrdiff_t{s.batch} * s.out_h;
}

// Work items [work_begin, work_end) of a depthwise convolution: groups == in_c, out_c a multiple of in_c,
// output channel c reads input channel c / (out_c / in_c).
//   x        input, uint8_t or int8_t, see ConvShape
//   w        [kernel_h * kernel_w][out_c]
//   offsets  [out_c], minus the zero point of x times the sum of the weights
//   border   the zero point of x
// The epilogue gets Pack<int32_t, L> of offsets + sum of x * w at m = output pixel and n = output channel.
template <class TX, class E>
inline void depthwise2d_integer(const ConvShape& s, const TX* x, const std::int16_t* w,
                                const std::int32_t* offsets, TX border, const E& epilogue,
                                std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  const int kernel = s.dilation_w == 1 && s.kernel_h == s.kernel_w ? s.kernel_w : 0;
  for (std::ptrdiff_t item = work_begin; item < work_end; ++item) {
    const std::ptrdiff_t image = item / s.out_h;
    const int oh = static_cast<int>(item - image * s.out_h);
    const std::ptrdiff_t m = item * s.out_w;
    const IntegerDepthwise<TX> d{s, x + image * s.in_image_stride, w, offsets, border};
    if (s.out_c != s.in_c) {
      depthwise_integer_channels<0, 0, true, kLanes>(d, 0, oh, m, epilogue);
    } else if (kernel == 3 && s.stride_w == 1) {
      depthwise_integer_channels<3, 1, false, kLanes>(d, 0, oh, m, epilogue);
    } else if (kernel == 3 && s.stride_w == 2) {
      depthwise_integer_channels<3, 2, false, kLanes>(d, 0, oh, m, epilogue);
    } else if (kernel == 5 && s.stride_w == 1) {
      depthwise_integer_channels<5, 1, false, kLanes>(d, 0, oh, m, epilogue);
    } else {
      depthwise_integer_channels<0, 0, false, kLanes>(d, 0, oh, m, epilogue);
    }
  }
}

}  // namespace GCRT_NAMESPACE
