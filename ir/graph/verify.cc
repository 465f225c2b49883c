#include "ir/graph/verify.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostics.h"
#include "ir/graph/operator.h"

namespace gcompile::ir {
namespace {

std::string node_text(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return fmt::format("node {} '{}' ({})", id.index, printable(node.name), node.op ? node.op->name : "?");
}

std::string value_text(const Graph& graph, ValueId id) {
  return fmt::format("value %{} '{}'", id.index, printable(graph.value(id).name));
}

class GraphVerifier {
 public:
  GraphVerifier(const Graph& graph, std::string prefix, std::vector<Violation>& found)
      : graph_(graph), prefix_(std::move(prefix)), found_(found) {}

  void run() {
    const std::size_t before = found_.size();
    for (const ValueId id : graph_.values()) check_value(id);
    for (const NodeId id : graph_.nodes()) check_node(id);
    check_boundary();
    // What follows reads through operands and results, which must be in order.
    if (found_.size() != before) return;
    try {
      graph_.topological_order();
    } catch (const CompileError& error) {
      add("graph", error.what());
      return;
    }
    check_types();
    for (const NodeId id : graph_.nodes()) check_form(id);
  }

 private:
  void add(const std::string& where, std::string message) {
    found_.push_back({prefix_ + where, std::move(message)});
  }

  void check_value(ValueId id) {
    const Value& value = graph_.value(id);
    const std::string where = value_text(graph_, id);
    if (value.producer.valid()) {
      if (!graph_.alive(value.producer)) {
        add(where, "its producer is gone");
      } else {
        const std::vector<ValueId>& results = graph_.node(value.producer).results;
        const auto at = static_cast<std::size_t>(value.result_index);
        if (at >= results.size() || results[at] != id) add(where, "its producer does not list it");
      }
    } else if (!value.constant && !value.sizes && !graph_.is_input(id)) {
      add(where, "it has no producer, is no input and no constant");
    }
    if (value.constant && value.constant->type() != value.type) {
      add(where, fmt::format("its constant is {}, the value {}", to_string(value.constant->type()),
                             to_string(value.type)));
    }
    for (const Dim dim : value.type.shape) {
      if (always_less(dim, 0))
        add(where, fmt::format("its shape {} has a negative dim", to_string(value.type.shape)));
    }
    check_order(value, where);
    check_uses(id, value, where);
  }

  void check_order(const Value& value, const std::string& where) {
    if (value.order.empty()) return;
    std::vector<int> sorted = value.order;
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      if (sorted.size() == value.type.shape.size() && sorted[i] == static_cast<int>(i)) continue;
      add(where, "its order is not a permutation of its axes");
      return;
    }
  }

  void check_uses(ValueId id, const Value& value, const std::string& where) {
    for (std::size_t i = 0; i < value.uses.size(); ++i) {
      const Use& use = value.uses[i];
      if (i > 0 && !(value.uses[i - 1] < use)) add(where, "its uses are not sorted and distinct");
      if (use.node.valid() && !graph_.alive(use.node)) {
        add(where, "it is used by a node that is gone");
        continue;
      }
      const std::vector<ValueId>& users =
          use.node.valid() ? graph_.node(use.node).operands : graph_.outputs();
      const auto slot = static_cast<std::size_t>(use.slot);
      if (slot >= users.size() || users[slot] != id) add(where, "a use of it is not mutual");
    }
  }

  bool has_use(ValueId id, const Use& use) const {
    const std::vector<Use>& uses = graph_.value(id).uses;  // sorted, as check_uses() says otherwise
    return std::binary_search(uses.begin(), uses.end(), use);
  }

