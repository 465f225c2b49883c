// Graphs: initializers and nodes; If with both branches.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "frontend/files/tensor_import.h"
#include "frontend/import/made_nodes.h"
#include "ir/ops/words.h"

namespace gcompile::frontend {

Scope Scope::inside(ir::Graph& into) const {
  Scope inner;
  inner.graph = &into;
  inner.opsets = opsets;
  inner.environment = environment;
  inner.findings = findings;
  inner.graph_name = graph_name;
  inner.prefix = prefix;
  inner.place = place;
  inner.graph_depth = graph_depth + 1;
  inner.is_repeated = is_repeated;
  inner.calls = calls;
  return inner;
}

const Binding* Scope::find(const std::string& name) const {
  for (const Scope* scope = this; scope; scope = scope->outer) {
    if (const auto at = scope->names.find(name); at != scope->names.end()) return &at->second;
  }
  return nullptr;
}

const ir::Tensor* Scope::constant(const std::string& name) const {
  const Binding* binding = find(name);
  return binding && binding->state == Binding::State::kValue ? graph->constant(binding->value) : nullptr;
}

/// One error for all tensors that miss the same thing.
static void add_external_errors(const std::vector<std::pair<std::string, ExternalDataError>>& errors,
                                const std::string& graph_name, Diagnostics& diagnostics) {
  std::map<std::string, Diagnostic> by_message;
  std::vector<std::string> order;
  for (const auto& [tensor, failure] : errors) {
    Diagnostic& diagnostic = by_message[failure.message];
    if (diagnostic.message.empty()) {
      order.push_back(failure.message);
      diagnostic.code = "E0307";
      diagnostic.message = failure.message;
      diagnostic.location = fmt::format("graph '{}'", printable(graph_name));
      diagnostic.help = failure.help;
    }
    diagnostic.details.push_back(fmt::format("initializer '{}'{}{}", printable(tensor),
                                             failure.detail.empty() ? "" : ": ", failure.detail));
  }
  for (const std::string& message : order) diagnostics.add(std::move(by_message[message]));
}

void Importer::note_type(ir::ElementType type) {
  if (type == ir::ElementType::kFloat16 || type == ir::ElementType::kBFloat16) numbers_.has_16_bits = true;
}

void Importer::note_number(const ir::Tensor& value, const std::string& initializer) {
  note_type(value.element());
  if (!is_float(value.element()) || value.count() != 1) return;
  const double number = value.at(0).as_double();
  if (!std::isfinite(number)) return;
  if (initializer.empty()) {
    numbers_.written.insert(number);
  } else {
    auto& of_its_kind = value.shape().empty() ? numbers_.without_axes : numbers_.with_axes;
    of_its_kind.try_emplace(number, initializer);
  }
}

/// Strings as the positions of those that differ.
static ir::Tensor positions_of(const onnx::TensorProto& tensor, ir::Words& words) {
  std::vector<std::int64_t> positions;
  for (const std::string& word : tensor.string_data()) positions.push_back(words.position_of(word));
  ir::Shape shape;
  std::int64_t count = 1;
  for (const std::int64_t size : tensor.dims()) {
    if (size < 0 || (size > 0 && count > tensor.string_data_size() / size))
      operator_error("its dims do not fit");
    shape.push_back(size);
    count *= size;
  }
  if (count != tensor.string_data_size()) operator_error("its dims do not fit");
  return ir::Tensor::of_ints(positions, std::move(shape));
}

void Importer::import_initializers(const onnx::GraphProto& graph, Scope& scope) {
  std::vector<std::pair<std::string, ExternalDataError>> external_errors;
  for (const onnx::TensorProto& tensor : graph.initializer()) {
    const std::string where =
        fmt::format("graph '{}', initializer '{}'", printable(scope.graph_name), printable(tensor.name()));
    if (scope.names.count(tensor.name()) > 0) {
      error("E0502", fmt::format("the initializer '{}' is given twice", printable(tensor.name())), where);
      continue;
    }
    try {
      ir::Words words;
      ir::Tensor value = tensor.data_type() == onnx::TensorProto::STRING
                             ? positions_of(tensor, words)
                             : import_tensor(tensor, options_.limits, &external_);
      note_number(value, tensor.name());
      const ir::ValueId id = scope.graph->add_constant(std::move(value), scope.prefix + tensor.name());
      if (!words.all().empty()) words_[{scope.graph, id}] = words.all();
      bind(scope, tensor.name(), Binding::of(id));
    } catch (const ExternalDataError& failure) {
      external_errors.emplace_back(tensor.name(), failure);
      bind(scope, tensor.name(), Binding{});
    } catch (const OperatorError& failure) {
      error("E0301", fmt::format("initializer '{}': {}", printable(tensor.name()), failure.message), where,
            failure.help);
      bind(scope, tensor.name(), Binding{});
    }
  }
  add_external_errors(external_errors, scope.graph_name, diagnostics_);
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer()) {
    error(
        "E0302",
        fmt::format("initializer '{}': sparse tensors are not supported", printable(tensor.values().name())),
        fmt::format("graph '{}'", printable(scope.graph_name)),
        "store it as a dense initializer: all its elements, the zeros too");
    bind(scope, tensor.values().name(), Binding{});
  }
}

