// What `gcompile help` and --help print.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "driver/command_line/option_table.h"
#include "driver/machine/version.h"

namespace gcompile {
namespace {

const char* title_of(Group group) {
  using enum Group;
  switch (group) {
    case kModel:
      return "The model";
    case kGraph:
      return "Optimisation";
    case kTarget:
      return "The target";
    case kKernels:
      return "Kernels";
    case kProject:
      return "The project";
    case Group::kRun:
      return "What is run, and where";
    case kMeasured:
      return "What was measured";
    case kInside:
      return "A look inside";
    case kTalk:
      return "How gcompile talks";
  }
  GC_CHECK(false);
}

constexpr std::size_t kWidth = 88;
constexpr std::size_t kColumn = 28;

/// `text` in lines of at most kWidth, each after the first behind `indent` blanks; `at` is where it begins.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t at) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (at > indent && at + 1 + end > kWidth) {
      out += "\n" + std::string(indent, ' ');
      at = indent;
    } else if (at > indent) {
      out += ' ';
      ++at;
    }
    out += text.substr(0, end);
    at += end;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

/// "  left    right", the right part wrapped in its column, on a line of its own where the left one is long.
std::string row(const std::string& left, std::string_view right) {
  std::string out = "  " + left;
  if (out.size() + 2 > kColumn) {
    out += "\n" + std::string(kColumn, ' ');
  } else {
    out.resize(kColumn, ' ');
  }
  return out + wrapped(right, kColumn, kColumn) + "\n";
}

std::string typed_forms(const OptionRecord& option) {
  if (*option.name == '\0') return fmt::format("{}{}", option.letter, option.metavar);
  const std::string value = option.is_flag() ? "" : fmt::format(" {}", option.metavar);
  return fmt::format("{}{}{}{}", option.letter, *option.letter != '\0' ? ", " : "", option.name, value);
}

std::string explained(const OptionRecord& option) {
  if (option.values.empty()) return option.help;
  // Where the clause names them it need not list them again.
  const bool is_named =
      std::all_of(option.values.begin(), option.values.end(),
                  [&](const std::string& value) { return option.help.find(value) != std::string::npos; });
  return is_named ? option.help : fmt::format("{}: {}", fmt::join(option.values, ", "), option.help);
}

std::string examples(const CommandRecord& command) {
  std::string out = "Examples:\n";
  for (const char* example : command.examples) out += fmt::format("  {}\n", example);
  return out;
}

constexpr const char* kExitCodes =
    "Exit codes:\n"
    "  0 done, 1 the model, 2 the command line, 3 verify found a difference, 4 a file or a\n"
    "  folder, 70 a mistake in gcompile, 130 interrupted\n";

}  // namespace

std::string general_help() {
  std::string out = "Usage: gcompile MODEL -o DIR [OPTION]...\n       gcompile COMMAND ...\n\n";
  out += "Turns a trained ONNX model into a C++ or CUDA project that stands alone.\n\nCommands:\n";
  for (const CommandRecord& command : command_table())
    out += fmt::format("  {:<12}{}\n", command.name, command.summary);
  out += "\n" + examples(record_of(Command::kCompile)) + "\n" + kExitCodes;
  return out + "\n`gcompile help COMMAND` lists what a command takes, --version prints the version.\n";
}

std::string help_of(const CommandRecord& command) {
  std::string out = fmt::format("Usage: gcompile {} {}", command.name, command.usage);
  while (out.back() == ' ') out.pop_back();
  out += fmt::format("\n\n{}\n", command.summary);
  if (command.operands == Operands::kModel)
    out += "MODEL is an .onnx file, ONNX text (.onnxtxt), or - for standard input.\n";
  if (command.command == Command::kCompile) out += "The word `compile` may be left out.\n";
  out += "\n" + examples(command);
  for (const Group group : kGroups) {
    std::string rows;
    for (const OptionRecord& option : option_table()) {
      if (option.group == group && option.is_of(command.command))
        rows += row(typed_forms(option), explained(option));
    }
    if (!rows.empty()) out += fmt::format("\n{}:\n{}", title_of(group), rows);
  }
  return command.operands == Operands::kModel ? out + "\n" + kExitCodes : out;
}

namespace {

/// Text of roff: a hyphen that is typed, no control character at the start of a line.
std::string roff(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
  }
  return out.empty() || (out[0] != '.' && out[0] != '\'') ? out : "\\&" + out;
}

std::string commands_of(const OptionRecord& option) {
  std::vector<const char*> names;
  for (const Command command : option.commands) names.push_back(record_of(command).name);
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string manual_page() {
  std::string out = fmt::format(".TH GCOMPILE 1 \"\" \"gcompile {}\" \"User Commands\"\n", tool_version());
  out += ".SH NAME\ngcompile \\- turns an ONNX model into a C++ or CUDA project\n.SH SYNOPSIS\n";
  for (const CommandRecord& command : command_table()) {
    const std::string usage = *command.usage != '\0' ? roff(command.usage) + "\n" : "";
    out += fmt::format(".B gcompile {}\n{}.br\n", command.name, usage);
  }
  out += ".SH DESCRIPTION\n";
  out += roff(
             "Reads a trained ONNX model, optimises its graph, plans all memory, and writes a project that "
             "needs a compiler and nothing else.") +
         "\n.SH COMMANDS\n";
  for (const CommandRecord& command : command_table())
    out += fmt::format(".TP\n.B {}\n{}\n", command.name, roff(command.summary));
  out += ".SH OPTIONS\n";
  for (const Group group : kGroups) {
    out += fmt::format(".SS {}\n", title_of(group));
    for (const OptionRecord& option : option_table()) {
      if (option.group != group) continue;
      out += fmt::format(".TP\n.B {}\n{} (of {})\n", roff(typed_forms(option)), roff(explained(option)),
                         commands_of(option));
    }
  }
  out += ".SH EXIT STATUS\n" +
         roff(
             "0 done, 1 the model, 2 the command line, 3 verify found a difference, "
             "4 a file or a folder, 70 a mistake in gcompile, 130 interrupted.") +
         "\n.SH EXAMPLES\n.nf\n";
  for (const CommandRecord& command : command_table()) {
    for (const char* example : command.examples) out += roff(example) + "\n";
  }
  return out + ".fi\n";
}

}  // namespace gcompile
