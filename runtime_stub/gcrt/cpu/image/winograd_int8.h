// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Winograd's convolution of 8-bit images with constant weights, exact in int32: winograd.h over integers.
//
//   acc(m, n) = offsets[n] + sum over taps and k of x * w        modulo 2^32
//
// G is multiplied by a scale that makes it whole (winograd_plan.h). Transformed inputs and weights fit int16:
// magnitudes are at most 4 * 255 and 9 * 128 for T = 2, 100 * 255 and 144 * 128 for T = 4. Sums of their
// products may wrap: modulo 2^32 the outputs are scale^2 * sum, and scale^2 is a power of two times 1 or 9.
// The inverse of 9 leaves the sum times that power, which is shifted out; the result is right wherever the
// sum is within winograd_largest_sum(), which the compiler shows of the weights.
#pragma once

#include "gcrt/cpu/image/winograd.h"
#include "gcrt/cpu/product/dot_int8.h"
#include "gcrt/scalar/arithmetic.h"

namespace GCRT_NAMESPACE {

// B' and A' of integers; scale^2 of an output is kOddPart * 2^kShift, and kInverse that of the odd part.
template <int T>
struct WinogradIntegers;

template <>
struct WinogradIntegers<2> {
  static constexpr std::int32_t kInverse = 1;
  static constexpr int kShift = 2;
  template <class V>
  static GCRT_INLINE void input(const V* d, V* v) {
    v[0] = sub(d[0], d[2]);
    v[1] = add(d[2], d[1]);
    v[2] = sub(d[2], d[1]);
    v[3] = sub(d[3], d[1]);
  }
  template <class V>
  static GCRT_INLINE void output(const V* m, V* y) {
    y[0] = add(m[0], add(m[1], m[2]));
    y[1] = add(sub(m[1], m[2]), m[3]);
  }
};

template <>
struct WinogradIntegers<4> {
  static constexpr std::int32_t kInverse = 0x38e38e39;
  static constexpr int kShift = 6;
  // factor * x
  template <class V>
  static GCRT_INLINE V times(int factor, V x) {
    return mul(x, splat_like<V>(static_cast<ElementOf<V>>(factor)));
  }
  template <class V>
  static GCRT_INLINE void input(const V* d, V* v) {
    const V even_a = sub(d[4], times(4, d[2])), odd_a = sub(d[3], times(4, d[1]));
    const V even_b = sub(d[4], d[2]), odd_b = times(2, sub(d[3], d[1]));
    v[0] = add(even_b, times(4, sub(d[0], d[2])));
    v[1] = add(even_a, odd_a);
    v[2] = sub(even_a, odd_a);
    v[3] = add(even_b, odd_b);
    v[4] = sub(even_b, odd_b);
    v[5] = sub(sub(d[5], d[3]), times(2, odd_b));
  }
  template <class V>
  static GCRT_INLINE void output(const V* m, V* y) {
    const V even_a = add(m[1], m[2]), odd_a = sub(m[1], m[2]);
    const V even_b = add(m[3], m[4]), odd_b = sub(m[3], m[4]);
    y[0] = add(m[0], add(even_a, even_b));
    y[1] = add(odd_a, times(2, odd_b));
    y[2] = add(even_a, times(4, even_b));
    y[3] = add(add(odd_a, times(8, odd_b)), times(4, m[5]));
  }
};

// Like WinogradTileOfFloats, for integers.
using WinogradTileOfIntegers =
    TileOfLevel<Int16Tile, Int16Tile, RegisterTile<6, 2, 2>, RegisterTile<8, 2, 4>>;

template <int T, class TX>
struct IntegerForm : WinogradIntegers<T> {
  using Base = WinogradIntegers<T>;
  static constexpr int kOutputs = T;
  using Input = TX;
  using Value = std::int16_t;
  using Sum = std::int32_t;
  using Dot = Int16Dot<WinogradTileOfIntegers>;
  static constexpr int kInputLanes = 2 * kLanes;

  const std::int32_t* offsets;

  template <class L>
  static GCRT_INLINE Pack<std::int16_t, L::value> read(L lane, const TX* x) {
    return convert<std::int16_t>(load(lane, x));
  }
  template <class L, class V>
  GCRT_INLINE V result(L lane, V y, std::ptrdiff_t n) const {
    if constexpr (Base::kInverse != 1) y = mul(y, splat_like<V>(Base::kInverse));
    return add(y >> Base::kShift, load(lane, offsets + n));
  }
};

// One convolution, for all threads.
//   x           input, uint8_t or int8_t, of an even number of channels
//   w           scale^2 * G w G' as winograd_plan.h lays it out, two input channels in a word
//   offsets     for output channels in whole panels of 16: minus the zero point of x times the sum of weights
//   border_row  in_c times the zero point of x
//   scratch     winograd_scratch() words
template <int T, class TX, class E>
inline void winograd_integer(const Threads* threads, const ConvShape& shape, const WinogradPlan& plan,
                             const TX* x, const std::int16_t* w, const std::int32_t* offsets,
                             const TX* border_row, void* scratch, const E& epilogue) {
  using Form = IntegerForm<T, TX>;
  winograd_strips(threads, Winograd<Form>{shape, plan, x, w, border_row, Form{{}, offsets}}, scratch,
                  epilogue);
}

}  // namespace GCRT_NAMESPACE
