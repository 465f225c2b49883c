// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Pack<T, N> of CUDA code: a plain array of lanes with the operators of a vector, in place of the compiler's
// vector types, which nvcc does not have. Everything of pack_types.h, pack.h and scalar*.h works on these as
// on those, so an expression reads the same on both targets and gives the same bits.
// Included by cuda/device/device.h.
#pragma once

#include <type_traits>

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// In which integers of type T are computed so that they wrap: unsigned, and no narrower than int.
template <class T, bool IsInteger = std::is_integral<T>::value>
struct LaneArithmetic {
  using type = T;
};
template <class T>
struct LaneArithmetic<T, true> {
  using type = std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;
};

// The result of comparing packs.
template <int N>
struct alignas(N < 16 ? N : 16) LaneMask {
  bool v[N];
  GCRT_INLINE bool& operator[](int i) { return v[i]; }
  GCRT_INLINE bool operator[](int i) const { return v[i]; }
};

// Aligned to its size, but no more than the 16 bytes that one instruction reads or writes.
template <class T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) LanePack {
  T v[N];

  GCRT_INLINE T& operator[](int i) { return v[i]; }
  GCRT_INLINE const T& operator[](int i) const { return v[i]; }

  // As with vector types, a cast keeps the bits.
  template <class To>
  GCRT_INLINE explicit operator LanePack<To, N>() const {
    static_assert(sizeof(To) == sizeof(T), "the same bits in elements of the same size");
    LanePack<To, N> result;
    GCRT_UNROLL
    for (int i = 0; i < N; ++i) memcpy(&result.v[i], &v[i], sizeof(T));
    return result;
  }
};

#define GCRT_LANES_DO(result, statement) \
  result r;                              \
  GCRT_UNROLL                            \
  for (int i = 0; i < N; ++i) statement; \
  return r

// The operand that is a scalar converts to the element type, as with vector types.
template <class T>
struct Exactly {
  using type = T;
};
template <class T>
using ScalarOperand = typename Exactly<T>::type;

#define GCRT_LANE_OPERATOR(op, Result, wide)                                                        \
  template <class T, int N>                                                                         \
  GCRT_INLINE Result<T, N> operator op(LanePack<T, N> a, LanePack<T, N> b) {                        \
    using W = wide;                                                                                 \
    using R = typename std::remove_reference<decltype(Result<T, N>{}[0])>::type;                    \
    using Pack = Result<T, N>;                                                                      \
    GCRT_LANES_DO(Pack, r.v[i] = static_cast<R>(static_cast<W>(a.v[i]) op static_cast<W>(b.v[i]))); \
  }                                                                                                 \
  template <class T, int N>                                                                         \
  GCRT_INLINE Result<T, N> operator op(LanePack<T, N> a, ScalarOperand<T> b) {                      \
    using W = wide;                                                                                 \
    using R = typename std::remove_reference<decltype(Result<T, N>{}[0])>::type;                    \
    using Pack = Result<T, N>;                                                                      \
    GCRT_LANES_DO(Pack, r.v[i] = static_cast<R>(static_cast<W>(a.v[i]) op static_cast<W>(b)));      \
  }                                                                                                 \
  template <class T, int N>                                                                         \
  GCRT_INLINE Result<T, N> operator op(ScalarOperand<T> a, LanePack<T, N> b) {                      \
    using W = wide;                                                                                 \
    using R = typename std::remove_reference<decltype(Result<T, N>{}[0])>::type;                    \
    using Pack = Result<T, N>;                                                                      \
    GCRT_LANES_DO(Pack, r.v[i] = static_cast<R>(static_cast<W>(a) op static_cast<W>(b.v[i])));      \
  }
template <class T, int N>
using MaskOf = LaneMask<N>;
GCRT_LANE_OPERATOR(+, LanePack, typename LaneArithmetic<T>::type)
GCRT_LANE_OPERATOR(-, LanePack, typename LaneArithmetic<T>::type)
GCRT_LANE_OPERATOR(*, LanePack, typename LaneArithmetic<T>::type)
GCRT_LANE_OPERATOR(/, LanePack, T)
GCRT_LANE_OPERATOR(%, LanePack, T)
GCRT_LANE_OPERATOR(&, LanePack, T)
GCRT_LANE_OPERATOR(|, LanePack, T)
GCRT_LANE_OPERATOR(^, LanePack, T)
GCRT_LANE_OPERATOR(<<, LanePack, typename LaneArithmetic<T>::type)
GCRT_LANE_OPERATOR(>>, LanePack, T)
GCRT_LANE_OPERATOR(<, MaskOf, T)
GCRT_LANE_OPERATOR(<=, MaskOf, T)
GCRT_LANE_OPERATOR(>, MaskOf, T)
GCRT_LANE_OPERATOR(>=, MaskOf, T)
GCRT_LANE_OPERATOR(==, MaskOf, T)
GCRT_LANE_OPERATOR(!=, MaskOf, T)
#undef GCRT_LANE_OPERATOR

