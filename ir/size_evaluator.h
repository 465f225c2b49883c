#pragma once
// Values that follow from a model's sizes: what Shape gives, and all arithmetic on it, as formulas.

#include <optional>

#include "ir/graph.h"

namespace gcompile::ir {

/// Elements of a value that are known as numbers or formulas: of a constant, or Value::sizes. nullopt: it is
/// neither, or has more than 4,096 elements.
std::optional<Shape> known_elements(const Graph& graph, ValueId value);

/// Elements of result 0 of a node, integers or bools, some of whose operands are formulas (Value::sizes): its
/// loops, interpreted over formulas. Comparisons are decided by the bounds in force. nullopt: not all
/// elements are known that way.
std::optional<Shape> evaluate_sizes(const Graph& graph, NodeId node);

}  // namespace gcompile::ir
