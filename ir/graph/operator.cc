#include "ir/graph/operator.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/interrupt.h"
#include "ir/forms/form.h"
#include "ir/graph/size_evaluator.h"

namespace gcompile::ir {

namespace {

std::string describe_arity(const Arity& arity) {
  if (arity.max < 0) return fmt::format("at least {}", arity.min);
  return arity.min == arity.max ? fmt::format("{}", arity.min)
                                : fmt::format("{} to {}", arity.min, arity.max);
}

/// Attributes that are 0 or 1 in every operator that has them. Other values are refused: some runtimes take
/// all of them for true, others only 1.
bool is_flag(std::string_view attribute) {
  constexpr std::string_view kFlags[] = {"allowzero",
                                         "antialias",
                                         "causal",
                                         "ceil_mode",
                                         "count_include_pad",
                                         "detect_negative",
                                         "detect_positive",
                                         "do_rotary",
                                         "exclude_outside",
                                         "exclusive",
                                         "fmod",
                                         "input_forget",
                                         "is_causal",
                                         "keepdims",
                                         "largest",
                                         "layout",
                                         "linear_before_reset",
                                         "new_axis",
                                         "noop_with_empty_axes",
                                         "past_present_share_buffer",
                                         "reverse",
                                         "saturate",
                                         "select_last_index",
                                         "sorted",
                                         "storage_order",
                                         "transA",
                                         "transB",
                                         "transBatchA",
                                         "transBatchB",
                                         "unidirectional",
                                         "upper",
                                         "zero_if_empty"};
  return std::binary_search(std::begin(kFlags), std::end(kFlags), attribute);
}

std::string_view kind_name(AttributeKind kind) {
  constexpr std::string_view kNames[] = {
      "an int", "a float", "a string", "a list of ints", "a list of floats", "a list of strings", "a tensor"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace

const TensorType& NodeView::operand(int i) const {
  // Also reached by normalise(), which runs before operands are counted: a mistake of the model, not ours.
  if (!has_operand(i)) operator_error(fmt::format("input {} is missing", i));
  return graph_.value(node().operands[i]).type;
}

const TensorType& NodeView::result(int i) const {
  GC_CHECK(has_result(i));
  return graph_.value(node().results[i]).type;
}

const Tensor* NodeView::constant(int i) const {
  return has_operand(i) ? graph_.constant(node().operands[i]) : nullptr;
}

std::vector<std::int64_t> NodeView::constant_ints(int i, std::string_view what) const {
  const Tensor* tensor = constant(i);
  if (has_operand(i) && operand(i).count() == 0 && !is_float(element(i)))
    return {};  // nothing is known of all
  if (!tensor) {
    operator_error(
        fmt::format("{} must be known at compile time", what),
        "shapes are fixed when the model is compiled; bind the value with --set or --dim, or simplify "
        "the part of the model that computes it");
  }
  if (is_float(tensor->element())) operator_error(fmt::format("{} must be integers", what));
  return tensor->ints();
}

Shape NodeView::known_sizes(int i, std::string_view what) const {
  if (is_float(element(i))) operator_error(fmt::format("{} must be integers", what));
  const std::optional<Shape> known = known_integers(graph_, node().operands[i]);
  return known ? *known : shape_of(constant_ints(i, what));
}

bool NodeView::knows_sizes(int i) const {
  if (!has_operand(i)) return false;
  const Value& value = graph_.value(node().operands[i]);
  return value.sizes || value.fractions;
}

void InferContext::set_sizes(Shape elements) {
  if (!has_result(0) || are_constant(elements)) return;
  mutable_graph_.value(node().results[0]).sizes = std::move(elements);
}

void InferContext::set_result(int i, TensorType type) {
  if (has_result(i)) {
    element_count(type.shape);  // refuses shapes beyond 63 bits
    mutable_graph_.value(node().results[i]).type = std::move(type);
  }
}

void RewriteContext::set_operand(int i, ValueId value) {
  std::vector<ValueId> operands = node().operands;
  if (i >= static_cast<int>(operands.size())) operands.resize(static_cast<std::size_t>(i) + 1);
  operands[i] = value;
  mutable_graph_.set_operands(id_, std::move(operands));
}

ValueId RewriteContext::constant_ints(std::span<const std::int64_t> values) {
  return constant(Tensor::of_ints(values, {static_cast<std::int64_t>(values.size())}));
}

ValueId RewriteContext::constant_ints(std::span<const Dim> values) {
  if (are_constant(values)) return constant_ints(numbers_of(values));
  return mutable_graph_.add_sizes(ElementType::kInt64, {values.size()}, {values.begin(), values.end()});
}

ValueId RewriteContext::constant_scalar(ElementType type, double value) {
  if (!is_computable(
          type)) {  // old opsets give such values as attributes, before inference sees the operands
    operator_error(fmt::format("an operand has type {}, in which nothing computes", name_of(type)));
  }
  return constant(Tensor::scalar(cast(Scalar::of_real(ElementType::kFloat64, value), type)));
}

ValueId RewriteContext::constant(Tensor tensor, ValueId like) {
  return mutable_graph_.add_constant(std::move(tensor), like.valid() ? graph_.value(like).name : "");
}

void RewriteContext::attribute_to_operand(std::string_view name, int i) {
  if (!attributes().has(name)) return;
  set_operand(i, constant_ints(attributes().ints_of(name)));
  mutable_attributes().erase(name);
}

NodeId RewriteContext::emit_node(std::string_view op_name, std::vector<ValueId> operands,
                                 Attributes attributes, int result_count) {
  const Operator& op = operator_named(op_name);
  complete_attributes(op, attributes);
  const std::string node_name = node().name;
  const std::vector<Origin> origins = node().origins;
  const NodeId added =
      mutable_graph_.add_node(op, std::move(operands), std::move(attributes), result_count, node_name);
  mutable_graph_.node(added).origins = origins;
  infer_node(mutable_graph_, added);
  return added;
}

ValueId RewriteContext::emit(std::string_view op, std::vector<ValueId> operands, Attributes attributes) {
  return mutable_graph_.node(emit_node(op, std::move(operands), std::move(attributes), 1)).results[0];
}

void RewriteContext::replace_with(std::string_view op, std::vector<ValueId> operands, Attributes attributes) {
  mutable_graph_.set_operands(id_, std::move(operands));
  Node& node = mutable_graph_.node(id_);
  node.op = &operator_named(op);
  node.attributes = std::move(attributes);
}

void RewriteContext::replace_result(int i, ValueId value) {
  if (!has_result(i)) return;
  const ValueId old = node().results[i];
  GC_CHECK(graph_.value(old).type == graph_.value(value).type);
  Value& replacement = mutable_graph_.value(value);
  if (replacement.name.empty()) replacement.name = graph_.value(old).name;
  // Later inference may ask for the value, which is known before folding removes the producer.
  if (!replacement.constant) replacement.constant = graph_.value(old).constant;
  if (!replacement.sizes) replacement.sizes = graph_.value(old).sizes;
  if (!replacement.fractions) replacement.fractions = graph_.value(old).fractions;
  mutable_graph_.replace_uses(old, value);
}

void complete_attributes(const Operator& op, Attributes& attributes) {
  for (const auto& [name, value] : attributes.all()) {
    const auto spec = std::find_if(op.attributes.begin(), op.attributes.end(),
                                   [&name = name](const AttributeSpec& s) { return s.name == name; });
    if (spec == op.attributes.end()) {
      operator_error(fmt::format("attribute '{}' is not known for {}", printable(name), op.name));
    }
    if (spec->kind != kind_of(value)) {
      operator_error(fmt::format("attribute '{}' must be {}, not {}", name, kind_name(spec->kind),
                                 kind_name(kind_of(value))));
    }
    const auto* number = std::get_if<std::int64_t>(&value);
    if (number && is_flag(name) && *number != 0 && *number != 1) {
      operator_error(fmt::format("attribute '{}' must be 0 or 1, not {}", name, *number));
    }
  }
  for (const AttributeSpec& spec : op.attributes) {
    if (attributes.has(spec.name)) continue;
    if (spec.required) operator_error(fmt::format("attribute '{}' is missing", spec.name));
    if (spec.default_value) attributes.set(std::string(spec.name), *spec.default_value);
  }
}

namespace {

/// The first `min` of `Arity` are always present; those up to `max` may be absent, at the end or in between.
/// Where any number of operands is taken, none may be absent; results that nobody asked for may.
void check_presence(const Node& node) {
  const Arity operands = node.op->operands, results = node.op->results;
  const int given = static_cast<int>(node.operands.size()), wanted = static_cast<int>(node.results.size());
  if (given < operands.min || (operands.max >= 0 && given > operands.max)) {
    operator_error(fmt::format("{} inputs given, {} expected", given, describe_arity(operands)));
  }
  for (int i = 0; i < (operands.max < 0 ? given : operands.min); ++i) {
    if (!node.operands[i].valid()) {
      operator_error(fmt::format("input {} is missing", i));
    }
  }
  if (wanted < results.min || (results.max >= 0 && wanted > results.max)) {
    operator_error(fmt::format("{} outputs wanted, {} exist", wanted, describe_arity(results)));
  }
  for (int i = 0; i < (results.max < 0 ? 0 : results.min); ++i) {
    if (!node.results[i].valid()) {
      operator_error(fmt::format("output {} has no name", i));
    }
  }
}

}  // namespace

namespace {

Tensor tensor_of(const TensorType& type, const SizeFractions& known) {
  Tensor tensor(type);
  for (std::size_t i = 0; i < known.elements.size(); ++i) {
    const std::int64_t element = known.elements[i];
    tensor.set(static_cast<std::int64_t>(i),
               is_float(type.element) ? Scalar::of_real(type.element, static_cast<double>(element) /
                                                                          static_cast<double>(known.divisor))
                                      : Scalar::of_integer(type.element, element));
  }
  return tensor;
}

}  // namespace

void infer_node(Graph& graph, NodeId id) {
  const Operator& op = *graph.node(id).op;
  check_presence(graph.node(id));
  InferContext context(graph, id);
  op.infer(context);
  if (!context.has_result(0)) return;
  if (std::optional<SizeFractions> known = evaluate_sizes(graph, id)) {
    Value& value = graph.value(graph.node(id).results[0]);
    if (are_constant(known->elements)) {
      value.constant = tensor_of(value.type, *known);
    } else if (is_float(value.type.element)) {
      value.fractions = std::move(known);
    } else {
      value.sizes = std::move(known->elements);
    }
  }
}

Form form_of(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  if (node.form) return *node.form;
  if (!node.op->lower) operator_error(fmt::format("{} has no kernel", node.op->name));
  return node.op->lower(LowerContext(graph, id));
}

Diagnostic diagnose(const Graph& graph, NodeId id, std::string code, const OperatorError& error) {
  const Node& node = graph.node(id);
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  const std::string_view domain = node.op->domain;
  diagnostic.message = fmt::format("{}{}{} '{}': {}", domain, domain.empty() ? "" : ".", node.op->name,
                                   printable(node.name), error.message);
  diagnostic.location =
      fmt::format("graph '{}', node '{}' ({})", printable(graph.name), printable(node.name), node.op->name);
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    if (!node.operands[i].valid()) continue;
    const Value& operand = graph.value(node.operands[i]);
    std::string origin = "graph input";
    if (operand.producer.valid()) {
      const Node& producer = graph.node(operand.producer);
      origin = fmt::format("from {} '{}'", producer.op->name, printable(producer.name));
    } else if (operand.constant) {
      origin = "constant";
    }
    diagnostic.details.push_back(
        fmt::format("input {} '{}' {} {}", i, printable(operand.name), to_string(operand.type), origin));
  }
  diagnostic.help = error.help;
  return diagnostic;
}

}  // namespace gcompile::ir
