#include "driver/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <map>
#include <set>

#include "codegen/kernels/family.h"
#include "codegen/program/names.h"
#include "driver/version.h"
#include "frontend/dims.h"
#include "ir/diagnostics.h"
#include "template/text.h"

namespace gcompile {
namespace {

[[noreturn]] void usage_error(const std::string& message) {
  throw ir::CompileError(ir::ExitCode::kUsage, message);
}

const std::map<std::string, Command>& commands() {
  static const std::map<std::string, Command> table = {{"compile", Command::kCompile},
                                                       {"verify", Command::kVerify},
                                                       {"check", Command::kCheck},
                                                       {"opt", Command::kOpt},
                                                       {"ops", Command::kOps}};
  return table;
}

constexpr const char* kFooter =
    "Commands: gcompile [compile] MODEL -o DIR, gcompile verify MODEL, gcompile check MODEL, gcompile opt "
    "MODEL,\n"
    "gcompile ops; each has --help.\n"
    "Exit codes: 0 ok, 1 the model, 2 usage, 3 verification mismatch, 4 files, 70 bug in gcompile, 130 "
    "interrupted";

const char* description(Command command) {
  switch (command) {
    case Command::kCompile:
      return "Turns an ONNX model into a C++ project that stands alone.";
    case Command::kVerify:
      return "Compiles, builds and runs a model and compares its outputs with expected ones.";
    case Command::kCheck:
      return "Says whether a model can be compiled, with all problems at once.";
    case Command::kOpt:
      return "Runs the passes on a model and prints the graph.";
    case Command::kOps:
      return "Lists the supported operators.";
  }
  GC_CHECK(false);
}

/// Options that CLI11 leaves as text until all are known.
struct RawOptions {
  std::vector<std::string> states;
  std::string weights = "incbin";
  std::string optimize_for = "speed";
  std::vector<std::string> kernels;
  std::string gemm = "builtin";
  std::string target = "cpp";
  std::string precision = "fp32";
  std::string color = "auto";
  bool verbose = false;
  bool quiet = false;
};

void add_model_options(CLI::App& app, Options& options) {
  app.add_option("model", options.model, "An .onnx file, or ONNX text (.onnxtxt)")->required();
  app.add_option("--dim", options.dims,
                 "Binds a symbolic dimension: N=4; N=1..512, N=32..960:32 or N=1,2,4 lets the caller of the model choose")
      ->take_all();
  app.add_option(
         "--shape", options.shapes,
         "Gives an input its shape: input:1x3x224x224; letters name dimensions for --dim: input:Nx3x224x224")
      ->take_all();
  app.add_option("--set", options.sets, "Turns an input into a constant: sr=16000")->take_all();
  app.add_flag("--allow-symlinks", options.import.allow_symlinks,
               "Lets external data be reached through symbolic and hard links");
}

void add_pass_options(CLI::App& app, Options& options, RawOptions& raw) {
  app.add_option("-O", options.level, "Optimisation level, 0 to 3 (-O3)")->check(CLI::Range(0, 3));
  app.add_option("--optimize-for", raw.optimize_for, "speed or size")
      ->check(CLI::IsMember({"speed", "size"}));
  app.add_flag("--exact", options.exact, "Only rewrites that keep every bit, and denormal numbers stay");
  app.add_option("--weight-bits", options.weight_bits,
                 "Packs constant weights of products in 8 or 4 bits, with a scale for 32 rows of a column; "
                 "the report says what that costs")
      ->check(CLI::IsMember({8, 4}));
  app.add_option("--disable-pass", options.disabled, "A pass or rule that must not run")->take_all();
  app.add_option("--pass-limit", options.pass_limit, "Runs only the first N passes (to find a faulty one)");
  app.add_option("--save-onnx", options.save_onnx, "Writes the optimised graph as an ONNX file");
  app.add_option("--dump-dir", options.dump_dir,
                 "Writes the graph after every pass, and the program, to a folder");
}

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const PrecisionFacts& facts : kPrecisions) names.push_back(facts.name);
  return names;
}

