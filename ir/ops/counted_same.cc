// Counts that are computed alike: a mask that chooses boxes and scores by two nodes chooses as many of both.

#include <set>
#include <utility>

#include "ir/ops/counted.h"

namespace gcompile::ir {
namespace {

/// Whether two values are the same in every run, as far as a few steps back show.
class Sameness {
 public:
  explicit Sameness(const Graph& graph) : graph_(graph) {}

  bool holds(ValueId a, ValueId b) {
    std::vector<std::pair<ValueId, ValueId>> open = {{a, b}};
    std::set<std::pair<ValueId, ValueId>> seen;
    while (!open.empty()) {
      const std::pair<ValueId, ValueId> pair = open.back();
      open.pop_back();
      if (pair.first == pair.second || !seen.insert(pair).second) continue;
      constexpr std::size_t kMostPairs = 256;
      if (seen.size() > kMostPairs || !are_made_alike(pair.first, pair.second, open)) return false;
    }
    return true;
  }

 private:
  /// Adds what has to be the same for that.
  bool are_made_alike(ValueId a, ValueId b, std::vector<std::pair<ValueId, ValueId>>& open) const {
    if (!a.valid() || !b.valid()) return false;
    const Value &x = graph_.value(a), &y = graph_.value(b);
    if (!(x.type == y.type)) return false;
    if (x.constant && y.constant) return x.constant->identical(*y.constant);
    if (x.sizes && y.sizes) return *x.sizes == *y.sizes;
    if (!x.producer.valid() || !y.producer.valid() || x.result_index != y.result_index) return false;
    const Node &left = graph_.node(x.producer), &right = graph_.node(y.producer);
    // What is not to be folded gives the same all the same where it has no operands but its attributes: Counting.
    const bool is_random = !left.op->deterministic && left.op->name != "Counting";
    if (left.op != right.op || is_random || !left.subgraphs.empty()) return false;
    if (!left.attributes.identical(right.attributes) || left.operands.size() != right.operands.size())
      return false;
    for (std::size_t i = 0; i < left.operands.size(); ++i)
      open.emplace_back(left.operands[i], right.operands[i]);
    return true;
  }

  const Graph& graph_;
};

}  // namespace

ValueId CountedFacts::known_count(const Graph& graph, ValueId count) {
  // Where a model has more counts the first ones are compared, so that time stays in proportion.
  constexpr std::size_t kMostCompared = 64;
  for (std::size_t i = 0; i < counts.size() && i < kMostCompared; ++i) {
    if (Sameness(graph).holds(counts[i], count)) return counts[i];
  }
  counts.push_back(count);
  return count;
}

}  // namespace gcompile::ir
