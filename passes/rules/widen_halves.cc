// Models of 16-bit floats, computed in float32 between what others read (DESIGN law 15).

#include <algorithm>
#include <map>
#include <vector>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "ir/ops/support.h"
#include "passes/engine/passes.h"
#include "passes/rules/half_squares.h"
#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

using ir::ElementType;
using ir::NodeId;
using ir::ValueId;

bool is_half(ElementType type) { return type == ElementType::kFloat16 || type == ElementType::kBFloat16; }

class Widener {
 public:
  Widener(ir::Graph& graph, const std::set<NodeId>* chosen) : graph_(graph), chosen_(chosen) {}

  std::int64_t run() {
    for (const NodeId id : graph_.topological_order()) {
      poll_interrupt();
      if (is_widened(id)) {
        widen(id);
      } else {
        narrow_operands(id);
      }
    }
    if (!wide_.empty()) graph_.erase_unused_constants();
    return static_cast<std::int64_t>(halves_.size());
  }

 private:
  bool is_wide(ValueId id) const { return halves_.count(id) != 0; }
  bool is_half_value(ValueId id) const { return id.valid() && is_half(graph_.value(id).type.element); }

  /// What is exact on halves, as a movement is, has nothing to round: it is widened where all that it reads
  /// are, so that a state stays in 16 bits when something is written to it.
  bool is_widened(NodeId id) const {
    const ir::Node& node = graph_.node(id);
    if (chosen_ && chosen_->count(id) == 0) return false;
    if (!node.subgraphs.empty() || !node.op->deterministic || node.op->traits.reads_types_only) return false;
    const bool gives = std::any_of(node.results.begin(), node.results.end(),
                                   [&](ValueId result) { return is_half_value(result); });
    if (!gives) return false;
    if (node.op->accuracy != ir::Accuracy::kExact) return true;
    const auto wide = [&](ValueId operand) { return operand.valid() && is_wide(operand); };
    const auto fits = [&](ValueId operand) { return !is_half_value(operand) || graph_.constant(operand); };
    return std::any_of(node.operands.begin(), node.operands.end(), wide) &&
           std::all_of(node.operands.begin(), node.operands.end(), fits);
  }

  /// Lets the node compute in float32, if it can.
  void widen(NodeId id) {
    const std::vector<ValueId> before = graph_.node(id).operands;
    const std::vector<ValueId> results = graph_.node(id).results;
    std::vector<ElementType> types;
    for (const ValueId result : results)
      types.push_back(result.valid() ? graph_.value(result).type.element : ElementType::kFloat32);
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (is_half_value(before[i])) graph_.set_operand(id, static_cast<int>(i), wide(id, before[i]));
    }
    try {
      ir::infer_node(graph_, id);
    } catch (const OperatorError&) {
      graph_.set_operands(id, before);
      narrow_operands(id);
      ir::infer_node(graph_, id);
      return;
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].valid()) widen_known(graph_.value(results[i]));
      if (!is_half(types[i]) || graph_.value(results[i]).type.element == types[i]) continue;
      keep(id, results[i], types[i]);
    }
  }

  /// What is known of a value has the value's type.
  static void widen_known(ir::Value& value) {
    if (!value.constant || !is_half(value.constant->element()) || is_half(value.type.element)) return;
    const ir::Tensor half = *value.constant;
    value.constant = computed(value.type, [&](std::int64_t i) { return half.real_at(i); });
  }

  /// The half as float32, converted once.
  ValueId wide(NodeId reader, ValueId half) {
    const auto [at, is_new] = wide_.emplace(half, ValueId{});
    if (!is_new) return at->second;
    if (const ir::Tensor* constant = graph_.constant(half)) {
      const ir::TensorType type{ElementType::kFloat32, constant->type().shape};
      at->second = graph_.add_constant(computed(type, [&](std::int64_t i) { return constant->real_at(i); }),
                                       graph_.value(half).name);
    } else {
      ir::RewriteContext context(graph_, reader, 0);
      at->second = ir::emit_cast(context, half, ElementType::kFloat32);
    }
    return at->second;
  }

  /// The half that a value in float32 is rounded to.
  ValueId narrowed(NodeId reader, ValueId value, ElementType half) {
    ir::RewriteContext context(graph_, reader, 0);
    return ir::emit_cast(context, value, half);
  }

  /// A result that became float32: its readers read that, unless it must be rounded.
  void keep(NodeId id, ValueId value, ElementType half) {
    if (!graph_.is_output(value) && !feeds_integer_decision(graph_, value)) {
      halves_.emplace(value, half);
      return;
    }
    const ValueId rounded = narrowed(id, value, half);
    graph_.value(rounded).name = graph_.value(value).name;
    graph_.replace_uses(value, rounded);
    graph_.set_operand(graph_.value(rounded).producer, 0, value);
  }

  /// A node that is not widened reads halves, but where it reads the type alone, or converts itself.
  void narrow_operands(NodeId id) {
    const ir::Node& node = graph_.node(id);
    if (node.op->traits.reads_types_only || is_conversion(node)) return;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const auto half = halves_.find(graph_.node(id).operands[i]);
      if (half == halves_.end()) continue;
      graph_.set_operand(id, static_cast<int>(i), narrowed(id, half->first, half->second));
    }
  }

  /// A Cast to anything else.
  static bool is_conversion(const ir::Node& node) {
    return node.op->traits.keeps_elements && node.attributes.has("to");
  }

  ir::Graph& graph_;
  const std::set<NodeId>* chosen_;
  std::map<ValueId, ValueId> wide_;        // of halves
  std::map<ValueId, ElementType> halves_;  // what values in float32 were
};

}  // namespace

bool has_halves(const ir::Graph& graph) {
  const std::vector<ValueId> values = graph.values();
  const std::vector<NodeId> nodes = graph.nodes();
  return std::any_of(values.begin(), values.end(),
                     [&](ValueId id) { return is_half(graph.value(id).type.element); }) ||
         std::any_of(nodes.begin(), nodes.end(), [&](NodeId id) {
           const std::vector<ir::Graph>& branches = graph.node(id).subgraphs;
           return std::any_of(branches.begin(), branches.end(), has_halves);
         });
}

namespace {

std::int64_t widen_all(ir::Graph& graph, Widened widened) {
  std::int64_t count = 0;
  for (const NodeId id : graph.topological_order()) {
    for (ir::Graph& branch : graph.node(id).subgraphs) count += widen_all(branch, widened);
  }
  if (widened == Widened::kAll) return count + Widener(graph, nullptr).run();
  const std::set<NodeId> squares = nodes_of_squares(graph);
  return squares.empty() ? count : count + Widener(graph, &squares).run();
}

}  // namespace

void widen_halves(ir::Graph& graph, const PreparationOptions& options, Prepared& prepared) {
  prepared.widened_values += widen_all(graph, options.widened);
}

}  // namespace gcompile::passes
