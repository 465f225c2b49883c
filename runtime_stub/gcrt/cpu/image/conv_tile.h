// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The rows of a register tile of a convolution: pointers to the input pixels of its output pixels, and the
// runs of kernel taps that they share.
//
// Where a tile lies inside the image, a tap is one offset common to all rows, and the taps of one kernel row
// are one run when the input pixels are contiguous. At the border, taps outside the image read a row of zeros
// (of zero points, where integers have any), and taps that are outside for the whole tile are skipped where
// they add nothing. Windows of bytes that would not fill words are copied together, those of several tiles
// before they are multiplied: what was just stored in pieces is not read in others.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cpu/product/gemm.h"

namespace GCRT_NAMESPACE {

// Elements of edge pixels copied next to zeros, for small channel counts: at most 16 KiB of stack, or two
// where there are no vectors.
constexpr std::ptrdiff_t kEdgeElements = (GCRT_VECTOR_BYTES > 4 ? 4096 : 512) - 256;
// Row pointers per tap, a whole number of vectors of them.
constexpr int kPointerLanes = GCRT_VECTOR_BYTES > sizeof(std::intptr_t)
                                  ? GCRT_VECTOR_BYTES / static_cast<int>(sizeof(std::intptr_t))
                                  : 1;
template <class Dot>
constexpr int kPointerRows = (Dot::kRows + kPointerLanes - 1) / kPointerLanes* kPointerLanes;

// Kernel positions [row_begin, row_end) x [column_begin, column_end) summed in one pass.
struct TapRectangle {
  int row_begin, row_end;
  int column_begin, column_end;
  GCRT_INLINE int rows() const { return row_end - row_begin; }
  GCRT_INLINE int columns() const { return column_end - column_begin; }
};

// One group of one convolution, restricted to some taps.
template <class Dot>
struct ConvGroup {
  using Left = typename Dot::Left;

  const ConvShape& shape;
  const Left* x;        // first channel of the group
  std::ptrdiff_t size;  // elements that may be read from x on
  const Left* border_row;
  const typename Dot::Right* w_packed;
  const typename Dot::Sum* offsets;
  SplitWords split;
  std::ptrdiff_t n_origin;
  std::ptrdiff_t channels;
  std::ptrdiff_t words;        // per tap
  std::ptrdiff_t panel_words;  // of all taps
  bool contiguous;             // the taps of one kernel row are one run
  bool gathered;               // all taps are one run
  TapRectangle taps = {};

  GCRT_INLINE std::ptrdiff_t tap_offset(int kh, int kw) const {
    return kh * shape.dilation_h * shape.in_row_stride + kw * shape.dilation_w * shape.in_pixel_stride;
  }
  GCRT_INLINE std::ptrdiff_t last_tap_offset() const {
    return tap_offset(taps.row_end - 1, taps.column_end - 1);
  }
  GCRT_INLINE std::ptrdiff_t weight_offset(int kh, int kw) const {
    return (std::ptrdiff_t{kh} * shape.kernel_w + kw) * words * kPanelColumns * Dot::kWordDepth;
  }
  // True if whole words of the pixel at this offset lie inside the operand.
  GCRT_INLINE bool may_read_on(std::ptrdiff_t offset) const {
    return Dot::kWordDepth == 1 || offset + words * Dot::kWordDepth <= size;
  }
};

// The most elements of windows that are copied together: of integers, whose weights are packed for that, and
// of others where vectors are so wide that a tile is done before the runs of its kernel rows have begun.
template <class Dot>
constexpr std::ptrdiff_t gathered_depth() {
  if constexpr (Dot::kWordDepth > 1) {
    return kGatheredDepth;
  } else {
    return Dot::kGatheredDepth;
  }
}
template <class Dot>
constexpr bool gathers(const ConvShape& s) {
  if constexpr (Dot::kWordDepth > 1) {
    return gathers_windows(s);
  } else {
    const std::ptrdiff_t taps = std::ptrdiff_t{s.kernel_h} * s.kernel_w;
    return s.groups == 1 && taps > 1 && s.in_c % 4 != 0 && taps * s.in_c <= Dot::kGatheredDepth;
  }
}

// Copies a run of elements in vectors; reads and writes go on to the end of the last one.
constexpr int kRunElements = 16;
template <class T>
GCRT_INLINE void copy_run(const T* from, std::ptrdiff_t length, T* to) {
  constexpr Lanes<kRunElements> lane{};
  for (std::ptrdiff_t j = 0; j < length; j += kRunElements) store(lane, to + j, load(lane, from + j));
}

// The row pointers and runs of one tile of output pixels.
template <class Dot>
struct ConvTile {
  using Left = typename Dot::Left;
  static constexpr bool kCopiesEdges = Dot::kEdgeChannels > 0;
  // From one gathered window to the next, with room for the vector in which it ends.
  static constexpr std::ptrdiff_t kGatheredStride =
      gathered_depth<Dot>() + 64 / static_cast<std::ptrdiff_t>(sizeof(Left));
  static constexpr std::ptrdiff_t kGatheredRows = kStripTiles<Dot> * Dot::kRows;
  static constexpr std::ptrdiff_t kGatheredElements = kGatheredStride * kGatheredRows;
  static constexpr std::ptrdiff_t kCopiedElements =
      larger(gathered_depth<Dot>() > 0 ? kGatheredElements : 1, kCopiesEdges ? kEdgeElements + 256 : 1);

