#pragma once
// What a project takes beside what its user has: --max-flash, --max-ram and --max-stack.

#include "codegen/choice/machine.h"
#include "codegen/program/program.h"
#include "driver/command_line/options.h"

namespace gcompile {

/// Throws a CompileError with a finding (E0308) for each budget that the program exceeds, which names what takes
/// most of it. In bytes: flash of the weights, without code; RAM of arena, state and instance, which the caller
/// gives, without inputs, outputs and stack; stack as NAME_STACK_BYTES tells it, on `machine`.
void expect_budgets(const Program& program, const Options& options, const Machine& machine);

}  // namespace gcompile
