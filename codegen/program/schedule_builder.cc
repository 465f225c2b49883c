#include "codegen/program/schedule_builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include "base/interrupt.h"
#include "codegen/calls/cuda_time.h"
#include "codegen/memory/check.h"
#include "codegen/program/placed_ports.h"
#include "codegen/program/port_copies.h"
#include "codegen/program/state_tensors.h"
#include "codegen/program/threaded_steps.h"
#include "codegen/program/weight_budget.h"
#include "codegen/schedule/data_flow.h"
#include "gcrt/cuda/product/tile_model.h"

namespace gcompile {
namespace {

bool has_traps(const std::vector<LoweredStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const LoweredStep& s) {
    return (s.call.device && s.call.device->traps) || has_traps(s.then_steps) || has_traps(s.else_steps);
  });
}

/// The most words in which the blocks of a kernel count.
std::int64_t most_counters(const std::vector<LoweredStep>& steps) {
  std::int64_t most = 0;
  for (const LoweredStep& s : steps) {
    const std::int64_t own = s.call.device ? s.call.device->counters : 0;
    most = std::max({most, own, most_counters(s.then_steps), most_counters(s.else_steps)});
  }
  return most;
}

/// What the user may not expect of the products: for the terminal, once, and among the schedule's remarks.
void warn(Program& program, Schedule& schedule, const std::string& subject, const std::string& text) {
  Diagnostic diagnostic;
  diagnostic.severity = Severity::kWarning;
  diagnostic.code = "W0305";
  diagnostic.message = fmt::format("{}: {}", subject, text);
  const auto is_same = [&](const Diagnostic& other) { return other.message == diagnostic.message; };
  if (std::none_of(program.warnings.begin(), program.warnings.end(), is_same)) {
    program.warnings.push_back(std::move(diagnostic));
  }
  schedule.report.remarks.push_back({"precision", subject, text});
}

/// Steps as the program has them: with names of functions and addresses. Their kernels join the table, what
/// they do joins layers and statistics.
class StepConverter {
 public:
  StepConverter(const LoweringOptions& options, const Addresses& addresses, Program& program,
                KernelTable& kernels, Schedule& schedule)
      : options_(options), addresses_(addresses), program_(program), kernels_(kernels), schedule_(schedule) {}

  std::vector<Step> convert(const std::vector<LoweredStep>& steps) {
    std::vector<Step> out;
    for (const LoweredStep& from : steps) {
      poll_interrupt();
      Step step;
      step.comment = from.comment;
      step.result = from.result;
      switch (from.kind) {
        case LoweredStep::Kind::kTrap:
          step.kind = Step::Kind::kTrap;
          step.comment = from.trap;
          step.trapped = from.trapped;
          break;
        case LoweredStep::Kind::kIf:
          step.kind = Step::Kind::kIf;
          if (schedule_.device) ++schedule_.device->graph_steps;
          step.arguments = {addresses_.of(from.condition, ir::ElementType::kBool)};
          note_host_inputs(step);
          step.then_steps = convert(from.then_steps);
          step.else_steps = convert(from.else_steps);
          break;
        case LoweredStep::Kind::kStrips:
          step.kind = Step::Kind::kStrips;
          step.strips = from.strips;
          flow_.begin_strips();
          step.arguments = {addresses_.of(from.strip_buffers, ir::ElementType::kUInt8)};
          step.arguments[0].c_type = "std::byte";
          for (std::size_t i = 0; i < from.strip_steps.size(); ++i) {
            Step call = call_step(from.strip_steps[i]);
            call.strip_kernel = static_cast<int>(i);
            schedule_.layers.back().hands_over_strips = i + 1 < from.strip_steps.size();
            step.strip_steps.push_back(std::move(call));
          }
          schedule_.report.remarks.push_back(
              {"strips",
               fmt::format("{} to {}", from.strip_steps.front().comment, from.strip_steps.back().comment),
               to_string(from.strips)});
          break;
        case LoweredStep::Kind::kCall:
          step = call_step(from);
          break;
      }
      out.push_back(std::move(step));
    }
    return out;
  }

 private:
  Step call_step(const LoweredStep& from) {
    Step step;
    step.comment = from.comment;
    step.result = from.result;
    step.function = kernels_.name_of(from);
    step.checked = from.call.checked;
    step.threaded = from.call.threaded;
    step.alone = from.alone;
    step.on_host = from.call.on_host;
    for (const CallArgument& a : from.call.arguments) step.arguments.push_back(addresses_.of(a));
    step.sizes = from.call.sizes.sizes();
    if (step.on_host) {
      for (Argument& a : step.arguments) {
        if (a.space == Argument::Space::kWeights) give_to_host(a);
      }
      note_host_inputs(step);
      return step;
    }
    if (const std::optional<DeviceCall>& device = from.call.device) {
      if (!device->warning.empty()) warn(program_, schedule_, from.comment, device->warning);
      program_.device->has_instances |= device->has_instances;
      schedule_.device->graph_steps += device->launches;
    }
    program_.in_tiles |= from.call.in_tiles;
    if (from.call.multiplies_floats) program_.zeroes_denormals = !options_.keeps_denormals;
    schedule_.statistics.multiply_adds += from.call.multiply_adds;
    schedule_.layers.push_back(layer_of(from, step.function));
    schedule_.layers.back().reads = flow_.add(from.call, schedule_.layers.size() - 1);
    return step;
  }

