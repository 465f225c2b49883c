// Functions of the model, those that ONNX's schemas have for operators without a record, and those that a node of
// FlexAttention brings along: inlined where they are called.

#include <fmt/format.h>

#include <algorithm>

#include "frontend/files/tensor_import.h"
#include "frontend/import/made_nodes.h"
#include "frontend/import/schema_function.h"

namespace gcompile::frontend {

AttributeEnvironment Importer::call_environment(const onnx::NodeProto& node, const Function& entry,
                                                const Scope& scope) {
  const onnx::FunctionProto& function = *entry.proto;
  AttributeEnvironment environment;
  std::set<std::string> declared(function.attribute().begin(), function.attribute().end());
  for (const onnx::AttributeProto& attribute : entry.defaults) {
    declared.insert(attribute.name());
    environment[attribute.name()] = &attribute;
  }
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (declared.count(attribute.name()) == 0) {
      operator_error(
          fmt::format("attribute '{}' is not known for this function", printable(attribute.name())));
    }
    if (const onnx::AttributeProto* given = frontend::resolve(attribute, scope.environment))
      environment[attribute.name()] = given;
  }
  return environment;
}

void Importer::import_call(const onnx::NodeProto& node, const Function& entry, Scope& scope) {
  const onnx::FunctionProto& function = *entry.proto;
  AttributeEnvironment environment;
  try {
    if (std::find(scope.calls.begin(), scope.calls.end(), &function) != scope.calls.end()) {
      operator_error("the function calls itself");
    }
    if (static_cast<int>(scope.calls.size()) >= options_.limits.function_nesting) {
      operator_error(
          fmt::format("functions are nested deeper than the limit of {}", options_.limits.function_nesting));
    }
    if (node.input_size() > function.input_size() || node.output_size() > function.output_size()) {
      operator_error(fmt::format("the function has {} inputs and {} outputs, the node {} and {}",
                                 function.input_size(), function.output_size(), node.input_size(),
                                 node.output_size()));
    }
    environment = call_environment(node, entry, scope);
  } catch (const OperatorError& failure) {
    node_error(diagnostics_, node, scope, "E0120", failure);
    poison_results(node, scope);
    return;
  }
  Scope body;
  body.graph = scope.graph;
  body.opsets = &entry.opsets;
  body.environment = &environment;
  body.findings = scope.findings;
  body.graph_name = scope.graph_name;
  body.prefix = scope.prefix + name_of(node) + "/";
  body.place = fmt::format(", in function '{}' called by node {}{}", printable(function.name()),
                           shown_name(node), scope.place);
  body.graph_depth = scope.graph_depth;
  body.calls = scope.calls;
  body.calls.push_back(&function);
  for (int i = 0; i < function.input_size(); ++i) {
    const std::string name = i < node.input_size() ? node.input(i) : std::string();
    const Binding* given = name.empty() ? nullptr : scope.find(name);
    bind(body, function.input(i), name.empty() ? Binding::omitted() : given ? *given : Binding{});
  }
  import_nodes(function.node(), body);
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const Binding* made = body.find(function.output(i));
    if (!made) {
      error("E0501",
            fmt::format("function '{}' has an output '{}', which nothing makes", printable(function.name()),
                        printable(function.output(i))),
            location(node, scope));
    }
    bind(scope, node.output(i), made ? *made : Binding{});
  }
}

namespace {

/// The type of an operand with those sizes that are numbers. One that is omitted has none; of one whose error
/// is elsewhere any will do.
onnx::TypeProto operand_type(const Scope& scope, const std::string& name) {
  onnx::TypeProto proto;
  const Binding* binding = name.empty() ? nullptr : scope.find(name);
  if (name.empty() || (binding && binding->state == Binding::State::kOmitted)) return proto;
  if (!binding || binding->state == Binding::State::kPoisoned) {
    proto.mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    return proto;
  }
  if (binding->state == Binding::State::kSequence) {
    onnx::TypeProto& inner = *proto.mutable_sequence_type()->mutable_elem_type();
    inner.mutable_tensor_type()->set_elem_type(onnx_type_of(binding->sequence->element));
    return proto;
  }
  const ir::TensorType& type = scope.graph->value(binding->value).type;
  proto.mutable_tensor_type()->set_elem_type(onnx_type_of(type.element));
  onnx::TensorShapeProto* shape = proto.mutable_tensor_type()->mutable_shape();
  for (const ir::Dim size : type.shape) {
    onnx::TensorShapeProto::Dimension* dim = shape->add_dim();
    if (size.is_constant()) dim->set_dim_value(size);
  }
  return proto;
}

/// The node with the attributes of the call around it in place of references to them.
onnx::NodeProto resolved_node(const onnx::NodeProto& node, const Scope& scope) {
  onnx::NodeProto resolved = node;
  resolved.clear_attribute();
  for (const onnx::AttributeProto& written : node.attribute()) {
    const onnx::AttributeProto* given = resolve(written, scope.environment);
    if (!given) continue;
    onnx::AttributeProto* added = resolved.add_attribute();
    *added = *given;
    added->set_name(written.name());
  }
  return resolved;
}

}  // namespace

