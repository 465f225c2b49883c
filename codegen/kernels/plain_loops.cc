#include "codegen/kernels/plain_loops.h"

#include "codegen/kernels/call_writer.h"
#include "codegen/kernels/cuda_call.h"
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

}  // namespace

KernelFamily plain_loops_family(std::string_view name, ir::Kind kind) {
  return {
      name, kind, nullptr, {{{nullptr, nullptr, {}, plans, call}, {nullptr, nullptr, {}, cuda_plans, call}}}};
}

}  // namespace gcompile
