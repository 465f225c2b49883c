#pragma once
// Whether --state pairs what the names of the model pair.

#include <string>
#include <utility>
#include <vector>

#include "base/diagnostics.h"
#include "ir/graph/graph.h"

namespace gcompile {

/// A warning for each pair of an input and an output where another output of the same type is nearer to the
/// input by name, and no other input nearer to that output. `pairs`: names of input and output.
std::vector<Diagnostic> crossed_states(const ir::Graph& graph,
                                       const std::vector<std::pair<std::string, std::string>>& pairs);

}  // namespace gcompile