bool Importer::import_schema_function(const onnx::NodeProto& node, Scope& scope) {
  const std::optional<int> opset = scope.opsets->version("");
  if (!canonical_domain(node.domain()).empty() || !opset) return false;
  try {
    const onnx::NodeProto resolved = resolved_node(node, scope);
    std::vector<onnx::TypeProto> types;
    for (const std::string& name : node.input()) types.push_back(operand_type(scope, name));
    const std::optional<SchemaFunction> made = schema_function(resolved, *opset, types);
    if (!made) return false;
    const std::string where = fmt::format("operator {}", printable(node.op_type()));
    OpsetTable opsets(made->proto.opset_import(), where, &opsets_, diagnostics_);
    import_call(resolved, {&made->proto, std::move(opsets), made->defaults}, scope);
  } catch (const OperatorError& failure) {
    node_error(diagnostics_, node, scope, "E0120", failure);
    poison_results(node, scope);
  }
  return true;
}

/// Probabilities are the softmax of the scores; either goes through a graph of the node, if it has one.
class Importer::FlexAttention : public MadeNodes {
 public:
  using MadeNodes::MadeNodes;

  void make() {
    if (node_.input_size() != 3 || node_.output_size() != 1 || !is_read(0))
      malformed("the operator has three inputs and one output");
    const ir::ValueId q = operand(0), k = operand(1), v = operand(2);
    if (type(k).element != type(q).element || type(v).element != type(q).element)
      operator_error("Q, K and V have different types");
    const ir::Attributes given = attributes_without({"score_mod", "prob_mod"});
    const bool is_double = type(q).element == ir::ElementType::kFloat64;
    ir::Attributes attributes;
    attributes.set("precision",
                   given.has("softmax_precision")
                       ? given.int_of("softmax_precision")
                       : std::int64_t{is_double ? onnx::TensorProto::DOUBLE : onnx::TensorProto::FLOAT});
    if (given.has("scale")) attributes.set("scale", given.float_of("scale"));
    const ir::ValueId scores = emit("AttentionScores", {q, k}, std::move(attributes), name_ + "/scores");
    ir::Attributes last;
    last.set("axis", std::int64_t{-1});
    const ir::ValueId probabilities =
        emit("Softmax", {changed("score_mod", scores)}, std::move(last), name_ + "/probabilities");
    bind_result(0, Binding::of(emit("AttentionSums", {changed("prob_mod", probabilities), v}, {},
                                    scope_.prefix + node_.output(0))));
  }

 private:
  /// What the graph makes of the value; the value itself where there is none.
  ir::ValueId changed(const char* attribute, ir::ValueId value) {
    const onnx::GraphProto* graph = graph_of(node_, attribute);
    if (!graph) return value;
    if (graph->input_size() != 1 || graph->output_size() != 1)
      malformed(fmt::format("the graph '{}' must have one input and one output", attribute));
    Scope body = scope_.inside(*scope_.graph);
    body.outer = &scope_;
    body.graph_name = graph->name();
    body.prefix = fmt::format("{}/{}/", name_, attribute);
    body.place =
        fmt::format(", in the graph '{}' of {} {}{}", attribute, op_.name, shown_name(node_), scope_.place);
    importer_.bind(body, graph->input(0).name(), Binding::of(value));
    importer_.import_initializers(*graph, body);
    importer_.import_nodes(graph->node(), body);
    const std::string& name = graph->output(0).name();
    const Binding* made = body.find(name);
    if (!made) {
      throw MadeError{
          "E0501",
          {fmt::format("the graph '{}' has an output '{}', which nothing makes", attribute, printable(name)),
           ""}};
    }
    const ir::ValueId result = tensor_of(*made, fmt::format("the output of the graph '{}'", attribute));
    if (type(result) != type(value)) {
      operator_error(fmt::format("the graph '{}' makes {} of {}", attribute, ir::to_string(type(result)),
                                 ir::to_string(type(value))));
    }
    return result;
  }
};

void Importer::import_flex_attention(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope) {
  import_made(node, scope, [&] { FlexAttention(*this, node, op, scope).make(); });
}

}  // namespace gcompile::frontend
