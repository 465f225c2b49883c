#include "ir/graph/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/operator_error.h"
#include "ir/graph/operator.h"
#include "ir/loops/scalar_op.h"

namespace gcompile::ir {

bool is_check(const Graph& graph, NodeId id) {
  const Node& node = graph.node(id);
  return node.subgraphs.size() == 2 && !node.subgraphs[1].trap.empty() && node.results.size() == 1 &&
         node.attributes.has("input");
}

std::vector<Demand> demands_of(const Graph& graph) {
  std::vector<Demand> demands;
  for (const NodeId id : graph.nodes()) {
    if (!is_check(graph, id)) continue;
    const Node& node = graph.node(id);
    const std::string& input = node.attributes.string_of("input");
    const bool is_known = std::any_of(demands.begin(), demands.end(),
                                      [&](const Demand& demand) { return demand.input == input; });
    if (!is_known) demands.push_back({input, node.attributes.tensor_of("example"), node.subgraphs[1].trap});
  }
  return demands;
}

Tensor cast_to(const Tensor& tensor, const TensorType& type) {
  Tensor out(type);
  for (std::int64_t i = 0; i < tensor.count(); ++i) out.set(i, cast(tensor.at(i), type.element));
  return out;
}

namespace {

struct Example {
  ValueId input;
  Tensor value;
};

/// "[2, 3]"; of rank 0 "2".
std::string text_of(const Tensor& tensor) {
  std::string numbers;
  for (std::int64_t i = 0; i < tensor.count(); ++i) {
    const Scalar element = tensor.at(i);
    const std::string number =
        is_float(element.type) ? fmt::format("{}", element.real) : fmt::format("{}", element.integer);
    numbers += (i > 0 ? ", " : "") + number;
  }
  return tensor.type().rank() > 0 ? fmt::format("[{}]", numbers) : numbers;
}

/// The inputs of the model that a value is computed of, and the nodes that do, each behind those that it reads.
struct Cone {
  std::vector<ValueId> inputs;
  std::vector<NodeId> nodes;
};

/// nullopt: there are more than a few, or some that are not evaluated one by one.
std::optional<Cone> cone_of(const Graph& graph, ValueId value) {
  constexpr std::size_t kMostNodes = 32;
  Cone cone;
  std::vector<std::pair<ValueId, bool>> open = {{value, false}};
  while (!open.empty()) {
    const auto [at, is_done] = open.back();
    open.pop_back();
    const Value& here = graph.value(at);
    if (here.constant) continue;
    if (here.is_input) {
      if (std::find(cone.inputs.begin(), cone.inputs.end(), at) == cone.inputs.end())
        cone.inputs.push_back(at);
      continue;
    }
    if (!here.producer.valid() ||
        std::find(cone.nodes.begin(), cone.nodes.end(), here.producer) != cone.nodes.end())
      continue;
    if (is_done) {
      cone.nodes.push_back(here.producer);
      continue;
    }
    const Node& node = graph.node(here.producer);
    if (!node.op->deterministic || !node.subgraphs.empty() || open.size() + cone.nodes.size() > kMostNodes)
      return std::nullopt;
    open.emplace_back(at, true);
    for (const ValueId operand : node.operands) {
      if (operand.valid()) open.emplace_back(operand, false);
    }
  }
  return cone;
}

/// What the value is where the inputs are these; nullopt: it is nothing.
std::optional<Tensor> value_where(const Graph& graph, ValueId value, const Cone& cone,
                                  const std::vector<Tensor>& inputs) {
  std::map<ValueId, Tensor> known;
  for (std::size_t i = 0; i < inputs.size(); ++i) known[cone.inputs[i]] = inputs[i];
  try {
    for (const NodeId id : cone.nodes) {
      const Node& node = graph.node(id);
      std::vector<const Tensor*> operands;
      for (const ValueId operand : node.operands) {
        const Tensor* constant = operand.valid() ? graph.constant(operand) : nullptr;
        operands.push_back(!operand.valid() ? nullptr : constant ? constant : &known.at(operand));
      }
      std::vector<Tensor> results = evaluate_node(graph, id, operands);
      for (std::size_t i = 0; i < node.results.size(); ++i) {
        if (node.results[i].valid()) known[node.results[i]] = std::move(results.at(i));
      }
    }
  } catch (const OperatorError&) {
    return std::nullopt;
  }
  return known.at(value);
}

/// Numbers among the inputs by which a number is the example.
bool search(const Graph& graph, ValueId value, const Tensor& example, std::vector<Example>& found) {
  constexpr std::size_t kMostInputs = 3;
  const std::optional<Cone> cone = cone_of(graph, value);
  if (!cone || cone->inputs.empty() || cone->inputs.size() > kMostInputs || example.count() != 1)
    return false;
  std::vector<std::vector<Tensor>> choices;
  for (const ValueId input : cone->inputs) {
    const TensorType& type = graph.value(input).type;
    if (!are_constant(type.shape) || type.count() != 1 || !is_computable(type.element)) return false;
    std::vector<Tensor>& here = choices.emplace_back();
    const auto same =
        std::find_if(found.begin(), found.end(), [&](const Example& other) { return other.input == input; });
    if (same != found.end()) {
      here.push_back(same->value);
      continue;
    }
    for (const double number : {0.0, example.real_at(0), 1.0, -1.0})
      here.push_back(
          Tensor::filled(type, cast(Scalar::of_real(ElementType::kFloat64, number), type.element)));
  }
  std::size_t ways = 1;
  for (const std::vector<Tensor>& each : choices) ways *= each.size();
  for (std::size_t way = 0; way < ways; ++way) {
    std::vector<Tensor> inputs;
    std::size_t rest = way;
    for (const std::vector<Tensor>& each : choices) {
      inputs.push_back(each[rest % each.size()]);
      rest /= each.size();
    }
    const std::optional<Tensor> made = value_where(graph, value, *cone, inputs);
    if (!made || !made->identical(example)) continue;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (choices[i].size() > 1) found.push_back({cone->inputs[i], inputs[i]});
    }
    return true;
  }
  return false;
}

/// The inputs of the model by which `value` is `example`; false: not all of its elements are theirs.
bool trace(const Graph& graph, ValueId value, Tensor example, std::vector<Example>& found) {
  while (true) {
    const Value& at = graph.value(value);
    if (at.constant) return at.constant->identical(example);
    if (at.is_input) {
      const auto same = std::find_if(found.begin(), found.end(),
                                     [&](const Example& other) { return other.input == value; });
      if (same != found.end()) return same->value.identical(example);
      for (const Demand& demand : demands_of(graph)) {
        if (demand.input == at.name && !demand.example.identical(example)) return false;
      }
      found.push_back({value, std::move(example)});
      return true;
    }
    if (!at.producer.valid()) return false;
    const Node& node = graph.node(at.producer);
    if (node.op == &operator_named("Concat") && at.type.rank() == 1) {
      std::int64_t start = 0;
      for (const ValueId operand : node.operands) {
        const TensorType& type = graph.value(operand).type;
        if (!are_constant(type.shape)) return false;
        const std::vector<std::int64_t> all = example.ints();
        const std::int64_t count = type.count();
        const std::vector<std::int64_t> part(all.begin() + start, all.begin() + start + count);
        start += count;
        if (!trace(graph, operand, cast_to(Tensor::of_ints(part, {count}), type), found)) return false;
      }
      return true;
    }
    if (!node.op->traits.keeps_elements) return false;
    value = node.operands[0];
    const TensorType& type = graph.value(value).type;
    if (!are_constant(type.shape) || !is_computable(type.element)) return false;
    example = cast_to(example, type);
  }
}

}  // namespace

