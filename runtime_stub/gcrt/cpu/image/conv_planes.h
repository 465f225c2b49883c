// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Convolution of planes: each channel by itself, the pixels of a row side by side. Lanes are neighbouring
// output pixels, so that few channels leave none without work, and neither input nor result has to change
// its layout where the caller has planes. A vector of the input is used for all output channels of a tile;
// the weights are broadcast.
//
// Where the windows of a tile reach beside the image, it is copied with zeros around it, as far as
// they reach.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cpu/image/planes_plan.h"
#include "gcrt/cpu/product/tile.h"
#include "gcrt/parallel.h"

namespace GCRT_NAMESPACE {

constexpr int kPlaneColumns = kPlaneVectors * kLanes;

// Rows that the windows of `rows` output rows reach.
constexpr std::ptrdiff_t plane_input_rows(const ConvShape& s, std::ptrdiff_t rows) {
  return plane_inputs(rows, s.stride_h, s.kernel_h, s.dilation_h);
}
// Columns that the windows of `columns` output columns reach.
constexpr std::ptrdiff_t plane_input_columns(const ConvShape& s, std::ptrdiff_t columns) {
  return plane_inputs(columns, 1, s.kernel_w, s.dilation_w);
}

// Output rows of a work item: as many as the copy has room for, and so few that there are several items.
constexpr std::ptrdiff_t plane_item_rows(const ConvShape& s, int channels) {
  constexpr std::ptrdiff_t kMost = 32;
  const std::ptrdiff_t step = plane_rows(channels);
  const std::ptrdiff_t elements = plane_input_columns(s, kPlaneColumns) * (s.in_c / s.groups);
  std::ptrdiff_t rows = step;
  while (rows < kMost && rows < s.out_h && plane_input_rows(s, rows + step) * elements <= kPlanePatch)
    rows += step;
  return rows;
}
constexpr std::ptrdiff_t conv2d_planes_work_items(const ConvShape& s, int channels) {
  return std::ptrdiff_t{s.batch} * s.groups * ceil_div(s.out_h, plane_item_rows(s, channels));
}

// The planes of a group as a tile reads them: the element that tap (0, 0) of the first output column
// multiplies lies at data + channel * plane + (row - first_row) * line, for rows of the image from first_row.
struct PlaneSource {
  const float* data;
  std::ptrdiff_t plane, line, first_row, channels;

