#include "passes/passes.h"

namespace gcompile::passes {
bool fuse(ir::Graph&, PassContext&) { return false; }
}  // namespace gcompile::passes
