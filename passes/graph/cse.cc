// Common subexpressions: of nodes with the same operator, attributes and operands the first one serves all.
// Operands that commute to the bit are the same in either order.
// Constants are merged first, by content, so that "the same operands" is a comparison of ids.

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <tuple>

#include "base/interrupt.h"
#include "ir/graph/operator.h"
#include "passes/engine/passes.h"
#include "passes/engine/rule.h"

namespace gcompile::passes {
namespace {

/// The hash of a whole tensor, or of pieces of a large one: what is told apart by them need not be read.
/// Equality decides anyway.
std::uint64_t hash_of(const ir::Tensor& tensor) {
  constexpr std::size_t kWhole = 4096, kPiece = 64, kPieces = 16;
  // FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/) by words instead of bytes.
  std::uint64_t hash = 0xcbf29ce484222325u;
  const std::span<const std::byte> bytes = tensor.bytes();
  const std::size_t skipped = bytes.size() > kWhole ? bytes.size() / kPieces / kPiece * kPiece - kPiece : 0;
  for (std::size_t at = 0; at < bytes.size(); at += sizeof hash) {
    if (skipped > 0 && at > 0 && at % kPiece == 0) at += skipped;
    if (at >= bytes.size()) break;
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;
  }
  return hash;
}

bool merge_constants(ir::Graph& graph) {
  // Only tensors that share their type with another one are worth a look at their bytes.
  std::map<std::pair<ir::ElementType, ir::Shape>, std::vector<ir::ValueId>> by_type;
  for (const ir::ValueId id : graph.values()) {
    const ir::Value& value = graph.value(id);
    if (!value.constant || value.producer.valid() || graph.is_input(id)) continue;
    by_type[{value.type.element, value.type.shape}].push_back(id);
  }
  bool changed = false;
  for (const auto& [type, ids] : by_type) {
    if (ids.size() == 1) continue;
    std::map<std::uint64_t, std::vector<ir::ValueId>> by_content;
    for (const ir::ValueId id : ids) {
      std::vector<ir::ValueId>& alike = by_content[hash_of(*graph.constant(id))];
      ir::ValueId first;
      for (const ir::ValueId other : alike) {
        if (!first.valid() && graph.constant(other)->identical(*graph.constant(id))) first = other;
      }
      if (!first.valid()) {
        alike.push_back(id);
        continue;
      }
      if (graph.use_count(id) == 0) continue;
      graph.replace_uses(id, first);
      changed = true;
    }
  }
  return changed;
}

/// The same for elements that are formulas.
bool merge_sizes(ir::Graph& graph) {
  bool changed = false;
  std::vector<ir::ValueId> kept;
  for (const ir::ValueId id : graph.values()) {
    const ir::Value& value = graph.value(id);
    if (!value.sizes || value.producer.valid() || graph.is_input(id) || graph.use_count(id) == 0) continue;
    const auto first = std::find_if(kept.begin(), kept.end(), [&](ir::ValueId other) {
      return graph.value(other).type == value.type && graph.value(other).sizes == value.sizes;
    });
    if (first == kept.end()) {
      kept.push_back(id);
      continue;
    }
    graph.replace_uses(id, *first);
    changed = true;
  }
  return changed;
}

/// Whether `first` computes everything that is asked of `second`.
bool serves(const ir::Graph& graph, const ir::Node& first, const ir::Node& second) {
  if (first.results.size() < second.results.size() || !first.attributes.identical(second.attributes)) {
    return false;
  }
  for (std::size_t i = 0; i < second.results.size(); ++i) {
    const ir::ValueId result = second.results[i];
    if (!result.valid() || graph.use_count(result) == 0) continue;
    if (!first.results[i].valid() || graph.value(first.results[i]).type != graph.value(result).type) {
      return false;
    }
  }
  return true;
}

/// The operands as a key: sorted where their order does not change a bit of the result (NaN payloads aside).
std::vector<ir::ValueId> operands_in_order(const ir::Graph& graph, const ir::Node& node) {
  std::vector<ir::ValueId> operands = node.operands;
  if (!commutes(node)) return operands;
  // What is exact on floats picks an operand, as Max and Min do; which zero max(0, -0) is, is not stated.
  const bool picks = node.op->accuracy == ir::Accuracy::kExact;
  if (picks && ir::is_float(graph.value(node.results[0]).type.element)) return operands;
  std::sort(operands.begin(), operands.end());
  return operands;
}

/// Origins of the nodes that others were merged into.
using Origins = std::map<ir::NodeId, std::set<ir::Origin>>;

void replace(ir::Graph& graph, ir::NodeId from, ir::NodeId to, Origins& origins) {
  for (std::size_t i = 0; i < graph.node(from).results.size(); ++i) {
    const ir::ValueId result = graph.node(from).results[i];
    if (result.valid() && graph.use_count(result) > 0) graph.replace_uses(result, graph.node(to).results[i]);
  }
  std::vector<ir::Origin>& kept = graph.node(to).origins;
  const auto [known, is_new] = origins.try_emplace(to);
  if (is_new) known->second.insert(kept.begin(), kept.end());
  for (const ir::Origin& origin : graph.node(from).origins) {
    if (known->second.insert(origin).second) kept.push_back(origin);
  }
  graph.erase_node(from);
}

}  // namespace

bool eliminate_common_subexpressions(ir::Graph& graph, PassContext&) {
  bool changed = merge_constants(graph);
  changed = merge_sizes(graph) || changed;
  if (changed) graph.erase_unused_constants();
  using Key = std::tuple<std::string_view, std::string_view, std::vector<ir::ValueId>>;
  std::map<Key, std::vector<ir::NodeId>> seen;
  Origins origins;
  for (const ir::NodeId id : graph.topological_order()) {
    poll_interrupt();
    const ir::Node& node = graph.node(id);
    if (!node.op->deterministic || !node.subgraphs.empty() || node.form) continue;
    std::vector<ir::NodeId>& alike = seen[{node.op->domain, node.op->name, operands_in_order(graph, node)}];
    const auto first = std::find_if(alike.begin(), alike.end(),
                                    [&](ir::NodeId other) { return serves(graph, graph.node(other), node); });
    if (first == alike.end()) {
      alike.push_back(id);
    } else {
      replace(graph, id, *first, origins);
      changed = true;
    }
  }
  return changed;
}

}  // namespace gcompile::passes
