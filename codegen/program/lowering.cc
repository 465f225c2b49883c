#include "codegen/program/lowering.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "codegen/loops/c_types.h"
#include "codegen/memory/check.h"
#include "codegen/program/names.h"
#include "codegen/program/placed_ports.h"
#include "codegen/program/state_tensors.h"
#include "codegen/schedule/schedule.h"
#include "ir/interrupt.h"
#include "template/text.h"

namespace gcompile {
namespace {

constexpr std::size_t kLineWidth = 110;  // of emitted code
/// Of buffers when size counts more than speed: still a whole vector of the smallest instruction sets.
constexpr std::int64_t kSmallAlignment = 16;

class ProgramBuilder {
 public:
  ProgramBuilder(const ir::Graph& graph, const LoweringOptions& options, ScheduleOptions schedule)
      : graph_(graph), options_(options), schedule_(schedule) {}

  Program run() {
    program_.target = options_.kernels.target;
    program_.name = options_.name;
    program_.precision = options_.kernels.precision;
    program_.buffer_alignment = options_.optimize_for_size ? kSmallAlignment : kBlockUnit;
    ir::Diagnostics diagnostics;
    check_elements(diagnostics);
    diagnostics.throw_if_errors();
    warn_without_tensor_cores();
    make_ports();
    Scheduler scheduler(buffers_, weights_, diagnostics, schedule_);
    std::vector<LoweredStep> steps = scheduler.run(graph_, inputs_, outputs_, host_inputs_);
    program_.host_bytes = scheduler.host_bytes();
    diagnostics.throw_if_errors();
    plan(scheduler.now());
    if (has_traps(steps)) add_trap_word();
    program_.weights = weights_.finish();
    program_.weights_bytes = static_cast<std::int64_t>(program_.weights.size());
    name_offsets();
    if (on_device()) {
      placed_ =
          place_ports(steps, arena_name_, {program_.inputs, input_ports_}, {program_.outputs, output_ports_});
      copy_inputs();
    }
    for (Step& step : convert(steps)) program_.steps.push_back(std::move(step));
    commit_states();
    if (on_device()) copy_outputs();
    for (const Step& step : program_.steps) program_.graph_steps += step.kind == Step::Kind::kCopy;
    program_.graph_steps += static_cast<std::int64_t>(placed_.size());
    program_.graph_steps += program_.trap_offset >= 0;
    collect_headers();
    return std::move(program_);
  }

 private:
  /// Inputs and outputs then have places in the arena, for callers whose memory kernels cannot use.
  bool on_device() const { return options_.kernels.target == Target::kCuda; }

  /// Only constants may have elements in which nothing computes.
  void check_elements(ir::Diagnostics& diagnostics) const {
    const auto check = [&](const char* what, const std::string& name, const ir::TensorType& type) {
      if (is_computable(type.element)) return;
      ir::Diagnostic diagnostic;
      diagnostic.code = "E0304";
      diagnostic.message = fmt::format("{} '{}' has elements of {}, which is not supported", what,
                                       ir::printable(name), name_of(type.element));
      diagnostics.add(std::move(diagnostic));
    };
    for (const ir::ValueId id : graph_.inputs()) {
      check("input", graph_.value(id).name, graph_.value(id).type);
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      check("output", graph_.output_names()[i], graph_.value(graph_.outputs()[i]).type);
    }
  }

  void make_ports() {
    Names input_names, output_names;
    const auto state_of = [&](const std::string& name, bool input) {
      for (std::size_t i = 0; i < options_.states.size(); ++i) {
        if ((input ? options_.states[i].first : options_.states[i].second) == name)
          return static_cast<int>(i);
      }
      return -1;
    };
    program_.states = state_tensors(graph_, options_.states);
    for (const StateTensor& state : program_.states) program_.state_bytes += whole_units(state.type.bytes());
    for (const ir::ValueId id : graph_.inputs()) {
      const ir::Value& value = graph_.value(id);
      StorageBuffer buffer;
      buffer.bytes = value.type.bytes();
      buffer.name = value.name;
      buffer.type = value.type;
      if (const int state = state_of(value.name, true); state >= 0) {
        buffer.space = Space::kState;
        buffer.port = state;
      } else {
        buffer.space = on_device() ? Space::kArena : Space::kInput;
        buffer.port = static_cast<int>(program_.inputs.size());
        input_ports_.push_back(static_cast<int>(buffers_.size()));
        program_.inputs.push_back(
            {input_names(value.name, ""), value.name, value.type, api_type(value.type.element)});
      }
      buffers_.push_back(std::move(buffer));
      inputs_.push_back({static_cast<int>(buffers_.size()) - 1, 0, ir::row_major_strides(value.type.shape)});
      host_inputs_.push_back(host_input(value.type, buffers_.back()));
    }
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ir::Value& value = graph_.value(graph_.outputs()[i]);
      const std::string& name = graph_.output_names()[i];
      StorageBuffer buffer;
      buffer.bytes = value.type.bytes();
      buffer.name = name;
      buffer.type = value.type;
      if (state_of(name, false) < 0) {
        buffer.space = on_device() ? Space::kArena : Space::kOutput;
        buffer.port = static_cast<int>(program_.outputs.size());
        output_ports_.push_back(static_cast<int>(buffers_.size()));
        program_.outputs.push_back({output_names(name, ""), name, value.type, api_type(value.type.element)});
      }
      // A state's next value waits in the arena until the run has read the old one.
      buffers_.push_back(std::move(buffer));
      outputs_.push_back({static_cast<int>(buffers_.size()) - 1, 0, ir::row_major_strides(value.type.shape)});
    }
  }

