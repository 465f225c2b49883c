#pragma once
// At which sizes passes are judged that work on formulas.

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/graph.h"
#include "ir/sizes/sizes.h"

namespace gcompile {

/// A value of each symbol; those that equalities are solved for follow from the others.
using SymbolValues = std::vector<std::int64_t>;

/// Whether bounds, facts and checks hold, and what equalities were solved for is what they say.
bool are_allowed(const ir::Sizes& sizes, const SymbolValues& values);

/// The corners of the bounds, typical sizes, and some between, as far as the model has them. Where a graph has
/// many elements at them they are moved towards the smallest sizes, for the evaluator takes its time.
std::vector<SymbolValues> judged_sizes(const ir::Sizes& sizes, const ir::Graph& graph);

/// "batch=4, length=7".
std::string to_string(const ir::Sizes& sizes, const SymbolValues& values);

}  // namespace gcompile