  // Position of output pixel `next`: tiles are taken in order, so that divisions are rare.
  std::ptrdiff_t next = -1;
  int image, row, column;

  int count;  // rows including the dropped ones
  int ih[kPointerRows<Dot>];
  int iw[kPointerRows<Dot>];
  std::intptr_t offset[kPointerRows<Dot>];  // of tap (0, 0), which may lie outside the image
  const Left* pointers[Dot::kMaxTaps * kPointerRows<Dot>];
  TileRun runs[Dot::kMaxTaps];
  alignas(64) Left copied[kCopiedElements];  // edges, or gathered windows

  // Fills in the rows of `task` for output pixels m, m + 1, ...; pixels past the last valid one repeat it.
  void prepare(const ConvGroup<Dot>& group, std::ptrdiff_t m, int rows, int valid, TileTask<Dot>& task);

  // Copies the windows of `valid` output pixels m, m + 1, ..., kGatheredStride apart; others up to `rows`
  // repeat the last.
  void gather(const ConvGroup<Dot>& group, std::ptrdiff_t m, int rows, int valid);

 private:
  GCRT_INLINE void seek(const ConvShape& s, std::ptrdiff_t m);
  GCRT_INLINE void advance(const ConvShape& s, int pixels);
  GCRT_INLINE bool is_inside_row(const ConvShape& s) const;
  bool locate(const ConvShape& s, int valid);
  GCRT_INLINE void inside(const ConvGroup<Dot>& group, TileTask<Dot>& task);
  GCRT_INLINE bool fits_edge(const ConvGroup<Dot>& group) const;
  void border_by_taps(const ConvGroup<Dot>& group, TileTask<Dot>& task);
  void border_by_rows(const ConvGroup<Dot>& group, TileTask<Dot>& task);
  GCRT_INLINE void gather_border(const ConvGroup<Dot>& group, Left* to) const;
  // What fills the last word of a window, which is multiplied by zeros, is written before the window is: runs
  // may go on beyond its end.
  GCRT_INLINE static void end_word(Left* to) {
    if constexpr (Dot::kWordDepth > 1) {
      for (int j = 0; j < Dot::kWordDepth; ++j) to[j] = Left(0);
    }
  }
  GCRT_INLINE int pixels_inside(const ConvGroup<Dot>& group, int most) const;
};

template <class Dot>
GCRT_INLINE void ConvTile<Dot>::seek(const ConvShape& s, std::ptrdiff_t m) {
  if (m == next) return;
  next = m;
  const std::ptrdiff_t rows = m / s.out_w;
  column = static_cast<int>(m - rows * s.out_w);
  image = static_cast<int>(rows / s.out_h);
  row = static_cast<int>(rows - std::ptrdiff_t{image} * s.out_h);
}

// Moves on by pixels of the same output row.
template <class Dot>
GCRT_INLINE void ConvTile<Dot>::advance(const ConvShape& s, int pixels) {
  next += pixels;
  column += pixels;
  if (column < s.out_w) return;
  column = 0;
  if (++row < s.out_h) return;
  row = 0;
  ++image;
}

// True if the tile lies in one output row and no tap leaves the image.
template <class Dot>
GCRT_INLINE bool ConvTile<Dot>::is_inside_row(const ConvShape& s) const {
  const int y = row * s.stride_h - s.pad_top;
  const int x = column * s.stride_w - s.pad_left;
  return column + count <= s.out_w && y >= 0 && x >= 0 && y + (s.kernel_h - 1) * s.dilation_h < s.in_h &&
         x + (count - 1) * s.stride_w + (s.kernel_w - 1) * s.dilation_w < s.in_w;
}

// Input coordinates of tap (0, 0) for every row; true if no tap of any row leaves the image.
template <class Dot>
bool ConvTile<Dot>::locate(const ConvShape& s, int valid) {
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

// Rows share their runs: one per kernel row, or one per tap.
template <class Dot>
GCRT_INLINE void ConvTile<Dot>::inside(const ConvGroup<Dot>& group, TileTask<Dot>& task) {
  const ConvShape& s = group.shape;
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
  task.run_words = group.contiguous ? taps.columns() * group.words : group.words;
  task.tail = 0;
  if constexpr (!Dot::kStepIsWord) {
    if (group.contiguous && group.words == 1) task.word_step = s.dilation_w * s.in_pixel_stride;
  }
}

// One run per tap; rows whose tap is outside read the border row.
template <class Dot>
void ConvTile<Dot>::border_by_taps(const ConvGroup<Dot>& group, TileTask<Dot>& task) {
  using V = Pack<std::intptr_t, kPointerLanes>;
  constexpr Lanes<kPointerLanes> lane{};
  constexpr int kVectors = kPointerRows<Dot> / kPointerLanes;
  const ConvShape& s = group.shape;
  const TapRectangle& taps = group.taps;
  const V zero{};
  const V outside = splat(lane, reinterpret_cast<std::intptr_t>(group.border_row));
  const auto is_in = [&](const int* origins, int shift, int size) GCRT_LAMBDA_INLINE {
    const Pack<int, kPointerLanes> at = load(lane, origins) + shift;
    return convert<std::intptr_t>((at >= 0) & (at < size));
  };
  const auto has_any = [](V mask) GCRT_LAMBDA_INLINE {
    std::intptr_t any = 0;
    GCRT_UNROLL
    for (int i = 0; i < kPointerLanes; ++i) any |= lane_of(mask, i);
    return any != 0;
  };
  for (int i = count; i < kPointerRows<Dot>; ++i) {
    ih[i] = ih[0];
    iw[i] = iw[0];
    offset[i] = offset[0];
  }
  const Left** out = pointers;
  TileRun* run = runs;
  V last = zero;
  for (int kh = taps.row_begin; kh < taps.row_end; ++kh) {
    V is_row[kVectors];
    V any_row = zero;
    GCRT_UNROLL
    for (int i = 0; i < kVectors; ++i) {
      is_row[i] = is_in(ih + i * kPointerLanes, kh * s.dilation_h, s.in_h);
      any_row |= is_row[i];
    }
    // A tile that lies outside as a whole keeps its last tap.
    const bool is_last_row = kh + 1 == taps.row_end;
    if (Dot::kSkipsBorder && !has_any(any_row) && !(is_last_row && run == runs)) continue;
    for (int kw = taps.column_begin; kw < taps.column_end; ++kw) {
      const std::ptrdiff_t shift = group.tap_offset(kh, kw);
      V any = zero;
      GCRT_UNROLL
      for (int i = 0; i < kVectors; ++i) {
        const V is_valid = is_row[i] & is_in(iw + i * kPointerLanes, kw * s.dilation_w, s.in_w);
        const V at = load(lane, offset + i * kPointerLanes) + std::intptr_t{shift};
        const V bytes = at * static_cast<std::intptr_t>(sizeof(Left));
        const V address = blend(is_valid, bytes + reinterpret_cast<std::intptr_t>(group.x), outside);
        last = blend(is_valid & (at > last), at, last);
        any |= is_valid;
        __builtin_memcpy(out + i * kPointerLanes, &address, sizeof(address));
      }
      const bool is_last = is_last_row && kw + 1 == taps.column_end;
      if (Dot::kSkipsBorder && !has_any(any) && !(is_last && run == runs)) continue;
      out += kPointerRows<Dot>;
      *run++ = {0, group.weight_offset(kh, kw)};
    }
  }
  std::intptr_t end = 0;
  for (int i = 0; i < kPointerLanes; ++i) end = larger(end, lane_of(last, i));
  task.rows_step = kPointerRows<Dot>;
  task.run_count = run - runs;
  set_run_depth(task, group.channels, group.may_read_on(end));
}

// Whether the strips of input that border_by_rows copies fit: per kernel row at most as long as the runs of
// all pixels together.
template <class Dot>
GCRT_INLINE bool ConvTile<Dot>::fits_edge(const ConvGroup<Dot>& group) const {
  const TapRectangle& taps = group.taps;
  const std::ptrdiff_t elements = taps.columns() * group.channels * (taps.rows() * count + 1) +
                                  taps.rows() * count * (group.shape.stride_w - 1) * group.channels;
  return group.contiguous && group.channels <= Dot::kEdgeChannels && elements <= kEdgeElements;
}

// One run per kernel row even at the border: where the runs of neighbouring pixels leave the image, the part
// of the input row that they read is copied next to zeros.
template <class Dot>
void ConvTile<Dot>::border_by_rows(const ConvGroup<Dot>& group, TileTask<Dot>& task) {
  const ConvShape& s = group.shape;
  const TapRectangle& taps = group.taps;
  const std::ptrdiff_t channels = group.channels;
  const std::ptrdiff_t length = taps.columns() * channels;
  const std::ptrdiff_t step = s.stride_w * channels;
  for (std::ptrdiff_t j = 0; j < length; ++j) copied[j] = Left(0);
  Left* copy = copied + length;
  const Left** out = pointers;
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
        for (; i < end; ++i) out[i] = copied;
        continue;
      }
      used = true;
      const Left* source = group.x + (offset[i] + shift);
      if (range.end - range.begin < pixels) {
        const std::ptrdiff_t begin = range.begin * channels;
        for (std::ptrdiff_t j = 0; j < begin; ++j) copy[j] = Left(0);
        for (std::ptrdiff_t j = begin; j < range.end * channels; ++j) copy[j] = source[j];
        for (std::ptrdiff_t j = range.end * channels; j < pixels * channels; ++j) copy[j] = Left(0);
        source = copy;
        copy += pixels * channels;
      }
      for (; i < end; ++i, source += step) out[i] = source;
    }
    if (!used && !(kh + 1 == taps.row_end && run == runs)) continue;
    out += count;
    *run++ = {0, group.weight_offset(kh, taps.column_begin)};
  }
  task.rows_step = count;
  task.run_count = run - runs;
  task.run_words = length;
  task.tail = 0;
}

