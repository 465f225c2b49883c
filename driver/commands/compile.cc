#include "driver/commands/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <map>
#include <set>
#include <span>

#include "base/names.h"
#include "codegen/choice/prices.h"
#include "codegen/emit/emit.h"
#include "codegen/program/lowering.h"
#include "codegen/program/state_tensors.h"
#include "codegen/program/statistics.h"
#include "codegen/report/quantities.h"
#include "driver/command_line/option_table.h"
#include "driver/commands/budgets.h"
#include "driver/commands/commands.h"
#include "driver/commands/explain_node.h"
#include "driver/commands/processor_note.h"
#include "driver/commands/state_names.h"
#include "driver/commands/state_patterns.h"
#include "driver/data/golden.h"
#include "driver/data/size_choices.h"
#include "driver/data/sizes_to_try.h"
#include "driver/machine/file_system.h"
#include "driver/machine/interrupt.h"
#include "driver/machine/local_files.h"
#include "driver/machine/version.h"
#include "driver/publish/publish.h"
#include "driver/verify/verify_passes.h"
#include "driver/verify/verify_reference.h"
#include "frontend/export/export.h"
#include "ir/graph/print.h"
#include "jinja/text.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

constexpr int kStages = 5;

std::string nodes_text(const ir::Graph& graph) {
  return counted(static_cast<std::int64_t>(graph.node_count()), "node");
}

std::string producer_text(const frontend::ModelInfo& info) {
  std::string text = info.producer_name;
  if (!info.producer_version.empty()) text += (text.empty() ? "" : " ") + info.producer_version;
  return text.empty() ? "unknown producer" : text;
}

std::string opset_text(const frontend::ModelInfo& info) {
  std::string text;
  for (const auto& [domain, version] : info.opsets) {
    text +=
        fmt::format("{}{} {}", text.empty() ? "opset " : ", ", domain.empty() ? "ai.onnx" : domain, version);
  }
  return text;
}

struct Snapshot {
  std::string pass;
  ir::Graph graph;
};

/// Writes the latest of the graphs that ONNX can express: operators of our own and forms come in on the way.
void save_onnx(const std::vector<Snapshot>& snapshots, const std::string& path, Terminal& terminal) {
  for (std::size_t i = snapshots.size(); i-- > 0;) {
    std::string bytes;
    try {
      bytes = frontend::export_model(snapshots[i].graph);
    } catch (const CompileError& error) {
      if (i == 0 || error.exit_code() != ExitCode::kModel) throw;
      continue;
    }
    write_local_file(path, bytes);
    terminal.note(fmt::format("saved {} as it was after '{}'", path, snapshots[i].pass));
    return;
  }
}

}  // namespace

void check_early(const Options& options, Terminal& terminal) {
  static_cast<void>(program_name(options));
  expect_pass_names(options);
  const std::string note = note_of_processor(options.cpu);
  if (!note.empty()) terminal.note(note);
}

frontend::ImportedModel import_model(const Options& options, Terminal& terminal, bool again) {
  Diagnostics diagnostics;
  frontend::ImportedModel model = frontend::import_model_file(options.model, options.import, diagnostics);
  for (Diagnostic& each : crossed_states(model.graph, options.import.states)) diagnostics.add(each);
  std::set<std::string> said;  // kinds
  for (const Diagnostic& diagnostic : terminal.diagnostics()) said.insert(diagnostic.code);
  for (const Diagnostic& diagnostic : diagnostics.all()) {
    if (!again || said.count(diagnostic.code) == 0) terminal.diagnostic(diagnostic);
  }
  throw_if_interrupted();
  expect_state_names(model.graph, options.import.states);
  if (options.command == Command::kCheck && options.import.states.empty() && !again) {
    const std::string hint = hint_of_states(model.graph);
    if (!hint.empty()) terminal.note(hint);
  }
  return model;
}

