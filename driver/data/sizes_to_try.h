#pragma once
// Sizes at which a program whose sizes have bounds is tried and shown.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codegen/program/program.h"
#include "driver/data/test_cases.h"
#include "ir/sizes/sizes.h"

namespace gcompile {

/// "batch=4, length=128", by the names of the model.
std::string sizes_text(const Program& program, const std::vector<std::int64_t>& sizes);

/// What runs at which sizes, one for each of Program::sizes.
struct SizedRun {
  std::size_t schedule;
  std::vector<std::int64_t> sizes;
};

/// The run in which the inputs of a case have their shapes, as far as these are the model's. Throws
/// CompileError (kInputOutput) where no input tells one of the sizes, or the program does not run at them.
SizedRun run_of_case(const Program& program, const TestCase& test);

/// Every corner of each schedule's bounds, up to 16, and as many again between them, of those that its
/// conditions allow. The same for equal seeds.
std::vector<SizedRun> runs_to_try(const Program& program, std::uint64_t seed);

/// Runs of two schedules, the second of which goes on with the state that the first has left: a prompt, then
/// a word, and the other way round. Of programs whose state grows.
std::vector<std::pair<SizedRun, SizedRun>> continuations(const Program& program);

/// The largest sizes that the schedule's conditions allow in a run that begins with as little in states that
/// grow as can be, the first of program.sizes before the others.
std::vector<std::int64_t> largest_sizes(const Program& program, const Schedule& schedule);

}  // namespace gcompile
