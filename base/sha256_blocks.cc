#include "base/sha256_blocks.h"

#include <bit>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace gcompile {
namespace {

constexpr std::size_t kBlockBytes = 64;

// FIPS 180-4, 4.2.2: fractional parts of the cube roots of the first 64 primes.
alignas(16) constexpr std::uint32_t kRoundConstants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t load_big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
         bytes[3];
}

void expand_message(const std::uint8_t* block, std::uint32_t (&schedule)[64]) {
  for (int t = 0; t < 16; ++t) schedule[t] = load_big_endian(block + 4 * t);
  for (int t = 16; t < 64; ++t) {
    const std::uint32_t early = schedule[t - 15];
    const std::uint32_t late = schedule[t - 2];
    const std::uint32_t sigma0 = std::rotr(early, 7) ^ std::rotr(early, 18) ^ (early >> 3);
    const std::uint32_t sigma1 = std::rotr(late, 17) ^ std::rotr(late, 19) ^ (late >> 10);
    schedule[t] = schedule[t - 16] + sigma0 + schedule[t - 7] + sigma1;
  }
}

#if defined(__x86_64__)

#define GCOMPILE_SHA __attribute__((target("sha,sse4.1,ssse3")))

bool has_sha_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  const bool has_shuffles = (c & (1u << 9)) != 0 && (c & (1u << 19)) != 0;  // SSSE3, SSE4.1
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return has_shuffles && (b & (1u << 29)) != 0;
}

/// Four rounds with the words `w` of the schedule; the halves of the state come back rounded.
GCOMPILE_SHA inline void four_rounds(__m128i& abef, __m128i& cdgh, __m128i w,
                                     const std::uint32_t* constants) {
  const __m128i sums = _mm_add_epi32(w, _mm_load_si128(reinterpret_cast<const __m128i*>(constants)));
  cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sums);
  abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sums, 0x0e));
}

/// The four words that follow 16 words of the schedule.
GCOMPILE_SHA inline __m128i next_words(__m128i w0, __m128i w1, __m128i w2, __m128i w3) {
  const __m128i sums = _mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), _mm_alignr_epi8(w3, w2, 4));
  return _mm_sha256msg2_epu32(sums, w3);
}

/// Intel, "SHA extensions", 2013: the state lies as ABEF and CDGH.
GCOMPILE_SHA void absorb_by_instructions(std::uint32_t* state, const std::uint8_t* data, std::size_t blocks) {
  const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  auto* const halves = reinterpret_cast<__m128i*>(state);
  const __m128i dcba = _mm_loadu_si128(halves), hgfe = _mm_loadu_si128(halves + 1);
  const __m128i cdab = _mm_shuffle_epi32(dcba, 0xb1), efgh = _mm_shuffle_epi32(hgfe, 0x1b);
  __m128i abef = _mm_alignr_epi8(cdab, efgh, 8), cdgh = _mm_blend_epi16(efgh, cdab, 0xf0);
  for (; blocks > 0; --blocks, data += kBlockBytes) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    const auto* words = reinterpret_cast<const __m128i*>(data);
    __m128i w0 = _mm_shuffle_epi8(_mm_loadu_si128(words), big_endian);
    __m128i w1 = _mm_shuffle_epi8(_mm_loadu_si128(words + 1), big_endian);
    __m128i w2 = _mm_shuffle_epi8(_mm_loadu_si128(words + 2), big_endian);
    __m128i w3 = _mm_shuffle_epi8(_mm_loadu_si128(words + 3), big_endian);
    for (int round = 0;; round += 16) {
      four_rounds(abef, cdgh, w0, kRoundConstants + round);
      four_rounds(abef, cdgh, w1, kRoundConstants + round + 4);
      four_rounds(abef, cdgh, w2, kRoundConstants + round + 8);
      four_rounds(abef, cdgh, w3, kRoundConstants + round + 12);
      if (round == 48) break;
      w0 = next_words(w0, w1, w2, w3);
      w1 = next_words(w1, w2, w3, w0);
      w2 = next_words(w2, w3, w0, w1);
      w3 = next_words(w3, w0, w1, w2);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b), dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  _mm_storeu_si128(halves, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(halves + 1, _mm_alignr_epi8(dchg, feba, 8));
}

#endif

}  // namespace

void absorb_blocks_portably(std::uint32_t* state, const std::uint8_t* data, std::size_t blocks) {
  for (; blocks > 0; --blocks, data += kBlockBytes) {
    std::uint32_t schedule[64];
    expand_message(data, schedule);
    std::uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    std::uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; ++t) {
      const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const std::uint32_t choice = (e & f) ^ (~e & g);
      const std::uint32_t first = h + sum1 + choice + kRoundConstants[t] + schedule[t];
      const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + sum0 + majority;
    }
    const std::uint32_t mixed[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state[i] += mixed[i];
  }
}

void absorb_blocks(std::uint32_t* state, const std::uint8_t* data, std::size_t blocks) {
#if defined(__x86_64__)
  static const bool has_instructions = has_sha_instructions();
  if (has_instructions) return absorb_by_instructions(state, data, blocks);
#endif
  absorb_blocks_portably(state, data, blocks);
}

}  // namespace gcompile