Importer::NodeOrder Importer::order_in(const NodeList& nodes, const Scope& scope) {
  NodeOrder order;
  const auto known = [&](const std::string& name) { return scope.knows(name); };
  // A name of the graph around may be defined again inside; only names of this very graph may not.
  order.nodes = order_nodes(
      nodes, known, [&](const std::string& name) { return scope.names.count(name) > 0; }, scope.graph_name,
      diagnostics_, order.unusable);
  return order;
}

void Importer::import_nodes(const NodeList& nodes, Scope& scope) {
  const NodeOrder order = order_in(nodes, scope);
  import_nodes(nodes, order, scope);
}

void Importer::import_nodes(const NodeList& nodes, const NodeOrder& order, Scope& scope) {
  for (const std::string& name : order.unusable) scope.names[name] = Binding{};
  std::vector<bool> imported(static_cast<std::size_t>(nodes.size()), false);
  for (const int i : order.nodes) {
    import_node(nodes[i], scope);
    imported[i] = true;
  }
  // Nodes of a cycle, and what hangs on them: already reported.
  for (int i = 0; i < nodes.size(); ++i) {
    if (!imported[i]) poison_results(nodes[i], scope);
  }
}

bool Importer::check_branch(const onnx::NodeProto& node, const onnx::GraphProto& branch, const char* name,
                            const Scope& scope) {
  std::set<std::string> initialized;
  for (const auto& tensor : branch.initializer()) initialized.insert(tensor.name());
  const bool inputs = std::any_of(branch.input().begin(), branch.input().end(),
                                  [&](const auto& input) { return initialized.count(input.name()) == 0; });
  OperatorError failure;
  if (inputs) failure.message = fmt::format("{} must not have inputs", name);
  if (branch.output_size() < node.output_size()) {
    failure.message =
        fmt::format("{} has {} outputs, the node {}", name, branch.output_size(), node.output_size());
  }
  if (scope.graph_depth >= options_.limits.graph_nesting) {
    failure.message =
        fmt::format("graphs are nested deeper than the limit of {}", options_.limits.graph_nesting);
  }
  if (failure.message.empty()) return true;
  node_error(diagnostics_, node, scope, "E0504", failure);
  return false;
}

/// Where a result is larger in one branch, the other one is a trap.
void Importer::trap_smaller(ir::Graph& a, ir::Graph& b, Diagnostics& to) {
  if (!a.trap.empty() || !b.trap.empty()) return;
  for (std::size_t i = 0; i < std::min(a.outputs().size(), b.outputs().size()); ++i) {
    const ir::Shape& of_a = a.value(a.outputs()[i]).type.shape;
    const ir::Shape& of_b = b.value(b.outputs()[i]).type.shape;
    if (of_a == of_b) continue;
    ir::Graph& smaller = ir::numbers_of(of_a) < ir::numbers_of(of_b) ? a : b;
    Diagnostics findings;
    Diagnostic finding;
    finding.code = "E0202";
    finding.message = fmt::format("'{}' has not the sizes that it has in the other branch",
                                  printable(smaller.output_names()[i]));
    findings.add(std::move(finding));
    smaller = trapped_branch(smaller, findings, to);
    return;
  }
}

