#pragma once
// Sizes as C++ expressions over the fields of NAME_sizes.

#include <string>

#include "codegen/program/program.h"

namespace gcompile {

/// "64 * sizes->batch * sizes->seq". Symbol i is program.sizes[i]; `sizes`: what their fields are of. Of
/// sizes that the bounds in force do not keep above zero inside divisions, an OperatorError.
std::string size_text(const Program& program, ir::Dim size, const std::string& sizes = "sizes->");

}  // namespace gcompile
