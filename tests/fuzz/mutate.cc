#include "tests/fuzz/mutate.h"

#include <cstring>
#include <limits>
#include <set>

#include "ir/graph/operator.h"

namespace gcompile::fuzz {
namespace {

using onnx::AttributeProto;
using onnx::GraphProto;
using onnx::ModelProto;
using onnx::NodeProto;
using onnx::TensorProto;

constexpr std::int64_t kNumbers[] = {0,
                                     1,
                                     -1,
                                     2,
                                     3,
                                     7,
                                     64,
                                     -5,
                                     65536,
                                     std::int64_t{1} << 31,
                                     std::numeric_limits<std::int64_t>::max(),
                                     std::numeric_limits<std::int64_t>::min()};
constexpr float kReals[] = {0.0f,
                            1.0f,
                            -1.0f,
                            0.5f,
                            1e30f,
                            std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()};
constexpr std::int64_t kSizes[] = {0, 1, 2, 3, 5, 8, 100, 70000, std::int64_t{1} << 31, std::int64_t{1} << 62,
                                   -1};
constexpr const char* kTexts[] = {"",    "SAME_UPPER", "bidirectional", "linear", "reflect", "tanh",
                                  "CRD", "\xff\"\n",   "ij->ji",        "...",    "LEFT",    "max"};

/// The model's graph or, inside it, a branch of an If.
GraphProto& some_graph(ModelProto& model, Choice& choice) {
  std::vector<GraphProto*> graphs = {model.mutable_graph()};
  for (NodeProto& node : *model.mutable_graph()->mutable_node()) {
    for (AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) graphs.push_back(attribute.mutable_g());
    }
  }
  return *graphs[choice.pick(graphs.size())];
}

NodeProto* some_node(ModelProto& model, Choice& choice) {
  GraphProto& graph = some_graph(model, choice);
  if (graph.node_size() == 0) return nullptr;
  return graph.mutable_node(static_cast<int>(choice.pick(static_cast<std::size_t>(graph.node_size()))));
}

/// Names of values, in the order of their definition.
std::vector<std::string> names_of(const GraphProto& graph) {
  std::vector<std::string> names;
  for (const auto& input : graph.input()) names.push_back(input.name());
  for (const auto& tensor : graph.initializer()) names.push_back(tensor.name());
  for (const auto& node : graph.node()) {
    names.insert(names.end(), node.output().begin(), node.output().end());
  }
  return names;
}

bool change_operand(ModelProto& model, Choice& choice) {
  NodeProto* node = some_node(model, choice);
  if (!node) return false;
  const std::size_t action = choice.pick(5);
  if (action == 0) {
    node->add_input("");
    return true;
  }
  if (node->input_size() == 0) return false;
  const int slot = static_cast<int>(choice.pick(static_cast<std::size_t>(node->input_size())));
  if (action == 1) {
    node->set_input(slot, "");
  } else if (action == 2) {
    node->mutable_input()->DeleteSubrange(slot, 1);
  } else if (action == 3) {
    node->add_input(node->input(slot));
  } else {
    const std::vector<std::string> names = names_of(model.graph());
    if (names.empty()) return false;
    node->set_input(slot, names[choice.pick(names.size())]);
  }
  return true;
}

bool change_result(ModelProto& model, Choice& choice) {
  NodeProto* node = some_node(model, choice);
  if (!node) return false;
  const std::size_t action = choice.pick(5);
  if (action == 0) {
    node->add_output("more");
    model.mutable_graph()->add_output()->set_name("more");
    return true;
  }
  if (action == 1) {
    node->add_output("");
    return true;
  }
  if (node->output_size() == 0) return false;
  const int slot = static_cast<int>(choice.pick(static_cast<std::size_t>(node->output_size())));
  if (action == 2) {
    node->set_output(slot, "");
  } else if (action == 3) {
    node->mutable_output()->DeleteSubrange(slot, 1);
  } else {
    node->add_output(node->output(slot));
  }
  return true;
}

void set_value(AttributeProto& attribute, int type, Choice& choice) {
  const std::string name = attribute.name();
  attribute.Clear();
  attribute.set_name(name);
  attribute.set_type(static_cast<AttributeProto::AttributeType>(type));
  switch (type) {
    case AttributeProto::INT:
      attribute.set_i(choice.one_of(kNumbers));
      break;
    case AttributeProto::FLOAT:
      attribute.set_f(choice.one_of(kReals));
      break;
    case AttributeProto::STRING:
      attribute.set_s(choice.one_of(kTexts));
      break;
    case AttributeProto::INTS:
      for (std::size_t count = choice.pick(4); count > 0; --count)
        attribute.add_ints(choice.one_of(kNumbers));
      break;
    case AttributeProto::FLOATS:
      for (std::size_t count = choice.pick(3); count > 0; --count)
        attribute.add_floats(choice.one_of(kReals));
      break;
    case AttributeProto::STRINGS:
      for (std::size_t count = choice.pick(3); count > 0; --count)
        attribute.add_strings(choice.one_of(kTexts));
      break;
    case AttributeProto::TENSOR:
      attribute.mutable_t()->set_data_type(TensorProto::INT64);
      attribute.mutable_t()->add_dims(1);
      attribute.mutable_t()->add_int64_data(choice.one_of(kNumbers));
      break;
    default:
      break;
  }
}

constexpr int kKinds[] = {AttributeProto::INT,    AttributeProto::FLOAT,  AttributeProto::STRING,
                          AttributeProto::INTS,   AttributeProto::FLOATS, AttributeProto::STRINGS,
                          AttributeProto::TENSOR, AttributeProto::GRAPH};

bool change_attribute(ModelProto& model, Choice& choice) {
  NodeProto* node = some_node(model, choice);
  if (!node || node->attribute_size() == 0) return false;
  const int at = static_cast<int>(choice.pick(static_cast<std::size_t>(node->attribute_size())));
  AttributeProto& attribute = *node->mutable_attribute(at);
  switch (choice.pick(6)) {
    case 0:
      node->mutable_attribute()->DeleteSubrange(at, 1);
      return true;
    case 1:
      set_value(attribute, attribute.type(), choice);
      return true;
    case 2:
      set_value(attribute, choice.one_of(kKinds), choice);
      return true;
    case 3:
      if (attribute.ints_size() == 0) return false;
      attribute.set_ints(static_cast<int>(choice.pick(static_cast<std::size_t>(attribute.ints_size()))),
                         choice.one_of(kNumbers));
      return true;
    case 4:
      if (attribute.ints_size() == 0) return false;
      attribute.add_ints(choice.one_of(kNumbers));
      return true;
    default:
      if (attribute.ints_size() == 0) return false;
      attribute.mutable_ints()->RemoveLast();
      return true;
  }
}

/// Gives a node an attribute that its record lists.
bool add_attribute(ModelProto& model, Choice& choice) {
  NodeProto* node = some_node(model, choice);
  const ir::Operator* op = node ? ir::find_operator(node->domain(), node->op_type()) : nullptr;
  if (!op || op->attributes.empty()) return false;
  const ir::AttributeSpec& spec = op->attributes[choice.pick(op->attributes.size())];
  for (const AttributeProto& present : node->attribute()) {
    if (present.name() == spec.name) return false;
  }
  AttributeProto& added = *node->add_attribute();
  added.set_name(std::string(spec.name));
  constexpr int kOfKind[] = {AttributeProto::INT,   AttributeProto::FLOAT,  AttributeProto::STRING,
                             AttributeProto::INTS,  AttributeProto::FLOATS, AttributeProto::STRINGS,
                             AttributeProto::TENSOR};
  set_value(added, kOfKind[static_cast<std::size_t>(spec.kind)], choice);
  return true;
}

bool change_input_type(ModelProto& model, Choice& choice) {
  GraphProto& graph = *model.mutable_graph();
  if (graph.input_size() == 0) return false;
  auto& input =
      *graph.mutable_input(static_cast<int>(choice.pick(static_cast<std::size_t>(graph.input_size()))));
  input.mutable_type()->mutable_tensor_type()->set_elem_type(static_cast<int>(choice.pick(24)));
  return true;
}

bool change_input_shape(ModelProto& model, Choice& choice) {
  GraphProto& graph = *model.mutable_graph();
  if (graph.input_size() == 0) return false;
  auto& input =
      *graph.mutable_input(static_cast<int>(choice.pick(static_cast<std::size_t>(graph.input_size()))));
  auto& dims = *input.mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim();
  const std::size_t action = choice.pick(3);
  if (action == 0) {
    dims.Add()->set_dim_value(choice.one_of(kSizes));
    return true;
  }
  if (dims.empty()) return false;
  const int axis = static_cast<int>(choice.pick(static_cast<std::size_t>(dims.size())));
  if (action == 1) {
    dims.DeleteSubrange(axis, 1);
  } else {
    dims[axis].set_dim_value(choice.one_of(kSizes));
  }
  return true;
}

TensorProto* some_tensor(ModelProto& model, Choice& choice) {
  std::vector<TensorProto*> tensors;
  for (TensorProto& tensor : *model.mutable_graph()->mutable_initializer()) tensors.push_back(&tensor);
  for (NodeProto& node : *model.mutable_graph()->mutable_node()) {
    for (AttributeProto& attribute : *node.mutable_attribute()) {
      if (attribute.has_t()) tensors.push_back(attribute.mutable_t());
    }
  }
  return tensors.empty() ? nullptr : tensors[choice.pick(tensors.size())];
}

bool change_tensor(ModelProto& model, Choice& choice) {
  TensorProto* tensor = some_tensor(model, choice);
  if (!tensor) return false;
  const std::size_t action = choice.pick(4);
  if (action == 0) {
    tensor->set_data_type(static_cast<int>(choice.pick(24)));
    return true;
  }
  if (action == 1) {
    tensor->add_dims(choice.one_of(kSizes));
    return true;
  }
  if (action == 2) {
    if (tensor->dims_size() == 0) return false;
    tensor->set_dims(static_cast<int>(choice.pick(static_cast<std::size_t>(tensor->dims_size()))),
                     choice.one_of(kSizes));
    return true;
  }
  // Another value of an integer constant: shapes, axes and indices.
  const std::int64_t value = choice.one_of(kNumbers);
  if (tensor->int64_data_size() > 0) {
    tensor->set_int64_data(static_cast<int>(choice.pick(static_cast<std::size_t>(tensor->int64_data_size()))),
                           value);
    return true;
  }
  std::string& bytes = *tensor->mutable_raw_data();
  if (bytes.size() < sizeof value) return false;
  const std::size_t at = choice.pick(bytes.size() / sizeof value);
  std::memcpy(bytes.data() + at * sizeof value, &value, sizeof value);
  return true;
}

/// A constant becomes an input.
bool free_tensor(ModelProto& model, Choice& choice) {
  GraphProto& graph = *model.mutable_graph();
  if (graph.initializer_size() == 0) return false;
  const int at = static_cast<int>(choice.pick(static_cast<std::size_t>(graph.initializer_size())));
  const TensorProto tensor = graph.initializer(at);
  graph.mutable_initializer()->DeleteSubrange(at, 1);
  for (const auto& input : graph.input()) {
    if (input.name() == tensor.name()) return true;
  }
  auto& input = *graph.add_input();
  input.set_name(tensor.name());
  input.mutable_type()->mutable_tensor_type()->set_elem_type(tensor.data_type());
  auto& shape = *input.mutable_type()->mutable_tensor_type()->mutable_shape();
  for (const std::int64_t size : tensor.dims()) shape.add_dim()->set_dim_value(size);
  return true;
}

/// A small input of float32, int64, int32 or bool becomes a constant of one value.
bool bind_input(ModelProto& model, Choice& choice) {
  GraphProto& graph = *model.mutable_graph();
  if (graph.input_size() == 0) return false;
  const int at = static_cast<int>(choice.pick(static_cast<std::size_t>(graph.input_size())));
  const auto& type = graph.input(at).type().tensor_type();
  TensorProto tensor;
  tensor.set_name(graph.input(at).name());
  tensor.set_data_type(type.elem_type());
  std::int64_t count = 1;
  for (const auto& dim : type.shape().dim()) {
    tensor.add_dims(dim.dim_value());
    count = dim.dim_value() < 0 || dim.dim_value() > 1000 ? 0 : count * dim.dim_value();
    if (count <= 0 || count > 1000) return false;
  }
  const std::size_t value = choice.pick(4);
  for (std::int64_t i = 0; i < count; ++i) {
    switch (type.elem_type()) {
      case TensorProto::FLOAT:
        tensor.add_float_data(kReals[value]);
        break;
      case TensorProto::INT64:
        tensor.add_int64_data(kNumbers[value]);
        break;
      case TensorProto::INT32:
      case TensorProto::BOOL:
      case TensorProto::UINT8:
      case TensorProto::INT8:
        tensor.add_int32_data(value == 2 ? 1 : static_cast<int>(value));
        break;
      default:
        return false;
    }
  }
  graph.mutable_input()->DeleteSubrange(at, 1);
  *graph.add_initializer() = tensor;
  return true;
}

bool change_operator(ModelProto& model, Choice& choice) {
  NodeProto* node = some_node(model, choice);
  if (!node) return false;
  const auto all = ir::all_operators();
  const ir::Operator& op = *all[choice.pick(all.size())];
  node->set_op_type(std::string(op.name));
  node->set_domain(std::string(op.domain));
  return true;
}

/// A new node on values of the graph, whose results become outputs.
bool add_node(ModelProto& model, Choice& choice) {
  const std::vector<std::string> names = names_of(model.graph());
  if (names.empty()) return false;
  const auto all = ir::all_operators();
  const ir::Operator& op = *all[choice.pick(all.size())];
  NodeProto& node = *model.mutable_graph()->add_node();
  node.set_op_type(std::string(op.name));
  node.set_domain(std::string(op.domain));
  const int most = op.operands.max < 0 ? op.operands.min + 3 : op.operands.max;
  const int count =
      op.operands.min + static_cast<int>(choice.pick(static_cast<std::size_t>(most - op.operands.min + 1)));
  for (int i = 0; i < count; ++i) node.add_input(names[choice.pick(names.size())]);
  const int results = std::max(1, op.results.min + static_cast<int>(choice.pick(2)));
  for (int i = 0; i < results; ++i) {
    const std::string name = "new" + std::to_string(model.graph().node_size()) + "_" + std::to_string(i);
    node.add_output(name);
    model.mutable_graph()->add_output()->set_name(name);
  }
  for (const ir::AttributeSpec& spec : op.attributes) {
    if (!spec.required) continue;
    AttributeProto& added = *node.add_attribute();
    added.set_name(std::string(spec.name));
    constexpr int kOfKind[] = {AttributeProto::INT,   AttributeProto::FLOAT,  AttributeProto::STRING,
                               AttributeProto::INTS,  AttributeProto::FLOATS, AttributeProto::STRINGS,
                               AttributeProto::TENSOR};
    set_value(added, kOfKind[static_cast<std::size_t>(spec.kind)], choice);
  }
  return true;
}

bool drop_node(ModelProto& model, Choice& choice) {
  GraphProto& graph = some_graph(model, choice);
  if (graph.node_size() == 0) return false;
  graph.mutable_node()->DeleteSubrange(
      static_cast<int>(choice.pick(static_cast<std::size_t>(graph.node_size()))), 1);
  return true;
}

bool change_opset(ModelProto& model, Choice& choice) {
  if (model.opset_import_size() == 0) return false;
  model.mutable_opset_import(0)->set_version(static_cast<std::int64_t>(choice.pick(28)));
  return true;
}

bool change_output(ModelProto& model, Choice& choice) {
  GraphProto& graph = *model.mutable_graph();
  const std::vector<std::string> names = names_of(graph);
  if (names.empty()) return false;
  if (choice.pick(3) == 0 && graph.output_size() > 1) {
    graph.mutable_output()->DeleteSubrange(
        static_cast<int>(choice.pick(static_cast<std::size_t>(graph.output_size()))), 1);
  } else {
    graph.add_output()->set_name(names[choice.pick(names.size())]);
  }
  return true;
}

/// A node moves into both branches of an If whose condition is a new input.
bool wrap_in_if(ModelProto& model, Choice& choice) {
  GraphProto& graph = *model.mutable_graph();
  if (graph.node_size() == 0) return false;
  NodeProto& node =
      *graph.mutable_node(static_cast<int>(choice.pick(static_cast<std::size_t>(graph.node_size()))));
  const NodeProto inner = node;
  node.Clear();
  node.set_op_type("If");
  node.set_name("If_" + inner.name());
  const std::string condition = "condition" + std::to_string(graph.input_size());
  node.add_input(condition);
  for (const char* name : {"then_branch", "else_branch"}) {
    AttributeProto& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(AttributeProto::GRAPH);
    attribute.mutable_g()->set_name(name);
    *attribute.mutable_g()->add_node() = inner;
    for (const std::string& output : inner.output()) {
      if (!output.empty()) attribute.mutable_g()->add_output()->set_name(output);
    }
  }
  for (const std::string& output : inner.output()) {
    if (!output.empty()) node.add_output(output);
  }
  auto& input = *graph.add_input();
  input.set_name(condition);
  input.mutable_type()->mutable_tensor_type()->set_elem_type(TensorProto::BOOL);
  input.mutable_type()->mutable_tensor_type()->mutable_shape();
  return true;
}

}  // namespace

