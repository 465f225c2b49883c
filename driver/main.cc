// gcompile: the only place that catches.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <utility>

#include "driver/commands.h"
#include "driver/interrupt.h"
#include "driver/options.h"
#include "ir/diagnostics.h"
#include "ir/operator.h"
#include "template/text.h"

namespace {

using namespace gcompile;

int dispatch(const Options& options, Terminal& terminal) {
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
  }
  GC_CHECK(false);
}

/// What a program that called us reads in place of the text.
void print_json_errors(const ir::CompileError& error) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const ir::Diagnostic& d : error.diagnostics()) {
    list.push_back({{"severity", d.severity == ir::Severity::kError ? "error" : "warning"},
                    {"code", d.code},
                    {"message", d.message},
                    {"location", d.location},
                    {"details", d.details},
                    {"help", d.help}});
  }
  const nlohmann::ordered_json out = {{"exit_code", static_cast<int>(error.exit_code())}, {"errors", list}};
  std::fputs(json_text(out).c_str(), stdout);
}

int report(const ir::CompileError& error, Terminal& terminal, bool json) {
  terminal.finish();
  for (const ir::Diagnostic& diagnostic : error.diagnostics()) terminal.diagnostic(diagnostic);
  if (json) print_json_errors(error);
  return static_cast<int>(error.exit_code());
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
  return static_cast<int>(ir::ExitCode::kInputOutput);
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

int run(int argc, char** argv) {
  std::optional<Options> options;
  try {
    options = parse_command_line(argc, argv);
  } catch (const ir::CompileError& error) {
    Terminal terminal(std::cerr, examine_terminal(STDERR_FILENO, ColorMode::kAuto), Verbosity::kNormal);
    return report(error, terminal, false);
  }
  if (!options) return 0;
  Terminal terminal(std::cerr, examine_terminal(STDERR_FILENO, options->color), options->verbosity);
  try {
    return dispatch(*options, terminal);
  } catch (const ir::CompileError& error) {
    return report(error, terminal, options->json);
  } catch (const ir::OperatorError& error) {
    return report(ir::CompileError(ir::ExitCode::kModel, error.message), terminal, options->json);
  } catch (const std::bad_alloc&) {
    return report(ir::CompileError(ir::ExitCode::kInputOutput, "out of memory"), terminal, options->json);
  } catch (const std::exception& error) {
    const std::string text = fmt::format("internal compiler error: {}", error.what());
    return report(ir::CompileError(ir::ExitCode::kInternal, text), terminal, options->json);
  }
}

}  // namespace

int main(int argc, char** argv) {
  reserve = std::malloc(kReserveBytes);
  std::set_new_handler(out_of_memory);
  std::set_terminate(end_of_the_road);
  catch_interrupts();
  survive_file_size_limit();
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    return last_words();
  }
}
