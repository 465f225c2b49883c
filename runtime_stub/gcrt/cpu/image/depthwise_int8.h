// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Depthwise 2-D convolution of integer images with int16 weights, exact modulo 2^32, channels last.
#pragma once

#include "gcrt/cpu/image/depthwise.h"
#include "gcrt/cpu/product/dot_int8.h"

namespace GCRT_NAMESPACE {

// Work items [work_begin, work_end), as depthwise2d_fixed.
template <int Kernel, int StrideW, DepthwiseChannels Channels, class TX, class E>
inline void depthwise2d_integer_fixed(const ConvShape& s, const TX* x, const std::int16_t* w,
                                      const std::int32_t* offsets, TX border, const E& epilogue,
                                      std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  const DepthwiseOperands<IntegerDot<TX, std::int16_t>> operands{x, w, offsets, border};
  depthwise2d_items<Kernel, StrideW, Channels>(s, operands, epilogue, work_begin, work_end);
}
// All of them, shared among threads.
template <int Kernel, int StrideW, DepthwiseChannels Channels, class TX, class E>
GCRT_NOINLINE void depthwise2d_integer_fixed(const Threads* threads, const ConvShape& s, const TX* x,
                                             const std::int16_t* w, const std::int32_t* offsets, TX border,
                                             const E& epilogue) {
  parallel_for(threads, depthwise2d_work_items(s), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    depthwise2d_integer_fixed<Kernel, StrideW, Channels>(s, x, w, offsets, border, epilogue, begin, end);
  });
}

// Work items [work_begin, work_end) of a depthwise convolution: groups == in_c, out_c a multiple of in_c,
// output channel c reads input channel c / (out_c / in_c).
//   x        input of 8 or 16 bits, see ConvShape
//   w        [kernel_h * kernel_w][out_c]
//   offsets  [out_c], minus the zero point of x times the sum of the weights, as in dot_int8.h
//   border   the zero point of x
// The epilogue gets Pack<int32_t, L> of offsets + sum of x * w at m = output pixel and n = output channel.
template <class TX, class E>
inline void depthwise2d_integer(const ConvShape& s, const TX* x, const std::int16_t* w,
                                const std::int32_t* offsets, TX border, const E& epilogue,
                                std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  const DepthwiseOperands<IntegerDot<TX, std::int16_t>> operands{x, w, offsets, border};
  depthwise2d_any(s, operands, epilogue, work_begin, work_end);
}

}  // namespace GCRT_NAMESPACE
