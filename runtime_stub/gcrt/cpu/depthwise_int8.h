// Depthwise 2-D convolution of 8-bit images with int16 weights, exact in int32, channels last: vectors along
// channels, several output pixels per step.
#pragma once

#include "gcrt/cpu/depthwise.h"

namespace GCRT_NAMESPACE {

// Values of x, or zero-extended weights, in int32 lanes. A product of the two is one multiply-add of int16
// pairs, since the upper half of the weight's lane is zero.
template <class V>
GCRT_INLINE Rebind<V, std::int32_t> widen_lanes(V value) {
  if constexpr (kLanesOf<V> == 1) {
    return static_cast<std::int32_t>(value);
  } else {
    return __builtin_convertvector(value, Rebind<V, std::int32_t>);
  }
}

template <class TX>
struct IntegerDepthwise {
  const ConvShape& shape;
  const TX* image;
  const std::int16_t* w;
  const std::int32_t* offsets;
  TX border;
};

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
      const V weight = widen_lanes(bit_cast<std::uint16_t>(load(Lanes<L>{}, w)));
      const TX* const tap =
          origin + (kh * s.dilation_h * s.in_row_stride + kw * s.dilation_w * s.in_pixel_stride);
      GCRT_UNROLL
      for (int p = 0; p < Pixels; ++p) {
        const int iw = x + p * s.stride_w + kw * s.dilation_w;
        V value;
        if (IsInside || (is_row && static_cast<unsigned>(iw) < static_cast<unsigned>(s.in_w))) {
          value = widen_lanes(load_channels(tap + p * s.stride_w * s.in_pixel_stride));
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

// One output row for one vector of channels.
template <bool IsMultiplied, int L, class TX, class E>
GCRT_NOINLINE void depthwise_integer_row(const IntegerDepthwise<TX>& d, std::ptrdiff_t channel, int oh,
                                         std::ptrdiff_t m, const E& epilogue) {
  constexpr int P = kDepthwisePixels;
  const ConvShape& s = d.shape;
  const ChannelLoad<IsMultiplied, L> load_channels(channel, s.out_c / s.in_c);
  const int y = oh * s.stride_h - s.pad_top;
  const bool is_inside = y >= 0 && y + (s.kernel_h - 1) * s.dilation_h < s.in_h;
  const TapRange inner = is_inside ? inner_columns(s) : TapRange{0, 0};
  int ow = 0;
  while (ow < s.out_w) {
    if (ow >= inner.begin && ow + P <= inner.end) {
      depthwise_integer_pixels<P, true, IsMultiplied, L>(d, channel, load_channels, oh, ow, m + ow, epilogue);
      ow += P;
    } else if (ow >= inner.begin && ow < inner.end) {
      depthwise_integer_pixels<1, true, IsMultiplied, L>(d, channel, load_channels, oh, ow, m + ow, epilogue);
      ++ow;
    } else {
      depthwise_integer_pixels<1, false, IsMultiplied, L>(d, channel, load_channels, oh, ow, m + ow,
                                                          epilogue);
      ++ow;
    }
  }
}

template <bool IsMultiplied, int L, class TX, class E>
GCRT_INLINE void depthwise_integer_channels(const IntegerDepthwise<TX>& d, int channel, int oh,
                                            std::ptrdiff_t m, const E& epilogue) {
  for (; channel + L <= d.shape.out_c; channel += L) {
    depthwise_integer_row<IsMultiplied, L>(d, channel, oh, m, epilogue);
  }
  if constexpr (L > 1) {
    if (channel < d.shape.out_c) {
      depthwise_integer_channels<IsMultiplied, L / 2>(d, channel, oh, m, epilogue);
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
  for (std::ptrdiff_t item = work_begin; item < work_end; ++item) {
    const std::ptrdiff_t image = item / s.out_h;
    const int oh = static_cast<int>(item - image * s.out_h);
    const IntegerDepthwise<TX> d{s, x + image * s.in_image_stride, w, offsets, border};
    if (s.out_c == s.in_c) {
      depthwise_integer_channels<false, kLanes>(d, 0, oh, item * s.out_w, epilogue);
    } else {
      depthwise_integer_channels<true, kLanes>(d, 0, oh, item * s.out_w, epilogue);
    }
  }
}

}  // namespace GCRT_NAMESPACE