  /// Where the host finds an input of a CUDA program: at the caller's pointer. States lie on the device.
  Storage host_input(const ir::TensorType& type, const StorageBuffer& on_device_buffer) {
    if (!on_device() || on_device_buffer.space != Space::kArena) return {};
    StorageBuffer buffer = on_device_buffer;
    buffer.space = Space::kInput;
    buffers_.push_back(std::move(buffer));
    return {static_cast<int>(buffers_.size()) - 1, 0, ir::row_major_strides(type.shape)};
  }

  void plan(std::int64_t end) {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      StorageBuffer& buffer = buffers_[static_cast<std::size_t>(outputs_[i].buffer)];
      if (buffer.space == Space::kArena) buffer.end_step = end + 1;  // read by the copy behind the last step
    }
    for (const int i : input_ports_) {
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

  void name_offsets() {
    Names names;
    for (std::size_t i = 0; i < planned_.size(); ++i) {
      const StorageBuffer& buffer = buffers_[static_cast<std::size_t>(planned_[i])];
      Offset offset;
      offset.name = names(buffer.name.empty() ? "value" : buffer.name, "at_");
      offset.value = program_.plan.offsets[i];
      offset.bytes = buffer.bytes;
      offset.what =
          buffer.scratch ? "scratch of one step" : fmt::format("{} {}", buffer.name, to_string(buffer.type));
      arena_name_[planned_[i]] = offset.name;
      program_.arena_offsets.push_back(std::move(offset));
    }
    for (const WeightBlob::Entry& entry : weights_.entries()) {
      Offset offset;
      offset.name = names(entry.name.empty() ? "constant" : entry.name, "w_");
      offset.value = entry.offset;
      offset.bytes = entry.bytes;
      offset.what = fmt::format("{} {}", entry.name, entry.what);
      program_.weight_offsets.push_back(std::move(offset));
    }
  }

  Argument convert(const Storage& storage, ir::ElementType element) const {
    const StorageBuffer& buffer = buffers_[static_cast<std::size_t>(storage.buffer)];
    Argument argument;
    argument.extra = storage.offset * (bits_of(element) / 8);
    switch (buffer.space) {
      case Space::kArena:
        argument.space = Argument::Space::kArena;
        argument.offset_constant = arena_name_.at(storage.buffer);
        if (const auto at = placed_.find(storage.buffer); at != placed_.end()) argument.space = at->second;
        break;
      case Space::kInput:
        argument.space = Argument::Space::kInput;
        break;
      case Space::kOutput:
        argument.space = Argument::Space::kOutput;
        break;
      case Space::kState:
        argument.space = Argument::Space::kState;
        argument.offset_constant =
            fmt::format("state_{}", program_.states[static_cast<std::size_t>(buffer.port)].c_name);
        break;
      case Space::kHost:
        argument.space = Argument::Space::kHost;
        argument.offset_constant = std::to_string(buffer.port);
        break;
      case Space::kWeights:
        argument.space = Argument::Space::kWeights;
        argument.offset_constant =
            program_.weight_offsets[static_cast<std::size_t>(buffer.weights_entry)].name;
        break;
    }
    argument.port = buffer.port;
    argument.c_type = kernel_type(element);
    return argument;
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
          step.arguments = {convert(from.condition, ir::ElementType::kBool)};
          step.then_steps = convert(from.then_steps);
          step.else_steps = convert(from.else_steps);
          break;
        case LoweredStep::Kind::kCall:
          step.function = kernel_for(from);
          step.checked = from.call.checked;
          step.threaded = from.call.threaded;
          step.on_host = from.call.on_host;
          for (const CallArgument& a : from.call.arguments) step.arguments.push_back(convert(a));
          if (step.on_host) {
            for (Argument& a : step.arguments) {
              if (a.space == Argument::Space::kWeights) a.space = Argument::Space::kHostWeights;
            }
            break;
          }
          Layer layer;
          layer.function = step.function;
          layer.family = from.call.family;
          layer.origins = from.comment;
          layer.result = from.result;
          layer.multiply_adds = from.call.multiply_adds;
          layer.bytes_read = from.bytes_read;
          layer.bytes_written = from.bytes_written;
          layer.microseconds = from.call.microseconds;
          layer.choice = from.call.choice;
          if (!from.call.warning.empty()) warn(from.comment, from.call.warning);
          program_.graph_steps += from.call.launches;
          program_.statistics.multiply_adds += from.call.multiply_adds;
          program_.layers.push_back(std::move(layer));
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
    const Precision precision = options_.kernels.precision;
    if (!on_device() || precision == Precision::kFp32) return;
    if (gcrt::has_tensor_cores(options_.kernels.capability, precision)) return;
    warn(fmt::format("sm_{}", options_.kernels.capability),
         fmt::format("its tensor cores do not take {}: products are float32 (FFMA)",
                     facts_of(precision).name));
  }

  Argument convert(const CallArgument& from) const {
    Argument argument;
    if (from.kind == CallArgument::Kind::kWeights) {
      argument.space = Argument::Space::kWeights;
      argument.offset_constant = program_.weight_offsets[static_cast<std::size_t>(from.weights)].name;
    } else {
      argument = convert(from.storage, from.element);
    }
    argument.c_type = from.c_type;
    argument.writes = from.writes;
    return argument;
  }

  std::string signature(const KernelCall& call) const {
    const std::string parameters = parameter_list(call);
    const std::string last = call.on_host    ? ""
                             : on_device()   ? "Queue& queue"
                             : call.threaded ? "const Threads* threads"
                                             : "";
    return fmt::format("{} {}({}{}{})", call.checked ? "bool" : "void", KernelCall::kName, parameters,
                       parameters.empty() || last.empty() ? "" : ", ", last);
  }

  /// Operator names of the origins, shortened: "conv_relu_12".
  std::string kernel_name(const LoweredStep& step) {
    std::string words;
    std::string_view rest = step.comment;
    int count = 0;
    while (!rest.empty() && count < 3) {
      const std::size_t end = rest.find_first_of(" ,");
      const std::string word = identifier_words(rest.substr(0, end), 20);
      words += (words.empty() ? "" : "_") + word;
      ++count;
      const std::size_t next = rest.find("', ");
      if (next == std::string_view::npos) break;
      rest = rest.substr(next + 3);
    }
    if (words.empty()) words = step.call.family;
    return fmt::format("{}_{}", words, program_.kernels.size());
  }

  std::string kernel_for(const LoweredStep& step) {
    const KernelCall& call = step.call;
    std::string functor_name;
    if (!call.functor.empty()) {
      const auto [at, inserted] =
          functors_.try_emplace(call.functor, static_cast<int>(program_.functors.size()));
      if (inserted) {
        Functor functor;
        functor.name = fmt::format("Epilogue{}", program_.functors.size());
        functor.text = replace_all(call.functor, KernelCall::kFunctor, functor.name);
        program_.functors.push_back(std::move(functor));
      }
      functor_name = program_.functors[static_cast<std::size_t>(at->second)].name;
    }
    const std::string body = replace_all(call.body, KernelCall::kFunctor, functor_name);
    const std::string device = replace_all(call.device, KernelCall::kFunctor, functor_name);
    const std::string text = device + (device.empty() ? "" : "\n") + signature(call) + " {\n" + body + "}\n";
    const auto [at, inserted] = kernels_.try_emplace(text, static_cast<int>(program_.kernels.size()));
    if (inserted) {
      Kernel kernel;
      kernel.name = kernel_name(step);
      kernel.family = call.family;
      const auto named = [&](const std::string& with_placeholder) {
        return wrap_signatures(replace_all(with_placeholder, KernelCall::kName, kernel.name), kLineWidth);
      };
      kernel.declaration = named(signature(call) + ";");
      kernel.text = named(text);
      kernel.headers = call.headers;
      if (call.threaded && !on_device()) kernel.headers.push_back("gcrt/parallel.h");
      if (!functor_name.empty()) kernel.functors = {functor_name};
      program_.kernels.push_back(std::move(kernel));
    }
    Kernel& kernel = program_.kernels[static_cast<std::size_t>(at->second)];
    ++kernel.calls;
    return kernel.name;
  }

  /// New states are copied over the old ones when nothing reads those any more.
  void commit_states() {
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const auto at = std::find_if(program_.states.begin(), program_.states.end(), [&](const StateTensor& s) {
        return s.output_name == graph_.output_names()[i];
      });
      if (at == program_.states.end()) continue;
      Step step;
      step.kind = Step::Kind::kCopy;
      Argument from = convert(outputs_[i], at->type.element);
      Argument to;
      to.space = Argument::Space::kState;
      to.offset_constant = fmt::format("state_{}", at->c_name);
      to.c_type = from.c_type;
      to.writes = true;
      step.arguments = {std::move(from), std::move(to)};
      step.bytes = at->type.bytes();
      step.comment = fmt::format("state '{}' for the next run", at->input_name);
      step.result = to_string(at->type);
      program_.steps.push_back(std::move(step));
    }
  }

