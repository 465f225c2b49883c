// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Floats to bytes, rounded to nearest even, moved by a zero point and saturated: what ends a quantised layer.
#pragma once

#include "gcrt/isa/convert.h"
#include "gcrt/isa/limit.h"
#include "gcrt/isa/round.h"

namespace GCRT_NAMESPACE {

// What exceeds the range of R, from which `shift` has been taken, cut off.
template <class R, class V>
GCRT_INLINE V below_largest(V values, int shift) {
  return at_most(values, splat_like<V>(static_cast<float>(kLargest<ElementOf<R>> - shift)));
}
template <class R, class V>
GCRT_INLINE V within_range(V values, int shift) {
  return at_least(below_largest<R>(values, shift),
                  splat_like<V>(static_cast<float>(kLowest<ElementOf<R>> - shift)));
}

#if GCRT_X86 && !GCRT_CUDA && defined(__SSE4_1__)
// Words of one machine vector of at most 32 bytes, saturated to 16 bits.
template <class V>
GCRT_INLINE __m128i saturate_to_shorts(V numbers) {
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32) {
    const __m256i words = _mm256_cvtps_epi32((__m256)numbers);
    return _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  } else
#endif
  {
    const __m128i words = _mm_cvtps_epi32((__m128)numbers);
    return _mm_packs_epi32(words, words);
  }
}

// What lies below the range of words becomes the least word, which saturates as it should; so would what lies
// above it.
template <class R, bool Fits, class V>
GCRT_INLINE R saturate_vector(V values, int shift) {
  constexpr bool is_signed = std::is_signed<ElementOf<R>>::value;
#if defined(__AVX512BW__)
  if constexpr (sizeof(V) == 64) {
    // The sum with `shift` must not leave the words either.
    V numbers = values;
    if constexpr (!Fits) numbers = within_range<R>(values, shift);
    __m512i words = _mm512_maskz_cvtps_epi32(0xffff, (__m512)numbers);
    words = (__m512i)((Pack<std::int32_t, 16>)words + shift);
    if constexpr (!Fits) return (R)_mm512_maskz_cvtepi32_epi8(0xffff, words);
    if constexpr (is_signed) {
      return (R)_mm512_maskz_cvtsepi32_epi8(0xffff, words);
    } else {
      const __m512i positive = _mm512_maskz_max_epi32(0xffff, words, _mm512_setzero_si512());
      return (R)_mm512_maskz_cvtusepi32_epi8(0xffff, positive);
    }
  } else
#endif
  {
    V numbers = values;
    if constexpr (!Fits) numbers = below_largest<R>(values, shift);
    const __m128i shorts =
        _mm_adds_epi16(saturate_to_shorts(numbers), _mm_set1_epi16(static_cast<short>(shift)));
    const __m128i bytes = is_signed ? _mm_packs_epi16(shorts, shorts) : _mm_packus_epi16(shorts, shorts);
    const long long bits = _mm_cvtsi128_si64(bytes);
    R result;
    __builtin_memcpy(&result, &bits, sizeof(result));
    return result;
  }
}

#if defined(__AVX512BW__)
constexpr int kWidestNativeSaturation = 64;
#elif defined(__AVX2__)
constexpr int kWidestNativeSaturation = 32;
#else
constexpr int kWidestNativeSaturation = 16;
#endif
#elif GCRT_NEON64
// FCVTNS, and SQXTN or SQXTUN twice: each saturates.
template <class R, bool Fits, class V>
GCRT_INLINE R saturate_vector(V numbers, int shift) {
  const int16x4_t shorts = vqadd_s16(vqmovn_s32(vcvtnq_s32_f32((float32x4_t)numbers)),
                                     vdup_n_s16(static_cast<std::int16_t>(shift)));
  const int16x8_t twice = vcombine_s16(shorts, shorts);
  if constexpr (std::is_signed<ElementOf<R>>::value) {
    return from_register<R>(vreinterpret_u8_s8(vqmovn_s16(twice)));
  } else {
    return from_register<R>(vqmovun_s16(twice));
  }
}
constexpr int kWidestNativeSaturation = 16;
#else
constexpr int kWidestNativeSaturation = 0;
template <class R, bool Fits, class V>
R saturate_vector(V numbers, int shift);
#endif

