#pragma once

#include <cstdint>

#include "codegen/memory/placement_problem.h"

namespace gcompile::memory {

/// Above it, in placed blocks that a single order may have to look at, the skyline alone has to do: about
/// 17,000 buffers if most conflict with most, any number if few do.
inline constexpr int64_t kFirstFitLimit = 150'000'000;

/// The best placement of an ensemble of greedy rules, each only followed until it is no better than the best
/// so far; stops at the lower bound. Ties go to the earlier rule. The first is greedy by size first-fit, for
/// problems within kFirstFitLimit and for those with hints or fixed blocks; then the other orders and fits,
/// then the skyline's, while counted work lasts: near-linear in the blocks, about a second at most.
Placement best_greedy(const PlacementProblem& problem);

}  // namespace gcompile::memory
