#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>

#include <algorithm>
#include <deque>

#include "base/nearest_name.h"
#include "codegen/choice/machine.h"
#include "driver/command_line/option_table.h"

namespace gcompile {
namespace {

std::vector<std::string> names_of_commands() {
  std::vector<std::string> names;
  for (const CommandRecord& record : command_table()) names.emplace_back(record.name);
  return names;
}

bool exists(const std::string& path) {
  struct stat status = {};
  return ::stat(path.c_str(), &status) == 0;
}

/// What people type who know other tools, and what it is here.
struct OfOtherTools {
  const char* begin;
  const char* help;
};

constexpr OfOtherTools kOfOtherTools[] = {
    {"-march=", "--cpu NAME names the processor, as -march= does"},
    {"-mcpu=", "--cpu NAME names the processor, as -mcpu= does"},
    {"-mtune=", "--cpu NAME names the processor"},
    {"--march", "--cpu NAME names the processor, as -march= does"},
    {"--mcpu", "--cpu NAME names the processor, as -mcpu= does"},
    {"--quant",
     "--weight-bits 8 or 4 packs the weights of products; a model that is quantised stays so without an "
     "option"},
    {"--int8",
     "--weight-bits 8 packs the weights of products; a model that is quantised stays so without an option"},
    {"--fp16", "--precision fp16 keeps 16 bits (with --target cuda)"},
    {"--bf16", "--precision bf16 keeps 16 bits (with --target cuda)"},
    {"--input-shape", "--shape INPUT:SIZExSIZE... gives the shape of an input"},
    {"--batch", "--dim NAME=SIZE gives an open dimension its size, as --dim batch=1"},
};

/// The words of a command line, from the first on. Options and operands stand in any order; "--" ends the
/// options; "--name=VALUE" and "-oVALUE" are one word.
class Parser {
 public:
  explicit Parser(std::deque<std::string> words) : words_(std::move(words)) {}

  Options run() {
    take_command();
    while (!words_.empty() && !is_done_) {
      const std::string word = take();
      if (word == "--" && !options_ended_) {
        options_ended_ = true;
      } else if (options_ended_ || word.size() < 2 || word[0] != '-') {
        operands_.push_back(word);
      } else {
        take_option(word);
      }
    }
    if (!is_done_) give_operands();
    if (!is_done_) expect_consistent(options_);
    // Flash and RAM are what a microcontroller is short of.
    const bool has_goal = options_.given.count("--optimize-for") > 0;
    if (!has_goal && is_microcontroller(options_.cpu)) options_.optimize_for_size = true;
    return std::move(options_);
  }

 private:
  std::string take() {
    std::string word = std::move(words_.front());
    words_.pop_front();
    return word;
  }

  void take_command() {
    if (words_.empty()) {
      usage_error("nothing to do",
                  "gcompile MODEL -o DIR compiles a model; `gcompile help` says what else there is");
    }
    const std::size_t place = place_of_command({words_.begin(), words_.end()});
    if (place == words_.size()) {
      expect_no_python(words_.front());
      return;
    }
    options_.command = find_command(words_[place])->command;
    is_command_typed_ = true;
    words_.erase(words_.begin() + static_cast<std::ptrdiff_t>(place));
  }

  /// --help wherever it stands, so that it is there when the rest of the line is wrong.
  void take_option(const std::string& word) {
    if (word == "--help" || word == "-h") {
      options_.operands.clear();
      if (is_command_typed_) options_.operands.emplace_back(record_of(options_.command).name);
      options_.command = Command::kHelp;
      is_done_ = true;
      return;
    }
    if (word == "--version") {
      options_.command = Command::kVersion;
      is_done_ = true;
      return;
    }
    const bool is_long = word[1] == '-';
    const std::size_t end = is_long ? word.find('=') : 2;
    const std::string typed = word.substr(0, end);
    const bool has_value = is_long ? end != std::string::npos : word.size() > 2;
    const OptionRecord* record = find_option(typed, options_.command);
    if (record == nullptr) no_such_option(word, typed);
    if (!record->is_of(options_.command)) not_of_this_command(*record);
    if (record->is_flag()) {
      if (has_value) {
        usage_error(fmt::format("'{}': {} takes no value", printable(word), record->typed()),
                    fmt::format("write {} alone", record->typed()));
      }
      set(*record, "");
      return;
    }
    std::string value;
    if (has_value) {
      value = word.substr(is_long ? end + 1 : end);
    } else if (!words_.empty()) {
      value = take();
    } else {
      usage_error(fmt::format("{} needs a value", typed),
                  fmt::format("write {}{}{}", typed, *record->name != '\0' ? " " : "", record->metavar));
    }
    expect_value(*record, value);
    set(*record, value);
  }

  /// "--dim NAME=SIZE", "-O2".
  static std::string with_value(const OptionRecord& record, std::string_view value) {
    return fmt::format("{}{}{}", record.typed(), *record.name != '\0' ? " " : "", value);
  }

  static void expect_value(const OptionRecord& record, const std::string& value) {
    if (value.empty()) {
      usage_error(fmt::format("{} needs a value that is not empty", record.typed()),
                  fmt::format("write {}", with_value(record, record.metavar)));
    }
    if (record.kind != ValueKind::kOneOf) return;
    if (std::find(record.values.begin(), record.values.end(), value) != record.values.end()) return;
    const std::string nearest = did_you_mean(value, record.values);
    const std::string all = fmt::format("it takes {}", fmt::join(record.values, ", "));
    usage_error(fmt::format("{}: there is no such {}", with_value(record, printable(value)), record.metavar),
                nearest.empty() ? all : nearest + " " + all);
  }

