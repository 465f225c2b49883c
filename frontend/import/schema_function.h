#pragma once
// Operators that ONNX defines by a function of simpler ones: the body that its schema has, or builds for the
// types of a node.

#include <onnx/onnx_pb.h>

#include <optional>
#include <vector>

namespace gcompile::frontend {

struct SchemaFunction {
  onnx::FunctionProto proto;
  std::vector<onnx::AttributeProto> defaults;  // of its attributes
};

/// What an operator of ai.onnx is at `opset`; nullopt: its schema has no body for these types of operands,
/// or ONNX's library does not know it. The attributes of `node` are no references. Throws OperatorError where the
/// schema says that operands or attributes are wrong.
std::optional<SchemaFunction> schema_function(const onnx::NodeProto& node, int opset,
                                              const std::vector<onnx::TypeProto>& types);

}  // namespace gcompile::frontend
