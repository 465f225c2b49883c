// If with branches that compute the same -> what they compute:
//   If(c){f(a)}{f(a)} -> f(a)
// Branches are compared node by node in topological order, so that names do not matter.

#include <algorithm>
#include <map>

#include "base/interrupt.h"
#include "ir/graph/inline.h"
#include "ir/graph/operator.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

using ir::Graph;
using ir::Node;
using ir::NodeId;
using ir::Value;
using ir::ValueId;

/// Two graphs side by side.
class Comparison {
 public:
  Comparison(const Graph& a, const Graph& b) : a_(a), b_(b) {}

  bool are_alike() {
    if (!a_.trap.empty() || !b_.trap.empty() || a_.node_count() != b_.node_count()) return false;
    for (std::size_t i = 0; i < a_.inputs().size(); ++i) partner_[a_.inputs()[i]] = b_.inputs()[i];
    const std::vector<NodeId> first = a_.topological_order(), second = b_.topological_order();
    for (std::size_t i = 0; i < first.size(); ++i) {
      poll_interrupt();
      if (!pair(a_.node(first[i]), b_.node(second[i]))) return false;
    }
    return are_partners(a_.outputs(), b_.outputs());
  }

 private:
  bool pair(const Node& a, const Node& b) {
    const bool is_plain = a.subgraphs.empty() && b.subgraphs.empty() && !a.form && !b.form;
    if (!is_plain || a.op != b.op || a.results.size() != b.results.size() ||
        !a.attributes.identical(b.attributes) || !are_partners(a.operands, b.operands)) {
      return false;
    }
    for (std::size_t i = 0; i < a.results.size(); ++i) {
      if (a.results[i].valid() != b.results[i].valid()) return false;
      if (a.results[i].valid()) partner_[a.results[i]] = b.results[i];
    }
    return true;
  }

  bool are_partners(const std::vector<ValueId>& a, const std::vector<ValueId>& b) const {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [&](ValueId x, ValueId y) { return are_partners(x, y); });
  }

  bool are_partners(ValueId a, ValueId b) const {
    if (!a.valid() || !b.valid()) return a.valid() == b.valid();
    const Value &x = a_.value(a), &y = b_.value(b);
    if (x.type != y.type) return false;
    const auto known = partner_.find(a);
    if (known != partner_.end()) return known->second == b;
    const bool are_constant = x.constant && y.constant && !x.sizes && !y.sizes && !y.producer.valid();
    return are_constant && x.constant->identical(*y.constant);
  }

  const Graph &a_, &b_;
  std::map<ValueId, ValueId> partner_;
};

bool has_equal_branches(const Graph& graph, const Node& node) {
  if (node.subgraphs.size() != 2 || node.form || node.op != &ir::operator_named("If")) return false;
  const Graph& branch = node.subgraphs[0];
  for (const ValueId id : branch.values()) {
    // Sizes that only a run knows are not copied.
    if (branch.value(id).sizes || branch.value(id).fractions) return false;
  }
  if (!Comparison(branch, node.subgraphs[1]).are_alike()) return false;
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    if (!node.results[i].valid()) continue;
    if (branch.value(branch.outputs()[i]).type != graph.value(node.results[i]).type) return false;
  }
  return true;
}

}  // namespace

bool merge_equal_branches(Graph& graph, PassContext& context) {
  bool changed = false;
  for (const NodeId id : graph.nodes()) {
    const Node& node = graph.node(id);
    if (!has_equal_branches(graph, node)) continue;
    context.did(node.name, "both branches compute the same");
    const std::vector<ValueId> arguments(node.operands.begin() + 1, node.operands.end());
    const std::vector<ValueId> results = node.results;
    const std::vector<ValueId> values = ir::inline_graph(graph, node.subgraphs[0], arguments);
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].valid()) graph.replace_uses(results[i], values[i]);
    }
    graph.erase_node(id);
    changed = true;
  }
  return changed;
}

}  // namespace gcompile::passes