template <class T, int N>
GCRT_INLINE LanePack<T, N> operator-(LanePack<T, N> a) {
  using W = typename LaneArithmetic<T>::type;
  using Pack = LanePack<T, N>;
  if constexpr (std::is_integral<T>::value) {
    GCRT_LANES_DO(Pack, r.v[i] = static_cast<T>(W{0} - static_cast<W>(a.v[i])));
  } else {
    GCRT_LANES_DO(Pack, r.v[i] = -a.v[i]);
  }
}
template <class T, int N>
GCRT_INLINE LanePack<T, N> operator~(LanePack<T, N> a) {
  using Pack = LanePack<T, N>;
  GCRT_LANES_DO(Pack, r.v[i] = static_cast<T>(~a.v[i]));
}

#define GCRT_LANE_ASSIGNMENT(op)                                       \
  template <class T, int N, class B>                                   \
  GCRT_INLINE LanePack<T, N>& operator op##=(LanePack<T, N>& a, B b) { \
    a = a op b;                                                        \
    return a;                                                          \
  }
GCRT_LANE_ASSIGNMENT(+)
GCRT_LANE_ASSIGNMENT(-)
GCRT_LANE_ASSIGNMENT(*)
GCRT_LANE_ASSIGNMENT(/)
GCRT_LANE_ASSIGNMENT(&)
GCRT_LANE_ASSIGNMENT(|)
GCRT_LANE_ASSIGNMENT(^)
#undef GCRT_LANE_ASSIGNMENT

#define GCRT_MASK_OPERATOR(op)                                        \
  template <int N>                                                    \
  GCRT_INLINE LaneMask<N> operator op(LaneMask<N> a, LaneMask<N> b) { \
    using Mask = LaneMask<N>;                                         \
    GCRT_LANES_DO(Mask, r.v[i] = (a.v[i] op b.v[i]) != 0);            \
  }
GCRT_MASK_OPERATOR(&)
GCRT_MASK_OPERATOR(|)
GCRT_MASK_OPERATOR(^)
GCRT_MASK_OPERATOR(==)
GCRT_MASK_OPERATOR(!=)
#undef GCRT_MASK_OPERATOR
template <int N>
GCRT_INLINE LaneMask<N> operator~(LaneMask<N> a) {
  using Mask = LaneMask<N>;
  GCRT_LANES_DO(Mask, r.v[i] = !a.v[i]);
}

// What the compiler offers for vector types: blend, conversion of every element, and choice of lanes.
template <class T, int N>
GCRT_INLINE LanePack<T, N> blend_lanes(LaneMask<N> mask, LanePack<T, N> a, LanePack<T, N> b) {
  using Pack = LanePack<T, N>;
  GCRT_LANES_DO(Pack, r.v[i] = mask.v[i] ? a.v[i] : b.v[i]);
}
template <class To, class T, int N>
GCRT_INLINE LanePack<To, N> convert_lanes(LanePack<T, N> a) {
  using Pack = LanePack<To, N>;
#if !defined(__CUDACC__)
  // g++ 12 at -O2 takes two lanes that go from double to float and back for ones that stay.
  if constexpr (std::is_same<T, double>::value && std::is_same<To, float>::value) {
    volatile float rounded[N];
    for (int i = 0; i < N; ++i) rounded[i] = static_cast<float>(a.v[i]);
    GCRT_LANES_DO(Pack, r.v[i] = rounded[i]);
  }
#endif
  GCRT_LANES_DO(Pack, r.v[i] = static_cast<To>(a.v[i]));
}
template <class To, int N>
GCRT_INLINE LanePack<To, N> mask_lanes(LaneMask<N> a) {
  using Pack = LanePack<To, N>;
  GCRT_LANES_DO(Pack, r.v[i] = static_cast<To>(a.v[i] ? 1 : 0));
}
template <int Offset, int N, class T, int M>
GCRT_INLINE LanePack<T, N> lanes_from(LanePack<T, M> a) {
  using Pack = LanePack<T, N>;
  GCRT_LANES_DO(Pack, r.v[i] = a.v[Offset + i]);
}
template <class T, int M>
GCRT_INLINE LanePack<T, 2 * M> lanes_after(LanePack<T, M> low, LanePack<T, M> high) {
  constexpr int N = 2 * M;
  using Pack = LanePack<T, N>;
  GCRT_LANES_DO(Pack, r.v[i] = i < M ? low.v[i % M] : high.v[i % M]);
}
#undef GCRT_LANES_DO

