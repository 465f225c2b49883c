// Steps of a schedule as they are appended: the lives of their buffers, their bytes, and the time predicted
// for them.

#include <algorithm>
#include <utility>

#include "codegen/kernels/cuda_call.h"
#include "codegen/schedule/schedule.h"
#include "codegen/schedule/scope.h"

namespace gcompile {

void Scheduler::touch(const Storage& storage) {
  StorageBuffer& buffer = buffers_[static_cast<std::size_t>(storage.buffer)];
  if (buffer.first_step < 0) buffer.first_step = now_;
  buffer.end_step = std::max(buffer.end_step, now_ + 1);
}

void Scheduler::emit(Scope& scope, KernelCall call, std::vector<ir::Origin> origins, std::string comment,
                     std::string result) {
  scope.steps.push_back(
      made_step(std::move(call), std::move(origins), std::move(comment), std::move(result)));
  ++now_;
}

Storage Scheduler::scratch(std::int64_t bytes, const char* name) {
  StorageBuffer buffer;
  buffer.bytes = bytes;
  buffer.name = name;
  buffer.scratch = true;
  buffers_.push_back(std::move(buffer));
  return {static_cast<int>(buffers_.size()) - 1, 0, {}};
}

/// CUDA: whether what the arena holds is still in the second-level cache when the next kernel wants it.
/// Inputs, outputs and states are not: weights pass through between two runs.
bool Scheduler::stays_in_cache(const StorageBuffer& buffer) const {
  const bool is_of_the_caller = buffer.space != Space::kArena || buffer.port >= 0;
  return !is_of_the_caller && 2 * buffer.bytes <= std::int64_t{machine().gpu.cache_megabytes} << 20;
}

LoweredStep Scheduler::made_step(KernelCall call, std::vector<ir::Origin> origins, std::string comment,
                                 std::string result) {
  LoweredStep step;
  std::int64_t bytes_of_memory = 0;
  for (CallArgument& argument : call.arguments) {
    if (argument.kind == CallArgument::Kind::kScratch) {
      argument.storage.buffer = scratch(argument.scratch_bytes, "scratch").buffer;
    }
    if (argument.kind == CallArgument::Kind::kWeights) {
      const std::int64_t all = weights_.entries()[static_cast<std::size_t>(argument.weights)].bytes;
      step.weight_bytes += argument.bytes >= 0 ? argument.bytes : all;
      continue;
    }
    if (argument.kind == CallArgument::Kind::kStrip) continue;
    touch(argument.storage);
    const StorageBuffer& buffer = buffers_[static_cast<std::size_t>(argument.storage.buffer)];
    const std::int64_t bytes = argument.bytes >= 0 ? argument.bytes : buffer.bytes;
    (argument.writes ? step.bytes_written : step.bytes_read) += bytes;
    if (argument.kind == CallArgument::Kind::kScratch) step.scratch_bytes += bytes;
    if (!stays_in_cache(buffer)) bytes_of_memory += bytes;
  }
  step.bytes_read += step.weight_bytes;
  if (on_device()) {
    // What is written to scratch is read again.
    call.time = predicted_time(
        call, machine(),
        {step.bytes_read + step.bytes_written + step.scratch_bytes, bytes_of_memory + step.weight_bytes});
  }
  step.call = std::move(call);
  step.origins = std::move(origins);
  step.comment = std::move(comment);
  step.result = std::move(result);
  return step;
}

std::vector<ir::Origin> origins_of(const ir::Node& node) {
  return node.origins.empty() ? std::vector<ir::Origin>{{std::string(node.op->name), node.name}}
                              : node.origins;
}

std::string comment_of(const ir::Node& node) {
  std::string text;
  for (const ir::Origin& origin : origins_of(node)) text += (text.empty() ? "" : ", ") + to_string(origin);
  return text;
}

}  // namespace gcompile
