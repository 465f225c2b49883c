#pragma once
// What ONNX, and runtimes that read it, have in place of forms that normalisation and rewriting make.

#include "ir/graph/graph.h"

namespace gcompile::ir {

/// Spells nodes of the graph and of its branches as a saved model has them. What has no such spelling stays.
void spell_as_onnx(Graph& graph);

}  // namespace gcompile::ir