#if defined(__CUDA_ARCH__)
// One instruction each. NaN becomes a quiet NaN whose other bits are not those of the portable bodies.
GCRT_INLINE float half_to_float_on_device(std::uint16_t half) {
  float result;
  asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(half));
  return result;
}
GCRT_INLINE std::uint16_t float_to_half_on_device(float value) {
  std::uint16_t result;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result) : "f"(value));
  return result;
}
#if __CUDA_ARCH__ >= 800
// Two at a time; `first` to the lower half.
GCRT_INLINE std::uint32_t floats_to_bfloat16_on_device(float first, float second) {
  std::uint32_t result;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(result) : "f"(second), "f"(first));
  return result;
}
template <int N>
GCRT_INLINE LanePack<std::uint16_t, N> floats_to_bfloat16_on_device(LanePack<float, N> value) {
  std::uint32_t words[N / 2];
  GCRT_UNROLL
  for (int i = 0; i < N / 2; ++i) words[i] = floats_to_bfloat16_on_device(value.v[2 * i], value.v[2 * i + 1]);
  LanePack<std::uint16_t, N> result;
  memcpy(&result, words, sizeof(result));
  return result;
}
GCRT_INLINE std::uint16_t floats_to_bfloat16_on_device(float value) {
  return static_cast<std::uint16_t>(floats_to_bfloat16_on_device(value, 0.0f));
}
#endif
// a / b for a positive b as nvcc divides, to nearest even, without its test for operands near the ends
// of their range, whose branch keeps the lanes of a pack from being divided side by side. A zero keeps
// its sign.
#if defined(__CUDA_ARCH__)
GCRT_INLINE float quotient_on_device(float a, float b) {
  float r;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(b));
  r = ::fmaf(::fmaf(-b, r, 1.0f), r, r);
  const float quotient = a * r;
  return ::copysignf(::fmaf(::fmaf(-b, quotient, a), r, quotient), a);
}
#endif

// Mode: RoundingMode of isa/round.h.
template <int Mode, class T>
GCRT_INLINE T round_on_device(T value) {
  if constexpr (sizeof(T) == 4) {
    return Mode == 0   ? ::rintf(value)
           : Mode == 1 ? ::floorf(value)
           : Mode == 2 ? ::ceilf(value)
                       : ::truncf(value);
  } else {
    return Mode == 0   ? ::rint(value)
           : Mode == 1 ? ::floor(value)
           : Mode == 2 ? ::ceil(value)
                       : ::trunc(value);
  }
}
#endif

// Bytes that one instruction moves: the largest power of two that divides the pack, at most 16.
template <int Bytes>
struct alignas(Bytes) AlignedBytes {
  std::conditional_t<Bytes % 4 == 0, std::uint32_t,
                     std::conditional_t<Bytes == 2, std::uint16_t, std::uint8_t>>
      part[Bytes % 4 == 0 ? Bytes / 4 : 1];
};

#if defined(__CUDACC__)
#define GCRT_CHECK_ACCESS(p, bytes) static_cast<void>(bytes)
#else
#define GCRT_CHECK_ACCESS(p, bytes) cuda_on_cpu::check_alignment_in_kernel(p, bytes)
#endif

// On the device the address is a multiple of the pack's size, or of 16 for larger packs: whoever prints the
// access proves it. Steps of the host read and write at any address.
template <class T, int N>
GCRT_INLINE LanePack<T, N> load_aligned(const T* p) {
  constexpr int total = static_cast<int>(sizeof(T)) * N;
  constexpr int bytes = total < 16 ? total : 16;
  GCRT_CHECK_ACCESS(p, bytes);
  LanePack<T, N> result;
#if defined(__CUDA_ARCH__)
  using Chunk = AlignedBytes<bytes>;
  Chunk chunks[total / bytes];
  GCRT_UNROLL
  for (int i = 0; i < total / bytes; ++i) chunks[i] = reinterpret_cast<const Chunk*>(p)[i];
  memcpy(&result, chunks, sizeof(result));
#else
  memcpy(&result, p, sizeof(result));
#endif
  return result;
}
template <class T, int N>
GCRT_INLINE void store_aligned(T* p, LanePack<T, N> value) {
  constexpr int total = static_cast<int>(sizeof(T)) * N;
  constexpr int bytes = total < 16 ? total : 16;
  GCRT_CHECK_ACCESS(p, bytes);
#if defined(__CUDA_ARCH__)
  using Chunk = AlignedBytes<bytes>;
  Chunk chunks[total / bytes];
  memcpy(chunks, &value, sizeof(value));
  GCRT_UNROLL
  for (int i = 0; i < total / bytes; ++i) reinterpret_cast<Chunk*>(p)[i] = chunks[i];
#else
  memcpy(p, &value, sizeof(value));
#endif
}
#undef GCRT_CHECK_ACCESS

}  // namespace GCRT_NAMESPACE
