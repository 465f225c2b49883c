// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Elementary functions of float, vectorised, with polynomials of our own (coefficients.h). Each says
// its largest error in units in the last place, measured against double over all floats (with and without
// fused multiply-add). NaN gives NaN; subnormal arguments are honoured, and subnormal results too but for
// those of exp and sigmoid, which are 0.
// For double every function runs libm's lane by lane; so do the rarer functions of float, in double.
#pragma once

#include <cmath>

#include "gcrt/scalar/arithmetic.h"
#include "gcrt/scalar/coefficients.h"

namespace GCRT_NAMESPACE {

template <class V>
constexpr bool kIsDouble = std::is_same<ElementOf<V>, double>::value;

// Double lanes as they are, float lanes through double: the result is within 0.501 ulp.
#define GCRT_LIBM_LANES(function, value)                                                                   \
  map_lanes(                                                                                               \
      [](auto lane)                                                                                        \
          GCRT_LAMBDA_INLINE { return static_cast<decltype(lane)>(function(static_cast<double>(lane))); }, \
      value)

// The coefficients of Table from number First on, by Horner's rule: c[First] + c[First + 1] x + ...
template <class Table, int First = 0, class V>
GCRT_INLINE V polynomial(V x) {
  const V c = splat_like<V>(kCoefficient<Table, First>);
  if constexpr (First + 1 == Table::kCount) {
    return c;
  } else {
    return fma(polynomial<Table, First + 1>(x), x, c);
  }
}

// a / b for a denominator from 2^-60 to 2^60. On a device the last bit of quotients below 2^-100 may differ.
template <class V>
GCRT_INLINE V divide_tame(V a, V b) {
#if defined(__CUDA_ARCH__)
  return map_lanes([](float x, float y) { return quotient_on_device(x, y); }, a, b);
#else
  return a / b;
#endif
}

// x, or the bound that it passes; NaN stays.
template <class V>
GCRT_INLINE V limited(V x, float low, float high) {
  return at_most(at_least(x, splat_like<V>(low)), splat_like<V>(high));
}

// x * P(x^2) / Q(x^2) of a function that tends to 1, and is at least that at Function::kOne as computed here.
template <class Function, class V>
GCRT_INLINE V odd_rational(V x) {
  x = limited(x, -Function::kOne, Function::kOne);
  const V square = x * x;
  const V value = divide_tame(x * polynomial<typename Function::Numerator>(square),
                              polynomial<typename Function::Denominator>(square));
  return limited(value, -1.0f, 1.0f);
}

// n in the place of the exponent field; unsigned, because shifting a negative number is undefined.
template <class I>
GCRT_INLINE I to_exponent_field(I n) {
  return bit_cast<std::int32_t>(bit_cast<std::uint32_t>(n) << 23);
}

// 2^n for n in [-126, 127].
template <class I>
GCRT_INLINE Rebind<I, float> power_of_two(I n) {
  return bit_cast<float>(to_exponent_field(n + 127));
}

// x = n ln 2 + r with |r| <= ln(2) / 2 and n whole; half_power is 2^(n-1), tail is exp(r) - 1.
template <class V>
struct ReducedExp {
  V half_power;
  V tail;
};

// For n in [-126, 128], of which the least has a half_power of 0. Half of 2^n, because 2^128 is none.
template <class V>
GCRT_INLINE ReducedExp<V> reduce_exp(V x) {
  // Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits; with 126 more they are the
  // exponent field of 2^(n-1), once they are shifted there.
  const V magic = splat_like<V>(12582912.0f + 126.0f);
  const V shifted = fma(x, splat_like<V>(1.44269504f), magic);
  const V n = shifted - magic;
  V r = fma(n, splat_like<V>(-kCoefficient<Ln2Parts, 0>), x);
  r = fma(n, splat_like<V>(-kCoefficient<Ln2Parts, 1>), r);
  // Two chains of products instead of one: functions are bound by what they wait for.
  const V square = r * r;
  V high = fma(splat_like<V>(kCoefficient<ExpTail, 3>), r, splat_like<V>(kCoefficient<ExpTail, 2>));
  high = fma(splat_like<V>(kCoefficient<ExpTail, 4>), square, high);
  const V low = fma(splat_like<V>(kCoefficient<ExpTail, 1>), r, splat_like<V>(kCoefficient<ExpTail, 0>));
  const V tail = fma(square, fma(high, square, low), r);
  return {bit_cast<float>(to_exponent_field(bit_cast<std::int32_t>(shifted))), tail};
}

// 1.1 ulp. Exact at 0; below -86.99, where results leave the normal numbers, it is 0; infinity above 88.72.
template <class V>
GCRT_INLINE V exp(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::exp, x);
  } else {
    const auto reduced = reduce_exp(limited(x, -87.5f, 89.0f));
    const V two = splat_like<V>(2.0f);
    return reduced.half_power * fma(reduced.tail, two, two);
  }
}

// exp(-|x|).
template <class V>
GCRT_INLINE V exp_of_negative(V x) {
  if constexpr (kIsDouble<V>) {
    return exp(-abs(x));
  } else {
    const V negative = bit_cast<float>(bit_cast<std::uint32_t>(x) | 0x80000000u);
    const auto reduced = reduce_exp(at_least(negative, splat_like<V>(-87.5f)));
    const V power = reduced.half_power + reduced.half_power;
    return fma(power, reduced.tail, power);
  }
}

