// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Integer dot products with exact 32-bit accumulation.
#pragma once

#include "gcrt/isa/intrinsics.h"
#include "gcrt/pack_types.h"

#if !GCRT_CUDA  // there: dot4 of cuda/device/tensor_core.h
namespace GCRT_NAMESPACE {

// Each int32 lane holds two int16, the lower first. Returns acc + a0 * b0 + a1 * b1, modulo 2^32.
template <class V>
GCRT_INLINE V madd_s16(V acc, V a, V b) {
  static_assert(std::is_same<ElementOf<V>, std::int32_t>::value, "lanes are int32");
#if defined(__AVX512VNNI__)
  if constexpr (sizeof(V) == 64) return (V)_mm512_dpwssd_epi32((__m512i)acc, (__m512i)a, (__m512i)b);
#elif defined(__AVX512BW__)
  if constexpr (sizeof(V) == 64) return (V)_mm512_madd_epi16((__m512i)a, (__m512i)b) + acc;
#endif
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  if constexpr (sizeof(V) == 32) return (V)_mm256_dpwssd_epi32((__m256i)acc, (__m256i)a, (__m256i)b);
  if constexpr (sizeof(V) == 16) return (V)_mm_dpwssd_epi32((__m128i)acc, (__m128i)a, (__m128i)b);
#elif defined(__AVX2__)
  if constexpr (sizeof(V) == 32) {
    return (V)_mm256_add_epi32((__m256i)acc, _mm256_madd_epi16((__m256i)a, (__m256i)b));
  }
#endif
#if defined(__SSE2__)
  if constexpr (sizeof(V) == 16)
    return (V)_mm_add_epi32((__m128i)acc, _mm_madd_epi16((__m128i)a, (__m128i)b));
#endif
  using U = Rebind<V, std::uint32_t>;
  if constexpr (kLanesOf<V> == 1) {
    const auto product = [](std::int32_t x, std::int32_t y) { return static_cast<std::uint32_t>(x * y); };
    return static_cast<V>(static_cast<U>(acc) +
                          product(static_cast<std::int16_t>(a), static_cast<std::int16_t>(b)) +
                          product(a >> 16, b >> 16));
  } else {
    const auto low = [](V x) { return (V)((U)x << 16) >> 16; };
    return (V)((U)acc + (U)(low(a) * low(b)) + (U)((a >> 16) * (b >> 16)));
  }
}

// Each int32 lane holds four bytes, the lowest first. Returns acc + the sum of u8[j] * s8[j], modulo 2^32.
// Exact: nothing saturates on the way, as vpmaddubsw would.
template <class V>
GCRT_INLINE V dot4_u8s8(V acc, V u8x4, V s8x4) {
  static_assert(std::is_same<ElementOf<V>, std::int32_t>::value, "lanes are int32");
#if defined(__AVX512VNNI__)
  if constexpr (sizeof(V) == 64) return (V)_mm512_dpbusd_epi32((__m512i)acc, (__m512i)u8x4, (__m512i)s8x4);
#endif
#if defined(__AVX512VNNI__) && defined(__AVX512VL__)
  if constexpr (sizeof(V) == 32) return (V)_mm256_dpbusd_epi32((__m256i)acc, (__m256i)u8x4, (__m256i)s8x4);
  if constexpr (sizeof(V) == 16) return (V)_mm_dpbusd_epi32((__m128i)acc, (__m128i)u8x4, (__m128i)s8x4);
#elif defined(__AVXVNNI__)
  if constexpr (sizeof(V) == 32)
    return (V)_mm256_dpbusd_avx_epi32((__m256i)acc, (__m256i)u8x4, (__m256i)s8x4);
  if constexpr (sizeof(V) == 16) return (V)_mm_dpbusd_avx_epi32((__m128i)acc, (__m128i)u8x4, (__m128i)s8x4);
#endif
  if constexpr (kLanesOf<V> == 1) {
    std::uint32_t sum = static_cast<std::uint32_t>(acc);
    for (int j = 0; j < 4; ++j) {
      const std::int32_t u = static_cast<std::uint8_t>(u8x4 >> (8 * j));
      const std::int32_t s = static_cast<std::int8_t>(s8x4 >> (8 * j));
      sum += static_cast<std::uint32_t>(u * s);
    }
    return static_cast<V>(sum);
  } else {
    // Bytes 0 and 2 of each lane, then bytes 1 and 3, widened to int16 in place.
    using S = Pack<std::int16_t, kLanesOf<V> * 2>;
    using U = Pack<std::uint16_t, kLanesOf<V> * 2>;
    const V u_even = (V)((U)u8x4 & 0xff);
    const V u_odd = (V)((U)u8x4 >> 8);
    const V s_even = (V)((S)((U)s8x4 << 8) >> 8);
    const V s_odd = (V)((S)s8x4 >> 8);
    return madd_s16(madd_s16(acc, u_even, s_even), u_odd, s_odd);
  }
}

// The same where what s8[0] and s8[1] have of one sign is at most 128 together, and so have s8[2] and s8[3]:
// pairs of products fit int16, and vpmaddubsw is exact.
#if defined(__SSSE3__) && !defined(__AVX512VNNI__) && !defined(__AVXVNNI__)
constexpr bool kHasPairDot = true;
#else
constexpr bool kHasPairDot = false;
#endif
template <class V>
GCRT_INLINE V dot4_u8s8_of_pairs(V acc, V u8x4, V s8x4) {
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32) {
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)u8x4, (__m256i)s8x4);
    return (V)_mm256_add_epi32((__m256i)acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
#endif
#if defined(__SSSE3__)
  if constexpr (sizeof(V) == 16) {
    const __m128i pairs = _mm_maddubs_epi16((__m128i)u8x4, (__m128i)s8x4);
    return (V)_mm_add_epi32((__m128i)acc, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
  }
#endif
  return dot4_u8s8(acc, u8x4, s8x4);
}

#if defined(__SSSE3__) && !defined(__AVX512VNNI__) && !defined(__AVXVNNI__)
// Lanes hold two int16: sums + u8[0] * s8[0] + u8[1] * s8[1] in the lower, and so on in the upper, which must
// fit. VPMADDUBSW; wider vectors than its own are halved.
template <class V>
GCRT_INLINE V add_pairs_u8s8(V sums, V u8x4, V s8x4) {
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32) {
    return (V)_mm256_add_epi16((__m256i)sums, _mm256_maddubs_epi16((__m256i)u8x4, (__m256i)s8x4));
  } else
#endif
      if constexpr (sizeof(V) == 16) {
    return (V)_mm_add_epi16((__m128i)sums, _mm_maddubs_epi16((__m128i)u8x4, (__m128i)s8x4));
  } else {
    return concatenate(add_pairs_u8s8(low_half(sums), low_half(u8x4), low_half(s8x4)),
                       add_pairs_u8s8(high_half(sums), high_half(u8x4), high_half(s8x4)));
  }
}

