#pragma once
// Which steps of a schedule run in several threads: a step by itself may gain from a second thread what its
// neighbours lose, which then have to fetch what another core wrote.

#include <vector>

#include "codegen/choice/machine.h"
#include "codegen/schedule/lowered_step.h"

namespace gcompile {

/// Marks the steps whose kernels take threads and that are better left to one, so that a run with two threads
/// takes the least time: of the two ways to run each step, those of the shortest path through the schedule. A run
/// begins and ends with what one core has.
void leave_to_one_thread(std::vector<LoweredStep>& steps, const Machine& machine);

}  // namespace gcompile
