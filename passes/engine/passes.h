#pragma once
// The preparations of a model, which take it as a whole, and the passes of the pipeline, of which each takes
// one graph (not its subgraphs) and says whether it changed anything.

#include "passes/engine/preparation.h"

namespace gcompile::passes {

/// Each constant weight of a product becomes integers of few bits with a scale for 32 rows of a column,
/// behind a DequantizeLinear, as in models that come so. One that stays as it is leaves a remark.
void pack_weights(ir::Graph& graph, const PreparationOptions& options, Prepared& prepared);
/// Whether a node says by an attribute (accuracy_level 4 of MatMulNBits) that 8 bits are accurate enough.
bool allows_rounding(const ir::Graph& graph);
/// Products by packed weights whose model allows it round each row of the other side to int8 per block, with
/// a scale, where the kernels are no slower so; each leaves a remark.
void round_rows(ir::Graph& graph, const PreparationOptions& options, Prepared& prepared);
bool has_halves(const ir::Graph& graph);
/// Makes nodes compute in float32 that take or give 16-bit floats, so that results are rounded where somebody
/// else reads them: at outputs, at states, in front of an If, and where an integer or a comparison is
/// decided. Whatever is rounded by a Cast of the model stays so.
void widen_halves(ir::Graph& graph, const PreparationOptions& options, Prepared& prepared);

bool decompose(ir::Graph& graph, PassContext& context);
/// All but integers that stand for floats, which the passes behind it may leave as they are.
bool fold_constants(ir::Graph& graph, PassContext& context);
bool fold_all_constants(ir::Graph& graph, PassContext& context);
bool eliminate_dead_code(ir::Graph& graph, PassContext& context);
bool simplify_captures(ir::Graph& graph, PassContext& context);
bool merge_equal_branches(ir::Graph& graph, PassContext& context);
bool eliminate_common_subexpressions(ir::Graph& graph, PassContext& context);
bool legalise_half(ir::Graph& graph, PassContext& context);
bool legalise_small_elements(ir::Graph& graph, PassContext& context);
bool legalise_packed_weights(ir::Graph& graph, PassContext& context);
bool rewrite_by_rules(ir::Graph& graph, PassContext& context);
bool rewrite_volumes(ir::Graph& graph, PassContext& context);
bool compute_in_integers(ir::Graph& graph, PassContext& context);
/// Removes channels of integer networks that are one number in every run, or that nobody reads.
bool fold_constant_channels(ir::Graph& graph, PassContext& context);
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
