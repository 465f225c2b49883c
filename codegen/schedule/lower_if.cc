// A node of control flow: both branches lowered in place, of which a run takes one.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "codegen/schedule/schedule.h"

namespace gcompile {

using ir::NodeId;
using ir::ValueId;

namespace {

/// Where the results of a branch are of other sizes than those of its If, it cannot run.
std::vector<LoweredStep> size_traps(const ir::Graph& graph, const ir::Node& node, const ir::Graph& branch) {
  std::vector<LoweredStep> traps;
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    if (!node.results[i].valid()) continue;
    const ir::Shape& wanted = graph.value(node.results[i]).type.shape;
    const ir::Shape& own = branch.value(branch.outputs()[i]).type.shape;
    for (std::size_t axis = 0; axis < wanted.size(); ++axis) {
      const ir::Dim trapped = wanted[axis] - own[axis];
      const auto is_same = [&](const LoweredStep& step) { return step.trapped == trapped; };
      if (trapped == 0 || std::any_of(traps.begin(), traps.end(), is_same)) continue;
      LoweredStep step;
      step.kind = LoweredStep::Kind::kTrap;
      step.trap = fmt::format("'{}' is {} here, and {} in the other branch",
                              printable(branch.output_names()[i]), to_string(own), to_string(wanted));
      step.trapped = trapped;
      traps.push_back(std::move(step));
    }
  }
  return traps;
}

}  // namespace

void Scheduler::lower_if(ScheduleScope& scope, NodeId id) {
  const ir::Node& node = scope.graph.node(id);
  LoweredStep step;
  step.kind = LoweredStep::Kind::kIf;
  step.comment = comment_of(node);
  const auto home_of = [&](ValueId value) {
    const ir::Tensor* constant = scope.graph.constant(value);
    if (!constant) return scope.homes.storage.at(value);
    StorageBuffer buffer;
    buffer.space = Space::kWeights;
    buffer.type = constant->type();
    buffer.weights_entry = weights_.add_tensor(*constant, scope.graph.value(value).name);
    buffers_.push_back(std::move(buffer));
    return Storage{static_cast<int>(buffers_.size()) - 1, 0, ir::row_major_strides(constant->shape())};
  };
  step.condition = chooser_.on_device() ? host_.steer(scope, node.operands[0]) : home_of(node.operands[0]);
  steps_.touch(step.condition);
  steps_.pass();
  std::vector<Storage> inputs, outputs, host_inputs;
  for (std::size_t i = 1; i < node.operands.size(); ++i) {
    inputs.push_back(home_of(node.operands[i]));
    const auto known = scope.host_homes.find(node.operands[i]);
    host_inputs.push_back(known == scope.host_homes.end() ? Storage{} : known->second);
  }
  for (const ValueId result : node.results) {
    outputs.push_back(result.valid() ? scope.homes.storage.at(result) : Storage{});
    if (result.valid()) steps_.touch(outputs.back());
  }
  for (std::size_t b = 0; b < 2; ++b) {
    const ir::Graph& branch = node.subgraphs[b];
    std::vector<LoweredStep>& steps = b == 0 ? step.then_steps : step.else_steps;
    if (!branch.trap.empty()) {
      LoweredStep trap;
      trap.kind = LoweredStep::Kind::kTrap;
      trap.trap = branch.trap;
      steps.push_back(std::move(trap));
    } else {
      steps = size_traps(scope.graph, node, branch);
      std::vector<LoweredStep> calls = run(branch, inputs, outputs, host_inputs);
      std::move(calls.begin(), calls.end(), std::back_inserter(steps));
    }
    steps_.pass();
  }
  // Captures and results live until both branches have ended. A capture that no step has touched is an input
  // that the host alone reads, of which the device needs no copy.
  for (const Storage& s : inputs) {
    if (buffers_[static_cast<std::size_t>(s.buffer)].first_step >= 0) steps_.touch(s);
  }
  for (const Storage& s : outputs) {
    if (s.valid()) steps_.touch(s);
  }
  scope.steps.push_back(std::move(step));
  steps_.pass();
}

}  // namespace gcompile
