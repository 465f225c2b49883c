// SPDX-FileCopyrightText: 2026 the gcompile project
// SPDX-License-Identifier: 0BSD
// How a scatter combines an element with an update, and how it reads indices.
#pragma once

#include <cstdint>

#include "gcrt/scalar/scalar.h"

namespace GCRT_NAMESPACE {

struct ScatterReplace {
  template <class T>
  GCRT_INLINE T operator()(T, T update) const {
    return update;
  }
};
#define GCRT_SCATTER(name, function)                  \
  struct name {                                       \
    template <class T>                                \
    GCRT_INLINE T operator()(T old, T update) const { \
      return function(old, update);                   \
    }                                                 \
  };
GCRT_SCATTER(ScatterAdd, add)
GCRT_SCATTER(ScatterMul, mul)
GCRT_SCATTER(ScatterMax, max)
GCRT_SCATTER(ScatterMin, min)
#undef GCRT_SCATTER

// Index in [0, extent), counted from the end when negative; -1 when out of range.
GCRT_INLINE std::int64_t wrapped_index(std::int64_t index, std::int64_t extent) {
  const std::int64_t wrapped = index < 0 ? index + extent : index;
  return wrapped >= 0 && wrapped < extent ? wrapped : -1;
}

}  // namespace GCRT_NAMESPACE
