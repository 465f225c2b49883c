#pragma once
// data/NAME.weights.bin: a header of 64 bytes (magic, version, size and checksum of the payload), the
// payload.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace gcompile {

/// Immutable bytes that all copies share.
class SharedBytes {
 public:
  SharedBytes() : SharedBytes(std::string()) {}
  SharedBytes(std::string bytes)  // NOLINT: text is bytes
      : bytes_(std::make_shared<const std::string>(std::move(bytes))) {}
  SharedBytes(const char* text) : SharedBytes(std::string(text)) {}  // NOLINT

  const std::string& text() const { return *bytes_; }
  operator const std::string&() const { return *bytes_; }  // NOLINT
  operator std::string_view() const { return *bytes_; }    // NOLINT
  std::size_t size() const { return bytes_->size(); }
  const char* data() const { return bytes_->data(); }
  bool operator==(const SharedBytes& other) const {
    return bytes_ == other.bytes_ || *bytes_ == *other.bytes_;
  }

 private:
  std::shared_ptr<const std::string> bytes_;
};

constexpr std::size_t kWeightsHeaderBytes = 64;

/// FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/) taken over little-endian words of 8 bytes rather than
/// bytes; `payload` must be a multiple of 8 long. What the header of a weights file holds.
std::uint64_t weights_checksum(std::string_view payload);

struct WeightsFile {
  SharedBytes bytes;
  std::uint64_t checksum = weights_checksum({});
};

/// `bytes` holds kWeightsHeaderBytes, which are overwritten, and the payload.
WeightsFile weights_file(std::string bytes);

}  // namespace gcompile
