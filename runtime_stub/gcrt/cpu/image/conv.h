// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Direct 2-D convolution, channels last, with the epilogue on the register tile.
//
// The output pixels of all images are the rows of a matrix product whose K runs over kernel taps and input
// channels; each row of a tile has a pointer to its input pixel, so no im2col buffer and no padded copy
// exists (conv_tile.h).
//
// The driver is written over a policy Dot (dot.h): conv_int8.h is the same with integer operands.
#pragma once

#include "gcrt/cpu/image/conv_tile.h"
#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

// What is multiplied: see conv2d and conv2d_integer.
template <class Dot>
struct ConvOperands {
  const typename Dot::Left* x;
  const typename Dot::Right* w_packed;
  const typename Dot::Left* border_row;
  const typename Dot::Sum* offsets;
  SplitWords split;
};

// Some output pixels and columns of one group.
// A kernel of more taps than a tile has room for is summed in parts.
template <class Dot>
GCRT_NOINLINE void conv2d_block(ConvGroup<Dot>& group, const Block& block, ConvTile<Dot>& tile,
                                const TileEpilogue<Dot>& epilogue) {
  const ConvShape& s = group.shape;
  const int part_rows = static_cast<int>(larger(1, smaller(s.kernel_h, Dot::kMaxTaps / s.kernel_w)));
  const int part_columns = static_cast<int>(smaller(s.kernel_w, Dot::kMaxTaps));
  const bool is_whole = part_rows == s.kernel_h && part_columns == s.kernel_w;
  const bool keeps_rows = is_whole && block.row_end - block.row_begin <= Dot::kRows;
  const std::ptrdiff_t words = group.panel_words;
  alignas(64) typename Dot::Sum sums[Dot::kRows * kTileColumns<Dot>];
  alignas(64) typename ColumnTiles<Dot>::Padded padded;
  ColumnTiles<Dot> tiles{group.w_packed,   words,  group.offsets, group.n_origin,
                         block.column_end, padded, group.split};
  TileTask<Dot> task;
  task.sums = sums;
  std::ptrdiff_t prepared = -1;
  for (std::ptrdiff_t n = block.column_begin; n < block.column_end;) {
    const int columns = tiles.select(task, n, 0, words);
    for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
      const int rows = Dot::next_rows(block.row_end - m);
      const int valid = static_cast<int>(smaller(block.row_end - m, rows));
      task.m = m;
      task.valid_rows = valid;
      for (int kh = 0; kh < s.kernel_h; kh += part_rows) {
        for (int kw = 0; kw < s.kernel_w; kw += part_columns) {
          group.taps = {kh, static_cast<int>(smaller(s.kernel_h, kh + part_rows)), kw,
                        static_cast<int>(smaller(s.kernel_w, kw + part_columns))};
          task.resume = kh > 0 || kw > 0;
          task.finish = group.taps.row_end == s.kernel_h && group.taps.column_end == s.kernel_w;
          if (!keeps_rows || prepared != m) tile.prepare(group, m, rows, valid, task);
          prepared = m;
          run_tile(rows, columns, task, epilogue);
        }
      }
      ++task.index;
      m += rows;
    }
    n += columns;
  }
}

// The same for windows that are copied together.
template <class Dot>
GCRT_NOINLINE void conv2d_gathered_block(const ConvGroup<Dot>& group, const Block& block, ConvTile<Dot>& tile,
                                         const TileEpilogue<Dot>& epilogue) {
  constexpr std::ptrdiff_t kMost = ConvTile<Dot>::kGatheredRows;
  const std::ptrdiff_t words = group.panel_words;
  alignas(64) typename Dot::Sum sums[kMost * kTileColumns<Dot>];
  alignas(64) typename ColumnTiles<Dot>::Padded padded;
  ColumnTiles<Dot> tiles{group.w_packed,   words,  group.offsets, group.n_origin,
                         block.column_end, padded, group.split};
  const TileRun run{0, 0};
  TileTask<Dot> task;
  task.base = tile.copied;
  task.row_stride = ConvTile<Dot>::kGatheredStride;
  task.runs = &run;
  task.run_count = 1;
  task.run_words = words;
  task.word_step = Dot::kWordDepth;
  task.tail = 0;
  task.sums = sums;
  for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
    const std::ptrdiff_t left = block.row_end - m;
    const int rows = Dot::next_rows(left);
    task.valid_rows = static_cast<int>(smaller(left, rows));
    task.tiles = static_cast<int>(left < kMost ? larger(1, left / Dot::kRows) : kStripTiles<Dot>);
    task.m = m;
    const int valid = (task.tiles - 1) * rows + task.valid_rows;
    tile.gather(group, m, task.tiles * rows, valid);
    for (std::ptrdiff_t n = block.column_begin; n < block.column_end;) {
      const int columns = tiles.select(task, n, 0, words);
      run_tile(rows, columns, task, epilogue);
      n += columns;
    }
    m += valid;
  }
}

