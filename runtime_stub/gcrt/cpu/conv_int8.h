// Direct 2-D convolution of 8-bit images with constant weights, exact in int32, channels last.
//
//   acc(m, n) = offsets[n] + sum over taps and k of x * w        modulo 2^32
//
// Taps outside the image read `border_row`, which holds the zero point of x; offsets[n] holds minus that zero
// point times the sum of the weights, so that they add nothing. As in conv.h, rows of the register tile are
// output pixels, each with a pointer to its input pixel, and no copy of the image exists.
#pragma once

#include "gcrt/cpu/conv_shape.h"
#include "gcrt/cpu/depthwise_int8.h"
#include "gcrt/cpu/gemm_int8.h"

namespace GCRT_NAMESPACE {

// Taps handled by one pass over a tile; longer kernels are cut into parts.
constexpr int kMaxIntegerTaps = 64;
// Row pointers per tap, a whole number of vectors of them.
constexpr int kPointerLanes = GCRT_VECTOR_BYTES / static_cast<int>(sizeof(std::intptr_t));
constexpr int kPointerRows = (kIntegerRows + kPointerLanes - 1) / kPointerLanes * kPointerLanes;

// One group of one convolution, restricted to kernel rows [row_begin, row_end) and columns [column_begin,
// column_end).
template <class TX, class TW>
struct IntegerGroup {
  const ConvShape& shape;
  const TX* x;          // first channel of the group
  std::ptrdiff_t size;  // elements that may be read from x on
  const TX* border_row;
  std::ptrdiff_t channels;
  std::ptrdiff_t words;  // per tap
  bool contiguous;       // the taps of one kernel row are one run
  int row_begin = 0, row_end = 0;
  int column_begin = 0, column_end = 0;

  GCRT_INLINE std::ptrdiff_t tap_offset(int kh, int kw) const {
    return kh * shape.dilation_h * shape.in_row_stride + kw * shape.dilation_w * shape.in_pixel_stride;
  }
  GCRT_INLINE std::ptrdiff_t weight_offset(int kh, int kw) const {
    return (std::ptrdiff_t{kh} * shape.kernel_w + kw) * words * kPanelColumns * kWordDepth<TW>;
  }
  // True if whole words of the pixel at this offset lie inside the operand.
  GCRT_INLINE bool may_read_on(std::ptrdiff_t offset) const {
    return offset + words * kWordDepth<TW> <= size;
  }
};

// The row pointers and runs of one tile of output pixels.
template <class TX, class TW>
struct IntegerConvTile {
  using Group = IntegerGroup<TX, TW>;
  using Task = IntegerTask<TX, TW>;

  std::ptrdiff_t next = -1;  // output pixel at (image, row, column): tiles are mostly taken in order
  int image, row, column;

  int count;  // rows including the dropped ones
  std::intptr_t ih[kPointerRows];
  std::intptr_t iw[kPointerRows];
  std::intptr_t offset[kPointerRows];  // of tap (0, 0), which may lie outside the image
  const TX* pointers[kMaxIntegerTaps * kPointerRows];
  TileRun runs[kMaxIntegerTaps];

  // Fills in the rows of `task` for output pixels m, m + 1, ...; pixels past the last valid one repeat it.
  void prepare(const Group& group, std::ptrdiff_t m, int rows, int valid, Task& task) {
    const ConvShape& s = group.shape;
    count = rows;
    seek(s, m);
    task.word_step = kWordDepth<TW>;
    task.runs = runs;
    if (valid == rows && is_inside_row(s)) {
      const std::ptrdiff_t first = image * s.in_image_stride +
                                   (row * s.stride_h - s.pad_top) * s.in_row_stride +
                                   (column * s.stride_w - s.pad_left) * s.in_pixel_stride;
      task.row_stride = s.stride_w * s.in_pixel_stride;
      if (group.may_read_on(first + (rows - 1) * task.row_stride +
                            group.tap_offset(group.row_end - 1, group.column_end - 1))) {
        task.rows = nullptr;
        task.base = group.x + first;
        inside(group, task);
        next += rows;
        column += rows;
        carry(s);
        return;
      }
    }
    const bool is_inside = locate(s, valid);
    std::ptrdiff_t last = 0;
    for (int i = 0; i < count; ++i) last = larger(last, offset[i]);
    last += group.tap_offset(group.row_end - 1, group.column_end - 1);
    task.rows = pointers;
    if (is_inside && group.may_read_on(last)) {
      for (int i = 0; i < count; ++i) pointers[i] = group.x + offset[i];
      inside(group, task);
    } else {
      border(group, task);
    }
  }