// Copies the window at the current position tap by tap; those outside the image are the zero point.
template <class Dot>
GCRT_INLINE void ConvTile<Dot>::gather_border(const ConvGroup<Dot>& group, Left* to) const {
  const ConvShape& s = group.shape;
  const int y = row * s.stride_h - s.pad_top, x = column * s.stride_w - s.pad_left;
  const std::ptrdiff_t first = image * s.in_image_stride + y * s.in_row_stride + x * s.in_pixel_stride;
  for (int kh = 0; kh < s.kernel_h; ++kh) {
    const bool is_row = static_cast<unsigned>(y + kh * s.dilation_h) < static_cast<unsigned>(s.in_h);
    for (int kw = 0; kw < s.kernel_w; ++kw, to += group.channels) {
      const bool is_in =
          is_row && static_cast<unsigned>(x + kw * s.dilation_w) < static_cast<unsigned>(s.in_w);
      const Left* const from = is_in ? group.x + (first + group.tap_offset(kh, kw)) : group.border_row;
      for (std::ptrdiff_t c = 0; c < group.channels; ++c) to[c] = from[c];
    }
  }
}

// Counts those of the next `most` output pixels that are in one row, whose windows lie inside the image, and
// may be copied in whole vectors.
template <class Dot>
GCRT_INLINE int ConvTile<Dot>::pixels_inside(const ConvGroup<Dot>& group, int most) const {
  const ConvShape& s = group.shape;
  const int y = row * s.stride_h - s.pad_top, x = column * s.stride_w - s.pad_left;
  const int below = y + (s.kernel_h - 1) * s.dilation_h, right = s.in_w - 1 - (s.kernel_w - 1) * s.dilation_w;
  if (y < 0 || x < 0 || below >= s.in_h || x > right) return 0;
  const std::ptrdiff_t last = image * s.in_image_stride + below * s.in_row_stride + x * s.in_pixel_stride +
                              ceil_div(s.kernel_w * group.channels, kRunElements) * kRunElements;
  if (last > group.size) return 0;
  const std::ptrdiff_t fits = (group.size - last) / (s.stride_w * s.in_pixel_stride);
  return static_cast<int>(
      smaller(smaller(most, s.out_w - column), smaller((right - x) / s.stride_w, fits) + 1));
}

