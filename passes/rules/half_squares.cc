#include "passes/rules/half_squares.h"

#include <algorithm>
#include <string_view>

#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::NodeId;
using ir::ValueId;

class Squares {
 public:
  explicit Squares(const ir::Graph& graph) : graph_(graph) {}

  std::set<NodeId> run() {
    for (const NodeId id : graph_.topological_order()) {
      if (is_summed_square(id)) {
        add_deviation(graph_.node(id).operands[0]);
        nodes_.insert(id);
      } else if (belongs(id)) {
        nodes_.insert(id);
      }
    }
    return std::move(nodes_);
  }

 private:
  const ir::Node& node(NodeId id) const { return graph_.node(id); }
  bool is(NodeId id, std::string_view name) const { return is_operator(node(id), name); }
  bool is_chosen(ValueId value) const { return nodes_.count(graph_.value(value).producer) != 0; }
  bool is_half(ValueId value) const {
    const ir::ElementType type = graph_.value(value).type.element;
    return type == ir::ElementType::kFloat16 || type == ir::ElementType::kBFloat16;
  }
  bool is_sum(NodeId id) const { return is(id, "ReduceMean") || is(id, "ReduceSum"); }

  bool is_square(NodeId id) const {
    const std::vector<ValueId>& operands = node(id).operands;
    if (is(id, "Mul")) return operands[0] == operands[1];
    const ir::Tensor* exponent = is(id, "Pow") ? graph_.constant(operands[1]) : nullptr;
    return exponent && all_equal(*exponent, 2);
  }

  /// A square that some sum reads, or a sum that squares.
  bool is_summed_square(NodeId id) const {
    if (node(id).operands.empty() || !node(id).operands[0].valid() || !is_half(node(id).operands[0]))
      return false;
    if (is(id, "ReduceSumSquare") || is(id, "ReduceL2")) return true;
    if (!is_square(id)) return false;
    const std::vector<ir::Use>& uses = graph_.value(node(id).results[0]).uses;
    return std::any_of(uses.begin(), uses.end(),
                       [&](const ir::Use& use) { return use.node.valid() && is_sum(use.node); });
  }

  /// What is squared, and the mean that was taken off it.
  void add_deviation(ValueId value) {
    squared_.insert(value);
    const NodeId difference = graph_.value(value).producer;
    if (!difference.valid() || !is(difference, "Sub")) return;
    const NodeId mean = graph_.value(node(difference).operands[1]).producer;
    if (!mean.valid() || !is_sum(mean) || node(mean).operands[0] != node(difference).operands[0]) return;
    nodes_.insert(mean);
    nodes_.insert(difference);
  }

  /// The sum of squares on its way to the root and to what it divides, and gains and shifts of the quotient.
  bool belongs(NodeId id) const {
    const bool is_one = is_sum(id) || is(id, "Sqrt") || is(id, "Reciprocal") || is(id, "Reshape") ||
                        is(id, "Unsqueeze") || is(id, "Squeeze") || is(id, "Expand") || is(id, "Pow");
    const bool is_pair =
        is(id, "Add") || is(id, "Sub") || is(id, "Mul") || is(id, "Div") || is(id, "Max") || is(id, "Clip");
    const std::vector<ValueId>& operands = node(id).operands;
    if (is_one) return is_chosen(operands[0]);
    if (!is_pair) return false;
    const auto fits = [&](ValueId operand) {
      return !operand.valid() || is_chosen(operand) || graph_.constant(operand) ||
             squared_.count(operand) != 0;
    };
    const auto chosen = [&](ValueId operand) { return operand.valid() && is_chosen(operand); };
    return std::any_of(operands.begin(), operands.end(), chosen) &&
           std::all_of(operands.begin(), operands.end(), fits);
  }

  const ir::Graph& graph_;
  std::set<NodeId> nodes_;
  std::set<ValueId> squared_;
};

}  // namespace

std::set<ir::NodeId> nodes_of_squares(const ir::Graph& graph) { return Squares(graph).run(); }

}  // namespace gcompile::passes
