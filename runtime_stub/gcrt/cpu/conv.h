// Direct 2-D convolution, channels last, with the epilogue on the register tile.
//
// The output pixels of all images are the rows of a matrix product whose K runs over kernel taps and input
// channels; each row of a tile has a pointer to its input pixel, so no im2col buffer and no padded copy
// exists. Where a tile lies inside the image, a tap is one offset common to all rows, and the taps of one
// kernel row are one run when the input pixels are contiguous. At the border, taps outside the image read a
// row of zeros, and taps that are outside for the whole tile are skipped.
#pragma once

#include "gcrt/cpu/conv_shape.h"
#include "gcrt/cpu/gemm.h"

namespace GCRT_NAMESPACE {

// Taps handled by one pass over a tile; longer kernels are cut into parts like a long K.
constexpr int kMaxTaps = 32;
// Elements of edge pixels copied next to zeros, for small channel counts (at most 16 KiB of stack).
constexpr std::ptrdiff_t kEdgeElements = 4096 - 256;

// Kernel positions [row_begin, row_end) x [column_begin, column_end) summed in one pass.
struct TapRectangle {
  int row_begin, row_end;
  int column_begin, column_end;
  GCRT_INLINE int columns() const { return column_end - column_begin; }
};

// Which parts of the kernel are summed in one pass.
struct TapParts {
  int rows;     // kernel rows per part
  int columns;  // kernel columns per part; less than kernel_w only if rows is 1
};

// The same for all blocks of a convolution, however many pixels they have (see gemm.h).
GCRT_INLINE TapParts split_taps(const ConvShape& s, std::ptrdiff_t channels) {
  const std::ptrdiff_t pixels = std::ptrdiff_t{s.batch} * s.out_h * s.out_w;
  const std::ptrdiff_t depth = channels * s.kernel_h * s.kernel_w;
  const bool long_depth = pixels > 2 * kTileRows && depth > 2 * kDepthBlock;
  const std::ptrdiff_t taps = long_depth ? larger(1, smaller(kMaxTaps, kDepthBlock / channels)) : kMaxTaps;
  if (taps >= s.kernel_w) {
    return {static_cast<int>(smaller(s.kernel_h, taps / s.kernel_w)), s.kernel_w};
  }
  return {1, static_cast<int>(taps)};
}

// One group of one convolution, restricted to some taps.
template <class T>
struct ConvGroup {
  const ConvShape& shape;
  const T* x;  // first channel of the group
  const T* zero_row;
  std::ptrdiff_t channels;
  bool contiguous;  // the pixels of one kernel row form one run
  TapRectangle taps;

  GCRT_INLINE std::ptrdiff_t tap_offset(int kh, int kw) const {
    return kh * shape.dilation_h * shape.in_row_stride + kw * shape.dilation_w * shape.in_pixel_stride;
  }
  GCRT_INLINE std::ptrdiff_t weight_offset(int kh, int kw) const {
    return (std::ptrdiff_t{kh} * shape.kernel_w + kw) * channels * kPanelColumns;
  }
};

// The row pointers and runs of one tile of output pixels.
template <class T>
struct ConvTile {
  // Position of output pixel `next`: tiles are taken in order, so that divisions are rare.
  std::ptrdiff_t next = -1;
  int image, row, column;

  int count;  // rows including the dropped ones
  int ih[kTileRows];
  int iw[kTileRows];
  std::ptrdiff_t offset[kTileRows];  // of tap (0, 0), which may lie outside the image
  const T* pointers[kMaxTaps * kTileRows];
  TileRun runs[kMaxTaps];
  alignas(64) T edge[kEdgeElements + 256];

  // Fills in the rows of `task` for output pixels m, m + 1, ...; pixels past the last valid one repeat it.
  void prepare(const ConvGroup<T>& group, std::ptrdiff_t m, int rows, int valid, TileTask<T>& task);

