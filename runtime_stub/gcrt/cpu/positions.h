// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Positions that lanes count up, compared with a number that all lanes share. That takes lanes of 32 bits,
// where positions have 64: the number of a lane is compared with that of the lane where the number would lie.
#pragma once

#include "gcrt/pack.h"
#include "gcrt/scalar/arithmetic.h"

namespace GCRT_NAMESPACE {

template <int N>
struct Positions {
  std::int64_t first;  // of lane 0

  // -1 below the first lane, N beyond the last one.
  GCRT_INLINE std::int32_t lane_of(std::int64_t number) const {
    if (number < first) return -1;
    const std::uint64_t lane = static_cast<std::uint64_t>(number) - static_cast<std::uint64_t>(first);
    return lane < N ? static_cast<std::int32_t>(lane) : N;
  }
};

// first, first + 1, ..., first + N - 1.
template <int N>
GCRT_INLINE Positions<N> positions(Lanes<N>, std::int64_t first) {
  return {first};
}

template <int... I>
GCRT_INLINE Pack<std::int32_t, static_cast<int>(sizeof...(I))> lane_numbers(
    std::integer_sequence<int, I...>) {
  return Pack<std::int32_t, static_cast<int>(sizeof...(I))>{I...};
}
template <int N>
GCRT_INLINE Pack<std::int32_t, N> lane_numbers() {
  return lane_numbers(std::make_integer_sequence<int, N>{});
}

// Masks, as of two packs of 32 bits.
template <int N>
GCRT_INLINE auto operator<(Positions<N> a, std::int64_t b) {
  return lane_numbers<N>() < splat(Lanes<N>{}, a.lane_of(b));
}
template <int N>
GCRT_INLINE auto operator<=(Positions<N> a, std::int64_t b) {
  return lane_numbers<N>() <= splat(Lanes<N>{}, a.lane_of(b));
}
template <int N>
GCRT_INLINE auto operator>(Positions<N> a, std::int64_t b) {
  return lane_numbers<N>() > splat(Lanes<N>{}, a.lane_of(b));
}
template <int N>
GCRT_INLINE auto operator>=(Positions<N> a, std::int64_t b) {
  return lane_numbers<N>() >= splat(Lanes<N>{}, a.lane_of(b));
}
template <int N>
GCRT_INLINE auto operator==(Positions<N> a, std::int64_t b) {
  return lane_numbers<N>() == splat(Lanes<N>{}, a.lane_of(b));
}
template <int N>
GCRT_INLINE auto operator!=(Positions<N> a, std::int64_t b) {
  return lane_numbers<N>() != splat(Lanes<N>{}, a.lane_of(b));
}

// Booleans.
template <int N>
GCRT_INLINE Pack<std::uint8_t, N> less(Positions<N> a, std::int64_t b) {
  return mask_to_bool<N>(a < b);
}
template <int N>
GCRT_INLINE Pack<std::uint8_t, N> less_equal(Positions<N> a, std::int64_t b) {
  return mask_to_bool<N>(a <= b);
}
template <int N>
GCRT_INLINE Pack<std::uint8_t, N> greater(Positions<N> a, std::int64_t b) {
  return mask_to_bool<N>(a > b);
}
template <int N>
GCRT_INLINE Pack<std::uint8_t, N> greater_equal(Positions<N> a, std::int64_t b) {
  return mask_to_bool<N>(a >= b);
}
template <int N>
GCRT_INLINE Pack<std::uint8_t, N> equal(Positions<N> a, std::int64_t b) {
  return mask_to_bool<N>(a == b);
}
template <int N>
GCRT_INLINE Pack<std::uint8_t, N> not_equal(Positions<N> a, std::int64_t b) {
  return mask_to_bool<N>(a != b);
}

}  // namespace GCRT_NAMESPACE
