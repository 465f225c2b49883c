#pragma once
// Copies one graph into another: a branch whose condition is known, a function's body.

#include <span>
#include <vector>

#include "ir/graph/graph.h"

namespace gcompile::ir {

/// Copies nodes (with names, origins, forms and nested subgraphs) and constants of `body` into `into`;
/// input i of `body` becomes arguments[i]. Returns the values of the outputs of `body`, in order. `body` may
/// be a subgraph of a node of `into`, and not a trap. Arguments have the types of the inputs (checked).
std::vector<ValueId> inline_graph(Graph& into, const Graph& body, std::span<const ValueId> arguments);

}  // namespace gcompile::ir