 private:
  GCRT_INLINE void seek(const ConvShape& s, std::ptrdiff_t m);
  GCRT_INLINE void advance(const ConvShape& s, int pixels);
  GCRT_INLINE bool is_inside_row(const ConvShape& s) const;
  bool locate(const ConvShape& s, int valid);
  GCRT_INLINE void inside(const ConvGroup<T>& group, TileTask<T>& task);
  void border_by_taps(const ConvGroup<T>& group, TileTask<T>& task);
  void border_by_rows(const ConvGroup<T>& group, TileTask<T>& task);
};

template <class T>
GCRT_INLINE void ConvTile<T>::seek(const ConvShape& s, std::ptrdiff_t m) {
  if (m == next) return;
  next = m;
  const std::ptrdiff_t rows = m / s.out_w;
  column = static_cast<int>(m - rows * s.out_w);
  image = static_cast<int>(rows / s.out_h);
  row = static_cast<int>(rows - std::ptrdiff_t{image} * s.out_h);
}

// Moves on by pixels of the same output row.
template <class T>
GCRT_INLINE void ConvTile<T>::advance(const ConvShape& s, int pixels) {
  next += pixels;
  column += pixels;
  if (column < s.out_w) return;
  column = 0;
  if (++row < s.out_h) return;
  row = 0;
  ++image;
}

// True if the tile lies in one output row and no tap leaves the image.
template <class T>
GCRT_INLINE bool ConvTile<T>::is_inside_row(const ConvShape& s) const {
  const int y = row * s.stride_h - s.pad_top;
  const int x = column * s.stride_w - s.pad_left;
  return column + count <= s.out_w && y >= 0 && x >= 0 && y + (s.kernel_h - 1) * s.dilation_h < s.in_h &&
         x + (count - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w < s.in_w;
}

// Input coordinates of tap (0, 0) for every row; true if no tap of any row leaves the image.
template <class T>
bool ConvTile<T>::locate(const ConvShape& s, int valid) {
  const int reach_h = (s.kernel_h - 1) * s.dilation_h;
  const int reach_w = (s.kernel_w - 1) * s.dilation_w;
  bool is_inside = true;
  for (int i = 0; i < count; ++i) {
    const int y = row * s.stride_h - s.pad_top;
    const int x = column * s.stride_w - s.pad_left;
    ih[i] = y;
    iw[i] = x;
    offset[i] = image * s.in_image_stride + y * s.in_row_stride + x * s.in_pixel_stride;
    is_inside &= (y >= 0) & (x >= 0) & (y + reach_h < s.in_h) & (x + reach_w < s.in_w);
    if (i + 1 < valid || valid == count) advance(s, 1);
  }
  return is_inside;
}

template <class T>
GCRT_INLINE void ConvTile<T>::inside(const ConvGroup<T>& group, TileTask<T>& task) {
  const TapRectangle& taps = group.taps;
  const int columns = group.contiguous ? 1 : taps.columns();
  TileRun* run = runs;
  for (int kh = taps.row_begin; kh < taps.row_end; ++kh) {
    for (int kw = taps.column_begin; kw < taps.column_begin + columns; ++kw) {
      *run++ = {group.tap_offset(kh, kw), group.weight_offset(kh, kw)};
    }
  }
  task.rows_step = 0;
  task.run_count = run - runs;
  task.run_length = group.contiguous ? taps.columns() * group.channels : group.channels;
}

// One run per tap; rows whose tap is outside read zeros.
template <class T>
void ConvTile<T>::border_by_taps(const ConvGroup<T>& group, TileTask<T>& task) {
  const ConvShape& s = group.shape;
  const TapRectangle& taps = group.taps;
  const T** out = pointers;
  TileRun* run = runs;
  for (int kh = taps.row_begin; kh < taps.row_end; ++kh) {
    unsigned row_mask = 0;
    for (int i = 0; i < count; ++i) {
      const bool is_valid = static_cast<unsigned>(ih[i] + kh * s.dilation_h) < static_cast<unsigned>(s.in_h);
      row_mask |= static_cast<unsigned>(is_valid) << i;
    }
    if (row_mask == 0) continue;
    for (int kw = taps.column_begin; kw < taps.column_end; ++kw) {
      const std::ptrdiff_t shift = group.tap_offset(kh, kw);
      unsigned used = 0;
      for (int i = 0; i < count; ++i) {
        const unsigned x = static_cast<unsigned>(iw[i] + kw * s.dilation_w);
        const unsigned is_valid = (row_mask >> i) & static_cast<unsigned>(x < static_cast<unsigned>(s.in_w));
        out[i] = is_valid != 0 ? group.x + (offset[i] + shift) : group.zero_row;
        used |= is_valid;
      }
      if (used == 0) continue;
      out += count;
      *run++ = {0, group.weight_offset(kh, kw)};
    }
  }
  task.rows_step = count;
  task.run_count = run - runs;
  task.run_length = group.channels;
}

// One run per kernel row even at the border: where the runs of neighbouring pixels leave the image, the part
// of the input row that they read is copied next to zeros.
template <class T>
void ConvTile<T>::border_by_rows(const ConvGroup<T>& group, TileTask<T>& task) {
  const ConvShape& s = group.shape;
  const TapRectangle& taps = group.taps;
  const std::ptrdiff_t channels = group.channels;
  const std::ptrdiff_t length = taps.columns() * channels;
  const std::ptrdiff_t step = s.stride_w * channels;
  for (std::ptrdiff_t j = 0; j < length; ++j) edge[j] = T(0);
  T* copy = edge + length;
  const T** out = pointers;
  TileRun* run = runs;
  for (int kh = taps.row_begin; kh < taps.row_end; ++kh) {
    const std::ptrdiff_t shift = group.tap_offset(kh, taps.column_begin);
    bool used = false;
    for (int i = 0; i < count;) {
      int end = i + 1;
      while (end < count && iw[end] > iw[end - 1]) ++end;
      const int first = iw[i] + taps.column_begin;
      const int pixels = (end - 1 - i) * s.stride_w + taps.columns();
      const TapRange range = valid_taps(first, 1, pixels, s.in_w);
      const bool is_row = static_cast<unsigned>(ih[i] + kh * s.dilation_h) < static_cast<unsigned>(s.in_h);
      if (!is_row || range.begin >= range.end) {
        for (; i < end; ++i) out[i] = edge;
        continue;
      }
      used = true;
      const T* source = group.x + (offset[i] + shift);
      if (range.end - range.begin < pixels) {
        const std::ptrdiff_t begin = range.begin * channels;
        for (std::ptrdiff_t j = 0; j < begin; ++j) copy[j] = T(0);
        for (std::ptrdiff_t j = begin; j < range.end * channels; ++j) copy[j] = source[j];
        for (std::ptrdiff_t j = range.end * channels; j < pixels * channels; ++j) copy[j] = T(0);
        source = copy;
        copy += pixels * channels;
      }
      for (; i < end; ++i, source += step) out[i] = source;
    }
    if (!used) continue;
    out += count;
    *run++ = {0, group.weight_offset(kh, taps.column_begin)};
  }
  task.rows_step = count;
  task.run_count = run - runs;
  task.run_length = length;
}

template <class T>
void ConvTile<T>::prepare(const ConvGroup<T>& group, std::ptrdiff_t m, int rows, int valid,
                          TileTask<T>& task) {
  const ConvShape& s = group.shape;
  count = rows;
  seek(s, m);
  task.rows = pointers;
  task.runs = runs;
  if (valid == rows && is_inside_row(s)) {
    task.rows = nullptr;
    task.base = group.x + (image * s.in_image_stride + (row * s.stride_h - s.pad_top) * s.in_row_stride +
                           (column * s.stride_w - s.pad_left) * s.in_pixel_stride);
    task.row_stride = s.stride_w * s.in_pixel_stride;
    inside(group, task);
    advance(s, rows);
    return;
  }
  const TapRectangle& taps = group.taps;
  // A strip of input per kernel row is at most as long as the runs of all pixels together.
  const std::ptrdiff_t copied =
      taps.columns() * group.channels * ((taps.row_end - taps.row_begin) * count + 1) +
      (taps.row_end - taps.row_begin) * count * (s.stride_w - 1) * group.channels;
  if (locate(s, valid)) {
    for (int i = 0; i < count; ++i) pointers[i] = group.x + offset[i];
    inside(group, task);
  } else if (group.contiguous && group.channels <= 16 && copied <= kEdgeElements) {
    border_by_rows(group, task);
  } else {
    border_by_taps(group, task);
  }
}

// Some output pixels and columns of one group. `partial` as in gemm_block.
template <class T, class E>
inline void conv2d_block(ConvGroup<T>& group, const TapParts& parts, const T* w_packed,
                         std::ptrdiff_t n_origin, const Block& block, T* partial, ConvTile<T>& tile,
                         const E& epilogue) {
  const ConvShape& s = group.shape;
  const std::ptrdiff_t depth = group.channels * s.kernel_h * s.kernel_w;
  const bool single_tile = block.row_end - block.row_begin <= kTileRows && partial == nullptr;
  TileTask<T> task;
  task.panel_stride = depth * kPanelColumns;
  std::ptrdiff_t prepared = -1;
  for (std::ptrdiff_t n = block.column_begin; n < block.column_end; n += kTileColumns<T>) {
    task.b = w_packed + packed_b_offset(depth, n);
    task.n = n_origin + n;
    task.valid_columns = static_cast<int>(smaller(block.column_end - n, kTileColumns<T>));
    const T* const next = w_packed + packed_b_offset(depth, n + kTileColumns<T>);
    for (int kh = 0; kh < s.kernel_h; kh += parts.rows) {
      for (int kw = 0; kw < s.kernel_w; kw += parts.columns) {
        group.taps = {kh, kh + parts.rows < s.kernel_h ? kh + parts.rows : s.kernel_h, kw,
                      kw + parts.columns < s.kernel_w ? kw + parts.columns : s.kernel_w};
        task.resume = kh > 0 || kw > 0;
        task.finish = group.taps.row_end == s.kernel_h && group.taps.column_end == s.kernel_w;
        int index = 0;
        for (std::ptrdiff_t m = block.row_begin; m < block.row_end;) {
          const int rows = next_tile_rows(block.row_end - m);
          const int valid = static_cast<int>(smaller(block.row_end - m, rows));
          if (!single_tile || prepared != m) tile.prepare(group, m, rows, valid, task);
          prepared = m;
          task.prefetch = next + (index++ % kPrefetchTiles<T>)*(depth / 4) * kPanelColumns;
          task.partial = partial == nullptr ? nullptr : partial + (m - block.row_begin) * kTileColumns<T>;
          task.m = m;
          task.valid_rows = valid;
          run_tile(rows, task, epilogue);
          m += rows;
        }
      }
    }
  }
}

template <class T, class E>
GCRT_NOINLINE void conv2d_in_parts(ConvGroup<T>& group, const TapParts& parts, const T* w_packed,
                                   std::ptrdiff_t n_origin, Block block, ConvTile<T>& tile,
                                   const E& epilogue) {
  alignas(64) T partial[(kParkedRows + 1) * kTileColumns<T>];
  const std::ptrdiff_t row_end = block.row_end;
  for (; block.row_begin < row_end; block.row_begin += kParkedRows) {
    block.row_end = smaller(row_end, block.row_begin + kParkedRows);
    conv2d_block(group, parts, w_packed, n_origin, block, partial, tile, epilogue);
  }
}

// Bytes of weights of one group that are read again for every tile of pixels rather than once per block.
constexpr std::ptrdiff_t kResidentWeightBytes = 256 * 1024;

template <class T, class E>
inline void conv2d_rectangle(ConvGroup<T>& group, const T* w_packed, std::ptrdiff_t n_origin, Block block,
                             const E& epilogue) {
  const ConvShape& s = group.shape;
  const TapParts parts = split_taps(s, group.channels);
  ConvTile<T> tile;
  if (parts.rows < s.kernel_h || parts.columns < s.kernel_w) {
    conv2d_in_parts(group, parts, w_packed, n_origin, block, tile, epilogue);
    return;
  }
  const std::ptrdiff_t size = static_cast<std::ptrdiff_t>(sizeof(T));
  const std::ptrdiff_t weights =
      packed_b_size(group.channels * s.kernel_h * s.kernel_w, block.column_end - block.column_begin) * size;
  const std::ptrdiff_t used = smaller(s.kernel_h, s.stride_h) * smaller(s.kernel_w, s.stride_w);
  std::ptrdiff_t step = kRowBlockBytes / (group.channels * size * used) / kTileRows * kTileRows;
  if (step < kTileRows || weights <= kResidentWeightBytes) step = kTileRows;
  const std::ptrdiff_t row_end = block.row_end;
  while (block.row_begin < row_end) {
    // A single tile keeps its row pointers for all columns.
    block.row_end = block.row_begin + (step > kTileRows ? step : next_tile_rows(row_end - block.row_begin));
    block.row_end = smaller(row_end, block.row_end);
    conv2d_block(group, parts, w_packed, n_origin, block, static_cast<T*>(nullptr), tile, epilogue);
    block.row_begin = block.row_end;
  }
}

// True if the convolution is one matrix product over all pixels of all images.
GCRT_INLINE bool is_pointwise(const ConvShape& s) {
  return s.kernel_h == 1 && s.kernel_w == 1 && s.stride_h == 1 && s.stride_w == 1 && s.pad_top == 0 &&
         s.pad_left == 0 && s.out_h == s.in_h && s.out_w == s.in_w &&
         (s.out_h == 1 || s.in_row_stride == s.in_w * s.in_pixel_stride) &&
         (s.batch == 1 || s.in_image_stride == std::ptrdiff_t{s.in_h} * s.in_w * s.in_pixel_stride);
}

// How many pieces a thread pool may split a convolution into: blocks of pixels, or of columns of a group.
template <class T = float>
inline std::ptrdiff_t conv2d_work_items(const ConvShape& s) {
  const std::ptrdiff_t pixels = std::ptrdiff_t{s.batch} * s.out_h * s.out_w;
  if (pixels >= 2 * kItemRows) return (pixels + kItemRows - 1) / kItemRows;
  return s.groups * column_items<T>(pixels, s.out_c / s.groups);
}

// Work items [work_begin, work_end) of a convolution.
//   x         input, see ConvShape
//   w_packed  per group [ceil(OC / g / 16)][kernel_h * kernel_w][in_c / g][16], zero padded
//   zero_row  at least in_c / g zeros
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <class T, class E>
inline void conv2d(const ConvShape& s, const T* x, const T* w_packed, const T* zero_row, const E& epilogue,
                   std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  const std::ptrdiff_t pixels = std::ptrdiff_t{s.batch} * s.out_h * s.out_w;
  const std::ptrdiff_t channels = s.in_c / s.groups;
  const std::ptrdiff_t columns = s.out_c / s.groups;
  const std::ptrdiff_t depth = channels * s.kernel_h * s.kernel_w;
  const bool by_pixels = pixels >= 2 * kItemRows;
  const std::ptrdiff_t items = by_pixels ? 0 : column_items<T>(pixels, columns);
  for (int g = 0; g < s.groups; ++g) {
    Block block{0, pixels, 0, columns};
    if (by_pixels) {
      block.row_begin = work_begin * kItemRows;
      block.row_end = smaller(pixels, work_end * kItemRows);
    } else {
      block.column_begin = larger(0, work_begin - g * items) * item_columns<T>(pixels);
      block.column_end = smaller(columns, (work_end - g * items) * item_columns<T>(pixels));
    }
    if (block.row_begin >= block.row_end || block.column_begin >= block.column_end) continue;
    const T* const weights = w_packed + g * packed_b_size(depth, columns);
    const std::ptrdiff_t n_origin = g * columns;
    if (is_pointwise(s)) {
      const Product<T> product{depth, x + g * channels, s.in_pixel_stride, weights, n_origin, pixels};
      gemm_rectangle(product, block, epilogue);
    } else {
      const bool contiguous = s.groups == 1 && s.dilation_w == 1 && s.in_pixel_stride == s.in_c;
      ConvGroup<T> group{s, x + g * channels, zero_row, channels, contiguous, {}};
      conv2d_rectangle(group, weights, n_origin, block, epilogue);
    }
  }
}

// The whole convolution.
template <class T, class E>
inline void conv2d(const ConvShape& s, const T* x, const T* w_packed, const T* zero_row, const E& epilogue) {
  conv2d(s, x, w_packed, zero_row, epilogue, 0, conv2d_work_items<T>(s));
}

}  // namespace GCRT_NAMESPACE
