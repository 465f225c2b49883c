// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Products of warpgroups (wgmma) on sm_90a. Included by cuda/product/hopper.h.
//
// D[64][N] += A[64][k] * B[k][N] over 32 bytes of depth: k is 16 for types of 16 bits, 8 for TF32. Of thread
// l of warp w of the warpgroup, with p elements in a register:
//   d[4j + i]  row 16w + l/4 + 8 (i/2), column 8j + 2 (l%4) + i%2
//   a[i]       row 16w + l/4 + 8 (i%2), columns p (l%4 + 4 (i/2)) and on
// (PTX ISA, "Asynchronous warpgroup level matrix instructions"). B, and A where it is not in registers, lie
// in shared memory as copies with a swizzle of 128 bytes leave them:
// rows of 128 bytes, contiguous along the depth.
#pragma once

#include <cstdint>

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

enum class WgmmaKind { kF16, kBf16, kTf32 };

// Bytes of one row in shared memory, and of 8 rows, after which the swizzle repeats.
constexpr int kSwizzleBytes = 128;
constexpr int kSwizzlePattern = 8 * kSwizzleBytes;
// Bytes of depth that one product takes.
constexpr int kWgmmaDepthBytes = 32;

// The matrix descriptor of rows from `shared` on, which is a multiple of kSwizzlePattern: address in units of
// 16 bytes; leading offset 1, which has no meaning here; from 8 rows to the next 8; swizzle of 128 bytes.
GCRT_DEVICE std::uint64_t wgmma_descriptor(const void* shared) {
  const std::uint64_t start = (shared_address(shared) & 0x3ffffu) >> 4;
  return start | std::uint64_t{1} << 16 | std::uint64_t{kSwizzlePattern >> 4} << 32 | std::uint64_t{1} << 62;
}
// The descriptor of the same rows, `products` products further along the depth.
GCRT_DEVICE std::uint64_t advanced(std::uint64_t descriptor, int products) {
  return descriptor + static_cast<std::uint64_t>(products * (kWgmmaDepthBytes >> 4));
}

// Before the first product of a group, and whenever registers of sums or of A were touched
// since the last one.
GCRT_DEVICE void wgmma_fence() {
#if defined(GCRT_SM_90A)
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#elif !defined(__CUDACC__)
  cuda_on_cpu::wgmma_fence();
#endif
}
GCRT_DEVICE void wgmma_commit() {
#if defined(GCRT_SM_90A)
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#elif !defined(__CUDACC__)
  cuda_on_cpu::wgmma_commit();
#endif
}
// Waits until at most `Pending` groups, the latest, are under way. Sums and registers of A must not be
// touched, and shared memory must stay, until their group has ended.
template <int Pending>
GCRT_DEVICE void wgmma_wait() {
#if defined(GCRT_SM_90A)
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(Pending) : "memory");
#elif !defined(__CUDACC__)
  cuda_on_cpu::wgmma_wait(Pending);
#endif
}

#if defined(GCRT_SM_90A)
// The sums as operands 0 to N/2 - 1 of an instruction, by name and by value.
#define GCRT_NAMES_32                                                      \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define GCRT_NAMES_64                                                                \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "           \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define GCRT_NAMES_128                                                                           \
  "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                       \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "             \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "             \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "             \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "             \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "             \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
#define GCRT_SUMS_8(i)                                                                        \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])
#define GCRT_SUMS_32(i) GCRT_SUMS_8(i), GCRT_SUMS_8(i + 8), GCRT_SUMS_8(i + 16), GCRT_SUMS_8(i + 24)
#define GCRT_SUMS_64(i) GCRT_SUMS_32(i), GCRT_SUMS_32(i + 32)
#define GCRT_SUMS_128(i) GCRT_SUMS_64(i), GCRT_SUMS_64(i + 64)

// n: columns; sums: of a thread; first to last: numbers of the operands behind them; scales: 1 for "d is
// added to", signs, and no transposition.
#define GCRT_WGMMA_SHARED(n, sums, first, second, types, scales)                   \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #n types " {" GCRT_NAMES_##sums \
               "}, %" #first ", %" #second ", " scales ";"                         \
               : GCRT_SUMS_##sums(0)                                               \
               : "l"(descriptor_a), "l"(descriptor_b))
