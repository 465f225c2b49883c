#include "codegen/schedule/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/interrupt.h"
#include "codegen/calls/cuda_call.h"
#include "codegen/calls/hand_over.h"
#include "codegen/calls/instances.h"
#include "codegen/kinds/image_windows.h"
#include "codegen/order/cache_order.h"
#include "codegen/order/peak_order.h"
#include "codegen/schedule/scope.h"
#include "codegen/schedule/storage_assigner.h"

namespace gcompile {

using ir::NodeId;
using ir::ValueId;

Scheduler::Scheduler(std::vector<StorageBuffer>& buffers, WeightBlob& weights, Diagnostics& diagnostics,
                     ScheduleOptions options)
    : buffers_(buffers), weights_(weights), diagnostics_(diagnostics), options_(std::move(options)) {
  machines_.push_back(machine());
  for (const GpuArchitecture& gpu : options_.kernels.later) machines_.push_back(machine_on(machine(), gpu));
}

Storage Scheduler::temporary(const ir::TensorType& type, const std::vector<int>& order,
                             const std::string& name) {
  StorageBuffer buffer;
  buffer.bytes = ir::highest(type.bytes());
  buffer.name = name;
  buffer.type = type;
  buffers_.push_back(std::move(buffer));
  return {static_cast<int>(buffers_.size()) - 1, 0, ir::strides_in_order(type.shape, order)};
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

/// The ranking of the family that the user asks for, where it takes the problem; on a GPU where it does not,
/// though it does on another, of all families.
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

namespace {

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

std::optional<KernelCall> Scheduler::call_of(const Wanted& wanted, const Candidate& chosen,
                                             const Machine& gpu, const SizeParameters& named) {
  const ir::Problem& problem = wanted.problem;
  CallWriter writer(wanted.graph, wanted.id, wanted.form, wanted.home, weights_, gpu);
  writer.read_numbers(options_.kernels.trained);
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
  call.is_short = ir::are_constant(problem) &&
                  gpu.is_short(chosen.planned.cost.picoseconds + hand_over(activation_bytes(problem)));
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

void Scheduler::lower_node(Scope& scope, NodeId id) {
  const ir::Graph& graph = scope.graph;
  const ir::Node& node = graph.node(id);
  const ir::Form& form = scope.forms.at(id);
  if (scope.host_only.count(id)) return;
  if (std::holds_alternative<ir::IfForm>(form)) {
    lower_if(scope, id);
    return;
  }
  const bool is_empty = std::all_of(node.results.begin(), node.results.end(), [&](ValueId result) {
    return !result.valid() || graph.value(result).type.count() == 0;
  });
  if (is_empty) return;
  const ValueId first =
      *std::find_if(node.results.begin(), node.results.end(), [](ValueId result) { return result.valid(); });
  const std::string result = to_string(graph.value(first).type);
  if (const auto* loops = std::get_if<ir::LoopForm>(&form)) {
    ir::LoopForm remaining = *loops;
    if (const auto at = scope.homes.elided_regions.find(id); at != scope.homes.elided_regions.end()) {
      remaining.regions.clear();
      for (std::size_t r = 0; r < loops->regions.size(); ++r) {
        if (!at->second.count(r)) remaining.regions.push_back(loops->regions[r]);
      }
    }
    const HomeOf home = [&](ValueId value) -> const Storage& { return scope.homes.storage.at(value); };
    CallWriter writer(graph, id, form, home, weights_, machine());
    writer.read_numbers(options_.kernels.trained);
    writer.call().family = remaining.is_map() ? "map" : "reduce";
    writer.loops(remaining);
    emit(scope, std::move(writer.call()), origins_of(node), comment_of(node), result);
    return;
  }
  const std::map<ValueId, Storage> copies = copy_operands(scope, id, form);
  const HomeOf home = [&](ValueId value) -> const Storage& {
    const auto copy = copies.find(value);
    return copy != copies.end() ? copy->second : scope.homes.storage.at(value);
  };
  emit(scope, chosen_call(graph, id, form, home, false), origins_of(node), comment_of(node), result);
}

/// Operands in a layout that the best family does not take are copied first. Of several GPUs, the oldest
/// whose kernel asks for an order says which.
std::map<ValueId, Storage> Scheduler::copy_operands(Scope& scope, NodeId id, const ir::Form& form) {
  const ir::Graph& graph = scope.graph;
  const ir::Node& node = graph.node(id);
  std::map<ValueId, Storage> copies;
  const auto strides = [&](ValueId value) { return scope.homes.storage.at(value).strides; };
  const auto problem = ir::problem_of(graph, id, form, strides, machine().precision == Precision::kFp16);
  const std::vector<const Recipe*> recipes = best_recipes(*problem, forced_family(node, form));
  for (std::size_t i = 0; i < problem->operands.size(); ++i) {
    const ValueId operand = node.operands[i];
    if (!operand.valid() || graph.constant(operand) || copies.count(operand)) continue;
    NeededOrder order;
    for (const Recipe* recipe : recipes) {
      if (!order && recipe->needs) order = recipe->needs(*problem, i);
    }
    if (!order) continue;
    const ir::Value& value = graph.value(operand);
    if (value.type.count() == 0) continue;  // in any layout
    const Storage copied = temporary(value.type, *order, value.name);
    emit(scope, copy_call(value.type, scope.homes.storage.at(operand), copied, machine()),
         {{"layout", std::nullopt}}, "layout of the next step", to_string(value.type));
    copies[operand] = copied;
  }
  return copies;
}

/// Steering values are a few scalars; more is work for the device.
constexpr std::int64_t kMostHostElements = 4096;

Storage Scheduler::steer(Scope& scope, ValueId value) {
  // Operands before what reads them, each once, in the order of a walk in depth.
  struct Visit {
    ValueId value;
    std::size_t next = 0;  // operand to look at
  };
  check_steers(scope, value);
  std::vector<Visit> open = {{value}};
  while (!open.empty()) {
    Visit& visit = open.back();
    if (scope.host_homes.count(visit.value)) {
      open.pop_back();
      continue;
    }
    const std::vector<ValueId>& operands = scope.graph.node(scope.graph.value(visit.value).producer).operands;
    if (visit.next == operands.size()) {
      compute_on_host(scope, visit.value);
      continue;
    }
    const ValueId operand = operands[visit.next++];
    if (!operand.valid() || scope.graph.constant(operand)) continue;
    check_steers(scope, operand);
    open.push_back({operand});
  }
  return scope.host_homes.at(value);
}

void Scheduler::check_steers(const Scope& scope, ValueId value) const {
  const ir::Graph& graph = scope.graph;
  if (scope.host_homes.count(value)) return;
  const auto refuse = [&](const std::string& why) {
    operator_error(fmt::format(
        "the condition depends on {}, which --target cuda has on the device only; --set fixes an input",
        why));
  };
  const NodeId producer = graph.value(value).producer;
  if (!producer.valid()) refuse(fmt::format("'{}'", printable(graph.value(value).name)));
  const ir::Node& node = graph.node(producer);
  const auto* loops = std::get_if<ir::LoopForm>(&scope.forms.at(producer));
  if (!loops || !loops->checks.empty() || graph.value(value).type.count() > kMostHostElements) {
    refuse(fmt::format("{} '{}'", node.op->name, printable(node.name)));
  }
}

void Scheduler::compute_on_host(Scope& scope, ValueId value) {
  const ir::Graph& graph = scope.graph;
  const NodeId producer = graph.value(value).producer;
  StorageBuffer buffer;
  buffer.space = Space::kHost;
  buffer.type = graph.value(value).type;
  buffer.bytes = buffer.type.bytes();
  buffer.name = graph.value(value).name;
  buffer.port = static_cast<int>(host_bytes_);
  host_bytes_ += (buffer.bytes + 63) / 64 * 64;
  buffers_.push_back(std::move(buffer));
  scope.host_homes[value] = {static_cast<int>(buffers_.size()) - 1, 0,
                             ir::row_major_strides(graph.value(value).type.shape)};
  const Machine host;
  const HomeOf host_home = [&](ValueId v) -> const Storage& { return scope.host_homes.at(v); };
  CallWriter writer(graph, producer, scope.forms.at(producer), host_home, weights_, host);
  writer.loops(std::get<ir::LoopForm>(scope.forms.at(producer)));
  writer.call().on_host = true;
  writer.call().family = "host";
  const ir::Node& node = graph.node(producer);
  emit(scope, std::move(writer.call()), origins_of(node), comment_of(node) + " on the host",
       to_string(graph.value(value).type));
}

namespace {

/// Nodes that nothing but the choice of branches needs. `order`: every node before its readers.
std::set<NodeId> host_only_nodes(const ir::Graph& graph, const NodeForms& forms,
                                 const std::vector<NodeId>& order) {
  std::set<NodeId> found;
  const auto steers = [&](const ir::Use& use) {
    return use.node.valid() && ((std::holds_alternative<ir::IfForm>(forms.at(use.node)) && use.slot == 0) ||
                                found.count(use.node));
  };
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    const std::vector<ValueId>& results = graph.node(*at).results;
    if (std::all_of(results.begin(), results.end(), [&](ValueId result) {
          if (!result.valid()) return false;
          const std::vector<ir::Use>& uses = graph.value(result).uses;
          return !uses.empty() && std::all_of(uses.begin(), uses.end(), steers);
        })) {
      found.insert(*at);
    }
  }
  return found;
}

}  // namespace

void Scheduler::copy_outputs(Scope& scope, const std::vector<Storage>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].valid()) continue;
    const ValueId id = scope.graph.outputs()[i];
    const ir::Value& value = scope.graph.value(id);
    if (value.type.count() == 0) continue;
    if (value.constant) {
      KernelCall call =
          copy_call(value.type, {-1, 0, ir::row_major_strides(value.type.shape)}, outputs[i], machine());
      CallArgument source;
      source.kind = CallArgument::Kind::kWeights;
      source.weights = weights_.add_tensor(*value.constant, value.name);
      source.c_type = call.arguments[0].c_type;
      source.parameter = "x0";
      call.arguments[0] = source;
      emit(scope, std::move(call), {{"constant", std::nullopt}}, "constant output", to_string(value.type));
      continue;
    }
    const Storage& at = scope.homes.storage.at(id);
    const bool there = at.buffer == outputs[i].buffer && at.offset == outputs[i].offset;
    if (!there)
      emit(scope, copy_call(value.type, at, outputs[i], machine()), {{"output", std::nullopt}}, "output",
           to_string(value.type));
  }
}

