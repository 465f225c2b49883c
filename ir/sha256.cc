#include "ir/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "fmt/format.h"
#include "ir/interrupt.h"

namespace gcompile {
namespace {

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kLengthOffset = 56;
constexpr std::size_t kBytesBetweenPolls = std::size_t{1} << 20;

// FIPS 180-4, 4.2.2: fractional parts of the cube roots of the first 64 primes.
constexpr std::uint32_t kRoundConstants[64] = {
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

}  // namespace

// FIPS 180-4, 5.3.3: fractional parts of the square roots of the first eight primes.
Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {
}

void Sha256::absorb(const std::uint8_t* block) {
  std::uint32_t schedule[64];
  expand_message(block, schedule);
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int t = 0; t < 64; ++t) {
    const std::uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
    const std::uint32_t choice = (e & f) ^ (~e & g);
    const std::uint32_t first = h + sum1 + choice + kRoundConstants[t] + schedule[t];
    const std::uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
    const std::uint32_t majority = (a & b) ^ (a & c) ^ (b & c);
    h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + sum0 + majority;
  }
  const std::uint32_t mixed[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[static_cast<std::size_t>(i)] += mixed[i];
}

void Sha256::update(std::string_view bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  std::size_t remaining = bytes.size();
  std::size_t filled = byte_count_ % kBlockBytes;
  byte_count_ += remaining;
  while (remaining > 0) {
    if (filled == 0 && remaining >= kBlockBytes) {
      if (remaining % kBytesBetweenPolls < kBlockBytes) ir::poll_interrupt();
      absorb(data);
      data += kBlockBytes;
      remaining -= kBlockBytes;
      continue;
    }
    const std::size_t taken = std::min(remaining, kBlockBytes - filled);
    std::memcpy(pending_.data() + filled, data, taken);
    data += taken;
    remaining -= taken;
    filled += taken;
    if (filled == kBlockBytes) {
      absorb(pending_.data());
      filled = 0;
    }
  }
}

std::array<std::uint8_t, 32> Sha256::finish() {
  const std::uint64_t bit_count = byte_count_ * 8;
  std::size_t filled = byte_count_ % kBlockBytes;
  pending_[filled++] = 0x80;
  if (filled > kLengthOffset) {
    std::fill(pending_.begin() + static_cast<std::ptrdiff_t>(filled), pending_.end(), std::uint8_t{0});
    absorb(pending_.data());
    filled = 0;
  }
  std::fill(pending_.begin() + static_cast<std::ptrdiff_t>(filled), pending_.end(), std::uint8_t{0});
  for (std::size_t i = 0; i < 8; ++i) {
    pending_[kLengthOffset + i] = static_cast<std::uint8_t>(bit_count >> (56 - 8 * i));
  }
  absorb(pending_.data());

  std::array<std::uint8_t, 32> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  std::string text;
  for (const std::uint8_t byte : hash.finish()) text += fmt::format("{:02x}", byte);
  return text;
}

}  // namespace gcompile
