#include "codegen/schedule/step_maker.h"

#include <algorithm>
#include <utility>

#include "codegen/calls/cuda_tiles.h"
#include "codegen/calls/cuda_time.h"
#include "codegen/calls/instances.h"

namespace gcompile {

void StepMaker::touch(const Storage& storage) {
  StorageBuffer& buffer = buffers_[storage.buffer];
  if (buffer.first_step < 0) buffer.first_step = now_;
  buffer.end_step = std::max(buffer.end_step, now_ + 1);
}

void StepMaker::emit(ScheduleScope& scope, KernelCall call, std::vector<ir::Origin> origins,
                     std::string comment, std::string result) {
  scope.steps.push_back(
      made_step(std::move(call), std::move(origins), std::move(comment), std::move(result)));
  pass();
}

Storage StepMaker::scratch(std::int64_t bytes, std::string name) {
  StorageBuffer buffer;
  buffer.bytes = bytes;
  buffer.name = std::move(name);
  buffer.scratch = true;
  buffers_.push_back(std::move(buffer));
  return {static_cast<int>(buffers_.size()) - 1, 0, {}};
}

Storage StepMaker::temporary(const ir::TensorType& type, const std::vector<int>& order,
                             const std::string& name, std::string maker) {
  StorageBuffer buffer;
  buffer.bytes = ir::highest(type.bytes());
  buffer.name = name;
  buffer.maker = std::move(maker);
  buffer.type = type;
  buffer.strides = ir::strides_in_order(type.shape, order);
  buffers_.push_back(buffer);
  return {static_cast<int>(buffers_.size()) - 1, 0, std::move(buffer.strides)};
}

namespace {

/// Whether what the arena of a device holds is still in the second-level cache when the next kernel wants it.
/// Inputs, outputs and states are not: weights pass through between two runs.
bool stays_in_cache(const StorageBuffer& buffer, const gcrt::DeviceModel& gpu) {
  const bool is_of_the_caller = buffer.space != Space::kArena || buffer.port >= 0;
  return !is_of_the_caller && 2 * buffer.bytes <= std::int64_t{gpu.cache_megabytes} << 20;
}

/// The name of what a call makes, after which its scratch is named: a step more leaves it as it is.
std::string name_of_result(const KernelCall& call, const std::vector<StorageBuffer>& buffers) {
  for (const CallArgument& argument : call.arguments) {
    if (!argument.writes || argument.kind != CallArgument::Kind::kStorage) continue;
    return argument.value.empty() ? name_in_code(buffers[argument.storage.buffer]) : argument.value;
  }
  return "";
}

}  // namespace

LoweredStep StepMaker::made_step(KernelCall call, std::vector<ir::Origin> origins, std::string comment,
                                 std::string result) {
  LoweredStep step;
  std::vector<std::pair<int, std::int64_t>> bytes_by_buffer;
  std::vector<ir::Dim> moved, of_weights;
  const std::string made = name_of_result(call, buffers_);
  for (CallArgument& argument : call.arguments) {
    if (argument.kind == CallArgument::Kind::kScratch) {
      argument.storage.buffer = scratch(argument.scratch_bytes, made + " scratch").buffer;
    }
    if (argument.kind == CallArgument::Kind::kWeights) {
      const ir::Dim all = weights_.entries()[argument.weights].bytes;
      of_weights.push_back(argument.bytes.value_or(all));
      step.weight_bytes += ir::highest(of_weights.back());
      continue;
    }
    if (argument.kind == CallArgument::Kind::kStrip) continue;
    touch(argument.storage);
    const StorageBuffer& buffer = buffers_[argument.storage.buffer];
    const ir::Dim in_run = argument.bytes.value_or(buffer.bytes);
    const std::int64_t bytes = ir::highest(in_run);
    (argument.writes ? step.bytes_written : step.bytes_read) += bytes;
    if (argument.kind == CallArgument::Kind::kScratch) {
      step.scratch_bytes += bytes;
    } else {
      moved.push_back(in_run);
    }
    bytes_by_buffer.emplace_back(argument.storage.buffer, bytes);
  }
  call.figures.bytes = sum_of(moved, step.bytes_read + step.bytes_written - step.scratch_bytes);
  // Scratch is planned for the largest sizes: what runs of others touch of it is not known.
  if (call.figures.bytes.is_constant()) call.figures.bytes += step.scratch_bytes;
  call.figures.weight_bytes = sum_of(of_weights, step.weight_bytes);
  step.bytes_read += step.weight_bytes;
  if (call.device) predict(call, step, bytes_by_buffer);
  step.call = std::move(call);
  step.origins = std::move(origins);
  step.comment = std::move(comment);
  step.result = std::move(result);
  return step;
}

/// The time of the call on each GPU.
void StepMaker::predict(KernelCall& call, const LoweredStep& step,
                        const std::vector<std::pair<int, std::int64_t>>& bytes_by_buffer) const {
  const auto predicted = [&](const Execution& execution, const Machine& gpu) {
    // What is written to scratch is read again.
    Traffic traffic = {step.bytes_read + step.bytes_written + step.scratch_bytes, step.weight_bytes};
    for (const auto& [buffer, bytes] : bytes_by_buffer) {
      if (!stays_in_cache(buffers_[buffer], gpu.gpu)) traffic.memory += bytes;
    }
    return predicted_time(execution, call.multiply_adds, gpu, traffic);
  };
  DeviceCall& device = *call.device;
  std::vector<Execution>& executions = device.executions;
  if (chooser_.machine_count() > 1 && executions.empty())
    executions.assign(chooser_.machine_count(), execution_of(call));
  for (std::size_t i = 0; i < executions.size(); ++i)
    executions[i].time = predicted(executions[i], chooser_.machine(i));
  device.time = executions.empty() ? predicted(device, chooser_.machine()) : executions.front().time;
}

std::vector<ir::Origin> origins_of(const ir::Node& node) {
  return node.origins.empty() ? std::vector<ir::Origin>{{std::string(node.op->name), node.name}}
                              : node.origins;
}

std::string maker_of(const ir::Graph& graph, ir::ValueId value) {
  const ir::NodeId producer = graph.value(value).producer;
  if (!producer.valid()) return "";
  const std::vector<ir::Origin> origins = origins_of(graph.node(producer));
  for (const ir::Origin& origin : origins) {
    if (origin.name && !origin.name->empty()) return *origin.name;
  }
  return origins[0].what;
}

std::string comment_of(const ir::Node& node) {
  std::string text;
  for (const ir::Origin& origin : origins_of(node)) text += (text.empty() ? "" : ", ") + to_string(origin);
  return text;
}

}  // namespace gcompile
