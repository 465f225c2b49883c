#pragma once
// The commands. What they print for people goes to the terminal,
// what they print in place of JSON to standard output.

#include "driver/commands/answer.h"
#include "driver/commands/compile.h"

namespace gcompile {

/// The command `gcompile MODEL -o DIR`.
Answer run_compile(const Options& options, Terminal& terminal);

/// Compiles, builds and runs the model and compares; kMismatch when an output is off.
Answer run_verify(const Options& options, Terminal& terminal);

/// Whether the model can be compiled; all problems at once.
Answer run_check(const Options& options, Terminal& terminal);

/// Prints the graph after the passes.
Answer run_opt(const Options& options, Terminal& terminal);

/// Prints the supported operators, or what is known of some.
Answer run_ops(const Options& options);

/// Writes the report of a project with the times and sizes of a build.
Answer run_report(const Options& options);

/// Says how two projects differ; kMismatch when a figure grows by more than --max-regression allows.
Answer run_diff(const Options& options, Terminal& terminal);

/// Prints pages of docs/errors/.
Answer run_explain(const Options& options);

}  // namespace gcompile