// To the nearest integer, ties to even; of what is beyond 2^24 some word beyond it, of the same sign.
GCRT_INLINE std::int32_t nearest_by_bits(float value) {
  const auto bits = bit_cast<std::uint32_t>(value);
  const std::uint32_t exponent = bits >> 23 & 255u;
  std::uint32_t magnitude = 0;
  if (exponent > 150) {
    magnitude = std::uint32_t{1} << 25;
  } else if (exponent > 125) {
    const std::uint32_t digits = (bits & 0x7fffffu) | 0x800000u, whole = digits >> (150 - exponent);
    const std::uint32_t rest = (digits << 7) << (exponent - 125);  // of 32 bits, the first worth a half
    magnitude = whole + ((rest | (whole & 1u)) > 0x80000000u ? 1u : 0u);
  }
  return bits >> 31 != 0 ? -static_cast<std::int32_t>(magnitude) : static_cast<std::int32_t>(magnitude);
}

// Whether a scalar is rounded as a word: where floats are words themselves, or one instruction rounds them.
#if defined(__ARM_FP) && (__ARM_FP & 4) && !defined(__aarch64__)
#define GCRT_ROUNDS_WORDS 1
// VCVTR rounds by the mode that programs begin with, and saturates.
GCRT_INLINE std::int32_t nearest_word(float value) {
  std::int32_t word;
  asm("vcvtr.s32.f32 %1, %1\n\tvmov %0, %1" : "=r"(word), "+t"(value));
  return word;
}
#elif defined(__SOFTFP__) || (defined(__riscv) && !defined(__riscv_flen))
#define GCRT_ROUNDS_WORDS 1
GCRT_INLINE std::int32_t nearest_word(float value) { return nearest_by_bits(value); }
#else
#define GCRT_ROUNDS_WORDS 0
#endif

template <class To>
GCRT_INLINE To limited_to_byte(std::int32_t word) {
#if defined(__ARM_FEATURE_SAT) && !defined(__aarch64__)
  if constexpr (std::is_signed<To>::value) {
    asm("ssat %0, #8, %0" : "+r"(word));
  } else {
    asm("usat %0, #8, %0" : "+r"(word));
  }
  return static_cast<To>(word);
#else
  word = word < kLowest<To> ? kLowest<To> : word;
  return static_cast<To>(word > kLargest<To> ? kLargest<To> : word);
#endif
}

template <class To, bool Fits, class V>
GCRT_INLINE Rebind<V, To> rounded_to_bytes(V value, int shift) {
  static_assert(sizeof(To) == 1 && std::is_same<ElementOf<V>, float>::value, "floats to bytes");
  using R = Rebind<V, To>;
  if constexpr (sizeof(V) >= 16 && static_cast<int>(sizeof(V)) <= kWidestNativeSaturation) {
    return saturate_vector<R, Fits>(value, shift);
#if GCRT_ROUNDS_WORDS
  } else if constexpr (kLanesOf<V> == 1) {
    // The sum with `shift` must not leave the words either.
    return limited_to_byte<To>(nearest_word(Fits ? value : within_range<R>(value, shift)) + shift);
#endif
  } else {
    return convert<To>(convert<std::int32_t>(round_half_even(within_range<R>(value, shift))) + shift);
  }
}

// To the nearest integer of 8 bits, ties to even, plus `shift`, a whole number of at most 255; beyond the
// range to its end. No value may be NaN.
template <class To, int N, class V>
GCRT_INLINE Rebind<V, To> saturate(Lanes<N>, V value, float shift = 0) {
  return rounded_to_bytes<To, false>(value, static_cast<int>(shift));
}

// The same for values that int32 holds, with room for `shift`.
template <class To, int N, class V>
GCRT_INLINE Rebind<V, To> saturate_word(Lanes<N>, V value, float shift = 0) {
  return rounded_to_bytes<To, true>(value, static_cast<int>(shift));
}

}  // namespace GCRT_NAMESPACE
