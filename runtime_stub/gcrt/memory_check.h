// The blocks of memory that the caller hands to a model, and the marks by which it knows them again.
#pragma once

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

// In bytes; `alignment` of all four.
struct BlockSizes {
  std::size_t arena, state, weights, instance, alignment;
};

// A block of no bytes may lie anywhere.
inline bool is_block(const void* block, std::size_t bytes, std::size_t alignment) {
  return bytes == 0 || (block != nullptr && reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
}

// `weights`: those that the run reads, which need not be memory->weights.
template <class Memory>
bool memory_is_good(const Memory* memory, const void* weights, const BlockSizes& sizes) {
  return memory != nullptr && is_block(memory->arena, sizes.arena, sizes.alignment) &&
         is_block(memory->state, sizes.state, sizes.alignment) &&
         is_block(memory->instance, sizes.instance, sizes.alignment) &&
         is_block(weights, sizes.weights, sizes.alignment);
}

}  // namespace GCRT_NAMESPACE
