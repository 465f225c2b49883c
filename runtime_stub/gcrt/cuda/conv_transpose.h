// Transposed 2-D convolution, channels last, without a scatter: the output pixels of one phase (row and
// column modulo the stride) see the same taps, so each phase is a convolution of stride 1 over those taps,
// with a dilation of at most 0.
#pragma once

#include "gcrt/cuda/conv.h"

namespace GCRT_NAMESPACE {

// Kernel positions that reach output coordinates congruent to `phase` modulo the stride: first, first + step,
// ..., `count` of them.
struct PhaseTaps {
  int first;
  int step;
  int count;
};
constexpr PhaseTaps phase_taps(int phase, int pad, int stride, int dilation, int taps) {
  PhaseTaps result{0, 1, 0};
  int last = -1;
  for (int k = 0; k < taps; ++k) {
    if ((phase + pad - k * dilation) % stride != 0) continue;
    if (result.count == 0) result.first = k;
    if (result.count == 1) result.step = k - last;
    last = k;
    ++result.count;
  }
  return result;
}

// One phase of a transposed convolution as a convolution of its own.
struct TransposePhase {
  PhaseTaps rows;
  PhaseTaps columns;
  ConvShape shape;  // out_h and out_w are 0 where the phase has no pixels
};
constexpr TransposePhase transpose_phase(const ConvShape& s, int row_phase, int column_phase) {
  const PhaseTaps rows = phase_taps(row_phase, s.pad_top, s.stride_h, s.dilation_h, s.kernel_h);
  const PhaseTaps columns = phase_taps(column_phase, s.pad_left, s.stride_w, s.dilation_w, s.kernel_w);
  ConvShape shape = s;
  shape.out_h = row_phase < s.out_h ? (s.out_h - row_phase + s.stride_h - 1) / s.stride_h : 0;
  shape.out_w = column_phase < s.out_w ? (s.out_w - column_phase + s.stride_w - 1) / s.stride_w : 0;
  shape.kernel_h = columns.count == 0 ? 0 : rows.count;
  shape.kernel_w = rows.count == 0 ? 0 : columns.count;
  shape.stride_h = 1;
  shape.stride_w = 1;
  shape.pad_top = -(row_phase + s.pad_top - rows.first * s.dilation_h) / s.stride_h;
  shape.pad_left = -(column_phase + s.pad_left - columns.first * s.dilation_w) / s.stride_w;
  shape.dilation_h = -(rows.step * s.dilation_h) / s.stride_h;
  shape.dilation_w = -(columns.step * s.dilation_w) / s.stride_w;
  return {rows, columns, shape};
}

// Elements of packed weights: for each phase (row phase, then column phase), [groups][OC / groups][stride],
// where a row holds k = (tap of the phase, channel of the group), zero padded to conv_weight_stride of the
// phase. The taps of a phase are the products of its rows and columns, not flipped.
constexpr std::ptrdiff_t conv_transpose_weight_size(const ConvShape& s) {
  std::ptrdiff_t size = 0;
  for (int row = 0; row < s.stride_h; ++row) {
    for (int column = 0; column < s.stride_w; ++column) {
      size += s.out_c * conv_weight_stride(transpose_phase(s, row, column).shape);
    }
  }
  return size;
}

// Maps the pixels of a phase to those of the output.
template <class E>
struct PhaseEpilogue {
  static constexpr int kMaxLanes = E::kMaxLanes;
  E epilogue;
  int out_h, out_w;      // of the output
  int phase_h, phase_w;  // pixels of the phase
  int stride_h, stride_w;
  int row, column;  // the phase

  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    const int line = static_cast<int>(m) / phase_w;
    const int image = line / phase_h;
    const int oh = (line - image * phase_h) * stride_h + row;
    const int ow = (static_cast<int>(m) - line * phase_w) * stride_w + column;
    epilogue(lane, sums, (std::ptrdiff_t{image} * out_h + oh) * out_w + ow, n);
  }
};

// The tile that suits the first phase, which has the most taps and pixels, or nearly so.
constexpr Plan plan_conv_transpose2d(const DeviceModel& device, Precision precision, const ConvShape& s) {
  const ConvShape phase = transpose_phase(s, 0, 0).shape;
  const std::ptrdiff_t depth = std::ptrdiff_t{phase.kernel_h} * phase.kernel_w * (s.in_c / s.groups);
  return plan_tiles(device, precision, output_pixels(phase), s.out_c / s.groups, depth, s.groups, false);
}

// `s` names the input and output of the transposed operator: output pixel (oh, ow) sums the taps with
// oh + pad_top = ih * stride_h + kh * dilation_h, and the same along the row; output_padding is just a larger
// out_h or out_w. One launch per phase.
//   x  input, see ConvShape
//   w  see conv_transpose_weight_size, in the storage type of the precision
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <Precision P, Tile kTile, class TW, class E>
inline void conv_transpose2d(Queue& queue, const ConvShape& s, const float* x, const TW* w,
                             const E& epilogue) {
  for (int row = 0; row < s.stride_h; ++row) {
    for (int column = 0; column < s.stride_w; ++column) {
      const ConvShape phase = transpose_phase(s, row, column).shape;
      const PhaseEpilogue<E> mapped{epilogue,   s.out_h,    s.out_w, phase.out_h, phase.out_w,
                                    s.stride_h, s.stride_w, row,     column};
      conv2d<P, kTile>(queue, phase, x, w, mapped);
      w += s.out_c * conv_weight_stride(phase);
    }
  }
}

}  // namespace GCRT_NAMESPACE