// exp(x) - 1 for -25 <= x <= 88.8: 2 * (2^(n-1) tail + (2^(n-1) - 1/2)) neither cancels nor overflows early.
template <class V>
GCRT_INLINE V expm1_in_range(V x) {
  const auto reduced = reduce_exp(x);
  const V half = fma(reduced.half_power, reduced.tail, reduced.half_power - splat_like<V>(0.5f));
  return half + half;
}

// 1.7 ulp. Exact at 0, keeps -0; -1 below -17.4.
template <class V>
GCRT_INLINE V expm1(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::expm1, x);
  } else {
    const V result = expm1_in_range(limited(x, -25.0f, 88.8f));
    return blend(abs(x) < splat_like<V>(1e-8f), x, result);
  }
}

// log(1 + f + correction) + exponent * ln 2 with 1 + f in [sqrt(1/2), sqrt(2)].
template <class V>
GCRT_INLINE V log_of_reduced(V f, Rebind<V, std::int32_t> exponent) {
  const V e = convert<float>(exponent);
  const V square = f * f;
  V tail = f * square * polynomial<LogTail>(f);
  tail = fma(e, splat_like<V>(kCoefficient<Ln2Parts, 1>), tail);
  tail = fma(splat_like<V>(-0.5f), square, tail);
  return fma(e, splat_like<V>(kCoefficient<Ln2Parts, 0>), f + tail);
}

template <class V>
struct Decomposed {
  Rebind<V, std::int32_t> exponent;
  V mantissa;  // in [sqrt(1/2), sqrt(2))
};

// x = mantissa * 2^exponent for normal positive x.
template <class V>
GCRT_INLINE Decomposed<V> decompose(V x) {
  constexpr std::int32_t sqrt_half = 0x3f3504f3;
  const auto bits = bit_cast<std::int32_t>(x);
  using I = Rebind<V, std::int32_t>;
  const I exponent = sub(bits, splat_like<I>(sqrt_half)) >> 23;
  return {exponent, bit_cast<float>(sub(bits, to_exponent_field(exponent)))};
}

// 0.9 ulp. log(0) is -infinity, of negative numbers NaN; exact at 1.
template <class V>
GCRT_INLINE V log(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::log, x);
  } else {
    const V infinity = splat_like<V>(kInfinity<float>);
    const V zero = {};
    const auto subnormal = x < splat_like<V>(kSmallestNormal<float>);
    const V normal = blend(subnormal, x * splat_like<V>(16777216.0f), x);
    const auto parts = decompose(normal);
    using I = Rebind<V, std::int32_t>;
    const I exponent = parts.exponent - blend(subnormal, splat_like<I>(24), I{});
    const V result = log_of_reduced(parts.mantissa - splat_like<V>(1.0f), exponent);
    const V positive = blend(x == infinity, infinity, blend(x == zero, -infinity, result));
    return blend(x >= zero, positive, splat_like<V>(kNan<float>));
  }
}

// 1.5 ulp. log1p(-1) is -infinity, below NaN; keeps -0.
template <class V>
GCRT_INLINE V log1p(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::log1p, x);
  } else {
    const V one = splat_like<V>(1.0f);
    const V infinity = splat_like<V>(kInfinity<float>);
    const V sum = x + one;
    // What the addition lost, scaled to the mantissa of the sum. Above 2^25 it no longer matters.
    const V lost = blend(x < one, x - (sum - one), one - (sum - x));
    const auto large = x > splat_like<V>(33554432.0f);
    const auto parts = decompose(sum);
    using I = Rebind<V, std::int32_t>;
    const V correction = blend(large, V{}, lost * power_of_two(blend(large, I{}, -parts.exponent)));
    const V result = log_of_reduced((parts.mantissa - one) + correction, parts.exponent);
    const V finite = blend(abs(x) < splat_like<V>(1e-8f), x, result);
    const V positive = blend(x == infinity, infinity, blend(x == -one, -infinity, finite));
    return blend(x >= -one, positive, splat_like<V>(kNan<float>));
  }
}

// 5.8 ulp. Keeps -0; never more than 1, which it is once |x| exceeds 9.1.
template <class V>
GCRT_INLINE V tanh(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::tanh, x);
  } else {
    return odd_rational<TanhCoefficients>(x);
  }
}

// 1 / (1 + exp(-x)), 2.3 ulp; 0 below -86.99.
template <class V>
GCRT_INLINE V sigmoid(V x) {
  if constexpr (kIsDouble<V>) {
    return map_lanes(
        [](double lane) {
          const double e = std::exp(-std::fabs(lane));
          return (lane < 0 ? e : 1.0) / (1.0 + e);
        },
        x);
  } else {
    const V one = splat_like<V>(1.0f);
    const V e = exp_of_negative(x);
    return divide_tame(blend(bit_cast<std::int32_t>(x) < 0, e, one), one + e);
  }
}

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), 1.7 ulp.
template <class V>
GCRT_INLINE V softplus(V x) {
  return max(x, V{}) + log1p(exp_of_negative(x));
}

// 5.8 ulp. Keeps -0; never more than 1, which it is once |x| exceeds 4.
template <class V>
GCRT_INLINE V erf(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::erf, x);
  } else {
    return odd_rational<ErfCoefficients>(x);
  }
}

}  // namespace GCRT_NAMESPACE