namespace {

constexpr const char* kBranches[2] = {"then_branch", "else_branch"};

}  // namespace

const onnx::GraphProto* graph_of(const onnx::NodeProto& node, std::string_view name) {
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() == name && attribute.has_g()) return &attribute.g();
  }
  return nullptr;
}

void Importer::import_if(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope) {
  const onnx::GraphProto* const branches[2] = {graph_of(node, kBranches[0]), graph_of(node, kBranches[1])};
  const bool complete = node.attribute_size() == 2 && branches[0] && branches[1] && node.input_size() == 1;
  if (!complete) {
    node_error(diagnostics_, node, scope, "E0504",
               {"an If has one input, the condition, and two graphs, then_branch and else_branch", ""});
  }
  if (!complete || !check_branch(node, *branches[0], kBranches[0], scope) ||
      !check_branch(node, *branches[1], kBranches[1], scope)) {
    poison_results(node, scope);
    return;
  }
  const ir::Tensor* condition = scope.constant(node.input(0));
  if (condition && condition->count() == 1 && condition->element() == ir::ElementType::kBool) {
    inline_branch(node, *branches[condition->int_at(0) ? 0 : 1], scope);
    return;
  }
  Captures captures = captures_of({branches[0], branches[1]}, scope);
  std::vector<const std::string*> fed = fed_inputs(node);
  for (const std::string*& input : fed) {
    const Binding* binding = input ? scope.find(*input) : nullptr;
    const bool is_value =
        binding && binding->state == Binding::State::kValue && !scope.graph->constant(binding->value);
    if (!is_value) input = nullptr;
    if (input) capture(*input, *binding, *scope.graph, captures);
  }
  capture_counts(*scope.graph, captures);
  const std::string name = scope.prefix + name_of(node);
  Branch then_branch = import_branch(*branches[0], captures, scope, name + "/then", fed);
  Branch else_branch = import_branch(*branches[1], captures, scope, name + "/else", fed);
  if (options_.of_one_run && !then_branch.poisoned && !else_branch.poisoned) {
    trap_smaller(then_branch.graph, else_branch.graph, *scope.findings);
  }
  import_made(node, scope, [&] {
    if (then_branch.poisoned || else_branch.poisoned) throw Poisoned{};
    bind_if(node, op, captures, std::move(then_branch), std::move(else_branch), scope);
  });
}

/// A result is the same kind of thing in both branches.
void Importer::require_same_kinds(const onnx::NodeProto& node, const Branch& then_branch,
                                  const Branch& else_branch) {
  for (int i = 0; i < node.output_size(); ++i) {
    const Binding& a = then_branch.outputs[static_cast<std::size_t>(i)];
    const Binding& b = else_branch.outputs[static_cast<std::size_t>(i)];
    if (a.state == b.state && a.values().size() == b.values().size()) continue;
    operator_error(
        fmt::format("the condition must be known at compile time, for '{}' is {} in one branch and "
                    "{} in the other",
                    printable(node.output(i)), describe(a, then_branch.graph),
                    describe(b, else_branch.graph)),
        "--set NAME=VALUE makes it known where an input tells it");
  }
}