void add_output_options(CLI::App& app, Options& options, RawOptions& raw) {
  app.add_option("--target", raw.target, "cpp or cuda")->check(CLI::IsMember({"cpp", "cuda"}));
  app.add_option("--name", options.name, "Prefix of all names in the output, [a-z][a-z0-9_]*");
  app.add_option("--state", raw.states, "An input that the previous run's output feeds: in=out")->take_all();
  app.add_option("--cpu", options.cpu,
                 "-march=, or -mcpu= of ARM, that the output's build files ask for (native)");
  app.add_option(
      "--arch", options.arch,
      fmt::format("With --target cuda: the GPUs to build for; compute_NN is PTX ({})", kDefaultCudaArch));
  app.add_option("--gemm", raw.gemm,
                 "With --target cuda: builtin, or cublaslt for products of more than 8 rows")
      ->check(CLI::IsMember({"builtin", "cublaslt"}));
  app.add_option(
         "--precision", raw.precision,
         "How floats are multiplied (fp32): with --target cuda fp32, tf32, fp16 or bf16, else fp32, or "
         "bf16, bf16x3 or bf16x6 where a processor has a tile unit")
      ->check(CLI::IsMember(precision_names()));
  app.add_option("--kernel", raw.kernels,
                 "The kernel family that serves a node of the model: NODE=conv.direct")
      ->take_all();
  app.add_option("--explain", options.explained,
                 "Prints which kernel families could serve a node of the model, what each is predicted to "
                 "cost, and why "
                 "others do not take it")
      ->take_all();
  app.add_option(
         "--extra-weights", options.extra_weights_percent,
         "By how much kernels may enlarge the weights to be faster, in percent of weights and arena (100)")
      ->check(CLI::Range(0, 1000));
  app.add_option("--weights", raw.weights, "incbin, array, file or extern")
      ->check(CLI::IsMember({"incbin", "array", "file", "extern"}));
}

void add_verify_options(CLI::App& app, Options& options) {
  app.add_option("--data", options.data,
                 "Folder with input_K.pb and output_K.pb, with inputs.npz and outputs.npz, or with "
                 "test_data_set_* folders of them. Without it: random inputs, and the evaluator's outputs");
  app.add_flag("--layers", options.layers,
               "Also judges every kernel by itself, and every value that survives in the program");
  app.add_option("--seed", options.seed, "Of the random inputs (1)");
  app.add_option("--cases", options.random_cases, "How many random inputs (1)")->check(CLI::Range(1, 1000));
  app.add_option("--threads", options.threads, "Threads of the runner (1)")->check(CLI::Range(1, 1024));
  app.add_option("--cxx", options.cxx, "The C++ compiler ($CXX, else c++)");
  app.add_flag("--emulate", options.emulate,
               "With --target cuda: runs on the CPU, also where there is a GPU");
  app.add_option("--keep", options.keep, "Folder in which project, inputs and outputs stay");
}

void add_talk_options(CLI::App& app, Options& options, RawOptions& raw) {
  app.add_flag("-v,--verbose", raw.verbose, "Says more");
  app.add_flag("-q,--quiet", raw.quiet, "Says only what is wrong");
  app.add_flag("--json", options.json, "Prints the result as JSON");
  app.add_option("--color", raw.color, "auto, always or never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
}

/// NODE=family; the last equals sign counts, for names of nodes may hold any.
std::pair<std::string, std::string> parse_forced_kernel(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    usage_error(fmt::format("--kernel '{}' is not of the form NODE=family", ir::printable(text)));
  }
  const std::string name = text.substr(equals + 1);
  if (!find_family(name)) {
    std::string known;
    for (const KernelFamily* family : families())
      known += (known.empty() ? "" : ", ") + std::string(family->name);
    usage_error(fmt::format("--kernel '{}': there is no family '{}'; there are {}", ir::printable(text),
                            ir::printable(name), known));
  }
  return {text.substr(0, equals), name};
}

