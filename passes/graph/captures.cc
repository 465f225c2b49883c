// What the branches of an If take from outside: constants move into the branches, where they can be folded;
// values captured twice are captured once; values that neither branch reads are dropped.
//   If(c, x, 2){a, b: a * b} -> If(c, x){a: a * 2}

#include <algorithm>

#include "ir/graph/operator.h"
#include "passes/engine/passes.h"

namespace gcompile::passes {
namespace {

void drop_capture(ir::Graph& graph, ir::NodeId id, std::size_t capture) {
  std::vector<ir::ValueId> operands = graph.node(id).operands;
  operands.erase(operands.begin() + static_cast<std::ptrdiff_t>(capture + 1));
  graph.set_operands(id, std::move(operands));
  for (ir::Graph& branch : graph.node(id).subgraphs) branch.remove_input(capture);
}

/// Makes the capture unnecessary inside the branches; false when they need it.
bool replace_capture(ir::Graph& graph, ir::NodeId id, std::size_t capture) {
  ir::Node& node = graph.node(id);
  const ir::ValueId operand = node.operands[capture + 1];
  const auto first = std::find(node.operands.begin() + 1, node.operands.end(), operand);
  const auto earlier = static_cast<std::size_t>(first - node.operands.begin() - 1);
  const ir::Tensor* known = graph.constant(operand);
  for (ir::Graph& branch : node.subgraphs) {
    const ir::ValueId inside = branch.inputs()[capture];
    if (branch.value(inside).uses.empty()) continue;
    if (earlier < capture) {
      branch.replace_uses(inside, branch.inputs()[earlier]);
    } else if (known) {
      branch.replace_uses(inside, branch.add_constant(*known, graph.value(operand).name));
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace

bool simplify_captures(ir::Graph& graph, PassContext&) {
  bool changed = false;
  for (const ir::NodeId id : graph.nodes()) {
    if (graph.node(id).subgraphs.empty() || graph.node(id).form) continue;
    for (std::size_t capture = graph.node(id).operands.size() - 1; capture-- > 0;) {
      if (!replace_capture(graph, id, capture)) continue;
      drop_capture(graph, id, capture);
      changed = true;
    }
  }
  return changed;
}

}  // namespace gcompile::passes
