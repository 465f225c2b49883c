// Reference evaluation of nodes and graphs, also with the rounding that a program of floats has.

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "base/interrupt.h"
#include "ir/forms/form.h"
#include "ir/forms/rounding.h"
#include "ir/graph/operator.h"
#include "ir/graph/packed_ports.h"

namespace gcompile::ir {
namespace {

std::vector<Tensor> evaluate_if(const Graph& graph, NodeId id, const std::vector<const Tensor*>& operands) {
  const Node& node = graph.node(id);
  const Graph& branch = node.subgraphs[operands[0]->int_at(0) ? 0 : 1];
  if (!branch.trap.empty()) throw CompileError(ExitCode::kModel, branch.trap);
  std::vector<Tensor> inputs;
  for (std::size_t i = 1; i < operands.size(); ++i) inputs.push_back(*operands[i]);
  return evaluate_graph(branch, inputs);
}

/// The node alone in a graph, decomposed there; nullopt when it does not decompose. Known operands stay
/// known; results that nobody reads beside others stay so, and empty.
std::optional<std::vector<Tensor>> evaluate_decomposed(const Graph& graph, NodeId id,
                                                       const std::vector<const Tensor*>& operands) {
  const Node& node = graph.node(id);
  Graph alone;
  std::vector<ValueId> ids;
  std::vector<Tensor> inputs;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    ids.emplace_back();
    if (!node.operands[i].valid()) continue;
    if (const Tensor* known = graph.constant(node.operands[i])) {
      ids.back() = alone.add_constant(*known);
    } else {
      ids.back() = alone.add_input({}, graph.value(node.operands[i]).type);
      inputs.push_back(*operands[i]);
    }
  }
  const NodeId copy = alone.add_node(*node.op, ids, node.attributes, static_cast<int>(node.results.size()));
  std::vector<int> outputs(node.results.size(), -1);
  const auto is_read = [&](ValueId result) { return result.valid() && graph.use_count(result) > 0; };
  const bool any_read = std::any_of(node.results.begin(), node.results.end(), is_read);
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    if (!node.results[i].valid() || (any_read && !is_read(node.results[i]))) {
      alone.node(copy).results[i] = ValueId{};
      continue;
    }
    alone.value(alone.node(copy).results[i]).type = graph.value(node.results[i]).type;
    outputs[i] = static_cast<int>(alone.outputs().size());
    alone.add_output(alone.node(copy).results[i], {});
  }
  RewriteContext context(alone, copy, 0);
  if (!node.op->decompose(context)) return std::nullopt;
  alone.erase_node(copy);
  const std::vector<Tensor> values = evaluate_graph(alone, inputs);
  std::vector<Tensor> results(node.results.size());
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (outputs[i] >= 0) results[i] = values[static_cast<std::size_t>(outputs[i])];
  }
  return results;
}

std::vector<Tensor> evaluate_base(const Graph& graph, NodeId id, const std::vector<const Tensor*>& operands) {
  const Operator& op = *graph.node(id).op;
  const EvaluateContext context(graph, id, operands);
  if (op.evaluate) return op.evaluate(context);
  if (op.decompose) {
    if (std::optional<std::vector<Tensor>> results = evaluate_decomposed(graph, id, operands))
      return *results;
  }
  if (!op.lower) operator_error(fmt::format("{} has no reference evaluation", op.name));
  const Form form = op.lower(LowerContext(graph, id));
  const auto* loops = std::get_if<LoopForm>(&form);
  GC_CHECK(loops);
  return {evaluate(*loops, operands, context.result(0))};
}

Tensor as_float32(const Tensor& tensor) {
  Tensor out({ElementType::kFloat32, tensor.shape()});
  for (std::int64_t i = 0; i < tensor.count(); ++i)
    out.set(i, Scalar::of_real(ElementType::kFloat32, tensor.real_at(i)));
  return out;
}

}  // namespace

double roundings(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  double result = 0;
  for (const ValueId value : node.results) {
    if (value.valid()) result = std::max(result, static_cast<double>(graph.value(value).type.count()));
  }
  const auto elements = [&](std::size_t i) {
    return i < node.operands.size() && node.operands[i].valid()
               ? static_cast<double>(graph.value(node.operands[i]).type.count())
               : 1.0;
  };
  if (result == 0) return 1;
  return roundings_of_sum(
      std::max({1.0, elements(0) / result, std::sqrt(elements(0) * elements(1) / result)}));
}

