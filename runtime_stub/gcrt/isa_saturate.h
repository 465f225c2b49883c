// Floats to bytes, rounded to nearest even and saturated: what ends a quantised layer.
#pragma once

#include "gcrt/isa_convert.h"
#include "gcrt/isa_round.h"

namespace GCRT_NAMESPACE {

// Of numbers, so without a care for NaN: one instruction each.
template <class V>
GCRT_INLINE V min_of_numbers(V a, V b) {
  return blend(b < a, b, a);
}
template <class V>
GCRT_INLINE V max_of_numbers(V a, V b) {
  return blend(b > a, b, a);
}

#if GCRT_X86 && !GCRT_CUDA && defined(__SSE4_1__)
// Words of at most one machine vector. What lies below their range is the least word, which saturates as it
// should; what lies above it was cut off before.
template <class R, class V>
GCRT_INLINE R saturate_words(V numbers) {
  constexpr bool is_signed = std::is_signed<ElementOf<R>>::value;
  __m128i shorts;
#if defined(__AVX512BW__)
  if constexpr (sizeof(V) == 64) {
    const __m512i words = _mm512_maskz_cvtps_epi32(0xffff, (__m512)numbers);
    if constexpr (is_signed) return (R)_mm512_maskz_cvtsepi32_epi8(0xffff, words);
    return (R)_mm512_maskz_cvtusepi32_epi8(0xffff,
                                           _mm512_maskz_max_epi32(0xffff, words, _mm512_setzero_si512()));
  }
#endif
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32) {
    const __m256i words = _mm256_cvtps_epi32((__m256)numbers);
    shorts = _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  }
#endif
  if constexpr (sizeof(V) == 16) {
    const __m128i words = _mm_cvtps_epi32((__m128)numbers);
    shorts = _mm_packs_epi32(words, words);
  }
  const __m128i bytes = is_signed ? _mm_packs_epi16(shorts, shorts) : _mm_packus_epi16(shorts, shorts);
  const long long bits = _mm_cvtsi128_si64(bytes);
  R result;
  __builtin_memcpy(&result, &bits, sizeof(result));
  return result;
}
#endif

// To the nearest integer of 8 bits, ties to even; beyond the range to its end. No value may be NaN.
template <class To, int N, class V>
GCRT_INLINE Rebind<V, To> saturate(Lanes<N>, V value) {
  static_assert(sizeof(To) == 1 && std::is_same<ElementOf<V>, float>::value, "floats to bytes");
  const V below = min_of_numbers(value, splat_like<V>(static_cast<float>(kLargest<To>)));
#if GCRT_X86 && !GCRT_CUDA && defined(__SSE4_1__)
  constexpr bool is_vector = sizeof(V) == 16 || sizeof(V) == 32 || sizeof(V) == 64;
  if constexpr (is_vector && kLanesOf < V >> 1 && !kIsWide<V>) return saturate_words<Rebind<V, To>>(below);
#endif
  const V inside = max_of_numbers(below, splat_like<V>(static_cast<float>(kLowest<To>)));
  return convert<To>(convert<std::int32_t>(round_half_even(inside)));
}

}  // namespace GCRT_NAMESPACE
