#include "codegen/schedule/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "codegen/kernels/cuda_shape.h"
#include "codegen/schedule/order.h"
#include "codegen/schedule/storage_assigner.h"
#include "ir/interrupt.h"

namespace gcompile {

using ir::NodeId;
using ir::ValueId;

struct Scheduler::Scope {
  const ir::Graph& graph;
  StorageAssigner::Forms forms;
  StorageAssigner::Result homes;
  std::map<ValueId, Storage> host_homes;  // CUDA: of the values that the host knows
  std::vector<LoweredStep> steps;
  std::set<NodeId> host_only;  // CUDA: nodes that nothing but the choice of branches needs
};

namespace {

/// Homes of one call: an operand that was copied for it is at home in the copy until the call is made.
class HomesOfCall {
 public:
  explicit HomesOfCall(std::map<ValueId, Storage>& homes) : homes_(homes) {}
  ~HomesOfCall() {
    for (auto at = replaced_.rbegin(); at != replaced_.rend(); ++at)
      homes_.at(at->first) = std::move(at->second);
  }
  HomesOfCall(const HomesOfCall&) = delete;
  HomesOfCall& operator=(const HomesOfCall&) = delete;
  const std::map<ValueId, Storage>& all() const { return homes_; }
  void replace(ValueId value, const Storage& home) {
    replaced_.emplace_back(value, std::exchange(homes_.at(value), home));
  }

 private:
  std::map<ValueId, Storage>& homes_;
  std::vector<std::pair<ValueId, Storage>> replaced_;
};

}  // namespace

Storage Scheduler::temporary(const ir::TensorType& type, const std::vector<int>& order,
                             const std::string& name) {
  StorageBuffer buffer;
  buffer.bytes = type.bytes();
  buffer.name = name;
  buffer.type = type;
  buffers_.push_back(std::move(buffer));
  return {static_cast<int>(buffers_.size()) - 1, 0, ir::strides_in_order(type.shape, order)};
}

void Scheduler::touch(const Storage& storage) {
  StorageBuffer& buffer = buffers_[static_cast<std::size_t>(storage.buffer)];
  if (buffer.first_step < 0) buffer.first_step = now_;
  buffer.end_step = std::max(buffer.end_step, now_ + 1);
}

void Scheduler::emit(Scope& scope, KernelCall call, std::string comment, std::string result) {
  LoweredStep step;
  for (CallArgument& argument : call.arguments) {
    if (argument.kind == CallArgument::Kind::kScratch) {
      StorageBuffer scratch;
      scratch.bytes = argument.scratch_bytes;
      scratch.name = "scratch";
      scratch.scratch = true;
      buffers_.push_back(std::move(scratch));
      argument.storage.buffer = static_cast<int>(buffers_.size()) - 1;
    }
    if (argument.kind == CallArgument::Kind::kWeights) {
      const std::int64_t all = weights_.entries()[static_cast<std::size_t>(argument.weights)].bytes;
      step.bytes_read += argument.bytes >= 0 ? argument.bytes : all;
      continue;
    }
    touch(argument.storage);
    const std::int64_t all = buffers_[static_cast<std::size_t>(argument.storage.buffer)].bytes;
    (argument.writes ? step.bytes_written : step.bytes_read) += argument.bytes >= 0 ? argument.bytes : all;
  }
  if (options_.kernels.target == Target::kCuda) {
    call.microseconds =
        predicted_microseconds(call, options_.kernels.capability, step.bytes_read + step.bytes_written);
  }
  step.call = std::move(call);
  step.comment = std::move(comment);
  step.result = std::move(result);
  scope.steps.push_back(std::move(step));
  ++now_;
}

namespace {

std::string comment_of(const ir::Node& node) {
  if (!node.origins.empty()) return fmt::format("{}", fmt::join(node.origins, ", "));
  return fmt::format("{} '{}'", node.op->name, node.name);
}

}  // namespace

void Scheduler::lower_node(Scope& scope, NodeId id) {
  const ir::Graph& graph = scope.graph;
  const ir::Node& node = graph.node(id);
  if (scope.homes.elided.count(id)) return;
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
  const std::string comment = comment_of(node);
  const ValueId first =
      *std::find_if(node.results.begin(), node.results.end(), [](ValueId result) { return result.valid(); });
  const std::string result = to_string(graph.value(first).type);
  // Operands in a layout that the kernel does not take are copied first.
  HomesOfCall homes(scope.homes.storage);
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    KernelBuilder probe(graph, homes.all(), weights_, options_.kernels);
    const auto order = probe.needed_order(id, form, static_cast<int>(i));
    if (!order) continue;
    const ValueId operand = node.operands[i];
    const ir::Value& value = graph.value(operand);
    const Storage copied = temporary(value.type, *order, value.name);
    emit(scope, probe.copy(value.type, homes.all().at(operand), copied), "layout of the next step",
         to_string(value.type));
    homes.replace(operand, copied);
  }
  KernelBuilder builder(graph, homes.all(), weights_, options_.kernels);
  if (const auto* loops = std::get_if<ir::LoopForm>(&form)) {
    ir::LoopForm remaining = *loops;
    if (const auto at = scope.homes.elided_regions.find(id); at != scope.homes.elided_regions.end()) {
      remaining.regions.clear();
      for (std::size_t r = 0; r < loops->regions.size(); ++r) {
        if (!at->second.count(r)) remaining.regions.push_back(loops->regions[r]);
      }
    }
    emit(scope, builder.loops(id, remaining), comment, result);
  } else if (const auto* contract = std::get_if<ir::ContractForm>(&form)) {
    emit(scope, builder.contract(id, *contract), comment, result);
  } else {
    emit(scope, builder.library(id, std::get<ir::LibraryForm>(form)), comment, result);
  }
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
    ir::operator_error(fmt::format(
        "the condition depends on {}, which --target cuda has on the device only; --set fixes an input",
        why));
  };
  const NodeId producer = graph.value(value).producer;
  if (!producer.valid()) refuse(fmt::format("'{}'", ir::printable(graph.value(value).name)));
  const ir::Node& node = graph.node(producer);
  const auto* loops = std::get_if<ir::LoopForm>(&scope.forms.at(producer));
  if (!loops || !loops->checks.empty() || graph.value(value).type.count() > kMostHostElements) {
    refuse(fmt::format("{} '{}'", node.op->name, ir::printable(node.name)));
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
  KernelCall call = KernelBuilder(graph, scope.host_homes, weights_, KernelOptions{})
                        .loops(producer, std::get<ir::LoopForm>(scope.forms.at(producer)));
  call.on_host = true;
  call.family = "host";
  emit(scope, std::move(call), comment_of(graph.node(producer)) + " on the host",
       to_string(graph.value(value).type));
}

