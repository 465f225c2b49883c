// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
#pragma once
// What printed loops use besides packs: reductions along a vector axis, arg-reductions, floor division, and
// strided access to 16-bit floats.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "gcrt/pack.h"
#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {

/// floor(a / b) for b > 0, of one number (an index may be an int, and then b fits in one) or of a pack.
template <class I>
GCRT_INLINE I floor_divide(I a, std::int64_t b) {
  if constexpr (std::is_arithmetic_v<I>) {
    const I divisor = static_cast<I>(b), quotient = a / divisor;
    return quotient * divisor > a ? quotient - 1 : quotient;
  } else {
    const I quotient = a / b;
    return quotient - blend(quotient * b > a, splat_like<I>(1), I{});
  }
}
template <class I>
GCRT_INLINE I floor_modulo(I a, std::int64_t b) {
  if constexpr (std::is_arithmetic_v<I>) {
    return a - floor_divide(a, b) * static_cast<I>(b);
  } else {
    return a - floor_divide(a, b) * b;
  }
}

template <int N, class T>
GCRT_INLINE Pack<float, N> load_as_float_strided(Lanes<N>, const T* p, std::ptrdiff_t stride) {
  alignas(16) T lanes[N];  // read and written as a pack
  for (int i = 0; i < N; ++i) lanes[i] = p[i * stride];
  return load_as_float(Lanes<N>{}, lanes);
}
template <int N, class T>
GCRT_INLINE Pack<float, N> gather_as_float(Lanes<N>, const T* p, const Pack<std::int64_t, N>& index) {
  if constexpr (N == 1) {
    return load_as_float(Lanes<1>{}, p + index);
  } else {
    alignas(16) T lanes[N];  // read and written as a pack
    for (int i = 0; i < N; ++i) lanes[i] = p[index[i]];
    return load_as_float(Lanes<N>{}, lanes);
  }
}
template <int N, class T>
GCRT_INLINE void store_from_float_strided(Lanes<N>, T* p, std::ptrdiff_t stride, Pack<float, N> value) {
  alignas(16) T lanes[N];  // read and written as a pack
  store_from_float(Lanes<N>{}, lanes, value);
  for (int i = 0; i < N; ++i) p[i * stride] = lanes[i];
}

/// `value` rounded to the 16-bit type, still held as float.
template <class T, class V>
GCRT_INLINE V round_to(V value) {
  constexpr int n = kLanesOf<V>;
  alignas(16) T lanes[n];  // read and written as a pack
  store_from_float(Lanes<n>{}, lanes, value);
  return load_as_float(Lanes<n>{}, lanes);
}

/// Folds body(lane, i) for i in [0, count): four packs of partial results hide the latency of the combine,
/// then a tail of single elements. The order depends on the vector width (tier "reassociate").
template <class T, class Combine, class F>
GCRT_INLINE T reduce_range(std::ptrdiff_t count, T identity, const Combine& combine, const F& body) {
  constexpr int n = kLanesFor<T>;
  T result = identity;
  // Counted this way, literal counts leave no dead tail, about which g++ 12 would warn.
  const std::ptrdiff_t full = n == 1 || count < n ? 0 : count - count % n;
  if constexpr (n > 1) {
    const Lanes<n> lane{};
    const std::ptrdiff_t quads = full - full % (4 * n);
    if (full > 0) {
      auto a = body(lane, 0);
      std::ptrdiff_t i = n;
      if (quads > 0) {
        auto b = body(lane, n);
        auto c = body(lane, 2 * n);
        auto d = body(lane, 3 * n);
        for (i = 4 * n; i < quads; i += 4 * n) {
          a = combine(a, body(lane, i));
          b = combine(b, body(lane, i + n));
          c = combine(c, body(lane, i + 2 * n));
          d = combine(d, body(lane, i + 3 * n));
        }
        a = combine(combine(a, b), combine(c, d));
      }
      for (; i < full; i += n) a = combine(a, body(lane, i));
      result = combine(result, reduce_lanes(combine, a));
    }
  }
  for (std::ptrdiff_t i = full; i < count; ++i) result = combine(result, body(Lanes<1>{}, i));
  return result;
}

#define GCRT_REDUCE_RANGE(name, function, identity)                                               \
  template <class T, class F>                                                                     \
  GCRT_INLINE T name(std::ptrdiff_t count, const F& body) {                                       \
    return reduce_range<T>(                                                                       \
        count, identity, [](auto a, auto b) GCRT_LAMBDA_INLINE { return function(a, b); }, body); \
  }
GCRT_REDUCE_RANGE(reduce_add, add, T(0))
GCRT_REDUCE_RANGE(reduce_mul, mul, T(1))
GCRT_REDUCE_RANGE(reduce_max, max, std::numeric_limits<T>::has_infinity ? T(-kInfinity<T>) : kLowest<T>)
GCRT_REDUCE_RANGE(reduce_min, min, std::numeric_limits<T>::has_infinity ? kInfinity<T> : kLargest<T>)
#undef GCRT_REDUCE_RANGE

/// Position of the extremum of the values offered in order. NaN counts as the extremum, the first one wins
/// (numpy.argmax); equal values keep the first position unless Last.
template <class T, bool Max, bool Last>
class ArgReduction {
 public:
  GCRT_INLINE void offer(T value) {
    const bool value_is_nan = value != value;
    const bool best_is_nan = best_ != best_;
    const bool better = Max ? value > best_ : value < best_;
    if (count_ == 0 || (!best_is_nan && (value_is_nan || better || (Last && value == best_)))) {
      best_ = value;
      position_ = count_;
    }
    ++count_;
  }
  GCRT_INLINE std::int64_t position() const { return position_; }

 private:
  T best_ = T(0);
  std::int64_t position_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace GCRT_NAMESPACE
