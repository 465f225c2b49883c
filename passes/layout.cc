#include "passes/passes.h"

namespace gcompile::passes {
bool assign_layout(ir::Graph&, PassContext&) { return false; }
}  // namespace gcompile::passes
