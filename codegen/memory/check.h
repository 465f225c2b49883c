#pragma once

#include <string>
#include <vector>

#include "codegen/memory/plan.h"

namespace gcompile {

/// What is wrong with a plan, one sentence each; empty if nothing is. Walks through time; a buffer that
/// begins is compared with its neighbours among those that live then, which suffices as long as these are
/// disjoint, and where that finds a fault with all of them, to name each pair. Shares no code with the
/// planner. O(n log n) for a right plan. Checked: one offset for each buffer; none negative, misaligned, or
/// moved from its fixed place; every buffer ends inside the arena with its size rounded up to its alignment;
/// no two buffers with a common step have a common byte; the arena is not below the stated lower bound. Stops
/// after `limit` violations. Sums are 128 bits wide until every buffer is known to end inside the arena, so
/// that no offset can hide by overflowing.
std::vector<std::string> check_memory_plan(const std::vector<Buffer>& buffers, const MemoryPlan& plan,
                                           size_t limit = 20);

}  // namespace gcompile
