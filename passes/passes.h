#pragma once
// The passes of the pipeline; each takes one graph (not its subgraphs) and says whether it changed anything.

#include "passes/pass_manager.h"

namespace gcompile::passes {

bool decompose(ir::Graph& graph, PassContext& context);
bool fold_constants(ir::Graph& graph, PassContext& context);
bool eliminate_dead_code(ir::Graph& graph, PassContext& context);
bool simplify_captures(ir::Graph& graph, PassContext& context);
bool eliminate_common_subexpressions(ir::Graph& graph, PassContext& context);
bool legalise_half(ir::Graph& graph, PassContext& context);
bool rewrite_by_rules(ir::Graph& graph, PassContext& context);
bool fuse_attention(ir::Graph& graph, PassContext& context);
bool join_products(ir::Graph& graph, PassContext& context);
bool assign_layout(ir::Graph& graph, PassContext& context);
bool attach_forms(ir::Graph& graph, PassContext& context);
bool fuse(ir::Graph& graph, PassContext& context);

}  // namespace gcompile::passes
