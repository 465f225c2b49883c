#pragma once
// Kernels that enlarge weights are weighed against what they save, for the whole program: one price of a byte
// gives back the enlargements that save the least time for their bytes, until the rest fits a budget.

#include <vector>

#include "codegen/schedule/lowered_step.h"

namespace gcompile {

/// Bytes by which the kernels of all steps enlarge weights.
std::int64_t extra_weights(const std::vector<LoweredStep>& steps);

/// The lowest Machine::weight_price, in picoseconds for a byte, at which the families that were asked enlarge
/// weights by at most `budget` bytes, or by as little as they can: families that --kernel forces stay.
double weight_price_within(const std::vector<LoweredStep>& steps, std::int64_t budget);

}  // namespace gcompile