std::vector<LoweredStep> Scheduler::run(const ir::Graph& graph, const std::vector<Storage>& inputs,
                                        const std::vector<Storage>& outputs,
                                        const std::vector<Storage>& host_inputs) {
  Scope scope{graph, {}, {}, {}, {}, {}, {}, {}};
  for (std::size_t i = 0; i < host_inputs.size(); ++i) {
    if (host_inputs[i].valid()) scope.host_homes[graph.inputs()[i]] = host_inputs[i];
  }
  std::vector<NodeId> order = graph.topological_order();
  for (const NodeId id : order) {
    try {
      scope.forms.emplace(id, ir::form_of(graph, id));
    } catch (const OperatorError& error) {
      diagnostics_.add(ir::diagnose(graph, id, "E0301", error));
    }
  }
  if (scope.forms.size() != order.size()) return {};
  if (options_.lowest_peak) order = lowest_peak_order(graph, scope.forms, order);
  if (on_device()) {
    order = with_caches_late(graph, scope.forms, std::move(order));
    scope.host_only = host_only_nodes(graph, scope.forms, order);
  }
  std::map<NodeId, std::int64_t> time;
  for (std::size_t i = 0; i < order.size(); ++i) time[order[i]] = static_cast<std::int64_t>(i);
  const bool copy_views = info_of(machine().target).launches_are_dear && !machine().smallest_scratch;
  scope.homes = StorageAssigner(graph, scope.forms, buffers_, options_.place_parts, copy_views)
                    .run(order, inputs, outputs, time);
  for (const auto& [value, home] : scope.homes.storage) ++scope.values_in_buffer[home.buffer];
  order.erase(
      std::remove_if(order.begin(), order.end(), [&](NodeId id) { return scope.homes.elided.count(id); }),
      order.end());
  std::size_t next = 0;
  while (next < order.size()) {
    poll_interrupt();
    const NodeId id = order[next];
    try {
      if (const std::size_t lowered = lower_in_strips(scope, std::span(order).subspan(next)); lowered > 0) {
        next += lowered;
        continue;
      }
      if (const std::size_t lowered = lower_with_cache(scope, std::span(order).subspan(next)); lowered > 0) {
        next += lowered;
        continue;
      }
      ++next;
      if (next < order.size() && lower_with_rows(scope, id, order[next])) {
        ++next;
        continue;
      }
      lower_node(scope, id);
    } catch (const OperatorError& error) {
      diagnostics_.add(ir::diagnose(graph, id, "E0302", error));
    }
  }
  copy_outputs(scope, outputs);
  return std::move(scope.steps);
}

}  // namespace gcompile
