#pragma once
// Results of which only data knows how many elements there are. They have room for the most that there can be;
// a run fills the first ones along one axis, and counts them. What lies behind them means nothing: nodes that
// compute each position by itself leave it there, others are expressed so that they do not see it, or refused.

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/operator.h"

namespace gcompile::ir {

/// The axis of a value that a run fills from its front, and how many of its positions it fills.
struct CountedAxis {
  int axis = 0;
  ValueId count;  // int64 of rank 0
};

/// An element of a list of sizes: a number, or a count, where `size` is what there is room for.
struct CountedSize {
  Dim size = 0;
  ValueId count = {};  // invalid: it is a number
};
using CountedSizes = std::vector<CountedSize>;

/// Equal numbers for values of a graph that are the same in every run, as far as operators and constants tell
/// (value numbering; Cocke and Schwartz, 1970). In time proportional to what is behind the values asked for.
class ValueNumbers {
 public:
  std::size_t of(const Graph& graph, ValueId value);

 private:
  /// What a value is made by, of what: an operator, numbers of operands and the place among results; of a constant
  /// its type and some of its bytes.
  struct Maker {
    std::string name;
    std::vector<std::size_t> parts;
    auto operator<=>(const Maker&) const = default;
  };
  std::size_t new_number(const Graph& graph, ValueId value);

  std::map<ValueId, std::size_t> numbers_;
  std::map<Maker, std::vector<ValueId>> made_;  // the first value of each number
};

/// What is known of the values of a graph.
struct CountedFacts {
  std::map<ValueId, CountedAxis> axes;
  std::map<ValueId, CountedSizes> sizes;
  ValueNumbers numbers;
  std::map<std::size_t, ValueId> counts;  // one of each number

  /// The one of `counts` that is computed as `count` is; else `count`, which is one of them from then on.
  ValueId known_count(const Graph& graph, ValueId count);
};

/// What stands for the result of a node.
struct CountedResult {
  ValueId value = {};  // invalid: nobody reads the result
  std::optional<CountedAxis> counted = std::nullopt;
  CountedSizes sizes = {};  // its elements, where counts are among them
};
using CountedResults = std::vector<CountedResult>;

/// Adds other nodes for one that decides by data how many elements there are, or that reads across a counted
/// axis. The node has its normal form and all attributes, and no types yet. nullopt: it can stay. Throws
/// OperatorError where it cannot, and there are no others.
std::optional<CountedResults> count_results(Graph& graph, NodeId id, const CountedFacts& facts);

/// The axis of each result of a node, whose types are known, that its operands' counted axes reach, position by
/// position; made of as many nodes as that takes. Throws OperatorError where some result's filled positions
/// depend on what lies behind the count, or where sizes agree by room that may not agree by count.
CountedResults follow_counts(Graph& graph, NodeId id, const CountedFacts& facts);

/// 0, 1, 2, ... along the one axis of `shape` that is not 1, or along the last: a constant where they are few.
ValueId emit_positions(RewriteContext& context, const Shape& shape);

/// `value` where a run fills the axis, `other` behind that.
ValueId filled_or(RewriteContext& context, ValueId value, const CountedAxis& counted, ValueId other);

}  // namespace gcompile::ir
