// Pack<T, N>: N values of one element type held in registers. N == 1 is the plain scalar, so that one
// function body serves full vectors and the tail. Loads and stores are in pack.h.
#pragma once

#include <limits>
#include <type_traits>
#include <utility>

#include "gcrt/config.h"

#if GCRT_CUDA && !defined(GCRT_CUDA_DEVICE)
#error "CUDA code includes gcrt/cuda/device.h before any other header of gcrt"
#endif

namespace GCRT_NAMESPACE {

template <int N>
using Lanes = std::integral_constant<int, N>;

template <class T, int N>
struct PackOf {
  static_assert(N > 1 && (N & (N - 1)) == 0, "a pack has a power of two of lanes");
#if GCRT_CUDA
  using type = LanePack<T, N>;
#else
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
#endif
};
template <class T>
struct PackOf<T, 1> {
  using type = T;
};

// T: float, double, int8_t to int64_t, uint8_t to uint64_t. Booleans are uint8_t 0 or 1. Any power of two
// of lanes works, but packs wider than the machine go through memory with g++: choose the lanes of a loop
// with kLanesFor.
template <class T, int N>
using Pack = typename PackOf<T, N>::type;

// The lanes of a loop whose widest element type is one of T: none of its packs exceeds one vector.
template <class... T>
constexpr int kLanesFor = ((sizeof(T) > 4) || ...) ? kLanes / 2 : kLanes;

// The special values of T as constants. The functions of std::numeric_limits would stand in unoptimised
// object files under names that two models built for different machines share.
template <class T>
constexpr T kLowest = std::numeric_limits<T>::lowest();
template <class T>
constexpr T kLargest = std::numeric_limits<T>::max();
template <class T>
constexpr T kSmallestNormal = std::numeric_limits<T>::min();
template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();
template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

// The element type and the number of lanes of a pack or scalar.
template <class V, bool IsScalar = std::is_arithmetic<V>::value>
struct PackTraits {
  using Element = V;
  static constexpr int lanes = 1;
};
template <class V>
struct PackTraits<V, false> {
  using Element = std::remove_cv_t<std::remove_reference_t<decltype(std::declval<V&>()[0])>>;
  static constexpr int lanes = static_cast<int>(sizeof(V) / sizeof(Element));
};
template <class V>
using ElementOf = typename PackTraits<V>::Element;
template <class V>
constexpr int kLanesOf = PackTraits<V>::lanes;

// Same lanes, other element type.
template <class V, class T>
using Rebind = Pack<T, kLanesOf<V>>;

// Wider than a machine vector: g++ lowers some operations on these lane by lane.
template <class V>
constexpr bool kIsWide = kLanesOf<V> > 1 && sizeof(V) > GCRT_NATIVE_BYTES;

// Integers of a given size.
template <int Bytes>
struct SizedInteger;
template <>
struct SizedInteger<1> {
  using Signed = std::int8_t;
  using Unsigned = std::uint8_t;
};
template <>
struct SizedInteger<2> {
  using Signed = std::int16_t;
  using Unsigned = std::uint16_t;
};
template <>
struct SizedInteger<4> {
  using Signed = std::int32_t;
  using Unsigned = std::uint32_t;
};
template <>
struct SizedInteger<8> {
  using Signed = std::int64_t;
  using Unsigned = std::uint64_t;
};
template <class T>
using SignedBits = typename SizedInteger<sizeof(T)>::Signed;
template <class T>
using UnsignedBits = typename SizedInteger<sizeof(T)>::Unsigned;

// 16-bit floating point as it lies in memory. In registers these values are float packs.
struct Half {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

// A float of which the 13 lowest bits are 0, as tensor cores multiply it.
struct Tf32 {
  float value;
};

// The same bits read as elements of another type of the same size.
template <class To, class V>
GCRT_INLINE Rebind<V, To> bit_cast(V value) {
  static_assert(sizeof(To) == sizeof(ElementOf<V>), "bit_cast keeps the size of an element");
  if constexpr (std::is_same<To, ElementOf<V>>::value) {
    return value;
  } else if constexpr (kLanesOf<V> == 1) {
    To result;
    __builtin_memcpy(&result, &value, sizeof(result));
    return result;
  } else {
    return (Rebind<V, To>)value;
  }
}

// The same bytes as another type altogether.
template <class To, class From>
GCRT_INLINE To bit_cast_whole(From value) {
  static_assert(sizeof(To) == sizeof(From), "the same size");
  To result;
  __builtin_memcpy(&result, &value, sizeof(result));
  return result;
}

template <class T, int... I>
GCRT_INLINE Pack<T, static_cast<int>(sizeof...(I))> splat_lanes(T value, std::integer_sequence<int, I...>) {
  return Pack<T, static_cast<int>(sizeof...(I))>{(static_cast<void>(I), value)...};
}

template <int N, class T>
GCRT_INLINE Pack<T, N> splat(Lanes<N>, T value) {
  if constexpr (N == 1) {
    return value;
  } else {
    return splat_lanes(value, std::make_integer_sequence<int, N>{});
  }
}

// splat with the lanes of another pack: splat_like<V>(0.5f).
template <class V>
GCRT_INLINE V splat_like(ElementOf<V> value) {
  return splat(Lanes<kLanesOf<V>>{}, value);
}

template <int Offset, class V, int... I>
GCRT_INLINE Pack<ElementOf<V>, static_cast<int>(sizeof...(I))> shuffle_run(V value,
                                                                           std::integer_sequence<int, I...>) {
#if GCRT_CUDA
  return lanes_from<Offset, static_cast<int>(sizeof...(I))>(value);
#else
  return __builtin_shufflevector(value, value, (Offset + I)...);
#endif
}

// Lanes [Half * N / 2, (Half + 1) * N / 2) of a pack of N.
template <int HalfIndex, class V>
GCRT_INLINE Pack<ElementOf<V>, kLanesOf<V> / 2> half_of(V value) {
  constexpr int n = kLanesOf<V> / 2;
  using Result = Pack<ElementOf<V>, n>;
  if constexpr (n == 1) {
    return value[HalfIndex];
  } else if constexpr (kIsWide<V>) {
    Result parts[2];
    __builtin_memcpy(parts, &value, sizeof(value));
    return parts[HalfIndex];
  } else {
    return shuffle_run<HalfIndex * n>(value, std::make_integer_sequence<int, n>{});
  }
}
template <class V>
GCRT_INLINE auto low_half(V value) {
  return half_of<0>(value);
}
template <class V>
GCRT_INLINE auto high_half(V value) {
  return half_of<1>(value);
}

template <class V, int... I>
GCRT_INLINE Pack<ElementOf<V>, static_cast<int>(sizeof...(I))> concatenate_lanes(
    V low, V high, std::integer_sequence<int, I...>) {
#if GCRT_CUDA
  return lanes_after(low, high);
#else
  return __builtin_shufflevector(low, high, I...);
#endif
}

// The lanes of `low`, then the lanes of `high`.
template <class V>
GCRT_INLINE Pack<ElementOf<V>, kLanesOf<V> * 2> concatenate(V low, V high) {
  using Result = Pack<ElementOf<V>, kLanesOf<V> * 2>;
  if constexpr (kLanesOf<V> == 1) {
    return Result{low, high};
  } else if constexpr (kIsWide<Result>) {
    const V parts[2] = {low, high};
    Result result;
    __builtin_memcpy(&result, parts, sizeof(result));
    return result;
  } else {
    return concatenate_lanes(low, high, std::make_integer_sequence<int, kLanesOf<V> * 2>{});
  }
}

// mask ? a : b with the native mask of a comparison: bool, or a vector of 0 and -1 (LaneMask in CUDA code).
template <class M, class V>
GCRT_INLINE V blend(M mask, V a, V b) {
  if constexpr (kIsWide<V>) {
    using U = UnsignedBits<ElementOf<V>>;
    const auto bits = bit_cast<U>(mask);
    return bit_cast<ElementOf<V>>((bit_cast<U>(a) & bits) | (bit_cast<U>(b) & ~bits));
#if GCRT_CUDA
  } else if constexpr (kLanesOf<V> > 1) {
    return blend_lanes(mask, a, b);
#endif
  } else {
    return mask ? a : b;
  }
}

// function(lane of a, ...) for every lane, with results of type T; for what has no vector form.
template <class T, class F, class V, class... Rest>
GCRT_INLINE Rebind<V, T> map_lanes_to(const F& function, V first, Rest... rest) {
  if constexpr (kLanesOf<V> == 1) {
    return function(first, rest...);
  } else {
    Rebind<V, T> result = {};
    for (int i = 0; i < kLanesOf<V>; ++i) result[i] = function(first[i], rest[i]...);
    return result;
  }
}
template <class F, class V, class... Rest>
GCRT_INLINE V map_lanes(const F& function, V first, Rest... rest) {
  return map_lanes_to<ElementOf<V>>(function, first, rest...);
}

}  // namespace GCRT_NAMESPACE
