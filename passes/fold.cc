// Constant folding with the reference evaluator: a node whose operands are all known, or whose results the
// import already knows, becomes constants. An If whose condition is known is inlined by decomposition first.

#include <fmt/format.h>

#include <algorithm>

#include "ir/operator.h"
#include "ir/ops/rewrite.h"
#include "passes/passes.h"

namespace gcompile::passes {
namespace {

/// Bytes by which one run of folding may let the constants of a graph grow: an Expand or Tile of a constant
/// is cheaper to compute than to ship.
constexpr std::int64_t kGrowthLimit = std::int64_t{256} << 20;

bool all_known(const ir::Graph& graph, const ir::Node& node) {
  return std::all_of(node.operands.begin(), node.operands.end(),
                     [&](ir::ValueId id) { return !id.valid() || graph.constant(id); });
}

/// Whether nobody asks, or the answer is known already.
bool results_known(const ir::Graph& graph, const ir::Node& node) {
  return std::all_of(node.results.begin(), node.results.end(), [&](ir::ValueId id) {
    return !id.valid() || graph.constant(id) || graph.use_count(id) == 0;
  });
}

class Folder {
 public:
  Folder(ir::Graph& graph, PassContext& context) : graph_(graph), context_(context) {}

  bool fold(ir::NodeId id) {
    const ir::Node& node = graph_.node(id);
    if (!node.op->deterministic) return false;
    std::vector<std::optional<ir::Tensor>> values(node.results.size());
    if (results_known(graph_, node)) {
      for (std::size_t i = 0; i < node.results.size(); ++i) {
        if (const ir::Tensor* known = graph_.constant(node.results[i])) values[i] = *known;
      }
    } else {
      if (!node.subgraphs.empty() || !all_known(graph_, node) || !affordable(node)) return false;
      std::vector<const ir::Tensor*> operands;
      for (const ir::ValueId operand : node.operands) operands.push_back(graph_.constant(operand));
      std::vector<ir::Tensor> results = ir::evaluate_node(graph_, id, operands);
      for (std::size_t i = 0; i < node.results.size(); ++i) values[i] = std::move(results.at(i));
    }
    replace(id, values);
    return true;
  }

 private:
  /// Bytes of the results less those of operands that nobody else reads; charged when it fits.
  bool affordable(const ir::Node& node) {
    std::int64_t growth = 0;
    for (const ir::ValueId result : node.results) {
      if (result.valid()) growth += graph_.value(result).type.bytes();
    }
    for (const ir::ValueId operand : node.operands) {
      if (operand.valid() && graph_.use_count(operand) == 1) growth -= graph_.value(operand).type.bytes();
    }
    if (growth > 0 && grown_ + growth > kGrowthLimit) {
      context_.refused(node.name, fmt::format("its value of {} bytes would let the constants grow too far",
                                              graph_.value(node.results[0]).type.bytes()));
      return false;
    }
    grown_ += growth;
    return true;
  }

  void replace(ir::NodeId id, const std::vector<std::optional<ir::Tensor>>& values) {
    const std::vector<ir::ValueId> results = graph_.node(id).results;
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!results[i].valid() || !values[i] || graph_.use_count(results[i]) == 0) continue;
      graph_.replace_uses(results[i],
                          graph_.add_constant(*values[i], ir::name_as_constant(graph_, results[i])));
    }
    graph_.erase_node(id);
  }

  ir::Graph& graph_;
  PassContext& context_;
  std::int64_t grown_ = 0;
};

}  // namespace

bool fold_constants(ir::Graph& graph, PassContext& context) {
  bool changed = false;
  Folder folder(graph, context);
  for (const ir::NodeId id : graph.topological_order()) changed |= folder.fold(id);
  graph.erase_unused_constants();
  return changed;
}

}  // namespace gcompile::passes