// Kernel row by kernel row inside the image, where pixels follow each other.
template <class Dot>
void ConvTile<Dot>::gather(const ConvGroup<Dot>& group, std::ptrdiff_t m, int rows, int valid) {
  const ConvShape& s = group.shape;
  seek(s, m);
  Left* to = copied;
  const bool is_dense = s.in_pixel_stride == group.channels && s.dilation_w == 1;
  const std::ptrdiff_t length = s.kernel_w * group.channels, line = s.dilation_h * s.in_row_stride;
  const std::ptrdiff_t step = s.stride_w * s.in_pixel_stride;
  const int lines = s.kernel_h;
  const std::ptrdiff_t depth = lines * length;
  for (int left = valid; left > 0;) {
    const int pixels = is_dense ? pixels_inside(group, left) : 0;
    if (pixels == 0) {
      end_word(to + depth);
      gather_border(group, to);
      to += kGatheredStride;
      advance(s, 1);
      --left;
      continue;
    }
    const Left* from =
        group.x + (image * s.in_image_stride + (row * s.stride_h - s.pad_top) * s.in_row_stride +
                   (column * s.stride_w - s.pad_left) * s.in_pixel_stride);
    for (int i = 0; i < pixels; ++i, from += step, to += kGatheredStride) {
      end_word(to + depth);
      for (int kh = 0; kh < lines; ++kh) copy_run(from + kh * line, length, to + kh * length);
    }
    advance(s, pixels);
    left -= pixels;
  }
  for (int i = valid; i < rows; ++i, to += kGatheredStride)
    copy_run(to - kGatheredStride, kGatheredStride, to);
}

