// One trip of a Loop or Scan after the other: the body with its inputs bound to what the trip before has left.

#include "frontend/import/trips.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/interrupt.h"
#include "frontend/files/tensor_import.h"

namespace gcompile::frontend {

namespace {

/// Nodes of a graph and of those inside it.
std::int64_t nodes_in(const onnx::GraphProto& graph) {
  std::int64_t nodes = graph.node_size();
  for (const onnx::NodeProto& node : graph.node()) {
    for (const onnx::AttributeProto& attribute : node.attribute()) {
      if (attribute.has_g()) nodes += nodes_in(attribute.g());
    }
  }
  return nodes;
}

/// The type of elements of a tensor or of those in a sequence.
std::optional<ir::ElementType> element_of(const Binding& binding, const ir::Graph& graph) {
  if (binding.state == Binding::State::kSequence) return binding.sequence->element;
  if (binding.state == Binding::State::kValue) return graph.value(binding.value).type.element;
  return std::nullopt;
}

}  // namespace

/// Checks what the body takes and gives, and imports what all trips share.
void Importer::Trips::begin(int first_operand, int first_result, int carried) {
  first_result_ = first_result;
  carried_ = carried;
  rows_ = body_->output_size() - first_result - carried;
  const int inputs = node_.input_size() - first_operand;
  if (carried < 0 || rows_ < 0 || body_->input_size() != inputs ||
      node_.output_size() > body_->output_size() - first_result) {
    malformed(fmt::format("the body has {} inputs and {} outputs, which does not fit the node's {} and {}",
                          body_->input_size(), body_->output_size(), node_.input_size(),
                          node_.output_size()));
  }
  std::set<std::string> names;
  for (const onnx::ValueInfoProto& input : body_->input()) {
    if (input.name().empty() || !names.insert(input.name()).second) {
      malformed(fmt::format("an input of the body has the name '{}'{}", printable(input.name()),
                            input.name().empty() ? "" : " of another one"));
    }
  }
  inside_ = *body_;
  inside_.clear_input();
  inside_.clear_initializer();
  inside_.clear_sparse_initializer();
  nodes_of_trip_ = 1 + nodes_in(inside_) + rows_ + body_->input_size();
  once_ = scope_.inside(*scope_.graph);
  once_.outer = &scope_;
  once_.graph_name = body_->name();
  once_.prefix = name_ + "/";
  once_.is_repeated = true;
  importer_.import_initializers(*body_, once_);
}

Scope Importer::Trips::scope_of_trip(const std::string& number, const Bindings& inputs) {
  Scope inner = once_.inside(*scope_.graph);
  inner.outer = &once_;
  inner.graph_depth = once_.graph_depth;
  inner.prefix = fmt::format("{}/{}/", name_, number);
  inner.place = fmt::format(", in trip {} of {} {}{}", number, op_.name, shown_name(node_), scope_.place);
  for (int i = 0; i < body_->input_size(); ++i) {
    const onnx::ValueInfoProto& input = body_->input(i);
    const Binding& given = inputs[static_cast<std::size_t>(i)];
    if (const auto element = element_of(given, *scope_.graph)) {
      const PortType type = port_type(input.type());
      const int declared = type.tensor ? type.tensor->elem_type() : onnx::TensorProto::UNDEFINED;
      if (declared != onnx::TensorProto::UNDEFINED && element_type_of(declared) != *element) {
        malformed(fmt::format("the body's input '{}' is declared with elements of {}, and given {}",
                              printable(input.name()), onnx_type_name(declared),
                              describe(given, *scope_.graph)));
      }
    }
    importer_.bind(inner, input.name(), given);
  }
  return inner;
}

/// Throws before a trip that the budget of calls and trips does not allow.
void Importer::Trips::count_trip() {
  poll_interrupt();
  const int limit = importer_.options_.limits.nodes_of_calls;
  if (importer_.nodes_of_calls_ + nodes_of_trip_ > limit) {
    throw MadeError{
        "E0004",
        {fmt::format("with {} nodes a trip, its trips make more nodes than the limit of {}", nodes_of_trip_,
                     limit),
         "every trip becomes nodes of its own; compile the body and write the loop around its run"}};
  }
  importer_.nodes_of_calls_ +=
      1 + rows_ + body_->input_size();  // the body's own are counted where they are imported
}

/// The body's outputs.
Importer::Trips::Bindings Importer::Trips::trip(const std::string& number, const Bindings& inputs) {
  count_trip();
  Scope inner = scope_of_trip(number, inputs);
  if (!order_) order_ = importer_.order_in(body_->node(), inner);
  importer_.import_nodes(body_->node(), *order_, inner);
  // What is wrong in one trip is wrong in all: it is said once.
  for (const auto& [name, binding] : inner.names) {
    if (binding.state == Binding::State::kPoisoned) throw Poisoned{};
  }
  Bindings outputs;
  for (const onnx::ValueInfoProto& output : body_->output()) {
    const Binding* made = inner.find(output.name());
    if (!made) {
      throw MadeError{
          "E0501",
          {fmt::format("the body has an output '{}', which nothing makes", printable(output.name())), ""}};
    }
    outputs.push_back(*made);
  }
  return outputs;
}

/// The condition and the carried values behind a trip that is made where the condition holds.
Importer::Trips::Bindings Importer::Trips::guarded_trip(const std::string& number, const Bindings& inputs) {
  count_trip();
  Scope inner = scope_of_trip(number, inputs);
  if (choice_.op_type().empty()) {
    choice_.set_op_type("If");
    choice_.set_name(choice_.op_type());
    choice_.add_input(body_->input(1).name());
    onnx::AttributeProto& then_branch = *choice_.add_attribute();
    then_branch.set_name("then_branch");
    *then_branch.mutable_g() = inside_;
    then_branch.mutable_g()->mutable_output()->DeleteSubrange(1 + carried_, rows_);
    onnx::AttributeProto& else_branch = *choice_.add_attribute();
    else_branch.set_name("else_branch");
    for (int i = 0; i <= carried_; ++i) {
      else_branch.mutable_g()->add_output()->set_name(body_->input(i + 1).name());
      std::string name = fmt::format("{}/next", body_->input(i + 1).name());
      while (inner.names.count(name) > 0) name += "'";
      choice_.add_output(name);
    }
  }
  importer_.import_if(choice_, ir::operator_named("If"), inner);
  Bindings outputs;
  for (const std::string& name : choice_.output()) {
    const Binding* made = inner.find(name);
    if (!made || made->state == Binding::State::kPoisoned) throw Poisoned{};
    outputs.push_back(*made);
  }
  return outputs;
}

ir::ValueId Importer::Trips::zeros(ir::TensorType type, const std::string& name) {
  if (!ir::are_constant(type.shape) || type.count() > importer_.options_.limits.tensor_elements) {
    operator_error(fmt::format("no trip is made, and a value of it would be {}", ir::to_string(type)));
  }
  return scope_.graph->add_constant(ir::Tensor(std::move(type)), name);
}

/// The rows, which are of one type and at least one, along a new axis.
ir::ValueId Importer::Trips::stacked(const Values& rows, std::int64_t axis, bool is_backward,
                                     const std::string& name) {
  for (const ir::ValueId row : rows) {
    if (type(row) == type(rows[0])) continue;
    operator_error(fmt::format("what trips give for the output '{}' is {} in the first one and {} in another",
                               printable(name), ir::to_string(type(rows[0])), ir::to_string(type(row))));
  }
  return stack(rows, axis, is_backward, name);
}

/// What the body gives for output k behind the carried ones is of this type; where no trip is made.
ir::TensorType Importer::Trips::row_type(const Bindings& inputs, int k) {
  count_trip();
  const Scope inner = scope_of_trip("0", inputs);
  const Branch branch =
      importer_.import_branch(inside_, importer_.captures_of({&inside_}, inner), inner, name_, {});
  if (branch.poisoned) throw Poisoned{};
  importer_.refuse_counts(branch);
  if (!branch.graph.trap.empty()) operator_error(branch.graph.trap);
  return branch.graph.value(row_of(branch.outputs, k)).type;
}

/// Output k behind the carried ones.
ir::ValueId Importer::Trips::row_of(const Bindings& outputs, int k) const {
  const int i = first_result_ + carried_ + k;
  return tensor_of(outputs[static_cast<std::size_t>(i)],
                   fmt::format("the body's output '{}'", printable(body_->output(i).name())));
}

void Importer::Trips::require_condition(const Binding& condition) const {
  const ir::TensorType& given = type(tensor_of(condition, "the condition"));
  if (given.element != ir::ElementType::kBool || given.count() != 1) {
    operator_error(fmt::format("the condition must be one bool, not {}", ir::to_string(given)));
  }
}

/// The carried value at input i of the body becomes what a trip has made of it. A sequence may grow, and an
/// optional get an element or lose it.
void Importer::Trips::require_type(int i, const Binding& given, const Binding& made, bool any_shape) const {
  using State = Binding::State;
  if (given.state == State::kOmitted || made.state == State::kOmitted) return;
  const bool is_same = any_shape || given.state == State::kSequence
                           ? element_of(given, *scope_.graph) == element_of(made, *scope_.graph)
                           : made.state == State::kValue && type(given.value) == type(made.value);
  if (given.state == made.state && is_same) return;
  operator_error(fmt::format("the body makes {} of the carried value '{}', which is {}",
                             describe(made, *scope_.graph), printable(body_->input(i).name()),
                             describe(given, *scope_.graph)));
}

}  // namespace gcompile::frontend
