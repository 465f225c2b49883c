// Scripts that complete command lines, made of the tables of options.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "driver/command_line/option_table.h"

namespace gcompile {
namespace {

std::vector<std::string> words_of(const OptionRecord& option) {
  std::vector<std::string> words;
  if (*option.name == '\0') {  // -O0 ... -O3
    for (const std::string& value : option.values) words.push_back(option.letter + value);
    return words;
  }
  if (*option.letter != '\0') words.emplace_back(option.letter);
  words.emplace_back(option.name);
  return words;
}

std::string words_of(Command command) {
  std::vector<std::string> words;
  for (const OptionRecord& option : option_table()) {
    if (!option.is_of(command)) continue;
    for (std::string& word : words_of(option)) words.push_back(std::move(word));
  }
  words.emplace_back("--help");
  return fmt::format("{}", fmt::join(words, " "));
}

std::string names_of_commands() {
  std::vector<std::string> names;
  for (const CommandRecord& command : command_table()) names.emplace_back(command.name);
  return fmt::format("{}", fmt::join(names, " "));
}

/// The words after a command that is about no model.
std::string operands_of(const CommandRecord& command) {
  if (command.operands == Operands::kShell) return fmt::format("{}", fmt::join(kShells, " "));
  return command.operands == Operands::kCommand ? names_of_commands() : "";
}

std::string bash() {
  std::string values;
  for (const OptionRecord& option : option_table()) {
    if (option.is_flag() || *option.name == '\0') continue;
    std::string reply;
    if (option.kind == ValueKind::kOneOf)
      reply = fmt::format("COMPREPLY=($(compgen -W \"{}\" -- \"$word\"))", fmt::join(option.values, " "));
    if (option.kind == ValueKind::kFile)
      reply = "compopt -o filenames; COMPREPLY=($(compgen -f -- \"$word\"))";
    if (option.kind == ValueKind::kFolder)
      reply = "compopt -o filenames; COMPREPLY=($(compgen -d -- \"$word\"))";
    if (reply.empty()) reply = "COMPREPLY=()";
    values += fmt::format("    {}) {}; return ;;\n", fmt::join(words_of(option), "|"), reply);
  }
  std::string words;
  for (const CommandRecord& command : command_table()) {
    const std::string operands = operands_of(command);
    words += fmt::format("    {}) words=\"{}{}{}\" ;;\n", command.name, operands, operands.empty() ? "" : " ",
                         words_of(command.command));
  }
  return fmt::format(R"(# Completes command lines of gcompile in bash; written by `gcompile completion bash`.
_gcompile() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=compile words=
  COMPREPLY=()
  case " {0} " in *" ${{COMP_WORDS[1]}} "*) [ "$COMP_CWORD" -gt 1 ] && command=${{COMP_WORDS[1]}} ;; esac
  case $before in
{1}  esac
  case $command in
{2}  esac
  [ "$COMP_CWORD" -eq 1 ] && words="{0} $words"
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$word"))
  else
    compopt -o filenames
    COMPREPLY=($(compgen -W "${{words//-[^ ]*/}}" -- "$word") $(compgen -f -- "$word"))
  fi
}}
complete -F _gcompile gcompile
)",
                     names_of_commands(), values, words);
}

/// Within single quotes, in a specification of zsh.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else if (c == '[' || c == ']' || c == ':') {
      out += fmt::format("\\{}", c);
    } else {
      out += c;
    }
  }
  return out;
}

std::string zsh_action(const OptionRecord& option) {
  if (option.kind == ValueKind::kOneOf) return fmt::format("({})", fmt::join(option.values, " "));
  if (option.kind == ValueKind::kFile) return "_files";
  return option.kind == ValueKind::kFolder ? "_files -/" : "";
}