const std::vector<Mutator>& mutators() {
  static const std::vector<Mutator> all = {{"change_operand", change_operand},
                                           {"change_result", change_result},
                                           {"change_attribute", change_attribute},
                                           {"add_attribute", add_attribute},
                                           {"change_input_type", change_input_type},
                                           {"change_input_shape", change_input_shape},
                                           {"change_tensor", change_tensor},
                                           {"free_tensor", free_tensor},
                                           {"bind_input", bind_input},
                                           {"change_operator", change_operator},
                                           {"add_node", add_node},
                                           {"drop_node", drop_node},
                                           {"change_opset", change_opset},
                                           {"change_output", change_output},
                                           {"wrap_in_if", wrap_in_if}};
  return all;
}

void mutate(ModelProto& model, Choice& choice) {
  for (std::size_t left = 1 + choice.pick(4); left > 0; --left) choice.one_of(mutators()).run(model, choice);
  // Declared types of values inside are hints that would only be warned about.
  model.mutable_graph()->clear_value_info();
}

std::vector<ModelProto> smaller_models(const ModelProto& model) {
  std::vector<ModelProto> smaller;
  const auto without = [&](auto list, int count) {
    for (int i = 0; i < count; ++i) {
      ModelProto& next = smaller.emplace_back(model);
      list(next)->DeleteSubrange(i, 1);
    }
  };
  const GraphProto& graph = model.graph();
  without([](ModelProto& m) { return m.mutable_graph()->mutable_node(); }, graph.node_size());
  without([](ModelProto& m) { return m.mutable_graph()->mutable_output(); }, graph.output_size());
  without([](ModelProto& m) { return m.mutable_graph()->mutable_initializer(); }, graph.initializer_size());
  without([](ModelProto& m) { return m.mutable_graph()->mutable_input(); }, graph.input_size());
  without([](ModelProto& m) { return m.mutable_metadata_props(); }, model.metadata_props_size());
  for (int n = 0; n < graph.node_size(); ++n) {
    without([n](ModelProto& m) { return m.mutable_graph()->mutable_node(n)->mutable_attribute(); },
            graph.node(n).attribute_size());
    without([n](ModelProto& m) { return m.mutable_graph()->mutable_node(n)->mutable_output(); },
            graph.node(n).output_size());
    without([n](ModelProto& m) { return m.mutable_graph()->mutable_node(n)->mutable_input(); },
            graph.node(n).input_size());
  }
  return smaller;
}

}  // namespace gcompile::fuzz
