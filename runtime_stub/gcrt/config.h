// Names, widths and compiler switches shared by every runtime header.
#pragma once

// The least versions of compilers that this is compiled and tested with.
#if defined(__cplusplus) && __cplusplus < 201703L
#error "C++17 is needed: -std=c++17, or CXX_STANDARD 17 in CMake"
#elif defined(__CUDACC__) && defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ < 13
#error "nvcc 13 or later is needed (CUDA Toolkit 13.0)"
#elif defined(__clang__) && __clang_major__ < 13
#error "Clang 13 or later is needed"
#elif defined(__GNUC__) && !defined(__clang__) && __GNUC__ < 12
#error "GCC 12 or later is needed, arm-none-eabi-g++ and other cross compilers included"
#elif !defined(__GNUC__) && !defined(__CUDACC__)
#error "GCC or Clang is needed: the kernels are written with their vector types"
#endif

#include <cstddef>
#include <cstdint>

// Each model compiles the runtime in a namespace of its own, so that two models built with different
// machine flags never share one copy of an inline function.
#ifndef GCRT_NAMESPACE
#define GCRT_NAMESPACE gcrt
#endif

// CUDA code, compiled by nvcc or for the CPU emulator (cuda/device.h, which such code includes first), has
// packs of its own (cuda/pack.h) and none of the machine's instructions: GCRT_CUDA is 1.
#if defined(__CUDACC__) && !defined(GCRT_CUDA)
#define GCRT_CUDA 1
#elif !defined(GCRT_CUDA)
#define GCRT_CUDA 0
#endif

// Bytes of one machine vector. Override with -DGCRT_VECTOR_BYTES=16|32|64 to try a width: packs are legal
// at every width, the compiler splits those that are wider than the machine.
#ifndef GCRT_VECTOR_BYTES
#if GCRT_CUDA
#define GCRT_VECTOR_BYTES 16
#elif defined(__AVX512F__)
#define GCRT_VECTOR_BYTES 64
#elif defined(__AVX__)
#define GCRT_VECTOR_BYTES 32
#else
#define GCRT_VECTOR_BYTES 16
#endif
#endif

#if GCRT_CUDA
#define GCRT_INLINE __host__ __device__ __forceinline__
#else
#define GCRT_INLINE __attribute__((always_inline)) inline
#endif
#if defined(__CUDACC__)
#define GCRT_LAMBDA_INLINE
#else
#define GCRT_LAMBDA_INLINE __attribute__((always_inline))
#endif
#define GCRT_NOINLINE __attribute__((noinline))
#define GCRT_RESTRICT __restrict__

// Full unrolling of a loop over registers. Without it an array of accumulators lives on the stack.
#if defined(__CUDA_ARCH__)
#define GCRT_UNROLL _Pragma("unroll")
#elif defined(__CUDACC__)
#define GCRT_UNROLL
#else
#define GCRT_UNROLL _Pragma("GCC unroll 64")
#endif

// What assembly statements call a vector register.
#if GCRT_CUDA
#elif defined(__AVX512F__)
#define GCRT_VECTOR_REGISTER "v"  // "x" would name only the first 16
#elif defined(__x86_64__) || defined(__i386__)
#define GCRT_VECTOR_REGISTER "x"
#elif defined(__aarch64__) || defined(__ARM_NEON)
#define GCRT_VECTOR_REGISTER "w"
#endif

// g++ 12 hoists the products of integer kernels and spills every accumulator; this empty statement after
// each accumulation pins the value to a vector register and keeps the order. `value` must be an lvalue.
#ifdef GCRT_VECTOR_REGISTER
#define GCRT_KEEP_IN_REGISTER(value) asm volatile("" : "+" GCRT_VECTOR_REGISTER(value))
#else
#define GCRT_KEEP_IN_REGISTER(value) static_cast<void>(value)
#endif

// Of a loop whose body fills the registers twice, one part after the other: g++ 12 moves the constants of the
// second part in front of the loop, and spills what the first part sums for them.
#if defined(__GNUC__) && !defined(__clang__) && !GCRT_CUDA
#define GCRT_LEAVE_CONSTANTS __attribute__((optimize("no-move-loop-invariants")))
#else
#define GCRT_LEAVE_CONSTANTS
#endif

// Makes the compiler forget what it knows of an integer or a pointer: g++ 12 moves loads that both sides of a
// branch begin with in front of it, and spills them there.
#if GCRT_CUDA
#define GCRT_FORGET(value) static_cast<void>(value)
#else
#define GCRT_FORGET(value) asm volatile("" : "+r"(value))
#endif

// Packs wider than the machine travel between inlined functions only, so their calling convention never
// shows in an object file. g++ prints its notes on them all the same unless -Wno-psabi is given.
#if defined(__GNUC__) && !GCRT_CUDA
#pragma GCC diagnostic ignored "-Wpsabi"
#endif

// Bytes of the widest vector the compiler may use, whatever GCRT_VECTOR_BYTES says. Packs that are no vectors
// have no such bound.
#if GCRT_CUDA
#define GCRT_NATIVE_BYTES 4096
#elif defined(__AVX512F__)
#define GCRT_NATIVE_BYTES 64
#elif defined(__AVX__)
#define GCRT_NATIVE_BYTES 32
#else
#define GCRT_NATIVE_BYTES 16
#endif

namespace GCRT_NAMESPACE {

// Lanes of 32 bits in one machine vector.
constexpr int kLanes = GCRT_VECTOR_BYTES / 4;

constexpr std::ptrdiff_t ceil_div(std::ptrdiff_t a, std::ptrdiff_t b) { return (a + b - 1) / b; }

}  // namespace GCRT_NAMESPACE
