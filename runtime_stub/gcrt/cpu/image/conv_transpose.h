// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Transposed 2-D convolution, channels last, without a scatter: the output pixels of one phase (row and
// column modulo the stride) see the same taps,
// so each phase is a direct convolution of stride 1 over those taps.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cpu/product/gemm.h"

namespace GCRT_NAMESPACE {

// Taps summed in one pass over a tile; more are summed in parts.
constexpr int kPhaseTaps = 16;

// The rows of a tile are output pixels `stride_w` apart: maps their index to the output pixel.
template <class E>
struct PhaseEpilogue {
  const E& epilogue;
  const std::ptrdiff_t* pixels;
  template <class L, class V>
  GCRT_INLINE void operator()(L lane, V sums, std::ptrdiff_t m, std::ptrdiff_t n) const {
    epilogue(lane, sums, pixels[m], n);
  }
};

// What is multiplied: see conv_transpose2d.
template <class Dot>
struct TransposeOperands {
  const typename Dot::Left* x;
  const typename Dot::Right* w_packed;
  const typename Dot::Left* border_row;
  const typename Dot::Sum* offsets = nullptr;  // of the first phase
  std::ptrdiff_t offsets_step = 0;             // from one phase to the next
  SplitWords split = {};
};

// One phase of one group of one image.
template <class Dot>
struct TransposePhase {
  using Left = typename Dot::Left;
  const ConvShape& shape;
  const Left* image;  // first channel of the group
  const Left* border_row;
  std::ptrdiff_t channels;
  int row_phase, column_phase;
  PhaseTaps rows, columns;
  int phase_columns;         // output columns of this phase
  std::ptrdiff_t out_image;  // first output pixel of the image

  std::ptrdiff_t words() const { return ceil_div(channels, Dot::kWordDepth); }
};

// The output pixels of one tile, and their input pixels for some taps.
template <class Dot>
struct TransposeTile {
  using Left = typename Dot::Left;
  std::ptrdiff_t pixels[Dot::kRows];
  int oh[Dot::kRows];
  int ow[Dot::kRows];
  const Left* pointers[kPhaseTaps * Dot::kRows];
  TileRun runs[kPhaseTaps];

  // Pixels index, index + 1, ... of a phase, row by row; those past the last valid one repeat it.
  void locate(const TransposePhase<Dot>& phase, std::ptrdiff_t index, int rows, int valid) {
    const ConvShape& s = phase.shape;
    int r = static_cast<int>(index / phase.phase_columns);
    int c = static_cast<int>(index % phase.phase_columns);
    for (int i = 0; i < rows; ++i) {
      oh[i] = r * s.stride_h + phase.row_phase;
      ow[i] = c * s.stride_w + phase.column_phase;
      pixels[i] = phase.out_image + std::ptrdiff_t{oh[i]} * s.out_w + ow[i];
      if (i + 1 < valid && ++c == phase.phase_columns) {
        c = 0;
        ++r;
      }
    }
  }

