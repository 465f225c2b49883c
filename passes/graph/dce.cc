// Dead code: nodes none of whose results are used, unused optional results, unused constants.

#include "ir/graph/checks.h"
#include "ir/graph/operator.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {

bool eliminate_dead_code(ir::Graph& graph, PassContext&) {
  bool changed = false;
  const std::vector<ir::NodeId> order = graph.topological_order();
  for (auto at = order.rbegin(); at != order.rend(); ++at) {
    bool used = false;
    for (const ir::ValueId result : graph.node(*at).results) {
      used |= result.valid() && graph.use_count(result) > 0;
    }
    if (used || ir::is_check(graph, *at)) continue;
    graph.erase_node(*at);
    changed = true;
  }
  graph.erase_unused_constants();
  return changed;
}

}  // namespace gcompile::passes
