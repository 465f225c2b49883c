// Optional instructions of x86 processors: those that a source is compiled to use, and those that this
// machine has. Other architectures have none that are asked for: both sets are empty. Sources: Intel SDM
// volume 2, CPUID and XGETBV; x86-64 psABI, micro-architecture levels.
#pragma once

#include "gcrt/config.h"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace GCRT_NAMESPACE {

// A set of instruction groups: bit i is row i of kFeatures.
using Features = std::uint64_t;

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

// A predefined macro is 1 where the compiler may use what it names, and else expands to its own name.
#define GCRT_TEXT_OF(macro) #macro
#define GCRT_IS_ONE(macro) (GCRT_TEXT_OF(macro)[0] == '1')

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

#undef GCRT_IS_ONE
#undef GCRT_TEXT_OF

// What the source that includes this is compiled to use.
constexpr Features compiled_features() {
  Features features = 0;
  int row = 0;
  for (const FeatureRow& feature : kFeatures) features |= Features{feature.is_compiled} << row++;
  return features;
}

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

#else

constexpr Features compiled_features() { return 0; }
inline Features machine_features() { return 0; }

#endif

}  // namespace GCRT_NAMESPACE
