// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// ldmatrix, mma.sync and the integer dot products of one thread. Included by cuda/device/device.h.
//
// Fragments of D[16][8] += A[16][k] * B[k][8], for lane l, with p elements in a register (k = 8p):
//   a[i]  row l/4 + 8 (i % 2), columns p (l%4 + 4 (i/2)) and on
//   b[i]  column l/4, rows p (l%4 + 4i) and on
//   d[i]  row l/4 + 8 (i/2), column 2 (l%4) + i%2
// (PTX ISA, "Matrix multiply-accumulate operation using mma instruction".)
#pragma once

#include <cstdint>
#include <type_traits>

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// Count 8x8 matrices of 16-bit elements from shared memory: lanes 8i to 8i+7 give the addresses of the rows
// of matrix i, 16 bytes each and aligned to 16.
// r[i] holds of matrix i the elements (l/4, 2 (l%4)) and the next.
template <int Count, bool Transposed>
GCRT_DEVICE void ldmatrix(std::uint32_t (&r)[Count], const void* row) {
  static_assert(Count == 1 || Count == 2 || Count == 4, "matrices of one instruction");
#if !defined(__CUDACC__)
  cuda_on_cpu::load_matrices(r, 1, Count, Transposed, &row);
#else
  const std::uint32_t address = shared_address(row);
#define GCRT_LDMATRIX(suffix)                                                                 \
  if constexpr (Count == 4) {                                                                 \
    asm volatile("ldmatrix.sync.aligned.m8n8.x4" suffix ".shared.b16 {%0, %1, %2, %3}, [%4];" \
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])                             \
                 : "r"(address)                                                               \
                 : "memory");                                                                 \
  } else if constexpr (Count == 2) {                                                          \
    asm volatile("ldmatrix.sync.aligned.m8n8.x2" suffix ".shared.b16 {%0, %1}, [%2];"         \
                 : "=r"(r[0]), "=r"(r[1])                                                     \
                 : "r"(address)                                                               \
                 : "memory");                                                                 \
  } else {                                                                                    \
    asm volatile("ldmatrix.sync.aligned.m8n8.x1" suffix ".shared.b16 {%0}, [%1];"             \
                 : "=r"(r[0])                                                                 \
                 : "r"(address)                                                               \
                 : "memory");                                                                 \
  }
  if constexpr (Transposed) {
    GCRT_LDMATRIX(".trans")
  } else {
    GCRT_LDMATRIX("")
  }
#undef GCRT_LDMATRIX
#endif
}
GCRT_DEVICE void ldmatrix_x4(std::uint32_t (&r)[4], const void* row) { ldmatrix<4, false>(r, row); }
GCRT_DEVICE void ldmatrix_x2(std::uint32_t (&r)[2], const void* row) { ldmatrix<2, false>(r, row); }
GCRT_DEVICE void ldmatrix_x4_trans(std::uint32_t (&r)[4], const void* row) { ldmatrix<4, true>(r, row); }
GCRT_DEVICE void ldmatrix_x2_trans(std::uint32_t (&r)[2], const void* row) { ldmatrix<2, true>(r, row); }

// Several loads of four matrices: on the machine one after another,
// on the emulator in one meeting of the warp.
template <bool Transposed, int Loads>
GCRT_DEVICE void ldmatrix_x4_several(std::uint32_t (&r)[Loads][4], const void* const (&rows)[Loads]) {
#if defined(__CUDACC__)
  GCRT_UNROLL
  for (int i = 0; i < Loads; ++i) ldmatrix<4, Transposed>(r[i], rows[i]);
#else
  cuda_on_cpu::load_matrices(r[0], Loads, 4, Transposed, rows);
#endif
}

