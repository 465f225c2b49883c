// Direct 2-D convolution, channels last, with the epilogue on the register tile.
//
// The output pixels of all images are the rows of a matrix product whose K runs over kernel taps and input
// channels; each row of a tile has a pointer to its input pixel, so no im2col buffer and no padded copy
// exists (conv_tile.h).
//
// The driver is written over a policy Dot (dot.h): conv_int8.h is the same with integer operands.
#pragma once

#include "gcrt/cpu/conv_tile.h"

namespace GCRT_NAMESPACE {

// Which parts of the kernel are summed in one pass.
struct TapParts {
  int rows;     // kernel rows per part
  int columns;  // kernel columns per part; less than kernel_w only if rows is 1
  GCRT_INLINE bool is_whole(const ConvShape& s) const { return rows >= s.kernel_h && columns >= s.kernel_w; }
};

// The same for all blocks of a convolution, however many pixels they have (see gemm.h). `words` of a tap.
template <class Dot>
GCRT_INLINE TapParts split_taps(const ConvShape& s, std::ptrdiff_t words) {
  const std::ptrdiff_t pixels = output_pixels(s);
  const std::ptrdiff_t depth = words * s.kernel_h * s.kernel_w;
  const bool long_depth = pixels > 2 * Dot::kRows && depth > 2 * Dot::kDepthBlock;
  const std::ptrdiff_t taps =
      long_depth ? larger(1, smaller(Dot::kMaxTaps, Dot::kDepthBlock / words)) : Dot::kMaxTaps;
  if (taps >= s.kernel_w) {
    return {static_cast<int>(smaller(s.kernel_h, taps / s.kernel_w)), s.kernel_w};
  }
  return {1, static_cast<int>(taps)};
}

// What is multiplied: see conv2d and conv2d_integer.
template <class Dot>
struct ConvOperands {
  const typename Dot::Left* x;
  const typename Dot::Right* w_packed;
  const typename Dot::Left* border_row;
  const typename Dot::Sum* offsets;
};

// Some output pixels and columns of one group. `partial` as in gemm_block.
template <class Dot, class E>
inline void conv2d_block(ConvGroup<Dot>& group, const TapParts& parts, const Block& block,
                         typename Dot::Sum* partial, ConvTile<Dot>& tile, const E& epilogue) {
  const ConvShape& s = group.shape;
  const bool single_tile = block.row_end - block.row_begin <= Dot::kRows && partial == nullptr;
  alignas(64) typename ColumnTiles<Dot>::Padded padded;
  ColumnTiles<Dot> tiles{group.w_packed,   group.words * s.kernel_h * s.kernel_w,
                         group.offsets,    group.n_origin,
                         block.column_end, padded};
  TileTask<Dot> task;
  std::ptrdiff_t prepared = -1;
  for (std::ptrdiff_t n = block.column_begin; n < block.column_end;) {
    const int columns = tiles.select(task, n);
    for (int kh = 0; kh < s.kernel_h; kh += parts.rows) {
      for (int kw = 0; kw < s.kernel_w; kw += parts.columns) {
        group.taps = {kh, kh + parts.rows < s.kernel_h ? kh + parts.rows : s.kernel_h, kw,
                      kw + parts.columns < s.kernel_w ? kw + parts.columns : s.kernel_w};
        task.resume = kh > 0 || kw > 0;
        task.finish = group.taps.row_end == s.kernel_h && group.taps.column_end == s.kernel_w;
        int index = 0;
        for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
          const int rows = Dot::next_rows(block.row_end - m);
          const int valid = static_cast<int>(smaller(block.row_end - m, rows));
          if (!single_tile || prepared != m) tile.prepare(group, m, rows, valid, task);
          prepared = m;
          tiles.prefetch(task, index++);
          task.partial = partial == nullptr ? nullptr : partial + (m - block.row_begin) * kTileColumns<Dot>;
          task.m = m;
          task.valid_rows = valid;
          run_tile(rows, columns, task, epilogue);
          m += rows;
        }
      }
    }
    n += columns;
  }
}

template <class Dot, class E>
GCRT_NOINLINE void conv2d_in_parts(ConvGroup<Dot>& group, const TapParts& parts, Block block,
                                   ConvTile<Dot>& tile, const E& epilogue) {
  alignas(64) typename Dot::Sum partial[kParkedRows<Dot> * kTileColumns<Dot>];
  const std::ptrdiff_t row_end = block.row_end;
  for (; block.row_begin < row_end; block.row_begin += kParkedRows<Dot>) {
    block.row_end = smaller(row_end, block.row_begin + kParkedRows<Dot>);
    conv2d_block(group, parts, block, partial, tile, epilogue);
  }
}

// Bytes of weights of one group that are read again for every tile of pixels rather than once per block.
constexpr std::ptrdiff_t kResidentWeightBytes = 256 * 1024;

