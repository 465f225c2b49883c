#pragma once

#include "codegen/program/program.h"
#include "nlohmann/json_fwd.hpp"

namespace gcompile {

/// Adds "steps" of the schedule and what they use ("uses_arena", ...). The tree of steps becomes a flat list:
/// a conditional is an entry with is_if, the steps of the first branch, one with is_else, those of the
/// second, one with is_end; "indent" is the white space before each.
void add_schedule(nlohmann::ordered_json& out, const Program& program, const Schedule& schedule);

}  // namespace gcompile