namespace {

/// A microsecond a byte: for size no kernel is worth larger weights.
constexpr double kPriceOfSize = 1e6;

Machine machine_of(const Options& options) {
  Machine machine = info_of(options.target).has_device_memory
                        ? machine_of_gpu(gpus_of(cuda_architectures(options.arch)).front(), options.precision,
                                         options.cublaslt)
                        : machine_of_cpu(options.cpu);
  machine.precision = options.precision;
  if (options.optimize_for_size) machine.weight_price = kPriceOfSize;
  return machine;
}

/// The report of the passes behind what code generation has told, with as many remarks as somebody may read.
void add_report(Schedule& schedule, const passes::Report& report) {
  constexpr std::size_t kMost = 10'000;
  std::vector<ir::Remark>& remarks = schedule.report.remarks;
  const std::size_t count = report.remarks.size();
  remarks.insert(remarks.end(), report.remarks.begin(),
                 report.remarks.begin() + static_cast<std::ptrdiff_t>(std::min(kMost, count)));
  if (count > kMost)
    remarks.push_back({"", fmt::format("{} more", count - kMost), "`gcompile opt MODEL --json` lists all"});
  schedule.report.passes = report.passes;
  schedule.report.rule_counts = report.rule_counts;
}

/// The worst of them; the report has all.
void tell_packed_weights(const std::vector<ir::PackedWeight>& weights, int bits, Terminal& terminal) {
  const auto worst = std::max_element(weights.begin(), weights.end(),
                                      [](const ir::PackedWeight& a, const ir::PackedWeight& b) {
                                        return a.relative_error < b.relative_error;
                                      });
  if (worst == weights.end()) {
    terminal.note("--weight-bits: there is no constant weight of a product");
  } else {
    terminal.note(fmt::format("--weight-bits {}: {} packed, relative error at most {:.2e} ('{}')", bits,
                              counted(static_cast<std::int64_t>(weights.size()), "weight"),
                              worst->relative_error, printable(worst->name)));
  }
}

}  // namespace

static passes::Prepared prepared(ir::Graph& graph, const Options& options) {
  passes::PreparationOptions preparation;
  preparation.weight_bits = options.weight_bits;
  const bool keeps_arithmetic = options.exact || options.level == 0;
  const MachinePrices prices(machine_of(options));
  preparation.rounds_rows = !keeps_arithmetic;
  preparation.prices = &prices;
  if (!keeps_arithmetic) {
    // Where products multiply 16 bits, what they read is rounded again where it is stored.
    const bool is_gpu = info_of(options.target).has_device_memory;
    preparation.widened = is_gpu && !prices.factor_type() ? passes::Widened::kSquares : passes::Widened::kAll;
  }
  return passes::prepare(graph, preparation);
}

/// Weights that are read as they are stored are half as large, and take one product for three.
static void tell_of_halves(const ir::Graph& graph, const Options& options, Terminal& terminal) {
  if (!info_of(options.target).has_device_memory || options.precision != Precision::kFp32) return;
  const std::vector<ir::ValueId> values = graph.values();
  for (const ir::ElementType element : {ir::ElementType::kFloat16, ir::ElementType::kBFloat16}) {
    const bool is_stored = std::any_of(values.begin(), values.end(), [&](ir::ValueId id) {
      const ir::Tensor* constant = graph.constant(id);
      return constant && constant->element() == element && constant->type().shape.size() > 1;
    });
    if (!is_stored) continue;
    terminal.note(fmt::format("the model has weights in {}: --precision {} multiplies them as they are",
                              name_of(element), element == ir::ElementType::kFloat16 ? "fp16" : "bf16"));
  }
}

passes::Prepared prepare_graph(ir::Graph& graph, const Options& options, Terminal& terminal) {
  passes::Prepared out = prepared(graph, options);
  if (options.weight_bits != 0) tell_packed_weights(out.packed_weights, options.weight_bits, terminal);
  if (out.rounded_products > 0) {
    terminal.note(fmt::format(
        "accuracy_level 4: {} {} activations to 8 bits, as the model allows; --exact keeps floats",
        counted(out.rounded_products, "product"), out.rounded_products == 1 ? "rounds its" : "round their"));
  }
  return out;
}

ir::Graph bound_graph(const Options& options, const Program& program,
                      const std::vector<std::int64_t>& sizes) {
  frontend::ImportOptions import = options.import;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    import.bindings.dims.push_back({program.sizes[i].name, sizes[i]});
  import.bindings.bounds.clear();
  import.of_one_run = true;
  Diagnostics told_before;
  ir::Graph graph = frontend::import_model_file(options.model, import, told_before).graph;
  prepared(graph, options);
  return graph;
}