  PlaneSource from_column(std::ptrdiff_t column) const {
    return {data + column, plane, line, first_row, channels};
  }
};

// A row of zeros, which rows beside the image are.
alignas(64) constexpr float kZeroPlaneRow[kPlaneColumns + kPlaneReach] = {};

// Adds the taps of one channel to the sums of output rows whose windows lie one row apart: a vector of an
// input row is read once for all of them. `top`: the first input row.
template <int Kernel, int Rows, int V>
GCRT_INLINE void add_shared_rows(const ConvShape& s, const PlaneSource& from, const float* w,
                                 std::ptrdiff_t top, std::ptrdiff_t rows,
                                 Pack<float, kLanes> (&acc)[Rows][V]) {
  constexpr Lanes<kLanes> lane{};
  GCRT_UNROLL
  for (int i = 0; i < Rows + Kernel - 1; ++i) {
    const std::ptrdiff_t row = top + i;
    if (i >= rows + Kernel - 1 || row < 0 || row >= s.in_h) continue;
    const float* const line = from.data + (row - from.first_row) * from.line;
    GCRT_UNROLL
    for (int kw = 0; kw < Kernel; ++kw) {
      Pack<float, kLanes> pixels[V];
      GCRT_UNROLL
      for (int v = 0; v < V; ++v) pixels[v] = load(lane, line + kw + v * kLanes);
      GCRT_UNROLL
      for (int r = 0; r < Rows; ++r) {
        if (i - r < 0 || i - r >= Kernel) continue;
        const Pack<float, kLanes> weight = splat(lane, w[(i - r) * Kernel + kw]);
        GCRT_UNROLL
        for (int v = 0; v < V; ++v) fma_into(acc[r][v], pixels[v], weight);
      }
    }
  }
}

template <int Channels, int Rows, int V>
GCRT_INLINE void store_sums(const Pack<float, kLanes> (&acc)[Channels][Rows][V], float* sums) {
  GCRT_UNROLL
  for (int m = 0; m < Channels; ++m) {
    GCRT_UNROLL
    for (int r = 0; r < Rows; ++r) {
      GCRT_UNROLL
      for (int v = 0; v < V; ++v)
        store(Lanes<kLanes>{}, sums + ((m * Rows + r) * V + v) * kLanes, acc[m][r][v]);
    }
  }
}

// The sums of `rows` output rows from oh on and V vectors of columns: sums[channel][row][V * kLanes].
//   w   [in_c / groups][kernel_h][kernel_w][Channels]
// Kernel: both sides of a kernel without dilation whose windows lie one row apart; 0: as the shape says.
template <int Channels, int V, int Kernel>
GCRT_NOINLINE void plane_tile(const ConvShape& s, const PlaneSource& from, const float* w, std::ptrdiff_t oh,
                              std::ptrdiff_t rows, float* sums) {
  constexpr Lanes<kLanes> lane{};
  constexpr int kRows = plane_rows(Channels);
  const int kernel_h = Kernel > 0 ? Kernel : s.kernel_h, kernel_w = Kernel > 0 ? Kernel : s.kernel_w;
  const std::ptrdiff_t top = oh * s.stride_h - s.pad_top;
  const bool is_whole = rows == kRows && top >= 0 && top + plane_input_rows(s, kRows) <= s.in_h;
  Pack<float, kLanes> acc[Channels][kRows][V] = {};
  const float* plane = from.data;
  if constexpr (Channels == 1 && Kernel > 0) {
    for (int c = 0; c < from.channels; ++c, plane += from.plane, w += Kernel * Kernel) {
      const PlaneSource channel{plane, from.plane, from.line, from.first_row, 1};
      add_shared_rows<Kernel>(s, channel, w, top, rows, acc[0]);
    }
    return store_sums(acc, sums);
  }
  for (int c = 0; c < from.channels; ++c, plane += from.plane) {
    for (int kh = 0; kh < kernel_h; ++kh) {
      const float* line[kRows];
      bool is_inside = is_whole;
      GCRT_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const std::ptrdiff_t row =
            top + (Kernel > 0 ? r + kh : std::ptrdiff_t{r} * s.stride_h + std::ptrdiff_t{kh} * s.dilation_h);
        const bool has_row = is_whole || (r < rows && row >= 0 && row < s.in_h);
        line[r] = has_row ? plane + (row - from.first_row) * from.line : kZeroPlaneRow;
        is_inside = is_inside || has_row;
      }
      if (!is_inside) {
        w += kernel_w * Channels;
        continue;
      }
      const auto tap = [&](std::ptrdiff_t at) GCRT_LAMBDA_INLINE {
        Pack<float, kLanes> weight[Channels];
        GCRT_UNROLL
        for (int m = 0; m < Channels; ++m) weight[m] = splat(lane, w[m]);
        GCRT_UNROLL
        for (int r = 0; r < kRows; ++r) {
          GCRT_UNROLL
          for (int v = 0; v < V; ++v) {
            const Pack<float, kLanes> pixels = load(lane, line[r] + at + v * kLanes);
            GCRT_UNROLL
            for (int m = 0; m < Channels; ++m) fma_into(acc[m][r][v], pixels, weight[m]);
          }
        }
        w += Channels;
      };
      if constexpr (Kernel > 0) {
        GCRT_UNROLL
        for (int kw = 0; kw < Kernel; ++kw) tap(kw);
      } else {
        for (std::ptrdiff_t at = 0, kw = 0; kw < kernel_w; ++kw, at += s.dilation_w) tap(at);
      }
    }
  }
  store_sums(acc, sums);
}

