// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Element type conversions of packs. g++ 12 lowers __builtin_convertvector between element sizes lane by
// lane, so for it the integer pairs are spelled out; clang needs no help.
#pragma once

#include "gcrt/isa/intrinsics.h"
#include "gcrt/pack_types.h"

namespace GCRT_NAMESPACE {

#if ((GCRT_X86 && defined(__SSE2__)) || GCRT_NEON) && !defined(__clang__)
#define GCRT_SPELL_CONVERSIONS 1
#else
#define GCRT_SPELL_CONVERSIONS 0
#endif

#if GCRT_NEON
// A pack of at most 8 bytes in the low part of a register, and back.
template <class V>
GCRT_INLINE uint8x8_t to_register(V value) {
  static_assert(sizeof(V) <= 8, "half a register");
  if constexpr (sizeof(V) == 8) {
    return (uint8x8_t)value;
  } else if constexpr (sizeof(V) == 4) {
    return vreinterpret_u8_u32(vdup_n_u32(bit_cast_whole<std::uint32_t>(value)));
  } else {
    return vreinterpret_u8_u16(vdup_n_u16(bit_cast_whole<std::uint16_t>(value)));
  }
}
template <class R>
GCRT_INLINE R from_register(uint8x8_t value) {
  static_assert(sizeof(R) <= 8, "half a register");
  if constexpr (sizeof(R) == 8) {
    return (R)value;
  } else if constexpr (sizeof(R) == 4) {
    return bit_cast_whole<R>(vget_lane_u32(vreinterpret_u32_u8(value), 0));
  } else {
    return bit_cast_whole<R>(vget_lane_u16(vreinterpret_u16_u8(value), 0));
  }
}
#endif

#if GCRT_SPELL_CONVERSIONS && GCRT_NEON
template <class R, class V>
GCRT_INLINE R first_lanes(V value) {
  if constexpr (sizeof(R) == 16) {
    return (R)value;
  } else {
    return from_register<R>(vget_low_u8((uint8x16_t)value));
  }
}

// Integers to wider integers; the result is at most one machine vector.
template <class To, class V>
GCRT_INLINE Rebind<V, To> widen_integer(V value) {
  using R = Rebind<V, To>;
  using E = ElementOf<V>;
  const uint8x8_t in = to_register(value);
  if constexpr (sizeof(To) > 2 * sizeof(E)) {
    using Double = SizedInteger<2 * sizeof(E)>;
    using Middle =
        std::conditional_t<std::is_signed<E>::value, typename Double::Signed, typename Double::Unsigned>;
    return widen_integer<To>(widen_integer<Middle>(value));
  } else if constexpr (sizeof(E) == 1 && std::is_signed<E>::value) {
    return first_lanes<R>(vmovl_s8((int8x8_t)in));
  } else if constexpr (sizeof(E) == 1) {
    return first_lanes<R>(vmovl_u8(in));
  } else if constexpr (sizeof(E) == 2 && std::is_signed<E>::value) {
    return first_lanes<R>(vmovl_s16((int16x4_t)in));
  } else if constexpr (sizeof(E) == 2) {
    return first_lanes<R>(vmovl_u16((uint16x4_t)in));
  } else if constexpr (std::is_signed<E>::value) {
    return first_lanes<R>(vmovl_s32((int32x2_t)in));
  } else {
    return first_lanes<R>(vmovl_u32((uint32x2_t)in));
  }
}

// Integers to narrower integers, modulo 2^bits; the source is at most one machine vector.
template <class To, class V>
GCRT_INLINE Rebind<V, To> narrow_integer(V value) {
  using R = Rebind<V, To>;
  using E = ElementOf<V>;
  if constexpr (sizeof(E) > 2 * sizeof(To)) {
    return narrow_integer<To>(narrow_integer<typename SizedInteger<sizeof(E) / 2>::Unsigned>(value));
  } else {
    uint8x16_t in;
    if constexpr (sizeof(V) == 16) {
      in = (uint8x16_t)value;
    } else {
      const uint8x8_t half = to_register(value);
      in = vcombine_u8(half, half);
    }
    if constexpr (sizeof(E) == 2) {
      return from_register<R>(vmovn_u16((uint16x8_t)in));
    } else if constexpr (sizeof(E) == 4) {
      return from_register<R>((uint8x8_t)vmovn_u32((uint32x4_t)in));
    } else {
      return from_register<R>((uint8x8_t)vmovn_u64((uint64x2_t)in));
    }
  }
}
#endif

#if GCRT_SPELL_CONVERSIONS && GCRT_X86
// A pack of at most 16 bytes in the low part of a register, and back.
template <class V>
GCRT_INLINE __m128i to_register(V value) {
  static_assert(sizeof(V) <= 16, "one 128-bit register");
  if constexpr (sizeof(V) == 16) {
    return (__m128i)value;
  } else if constexpr (sizeof(V) == 8) {
    long long bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    return _mm_cvtsi64_si128(bits);
  } else {
    int bits = 0;
    __builtin_memcpy(&bits, &value, sizeof(value));
    return _mm_cvtsi32_si128(bits);
  }
}
template <class R>
GCRT_INLINE R from_register(__m128i value) {
  R result;
  if constexpr (sizeof(R) == 16) {
    result = (R)value;
  } else if constexpr (sizeof(R) == 8) {
    const long long bits = _mm_cvtsi128_si64(value);
    __builtin_memcpy(&result, &bits, sizeof(result));
  } else {
    const int bits = _mm_cvtsi128_si32(value);
    __builtin_memcpy(&result, &bits, sizeof(result));
  }
  return result;
}

// One row of the table of widenings: RESULT bytes, element sizes FROM and TO, the intrinsics, their operands.
// The 64-byte rows use the zero-masked forms: the plain ones warn of an uninitialised value in g++ 12.
#define GCRT_WIDEN(RESULT, FROM, TO, SIGNED, UNSIGNED, INPUT)                   \
  if constexpr (sizeof(R) == RESULT && sizeof(E) == FROM && sizeof(To) == TO) { \
    if constexpr (std::is_signed<E>::value) {                                   \
      return (R)SIGNED INPUT;                                                   \
    } else {                                                                    \
      return (R)UNSIGNED INPUT;                                                 \
    }                                                                           \
  } else

// Integers to wider integers; the result is at most one machine vector.
template <class To, class V>
GCRT_INLINE Rebind<V, To> widen_integer(V value) {
  using R = Rebind<V, To>;
  using E = ElementOf<V>;
#if defined(__AVX512BW__)
  GCRT_WIDEN(64, 1, 2, _mm512_maskz_cvtepi8_epi16, _mm512_maskz_cvtepu8_epi16, (0xffffffffu, (__m256i)value))
  GCRT_WIDEN(64, 2, 4, _mm512_maskz_cvtepi16_epi32, _mm512_maskz_cvtepu16_epi32, (0xffff, (__m256i)value))
  GCRT_WIDEN(64, 4, 8, _mm512_maskz_cvtepi32_epi64, _mm512_maskz_cvtepu32_epi64, (0xff, (__m256i)value))
  GCRT_WIDEN(64, 1, 4, _mm512_maskz_cvtepi8_epi32, _mm512_maskz_cvtepu8_epi32, (0xffff, to_register(value)))
  GCRT_WIDEN(64, 2, 8, _mm512_maskz_cvtepi16_epi64, _mm512_maskz_cvtepu16_epi64, (0xff, to_register(value)))
  GCRT_WIDEN(64, 1, 8, _mm512_maskz_cvtepi8_epi64, _mm512_maskz_cvtepu8_epi64, (0xff, to_register(value)))
#endif
#if defined(__AVX2__)
  GCRT_WIDEN(32, 1, 2, _mm256_cvtepi8_epi16, _mm256_cvtepu8_epi16, (to_register(value)))
  GCRT_WIDEN(32, 2, 4, _mm256_cvtepi16_epi32, _mm256_cvtepu16_epi32, (to_register(value)))
  GCRT_WIDEN(32, 4, 8, _mm256_cvtepi32_epi64, _mm256_cvtepu32_epi64, (to_register(value)))
  GCRT_WIDEN(32, 1, 4, _mm256_cvtepi8_epi32, _mm256_cvtepu8_epi32, (to_register(value)))
  GCRT_WIDEN(32, 2, 8, _mm256_cvtepi16_epi64, _mm256_cvtepu16_epi64, (to_register(value)))
  GCRT_WIDEN(32, 1, 8, _mm256_cvtepi8_epi64, _mm256_cvtepu8_epi64, (to_register(value)))
#endif
  if constexpr (sizeof(R) == 16 && sizeof(To) < 8) {
    // Each value doubled into the upper part of its lane, then shifted down with or without its sign.
    __m128i r = to_register(value);
    if constexpr (sizeof(E) == 1) r = _mm_unpacklo_epi8(r, r);
    if constexpr (sizeof(To) == 4) r = _mm_unpacklo_epi16(r, r);
    constexpr int shift = static_cast<int>(8 * (sizeof(To) - sizeof(E)));
    if constexpr (std::is_signed<E>::value) {
      return (R)(sizeof(To) == 4 ? _mm_srai_epi32(r, shift) : _mm_srai_epi16(r, shift));
    } else {
      return (R)(sizeof(To) == 4 ? _mm_srli_epi32(r, shift) : _mm_srli_epi16(r, shift));
    }
  } else {
    return __builtin_convertvector(value, R);
  }
}
#undef GCRT_WIDEN

// Elements of FromBytes in two registers to half or a quarter of their size, without saturating.
template <class R, int FromBytes>
GCRT_INLINE R narrow_registers(__m128i low, __m128i high) {
  const __m128i byte = FromBytes == 4 ? _mm_set1_epi32(0xff) : _mm_set1_epi16(0xff);
  if constexpr (FromBytes == 2) {
    return from_register<R>(_mm_packus_epi16(_mm_and_si128(low, byte), _mm_and_si128(high, byte)));
  } else if constexpr (sizeof(ElementOf<R>) == 1) {
    const __m128i words = _mm_packs_epi32(_mm_and_si128(low, byte), _mm_and_si128(high, byte));
    return from_register<R>(_mm_packus_epi16(words, words));
  } else {
    return from_register<R>(_mm_packs_epi32(_mm_srai_epi32(_mm_slli_epi32(low, 16), 16),
                                            _mm_srai_epi32(_mm_slli_epi32(high, 16), 16)));
  }
}

// Integers to narrower integers, modulo 2^bits; the source is at most one machine vector.
template <class To, class V>
GCRT_INLINE Rebind<V, To> narrow_integer(V value) {
  using R = Rebind<V, To>;
#if defined(__AVX512VL__) && defined(__AVX512BW__)
  return __builtin_convertvector(value, R);
#else
  using E = ElementOf<V>;
  if constexpr (sizeof(E) == 8 && sizeof(To) < 4) {
    return narrow_integer<To>(narrow_integer<std::int32_t>(value));
#if defined(__AVX2__)
  } else if constexpr (sizeof(V) == 32 && sizeof(E) == 8) {
    const __m256i even = _mm256_setr_epi32(0, 2, 4, 6, 0, 2, 4, 6);
    return (R)_mm256_castsi256_si128(_mm256_permutevar8x32_epi32((__m256i)value, even));
  } else if constexpr (sizeof(V) == 32) {
    return narrow_registers<R, sizeof(E)>((__m128i)low_half(value), (__m128i)high_half(value));
#endif
  } else if constexpr (sizeof(V) == 16 && sizeof(E) < 8) {
    return narrow_registers<R, sizeof(E)>((__m128i)value, (__m128i)value);
  } else {
    return __builtin_convertvector(value, R);
  }
#endif
}
#endif  // GCRT_SPELL_CONVERSIONS

// Element by element with the rules of static_cast: where the source is floating and the target an
// integer, the caller guarantees that every value fits.
template <class To, class V>
GCRT_INLINE Rebind<V, To> convert(V value) {
  using From = ElementOf<V>;
  using R [[maybe_unused]] = Rebind<V, To>;
  if constexpr (std::is_same<To, From>::value) {
    return value;
  } else if constexpr (kLanesOf<V> == 1) {
    return static_cast<To>(value);
#if GCRT_SPELL_CONVERSIONS
  } else if constexpr (kIsWide<V> || kIsWide<R>) {
    return concatenate(convert<To>(low_half(value)), convert<To>(high_half(value)));
  } else if constexpr (std::is_integral<From>::value && std::is_integral<To>::value) {
    if constexpr (sizeof(To) == sizeof(From)) {
      return (R)value;
    } else if constexpr (sizeof(To) > sizeof(From)) {
      return widen_integer<To>(value);
    } else {
      return narrow_integer<To>(value);
    }
  } else if constexpr (sizeof(From) < 4) {
    return convert<To>(convert<std::int32_t>(value));
  } else if constexpr (sizeof(To) < 4) {
    return convert<To>(convert<std::int32_t>(value));
#if GCRT_NEON64
  } else if constexpr (std::is_same<To, double>::value && std::is_same<From, float>::value) {
    return (R)vcvt_f64_f32((float32x2_t)value);
  } else if constexpr (std::is_same<To, float>::value && std::is_same<From, double>::value) {
    return (R)vcvt_f32_f64((float64x2_t)value);
  } else if constexpr (std::is_same<To, double>::value && sizeof(From) == 4) {
    return convert<To>(
        convert<std::conditional_t<std::is_signed<From>::value, std::int64_t, std::uint64_t>>(value));
  } else if constexpr (std::is_same<From, double>::value && sizeof(To) == 4) {
    return convert<To>(convert<std::int64_t>(value));
  } else if constexpr (std::is_same<From, float>::value && sizeof(To) == 8) {
    return convert<To>(convert<double>(value));
#endif
#endif
  } else {
#if GCRT_CUDA
    return convert_lanes<To>(value);
#else
    return __builtin_convertvector(value, R);
#endif
  }
}

// IEEE binary16 to float; exact, signalling NaN becomes quiet.
template <class U>
GCRT_INLINE Rebind<U, float> half_to_float(U half) {
  static_assert(std::is_same<ElementOf<U>, std::uint16_t>::value, "16-bit patterns");
#if defined(__CUDA_ARCH__)
  return map_lanes_to<float>([](std::uint16_t bits) { return half_to_float_on_device(bits); }, half);
#else
#if GCRT_X86 && defined(__AVX512F__)
  if constexpr (kLanesOf<U> == 16) return (Pack<float, 16>)_mm512_maskz_cvtph_ps(0xffff, (__m256i)half);
#endif
#if GCRT_X86 && defined(__F16C__)
  if constexpr (kLanesOf<U> == 1) return _cvtsh_ss(half);
  if constexpr (kLanesOf<U> == 4) {
    return (Pack<float, 4>)_mm_cvtph_ps(_mm_cvtsi64_si128(bit_cast_whole<long long>(half)));
  }
  if constexpr (kLanesOf<U> == 8) return (Pack<float, 8>)_mm256_cvtph_ps((__m128i)half);
  if constexpr (kLanesOf < U >> 8) {
    return concatenate(half_to_float(low_half(half)), half_to_float(high_half(half)));
  }
#endif
#if GCRT_NEON64
  if constexpr (kLanesOf<U> == 4) return (Pack<float, 4>)vcvt_f32_f16((float16x4_t)half);
  if constexpr (kLanesOf < U >> 4) {
    return concatenate(half_to_float(low_half(half)), half_to_float(high_half(half)));
  }
#endif
  const auto bits = convert<std::uint32_t>(half);
  const auto magnitude = bits & 0x7fffu;
  const auto sign = (bits & 0x8000u) << 16;
  const auto rebiased = (magnitude << 13) + (112u << 23);
  const auto quiet = blend(magnitude > 0x7c00u, splat_like<decltype(rebiased)>(1u << 22), rebiased & 0u);
  const auto large = (rebiased + (112u << 23)) | quiet;
  const auto small = bit_cast<std::uint32_t>(convert<float>(bit_cast<std::int32_t>(magnitude)) *
                                             splat_like<Rebind<U, float>>(5.9604644775390625e-8f));
  const auto finite = blend(magnitude < 0x0400u, small, rebiased);
  return bit_cast<float>(blend(magnitude >= 0x7c00u, large, finite) | sign);
#endif
}

// Float to IEEE binary16, to nearest even; overflow gives infinity; NaN stays NaN and becomes quiet.
template <class V>
GCRT_INLINE Rebind<V, std::uint16_t> float_to_half(V value) {
  static_assert(std::is_same<ElementOf<V>, float>::value, "float lanes");
#if defined(__CUDA_ARCH__)
  return map_lanes_to<std::uint16_t>([](float lane) { return float_to_half_on_device(lane); }, value);
#else
#if GCRT_X86 && defined(__AVX512F__)
  if constexpr (kLanesOf<V> == 16) {
    return (Pack<std::uint16_t, 16>)_mm512_maskz_cvtps_ph(0xffff, (__m512)value, _MM_FROUND_TO_NEAREST_INT);
  }
#endif
#if GCRT_X86 && defined(__F16C__)
  if constexpr (kLanesOf<V> == 1) {
    // _cvtss_sh() is a macro with a compound literal in clang, which pedantic C++ does not have.
    const __m128i half = _mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT);
    return static_cast<std::uint16_t>(_mm_cvtsi128_si32(half));
  }
  if constexpr (kLanesOf<V> == 4) {
    const __m128i halves = _mm_cvtps_ph((__m128)value, _MM_FROUND_TO_NEAREST_INT);
    return bit_cast_whole<Pack<std::uint16_t, 4>>(static_cast<long long>(_mm_cvtsi128_si64(halves)));
  }
  if constexpr (kLanesOf<V> == 8) {
    return (Pack<std::uint16_t, 8>)_mm256_cvtps_ph((__m256)value, _MM_FROUND_TO_NEAREST_INT);
  }
  if constexpr (kLanesOf < V >> 8) {
    return concatenate(float_to_half(low_half(value)), float_to_half(high_half(value)));
  }
#endif
#if GCRT_NEON64
  if constexpr (kLanesOf<V> == 4) return (Pack<std::uint16_t, 4>)vcvt_f16_f32((float32x4_t)value);
  if constexpr (kLanesOf < V >> 4) {
    return concatenate(float_to_half(low_half(value)), float_to_half(high_half(value)));
  }
#endif
  using F = Rebind<V, float>;
  using U = Rebind<V, std::uint32_t>;
  const U bits = bit_cast<std::uint32_t>(value);
  const U magnitude = bits & 0x7fffffffu;
  const U sign = (bits ^ magnitude) >> 16;
  // Below 2^-14 the sum with 0.5 rounds at 2^-24, the unit of subnormal halves.
  const F half = splat_like<F>(0.5f);
  const U small = bit_cast<std::uint32_t>(bit_cast<float>(magnitude) + half) - bit_cast<std::uint32_t>(half);
  const U normal = (magnitude + (0xfffu - (112u << 23)) + ((magnitude >> 13) & 1u)) >> 13;
  const U finite = blend(magnitude < 0x38800000u, small, normal);
  const U limited = blend(magnitude >= 0x477ff000u, splat_like<U>(0x7c00u), finite);
  const U nan = ((magnitude >> 13) & 0x3ffu) | 0x7e00u;
  return convert<std::uint16_t>(blend(magnitude > 0x7f800000u, nan, limited) | sign);
#endif
}

template <class U>
GCRT_INLINE Rebind<U, float> bfloat16_to_float(U bits) {
  static_assert(std::is_same<ElementOf<U>, std::uint16_t>::value, "16-bit patterns");
  return bit_cast<float>(convert<std::uint32_t>(bits) << 16);
}

// To nearest even; NaN stays NaN and becomes quiet.
template <class V>
GCRT_INLINE Rebind<V, std::uint16_t> float_to_bfloat16(V value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  return floats_to_bfloat16_on_device(value);
#else
  using U = Rebind<V, std::uint32_t>;
  const U bits = bit_cast<std::uint32_t>(value);
  const U rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const U nan = (bits >> 16) | 0x40u;
  return convert<std::uint16_t>(blend((bits & 0x7fffffffu) > 0x7f800000u, nan, rounded));
#endif
}

}  // namespace GCRT_NAMESPACE
