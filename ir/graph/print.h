#pragma once
// Readable text of a graph, one line per node, a function of the graph alone:
//   %12 relu_3 f32[1,8,4,4] = Relu(%11)  # Relu 'relu_3'

#include <string>

#include "ir/graph/graph.h"

namespace gcompile::ir {

struct PrintOptions {
  bool forms = false;           // attached forms below their nodes
  std::int64_t max_values = 8;  // constants of at most so many elements are spelled out
};

/// Graph, its constants in slot order, its nodes in topological order (in slot order when it has a cycle),
/// and subgraphs indented below their nodes. Ends with a newline.
std::string print(const Graph& graph, const PrintOptions& options = {});

/// "f32[1,8,4,4]", as lines of a graph spell types.
std::string short_text(const TensorType& type);

}  // namespace gcompile::ir
