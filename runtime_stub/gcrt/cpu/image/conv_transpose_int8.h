// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Transposed 2-D convolution of integer images with constant weights, exact in int32, channels last.
//
//   acc(m, n) = offsets[phase of m][n] + sum over taps and k of x * w        modulo 2^32
//
// Taps outside the image read `border_row`, which holds the zero point of x; the offsets hold minus that zero
// point times the sum of the weights that a phase sees, so that they add nothing.
#pragma once

#include "gcrt/cpu/image/conv_transpose.h"
#include "gcrt/cpu/product/dot_int8.h"

namespace GCRT_NAMESPACE {

// Work items [work_begin, work_end), counted as those of floats; see conv_transpose2d.
//   x           input of 8 or 16 bits
//   w_packed    per group [ceil(OC / g / 16)][kernel_h * kernel_w][words of in_c / g][16][values of a word],
//               int8_t or int16_t as in dot_int8.h, each tap padded to whole words, taps not flipped
//   offsets     [stride_h * stride_w][sets][out_c] as in dot_int8.h
//   split       table of the SplitWords of all groups, where bytes are multiplied, or null
//   border_row  the zero point of x, at least in_c / g times
template <class TX, class TW, class E>
inline void conv_transpose2d_integer(const ConvShape& s, const TX* x, const TW* w_packed,
                                     const std::int32_t* offsets, const std::int32_t* split,
                                     const TX* border_row, const E& epilogue, std::ptrdiff_t work_begin,
                                     std::ptrdiff_t work_end) {
  using Dot = IntegerDot<TX, TW>;
  const std::ptrdiff_t panels = s.groups * ceil_div(s.out_c / s.groups, kPanelColumns);
  const TransposeOperands<Dot> operands{x,
                                        w_packed,
                                        border_row,
                                        offsets_as_read<Dot>(offsets, s.out_c),
                                        Dot::kOffsetSets * std::ptrdiff_t{s.out_c},
                                        SplitWords::of(split, panels)};
  conv_transpose2d_items(s, operands, epilogue, work_begin, work_end);
}
// All of them, shared among threads.
template <class TX, class TW, class E>
GCRT_NOINLINE void conv_transpose2d_integer(const Threads* threads, const ConvShape& s, const TX* x,
                                            const TW* w_packed, const std::int32_t* offsets,
                                            const std::int32_t* split, const TX* border_row,
                                            const E& epilogue) {
  parallel_for(threads, conv_transpose2d_work_items(s), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    conv_transpose2d_integer(s, x, w_packed, offsets, split, border_row, epilogue, begin, end);
  });
}

}  // namespace GCRT_NAMESPACE
