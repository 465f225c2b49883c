#pragma once
// The graph verifier: laws that hold between any two passes. It shares no code with the passes that could
// break them (DESIGN, rule 4), and reports everything it finds.

#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace gcompile::ir {

/// One law broken: "node %3 'relu' (Relu): ...".
struct Violation {
  std::string where;
  std::string message;
};
std::string to_string(const Violation& violation);

/// Def-use lists, counts of operands and results, acyclicity, constants' types, attributes, types inferred
/// anew for nodes without form, attached forms, and the same for subgraphs. Empty: the graph is sound.
std::vector<Violation> verify(const Graph& graph);

/// Laws of a form as the form of this node: loads name operands and stay inside them, regions are disjoint
/// and cover the axes, the store is a bijection onto the result, types agree.
std::vector<Violation> verify_form(const Graph& graph, NodeId node, const Form& form);

}  // namespace gcompile::ir
