// Counts that are computed alike: a mask that chooses boxes and scores by two nodes chooses as many of both.

#include <algorithm>

#include "ir/ops/counted.h"

namespace gcompile::ir {
namespace {

/// Whether values of equal makers are the same, by what the maker does not hold.
bool are_same(const Graph& graph, ValueId a, ValueId b) {
  const Value &x = graph.value(a), &y = graph.value(b);
  if (!(x.type == y.type)) return false;
  if (x.constant || y.constant) return x.constant && y.constant && x.constant->identical(*y.constant);
  if (x.sizes || y.sizes) return x.sizes && y.sizes && *x.sizes == *y.sizes;
  return graph.node(x.producer).attributes.identical(graph.node(y.producer).attributes);
}

/// A node whose results are told by its operator, its attributes and its operands.
const Node* telling_node(const Graph& graph, const Value& value) {
  if (value.constant || value.sizes || !value.producer.valid()) return nullptr;
  const Node& node = graph.node(value.producer);
  // What is not to be folded gives the same all the same where it has no operands but its attributes: Counting.
  const bool is_random = !node.op->deterministic && node.op->name != "Counting";
  return is_random || !node.subgraphs.empty() ? nullptr : &node;
}

}  // namespace

std::size_t ValueNumbers::of(const Graph& graph, ValueId value) {
  std::vector<ValueId> open = {value};
  while (!open.empty()) {
    const ValueId next = open.back();
    if (numbers_.count(next) != 0) {
      open.pop_back();
      continue;
    }
    const Node* const node = telling_node(graph, graph.value(next));
    const std::size_t known = open.size();
    for (std::size_t i = 0; node && i < node->operands.size(); ++i) {
      const ValueId operand = node->operands[i];
      if (operand.valid() && numbers_.count(operand) == 0) open.push_back(operand);
    }
    if (open.size() == known) numbers_[next] = new_number(graph, next);
  }
  return numbers_.at(value);
}

std::size_t ValueNumbers::new_number(const Graph& graph, ValueId value) {
  const std::size_t fresh = numbers_.size() + 1;  // 0 is an operand that is left out
  const Value& known = graph.value(value);
  Maker maker;
  if (const Node* node = telling_node(graph, known)) {
    maker.name = std::string(node->op->domain) + "." + std::string(node->op->name);
    maker.parts = {static_cast<std::size_t>(known.result_index)};
    for (const ValueId operand : node->operands)
      maker.parts.push_back(operand.valid() ? numbers_.at(operand) : 0);
  } else if (known.constant) {
    constexpr std::size_t kSomeBytes = 64;
    maker.parts = {static_cast<std::size_t>(known.type.element),
                   static_cast<std::size_t>(known.constant->count())};
    const auto bytes = known.constant->bytes();
    for (std::size_t i = 0; i < std::min(bytes.size(), kSomeBytes); ++i)
      maker.parts.push_back(static_cast<std::size_t>(bytes[i]));
  } else if (known.sizes) {
    maker.name = "sizes";
    maker.parts = {known.sizes->size()};
  } else {
    return fresh;
  }
  std::vector<ValueId>& alike = made_[std::move(maker)];
  const auto same =
      std::find_if(alike.begin(), alike.end(), [&](ValueId other) { return are_same(graph, other, value); });
  if (same != alike.end()) return numbers_.at(*same);
  alike.push_back(value);
  return fresh;
}

ValueId CountedFacts::known_count(const Graph& graph, ValueId count) {
  return counts.emplace(numbers.of(graph, count), count).first->second;
}

}  // namespace gcompile::ir
