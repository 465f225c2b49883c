// Replaces composite operators by simpler ones, as their records say, until none is left.

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {

bool decompose(ir::Graph& graph, PassContext&) {
  bool changed = false;
  for (bool again = true; again;) {
    again = false;
    for (const ir::NodeId id : graph.topological_order()) {
      poll_interrupt();
      if (!graph.alive(id) || !graph.node(id).op->decompose) continue;
      ir::RewriteContext context(graph, id, 0);
      try {
        if (!graph.node(id).op->decompose(context)) continue;
      } catch (const OperatorError& error) {
        throw CompileError(ExitCode::kModel, {ir::diagnose(graph, id, "E0303", error)});
      }
      graph.erase_node(id);
      changed = again = true;
    }
  }
  return changed;
}

}  // namespace gcompile::passes