std::vector<Tensor> evaluate_node(const Graph& graph, NodeId id, const std::vector<const Tensor*>& operands) {
  const Node& node = graph.node(id);
  if (!node.subgraphs.empty()) return evaluate_if(graph, id, operands);
  if (!node.form) return evaluate_base(graph, id, operands);
  const TensorType& type = graph.value(node.results[0]).type;
  if (const auto* loops = std::get_if<LoopForm>(node.form.get())) return {evaluate(*loops, operands, type)};
  if (const auto* contract = std::get_if<ContractForm>(node.form.get())) {
    std::vector<const Tensor*> base(operands.begin(), operands.begin() + contract->base_operands);
    // Factors that lie in memory in 16 bits stand for floats.
    std::deque<Tensor> widened;
    for (const Tensor*& factor : base) {
      if (contract->accumulator != ElementType::kFloat32 || !factor || !is_float(factor->element())) continue;
      if (factor->element() == ElementType::kFloat32) continue;
      factor = &widened.emplace_back(as_float32(*factor));
    }
    const EvaluateContext context(graph, id, base);
    GC_CHECK(node.op->evaluate);
    const Tensor accumulator = node.op->evaluate(context).at(0);
    return {evaluate(contract->epilogue, operands, type, &accumulator)};
  }
  return evaluate_base(graph, id, operands);
}

namespace {

/// Results of a node as floats have them: rounded inside of the operator and at its edge. What the operator
/// does exactly stays, and so does what no input reaches (sizes, scales).
std::vector<Tensor> evaluate_rounded(const Graph& graph, NodeId id,
                                     const std::vector<const Tensor*>& operands, Rounding& rounding) {
  std::vector<Tensor> results = evaluate_node(graph, id, operands);
  if (!graph.node(id).subgraphs.empty()) return results;  // inside of the branch
  const double count = roundings(graph, id);
  for (Tensor& result : results) {
    if (is_float(result.element())) result = rounding.result(result, count);
  }
  return results;
}

}  // namespace

std::vector<std::optional<Tensor>> evaluate_all(const Graph& graph, const std::vector<Tensor>& inputs) {
  GC_CHECK(inputs.size() == graph.inputs().size());
  std::uint32_t slots = 0;
  for (const ValueId id : graph.values()) slots = std::max(slots, id.index + 1);
  std::vector<std::optional<Tensor>> values(slots);
  std::vector<bool> is_reached(slots);  // by an input
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    values[graph.inputs()[i].index] = stored_input(graph, i, inputs[i]);
    is_reached[graph.inputs()[i].index] = true;
  }
  for (const ValueId id : graph.values()) {
    if (const Tensor* constant = graph.constant(id)) values[id.index] = *constant;
  }
  for (const NodeId id : graph.topological_order()) {
    const Node& node = graph.node(id);
    std::vector<const Tensor*> operands;
    bool reached = false;
    for (const ValueId operand : node.operands) {
      operands.push_back(operand.valid() ? &*values[operand.index] : nullptr);
      reached = reached || (operand.valid() && is_reached[operand.index]);
    }
    poll_interrupt();
    Rounding* const rounding = reached && (node.op->accuracy != Accuracy::kExact || !node.subgraphs.empty())
                                   ? Rounding::in_force()
                                   : nullptr;
    const RoundingScope scope(rounding);
    std::vector<Tensor> results =
        rounding ? evaluate_rounded(graph, id, operands, *rounding) : evaluate_node(graph, id, operands);
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      if (!node.results[i].valid()) continue;
      is_reached[node.results[i].index] = reached;
      values[node.results[i].index] = std::move(results.at(i));
    }
  }
  return values;
}

std::vector<Tensor> evaluate_graph(const Graph& graph, const std::vector<Tensor>& inputs) {
  const std::vector<std::optional<Tensor>> values = evaluate_all(graph, inputs);
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    outputs.push_back(given_output(graph, i, *values[graph.outputs()[i].index]));
  }
  return outputs;
}

}  // namespace gcompile::ir
