#pragma once
// data/NAME.weights.bin: a header of 64 bytes (magic, version, size and checksum of the payload, a hash of
// the code that it is packed for), the payload.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/zeroed_memory.h"

namespace gcompile {

/// Immutable bytes that all copies share.
class SharedBytes {
 public:
  SharedBytes() = default;
  SharedBytes(std::string bytes) { own(std::move(bytes)); }          // NOLINT: text is bytes
  SharedBytes(const char* text) : SharedBytes(std::string(text)) {}  // NOLINT
  explicit SharedBytes(ZeroedMemory bytes) { own(std::move(bytes)); }

  std::string_view text() const { return text_; }
  operator std::string_view() const { return text_; }  // NOLINT
  std::size_t size() const { return text_.size(); }
  const char* data() const { return text_.data(); }
  bool operator==(const SharedBytes& other) const { return text_ == other.text_; }

 private:
  template <class Owner>
  void own(Owner owner) {
    const auto shared = std::make_shared<const Owner>(std::move(owner));
    text_ = {shared->data(), shared->size()};
    owner_ = shared;
  }
  std::shared_ptr<const void> owner_;
  std::string_view text_;
};

constexpr std::size_t kWeightsHeaderBytes = 64;

/// FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/) taken over little-endian words of 8 bytes rather than
/// bytes; `payload` must be a multiple of 8 long. What the header of a weights file holds.
std::uint64_t weights_checksum(std::string_view payload);

struct WeightsFile {
  SharedBytes bytes;
  std::uint64_t checksum = weights_checksum({});

  /// Writes into the header which code the payload is packed for, which is known when all of that is printed.
  void name_structure(std::uint64_t structure) const;

  char* header = nullptr;  // of the bytes; there are none without weights
};

/// `bytes` holds kWeightsHeaderBytes, which are overwritten, and the payload.
WeightsFile weights_file(ZeroedMemory bytes);

}  // namespace gcompile
