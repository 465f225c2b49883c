// gcompile: the only place that catches.

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <new>
#include <utility>

#include "base/diagnostics.h"
#include "driver/command_line/option_table.h"
#include "driver/commands/commands.h"
#include "driver/commands/model_source.h"
#include "driver/machine/interrupt.h"
#include "driver/machine/version.h"
#include "ir/graph/operator.h"

namespace {

using namespace gcompile;

Answer dispatch(const Options& options, Terminal& terminal) {
  switch (options.command) {
    case Command::kCompile:
      return run_compile(options, terminal);
    case Command::kVerify:
      return run_verify(options, terminal);
    case Command::kCheck:
      return run_check(options, terminal);
    case Command::kOpt:
      return run_opt(options, terminal);
    case Command::kOps:
      return run_ops(options);
    case Command::kExplain:
      return run_explain(options);
    case Command::kReport:
      return run_report(options);
    case Command::kDiff:
      return run_diff(options, terminal);
    case Command::kCompletion:
      std::fputs(completion_script(options.operands.front()).c_str(), stdout);
      return {};
    case Command::kManual:
      std::fputs(manual_page().c_str(), stdout);
      return {};
    case Command::kHelp:
      std::fputs(
          (options.operands.empty() ? general_help() : help_of(*find_command(options.operands.front())))
              .c_str(),
          stdout);
      return {};
    case Command::kVersion:
      std::puts(fmt::format("gcompile {}", tool_version()).c_str());
      return {};
  }
  GC_CHECK(false);
}

std::string general_advice(const Diagnostic& diagnostic, ExitCode code) {
  if (!diagnostic.code.empty()) return fmt::format("`gcompile explain {}` says what to do", diagnostic.code);
  switch (code) {
    case ExitCode::kUsage:
      return "`gcompile help COMMAND` lists what a command takes";
    case ExitCode::kInputOutput:
      return "check the path, its permissions and the space left";
    case ExitCode::kInternal:
      return "this is a mistake in gcompile; report it with the model and the command line";
    default:
      return "";
  }
}

/// Says what was thrown; where it does not say what to do, where to read about it.
Answer tell(const CompileError& error, Terminal& terminal) {
  terminal.finish();
  for (Diagnostic diagnostic : error.diagnostics()) {
    if (diagnostic.help.empty()) diagnostic.help = general_advice(diagnostic, error.exit_code());
    terminal.diagnostic(diagnostic);
  }
  Answer answer;
  answer.code = error.exit_code();
  return answer;
}

/// The command in which a wrong command line asked for JSON; null where it did not.
const char* json_command(int argc, char** argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  if (std::find(words.begin(), words.end(), "--json") == words.end()) return nullptr;
  const std::size_t place = place_of_command(words);
  return place == words.size() ? "compile" : find_command(words[place])->name;
}

Answer answer_of(const Options& options, Terminal& terminal) {
  try {
    const ModelSource source(options);
    return dispatch(source.options(), terminal);
  } catch (const CompileError& error) {
    return tell(error, terminal);
  } catch (const OperatorError& error) {
    return tell(CompileError(ExitCode::kModel, error.message), terminal);
  } catch (const std::bad_alloc&) {
    return tell(CompileError(ExitCode::kInputOutput, "out of memory"), terminal);
  } catch (const std::exception& error) {
    const std::string text = fmt::format("internal compiler error: {}", error.what());
    return tell(CompileError(ExitCode::kInternal, text), terminal);
  }
}

/// Memory that is given back when there is no more, so that the way out, which cleans up and tells, has some.
constexpr std::size_t kReserveBytes = std::size_t{1} << 20;
void* reserve = nullptr;

void out_of_memory() {
  std::free(std::exchange(reserve, nullptr));
  throw std::bad_alloc();
}

/// For when the reserve is not enough either: allocates nothing.
int last_words() {
  static constexpr char kText[] = "error: out of memory\n";
  static_cast<void>(!::write(STDERR_FILENO, kText, sizeof(kText) - 1));
  return static_cast<int>(ExitCode::kInputOutput);
}

/// An exception that met a destructor or a function that may not throw.
[[noreturn]] void end_of_the_road() {
  try {
    if (std::current_exception()) throw;
  } catch (const std::bad_alloc&) {
    ::_exit(last_words());
  } catch (...) {
  }
  std::abort();
}

/// Whether the command prints no data of its own; a person at a terminal has read it all above.
bool prints_summary(const Options& options) {
  if (options.verbosity == Verbosity::kQuiet || ::isatty(STDOUT_FILENO) == 1) return false;
  return options.command == Command::kCompile || options.command == Command::kVerify ||
         options.command == Command::kCheck;
}

int run(int argc, char** argv) {
  Options options;
  try {
    options = parse_command_line(argc, argv);
  } catch (const CompileError& error) {
    Terminal terminal(std::cerr, examine_terminal(STDERR_FILENO, ColorMode::kAuto), Verbosity::kNormal);
    const Answer answer = tell(error, terminal);
    if (const char* command = json_command(argc, argv))
      std::fputs(answer_json(answer, command, terminal.diagnostics()).c_str(), stdout);
    return static_cast<int>(answer.code);
  }
  Terminal terminal(std::cerr, examine_terminal(STDERR_FILENO, options.color), options.verbosity);
  const Answer answer = answer_of(options, terminal);
  terminal.finish();
  if (options.json) {
    std::fputs(answer_json(answer, record_of(options.command).name, terminal.diagnostics()).c_str(), stdout);
  } else if (prints_summary(options)) {
    std::puts(summary_line(answer, record_of(options.command).name, terminal.diagnostics()).c_str());
  }
  return static_cast<int>(answer.code);
}

/// A standard stream that is closed is opened the wrong way round, so that no file of ours takes its number
/// and is written to by mistake, and writing to it is an error.
void hold_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(stream, F_GETFD) < 0) ::open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

/// What was printed is an answer only once it has arrived: a full disk must not look like success.
int with_output_written(int code) {
  errno = 0;
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(
      stderr,
      "error: cannot write to standard output: %s\n   = help: make room where it leads, or close nothing "
      "that is written to\n",
      std::strerror(errno != 0 ? errno : EIO));
  return code != 0 ? code : static_cast<int>(ExitCode::kInputOutput);
}

}  // namespace

int main(int argc, char** argv) {
  hold_standard_streams();
  reserve = std::malloc(kReserveBytes);
  std::set_new_handler(out_of_memory);
  std::set_terminate(end_of_the_road);
  catch_interrupts();
  survive_file_size_limit();
  try {
    return with_output_written(run(argc, argv));
  } catch (const std::bad_alloc&) {
    return last_words();
  }
}
