#pragma once

#include "codegen/program/program.h"
#include "nlohmann/json_fwd.hpp"

namespace gcompile {

/// What README.md and report.html show, already as text: "report" with sizes, shares and numbers as people
/// read them. Choices of kernels are those that `out` has already.
void add_report(nlohmann::ordered_json& out, const Program& program, const Schedule& schedule);

}  // namespace gcompile
