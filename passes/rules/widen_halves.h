#pragma once
// Models of 16-bit floats, computed in float32 between what others read (DESIGN law 15).

#include <cstdint>
#include <set>

#include "ir/graph/graph.h"

namespace gcompile::passes {

enum class Widened {
  kAll,      // every value that only nodes of the model read
  kSquares,  // sums of squares and what they divide
};

/// Makes nodes compute in float32 that take or give 16-bit floats, so that results are rounded where somebody
/// else reads them: at outputs, at states, in front of an If, and where an integer or a comparison is
/// decided. Whatever is rounded by a Cast of the model stays so. What is decided here stays: the graph is
/// also the oracle's. Composite operators are taken apart, and constants folded, to find squares. Returns the
/// number of values that are no longer rounded.
std::int64_t widen_halves(ir::Graph& graph, Widened widened);

/// Nodes around the sums of squares of 16-bit floats, which overflow where the floats are above 256 and
/// vanish where they are below 1e-4: the squares, their sum or mean, its root, and what is divided by it.
std::set<ir::NodeId> nodes_of_squares(const ir::Graph& graph);

}  // namespace gcompile::passes
