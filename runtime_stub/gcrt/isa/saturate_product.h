// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Sums of bytes to bytes: a word times a float, rounded and saturated as in saturate.h. Where floats are
// words themselves, 64 bits hold the product, which is rounded once.
#pragma once

#include "gcrt/isa/saturate.h"

#if defined(__SOFTFP__) || (defined(__riscv) && !defined(__riscv_flen))
#define GCRT_FLOATS_ARE_WORDS 1
#else
#define GCRT_FLOATS_ARE_WORDS 0
#endif

namespace GCRT_NAMESPACE {

// The words of a product.
struct WideProduct {
  std::uint32_t upper, lower;
};
// An instruction multiplies to two words but on ARMv6-M.
GCRT_INLINE WideProduct wide_product(std::uint32_t a, std::uint32_t b) {
#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1
  const std::uint32_t a0 = a & 0xffffu, a1 = a >> 16, b0 = b & 0xffffu, b1 = b >> 16;
  const std::uint32_t lowest = a0 * b0, middle = a1 * b0 + (lowest >> 16);
  const std::uint32_t other = a0 * b1 + (middle & 0xffffu);
  return {a1 * b1 + (middle >> 16) + (other >> 16), other << 16 | (lowest & 0xffffu)};
#else
  const std::uint64_t product = std::uint64_t{a} * b;
  return {static_cast<std::uint32_t>(product >> 32), static_cast<std::uint32_t>(product)};
#endif
}

// What nearest_by_bits(float(word) * factor) is, but beyond 511, where it is some word beyond 510 of the
// same sign. The product in 64 bits is rounded once; where rounding to floats before may decide, which moves
// such a product by at most 2^-14, floats do.
GCRT_NOINLINE inline std::int32_t nearest_product(std::int32_t word, float factor) {
  const auto bits = bit_cast<std::uint32_t>(factor);
  const std::uint32_t shift = 126u - (bits >> 23);  // the factor is (bits << 8 | 2^31) / 2^(shift + 32)
  if (shift - 1 < 30) {
    const std::uint32_t sign = word < 0 ? ~std::uint32_t{0} : 0;
    const WideProduct product =
        wide_product((static_cast<std::uint32_t>(word) ^ sign) - sign, bits << 8 | 0x80000000u);
    const std::uint32_t whole = product.upper >> shift;
    const std::uint32_t rest = product.upper << (32 - shift) | product.lower >> shift;
    if (rest - 0x7ff80000u >= 0x00100000u)  // further than 2^-13 from a half
      return static_cast<std::int32_t>(((whole + (rest >> 31)) ^ sign) - sign);
  }
  return nearest_by_bits(static_cast<float>(word) * factor);
}

// A word, as a float, times a factor to the nearest integer of 8 bits, ties to even, plus `shift` of at
// most 255; beyond the range to its end. Int32 holds the product, with room for `shift`.
template <class To, int N, class V, class F>
GCRT_INLINE Rebind<V, To> saturate_product(Lanes<N>, V word, F factor, int shift = 0) {
  static_assert(std::is_same<ElementOf<V>, std::int32_t>::value, "words by floats");
#if GCRT_FLOATS_ARE_WORDS
  if constexpr (kLanesOf<V> == 1) {
    return limited_to_byte<To>(nearest_product(word, factor) + shift);
  } else
#endif
  {
    return rounded_to_bytes<To, true>(convert<float>(word) * factor, shift);
  }
}

}  // namespace GCRT_NAMESPACE
