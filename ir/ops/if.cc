// If: runs one of two subgraphs. Operand 0 is the condition, the others are the values that the branches
// capture; both branches take all of them as inputs, in order.

#include <fmt/format.h>

#include <optional>

#include "ir/graph/inline.h"
#include "ir/ops/support.h"
#include "ir/sizes/sizes.h"

namespace gcompile::ir {
namespace {

const TensorType& output_type(const Graph& branch, int i) { return branch.value(branch.outputs()[i]).type; }

/// The branch that a known condition selects, or nullptr.
const Graph* selected_branch(const NodeView& node) {
  const Tensor* condition = node.constant(0);
  return condition ? &node.node().subgraphs[condition->int_at(0) != 0 ? 0 : 1] : nullptr;
}

void require_branches(const NodeView& node) {
  if (node.element(0) != ElementType::kBool || node.operand(0).count() != 1) {
    operator_error(fmt::format("the condition must be one bool, not {}", to_string(node.operand(0))));
  }
  if (node.node().subgraphs.size() != 2) operator_error("both branches must be given");
  for (const Graph& branch : node.node().subgraphs) {
    if (branch.trap.empty() && static_cast<int>(branch.outputs().size()) != node.result_count()) {
      operator_error(fmt::format("branch '{}' has {} outputs, the node {}", printable(branch.name),
                                 branch.outputs().size(), node.result_count()));
    }
    if (static_cast<int>(branch.inputs().size()) != node.operand_count() - 1) {
      operator_error(fmt::format("branch '{}' captures {} values, the node passes {}", printable(branch.name),
                                 branch.inputs().size(), node.operand_count() - 1));
    }
  }
}

/// The type of a result that is `a` in one branch and `b` in the other. Along an axis where the bounds tell
/// that one is never smaller, its size: the other branch then runs where the two are equal, and is a trap
/// elsewhere. Along others the two are assumed to be equal in all runs.
std::optional<TensorType> joint_type(const TensorType& a, const TensorType& b) {
  if (a.element != b.element || a.rank() != b.rank()) return std::nullopt;
  TensorType joint = a;
  for (std::size_t i = 0; i < a.shape.size(); ++i) {
    if (a.shape[i] == b.shape[i]) continue;
    if (a.shape[i].is_constant() && b.shape[i].is_constant()) return std::nullopt;
    if (always_less_equal(a.shape[i], b.shape[i])) {
      joint.shape[i] = b.shape[i];
    } else if (!always_less_equal(b.shape[i], a.shape[i]) && !assume_equal(a.shape[i], b.shape[i])) {
      return std::nullopt;
    }
  }
  return joint;
}

/// Always empty where the other never is, so no run has both.
bool is_nothing_beside(const TensorType& a, const TensorType& b) {
  if (a.count() != 0 || b.count() == 0) return false;
  bool differs = a.rank() != b.rank();
  for (std::size_t i = 0; !differs && i < a.shape.size(); ++i) {
    differs = always_less(a.shape[i], b.shape[i]) || always_less(b.shape[i], a.shape[i]);
  }
  return differs;
}

/// By an empty result exporters who merge decoders mean that a cache stays: there is none but in a state.
void refuse_nothing(const NodeView& node, int i, const TensorType& a, const TensorType& b) {
  const bool is_a = is_nothing_beside(a, b);
  if (!node.has_result(i) || (!is_a && !is_nothing_beside(b, a))) return;
  const std::string name = printable(node.graph().value(node.node().results[i]).name);
  operator_error(
      fmt::format("output '{}' is {} in one branch, which is nothing, and {} in the other", name,
                  to_string(is_a ? a : b), to_string(is_a ? b : a)),
      fmt::format("where that means that a cache stays as it is, --state INPUT={} keeps it from run to run; "
                  "--set NAME=VALUE binds the condition, so that one branch remains",
                  name));
}

TensorType result_type(const NodeView& node, int i, const Graph* selected) {
  const Graph& then_branch = node.node().subgraphs[0];
  const Graph& else_branch = node.node().subgraphs[1];
  if (!else_branch.trap.empty()) return output_type(then_branch, i);
  if (!then_branch.trap.empty()) return output_type(else_branch, i);
  const TensorType& a = output_type(then_branch, i);
  const TensorType& b = output_type(else_branch, i);
  if (a == b) return a;
  if (!selected) refuse_nothing(node, i, a, b);
  if (const std::optional<TensorType> joint = joint_type(a, b)) return *joint;
  if (selected) return output_type(*selected, i);
  operator_error(
      fmt::format("output {} is {} in one branch and {} in the other", i, to_string(a), to_string(b)),
      "shapes are fixed when the model is compiled; when the condition comes from an input that never "
      "changes, bind it with --set NAME=VALUE so that one branch remains");
}

void infer(InferContext& context) {
  require_branches(context);
  const Graph* selected = selected_branch(context);
  if (selected && !selected->trap.empty()) {
    operator_error(
        fmt::format("the condition is known and selects a branch that cannot run: {}", selected->trap));
  }
  const Graph& then_branch = context.node().subgraphs[0];
  const Graph& else_branch = context.node().subgraphs[1];
  if (!then_branch.trap.empty() && !else_branch.trap.empty()) {
    operator_error(fmt::format("neither branch can run: {}; {}", then_branch.trap, else_branch.trap));
  }
  for (int i = 0; i < context.result_count(); ++i) context.set_result(i, result_type(context, i, selected));
}

/// A known condition -> the nodes of its branch.
bool decompose(RewriteContext& context) {
  const Graph* branch = selected_branch(context);
  if (!branch) return false;
  for (int i = 0; i < context.result_count(); ++i) {
    if (output_type(*branch, i) != context.result(i)) return false;  // its sizes are to be checked first
  }
  const std::vector<ValueId> arguments(context.node().operands.begin() + 1, context.node().operands.end());
  const std::vector<ValueId> values = inline_graph(context.mutable_graph(), *branch, arguments);
  for (int i = 0; i < context.result_count(); ++i) {
    context.replace_result(i, values[i]);
  }
  return true;
}

Form lower(const LowerContext&) { return IfForm{}; }

}  // namespace

const Operator& operator_If() {
  static const Operator op = {
      .name = "If",
      .versions = {1, 11, 13, 16, 19, 21, 23, 24, 25},
      .operands = {1, -1},
      .results = {1, -1},
      .summary = "one of two subgraphs, chosen by a condition",
      .infer = infer,
      .decompose = decompose,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
