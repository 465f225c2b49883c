// Every element-wise function of gcrt/scalar.h and every conversion, by number, as the printer spells them.
// Included by code for the CPU and for CUDA alike, in the namespace GCRT_NAMESPACE.
#pragma once

#include "gcrt/loops.h"
#include "gcrt/scalar.h"

// x, y and z are packs of T; results that are booleans are cast.
#define FUNCTIONS_OF_ALL_TYPES(X)                                                                            \
  X(add(x, y))                                                                                               \
  X(sub(x, y))                                                                                               \
  X(mul(x, y))                                                                                               \
  X(neg(x))                                                                                                  \
  X(div(x, y))                                                                                               \
  X(fmod(x, y)) X(abs(x)) X(sign(x)) X(min(x, y)) X(max(x, y)) X(cast<T>(lane, less(x, y))) X(               \
      cast<T>(lane, less_equal(x, y))) X(cast<T>(lane, greater(x, y))) X(cast<T>(lane, greater_equal(x, y))) \
      X(cast<T>(lane, equal(x, y))) X(cast<T>(lane, not_equal(x, y))) X(select(less(x, y), y, z)) X(         \
          select(logical_not(logical_and(less(x, y), greater(z, x))), y, z))                                 \
          X(select(logical_or(less(x, y), logical_xor(equal(z, x), less(z, y))), y, z)) X(                   \
              blend(x < y, z, x)) X(cast<T>(lane, cast_bool(lane, x)))                                       \
              X(cast<T>(lane, cast<std::int8_t>(lane, x))) X(cast<T>(lane, cast<std::uint8_t>(lane, x))) X(  \
                  cast<T>(lane, cast<std::int16_t>(lane, x))) X(cast<T>(lane, cast<std::uint16_t>(lane, x))) \
                  X(cast<T>(lane, cast<std::int32_t>(lane, x))) X(cast<T>(                                   \
                      lane, cast<std::uint32_t>(lane, x))) X(cast<T>(lane, cast<std::int64_t>(lane, x)))     \
                      X(cast<T>(lane, cast<std::uint64_t>(lane, x)))                                         \
                          X(cast<T>(lane, cast<float>(lane, x))) X(cast<T>(lane, cast<double>(lane, x))) X(  \
                              cast<T>(lane, cast<Half>(lane, x))) X(cast<T>(lane, cast<BFloat16>(lane, x)))  \
                              X(pow(x, min(abs(y), splat(lane, T(9))))) X(splat(lane, reduce_add(x))) X(     \
                                  splat(lane, reduce_mul(x))) X(splat(lane, reduce_min(x)))                  \
                                  X(splat(lane, reduce_max(x))) X(gather(                                    \
                                      lane, a, sub(splat(lane, std::int64_t{L::value - 1}), iota(lane, 0))))

#define FUNCTIONS_OF_FLOATS(X)                                                                              \
  X(sqrt(x))                                                                                                \
  X(exp(x))                                                                                                 \
  X(expm1(x))                                                                                               \
  X(log(x))                                                                                                 \
  X(log1p(x))                                                                                               \
  X(tanh(x)) X(sigmoid(x)) X(softplus(x)) X(erf(x)) X(sin(x)) X(cos(x)) X(tan(x)) X(asin(x)) X(acos(x))     \
      X(atan(x)) X(sinh(x)) X(cosh(x)) X(asinh(x)) X(acosh(x)) X(atanh(x)) X(reciprocal(x)) X(floor(x))     \
          X(ceil(x)) X(trunc(x)) X(round_half_even(x)) X(copy_sign(x, y)) X(fma(x, y, z)) X(pow(abs(x), y)) \
              X(pow(x, splat(lane, T(2)))) X(cast<T>(lane, is_nan(x))) X(cast<T>(lane, is_inf(x)))          \
                  X(x* y + z) X(x / y - z) X(-x)

#define FUNCTIONS_OF_INTEGERS(X)                                                                          \
  X(mod(x, y))                                                                                            \
  X(bit_and(x, y))                                                                                        \
  X(bit_or(x, y))                                                                                         \
  X(bit_xor(x, y))                                                                                        \
  X(bit_not(x))                                                                                           \
  X(shift_left(x, y)) X(shift_right(x, y)) X(cast<T>(lane, floor_divide(cast<std::int64_t>(lane, x), 7))) \
      X(cast<T>(lane, floor_modulo(cast<std::int64_t>(lane, x), 7)))

namespace GCRT_NAMESPACE {

// Stores function number `number` of the lanes at a, b and c. False where there is no such number.
template <class T, class L>
GCRT_INLINE bool apply_function(int number, L lane, const T* a, const T* b, const T* c, T* out) {
  const auto x = load(lane, a);
  const auto y = load(lane, b);
  const auto z = load(lane, c);
  int n = 0;
#define APPLY(...)                   \
  if (n++ == number) {               \
    store(lane, out, (__VA_ARGS__)); \
    return true;                     \
  }
  FUNCTIONS_OF_ALL_TYPES(APPLY)
  if constexpr (std::is_floating_point<T>::value) {
    FUNCTIONS_OF_FLOATS(APPLY)
  } else {
    FUNCTIONS_OF_INTEGERS(APPLY)
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

}  // namespace GCRT_NAMESPACE
