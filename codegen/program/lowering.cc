#include "codegen/program/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "codegen/program/schedule_builder.h"
#include "codegen/program/state_tensors.h"

namespace gcompile {
namespace {

/// The alignment of buffers when size counts more than speed: still a whole vector of the smallest
/// instruction sets.
constexpr std::int64_t kSmallAlignment = 16;

/// The best of the alternatives that the options leave.
std::unique_ptr<ScheduleBuilder> planned_schedule(const SizedGraph& sized,
                                                  const std::vector<StateTensor>& states,
                                                  const LoweringOptions& options) {
  const auto planned = [&](const ScheduleOptions& choices, KernelChooser& chooser) {
    auto builder = std::make_unique<ScheduleBuilder>(sized, states, options);
    builder->plan(choices, chooser);
    return builder;
  };
  KernelOptions kernels = options.kernels;
  KernelChooser fastest(kernels);
  std::unique_ptr<ScheduleBuilder> best = planned({}, fastest);
  if (const double price = best->weight_price(); price > kernels.machine.weight_price) {
    kernels.machine.weight_price = price;
    KernelChooser thrifty(kernels);
    best = planned({}, thrifty);
  }
  if (!options.optimize_for_size) return best;
  // What an order or a copy saves shows only in the plan:
  // every combination is planned, the first smallest wins.
  kernels.machine.smallest_scratch = true;
  KernelChooser smallest(kernels);
  for (const bool place_parts : {true, false}) {
    for (const bool lowest_peak : {false, true}) {
      std::unique_ptr<ScheduleBuilder> other = planned({lowest_peak, place_parts}, smallest);
      if (other->arena_bytes() < best->arena_bytes()) best = std::move(other);
    }
  }
  return best;
}

/// What a run of each graph leaves for the next one, whatever the sizes of both: with room for all.
std::vector<std::vector<StateTensor>> states_of(const std::vector<SizedGraph>& graphs,
                                                const LoweringOptions& options) {
  std::vector<std::vector<StateTensor>> out;
  for (const SizedGraph& sized : graphs) {
    const ir::SizesScope scope(sized.formulas.get());
    out.push_back(state_tensors(*sized.graph, options.states));
  }
  const ir::SizesScope scope(graphs.front().formulas.get());
  for (std::size_t i = 0; i < out.front().size(); ++i) {
    StateTensor& first = out.front()[i];
    for (const std::vector<StateTensor>& states : out) {
      const StateTensor& other = states[i];
      if (other.type == first.type && other.growing_axis != first.growing_axis) {
        throw CompileError(ExitCode::kModel, fmt::format("the state '{}' grows in one run and not in another",
                                                         printable(first.input_name)));
      }
      if (other.type != first.type) {
        throw CompileError(
            ExitCode::kModel,
            fmt::format("the state '{}' would be {} in one run and {} in another",
                        printable(first.input_name), to_string(first.type), to_string(other.type)));
      }
      for (std::size_t axis = 0; axis < first.room.size(); ++axis)
        first.room[axis] = std::max(first.room[axis], other.room[axis]);
    }
    for (std::vector<StateTensor>& states : out) states[i].room = first.room;
  }
  return out;
}

}  // namespace

std::int64_t buffer_alignment(const LoweringOptions& options) {
  return options.optimize_for_size ? kSmallAlignment : kBlockUnit;
}

Program lower_graphs(const std::vector<SizedGraph>& graphs, const LoweringOptions& options) {
  Program program;
  program.target = options.kernels.machine.target;
  program.name = options.name;
  program.precision = options.kernels.machine.precision;
  if (info_of(program.target).has_device_memory) {
    std::vector<GpuArchitecture>& gpus = program.device.emplace().architectures;
    gpus = options.kernels.later;
    gpus.insert(gpus.begin(), options.kernels.machine.architecture);
  }
  program.buffer_alignment = buffer_alignment(options);
  std::vector<std::unique_ptr<ScheduleBuilder>> builders;
  std::vector<std::vector<int>> entries;  // of each schedule's weights, in the joint ones
  WeightBlob weights;
  const std::vector<std::vector<StateTensor>> states = states_of(graphs, options);
  for (std::size_t i = 0; i < graphs.size(); ++i) {
    const ir::SizesScope scope(graphs[i].formulas.get());
    builders.push_back(planned_schedule(graphs[i], states[i], options));
    entries.push_back(weights.take(builders.back()->take_weights()));
  }
  program.states = states.front();
  program.held_sizes = held_sizes(graphs, states);
  // On a device, where the host does not look, the instance holds them.
  if (!program.held_sizes.empty() && !info_of(program.target).has_device_memory) {
    program.state_bytes = header_bytes(graphs.front().formulas->symbols().size());
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
    const ir::SizesScope scope(graphs[i].formulas.get());
    program.schedules.push_back(builders[i]->finish(program, kernels, std::move(places)));
    builders[i].reset();
  }
  kernels.finish(program);
  return program;
}

Program lower_graph(const ir::Graph& graph, const LoweringOptions& options) {
  return lower_graphs({{&graph, nullptr}}, options);
}

}  // namespace gcompile
