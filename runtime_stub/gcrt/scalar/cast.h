// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// ONNX Cast, with stated results where C++ leaves them undefined, equal on every instruction set.
#pragma once

#include "gcrt/scalar/arithmetic.h"

namespace GCRT_NAMESPACE {

// The native mask of a comparison for elements of another size.
template <class T, class M>
GCRT_INLINE auto resize_mask(M mask) {
  if constexpr (std::is_same<M, bool>::value) {
    return mask;
  } else {
#if GCRT_CUDA
    return mask;
#else
    return convert<SignedBits<T>>(bit_cast<SignedBits<ElementOf<M>>>(mask));
#endif
  }
}

// value for 0 <= value < 2^bits, through the signed type of the same size: the upper half moved down.
template <class To, class V>
GCRT_INLINE Rebind<V, To> convert_to_unsigned(V value) {
  using From = ElementOf<V>;
  using R = Rebind<V, To>;
  constexpr To top = static_cast<To>(To{1} << (8 * sizeof(To) - 1));
  const V middle = splat_like<V>(static_cast<From>(top));
  const auto upper = value >= middle;
  const auto bits = convert<To>(convert<SignedBits<To>>(blend(upper, value - middle, value)));
  return bits | blend(resize_mask<To>(upper), splat_like<R>(top), R{});
}

// Floating to integer: toward zero, saturating at the range of To; NaN gives 0.
template <class To, class V>
GCRT_INLINE Rebind<V, To> saturate_to_integer(V value) {
  using From = ElementOf<V>;
  using R = Rebind<V, To>;
  const V number = blend(value == value, value, V{});
  const V low = splat_like<V>(static_cast<From>(kLowest<To>));
  const V raised = blend(number < low, low, number);
  if constexpr (sizeof(To) < 4) {
    // Both bounds are exact in float, so clamping decides.
    const V high = splat_like<V>(static_cast<From>(kLargest<To>));
    return convert<To>(convert<std::int32_t>(blend(raised > high, high, raised)));
  } else {
    // 2^31, 2^32, 2^63 or 2^64: the first value above the range, exact in any floating type.
    constexpr From beyond = static_cast<From>(kLargest<To> / 2 + 1) * From{2};
    const auto too_large = raised >= splat_like<V>(beyond);
    const V inside = blend(too_large, V{}, raised);
    R result;
    if constexpr (std::is_signed<To>::value) {
      result = convert<To>(inside);
    } else {
      result = convert_to_unsigned<To>(inside);
    }
    return blend(resize_mask<To>(too_large), splat_like<R>(kLargest<To>), result);
  }
}

// Double to float such that a second rounding to 16 bits gives what a single one would: toward zero, with
// the last bit set if anything was lost ("round to odd").
template <class V>
GCRT_INLINE Rebind<V, float> round_to_odd(V value) {
  return map_lanes_to<float>(
      [](double exact) GCRT_LAMBDA_INLINE {
        const float nearest = static_cast<float>(exact);
        const double back = static_cast<double>(nearest);
        if (back == exact || exact != exact) return nearest;
        std::uint32_t bits = bit_cast<std::uint32_t>(nearest);
        if ((back > exact) == (exact > 0)) --bits;  // the nearest lies farther from zero
        return bit_cast<float>(bits | 1u);
      },
      value);
}

// ONNX Cast. Registers hold the values of Half and BFloat16 as float: casting to them rounds to nearest even
// and returns the rounded value as float.
//   floating to integer   toward zero, saturating; NaN gives 0
//   integer to integer    modulo 2^bits
//   to floating           to nearest even; overflow gives infinity
template <class To, int N, class V>
GCRT_INLINE auto cast(Lanes<N>, V value) {
  using From = ElementOf<V>;
  static_assert(kLanesOf<V> == N, "the lane and the pack agree");
  constexpr bool to_half = std::is_same<To, Half>::value;
  if constexpr (to_half || std::is_same<To, BFloat16>::value) {
    Pack<float, N> rounded;
    if constexpr (std::is_same<From, double>::value) {
      rounded = round_to_odd(value);
    } else {
      rounded = convert<float>(value);
    }
    if constexpr (to_half) {
      return half_to_float(float_to_half(rounded));
    } else {
      return bfloat16_to_float(float_to_bfloat16(rounded));
    }
  } else if constexpr (std::is_floating_point<From>::value && std::is_integral<To>::value) {
    return saturate_to_integer<To>(value);
  } else {
    return convert<To>(value);
  }
}

// ONNX Cast to bool: 1 where the value is not zero, so NaN gives 1.
template <int N, class V>
GCRT_INLINE Pack<std::uint8_t, N> cast_bool(Lanes<N>, V value) {
  return mask_to_bool<N>(value != V{});
}

}  // namespace GCRT_NAMESPACE
