#pragma once
// Memory for the bytes of a whole model, zero at the start. For much of it the C library asks the system for
// fresh pages, which are zero already: nobody clears what is written once.

#include <cstddef>
#include <memory>
#include <string_view>

namespace gcompile::ir {

class ZeroedMemory {
 public:
  ZeroedMemory() = default;
  /// Throws std::bad_alloc when there is no more.
  explicit ZeroedMemory(std::size_t size);

  char* data() { return data_.get(); }
  const char* data() const { return data_.get(); }
  std::size_t size() const { return size_; }
  char operator[](std::size_t i) const { return data_.get()[i]; }
  std::string_view text() const { return {data_.get(), size_}; }
  /// Keeps the first `size` bytes.
  void shrink(std::size_t size);

 private:
  struct Release {
    void operator()(char* data) const;
  };
  std::unique_ptr<char, Release> data_;
  std::size_t size_ = 0;
};

}  // namespace gcompile::ir
