#include <fmt/format.h>

#include <algorithm>

#include "driver/command_line/option_table.h"

namespace gcompile {

using enum Command;

std::span<const CommandRecord> command_table() {
  static const std::vector<CommandRecord> table = {
      {kCompile,
       "compile",
       Operands::kModel,
       "MODEL -o DIR [OPTION]...",
       "Turns an ONNX model into a C++ or CUDA project that stands alone.",
       {"gcompile model.onnx -o net && make -C net", "gcompile model.onnx -o net --target cuda --arch sm_87",
        "gcompile encoder.onnx -o net --dim batch=1,4 --dim length=64", "gcompile - -o net < model.onnx"}},
      {kVerify,
       "verify",
       Operands::kModel,
       "MODEL [--data DIR] [OPTION]...",
       "Compiles, builds and runs a model, and compares its outputs with expected ones.",
       {"gcompile verify model.onnx", "gcompile verify model.onnx --data test_data_set_0 --layers"}},
      {kCheck,
       "check",
       Operands::kModel,
       "MODEL [OPTION]...",
       "Says whether a model can be compiled, with all problems at once.",
       {"gcompile check model.onnx", "gcompile check model.onnx --ports",
        "gcompile check model.onnx --json"}},
      {kOpt,
       "opt",
       Operands::kModel,
       "MODEL [OPTION]...",
       "Runs the passes on a model and prints the graph.",
       {"gcompile opt model.onnx -O1", "gcompile opt model.onnx --save-onnx optimised.onnx"}},
      {kOps,
       "ops",
       Operands::kOperators,
       "[OPERATOR]... [--json]",
       "Lists the supported operators, or says what is known of some.",
       {"gcompile ops", "gcompile ops Conv Softmax"}},
      {kExplain,
       "explain",
       Operands::kCodes,
       "CODE... [--json]",
       "Says what an error means and what to do.",
       {"gcompile explain E0401"}},
      {kReport,
       "report",
       Operands::kProject,
       "DIR -o FILE [OPTION]...",
       "Adds measured times and sizes of code to the report of a project.",
       {"net/build/net_bench --layers --json > layers.json",
        "gcompile report net --layers layers.json --sizes-from net/build -o report.html"}},
      {kDiff,
       "diff",
       Operands::kProjects,
       "DIR DIR [OPTION]...",
       "Says how two projects differ: memory, weights, predicted time, calls and text.",
       {"gcompile diff before after",
        "gcompile diff before after --max-regression ram=0,weights=2%,time=5%"}},
      {kCompletion,
       "completion",
       Operands::kShell,
       "bash|zsh|fish",
       "Prints the script by which a shell completes command lines of gcompile.",
       {"source <(gcompile completion bash)"}},
      {kManual,
       "manual",
       Operands::kNone,
       "",
       "Prints the manual page.",
       {"gcompile manual > gcompile.1 && man ./gcompile.1"}},
      {kVersion, "version", Operands::kNone, "", "Prints the version.", {"gcompile version"}},
      {kHelp,
       "help",
       Operands::kCommand,
       "[COMMAND]",
       "Says what a command does and takes.",
       {"gcompile help verify"}},
  };
  return table;
}

const CommandRecord& record_of(Command command) {
  const auto table = command_table();
  const auto found = std::find_if(table.begin(), table.end(),
                                  [&](const CommandRecord& record) { return record.command == command; });
  GC_CHECK(found != table.end());
  return *found;
}

const CommandRecord* find_command(std::string_view name) {
  for (const CommandRecord& record : command_table()) {
    if (record.name == name) return &record;
  }
  return nullptr;
}

std::size_t place_of_command(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word[0] != '-') return find_command(word) != nullptr ? i : words.size();
    if (word == "--") break;
    const bool is_long = word[1] == '-';
    const OptionRecord* option = find_option(word.substr(0, is_long ? word.find('=') : 2), kCompile);
    if (option == nullptr) continue;
    const bool has_value = is_long ? word.find('=') != std::string::npos : word.size() > 2;
    if (!option->is_flag() && !has_value) ++i;
  }
  return words.size();
}

void usage_error(std::string message, std::string help) {
  throw CompileError(ExitCode::kUsage, std::move(message), std::move(help));
}

std::string help_hint(Command command) {
  return fmt::format("`gcompile help {}` lists what it takes", record_of(command).name);
}

}  // namespace gcompile