  // Row pointers for taps [begin, end) of the phase; taps outside the image for every row are left out, if
  // they add nothing. There is always a run, of no words where the phase has no taps.
  void point(const TransposePhase<Dot>& phase, int rows, int begin, int end, TileTask<Dot>& task) {
    const ConvShape& s = phase.shape;
    const Left** out = pointers;
    TileRun* run = runs;
    for (int tap = begin; tap < end; ++tap) {
      const int kh = phase.rows.first + tap / phase.columns.count * phase.rows.step;
      const int kw = phase.columns.first + tap % phase.columns.count * phase.columns.step;
      bool used = false;
      for (int i = 0; i < rows; ++i) {
        // Both are multiples of the stride, so that the division is exact.
        const int y = oh[i] + s.pad_top - kh * s.dilation_h;
        const int x = ow[i] + s.pad_left - kw * s.dilation_w;
        const bool is_valid = y >= 0 && x >= 0 && y < s.in_h * s.stride_h && x < s.in_w * s.stride_w;
        out[i] = is_valid
                     ? phase.image + (y / s.stride_h * s.in_row_stride + x / s.stride_w * s.in_pixel_stride)
                     : phase.border_row;
        used = used || is_valid;
      }
      if (Dot::kSkipsBorder && !used && !(run == runs && tap + 1 == end)) continue;
      out += rows;
      const std::ptrdiff_t place = std::ptrdiff_t{kh} * s.kernel_w + kw;
      *run++ = {0, place * phase.words() * kPanelColumns * Dot::kWordDepth};
    }
    if (run == runs) {
      for (int i = 0; i < rows; ++i) pointers[i] = phase.border_row;
      *run++ = {};
    }
    task.rows = pointers;
    task.rows_step = rows;
    task.runs = runs;
    task.run_count = run - runs;
  }
};

// All columns of pixels [begin, end) of one phase. Words that the channels do not fill are read in part.
template <class Dot, class E>
inline void conv_transpose2d_phase(const TransposePhase<Dot>& phase, std::ptrdiff_t begin, std::ptrdiff_t end,
                                   const TransposeOperands<Dot>& group, std::ptrdiff_t columns,
                                   std::ptrdiff_t n_origin, const E& epilogue) {
  const std::ptrdiff_t words = phase.words() * phase.shape.kernel_h * phase.shape.kernel_w;
  const int taps = phase.rows.count * phase.columns.count;
  TransposeTile<Dot> tile;
  alignas(64) typename Dot::Sum sums[Dot::kRows * kTileColumns<Dot>];
  alignas(64) typename ColumnTiles<Dot>::Padded padded;
  const PhaseEpilogue<E> to_pixels{epilogue, tile.pixels};
  const TileEpilogue<Dot> finish = tile_epilogue<Dot>(to_pixels);
  ColumnTiles<Dot> tiles{group.w_packed, words, group.offsets, n_origin, columns, padded, group.split};
  TileTask<Dot> task;
  task.word_step = Dot::kWordDepth;
  task.sums = sums;
  task.m = 0;
  set_run_depth(task, taps > 0 ? phase.channels : 0, phase.channels % Dot::kWordDepth == 0);
  for (std::ptrdiff_t index = begin; index < end;) {
    const int rows = Dot::next_rows(end - index);
    task.valid_rows = static_cast<int>(smaller(end - index, rows));
    tile.locate(phase, index, rows, task.valid_rows);
    for (std::ptrdiff_t n = 0; n < columns;) {
      const int tile_columns = tiles.select(task, n, 0, 0);
      task.next = task.b;
      int tap = 0;
      do {
        const int tap_end = static_cast<int>(smaller(taps, tap + kPhaseTaps));
        if (n == 0 || taps > kPhaseTaps) tile.point(phase, rows, tap, tap_end, task);
        task.resume = tap > 0;
        task.finish = tap_end == taps;
        run_tile(rows, tile_columns, task, finish);
        tap = tap_end;
      } while (tap < taps);
      n += tile_columns;
    }
    index += rows;
  }
}

// Bands of stride_h output rows in one work item: as few as make whole tiles in every phase, so that the
// tiles are the same however the items are dealt out.
inline std::ptrdiff_t transpose_item_bands(const ConvShape& s) {
  if (s.out_w % s.stride_w != 0) return UsualTile::kRows;
  std::ptrdiff_t bands = 1;
  while (bands * (s.out_w / s.stride_w) % UsualTile::kRows != 0) ++bands;
  return bands;
}

// Work items of one image.
inline std::ptrdiff_t transpose_image_items(const ConvShape& s) {
  const std::ptrdiff_t item_rows = transpose_item_bands(s) * s.stride_h;
  return (s.out_h + item_rows - 1) / item_rows;
}

// How many pieces a thread pool may split a transposed convolution into.
inline std::ptrdiff_t conv_transpose2d_work_items(const ConvShape& s) {
  return s.batch * transpose_image_items(s);
}

// Work items [work_begin, work_end) of a transposed convolution of any kind of operands.
template <class Dot, class E>
inline void conv_transpose2d_items(const ConvShape& s, const TransposeOperands<Dot>& operands,
                                   const E& epilogue, std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  const std::ptrdiff_t channels = s.in_c / s.groups;
  const std::ptrdiff_t columns = s.out_c / s.groups;
  const std::ptrdiff_t items = transpose_image_items(s);
  const std::ptrdiff_t item_bands = transpose_item_bands(s);
  const std::ptrdiff_t words = ceil_div(channels, Dot::kWordDepth) * s.kernel_h * s.kernel_w;
  const std::ptrdiff_t group_weights = packed_b_size(words, columns) * Dot::kWordDepth;
  for (std::ptrdiff_t b = work_begin / items; b < s.batch && b * items < work_end; ++b) {
    const std::ptrdiff_t first_band = larger(0, work_begin - b * items) * item_bands;
    const std::ptrdiff_t last_band = (work_end - b * items) * item_bands;
    for (int phase = 0; phase < s.stride_h * s.stride_w; ++phase) {
      const int row_phase = phase / s.stride_w;
      const int column_phase = phase % s.stride_w;
      if (row_phase >= s.out_h || column_phase >= s.out_w) continue;
      const std::ptrdiff_t phase_rows = (s.out_h - row_phase + s.stride_h - 1) / s.stride_h;
      const int phase_columns = (s.out_w - column_phase + s.stride_w - 1) / s.stride_w;
      for (int g = 0; g < s.groups; ++g) {
        const TransposePhase<Dot> one{
            s,
            operands.x + (b * s.in_image_stride + g * channels),
            operands.border_row,
            channels,
            row_phase,
            column_phase,
            phase_taps(row_phase, s.pad_top, s.stride_h, s.dilation_h, s.kernel_h),
            phase_taps(column_phase, s.pad_left, s.stride_w, s.dilation_w, s.kernel_w),
            phase_columns,
            b * s.out_h * s.out_w};
        TransposeOperands<Dot> group = operands;
        group.w_packed += g * group_weights;
        if (Dot::kHasOffsets) group.offsets += phase * operands.offsets_step + g * columns;
        group.split = operands.split.from(g * ceil_div(columns, kPanelColumns));
        conv_transpose2d_phase(one, first_band * phase_columns,
                               smaller(last_band, phase_rows) * phase_columns, group, columns, g * columns,
                               epilogue);
      }
    }
  }
}

// Work items [work_begin, work_end) of a transposed convolution. `s` names the input and output of the
// transposed operator: output pixel (oh, ow) sums the taps with oh + pad_top = ih * stride_h + kh *
// dilation_h, and the same along the row; output_padding is just a larger out_h or out_w.
//   x         input, see ConvShape
//   w_packed  per group [ceil(OC / g / 16)][kernel_h * kernel_w][in_c / g][16], zero padded, taps not flipped
//   zero_row  at least in_c / g zeros
// The epilogue gets m = index of the output pixel in (image, row, column) order and n = output channel.
template <class T, class E>
inline void conv_transpose2d(const ConvShape& s, const T* x, const T* w_packed, const T* zero_row,
                             const E& epilogue, std::ptrdiff_t work_begin, std::ptrdiff_t work_end) {
  conv_transpose2d_items(s, TransposeOperands<FmaDot<T>>{x, w_packed, zero_row}, epilogue, work_begin,
                         work_end);
}

// The whole transposed convolution.
template <class T, class E>
inline void conv_transpose2d(const ConvShape& s, const T* x, const T* w_packed, const T* zero_row,
                             const E& epilogue) {
  conv_transpose2d(s, x, w_packed, zero_row, epilogue, 0, conv_transpose2d_work_items(s));
}

// All work items, shared among threads.
template <class T, class E>
GCRT_NOINLINE void conv_transpose2d(const Threads* threads, const ConvShape& s, const T* x, const T* w_packed,
                                    const T* zero_row, const E& epilogue) {
  parallel_for(threads, conv_transpose2d_work_items(s), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    conv_transpose2d(s, x, w_packed, zero_row, epilogue, begin, end);
  });
}

}  // namespace GCRT_NAMESPACE
