#pragma once

#include <cstdint>

#include "codegen/memory/placement_problem.h"
#include "codegen/memory/plan.h"

namespace gcompile::memory {

struct SearchResult {
  int64_t work = 0;
  /// No placement is lower: at the lower bound, or all lower ones were searched.
  bool proven_optimal = false;
};

/// Tries to find a placement lower than `best`, down to the lower bound, and puts it into `best`. The problem
/// is split (parts.h) and the part that is the highest is searched, for only it makes the arena large: for
/// the largest height that any part is known to need, with several ranks in turn, then for heights in
/// between. Ends when the highest part is as low as it can be, or the budget is used.
/// A problem with fixed blocks is left as it is, and so is a part beyond kFirstFitLimit or with more than 4
/// million (block, section) pairs: the greedy rules have to do.
SearchResult improve_placement(const PlacementProblem& problem, Placement& best,
                               const MemoryPlanOptions& options);

}  // namespace gcompile::memory
