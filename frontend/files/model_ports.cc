#include "frontend/files/model_ports.h"

#include <onnx/onnx_pb.h>

#include <algorithm>
#include <set>

#include "frontend/files/file_bytes.h"
#include "frontend/files/model_file.h"

namespace gcompile::frontend {

std::string onnx_type_name(int onnx_type);  // frontend/files/tensor_import.h, which reaches the graph

namespace {

/// Names from prefix + "0" to prefix + "9", and those that go on behind them.
bool has_element(const std::set<std::string>& names, const std::string& prefix) {
  const auto first = names.lower_bound(prefix + "0");
  return first != names.end() && *first < prefix + ":";
}

ModelPort port_of(const onnx::ValueInfoProto& info, std::set<std::string>& taken) {
  const PortType type = port_type(info.type());
  ModelPort port{info.name(), type.is_optional, type.is_sequence};
  if (type.tensor != nullptr) {
    port.type = onnx_type_name(type.tensor->elem_type());
    port.has_shape = type.tensor->has_shape();
    for (const auto& dim : type.tensor->shape().dim())
      port.dims.push_back(dim.has_dim_value() && dim.dim_value() >= 0 ? PortDim{dim.dim_value(), ""}
                                                                      : PortDim{-1, dim.dim_param()});
  }
  if (!type.is_sequence) return port;
  port.prefix = info.name() + "_";
  while (has_element(taken, port.prefix)) port.prefix += "_";
  taken.insert(port.element(0));
  return port;
}

onnx::ModelProto read_model(const std::string& path, const Limits& limits) {
  const std::string bytes = read_file(path, limits.file_bytes);
  return is_text_name(path) ? parse_model_text(bytes, limits) : parse_model_bytes(bytes, limits);
}

const ModelPort* find(const std::vector<ModelPort>& ports, std::string_view name) {
  const auto at =
      std::find_if(ports.begin(), ports.end(), [&](const ModelPort& port) { return port.name == name; });
  return at == ports.end() ? nullptr : &*at;
}

}  // namespace

PortType port_type(const onnx::TypeProto& type) {
  PortType found;
  const onnx::TypeProto* inner = &type;
  found.is_optional = inner->has_optional_type();
  if (found.is_optional) inner = &inner->optional_type().elem_type();
  found.is_sequence = inner->has_sequence_type();
  if (found.is_sequence) inner = &inner->sequence_type().elem_type();
  if (inner->has_tensor_type()) found.tensor = &inner->tensor_type();
  return found;
}

const ModelPort* ModelPorts::input(std::string_view name) const { return find(inputs, name); }
const ModelPort* ModelPorts::output(std::string_view name) const { return find(outputs, name); }

ModelPorts ports_of(const onnx::GraphProto& graph) {
  std::set<std::string> constants, taken;
  for (const onnx::TensorProto& tensor : graph.initializer()) constants.insert(tensor.name());
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) {
    constants.insert(tensor.values().name());
  }
  for (const onnx::ValueInfoProto& input : graph.input()) taken.insert(input.name());
  for (const onnx::ValueInfoProto& output : graph.output()) taken.insert(output.name());
  ModelPorts ports;
  for (const onnx::ValueInfoProto& input : graph.input()) {
    if (constants.count(input.name()) == 0) ports.inputs.push_back(port_of(input, taken));
  }
  for (const onnx::ValueInfoProto& output : graph.output()) ports.outputs.push_back(port_of(output, taken));
  return ports;
}

ModelPorts model_ports(const std::string& path, const Limits& limits) {
  return ports_of(read_model(path, limits).graph());
}

ModelDeclaration model_declaration(const std::string& path, const Limits& limits) {
  const onnx::ModelProto model = read_model(path, limits);
  ModelDeclaration found;
  found.ports = ports_of(model.graph());
  found.producer = model.producer_name();
  found.domain = model.domain();
  found.description = model.doc_string();
  found.graph = model.graph().name();
  found.graph_description = model.graph().doc_string();
  found.version = model.model_version();
  for (const auto& entry : model.metadata_props()) found.metadata[entry.key()] = entry.value();
  return found;
}

}  // namespace gcompile::frontend