  static bool has_traps(const std::vector<LoweredStep>& steps) {
    return std::any_of(steps.begin(), steps.end(), [](const LoweredStep& s) {
      return s.call.traps || has_traps(s.then_steps) || has_traps(s.else_steps);
    });
  }

  /// A word that kernels set when an index is out of range, in an arena block of its own.
  void add_trap_word() {
    program_.trap_offset = program_.arena_bytes;
    program_.arena_bytes += kBlockUnit;
  }

  Step copy_step(const Argument& from, const Argument& to, const Port& port, const char* what) const {
    Step step;
    step.kind = Step::Kind::kCopy;
    step.arguments = {from, to};
    step.arguments[1].writes = true;
    step.bytes = port.type.bytes();
    step.comment = fmt::format("{} '{}'", what, port.model_name);
    step.result = to_string(port.type);
    return step;
  }

  void copy_inputs() {
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const StorageBuffer& buffer = buffers_[static_cast<std::size_t>(input_ports_[i])];
      if (buffer.first_step < 0 || placed_.count(input_ports_[i]) > 0) continue;  // nothing reads a copy
      Argument from;
      from.space = Argument::Space::kInput;
      from.port = static_cast<int>(i);
      from.c_type = program_.inputs[i].c_type;
      const Argument to = convert(Storage{input_ports_[i], 0, {}}, buffer.type.element);
      program_.steps.push_back(copy_step(from, to, program_.inputs[i], "input"));
    }
  }

