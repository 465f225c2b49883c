// Memory of a program that runs a model. Host code.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "gcrt/app/tensor.h"

namespace GCRT_NAMESPACE {

// Bytes at an aligned address; large blocks in large pages, where the system gives them on request.
class Block {
 public:
  Block(std::size_t bytes, std::size_t alignment) : bytes_(bytes) {
    constexpr std::size_t kLargePage = std::size_t{2} << 20;
    const std::size_t align = bytes >= kLargePage ? kLargePage : alignment;
    const std::size_t rounded = (bytes / align + 1) * align;
    data_ = std::aligned_alloc(align, rounded);
    if (data_ == nullptr) fail("out of memory");
#ifdef MADV_HUGEPAGE
    if (bytes >= kLargePage) (void)madvise(data_, rounded, MADV_HUGEPAGE);
#endif
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
