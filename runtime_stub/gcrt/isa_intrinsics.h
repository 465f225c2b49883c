// The vendor's header of intrinsics, where there is one. Only isa*.h may use what it declares.
#pragma once

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif
