// gcompile: the only place that catches.

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <new>

#include "driver/commands.h"
#include "driver/interrupt.h"
#include "driver/options.h"
#include "ir/diagnostics.h"
#include "template/text.h"
#include "unistd.h"

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

}  // namespace

int main(int argc, char** argv) {
  catch_interrupts();
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
  } catch (const std::bad_alloc&) {
    return report(ir::CompileError(ir::ExitCode::kInputOutput, "out of memory"), terminal, options->json);
  } catch (const std::exception& error) {
    const std::string text = fmt::format("internal compiler error: {}", error.what());
    return report(ir::CompileError(ir::ExitCode::kInternal, text), terminal, options->json);
  }
}
