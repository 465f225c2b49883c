#pragma once
// A graph at sizes that one run might have: what is proven and fused for all of them can be evaluated there.

#include <cstdint>
#include <functional>

#include "ir/graph/graph.h"

namespace gcompile::ir {

/// The graph with a number in place of each symbol: in types, known elements, the loops of forms, and branches.
/// It is for the evaluator, so that what else forms say of their work stays as it is.
Graph at_sizes(const Graph& graph, const std::function<std::int64_t(int symbol)>& value_of);

}  // namespace gcompile::ir
