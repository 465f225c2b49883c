#pragma once
// Families that print their work as the loops of a Reduce (ir/graph/plain_loops.h).

#include "codegen/choice/family.h"

namespace gcompile {

KernelFamily plain_loops_family(std::string_view name, ir::Kind kind);

}  // namespace gcompile
