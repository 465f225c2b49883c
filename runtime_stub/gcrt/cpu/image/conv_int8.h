// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Direct 2-D convolution of integer images with constant weights, exact modulo 2^32, channels last.
//
//   acc(m, n) = offsets[n] + sum over taps and k of x * w        modulo 2^32
//
// Taps outside the image read `border_row`, which holds the zero point of x; offsets[n] holds minus that zero
// point times the sum of the weights, so that they add nothing.
#pragma once

#include "gcrt/cpu/image/conv.h"
#include "gcrt/cpu/product/dot_tiles.h"

namespace GCRT_NAMESPACE {

template <class Dot>
inline ConvOperands<Dot> integer_operands(const ConvShape& s, const typename Dot::Left* x,
                                          const typename Dot::Right* w_packed, const std::int32_t* offsets,
                                          const std::int32_t* split, const typename Dot::Left* border_row) {
  const std::ptrdiff_t panels = s.groups * ceil_div(s.out_c / s.groups, kPanelColumns);
  return {x, w_packed, border_row, offsets_as_read<Dot>(offsets, s.out_c), SplitWords::of(split, panels)};
}

// How many pieces a thread pool may split a convolution into, whatever the element types.
template <bool InTiles = false>
inline std::ptrdiff_t conv2d_integer_work_items(const ConvShape& s, const Blocking& blocking) {
  return conv2d_work_items_of<WordDot<std::uint8_t, std::int8_t, InTiles>>(s, blocking);
}

// Work items [work_begin, work_end) of a convolution, counted with the same blocking, which cuts no depth.
//   x           input of 8 or 16 bits, see ConvShape
//   w_packed    per group [ceil(OC / g / 16)][kernel_h * kernel_w][words of in_c / g][16][values of a word],
//               int8_t or int16_t as in dot_int8.h, each tap padded to whole words; the taps together where
//               gathers_windows()
//   offsets     [sets][out_c] as in dot_int8.h
//   split       table of the SplitWords of all groups, where bytes are multiplied, or null
//   border_row  the zero point of x, at least in_c / g + 3 times
//   InTiles     beside int8_t only: where there is a tile unit, products are formed in it
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <bool InTiles = false, class TX, class TW, class E>
inline void conv2d_integer(const ConvShape& s, const TX* x, const TW* w_packed, const std::int32_t* offsets,
                           const std::int32_t* split, const TX* border_row, const Blocking& blocking,
                           const E& epilogue, std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  using Dot = WordDot<TX, TW, InTiles>;
  typename Dot::Unit unit;
  conv2d_items(s, integer_operands<Dot>(s, x, w_packed, offsets, split, border_row), blocking,
               tile_epilogue<Dot>(epilogue, &unit), work_begin, work_end);
}

// All of them, shared among threads.
template <bool InTiles = false, class TX, class TW, class E>
GCRT_NOINLINE void conv2d_integer(const Threads* threads, const ConvShape& s, const TX* x, const TW* w_packed,
                                  const std::int32_t* offsets, const std::int32_t* split,
                                  const TX* border_row, const Blocking& blocking, const E& epilogue) {
  parallel_for(threads, conv2d_integer_work_items<InTiles>(s, blocking),
               [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
                 conv2d_integer<InTiles>(s, x, w_packed, offsets, split, border_row, blocking, epilogue,
                                         begin, end);
               });
}

// The same for output rows [begin, end) of one image, whatever the work items.
template <bool InTiles = false, class TX, class TW, class E>
inline void conv2d_integer_rows(const ConvShape& s, const TX* x, const TW* w_packed,
                                const std::int32_t* offsets, const std::int32_t* split, const TX* border_row,
                                const Blocking& blocking, const E& epilogue, std::ptrdiff_t begin,
                                std::ptrdiff_t end) {
  using Dot = WordDot<TX, TW, InTiles>;
  typename Dot::Unit unit;
  conv2d_image_rows(s, integer_operands<Dot>(s, x, w_packed, offsets, split, border_row), blocking,
                    tile_epilogue<Dot>(epilogue, &unit), begin, end);
}

}  // namespace GCRT_NAMESPACE
