// Memory of a program that runs a model. Host code.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "gcrt/app/tensor.h"

namespace GCRT_NAMESPACE {

// Bytes at an aligned address.
class Block {
 public:
  Block(std::size_t bytes, std::size_t alignment) : bytes_(bytes) {
    const std::size_t rounded = (bytes / alignment + 1) * alignment;
    data_ = std::aligned_alloc(alignment, rounded);
    if (data_ == nullptr) fail("out of memory");
    // All ones are NaN in every floating type: whoever reads what nobody wrote shows it.
    std::memset(data_, 0xff, rounded);
  }
  ~Block() { std::free(data_); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_;
  std::size_t bytes_;
};

inline void read_file(const std::string& path, const Block& target) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (file == nullptr) fail("cannot open '" + path + "'");
  const std::size_t count = std::fread(target.data(), 1, target.bytes(), file);
  const bool at_end = std::fgetc(file) == EOF;
  std::fclose(file);
  if (count != target.bytes() || !at_end) fail("'" + path + "' does not have the expected size");
}

}  // namespace GCRT_NAMESPACE
