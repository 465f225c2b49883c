#include "passes/engine/form_edit.h"

#include <algorithm>

#include "base/diagnostics.h"
#include "ir/graph/operator.h"

namespace gcompile::passes {

using ir::Dag;
using ir::LoopForm;
using ir::ScalarNode;
using ir::ScalarOp;

void set_form(ir::Graph& graph, ir::NodeId id, ir::Form form) {
  graph.node(id).form = std::make_shared<const ir::Form>(std::move(form));
}

const LoopForm* loops_of(const ir::Node& node) {
  if (!node.form) return nullptr;
  if (const auto* loops = std::get_if<LoopForm>(node.form.get())) return loops;
  if (const auto* contract = std::get_if<ir::ContractForm>(node.form.get())) return &contract->epilogue;
  return nullptr;
}

int base_operands(const ir::Node& node) {
  const auto* contract = std::get_if<ir::ContractForm>(node.form.get());
  return contract ? contract->base_operands : 0;
}

bool is_rebuilt(const LoopForm& form) {
  if (!form.is_map() || !form.checks.empty() || form.regions.size() != 1) return false;
  const int root[] = {form.regions[0].root};
  if (form.dag.reachable(root).size() != form.dag.nodes().size()) return false;
  return std::all_of(form.dag.nodes().begin(), form.dag.nodes().end(), [](const ScalarNode& node) {
    return std::all_of(node.index.begin(), node.index.end(),
                       [](const ir::Index& i) { return i.is_constant() || i.as_axis().has_value(); });
  });
}

namespace {

std::vector<int> roots_and_checks(const LoopForm& loops) {
  std::vector<int> roots;
  for (const ir::Stage& stage : loops.stages) roots.push_back(stage.root);
  for (const ir::Region& region : loops.regions) roots.push_back(region.root);
  for (const ir::BoundsCheck& check : loops.checks) roots.push_back(check.scalar);
  return roots;
}

int same_leaf(Dag& dag, const ScalarNode& node, int operand) {
  return node.op == ScalarOp::kLoad ? dag.load(operand, node.type, node.index)
                                    : dag.accumulator(node.operand, node.type);
}

}  // namespace

void set_loops(ir::Graph& graph, ir::NodeId id, LoopForm loops, std::vector<ir::ValueId> operands) {
  const int base = base_operands(graph.node(id));
  std::vector<int> renumber(operands.size(), -1);
  std::vector<ir::ValueId> kept(operands.begin(), operands.begin() + base);
  for (int i = 0; i < base; ++i) renumber[i] = i;
  std::map<ir::ValueId, int> numbers;  // of the operands behind the base
  for (const int n : loops.dag.reachable(roots_and_checks(loops))) {
    const ScalarNode& node = loops.dag[n];
    if (node.op != ScalarOp::kLoad) continue;
    int& number = renumber[node.operand];
    if (number >= base || (number >= 0 && node.operand < base)) continue;
    const ir::ValueId value = operands[node.operand];
    const auto [at, is_new] = numbers.try_emplace(value, static_cast<int>(kept.size()));
    number = at->second;
    if (is_new) kept.push_back(value);
  }
  if (!is_rebuilt(loops) || !loops.dag.renumber_operands(renumber)) {
    loops = rebuild(loops, [&](Dag& dag, const ScalarNode& node) {
      return same_leaf(dag, node, node.op == ScalarOp::kLoad ? renumber[node.operand] : 0);
    });
  }
  graph.set_operands(id, std::move(kept));
  if (const auto* contract = std::get_if<ir::ContractForm>(graph.node(id).form.get())) {
    ir::ContractForm changed = *contract;
    changed.epilogue = std::move(loops);
    set_form(graph, id, std::move(changed));
  } else {
    set_form(graph, id, std::move(loops));
  }
}

void inline_scalars(ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  const LoopForm* loops = loops_of(node);
  if (!loops) return;
  const auto scalar_of = [&](const ScalarNode& load) -> const ir::Tensor* {
    const ir::Tensor* constant = graph.constant(node.operands[load.operand]);
    return constant && constant->count() == 1 && is_computable(constant->element()) ? constant : nullptr;
  };
  // What only a run knows is a parameter of the kernel, and lies nowhere.
  const auto size_of = [&](const ScalarNode& load) -> std::optional<ir::Dim> {
    const ir::Value& value = graph.value(node.operands[load.operand]);
    if (!value.sizes) return std::nullopt;
    const ir::Index at = address_of(load.index, ir::row_major_strides(value.type.shape));
    if (!at.is_constant()) return std::nullopt;
    return value.sizes->at(static_cast<std::size_t>(at.constant()));
  };
  // Along an axis of one element a position that is computed is 0, and nothing has to compute it.
  const auto is_only_element = [&](const ScalarNode& load, std::size_t axis) {
    const ir::Shape& shape = graph.value(node.operands[load.operand]).type.shape;
    return load.index[axis].has_loaded() && load.index.size() == shape.size() && shape[axis] == ir::Dim(1);
  };
  const auto has_only_element = [&](const ScalarNode& load) {
    for (std::size_t axis = 0; axis < load.index.size(); ++axis) {
      if (is_only_element(load, axis)) return true;
    }
    return false;
  };
  const std::vector<ScalarNode>& nodes = loops->dag.nodes();
  const bool none = std::none_of(nodes.begin(), nodes.end(), [&](const ScalarNode& scalar) {
    return scalar.op == ScalarOp::kLoad && (scalar_of(scalar) || size_of(scalar) || has_only_element(scalar));
  });
  if (none && is_rebuilt(*loops)) return set_loops(graph, id, *loops, node.operands);
  LoopForm changed = rebuild(*loops, [&](Dag& dag, const ScalarNode& leaf) {
    if (leaf.op == ScalarOp::kLoad) {
      if (const ir::Tensor* constant = scalar_of(leaf)) return dag.constant(constant->at(0));
      if (const auto size = size_of(leaf)) return dag.cast(dag.size(*size), leaf.type);
      std::vector<ir::Index> index = leaf.index;
      for (std::size_t axis = 0; axis < index.size(); ++axis) {
        if (is_only_element(leaf, axis)) index[axis] = 0;
      }
      return dag.load(leaf.operand, leaf.type, index);
    }
    return same_leaf(dag, leaf, leaf.operand);
  });
  set_loops(graph, id, std::move(changed), node.operands);
}

}  // namespace gcompile::passes