// acc + s8[0] * t8[0] + ... + s8[3] * t8[3] of signed bytes, those of t8 above -128: the magnitude of the one
// times the other with its sign, and two products are at most 2 * 128 * 127. VPSIGNB and VPMADDUBSW.
template <class V>
GCRT_INLINE V dot4_s8(V acc, V s8x4, V t8x4) {
#if defined(__AVX2__)
  if constexpr (sizeof(V) == 32) {
    const __m256i a = (__m256i)s8x4;
    return (V)madd_s16(acc, (V)_mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8((__m256i)t8x4, a)),
                       splat_like<V>(0x00010001));
  } else
#endif
      if constexpr (sizeof(V) == 16) {
    const __m128i a = (__m128i)s8x4;
    return (V)madd_s16(acc, (V)_mm_maddubs_epi16(_mm_abs_epi8(a), _mm_sign_epi8((__m128i)t8x4, a)),
                       splat_like<V>(0x00010001));
  } else {
    return concatenate(dot4_s8(low_half(acc), low_half(s8x4), low_half(t8x4)),
                       dot4_s8(high_half(acc), high_half(s8x4), high_half(t8x4)));
  }
}
#endif

// Whether bytes are multiplied as signed ones, on vectors that a kernel is compiled for.
#if GCRT_NEON && GCRT_VECTOR_BYTES == 16
#define GCRT_MULTIPLIES_SIGNED 1
#else
#define GCRT_MULTIPLIES_SIGNED 0
#endif