  /// On a device only the host's own steps read inputs where the caller has them.
  void note_host_inputs(const Step& step) {
    if (!schedule_.device) return;
    for (const Argument& a : step.arguments) {
      if (a.space == Argument::Space::kInput) schedule_.device->host_inputs.insert(a.port);
    }
  }

  void give_to_host(Argument& weights) {
    if (offsets_.empty()) {
      for (Offset& offset : program_.weight_offsets) offsets_[offset.name] = &offset;
    }
    const auto [at, is_new] = at_host_.emplace(weights.place, schedule_.device->host_bytes);
    if (is_new) {
      Offset& offset = *offsets_.at(weights.place);
      if (offset.c_type.empty()) offset.c_type = weights.c_type;
      schedule_.device->host_weights.push_back({offset.name, at->second, offset.bytes});
      schedule_.device->host_bytes += (offset.bytes + 63) / 64 * 64;
    }
    weights.space = Argument::Space::kHost;
    weights.place = std::to_string(at->second);
  }

  Layer layer_of(const LoweredStep& from, const std::string& function) const {
    Layer layer;
    layer.function = function;
    layer.family = from.call.family;
    layer.origins = from.comment;
    layer.result = from.result;
    layer.multiply_adds = from.call.multiply_adds;
    layer.figures = from.call.figures;
    layer.multiplies_bytes = from.call.multiplies_bytes;
    layer.bytes_read = from.bytes_read;
    layer.weight_bytes = from.weight_bytes;
    layer.bytes_written = from.bytes_written;
    layer.scratch_bytes = from.scratch_bytes;
    if (from.call.device) {
      layer.execution = *from.call.device;
      layer.executions = from.call.device->executions;
    }
    layer.problem = from.call.problem;
    layer.rivals = from.call.rivals;
    layer.picoseconds = predicted(layer);
    for (const ir::Origin& origin : from.origins) {
      if (origin.name) layer.nodes.push_back(*origin.name);
    }
    return layer;
  }

  std::int64_t predicted(const Layer& layer) const {
    if (layer.execution.time.microseconds() > 0) return picoseconds_of(layer.execution.time);
    if (!layer.rivals.empty()) return layer.rivals.front().picoseconds;
    return options_.kernels.machine.picoseconds(layer.multiply_adds, layer.bytes_read + layer.bytes_written);
  }

  const LoweringOptions& options_;
  const Addresses& addresses_;
  Program& program_;
  KernelTable& kernels_;
  Schedule& schedule_;
  DataFlow flow_;
  std::map<std::string, Offset*> offsets_;       // of weights, once the host reads some
  std::map<std::string, std::int64_t> at_host_;  // where its copies of them are
};

}  // namespace

void ScheduleBuilder::plan(const ScheduleOptions& choices, KernelChooser& chooser) {
  Diagnostics diagnostics;
  check_packed_ports(graph_, states_, diagnostics);
  diagnostics.throw_if_errors();
  ports_ = make_ports(graph_, states_, target_, buffers_);
  Scheduler scheduler(buffers_, weights_, diagnostics, chooser, choices);
  steps_ = scheduler.run(graph_, ports_.input_homes, ports_.output_homes, ports_.host_homes);
  if (target_.has_device_memory) schedule_.device.emplace().host_bytes = scheduler.host_bytes();
  check_forced(chooser.forced_used(), diagnostics);
  diagnostics.throw_if_errors();
  // Steps whose sizes are of the run keep their threads.
  if (target_.has_thread_pool && !schedule_.formulas) leave_to_one_thread(steps_, options_.kernels.machine);
  plan_arena(scheduler.now());
  if (target_.has_device_memory) add_zeroed_words();
}

double ScheduleBuilder::weight_price() const {
  const std::int64_t extra = extra_weights(steps_);
  std::int64_t bytes = schedule_.arena_bytes - extra;
  for (const WeightBlob::Entry& entry : weights_.entries()) bytes += entry.bytes;
  const std::int64_t budget = bytes / 100 * options_.extra_weights_percent;
  return extra <= budget ? 0 : weight_price_within(steps_, budget);
}

