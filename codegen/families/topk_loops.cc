// topk.loops: every element counts those of its line that come before it, which is its place in the result:
// of every size, in the square of a line's length.

#include <fmt/format.h>

#include "codegen/calls/library_support.h"
#include "codegen/kinds/image_windows.h"
#include "codegen/loops/c_types.h"

namespace gcompile {
namespace {

/// The speed of comparisons beside that of multiply-adds in whole vectors.
constexpr double kEfficiency = 0.02;

std::int64_t comparisons(const ir::Problem& problem) {
  const Lines lines(problem.shape(0), std::get<ir::TopKWork>(problem.work).axis);
  return ir::element_count(problem.shape(0)) * lines.extent;
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(comparisons(problem), problem.bytes(), kEfficiency);
  return {only};
}

/// The lines are read again for every element.
std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  std::vector<PlannedCost> out = cuda_streaming_plan(problem, machine);
  const Lines lines(problem.shape(0), std::get<ir::TopKWork>(problem.work).axis);
  out[0].cost.picoseconds *= 2 + lines.extent / 8;
  return out;
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  const auto& work = std::get<ir::TopKWork>(problem.work);
  const ir::ElementType element = problem.operands[0].element;
  const Lines lines(problem.shape(0), work.axis);
  KernelCall& out = writer.call();
  out.headers = {writer.on_device() ? "gcrt/cuda/top_k_loops.h" : "gcrt/cpu/top_k_loops.h"};
  writer.operand(0, "x");
  top_k_results(problem, writer);
  const std::string sizes = out.sizes.list({lines.extent, lines.inner, work.k});
  const std::string count = out.sizes(ir::element_count(problem.shape(0)));
  CodeText code(1);
  code.line(fmt::format("const TopKByRank<{}, {}> store{{/*extent, inner, k*/ {}, x, values, positions}};",
                        work.largest, kernel_type(element), sizes));
  if (writer.on_device()) {
    code.line(fmt::format("top_k_by_rank(queue, {}, store);", count));
  } else {
    call_in_parallel(out, code, count, "top_k_by_rank(store, begin, end)");
  }
  out.body = code.text();
}

}  // namespace

const KernelFamily& family_topk_loops() {
  static const KernelFamily family = {
      "topk.loops",
      ir::Kind::kTopK,
      refuse_half,
      {{{.takes_formulas = takes_all_formulas, .needs = needs_row_major, .plans = plans, .call = call},
        {.takes_formulas = takes_all_formulas,
         .needs = needs_row_major,
         .plans = cuda_plans,
         .call = call}}}};
  return family;
}

}  // namespace gcompile
