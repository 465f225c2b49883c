#include "base/zeroed_memory.h"

#include <sys/mman.h>

#include <new>
#include <utility>

#include "base/diagnostics.h"

namespace gcompile {

ZeroedMemory::ZeroedMemory(std::size_t size) : size_(size), mapped_(size) {
  if (size == 0) return;
  void* at = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
  ::madvise(at, size, MADV_HUGEPAGE);  // a wish: a fault per page costs more than the bytes in it
#endif
  data_ = static_cast<char*>(at);
}

ZeroedMemory::ZeroedMemory(ZeroedMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapped_(std::exchange(other.mapped_, 0)) {}

ZeroedMemory& ZeroedMemory::operator=(ZeroedMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapped_, other.mapped_);
  return *this;
}

ZeroedMemory::~ZeroedMemory() {
  if (data_) ::munmap(data_, mapped_);
}

void ZeroedMemory::shrink(std::size_t size) {
  GC_CHECK(size <= size_);
  size_ = size;
}

}  // namespace gcompile
