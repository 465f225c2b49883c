#include "codegen/program/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "codegen/program/schedule_builder.h"
#include "codegen/program/state_tensors.h"

namespace gcompile {
namespace {

/// Of buffers when size counts more than speed: still a whole vector of the smallest instruction sets.
constexpr std::int64_t kSmallAlignment = 16;

/// The best of the alternatives that the options leave.
std::unique_ptr<ScheduleBuilder> planned_schedule(const ir::Graph& graph, const LoweringOptions& options) {
  KernelOptions kernels = options.kernels;
  const auto planned = [&](const ScheduleOptions& schedule) {
    auto builder = std::make_unique<ScheduleBuilder>(graph, options, schedule);
    builder->plan();
    return builder;
  };
  std::unique_ptr<ScheduleBuilder> best = planned({false, true, kernels});
  if (const double price = best->weight_price(); price > kernels.machine.weight_price) {
    kernels.machine.weight_price = price;
    best = planned({false, true, kernels});
  }
  if (!options.optimize_for_size) return best;
  // What an order or a copy saves shows only in the plan: every combination is planned, the first smallest
  // wins.
  kernels.machine.smallest_scratch = true;
  for (const bool place_parts : {true, false}) {
    for (const bool lowest_peak : {false, true}) {
      std::unique_ptr<ScheduleBuilder> other = planned({lowest_peak, place_parts, kernels});
      if (other->arena_bytes() < best->arena_bytes()) best = std::move(other);
    }
  }
  return best;
}

/// What a run leaves for the next one, whatever the sizes of both.
std::vector<StateTensor> states_of(const std::vector<std::unique_ptr<ScheduleBuilder>>& builders) {
  const std::vector<StateTensor>& states = builders.front()->states();
  for (const auto& builder : builders) {
    for (std::size_t i = 0; i < states.size(); ++i) {
      const ir::TensorType& type = builder->states()[i].type;
      if (type == states[i].type) continue;
      throw ir::CompileError(
          ir::ExitCode::kModel,
          fmt::format("the state '{}' would be {} in one run and {} in another",
                      ir::printable(states[i].input_name), to_string(states[i].type), to_string(type)));
    }
  }
  return states;
}

}  // namespace

std::int64_t buffer_alignment(const LoweringOptions& options) {
  return options.optimize_for_size ? kSmallAlignment : kBlockUnit;
}

Program lower_graphs(const std::vector<const ir::Graph*>& graphs, const LoweringOptions& options) {
  Program program;
  program.target = options.kernels.machine.target;
  program.name = options.name;
  program.precision = options.kernels.machine.precision;
  program.buffer_alignment = buffer_alignment(options);
  std::vector<std::unique_ptr<ScheduleBuilder>> builders;
  std::vector<std::vector<int>> entries;  // of each schedule's weights, in the joint ones
  WeightBlob weights;
  for (const ir::Graph* graph : graphs) {
    builders.push_back(planned_schedule(*graph, options));
    entries.push_back(weights.take(builders.back()->take_weights()));
  }
  program.states = states_of(builders);
  program.held_sizes = held_sizes(program.states);
  // Of a device, where the host does not look, the instance holds them.
  if (!program.held_sizes.empty() && !info_of(program.target).has_device_memory) {
    program.state_bytes = header_bytes(ir::SizesScope::in_force()->symbols().size());
  }
  for (StateTensor& state : program.states) {
    state.offset = program.state_bytes;
    program.state_bytes += whole_units(state.bytes());
  }
  program.weights = weights_file(weights.finish(kWeightsHeaderBytes));
  program.weights_bytes = static_cast<std::int64_t>(program.weights.bytes.size() - kWeightsHeaderBytes);
  name_weights(program, weights);
  KernelTable kernels(info_of(program.target));
  for (std::size_t i = 0; i < builders.size(); ++i) {
    std::vector<std::size_t> places;
    for (const int entry : entries[i]) places.push_back(weights.place_of(entry));
    program.schedules.push_back(builders[i]->finish(program, kernels, std::move(places)));
    builders[i].reset();
  }
  kernels.finish(program);
  return program;
}

Program lower_graph(const ir::Graph& graph, const LoweringOptions& options) {
  return lower_graphs({&graph}, options);
}

}  // namespace gcompile
