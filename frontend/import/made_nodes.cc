#include "frontend/import/made_nodes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/interrupt.h"

namespace gcompile::frontend {

void malformed(std::string message) { throw MadeError{"E0504", {std::move(message), ""}}; }

int axis_within(std::int64_t axis, int rank) {
  if (axis < -rank || axis >= rank)
    operator_error(fmt::format("the axis {} is outside [-{}, {})", axis, rank, rank));
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

std::vector<ir::ValueId> Binding::values() const {
  if (state == State::kSequence) return sequence->values;
  return state == State::kValue ? std::vector<ir::ValueId>{value} : std::vector<ir::ValueId>();
}

Binding Binding::with(const std::vector<ir::ValueId>& values) const {
  if (state == State::kSequence) return of(Sequence{sequence->element, values});
  return state == State::kValue ? of(values.at(0)) : *this;
}

std::string describe(const Binding& binding, const ir::Graph& graph) {
  switch (binding.state) {
    case Binding::State::kValue:
      return ir::to_string(graph.value(binding.value).type);
    case Binding::State::kSequence:
      return fmt::format("a sequence of {} of {}", binding.sequence->values.size(),
                         ir::name_of(binding.sequence->element));
    case Binding::State::kOmitted:
      return "none";
    case Binding::State::kPoisoned:
      break;
  }
  return "?";
}

void Importer::import_made(const onnx::NodeProto& node, Scope& scope, const std::function<void()>& make) {
  try {
    make();
    return;
  } catch (const MadeError& failure) {
    node_error(diagnostics_, node, scope, failure.code, failure.error);
    // Where a limit is passed, what is wrong besides is of no interest.
    if (std::string_view(failure.code) == "E0004") diagnostics_.throw_if_errors();
  } catch (const ExternalDataError& failure) {
    node_error(diagnostics_, node, scope, "E0307", failure);
  } catch (const OperatorError& failure) {
    node_error(*scope.findings, node, scope, "E0201", failure);
  } catch (const Poisoned&) {
  }
  poison_results(node, scope);
}

/// Copies of sequences cost memory though they make no nodes.
void Importer::count_elements(std::size_t count) {
  bytes_of_calls_ += static_cast<std::int64_t>(count * sizeof(ir::ValueId));
  if (bytes_of_calls_ <= options_.limits.bytes_of_calls) return;
  throw MadeError{"E0004",
                  {fmt::format("sequences have more elements than the limit of {} bytes allows",
                               options_.limits.bytes_of_calls),
                   "every SequenceInsert makes a sequence of its own; one SequenceConstruct makes it once"}};
}

bool Importer::MadeNodes::has_operand(int i) const {
  if (i >= node_.input_size() || node_.input(i).empty()) return false;
  const Binding* binding = scope_.find(node_.input(i));
  return !binding || binding->state != Binding::State::kOmitted;
}

Binding Importer::MadeNodes::given(int i) const {
  if (i >= node_.input_size() || node_.input(i).empty()) return Binding::omitted();
  const Binding* binding = scope_.find(node_.input(i));
  if (!binding || binding->state == Binding::State::kPoisoned) throw Poisoned{};
  return *binding;
}

ir::ValueId Importer::MadeNodes::operand(int i) const {
  if (!has_operand(i)) malformed(fmt::format("input {} is omitted", i));
  return tensor_of(given(i), fmt::format("input {}", i));
}

ir::ValueId Importer::MadeNodes::tensor_of(const Binding& binding, std::string_view what) {
  if (binding.state == Binding::State::kPoisoned) throw Poisoned{};
  if (binding.state == Binding::State::kSequence)
    operator_error(fmt::format("{} must be a tensor, not a sequence", what));
  if (binding.state == Binding::State::kOmitted)
    operator_error(fmt::format("{} must be a tensor, not an optional without an element", what));
  return binding.value;
}

Sequence Importer::MadeNodes::sequence_of(Values values, ir::ElementType element) const {
  importer_.count_elements(values.size());
  for (const ir::ValueId value : values) {
    if (type(value).element == element) continue;
    operator_error(fmt::format("a sequence has elements of one type, not of {} and {}", ir::name_of(element),
                               ir::name_of(type(value).element)));
  }
  return {element, std::move(values)};
}

ir::Attributes Importer::MadeNodes::attributes_without(std::initializer_list<std::string_view> names) const {
  onnx::NodeProto others;
  for (const onnx::AttributeProto& attribute : node_.attribute()) {
    if (std::find(names.begin(), names.end(), attribute.name()) == names.end())
      *others.add_attribute() = attribute;
  }
  ir::Attributes attributes =
      import_attributes(others, scope_.environment, importer_.options_.limits, &importer_.external_);
  ir::complete_attributes(op_, attributes);
  return attributes;
}

ir::ValueId Importer::MadeNodes::emit(std::string_view op, Values operands, ir::Attributes attributes,
                                      const std::string& name) {
  return emit(op, std::move(operands), std::move(attributes), name, {name}).front();
}

Importer::MadeNodes::Values Importer::MadeNodes::emit(std::string_view op, Values operands,
                                                      ir::Attributes attributes, const std::string& name,
                                                      const std::vector<std::string>& results) {
  poll_interrupt();
  ir::Graph& graph = *scope_.graph;
  const ir::NodeId id = graph.add_node(ir::operator_named(op), std::move(operands), std::move(attributes), 0,
                                       fmt::format("{}/{}", name, op));
  Values made;
  for (const std::string& result : results) made.push_back(graph.add_result(id, result));
  graph.node(id).origins = {{std::string(op_.name), name_}};
  if (!importer_.type_node(id, scope_, static_cast<int>(kNewestOpset))) throw Poisoned{};
  const bool is_replaced = importer_.is_replaced(id, scope_);
  for (ir::ValueId& each : made) each = importer_.standing_for(scope_, each);
  if (is_replaced) graph.erase_node(id);
  return made;
}

ir::ValueId Importer::MadeNodes::add_constant(const ir::Scalar& value, const std::string& name) {
  return scope_.graph->add_constant(ir::Tensor::scalar(value), name);
}

ir::ValueId Importer::MadeNodes::add_constant(const std::vector<std::int64_t>& values,
                                              const std::string& name) {
  const auto count = static_cast<std::int64_t>(values.size());
  return scope_.graph->add_constant(ir::Tensor::of_ints(values, {count}), name);
}

ir::ValueId Importer::MadeNodes::slice(ir::ValueId value, int axis, std::int64_t position,
                                       const std::string& name) {
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{axis});
  const ir::Scalar at = ir::Scalar::of_integer(ir::ElementType::kInt64, position);
  const ir::ValueId index = add_constant(at, name + "/position");
  return emit("Gather", {value, index}, std::move(attributes), name);
}

ir::ValueId Importer::MadeNodes::stack(const Values& values, std::int64_t axis, bool is_backward,
                                       const std::string& name) {
  const int at = axis_within(axis, type(values[0]).rank() + 1);
  const ir::ValueId new_axis = add_constant({at}, name + "/axis");
  Values parts;
  for (std::size_t i = 0; i < values.size(); ++i)
    parts.push_back(emit("Unsqueeze", {values[i], new_axis}, {}, fmt::format("{}/{}", name, i)));
  if (is_backward) std::reverse(parts.begin(), parts.end());
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{at});
  return emit("Concat", std::move(parts), std::move(attributes), name);
}

}  // namespace gcompile::frontend
