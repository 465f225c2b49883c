#pragma once

#include <string>
#include <vector>

#include "codegen/memory/plan.h"

namespace gcompile {

/// What is wrong with a plan, one sentence each; empty if nothing is. Walks through time and compares each
/// buffer that begins with all that live then, straight from the definition, and shares no code with the
/// planner: O(n log n + n * live buffers). Checked: one offset for each buffer; none negative, misaligned, or
/// moved from its fixed place; every buffer ends inside the arena with its size rounded up to its alignment;
/// no two buffers with a common step have a common byte; the arena is not below the stated lower bound. Stops
/// after `limit` violations. Arithmetic is 128 bits wide, so that no offset can hide by overflowing.
std::vector<std::string> check_memory_plan(const std::vector<Buffer>& buffers, const MemoryPlan& plan,
                                           size_t limit = 20);

}  // namespace gcompile
