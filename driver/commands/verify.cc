#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "codegen/report/quantities.h"
#include "driver/commands/commands.h"
#include "driver/data/npy.h"
#include "driver/data/random_inputs.h"
#include "driver/data/size_choices.h"
#include "driver/data/sizes_to_try.h"
#include "driver/data/tensor_files.h"
#include "driver/data/test_cases.h"
#include "driver/machine/local_files.h"
#include "driver/machine/process.h"
#include "driver/verify/compare.h"
#include "driver/verify/counted_outputs.h"
#include "driver/verify/emulation.h"
#include "driver/verify/verify_findings.h"
#include "driver/verify/verify_kernels.h"
#include "driver/verify/verify_reference.h"
#include "ir/graph/operator.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

using Tensors = std::map<std::string, ir::Tensor>;
using Json = nlohmann::ordered_json;

using Cases = std::vector<TestCase>;

template <class List>
std::int64_t count_of(const List& list) {
  return static_cast<std::int64_t>(list.size());
}

/// A schedule in its runner, and what it is judged by.
struct Running {
  const Program& program;
  const Schedule& schedule;
  std::vector<std::int64_t> sizes;  // of the runs, for each of the program's
  Reference reference;
  const Runners& runners;
};

class Verifier {
 public:
  Verifier(const Options& options, bool is_emulation_asked_for, Terminal& terminal)
      : options_(options),
        is_emulation_asked_for_(is_emulation_asked_for),
        terminal_(terminal),
        root_(options.keep.empty() ? temporary_.path() : options.keep) {}

  Answer run() {
    check_early(options_, terminal_);
    if (!options_.keep.empty()) claim_folder(options_.keep);
    const bool has_sizes = !options_.size_lists.empty() || !options_.import.bindings.bounds.empty();
    const bool is_open = has_sizes && !options_.layers;
    if (options_.data.empty() && is_open) {
      verify_project(options_, {});
    } else if (options_.data.empty()) {
      // Kernels are judged in a program of their own for each choice of sizes.
      for (const SizeChoice& choice : size_choices(options_)) verify_project(choice.options, {});
    } else {
      // Cases of one shape share one program, whatever there is to choose.
      for (const Cases& cases : groups_of(read_test_cases(options_.data, options_), !is_open)) {
        Options options = options_;
        bind_elements(options, cases.front());
        if (!is_open) {
          options.size_lists.clear();
          options.import.bindings.bounds.clear();
          bind_shapes(options, cases.front());
        }
        verify_project(options, cases);
      }
    }
    return finish();
  }

 private:
  void bind_shapes(Options& options, const TestCase& test) const {
    for (const auto& [name, tensor] : test.inputs) {
      bool is_set = false;
      for (const auto& set : options.import.bindings.sets) is_set = is_set || set.input == name;
      if (!is_set) options.import.bindings.data_shapes[name] = tensor.shape();
    }
  }

  /// Without cases: random ones for every schedule.
  void verify_project(const Options& options, const Cases& cases) {
    Compilation compilation = compile_model(options, terminal_);
    if (info_of(options_.target).has_device_memory && options_.emulate)
      terminal_.note(emulation_notice(compilation.program, is_emulation_asked_for_));
    kernels_.reset();
    if (options_.layers && compilation.program.has_bounds) {
      throw CompileError(ExitCode::kUsage, "--layers takes sizes as numbers",
                         "give each dimension one with --dim NAME=SIZE");
    }
    if (options_.layers) {
      kernels_.emplace(compilation.models.front().optimised);
      lower_compilation(compilation, options);
    }
    const std::string folder = fmt::format("{}/{}", root_, group_++);
    terminal_.stage(4, 5, "build", counted(count_of(compilation.program.kernels), "kernel"));
    const Runners runners(emit_project(compilation, options), compilation.program, folder, options,
                          terminal_);
    std::set<std::string> served;
    if (compilation.program.has_bounds) {
      verify_ranges(options, compilation.program, cases, runners, folder);
      return;
    }
    for (std::size_t m = 0; m < compilation.models.size(); ++m) {
      const SizedModel& model = compilation.models[m];
      const Schedule& schedule = compilation.program.schedules[m];
      const Running running{compilation.program, schedule, schedule.sizes, Reference(model.imported),
                            runners};
      const Cases own = cases.empty() ? random_cases(model) : cases_of(running, cases);
      for (std::size_t i = 0; i < own.size(); ++i) {
        terminal_.stage(5, 5, "run", own[i].name);
        served.insert(own[i].name);
        const std::string label = compilation.models.size() > 1 ? std::to_string(m) + "_" : "";
        verify_case(running, own[i], fmt::format("{}/case_{}{}", folder, label, i));
      }
    }
    for (const TestCase& test : cases) {
      if (served.count(test.name) > 0) continue;
      throw CompileError(ExitCode::kInputOutput,
                         fmt::format("{}: no choice of --dim gives the inputs these shapes", test.name));
    }
  }

