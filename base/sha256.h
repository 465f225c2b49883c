#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace gcompile {

/// SHA-256 (FIPS 180-4), fed in pieces.
class Sha256 {
 public:
  Sha256();
  void update(std::string_view bytes);
  /// The digest of everything fed so far, as 32 bytes. The object must not be used afterwards.
  std::array<std::uint8_t, 32> finish();

 private:
  void absorb(const std::uint8_t* block);

  std::array<std::uint32_t, 8> state_;
  std::array<std::uint8_t, 64> pending_{};
  std::uint64_t byte_count_ = 0;
};

/// A digest as 64 lower-case hexadecimal digits.
std::string hex_of(const std::array<std::uint8_t, 32>& digest);
/// The digest of `bytes` as 64 lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

}  // namespace gcompile
