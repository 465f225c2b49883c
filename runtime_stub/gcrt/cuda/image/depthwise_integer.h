// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Depthwise 2-D convolution of 8-bit images with int16 weights, exact in int32, channels last.
#pragma once

#include "gcrt/cuda/image/depthwise.h"

namespace GCRT_NAMESPACE {

// A depthwise convolution: groups == in_c, out_c a multiple of in_c, output channel c reads input channel
// c / (out_c / in_c). kWindow is depthwise_window(s), or kAny.
//   x        input, uint8_t or int8_t, see ConvShape
//   w        [kernel_h * kernel_w][out_c]
//   offsets  [out_c], minus the zero point of x times the sum of the weights
//   border   the zero point of x
// The epilogue gets Pack<int32_t, L> of offsets + sum of x * w at m = output pixel and n = output channel.
template <DepthwiseWindow kWindow, class TX, class E>
inline void depthwise2d_integer(Queue& queue, const ConvShape& s, const TX* x, const std::int16_t* w,
                                const std::int32_t* offsets, TX border, const E& epilogue) {
  launch_depthwise<kWindow, std::int32_t>(queue, s, x, w, offsets, border, epilogue);
}

}  // namespace GCRT_NAMESPACE