 private:
  GCRT_INLINE void seek(const ConvShape& s, std::ptrdiff_t m) {
    if (m == next) return;
    next = m;
    const std::ptrdiff_t rows = m / s.out_w;
    column = static_cast<int>(m - rows * s.out_w);
    image = static_cast<int>(rows / s.out_h);
    row = static_cast<int>(rows - std::ptrdiff_t{image} * s.out_h);
  }

  // From the end of an output row to the start of the next one.
  GCRT_INLINE void carry(const ConvShape& s) {
    if (column < s.out_w) return;
    column = 0;
    if (++row < s.out_h) return;
    row = 0;
    ++image;
  }

  // True if the tile lies in one output row and no tap leaves the image.
  GCRT_INLINE bool is_inside_row(const ConvShape& s) const {
    const int y = row * s.stride_h - s.pad_top;
    const int x = column * s.stride_w - s.pad_left;
    return column + count <= s.out_w && y >= 0 && x >= 0 && y + (s.kernel_h - 1) * s.dilation_h < s.in_h &&
           x + (count - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w < s.in_w;
  }

  // Input coordinates of tap (0, 0) for every row; true if no tap of any row leaves the image.
  bool locate(const ConvShape& s, int valid) {
    const int reach_h = (s.kernel_h - 1) * s.dilation_h;
    const int reach_w = (s.kernel_w - 1) * s.dilation_w;
    bool is_inside = true;
    for (int i = 0; i < count; ++i) {
      const std::intptr_t y = row * s.stride_h - s.pad_top;
      const std::intptr_t x = column * s.stride_w - s.pad_left;
      ih[i] = y;
      iw[i] = x;
      offset[i] = image * s.in_image_stride + y * s.in_row_stride + x * s.in_pixel_stride;
      is_inside &= (y >= 0) & (x >= 0) & (y + reach_h < s.in_h) & (x + reach_w < s.in_w);
      if (i + 1 < valid || valid == count) {
        ++next;
        ++column;
        carry(s);
      }
    }
    for (int i = count; i < kPointerRows; ++i) {
      ih[i] = ih[0];
      iw[i] = iw[0];
      offset[i] = offset[0];
    }
    return is_inside;
  }

  // Rows share their runs: one per kernel row, or one per tap.
  GCRT_INLINE void inside(const Group& group, Task& task) {
    const ConvShape& s = group.shape;
    const int columns = group.contiguous ? 1 : group.column_end - group.column_begin;
    TileRun* run = runs;
    for (int kh = group.row_begin; kh < group.row_end; ++kh) {
      for (int kw = group.column_begin; kw < group.column_begin + columns; ++kw) {
        *run++ = {group.tap_offset(kh, kw), group.weight_offset(kh, kw)};
      }
    }
    task.rows_step = 0;
    task.run_count = run - runs;
    task.run_words = group.words;
    task.tail = 0;
    if (group.contiguous) {
      task.run_words = (group.column_end - group.column_begin) * group.words;
      if (group.words == 1) task.word_step = s.dilation_w * s.in_pixel_stride;
    }
  }

  // One run per tap; rows whose tap is outside read the border row, taps that are outside for all rows too,
  // since `offsets` counts on them.
  void border(const Group& group, Task& task) {
    using V = Pack<std::intptr_t, kPointerLanes>;
    constexpr Lanes<kPointerLanes> lane{};
    const ConvShape& s = group.shape;
    const V zero{};
    const V outside = splat(lane, reinterpret_cast<std::intptr_t>(group.border_row));
    const auto is_in = [&](const std::intptr_t* origins, int shift, int size) GCRT_LAMBDA_INLINE {
      const V at = load(lane, origins) + std::intptr_t{shift};
      return (at >= zero) & (at < splat(lane, std::intptr_t{size}));
    };
    const TX** out = pointers;
    TileRun* run = runs;
    V last = zero;
    for (int kh = group.row_begin; kh < group.row_end; ++kh) {
      for (int kw = group.column_begin; kw < group.column_end; ++kw) {
        const std::ptrdiff_t shift = group.tap_offset(kh, kw);
        GCRT_UNROLL
        for (int i = 0; i < kPointerRows; i += kPointerLanes) {
          const auto is_valid =
              is_in(ih + i, kh * s.dilation_h, s.in_h) & is_in(iw + i, kw * s.dilation_w, s.in_w);
          const V at = load(lane, offset + i) + std::intptr_t{shift};
          const V address = blend(is_valid, at + reinterpret_cast<std::intptr_t>(group.x), outside);
          last = blend(is_valid & (at > last), at, last);
          __builtin_memcpy(out + i, &address, sizeof(address));
        }
        out += kPointerRows;
        *run++ = {0, group.weight_offset(kh, kw)};
      }
    }
    std::intptr_t end = 0;
    for (int i = 0; i < kPointerLanes; ++i) end = larger(end, last[i]);
    task.rows_step = kPointerRows;
    task.run_count = run - runs;
    set_run_depth(task, group.channels, group.may_read_on(end));
  }
};

// Some output pixels and columns of one group.
template <class TX, class TW, class E>
inline void conv2d_integer_block(IntegerGroup<TX, TW>& group, const TW* w_packed, const std::int32_t* offsets,
                                 std::ptrdiff_t n_origin, const Block& block, IntegerConvTile<TX, TW>& tile,
                                 const E& epilogue) {
  const ConvShape& s = group.shape;
  const std::ptrdiff_t words = group.words * s.kernel_h * s.kernel_w;
  const int part_columns = s.kernel_w < kMaxIntegerTaps ? s.kernel_w : kMaxIntegerTaps;
  const int part_rows = s.kernel_w < kMaxIntegerTaps ? kMaxIntegerTaps / s.kernel_w : 1;
  const bool is_whole = part_columns == s.kernel_w && part_rows >= s.kernel_h;
  const bool is_single = block.row_end - block.row_begin <= kIntegerRows && is_whole;
  alignas(64) std::int32_t padded[kIntegerColumns];
  alignas(64) std::int32_t partial[kIntegerRows * kIntegerColumns];
  IntegerTask<TX, TW> task;
  task.partial = partial;
  std::ptrdiff_t prepared = -1;
  for (std::ptrdiff_t n = block.column_begin; n < block.column_end;) {
    const int columns = select_columns(task, w_packed, words, offsets, n, block.column_end, padded);
    task.n = n_origin + n;
    for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
      const int rows = next_integer_rows(block.row_end - m);
      const int valid = static_cast<int>(smaller(block.row_end - m, rows));
      task.m = m;
      task.valid_rows = valid;
      for (int kh = 0; kh < s.kernel_h; kh += part_rows) {
        for (int kw = 0; kw < s.kernel_w; kw += part_columns) {
          group.row_begin = kh;
          group.row_end = static_cast<int>(smaller(kh + part_rows, s.kernel_h));
          group.column_begin = kw;
          group.column_end = static_cast<int>(smaller(kw + part_columns, s.kernel_w));
          task.resume = kh > 0 || kw > 0;
          task.finish = group.row_end == s.kernel_h && group.column_end == s.kernel_w;
          if (!is_single || prepared != m) tile.prepare(group, m, rows, valid, task);
          prepared = m;
          run_integer_tile(rows, columns, task, epilogue);
        }
      }
      m += rows;
    }
    n += columns;
  }
}

// Bytes of weights of one group that are read again for every tile of pixels rather than once per block.
constexpr std::ptrdiff_t kResidentIntegerBytes = 256 * 1024;

template <class TX, class TW, class E>
inline void conv2d_integer_rectangle(IntegerGroup<TX, TW>& group, const TW* w_packed,
                                     const std::int32_t* offsets, std::ptrdiff_t n_origin, Block block,
                                     const E& epilogue) {
  const ConvShape& s = group.shape;
  IntegerConvTile<TX, TW> tile;
  const std::ptrdiff_t weights =
      group.words * 4 * s.kernel_h * s.kernel_w * (block.column_end - block.column_begin);
  const std::ptrdiff_t used = smaller(s.kernel_h, s.stride_h) * smaller(s.kernel_w, s.stride_w);
  std::ptrdiff_t step = kRowBlockBytes / (group.channels * used) / kIntegerRows * kIntegerRows;
  if (step < kIntegerRows || weights <= kResidentIntegerBytes) step = kIntegerRows;
  const std::ptrdiff_t row_end = block.row_end;
  while (block.row_begin < row_end) {
    // A single tile keeps its row pointers for all columns.
    const std::ptrdiff_t rows = step > kIntegerRows ? step : next_integer_rows(row_end - block.row_begin);
    block.row_end = smaller(row_end, block.row_begin + rows);
    conv2d_integer_block(group, w_packed, offsets, n_origin, block, tile, epilogue);
    block.row_begin = block.row_end;
  }
}

// True if the convolution is one matrix product over all pixels of all images.
GCRT_INLINE bool is_pointwise_integer(const ConvShape& s) {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
         s.pad_left == 0 && s.out_h == s.in_h && s.out_w == s.in_w &&
         (s.out_h == 1 || s.in_row_stride == s.in_w * s.in_pixel_stride) &&
         (s.batch == 1 || s.in_image_stride == std::ptrdiff_t{s.in_h} * s.in_w * s.in_pixel_stride);
}

// How many pieces a thread pool may split a convolution into: blocks of pixels, or of columns of a group.
inline std::ptrdiff_t conv2d_integer_work_items(const ConvShape& s) {
  const std::ptrdiff_t pixels = std::ptrdiff_t{s.batch} * s.out_h * s.out_w;
  if (pixels >= 2 * kIntegerItemRows) return words_of(pixels, kIntegerItemRows);
  return s.groups * gemm_integer_work_items(1, s.out_c / s.groups);
}

// Work items [work_begin, work_end) of a convolution.
//   x           input, uint8_t or int8_t, see ConvShape
//   w_packed    per group [ceil(OC / g / 16)][kernel_h * kernel_w][words of in_c / g][16][values of a word],
//               int8_t or int16_t as in gemm_int8.h, each tap padded to whole words
//   offsets     [out_c], with the part for signed x of gemm_int8.h
//   border_row  the zero point of x, at least in_c / g + 3 times
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <class TX, class TW, class E>
inline void conv2d_integer(const ConvShape& s, const TX* x, const TW* w_packed, const std::int32_t* offsets,
                           const TX* border_row, const E& epilogue, std::ptrdiff_t work_begin,
                           std::ptrdiff_t work_end) {
  constexpr int G = kWordDepth<TW>;
  const std::ptrdiff_t pixels = std::ptrdiff_t{s.batch} * s.out_h * s.out_w;
  const std::ptrdiff_t channels = s.in_c / s.groups;
  const std::ptrdiff_t columns = s.out_c / s.groups;
  const std::ptrdiff_t words = words_of(channels, G);
  const std::ptrdiff_t packed_size =
      words_of(columns, kPanelColumns) * kPanelColumns * s.kernel_h * s.kernel_w * words * G;
  const std::ptrdiff_t size = (s.batch - 1) * s.in_image_stride + (s.in_h - 1) * s.in_row_stride +
                              (s.in_w - 1) * s.in_pixel_stride + s.in_c;
  const bool by_pixels = pixels >= 2 * kIntegerItemRows;
  const std::ptrdiff_t items = by_pixels ? 0 : gemm_integer_work_items(1, columns);
  for (int g = 0; g < s.groups; ++g) {
    Block block{0, pixels, 0, columns};
    if (by_pixels) {
      block.row_begin = work_begin * kIntegerItemRows;
      block.row_end = smaller(pixels, work_end * kIntegerItemRows);
    } else {
      block.column_begin = larger(0, work_begin - g * items) * kIntegerItemColumns;
      block.column_end = smaller(columns, (work_end - g * items) * kIntegerItemColumns);
    }
    if (block.row_begin >= block.row_end || block.column_begin >= block.column_end) continue;
    const TW* const weights = w_packed + g * packed_size;
    const std::ptrdiff_t first = g * channels;
    const std::ptrdiff_t n_origin = g * columns;
    if (is_pointwise_integer(s)) {
      const IntegerProduct<TX, TW> product{channels, x + first,          s.in_pixel_stride, size - first,
                                           weights,  offsets + n_origin, n_origin};
      gemm_integer_rectangle(product, block, epilogue);
    } else {
      // Taps of a kernel row follow each other word by word if a tap is one word, or if pixels are whole
      // words without gaps.
      const bool contiguous =
          words == 1 || (channels % G == 0 && s.in_pixel_stride == channels && s.dilation_w == 1);
      IntegerGroup<TX, TW> group{s, x + first, size - first, border_row, channels, words, contiguous};
      conv2d_integer_rectangle(group, weights, offsets + n_origin, n_origin, block, epilogue);
    }
  }
}

}  // namespace GCRT_NAMESPACE
