// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The order of TopK, and the rank of an element in it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// Larger (or smaller) first; NaN counts as the largest value; ties go to the smaller position.
template <class T, bool Largest>
struct TopKOrder {
  static GCRT_INLINE bool less(T a, T b) { return b != b ? !(a != a) : a < b; }
  static GCRT_INLINE bool before(T a, std::int64_t i, T b, std::int64_t j) {
    if (Largest ? less(b, a) : less(a, b)) return true;
    if (Largest ? less(a, b) : less(b, a)) return false;
    return i < j;
  }
};

// TopK by its definition, element by element: one that fewer than k others of its line come before is stored
// where their number says. x [outer][extent][inner] -> values, positions [outer][k][inner].
template <bool Largest, class T>
struct TopKByRank {
  std::ptrdiff_t extent, inner, k;
  const T* x;
  T* values;
  std::int64_t* positions;

  GCRT_INLINE void operator()(std::ptrdiff_t element) const {
    const std::ptrdiff_t outer = element / (extent * inner);
    const std::ptrdiff_t position = element / inner % extent;
    const std::ptrdiff_t within = element % inner;
    const T* const line = x + outer * extent * inner + within;
    const T value = line[position * inner];
    std::ptrdiff_t rank = 0;
    for (std::ptrdiff_t j = 0; j < extent; ++j) {
      rank += TopKOrder<T, Largest>::before(line[j * inner], j, value, position) ? 1 : 0;
    }
    if (rank >= k) return;
    const std::ptrdiff_t at = (outer * k + rank) * inner + within;
    values[at] = value;
    positions[at] = position;
  }
};

}  // namespace GCRT_NAMESPACE
