#pragma once
// A contraction as the loops of a Reduce: the definition of the operator, term by term, of every element type
// and with operands that only the run knows. Slow, and always right: the last family of every kind prints it,
// and tests hold faster ones to it.

#include "ir/problem.h"

namespace gcompile::ir {

/// The sum (or maximum) of `problem`, with `epilogue` (a Map over its results) applied. Of convolutions,
/// products and pools; the axes of the results come first, then the reduced ones.
LoopForm plain_loops(const Problem& problem, const LoopForm& epilogue);

}  // namespace gcompile::ir