  void set(const OptionRecord& record, const std::string& value) {
    const bool is_new = options_.given.insert(std::string(record.typed())).second;
    if (!is_new && !record.repeats && !record.is_flag()) {
      usage_error(fmt::format("{} is given twice", record.typed()), "leave one of them out");
    }
    record.apply(options_, value);
  }

  [[noreturn]] void no_such_option(const std::string& word, const std::string& typed) const {
    for (const OfOtherTools& other : kOfOtherTools) {
      if (word.rfind(other.begin, 0) == 0)
        usage_error(fmt::format("there is no option '{}'", printable(word)), other.help);
    }
    std::vector<std::string> names;
    for (const OptionRecord& record : option_table()) {
      if (record.is_of(options_.command)) names.emplace_back(record.typed());
    }
    const std::string nearest = typed[1] == '-' ? did_you_mean(typed, names) : "";
    usage_error(fmt::format("there is no option '{}'", printable(typed)),
                nearest.empty() ? help_hint(options_.command) : nearest);
  }

  [[noreturn]] void not_of_this_command(const OptionRecord& option) const {
    std::vector<std::string> commands;
    for (const Command command : option.commands) commands.emplace_back(record_of(command).name);
    usage_error(fmt::format("gcompile {} takes no {}", record_of(options_.command).name, option.typed()),
                fmt::format("{} is an option of gcompile {}; {}", option.typed(), fmt::join(commands, ", "),
                            help_hint(options_.command)));
  }

  void give_operands() {
    const CommandRecord& record = record_of(options_.command);
    switch (record.operands) {
      case Operands::kModel:
        give_model(record);
        return;
      case Operands::kOperators:
        break;
      case Operands::kCodes:
        if (operands_.empty()) {
          usage_error("gcompile explain needs the code of an error or a warning",
                      "for example `gcompile explain E0401`; docs/errors.md lists them");
        }
        break;
      case Operands::kProject:
        if (operands_.empty()) {
          usage_error("gcompile report needs the folder of a project",
                      fmt::format("gcompile report {}", record.usage));
        }
        if (operands_.size() > 1) too_many(record, "one project");
        break;
      case Operands::kProjects:
        if (operands_.size() < 2) {
          usage_error("gcompile diff needs the folders of two projects",
                      fmt::format("gcompile diff {}", record.usage));
        }
        if (operands_.size() > 2) too_many(record, "two projects");
        break;
      case Operands::kCommand:
        if (operands_.size() > 1) too_many(record, "one command");
        if (operands_.size() == 1 && find_command(operands_[0]) == nullptr) no_such_command(operands_[0]);
        break;
      case Operands::kShell:
        expect_shell();
        break;
      case Operands::kNone:
        if (!operands_.empty()) too_many(record, "no operands");
        break;
    }
    options_.operands = operands_;
  }

  void give_model(const CommandRecord& record) {
    if (operands_.empty()) {
      usage_error("no model is given", fmt::format("gcompile {}{}{}", is_command_typed_ ? record.name : "",
                                                   is_command_typed_ ? " " : "", record.usage));
    }
    if (!is_command_typed_) expect_no_typo(operands_[0]);
    if (operands_.size() > 1) too_many(record, "one model");
    options_.model = operands_[0];
  }

  /// Commands of the Python package, which stands in front of this tool where it is installed.
  static void expect_no_python(const std::string& word) {
    if ((word != "bench" && word != "cache") || exists(word)) return;
    usage_error(fmt::format("gcompile {} is a command of the Python package", word),
                "`pip install .` in a clone of gcompile installs it; docs/python.md tells more");
  }

  /// A first word that is no file and looks like a command.
  static void expect_no_typo(const std::string& word) {
    if (word.find_first_of("./") != std::string::npos || exists(word)) return;
    if (!did_you_mean(word, names_of_commands()).empty()) no_such_command(word);
  }

  [[noreturn]] static void no_such_command(const std::string& word) {
    const std::string nearest = did_you_mean(word, names_of_commands());
    usage_error(
        fmt::format("there is no command '{}'", printable(word)),
        nearest.empty() ? fmt::format("there are {}", fmt::join(names_of_commands(), ", ")) : nearest);
  }

  [[noreturn]] void too_many(const CommandRecord& record, std::string_view taken) const {
    std::vector<std::string> shown;
    for (const std::string& word : operands_) shown.push_back("'" + printable(word) + "'");
    usage_error(fmt::format("gcompile {} takes {}, and these are given: {}", record.name, taken,
                            fmt::join(shown, ", ")),
                fmt::format("gcompile {}{}{}", record.name, *record.usage != '\0' ? " " : "", record.usage));
  }

  void expect_shell() const {
    const std::vector<std::string> shells(std::begin(kShells), std::end(kShells));
    if (operands_.size() == 1 && std::find(shells.begin(), shells.end(), operands_[0]) != shells.end())
      return;
    usage_error(operands_.size() == 1
                    ? fmt::format("there is no completion for '{}'", printable(operands_[0]))
                    : std::string("gcompile completion needs the name of one shell"),
                fmt::format("there are {}", fmt::join(shells, ", ")));
  }

  std::deque<std::string> words_;
  std::vector<std::string> operands_;
  Options options_;
  bool is_command_typed_ = false;
  bool options_ended_ = false;
  bool is_done_ = false;
};

}  // namespace

Options parse_command_line(int argc, const char* const* argv) {
  return Parser(std::deque<std::string>(argv + std::min(argc, 1), argv + argc)).run();
}

}  // namespace gcompile