#define GCRT_WGMMA_REGISTERS(n, sums, r0, r1, r2, r3, last, types, scales)            \
  asm volatile("wgmma.mma_async.sync.aligned.m64n" #n types " {" GCRT_NAMES_##sums    \
               "}, {%" #r0 ", %" #r1 ", %" #r2 ", %" #r3 "}, %" #last ", " scales ";" \
               : GCRT_SUMS_##sums(0)                                                  \
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(descriptor_b))
#define GCRT_WGMMA_OF_WIDTH(form, ...)                 \
  if constexpr (N == 64) {                             \
    GCRT_WGMMA_##form##_64(__VA_ARGS__);               \
  } else if constexpr (N == 128) {                     \
    GCRT_WGMMA_##form##_128(__VA_ARGS__);              \
  } else {                                             \
    static_assert(N == 256, "64, 128 or 256 columns"); \
    GCRT_WGMMA_##form##_256(__VA_ARGS__);              \
  }
#define GCRT_WGMMA_SHARED_64(types, scales) GCRT_WGMMA_SHARED(64, 32, 32, 33, types, scales)
#define GCRT_WGMMA_SHARED_128(types, scales) GCRT_WGMMA_SHARED(128, 64, 64, 65, types, scales)
#define GCRT_WGMMA_SHARED_256(types, scales) GCRT_WGMMA_SHARED(256, 128, 128, 129, types, scales)
#define GCRT_WGMMA_REGISTERS_64(types, scales) GCRT_WGMMA_REGISTERS(64, 32, 32, 33, 34, 35, 36, types, scales)
#define GCRT_WGMMA_REGISTERS_128(types, scales) \
  GCRT_WGMMA_REGISTERS(128, 64, 64, 65, 66, 67, 68, types, scales)
#define GCRT_WGMMA_REGISTERS_256(types, scales) \
  GCRT_WGMMA_REGISTERS(256, 128, 128, 129, 130, 131, 132, types, scales)
#endif

// Adds the product of both operands in shared memory.
template <WgmmaKind K, int N>
GCRT_DEVICE void wgmma(float (&d)[N / 2], std::uint64_t descriptor_a, std::uint64_t descriptor_b) {
#if defined(GCRT_SM_90A)
  if constexpr (K == WgmmaKind::kF16) {
    GCRT_WGMMA_OF_WIDTH(SHARED, "k16.f32.f16.f16", "1, 1, 1, 0, 0")
  } else if constexpr (K == WgmmaKind::kBf16) {
    GCRT_WGMMA_OF_WIDTH(SHARED, "k16.f32.bf16.bf16", "1, 1, 1, 0, 0")
  } else {
    GCRT_WGMMA_OF_WIDTH(SHARED, "k8.f32.tf32.tf32", "1, 1, 1")
  }
#elif defined(__CUDACC__)
  static_cast<void>(d), static_cast<void>(descriptor_a), static_cast<void>(descriptor_b);
  __trap();
#else
  cuda_on_cpu::wgmma(static_cast<cuda_on_cpu::WgmmaType>(K), N, d, nullptr, descriptor_a, descriptor_b);
#endif
}

// The same with A in registers.
template <WgmmaKind K, int N>
GCRT_DEVICE void wgmma(float (&d)[N / 2], const std::uint32_t (&a)[4], std::uint64_t descriptor_b) {
#if defined(GCRT_SM_90A)
  if constexpr (K == WgmmaKind::kF16) {
    GCRT_WGMMA_OF_WIDTH(REGISTERS, "k16.f32.f16.f16", "1, 1, 1, 0")
  } else if constexpr (K == WgmmaKind::kBf16) {
    GCRT_WGMMA_OF_WIDTH(REGISTERS, "k16.f32.bf16.bf16", "1, 1, 1, 0")
  } else {
    GCRT_WGMMA_OF_WIDTH(REGISTERS, "k8.f32.tf32.tf32", "1, 1, 1")
  }
#elif defined(__CUDACC__)
  static_cast<void>(d), static_cast<void>(a), static_cast<void>(descriptor_b);
  __trap();
#else
  cuda_on_cpu::wgmma(static_cast<cuda_on_cpu::WgmmaType>(K), N, d, a, 0, descriptor_b);
#endif
}

#if defined(GCRT_SM_90A)
#undef GCRT_NAMES_32
#undef GCRT_NAMES_64
#undef GCRT_NAMES_128
#undef GCRT_SUMS_8
#undef GCRT_SUMS_32
#undef GCRT_SUMS_64
#undef GCRT_SUMS_128
#undef GCRT_WGMMA_SHARED
#undef GCRT_WGMMA_REGISTERS
#undef GCRT_WGMMA_OF_WIDTH
#undef GCRT_WGMMA_SHARED_64
#undef GCRT_WGMMA_SHARED_128
#undef GCRT_WGMMA_SHARED_256
#undef GCRT_WGMMA_REGISTERS_64
#undef GCRT_WGMMA_REGISTERS_128
#undef GCRT_WGMMA_REGISTERS_256
#endif

}  // namespace GCRT_NAMESPACE
