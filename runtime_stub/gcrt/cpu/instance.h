// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// What init leaves in the caller's instance block.
#pragma once

#include <cstring>

#include "gcrt/config.h"

namespace GCRT_NAMESPACE {

struct Instance {
  std::uint64_t mark;   // of this very program
  const void* weights;  // that were checked
  std::size_t level;    // that this processor takes
};

inline void set_instance(void* block, const Instance& instance) {
  std::memcpy(block, &instance, sizeof(instance));
}

inline Instance instance_of(const void* block) {
  Instance instance;
  std::memcpy(&instance, block, sizeof(instance));
  return instance;
}

}  // namespace GCRT_NAMESPACE
