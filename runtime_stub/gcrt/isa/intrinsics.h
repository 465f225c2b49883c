// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// The vendor's header of intrinsics, where there is one. Only headers of gcrt/isa may use what it declares.
#pragma once

#include "gcrt/config.h"

// CUDA code takes the portable bodies on the host, and the device has instructions of its own.
#if !GCRT_CUDA && (defined(__x86_64__) || defined(__i386__))
#define GCRT_X86 1
#else
#define GCRT_X86 0
#endif

// Vectors of ARM: of all AArch64 processors, and of those 32-bit ones that the compiler was told of.
#if !GCRT_CUDA && (defined(__aarch64__) || defined(__ARM_NEON))
#define GCRT_NEON 1
#else
#define GCRT_NEON 0
#endif
#if GCRT_NEON && defined(__aarch64__)
#define GCRT_NEON64 1
#else
#define GCRT_NEON64 0
#endif

#if GCRT_X86
#include <immintrin.h>
#elif GCRT_NEON
#include <arm_neon.h>
#endif
