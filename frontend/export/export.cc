#include "frontend/export/export.h"

#include <fmt/format.h>
#include <onnx/onnx_pb.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/diagnostics.h"
#include "frontend/files/tensor_import.h"
#include "ir/graph/operator.h"
#include "ir/ops/spelling.h"

namespace gcompile::frontend {
namespace {

/// int4 constants need it. Later definitions of the same operators only add element types, and ONNX Runtime
/// refuses opsets that are newer than itself.
constexpr int kLeastOpset = 21;

/// IR version that came with an opset (onnx/docs/Versioning.md).
int ir_version_of(int opset) {
  if (opset <= 22) return 10;
  return opset == 23 ? 11 : opset == 24 ? 12 : 13;
}

class Exporter {
 public:
  explicit Exporter(const ir::Graph& graph) : root_(graph) {}

  std::string run() {
    check(root_);
    diagnostics_.throw_if_errors();
    onnx::ModelProto model;
    model.set_producer_name("gcompile");
    int opset = kLeastOpset;
    for (const auto& [domain, version] : versions_) {
      if (domain.empty()) opset = std::max(opset, version);
    }
    model.set_ir_version(ir_version_of(opset));
    versions_[""] = opset;
    for (const auto& [domain, version] : versions_) {
      onnx::OperatorSetIdProto* import = model.add_opset_import();
      import->set_domain(domain);
      import->set_version(version);
    }
    write_graph(root_, {}, {}, *model.mutable_graph());
    return model.SerializeAsString();
  }

 private:
  using Names = std::map<ir::ValueId, std::string>;

  void refuse(const ir::Graph& graph, const ir::Node& node, const std::string& why) {
    Diagnostic diagnostic;
    diagnostic.code = "E0601";
    diagnostic.message =
        fmt::format("{} '{}' cannot be written as ONNX: {}", node.op->name, printable(node.name), why);
    diagnostic.location = fmt::format("graph '{}'", printable(graph.name));
    diagnostics_.add(std::move(diagnostic));
  }

  /// Refuses what ONNX cannot say; notes the version of every domain in which all its operators exist.
  void check(const ir::Graph& graph) {
    for (const ir::NodeId id : graph.nodes()) {
      const ir::Node& node = graph.node(id);
      if (node.op->domain == "gcompile") refuse(graph, node, "it is an operator of this compiler");
      if (node.form) refuse(graph, node, "a pass has fused it; save the model with -O0");
      int& version = versions_[std::string(node.op->domain)];
      version = std::max(version, node.op->versions.empty() ? 1 : node.op->versions.front());
      for (const ir::Graph& branch : node.subgraphs) {
        if (!branch.trap.empty())
          refuse(graph, node, fmt::format("one branch cannot be typed: {}", branch.trap));
        check(branch);
      }
    }
  }

  /// A name that no other value of the model has.
  std::string unique(const std::string& wanted) {
    std::string name = wanted.empty() ? "value" : wanted;
    for (int k = 1; !used_.insert(name).second; ++k)
      name = fmt::format("{}_{}", wanted.empty() ? "value" : wanted, k);
    return name;
  }

  static void set_type(const std::string& name, const ir::TensorType& type, onnx::ValueInfoProto& info) {
    info.set_name(name);
    auto* tensor = info.mutable_type()->mutable_tensor_type();
    tensor->set_elem_type(onnx_type_of(type.element));
    auto* shape = tensor->mutable_shape();
    for (const std::int64_t dim : type.shape) shape->add_dim()->set_dim_value(dim);
  }

  static void set_tensor(const std::string& name, const ir::Tensor& tensor, onnx::TensorProto& proto) {
    proto.set_name(name);
    proto.set_data_type(onnx_type_of(tensor.element()));
    for (const std::int64_t dim : tensor.shape()) proto.add_dims(dim);
    const auto bytes = tensor.bytes();
    proto.set_raw_data(bytes.data(), bytes.size());
  }

  static void set_attribute(const std::string& name, const ir::AttributeValue& value, onnx::NodeProto& node) {
    using onnx::AttributeProto;
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    switch (ir::kind_of(value)) {
      case ir::AttributeKind::kInt:
        attribute.set_type(AttributeProto::INT);
        attribute.set_i(std::get<std::int64_t>(value));
        break;
      case ir::AttributeKind::kFloat:
        attribute.set_type(AttributeProto::FLOAT);
        attribute.set_f(std::get<float>(value));
        break;
      case ir::AttributeKind::kString:
        attribute.set_type(AttributeProto::STRING);
        attribute.set_s(std::get<std::string>(value));
        break;
      case ir::AttributeKind::kInts:
        attribute.set_type(AttributeProto::INTS);
        for (const std::int64_t i : std::get<std::vector<std::int64_t>>(value)) attribute.add_ints(i);
        break;
      case ir::AttributeKind::kFloats:
        attribute.set_type(AttributeProto::FLOATS);
        for (const float f : std::get<std::vector<float>>(value)) attribute.add_floats(f);
        break;
      case ir::AttributeKind::kStrings:
        attribute.set_type(AttributeProto::STRINGS);
        for (const std::string& s : std::get<std::vector<std::string>>(value)) attribute.add_strings(s);
        break;
      case ir::AttributeKind::kTensor:
        attribute.set_type(AttributeProto::TENSOR);
        set_tensor("", std::get<ir::Tensor>(value), *attribute.mutable_t());
        break;
    }
  }

