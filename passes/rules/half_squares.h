#pragma once

#include <set>

#include "ir/graph/graph.h"

namespace gcompile::passes {

/// Nodes around the sums of squares of 16-bit floats, which overflow where the floats are above 256 and
/// vanish where they are below 1e-4: the squares, their sum or mean, its root, and what is divided by it.
std::set<ir::NodeId> nodes_of_squares(const ir::Graph& graph);

}  // namespace gcompile::passes
