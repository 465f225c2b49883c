#pragma once
// What can be typed: one record for each command and each option. Parsing, --help, the manual page and the
// completion of shells read these tables, and nothing else knows an option's name.

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/command_line/options.h"

namespace gcompile {

/// What a command takes besides options.
enum class Operands { kModel, kOperators, kCodes, kProject, kProjects, kCommand, kShell, kNone };

struct CommandRecord {
  Command command;
  const char* name;
  Operands operands;
  const char* usage;    // after the name: "MODEL -o DIR [OPTION]..."
  const char* summary;  // one sentence
  std::vector<const char*> examples;
};

std::span<const CommandRecord> command_table();
const CommandRecord& record_of(Command command);
/// Null where there is none of that name.
const CommandRecord* find_command(std::string_view name);

/// The parts of --help.
enum class Group { kModel, kGraph, kTarget, kKernels, kProject, kRun, kMeasured, kInside, kTalk };
inline constexpr Group kGroups[] = {Group::kModel,    Group::kGraph,   Group::kTarget,
                                    Group::kKernels,  Group::kProject, Group::kRun,
                                    Group::kMeasured, Group::kInside,  Group::kTalk};

/// What a value names, for the completion of shells.
enum class ValueKind { kText, kFile, kFolder, kOneOf };

struct OptionRecord {
  const char* name;     // "--dim"
  const char* letter;   // "-o"; empty: none. "-O" has no name and takes its value without a space
  const char* metavar;  // "NAME=SIZE"; empty: a flag
  ValueKind kind;
  std::vector<std::string> values;  // all that it takes (kOneOf)
  Group group;
  std::vector<Command> commands;
  bool repeats;
  std::string help;  // a clause without full stop, with the value that counts where none is given
  void (*apply)(Options& options, const std::string& value);

  /// How the option is typed: by its name, or by its letter where it has no other.
  std::string_view typed() const { return *name != '\0' ? name : letter; }
  bool is_flag() const { return *metavar == '\0'; }
  bool is_of(Command command) const;
};

std::span<const OptionRecord> option_table();
/// By name or letter, that of the command where several have the name; null where there is none.
const OptionRecord* find_option(std::string_view typed, Command command);
/// The place of the command among the words of a command line: the first word that is neither an option nor
/// the value of one, if it is a command's name; else the end.
std::size_t place_of_command(const std::vector<std::string>& words);

/// Ends with a CompileError (kUsage); `help` says what to do next.
[[noreturn]] void usage_error(std::string message, std::string help);
/// "`gcompile help verify` lists the options".
std::string help_hint(Command command);

/// Throws where options contradict each other, or one has no effect beside the others.
void expect_consistent(const Options& options);
/// --disable-pass names passes that may be left out, or rules; else throws likewise.
void expect_pass_names(const Options& options);

// What is printed.
std::string general_help();
std::string help_of(const CommandRecord& command);
std::string manual_page();
/// The script for "bash", "zsh" or "fish".
std::string completion_script(std::string_view shell);
inline constexpr const char* kShells[] = {"bash", "zsh", "fish"};

}  // namespace gcompile