/// The node, of which each element of a sequence is a result.
void Importer::bind_if(const onnx::NodeProto& node, const ir::Operator& op, const Captures& captures,
                       Branch&& then_branch, Branch&& else_branch, Scope& scope) {
  const std::string& trap = then_branch.graph.trap;
  if (!trap.empty() && !else_branch.graph.trap.empty()) {
    node_error(
        *scope.findings, node, scope, "E0202",
        {fmt::format("neither branch can be typed; then: {}; else: {}", trap, else_branch.graph.trap), ""});
    throw Poisoned{};
  }
  if (trap.empty() && else_branch.graph.trap.empty()) require_same_kinds(node, then_branch, else_branch);
  auto operands = operands_of(node, scope);
  if (!operands) throw Poisoned{};
  const std::vector<Binding> kinds = trap.empty() ? then_branch.outputs : else_branch.outputs;
  std::vector<std::string> results;
  for (int i = 0; i < node.output_size(); ++i) {
    const Binding& kind = kinds[static_cast<std::size_t>(i)];
    const std::size_t count = kind.values().size();
    const bool is_element = kind.state == Binding::State::kSequence && !node.output(i).empty();
    for (std::size_t k = 0; k < count; ++k) {
      results.push_back(is_element ? fmt::format("{}/{}", node.output(i), k) : node.output(i));
    }
  }
  std::vector<Branch*> branches;
  for (Branch* branch : {&then_branch, &else_branch}) {
    if (branch->graph.trap.empty()) branches.push_back(branch);
  }
  const std::vector<CountOfResult> counts = join_counts(branches);
  for (Branch* branch : branches) branch->graph.erase_unused_constants();
  results.resize(branches.front()->graph.outputs().size());
  for (const CountOfResult& count : counts) {
    const std::string& counted = results[count.result];
    if (results[count.count].empty() && !counted.empty()) results[count.count] = counted + "_count";
  }
  operands->insert(operands->end(), captures.values.begin(), captures.values.end());
  const ir::NodeId id = add_node(node, op, std::move(*operands), {}, results, scope);
  std::vector<ir::Graph>& graphs = scope.graph->node(id).subgraphs;
  graphs.push_back(std::move(then_branch.graph));
  graphs.push_back(std::move(else_branch.graph));
  if (!type_node(id, scope, opset_of(scope))) throw Poisoned{};
  const std::vector<ir::ValueId> made = scope.graph->node(id).results;
  for (const CountOfResult& count : counts) {
    if (!made[count.result].valid()) continue;
    note_counts({made[count.result], ir::CountedAxis{count.axis, made[count.count]}}, *scope.graph);
  }
  auto next = made.begin();
  for (int i = 0; i < node.output_size(); ++i) {
    const Binding& kind = kinds[static_cast<std::size_t>(i)];
    const auto first = next;
    next += static_cast<std::ptrdiff_t>(kind.values().size());
    if (!node.output(i).empty()) bind(scope, node.output(i), kind.with({first, next}));
  }
  // Nobody can read what has no name, and no pass has to think of a node without results.
  if (std::none_of(made.begin(), made.end(), [](ir::ValueId value) { return value.valid(); }))
    scope.graph->erase_node(id);
}

/// The condition is known: the taken branch becomes part of the graph around it,
/// the other one is not looked at.
void Importer::inline_branch(const onnx::NodeProto& node, const onnx::GraphProto& branch, Scope& scope) {
  Scope inner = scope.inside(*scope.graph);
  inner.outer = &scope;
  inner.graph_name = branch.name();
  inner.place = fmt::format(", in If {}{}", shown_name(node), scope.place);
  import_initializers(branch, inner);
  import_nodes(branch.node(), inner);
  for (int i = 0; i < node.output_size(); ++i) {
    if (node.output(i).empty()) continue;
    const Binding* made = inner.find(branch.output(i).name());
    if (!made) {
      error("E0501",
            fmt::format("branch '{}' has an output '{}', which nothing makes", printable(branch.name()),
                        printable(branch.output(i).name())),
            location(node, scope));
    }
    bind(scope, node.output(i), made ? *made : Binding{});
  }
}

std::vector<const std::string*> Importer::fed_inputs(const onnx::NodeProto& node) const {
  std::vector<const std::string*> fed;
  for (const std::string& result : node.output()) {
    const auto state = std::find_if(options_.states.begin(), options_.states.end(),
                                    [&](const auto& pair) { return pair.second == result; });
    fed.push_back(state == options_.states.end() ? nullptr : &state->first);
  }
  return fed;
}

void Importer::capture(const std::string& name, const Binding& binding, const ir::Graph& graph,
                       Captures& captures) {
  if (!captures.bindings.emplace(name, binding).second) return;
  for (const ir::ValueId value : binding.values()) {
    if (!graph.constant(value) && captures.seen.insert(value).second) captures.values.push_back(value);
  }
}

Importer::Captures Importer::captures_of(const std::vector<const onnx::GraphProto*>& branches,
                                         const Scope& scope) {
  Captures captures;
  for (const onnx::GraphProto* branch : branches) {
    for (const std::string& name : free_names(*branch)) {
      // Unknown names are reported where they are used.
      if (const Binding* binding = scope.find(name)) capture(name, *binding, *scope.graph, captures);
    }
  }
  return captures;
}

