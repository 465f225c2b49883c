#pragma once
// Sizes at which a program whose sizes have bounds is tried and shown.

#include <cstdint>
#include <string>
#include <vector>

#include "codegen/program/program.h"
#include "driver/test_cases.h"
#include "ir/sizes.h"

namespace gcompile {

/// "batch=4, length=128", by the names of the model.
std::string sizes_text(const Program& program, const std::vector<std::int64_t>& sizes);

/// The sizes at which the inputs of a case have their shapes, as far as these are the model's; `formulas`:
/// what the program's formulas are made of. Throws CompileError (kInputOutput) where no input tells one of
/// them, or the program does not run at them.
std::vector<std::int64_t> sizes_of_case(const Program& program, ir::Sizes& formulas, const TestCase& test);

/// One size for each of program.sizes: every corner of the bounds, up to 16, and as many again between them,
/// of those that the program's conditions allow. The same for equal seeds.
std::vector<std::vector<std::int64_t>> sizes_to_try(const Program& program, std::uint64_t seed);

/// The largest sizes that the program's conditions allow in a run that begins with as little in states that
/// grow as can be, the first of program.sizes before the others.
std::vector<std::int64_t> largest_sizes(const Program& program);

}  // namespace gcompile
