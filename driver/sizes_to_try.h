#pragma once
// Sizes at which a program whose sizes have bounds is tried and shown.

#include <cstdint>
#include <vector>

#include "codegen/program/program.h"

namespace gcompile {

/// One size for each of program.sizes: every corner of the bounds, up to 16, and as many again between them,
/// of those that the program's conditions allow. The same for equal seeds.
std::vector<std::vector<std::int64_t>> sizes_to_try(const Program& program, std::uint64_t seed);

/// The largest sizes that the program's conditions allow in a run that begins with as little in states that
/// grow as can be, the first of program.sizes before the others.
std::vector<std::int64_t> largest_sizes(const Program& program);

}  // namespace gcompile