namespace {

/// Nodes that nothing but the choice of branches needs. `order`: every node before its readers.
std::set<NodeId> host_only_nodes(const ir::Graph& graph, const StorageAssigner::Forms& forms,
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

void Scheduler::lower_if(Scope& scope, NodeId id) {
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
  const bool cuda = options_.kernels.target == Target::kCuda;
  step.condition = cuda ? steer(scope, node.operands[0]) : home_of(node.operands[0]);
  touch(step.condition);
  ++now_;
  std::vector<Storage> inputs, outputs, host_inputs;
  for (std::size_t i = 1; i < node.operands.size(); ++i) {
    inputs.push_back(home_of(node.operands[i]));
    const auto known = scope.host_homes.find(node.operands[i]);
    host_inputs.push_back(known == scope.host_homes.end() ? Storage{} : known->second);
  }
  for (const ValueId result : node.results) {
    outputs.push_back(result.valid() ? scope.homes.storage.at(result) : Storage{});
    if (result.valid()) touch(outputs.back());
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
      steps = run(branch, inputs, outputs, host_inputs);
    }
    ++now_;
  }
  // Captures and results live until both branches have ended.
  for (const Storage& s : inputs) touch(s);
  for (const Storage& s : outputs) {
    if (s.valid()) touch(s);
  }
  scope.steps.push_back(std::move(step));
  ++now_;
}

void Scheduler::copy_outputs(Scope& scope, const std::vector<Storage>& outputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i].valid()) continue;
    const ValueId id = scope.graph.outputs()[i];
    const ir::Value& value = scope.graph.value(id);
    if (value.type.count() == 0) continue;
    KernelBuilder builder(scope.graph, scope.homes.storage, weights_, options_.kernels);
    if (value.constant) {
      KernelCall call =
          builder.copy(value.type, {-1, 0, ir::row_major_strides(value.type.shape)}, outputs[i]);
      CallArgument source;
      source.kind = CallArgument::Kind::kWeights;
      source.weights = weights_.add_tensor(*value.constant, value.name);
      source.c_type = call.arguments[0].c_type;
      source.parameter = "x0";
      call.arguments[0] = source;
      emit(scope, std::move(call), "constant output", to_string(value.type));
      continue;
    }
    const Storage& at = scope.homes.storage.at(id);
    const bool there = at.buffer == outputs[i].buffer && at.offset == outputs[i].offset;
    if (!there) emit(scope, builder.copy(value.type, at, outputs[i]), "output", to_string(value.type));
  }
}

