// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Depthwise 2-D convolution, channels last: vectors along channels, several output pixels per step.
//
// Square kernels go through the channels of a tile of neighbouring output pixels before the next tile: memory
// is read as it lies, rows of the image come from the second cache for the kernel rows that follow, and
// weights from the first. An input vector is loaded once and used by all kernel columns, and all kernel rows,
// that reach the tile; pixels beside the image count as zero, or as the zero point where integers have one.
//
// Other kernels carry a vector of channels through a block of rows, and clip taps at the border.
//
// The driver is written over a policy Dot (dot.h), of which it takes what concerns channels:
// depthwise_int8.h is the same with integer operands.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cpu/image/places.h"
#include "gcrt/cpu/product/tile.h"
#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

// Output pixels of a row per step: as many as fill the latency of an FMA without spilling.
constexpr int kDepthwisePixels = GCRT_VECTOR_BYTES == 64 ? 8 : 4;
// Output rows of a tile of square kernels, where strides let them share rows of the image: as many as leave
// registers for the weights of a kernel row each.
template <int Kernel>
constexpr int kDepthwiseTileRows = Kernel <= 5 ? 2 : 1;
// Output rows through which one vector of channels is carried by kernels that are not square.
constexpr int kDepthwiseRows = 4;

// What is known of the channels: those that fill a vector of any machine, fewer, or several output channels
// for each input channel.
enum class DepthwiseChannels { many, few, multiplied };
constexpr int kManyChannels = 16;

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

// What is multiplied: see depthwise2d and depthwise2d_integer.
template <class Dot>
struct DepthwiseOperands {
  const typename Dot::Left* x;
  const typename Dot::Right* w;
  const typename Dot::Sum* offsets;
  typename Dot::Left border;  // what taps outside the image read, unless they are skipped
};

// One vector of channels of one output row.
template <class Dot>
struct DepthwiseRow {
  using Left = typename Dot::Left;
  template <int L>
  using Vector = Pack<typename Dot::Sum, L>;

  ConvShape shape;
  const Left* x;  // input pixel of tap (0, 0) of output column 0; may lie outside the image
  const typename Dot::Right* w;
  const typename Dot::Sum* offsets;
  Left border;
  TapRange rows;     // kernel rows inside the image
  std::ptrdiff_t m;  // output pixel of column 0
  std::ptrdiff_t channel;
  int skip;  // leading lanes that another vector has handed over already

  DepthwiseRow(const ConvShape& s, const DepthwiseOperands<Dot>& image, int b, int oh)
      : shape(s), w(image.w), offsets(image.offsets), border(image.border), channel(0), skip(0) {
    const int y = oh * s.stride_h - s.pad_top;
    x = image.x + (y * s.in_row_stride - s.pad_left * s.in_pixel_stride);
    rows = valid_taps(y, s.dilation_h, s.kernel_h, s.in_h);
    m = (std::ptrdiff_t{b} * s.out_h + oh) * s.out_w;
  }
  // The same for other channels.
  GCRT_INLINE DepthwiseRow at(std::ptrdiff_t first, int skipped) const {
    DepthwiseRow row = *this;
    row.channel = first;
    row.skip = skipped;
    return row;
  }

  template <int L>
  GCRT_INLINE Vector<L> start() const {
    if constexpr (Dot::kHasOffsets) {
      return load(Lanes<L>{}, offsets + channel);
    } else {
      return Vector<L>{};
    }
  }
  // The weights of kernel position `tap`, and of those behind it.
  GCRT_INLINE Places<typename Dot::Right> weights_from(int tap) const {
    return {w + (tap * std::ptrdiff_t{shape.out_c} + channel), shape.out_c};
  }
  // What a pixel outside the image counts as.
  template <int L>
  GCRT_INLINE typename Dot::template ChannelFactor<L> outside() const {
    using T = ElementOf<typename Dot::template ChannelFactor<L>>;
    if constexpr (Dot::kSkipsBorder) {
      return splat(Lanes<L>{}, T{});
    } else {
      return splat(Lanes<L>{}, static_cast<T>(Dot::channel_border(border)));
    }
  }
  // Kernel rows that are summed, and whether one of them lies inside the image.
  GCRT_INLINE TapRange summed_rows() const { return Dot::kSkipsBorder ? rows : TapRange{0, shape.kernel_h}; }
  GCRT_INLINE bool has_row(int kh) const { return Dot::kSkipsBorder || (kh >= rows.begin && kh < rows.end); }
};

