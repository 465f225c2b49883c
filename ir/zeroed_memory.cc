#include "ir/zeroed_memory.h"

#include <cstdlib>
#include <new>

#include "ir/diagnostics.h"

namespace gcompile::ir {

void ZeroedMemory::Release::operator()(char* data) const { std::free(data); }

ZeroedMemory::ZeroedMemory(std::size_t size) : data_(static_cast<char*>(std::calloc(size, 1))), size_(size) {
  if (size > 0 && !data_) throw std::bad_alloc();
}

void ZeroedMemory::shrink(std::size_t size) {
  GC_CHECK(size <= size_);
  size_ = size;
}

}  // namespace gcompile::ir