/// Only with -v: what else is dumped is the same for the same model.
static void dump_times(const passes::Report& report, const std::string& folder) {
  std::string text = fmt::format("{:<36} {:>5} {:>8} {:>9}\n", "pass", "runs", "changes", "seconds");
  for (const passes::PassStatistics& pass : report.passes)
    text += fmt::format("{:<36} {:>5} {:>8} {:>9.4f}\n", pass.name, pass.runs, pass.changes, pass.seconds);
  write_text_file(folder, "passes.txt", text);
}

passes::Report optimise_graph(ir::Graph& graph, const Options& options, Terminal& terminal,
                              const passes::Report& earlier, const std::set<std::string>& full_states) {
  passes::Options pass_options;
  pass_options.level = options.level;
  pass_options.optimize_for_size = options.optimize_for_size;
  pass_options.tier = options.exact ? passes::Tier::kExact : passes::Tier::kReassociate;
  pass_options.disabled = {options.disabled.begin(), options.disabled.end()};
  pass_options.keep_fp32 = {options.kept_fp32.begin(), options.kept_fp32.end()};
  pass_options.short_activations =
      options.activations.empty() ? !options.exact : options.activations != "fp32";
  pass_options.states = options.import.states;
  pass_options.full_states = full_states;
  const MachinePrices prices(machine_of(options));
  pass_options.prices = &prices;
  pass_options.pass_limit = options.pass_limit;
  auto checker = options.verify_passes ? std::make_optional<PassChecker>(graph, options.seed) : std::nullopt;
  std::vector<Snapshot> snapshots;
  if (!options.save_onnx.empty()) snapshots.push_back({"import", graph});
  if (!options.dump_dir.empty()) {
    claim_folder(options.dump_dir);
    write_text_file(options.dump_dir, "00-imported.txt", ir::print(graph));
  }
  auto began = std::chrono::steady_clock::now();
  pass_options.dump = [&](const std::string& pass, int position, const ir::Graph& after) {
    throw_if_interrupted();
    const auto now = std::chrono::steady_clock::now();
    terminal.detail(fmt::format("  pass {}: {}, {:.3f} s", pass, nodes_text(after),
                                std::chrono::duration<double>(now - began).count()));
    began = now;
    if (checker) checker->after(pass, position, after, pass_options.tier);
    if (!options.save_onnx.empty()) snapshots.push_back({pass, after});
    if (options.dump_dir.empty()) return;
    ir::PrintOptions print_options;
    print_options.forms = true;
    write_text_file(options.dump_dir, fmt::format("{:02}-{}.txt", position, pass),
                    ir::print(after, print_options));
  };
  passes::Report report = passes::optimise(graph, pass_options);
  if (checker) tell(checker->result(), terminal);
  if (!options.dump_dir.empty() && options.verbosity == Verbosity::kVerbose)
    dump_times(report, options.dump_dir);
  report.remarks.insert(report.remarks.begin(), earlier.remarks.begin(), earlier.remarks.end());
  if (!options.save_onnx.empty()) save_onnx(snapshots, options.save_onnx, terminal);
  return report;
}

/// The sizes that a caller chooses, with bounds over all schedules.
std::vector<Size> chosen_sizes(const std::vector<SizedModel>& models) {
  std::vector<Size> sizes;
  Names names;
  for (const frontend::DimBounds& dim : models.front().sizes) {
    sizes.push_back({dim.names[0], names(dim.names[0], ""), dim.bounds, dim.multiple});
  }
  for (const SizedModel& model : models) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      ir::Bounds& bounds = sizes[i].bounds;
      bounds.low = std::min(bounds.low, model.sizes[i].bounds.low);
      bounds.high = std::max(bounds.high, model.sizes[i].bounds.high);
    }
  }
  return sizes;
}

/// What a run of the schedule needs of its sizes, and the largest that it takes.
void add_sizes(Schedule& schedule, const Program& program, const SizedModel& model) {
  for (const frontend::DimBounds& dim : model.sizes) schedule.bounds.push_back(dim.bounds);
  if (model.formulas) {
    schedule.conditions = model.formulas->facts();
    for (const ir::SizeCheck& check : model.formulas->checks())
      schedule.conditions.push_back({check.a - check.b, {0, 0}});
  }
  schedule.sizes = largest_sizes(program, schedule);
}