  /// Each case at the sizes of its inputs; without cases, at the corners of the bounds and at sizes between
  /// them, and each schedule behind each other one.
  void verify_ranges(const Options& options, const Program& program, const Cases& cases,
                     const Runners& runners, const std::string& folder) {
    int number = 0;
    const auto verify_at = [&](const SizedRun& run, const TestCase* given, const Tensors& states) {
      const ir::Graph graph = bound_graph(options, program, run.sizes);
      const Running running{program, program.schedules[run.schedule], run.sizes, Reference(graph), runners};
      TestCase test = given ? *given : random_case(graph, number);
      for (const auto& [name, tensor] : states) test.inputs[name] = tensor;
      test.name += fmt::format(" ({})", sizes_text(program, run.sizes));
      terminal_.stage(5, 5, "run", test.name);
      return verify_case(running, test, fmt::format("{}/case_{}", folder, number++));
    };
    for (const TestCase& test : cases) verify_at(run_of_case(program, test), &test, {});
    if (!cases.empty()) return;
    for (const SizedRun& run : runs_to_try(program, options_.seed)) verify_at(run, nullptr, {});
    for (const auto& [first, second] : continuations(program)) {
      const Tensors left = verify_at(first, nullptr, {});
      Tensors states;
      for (const StateTensor& state : program.states) {
        const auto found = left.find(state.output_name);
        if (found != left.end()) states[state.input_name] = found->second;
      }
      if (!states.empty()) verify_at(second, nullptr, states);
    }
  }

  /// The cases whose inputs have the schedule's shapes; all cases where there is one schedule, which tells
  /// what is wrong with them.
  static Cases cases_of(const Running& running, const Cases& cases) {
    if (running.program.schedules.size() == 1) return cases;
    Cases own;
    for (const TestCase& test : cases) {
      const auto fits = [&](const Port& port) {
        const auto found = test.inputs.find(port.model_name);
        return found == test.inputs.end() || found->second.shape() == port.type.shape;
      };
      const std::vector<Port>& inputs = running.schedule.inputs;
      if (std::all_of(inputs.begin(), inputs.end(), fits)) own.push_back(test);
    }
    return own;
  }

  Cases random_cases(const SizedModel& model) const {
    Cases cases;
    for (int i = 0; i < options_.random_cases; ++i) {
      cases.push_back(random_case(model.imported, i));
      if (!model.text.empty()) cases.back().name += fmt::format(" ({})", model.text);
    }
    return cases;
  }

  TestCase random_case(const ir::Graph& graph, int index) const {
    TestCase test;
    test.name = fmt::format("random {}", options_.seed + static_cast<std::uint64_t>(index));
    RandomInputs random(options_.seed + static_cast<std::uint64_t>(index));
    const std::vector<ir::Tensor> inputs = random.inputs_of(graph);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      test.inputs[graph.value(graph.inputs()[i]).name] = inputs[i];
    return test;
  }

  /// What the program made of it; nothing where it has no outputs.
  Tensors verify_case(const Running& running, const TestCase& test, const std::string& folder) {
    Tensors actual;
    for (const std::string& gpu : gpus_to_emulate(running.program, options_, turn_)) {
      TestCase named = test;
      if (!gpu.empty()) named.name += " as " + gpu;
      actual = run_case(running, named, gpu.empty() ? folder : folder + "_" + gpu,
                        running.runners.command_as(gpu));
    }
    return actual;
  }

