#include "codegen/schedule/kernel_chooser.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codegen/calls/cuda_tiles.h"
#include "codegen/calls/hand_over.h"
#include "codegen/calls/instances.h"
#include "codegen/choice/refusals.h"
#include "codegen/kinds/image_windows.h"
#include "codegen/schedule/lowered_step.h"

namespace gcompile {

using ir::ValueId;

KernelChooser::KernelChooser(KernelOptions options) : options_(std::move(options)) {
  rankings_.emplace_back(machine(), true);
  for (const GpuArchitecture& gpu : options_.later) rankings_.emplace_back(machine_on(machine(), gpu), true);
}

ir::Problem KernelChooser::problem_of(const KernelTask& task) const {
  const bool reads_floats = machine().precision == Precision::kFp16;
  return *ir::problem_of(
      task.graph, task.id, task.form, [&](ValueId value) { return task.home(value).strides; }, reads_floats);
}

/// The family that the user asks for by the name of a model's node that the node computes; nullptr: none.
const KernelFamily* KernelChooser::forced_family(const ir::Node& node, const ir::Form& form) {
  const ir::Work* work = ir::work_of(form);
  for (std::size_t i = 0; work && i < options_.forced.size(); ++i) {
    const auto& [name, family_name] = options_.forced[i];
    const std::vector<ir::Origin> origins = origins_of(node);
    const bool named = std::any_of(origins.begin(), origins.end(),
                                   [&, n = name](const ir::Origin& origin) { return origin.name == n; });
    const KernelFamily* family = find_family(family_name);
    if (!named || !family || family->kind != ir::kind_of(*work)) continue;
    forced_used_.insert(i);
    return family;
  }
  return nullptr;
}

/// The ranking of the family that the user asks for, where it takes the problem; on a GPU where it does not,
/// though it does on another, of all families.
const Ranking& KernelChooser::ranking_on(std::size_t machine, const ir::Problem& problem,
                                         const KernelFamily* forced) {
  const Ranking& ranking = rankings_[machine].of(problem, forced);
  const auto takes = [&](Rankings& other) { return !other.of(problem, forced).taken.empty(); };
  const bool is_served =
      !ranking.taken.empty() || !forced || std::none_of(rankings_.begin(), rankings_.end(), takes);
  return is_served ? ranking : rankings_[machine].of(problem);
}

const Ranking& KernelChooser::ranking_of(const KernelTask& task, const ir::Problem& problem) {
  return ranking_on(0, problem, forced_family(task.node(), task.form));
}

std::vector<const Recipe*> KernelChooser::best_recipes(const KernelTask& task, const ir::Problem& problem) {
  const KernelFamily* forced = forced_family(task.node(), task.form);
  std::vector<const Recipe*> recipes;
  for (std::size_t i = 0; i < machine_count(); ++i) {
    const Ranking& ranking = ranking_on(i, problem, forced);
    if (ranking.taken.empty()) return {};  // the refusal is told where the call is made
    recipes.push_back(&ranking.taken.front().family->recipe(machine().target));
  }
  return recipes;
}

namespace {

std::vector<Rival> rivals_of(const Ranking& ranking, Target target) {
  std::vector<Rival> rivals;
  for (const Candidate& c : ranking.taken) {
    rivals.push_back({std::string(c.family->name), to_string(c.family->recipe(target), c.planned.plan),
                      c.planned.cost.picoseconds, c.planned.cost.extra_weights, ""});
  }
  for (const auto& [name, reason] : ranking.refused) rivals.push_back({std::string(name), "", 0, 0, reason});
  return rivals;
}

[[noreturn]] void refuse(const Ranking& ranking, const KernelFamily* forced) {
  std::string reasons;
  for (const auto& [name, reason] : ranking.refused) {
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", name, reason);
  }
  if (forced) operator_error(fmt::format("--kernel asks for {}, which refuses: {}", forced->name, reasons));
  operator_error(
      fmt::format("has no kernel: {}", reasons),
      "`gcompile ops` lists what is supported; --explain NODE says what every kernel family needs");
}

/// Bytes of operands that are computed, and of results.
std::int64_t activation_bytes(const ir::Problem& problem) {
  std::int64_t bytes = 0;
  for (const ir::ProblemOperand& operand : problem.operands) {
    if (operand.present && !operand.constant)
      bytes += ir::element_count(operand.shape) * bits_of(operand.element) / 8;
  }
  for (const ir::ProblemOperand& result : problem.results) {
    bytes += ir::element_count(result.shape) * bits_of(result.element) / 8;
  }
  return bytes;
}

}  // namespace

std::optional<KernelCall> KernelChooser::call_of(const Wanted& wanted, const Candidate& chosen,
                                                 const Machine& on, const SizeParameters& named) const {
  const KernelTask& task = wanted.task;
  const ir::Problem& problem = wanted.problem;
  CallWriter writer(task.graph, task.id, task.form, task.home, wanted.weights, on);
  writer.read_numbers(options_.trained);
  KernelCall& call = writer.call();
  call.sizes = named;
  const Recipe& recipe = chosen.family->recipe(on.target);
  if (task.joined) {
    if (!recipe.device.joins_operands) return std::nullopt;
    writer.join(*task.joined);
  }
  if (task.maker) {
    const bool takes = recipe.device.takes_made_rows && recipe.device.takes_made_rows(problem, on) &&
                       writer.make_rows(task.maker->node, task.maker->loops, gcrt::kGemvThreads);
    if (!takes) return std::nullopt;
  }
  call.by_rows = task.by_rows;
  call.family = chosen.family->name;
  call.multiply_adds = ir::at_highest(problem).multiply_adds();
  call.figures.multiply_adds = figure(call.multiply_adds, [&] { return problem.multiply_adds(); });
  call.multiplies_bytes = are_bytes(problem);
  call.multiplies_floats = call.multiply_adds > 0 && is_float(problem.operands[0].element);
  call.time_alone = chosen.planned.cost.picoseconds;
  call.is_short =
      ir::are_constant(problem) && on.is_short(call.time_alone + hand_over(activation_bytes(problem)));
  if (call.device) {
    call.device->launches = chosen.planned.cost.launches;
    call.device->time = chosen.planned.cost.time;
    call.device->overlaps = recipe.device.overlaps;
    if (task.maker) call.device->reductions = static_cast<int>(task.maker->loops.stages.size());
  }
  recipe.call(problem, chosen.planned.plan, writer);
  return std::move(call);
}

KernelCall KernelChooser::call_for(const KernelTask& task, WeightBlob& weights) {
  const ir::Problem problem = problem_of(task);
  const KernelFamily* forced = forced_family(task.node(), task.form);
  const Ranking& ranking = ranking_on(0, problem, forced);
  if (ranking.taken.empty()) refuse(ranking, forced);
  const Wanted wanted = {task, problem, forced, weights};
  const std::size_t entries = weights.entries().size();
  std::optional<KernelCall> call = call_of(wanted, ranking.taken.front(), machine(), {});
  if (!call) return {};
  call->problem = to_string(problem);
  call->rivals = rivals_of(ranking, machine().target);
  if (machine_count() == 1) return *std::move(call);
  Instances instances(*std::move(call), machine().name);
  for (std::size_t i = 1; i < machine_count(); ++i) {
    if (add_instance(instances, wanted, i, ranking.taken.front())) continue;
    weights.keep(entries);
    return {};
  }
  return instances.finish();
}

/// The best that can be an instance of the call, else the oldest GPU's kernel; false: rows cannot be made or
/// operands joined on this GPU.
bool KernelChooser::add_instance(Instances& instances, const Wanted& wanted, std::size_t machine,
                                 const Candidate& oldest) {
  const Machine& gpu = this->machine(machine);
  const std::size_t entries = wanted.weights.entries().size();
  gcrt::KernelTime time = oldest.planned.cost.time;
  for (const Candidate& candidate : ranking_on(machine, wanted.problem, wanted.forced).taken) {
    if (candidate.family == oldest.family) time = candidate.planned.cost.time;
    if (!instances.can_differ()) continue;
    const std::optional<KernelCall> call = call_of(wanted, candidate, gpu, instances.sizes());
    if (!call) return false;
    if (instances.add(*call, gpu.name)) return true;
    wanted.weights.keep(entries);
  }
  instances.add_oldest(time, gpu.name);
  return true;
}

}  // namespace gcompile
