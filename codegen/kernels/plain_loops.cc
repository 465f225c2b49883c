#include "codegen/kernels/plain_loops.h"

#include "codegen/kernels/call_writer.h"
#include "codegen/kernels/cuda_call.h"
#include "codegen/kernels/image_weights.h"
#include "ir/plain_loops.h"

namespace gcompile {
namespace {

/// Of the peak: every tap is an address of its own.
constexpr double kEfficiency = 0.02;

std::int64_t terms(const ir::Problem& problem) {
  const auto* pool = std::get_if<ir::PoolWork>(&problem.work);
  return pool ? ir::element_count(problem.results[0].shape) * pool->window.taps() : problem.multiply_adds();
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

void call(const ir::Problem& problem, const Plan&, CallWriter& writer) {
  writer.loops(ir::plain_loops(problem, writer.epilogue()));
}

/// Images lie channels-last, so that lanes run along the channels.
auto layout_of(ir::Kind kind) { return kind == ir::Kind::kProduct ? nullptr : offers_channels_last; }

}  // namespace

KernelFamily plain_loops_family(std::string_view name, ir::Kind kind) {
  return {name,
          kind,
          nullptr,
          {{{.layout = layout_of(kind), .plans = plans, .call = call},
            {.layout = layout_of(kind), .plans = cuda_plans, .call = call}}}};
}

}  // namespace gcompile
