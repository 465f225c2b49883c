// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Transposed 2-D convolution, channels last, without a scatter: the output pixels of one phase (row and
// column modulo the stride) see the same taps, so each phase is a convolution of stride 1 over those taps,
// with a dilation of at most 0.
#pragma once

#include "gcrt/cuda/image/conv.h"

namespace GCRT_NAMESPACE {

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

// `s` names the input and output of the transposed operator: output pixel (oh, ow) sums the taps with
// oh + pad_top = ih * stride_h + kh * dilation_h, and the same along the row; output_padding is just a larger
// out_h or out_w. One launch per phase.
//   x  input, see ConvShape; float, or stored in the precision of the product
//   w  see conv_transpose_weight_size, in the storage type of the precision
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <Precision P, Tile kTile, class X, class TW, class E>
inline void conv_transpose2d(Queue& queue, const ConvShape& s, X x, const TW* w, const E& epilogue) {
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
