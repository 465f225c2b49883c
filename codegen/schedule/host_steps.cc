#include "codegen/schedule/host_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace gcompile {

using ir::NodeId;
using ir::ValueId;

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

namespace {

/// Steering values are a few scalars; more is work for the device.
constexpr std::int64_t kMostHostElements = 4096;

void check_steers(const ScheduleScope& scope, ValueId value) {
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

}  // namespace

Storage HostSteps::steer(ScheduleScope& scope, ValueId value) {
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
      compute(scope, visit.value);
      continue;
    }
    const ValueId operand = operands[visit.next++];
    if (!operand.valid() || scope.graph.constant(operand)) continue;
    check_steers(scope, operand);
    open.push_back({operand});
  }
  return scope.host_homes.at(value);
}

void HostSteps::compute(ScheduleScope& scope, ValueId value) {
  const ir::Graph& graph = scope.graph;
  const NodeId producer = graph.value(value).producer;
  StorageBuffer buffer;
  buffer.space = Space::kHost;
  buffer.type = graph.value(value).type;
  buffer.bytes = buffer.type.bytes();
  buffer.name = graph.value(value).name;
  buffer.port = static_cast<int>(bytes_);
  bytes_ += (buffer.bytes + 63) / 64 * 64;
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
  steps_.emit(scope, std::move(writer.call()), origins_of(node), comment_of(node) + " on the host",
              to_string(graph.value(value).type));
}

}  // namespace gcompile
