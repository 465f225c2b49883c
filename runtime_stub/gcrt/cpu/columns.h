// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
#pragma once
// Reductions of the rows of a matrix to one: the columns of several packs are reduced side by side, so that
// no pack waits for its own last sum, and every row is read in long runs.

#include <cstddef>
#include <limits>

#include "gcrt/pack.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {

/// `Packs` packs of columns from i on.
template <class T, int Packs, int N, class Combine, class Term, class Body>
GCRT_INLINE void reduce_packs(Lanes<N> lane, std::ptrdiff_t i, std::ptrdiff_t rows, T identity,
                              const Combine& combine, const Term& term, const Body& body) {
  Pack<T, N> sums[Packs];
  GCRT_UNROLL
  for (int p = 0; p < Packs; ++p) sums[p] = splat(lane, identity);
  for (std::ptrdiff_t row = 0; row < rows; ++row) {
    GCRT_UNROLL
    for (int p = 0; p < Packs; ++p) sums[p] = combine(sums[p], term(lane, i + p * N, row));
  }
  GCRT_UNROLL
  for (int p = 0; p < Packs; ++p) body(lane, i + p * N, sums[p]);
}

/// term(lane, i, row) gives a pack of columns from i on, and body(lane, i, pack) takes the reduction of all
/// rows, which are taken one after another, whatever the width of a pack.
template <class T, int L, class Combine, class Term, class Body>
GCRT_INLINE void reduce_columns(AxisPart columns, std::ptrdiff_t rows, T identity, const Combine& combine,
                                const Term& term, const Body& body) {
  constexpr int kAbreast = 8;
  std::ptrdiff_t i = columns.begin;
  const std::ptrdiff_t count = columns.end - columns.begin;
  const std::ptrdiff_t many = columns.begin + count - count % (kAbreast * L),
                       whole = columns.begin + count - count % L;
  for (; i < many; i += kAbreast * L)
    reduce_packs<T, kAbreast>(Lanes<L>{}, i, rows, identity, combine, term, body);
  for (; i < whole; i += L) reduce_packs<T, 1>(Lanes<L>{}, i, rows, identity, combine, term, body);
  if constexpr (L > 1) {
    for (; i < columns.end; ++i) reduce_packs<T, 1>(Lanes<1>{}, i, rows, identity, combine, term, body);
  }
}

#define GCRT_REDUCE_COLUMNS(name, function, identity)                                                    \
  template <class T, int L = kLanes, class Term, class Body>                                             \
  GCRT_INLINE void name(AxisPart columns, std::ptrdiff_t rows, const Term& term, const Body& body) {     \
    reduce_columns<T, (L > 1 ? L : 1)>(                                                                  \
        columns, rows, identity, [](auto a, auto b) GCRT_LAMBDA_INLINE { return function(a, b); }, term, \
        body);                                                                                           \
  }
GCRT_REDUCE_COLUMNS(add_columns, add, T(0))
GCRT_REDUCE_COLUMNS(mul_columns, mul, T(1))
GCRT_REDUCE_COLUMNS(max_columns, max, std::numeric_limits<T>::has_infinity ? T(-kInfinity<T>) : kLowest<T>)
GCRT_REDUCE_COLUMNS(min_columns, min, std::numeric_limits<T>::has_infinity ? kInfinity<T> : kLargest<T>)
#undef GCRT_REDUCE_COLUMNS

}  // namespace GCRT_NAMESPACE
