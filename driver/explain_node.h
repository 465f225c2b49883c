#pragma once

#include <string>

#include "driver/compile.h"

namespace gcompile {

/// --explain: for every step that computes the node of the model, the kernel families of its kind. Throws
/// CompileError (kUsage) where no step does.
void explain_node(const Compilation& compilation, const std::string& node, Terminal& terminal);

}  // namespace gcompile