// A part of one group's results: output rows [begin, end) and columns from `column` on, and the index of the
// group's first row in (image, channel, row) order.
struct PlaneBlock {
  std::ptrdiff_t begin, end, column, first_row;
};

// This loop writes a few zeros sooner than a call would, which compilers make of plainer ones.
GCRT_INLINE void fill_zeros(std::ptrdiff_t count, float* to) {
  vectorize(count,
            [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE { store(lane, to + i, splat(lane, 0.0f)); });
}

// Copies what the windows of `columns` output columns of the block reach, with zeros where they reach beside
// the image's columns.
GCRT_NOINLINE inline PlaneSource padded_planes(const ConvShape& s, const float* x, std::ptrdiff_t plane,
                                               const PlaneBlock& block, std::ptrdiff_t columns,
                                               float* patch) {
  const std::ptrdiff_t width = plane_input_columns(s, columns), left = block.column - s.pad_left;
  const std::ptrdiff_t top = block.begin * s.stride_h - s.pad_top;
  const std::ptrdiff_t first = larger(0, top);
  const std::ptrdiff_t rows =
      larger(0, smaller(s.in_h, top + plane_input_rows(s, block.end - block.begin)) - first);
  const std::ptrdiff_t begin = smaller(larger(0, -left), width);
  const std::ptrdiff_t end = larger(begin, smaller(width, s.in_w - left));
  float* to = patch;
  for (int c = 0; c < s.in_c / s.groups; ++c) {
    for (std::ptrdiff_t row = first; row < first + rows; ++row, to += width) {
      const float* const line = x + c * plane + row * s.in_row_stride + left;
      fill_zeros(begin, to);
      vectorize(end - begin, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE {
        store(lane, to + begin + i, load(lane, line + begin + i));
      });
      fill_zeros(width - end, to + end);
    }
  }
  return {patch, rows * width, width, first, s.in_c / s.groups};
}

// Hands the sums of a tile on to the epilogue, with a copy of it as finish_block() has one: the first row is
// m, that of the next channel `step` behind it.
template <int Channels, int V, class E>
GCRT_NOINLINE void finish_planes(const float* sums, int rows, int count, std::ptrdiff_t m,
                                 std::ptrdiff_t step, std::ptrdiff_t n, const E& epilogue) {
  constexpr std::ptrdiff_t kWidth = V * kLanes;
  const E copy = epilogue;
  for (int i = 0; i < Channels; ++i, m += step) {
    for (int r = 0; r < rows; ++r, sums += kWidth)
      finish_lanes<kLanes>(sums, kWidth, 1, count, m + r, n, copy);
    sums += (plane_rows(Channels) - rows) * kWidth;
  }
}

// All output channels of a group in `tiles` tiles of V vectors of columns of the block, side by side: what is
// stored goes on where the tile before ended.
template <int Channels, int V, int Kernel, class E>
GCRT_INLINE void plane_columns(const ConvShape& s, const PlaneSource& from, const float* w,
                               const PlaneBlock& block, std::ptrdiff_t tiles, const E& epilogue) {
  constexpr int kRows = plane_rows(Channels);
  constexpr std::ptrdiff_t kWidth = V * kLanes;
  alignas(64) float sums[Channels * kRows * kWidth];
  const std::ptrdiff_t depth = from.channels * s.kernel_h * s.kernel_w;
  for (int m = 0; m < s.out_c / s.groups; m += Channels) {
    for (std::ptrdiff_t row = block.begin; row < block.end; row += kRows) {
      const auto rows = static_cast<int>(smaller(kRows, block.end - row));
      for (std::ptrdiff_t tile = 0; tile < tiles; ++tile) {
        const std::ptrdiff_t column = block.column + tile * kWidth;
        plane_tile<Channels, V, Kernel>(s, from.from_column(tile * kWidth), w + m * depth, row, rows, sums);
        finish_planes<Channels, V>(sums, rows, static_cast<int>(smaller(kWidth, s.out_w - column)),
                                   block.first_row + m * std::ptrdiff_t{s.out_h} + row, s.out_h, column,
                                   epilogue);
      }
    }
  }
}

// Work items [begin, end) of a convolution over images whose pixels lie side by side and whose columns have
// no stride; Channels divides the output channels of a group.
//   x   element (b, c, h, w) at b * in_image_stride + c * plane + h * in_row_stride + w
//   w   [out_c / Channels][in_c / groups][kernel_h][kernel_w][Channels]
// The epilogue gets m = index of the output row in (image, channel, row) order and n = its column.
template <int Channels, int Kernel, class E>
inline void conv2d_planes(const ConvShape& s, std::ptrdiff_t plane, const float* x, const float* w,
                          const E& epilogue, std::ptrdiff_t begin, std::ptrdiff_t end) {
  const std::ptrdiff_t rows = plane_item_rows(s, Channels), blocks = ceil_div(s.out_h, rows);
  const std::ptrdiff_t channels = s.in_c / s.groups, outputs = s.out_c / s.groups;
  alignas(64) float patch[kPlanePatch];
  for (std::ptrdiff_t item = begin; item < end; ++item) {
    const std::ptrdiff_t image = item / blocks / s.groups, group = item / blocks % s.groups;
    const float* const planes = x + image * s.in_image_stride + group * channels * plane;
    const float* const weights = w + group * outputs * channels * s.kernel_h * s.kernel_w;
    PlaneBlock block{item % blocks * rows, 0, 0, (image * s.out_c + group * outputs) * s.out_h};
    block.end = smaller(block.begin + rows, s.out_h);
    // Windows of output columns before this one do not reach beyond the last column of the image.
    const std::ptrdiff_t inside = smaller(s.out_w, s.in_w + s.pad_left - plane_input_columns(s, 0));
    while (block.column < s.out_w) {
      const std::ptrdiff_t left = block.column - s.pad_left;
      const std::ptrdiff_t whole = left >= 0 ? (inside - block.column) / kPlaneColumns : 0;
      if (whole > 0) {
        const PlaneSource from{planes + left, plane, s.in_row_stride, 0, channels};
        plane_columns<Channels, kPlaneVectors, Kernel>(s, from, weights, block, whole, epilogue);
        block.column += whole * kPlaneColumns;
        continue;
      }
      // The vectors that are left, in tiles of about as many each; where more than two tiles make a row,
      // those are the first one and the last one.
      const std::ptrdiff_t vectors = ceil_div(s.out_w - block.column, kLanes);
      const std::ptrdiff_t tiles = ceil_div(vectors, kPlaneVectors);
      const std::ptrdiff_t taken =
          tiles > 2 ? (vectors - (tiles - 2) * kPlaneVectors) / 2 : ceil_div(vectors, tiles);
      const PlaneSource from = padded_planes(s, planes, plane, block, taken * kLanes, patch);
      if (taken == 3) plane_columns<Channels, 3, Kernel>(s, from, weights, block, 1, epilogue);
      if (taken == 2) plane_columns<Channels, 2, Kernel>(s, from, weights, block, 1, epilogue);
      if (taken == 1) plane_columns<Channels, 1, Kernel>(s, from, weights, block, 1, epilogue);
      block.column += taken * kLanes;
    }
  }
}

// All of them, shared among threads.
template <int Channels, int Kernel, class E>
GCRT_NOINLINE void conv2d_planes(const Threads* threads, const ConvShape& s, std::ptrdiff_t plane,
                                 const float* x, const float* w, const E& epilogue) {
  parallel_for(threads, conv2d_planes_work_items(s, Channels), [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
    conv2d_planes<Channels, Kernel>(s, plane, x, w, epilogue, begin, end);
  });
}

}  // namespace GCRT_NAMESPACE
