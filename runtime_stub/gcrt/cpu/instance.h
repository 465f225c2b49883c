// What init leaves in the caller's instance block.
#pragma once

#include <cstring>

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

struct Instance {
  std::uint64_t mark;   // of this very program
  const void* weights;  // that were checked
};

inline void set_instance(void* block, const Instance& instance) {
  std::memcpy(block, &instance, sizeof(instance));
}

inline bool instance_is(const void* block, const Instance& expected) {
  Instance instance;
  std::memcpy(&instance, block, sizeof(instance));
  return instance.mark == expected.mark && instance.weights == expected.weights;
}

}  // namespace GCRT_NAMESPACE