#if GCRT_MULTIPLIES_SIGNED
// NEON multiplies bytes of one signedness, so all of A are read as signed ones: those of uint8_t less 128,
// which is what flipping their upper bit makes of them (cpu/product/dot_int8.h).

using Int32x4 = Pack<std::int32_t, 4>;

// Sums of four columns, of which each lies in two neighbouring lanes of `low` or of `high`.
struct PairedSums {
  Int32x4 low, high;
};

GCRT_INLINE PairedSums pair_sums(Int32x4 sums) {
  const Int32x4 zero{};
  return {__builtin_shufflevector(sums, zero, 0, 4, 1, 5), __builtin_shufflevector(sums, zero, 2, 6, 3, 7)};
}
GCRT_INLINE Int32x4 total_of_pairs(PairedSums sums) {
#if GCRT_NEON64
  return (Int32x4)vpaddq_s32((int32x4_t)sums.low, (int32x4_t)sums.high);
#else
  const auto halves = [](Int32x4 x) {
    return vpadd_s32(vget_low_s32((int32x4_t)x), vget_high_s32((int32x4_t)x));
  };
  return (Int32x4)vcombine_s32(halves(sums.low), halves(sums.high));
#endif
}

// acc + a0 * b0 + ... + a3 * b3 of signed bytes: the product of two is at most 2^14, and two such products
// are added in 32 bits. SMULL and SADALP.
GCRT_INLINE PairedSums dot4_s8(PairedSums acc, Int32x4 a, Int32x4 b) {
  const int8x16_t x = (int8x16_t)a, y = (int8x16_t)b;
#if GCRT_NEON64
  const int16x8_t high = vmull_high_s8(x, y);
#else
  const int16x8_t high = vmull_s8(vget_high_s8(x), vget_high_s8(y));
#endif
  const int16x8_t low = vmull_s8(vget_low_s8(x), vget_low_s8(y));
  return {(Int32x4)vpadalq_s16((int32x4_t)acc.low, low), (Int32x4)vpadalq_s16((int32x4_t)acc.high, high)};
}

// acc + a0 * b0 + a1 * b1 of int16. SMLAL.
GCRT_INLINE PairedSums madd_s16(PairedSums acc, Int32x4 a, Int32x4 b) {
  const int16x8_t x = (int16x8_t)a, y = (int16x8_t)b;
#if GCRT_NEON64
  const int32x4_t high = vmlal_high_s16((int32x4_t)acc.high, x, y);
#else
  const int32x4_t high = vmlal_s16((int32x4_t)acc.high, vget_high_s16(x), vget_high_s16(y));
#endif
  return {(Int32x4)vmlal_s16((int32x4_t)acc.low, vget_low_s16(x), vget_low_s16(y)), (Int32x4)high};
}

// acc + a * b, lane by lane.
GCRT_INLINE Int32x4 madd_lanes_s16(Int32x4 acc, Pack<std::int16_t, 4> a, Pack<std::int16_t, 4> b) {
  return (Int32x4)vmlal_s16((int32x4_t)acc, (int16x4_t)a, (int16x4_t)b);
}

#if defined(__ARM_FEATURE_DOTPROD)
// The same by SDOT, and with one lane of `a` for all of them.
GCRT_INLINE Int32x4 dot4_s8(Int32x4 acc, Int32x4 a, Int32x4 b) {
  return (Int32x4)vdotq_s32((int32x4_t)acc, (int8x16_t)b, (int8x16_t)a);
}
#if GCRT_NEON64
template <int Lane>
GCRT_INLINE Int32x4 dot4_s8_lane(Int32x4 acc, Int32x4 a, Int32x4 b) {
  return (Int32x4)vdotq_laneq_s32((int32x4_t)acc, (int8x16_t)b, (int8x16_t)a, Lane);
}
#endif
#endif
#endif  // GCRT_MULTIPLIES_SIGNED

}  // namespace GCRT_NAMESPACE
#endif