  /// `command`: what starts the program.
  Tensors run_case(const Running& running, const TestCase& test, const std::string& folder,
                   CommandLine command) {
    const Program& program = running.program;
    const Schedule& schedule = running.schedule;
    const Reference& reference = running.reference;
    command.insert(command.end(), {"--output-dir", folder, "--threads", std::to_string(options_.threads)});
    if (options_.layers) command.emplace_back("--whole");
    for (std::size_t i = 0; i < program.sizes.size(); ++i) {
      command.insert(command.end(),
                     {"--dim", fmt::format("{}={}", program.sizes[i].c_name, running.sizes[i])});
    }
    for (std::size_t i = 0; i < schedule.inputs.size(); ++i) {
      const std::string path = fmt::format("{}/input_{}.npy", folder, i);
      const std::string& name = schedule.inputs[i].model_name;
      const ir::Tensor& tensor = input_of(test, name, input_type(reference.graph(), name));
      write_text_file(folder, fmt::format("input_{}.npy", i), "");
      write_npy(path, tensor);
      command.push_back(path);
    }
    for (std::size_t i = 0; i < program.states.size(); ++i) {
      if (test.inputs.count(program.states[i].input_name) == 0) continue;  // zero
      const std::string path = fmt::format("{}/state_input_{}.npy", folder, i);
      write_text_file(folder, fmt::format("state_input_{}.npy", i), "");
      const std::string& name = program.states[i].input_name;
      const ir::Tensor& state = input_of(test, name, input_type(reference.graph(), name));
      write_npy(path, as_element(state, program.states[i].type.element));
      command.insert(command.end(), {"--state", fmt::format("{}={}", program.states[i].c_name, path)});
    }
    write_text_file(folder, "command", command_text(command) + "\n");
    const ProcessResult result = run_process(command);
    if (result.status != 0) {
      const std::string refusal = test.outputs.empty() ? refusal_of(reference, test) : "";
      if (!refusal.empty()) {
        ++refused_;
        terminal_.note(fmt::format("no outputs  {}: {}", test.name, refusal));
        return {};
      }
      failures_.push_back(
          fmt::format("{}: the program ended with {}: {}", test.name, result.status, result.output));
      show_error(failures_.back(), "");
      return {};
    }
    Tensors actual;
    const auto read = [&](const std::string& name, const std::string& file, ir::ElementType element) {
      const ir::Tensor tensor = read_npy(folder + "/" + file);
      actual[name] = as_written(tensor, element);
    };
    for (std::size_t i = 0; i < schedule.outputs.size(); ++i) {
      const Port& port = schedule.outputs[i];
      read(port.model_name, fmt::format("{}_{}.npy", i, port.c_name), port.type.element);
    }
    for (std::size_t i = 0; i < program.states.size(); ++i) {
      const StateTensor& state = program.states[i];
      read(state.output_name, fmt::format("state_{}_{}.npy", i, state.c_name), state.type.element);
      ir::Tensor& tensor = actual[state.output_name];
      tensor = as_element(tensor, input_type(reference.graph(), state.input_name).element);
    }
    compare_case(running, test, actual);
    return actual;
  }

  /// Why the model itself has no outputs for these inputs, as where it takes a branch that contradicts
  /// itself; empty where it has.
  std::string refusal_of(const Reference& reference, const TestCase& test) const {
    try {
      CaseReference(reference, test.inputs, options_.precision).get();
    } catch (const CompileError& error) {
      if (error.exit_code() != ExitCode::kModel) throw;
      return error.what();
    }
    return "";
  }

  static const ir::TensorType& input_type(const ir::Graph& graph, const std::string& name) {
    for (const ir::ValueId id : graph.inputs()) {
      if (graph.value(id).name == name) return graph.value(id).type;
    }
    GC_CHECK(false);
  }

  static const ir::Tensor& input_of(const TestCase& test, const std::string& name,
                                    const ir::TensorType& type) {
    const auto found = test.inputs.find(name);
    if (found == test.inputs.end()) {
      throw CompileError(ExitCode::kInputOutput,
                         fmt::format("{}: no tensor for the input '{}'", test.name, printable(name)));
    }
    if (found->second.type() != type) {
      throw CompileError(ExitCode::kInputOutput,
                         fmt::format("{}: the input '{}' is {}, the model takes {}", test.name,
                                     printable(name), to_string(found->second.type()), to_string(type)));
    }
    return found->second;
  }

