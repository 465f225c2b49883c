#include "codegen/order/cache_order.h"

#include <algorithm>
#include <set>

namespace gcompile {

using ir::LoopForm;
using ir::NodeId;
using ir::ValueId;

bool is_attention(const ir::Form& form) {
  const ir::Work* work = ir::work_of(form);
  return work && ir::kind_of(*work) == ir::Kind::kAttention;
}

bool joins_two_parts(const ir::Graph& graph, const NodeForms& forms, NodeId id) {
  const auto* form = std::get_if<LoopForm>(&forms.at(id));
  if (!form || !form->is_map() || form->regions.size() != 2 || !form->has_identity_store()) return false;
  return std::all_of(form->regions.begin(), form->regions.end(), [&](const ir::Region& region) {
    const ir::ScalarNode& root = form->dag[region.root];
    return root.op == ir::ScalarOp::kLoad && !graph.constant(graph.node(id).operands[root.operand]);
  });
}

namespace {

/// The node that joins the operand and the views between, nearest first; empty: there is none.
std::vector<NodeId> chain_of(const ir::Graph& graph, const NodeForms& forms, ValueId value) {
  std::vector<NodeId> chain;
  while (true) {
    const NodeId id = graph.value(value).producer;
    if (!id.valid() || graph.constant(value)) return {};
    chain.push_back(id);
    if (joins_two_parts(graph, forms, id)) return chain;
    const auto* form = std::get_if<LoopForm>(&forms.at(id));
    const ir::ScalarNode* load = form ? ir::pure_load(*form) : nullptr;
    if (!load) return {};
    value = graph.node(id).operands[load->operand];
  }
}

/// Moves `chain` to the end of `window`, and what else reads it to `behind`; false: the attention needs that
/// too, and nothing has changed.
bool move_late(const ir::Graph& graph, const std::set<NodeId>& chain, NodeId attention,
               std::vector<NodeId>& window, std::vector<NodeId>& behind) {
  const auto reads_any = [&](NodeId id, const std::set<NodeId>& makers) {
    const std::vector<ValueId>& operands = graph.node(id).operands;
    return std::any_of(operands.begin(), operands.end(), [&](ValueId operand) {
      return operand.valid() && makers.count(graph.value(operand).producer) > 0;
    });
  };
  std::set<NodeId> dependent = chain;
  for (const NodeId id : window) {
    if (reads_any(id, dependent)) dependent.insert(id);
  }
  std::set<NodeId> others;  // that read the chain, or what reads it
  std::set_difference(dependent.begin(), dependent.end(), chain.begin(), chain.end(),
                      std::inserter(others, others.end()));
  if (reads_any(attention, others) ||
      std::any_of(chain.begin(), chain.end(), [&](NodeId id) { return reads_any(id, others); })) {
    return false;
  }
  std::vector<NodeId> first, last;
  for (const NodeId id : window) {
    if (others.count(id)) {
      behind.push_back(id);
    } else {
      (chain.count(id) ? last : first).push_back(id);
    }
  }
  first.insert(first.end(), last.begin(), last.end());
  window = std::move(first);
  return true;
}

}  // namespace

std::vector<NodeId> with_caches_late(const ir::Graph& graph, const NodeForms& forms,
                                     std::vector<NodeId> order) {
  std::set<NodeId> done;  // each once: two that share their keys would pass each other for ever
  for (std::size_t at = 0; at < order.size(); ++at) {
    if (!is_attention(forms.at(order[at])) || !done.insert(order[at]).second) continue;
    const NodeId attention = order[at];
    std::set<NodeId> chain;
    bool joins = true;
    for (const std::size_t i : {1u, 2u}) {
      const std::vector<NodeId> part = chain_of(graph, forms, graph.node(attention).operands[i]);
      joins = joins && !part.empty();
      chain.insert(part.begin(), part.end());
    }
    if (!joins) continue;
    std::size_t begin = at;
    for (std::size_t left = chain.size(); left > 0;) left -= chain.count(order[--begin]);
    const auto from = order.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto end = order.begin() + static_cast<std::ptrdiff_t>(at);
    std::vector<NodeId> window(from, end), behind;
    if (!move_late(graph, chain, attention, window, behind)) continue;
    window.push_back(attention);
    window.insert(window.end(), behind.begin(), behind.end());
    std::copy(window.begin(), window.end(), from);
    at -= behind.size();
  }
  return order;
}

}  // namespace gcompile