#if defined(__CUDACC__)
// The operands of one mma.sync in the order of the instruction; d is read and written.
#define GCRT_MMA(instruction, constraint)                                                               \
  asm volatile(instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"           \
               : "+" constraint(d[0]), "+" constraint(d[1]), "+" constraint(d[2]), "+" constraint(d[3]) \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#endif

// What sm_75 has of these: half of the depth of k, and of bytes half of the rows too.
//   mma_f16_k8     m16n8k8; a[i] row l/4 + 8i, columns 2 (l%4) and on; b the rows 2 (l%4) and on
//   mma_int8_k16   m8n8k16; a row l/4, columns 4 (l%4) and on; d[i] column 2 (l%4) + i
#if !GCRT_SM_80
GCRT_DEVICE void mma_f16_k8(float (&d)[4], const std::uint32_t* a, std::uint32_t b) {
#if !defined(__CUDACC__)
  cuda_on_cpu::mma_f16_k8(d, a, &b);
#else
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(b));
#endif
}
template <bool ASigned, bool BSigned>
GCRT_DEVICE void mma_int8_k16(std::int32_t* d, std::uint32_t a, std::uint32_t b) {
#if !defined(__CUDACC__)
  cuda_on_cpu::mma_int8_k16(d, &a, &b, ASigned, BSigned);
#else
#define GCRT_MMA_SMALL(types)                                                                       \
  asm volatile("mma.sync.aligned.m8n8k16.row.col.s32." types ".s32 {%0, %1}, {%2}, {%3}, {%0, %1};" \
               : "+r"(d[0]), "+r"(d[1])                                                             \
               : "r"(a), "r"(b))
  if constexpr (ASigned && BSigned) {
    GCRT_MMA_SMALL("s8.s8");
  } else if constexpr (ASigned) {
    GCRT_MMA_SMALL("s8.u8");
  } else if constexpr (BSigned) {
    GCRT_MMA_SMALL("u8.s8");
  } else {
    GCRT_MMA_SMALL("u8.u8");
  }
#undef GCRT_MMA_SMALL
#endif
}
#endif

// d += a * b, float sums.
//   mma_f16, mma_bf16   m16n8k16; two elements to a register, the lower column in the lower half
//   mma_tf32            m16n8k8; floats of which the upper 19 bits count (round_to_tf32 rounds to them)
// mma_bf16 and mma_tf32 need sm_80: kernels choose another way below.
GCRT_DEVICE void mma_f16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
#if !GCRT_SM_80
  GCRT_UNROLL
  for (int half = 0; half < 2; ++half) mma_f16_k8(d, a + 2 * half, b[half]);
#elif !defined(__CUDACC__)
  cuda_on_cpu::mma_f16(d, a, b, 1, 1);
#else
  GCRT_MMA("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", "f");
