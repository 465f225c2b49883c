#pragma once

#include <string>

#include "driver/commands/compile.h"

namespace gcompile {

/// --explain: for every step that computes the node of the model, the kernel families of its kind. Throws
/// CompileError (kUsage) where no step does.
void explain_node(const Compilation& compilation, const std::string& node, Terminal& terminal);
/// `option` names a node of the model: some step has to compute it. Throws likewise.
void expect_step(const Compilation& compilation, const char* option, const std::string& node);
/// The same, also of a node that needs no step: a Concat whose parts are written where they belong.
void expect_node(const Compilation& compilation, const char* option, const std::string& node);

}  // namespace gcompile
