// Lowers every node to its form and writes single-element constants into the expressions.

#include "ir/interrupt.h"
#include "ir/operator.h"
#include "passes/form_edit.h"
#include "passes/passes.h"

namespace gcompile::passes {

bool attach_forms(ir::Graph& graph, PassContext&) {
  ir::Diagnostics diagnostics;
  for (const ir::NodeId id : graph.nodes()) {
    ir::poll_interrupt();
    if (graph.node(id).form) continue;
    try {
      set_form(graph, id, ir::form_of(graph, id));
      inline_scalars(graph, id);
    } catch (const ir::OperatorError& error) {
      diagnostics.add(ir::diagnose(graph, id, "E0301", error));
    }
  }
  diagnostics.throw_if_errors();
  return true;
}

}  // namespace gcompile::passes
