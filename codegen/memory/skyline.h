#pragma once

#include <cstdint>
#include <vector>

#include "codegen/memory/placement_problem.h"

namespace gcompile::memory {

/// Fills the arena from the bottom up: takes the lowest valley of the skyline (a run of sections of equal
/// height between higher neighbours) and puts the first block of the order that lives within it onto its
/// floor; a valley that no block fits rises to its lower neighbour. Nothing is placed below the skyline, so
/// there is no list of conflicts to walk: O(n log n) steps for the skyline and O(sqrt n) at worst for each
/// choice, a few hundred in practice.
/// `order` lists all blocks, and none may be fixed; hints are ignored. Gives up (height -1) as soon as the
/// top reaches `give_up_at`. Adds the elementary steps to `work`.
/// After Burke, Kendall and Whitwell's best-fit heuristic for strip packing (2004), with fixed abscissae.
Placement fill_skyline(const PlacementProblem& problem, const std::vector<int32_t>& order, int64_t give_up_at,
                       int64_t& work);

}  // namespace gcompile::memory
