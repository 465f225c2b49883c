#pragma once
// AttributeProto -> ir::AttributeValue, and attribute references inside function bodies.

#include <onnx/onnx_pb.h>

#include <map>
#include <string>

#include "frontend/files/external_data.h"
#include "frontend/files/limits.h"
#include "ir/tensors/attributes.h"

namespace gcompile::frontend {

/// Attributes of the function call whose body is being imported, by name; defaults included.
using AttributeEnvironment = std::map<std::string, const onnx::AttributeProto*>;

/// The attribute itself, or what it refers to; nullptr when the call omits it. Throws OperatorError for
/// references outside of functions.
const onnx::AttributeProto* resolve(const onnx::AttributeProto& attribute,
                                    const AttributeEnvironment* environment);

/// The kind an attribute has; models of IR version 1 leave the type out. 0: undefined.
int attribute_type(const onnx::AttributeProto& attribute);

/// All attributes of a node but graphs (which throw, as do lists of tensors, types and duplicates:
/// OperatorError).
ir::Attributes import_attributes(const onnx::NodeProto& node, const AttributeEnvironment* environment,
                                 const Limits& limits, ExternalData* external);

}  // namespace gcompile::frontend
