#pragma once
// Memory for the bytes of a whole model: pages of zeros from the system, large ones where it has them. Nobody
// clears what is written once, and a page that is not written yet takes no memory.

#include <cstddef>
#include <string_view>

namespace gcompile {

class ZeroedMemory {
 public:
  ZeroedMemory() = default;
  /// Throws std::bad_alloc when the system has no more.
  explicit ZeroedMemory(std::size_t size);
  ZeroedMemory(ZeroedMemory&& other) noexcept;
  ZeroedMemory& operator=(ZeroedMemory&& other) noexcept;
  ~ZeroedMemory();

  char* data() { return data_; }
  const char* data() const { return data_; }
  std::size_t size() const { return size_; }
  char operator[](std::size_t i) const { return data_[i]; }
  std::string_view text() const { return {data_, size_}; }
  /// Keeps the first `size` bytes.
  void shrink(std::size_t size);

 private:
  char* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace gcompile
