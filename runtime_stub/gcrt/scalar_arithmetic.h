// Arithmetic, comparisons and selection for every element type, one template over packs and scalars.
// Integers wrap modulo 2^bits; nothing here is undefined for any operand.
#pragma once

#include <cmath>

#include "gcrt/pack.h"

namespace GCRT_NAMESPACE {

template <class V>
constexpr bool kIsFloating = std::is_floating_point<ElementOf<V>>::value;

// The type in which integer elements are computed: unsigned, and for scalars no narrower than int, because
// uint16_t * uint16_t would be a signed multiplication that overflows.
template <class V>
using Wrapping = std::conditional_t<kLanesOf<V> == 1 && sizeof(ElementOf<V>) < 4, std::uint32_t,
                                    Rebind<V, UnsignedBits<ElementOf<V>>>>;

template <class V>
GCRT_INLINE Wrapping<V> to_wrapping(V value) {
  if constexpr (kLanesOf<V> == 1) {
    return static_cast<Wrapping<V>>(value);
  } else {
    return (Wrapping<V>)value;
  }
}
template <class V>
GCRT_INLINE V from_wrapping(Wrapping<V> value) {
  if constexpr (kLanesOf<V> == 1) {
    return static_cast<V>(value);
  } else {
    return (V)value;
  }
}

template <class V>
GCRT_INLINE V add(V a, V b) {
  if constexpr (kIsFloating<V>) {
    return a + b;
  } else {
    return from_wrapping<V>(to_wrapping(a) + to_wrapping(b));
  }
}
template <class V>
GCRT_INLINE V sub(V a, V b) {
  if constexpr (kIsFloating<V>) {
    return a - b;
  } else {
    return from_wrapping<V>(to_wrapping(a) - to_wrapping(b));
  }
}
template <class V>
GCRT_INLINE V mul(V a, V b) {
  if constexpr (kIsFloating<V>) {
    return a * b;
  } else {
    return from_wrapping<V>(to_wrapping(a) * to_wrapping(b));
  }
}
template <class V>
GCRT_INLINE V neg(V a) {
  if constexpr (kIsFloating<V>) {
    return -a;
  } else {
    return from_wrapping<V>(Wrapping<V>{} - to_wrapping(a));
  }
}

// The native mask that says which lanes are zero, and so on, stays inside the runtime; the printer's
// comparisons return Pack<uint8_t, N>.
template <class M>
GCRT_INLINE auto mask_and(M a, M b) {
  if constexpr (std::is_same<M, bool>::value) {
    return a && b;
  } else {
    return a & b;
  }
}

// Floating: IEEE. Integers: truncates toward zero; x / 0 is 0 and MIN / -1 is MIN.
template <class V>
GCRT_INLINE V div(V a, V b) {
  using T = ElementOf<V>;
  if constexpr (kIsFloating<V>) {
    return a / b;
  } else if constexpr (kLanesOf<V> > 1 && sizeof(T) < 4) {
    // Exact: quotients of 16-bit integers that are not whole are at least 2^-16 (relative) from a whole one.
    const auto quotient =
        convert<std::int32_t>(convert<float>(a) / convert<float>(blend(b == 0, splat_like<V>(1), b)));
    return blend(b == 0, V{}, convert<T>(quotient));
  } else {
    return map_lanes(
        [](T x, T y) GCRT_LAMBDA_INLINE -> T {
          if (y == 0) return 0;
          if constexpr (std::is_signed<T>::value) {
            if (y == -1) return neg(x);
          }
          return static_cast<T>(x / y);
        },
        a, b);
  }
}

// ONNX Mod with fmod = 1: the sign of the dividend. Integers: x mod 0 is 0.
template <class V>
GCRT_INLINE V fmod(V a, V b) {
  using T = ElementOf<V>;
  if constexpr (kIsFloating<V>) {
    return map_lanes(
        [](T x, T y) GCRT_LAMBDA_INLINE -> T {
          return static_cast<T>(std::fmod(static_cast<double>(x), static_cast<double>(y)));
        },
        a, b);
  } else {
    return blend(b == 0, V{}, sub(a, mul(div(a, b), b)));
  }
}

// ONNX Mod with fmod = 0: the sign of the divisor; integers only. x mod 0 is 0.
template <class V>
GCRT_INLINE V mod(V a, V b) {
  static_assert(!kIsFloating<V>, "ONNX allows fmod = 0 for integers only");
  const V remainder = fmod(a, b);
  if constexpr (std::is_signed<ElementOf<V>>::value) {
    const auto wrong_sign = mask_and(remainder != 0, (remainder < 0) != (b < 0));
    return blend(wrong_sign, add(remainder, b), remainder);
  } else {
    return remainder;
  }
}

// Floating: clears the sign bit. Integers: |MIN| is MIN.
template <class V>
GCRT_INLINE V abs(V a) {
  using T = ElementOf<V>;
  if constexpr (kIsFloating<V>) {
    using U = UnsignedBits<T>;
    return bit_cast<T>(bit_cast<U>(a) & static_cast<U>(static_cast<U>(~U{0}) >> 1));
  } else if constexpr (std::is_signed<T>::value) {
    return blend(a < 0, neg(a), a);
  } else {
    return a;
  }
}

// -1, 0 or 1; sign(-0) is 0 and sign(NaN) is NaN.
template <class V>
GCRT_INLINE V sign(V a) {
  const V zero = {};
  const V one = splat_like<V>(1);
  if constexpr (kIsFloating<V>) {
    const V nonpositive = blend(a < zero, -one, blend(a == zero, zero, a));
    return blend(a > zero, one, nonpositive);
  } else if constexpr (std::is_signed<ElementOf<V>>::value) {
    return blend(a < zero, neg(one), blend(a == zero, zero, one));
  } else {
    return blend(a == zero, zero, one);
  }
}

// Floating: NaN if either is NaN. Which zero min(0, -0) returns is not stated. With a constant that is not
// NaN as second operand this is one instruction.
template <class V>
GCRT_INLINE V min(V a, V b) {
  const V smaller = blend(b < a, b, a);
  if constexpr (kIsFloating<V>) {
    return blend(b != b, b, smaller);
  } else {
    return smaller;
  }
}
template <class V>
GCRT_INLINE V max(V a, V b) {
  const V larger = blend(b > a, b, a);
  if constexpr (kIsFloating<V>) {
    return blend(b != b, b, larger);
  } else {
    return larger;
  }
}

// Bitwise operators of integers.
template <class V>
GCRT_INLINE V bit_and(V a, V b) {
  return from_wrapping<V>(to_wrapping(a) & to_wrapping(b));
}
template <class V>
GCRT_INLINE V bit_or(V a, V b) {
  return from_wrapping<V>(to_wrapping(a) | to_wrapping(b));
}
template <class V>
GCRT_INLINE V bit_xor(V a, V b) {
  return from_wrapping<V>(to_wrapping(a) ^ to_wrapping(b));
}
template <class V>
GCRT_INLINE V bit_not(V a) {
  return from_wrapping<V>(~to_wrapping(a));
}

// Counts at or beyond the width, and negative ones, shift everything out. Right shifts of signed integers
// copy the sign.
template <class V>
GCRT_INLINE V shift_left(V a, V count) {
  using T = ElementOf<V>;
  constexpr std::uint64_t width = 8 * sizeof(T);
  const auto distance = to_wrapping(convert<UnsignedBits<T>>(count));
  const auto inside = distance < width;
  const V shifted = from_wrapping<V>(to_wrapping(a) << blend(inside, distance, Wrapping<V>{}));
  return blend(inside, shifted, V{});
}
template <class V>
GCRT_INLINE V shift_right(V a, V count) {
  using T = ElementOf<V>;
  constexpr std::uint64_t width = 8 * sizeof(T);
  const auto distance = convert<UnsignedBits<T>>(count);
  const auto inside = distance < splat_like<decltype(distance)>(static_cast<UnsignedBits<T>>(width));
  const auto last = splat_like<Rebind<V, UnsignedBits<T>>>(static_cast<UnsignedBits<T>>(width - 1));
  if constexpr (std::is_signed<T>::value) {
    const auto limited = convert<T>(blend(inside, distance, last));
    return convert<T>(a >> limited);
  } else {
    return blend(inside, convert<T>(a >> blend(inside, distance, last)), V{});
  }
}

// A native mask as 0 or 1, and back.
template <int N, class M>
GCRT_INLINE Pack<std::uint8_t, N> mask_to_bool(M mask) {
  if constexpr (N == 1) {
    return static_cast<std::uint8_t>(mask);
  } else {
#if GCRT_CUDA
    return mask_lanes<std::uint8_t>(mask);
#else
    return (Pack<std::uint8_t, N>)convert<std::int8_t>(bit_cast<SignedBits<ElementOf<M>>>(mask)) & 1;
#endif
  }
}
template <class T, class B>
GCRT_INLINE auto bool_to_mask(B condition) {
  static_assert(std::is_same<ElementOf<B>, std::uint8_t>::value, "booleans are uint8_t");
  if constexpr (kLanesOf<B> == 1) {
    return condition != 0;
  } else {
    return convert<SignedBits<T>>(condition) != 0;
  }
}

template <class V>
GCRT_INLINE Rebind<V, std::uint8_t> less(V a, V b) {
  return mask_to_bool<kLanesOf<V>>(a < b);
}
template <class V>
GCRT_INLINE Rebind<V, std::uint8_t> less_equal(V a, V b) {
  return mask_to_bool<kLanesOf<V>>(a <= b);
}
template <class V>
GCRT_INLINE Rebind<V, std::uint8_t> greater(V a, V b) {
  return mask_to_bool<kLanesOf<V>>(a > b);
}
template <class V>
GCRT_INLINE Rebind<V, std::uint8_t> greater_equal(V a, V b) {
  return mask_to_bool<kLanesOf<V>>(a >= b);
}
template <class V>
GCRT_INLINE Rebind<V, std::uint8_t> equal(V a, V b) {
  return mask_to_bool<kLanesOf<V>>(a == b);
}
template <class V>
GCRT_INLINE Rebind<V, std::uint8_t> not_equal(V a, V b) {
  return mask_to_bool<kLanesOf<V>>(a != b);
}

// Booleans are 0 or 1 on both sides.
template <class B>
GCRT_INLINE B logical_and(B a, B b) {
  return bit_and(a, b);
}
template <class B>
GCRT_INLINE B logical_or(B a, B b) {
  return bit_or(a, b);
}
template <class B>
GCRT_INLINE B logical_xor(B a, B b) {
  return bit_xor(a, b);
}
template <class B>
GCRT_INLINE B logical_not(B a) {
  return bit_xor(a, splat_like<B>(1));
}

// condition ? a : b, lane by lane.
template <class B, class V>
GCRT_INLINE V select(B condition, V a, V b) {
  static_assert(kLanesOf<B> == kLanesOf<V>, "one condition per lane");
  return blend(bool_to_mask<ElementOf<V>>(condition), a, b);
}

template <class V>
GCRT_INLINE Rebind<V, std::uint8_t> is_nan(V a) {
  return mask_to_bool<kLanesOf<V>>(a != a);
}
template <class V>
GCRT_INLINE Rebind<V, std::uint8_t> is_inf(V a, bool detect_negative = true, bool detect_positive = true) {
  using T = ElementOf<V>;
  const V infinity = splat_like<V>(kInfinity<T>);
  const auto none = splat_like<Rebind<V, std::uint8_t>>(0);
  const auto positive = detect_positive ? equal(a, infinity) : none;
  const auto negative = detect_negative ? equal(a, -infinity) : none;
  return bit_or(positive, negative);
}

// Folds the upper half onto the lower half until one lane is left. The order depends on the number of
// lanes only. A scalar is its own reduction.
template <class F, class V>
GCRT_INLINE ElementOf<V> reduce_lanes(const F& combine, V value) {
  if constexpr (kLanesOf<V> == 1) {
    return value;
  } else {
    return reduce_lanes(combine, combine(low_half(value), high_half(value)));
  }
}
template <class V>
GCRT_INLINE ElementOf<V> reduce_add(V value) {
  return reduce_lanes([](auto a, auto b) GCRT_LAMBDA_INLINE { return add(a, b); }, value);
}
template <class V>
GCRT_INLINE ElementOf<V> reduce_mul(V value) {
  return reduce_lanes([](auto a, auto b) GCRT_LAMBDA_INLINE { return mul(a, b); }, value);
}
template <class V>
GCRT_INLINE ElementOf<V> reduce_min(V value) {
  return reduce_lanes([](auto a, auto b) GCRT_LAMBDA_INLINE { return min(a, b); }, value);
}
template <class V>
GCRT_INLINE ElementOf<V> reduce_max(V value) {
  return reduce_lanes([](auto a, auto b) GCRT_LAMBDA_INLINE { return max(a, b); }, value);
}

}  // namespace GCRT_NAMESPACE
