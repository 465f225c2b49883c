// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Trigonometric and hyperbolic functions, their inverses, pow and the roots of scalar.h.
#pragma once

#include "gcrt/scalar/math.h"

namespace GCRT_NAMESPACE {

// sin(x + quarter_turns * pi / 2) for |x| <= 8192.
template <class V>
GCRT_INLINE V sin_reduced(V x, std::int32_t quarter_turns) {
  const V magic = splat_like<V>(12582912.0f);
  const V shifted = fma(x, splat_like<V>(0.636619772f), magic);
  const V n = shifted - magic;
  V r = fma(n, splat_like<V>(-kCoefficient<HalfPiParts, 0>), x);
  r = fma(n, splat_like<V>(-kCoefficient<HalfPiParts, 1>), r);
  r = fma(n, splat_like<V>(-kCoefficient<HalfPiParts, 2>), r);
  r = fma(n, splat_like<V>(-kCoefficient<HalfPiParts, 3>), r);
  const V z = r * r;
  const V sine = fma(r * z, polynomial<SinTail>(z), r);
  const V cosine = fma(z * z, polynomial<CosTail>(z), fma(z, splat_like<V>(-0.5f), splat_like<V>(1.0f)));
  const auto quadrant = bit_cast<std::uint32_t>(shifted) + static_cast<std::uint32_t>(quarter_turns);
  const V value = blend((quadrant & 1u) != 0u, cosine, sine);
  return bit_cast<float>(bit_cast<std::uint32_t>(value) ^ ((quadrant & 2u) << 30));
}

// False for NaN and infinities too.
template <class V>
GCRT_INLINE bool all_within(V x, float bound) {
  return reduce_min(less_equal(abs(x), splat_like<V>(bound))) != 0;
}

// sin_reduced where it holds, libm elsewhere; a lane's result does not depend on its neighbours.
template <class V, class F>
GCRT_INLINE V sin_or_libm(V x, std::int32_t quarter_turns, const F& libm) {
  const V bound = splat_like<V>(8192.0f);
  const V reduced = sin_reduced(x, quarter_turns);
  if (reduce_min(less_equal(abs(x), bound)) != 0) return reduced;
  return blend(abs(x) <= bound, reduced, map_lanes(libm, x));
}

// 2 ulp for |x| <= 8192, 0.501 ulp beyond (through libm, slowly). Of infinities NaN; sin keeps -0.
template <class V>
GCRT_INLINE V sin(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::sin, x);
  } else {
    const auto libm = [](float lane) { return static_cast<float>(std::sin(static_cast<double>(lane))); };
    return blend(x == V{}, x, sin_or_libm(x, 0, libm));
  }
}
template <class V>
GCRT_INLINE V cos(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::cos, x);
  } else {
    const auto libm = [](float lane) { return static_cast<float>(std::cos(static_cast<double>(lane))); };
    return sin_or_libm(x, 1, libm);
  }
}

// These run libm's double function lane by lane: 0.501 ulp for float, libm's own bound for double.
template <class V>
GCRT_INLINE V tan(V x) {
  return GCRT_LIBM_LANES(std::tan, x);
}
template <class V>
GCRT_INLINE V asin(V x) {
  return GCRT_LIBM_LANES(std::asin, x);
}
template <class V>
GCRT_INLINE V acos(V x) {
  return GCRT_LIBM_LANES(std::acos, x);
}
template <class V>
GCRT_INLINE V atan(V x) {
  return GCRT_LIBM_LANES(std::atan, x);
}
template <class V>
GCRT_INLINE V sinh(V x) {
  return GCRT_LIBM_LANES(std::sinh, x);
}
template <class V>
GCRT_INLINE V cosh(V x) {
  return GCRT_LIBM_LANES(std::cosh, x);
}
template <class V>
GCRT_INLINE V asinh(V x) {
  return GCRT_LIBM_LANES(std::asinh, x);
}
template <class V>
GCRT_INLINE V acosh(V x) {
  return GCRT_LIBM_LANES(std::acosh, x);
}
template <class V>
GCRT_INLINE V atanh(V x) {
  return GCRT_LIBM_LANES(std::atanh, x);
}

// 1 / x, correctly rounded.
template <class V>
GCRT_INLINE V reciprocal(V x) {
  return splat_like<V>(1) / x;
}

// Powers of integers wrap modulo 2^bits; a negative exponent truncates 1 / base^|exponent| toward zero, and
// 0 to a negative power is 0.
template <class T>
GCRT_INLINE T integer_power(T base, T exponent) {
  if constexpr (std::is_signed<T>::value) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if (base == -1) return static_cast<T>((exponent & 1) != 0 ? -1 : 1);
      return 0;
    }
  }
  T result = 1;
  while (exponent != 0) {
    if ((exponent & 1) != 0) result = mul(result, base);
    base = mul(base, base);
    exponent = static_cast<T>(exponent >> 1);
  }
  return result;
}

// x^y for the exponents that need no logarithm. `known` says whether y is one of them.
template <class V>
GCRT_INLINE V simple_power(V x, ElementOf<V> y, bool& known) {
  using T = ElementOf<V>;
  known = true;
  if (y == T{2}) return x * x;
  if (y == T{1}) return x;
  if (y == T{-1}) return reciprocal(x);
  if (y == T{3}) return x * x * x;
  if (y == T(0.5)) {
    // pow(-0, 0.5) is +0 and pow(-infinity, 0.5) is +infinity, which sqrt denies.
    const V infinity = splat_like<V>(kInfinity<T>);
    return blend(x == -infinity, infinity, sqrt(x + V{}));
  }
  known = false;
  return x;
}

// base^exponent with C's special cases. float: 0.501 ulp, through double; an exponent of 2, 0.5, 1 or -1 is
// correctly rounded, 3 is within 1.1 ulp, and these run at vector speed where all lanes share the exponent.
template <class V>
GCRT_INLINE V pow(V base, V exponent) {
  using T = ElementOf<V>;
  if constexpr (!kIsFloating<V>) {
    return map_lanes([](T x, T y) GCRT_LAMBDA_INLINE { return integer_power(x, y); }, base, exponent);
  } else {
    bool known = false;
    if constexpr (kLanesOf < V >> 1) {
      const T shared = exponent[0];
      if (reduce_min(equal(exponent, splat_like<V>(shared))) != 0) {
        const V result = simple_power(base, shared, known);
        if (known) return result;
      }
    }
    return map_lanes(
        [](T x, T y) {
          bool simple = false;
          const T result = simple_power(x, y, simple);
          return simple ? result : static_cast<T>(std::pow(static_cast<double>(x), static_cast<double>(y)));
        },
        base, exponent);
  }
}

}  // namespace GCRT_NAMESPACE