void add_choices(Options& options, frontend::DimChoices choices) {
  for (const frontend::DimChoices& other : options.choices) {
    if (other.name == choices.name)
      usage_error(fmt::format("--dim gives choices for '{}' twice", ir::printable(choices.name)));
  }
  options.choices.push_back(std::move(choices));
}

void interpret(Options& options, const RawOptions& raw) {
  for (const std::string& text : options.dims) {
    if (auto range = frontend::parse_dim_range(text)) {
      options.import.bindings.ranges.push_back(std::move(*range));
      continue;
    }
    frontend::DimChoices choices = frontend::parse_dim_choices(text);
    if (choices.sizes.size() == 1) {
      options.import.bindings.dims.push_back({std::move(choices.name), choices.sizes.front()});
    } else {
      add_choices(options, std::move(choices));
    }
  }
  for (const std::string& text : options.shapes)
    options.import.bindings.shapes.push_back(frontend::parse_shape_binding(text));
  for (const std::string& text : options.sets)
    options.import.bindings.sets.push_back(frontend::parse_set_binding(text));
  for (const std::string& text : raw.states) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
      usage_error(fmt::format("--state '{}' is not of the form input=output", ir::printable(text)));
    }
    options.states.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  for (const WeightsMode mode :
       {WeightsMode::kIncbin, WeightsMode::kArray, WeightsMode::kFile, WeightsMode::kExtern}) {
    if (raw.weights == weights_mode_name(mode)) options.weights = mode;
  }
  for (const std::string& text : raw.kernels) options.forced_kernels.push_back(parse_forced_kernel(text));
  options.target = target_named(raw.target)->target;
  options.cublaslt = raw.gemm == "cublaslt";
  options.precision = precision_from_name(raw.precision).value();
  options.optimize_for_size = raw.optimize_for == "size";
  options.color = *parse_color_mode(raw.color);
  if (raw.verbose && raw.quiet) usage_error("-v and -q contradict each other");
  if (raw.verbose) options.verbosity = Verbosity::kVerbose;
  if (raw.quiet) options.verbosity = Verbosity::kQuiet;
}

void validate(const Options& options) {
  if (options.command == Command::kCompile && options.output.empty()) {
    usage_error("no output folder; add -o DIR");
  }
  static_cast<void>(cuda_architectures(options.arch));
  const bool is_for_device = info_of(options.target).has_device_memory;
  if (options.weight_bits != 0 && options.exact)
    usage_error("--exact and --weight-bits contradict each other");
  if (options.weight_bits != 0 && is_for_device) {
    usage_error("--weight-bits needs --target cpp: no CUDA kernel decodes packed weights");
  }
  if (options.cublaslt && !is_for_device) usage_error("--gemm cublaslt needs --target cuda");
  const PrecisionFacts& precision = facts_of(options.precision);
  if (is_for_device && !precision.is_of_cuda)
    usage_error(fmt::format("--precision {} needs --target cpp", precision.name));
  if (!is_for_device && precision.bfloat16_products < 0)
    usage_error(fmt::format("--precision {} needs --target cuda", precision.name));
  if (!is_for_device && precision.bfloat16_products > 0 && options.exact)
    usage_error(fmt::format("--exact and --precision {} contradict each other", precision.name));
  const auto is_cpu_character = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_.+").find(c) != std::string_view::npos;
  };
  if (!std::all_of(options.cpu.begin(), options.cpu.end(), is_cpu_character)) {
    usage_error(fmt::format("--cpu '{}' is not a name that -march= takes", ir::printable(options.cpu)));
  }
}

/// Names that would collide with a word of the languages, or with targets and namespaces of the output's own.
bool is_unusable_name(const std::string& name) {
  static const std::set<std::string> names = {"all",     "clean", "gcrt", "help",
                                              "install", "main",  "std",  "test"};
  return names.count(name) > 0 || is_reserved_word(name);
}

}  // namespace