Schedule ScheduleBuilder::finish(Program& program, KernelTable& kernels, std::vector<std::size_t> places) {
  warn_without_tensor_cores(program);
  Addresses addresses(buffers_, std::move(places), program);
  Names names;
  addresses.arena_names = name_arena(schedule_, buffers_, planned_, names);
  const auto append = [&](std::vector<Step> more) {
    std::move(more.begin(), more.end(), std::back_inserter(schedule_.steps));
  };
  if (target_.has_device_memory) {
    addresses.placed = place_ports(steps_, addresses.arena_names, {ports_.inputs, ports_.input_buffers},
                                   {ports_.outputs, ports_.output_buffers});
    append(input_copies(ports_, buffers_, addresses));
  }
  append(StepConverter(options_, addresses, program, kernels, schedule_).convert(steps_));
  append(state_copies(ports_, graph_.output_names(), addresses));
  if (target_.has_device_memory) append(output_copies(ports_, buffers_, addresses));
  name_parts(schedule_, names);
  note_element_types(program, schedule_);
  if (schedule_.device) {
    std::int64_t& graph_steps = schedule_.device->graph_steps;
    for (const Step& step : schedule_.steps) graph_steps += step.kind == Step::Kind::kCopy;
    graph_steps += static_cast<std::int64_t>(addresses.placed.size());
    graph_steps += schedule_.device->zeroed_bytes > 0;
  }
  schedule_.inputs = std::move(ports_.inputs);
  schedule_.outputs = std::move(ports_.outputs);
  return std::move(schedule_);
}

void ScheduleBuilder::warn_without_tensor_cores(Program& program) {
  const Precision precision = options_.kernels.machine.precision;
  if (!program.device || precision == Precision::kFp32) return;
  for (const GpuArchitecture& gpu : program.device->architectures) {
    if (gcrt::has_tensor_cores(gpu.capability, precision)) continue;
    warn(program, schedule_, name_of(gpu),
         fmt::format("its tensor cores do not take {}: products are float32 (FFMA)",
                     facts_of(precision).name));
  }
}

/// Every --kernel has to name a node that a kernel family of its kind serves.
void ScheduleBuilder::check_forced(const std::set<std::size_t>& used, Diagnostics& diagnostics) const {
  for (std::size_t i = 0; i < options_.kernels.forced.size(); ++i) {
    if (used.count(i)) continue;
    const auto& [node, family] = options_.kernels.forced[i];
    Diagnostic diagnostic;
    diagnostic.code = "E0306";
    diagnostic.message = fmt::format("--kernel asks for {}, but no step of its kind computes a node '{}'",
                                     family, printable(node));
    diagnostic.help = "the report lists the nodes that each step computes";
    diagnostics.add(std::move(diagnostic));
  }
}

void ScheduleBuilder::plan_arena(std::int64_t end) {
  for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
    StorageBuffer& buffer = buffers_[static_cast<std::size_t>(ports_.output_homes[i].buffer)];
    if (buffer.space == Space::kArena) buffer.end_step = end + 1;  // read by the copy behind the last step
  }
  for (const int i : ports_.input_buffers) {
    StorageBuffer& buffer = buffers_[i];
    if (buffer.space == Space::kArena && buffer.first_step >= 0) buffer.first_step = 0;
  }
  Statistics& statistics = schedule_.statistics;
  for (std::size_t i = 0; i < buffers_.size(); ++i) {
    const StorageBuffer& from = buffers_[i];
    if (from.space != Space::kArena || from.first_step < 0) continue;
    Buffer buffer;
    buffer.name = from.name;
    buffer.kind = from.scratch ? BufferKind::kScratch : BufferKind::kActivation;
    buffer.size = std::max<std::int64_t>(from.bytes, 1);
    buffer.begin_step = from.first_step;
    buffer.end_step = from.end_step;
    buffer.alignment = buffer_alignment(options_);
    planned_.push_back(static_cast<int>(i));
    schedule_.buffers.push_back(std::move(buffer));
    if (from.scratch) statistics.scratch_bytes = std::max(statistics.scratch_bytes, whole_units(from.bytes));
  }
  schedule_.plan = plan_memory(schedule_.buffers);
  const auto violations = check_memory_plan(schedule_.buffers, schedule_.plan);
  GC_CHECK(violations.empty());
  schedule_.arena_bytes = whole_units(schedule_.plan.arena_bytes);
  statistics.arena_lower_bound = schedule_.plan.lower_bound;
}

/// A word that kernels set when an index is out of range, and those in which blocks count, in an arena block
/// of their own.
void ScheduleBuilder::add_zeroed_words() {
  constexpr std::int64_t kWord = 4;
  DeviceSchedule& device = *schedule_.device;
  device.zeroed_offset = schedule_.arena_bytes;
  const auto words = [&](std::int64_t count) {
    const std::int64_t at = device.zeroed_offset + device.zeroed_bytes;
    device.zeroed_bytes += count * kWord;
    return count > 0 ? at : -1;
  };
  device.trap_offset = words(has_traps(steps_) ? 1 : 0);
  device.counters_offset = words(most_counters(steps_));
  schedule_.arena_bytes += whole_units(device.zeroed_bytes);
}

}  // namespace gcompile
