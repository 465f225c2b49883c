#include "driver/command_line/option_table.h"

#include <fmt/format.h>

#include <algorithm>

#include "driver/command_line/run_options.h"
#include "driver/command_line/values.h"

namespace gcompile {
namespace {

using enum Command;
using enum Group;

const std::vector<Command> kOfModels = {kCompile, kVerify, kCheck, kOpt};
const std::vector<Command> kOfPrograms = {kCompile, kVerify, kCheck};
const std::vector<Command> kOfTalk = {kCompile, kVerify, kCheck, kOpt, kOps, kExplain, kReport, kDiff};

std::vector<std::string> precision_names() {
  std::vector<std::string> names;
  for (const PrecisionFacts& facts : kPrecisions) names.emplace_back(facts.name);
  return names;
}

std::vector<OptionRecord> model_options() {
  return {
      {"--dim",
       "",
       "NAME=SIZE[,SIZE|..SIZE|+NAME]",
       ValueKind::kText,
       {},
       kModel,
       kOfModels,
       true,
       "the size of an open dimension; several, or bounds as 1..512, let the caller of the model choose",
       add_dim},
      {"--shape",
       "",
       "INPUT:SIZExSIZE...",
       ValueKind::kText,
       {},
       kModel,
       kOfModels,
       true,
       "the shape of an input; letters name dimensions for --dim, as in image:Nx3x224x224",
       add_shape},
      {"--set",
       "",
       "INPUT=VALUE[,VALUE]...",
       ValueKind::kText,
       {},
       kModel,
       kOfModels,
       true,
       "turns an input into a constant, as in sr=16000",
       add_set},
      {"--elements",
       "",
       "INPUT=COUNT",
       ValueKind::kText,
       {},
       kModel,
       kOfModels,
       true,
       "how many tensors a sequence among the inputs has; none of an optional is no value",
       add_elements},
      {"--state",
       "",
       "INPUT=OUTPUT",
       ValueKind::kText,
       {},
       kModel,
       kOfPrograms,
       true,
       "an input that the previous run's output feeds; a star on either side, as in past_*=present_*, pairs "
       "all that fit",
       add_state},
      {"--allow-symlinks",
       "",
       "",
       ValueKind::kText,
       {},
       kModel,
       kOfModels,
       false,
       "lets external data be reached through symbolic and hard links",
       [](Options& options, const std::string&) { options.import.allow_symlinks = true; }},
  };
}

std::vector<OptionRecord> graph_options() {
  return {
      {"",
       "-O",
       "LEVEL",
       ValueKind::kOneOf,
       {"0", "1", "2", "3"},
       kGraph,
       kOfModels,
       false,
       "how much is optimised, from nothing to everything (3)",
       [](Options& options, const std::string& value) { options.level = value[0] - '0'; }},
      {"--optimize-for",
       "",
       "GOAL",
       ValueKind::kOneOf,
       {"speed", "size"},
       kGraph,
       kOfModels,
       false,
       "the goal; size takes the least arena, and images in strips of rows (speed; size where --cpu names a "
       "microcontroller)",
       [](Options& options, const std::string& value) { options.optimize_for_size = value == "size"; }},
      {"--exact",
       "",
       "",
       ValueKind::kText,
       {},
       kGraph,
       kOfModels,
       false,
       "takes only rewrites that keep every bit, and keeps denormal numbers",
       [](Options& options, const std::string&) { options.exact = true; }},
      {"--weight-bits",
       "",
       "BITS",
       ValueKind::kOneOf,
       {"8", "4"},
       kGraph,
       kOfModels,
       false,
       "packs constant weights of products in so many bits, with a scale for 32 rows of a column; the "
       "report says what that costs",
       [](Options& options, const std::string& value) { options.weight_bits = value[0] - '0'; }},
      {"--disable-pass",
       "",
       "PASS",
       ValueKind::kText,
       {},
       kGraph,
       kOfModels,
       true,
       "a pass or rule that must not run",
       [](Options& options, const std::string& value) { options.disabled.push_back(value); }},
      {"--pass-limit",
       "",
       "N",
       ValueKind::kText,
       {},
       kGraph,
       kOfModels,
       false,
       "runs only the first N passes, to find a faulty one",
       [](Options& options, const std::string& value) {
         options.pass_limit = static_cast<int>(number_of("--pass-limit", value, 0, 1'000'000));
       }},
      {"--verify-passes",
       "",
       "",
       ValueKind::kText,
       {},
       kGraph,
       {kVerify, kCheck, kOpt},
       false,
       "evaluates the graph behind every pass, on random, special and extreme inputs, at several sizes where "
       "they are open, and names the first pass that changes what it computes",
       [](Options& options, const std::string&) { options.verify_passes = true; }},
  };
}

/// A budget of memory that a project may take.
OptionRecord budget_of_bytes(const char* name, const char* help,
                             void (*apply)(Options& options, const std::string& value)) {
  return {name, "", "BYTES", ValueKind::kText, {}, kTarget, {kCompile}, false, help, apply};
}

std::vector<OptionRecord> target_options() {
  return {
      {"--target",
       "",
       "TARGET",
       ValueKind::kOneOf,
       {"cpp", "cuda"},
       kTarget,
       kOfModels,
       false,
       "C++17, or CUDA for nvcc and the static runtime alone (cpp)",
       [](Options& options, const std::string& value) { options.target = target_named(value)->target; }},
      {"--cpu",
       "",
       "PROCESSOR",
       ValueKind::kText,
       {},
       kTarget,
       kOfModels,
       false,
       "what the build files of a C++ project pass as -march=, or as -mcpu= for a core of ARM (native)",
       set_cpu},
      budget_of_bytes(
          "--max-flash",
          "refuses a project whose weights take more, and says which of them take most; 64K and 2M are "
          "numbers too",
          [](Options& options, const std::string& value) {
            options.max_flash = bytes_of("--max-flash", value);
          }),
      budget_of_bytes(
          "--max-ram",
          "refuses a project whose arena, state and instance take more together, and says what takes most",
          [](Options& options, const std::string& value) { options.max_ram = bytes_of("--max-ram", value); }),
      budget_of_bytes(
          "--max-stack",
          "refuses a project of which a run takes more of the stack, as NAME_STACK_BYTES tells it",
          [](Options& options, const std::string& value) {
            options.max_stack = bytes_of("--max-stack", value);
          }),
      {"--arch",
       "",
       "GPU[,GPU]...",
       ValueKind::kText,
       {},
       kTarget,
       kOfModels,
       false,
       fmt::format("the GPUs that a CUDA project is built for, each with the kernels that are fastest on it; "
                   "compute_NN is PTX, for later ones ({})",
                   kDefaultCudaArch),
       [](Options& options, const std::string& value) {
         cuda_architectures(value);
         options.arch = value;
       }},
      {"--gemm",
       "",
       "LIBRARY",
       ValueKind::kOneOf,
       {"builtin", "cublaslt"},
       kTarget,
       kOfModels,
       false,
       "who computes products of more than 8 rows in a CUDA project (builtin)",
       [](Options& options, const std::string& value) { options.cublaslt = value == "cublaslt"; }},
      {"--activations",
       "",
       "FORMAT",
       ValueKind::kOneOf,
       {"fp32", "fp16", "bf16"},
       kTarget,
       kOfModels,
       false,
       "what lies in memory between kernels: with --precision fp16 or bf16 that format for all that a "
       "product "
       "reads, whoever else does (as it is), or fp32 but where no bit of a result depends on it",
       [](Options& options, const std::string& value) { options.activations = value; }},
      {"--keep-fp32",
       "",
       "NODE",
       ValueKind::kText,
       {},
       kTarget,
       kOfModels,
       true,
       "keeps the results of the kernel that computes this node as float32 in memory, whoever "
       "reads them; for --precision fp16 and bf16",
       [](Options& options, const std::string& value) { options.kept_fp32.push_back(value); }},
      {"--precision", "", "FORMAT", ValueKind::kOneOf, precision_names(), kTarget, kOfModels, false,
       "how floats are multiplied: a CUDA project takes fp32, tf32, fp16 or bf16, a C++ project fp32, "
       "or bf16, bf16x3 or bf16x6 for processors with a tile unit (fp32)",
       [](Options& options, const std::string& value) { options.precision = *precision_from_name(value); }},
  };
}

std::vector<OptionRecord> kernel_options() {
  return {
      {"--kernel",
       "",
       "NODE=FAMILY",
       ValueKind::kText,
       {},
       kKernels,
       kOfPrograms,
       true,
       "the kernel family that serves a node of the model",
       add_forced_kernel},
      {"--explain",
       "",
       "NODE",
       ValueKind::kText,
       {},
       kKernels,
       kOfPrograms,
       true,
       "prints which kernel families could serve a node, what each is predicted to cost, and why others do "
       "not take it",
       [](Options& options, const std::string& value) { options.explained.push_back(value); }},
      {"--extra-weights",
       "",
       "PERCENT",
       ValueKind::kText,
       {},
       kKernels,
       kOfPrograms,
       false,
       "by how much kernels may enlarge the weights to be faster, in percent of weights and arena (100)",
       [](Options& options, const std::string& value) {
         options.extra_weights_percent = number_of("--extra-weights", value, 0, 1000);
       }},
  };
}

std::vector<OptionRecord> project_options() {
  return {
      {"--output",
       "-o",
       "DIR",
       ValueKind::kFolder,
       {},
       kProject,
       {kCompile},
       false,
       "the folder of the project",
       [](Options& options, const std::string& value) { options.output = value; }},
      {"--name",
       "",
       "PREFIX",
       ValueKind::kText,
       {},
       kProject,
       kOfPrograms,
       false,
       "the prefix of all names in the project, [a-z][a-z0-9_]* (the name of the model's file; DIR for "
       "model.onnx)",
       [](Options& options, const std::string& value) {
         options.name = value;
         static_cast<void>(program_name(options));
       }},
      {"--weights",
       "",
       "PLACE",
       ValueKind::kOneOf,
       {"incbin", "array", "file", "extern"},
       kProject,
       {kCompile, kVerify},
       false,
       "where the weights are: linked in as a file or as an array in C, loaded by the runner, or handed "
       "over by the caller (incbin)",
       set_weights},
      {"--selftest",
       "",
       "",
       ValueKind::kText,
       {},
       kProject,
       {kCompile},
       false,
       "adds a test with inputs and outputs that the compiler computed",
       [](Options& options, const std::string&) { options.selftest = true; }},
      {"--pack",
       "",
       "SYSTEM",
       ValueKind::kOneOf,
       {"esp-idf", "zephyr", "platformio", "arduino"},
       kProject,
       {kCompile},
       true,
       "adds what a build system for microcontrollers needs",
       [](Options& options, const std::string& value) {
         const bool is_new =
             std::find(options.packs.begin(), options.packs.end(), value) == options.packs.end();
         if (is_new) options.packs.push_back(value);
         std::sort(options.packs.begin(), options.packs.end());
       }},
      {"--force",
       "",
       "",
       ValueKind::kText,
       {},
       kProject,
       {kCompile},
       false,
       "adds the project to a folder that gcompile did not make; no file of yours is touched",
       [](Options& options, const std::string&) { options.force = true; }},
  };
}

std::vector<OptionRecord> talk_options() {
  return {
      {"--save-onnx",
       "",
       "FILE",
       ValueKind::kFile,
       {},
       kInside,
       kOfModels,
       false,
       "writes the optimised graph as an ONNX file",
       [](Options& options, const std::string& value) { options.save_onnx = value; }},
      {"--dump-dir",
       "",
       "DIR",
       ValueKind::kFolder,
       {},
       kInside,
       kOfModels,
       false,
       "writes the graph after every pass, and the program",
       [](Options& options, const std::string& value) { options.dump_dir = value; }},
      {"--verbose",
       "-v",
       "",
       ValueKind::kText,
       {},
       kTalk,
       kOfModels,
       false,
       "says more: times of stages, passes, whole lists",
       [](Options& options, const std::string&) { options.verbosity = Verbosity::kVerbose; }},
      {"--quiet",
       "-q",
       "",
       ValueKind::kText,
       {},
       kTalk,
       kOfModels,
       false,
       "says only what is wrong",
       [](Options& options, const std::string&) { options.verbosity = Verbosity::kQuiet; }},
      {"--json",
       "",
       "",
       ValueKind::kText,
       {},
       kTalk,
       kOfTalk,
       false,
       "prints the result, errors too, as JSON (docs/json.md)",
       [](Options& options, const std::string&) { options.json = true; }},
      {"--color",
       "",
       "WHEN",
       ValueKind::kOneOf,
       {"auto", "always", "never"},
       kTalk,
       kOfTalk,
       false,
       "when messages are coloured (auto: on a terminal)",
       [](Options& options, const std::string& value) { options.color = *parse_color_mode(value); }},
  };
}

std::vector<OptionRecord> all_options() {
  std::vector<OptionRecord> table;
  for (auto part : {model_options, graph_options, target_options, kernel_options, project_options,
                    verify_options, check_options, report_options, diff_options, talk_options}) {
    for (OptionRecord& record : part()) table.push_back(std::move(record));
  }
  return table;
}

}  // namespace

bool OptionRecord::is_of(Command command) const {
  return std::find(commands.begin(), commands.end(), command) != commands.end();
}

std::span<const OptionRecord> option_table() {
  static const std::vector<OptionRecord> table = all_options();
  return table;
}

const OptionRecord* find_option(std::string_view typed, Command command) {
  const OptionRecord* found = nullptr;
  for (const OptionRecord& record : option_table()) {
    if (typed.empty() || (record.name != typed && record.letter != typed)) continue;
    if (found == nullptr || record.is_of(command)) found = &record;
  }
  return found;
}

}  // namespace gcompile
