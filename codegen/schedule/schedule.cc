#include "codegen/schedule/schedule.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/interrupt.h"
#include "codegen/order/cache_order.h"
#include "codegen/order/peak_order.h"
#include "ir/graph/checks.h"

namespace gcompile {

using ir::NodeId;
using ir::ValueId;

Scheduler::Scheduler(std::vector<StorageBuffer>& buffers, WeightBlob& weights, Diagnostics& diagnostics,
                     KernelChooser& chooser, const ScheduleOptions& options)
    : buffers_(buffers),
      weights_(weights),
      diagnostics_(diagnostics),
      chooser_(chooser),
      options_(options),
      steps_(buffers, weights, chooser),
      host_(buffers, weights, steps_),
      strips_(buffers, weights, chooser, steps_) {}

void Scheduler::lower_node(ScheduleScope& scope, NodeId id) {
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
  const std::string result = layout_text(graph.value(first).type, scope.homes.storage.at(first).strides);
  if (const auto* loops = std::get_if<ir::LoopForm>(&form)) {
    ir::LoopForm remaining = *loops;
    if (const auto at = scope.homes.elided_regions.find(id); at != scope.homes.elided_regions.end()) {
      remaining.regions.clear();
      for (std::size_t r = 0; r < loops->regions.size(); ++r) {
        if (!at->second.count(r)) remaining.regions.push_back(loops->regions[r]);
      }
    }
    const HomeOf home = [&](ValueId value) -> const Storage& { return scope.homes.storage.at(value); };
    CallWriter writer(graph, id, form, home, weights_, chooser_.machine());
    writer.read_numbers(chooser_.options().trained);
    writer.call().family = remaining.is_map() ? "map" : "reduce";
    writer.loops(remaining);
    steps_.emit(scope, std::move(writer.call()), origins_of(node), comment_of(node), result);
    return;
  }
  const std::map<ValueId, Storage> copies = copy_operands(scope, id, form);
  const HomeOf home = [&](ValueId value) -> const Storage& {
    const auto copy = copies.find(value);
    return copy != copies.end() ? copy->second : scope.homes.storage.at(value);
  };
  steps_.emit(scope, chooser_.call_for({graph, id, form, home}, weights_), origins_of(node), comment_of(node),
              result);
}

/// Operands in a layout that the best family does not take are copied first. Of several GPUs, the oldest
/// whose kernel asks for an order says which.
std::map<ValueId, Storage> Scheduler::copy_operands(ScheduleScope& scope, NodeId id, const ir::Form& form) {
  const ir::Graph& graph = scope.graph;
  const ir::Node& node = graph.node(id);
  std::map<ValueId, Storage> copies;
  const HomeOf home = [&](ValueId value) -> const Storage& { return scope.homes.storage.at(value); };
  const KernelTask task = {graph, id, form, home};
  const ir::Problem problem = chooser_.problem_of(task);
  const std::vector<const Recipe*> recipes = chooser_.best_recipes(task, problem);
  for (std::size_t i = 0; i < problem.operands.size(); ++i) {
    const ValueId operand = node.operands[i];
    if (!operand.valid() || graph.constant(operand) || copies.count(operand)) continue;
    NeededOrder order;
    for (const Recipe* recipe : recipes) {
      if (!order && recipe->needs) order = recipe->needs(problem, i);
    }
    if (!order) continue;
    const ir::Value& value = graph.value(operand);
    if (value.type.count() == 0) continue;  // in any layout
    const Storage copied = steps_.temporary(value.type, *order, value.name, maker_of(graph, operand));
    steps_.emit(scope, copy_call(value.type, scope.homes.storage.at(operand), copied, chooser_.machine()),
                {{"layout", std::nullopt}}, "layout of the next step",
                layout_text(value.type, copied.strides));
    copies[operand] = copied;
  }
  return copies;
}

void Scheduler::copy_outputs(ScheduleScope& scope, const std::vector<Storage>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].valid()) continue;
    const ValueId id = scope.graph.outputs()[i];
    const ir::Value& value = scope.graph.value(id);
    if (value.type.count() == 0) continue;
    if (value.constant) {
      KernelCall call = copy_call(value.type, {-1, 0, ir::row_major_strides(value.type.shape)}, outputs[i],
                                  chooser_.machine());
      CallArgument source;
      source.kind = CallArgument::Kind::kWeights;
      source.weights = weights_.add_tensor(*value.constant, value.name);
      source.c_type = call.arguments[0].c_type;
      source.parameter = "x";
      call.arguments[0] = source;
      steps_.emit(scope, std::move(call), {{"constant", std::nullopt}}, "constant output",
                  layout_text(value.type, outputs[i].strides));
      continue;
    }
    const Storage& at = scope.homes.storage.at(id);
    const bool there = at.buffer == outputs[i].buffer && at.offset == outputs[i].offset;
    if (!there)
      steps_.emit(scope, copy_call(value.type, at, outputs[i], chooser_.machine()),
                  {{"output", std::nullopt}}, "output", layout_text(value.type, outputs[i].strides));
  }
}

/// A run that ends at a check has written nothing: checks come first, with what they are computed from.
static void checks_first(const ir::Graph& graph, std::vector<NodeId>& order) {
  std::set<NodeId> early;
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    if (!early.count(*at) && !ir::is_check(graph, *at)) continue;
    early.insert(*at);
    for (const ValueId operand : graph.node(*at).operands) {
      if (operand.valid() && graph.value(operand).producer.valid())
        early.insert(graph.value(operand).producer);
    }
  }
  std::stable_partition(order.begin(), order.end(), [&](NodeId id) { return early.count(id) > 0; });
}

std::vector<LoweredStep> Scheduler::run(const ir::Graph& graph, const std::vector<Storage>& inputs,
                                        const std::vector<Storage>& outputs,
                                        const std::vector<Storage>& host_inputs) {
  ScheduleScope scope{graph};
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
  if (chooser_.on_device()) {
    order = with_caches_late(graph, scope.forms, std::move(order));
    scope.host_only = host_only_nodes(graph, scope.forms, order);
  }
  checks_first(graph, order);
  std::map<NodeId, std::int64_t> time;
  for (std::size_t i = 0; i < order.size(); ++i) time[order[i]] = static_cast<std::int64_t>(i);
  const bool copy_views = !chooser_.machine().smallest_scratch;
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
      if (const std::size_t lowered = strips_.lower(scope, std::span(order).subspan(next)); lowered > 0) {
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