  void check_node(NodeId id) {
    const Node& node = graph_.node(id);
    const std::string where = node_text(graph_, id);
    if (!node.op) {
      add(where, "it has no operator");
      return;
    }
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const ValueId operand = node.operands[i];
      if (!operand.valid()) continue;
      if (!graph_.alive(operand)) {
        add(where, fmt::format("operand {} is gone", i));
      } else if (!has_use(operand, Use{id, static_cast<int>(i)})) {
        add(where, fmt::format("operand {} does not know this use", i));
      }
    }
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      const ValueId result = node.results[i];
      if (!result.valid()) continue;
      if (!graph_.alive(result)) {
        add(where, fmt::format("result {} is gone", i));
      } else if (graph_.value(result).producer != id ||
                 graph_.value(result).result_index != static_cast<int>(i)) {
        add(where, fmt::format("result {} names another producer", i));
      }
    }
  }

  void check_boundary() {
    for (std::size_t i = 0; i < graph_.inputs().size(); ++i) {
      const ValueId id = graph_.inputs()[i];
      if (!graph_.alive(id)) {
        add(fmt::format("input {}", i), "it is gone");
      } else if (graph_.value(id).producer.valid()) {
        add(fmt::format("input {}", i), "it has a producer");
      }
    }
    if (graph_.output_names().size() != graph_.outputs().size()) add("graph", "outputs without names");
    for (std::size_t i = 0; i < graph_.outputs().size(); ++i) {
      const ValueId id = graph_.outputs()[i];
      if (!graph_.alive(id)) {
        add(fmt::format("output {}", i), "it is gone");
      } else if (!has_use(id, Use{NodeId{}, static_cast<int>(i)})) {
        add(fmt::format("output {}", i), "its value does not know this use");
      }
    }
  }

  /// Attributes and result types of nodes that speak for themselves, found anew in a copy of the graph.
  void check_types() {
    const std::vector<NodeId> nodes = graph_.nodes();
    if (std::all_of(nodes.begin(), nodes.end(), [&](NodeId id) { return graph_.node(id).form != nullptr; }))
      return;
    Graph copy = graph_;
    for (const NodeId id : nodes) {
      Node& node = copy.node(id);
      if (node.form) continue;
      const std::string where = node_text(graph_, id);
      for (const ValueId result : node.results) {
        if (result.valid()) copy.value(result).type = {ElementType::kFloat32, {-1}};
      }
      try {
        Attributes attributes = node.attributes;
        complete_attributes(*node.op, attributes);
        if (!attributes.identical(node.attributes)) add(where, "an attribute with a default is missing");
        infer_node(copy, id);
      } catch (const OperatorError& error) {
        add(where, fmt::format("its types cannot be inferred: {}", error.message));
      } catch (const CompileError& error) {
        add(where, fmt::format("its types cannot be inferred: {}", error.what()));
      }
      for (std::size_t i = 0; i < node.results.size(); ++i) {
        const ValueId result = node.results[i];
        if (!result.valid()) continue;
        const TensorType inferred = copy.value(result).type;
        const TensorType& stored = graph_.value(result).type;
        if (inferred != stored && inferred.shape != Shape{-1}) {
          add(where, fmt::format("result {} is stored as {}, but inferred as {}", i, to_string(stored),
                                 to_string(inferred)));
        }
        copy.value(result).type = stored;
      }
    }
  }

  void check_form(NodeId id) {
    const Node& node = graph_.node(id);
    if (node.form) {
      for (Violation& violation : verify_form(graph_, id, *node.form)) {
        add(violation.where, std::move(violation.message));
      }
    }
    for (std::size_t i = 0; i < node.subgraphs.size(); ++i) {
      const Graph& subgraph = node.subgraphs[i];
      const std::string where = fmt::format("{}{}, branch {}: ", prefix_, node_text(graph_, id), i);
      if (subgraph.inputs().size() + 1 != node.operands.size()) {
        found_.push_back({where + "graph", "its inputs are not the captures of the node"});
      } else {
        for (std::size_t k = 0; k < subgraph.inputs().size(); ++k) {
          const ValueId captured = node.operands[k + 1];
          if (!captured.valid() || graph_.value(captured).type != subgraph.value(subgraph.inputs()[k]).type) {
            found_.push_back({where + "graph", fmt::format("input {} has not the type of the capture", k)});
          }
        }
      }
      GraphVerifier(subgraph, where, found_).run();
    }
  }

  const Graph& graph_;
  std::string prefix_;
  std::vector<Violation>& found_;
};

}  // namespace

std::string to_string(const Violation& violation) { return violation.where + ": " + violation.message; }

std::vector<Violation> verify(const Graph& graph) {
  std::vector<Violation> found;
  GraphVerifier(graph, "", found).run();
  return found;
}

}  // namespace gcompile::ir