/// Which outputs are filled in part, and which say how far.
void add_counts(Schedule& schedule, const std::vector<frontend::CountedOutput>& counted) {
  const auto index_of = [&](const std::string& name) {
    const auto at = std::find_if(schedule.outputs.begin(), schedule.outputs.end(),
                                 [&](const Port& port) { return port.model_name == name; });
    return static_cast<std::size_t>(at - schedule.outputs.begin());
  };
  for (const frontend::CountedOutput& output : counted) {
    const std::size_t filled = index_of(output.name), count = index_of(output.count);
    if (filled < schedule.outputs.size() && count < schedule.outputs.size())
      schedule.outputs[filled].counted = CountedPort{output.axis, static_cast<int>(count)};
  }
}

void lower_compilation(Compilation& compilation, const Options& options) {
  LoweringOptions lowering;
  lowering.kernels.machine = machine_of(options);
  if (info_of(options.target).has_device_memory) {
    const std::vector<GpuArchitecture> gpus = gpus_of(cuda_architectures(options.arch));
    lowering.kernels.later.assign(gpus.begin() + 1, gpus.end());
  }
  lowering.kernels.forced = options.forced_kernels;
  const frontend::SingleNumbers& numbers = compilation.info.numbers;
  lowering.kernels.trained = {numbers.with_axes, numbers.without_axes, numbers.written, numbers.has_16_bits};
  lowering.name = program_name(options);
  lowering.states = options.import.states;
  lowering.optimize_for_size = options.optimize_for_size;
  lowering.keeps_denormals = options.exact;
  lowering.extra_weights_percent = options.extra_weights_percent;
  std::vector<SizedGraph> graphs;
  for (const SizedModel& model : compilation.models) graphs.push_back({&model.optimised, model.formulas});
  compilation.program = lower_graphs(graphs, lowering);
  throw_if_interrupted();

  Program& program = compilation.program;
  program.sizes = chosen_sizes(compilation.models);
  program.has_bounds = compilation.models.front().formulas != nullptr;
  program.tool_version = tool_version();
  program.model_sha256 = compilation.info.sha256;
  program.producer = producer_text(compilation.info);
  program.opset = opset_text(compilation.info);
  program.options = canonical_options(options);
  for (std::size_t i = 0; i < compilation.models.size(); ++i) {
    const SizedModel& model = compilation.models[i];
    Schedule& schedule = program.schedules[i];
    const ir::SizesScope scope(model.formulas.get());
    add_sizes(schedule, program, model);
    add_counts(schedule, model.counted);
    add_graph_statistics(schedule, model.imported, model.optimised);
    add_report(schedule, model.report);
  }
  program.packed_weights = compilation.models.back().prepared.packed_weights;
}

void optimise_model(SizedModel& model, const Options& options, Terminal& terminal,
                    const std::set<std::string>& full_states) {
  const ir::SizesScope scope(model.formulas.get());
  const std::string at = model.text.empty() ? "" : model.text + ": ";
  terminal.stage(2, kStages, "optimise", at + nodes_text(model.imported));
  model.optimised = model.imported;
  model.report = optimise_graph(model.optimised, options, terminal, model.prepared.report, full_states);
  throw_if_interrupted();
  terminal.stage(
      3, kStages, "lower",
      fmt::format("{}{} -> {}", at, grouped(static_cast<std::int64_t>(model.imported.node_count())),
                  nodes_text(model.optimised)));
}

/// Inputs that are states, with their elements.
std::map<std::string, ir::ElementType> state_elements(const SizedModel& model, const Options& options) {
  std::map<std::string, ir::ElementType> elements;
  for (const ir::ValueId id : model.optimised.inputs()) {
    const ir::Value& value = model.optimised.value(id);
    for (const auto& [input, output] : options.import.states) {
      if (input == value.name) elements[input] = value.type.element;
    }
  }
  return elements;
}

/// A state has one type, whatever runs: what only some schedules would keep in 16 bits is float32 in all of
/// them. Less is short then, so that an end is reached.
void agree_on_states(std::vector<SizedModel>& models, const Options& options, Terminal& terminal) {
  for (std::set<std::string> full;;) {
    std::map<std::string, std::set<ir::ElementType>> elements;
    for (const SizedModel& model : models) {
      for (const auto& [state, element] : state_elements(model, options)) elements[state].insert(element);
    }
    bool agreed = true;
    for (const auto& [state, types] : elements) {
      if (types.size() > 1 && full.insert(state).second) agreed = false;
    }
    if (agreed) return;
    for (SizedModel& model : models) optimise_model(model, options, terminal, full);
  }
}