std::optional<Settled> demand(Graph& graph, const Demanded& demanded) {
  std::vector<Example> examples;
  for (const auto& [value, example] : demanded.examples) {
    std::vector<Example> more = examples;
    if (trace(graph, value, example, more)) {
      examples = std::move(more);
    } else if (!demanded.searches || !search(graph, value, example, examples)) {
      return std::nullopt;
    }
  }
  Settled settled;
  for (const Example& each : examples) {
    const std::string& input = graph.value(each.input).name;
    const std::string shown = printable(input);
    const std::string numbers = text_of(each.value);
    settled.push_back(demanded.shapes.empty()
                          ? fmt::format("the input '{}' must be an axis, as {} is", shown, numbers)
                          : fmt::format("the input '{}' must be such that {}, as with {}", shown,
                                        demanded.shapes, numbers));
    Attributes attributes;
    attributes.set("input", input);
    attributes.set("example", each.value);
    const NodeId added = graph.add_node(operator_named("Check"), {demanded.holds}, std::move(attributes), 1);
    Node& check = graph.node(added);
    check.name = fmt::format("check of {}", input);
    check.origins = demanded.origins;
    check.subgraphs.resize(2);
    check.subgraphs[0].add_output(check.subgraphs[0].add_constant(Tensor({ElementType::kBool, {0}})),
                                  "nothing");
    check.subgraphs[1].trap = settled.back();
    infer_node(graph, added);
  }
  return settled;
}

}  // namespace gcompile::ir