// Hands the sums of `count` output pixels from m on to the epilogue: all of them, or all but the last.
template <int Pixels, int L, class Dot, class E>
GCRT_INLINE void depthwise_finish(const DepthwiseRow<Dot>& row,
                                  const Pack<typename Dot::Sum, L> (&sum)[Pixels], std::ptrdiff_t m,
                                  int count, const E& epilogue) {
  if (row.skip == 0) {
    GCRT_UNROLL
    for (int p = 0; p < Pixels; ++p) {
      if (p + 1 < Pixels || count == Pixels) epilogue(Lanes<L>{}, sum[p], m + p, row.channel);
    }
    return;
  }
  alignas(64) typename Dot::Sum spilled[Pixels * L];
  GCRT_UNROLL
  for (int p = 0; p < Pixels; ++p) store(Lanes<L>{}, spilled + p * L, sum[p]);
  finish_block(spilled + row.skip, L, count, L - row.skip, m, row.channel + row.skip, epilogue);
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

// Where the taps of a tile of output pixels lie.
enum class DepthwisePlace { inside, at_side, anywhere };
// What serves the sides of an image for so many rows.
template <int Rows>
constexpr DepthwisePlace kDepthwiseSide = Rows > 1 ? DepthwisePlace::at_side : DepthwisePlace::anywhere;

// `Pixels` output pixels of `Rows` rows of a square kernel. inside: no tap leaves the image. at_side: all
// kernel rows are inside; pixels left and right of the image count as outside(). anywhere: kernel rows leave
// the image as well, and Rows is 1. With several rows, all strides are StrideW, and the dilation is 1.
template <DepthwisePlace Place, int Rows, int Pixels, int Kernel, int StrideW, int L, class Dot, class E>
GCRT_INLINE void depthwise_pixels(const DepthwiseRow<Dot>& row, int ow, int count, const E& epilogue) {
  using V = Pack<typename Dot::Sum, L>;
  using W = typename Dot::template ChannelFactor<L>;
  const ConvShape& s = row.shape;
  const std::ptrdiff_t pixel = s.in_pixel_stride;
  const std::ptrdiff_t step = s.dilation_h * s.in_row_stride;
  const typename Dot::Left* const x = row.x + (ow * StrideW * pixel + row.channel);
  const int first = ow * StrideW - s.pad_left;
  V sum[Rows][Pixels];
  GCRT_UNROLL
  for (int r = 0; r < Rows; ++r) {
    GCRT_UNROLL
    for (int p = 0; p < Pixels; ++p) sum[r][p] = row.template start<L>();
  }
  // Input row `ih`, counted from the first tap, for the rows [Begin, End) of the tile.
  const auto add_row = [&](auto begin_row, auto end_row, int ih, bool is_row) GCRT_LAMBDA_INLINE {
    constexpr int Begin = decltype(begin_row)::value, End = decltype(end_row)::value;
    W weights[Rows][Kernel];
    GCRT_UNROLL
    for (int r = Begin; r < End; ++r) {
      auto taps = row.weights_from((ih - r * StrideW) * Kernel);
      GCRT_UNROLL
      for (int kw = 0; kw < Kernel; ++kw) {
        if (kw > 0 && kw % taps.kGroup == 0) taps.skip(taps.kGroup);
        weights[r][kw] = Dot::channel_weights(load(Lanes<L>{}, taps[kw % taps.kGroup]));
      }
    }
    Places<typename Dot::Left> line(x + ih * step, pixel);
    GCRT_UNROLL
    for (int i = 0; i < (Pixels - 1) * StrideW + Kernel; ++i) {
      if (i > 0 && i % line.kGroup == 0) line.skip(line.kGroup);
      const bool is_outside = Place != DepthwisePlace::inside &&
                              (!is_row || static_cast<unsigned>(first + i) >= static_cast<unsigned>(s.in_w));
      const W value = is_outside ? row.template outside<L>()
                                 : Dot::channel_values(load(Lanes<L>{}, line[i % line.kGroup]));
      GCRT_UNROLL
      for (int r = Begin; r < End; ++r) {
        GCRT_UNROLL
        for (int kw = 0; kw < Kernel; ++kw) {
          const int shift = i - kw;
          if (shift >= 0 && shift % StrideW == 0 && shift / StrideW < Pixels) {
            Dot::multiply_add(sum[r][shift / StrideW], value, weights[r][kw]);
          }
        }
      }
    }
  };
  constexpr Lanes<0> kFirst{};
  constexpr Lanes<1> kSecond{};
  constexpr Lanes<Rows> kEnd{};
  if constexpr (Rows > 1) {
    // Input rows that the first row of the tile reaches alone, those of both, and those of the second alone.
    GCRT_UNROLL
    for (int ih = 0; ih < StrideW; ++ih) add_row(kFirst, kSecond, ih, true);
    GCRT_UNROLL
    for (int ih = StrideW; ih < Kernel; ++ih) add_row(kFirst, kEnd, ih, true);
    GCRT_UNROLL
    for (int ih = Kernel; ih < Kernel + StrideW; ++ih) add_row(kSecond, kEnd, ih, true);
  } else {
    const bool is_inside = Place == DepthwisePlace::inside;
    const TapRange rows = is_inside ? TapRange{0, Kernel} : row.summed_rows();
    for (int kh = rows.begin; kh < rows.end; ++kh) add_row(kFirst, kEnd, kh, is_inside || row.has_row(kh));
  }
  GCRT_UNROLL
  for (int r = 0; r < Rows; ++r) {
    depthwise_finish<Pixels, L>(row, sum[r], row.m + std::ptrdiff_t{r} * s.out_w + ow, count, epilogue);
  }
}

// Output columns [ow, end) in tiles, of channels from row.channel on, the first row.skip of which are handed
// over already; the last vector overlaps the one before it and skips what that has done. Returns the first
// column that is left: a tile may have one pixel more than there are columns, but where all is inside.
template <DepthwisePlace Place, int Rows, int Pixels, int Kernel, int StrideW, int L, class Dot, class E>
GCRT_NOINLINE GCRT_LEAVE_CONSTANTS int depthwise_tiles(const DepthwiseRow<Dot>& given_row, int ow, int end,
                                                       const E& given) {
  constexpr bool kIsInside = Place == DepthwisePlace::inside;
  const E epilogue = given;  // a copy, as in finish_block
  const DepthwiseRow<Dot> row = given_row;
  const int begin = ow;
  const std::ptrdiff_t last = row.shape.out_c - L;
  while (ow + Pixels <= end + (kIsInside ? 0 : 1)) {
    const int count = kIsInside ? Pixels : static_cast<int>(smaller(Pixels, end - ow));
    std::ptrdiff_t channel = row.channel;
    int skip = row.skip;
    do {
      depthwise_pixels<Place, Rows, Pixels, Kernel, StrideW, L>(row.at(channel, kIsInside ? 0 : skip), ow,
                                                                count, epilogue);
      channel += L;
      if (!kIsInside && channel > last) {
        skip = static_cast<int>(channel - last);
        channel = last;
      }
    } while (kIsInside ? channel <= last : skip < L);
    ow += count;
  }
  if constexpr (kIsInside) {
    const int done = row.shape.out_c % L;
    if (done > 0) {  // the last vector, in code that is there for the sides of the image
      depthwise_tiles<kDepthwiseSide<Rows>, Rows, Pixels, Kernel, StrideW, L>(row.at(last, L - done), begin,
                                                                              ow, epilogue);
    }
  }
  return ow;
}

// Output columns [ow, out_w), the largest tiles first.
template <DepthwisePlace Place, int Rows, int Pixels, int Kernel, int StrideW, int L, class Dot, class E>
GCRT_INLINE void depthwise_rest(const DepthwiseRow<Dot>& row, int ow, const E& epilogue) {
  const int end = row.shape.out_w;
  if (ow + Pixels <= end + 1) {
    ow = depthwise_tiles<Place, Rows, Pixels, Kernel, StrideW, L>(row, ow, end, epilogue);
  }
  if constexpr (Pixels > 2) {
    if (ow < end) depthwise_rest<Place, Rows, Pixels / 2, Kernel, StrideW, L>(row, ow, epilogue);
  }
}

// All output columns of `Rows` rows whose kernel rows are all inside.
template <int Rows, int Kernel, int StrideW, int L, class Dot, class E>
GCRT_INLINE void depthwise_inner_rows(const DepthwiseRow<Dot>& row, const TapRange& inner,
                                      const E& epilogue) {
  constexpr int P = kDepthwisePixels;
  constexpr DepthwisePlace kSide = kDepthwiseSide<Rows>;
  int ow = 0;
  if (inner.end >= 2 * P) {
    if (inner.begin > 0) ow = depthwise_tiles<kSide, Rows, P, Kernel, StrideW, L>(row, 0, P, epilogue);
    ow = depthwise_tiles<DepthwisePlace::inside, Rows, P, Kernel, StrideW, L>(row, ow, inner.end, epilogue);
  }
  depthwise_rest<kSide, Rows, P, Kernel, StrideW, L>(row, ow, epilogue);
}

// Output rows [row_begin, row_end) of a square kernel with known width and stride.
template <int Kernel, int StrideW, int L, class Dot, class E>
GCRT_INLINE void depthwise_known_rows(const ConvShape& s, const DepthwiseOperands<Dot>& image, int b,
                                      int row_begin, int row_end, const E& epilogue) {
  constexpr int R = kDepthwiseTileRows<Kernel>;
  const TapRange inner = inner_columns(s);
  const bool shares_rows = s.stride_h == StrideW && s.dilation_h == 1;
  for (int oh = row_begin; oh < row_end;) {
    const DepthwiseRow<Dot> row(s, image, b, oh);
    const int last = oh + R - 1;
    const bool is_inside = row.rows.begin == 0 && row.rows.end == Kernel &&
                           (R == 1 || last * s.stride_h - s.pad_top + Kernel <= s.in_h);
    if (is_inside && (R == 1 || (shares_rows && last < row_end))) {
      depthwise_inner_rows<R, Kernel, StrideW, L>(row, inner, epilogue);
      oh = last + 1;
    } else {
      depthwise_rest<DepthwisePlace::anywhere, 1, kDepthwisePixels, Kernel, StrideW, L>(row, 0, epilogue);
      ++oh;
    }
  }
}

// Output columns from `ow` on of any kernel, `Pixels` at a time; kernel columns `taps` of all of them lie
// inside the image, and the others add nothing or read what is outside.
template <int Pixels, int L, class Load, class Dot, class E>
GCRT_INLINE void depthwise_any(const DepthwiseRow<Dot>& row, const Load& load_channels, const TapRange& taps,
                               int ow, const E& epilogue) {
  using V = Pack<typename Dot::Sum, L>;
  const ConvShape& s = row.shape;
  const std::ptrdiff_t step = s.stride_w * s.in_pixel_stride;
  const TapRange rows = row.summed_rows();
  const TapRange columns = Dot::kSkipsBorder ? taps : TapRange{0, s.kernel_w};
  V sum[Pixels];
  GCRT_UNROLL
  for (int p = 0; p < Pixels; ++p) sum[p] = row.template start<L>();
  for (int kh = rows.begin; kh < rows.end; ++kh) {
    const typename Dot::Left* const line = row.x + (kh * s.dilation_h * s.in_row_stride + ow * step);
    const bool is_row = row.has_row(kh);
    for (int kw = columns.begin; kw < columns.end; ++kw) {
      const auto weight = Dot::channel_weights(load(Lanes<L>{}, row.weights_from(kh * s.kernel_w + kw).base));
      const bool is_inside = Dot::kSkipsBorder || (is_row && kw >= taps.begin && kw < taps.end);
      const typename Dot::Left* const x = line + kw * s.dilation_w * s.in_pixel_stride;
      GCRT_UNROLL
      for (int p = 0; p < Pixels; ++p) {
        const auto value =
            is_inside ? Dot::channel_values(load_channels(x + p * step)) : row.template outside<L>();
        Dot::multiply_add(sum[p], value, weight);
      }
    }
  }
  depthwise_finish<Pixels, L>(row, sum, row.m + ow, Pixels, epilogue);
}

template <int L, class Load, class Dot, class E>
GCRT_INLINE void depthwise_any_row(const DepthwiseRow<Dot>& row, const Load& load_channels,
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

// Output rows [row_begin, row_end) of one image for one vector of channels of any kernel.
template <bool IsMultiplied, int L, class Dot, class E>
GCRT_NOINLINE void depthwise_channels(const ConvShape& s, const DepthwiseOperands<Dot>& image,
                                      std::ptrdiff_t channel, int skip, int b, int row_begin, int row_end,
                                      const E& epilogue) {
  const TapRange inner = inner_columns(s);
  const ChannelLoad<IsMultiplied, L> load_channels(channel, s.out_c / s.in_c);
  for (int oh = row_begin; oh < row_end; ++oh) {
    const DepthwiseRow<Dot> row = DepthwiseRow<Dot>(s, image, b, oh).at(channel, skip);
    depthwise_any_row<L>(row, load_channels, inner, epilogue);
  }
}

// All channels. The last vector of channels overlaps the one before it and skips what that has done; with
// fewer channels than lanes, vectors are halved.
template <bool IsMultiplied, int L, class Dot, class E>
GCRT_INLINE void depthwise_any_rows(const ConvShape& s, const DepthwiseOperands<Dot>& image, int channel,
                                    int b, int row_begin, int row_end, const E& epilogue) {
  for (; channel + L <= s.out_c; channel += L) {
    depthwise_channels<IsMultiplied, L>(s, image, channel, 0, b, row_begin, row_end, epilogue);
  }
  if (channel == s.out_c) return;
  if (s.out_c >= L) {
    const int last = s.out_c - L;
    depthwise_channels<IsMultiplied, L>(s, image, last, channel - last, b, row_begin, row_end, epilogue);
  } else if constexpr (L > 1) {
    depthwise_any_rows<IsMultiplied, L / 2>(s, image, channel, b, row_begin, row_end, epilogue);
  }
}

// Output rows [row_begin, row_end) of one image. Kernel is 0 if not known.
template <int Kernel, int StrideW, DepthwiseChannels Channels, class Dot, class E>
GCRT_INLINE void depthwise_rows(const ConvShape& s, const DepthwiseOperands<Dot>& image, int b, int row_begin,
                                int row_end, const E& epilogue) {
  constexpr int L = kVectorLanes<typename Dot::Sum>;
  static_assert(L <= kManyChannels, "many channels fill a vector");
  if constexpr (Kernel != 0) {
    if (Channels == DepthwiseChannels::many || s.out_c >= L) {
      depthwise_known_rows<Kernel, StrideW, L>(s, image, b, row_begin, row_end, epilogue);
      return;
    }
  }
  if constexpr (Kernel == 0 || Channels != DepthwiseChannels::many) {
    constexpr bool kIsMultiplied = Channels == DepthwiseChannels::multiplied;
    depthwise_any_rows<kIsMultiplied, L>(s, image, 0, b, row_begin, row_end, epilogue);
  }
}

inline std::ptrdiff_t depthwise2d_work_items(const ConvShape& s) { return std::ptrdiff_t{s.batch} * s.out_h; }

// Work items [work_begin, work_end) of a depthwise convolution with a square Kernel x Kernel window and
// stride StrideW along the row, dilation_w 1 and out_c == in_c; or of any other, with Kernel 0.
template <int Kernel, int StrideW, DepthwiseChannels Channels, class Dot, class E>
inline void depthwise2d_items(const ConvShape& s, const DepthwiseOperands<Dot>& operands, const E& epilogue,
                              std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  while (work_begin < work_end) {
    const int b = static_cast<int>(work_begin / s.out_h);
    const int row = static_cast<int>(work_begin - std::ptrdiff_t{b} * s.out_h);
    const int rows = Kernel != 0 ? s.out_h : kDepthwiseRows;
    const int end = static_cast<int>(smaller(smaller(s.out_h, row + rows), row + (work_end - work_begin)));
    DepthwiseOperands<Dot> image = operands;
    image.x += b * s.in_image_stride;
    depthwise_rows<Kernel, StrideW, Channels>(s, image, b, row, end, epilogue);
    work_begin += end - row;
  }
}
template <int Kernel, int StrideW, DepthwiseChannels Channels, class T, class E>
inline void depthwise2d_fixed(const ConvShape& s, const T* x, const T* w, const E& epilogue,
                              std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  const DepthwiseOperands<FmaDot<T>> operands{x, w, nullptr, T(0)};
  depthwise2d_items<Kernel, StrideW, Channels>(s, operands, epilogue, work_begin, work_end);
}
// All of them, shared among threads.
template <int Kernel, int StrideW, DepthwiseChannels Channels, class T, class E>
GCRT_NOINLINE void depthwise2d_fixed(const Threads* threads, const ConvShape& s, const T* x, const T* w,
                                     const E& epilogue) {
  parallel_for(threads, depthwise2d_work_items(s), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    depthwise2d_fixed<Kernel, StrideW, Channels>(s, x, w, epilogue, begin, end);
  });
}

// The same, for a window known at run time: with code of their own for a few sizes.
template <class Dot, class E>
inline void depthwise2d_any(const ConvShape& s, const DepthwiseOperands<Dot>& operands, const E& epilogue,
                            std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  if (s.out_c != s.in_c) {
    depthwise2d_items<0, 0, DepthwiseChannels::multiplied>(s, operands, epilogue, work_begin, work_end);
  } else if (has_known_window(s) && s.kernel_w == 3 && s.stride_w == 1) {
    depthwise2d_items<3, 1, DepthwiseChannels::few>(s, operands, epilogue, work_begin, work_end);
  } else if (has_known_window(s) && s.kernel_w == 3) {
    depthwise2d_items<3, 2, DepthwiseChannels::few>(s, operands, epilogue, work_begin, work_end);
  } else if (has_known_window(s) && s.kernel_w == 5 && s.stride_w == 1) {
    depthwise2d_items<5, 1, DepthwiseChannels::few>(s, operands, epilogue, work_begin, work_end);
  } else {
    depthwise2d_items<0, 0, DepthwiseChannels::few>(s, operands, epilogue, work_begin, work_end);
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
  depthwise2d_any(s, DepthwiseOperands<FmaDot<T>>{x, w, nullptr, T(0)}, epilogue, work_begin, work_end);
}

// The whole convolution.
template <class T, class E>
inline void depthwise2d(const ConvShape& s, const T* x, const T* w, const E& epilogue) {
  depthwise2d(s, x, w, epilogue, 0, depthwise2d_work_items(s));
}

}  // namespace GCRT_NAMESPACE
