// Which family serves a node, and its call: on every GPU that a project is for, one call of all
// (instances.h).

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "codegen/kernels/cuda_call.h"
#include "codegen/kernels/image_weights.h"
#include "codegen/schedule/instances.h"
#include "codegen/schedule/schedule.h"

namespace gcompile {

using ir::NodeId;
using ir::ValueId;

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
  if (forced)
    ir::operator_error(fmt::format("--kernel asks for {}, which refuses: {}", forced->name, reasons));
  ir::operator_error(
      fmt::format("has no kernel: {}", reasons),
      "`gcompile ops` lists what is supported; --explain NODE says what every kernel family needs");
}

}  // namespace

/// The family that the user asks for by the name of a model's node that the node computes; nullptr: none.
const KernelFamily* Scheduler::forced_family(const ir::Node& node, const ir::Form& form) {
  const ir::Work* work = ir::work_of(form);
  for (std::size_t i = 0; work && i < options_.kernels.forced.size(); ++i) {
    const auto& [name, family_name] = options_.kernels.forced[i];
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

/// Of the family that the user asks for, where it takes the problem; on a GPU where it does not, though it
/// does on another, of all families.
Ranking Scheduler::ranking_on(const Machine& gpu, const ir::Problem& problem,
                              const KernelFamily* forced) const {
  Ranking ranking = rank(problem, gpu, forced);
  const auto takes = [&](const Machine& other) { return !rank(problem, other, forced).taken.empty(); };
  const bool is_served =
      !ranking.taken.empty() || !forced || std::none_of(machines_.begin(), machines_.end(), takes);
  return is_served ? ranking : rank(problem, gpu);
}

std::vector<const Recipe*> Scheduler::best_recipes(const ir::Problem& problem,
                                                   const KernelFamily* forced) const {
  std::vector<const Recipe*> recipes;
  for (const Machine& gpu : machines_) {
    const Ranking ranking = ranking_on(gpu, problem, forced);
    if (ranking.taken.empty()) return {};  // the refusal is told where the call is made
    recipes.push_back(&ranking.taken.front().family->recipe(gpu.target));
  }
  return recipes;
}

std::optional<KernelCall> Scheduler::call_of(const Wanted& wanted, const Candidate& chosen,
                                             const Machine& gpu, const SizeParameters& named) {
  const ir::Problem& problem = wanted.problem;
  CallWriter writer(wanted.graph, wanted.id, wanted.form, wanted.home, weights_, gpu);
  KernelCall& call = writer.call();
  call.sizes = named;
  const Recipe& recipe = chosen.family->recipe(gpu.target);
  if (wanted.joined) {
    if (!recipe.joins_operands) return std::nullopt;
    writer.join(*wanted.joined);
  }
  if (wanted.maker) {
    const bool takes = recipe.takes_made_rows && recipe.takes_made_rows(problem, gpu) &&
                       writer.make_rows(wanted.maker->node, wanted.maker->loops, gcrt::kGemvThreads);
    if (!takes) return std::nullopt;
  }
  call.by_rows = wanted.by_rows;
  call.family = chosen.family->name;
  call.multiply_adds = ir::at_highest(problem).multiply_adds();
  call.figures.multiply_adds = figure(call.multiply_adds, [&] { return problem.multiply_adds(); });
  call.multiplies_bytes = are_bytes(problem);
  call.multiplies_floats = call.multiply_adds > 0 && is_float(problem.operands[0].element);
  call.launches = chosen.planned.cost.launches;
  call.time = chosen.planned.cost.time;
  call.overlaps = recipe.overlaps;
  if (wanted.maker) call.reductions = static_cast<int>(wanted.maker->loops.stages.size());
  recipe.call(problem, chosen.planned.plan, writer);
  return std::move(call);
}

KernelCall Scheduler::chosen_call(const ir::Graph& graph, NodeId id, const ir::Form& form, const HomeOf& home,
                                  bool by_rows, const RowMaker* maker, const JoinedOperands* joined) {
  const bool reads_floats = machine().precision == Precision::kFp16;
  const auto problem = ir::problem_of(
      graph, id, form, [&](ValueId value) { return home(value).strides; }, reads_floats);
  const KernelFamily* forced = forced_family(graph.node(id), form);
  const Ranking ranking = ranking_on(machine(), *problem, forced);
  if (ranking.taken.empty()) refuse(ranking, forced);
  const Wanted wanted = {graph, id, form, home, by_rows, maker, joined, *problem};
  const std::size_t entries = weights_.entries().size();
  std::optional<KernelCall> call = call_of(wanted, ranking.taken.front(), machine(), {});
  if (!call) return {};
  call->problem = to_string(*problem);
  call->rivals = rivals_of(ranking, machine().target);
  if (machines_.size() == 1) return *std::move(call);
  Instances instances(*std::move(call), machine().name);
  for (std::size_t i = 1; i < machines_.size(); ++i) {
    if (add_instance(instances, wanted, machines_[i], forced, ranking.taken.front())) continue;
    weights_.keep(entries);
    return {};
  }
  return instances.finish();
}

/// The best that can be an instance of the call, else the oldest GPU's kernel; false: rows cannot be made or
/// operands joined on this GPU.
bool Scheduler::add_instance(Instances& instances, const Wanted& wanted, const Machine& gpu,
                             const KernelFamily* forced, const Candidate& oldest) {
  const std::size_t entries = weights_.entries().size();
  gcrt::KernelTime time = oldest.planned.cost.time;
  for (const Candidate& candidate : ranking_on(gpu, wanted.problem, forced).taken) {
    if (candidate.family == oldest.family) time = candidate.planned.cost.time;
    if (!instances.can_differ()) continue;
    const std::optional<KernelCall> call = call_of(wanted, candidate, gpu, instances.sizes());
    if (!call) return false;
    if (instances.add(*call, gpu.name)) return true;
    weights_.keep(entries);
  }
  instances.add_oldest(time, gpu.name);
  return true;
}

}  // namespace gcompile