  void compare_case(const Running& running, const TestCase& test, const Tensors& actual) {
    const Reference& reference = running.reference;
    const std::vector<std::string>& names = reference.graph().output_names();
    const auto count_outputs =
        static_cast<std::size_t>(std::count_if(names.begin(), names.end(), [&](const std::string& name) {
          return is_count(running.schedule, name);
        }));
    const CaseReference values(reference, test.inputs, options_.precision);
    if (test.outputs.empty()) {
      for (std::size_t i = 0; i < names.size(); ++i) add_output(running, test, values, i, nullptr, actual);
    } else if (test.outputs_named) {
      for (const auto& [name, tensor] : test.outputs) {
        const auto found = std::find(names.begin(), names.end(), name);
        if (found == names.end())
          throw CompileError(ExitCode::kInputOutput,
                             fmt::format("{}: the model has no output '{}'", test.name, printable(name)));
        add_output(running, test, values, static_cast<std::size_t>(found - names.begin()), &tensor, actual);
      }
    } else {
      // Data sets of the model know nothing of counts, which are behind all other outputs.
      if (test.outputs.size() != names.size() && test.outputs.size() + count_outputs != names.size()) {
        throw CompileError(ExitCode::kInputOutput,
                           fmt::format("{}: {} expected outputs for a model with {}", test.name,
                                       test.outputs.size(), names.size() - count_outputs));
      }
      for (std::size_t i = 0; i < test.outputs.size(); ++i)
        add_output(running, test, values, i, &test.outputs[i].second, actual);
    }
    if (!kernels_) return;
    compare_inner_values(values, test, actual);
    check_kernels(values, test, actual);
  }

  /// `given`: the expected output of a data set; null: what the evaluator makes.
  void add_output(const Running& running, const TestCase& test, const CaseReference& values, std::size_t i,
                  const ir::Tensor* given, const Tensors& actual) {
    const std::string& name = values.reference().graph().output_names()[i];
    const ir::Tensor& found = actual.at(name);
    const std::optional<CountedPort> counted = counted_port(running.schedule, name);
    if (!counted) {
      add(test, values, i, given ? *given : values.get().outputs[i], found);
      return;
    }
    const std::string& count = running.schedule.outputs[static_cast<std::size_t>(counted->count)].model_name;
    const std::vector<std::string>& names = values.reference().graph().output_names();
    const auto at = static_cast<std::size_t>(std::find(names.begin(), names.end(), count) - names.begin());
    const ir::Tensor& whole = values.get().outputs[i];
    const int axis = counted->axis;
    const ir::Tensor expected = given ? *given : front_of(whole, axis, values.get().outputs[at].int_at(0));
    const ir::Tensor filled = options_.layers ? front_of(found, axis, actual.at(count).int_at(0)) : found;
    const bool fit = expected.shape() == filled.shape();
    add(test, values, i, fit ? with_front(whole, expected, axis) : expected,
        fit ? with_front(whole, filled, axis) : filled);
  }

  /// Against the graph as imported: finds what a pass has changed.
  void compare_inner_values(const CaseReference& values, const TestCase& test, const Tensors& actual) {
    bool first = true;
    for (const std::string& name : kernels_->names()) {
      const auto expected = values.get().by_name.find(name);
      const auto found = actual.find(name);
      if (expected == values.get().by_name.end() || found == actual.end()) continue;
      if (expected->second.type() != found->second.type()) continue;  // a pass gave the name to another value
      Finding finding{test.name,
                      name,
                      expected->second.type(),
                      compare(expected->second, found->second, values.is_quantised(), options_.precision),
                      {},
                      true};
      ++layers_compared_;
      if (finding.comparison.same) continue;
      finding.noise = values.noise().by_name.at(name);
      finding.is_right = is_noise(finding.comparison, *finding.noise);
      finding.forget_elements();
      findings_.push_back(finding);
      if (finding.is_right) continue;
      show_error(finding_text(finding), first ? "the first value that is off" : "");
      first = false;
    }
  }

  /// Each kernel on what the program has given it: finds which one is wrong.
  void check_kernels(const CaseReference& values, const TestCase& test, const Tensors& actual) {
    for (const KernelFinding& finding :
         kernels_->run(test.inputs, actual, values.is_quantised(), options_.precision)) {
      kernel_list_.push_back(kernel_json(test.name, finding));
      if (finding.is_right) continue;
      ++kernels_off_;
      show_error(kernel_text(test.name, finding), "");
    }
  }

