#pragma once

#include "codegen/memory/placement_problem.h"

namespace gcompile::memory {

enum class Fit {
  kFirst,  // the lowest gap that is large enough
  kBest,   // the smallest such gap, the lowest of equals; the open space on top only if no gap will do
};

/// Places blocks one after another and never moves one again; a block costs O(its conflicts).
/// Conflicts are listed once if there are few; else the placed blocks are kept sorted by offset and swept.
class GreedyPlacer {
 public:
  explicit GreedyPlacer(const PlacementProblem& problem);

  /// Places the fixed blocks, then the others in this order. Gives up (height -1) as soon as the top reaches
  /// `give_up_at`. With `use_hints`, a block whose hint is free goes there.
  Placement place(const std::vector<int32_t>& order, Fit fit, int64_t give_up_at, bool use_hints = false);

  /// Placed blocks that place() looks at, at most; one that has to be sorted first counts five times.
  int64_t most_work_of_an_order() const;
  /// Placed blocks looked at so far, over all calls.
  int64_t work() const { return work_; }

 private:
  struct Placed {
    int64_t offset;
    int64_t top;
    int32_t begin;
    int32_t end;
  };
  static constexpr size_t kChunkLimit = 256;

  void list_conflicts();
  int64_t choose_offset(int32_t block, Fit fit, bool use_hints, const std::vector<int64_t>& offsets);
  void collect_listed(int32_t block, const std::vector<int64_t>& offsets);
  void collect_chunk(const std::vector<Placed>& chunk, const Block& block);
  void remember(int32_t block, int64_t offset);

  const PlacementProblem& problem_;
  bool listed_ = false;
  std::vector<int64_t> conflict_start_;
  std::vector<int32_t> conflicts_;
  /// Sorted by offset over all chunks; used if the conflicts are not listed.
  std::vector<std::vector<Placed>> chunks_;
  /// Placed conflicts of the block at hand, sorted by offset: all, or those of one chunk.
  std::vector<Placed> neighbours_;
  int64_t work_ = 0;
};

/// Lets every free block sink as far as it can, the lowest first. None ends higher than it was: what it stood
/// on has sunk as well, so its old place is still free.
void sink_blocks(const PlacementProblem& problem, GreedyPlacer& placer, Placement& placement);

}  // namespace gcompile::memory
