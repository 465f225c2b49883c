#pragma once

#include <cstdint>
#include <vector>

#include "codegen/memory/placement_problem.h"

namespace gcompile::memory {

/// Blocks that can be placed without regard to all others, above `base`.
struct Part {
  PlacementProblem problem;
  /// Index of each block of `problem` in the whole.
  std::vector<int32_t> blocks;
  int64_t base = 0;
};

struct Parts {
  std::vector<Part> parts;
  /// By block of the whole: its offset if it belongs to no part, else -1.
  std::vector<int64_t> settled;
  int64_t settled_height = 0;
};

/// Splits a problem without fixed blocks, in time where no block crosses from one section to the next, and in
/// space below blocks that live throughout such a stretch: these go to its bottom, for what was below them
/// can slide up, and what is left is squeezed and split again. The best height of the whole is the largest
/// over the parts of base plus best height. Parts are in the order of their sections.
Parts split_problem(const PlacementProblem& problem);

}  // namespace gcompile::memory
