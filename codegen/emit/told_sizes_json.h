#pragma once
// How the C++ wrapper of an emitted library learns the sizes of a run.

#include <nlohmann/json_fwd.hpp>

#include "codegen/program/program.h"

namespace gcompile {

/// Which sizes it finds in the numbers of the inputs' elements, which it is told, and the arguments of an
/// example, for which `out` has "example_inputs".
void add_told_sizes(nlohmann::ordered_json& out, const Program& program);

}  // namespace gcompile
