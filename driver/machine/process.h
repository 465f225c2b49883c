#pragma once
// Other programs: the compiler and the emitted runner.

#include <string>
#include <vector>

namespace gcompile {

/// A program found by PATH, with its arguments; no shell reads them.
using CommandLine = std::vector<std::string>;

struct ProcessResult {
  int status = 0;      // exit code, or 128 + signal
  std::string output;  // standard output and error together
};

/// Runs one program to its end. Throws CompileError: kInputOutput when it cannot be started, kInterrupted
/// when a signal came; the program is then ended too.
ProcessResult run_process(const CommandLine& command);

/// Runs all, at most `jobs` at a time; results in order. Stops starting more after the first that fails.
std::vector<ProcessResult> run_processes(const std::vector<CommandLine>& commands, int jobs);

/// "g++ -O2 'a b.cpp'", as a shell would read it.
std::string command_text(const CommandLine& command);

}  // namespace gcompile
