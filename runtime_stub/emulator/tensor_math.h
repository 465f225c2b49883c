// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// How the tensor cores of the emulator read numbers and add products. Shared by warp.cc and warpgroup.cc.
#pragma once

#include <cstdint>
#include <cstring>

namespace cuda_on_cpu {

typedef float Row8 __attribute__((vector_size(32)));

constexpr int kMostTiles = 16;  // of one mma call along either side

inline float float_of(std::uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Exact; by the multiplication that moves the exponent, which also makes subnormal halves normal.
inline float half_to_float(std::uint32_t half) {
  const float magnitude = float_of((half & 0x7fffu) << 13) * 0x1p112f;
  std::uint32_t bits;
  std::memcpy(&bits, &magnitude, sizeof(bits));
  if ((half & 0x7c00u) == 0x7c00u) bits |= 0x7f800000u;
  return float_of(bits | (half & 0x8000u) << 16);
}

// The element types by their place in a register of 32 bits.
struct F16 {
  static constexpr int kPerRegister = 2;
  static float value(std::uint32_t bits, int i) { return half_to_float(bits >> (16 * i) & 0xffffu); }
};
struct Bf16 {
  static constexpr int kPerRegister = 2;
  static float value(std::uint32_t bits, int i) { return float_of(i == 0 ? bits << 16 : bits & 0xffff0000u); }
};
struct Tf32 {
  static constexpr int kPerRegister = 1;
  // The hardware reads the upper 19 bits.
  static float value(std::uint32_t bits, int) { return float_of(bits & 0xffffe000u); }
};

// sum += term, cut off toward zero: where the nearest float lies farther out, which the sign of the error of
// the rounding (Knuth's TwoSum) says, it is the one before.
__attribute__((always_inline)) inline void add_toward_zero(Row8& sum, const Row8& term) {
  typedef std::int32_t Bits8 __attribute__((vector_size(32)));
  const Row8 nearest = sum + term;
  const Row8 added = nearest - sum;
  const Row8 error = (sum - (nearest - added)) + (term - added);
  sum = (Row8)((Bits8)nearest + (error * nearest < 0.0f));
}

// Adds the products of a tile of 16 rows of `a` and all columns of `b` to `sums`: 4 rows and 8 columns at a
// time. The products of one instruction are summed before they meet the accumulator, which therefore is cut
// off once, as the hardware has it (there the inner sum has a few more bits).
template <int Depth>
__attribute__((always_inline)) inline void multiply_rows(const float (*a)[Depth], const Row8 (*b)[Depth],
                                                         Row8 (*sums)[kMostTiles], int columns) {
  for (int c = 0; c < columns; ++c) {
    for (int g = 0; g < 16; g += 4) {
      Row8 sum[4] = {};
      for (int k = 0; k < Depth; ++k) {
        const Row8 row = b[c][k];
        for (int i = 0; i < 4; ++i) sum[i] += a[g + i][k] * row;
      }
      for (int i = 0; i < 4; ++i) add_toward_zero(sums[g + i][c], sum[i]);
    }
  }
}

}  // namespace cuda_on_cpu