namespace {

/// An order of the nodes in which fewer bytes live at a time. Views count as their operand.
std::vector<NodeId> lowest_peak_order(const ir::Graph& graph, const StorageAssigner::Forms& forms,
                                      const std::vector<NodeId>& given) {
  std::vector<ScheduleStep> steps;
  std::vector<ScheduleValue> values;
  std::map<ValueId, std::int32_t> index;  // of the value that holds the bytes
  std::map<ValueId, std::int32_t> views;  // the step that a reader of a view comes after
  const auto index_of = [&](ValueId id) {
    const auto [at, inserted] = index.try_emplace(id, static_cast<std::int32_t>(values.size()));
    if (inserted) {
      const ir::Value& value = graph.value(id);
      const bool arena = value.producer.valid() && !graph.is_output(id);
      values.push_back({arena ? value.type.bytes() : 0, graph.is_output(id)});
    }
    return at->second;
  };
  for (const NodeId id : given) {
    const ir::Node& node = graph.node(id);
    ScheduleStep step;
    for (const ValueId operand : node.operands) {
      if (!operand.valid() || graph.constant(operand)) continue;
      step.uses.push_back(index_of(operand));
      if (const auto after = views.find(operand); after != views.end()) step.after.push_back(after->second);
    }
    const auto number = static_cast<std::int32_t>(steps.size());
    const auto* loops = std::get_if<ir::LoopForm>(&forms.at(id));
    const ir::ScalarNode* load = loops ? ir::pure_load(*loops) : nullptr;
    const bool view = load && !graph.is_output(node.results[0]) &&
                      !graph.constant(node.operands[static_cast<std::size_t>(load->operand)]);
    for (const ValueId result : node.results) {
      if (!result.valid()) continue;
      if (view) {
        const ValueId operand = node.operands[static_cast<std::size_t>(load->operand)];
        index[result] = index.at(operand);
        views[result] = number;  // which comes after the view that it is of, if it is of one
      } else {
        step.makes.push_back(index_of(result));
      }
    }
    std::sort(step.uses.begin(), step.uses.end());
    step.uses.erase(std::unique(step.uses.begin(), step.uses.end()), step.uses.end());
    steps.push_back(std::move(step));
  }
  std::vector<NodeId> order;
  for (const std::int32_t step : choose_schedule_order(steps, values).steps) {
    order.push_back(given[static_cast<std::size_t>(step)]);
  }
  return order;
}

}  // namespace

std::vector<LoweredStep> Scheduler::run(const ir::Graph& graph, const std::vector<Storage>& inputs,
                                        const std::vector<Storage>& outputs,
                                        const std::vector<Storage>& host_inputs) {
  Scope scope{graph, {}, {}, {}, {}, {}};
  for (std::size_t i = 0; i < host_inputs.size(); ++i) {
    if (host_inputs[i].valid()) scope.host_homes[graph.inputs()[i]] = host_inputs[i];
  }
  std::vector<NodeId> order = graph.topological_order();
  for (const NodeId id : order) {
    try {
      scope.forms.emplace(id, ir::form_of(graph, id));
    } catch (const ir::OperatorError& error) {
      diagnostics_.add(ir::diagnose(graph, id, "E0301", error));
    }
  }
  if (scope.forms.size() != order.size()) return {};
  if (options_.lowest_peak) order = lowest_peak_order(graph, scope.forms, order);
  if (options_.kernels.target == Target::kCuda) {
    scope.host_only = host_only_nodes(graph, scope.forms, order);
  }
  std::map<NodeId, std::int64_t> time;
  for (std::size_t i = 0; i < order.size(); ++i) time[order[i]] = static_cast<std::int64_t>(i);
  // Launches cost more than memory does on a GPU.
  const bool copy_views = options_.kernels.target == Target::kCuda && !options_.kernels.smallest_scratch;
  scope.homes = StorageAssigner(graph, scope.forms, buffers_, options_.place_parts, copy_views)
                    .run(order, inputs, outputs, time);
  for (const NodeId id : order) {
    ir::poll_interrupt();
    try {
      lower_node(scope, id);
    } catch (const ir::OperatorError& error) {
      diagnostics_.add(ir::diagnose(graph, id, "E0302", error));
    }
  }
  copy_outputs(scope, outputs);
  return std::move(scope.steps);
}

}  // namespace gcompile
