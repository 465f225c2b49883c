#pragma once
// Checks of a run: what the model's inputs have to be for the shapes that it was compiled with. A check is a
// node with a condition and two branches, of which one holds nothing and the other is a trap. Nobody reads its
// result, which has no elements; passes keep it, and a run computes it before anything else.

#include <string>
#include <vector>

#include "ir/graph/graph.h"

namespace gcompile::ir {

bool is_check(const Graph& graph, NodeId id);

/// What a check asks of an input of the model.
struct Demand {
  std::string input;   // its name in the model
  Tensor example;      // that passes the check
  std::string reason;  // what the check asks, as a sentence
};
/// All of a model, in the order of its nodes; of an input at most one.
std::vector<Demand> demands_of(const Graph& graph);

}  // namespace gcompile::ir
