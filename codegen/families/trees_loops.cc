// trees.loops: way after way from the root to a leaf, several at a time on the CPU.

#include <fmt/format.h>

#include "codegen/calls/library_support.h"
#include "codegen/packing/tree_nodes.h"

namespace gcompile {
namespace {

/// A step of one way among several, of which each waits for memory.
std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine&) {
  constexpr std::int64_t kStepPicoseconds = 1'200;
  const auto& work = std::get<ir::TreesWork>(problem.work);
  PlannedCost only;
  only.cost.picoseconds = problem.shape(0)[0] * work.levels * kStepPicoseconds;
  only.cost.code_key = "trees_" + TreeNodeType(problem).text();
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::TreesWork>(problem.work);
  const TreeNodeType type(problem);
  KernelCall& out = writer.call();
  out.headers = {writer.on_device() ? "gcrt/cuda/trees.h" : "gcrt/cpu/trees.h"};
  const std::string shape = tree_operands(problem, writer);
  writer.packed(1, pack_tree_nodes(*writer.constant(1), work, type), "nodes", "nodes", "std::uint8_t");
  out.body = trees_text(type.threshold, type.text(), shape) +
             fmt::format("  sum_trees<{}>({}, all);\n", combine_of(work),
                         writer.on_device() ? "queue" : threads_argument(out));
}

}  // namespace

const KernelFamily& family_trees_loops() {
  static const KernelFamily family = {
      "trees.loops",
      ir::Kind::kTrees,
      refuse_half,
      {{{.takes_formulas = takes_all_formulas, .needs = needs_row_major, .plans = plans, .call = call},
        {.takes_formulas = takes_all_formulas,
         .needs = needs_row_major,
         .plans = cuda_streaming_plan,
         .call = call}}}};
  return family;
}

}  // namespace gcompile
