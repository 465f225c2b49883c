// Loads, stores, vector loops and horizontal reductions over packs.
#pragma once

#include "gcrt/isa.h"

namespace GCRT_NAMESPACE {

// Of any alignment; in CUDA code of the pack's own, at most 16 bytes.
template <int N, class T>
GCRT_INLINE Pack<T, N> load(Lanes<N>, const T* p) {
  if constexpr (N == 1) {
    return *p;
  } else {
#if GCRT_CUDA
    return load_aligned<T, N>(p);
#else
    Pack<T, N> result;
    __builtin_memcpy(&result, p, sizeof(result));
    return result;
#endif
  }
}

template <int N, class T>
GCRT_INLINE void store(Lanes<N>, T* p, Pack<T, N> value) {
  if constexpr (N == 1) {
    *p = value;
  } else {
#if GCRT_CUDA
    store_aligned<T, N>(p, value);
#else
    __builtin_memcpy(p, &value, sizeof(value));
#endif
  }
}

template <class T, int... I>
GCRT_INLINE Pack<T, static_cast<int>(sizeof...(I))> load_lanes(const T* p, std::ptrdiff_t stride,
                                                               std::integer_sequence<int, I...>) {
  return Pack<T, static_cast<int>(sizeof...(I))>{p[I * stride]...};
}

// Lane i is p[i * stride].
template <int N, class T>
GCRT_INLINE Pack<T, N> load_strided(Lanes<N>, const T* p, std::ptrdiff_t stride) {
  if constexpr (N == 1) {
    static_cast<void>(stride);
    return *p;
  } else {
    return load_lanes(p, stride, std::make_integer_sequence<int, N>{});
  }
}

template <int N, class T>
GCRT_INLINE void store_strided(Lanes<N>, T* p, std::ptrdiff_t stride, Pack<T, N> value) {
  if constexpr (N == 1) {
    static_cast<void>(stride);
    *p = value;
  } else {
    GCRT_UNROLL
    for (int i = 0; i < N; ++i) p[i * stride] = value[i];
  }
}

template <class T, class Index, int... I>
GCRT_INLINE Pack<T, static_cast<int>(sizeof...(I))> gather_lanes(const T* p, const Index& index,
                                                                 std::integer_sequence<int, I...>) {
  return Pack<T, static_cast<int>(sizeof...(I))>{p[index[I]]...};
}

// Lane i is p[index[i]]; indices count elements and are not checked. By reference: beside 16 floats they are
// 128 bytes, and g++ tells of every such parameter that its ABI changed once.
template <int N, class T>
GCRT_INLINE Pack<T, N> gather(Lanes<N>, const T* p, const Pack<std::int64_t, N>& index) {
  if constexpr (N == 1) {
    return p[index];
  } else {
    return gather_lanes(p, index, std::make_integer_sequence<int, N>{});
  }
}

template <int... I>
GCRT_INLINE Pack<std::int64_t, static_cast<int>(sizeof...(I))> iota_lanes(std::int64_t base,
                                                                          std::integer_sequence<int, I...>) {
  return Pack<std::int64_t, static_cast<int>(sizeof...(I))>{(base + I)...};
}

// base, base + 1, ..., base + N - 1.
template <int N>
GCRT_INLINE Pack<std::int64_t, N> iota(Lanes<N>, std::int64_t base) {
  if constexpr (N == 1) {
    return base;
  } else {
    return iota_lanes(base, std::make_integer_sequence<int, N>{});
  }
}

// 16-bit floats live in registers as float. Stores round to nearest even.
template <int N>
GCRT_INLINE Pack<float, N> load_as_float(Lanes<N> lane, const Half* p) {
  return half_to_float(load(lane, reinterpret_cast<const std::uint16_t*>(p)));
}
template <int N>
GCRT_INLINE Pack<float, N> load_as_float(Lanes<N> lane, const BFloat16* p) {
  return bfloat16_to_float(load(lane, reinterpret_cast<const std::uint16_t*>(p)));
}
template <int N>
GCRT_INLINE Pack<float, N> load_as_float(Lanes<N> lane, const float* p) {
  return load(lane, p);
}
template <int N>
GCRT_INLINE Pack<float, N> load_as_float(Lanes<N> lane, const Tf32* p) {
  return load(lane, reinterpret_cast<const float*>(p));
}
template <int N>
GCRT_INLINE void store_from_float(Lanes<N> lane, Half* p, Pack<float, N> value) {
  store(lane, reinterpret_cast<std::uint16_t*>(p), float_to_half(value));
}
template <int N>
GCRT_INLINE void store_from_float(Lanes<N> lane, BFloat16* p, Pack<float, N> value) {
  store(lane, reinterpret_cast<std::uint16_t*>(p), float_to_bfloat16(value));
}
template <int N>
GCRT_INLINE void store_from_float(Lanes<N> lane, float* p, Pack<float, N> value) {
  store(lane, p, value);
}

// body(Lanes<L>{}, i) for the full vectors of [0, count), then body(Lanes<1>{}, i) for the rest.
template <int L = kLanes, class F>
GCRT_INLINE void vectorize(std::ptrdiff_t count, const F& body) {
  // Counted this way, a literal count that L divides leaves no tail; otherwise g++ 12 compiles one that
  // never runs and warns that it would overflow.
  const std::ptrdiff_t full = count < L ? 0 : count - count % L;
  if constexpr (L > 1) {
    for (std::ptrdiff_t i = 0; i < full; i += L) body(Lanes<L>{}, i);
    for (std::ptrdiff_t i = full; i < count; ++i) body(Lanes<1>{}, i);
  } else {
    for (std::ptrdiff_t i = 0; i < count; ++i) body(Lanes<1>{}, i);
  }
}

// The elements [0, count) in blocks of kVectorBlock, of which [block_begin, block_end) are walked. A block
// has whole vectors, so that each element is computed in the same way whoever walks it.
constexpr std::ptrdiff_t kVectorBlock = 1024;
template <int L = kLanes, class F>
GCRT_INLINE void vectorize_blocks(std::ptrdiff_t block_begin, std::ptrdiff_t block_end, std::ptrdiff_t count,
                                  const F& body) {
  const std::ptrdiff_t first = block_begin * kVectorBlock;
  const std::ptrdiff_t last = block_end * kVectorBlock < count ? block_end * kVectorBlock : count;
  vectorize<L>(last - first, [&](auto lane, std::ptrdiff_t i) GCRT_LAMBDA_INLINE { body(lane, first + i); });
}
constexpr std::ptrdiff_t vector_blocks(std::ptrdiff_t count) { return ceil_div(count, kVectorBlock); }

}  // namespace GCRT_NAMESPACE
