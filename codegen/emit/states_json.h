#pragma once
// What templates see of the state: its tensors, and the sizes that it remembers.

#include "codegen/program/program.h"
#include "nlohmann/json.hpp"

namespace gcompile {

void add_states(nlohmann::ordered_json& out, const Program& program);

}  // namespace gcompile
