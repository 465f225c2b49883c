#pragma once
// The passes of the pipeline; each takes one graph (not its subgraphs) and says whether it changed anything.

#include "passes/engine/pass_manager.h"

namespace gcompile::passes {

bool decompose(ir::Graph& graph, PassContext& context);
/// All but integers that stand for floats, which the passes behind it may leave as they are.
bool fold_constants(ir::Graph& graph, PassContext& context);
bool fold_all_constants(ir::Graph& graph, PassContext& context);
bool eliminate_dead_code(ir::Graph& graph, PassContext& context);
bool simplify_captures(ir::Graph& graph, PassContext& context);
bool eliminate_common_subexpressions(ir::Graph& graph, PassContext& context);
bool legalise_half(ir::Graph& graph, PassContext& context);
bool legalise_nibbles(ir::Graph& graph, PassContext& context);
bool legalise_blocks(ir::Graph& graph, PassContext& context);
bool rewrite_by_rules(ir::Graph& graph, PassContext& context);
bool compute_in_integers(ir::Graph& graph, PassContext& context);
bool move_quantised_scales(ir::Graph& graph, PassContext& context);
bool fuse_attention(ir::Graph& graph, PassContext& context);
bool join_products(ir::Graph& graph, PassContext& context);
bool join_views(ir::Graph& graph, PassContext& context);
bool pad_channels(ir::Graph& graph, PassContext& context);
bool assign_layout(ir::Graph& graph, PassContext& context);
bool attach_forms(ir::Graph& graph, PassContext& context);
bool keep_in_float(ir::Graph& graph, PassContext& context);
bool fuse(ir::Graph& graph, PassContext& context);
bool store_factors(ir::Graph& graph, PassContext& context);

}  // namespace gcompile::passes