  void copy_outputs() {
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      const StorageBuffer& buffer = buffers_[static_cast<std::size_t>(output_ports_[i])];
      if (buffer.bytes == 0 || placed_.count(output_ports_[i]) > 0) continue;
      Argument to;
      to.space = Argument::Space::kOutput;
      to.port = static_cast<int>(i);
      to.c_type = program_.outputs[i].c_type;
      const Argument from = convert(Storage{output_ports_[i], 0, {}}, buffer.type.element);
      program_.steps.push_back(copy_step(from, to, program_.outputs[i], "output"));
    }
  }

  void collect_headers() {
    std::vector<std::string>& headers = program_.headers;
    for (const Kernel& kernel : program_.kernels) {
      headers.insert(headers.end(), kernel.headers.begin(), kernel.headers.end());
    }
    std::sort(headers.begin(), headers.end());
    headers.erase(std::unique(headers.begin(), headers.end()), headers.end());
  }

  const ir::Graph& graph_;
  const LoweringOptions& options_;
  ScheduleOptions schedule_;
  Program program_;
  std::vector<StorageBuffer> buffers_;
  WeightBlob weights_;
  std::vector<Storage> inputs_, outputs_, host_inputs_;
  std::vector<int> input_ports_, output_ports_;  // their buffers
  std::vector<int> planned_;
  std::map<int, std::string> arena_name_;
  std::map<int, Argument::Space> placed_;  // buffers of ports that kernels use in the caller's memory
  std::map<std::string, int> kernels_, functors_;
};

}  // namespace

Program lower_graph(const ir::Graph& graph, const LoweringOptions& options) {
  KernelOptions kernels = options.kernels;
  Program best = ProgramBuilder(graph, options, {false, true, kernels}).run();
  if (!options.optimize_for_size) return best;
  // What an order or a copy saves shows only in the plan: every combination is planned, the first smallest
  // wins.
  kernels.smallest_scratch = true;
  for (const bool place_parts : {true, false}) {
    for (const bool lowest_peak : {false, true}) {
      Program program = ProgramBuilder(graph, options, {lowest_peak, place_parts, kernels}).run();
      if (program.arena_bytes < best.arena_bytes) best = std::move(program);
    }
  }
  return best;
}

}  // namespace gcompile
