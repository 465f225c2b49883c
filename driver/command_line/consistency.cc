#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/nearest_name.h"
#include "driver/command_line/option_table.h"
#include "passes/engine/passes.h"
#include "passes/engine/rule.h"

namespace gcompile {
namespace {

/// Two options of which the second would have no effect, or that ask for two things.
struct Conflict {
  const char* option;
  const char* other;
  const char* why;
};

constexpr Conflict kConflicts[] = {
    {"--quiet", "--verbose", "one says less, the other more"},
    {"--quiet", "--explain", "what is explained would not be printed"},
    {"--exact", "--weight-bits", "packed weights are rounded"},
    {"--runner", "--layers", "inner values are outputs of a program of its own"},
    {"--runner", "--cxx", "nothing is compiled"},
    {"--data", "--seed", "there are no random inputs"},
    {"--data", "--cases", "there are no random inputs"},
};

/// Options that one target alone reads.
struct OfTarget {
  const char* option;
  Target target;
  const char* why;
};

constexpr OfTarget kOfTargets[] = {
    {"--arch", Target::kCuda, "it names GPUs"},
    {"--activations", Target::kCuda, "elsewhere all values lie in memory as float32"},
    {"--keep-fp32", Target::kCuda, "elsewhere all values lie in memory as float32"},
    {"--gemm", Target::kCuda, "it chooses between kernels of the GPU"},
    {"--emulate", Target::kCuda, "it stands for a GPU"},
    {"--runner", Target::kCpp, "what runs on a GPU is built for the one that is here"},
    {"--cpu", Target::kCpp, "it names a processor, and the kernels run on a GPU"},
    {"--pack", Target::kCpp, "it names build systems of microcontrollers"},
    {"--max-flash", Target::kCpp, "it is of the memory of microcontrollers"},
    {"--max-ram", Target::kCpp, "it is of the memory of microcontrollers"},
    {"--max-stack", Target::kCpp, "kernels run on a GPU"},
    {"--weight-bits", Target::kCpp, "no CUDA kernel decodes packed weights"},
};

[[noreturn]] void needs_target(const std::string& option, const char* target, const std::string& why) {
  usage_error(fmt::format("{} needs --target {}: {}", option, target, why),
              fmt::format("add --target {}, or leave {} out", target, option));
}

void expect_precision_of_target(const Options& options) {
  const PrecisionFacts& precision = facts_of(options.precision);
  const std::string option = fmt::format("--precision {}", precision.name);
  const bool is_cuda = info_of(options.target).has_device_memory;
  if (is_cuda && !precision.is_of_cuda) needs_target(option, "cpp", "GPUs do without it");
  if (!is_cuda && precision.bfloat16_products < 0)
    needs_target(option, "cuda", "the kernels of the CPU multiply in float32, or by products of bfloat16");
  if (!is_cuda && precision.bfloat16_products > 0 && options.exact) {
    usage_error(fmt::format("--exact and {} contradict each other: it rounds what is multiplied", option),
                "leave one of them out");
  }
}

void expect_kept_values(const Options& options) {
  const bool is_short = facts_of(options.precision).weight != ir::ElementType::kFloat32;
  if (options.kept_fp32.empty() || is_short) return;
  usage_error(fmt::format("--keep-fp32 has no effect in --precision {}: all values lie in memory as float32",
                          facts_of(options.precision).name),
              "add --precision fp16 or bf16, or leave it out");
}

void expect_activations_of_precision(const Options& options) {
  const std::string& name = options.activations;
  const char* precision = facts_of(options.precision).name;
  if (name.empty() || name == "fp32" || name == precision) return;
  usage_error(fmt::format("--activations {} needs --precision {}: what lies in memory in 16 bits is what "
                          "products multiply, here {}",
                          name, name, precision),
              fmt::format("add --precision {}, or leave --activations out", name));
}

void expect_one_size(const Options& options, const char* what) {
  if (options.size_lists.empty()) return;
  usage_error(fmt::format("{} takes a model of one size, and --dim gives '{}' several", what,
                          printable(options.size_lists.front().name)),
              fmt::format("for example --dim {}={}", printable(options.size_lists.front().name),
                          options.size_lists.front().sizes.front()));
}

}  // namespace

void expect_consistent(const Options& options) {
  const auto is_given = [&](const char* option) { return options.given.count(option) > 0; };
  for (const Conflict& conflict : kConflicts) {
    if (!is_given(conflict.option) || !is_given(conflict.other)) continue;
    usage_error(
        fmt::format("{} and {} contradict each other: {}", conflict.option, conflict.other, conflict.why),
        "leave one of them out");
  }
  for (const OfTarget& row : kOfTargets) {
    if (is_given(row.option) && options.target != row.target)
      needs_target(row.option, info_of(row.target).name, row.why);
  }
  expect_precision_of_target(options);
  expect_kept_values(options);
  expect_activations_of_precision(options);
  for (const auto& [input, output] : options.import.states) {
    for (const frontend::SetBinding& set : options.import.bindings.sets) {
      if (set.input != input) continue;
      usage_error(fmt::format("--state and --set contradict each other: both give the input '{}' its value",
                              printable(input)),
                  "leave one of them out");
    }
  }
  for (const std::string& pack : options.packs) {
    if (pack != "arduino" && pack != "platformio") continue;
    if (options.weights == WeightsMode::kArray || options.weights == WeightsMode::kExtern) continue;
    usage_error(fmt::format("--pack {} takes sources alone, and the weights would be a file", pack),
                "add --weights array, or --weights extern to hand them over at run time");
  }
  if (options.command == Command::kOpt) expect_one_size(options, "gcompile opt");
  if (!options.save_onnx.empty()) expect_one_size(options, "--save-onnx");
  if (options.command == Command::kReport && options.output.empty())
    usage_error("no output file is given", "add -o FILE, for example -o report.html");
  if (options.command == Command::kReport && options.layer_times.empty() && options.sizes_from.empty())
    usage_error("there is nothing to add to the report", "give --layers FILE, --sizes-from BUILD, or both");
  if (options.command == Command::kCompile && options.output.empty())
    usage_error("no output folder is given", "add -o DIR, a folder that is new or that gcompile made");
}

void expect_pass_names(const Options& options) {
  std::vector<std::string> optional, known, required;
  for (const passes::Pass& pass : passes::pipeline())
    (pass.required ? required : optional).push_back(pass.name);
  known = optional;
  for (const passes::Rule* rule : passes::all_rules()) known.emplace_back(rule->name);
  const auto holds = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  for (const std::string& name : options.disabled) {
    if (holds(known, name)) continue;
    const std::string all =
        fmt::format("passes that may be left out: {}; `gcompile opt MODEL --json` names rules",
                    fmt::join(optional, ", "));
    if (holds(required, name))
      usage_error(fmt::format("--disable-pass: '{}' is needed by later stages", name), all);
    const std::string nearest = did_you_mean(name, known);
    usage_error(fmt::format("--disable-pass: there is no pass or rule '{}'", printable(name)),
                nearest.empty() ? all : nearest);
  }
}

}  // namespace gcompile
