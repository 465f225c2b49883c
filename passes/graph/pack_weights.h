#pragma once
// Packs the constant weights of products on request (--weight-bits): each becomes integers of 4 or 8 bits
// with a scale for 32 rows of a column, behind a DequantizeLinear, as in models that come so.

#include "passes/engine/pass_manager.h"

namespace gcompile::passes {

using ir::PackedWeight;

/// Takes composite operators apart, and folds constants.
void take_apart(ir::Graph& graph);

/// The graph with its weights packed in `bits`, 4 or 8: composite operators are taken apart, and constants
/// folded, to find them. A weight that stays as it is leaves a remark.
std::vector<PackedWeight> pack_weights(ir::Graph& graph, int bits, Report& report);

}  // namespace gcompile::passes
