// The whole compiler between a model and its kernels: what prepares a graph for the compiler and its oracle,
// then the passes.

#include "passes/engine/passes.h"
#include "passes/engine/preparation.h"

namespace gcompile::passes {

const std::vector<Preparation>& preparation() {
  static const std::vector<Preparation> preparations = {
      {.name = "pack-weights",
       .summary = "packs the weights of products in 4 or 8 bits, on request",
       .is_wanted = [](const ir::Graph&,
                       const PreparationOptions& options) { return options.weight_bits != 0; },
       .takes_apart = true,
       .run = pack_weights},
      {.name = "round-rows",
       .summary = "rounds what is multiplied by packed weights to 8 bits, where model and prices allow it",
       .is_wanted =
           [](const ir::Graph& graph, const PreparationOptions& options) {
             return options.rounds_rows && allows_rounding(graph);
           },
       .takes_apart = true,
       .run = round_rows},
      // A device moves 16 bits at twice the speed of 32: where no product rounds them again, only what overflows
      // is widened.
      {.name = "widen-squares",
       .summary = "computes sums of squares of 16-bit floats in float32",
       .is_wanted =
           [](const ir::Graph& graph, const PreparationOptions& options) {
             return options.widened == Widened::kSquares && has_halves(graph);
           },
       .takes_apart = true,
       .run = widen_halves},
      {.name = "widen-halves",
       .summary = "computes 16-bit floats in float32 between what others read",
       .is_wanted = [](const ir::Graph&,
                       const PreparationOptions& options) { return options.widened == Widened::kAll; },
       .takes_apart = false,
       .run = widen_halves},
  };
  return preparations;
}

const std::vector<Pass>& pipeline() {
  static const std::vector<Pass> passes = {
      // Every level of nested Ifs whose condition becomes known takes one round.
      {.name = "captures",
       .summary = "moves constants into the branches of Ifs",
       .required = true,
       .run = simplify_captures,
       .loop = 1,
       .takes_apart = true},
      {.name = "fold",
       .summary = "evaluates nodes whose operands are known",
       .required = true,
       .run = fold_constants,
       .loop = 1,
       .takes_apart = true},
      {"integers", "computes quantised layers in integers", 1, false, compute_in_integers, 1,
       Tier::kReassociate},
      {"scales", "moves the scale of a quantisation into what is quantised", 1, false, move_quantised_scales,
       1, Tier::kReassociate},
      {.name = "decompose",
       .summary = "expresses operators in simpler ones",
       .required = true,
       .run = decompose,
       .loop = 1,
       .takes_apart = true},
      {"half", "contracts 16-bit floats in float32", 0, true, legalise_half, 1, Tier::kExact, true},
      {"blocks", "makes floats of packed weights that no kernel decodes", 0, true, legalise_packed_weights,
       1},
      {"small-elements", "makes bytes of elements of 2 and 4 bits", 0, true, legalise_small_elements, 1},
      {"dce", "removes what no output needs", 0, true, eliminate_dead_code, 1},
      // Again from the start: what rules simplify can be folded, merged and simplified further.
      {"cse", "merges equal constants and equal nodes", 1, false, eliminate_common_subexpressions, 2},
      {"branches", "computes without an If what both of its branches do", 1, false, merge_equal_branches, 2},
      {"rules", "applies the rewrite rules", 1, false, rewrite_by_rules, 2, Tier::kReassociate},
      {"volumes", "makes convolutions of images of those of volumes", 1, false, rewrite_volumes, 2,
       Tier::kReassociate},
      {"constant-channels", "removes channels that are constant whatever the input, or that nobody reads", 1,
       false, fold_constant_channels, 2},
      {"fold-again", "evaluates what rules left constant", 1, false, fold_all_constants, 2},
      {"attention", "fuses products around a softmax", 1, false, fuse_attention, 2, Tier::kReassociate},
      {"join-products", "makes one product of those for queries, keys and values", 1, false, join_products,
       2},
      {"dce-again", "removes what rules left behind", 1, false, eliminate_dead_code, 2},
      {"forms", "lowers every node to its form", 0, true, attach_forms, 0, Tier::kExact, true},
      {"views", "makes one view of movements that are one together", 1, false, join_views},
      {"pad-channels", "adds channels of zeros where convolutions then copy wider", 1, false, pad_channels},
      {"layout", "chooses channels-last or row-major for every value", 0, true, assign_layout},
      {"fuse", "merges element-wise chains into loops and epilogues", 1, false, fuse},
      {"keep-in-float", "does not make integers of floats that are floats again", 1, false, keep_in_float},
      {"store-factors", "keeps what only products read in the 16 bits that they multiply", 1, false,
       store_factors},
      {"dce-final", "removes what fusion left behind", 0, true, eliminate_dead_code},
  };
  return passes;
}

}  // namespace gcompile::passes
