#pragma once
// Packs the constant weights of products on request (--weight-bits): each becomes integers of 4 or 8 bits
// with a scale for 32 rows of a column, behind a DequantizeLinear, as in models that come so.

#include "passes/engine/pass_manager.h"

namespace gcompile::passes {

/// A weight that was packed, and what that cost it.
struct PackedWeight {
  std::string name;  // of the constant
  std::int64_t rows = 0, columns = 0;
  std::int64_t bytes = 0;         // packed, with scales
  double relative_error = 0;      // root mean square of the differences, over that of the weight
  double largest_difference = 0;  // of an element
};

/// Takes composite operators apart, and folds constants.
void take_apart(ir::Graph& graph);

/// The graph with its weights packed in `bits`, 4 or 8: composite operators are taken apart, and constants
/// folded, to find them. A weight that stays as it is leaves a remark.
std::vector<PackedWeight> pack_weights(ir::Graph& graph, int bits, Report& report);

}  // namespace gcompile::passes
