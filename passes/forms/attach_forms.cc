// Lowers every node to its form and writes single-element constants into the expressions.

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "passes/engine/form_edit.h"
#include "passes/engine/passes.h"
#include "passes/rules/support.h"

namespace gcompile::passes {
namespace {

/// Layers repeat: nodes whose loops are equal share one form until a pass changes one of them.
class FormPool {
 public:
  void share(ir::Node& node) {
    const auto* loops = std::get_if<ir::LoopForm>(node.form.get());
    if (!loops) return;
    std::vector<std::shared_ptr<const ir::Form>>& alike = forms_[loops->dag.hash()];
    for (const std::shared_ptr<const ir::Form>& form : alike) {
      if (std::get<ir::LoopForm>(*form) == *loops) {
        node.form = form;
        return;
      }
    }
    if (alike.size() < kAlike) alike.push_back(node.form);
  }

 private:
  /// How many forms of one expression over other extents are kept; more are not worth a search.
  static constexpr std::size_t kAlike = 16;
  std::map<std::uint64_t, std::vector<std::shared_ptr<const ir::Form>>> forms_;
};

/// Whether the sums of a contraction may be formed by another algebra (DESIGN law 6).
bool may_reassociate(const ir::Graph& graph, ir::NodeId id, const ir::ContractForm& contract,
                     const PassContext& context) {
  return ir::is_float(contract.accumulator) && context.options().tier >= Tier::kReassociate &&
         !feeds_integer_decision(graph, graph.node(id).results[0]);
}

/// Whether a contraction has nothing to sum: its result has no elements, or one of its factors has none.
bool sums_nothing(const ir::Graph& graph, const ir::Node& node, const ir::ContractForm& contract) {
  const auto is_empty = [&](ir::ValueId id) {
    return id.valid() && graph.value(id).type.count() == ir::Dim(0);
  };
  const auto factors = node.operands.begin() + std::min(contract.base_operands, 2);
  return is_empty(node.results[0]) || std::any_of(node.operands.begin(), factors, is_empty);
}

/// What a contraction without a sum stores: its epilogue of zeros. So no kernel family is ever asked for a
/// product of nothing, whose blocks and tiles would have no size.
ir::Form without_sums(const ir::ContractForm& contract) {
  return rebuild(contract.epilogue, [](ir::Dag& dag, const ir::ScalarNode& leaf) {
    return leaf.op == ir::ScalarOp::kLoad ? dag.load(leaf.operand, leaf.type, leaf.index)
                                          : dag.constant(leaf.type, 0);
  });
}

/// Adds a node that writes sizes to memory, which only a run knows and which something reads there.
ir::ValueId stored_sizes(ir::Graph& graph, ir::ValueId sizes) {
  const ir::NodeId id = graph.add_node(ir::operator_named("Identity"), {}, {}, 1);
  const ir::ValueId result = graph.node(id).results[0];
  const ir::Value known = graph.value(sizes);
  graph.value(result).type = known.type;
  graph.value(result).name = "sizes";
  ir::LoopForm form = ir::LoopForm::over(known.type.shape);
  const std::vector<ir::Range> everything = form.ranges();
  for (std::size_t i = 0; i < known.sizes->size(); ++i) {
    ir::Region region{everything, form.dag.cast(form.dag.size((*known.sizes)[i]), known.type.element)};
    std::int64_t rest = static_cast<std::int64_t>(i);
    for (std::size_t axis = everything.size(); axis-- > 0;) {
      const ir::Dim extent = everything[axis].high;
      region.box[axis] = {rest % extent, rest % extent + 1};
      rest /= extent;
    }
    form.regions.push_back(std::move(region));
  }
  set_form(graph, id, std::move(form));
  graph.node(id).origins = {{"sizes", std::nullopt}};
  return result;
}

/// Sizes are parameters of kernels. Where a kernel with its own control, a list, a branch or the caller wants
/// them in memory, they are written there first.
void store_sizes(ir::Graph& graph) {
  std::map<ir::ValueId, ir::ValueId> stored;
  const auto in_memory = [&](ir::ValueId sizes) {
    const auto at = stored.find(sizes);
    return at != stored.end() ? at->second : stored[sizes] = stored_sizes(graph, sizes);
  };
  for (const ir::NodeId id : graph.nodes()) {
    const auto* library = std::get_if<ir::LibraryForm>(graph.node(id).form.get());
    const std::vector<ir::ValueId> operands = graph.node(id).operands;
    for (int i = 0; i < static_cast<int>(operands.size()); ++i) {
      const ir::ValueId operand = operands[i];
      if (!operand.valid() || !graph.value(operand).sizes || (library && library->unread_operand == i))
        continue;
      graph.set_operand(id, i, in_memory(operand));
    }
  }
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const ir::ValueId output = graph.outputs()[i];
    if (graph.value(output).sizes) graph.set_output(i, in_memory(output));
  }
}

}  // namespace

bool attach_forms(ir::Graph& graph, PassContext& context) {
  Diagnostics diagnostics;
  FormPool pool;
  for (const ir::NodeId id : graph.nodes()) {
    poll_interrupt();
    if (graph.node(id).form) continue;
    try {
      ir::Form form = ir::form_of(graph, id);
      if (auto* contract = std::get_if<ir::ContractForm>(&form)) {
        contract->reassociates = may_reassociate(graph, id, *contract, context);
        if (sums_nothing(graph, graph.node(id), *contract)) form = without_sums(*contract);
      }
      set_form(graph, id, std::move(form));
      inline_scalars(graph, id);
      pool.share(graph.node(id));
    } catch (const OperatorError& error) {
      diagnostics.add(ir::diagnose(graph, id, "E0301", error));
    }
  }
  diagnostics.throw_if_errors();
  store_sizes(graph);
  return true;
}

}  // namespace gcompile::passes
