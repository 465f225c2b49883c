// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Powers, and the roots of scalar.h.
#pragma once

#include "gcrt/scalar/math.h"

namespace GCRT_NAMESPACE {

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

// 2^(exponent * log2(mantissa * 2^power)) in double, for mantissas in [sqrt(1/2), sqrt(2)): as a float, it is
// within 0.501 ulp.
template <class V>
GCRT_INLINE V power_in_double(V mantissa, V power, V exponent) {
  const V one = splat_like<V>(1.0);
  const V t = (mantissa - one) / (mantissa + one);
  const V logarithm = power + t * polynomial<Log2Factor>(t * t);
  // Beyond these a float is 0 or infinite.
  const V product = at_most(at_least(exponent * logarithm, splat_like<V>(-200.0)), splat_like<V>(200.0));
  const V magic =
      splat_like<V>(6755399441055744.0);  // 1.5 * 2^52: what is added to it is rounded to a whole number
  const V shifted = product + magic;
  const auto bits = (bit_cast<std::uint64_t>(shifted) << 52) + (std::uint64_t{1023} << 52);
  return polynomial<Exp2Terms>(product - (shifted - magic)) * bit_cast<double>(bits);
}

// |base|^exponent where both are finite.
template <class V>
GCRT_INLINE V power_of_magnitude(V base, V exponent) {
  const auto is_subnormal = base < splat_like<V>(kSmallestNormal<float>);
  const auto parts = decompose(blend(is_subnormal, base * splat_like<V>(16777216.0f), base));
  using I = Rebind<V, std::int32_t>;
  const V power = convert<float>(parts.exponent - blend(is_subnormal, splat_like<I>(24), I{}));
  const auto of = [](auto mantissa, auto of_two, auto y) GCRT_LAMBDA_INLINE {
    return convert<float>(
        power_in_double(convert<double>(mantissa), convert<double>(of_two), convert<double>(y)));
  };
  if constexpr (kLanesOf < V >> 1) {
    return concatenate(of(low_half(parts.mantissa), low_half(power), low_half(exponent)),
                       of(high_half(parts.mantissa), high_half(power), high_half(exponent)));
  } else {
    return of(parts.mantissa, power, exponent);
  }
}

// base^exponent of floats that are finite, with C's special cases of zeros and of negative bases.
template <class V>
GCRT_INLINE V finite_power(V base, V exponent) {
  const V zero = {}, one = splat_like<V>(1.0f), infinity = splat_like<V>(kInfinity<float>);
  const V magnitude = abs(base);
  const V of_zero = blend(exponent > zero, zero, blend(exponent == zero, one, infinity));
  const V value = blend(magnitude == zero, of_zero, power_of_magnitude(magnitude, exponent));
  const V half = exponent * splat_like<V>(0.5f);
  const V with_sign = blend(trunc(half) == half, value, copy_sign(value, base));  // an even exponent has none
  const V of_whole = blend(trunc(exponent) == exponent, with_sign, value);
  const auto is_no_number = blend(base < zero, trunc(exponent) - exponent, zero) != zero;
  return blend(is_no_number, splat_like<V>(kNan<float>), of_whole);
}

// base^exponent with C's special cases. float: 0.501 ulp; an exponent of 2, 0.5, 1 or -1 is correctly
// rounded, 3 is within 1.1 ulp. double: libm's, lane by lane.
template <class V>
GCRT_INLINE V pow(V base, V exponent) {
  using T = ElementOf<V>;
  if constexpr (!kIsFloating<V>) {
    return map_lanes([](T x, T y) GCRT_LAMBDA_INLINE { return integer_power(x, y); }, base, exponent);
  } else {
    T shared;
    if constexpr (kLanesOf < V >> 1) {
      shared = exponent[0];
    } else {
      shared = exponent;
    }
    const bool is_shared = reduce_min(equal(exponent, splat_like<V>(shared))) != 0;
    bool is_simple = false;
    if (is_shared) {
      const V simple = simple_power(base, shared, is_simple);
      if (is_simple) return simple;
    }
    const auto libm = [](T x, T y) {
      bool known = false;
      const T result = simple_power(x, y, known);
      return known ? result : static_cast<T>(std::pow(static_cast<double>(x), static_cast<double>(y)));
    };
    if constexpr (std::is_same<T, double>::value || GCRT_CUDA) {
      return map_lanes(libm, base, exponent);
    } else {
      V result = finite_power(base, exponent);
      if (!is_shared) {
        const T simple_exponents[] = {2, 1, -1, 3, 0.5f};
        for (const T y : simple_exponents)
          result = blend(exponent == splat_like<V>(y), simple_power(base, y, is_simple), result);
      }
      const V infinity = splat_like<V>(kInfinity<T>);
      const auto has_base = abs(base) < infinity, has_exponent = abs(exponent) < infinity;
      if (reduce_min(less(abs(base), infinity)) != 0 && reduce_min(less(abs(exponent), infinity)) != 0)
        return result;
      const V other = map_lanes(libm, base, exponent);
      return blend(has_base, blend(has_exponent, result, other), other);
    }
  }
}

}  // namespace GCRT_NAMESPACE