  /// Writes the attributes that differ from their default: newer definitions have more of them,
  /// which opset 21 does not know.
  static void write_attributes(const ir::Node& node, onnx::NodeProto& proto) {
    ir::Attributes defaults;
    for (const ir::AttributeSpec& spec : node.op->attributes) {
      if (spec.default_value) defaults.set(std::string(spec.name), *spec.default_value);
    }
    for (const auto& [name, value] : node.attributes.all()) {
      ir::Attributes given, standard;
      given.set(name, value);
      if (defaults.has(name)) standard.set(name, defaults.all().find(name)->second);
      if (!given.identical(standard)) set_attribute(name, value, proto);
    }
  }

  /// Names of all values. Outputs of the outermost graph keep theirs;
  /// `captured` names the inputs of a branch.
  Names name_values(const ir::Graph& graph, const std::vector<std::string>& captured) {
    Names names;
    const bool outermost = &graph == &root_;
    if (outermost) {
      for (const ir::ValueId id : graph.inputs()) names[id] = unique(graph.value(id).name);
      // The first output that is a node's result names that result.
      for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
        const ir::ValueId id = graph.outputs()[i];
        used_.insert(graph.output_names()[i]);
        if (graph.value(id).producer.valid() && names.count(id) == 0) names[id] = graph.output_names()[i];
      }
    } else {
      for (std::size_t i = 0; i < captured.size(); ++i) names[graph.inputs()[i]] = captured[i];
    }
    for (const ir::ValueId id : graph.values()) {
      if (names.count(id) == 0) names[id] = unique(graph.value(id).name);
    }
    return names;
  }

  void write_graph(const ir::Graph& graph, const std::string& name, const std::vector<std::string>& captured,
                   onnx::GraphProto& proto) {
    const bool outermost = &graph == &root_;
    const Names names = name_values(graph, captured);
    proto.set_name(!graph.name.empty() ? graph.name : name.empty() ? "graph" : name);
    for (const ir::ValueId id : graph.values()) {
      const ir::Value& value = graph.value(id);
      if (value.constant && !value.producer.valid())
        set_tensor(names.at(id), *value.constant, *proto.add_initializer());
    }
    if (outermost) {
      for (const ir::ValueId id : graph.inputs())
        set_type(names.at(id), graph.value(id).type, *proto.add_input());
    }
    for (const ir::NodeId id : graph.topological_order()) write_node(graph, id, names, *proto.add_node());
    write_outputs(graph, names, proto);
  }

  void write_node(const ir::Graph& graph, ir::NodeId id, const Names& names, onnx::NodeProto& proto) {
    const ir::Node& node = graph.node(id);
    proto.set_op_type(std::string(node.op->name));
    if (!node.op->domain.empty()) proto.set_domain(std::string(node.op->domain));
    // Rewriting gives several nodes the name of the one they came from.
    std::string name = node.name;
    for (int k = 1; !name.empty() && !node_names_.insert(name).second; ++k)
      name = fmt::format("{}_{}", node.name, k);
    proto.set_name(name);
    std::vector<std::string> captured;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const std::string operand = node.operands[i].valid() ? names.at(node.operands[i]) : "";
      if (node.subgraphs.empty() || i == 0) {
        proto.add_input(operand);
      } else {
        captured.push_back(operand);
      }
    }
    for (const ir::ValueId result : node.results) proto.add_output(result.valid() ? names.at(result) : "");
    write_attributes(node, proto);
    constexpr const char* kBranches[2] = {"then_branch", "else_branch"};
    for (std::size_t i = 0; i < node.subgraphs.size(); ++i) {
      onnx::AttributeProto& attribute = *proto.add_attribute();
      attribute.set_name(kBranches[i]);
      attribute.set_type(onnx::AttributeProto::GRAPH);
      write_graph(node.subgraphs[i], kBranches[i], captured, *attribute.mutable_g());
    }
  }

  /// An output that is a constant, listed twice or an input of another name is written through Identity.
  void write_outputs(const ir::Graph& graph, const Names& names, onnx::GraphProto& proto) {
    const bool outermost = &graph == &root_;
    std::set<std::string> written;
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      const ir::ValueId id = graph.outputs()[i];
      std::string name = names.at(id);
      // ONNX lets an input be an output under its own name.
      const bool own = written.count(name) == 0 &&
                       (outermost ? name == graph.output_names()[i] : graph.value(id).producer.valid());
      if (!own) {
        onnx::NodeProto& identity = *proto.add_node();
        identity.set_op_type("Identity");
        identity.add_input(name);
        name = outermost ? graph.output_names()[i] : unique(name);
        identity.add_output(name);
      }
      written.insert(name);
      set_type(name, graph.value(id).type, *proto.add_output());
    }
  }

  const ir::Graph& root_;
  std::map<std::string, int> versions_;
  std::set<std::string> used_;  // names of values
  std::set<std::string> node_names_;
  Diagnostics diagnostics_;
};

}  // namespace

std::string export_model(const ir::Graph& graph) {
  ir::Graph spelled = graph;
  ir::spell_as_onnx(spelled);
  return Exporter(spelled).run();
}

}  // namespace gcompile::frontend
