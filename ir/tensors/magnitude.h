#pragma once
// Absolute values of integers that come from a model, which may be the lowest one.

#include <cstdint>
#include <limits>

namespace gcompile::ir {

/// |number|; of the lowest integer, which has no opposite, the highest one.
constexpr std::int64_t magnitude(std::int64_t number) {
  if (number == std::numeric_limits<std::int64_t>::min()) return std::numeric_limits<std::int64_t>::max();
  return number < 0 ? -number : number;
}

}  // namespace gcompile::ir