template <class Dot>
void ConvTile<Dot>::prepare(const ConvGroup<Dot>& group, std::ptrdiff_t m, int rows, int valid,
                            TileTask<Dot>& task) {
  const ConvShape& s = group.shape;
  count = rows;
  seek(s, m);
  task.rows = pointers;
  task.runs = runs;
  task.word_step = Dot::kWordDepth;
  if (valid == rows && is_inside_row(s)) {
    const std::ptrdiff_t first = image * s.in_image_stride +
                                 (row * s.stride_h - s.pad_top) * s.in_row_stride +
                                 (column * s.stride_w - s.pad_left) * s.in_pixel_stride;
    const std::ptrdiff_t row_stride = s.stride_w * s.in_pixel_stride;
    if (group.may_read_on(first + (rows - 1) * row_stride + group.last_tap_offset())) {
      task.rows = nullptr;
      task.base = group.x + first;
      task.row_stride = row_stride;
      inside(group, task);
      advance(s, rows);
      return;
    }
  }
  const bool is_inside = locate(s, valid);
  std::ptrdiff_t last = 0;
  for (int i = 0; i < count; ++i) last = larger(last, offset[i]);
  if (is_inside && group.may_read_on(last + group.last_tap_offset())) {
    for (int i = 0; i < count; ++i) pointers[i] = group.x + offset[i];
    inside(group, task);
    return;
  }
  if constexpr (kCopiesEdges) {
    if (fits_edge(group)) return border_by_rows(group, task);
  }
  border_by_taps(group, task);
}

}  // namespace GCRT_NAMESPACE
