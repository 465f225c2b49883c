// Elementary functions of float, vectorised, with polynomials of our own (scalar_coefficients.h). Each says
// its largest error in units in the last place, measured against double over all floats (with and without
// fused multiply-add). NaN gives NaN; subnormal arguments and results are honoured.
// For double every function runs libm's lane by lane; so do the rarer functions of float, in double.
#pragma once

#include <cmath>

#include "gcrt/scalar_arithmetic.h"
#include "gcrt/scalar_coefficients.h"

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

// x = n ln 2 + r with |r| <= ln(2) / 2 and n whole; tail is exp(r) - 1.
template <class V>
struct ReducedExp {
  Rebind<V, std::int32_t> n;
  V tail;
};

// |x| < 2^21 or the result is meaningless.
template <class V>
GCRT_INLINE ReducedExp<V> reduce_exp(V x) {
  // Adding 1.5 * 2^23 rounds to a whole number and leaves it in the low bits.
  const V magic = splat_like<V>(12582912.0f);
  const V shifted = fma(x, splat_like<V>(1.44269504f), magic);
  const V n = shifted - magic;
  V r = fma(n, splat_like<V>(-kCoefficient<Ln2Parts, 0>), x);
  r = fma(n, splat_like<V>(-kCoefficient<Ln2Parts, 1>), r);
  const V tail = fma(r * r, polynomial<ExpTail>(r), r);
  return {bit_cast<std::int32_t>(shifted) - bit_cast<std::int32_t>(magic), tail};
}

// value * 2^n for n in [-150, 128], rounded once even where the result is subnormal.
template <class V>
GCRT_INLINE V scale_by_power(V value, Rebind<V, std::int32_t> n) {
#if GCRT_X86 && defined(__AVX512F__)
  if constexpr (sizeof(V) == 64) {
    return (V)_mm512_maskz_scalef_ps(0xffff, (__m512)value, (__m512)convert<float>(n));
  }
#endif
  const auto first = n >> 1;
  return value * power_of_two(first) * power_of_two(n - first);
}

// 1.1 ulp. Exact at 0; underflows through subnormals to 0 below -103.97, overflows to infinity above 88.72.
template <class V>
GCRT_INLINE V exp(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::exp, x);
  } else {
    const V low = splat_like<V>(-104.0f);
    const V high = splat_like<V>(89.0f);
    x = blend(x < low, low, x);
    x = blend(x > high, high, x);
    const auto reduced = reduce_exp(x);
    return scale_by_power(splat_like<V>(1.0f) + reduced.tail, reduced.n);
  }
}

// exp(x) - 1 for -25 <= x <= 88.8: 2 * (2^(n-1) tail + (2^(n-1) - 1/2)) neither cancels nor overflows early.
template <class V>
GCRT_INLINE V expm1_in_range(V x) {
  const auto reduced = reduce_exp(x);
  const V scale = power_of_two(reduced.n - 1);
  const V half = fma(scale, reduced.tail, scale - splat_like<V>(0.5f));
  return half + half;
}

// 1.7 ulp. Exact at 0, keeps -0; -1 below -17.4.
template <class V>
GCRT_INLINE V expm1(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::expm1, x);
  } else {
    const V low = splat_like<V>(-25.0f);
    const V high = splat_like<V>(88.8f);
    V limited = blend(x < low, low, x);
    limited = blend(limited > high, high, limited);
    const V result = expm1_in_range(limited);
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

// 2.6 ulp. Exact at 0, keeps -0; the sign of x once |x| exceeds 9.02.
template <class V>
GCRT_INLINE V tanh(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::tanh, x);
  } else {
    const V low = splat_like<V>(-20.0f);
    const V magnitude = abs(x);
    const V twice = splat_like<V>(-2.0f) * magnitude;
    const V change = expm1_in_range(blend(twice < low, low, twice));
    const V result = change / (splat_like<V>(-2.0f) - change);
    return copy_sign(blend(magnitude < splat_like<V>(1e-8f), magnitude, result), x);
  }
}

// 1 / (1 + exp(-x)), 2.3 ulp over the whole range, subnormal results included.
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
    const V e = exp(-abs(x));
    return blend(x < V{}, e, one) / (one + e);
  }
}

// log(1 + exp(x)) = max(x, 0) + log1p(exp(-|x|)), 1.7 ulp.
template <class V>
GCRT_INLINE V softplus(V x) {
  return max(x, V{}) + log1p(exp(-abs(x)));
}

// 1.2 ulp. Keeps -0; the sign of x once |x| exceeds 3.92.
template <class V>
GCRT_INLINE V erf(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::erf, x);
  } else {
    const V one = splat_like<V>(1.0f);
    const V limit = splat_like<V>(3.93f);
    const V magnitude = abs(x);
    const V small = fma(magnitude, polynomial<ErfSmall>(magnitude * magnitude), magnitude);
    const V limited = blend(magnitude > limit, limit, magnitude);
    const auto reduced = reduce_exp(limited * polynomial<ErfLarge>(limited));
    const V scale = power_of_two(reduced.n);
    const V large = one - fma(scale, reduced.tail, scale);
    return copy_sign(blend(magnitude < splat_like<V>(0.925f), small, large), x);
  }
}

}  // namespace GCRT_NAMESPACE