template <class Dot, class E>
inline void conv2d_rectangle(ConvGroup<Dot>& group, Block block, const E& epilogue) {
  constexpr int R = Dot::kRows;
  const ConvShape& s = group.shape;
  const TapParts parts = split_taps<Dot>(s, group.words);
  ConvTile<Dot> tile;
  if (!parts.is_whole(s)) {
    conv2d_in_parts(group, parts, block, tile, epilogue);
    return;
  }
  const std::ptrdiff_t pixel_bytes = group.channels * static_cast<std::ptrdiff_t>(sizeof(typename Dot::Left));
  const std::ptrdiff_t weights =
      packed_b_size(group.words * s.kernel_h * s.kernel_w, block.column_end - block.column_begin) *
      Dot::kWordDepth * static_cast<std::ptrdiff_t>(sizeof(typename Dot::Right));
  const std::ptrdiff_t used = smaller(s.kernel_h, s.stride_h) * smaller(s.kernel_w, s.stride_w);
  std::ptrdiff_t step = kRowBlockBytes / (pixel_bytes * used) / R * R;
  if (step < R || weights <= kResidentWeightBytes) step = R;
  const std::ptrdiff_t row_end = block.row_end;
  while (block.row_begin < row_end) {
    // A single tile keeps its row pointers for all columns.
    block.row_end = block.row_begin + (step > R ? step : Dot::next_rows(row_end - block.row_begin));
    block.row_end = smaller(row_end, block.row_end);
    conv2d_block(group, parts, block, static_cast<typename Dot::Sum*>(nullptr), tile, epilogue);
    block.row_begin = block.row_end;
  }
}

template <class Dot>
inline std::ptrdiff_t conv2d_work_items_of(const ConvShape& s) {
  return product_work_items<Dot>(output_pixels(s), s.out_c / s.groups, s.groups);
}

// Work items [work_begin, work_end) of a convolution, whatever its operands.
template <class Dot, class E>
inline void conv2d_items(const ConvShape& s, const ConvOperands<Dot>& operands, const E& epilogue,
                         std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  constexpr int G = Dot::kWordDepth;
  const std::ptrdiff_t pixels = output_pixels(s);
  const std::ptrdiff_t channels = s.in_c / s.groups;
  const std::ptrdiff_t columns = s.out_c / s.groups;
  const std::ptrdiff_t words = ceil_div(channels, G);
  const std::ptrdiff_t group_weights = packed_b_size(s.kernel_h * s.kernel_w * words, columns) * G;
  const std::ptrdiff_t size = (s.batch - 1) * s.in_image_stride + (s.in_h - 1) * s.in_row_stride +
                              (s.in_w - 1) * s.in_pixel_stride + s.in_c;
  for (int g = 0; g < s.groups; ++g) {
    const Block block = work_block<Dot>(pixels, columns, g, work_begin, work_end);
    if (block.is_empty()) continue;
    const auto* const x = operands.x + g * channels;
    const auto* const weights = operands.w_packed + g * group_weights;
    const auto* const offsets = Dot::kHasOffsets ? operands.offsets + g * columns : nullptr;
    const std::ptrdiff_t left = size - g * channels;
    if (is_pointwise(s)) {
      const Product<Dot> product{channels, x, s.in_pixel_stride, weights, g * columns, pixels, offsets, left};
      gemm_rectangle(product, block, epilogue);
    } else {
      // Taps of a kernel row follow each other word by word if pixels are whole words without gaps, or if a
      // tap is one word and they need not.
      const bool contiguous = (!Dot::kStepIsWord && words == 1) ||
                              (channels % G == 0 && s.in_pixel_stride == channels && s.dilation_w == 1);
      ConvGroup<Dot> group{s,           x,        left,  operands.border_row, weights, offsets,
                           g * columns, channels, words, contiguous};
      conv2d_rectangle(group, block, epilogue);
    }
  }
}

// How many pieces a thread pool may split a convolution into: blocks of pixels, or of columns of a group.
template <class T = float>
inline std::ptrdiff_t conv2d_work_items(const ConvShape& s) {
  return conv2d_work_items_of<FmaDot<T>>(s);
}

// Work items [work_begin, work_end) of a convolution.
//   x         input, see ConvShape
//   w_packed  per group [ceil(OC / g / 16)][kernel_h * kernel_w][in_c / g][16], zero padded
//   zero_row  at least in_c / g zeros
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <class T, class E>
inline void conv2d(const ConvShape& s, const T* x, const T* w_packed, const T* zero_row, const E& epilogue,
                   std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  conv2d_items(s, ConvOperands<FmaDot<T>>{x, w_packed, zero_row, nullptr}, epilogue, work_begin, work_end);
}

// The whole convolution.
template <class T, class E>
inline void conv2d(const ConvShape& s, const T* x, const T* w_packed, const T* zero_row, const E& epilogue) {
  conv2d(s, x, w_packed, zero_row, epilogue, 0, conv2d_work_items<T>(s));
}

}  // namespace GCRT_NAMESPACE
