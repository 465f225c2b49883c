// Constant folding with the reference evaluator: a node whose operands are all known, or whose results the
// import already knows, becomes constants.

#include <algorithm>

#include "ir/operator.h"
#include "passes/passes.h"

namespace gcompile::passes {
namespace {

constexpr std::int64_t kLargestResult = std::int64_t{256} << 20;  // bytes

bool all_known(const ir::Graph& graph, const ir::Node& node) {
  return std::all_of(node.operands.begin(), node.operands.end(),
                     [&](ir::ValueId id) { return !id.valid() || graph.constant(id); });
}

}  // namespace

bool fold_constants(ir::Graph& graph, PassContext&) {
  bool changed = false;
  for (const ir::NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    if (!node.op->deterministic || !node.subgraphs.empty()) continue;
    const bool results_known = std::all_of(node.results.begin(), node.results.end(), [&](ir::ValueId r) {
      return !r.valid() || graph.constant(r) || graph.use_count(r) == 0;
    });
    std::vector<std::optional<ir::Tensor>> values(node.results.size());
    if (results_known) {
      for (std::size_t i = 0; i < node.results.size(); ++i) {
        if (const ir::Tensor* known = graph.constant(node.results[i])) values[i] = *known;
      }
    } else if (all_known(graph, node)) {
      std::int64_t bytes = 0;
      for (const ir::ValueId result : node.results)
        bytes += result.valid() ? graph.value(result).type.bytes() : 0;
      if (bytes > kLargestResult) continue;
      std::vector<const ir::Tensor*> operands;
      for (const ir::ValueId operand : node.operands) operands.push_back(graph.constant(operand));
      const std::vector<ir::Tensor> results = ir::evaluate_node(graph, id, operands);
      for (std::size_t i = 0; i < node.results.size(); ++i) values[i] = results.at(i);
    } else {
      continue;
    }
    const std::vector<ir::ValueId> results = node.results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].valid() || !values[i] || graph.use_count(results[i]) == 0) continue;
      const ir::ValueId constant = graph.add_constant(*values[i], graph.value(results[i]).name);
      graph.replace_uses(results[i], constant);
    }
    graph.erase_node(id);
    changed = true;
  }
  graph.erase_unused_constants();
  return changed;
}

}  // namespace gcompile::passes
