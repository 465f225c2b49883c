// Every element-wise function of gcrt/scalar/scalar.h and every conversion, by number, as the printer spells
// them. Included by code for the CPU and for CUDA alike, in the namespace GCRT_NAMESPACE.
#pragma once

#include "gcrt/loops.h"
#include "gcrt/scalar/philox.h"
#include "gcrt/scalar/scalar.h"
#include "gcrt/small_floats.h"

namespace GCRT_NAMESPACE {

// Stores function number `number` of the lanes at a, b and c; results that are booleans are cast. False where
// there is no such number.
template <class T, class L>
GCRT_INLINE bool apply_function(int number, L lane, const T* a, const T* b, const T* c, T* out) {
  const auto x = load(lane, a);
  const auto y = load(lane, b);
  const auto z = load(lane, c);
  int n = 0;
#define APPLY(...) \
  if (n++ == number) return store(lane, out, (__VA_ARGS__)), true
  APPLY(add(x, y));
  APPLY(sub(x, y));
  APPLY(mul(x, y));
  APPLY(neg(x));
  APPLY(div(x, y));
  APPLY(fmod(x, y));
  APPLY(abs(x));
  APPLY(sign(x));
  APPLY(min(x, y));
  APPLY(max(x, y));
  APPLY(cast<T>(lane, less(x, y)));
  APPLY(cast<T>(lane, less_equal(x, y)));
  APPLY(cast<T>(lane, greater(x, y)));
  APPLY(cast<T>(lane, greater_equal(x, y)));
  APPLY(cast<T>(lane, equal(x, y)));
  APPLY(cast<T>(lane, not_equal(x, y)));
  APPLY(select(less(x, y), y, z));
  APPLY(select(logical_not(logical_and(less(x, y), greater(z, x))), y, z));
  APPLY(select(logical_or(less(x, y), logical_xor(equal(z, x), less(z, y))), y, z));
  APPLY(blend(x < y, z, x));
  APPLY(cast<T>(lane, cast_bool(lane, x)));
  APPLY(cast<T>(lane, cast<std::int8_t>(lane, x)));
  APPLY(cast<T>(lane, cast<std::uint8_t>(lane, x)));
  APPLY(cast<T>(lane, cast<std::int16_t>(lane, x)));
  APPLY(cast<T>(lane, cast<std::uint16_t>(lane, x)));
  APPLY(cast<T>(lane, cast<std::int32_t>(lane, x)));
  APPLY(cast<T>(lane, cast<std::uint32_t>(lane, x)));
  APPLY(cast<T>(lane, cast<std::int64_t>(lane, x)));
  APPLY(cast<T>(lane, cast<std::uint64_t>(lane, x)));
  APPLY(cast<T>(lane, cast<float>(lane, x)));
  APPLY(cast<T>(lane, cast<double>(lane, x)));
  APPLY(cast<T>(lane, cast<Half>(lane, x)));
  APPLY(cast<T>(lane, cast<BFloat16>(lane, x)));
  APPLY(pow(x, min(abs(y), splat(lane, T(9)))));
  APPLY(splat(lane, reduce_add(x)));
  APPLY(splat(lane, reduce_mul(x)));
  APPLY(splat(lane, reduce_min(x)));
  APPLY(splat(lane, reduce_max(x)));
  APPLY(gather(lane, a, sub(splat(lane, std::int64_t{L::value - 1}), iota(lane, 0))));
  if constexpr (std::is_floating_point<T>::value) {
    APPLY(sqrt(x));
    APPLY(exp(x));
    APPLY(expm1(x));
    APPLY(log(x));
    APPLY(log1p(x));
    APPLY(tanh(x));
    APPLY(sigmoid(x));
    APPLY(softplus(x));
    APPLY(erf(x));
    APPLY(sin(x));
    APPLY(cos(x));
    APPLY(tan(x));
    APPLY(asin(x));
    APPLY(acos(x));
    APPLY(atan(x));
    APPLY(sinh(x));
    APPLY(cosh(x));
    APPLY(asinh(x));
    APPLY(acosh(x));
    APPLY(atanh(x));
    APPLY(reciprocal(x));
    APPLY(floor(x));
    APPLY(ceil(x));
    APPLY(trunc(x));
    APPLY(round_half_even(x));
    APPLY(copy_sign(x, y));
    APPLY(fma(x, y, z));
    APPLY(pow(abs(x), y));
    APPLY(pow(x, splat(lane, T(2))));
    APPLY(cast<T>(lane, is_nan(x)));
    APPLY(cast<T>(lane, is_inf(x)));
    APPLY(x * y + z);
    APPLY(x / y - z);
    APPLY(-x);
  } else {
    APPLY(mod(x, y));
    APPLY(bit_and(x, y));
    APPLY(bit_or(x, y));
    APPLY(bit_xor(x, y));
    APPLY(bit_not(x));
    APPLY(shift_left(x, y));
    APPLY(shift_right(x, y));
    if constexpr (std::is_same<T, std::uint64_t>::value) {
      APPLY(philox_low(x, y, z));
      APPLY(philox_high(x, y, z));
    }
    APPLY(cast<T>(lane, floor_divide(cast<std::int64_t>(lane, x), 7)));
    APPLY(cast<T>(lane, floor_modulo(cast<std::int64_t>(lane, x), 7)));
  }
#undef APPLY
  return false;
}

// The 16-bit floats by way of memory: x rounded to Half (odd number) or BFloat16 (even), and back.
template <class L>
GCRT_INLINE void through_halves(int number, L lane, const float* a, float* out) {
  const auto x = load(lane, a);
  store(lane, out, number % 2 != 0 ? round_to<Half>(x) : round_to<BFloat16>(x));
}

// The floats of 8 bits likewise, one of the five kinds.
template <class L>
GCRT_INLINE void through_small_floats(int number, L lane, const float* a, float* out) {
  const auto x = load(lane, a);
  switch (number) {
    case 0:
      return store(lane, out, round_to<Float8E4M3FN>(x));
    case 1:
      return store(lane, out, round_to<Float8E4M3FNUZ>(x));
    case 2:
      return store(lane, out, round_to<Float8E5M2>(x));
    case 3:
      return store(lane, out, round_to<Float8E5M2FNUZ>(x));
    default:
      return store(lane, out, round_to<Float8E8M0>(x));
  }
}

}  // namespace GCRT_NAMESPACE
