// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Bytes as pairs of 16-bit halves of a word, the lower first: what the DSP instructions of ARM multiply
// (SXTAB16, UXTAB16, SMLAD, SMLABB, SMLATT). Elsewhere each has a body of the same result.
#pragma once

#include <cstdint>
#include <type_traits>

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// Whether products of halves are instructions.
#if defined(__ARM_FEATURE_DSP) && !defined(__aarch64__)
constexpr bool kMultipliesHalves = true;
#define GCRT_OF_HALVES(instruction, result, operands, ...) \
  asm(instruction " %0, " operands : "=r"(result) : __VA_ARGS__)
#define GCRT_ADD_HALVES(instruction, sum, a, b) \
  asm(instruction " %0, %1, %2, %0" : "+r"(sum) : "r"(a), "r"(b))
#else
constexpr bool kMultipliesHalves = false;
#endif

GCRT_INLINE std::int32_t halves(std::int32_t lower, std::int32_t upper) {
  return static_cast<std::int32_t>((static_cast<std::uint32_t>(lower) & 0xffffu) |
                                   static_cast<std::uint32_t>(upper) << 16);
}
GCRT_INLINE std::int32_t lower_half(std::int32_t pair) { return static_cast<std::int16_t>(pair); }
GCRT_INLINE std::int32_t upper_half(std::int32_t pair) { return pair >> 16; }

// Bytes 0 and 2 of a word of T, each added to its half of `pair`; and bytes 1 and 3.
template <class T>
GCRT_INLINE std::int32_t even_bytes(std::int32_t word, std::int32_t pair) {
#if defined(GCRT_OF_HALVES)
  std::int32_t sums;
  if constexpr (std::is_signed<T>::value) {
    GCRT_OF_HALVES("sxtab16", sums, "%1, %2", "r"(pair), "r"(word));
  } else {
    GCRT_OF_HALVES("uxtab16", sums, "%1, %2", "r"(pair), "r"(word));
  }
  return sums;
#else
  return halves(lower_half(pair) + static_cast<T>(word), upper_half(pair) + static_cast<T>(word >> 16));
#endif
}
template <class T>
GCRT_INLINE std::int32_t odd_bytes(std::int32_t word, std::int32_t pair) {
#if defined(GCRT_OF_HALVES)
  std::int32_t sums;
  if constexpr (std::is_signed<T>::value) {
    GCRT_OF_HALVES("sxtab16", sums, "%1, %2, ror #8", "r"(pair), "r"(word));
  } else {
    GCRT_OF_HALVES("uxtab16", sums, "%1, %2, ror #8", "r"(pair), "r"(word));
  }
  return sums;
#else
  return even_bytes<T>(static_cast<std::int32_t>(static_cast<std::uint32_t>(word) >> 8), pair);
#endif
}

// Bytes 0 and 2 of a word of signed bytes; and bytes 1 and 3.
GCRT_INLINE std::int32_t even_bytes(std::int32_t word) {
#if defined(GCRT_OF_HALVES)
  std::int32_t pair;
  GCRT_OF_HALVES("sxtb16", pair, "%1", "r"(word));
  return pair;
#else
  return even_bytes<std::int8_t>(word, 0);
#endif
}
GCRT_INLINE std::int32_t odd_bytes(std::int32_t word) {
#if defined(GCRT_OF_HALVES)
  std::int32_t pair;
  GCRT_OF_HALVES("sxtb16", pair, "%1, ror #8", "r"(word));
  return pair;
#else
  return odd_bytes<std::int8_t>(word, 0);
#endif
}

GCRT_INLINE std::int32_t add_product(std::int32_t sum, std::int32_t a, std::int32_t b) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) + static_cast<std::uint32_t>(a * b));
}
// sum + a0 * b0 modulo 2^32; and sum + a1 * b1.
GCRT_INLINE std::int32_t add_lower(std::int32_t sum, std::int32_t a, std::int32_t b) {
#if defined(GCRT_OF_HALVES)
  GCRT_ADD_HALVES("smlabb", sum, a, b);
  return sum;
#else
  return add_product(sum, lower_half(a), lower_half(b));
#endif
}
GCRT_INLINE std::int32_t add_upper(std::int32_t sum, std::int32_t a, std::int32_t b) {
#if defined(GCRT_OF_HALVES)
  GCRT_ADD_HALVES("smlatt", sum, a, b);
  return sum;
#else
  return add_product(sum, upper_half(a), upper_half(b));
#endif
}
// Both of them.
GCRT_INLINE std::int32_t add_both(std::int32_t sum, std::int32_t a, std::int32_t b) {
#if defined(GCRT_OF_HALVES)
  GCRT_ADD_HALVES("smlad", sum, a, b);
  return sum;
#else
  return add_upper(add_lower(sum, a, b), a, b);
#endif
}

}  // namespace GCRT_NAMESPACE
