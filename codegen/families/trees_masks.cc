// trees.masks: every node of a tree for many rows at once, whichever way they go. On the CPU, of trees that a mask has
// bits for.

#include <fmt/format.h>

#include <algorithm>

#include "codegen/calls/library_support.h"
#include "codegen/choice/refusals.h"
#include "codegen/packing/tree_nodes.h"
#include "ir/sizes/sizes.h"

namespace gcompile {
namespace {

constexpr std::int64_t kWordBits = 32, kMostWords = 2;

int words_of(const ir::Problem& problem) {
  return std::get<ir::TreesWork>(problem.work).most_leaves <= kWordBits ? 1 : 2;
}

Refusal refuses(const ir::Problem& problem) {
  const auto& work = std::get<ir::TreesWork>(problem.work);
  if (problem.operands[0].element != ir::ElementType::kFloat32) return "other numbers than float32";
  if (work.most_leaves > kMostWords * kWordBits) return fmt::format("a tree of {} leaves", work.most_leaves);
  // A tree has one leaf more than inner nodes unless two of its nodes have a child in common.
  if (problem.shape(2)[0] != work.nodes + work.trees) return "a node with two parents";
  return std::nullopt;
}

std::int64_t rows_at_once(const ir::Problem& problem, int vector_bytes) {
  return std::int64_t{words_of(problem)} * vector_bytes / 4;
}

/// Floats that a part needs at any level that the project may be built for.
std::int64_t features_of_part(const ir::Problem& problem, const Machine& machine) {
  int most = machine.level.vector_bytes;
  for (const Level& level : machine.levels) most = std::max(most, level.vector_bytes);
  return ir::highest(problem.shape(0)[1]) * rows_at_once(problem, most);
}

/// Parts that may run at the same time, each with the features of its rows.
std::int64_t parts_of(const ir::Problem& problem, const Machine& machine) {
  constexpr std::int64_t kMostParts = 8;
  if (machine.smallest_scratch) return 1;
  const std::int64_t rows = ir::highest(problem.shape(0)[0]),
                     at_once = rows_at_once(problem, machine.level.vector_bytes);
  return std::clamp((rows + at_once - 1) / at_once, std::int64_t{1}, kMostParts);
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  constexpr std::int64_t kNodePicoseconds = 900, kWordPicoseconds = 200, kFeaturePicoseconds = 1'000;
  const auto& work = std::get<ir::TreesWork>(problem.work);
  const std::int64_t at_once = rows_at_once(problem, machine.level.vector_bytes), words = words_of(problem);
  const std::int64_t blocks = (problem.shape(0)[0] + at_once - 1) / at_once;
  const std::int64_t of_node = kNodePicoseconds + words * kWordPicoseconds;
  PlannedCost only;
  only.cost.picoseconds =
      blocks * (work.nodes * words * of_node + problem.shape(0)[1] * at_once * kFeaturePicoseconds +
                work.trees * at_once * kFeaturePicoseconds);
  only.cost.scratch = parts_of(problem, machine) * features_of_part(problem, machine) * 4;
  only.cost.extra_weights = work.nodes * 4 * (words - 1);
  only.cost.code_key = fmt::format("tree_masks{}", words);
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::TreesWork>(problem.work);
  const int words = words_of(problem);
  const std::string node = fmt::format("MaskNode<{}>", words);
  KernelCall& out = writer.call();
  out.headers = {"gcrt/cpu/tree_masks.h"};
  const std::string shape = tree_operands(problem, writer);
  writer.packed(1, pack_tree_masks(*writer.constant(1), work, words), "masks", "nodes", "std::uint8_t");
  const std::int64_t parts = parts_of(problem, writer.machine());
  writer.scratch(parts * features_of_part(problem, writer.machine()) * 4, "features", "float");
  out.body = trees_text("float", node, shape) +
             fmt::format("  sum_trees_by_masks<{}>({}, all, features, /*parts*/ {});\n", combine_of(work),
                         threads_argument(out), parts);
}

}  // namespace

const KernelFamily& family_trees_masks() {
  static const KernelFamily family = {
      "trees.masks",
      ir::Kind::kTrees,
      refuses,
      {{{.takes_formulas = takes_all_formulas, .needs = needs_row_major, .plans = plans, .call = call},
        {.refuses = refuse_gpu}}}};
  return family;
}

}  // namespace gcompile
