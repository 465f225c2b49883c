// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Trigonometric and hyperbolic functions, and their inverses.
#pragma once

#include "gcrt/scalar/math.h"

namespace GCRT_NAMESPACE {

// x = quarter turns * pi / 2 + r for |x| <= 8192, |r| <= pi / 4: sine and cosine of r.
template <class V>
struct ReducedAngle {
  Rebind<V, std::uint32_t> quarter_turns;  // in their low bits
  V sine, cosine;
};
template <class V>
GCRT_INLINE ReducedAngle<V> reduce_angle(V x) {
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
  return {bit_cast<std::uint32_t>(shifted), sine, cosine};
}

// sin(x + quarter_turns * pi / 2) for |x| <= 8192.
template <class V>
GCRT_INLINE V sin_reduced(V x, std::int32_t quarter_turns) {
  const auto angle = reduce_angle(x);
  const auto quadrant = angle.quarter_turns + static_cast<std::uint32_t>(quarter_turns);
  const V value = blend((quadrant & 1u) != 0u, angle.cosine, angle.sine);
  return bit_cast<float>(bit_cast<std::uint32_t>(value) ^ ((quadrant & 2u) << 30));
}

// False for NaN and infinities too.
template <class V>
GCRT_INLINE bool all_within(V x, float bound) {
  return reduce_min(less_equal(abs(x), splat_like<V>(bound))) != 0;
}

// `reduced` where |x| <= 8192, libm elsewhere; a lane's result does not depend on its neighbours.
template <class V, class F>
GCRT_INLINE V reduced_or_libm(V x, V reduced, const F& libm) {
  const V bound = splat_like<V>(8192.0f);
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
    return blend(x == V{}, x, reduced_or_libm(x, sin_reduced(x, 0), libm));
  }
}
template <class V>
GCRT_INLINE V cos(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::cos, x);
  } else {
    const auto libm = [](float lane) { return static_cast<float>(std::cos(static_cast<double>(lane))); };
    return reduced_or_libm(x, sin_reduced(x, 1), libm);
  }
}

// 3.5 ulp for |x| <= 8192, 0.501 ulp beyond. Of infinities NaN; keeps -0.
template <class V>
GCRT_INLINE V tan(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::tan, x);
  } else {
    const auto libm = [](float lane) { return static_cast<float>(std::tan(static_cast<double>(lane))); };
    const auto angle = reduce_angle(x);
    const auto is_odd = (angle.quarter_turns & 1u) != 0u;
    const V quotient = blend(is_odd, -angle.cosine, angle.sine) / blend(is_odd, angle.sine, angle.cosine);
    return blend(x == V{}, x, reduced_or_libm(x, quotient, libm));
  }
}

// asin(magnitude) where that is small, else asin(sqrt((1 - magnitude) / 2)).
template <class M, class V>
GCRT_INLINE V asin_or_half(M is_small, V magnitude) {
  const V rest = (splat_like<V>(1.0f) - magnitude) * splat_like<V>(0.5f);
  const V square = blend(is_small, magnitude * magnitude, rest);
  const V t = blend(is_small, magnitude, sqrt(square));
  return fma(t * square, polynomial<AsinTail>(square), t);
}

// pi / 2 - a, for a of any size up to pi.
template <class V>
GCRT_INLINE V from_right_angle(V a) {
  return (splat_like<V>(1.57079637f) - a) - splat_like<V>(4.37113883e-08f);
}

// 1.9 ulp. Beyond 1 NaN; keeps -0. Past 1/2, asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)).
template <class V>
GCRT_INLINE V asin(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::asin, x);
  } else {
    const V magnitude = abs(x);
    const auto is_small = magnitude <= splat_like<V>(0.5f);
    const V angle = asin_or_half(is_small, magnitude);
    return copy_sign(blend(is_small, angle, from_right_angle(angle + angle)), x);
  }
}

// 1.9 ulp. Beyond 1 NaN.
template <class V>
GCRT_INLINE V acos(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::acos, x);
  } else {
    const V magnitude = abs(x);
    const auto is_small = magnitude <= splat_like<V>(0.5f);
    const V angle = asin_or_half(is_small, magnitude);
    const V twice = angle + angle;
    const V wide =
        blend(x > V{}, twice, (splat_like<V>(3.14159274f) - twice) - splat_like<V>(8.74227766e-08f));
    return blend(is_small, from_right_angle(copy_sign(angle, x)), wide);
  }
}

