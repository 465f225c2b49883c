#include "ir/graph/inline.h"

#include <algorithm>
#include <map>

#include "base/diagnostics.h"
#include "ir/graph/operator.h"

namespace gcompile::ir {

std::vector<ValueId> inline_graph(Graph& into, const Graph& body, std::span<const ValueId> arguments) {
  GC_CHECK(body.trap.empty() && arguments.size() == body.inputs().size());
  std::map<ValueId, ValueId> copies;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    GC_CHECK(into.value(arguments[i]).type == body.value(body.inputs()[i]).type);
    copies[body.inputs()[i]] = arguments[i];
  }
  for (const ValueId id : body.values()) {
    const Value& value = body.value(id);
    if (value.producer.valid() || copies.contains(id)) continue;
    GC_CHECK(value.constant);
    copies[id] = into.add_constant(*value.constant, value.name);
    into.value(copies[id]).order = value.order;
  }
  for (const NodeId id : body.topological_order()) {
    const Node& node = body.node(id);
    std::vector<ValueId> operands;
    for (const ValueId operand : node.operands) {
      operands.push_back(operand.valid() ? copies.at(operand) : ValueId{});
    }
    const NodeId added = into.add_node(*node.op, std::move(operands), node.attributes,
                                       static_cast<int>(node.results.size()), node.name);
    Node& copy = into.node(added);
    copy.subgraphs = node.subgraphs;
    copy.form = node.form;
    copy.origins = node.origins;
    const bool has_all =
        std::all_of(node.results.begin(), node.results.end(), [](ValueId result) { return result.valid(); });
    // A result that the model does not want keeps its slot, of the type that it would have; nobody uses it.
    if (!has_all) infer_node(into, added);
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      if (!node.results[i].valid()) continue;
      const Value& from = body.value(node.results[i]);
      Value& to = into.value(copy.results[i]);
      to.name = from.name;
      to.type = from.type;
      to.constant = from.constant;
      to.order = from.order;
      copies[node.results[i]] = copy.results[i];
    }
  }
  std::vector<ValueId> outputs;
  for (const ValueId id : body.outputs()) outputs.push_back(copies.at(id));
  return outputs;
}

}  // namespace gcompile::ir
