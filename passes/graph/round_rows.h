#pragma once
// Products by packed weights whose model allows to round the other side (accuracy_level 4 of MatMulNBits):
// where the kernels are no slower so, each row of it becomes int8 per block, with a scale.

#include "passes/engine/pass_manager.h"

namespace gcompile::passes {

/// Marks the products of the graph, and returns how many they are; each leaves a remark. Composite operators
/// are taken apart, and constants folded, to find them, unless no node of the model allows anything. What is
/// decided here stays: the graph is also the oracle's, so that it judges kernels and not the rounding.
std::int64_t round_rows(ir::Graph& graph, const ir::KernelPrices& prices, Report& report);

}  // namespace gcompile::passes
