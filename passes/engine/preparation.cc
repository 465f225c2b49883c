#include "passes/engine/preparation.h"

#include <algorithm>
#include <iterator>

namespace gcompile::passes {

Prepared prepare(ir::Graph& graph, const PreparationOptions& options) {
  std::vector<Pass> taking_apart;
  std::copy_if(pipeline().begin(), pipeline().end(), std::back_inserter(taking_apart),
               [](const Pass& pass) { return pass.takes_apart; });
  Prepared prepared;
  for (const Preparation& each : preparation()) {
    if (!each.is_wanted(graph, options)) continue;
    if (each.takes_apart) run_passes(graph, taking_apart, {});
    each.run(graph, options, prepared);
  }
  return prepared;
}

}  // namespace gcompile::passes
