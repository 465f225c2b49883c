#pragma once
// What a model takes and gives at run time, by what it declares, before it can be imported.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/files/limits.h"

namespace onnx {
class GraphProto;
class TypeProto;
class TypeProto_Tensor;
}  // namespace onnx

namespace gcompile::frontend {

/// The tensor that a type is made of: tensor, sequence(tensor), optional(tensor) or
/// optional(sequence(tensor)); null of all others.
struct PortType {
  bool is_optional = false;
  bool is_sequence = false;
  const onnx::TypeProto_Tensor* tensor = nullptr;
};
PortType port_type(const onnx::TypeProto& type);

/// An axis as a model declares it: a size, or a name where it is open, which may be empty.
struct PortDim {
  std::int64_t size = -1;
  std::string name;
};

struct ModelPort {
  std::string name;
  bool is_optional = false;
  bool is_sequence = false;
  /// Element k of a sequence is called prefix + k. No name among inputs and outputs is one of another's
  /// elements: of "x" the prefix is "x_", or has more underscores.
  std::string prefix = {};
  std::string type = {};  // of the elements, as ONNX calls it; empty where there is no tensor
  bool has_shape = false;
  std::vector<PortDim> dims = {};

  std::string element(std::size_t k) const { return prefix + std::to_string(k); }
};

/// The ports of a model in the order of its graph; the inputs are those without an initializer.
struct ModelPorts {
  std::vector<ModelPort> inputs, outputs;

  const ModelPort* input(std::string_view name) const;
  const ModelPort* output(std::string_view name) const;
};

/// What else a model says of itself.
struct ModelDeclaration {
  ModelPorts ports;
  std::string producer, domain, description, graph, graph_description;
  std::int64_t version = 0;
  std::map<std::string, std::string> metadata;
};

ModelPorts ports_of(const onnx::GraphProto& graph);
/// Throws as import_model_file.
ModelPorts model_ports(const std::string& path, const Limits& limits);
ModelDeclaration model_declaration(const std::string& path, const Limits& limits);

}  // namespace gcompile::frontend
