// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Floats of 8 bits as they lie in memory; in registers their values are float packs. Formats and rounding:
// ONNX, "Float stored in 8 bits"; OCP, "Microscaling Formats (MX)".
#pragma once

#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

// The value of a code; exact.
template <class F, class U>
GCRT_INLINE Rebind<U, float> small_to_float(U code) {
  static_assert(std::is_same<ElementOf<U>, std::uint8_t>::value, "8-bit patterns");
  using Bits = Rebind<U, std::uint32_t>;
  const Bits bits = convert<std::uint32_t>(code);
  if constexpr (std::is_same<F, Float8E8M0>::value) {
    const Bits power = blend(bits == 0u, splat_like<Bits>(0x00400000u), bits << 23);
    return bit_cast<float>(blend(bits == 255u, splat_like<Bits>(0x7fc00000u), power));
  } else {
    constexpr std::uint32_t shift = 23 - F::kFractionBits, below = 127 - F::kBias;
    constexpr std::uint32_t unit = (1 + below - F::kFractionBits) << 23;  // the step of the smallest values
    const Bits magnitude = bits & 0x7fu;
    const Bits sign = (bits & 0x80u) << 24;
    const Bits small = bit_cast<std::uint32_t>(convert<float>(bit_cast<std::int32_t>(magnitude)) *
                                               splat_like<Rebind<U, float>>(bit_cast<float>(unit)));
    const Bits finite =
        blend(magnitude < (1u << F::kFractionBits), small, (magnitude << shift) + (below << 23));
    const Bits nan = splat_like<Bits>(0x7fc00000u);
    if constexpr (F::kAbove == 0x80) {
      return bit_cast<float>(blend(bits == 0x80u, nan, finite | sign));
    } else {
      const Bits infinity = splat_like<Bits>(0x7f800000u);
      const Bits above = blend(magnitude > F::kAbove, nan, F::kAbove == F::kNan ? nan : infinity);
      return bit_cast<float>(blend(magnitude > F::kLargest, above, finite) | sign);
    }
  }
}

// The code of the nearest value, to even where two are as near; what rounds to more than the largest value is
// kAbove. To saturate, the caller limits the value first. A value that is no power of two within the range of
// Float8E8M0 becomes the nearest one, the upper one from 1.5, or NaN outside of it.
template <class F, class V>
GCRT_INLINE Rebind<V, std::uint8_t> float_to_small(V value) {
  static_assert(std::is_same<ElementOf<V>, float>::value, "float lanes");
  using Bits = Rebind<V, std::uint32_t>;
  const Bits bits = bit_cast<std::uint32_t>(value);
  if constexpr (std::is_same<F, Float8E8M0>::value) {
    const Bits power = blend(bits < 0x00600000u, Bits{}, (bits + 0x00400000u) >> 23);
    const Bits large = blend(bits > 0x7f000000u, splat_like<Bits>(255u), power);  // also negative numbers
    return convert<std::uint8_t>(blend(bits < 0x00400000u, splat_like<Bits>(255u), large));
  } else {
    constexpr std::uint32_t shift = 23 - F::kFractionBits, below = 127 - F::kBias;
    // Added to a value below the normal ones it leaves the multiple of their step in the lowest bits.
    constexpr std::uint32_t magic = (1 + below + shift) << 23;
    const Bits magnitude = bits & 0x7fffffffu;
    const Bits sign = (bits >> 24) & 0x80u;
    const Bits rounded = magnitude + ((1u << (shift - 1)) - 1) + ((magnitude >> shift) & 1u);
    const Bits normal = (rounded >> shift) - (below << F::kFractionBits);
    const V sum = bit_cast<float>(magnitude) + splat_like<V>(bit_cast<float>(magic));
    const Bits small = bit_cast<std::uint32_t>(sum) - magic;
    const Bits finite = blend(magnitude < ((1 + below) << 23), small, normal);
    const Bits nan = splat_like<Bits>(F::kNan);
    const Bits number = blend(finite > F::kLargest, splat_like<Bits>(F::kAbove), finite);
    const Bits code = blend(magnitude > 0x7f800000u, nan, number);
    if constexpr (F::kAbove == 0x80) {
      const Bits has_sign = blend(code == 0u, Bits{}, sign);
      return convert<std::uint8_t>(code | has_sign);
    } else {
      return convert<std::uint8_t>(code | sign);
    }
  }
}

template <class T>
constexpr bool kIsSmallFloat = std::is_same<T, Float8E4M3FN>::value || std::is_same<T, Float8E5M2>::value ||
                               std::is_same<T, Float8E4M3FNUZ>::value ||
                               std::is_same<T, Float8E5M2FNUZ>::value || std::is_same<T, Float8E8M0>::value;

template <int N, class F, class = std::enable_if_t<kIsSmallFloat<F>>>
GCRT_INLINE Pack<float, N> load_as_float(Lanes<N> lane, const F* p) {
  return small_to_float<F>(load(lane, reinterpret_cast<const std::uint8_t*>(p)));
}
template <int N, class F, class = std::enable_if_t<kIsSmallFloat<F>>>
GCRT_INLINE void store_from_float(Lanes<N> lane, F* p, Pack<float, N> value) {
  store(lane, reinterpret_cast<std::uint8_t*>(p), float_to_small<F>(value));
}

}  // namespace GCRT_NAMESPACE
