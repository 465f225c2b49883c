// The vendor's header of intrinsics, where there is one. Only isa*.h may use what it declares.
#pragma once

#include "gcrt/config.h"

// CUDA code takes the portable bodies on the host, and the device has instructions of its own.
#if !GCRT_CUDA && (defined(__x86_64__) || defined(__i386__))
#define GCRT_X86 1
#else
#define GCRT_X86 0
#endif

#if GCRT_X86
#include <immintrin.h>
#elif !GCRT_CUDA && defined(__aarch64__)
#include <arm_neon.h>
#endif
