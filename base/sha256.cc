#include "base/sha256.h"

#include <algorithm>
#include <cstring>

#include "base/interrupt.h"
#include "base/sha256_blocks.h"
#include "fmt/format.h"

namespace gcompile {
namespace {

constexpr std::size_t kBlockBytes = 64;
constexpr std::size_t kLengthOffset = 56;
constexpr std::size_t kBytesBetweenPolls = std::size_t{1} << 20;

}  // namespace

// FIPS 180-4, 5.3.3: fractional parts of the square roots of the first eight primes.
Sha256::Sha256()
    : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19} {
}

void Sha256::absorb(const std::uint8_t* block) { absorb_blocks(state_.data(), block, 1); }

void Sha256::update(std::string_view bytes) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  std::size_t remaining = bytes.size();
  std::size_t filled = byte_count_ % kBlockBytes;
  byte_count_ += remaining;
  while (remaining > 0) {
    if (filled == 0 && remaining >= kBlockBytes) {
      const std::size_t whole = std::min(remaining, kBytesBetweenPolls) / kBlockBytes;
      poll_interrupt();
      absorb_blocks(state_.data(), data, whole);
      data += whole * kBlockBytes;
      remaining -= whole * kBlockBytes;
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

std::string hex_of(const std::array<std::uint8_t, 32>& digest) {
  std::string text;
  for (const std::uint8_t byte : digest) text += fmt::format("{:02x}", byte);
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hex_of(hash.finish());
}

}  // namespace gcompile
