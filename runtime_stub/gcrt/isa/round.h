// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Square roots and rounding to whole numbers, which vector extensions do not offer.
#pragma once

#include "gcrt/isa/intrinsics.h"
#include "gcrt/pack_types.h"

namespace GCRT_NAMESPACE {

// Correctly rounded; of negative numbers NaN.
template <class V>
GCRT_INLINE V sqrt(V a) {
  using T = ElementOf<V>;
  if constexpr (kLanesOf<V> == 1) {
#if GCRT_X86 && defined(__SSE2__)
    // The instruction itself: the library function would set errno.
    if constexpr (sizeof(T) == 4) {
      return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a)));
    } else {
      return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(a)));
    }
#elif defined(__CUDACC__)
    if constexpr (sizeof(T) == 4) {
      return ::sqrtf(a);
    } else {
      return ::sqrt(a);
    }
#else
    if constexpr (sizeof(T) == 4) {
      return __builtin_sqrtf(a);
    } else {
      return __builtin_sqrt(a);
    }
#endif
#if GCRT_X86 && defined(__AVX512F__)
  } else if constexpr (sizeof(V) == 64 && sizeof(T) == 4) {
    return (V)_mm512_maskz_sqrt_ps(0xffff, (__m512)a);
  } else if constexpr (sizeof(V) == 64) {
    return (V)_mm512_maskz_sqrt_pd(0xff, (__m512d)a);
#endif
#if GCRT_X86 && defined(__AVX__)
  } else if constexpr (sizeof(V) == 32 && sizeof(T) == 4) {
    return (V)_mm256_sqrt_ps((__m256)a);
  } else if constexpr (sizeof(V) == 32) {
    return (V)_mm256_sqrt_pd((__m256d)a);
#endif
#if GCRT_X86 && defined(__SSE2__)
  } else if constexpr (sizeof(V) == 16 && sizeof(T) == 4) {
    return (V)_mm_sqrt_ps((__m128)a);
  } else if constexpr (sizeof(V) == 16) {
    return (V)_mm_sqrt_pd((__m128d)a);
#elif GCRT_NEON64
  } else if constexpr (sizeof(V) == 16 && sizeof(T) == 4) {
    return (V)vsqrtq_f32((float32x4_t)a);
  } else if constexpr (sizeof(V) == 16) {
    return (V)vsqrtq_f64((float64x2_t)a);
#endif
  } else {
    return concatenate(sqrt(low_half(a)), sqrt(high_half(a)));
  }
}

// Integers below this bound only: 2^23 for float, 2^52 for double.
template <class T>
constexpr T kFirstWhole = sizeof(T) == 4 ? static_cast<T>(8388608.0) : static_cast<T>(4503599627370496.0);

template <class V>
GCRT_INLINE V copy_sign(V magnitude, V from) {
  using U = UnsignedBits<ElementOf<V>>;
  constexpr U sign_bit = static_cast<U>(U{1} << (8 * sizeof(U) - 1));
  return bit_cast<ElementOf<V>>((bit_cast<U>(magnitude) & ~sign_bit) | (bit_cast<U>(from) & sign_bit));
}

// The portable body: adding 2^23 (2^52) to the magnitude leaves no bit for a fraction, and the addition
// rounds to nearest even. Larger magnitudes, infinities and NaN are whole already.
template <class V>
GCRT_INLINE V round_half_even_by_addition(V a) {
  const V whole = splat_like<V>(kFirstWhole<ElementOf<V>>);
  const V magnitude = copy_sign(a, V{});
  const V rounded = copy_sign((magnitude + whole) - whole, a);
  return blend(magnitude < whole, rounded, a);
}

// Rounding modes, numbered as the x86 instructions number them.
enum RoundingMode : int { kToNearestEven = 0, kDown = 1, kUp = 2, kTowardZero = 3 };

#if defined(__CUDA_ARCH__)
template <class V>
constexpr bool kRoundsNatively = true;

template <RoundingMode Mode, class V>
GCRT_INLINE V round_natively(V a) {
  return map_lanes([](auto lane) { return round_on_device<static_cast<int>(Mode)>(lane); }, a);
}
#else
#if GCRT_X86 && defined(__AVX512F__)
constexpr int kWidestNativeRounding = 64;
#elif GCRT_X86 && defined(__AVX__)
constexpr int kWidestNativeRounding = 32;
#elif (GCRT_X86 && defined(__SSE4_1__)) || GCRT_NEON64
constexpr int kWidestNativeRounding = 16;
#else
constexpr int kWidestNativeRounding = 0;
#endif

// Whether one instruction rounds a pack of this type.
template <class V>
constexpr bool kRoundsNatively = sizeof(ElementOf<V>) == 4 && sizeof(V) >= 16 &&
                                 static_cast<int>(sizeof(V)) <= kWidestNativeRounding;

template <RoundingMode Mode, class V>
GCRT_INLINE V round_natively(V a) {
#if GCRT_X86 && defined(__AVX512F__)
  if constexpr (sizeof(V) == 64) {
    return (V)_mm512_maskz_roundscale_ps(0xffff, (__m512)a, Mode | _MM_FROUND_NO_EXC);
  }
#endif
#if GCRT_X86 && defined(__AVX__)
  if constexpr (sizeof(V) == 32) return (V)_mm256_round_ps((__m256)a, Mode | _MM_FROUND_NO_EXC);
#endif
#if GCRT_X86 && defined(__SSE4_1__)
  if constexpr (sizeof(V) == 16) return (V)_mm_round_ps((__m128)a, Mode | _MM_FROUND_NO_EXC);
#endif
#if GCRT_NEON64
  if constexpr (sizeof(V) == 16) {
    const float32x4_t x = (float32x4_t)a;
    if constexpr (Mode == kToNearestEven) return (V)vrndnq_f32(x);
    if constexpr (Mode == kDown) return (V)vrndmq_f32(x);
    if constexpr (Mode == kUp) return (V)vrndpq_f32(x);
    if constexpr (Mode == kTowardZero) return (V)vrndq_f32(x);
  }
#endif
  return a;
}
#endif

// To the nearest whole number, ties to even. Keeps the sign of zero.
template <class V>
GCRT_INLINE V round_half_even(V a) {
  if constexpr (kRoundsNatively<V>) {
    return round_natively<kToNearestEven>(a);
  } else {
    return round_half_even_by_addition(a);
  }
}

// Toward minus infinity, plus infinity and zero. Keep the sign of zero: ceil(-0.5) is -0.
template <class V>
GCRT_INLINE V floor(V a) {
  if constexpr (kRoundsNatively<V>) {
    return round_natively<kDown>(a);
  } else {
    const V rounded = round_half_even(a);
    return copy_sign(blend(rounded > a, rounded - splat_like<V>(1), rounded), a);
  }
}
template <class V>
GCRT_INLINE V ceil(V a) {
  if constexpr (kRoundsNatively<V>) {
    return round_natively<kUp>(a);
  } else {
    const V rounded = round_half_even(a);
    return copy_sign(blend(rounded < a, rounded + splat_like<V>(1), rounded), a);
  }
}
template <class V>
GCRT_INLINE V trunc(V a) {
  if constexpr (kRoundsNatively<V>) {
    return round_natively<kTowardZero>(a);
  } else {
    const V magnitude = copy_sign(a, V{});
    return copy_sign(floor(magnitude), a);
  }
}

}  // namespace GCRT_NAMESPACE
