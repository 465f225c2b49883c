// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The lanes in which a comparison holds, as bits of an integer.
#pragma once

#include "gcrt/isa/intrinsics.h"
#include "gcrt/pack_types.h"

namespace GCRT_NAMESPACE {

// Bit i is set where lane i holds of a comparison of at most 32 floats: a bool, or a vector of 0 and -1.
template <class M>
GCRT_INLINE std::uint32_t lane_bits(const M& mask) {
  if constexpr (kLanesOf<M> == 1) {
    return mask ? 1u : 0u;
  } else {
    static_assert(sizeof(ElementOf<M>) == 4 && kLanesOf<M> <= 32, "lanes of 32 bits");
#if GCRT_X86
#if defined(__AVX512F__)
    if constexpr (sizeof(M) == 64) return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask);
#endif
#if defined(__AVX__)
    if constexpr (sizeof(M) == 32) return static_cast<std::uint32_t>(_mm256_movemask_ps((__m256)mask));
#endif
#if defined(__SSE2__)
    if constexpr (sizeof(M) == 16) return static_cast<std::uint32_t>(_mm_movemask_ps((__m128)mask));
#endif
#elif GCRT_NEON64
    if constexpr (sizeof(M) == 16) {
      const Pack<std::uint32_t, 4> bits = {1, 2, 4, 8};
      return vaddvq_u32((uint32x4_t)((Pack<std::uint32_t, 4>)mask & bits));
    }
#endif
    std::uint32_t bits = 0;
    for (int i = 0; i < kLanesOf<M>; ++i) bits |= mask[i] != 0 ? std::uint32_t{1} << i : 0u;
    return bits;
  }
}

}  // namespace GCRT_NAMESPACE
