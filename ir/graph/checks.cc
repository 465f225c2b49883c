#include "ir/graph/checks.h"

#include <algorithm>

namespace gcompile::ir {

bool is_check(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return node.subgraphs.size() == 2 && !node.subgraphs[1].trap.empty() && node.results.size() == 1 &&
         node.attributes.has("input");
}

std::vector<Demand> demands_of(const Graph& graph) {
  std::vector<Demand> demands;
  for (const NodeId id : graph.nodes()) {
    if (!is_check(graph, id)) continue;
    const Node& node = graph.node(id);
    const std::string& input = node.attributes.string_of("input");
    const bool is_known = std::any_of(demands.begin(), demands.end(),
                                      [&](const Demand& demand) { return demand.input == input; });
    if (!is_known) demands.push_back({input, node.attributes.tensor_of("example"), node.subgraphs[1].trap});
  }
  return demands;
}

}  // namespace gcompile::ir
