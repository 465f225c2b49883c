// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Sums of products of bytes on cores whose instructions have eight registers (ARMv6-M, ARMv8-M without its
// main extension): the others can be added to, so that sums are there, which compilers do not do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "gcrt/config.h"

#if defined(__ARM_ARCH_ISA_THUMB) && __ARM_ARCH_ISA_THUMB == 1 && defined(__OPTIMIZE__)
#define GCRT_SUMS_IN_HIGH_REGISTERS 1

namespace GCRT_NAMESPACE {

// sums[column][row] of `count` pairs of halves, one of each row, times two columns of bytes; count > 0.
GCRT_INLINE void sum_pairs(const std::int32_t* pairs, const std::int8_t* w0, const std::int8_t* w1,
                           std::ptrdiff_t count, std::int32_t* sums) {
  register std::int32_t s00 asm("r8");
  register std::int32_t s01 asm("r10");
  register std::int32_t s10 asm("r11");
  register std::int32_t s11 asm("r12");
  std::int32_t pair, lower, weight;
  std::ptrdiff_t k = -count;
  asm(".syntax unified\n\t"
      "movs %[pair], #0\n\t"
      "mov %[s00], %[pair]\n\tmov %[s01], %[pair]\n\tmov %[s10], %[pair]\n\tmov %[s11], %[pair]\n"
      "1:\tldmia %[pairs]!, {%[pair]}\n\t"
      "sxth %[lower], %[pair]\n\t"
      "asrs %[pair], %[pair], #16\n\t"
      "ldrsb %[weight], [%[w0], %[k]]\n\t"
      "muls %[weight], %[lower]\n\t"
      "add %[s00], %[weight]\n\t"
      "ldrsb %[weight], [%[w0], %[k]]\n\t"
      "muls %[weight], %[pair]\n\t"
      "add %[s01], %[weight]\n\t"
      "ldrsb %[weight], [%[w1], %[k]]\n\t"
      "muls %[lower], %[weight]\n\t"
      "add %[s10], %[lower]\n\t"
      "muls %[pair], %[weight]\n\t"
      "add %[s11], %[pair]\n\t"
      "adds %[k], #1\n\t"
      "bne 1b"
      : [pairs] "+l"(pairs), [k] "+l"(k), [s00] "=&r"(s00), [s01] "=&r"(s01), [s10] "=&r"(s10),
        [s11] "=&r"(s11), [pair] "=&l"(pair), [lower] "=&l"(lower), [weight] "=&l"(weight)
      : [w0] "l"(w0 + count), [w1] "l"(w1 + count)
      : "cc", "memory");
  sums[0] = s00;
  sums[1] = s01;
  sums[2] = s10;
  sums[3] = s11;
}

// sums[column] of `count` bytes less `zero` times three columns that are `step` bytes apart; count > 0.
template <class T>
GCRT_INLINE void sum_three_columns(const T* x, std::int32_t zero, const std::int8_t* w, std::ptrdiff_t step,
                                   std::ptrdiff_t count, std::int32_t* sums) {
  register std::int32_t s0 asm("r8");
  register std::int32_t s1 asm("r10");
  register std::int32_t s2 asm("r11");
  register std::int32_t less asm("r12") = -zero;
  std::int32_t value, product;
  std::ptrdiff_t k = -count;
#define GCRT_SUM_COLUMNS(load)                                                                               \
  asm(".syntax unified\n\t"                                                                                  \
      "movs %[value], #0\n\tmov %[s0], %[value]\n\tmov %[s1], %[value]\n\tmov %[s2], %[value]\n"             \
      "1:\t" load                                                                                            \
      " %[value], [%[x], %[k]]\n\t"                                                                          \
      "add %[value], %[less]\n\t"                                                                            \
      "ldrsb %[product], [%[w0], %[k]]\n\tmuls %[product], %[value]\n\tadd %[s0], %[product]\n\t"            \
      "ldrsb %[product], [%[w1], %[k]]\n\tmuls %[product], %[value]\n\tadd %[s1], %[product]\n\t"            \
      "ldrsb %[product], [%[w2], %[k]]\n\tmuls %[product], %[value]\n\tadd %[s2], %[product]\n\t"            \
      "adds %[k], #1\n\t"                                                                                    \
      "bne 1b"                                                                                               \
      : [k] "+l"(k), [s0] "=&r"(s0), [s1] "=&r"(s1), [s2] "=&r"(s2), [value] "=&l"(value),                   \
        [product] "=&l"(product)                                                                             \
      : [x] "l"(x + count), [w0] "l"(w + count), [w1] "l"(w + step + count), [w2] "l"(w + 2 * step + count), \
        [less] "r"(less)                                                                                     \
      : "cc", "memory")
  if constexpr (std::is_signed<T>::value) {
    GCRT_SUM_COLUMNS("ldrsb");
  } else {
    GCRT_SUM_COLUMNS("ldrb");
  }
#undef GCRT_SUM_COLUMNS
  sums[0] = s0;
  sums[1] = s1;
  sums[2] = s2;
}

}  // namespace GCRT_NAMESPACE
#endif
