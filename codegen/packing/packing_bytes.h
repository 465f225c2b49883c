#pragma once
// What every packing is written with.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gcompile {

constexpr std::int64_t kPanel = 16;  // columns

/// Element i of bytes that need not be aligned.
template <class T>
T read(const std::byte* base, std::int64_t i) {
  T value;
  std::memcpy(&value, base + i * static_cast<std::int64_t>(sizeof value), sizeof value);
  return value;
}

template <class T>
void write(std::byte* base, std::int64_t i, T value) {
  std::memcpy(base + i * static_cast<std::int64_t>(sizeof value), &value, sizeof value);
}

}  // namespace gcompile
