#pragma once
// Nodes may stand in any order in a model; names connect them.

#include <onnx/onnx_pb.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/diagnostics.h"

namespace gcompile::frontend {

using NodeList = google::protobuf::RepeatedPtrField<onnx::NodeProto>;

/// The node's name for messages: its own, else that of its first output:
/// "'conv1'", "unnamed node making 'y'".
std::string shown_name(const onnx::NodeProto& node);
/// Its own name, else that of its first output.
std::string name_of(const onnx::NodeProto& node);

/// Names that the graph (with the graphs inside it) takes from around it, in order of first use.
std::vector<std::string> free_names(const onnx::GraphProto& graph);
/// Names a node uses: inputs, then free names of its graphs.
std::vector<std::string> used_names(const onnx::NodeProto& node);

using NameTest = std::function<bool(const std::string&)>;

/// Indices of the nodes, producers before users, otherwise as in the model. `known` tells names that exist
/// before the first node, `defined_here` those of them that this graph must not define again. Names made
/// twice, names nobody makes (both collected in `unusable`) and cycles are errors; the nodes of a cycle are
/// left out, as are Constant nodes that a later one of the same name replaces.
std::vector<int> order_nodes(const NodeList& nodes, const NameTest& known, const NameTest& defined_here,
                             const std::string& graph_name, Diagnostics& diagnostics,
                             std::set<std::string>& unusable);

}  // namespace gcompile::frontend
