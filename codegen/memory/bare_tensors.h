#pragma once
// What a plan is measured by: the memory of a program that does not plan.

#include <cstdint>

#include "ir/graph/graph.h"

namespace gcompile {

/// Bytes that the arena would need if every tensor of the model had a buffer of its own, placed first-fit and
/// freed after its last use. Branches of an If count at its step.
std::int64_t bare_tensors_first_fit(const ir::Graph& graph);

}  // namespace gcompile