ir::Graph Importer::trapped_branch(const ir::Graph& branch, const Diagnostics& findings, Diagnostics& to) {
  ir::Graph trapped;
  trapped.name = branch.name;
  for (const ir::ValueId input : branch.inputs()) {
    trapped.add_input(branch.value(input).name, branch.value(input).type);
  }
  Diagnostic warning;
  warning.severity = Severity::kWarning;
  warning.code = "W0203";
  warning.message =
      fmt::format("the branch '{}' of an If cannot be typed; a run that takes it returns an error status",
                  printable(branch.name));
  for (const Diagnostic& finding : findings.all()) {
    if (finding.severity != Severity::kError) continue;
    if (trapped.trap.empty()) trapped.trap = finding.message;
    warning.details.push_back(finding.message);
  }
  warning.help = "--set makes the condition constant when an input decides it";
  to.add(std::move(warning));
  return trapped;
}

Importer::Branch Importer::import_branch(const onnx::GraphProto& proto, const Captures& captures,
                                         const Scope& scope, const std::string& node_name,
                                         const std::vector<const std::string*>& fed) {
  Branch branch;
  branch.graph.name = node_name;
  enter_branch(branch.graph);
  Diagnostics findings;
  Scope inner = scope.inside(branch.graph);
  inner.findings = &findings;
  inner.graph_name = proto.name().empty() ? node_name : proto.name();
  // Names defined inside hide those around, which then are not captured by this branch.
  std::set<std::string> used;
  for (const std::string& name : free_names(proto)) used.insert(name);
  std::map<ir::ValueId, ir::ValueId> inside;
  for (const ir::ValueId outside : captures.values) {
    const ir::Value& value = scope.graph->value(outside);
    inside[outside] = branch.graph.add_input(value.name, value.type);
  }
  carry_counts(*scope.graph, inside, branch.graph);
  for (const auto& [captured, binding] : captures.bindings) {
    if (used.count(captured) == 0) continue;
    std::vector<ir::ValueId> values = binding.values();
    for (ir::ValueId& each : values) {
      const ir::Value& value = scope.graph->value(each);
      each = value.constant ? branch.graph.add_constant(*value.constant, value.name) : inside.at(each);
    }
    bind(inner, captured, binding.with(values));
  }
  import_initializers(proto, inner);
  import_nodes(proto.node(), inner);
  for (const onnx::ValueInfoProto& output : proto.output()) {
    const Binding* made = inner.find(output.name());
    if (!made) {
      error("E0501", fmt::format("branch '{}' has an output '{}', which nothing makes",
                                 printable(inner.graph_name), printable(output.name())));
    }
    branch.poisoned = branch.poisoned || !made || made->state == Binding::State::kPoisoned;
    branch.outputs.push_back(made ? *made : Binding{});
    // Nothing where a state is fed: exporters who merge decoders mean that it stays.
    const std::size_t at = branch.outputs.size() - 1;
    const std::string* input = at < fed.size() ? fed[at] : nullptr;
    if (!input || !made || made->state != Binding::State::kValue) continue;
    const ir::Tensor* constant = branch.graph.constant(made->value);
    const bool stays = constant && constant->count() == 0;
    if (stays) branch.outputs.back().value = inside.at(scope.find(*input)->value);
  }
  // What contradicts itself is a branch that no run takes; what data counts is for us to follow.
  const bool counts = !counted_[&branch.graph].axes.empty();
  if (findings.has_errors() && !counts) {
    branch.graph = trapped_branch(branch.graph, findings, *scope.findings);
    branch.poisoned = false;
    return branch;
  }
  for (const Diagnostic& finding : findings.all()) scope.findings->add(finding);
  branch.poisoned = branch.poisoned || findings.has_errors();
  if (branch.poisoned) return branch;
  for (std::size_t i = 0; i < branch.outputs.size(); ++i) {
    const std::string& output = proto.output(static_cast<int>(i)).name();
    const bool is_sequence = branch.outputs[i].state == Binding::State::kSequence;
    std::size_t k = 0;
    for (const ir::ValueId value : branch.outputs[i].values())
      branch.graph.add_output(value, is_sequence ? fmt::format("{}/{}", output, k++) : output);
  }
  branch.counts = counted_[&branch.graph];
  return branch;
}

}  // namespace gcompile::frontend