std::string zsh_specifications(Command command) {
  std::string out;
  for (const OptionRecord& option : option_table()) {
    if (!option.is_of(command)) continue;
    for (const std::string& word : words_of(option)) {
      const bool takes_value = !option.is_flag() && *option.name != '\0';
      out +=
          fmt::format(" \\\n        '{}{}[{}]{}'", option.repeats ? "*" : "", word, zsh_text(option.help),
                      takes_value ? fmt::format(":{}:{}", zsh_text(option.metavar), zsh_action(option)) : "");
    }
  }
  return out;
}

std::string zsh() {
  std::string commands, cases;
  for (const CommandRecord& command : command_table()) {
    commands += fmt::format("    '{}:{}'\n", command.name, zsh_text(command.summary));
    const std::string operands = operands_of(command);
    std::string files;
    if (command.operands == Operands::kModel) files = " \\\n        '1:model:_files -g \"*.(onnx|onnxtxt)\"'";
    if (command.operands == Operands::kProject) files = " \\\n        '1:project:_files -/'";
    if (command.operands == Operands::kProjects) files = " \\\n        '*:project:_files -/'";
    if (!operands.empty()) files = fmt::format(" \\\n        '1:what:({})'", operands);
    cases += fmt::format("    {})\n      _arguments{}{} ;;\n", command.name,
                         zsh_specifications(command.command), files);
  }
  return fmt::format(R"(#compdef gcompile
# Completes command lines of gcompile in zsh; written by `gcompile completion zsh`.
_gcompile() {{
  local command=compile
  local -a commands=(
{0}  )
  if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
    _describe command commands
    _files -g '*.(onnx|onnxtxt)'
    return
  fi
  if (( $commands[(I)$words[2]:*] )); then
    command=$words[2]
    shift words
    (( CURRENT-- ))
  fi
  case $command in
{1}  esac
}}
if [[ $funcstack[1] == _gcompile ]]; then _gcompile "$@"; else compdef _gcompile gcompile; fi
)",
                     commands, cases);
}

std::string fish_text(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '\'' || c == '\\' ? fmt::format("\\{}", c) : std::string(1, c);
  return out;
}

std::string fish() {
  std::string out =
      fmt::format(R"(# Completes command lines of gcompile in fish; written by `gcompile completion fish`.
set -l commands {}
set -l none "not __fish_seen_subcommand_from $commands"
)",
                  names_of_commands());
  for (const CommandRecord& command : command_table()) {
    out += fmt::format("complete -c gcompile -n \"$none\" -a {} -d '{}'\n", command.name,
                       fish_text(command.summary));
    if (const std::string operands = operands_of(command); !operands.empty()) {
      out += fmt::format("complete -c gcompile -f -n '__fish_seen_subcommand_from {}' -a '{}'\n",
                         command.name, operands);
    }
  }
  for (const OptionRecord& option : option_table()) {
    std::vector<const char*> names;
    for (const Command command : option.commands) names.push_back(record_of(command).name);
    std::string condition = fmt::format("__fish_seen_subcommand_from {}", fmt::join(names, " "));
    if (option.is_of(Command::kCompile)) condition = "$none; or " + condition;
    std::string value;
    if (option.kind == ValueKind::kOneOf) value = fmt::format(" -x -a '{}'", fmt::join(option.values, " "));
    if (option.kind == ValueKind::kFile) value = " -r -F";
    if (option.kind == ValueKind::kFolder) value = " -x -a '(__fish_complete_directories)'";
    if (value.empty() && !option.is_flag()) value = " -x";
    const std::string name = *option.name != '\0' ? fmt::format(" -l {}", option.name + 2) : "";
    if (*option.name == '\0') {
      for (const std::string& word : words_of(option))
        out += fmt::format("complete -c gcompile -n \"{}\" -a {} -d '{}'\n", condition, word,
                           fish_text(option.help));
      continue;
    }
    const std::string letter = *option.letter != '\0' ? fmt::format(" -s {}", option.letter[1]) : "";
    out += fmt::format("complete -c gcompile -n \"{}\"{}{}{} -d '{}'\n", condition, letter, name, value,
                       fish_text(option.help));
  }
  return out;
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return bash();
  return shell == "zsh" ? zsh() : fish();
}

}  // namespace gcompile