/// From the file to a graph of forms.
SizedModel optimised_model(const SizeChoice& choice, Compilation& compilation, Terminal& terminal) {
  const Options& options = choice.options;
  if (compilation.models.empty())
    terminal.stage(1, kStages, "read", options.is_piped ? "standard input" : options.model);
  frontend::ImportedModel read = import_model(options, terminal, !compilation.models.empty());
  compilation.info = std::move(read.info);
  if (compilation.models.empty()) tell_of_halves(read.graph, options, terminal);
  SizedModel model{choice.sizes, choice.text, std::move(read.sizes),  std::move(read.graph), {},
                   {},           {},          std::move(read.counted)};
  {
    const ir::SizesScope scope(model.formulas.get());
    model.prepared = prepare_graph(model.imported, options, terminal);
  }
  optimise_model(model, options, terminal, {});
  return model;
}

Compilation compile_model(const Options& options, Terminal& terminal) {
  check_early(options, terminal);
  Compilation out;
  for (const SizeChoice& choice : size_choices(options)) {
    out.models.push_back(optimised_model(choice, out, terminal));
  }
  agree_on_states(out.models, options, terminal);
  lower_compilation(out, options);
  for (const Diagnostic& warning : out.program.warnings) terminal.diagnostic(warning);
  for (const std::string& node : options.kept_fp32) expect_node(out, "--keep-fp32", node);
  for (const std::string& node : options.explained) explain_node(out, node, terminal);
  return out;
}

FileSet emit_project(const Compilation& compilation, const Options& options) {
  EmitOptions emit_options;
  emit_options.cuda_archs = cuda_architectures(options.arch);
  emit_options.weights = options.weights;
  emit_options.cpu = options.cpu;
  emit_options.packs = options.packs;
  if (options.selftest) {
    const Program& program = compilation.program;
    for (std::size_t i = 0; i < compilation.models.size(); ++i) {
      const SizedModel& model = compilation.models[i];
      const ir::Graph& graph =
          model.formulas ? bound_graph(options, program, program.schedules[i].sizes) : model.imported;
      emit_options.golden.push_back(golden_vectors(graph, program.states));
    }
  }
  emit_options.quantised = is_quantised(compilation.models.front().imported);
  if (!options.dump_dir.empty()) {
    write_text_file(options.dump_dir, "program.json",
                    json_text(program_json(compilation.program, emit_options)));
  }
  return emit(compilation.program, emit_options);
}

/// Absolute paths of what the project depends on; nothing that was piped in has one.
std::vector<std::string> model_files(const Options& options, const frontend::ModelInfo& info) {
  if (options.is_piped) return {};
  const std::filesystem::path model = std::filesystem::absolute(options.model);
  std::vector<std::string> files = {model.string()};
  for (const std::string& location : info.data_files)
    files.push_back((model.parent_path() / location).string());
  return files;
}

Answer run_compile(const Options& options, Terminal& terminal) {
  PublishOptions publish_options;
  publish_options.force = options.force;
  expect_publishable(options.output, publish_options);
  const Compilation compilation = compile_model(options, terminal);
  const Program& program = compilation.program;
  expect_budgets(program, options, machine_of(options));
  terminal.stage(4, kStages, "emit", counted(static_cast<std::int64_t>(program.kernels.size()), "kernel"));
  const FileSet files = emit_project(compilation, options);
  throw_if_interrupted();
  terminal.stage(5, kStages, "write", options.output);
  const PublishResult result = publish(files, options.output, publish_options);
  terminal.finish();
  for (const std::string& warning : result.warnings) {
    Diagnostic diagnostic;
    diagnostic.severity = Severity::kWarning;
    diagnostic.message = warning;
    terminal.diagnostic(diagnostic);
  }
  terminal.note(figures_text(program));
  terminal.note(fmt::format("{} in {}, {} of them changed",
                            counted(static_cast<std::int64_t>(files.files().size()), "file"), options.output,
                            result.changed));
  terminal.note(
      fmt::format("next: cmake -S {0} -B {0}/build && cmake --build {0}/build -j && "
                  "{0}/build/{1}_run --random 1",
                  shell_quoted(options.output), program.name));
  Answer answer;
  answer.result = figures_of(program);
  answer.result["output"] = options.output;
  answer.result["model_files"] = model_files(options, compilation.info);
  answer.result["files"] = files.files().size();
  answer.result["changed"] = result.changed;
  return answer;
}

}  // namespace gcompile
