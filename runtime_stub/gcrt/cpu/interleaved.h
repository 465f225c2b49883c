// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
#pragma once
// Stores of tensors whose elements take turns in memory, as the two halves of shuffled channels do.

#include <cstddef>
#include <utility>

#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

/// Lanes [First, First + N / 2) of a and b in turn.
template <int First, class P, int... I>
GCRT_INLINE P in_turn(const P& a, const P& b, std::integer_sequence<int, I...>) {
  constexpr int n = static_cast<int>(sizeof...(I));
  return __builtin_shufflevector(a, b, (First + I / 2 + (I & 1) * n)...);
}

/// Elements [First, First + N) of a[0], b[0], c[0], a[1], ...
template <int First, class P, int... I>
GCRT_INLINE P in_turn(const P& a, const P& b, const P& c, std::integer_sequence<int, I...>) {
  constexpr int n = static_cast<int>(sizeof...(I));
  const P two = __builtin_shufflevector(a, b, ((First + I) / 3 + ((First + I) % 3 == 1 ? n : 0))...);
  return __builtin_shufflevector(two, c, ((First + I) % 3 == 2 ? n + (First + I) / 3 : I)...);
}

/// Element i of part k goes to p[i * (number of parts) + k].
template <int N, class T, class... Parts>
GCRT_INLINE void store_interleaved(Lanes<N> lane, T* p, const Parts&... parts) {
  constexpr std::ptrdiff_t count = sizeof...(parts);
  constexpr auto lanes = std::make_integer_sequence<int, N>{};
  const Pack<T, N> packs[] = {parts...};
  if constexpr (count == 2 && N > 1) {
    store(lane, p, in_turn<0>(packs[0], packs[1], lanes));
    store(lane, p + N, in_turn<N / 2>(packs[0], packs[1], lanes));
  } else if constexpr (count == 3 && N > 2) {
    store(lane, p, in_turn<0>(packs[0], packs[1], packs[2], lanes));
    store(lane, p + N, in_turn<N>(packs[0], packs[1], packs[2], lanes));
    store(lane, p + 2 * N, in_turn<2 * N>(packs[0], packs[1], packs[2], lanes));
  } else {
    for (std::ptrdiff_t k = 0; k < count; ++k) store_strided(lane, p + k, count, packs[k]);
  }
}

}  // namespace GCRT_NAMESPACE
