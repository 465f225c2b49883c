#pragma once
// Values that follow from a model's sizes: what Shape gives, and all arithmetic on it, as formulas.

#include <optional>

#include "ir/graph/graph.h"

namespace gcompile::ir {

/// Elements of a value, integers or floats that are integers, as numbers or formulas. nullopt: they are not
/// known as such, or more than 4,096.
std::optional<Shape> known_integers(const Graph& graph, ValueId value);

/// Elements of result 0 of a node some of whose operands are formulas (Value::sizes, Value::fractions): its
/// loops, interpreted over formulas. Comparisons are decided by the bounds in force. Floats are followed as
/// long as they are exact, and through one quotient that is rounded.
/// nullopt: not all elements are known that way.
std::optional<SizeFractions> evaluate_sizes(const Graph& graph, NodeId node);

}  // namespace gcompile::ir
