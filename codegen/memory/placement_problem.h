#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/memory/plan.h"

namespace gcompile::memory {

/// A buffer as a rectangle: fixed in time, free in space.
struct Block {
  /// Bytes, a multiple of the alignment.
  int64_t size = 0;
  int64_t alignment = 1;
  /// Half-open range of sections (see PlacementProblem).
  int32_t begin = 0;
  int32_t end = 0;
  /// -1: free to move.
  int64_t fixed_offset = -1;
  int64_t hint = -1;
  /// Index in the caller's list.
  int32_t source = 0;
  /// Life in schedule steps; only a key to sort by.
  int64_t lifetime = 0;
};

/// The problem with empty buffers left out and time squeezed to sections. A section is a longest run of steps
/// in which no buffer begins after another has ended; all its buffers are live together at one moment, so two
/// buffers conflict exactly if they share a section, and the sections' sums are the peaks of live bytes.
struct PlacementProblem {
  std::vector<Block> blocks;
  int32_t section_count = 0;
  std::vector<int64_t> section_bytes;
  int64_t lower_bound = 0;
  bool has_fixed = false;
  bool has_hints = false;
};

/// In steps of any unit, half-open.
struct Life {
  int64_t begin = 0;
  int64_t end = 0;
};

/// The problem of blocks with these lives: sets begin and end of each, and all that follows from them.
PlacementProblem squeeze_time(std::vector<Block> blocks, const std::vector<Life>& lives);

/// Checks the buffers and squeezes time. Throws like plan_memory().
PlacementProblem make_problem(const std::vector<Buffer>& buffers);

/// Offsets of all blocks of a problem and the top of the highest.
struct Placement {
  std::vector<int64_t> offsets;
  int64_t height = 0;
  std::string rule;
};

inline int64_t align_up(int64_t value, int64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace gcompile::memory
