// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The arithmetic of convolutions that the compiler shares with the kernels: sizes of packed weights, tiles,
// phases of transposed convolutions. Needs no CUDA header.
#pragma once

#include "gcrt/conv_shape.h"
#include "gcrt/cuda/product/tile_model.h"

namespace GCRT_NAMESPACE {

// Elements between the rows of packed weights: one row per output channel, k = (tap, channel of the group).
constexpr std::ptrdiff_t conv_weight_stride(const ConvShape& s) {
  return ceil_div(std::ptrdiff_t{s.kernel_h} * s.kernel_w * (s.in_c / s.groups), 16) * 16;
}

constexpr std::ptrdiff_t conv_integer_weight_stride(const ConvShape& s) {
  return integer_weight_stride(std::ptrdiff_t{s.kernel_h} * s.kernel_w * (s.in_c / s.groups));
}

// Bytes of one copy of an image whose address allows all.
constexpr int image_copy_bytes(const ConvShape& s, int element) {
  return copy_bytes_of(element, s.in_c / s.groups, s.in_pixel_stride, s.in_row_stride, s.in_image_stride);
}

// The tile of a convolution; a product of vectors for pointwise convolutions of up to 8 pixels, unless others
// of the same plan have more.
constexpr Plan plan_conv2d(const DeviceModel& device, Precision precision, const ConvShape& s,
                           OperandBytes bytes, bool allow_split = true, bool allow_vectors = true) {
  const std::ptrdiff_t depth = std::ptrdiff_t{s.kernel_h} * s.kernel_w * (s.in_c / s.groups);
  if (allow_vectors && is_pointwise(s)) {
    return plan_gemm(device, precision, output_pixels(s), s.out_c / s.groups, depth, s.groups, allow_split,
                     bytes);
  }
  bytes.copied_a = image_copy_bytes(s, bytes.a);
  return plan_tiles(device, precision, output_pixels(s), s.out_c / s.groups, depth, s.groups, allow_split,
                    bytes);
}

// Floats of workspace for the plan's splits.
constexpr std::ptrdiff_t conv2d_workspace_size(const ConvShape& s, int splits) {
  return gemm_workspace_size(output_pixels(s), s.out_c / s.groups, s.groups, splits);
}

// Words of Queue::counters.
constexpr std::ptrdiff_t conv2d_counters(Tile tile, const ConvShape& s, int splits) {
  return gemm_counters(tile, output_pixels(s), s.out_c / s.groups, s.groups, splits);
}

// Kernels along the row for which input pixels are read once into registers.
enum class DepthwiseWindow { kAny, k3, k3Stride2, k5 };
constexpr DepthwiseWindow depthwise_window(const ConvShape& s) {
  if (s.dilation_w != 1) return DepthwiseWindow::kAny;
  if (s.kernel_w == 3 && s.stride_w == 1) return DepthwiseWindow::k3;
  if (s.kernel_w == 3 && s.stride_w == 2) return DepthwiseWindow::k3Stride2;
  return s.kernel_w == 5 && s.stride_w == 1 ? DepthwiseWindow::k5 : DepthwiseWindow::kAny;
}

// One phase of a transposed convolution as a convolution of its own.
struct TransposePhase {
  PhaseTaps rows;
  PhaseTaps columns;
  ConvShape shape;  // out_h and out_w are 0 where the phase has no pixels
};
constexpr TransposePhase transpose_phase(const ConvShape& s, int row_phase, int column_phase) {
  const PhaseTaps rows = phase_taps(row_phase, s.pad_top, s.stride_h, s.dilation_h, s.kernel_h);
  const PhaseTaps columns = phase_taps(column_phase, s.pad_left, s.stride_w, s.dilation_w, s.kernel_w);
  ConvShape shape = s;
  shape.out_h = row_phase < s.out_h ? (s.out_h - row_phase + s.stride_h - 1) / s.stride_h : 0;
  shape.out_w = column_phase < s.out_w ? (s.out_w - column_phase + s.stride_w - 1) / s.stride_w : 0;
  shape.kernel_h = columns.count == 0 ? 0 : rows.count;
  shape.kernel_w = shape.kernel_h == 0 ? 1 : columns.count;
  shape.stride_h = 1;
  shape.stride_w = 1;
  shape.pad_top = -(row_phase + s.pad_top - rows.first * s.dilation_h) / s.stride_h;
  shape.pad_left = -(column_phase + s.pad_left - columns.first * s.dilation_w) / s.stride_w;
  shape.dilation_h = -(rows.step * s.dilation_h) / s.stride_h;
  shape.dilation_w = -(columns.step * s.dilation_w) / s.stride_w;
  return {rows, columns, shape};
}

// Elements of packed weights: for each phase (row phase, then column phase), [groups][OC / groups][stride],
// where a row holds k = (tap of the phase, channel of the group), zero padded to conv_weight_stride of the
// phase. The taps of a phase are the products of its rows and columns, not flipped.
constexpr std::ptrdiff_t conv_transpose_weight_size(const ConvShape& s) {
  std::ptrdiff_t size = 0;
  for (int row = 0; row < s.stride_h; ++row) {
    for (int column = 0; column < s.stride_w; ++column) {
      size += s.out_c * conv_weight_stride(transpose_phase(s, row, column).shape);
    }
  }
  return size;
}

// The tile that suits the first phase, which has the most taps and pixels, or nearly so.
constexpr Plan plan_conv_transpose2d(const DeviceModel& device, Precision precision, const ConvShape& s,
                                     OperandBytes bytes) {
  const ConvShape phase = transpose_phase(s, 0, 0).shape;
  const std::ptrdiff_t depth = std::ptrdiff_t{phase.kernel_h} * phase.kernel_w * (s.in_c / s.groups);
  bytes.copied_a = image_copy_bytes(s, bytes.a);
  return plan_tiles(device, precision, output_pixels(phase), s.out_c / s.groups, depth, s.groups, false,
                    bytes);
}

}  // namespace GCRT_NAMESPACE
