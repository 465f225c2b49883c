// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Every machine-specific instruction of the runtime, each with a portable body. Results do not depend on
// the instruction set, except that fma rounds twice where the machine has no fused multiply-add.
#pragma once

#include "gcrt/isa/convert.h"
#include "gcrt/isa/dot.h"
#include "gcrt/isa/intrinsics.h"
#include "gcrt/isa/limit.h"
#include "gcrt/isa/round.h"
#include "gcrt/isa/saturate.h"
#include "gcrt/pack_types.h"

namespace GCRT_NAMESPACE {

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA) || defined(__CUDA_ARCH__)
#define GCRT_HAS_FMA 1
#else
#define GCRT_HAS_FMA 0
#endif

// a * b + c with one rounding where the machine can, else with two. Element type float or double.
template <class V>
GCRT_INLINE V fma(V a, V b, V c) {
#if GCRT_HAS_FMA
  using T [[maybe_unused]] = ElementOf<V>;
  if constexpr (std::is_same<V, float>::value) {
#if defined(__CUDACC__)
    return ::fmaf(a, b, c);
#else
    return __builtin_fmaf(a, b, c);
#endif
  } else if constexpr (std::is_same<V, double>::value) {
#if defined(__CUDACC__)
    return ::fma(a, b, c);
#else
    return __builtin_fma(a, b, c);
#endif
#if GCRT_X86
#if defined(__AVX512F__)
  } else if constexpr (sizeof(V) == 64 && sizeof(T) == 4) {
    return (V)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
  } else if constexpr (sizeof(V) == 64 && sizeof(T) == 8) {
    return (V)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c);
#endif
  } else if constexpr (sizeof(V) == 32 && sizeof(T) == 4) {
    return (V)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
  } else if constexpr (sizeof(V) == 32 && sizeof(T) == 8) {
    return (V)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c);
  } else if constexpr (sizeof(V) == 16 && sizeof(T) == 4) {
    return (V)_mm_fmadd_ps((__m128)a, (__m128)b, (__m128)c);
  } else if constexpr (sizeof(V) == 16 && sizeof(T) == 8) {
    return (V)_mm_fmadd_pd((__m128d)a, (__m128d)b, (__m128d)c);
#elif GCRT_NEON
  } else if constexpr (sizeof(V) == 16 && sizeof(T) == 4) {
    return (V)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
#if GCRT_NEON64
  } else if constexpr (sizeof(V) == 16 && sizeof(T) == 8) {
    return (V)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b);
#endif
#endif
  } else {
    return concatenate(fma(low_half(a), low_half(b), low_half(c)),
                       fma(high_half(a), high_half(b), high_half(c)));
  }
#else
  return a * b + c;
#endif
}

// sum = a * b + sum, for tiles that fill the registers: left to choose, g++ 12 takes forms of the instruction
// that overwrite a factor and copies sums to and fro for them, clang 14 moves loads ahead,
// and both spill sums.
template <class V>
GCRT_INLINE void fma_into(V& sum, V a, V b) {
#if GCRT_X86 && GCRT_HAS_FMA
#define GCRT_FMA_INTO(instruction)                    \
  asm volatile(instruction " {%2, %1, %0|%0, %1, %2}" \
               : "+" GCRT_VECTOR_REGISTER(sum)        \
               : GCRT_VECTOR_REGISTER(a), GCRT_VECTOR_REGISTER(b))
  if constexpr (sizeof(V) >= 16 && sizeof(V) <= GCRT_NATIVE_BYTES) {
    if constexpr (std::is_same<ElementOf<V>, float>::value) {
      GCRT_FMA_INTO("vfmadd231ps");
    } else {
      GCRT_FMA_INTO("vfmadd231pd");
    }
    return;
  }
#undef GCRT_FMA_INTO
#endif
  sum = fma(a, b, sum);
}

// Whether an instruction multiplies a vector by one lane of another: FMLA and SDOT (by element) of AArch64
// (Arm Architecture Reference Manual, C7.2). Four values of A are then one load, and none is spread.
#if GCRT_NEON64 && GCRT_VECTOR_BYTES == 16
constexpr bool kMultipliesLanes = true;
#else
constexpr bool kMultipliesLanes = false;
#endif

// a * lanes[Lane] + c, with one rounding where the machine can.
template <int Lane, class V>
GCRT_INLINE V fma_lane(V a, V lanes, V c) {
#if GCRT_NEON64
  if constexpr (std::is_same<V, Pack<float, 4>>::value) {
    return (V)vfmaq_laneq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)lanes, Lane);
  }
#endif
  return fma(a, splat_like<V>(lanes[Lane]), c);
}

}  // namespace GCRT_NAMESPACE
