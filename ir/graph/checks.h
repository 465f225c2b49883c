#pragma once
// Checks of a run: what the model's inputs have to be for the shapes that it was compiled with. A check is a
// node with a condition and two branches, of which one holds nothing and the other is a trap. Nobody reads its
// result, which has no elements; passes keep it, and a run computes it before anything else.

#include <optional>
#include <string>
#include <utility>
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

/// What has been settled, as a sentence for each input.
using Settled = std::vector<std::string>;

/// A run goes on where `holds` does. The values are inputs of the model, or made of inputs, by which each is its
/// example; `shapes` says for what, and `origins` for whom. Nothing: they are made of something else, and nothing has
/// changed. `searches`: a number may also be computed of a few numbers among the inputs.
struct Demanded {
  std::vector<std::pair<ValueId, Tensor>> examples;
  ValueId holds;
  std::string shapes;
  std::vector<Origin> origins;
  bool searches = false;
};
std::optional<Settled> demand(Graph& graph, const Demanded& demanded);

/// The elements, each cast to the element type, in the shape.
Tensor cast_to(const Tensor& tensor, const TensorType& type);

}  // namespace gcompile::ir
