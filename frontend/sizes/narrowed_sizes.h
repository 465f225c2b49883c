#pragma once
// What a graph leaves of the sizes that its user asked for.

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostics.h"
#include "ir/sizes/sizes.h"

namespace gcompile::frontend {

/// A warning that names the nodes that need sizes to be equal, what they need, and how many combinations of
/// sizes are left; nullopt where all are. `asked`: as the user gave them; `left`: behind the import.
/// `places`: who needs each of left.checks(); "" where the user said so.
std::optional<Diagnostic> narrowed_sizes(const ir::Sizes& asked, const ir::Sizes& left,
                                         const std::vector<std::string>& places);

}  // namespace gcompile::frontend
