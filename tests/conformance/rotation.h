#pragma once
// Which part of many cases a run takes: the commit decides, so that all have their turn.

#include <cstddef>
#include <string>

namespace gcompile::conformance {

struct Rotation {
  std::size_t number = 0;
  std::string source;  // of the number
};

/// GCOMPILE_ROTATION, or the commit's number.
Rotation rotation();

}  // namespace gcompile::conformance