// 2.3 ulp. Keeps -0. atan(x) = pi / 4 + atan((x - 1) / (x + 1)) = pi / 2 - atan(1 / x).
template <class V>
GCRT_INLINE V atan(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::atan, x);
  } else {
    const V magnitude = abs(x), one = splat_like<V>(1.0f);
    const auto is_large = magnitude > splat_like<V>(2.41421366f);
    const auto is_middle = magnitude > splat_like<V>(0.414213568f);
    const V above = blend(is_large, -one, blend(is_middle, magnitude - one, magnitude));
    const V below = blend(is_large, magnitude, blend(is_middle, magnitude + one, one));
    const V t = above / below, square = t * t;
    const V turn =
        blend(is_large, splat_like<V>(1.57079637f), blend(is_middle, splat_like<V>(0.785398185f), V{}));
    const V lost = blend(is_large, splat_like<V>(-4.37113883e-08f),
                         blend(is_middle, splat_like<V>(-2.18556941e-08f), V{}));
    const V angle = fma(t * square, polynomial<AtanTail>(square), t);
    return copy_sign(turn + (angle + lost), x);
  }
}

// exp(x) / 2 for 0 <= x <= 89.5, where exp(x) itself is infinite: 3.3 ulp past 88, 1.1 below.
template <class V>
GCRT_INLINE V half_exp(V x) {
  const V half = splat_like<V>(0.5f);
  const V root = exp(x * half);
  return blend(x > splat_like<V>(88.0f), root * half * root, exp(x) * half);
}

// 3.5 ulp. Keeps -0. With e = exp(|x|) - 1, it is (e + e / (e + 1)) / 2.
template <class V>
GCRT_INLINE V sinh(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::sinh, x);
  } else {
    const V magnitude = abs(x), one = splat_like<V>(1.0f);
    const V e = expm1(at_most(magnitude, splat_like<V>(88.0f)));
    const V value = blend(magnitude > splat_like<V>(20.0f), half_exp(magnitude),
                          splat_like<V>(0.5f) * (e + e / (e + one)));
    return copy_sign(value, x);
  }
}

// 3.5 ulp.
template <class V>
GCRT_INLINE V cosh(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::cosh, x);
  } else {
    const V half = half_exp(abs(x));
    return half + splat_like<V>(0.25f) / half;
  }
}

// log(2 x) for x that are large or infinite.
template <class V>
GCRT_INLINE V log_of_twice(V x) {
  return log(x) + splat_like<V>(0.693147182f);
}

// 3 ulp. Keeps -0. asinh(x) = log1p(x + x^2 / (1 + sqrt(x^2 + 1))), and log(2 x) where x^2 + 1 is x^2.
template <class V>
GCRT_INLINE V asinh(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::asinh, x);
  } else {
    const V magnitude = abs(x), one = splat_like<V>(1.0f);
    const auto is_large = magnitude > splat_like<V>(8192.0f);
    const V near = blend(is_large, one, magnitude), square = near * near;
    const V value = log1p(near + square / (one + sqrt(square + one)));
    return copy_sign(blend(is_large, log_of_twice(magnitude), value), x);
  }
}

// 3 ulp. Below 1 NaN. With t = x - 1, it is log1p(t + sqrt(t (t + 2))).
template <class V>
GCRT_INLINE V acosh(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::acosh, x);
  } else {
    const V one = splat_like<V>(1.0f);
    const auto is_large = x > splat_like<V>(8192.0f);
    const V t = blend(is_large, one, x) - one;
    const V value = log1p(t + sqrt(t * (t + splat_like<V>(2.0f))));
    const V inside = blend(is_large, log_of_twice(x), value);
    return blend(x >= one, inside, splat_like<V>(kNan<float>));
  }
}

// 3.5 ulp. Infinite at 1, beyond NaN; keeps -0.
template <class V>
GCRT_INLINE V atanh(V x) {
  if constexpr (kIsDouble<V>) {
    return GCRT_LIBM_LANES(std::atanh, x);
  } else {
    const V magnitude = abs(x), one = splat_like<V>(1.0f);
    const V value = splat_like<V>(0.5f) * log1p((magnitude + magnitude) / (one - magnitude));
    return copy_sign(value, x);
  }
}

}  // namespace GCRT_NAMESPACE