// Blocks of output pixels, each of whole tiles. A block of one tile keeps its row pointers for all columns;
// the tile unit multiplies faster than those of its many rows are found twice.
template <class Dot>
inline void conv2d_blocks(ConvGroup<Dot>& group, const Blocking& blocking, Block block,
                          const TileEpilogue<Dot>& epilogue) {
  ConvTile<Dot> tile;
  if constexpr (gathered_depth<Dot>() > 0) {
    if (group.gathered) return conv2d_gathered_block(group, block, tile, epilogue);
  }
  const std::ptrdiff_t row_end = block.row_end;
  const std::ptrdiff_t step =
      Dot::kInTiles ? Dot::kRows : whole_pieces(blocking.block_rows, Dot::kRows, row_end);
  for (; block.row_begin < row_end; block.row_begin = block.row_end) {
    const std::ptrdiff_t left = row_end - block.row_begin;
    block.row_end = block.row_begin + smaller(left, step > Dot::kRows ? step : Dot::next_rows(left));
    conv2d_block(group, block, tile, epilogue);
  }
}

// Some output pixels and columns of group `g`, whatever the operands.
template <class Dot>
GCRT_INLINE void conv2d_group(const ConvShape& s, const ConvOperands<Dot>& operands, const Blocking& blocking,
                              const TileEpilogue<Dot>& epilogue, int g, const Block& block) {
  constexpr int G = Dot::kWordDepth;
  const std::ptrdiff_t pixels = output_pixels(s);
  const std::ptrdiff_t channels = s.in_c / s.groups;
  const std::ptrdiff_t columns = s.out_c / s.groups;
  const std::ptrdiff_t taps = std::ptrdiff_t{s.kernel_h} * s.kernel_w;
  const std::ptrdiff_t words = ceil_div(channels, G);
  const bool gathered = gathers<Dot>(s);
  const std::ptrdiff_t panel_words = gathered ? ceil_div(taps * channels, G) : taps * words;
  const std::ptrdiff_t group_weights = packed_b_size(panel_words, columns) * G;
  const std::ptrdiff_t size = (s.batch - 1) * s.in_image_stride + (s.in_h - 1) * s.in_row_stride +
                              (s.in_w - 1) * s.in_pixel_stride + s.in_c;
  const auto* const x = operands.x + g * channels;
  const auto* const weights = operands.w_packed + g * group_weights;
  const auto* const offsets = Dot::kHasOffsets ? operands.offsets + g * columns : nullptr;
  const SplitWords split = operands.split.from(g * ceil_div(columns, kPanelColumns));
  const std::ptrdiff_t left = size - g * channels;
  if (is_pointwise(s) || (is_framing(s) && (gathered || channels % G == 0))) {
    const Product<Dot> product{
        taps * channels, x,    s.stride_w * s.in_pixel_stride, weights, g * columns, pixels, offsets, left,
        nullptr,         split};
    gemm_blocks(product, blocking, block, epilogue);
  } else {
    // Taps of a kernel row follow each other word by word if pixels are whole words without gaps, or if a
    // tap is one word and they need not.
    const bool contiguous = (!Dot::kStepIsWord && words == 1) ||
                            (channels % G == 0 && s.in_pixel_stride == channels && s.dilation_w == 1);
    ConvGroup<Dot> group{s,           x,        left,  operands.border_row, weights,    offsets, split,
                         g * columns, channels, words, panel_words,         contiguous, gathered};
    conv2d_blocks(group, blocking, block, epilogue);
  }
}

// Fetches what the output pixels of a block read, in the order of memory: each group reads a few channels of
// every pixel, so far apart that no line would be there before it is needed. Not more than a cache may hold.
template <class Dot>
GCRT_INLINE void fetch_pixels(const ConvShape& s, const typename Dot::Left* x, const Block& block) {
  constexpr std::ptrdiff_t kBytes = sizeof(*x), kLine = 64 / kBytes, kMost = (512 << 10) / kBytes;
  const auto row_of = [&](std::ptrdiff_t pixel, std::ptrdiff_t tap) GCRT_LAMBDA_INLINE {
    const std::ptrdiff_t row = pixel / s.out_w;
    const std::ptrdiff_t in_row = row % s.out_h * s.stride_h - s.pad_top + tap * s.dilation_h;
    return row / s.out_h * s.in_image_stride + smaller(s.in_h - 1, larger(0, in_row)) * s.in_row_stride;
  };
  const std::ptrdiff_t begin = row_of(block.row_begin, 0);
  const std::ptrdiff_t last = row_of(block.row_end - 1, s.kernel_h - 1) + s.in_w * s.in_pixel_stride;
  const std::ptrdiff_t end = smaller(last, begin + kMost);
  for (std::ptrdiff_t at = begin; at < end; at += kLine) __builtin_prefetch(x + at, 0, 2);
}

