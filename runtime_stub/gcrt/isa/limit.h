// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The smaller and the larger of two numbers, one of which may be NaN.
#pragma once

#include "gcrt/isa/intrinsics.h"
#include "gcrt/pack_types.h"

namespace GCRT_NAMESPACE {

// Lanes of a pack of float32; 0 for other elements.
template <class V>
constexpr int kFloatsOf = std::is_same<ElementOf<V>, float>::value ? kLanesOf<V> : 0;

// bound < x ? bound : x and bound > x ? bound : x, which one instruction computes where g++ 12 makes a
// comparison and a blend of them. An x that is NaN stays; a bound may not be NaN. Of zeros with different
// signs either.
template <class V>
GCRT_INLINE V at_most(V x, V bound) {
#if GCRT_X86
#if defined(__AVX512F__)
  if constexpr (kFloatsOf<V> == 16) return (V)_mm512_maskz_min_ps(0xffff, (__m512)bound, (__m512)x);
#endif
#if defined(__AVX__)
  if constexpr (kFloatsOf<V> == 8) return (V)_mm256_min_ps((__m256)bound, (__m256)x);
#endif
#if defined(__SSE2__)
  if constexpr (kFloatsOf<V> == 4) return (V)_mm_min_ps((__m128)bound, (__m128)x);
#endif
#elif GCRT_NEON64
  if constexpr (kFloatsOf<V> == 4) return (V)vminq_f32((float32x4_t)x, (float32x4_t)bound);
#endif
  return blend(bound < x, bound, x);
}
template <class V>
GCRT_INLINE V at_least(V x, V bound) {
#if GCRT_X86
#if defined(__AVX512F__)
  if constexpr (kFloatsOf<V> == 16) return (V)_mm512_maskz_max_ps(0xffff, (__m512)bound, (__m512)x);
#endif
#if defined(__AVX__)
  if constexpr (kFloatsOf<V> == 8) return (V)_mm256_max_ps((__m256)bound, (__m256)x);
#endif
#if defined(__SSE2__)
  if constexpr (kFloatsOf<V> == 4) return (V)_mm_max_ps((__m128)bound, (__m128)x);
#endif
#elif GCRT_NEON64
  if constexpr (kFloatsOf<V> == 4) return (V)vmaxq_f32((float32x4_t)x, (float32x4_t)bound);
#endif
  return blend(bound > x, bound, x);
}

}  // namespace GCRT_NAMESPACE
