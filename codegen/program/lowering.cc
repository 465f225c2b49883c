#include "codegen/program/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <set>

#include "codegen/memory/check.h"
#include "codegen/program/addresses.h"
#include "codegen/program/kernel_table.h"
#include "codegen/program/placed_ports.h"
#include "codegen/program/port_copies.h"
#include "codegen/program/ports.h"
#include "codegen/program/state_tensors.h"
#include "codegen/program/weight_budget.h"
#include "codegen/schedule/schedule.h"
#include "ir/interrupt.h"

namespace gcompile {
namespace {

/// Of buffers when size counts more than speed: still a whole vector of the smallest instruction sets.
constexpr std::int64_t kSmallAlignment = 16;

bool has_traps(const std::vector<LoweredStep>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const LoweredStep& s) {
    return s.call.traps || has_traps(s.then_steps) || has_traps(s.else_steps);
  });
}

class ProgramBuilder {
 public:
  ProgramBuilder(const ir::Graph& graph, const LoweringOptions& options, ScheduleOptions schedule)
      : graph_(graph),
        options_(options),
        schedule_(schedule),
        target_(info_of(options.kernels.machine.target)),
        kernels_(target_),
        addresses_(buffers_, weights_, program_) {}

  /// Kernels, order and memory; what an alternative is judged by.
  void plan() {
    program_.target = options_.kernels.machine.target;
    program_.name = options_.name;
    program_.precision = options_.kernels.machine.precision;
    program_.buffer_alignment = options_.optimize_for_size ? kSmallAlignment : kBlockUnit;
    ir::Diagnostics diagnostics;
    check_port_elements(graph_, diagnostics);
    diagnostics.throw_if_errors();
    warn_without_tensor_cores();
    ports_ = make_ports(graph_, options_.states, target_, buffers_);
    program_.states = ports_.states;
    for (const StateTensor& state : program_.states) program_.state_bytes += whole_units(state.type.bytes());
    Scheduler scheduler(buffers_, weights_, diagnostics, schedule_);
    steps_ = scheduler.run(graph_, ports_.input_homes, ports_.output_homes, ports_.host_homes);
    program_.host_bytes = scheduler.host_bytes();
    check_forced(scheduler.forced_used(), diagnostics);
    diagnostics.throw_if_errors();
    plan_arena(scheduler.now());
    if (has_traps(steps_)) add_trap_word();
  }

  std::int64_t arena_bytes() const { return program_.arena_bytes; }

  /// 0: the weights are within their budget. Else the price of a byte that brings them there.
  double weight_price() const {
    const std::int64_t extra = extra_weights(steps_);
    std::int64_t bytes = program_.arena_bytes - extra;
    for (const WeightBlob::Entry& entry : weights_.entries()) bytes += entry.bytes;
    const std::int64_t budget = bytes / 100 * options_.extra_weights_percent;
    return extra <= budget ? 0 : weight_price_within(steps_, budget);
  }

  /// The weights are packed and the steps get their addresses; once.
  Program finish() {
    program_.weights = weights_file(weights_.finish(kWeightsHeaderBytes));
    program_.weights_bytes = static_cast<std::int64_t>(program_.weights.bytes.size() - kWeightsHeaderBytes);
    name_offsets(program_, buffers_, planned_, weights_, addresses_);
    add_steps(steps_);
    program_.inputs = std::move(ports_.inputs);
    program_.outputs = std::move(ports_.outputs);
    kernels_.finish(program_);
    return std::move(program_);
  }

 private:
  /// The calls, and the copies around them.
  void add_steps(const std::vector<LoweredStep>& steps) {
    const auto append = [&](std::vector<Step> more) {
      std::move(more.begin(), more.end(), std::back_inserter(program_.steps));
    };
    if (target_.has_device_memory) {
      addresses_.placed = place_ports(steps, addresses_.arena_names, {ports_.inputs, ports_.input_buffers},
                                      {ports_.outputs, ports_.output_buffers});
      append(input_copies(ports_, buffers_, addresses_));
    }
    append(convert(steps));
    append(state_copies(ports_, graph_.output_names(), addresses_));
    if (target_.has_device_memory) append(output_copies(ports_, buffers_, addresses_));
    for (const Step& step : program_.steps) program_.graph_steps += step.kind == Step::Kind::kCopy;
    program_.graph_steps += static_cast<std::int64_t>(addresses_.placed.size());
    program_.graph_steps += program_.trap_offset >= 0;
  }

