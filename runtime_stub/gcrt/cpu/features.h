// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// Optional instructions of x86 processors and, under Linux, those of ARM: those that a source is compiled to
// use, and those that this machine has. Elsewhere none are asked for: both sets are empty. Sources: Intel SDM
// volume 2, CPUID and XGETBV; x86-64 psABI, micro-architecture levels; Linux, Documentation/arm64/
// elf_hwcaps.rst and arch/arm/include/uapi/asm/hwcap.h; Arm C Language Extensions, feature test macros.
#pragma once

#include "gcrt/config.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__linux__) && (defined(__aarch64__) || defined(__arm__))
#include <sys/auxv.h>
#endif

namespace GCRT_NAMESPACE {

// A set of instruction groups: bit i is row i of kFeatures.
using Features = std::uint64_t;

// A predefined macro is 1 where the compiler may use what it names, and else expands to its own name.
#define GCRT_TEXT_OF(macro) #macro
#define GCRT_IS_ONE(macro) (GCRT_TEXT_OF(macro)[0] == '1')

#if defined(__x86_64__) || defined(__i386__)

// Words that CPUID answers, by leaf and register.
enum CpuidWord : int { k1C, k7B, k7C, k7D, k7_1A, kExtendedC, kCpuidWords };

// Registers that the operating system must save when it switches threads, as bits of XCR0.
enum SavedRegisters : unsigned { kNone = 0, kYmm = 0x06, kZmm = 0xe6 };

struct FeatureRow {
  bool is_compiled;  // the compiler may use it in the source that includes this
  CpuidWord word;
  int bit;
  SavedRegisters registers;
};

constexpr FeatureRow kFeatures[] = {
    {GCRT_IS_ONE(__SSE3__), k1C, 0, kNone},
    {GCRT_IS_ONE(__SSSE3__), k1C, 9, kNone},
    {GCRT_IS_ONE(__SSE4_1__), k1C, 19, kNone},
    {GCRT_IS_ONE(__SSE4_2__), k1C, 20, kNone},
    {GCRT_IS_ONE(__MOVBE__), k1C, 22, kNone},
    {GCRT_IS_ONE(__POPCNT__), k1C, 23, kNone},
    {GCRT_IS_ONE(__LZCNT__), kExtendedC, 5, kNone},
    {GCRT_IS_ONE(__BMI__), k7B, 3, kNone},
    {GCRT_IS_ONE(__BMI2__), k7B, 8, kNone},
    {GCRT_IS_ONE(__AVX__), k1C, 28, kYmm},
    {GCRT_IS_ONE(__F16C__), k1C, 29, kYmm},
    {GCRT_IS_ONE(__FMA__), k1C, 12, kYmm},
    {GCRT_IS_ONE(__XOP__), kExtendedC, 11, kYmm},
    {GCRT_IS_ONE(__FMA4__), kExtendedC, 16, kYmm},
    {GCRT_IS_ONE(__AVX2__), k7B, 5, kYmm},
    {GCRT_IS_ONE(__AVXVNNI__), k7_1A, 4, kYmm},
    {GCRT_IS_ONE(__AVX512F__), k7B, 16, kZmm},
    {GCRT_IS_ONE(__AVX512DQ__), k7B, 17, kZmm},
    {GCRT_IS_ONE(__AVX512IFMA__), k7B, 21, kZmm},
    {GCRT_IS_ONE(__AVX512CD__), k7B, 28, kZmm},
    {GCRT_IS_ONE(__AVX512BW__), k7B, 30, kZmm},
    {GCRT_IS_ONE(__AVX512VL__), k7B, 31, kZmm},
    {GCRT_IS_ONE(__AVX512VBMI__), k7C, 1, kZmm},
    {GCRT_IS_ONE(__AVX512VBMI2__), k7C, 6, kZmm},
    {GCRT_IS_ONE(__AVX512VNNI__), k7C, 11, kZmm},
    {GCRT_IS_ONE(__AVX512BITALG__), k7C, 12, kZmm},
    {GCRT_IS_ONE(__AVX512VPOPCNTDQ__), k7C, 14, kZmm},
    {GCRT_IS_ONE(__AVX512FP16__), k7D, 23, kZmm},
    {GCRT_IS_ONE(__AVX512BF16__), k7_1A, 5, kZmm},
};

#elif defined(__linux__) && (defined(__aarch64__) || defined(__arm__))

// Words that the kernel tells a program, by their place in the auxiliary vector.
enum HardwareWord : unsigned long { kHardware = 16, kHardware2 = 26 };

struct FeatureRow {
  bool is_compiled;  // the compiler may use it in the source that includes this
  HardwareWord word;
  int bit;
};

constexpr FeatureRow kFeatures[] = {
#if defined(__aarch64__)
    {GCRT_IS_ONE(__ARM_FEATURE_CRC32), kHardware, 7},
    {GCRT_IS_ONE(__ARM_FEATURE_ATOMICS), kHardware, 8},
    {GCRT_IS_ONE(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC), kHardware, 10},
    {GCRT_IS_ONE(__ARM_FEATURE_QRDMX), kHardware, 12},
    {GCRT_IS_ONE(__ARM_FEATURE_JCVT), kHardware, 13},
    {GCRT_IS_ONE(__ARM_FEATURE_COMPLEX), kHardware, 14},
    {GCRT_IS_ONE(__ARM_FEATURE_DOTPROD), kHardware, 20},
    {GCRT_IS_ONE(__ARM_FEATURE_SVE), kHardware, 22},
    {GCRT_IS_ONE(__ARM_FEATURE_FP16_FML), kHardware, 23},
    {GCRT_IS_ONE(__ARM_FEATURE_SVE2), kHardware2, 1},
    {GCRT_IS_ONE(__ARM_FEATURE_MATMUL_INT8), kHardware2, 13},
    {GCRT_IS_ONE(__ARM_FEATURE_BF16), kHardware2, 14},
#else
    {GCRT_IS_ONE(__ARM_NEON), kHardware, 12},
    {GCRT_IS_ONE(__ARM_FEATURE_FMA), kHardware, 16},
    {GCRT_IS_ONE(__ARM_FEATURE_IDIV), kHardware, 17},
    {GCRT_IS_ONE(__ARM_FEATURE_DOTPROD), kHardware, 24},
#endif
};

#else

struct FeatureRow {
  bool is_compiled;
};
constexpr FeatureRow kFeatures[] = {{false}};

#endif

#undef GCRT_IS_ONE
#undef GCRT_TEXT_OF

// What the source that includes this is compiled to use.
constexpr Features compiled_features() {
  Features features = 0;
  int row = 0;
  for (const FeatureRow& feature : kFeatures) features |= Features{feature.is_compiled} << row++;
  return features;
}

#if defined(__x86_64__) || defined(__i386__)

// Instructions on registers that the operating system does not save are none.
inline Features machine_features() {
  unsigned words[kCpuidWords] = {};
  unsigned unused = 0, edx = 0;
  __get_cpuid_count(1, 0, &unused, &unused, &words[k1C], &unused);
  __get_cpuid_count(7, 0, &unused, &words[k7B], &words[k7C], &words[k7D]);
  __get_cpuid_count(7, 1, &words[k7_1A], &unused, &unused, &unused);
  __get_cpuid_count(0x80000001u, 0, &unused, &unused, &words[kExtendedC], &unused);
  unsigned saved = 0;
  constexpr unsigned kHasXgetbv = 1u << 27;
  if ((words[k1C] & kHasXgetbv) != 0) asm volatile("xgetbv" : "=a"(saved), "=d"(edx) : "c"(0));

  Features features = 0;
  int row = 0;
  for (const FeatureRow& feature : kFeatures) {
    const bool is_there = (words[feature.word] >> feature.bit & 1) != 0;
    const bool is_saved = (saved & feature.registers) == feature.registers;
    features |= Features{is_there && is_saved} << row++;
  }
  return features;
}

#elif defined(__linux__) && (defined(__aarch64__) || defined(__arm__))

inline Features machine_features() {
  Features features = 0;
  int row = 0;
  for (const FeatureRow& feature : kFeatures) {
    features |= Features{(getauxval(feature.word) >> feature.bit & 1) != 0} << row++;
  }
  return features;
}

#else

inline Features machine_features() { return 0; }

#endif

}  // namespace GCRT_NAMESPACE