// Work items [work_begin, work_end) of a convolution.
template <class Dot>
GCRT_NOINLINE void conv2d_items(const ConvShape& s, const ConvOperands<Dot>& operands,
                                const Blocking& blocking, const TileEpilogue<Dot>& epilogue,
                                std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  const WorkItems<Dot> items(output_pixels(s), s.out_c / s.groups, s.groups, blocking);
  items.for_each_block(work_begin, work_end, [&](int g, const Block& block) {
    if (s.groups > 1 && g == 0 && block.column_begin == 0) fetch_pixels<Dot>(s, operands.x, block);
    conv2d_group(s, operands, blocking, epilogue, g, block);
  });
}

// Output rows [begin, end) of a convolution of one image, each by itself: sums of floats are in an order that
// depends on the tiles of rows, which so do not depend on the range.
template <class Dot>
GCRT_NOINLINE void conv2d_image_rows(const ConvShape& s, const ConvOperands<Dot>& operands,
                                     const Blocking& blocking, const TileEpilogue<Dot>& epilogue,
                                     std::ptrdiff_t begin, std::ptrdiff_t end) {
  for (std::ptrdiff_t row = begin; row < end; ++row) {
    const Block block{row * s.out_w, (row + 1) * s.out_w, 0, s.out_c / s.groups};
    for (int g = 0; g < s.groups; ++g) conv2d_group(s, operands, blocking, epilogue, g, block);
  }
}

// How many pieces a thread pool may split a convolution into.
template <class Dot>
inline std::ptrdiff_t conv2d_work_items_of(const ConvShape& s, const Blocking& blocking) {
  return WorkItems<Dot>(output_pixels(s), s.out_c / s.groups, s.groups, blocking).count();
}
template <class Tile = UsualTile>
inline std::ptrdiff_t conv2d_work_items(const ConvShape& s, const Blocking& blocking) {
  return conv2d_work_items_of<typename Tile::template Dot<float>>(s, blocking);
}

// Work items [work_begin, work_end) of a convolution, counted with the same tile and blocking.
//   x         input, see ConvShape
//   w_packed  per group [ceil(OC / g / 16)][kernel_h * kernel_w][in_c / g][16], zero padded
//   zero_row  at least in_c / g zeros
//   blocking  cuts no depth
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <class Tile = UsualTile, class T, class E>
inline void conv2d(const ConvShape& s, const T* x, const T* w_packed, const T* zero_row,
                   const Blocking& blocking, const E& epilogue, std::ptrdiff_t work_begin,
                   std::ptrdiff_t work_end) {
  using Dot = typename Tile::template Dot<T>;
  typename Dot::Unit unit;
  conv2d_items(s, ConvOperands<Dot>{x, w_packed, zero_row, nullptr, {}}, blocking,
               tile_epilogue<Dot>(epilogue, &unit), work_begin, work_end);
}

// All of them, shared among threads.
template <class Tile = UsualTile, class T, class E>
GCRT_NOINLINE void conv2d(const Threads* threads, const ConvShape& s, const T* x, const T* w_packed,
                          const T* zero_row, const Blocking& blocking, const E& epilogue) {
  parallel_for(threads, conv2d_work_items<Tile>(s, blocking), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    conv2d<Tile>(s, x, w_packed, zero_row, blocking, epilogue, begin, end);
  });
}

// The same for output rows [begin, end) of one image, whatever the work items.
template <class Tile = UsualTile, class T, class E>
inline void conv2d_rows(const ConvShape& s, const T* x, const T* w_packed, const T* zero_row,
                        const Blocking& blocking, const E& epilogue, std::ptrdiff_t begin,
                        std::ptrdiff_t end) {
  using Dot = typename Tile::template Dot<T>;
  typename Dot::Unit unit;
  conv2d_image_rows(s, ConvOperands<Dot>{x, w_packed, zero_row, nullptr, {}}, blocking,
                    tile_epilogue<Dot>(epilogue, &unit), begin, end);
}

// The whole convolution.
template <class Tile = UsualTile, class T, class E>
inline void conv2d(const ConvShape& s, const T* x, const T* w_packed, const T* zero_row, const E& epilogue) {
  conv2d<Tile>(s, x, w_packed, zero_row, Blocking{}, epilogue, 0, conv2d_work_items<Tile>(s, Blocking{}));
}

}  // namespace GCRT_NAMESPACE