  void add(const TestCase& test, const CaseReference& values, std::size_t output, const ir::Tensor& expected,
           const ir::Tensor& actual) {
    const std::string& name = values.reference().graph().output_names()[output];
    Finding finding{test.name,
                    name,
                    expected.type(),
                    compare(expected, actual, values.is_quantised(), options_.precision),
                    {},
                    true};
    if (!finding.comparison.same && finding.comparison.mismatch.empty() &&
        values.reference().is_close_decision(name, test.inputs, expected, actual, options_.precision)) {
      finding.comparison.same = true;
    }
    if (!finding.comparison.same && finding.comparison.mismatch.empty()) {
      finding.noise = values.noise().outputs[output];
      finding.is_right = is_noise(finding.comparison, *finding.noise);
    } else {
      finding.is_right = finding.comparison.same;
    }
    finding.forget_elements();
    findings_.push_back(std::move(finding));
    const std::string text = finding_text(findings_.back());
    if (findings_.back().is_right) {
      terminal_.note("ok  " + text);
    } else {
      show_error(text, "");
    }
  }

  /// Also when quiet: what is off is what verify is there to tell.
  void show_error(const std::string& text, const std::string& detail) {
    Diagnostic diagnostic;
    diagnostic.code = "E0701";
    diagnostic.message = text;
    if (!detail.empty()) diagnostic.details.push_back(detail);
    terminal_.diagnostic(diagnostic);
  }

  Answer finish() {
    terminal_.finish();
    if (refused_ > 0 && findings_.empty() && failures_.empty()) {
      Diagnostic diagnostic;
      diagnostic.code = "E0702";
      diagnostic.message = "nothing was compared: the model has no outputs for any of these inputs";
      diagnostic.help = "--set gives an input the value that the model expects, --data whole test cases";
      throw CompileError(ExitCode::kModel, {diagnostic});
    }
    std::size_t failed = failures_.size() + kernels_off_, ill_conditioned = 0;
    Json list = Json::array();
    for (const Finding& finding : findings_) {
      failed += finding.is_right ? 0 : 1;
      ill_conditioned += finding.is_ill_conditioned() ? 1 : 0;
      list.push_back(finding_json(finding));
    }
    std::string summary = failed == 0
                              ? fmt::format("verified: {} {} right", counted(count_of(findings_), "tensor"),
                                            findings_.size() == 1 ? "is" : "are")
                              : fmt::format("MISMATCH: {} of {} {} off", failed,
                                            counted(count_of(findings_) + count_of(failures_), "tensor"),
                                            failed == 1 ? "is" : "are");
    if (ill_conditioned > 0) {
      summary += fmt::format("; {} of them only within the model's own rounding noise", ill_conditioned);
    }
    if (options_.layers) {
      summary += fmt::format("; {} compared, {} checked", counted(layers_compared_, "inner value"),
                             counted(count_of(kernel_list_), "kernel"));
    }
    terminal_.note(summary);
    Answer answer;
    answer.code = failed == 0 ? ExitCode::kOk : ExitCode::kMismatch;
    answer.result = {{"ok", failed == 0},      {"tensors", findings_.size()},
                     {"off", failed},          {"ill_conditioned", ill_conditioned},
                     {"no_outputs", refused_}, {"inner_values", layers_compared_},
                     {"findings", list},       {"failures", failures_},
                     {"kernels", kernel_list_}};
    return answer;
  }

  const Options& options_;
  const bool is_emulation_asked_for_;
  Terminal& terminal_;
  const TemporaryFolder temporary_;
  const std::string root_;
  int group_ = 0;
  std::size_t turn_ = 0;                // of the usual architectures
  std::optional<KernelCheck> kernels_;  // with --layers
  std::int64_t layers_compared_ = 0;
  Json kernel_list_ = Json::array();
  std::size_t kernels_off_ = 0;
  std::size_t refused_ = 0;  // cases in which the model has no outputs
  std::vector<Finding> findings_;
  std::vector<std::string> failures_;
};

}  // namespace

Answer run_verify(const Options& options, Terminal& terminal) {
  Options chosen = options;
  choose_gpu(chosen);
  return Verifier(chosen, options.emulate, terminal).run();
}

}  // namespace gcompile
