#include "codegen/kinds/plain_loops.h"

#include "codegen/calls/call_writer.h"
#include "codegen/calls/cuda_time.h"
#include "codegen/kinds/image_windows.h"
#include "ir/graph/plain_loops.h"

namespace gcompile {
namespace {

/// The share of the peak that they reach: every tap is an address of its own.
constexpr double kEfficiency = 0.02;

/// How many terms one element of the result has, where that is no product.
std::int64_t terms_of_element(const ir::Problem& problem) {
  if (const auto* pool = std::get_if<ir::PoolWork>(&problem.work)) return pool->window.taps();
  if (const auto* scan = std::get_if<ir::ScanWork>(&problem.work)) {
    return problem.shape(0)[static_cast<std::size_t>(scan->axis)];
  }
  if (const auto* scatter = std::get_if<ir::ScatterWork>(&problem.work)) {
    const ir::Shape& indices = problem.shape(1);
    return scatter->by_tuples ? ir::element_count(indices) : indices[scatter->axis];
  }
  return 0;
}

std::int64_t terms(const ir::Problem& problem) {
  const std::int64_t each = terms_of_element(problem);
  return each > 0 ? ir::element_count(problem.results[0].shape) * each : ir::Dim(problem.multiply_adds());
}

std::vector<PlannedCost> plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds = machine.picoseconds(terms(problem), problem.bytes(), kEfficiency);
  return {only};
}

std::vector<PlannedCost> cuda_plans(const ir::Problem& problem, const Machine& machine) {
  PlannedCost only;
  only.cost.picoseconds =
      static_cast<std::int64_t>(static_cast<double>(streaming_picoseconds(problem, machine)) / kEfficiency);
  return {only};
}

void call(const ir::Problem& problem, const KernelPlan&, CallWriter& writer) {
  writer.loops(ir::plain_loops(
      problem, writer.is_contraction() ? writer.epilogue() : ir::LoopForm::over(problem.results[0].shape)));
}

bool takes_formulas(const ir::Problem&) { return true; }

/// Images lie channels-last, so that lanes run along the channels.
auto layout_of(ir::Kind kind) {
  const bool has_images =
      kind == ir::Kind::kConv || kind == ir::Kind::kConvTranspose || kind == ir::Kind::kPool;
  return has_images ? offers_channels_last : nullptr;
}

}  // namespace

KernelFamily plain_loops_family(std::string_view name, ir::Kind kind) {
  return {
      name,
      kind,
      nullptr,
      {{{.takes_formulas = takes_formulas, .layout = layout_of(kind), .plans = plans, .call = call},
        {.takes_formulas = takes_formulas, .layout = layout_of(kind), .plans = cuda_plans, .call = call}}}};
}

}  // namespace gcompile
