#pragma once
// ir::Graph -> ONNX, for --save-onnx: standard operators only, readable by ONNX Runtime.

#include <string>

#include "ir/graph/graph.h"

namespace gcompile::frontend {

/// The bytes of a ModelProto. Types of inputs and outputs are fixed sizes. Operators are written in the
/// newest opset that their records know. Throws CompileError (kModel) that names every node that ONNX cannot
/// express: internal operators, nodes whose form a pass has rewritten, branches that cannot be typed.
std::string export_model(const ir::Graph& graph);

}  // namespace gcompile::frontend