std::optional<Options> parse_command_line(int argc, const char* const* argv) {
  Options options;
  RawOptions raw;
  std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (!words.empty()) {
    if (const auto found = commands().find(words[0]); found != commands().end()) {
      options.command = found->second;
      words.erase(words.begin());
    }
  }
  CLI::App app(description(options.command), "gcompile");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("gcompile ") + kVersion);
  if (options.command != Command::kOps) {
    add_model_options(app, options);
    add_pass_options(app, options, raw);
    add_output_options(app, options, raw);
  }
  if (options.command == Command::kCompile) {
    app.add_option("-o,--output", options.output, "Folder of the project");
    app.add_flag("--selftest", options.selftest,
                 "Adds a test with inputs and outputs computed by the compiler");
    app.add_flag("--force", options.force, "Writes into a folder that gcompile did not make");
  }
  if (options.command == Command::kVerify) add_verify_options(app, options);
  add_talk_options(app, options, raw);
  // CLI11 takes the words from the back.
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      app.exit(error, std::cout, std::cerr);
      return std::nullopt;
    }
    usage_error(fmt::format("{}; see gcompile --help", error.what()));
  }
  interpret(options, raw);
  validate(options);
  return options;
}

std::string canonical_options(const Options& options) {
  std::string text = fmt::format("--target {} -O{}", info_of(options.target).name, options.level);
  const auto add = [&](std::string_view flag, const std::string& value) {
    text += fmt::format(" {} {}", flag, value);
  };
  if (options.optimize_for_size) add("--optimize-for", "size");
  if (options.exact) text += " --exact";
  if (options.weight_bits != 0) add("--weight-bits", std::to_string(options.weight_bits));
  for (const std::string& dim : options.dims) add("--dim", dim);
  for (const std::string& shape : options.shapes) add("--shape", shape);
  for (const std::string& set : options.sets) add("--set", set);
  for (const auto& [input, output] : options.states) add("--state", input + "=" + output);
  std::vector<std::string> disabled = options.disabled;
  std::sort(disabled.begin(), disabled.end());
  for (const std::string& pass : disabled) add("--disable-pass", pass);
  if (options.pass_limit >= 0) add("--pass-limit", std::to_string(options.pass_limit));
  if (options.cpu != "native") add("--cpu", options.cpu);
  if (info_of(options.target).has_device_memory) add("--arch", options.arch);
  if (options.cublaslt) add("--gemm", "cublaslt");
  if (options.precision != Precision::kFp32) add("--precision", facts_of(options.precision).name);
  for (const auto& [node, family] : options.forced_kernels) add("--kernel", node + "=" + family);
  if (options.extra_weights_percent != 100) {
    add("--extra-weights", std::to_string(options.extra_weights_percent));
  }
  if (options.weights != WeightsMode::kIncbin) add("--weights", weights_mode_name(options.weights));
  if (options.selftest) text += " --selftest";
  return text;
}

std::string program_name(const Options& options) {
  if (!options.name.empty()) {
    const std::string& name = options.name;
    const bool good =
        name[0] >= 'a' && name[0] <= 'z' && c_identifier_stem(name) == name && !is_unusable_name(name);
    if (!good) {
      usage_error(
          fmt::format("--name '{}' cannot be a prefix; use lower-case words of at most 40 characters, "
                      "such as 'face_detector'",
                      ir::printable(name)));
    }
    return name;
  }
  std::string stem = options.model.substr(options.model.find_last_of('/') + 1);
  stem = stem.substr(0, stem.rfind('.'));
  stem = c_identifier_stem(stem);
  if (stem.empty()) return "model";
  if (stem[0] >= '0' && stem[0] <= '9') return "model_" + stem;
  return is_unusable_name(stem) ? stem + "_model" : stem;
}

}  // namespace gcompile