  /// Every --kernel has to name a node that a kernel family of its kind serves.
  void check_forced(const std::set<std::size_t>& used, ir::Diagnostics& diagnostics) const {
    for (std::size_t i = 0; i < options_.kernels.forced.size(); ++i) {
      if (used.count(i)) continue;
      const auto& [node, family] = options_.kernels.forced[i];
      ir::Diagnostic diagnostic;
      diagnostic.code = "E0306";
      diagnostic.message = fmt::format("--kernel asks for {}, but no step of its kind computes a node '{}'",
                                       family, ir::printable(node));
      diagnostic.help = "the report lists the nodes that each step computes";
      diagnostics.add(std::move(diagnostic));
    }
  }

  void plan_arena(std::int64_t end) {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      StorageBuffer& buffer = buffers_[static_cast<std::size_t>(ports_.output_homes[i].buffer)];
      if (buffer.space == Space::kArena) buffer.end_step = end + 1;  // read by the copy behind the last step
    }
    for (const int i : ports_.input_buffers) {
      StorageBuffer& buffer = buffers_[static_cast<std::size_t>(i)];
      if (buffer.space == Space::kArena && buffer.first_step >= 0) buffer.first_step = 0;
    }
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const StorageBuffer& from = buffers_[i];
      if (from.space != Space::kArena || from.first_step < 0) continue;
      Buffer buffer;
      buffer.name = from.name;
      buffer.kind = from.scratch ? BufferKind::kScratch : BufferKind::kActivation;
      buffer.size = std::max<std::int64_t>(from.bytes, 1);
      buffer.begin_step = from.first_step;
      buffer.end_step = from.end_step;
      buffer.alignment = program_.buffer_alignment;
      planned_.push_back(static_cast<int>(i));
      program_.buffers.push_back(std::move(buffer));
      if (from.scratch) {
        program_.statistics.scratch_bytes =
            std::max(program_.statistics.scratch_bytes, whole_units(from.bytes));
      }
    }
    program_.plan = plan_memory(program_.buffers);
    const auto violations = check_memory_plan(program_.buffers, program_.plan);
    GC_CHECK(violations.empty());
    program_.arena_bytes = whole_units(program_.plan.arena_bytes);
    program_.statistics.arena_lower_bound = program_.plan.lower_bound;
  }

  /// Of a kernel, which joins the table and the layers.
  Step call_step(const LoweredStep& from) {
    Step step;
    step.comment = from.comment;
    step.result = from.result;
    step.function = kernels_.name_of(from);
    step.checked = from.call.checked;
    step.threaded = from.call.threaded;
    step.on_host = from.call.on_host;
    for (const CallArgument& a : from.call.arguments) step.arguments.push_back(addresses_.of(a));
    if (step.on_host) {
      for (Argument& a : step.arguments) {
        if (a.space == Argument::Space::kWeights) a.space = Argument::Space::kHostWeights;
      }
      return step;
    }
    Layer layer;
    layer.function = step.function;
    layer.family = from.call.family;
    layer.origins = from.comment;
    layer.result = from.result;
    layer.multiply_adds = from.call.multiply_adds;
    layer.multiplies_bytes = from.call.multiplies_bytes;
    layer.bytes_read = from.bytes_read;
    layer.weight_bytes = from.weight_bytes;
    layer.bytes_written = from.bytes_written;
    layer.microseconds = from.call.microseconds;
    layer.choice = from.call.choice;
    layer.problem = from.call.problem;
    layer.rivals = from.call.rivals;
    for (const ir::Origin& origin : from.origins) {
      if (origin.name) layer.nodes.push_back(*origin.name);
    }
    if (!from.call.warning.empty()) warn(from.comment, from.call.warning);
    program_.in_tiles |= from.call.in_tiles;
    if (from.call.multiplies_floats) program_.zeroes_denormals = !options_.keeps_denormals;
    program_.graph_steps += from.call.launches;
    program_.statistics.multiply_adds += from.call.multiply_adds;
    program_.layers.push_back(std::move(layer));
    return step;
  }

  std::vector<Step> convert(const std::vector<LoweredStep>& steps) {
    std::vector<Step> out;
    for (const LoweredStep& from : steps) {
      ir::poll_interrupt();
      Step step;
      step.comment = from.comment;
      step.result = from.result;
      switch (from.kind) {
        case LoweredStep::Kind::kTrap:
          step.kind = Step::Kind::kTrap;
          step.comment = from.trap;
          break;
        case LoweredStep::Kind::kIf:
          step.kind = Step::Kind::kIf;
          ++program_.graph_steps;
          step.arguments = {addresses_.of(from.condition, ir::ElementType::kBool)};
          step.then_steps = convert(from.then_steps);
          step.else_steps = convert(from.else_steps);
          break;
        case LoweredStep::Kind::kStrips:
          step.kind = Step::Kind::kStrips;
          step.strips = from.strips;
          step.arguments = {addresses_.of(from.strip_buffers, ir::ElementType::kUInt8)};
          step.arguments[0].c_type = "std::byte";
          for (std::size_t i = 0; i < from.strip_steps.size(); ++i) {
            Step call = call_step(from.strip_steps[i]);
            call.strip_kernel = static_cast<int>(i);
            program_.layers.back().hands_over_strips = i + 1 < from.strip_steps.size();
            step.strip_steps.push_back(std::move(call));
          }
          program_.remarks.push_back({fmt::format("strips: {} to {}", from.strip_steps.front().comment,
                                                  from.strip_steps.back().comment),
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

  /// What the user may not expect of the products: for the terminal, and among the report's remarks.
  void warn(const std::string& subject, const std::string& text) {
    ir::Diagnostic diagnostic;
    diagnostic.severity = ir::Severity::kWarning;
    diagnostic.code = "W0305";
    diagnostic.message = fmt::format("{}: {}", subject, text);
    program_.warnings.push_back(std::move(diagnostic));
    program_.remarks.push_back({"precision: " + subject, text});
  }

  void warn_without_tensor_cores() {
    const Precision precision = options_.kernels.machine.precision;
    if (precision == Precision::kFp32) return;
    if (gcrt::has_tensor_cores(options_.kernels.machine.capability, precision)) return;
    warn(fmt::format("sm_{}", options_.kernels.machine.capability),
         fmt::format("its tensor cores do not take {}: products are float32 (FFMA)",
                     facts_of(precision).name));
  }

  /// A word that kernels set when an index is out of range, in an arena block of its own.
  void add_trap_word() {
    program_.trap_offset = program_.arena_bytes;
    program_.arena_bytes += kBlockUnit;
  }

  const ir::Graph& graph_;
  const LoweringOptions& options_;
  ScheduleOptions schedule_;
  const TargetInfo& target_;
  Program program_;
  std::vector<LoweredStep> steps_;
  GraphPorts ports_;
  std::vector<StorageBuffer> buffers_;
  WeightBlob weights_;
  std::vector<int> planned_;  // buffers, in the order of the plan
  KernelTable kernels_;
  Addresses addresses_;
};

}  // namespace

Program lower_graph(const ir::Graph& graph, const LoweringOptions& options) {
  KernelOptions kernels = options.kernels;
  const auto planned = [&](const ScheduleOptions& schedule) {
    auto builder = std::make_unique<ProgramBuilder>(graph, options, schedule);
    builder->plan();
    return builder;
  };
  std::unique_ptr<ProgramBuilder> best = planned({false, true, kernels});
  if (const double price = best->weight_price(); price > kernels.machine.weight_price) {
    kernels.machine.weight_price = price;
    best = planned({false, true, kernels});
  }
  if (!options.optimize_for_size) return best->finish();
  // What an order or a copy saves shows only in the plan: every combination is planned, the first smallest
  // wins, and only its weights are packed.
  kernels.machine.smallest_scratch = true;
  for (const bool place_parts : {true, false}) {
    for (const bool lowest_peak : {false, true}) {
      std::unique_ptr<ProgramBuilder> other = planned({lowest_peak, place_parts, kernels});
      if (other->arena_bytes() < best->arena_bytes()) best = std::move(other);
    }
  }
  return best->finish();
}

}  // namespace gcompile
