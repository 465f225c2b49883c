#pragma once
// The commands. Each returns the exit code.

#include "driver/compile.h"

namespace gcompile {

/// Compiles, builds and runs the model and compares; kMismatch when an output is off.
int run_verify(const Options& options, Terminal& terminal);

/// Whether the model can be compiled; all problems at once.
int run_check(const Options& options, Terminal& terminal);

/// Prints the graph after the passes.
int run_opt(const Options& options, Terminal& terminal);

/// Prints the supported operators.
int run_ops(const Options& options);

}  // namespace gcompile
