// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What the compiler shares with the kernels of cpu/image/winograd.h and cpu/image/winograd_int8.h: the points
// of Winograd's F(T x T, 3 x 3), its transform of weights, and what lies where in weights and scratch. Sizes
// count words of 32 bits: one float32 each, or two int16.
#pragma once

#include "gcrt/conv_shape.h"

namespace GCRT_NAMESPACE {

// Outputs are T x T pixels of one channel, inputs and products lie at (T + 2) x (T + 2) positions.
constexpr int winograd_positions(int T) { return (T + 2) * (T + 2); }

// Interpolation points of floats for T = 4 are 0, a, -a, b, -b and infinity with a = sqrt(1/2), b = sqrt(2):
// of all such pairs they err about the least, and squares and product are powers of two. Those of integers
// are 0, 1, -1, 2, -2 and infinity, those of T = 2 always 0, 1, -1 and infinity.
constexpr double kWinogradA = 0.70710678118654752440;
constexpr double kWinogradB = 1.41421356237309504880;

// G: three weights along one axis to T + 2. Row of point p, of the other finite points q:
// (1, p, p^2) / product of (p - q); of infinity (0, 0, 1). T = 2 has its signs so that the first row is
// (1, 0, 0).
template <int T>
constexpr void winograd_weights_of_line(const double* w, double* u) {
  u[0] = w[0];
  if constexpr (T == 2) {
    u[1] = (w[0] + w[1] + w[2]) / 2;
    u[2] = (w[0] - w[1] + w[2]) / 2;
  } else {
    u[1] = -(w[0] + kWinogradA * w[1] + w[2] / 2) / 1.5;
    u[2] = -(w[0] - kWinogradA * w[1] + w[2] / 2) / 1.5;
    u[3] = (w[0] + kWinogradB * w[1] + 2 * w[2]) / 6;
    u[4] = (w[0] - kWinogradB * w[1] + 2 * w[2]) / 6;
  }
  u[T + 1] = w[2];
}

// What integers are multiplied by so that G has no fractions: 2 for T = 2, 24 for T = 4, whose last row has
// 6, because A makes up for the rest. Outputs are the square of it times the sums.
constexpr int winograd_scale(int T) { return T == 2 ? 2 : 24; }

// scale * G. Magnitudes grow by at most 3 for T = 2, by 12 for T = 4.
template <int T>
constexpr void winograd_weights_of_line(const int* w, int* u) {
  if constexpr (T == 2) {
    u[0] = 2 * w[0];
    u[1] = w[0] + w[1] + w[2];
    u[2] = w[0] - w[1] + w[2];
    u[3] = 2 * w[2];
  } else {
    u[0] = 6 * w[0];
    u[1] = -4 * (w[0] + w[1] + w[2]);
    u[2] = -4 * (w[0] - w[1] + w[2]);
    u[3] = w[0] + 2 * w[1] + 4 * w[2];
    u[4] = w[0] - 2 * w[1] + 4 * w[2];
    u[5] = 6 * w[2];
  }
}

// G w G': u[T + 2][T + 2] of w[3][3]. V: double, or int for integers.
template <int T, class V>
constexpr void winograd_weights(const V* w, V* u) {
  static_assert(T == 2 || T == 4, "T is 2 or 4");
  V columns[3][T + 2] = {};
  for (int j = 0; j < 3; ++j) {
    const V column[3] = {w[j], w[3 + j], w[6 + j]};
    winograd_weights_of_line<T>(column, columns[j]);
  }
  for (int i = 0; i < T + 2; ++i) {
    const V row[3] = {columns[0][i], columns[1][i], columns[2][i]};
    winograd_weights_of_line<T>(row, u + i * (T + 2));
  }
}

// The largest magnitude of a sum of products that integers are right for: outputs are computed modulo 2^32,
// where the odd part of the scale has an inverse, and the rest is shifted out.
constexpr std::int64_t winograd_largest_sum(int T) { return (std::int64_t{1} << 31) / (T == 2 ? 4 : 64) - 1; }

// How the tiles of all images, row by row, are taken.
struct WinogradPlan {
  int strip;  // tiles whose inputs are transformed together
  int block;  // of them that one work item multiplies
  int parts;  // of the work at most that threads run at the same time, each in scratch of its own
};

constexpr std::ptrdiff_t winograd_tiles(int T, const ConvShape& s) {
  return ceil_div(s.out_h, T) * ceil_div(s.out_w, T) * s.batch;
}

// Columns of one work item: output channels, of which the last item may have fewer. Its weights are one
// matrix for each position, in panels of 16 columns (gemm.h).
constexpr std::ptrdiff_t kWinogradColumns = 32;

// Weights: [ceil(out_c / 32)][positions][1 or 2 panels][words][16], zero behind the last column. `words`: of
// the input channels.
constexpr std::ptrdiff_t winograd_weights_size(int T, std::ptrdiff_t words, std::ptrdiff_t out_c) {
  return winograd_positions(T) * words * (ceil_div(out_c, 16) * 16);
}
// The place of the weight at a position, for a word of input channels and output channel n.
constexpr std::ptrdiff_t winograd_weights_place(int T, std::ptrdiff_t words, std::ptrdiff_t out_c,
                                                int position, std::ptrdiff_t word, std::ptrdiff_t n) {
  const std::ptrdiff_t first = n - n % kWinogradColumns;
  const std::ptrdiff_t left = ceil_div(out_c, 16) * 16 - first;
  const std::ptrdiff_t columns = left < kWinogradColumns ? left : kWinogradColumns;
  const std::ptrdiff_t matrix = (first * winograd_positions(T) + position * columns) * words;
  return matrix + (n - first) / 16 * words * 16 + word * 16 + n % 16;
}

// From one position to the next: never a multiple of what the cache maps to one place.
constexpr std::ptrdiff_t winograd_stride(std::ptrdiff_t rows, std::ptrdiff_t columns) {
  return rows * columns + 16;
}

// Scratch of a part: the transformed inputs of a strip, [blocks][positions][tile][words], and then the sums
// of a work item, [positions][tile][32].
constexpr std::ptrdiff_t winograd_inputs_size(int T, std::ptrdiff_t words, const WinogradPlan& plan) {
  return ceil_div(plan.strip, plan.block) * winograd_positions(T) * winograd_stride(plan.block, words);
}
constexpr std::ptrdiff_t winograd_sums_size(int T, const WinogradPlan& plan) {
  return winograd_positions(T) * winograd_stride(plan.block, kWinogradColumns);
}
constexpr std::ptrdiff_t winograd_scratch(int T, std::ptrdiff_t words, const WinogradPlan& plan) {
  return plan.parts * (winograd_inputs_size(T, words, plan) + winograd_sums_size(T, plan));
}

}  // namespace GCRT_NAMESPACE
