#pragma once
// Maps go before the views and concatenations that they read, to the kernel whose last expression they can be.

#include "passes/engine/pass_manager.h"

namespace gcompile::passes {

/// map(view(x)) -> view(map(x)), where a contraction, a reduction or a map computes x for this one reader, the view
/// moves no element in memory, neither before nor behind the map, and the map's other operands are read as simply
/// as before. map(concat(x, y)) -> concat(map(x), map(y)), where kernels compute each part for this one reader. Every
/// number stays what it was.
bool lift_maps(ir::Graph& graph, PassContext& context);

}  // namespace gcompile::passes