#endif
}
GCRT_DEVICE void mma_bf16(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
#if !defined(__CUDACC__)
  cuda_on_cpu::mma_bf16(d, a, b, 1, 1);
#elif GCRT_SM_80
  GCRT_MMA("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "f");
#else
  static_cast<void>(d), static_cast<void>(a), static_cast<void>(b);
  __trap();
#endif
}
GCRT_DEVICE void mma_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
#if !defined(__CUDACC__)
  cuda_on_cpu::mma_tf32(d, a, b, 1, 1);
#elif GCRT_SM_80
  GCRT_MMA("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "f");
#else
  static_cast<void>(d), static_cast<void>(a), static_cast<void>(b);
  __trap();
#endif
}

// d += a * b over bytes, m16n8k32, exact modulo 2^32. TA and TB are int8_t or uint8_t.
template <class TA, class TB>
GCRT_DEVICE void mma_int8(std::int32_t (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  static_assert(sizeof(TA) == 1 && sizeof(TB) == 1, "bytes");
  constexpr bool a_signed = std::is_signed<TA>::value;
  constexpr bool b_signed = std::is_signed<TB>::value;
#if !GCRT_SM_80
  GCRT_UNROLL
  for (int i = 0; i < 4; ++i) mma_int8_k16<a_signed, b_signed>(d + i % 2 * 2, a[i], b[i / 2]);
#elif !defined(__CUDACC__)
  cuda_on_cpu::mma_int8(d, a, b, 1, 1, a_signed, b_signed);
#else
  if constexpr (a_signed && b_signed) {
    GCRT_MMA("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "r");
  } else if constexpr (a_signed) {
    GCRT_MMA("mma.sync.aligned.m16n8k32.row.col.s32.s8.u8.s32", "r");
  } else if constexpr (b_signed) {
    GCRT_MMA("mma.sync.aligned.m16n8k32.row.col.s32.u8.s8.s32", "r");
  } else {
    GCRT_MMA("mma.sync.aligned.m16n8k32.row.col.s32.u8.u8.s32", "r");
  }
#endif
}
#if defined(__CUDACC__)
#undef GCRT_MMA

// d = a * b: the instruction reads zeros that no register holds.
GCRT_DEVICE void mma_tf32_from_zero(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
#if GCRT_SM_80
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%10, %10, %10, %10};"
      : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "f"(0.0f));
#else
  mma_tf32(d, a, b);
#endif
}
#endif

// Rows x Columns products that share their fragments. On the machine a plain loop; on the emulator one
// meeting of the warp in place of Rows * Columns.
#define GCRT_MMA_TILES(name, element, call, emulated)                                    \
  template <int Rows, int Columns>                                                       \
  GCRT_DEVICE void name(element(&d)[Rows][Columns][4], const std::uint32_t(&a)[Rows][4], \
                        const std::uint32_t(&b)[Columns][2]) {                           \
    GCRT_MMA_TILES_BODY(call, emulated)                                                  \
  }
#if defined(__CUDACC__) || !GCRT_SM_80
#define GCRT_MMA_TILES_BODY(call, emulated)                      \
  GCRT_UNROLL                                                    \
  for (int r = 0; r < Rows; ++r) {                               \
    GCRT_UNROLL                                                  \
    for (int c = 0; c < Columns; ++c) call(d[r][c], a[r], b[c]); \
  }
#else
#define GCRT_MMA_TILES_BODY(call, emulated) emulated;
#endif
GCRT_MMA_TILES(mma_f16_tiles, float, mma_f16, cuda_on_cpu::mma_f16(&d[0][0][0], a[0], b[0], Rows, Columns))
GCRT_MMA_TILES(mma_bf16_tiles, float, mma_bf16, cuda_on_cpu::mma_bf16(&d[0][0][0], a[0], b[0], Rows, Columns))
GCRT_MMA_TILES(mma_tf32_tiles, float, mma_tf32, cuda_on_cpu::mma_tf32(&d[0][0][0], a[0], b[0], Rows, Columns))
#undef GCRT_MMA_TILES

// The products of floats that are sums of two parts which tf32 holds: large * large to `d`, both mixed ones
// to `corrections`, which the caller adds when all is summed (SplitSums). This keeps all but the last bits of
// a float product ("3xTF32"). Infinity has no finite rest: what becomes NaN by that stays in the corrections.
//
// Large products are summed apart and added to d by the FPU, to nearest: tensor cores cut their sums off
// toward zero (Fasi, Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021), and a sum
// of thousands of products that is cut off with each instruction shrinks by some 10^-5 of itself. Corrections
// are 2^-10 of the sums, and what is cut off of them too.
template <int Rows, int Columns>
GCRT_DEVICE void mma_tf32_by_parts(float (&d)[Rows][Columns][4], float (&corrections)[Rows][Columns][4],
                                   const std::uint32_t (&a_large)[Rows][4],
                                   const std::uint32_t (&a_small)[Rows][4],
                                   const std::uint32_t (&b_large)[Columns][2],
                                   const std::uint32_t (&b_small)[Columns][2]) {
#if defined(__CUDACC__)
  GCRT_UNROLL
  for (int r = 0; r < Rows; ++r) {
    float sums[Columns][4];
    GCRT_UNROLL
    for (int c = 0; c < Columns; ++c) mma_tf32_from_zero(sums[c], a_large[r], b_large[c]);
    GCRT_UNROLL
    for (int c = 0; c < Columns; ++c) mma_tf32(corrections[r][c], a_small[r], b_large[c]);
    GCRT_UNROLL
    for (int c = 0; c < Columns; ++c) mma_tf32(corrections[r][c], a_large[r], b_small[c]);
    GCRT_UNROLL
    for (int i = 0; i < 4 * Columns; ++i) d[r][i / 4][i % 4] += sums[i / 4][i % 4];
  }
#else
  cuda_on_cpu::mma_tf32_by_parts(&d[0][0][0], &corrections[0][0][0], a_large[0], a_small[0], b_large[0],
                                 b_small[0], Rows, Columns);
#endif
}

template <class TA, class TB, int Rows, int Columns>
GCRT_DEVICE void mma_int8_tiles(std::int32_t (&d)[Rows][Columns][4], const std::uint32_t (&a)[Rows][4],
                                const std::uint32_t (&b)[Columns][2]) {
#if defined(__CUDACC__) || !GCRT_SM_80
  GCRT_MMA_TILES_BODY((mma_int8<TA, TB>), )
#else
  cuda_on_cpu::mma_int8(&d[0][0][0], a[0], b[0], Rows, Columns, std::is_signed<TA>::value,
                        std::is_signed<TB>::value);
#endif
}
#undef GCRT_MMA_TILES_BODY

// The bits of four floats such that their upper 19, all that mma_tf32 reads, are the nearest values with 10
// bits of fraction, ties away from zero. Infinity stays infinity. Of a NaN and its neighbours nothing is
// rounded: the addition would carry over from the NaN that arithmetic gives, 0x7fffffff, into the sign.
GCRT_DEVICE void round_to_tf32(std::uint32_t (&bits)[4], const float (&values)[4]) {
  std::uint32_t half = 0;  // of the last place
#if defined(__CUDA_ARCH__)
  asm("{\n"
      ".reg .pred first, both;\n"
      "setp.num.f32 first, %1, %2;\n"
      "setp.num.and.f32 both, %3, %4, first;\n"
      "selp.u32 %0, 0x1000, 0, both;\n"
      "}"
      : "=r"(half)
      : "f"(values[0]), "f"(values[1]), "f"(values[2]), "f"(values[3]));
#else
  bool are_numbers = true;
  for (const float value : values) are_numbers = are_numbers && value == value;
  if (are_numbers) half = 0x1000u;
#endif
  GCRT_UNROLL
  for (int i = 0; i < 4; ++i) {
    memcpy(&bits[i], &values[i], sizeof(bits[i]));
    bits[i] += half;
  }
}

// What a float has beyond its upper 19 bits, all that mma_tf32 reads: exact, and at most 13 bits; NaN where
// the value is NaN or infinite.
GCRT_DEVICE std::uint32_t rest_of_tf32(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  bits &= 0xffffe000u;
  float cut;
  memcpy(&cut, &bits, sizeof(cut));
  const float rest = value - cut;
  memcpy(&bits, &rest, sizeof(bits));
  return bits;
}

// acc + the sum of four products of bytes, modulo 2^32. TA and TB are int8_t or uint8_t.
template <class TA, class TB>
GCRT_DEVICE std::int32_t dot4(std::int32_t acc, std::uint32_t a, std::uint32_t b) {
  static_assert(sizeof(TA) == 1 && sizeof(TB) == 1, "bytes");
#if defined(__CUDA_ARCH__)
  if constexpr (std::is_signed<TA>::value && std::is_signed<TB>::value) {
    asm("dp4a.s32.s32 %0, %1, %2, %0;" : "+r"(acc) : "r"(a), "r"(b));
  } else if constexpr (std::is_signed<TA>::value) {
    asm("dp4a.s32.u32 %0, %1, %2, %0;" : "+r"(acc) : "r"(a), "r"(b));
  } else if constexpr (std::is_signed<TB>::value) {
    asm("dp4a.u32.s32 %0, %1, %2, %0;" : "+r"(acc) : "r"(a), "r"(b));
  } else {
    asm("dp4a.u32.u32 %0, %1, %2, %0;" : "+r"(acc) : "r"(a), "r"(b));
  }
  return acc;
#else
  std::uint32_t sum = static_cast<std::uint32_t>(acc);
  for (int i = 0; i < 4; ++i) {
    const std::int32_t x = static_cast<TA>(a >> (8 * i));
    const std::int32_t y = static_cast<TB>(b >> (8 * i));
    sum += static_cast<std::uint32_t>(x * y);
  }
  return static_cast<std::int32_t>(sum);
#endif
}

}  // namespace GCRT_NAMESPACE
