#pragma once
// A contraction, a scatter or running sums as the loops of a Reduce: the definition of the operator, term by
// term, of every element type and with operands that only the run knows. Slow, and always right: the last
// family of every kind prints it, and tests hold faster ones to it.

#include "ir/forms/form.h"
#include "ir/graph/problem.h"

namespace gcompile::ir {

/// The sum (or maximum) of `problem`, with `epilogue` (a Map over its results) applied. Of convolutions,
/// products and pools; of scatters and scans, where the epilogue has no region yet. The axes of the results
/// come first, then the reduced ones.
LoopForm plain_loops(const Problem& problem, const LoopForm& epilogue);

/// Where in operand 0, of type `x`, the maximum of each window lies that operand 1 holds: the first tap with
/// that value, counted row-major over the whole of x, or with the first spatial axis fastest in a plane; -1
/// for windows in the padding alone.
LoopForm window_positions(const Window& window, const TensorType& x, const Shape& result, bool column_major);

}  // namespace gcompile::ir
