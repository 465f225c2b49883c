// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What the machine does at most: multiply-adds of floats, dot products of bytes, bytes read. Host code.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <vector>

#include "gcrt/parallel.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace GCRT_NAMESPACE {

// Every loop is compiled for the instructions that it measures, and chosen when it runs: the figures are the
// machine's, whatever flags a build has.
// Twelve chains hide the latency; more would not fit into 16 registers.
#define GCRT_PEAK_LOOP(NAME, TARGET, VECTOR, STEP)                   \
  TARGET GCRT_NOINLINE inline void NAME(std::ptrdiff_t count) {      \
    VECTOR a[12], x, y;                                              \
    std::memset(&x, 0, sizeof x);                                    \
    std::memset(&y, 0, sizeof y);                                    \
    GCRT_KEEP_IN_REGISTER(x); /* nothing is known of the operands */ \
    GCRT_KEEP_IN_REGISTER(y);                                        \
    GCRT_UNROLL for (VECTOR & chain : a) chain = x;                  \
    for (std::ptrdiff_t k = 0; k < count; ++k) {                     \
      GCRT_UNROLL for (int i = 0; i < 12; ++i) {                     \
        a[i] = STEP;                                                 \
        GCRT_KEEP_IN_REGISTER(a[i]);                                 \
      }                                                              \
    }                                                                \
  }

// `run(count)` does `count` times `operations`. Null: this machine has none that is known here.
struct PeakLoop {
  const char* instructions;
  double operations;
  void (*run)(std::ptrdiff_t count);
};

#if defined(__x86_64__)
#define GCRT_PEAK_TARGET(names) __attribute__((target(names)))
GCRT_PEAK_LOOP(floats_16, , __m128, _mm_add_ps(_mm_mul_ps(a[i], x), y))
GCRT_PEAK_LOOP(floats_32, GCRT_PEAK_TARGET("avx2,fma"), __m256, _mm256_fmadd_ps(a[i], x, y))
GCRT_PEAK_LOOP(floats_64, GCRT_PEAK_TARGET("avx512f"), __m512, _mm512_fmadd_ps(a[i], x, y))
GCRT_PEAK_LOOP(bytes_32, GCRT_PEAK_TARGET("avx2"), __m256i,
               _mm256_add_epi32(a[i], _mm256_madd_epi16(_mm256_maddubs_epi16(a[i], x), y)))
GCRT_PEAK_LOOP(bytes_32_vnni, GCRT_PEAK_TARGET("avx2,avxvnni"), __m256i, _mm256_dpbusd_avx_epi32(a[i], x, y))
GCRT_PEAK_LOOP(bytes_64_vnni, GCRT_PEAK_TARGET("avx512f,avx512vnni"), __m512i,
               _mm512_dpbusd_epi32(a[i], x, y))

inline PeakLoop float_peak() {
  if (__builtin_cpu_supports("avx512f")) return {"FMA, 64 bytes", 12 * 32, floats_64};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    return {"FMA, 32 bytes", 12 * 16, floats_32};
  }
  return {"multiply and add, 16 bytes", 12 * 8, floats_16};
}

inline PeakLoop byte_peak() {
  if (__builtin_cpu_supports("avx512vnni")) return {"vpdpbusd, 64 bytes", 12 * 128, bytes_64_vnni};
  if (!__builtin_cpu_supports("avx2")) return {};
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool has_vnni = __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1u) != 0;
  if (has_vnni) return {"vpdpbusd, 32 bytes", 12 * 64, bytes_32_vnni};
  return {"vpmaddubsw, vpmaddwd, vpaddd, 32 bytes", 12 * 64, bytes_32};
}
#elif defined(__aarch64__)
GCRT_PEAK_LOOP(floats_16, , float32x4_t, vfmaq_f32(y, a[i], x))

inline PeakLoop float_peak() { return {"FMLA, 16 bytes", 12 * 8, floats_16}; }
#if defined(__ARM_FEATURE_DOTPROD)
GCRT_PEAK_LOOP(bytes_16, , int32x4_t, vdotq_s32(a[i], vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(y)))

inline PeakLoop byte_peak() { return {"SDOT, 16 bytes", 12 * 32, bytes_16}; }
#else
inline PeakLoop byte_peak() { return {}; }
#endif
#else
inline PeakLoop float_peak() { return {}; }
inline PeakLoop byte_peak() { return {}; }
#endif

// Seconds of the fastest of `rounds` calls.
template <class F>
double fastest(int rounds, const F& call) {
  double best = 1e30;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    call();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

// 10^9 operations a second of all threads together; a multiply-add counts as two. 0: unknown.
inline double peak_rate(const PeakLoop& loop, const Threads* threads, int rounds = 10) {
  if (loop.run == nullptr) return 0;
  const std::ptrdiff_t count = 50000, parts = threads != nullptr ? threads->count : 1;
  const double seconds = fastest(rounds, [&] {
    parallel_for(threads, parts, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      for (std::ptrdiff_t i = begin; i < end; ++i) loop.run(count);
    });
  });
  return loop.operations * static_cast<double>(count * parts) / seconds / 1e9;
}

// 10^9 bytes a second at which all threads together read a block of `bytes` that they have read before: the
// rate of the cache that holds it, or of memory.
inline double read_rate(std::size_t bytes, const Threads* threads, int rounds = 5) {
  typedef std::int32_t Vector __attribute__((vector_size(16)));
  const std::ptrdiff_t parts = threads != nullptr ? threads->count : 1, lines = 64 / sizeof(Vector);
  const std::ptrdiff_t length = std::max<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(bytes) / 64 / parts, 1);
  const std::vector<Vector> block(static_cast<std::size_t>(length * parts * lines));
  // So often that a small block takes longer than the start of the threads.
  const std::ptrdiff_t repeat = std::max<std::ptrdiff_t>(1, (4 << 20) / (length * parts * 64));
  const double seconds = fastest(rounds + 1, [&] {
    parallel_for(threads, parts, [&](std::ptrdiff_t begin, std::ptrdiff_t end) {
      for (std::ptrdiff_t i = begin * repeat; i < end * repeat; ++i) {
        const Vector* line = block.data() + i / repeat * length * lines;
        Vector sums[4] = {};
        for (std::ptrdiff_t k = 0; k < length; ++k, line += lines) {
          GCRT_UNROLL for (int j = 0; j < 4; ++j) sums[j] += line[j];
        }
        GCRT_UNROLL for (int j = 0; j < 4; ++j) GCRT_KEEP_IN_REGISTER(sums[j]);
      }
    });
  });
  return static_cast<double>(length * parts * repeat * 64) / seconds / 1e9;
}

}  // namespace GCRT_NAMESPACE
