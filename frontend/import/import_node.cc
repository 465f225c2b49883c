// One node of the model: operator, attributes, normal form, types, and its value where that is known.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/interrupt.h"
#include "frontend/import/importer.h"
#include "frontend/import/legacy_attributes.h"
#include "ir/ops/words.h"

namespace gcompile::frontend {

namespace {

std::string operator_name(const onnx::NodeProto& node) {
  const std::string domain = canonical_domain(node.domain());
  return printable(domain.empty() ? node.op_type() : domain + "." + node.op_type());
}

/// Runs `body`; a CompileError about the model (sizes beyond 63 bits) becomes an OperatorError.
template <class Body>
void as_operator_error(Body body) {
  try {
    body();
  } catch (const CompileError& error) {
    if (error.exit_code() != ExitCode::kModel) throw;
    const Diagnostic& first = error.diagnostics().front();
    operator_error(first.message, first.help);
  }
}

}  // namespace

void Importer::import_node(const onnx::NodeProto& node, Scope& scope) {
  poll_interrupt();
  count_node(node, scope);
  const std::string domain = canonical_domain(node.domain());
  if (const auto at = functions_.find({domain, node.op_type()}); at != functions_.end()) {
    import_call(node, at->second, scope);
    return;
  }
  const ir::Operator* op = domain == "gcompile" ? nullptr : ir::find_operator(domain, node.op_type());
  if (!op) {
    if (import_schema_function(node, scope)) return;
    unsupported_.add(node, scope.opsets->version(domain), describe_operands(node, scope), scope.place);
    poison_results(node, scope);
    return;
  }
  check_opset(node, *op, scope);
  if (domain.empty() && node.op_type() == "If") {
    import_if(node, *op, scope);
  } else if (domain.empty() && node.op_type() == "Loop") {
    import_loop(node, *op, scope);
  } else if (domain.empty() && node.op_type() == "Scan") {
    import_scan(node, *op, scope);
  } else if (domain.empty() && node.op_type() == "SequenceMap") {
    import_sequence_map(node, *op, scope);
  } else if (domain == "ai.onnx.preview" && node.op_type() == "FlexAttention") {
    import_flex_attention(node, *op, scope);
  } else if (domain.empty() && node.op_type() == "Constant") {
    import_constant(node, *op, scope);
  } else if (!import_sequence(node, *op, scope)) {
    import_operator(node, *op, scope);
  }
}

/// Throws at once where a limit is passed: what is wrong besides is of no interest.
void Importer::count_node(const onnx::NodeProto& node, const Scope& scope) {
  const auto fail = [](std::string message, std::string help) {
    Diagnostic diagnostic;
    diagnostic.code = "E0004";
    diagnostic.message = std::move(message);
    diagnostic.help = std::move(help);
    throw CompileError(ExitCode::kModel, std::vector<Diagnostic>{std::move(diagnostic)});
  };
  const Limits& limits = options_.limits;
  if (++nodes_ > limits.nodes)
    fail(fmt::format("the model has more nodes than the limit of {}", limits.nodes), "");
  if (scope.calls.empty() && !scope.is_repeated) return;
  const char* const help = "functions that call functions several times multiply; inline them by other means";
  const char* const makers = scope.is_repeated ? "trips of loops" : "calls of functions";
  if (++nodes_of_calls_ > limits.nodes_of_calls) {
    fail(fmt::format("{} make more nodes than the limit of {}", makers, limits.nodes_of_calls), help);
  }
  // Names get the prefix, a call also says where it is.
  const std::size_t names = scope.prefix.size() * static_cast<std::size_t>(node.output_size() + 1);
  bytes_of_calls_ += static_cast<std::int64_t>(node.ByteSizeLong() + names + scope.place.size());
  if (bytes_of_calls_ > limits.bytes_of_calls) {
    fail(fmt::format("{} make more bytes of names and values than the limit of {}", makers,
                     limits.bytes_of_calls),
         help);
  }
}

void Importer::check_opset(const onnx::NodeProto& node, const ir::Operator& op, const Scope& scope) {
  const std::string domain(op.domain);
  const std::optional<int> opset = scope.opsets->version(domain);
  if (!opset) {
    if (!warned_.insert("domain " + domain).second) return;
    if (domain.empty()) {
      error("E0102", "the model uses operators of ai.onnx but does not import the domain",
            location(node, scope), "add opset_import [\"\" : 21]");
    } else {
      warning("W0113", fmt::format("the model uses operators of {} but does not import the domain", domain),
              location(node, scope));
    }
    return;
  }
  if (op.versions.empty() || *opset >= op.versions.front() || op.versions.front() <= kOldestOpset) return;
  if (!warned_.insert("operator " + domain + "." + std::string(op.name)).second) return;
  warning("W0114",
          fmt::format("{} exists from opset {} on, but the model imports opset {}; it is read as the former",
                      operator_name(node), op.versions.front(), *opset),
          location(node, scope));
}

/// Constant nodes do not become nodes: their record, in a graph of its own, says the value.
void Importer::import_constant(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope) {
  ir::Graph alone;
  try {
    if (node.output_size() != 1 || node.input_size() != 0)
      operator_error("a Constant has one output and no input");
    ir::Attributes attributes = import_attributes(node, scope.environment, options_.limits, &external_);
    const int opset = scope.opsets->version("").value_or(1);
    check_legacy_attributes(op, opset, attributes);
    const ir::NodeId id = alone.add_node(op, {}, std::move(attributes), 1);
    ir::RewriteContext context(alone, id, opset);
    op.normalise(context);
    ir::complete_attributes(op, alone.node(id).attributes);
    ir::infer_node(alone, id);
    ir::Tensor value = ir::evaluate_node(alone, id, {}).at(0);
    note_number(value, "");
    bind(scope, node.output(0),
         Binding::of(scope.graph->add_constant(std::move(value), scope.prefix + node.output(0))));
  } catch (const ExternalDataError& failure) {
    node_error(diagnostics_, node, scope, "E0307", failure);
    poison_results(node, scope);
  } catch (const OperatorError& failure) {
    node_error(diagnostics_, node, scope, "E0301", failure);
    poison_results(node, scope);
  }
}

void Importer::import_operator(const onnx::NodeProto& node, const ir::Operator& op, Scope& scope) {
  ir::Attributes attributes;
  try {
    attributes = import_attributes(node, scope.environment, options_.limits, &external_);
    check_legacy_attributes(op, scope.opsets->version(op.domain).value_or(1), attributes);
  } catch (const OperatorError& failure) {
    add_attribute_error(node, scope, failure);
    poison_results(node, scope);
    return;
  }
  auto operands = operands_of(node, scope);
  if (!operands) {
    poison_results(node, scope);
    return;
  }
  // Omitted results count where an operator takes any number (Split); beyond what it has they say nothing.
  int last = node.output_size();
  while (op.results.max >= 0 && last > op.results.max && node.output(last - 1).empty()) --last;
  const std::vector<std::string> results(node.output().begin(), node.output().begin() + last);
  std::vector<std::string> words = ir::words_of(attributes);
  const ir::NodeId id = add_node(node, op, std::move(*operands), std::move(attributes), results, scope);
  if (type_node(id, scope, scope.opsets->version(op.domain).value_or(1)) &&
      note_words(node, id, std::move(words), scope)) {
    bind_results(node, id, scope);
  } else {
    poison_results(node, scope);
  }
}

std::optional<std::vector<ir::ValueId>> Importer::operands_of(const onnx::NodeProto& node,
                                                              const Scope& scope) {
  std::vector<ir::ValueId> operands;
  for (const std::string& name : node.input()) {
    operands.emplace_back();
    if (name.empty()) continue;
    const Binding* binding = scope.find(name);
    if (!binding || binding->state == Binding::State::kPoisoned) return std::nullopt;
    if (binding->state == Binding::State::kSequence) {
      node_error(*scope.findings, node, scope, "E0201",
                 {fmt::format("its input '{}' is a sequence, where a tensor is taken", printable(name)), ""});
      return std::nullopt;
    }
    operands.back() = binding->value;
  }
  while (!operands.empty() && !operands.back().valid()) operands.pop_back();
  return operands;
}

ir::NodeId Importer::add_node(const onnx::NodeProto& node, const ir::Operator& op,
                              std::vector<ir::ValueId> operands, ir::Attributes attributes,
                              const std::vector<std::string>& results, Scope& scope) {
  ir::Graph& graph = *scope.graph;
  const std::string name = scope.prefix + name_of(node);
  const ir::NodeId id = graph.add_node(op, std::move(operands), std::move(attributes), 0, name);
  for (const std::string& result : results) {
    if (result.empty()) {
      graph.node(id).results.emplace_back();
    } else {
      graph.add_result(id, scope.prefix + result);
    }
  }
  graph.node(id).origins = {{operator_name(node), name}};
  return id;
}

/// Operands that inputs of a run give, and that the model's declared shapes decide.
void Importer::settle_operands(ir::NodeId id, Scope& scope) {
  if (!scope.declared) return;
  const ir::Settled settled = ir::settle(*scope.graph, id, *scope.declared);
  tell_settled(settled, scope.graph->node(id).name, scope);
}

void Importer::tell_settled(const ir::Settled& settled, const std::string& node, const Scope& scope) {
  for (const std::string& sentence : settled) {
    warning("W0206", sentence,
            fmt::format("graph '{}', node '{}'", printable(scope.graph_name), printable(node)),
            "a run with another value ends with a status; --set makes the input a constant");
  }
}

/// What the sizes in force have to meet since the last node is what this one needs.
void Importer::note_checks(const ir::Node& node) {
  if (!places_ || !ir::SizesScope::in_force()) return;
  const std::string place = fmt::format("node '{}' ({})", printable(node.name), node.op->name);
  places_->resize(std::max(places_->size(), ir::SizesScope::in_force()->checks().size()), place);
}

bool Importer::type_node(ir::NodeId id, Scope& scope, int opset) {
  ir::Graph& graph = *scope.graph;
  try {
    as_operator_error([&] {
      if (graph.node(id).op->normalise) {
        ir::RewriteContext context(graph, id, opset);
        graph.node(id).op->normalise(context);
      }
      // Slots are never used twice while importing: what normalise() added follows the node.
      for (ir::NodeId added{id.index + 1, 0}; graph.alive(added); ++added.index) propagate(graph, added);
      settle_operands(id, scope);
      ir::Node& node = graph.node(id);
      ir::complete_attributes(*node.op, node.attributes);
      if (count_by_data(id, scope)) return;
      ir::infer_node(graph, id);
      check_result_sizes(graph, id);
      follow_counts(id, scope);
    });
    note_checks(graph.node(id));
  } catch (const OperatorError& failure) {
    Diagnostic diagnostic = ir::diagnose(graph, id, "E0201", failure);
    diagnostic.location += scope.place;
    scope.findings->add(std::move(diagnostic));
    return false;
  }
  if (!is_replaced(id, scope)) propagate(graph, id);
  return true;
}

void Importer::check_result_sizes(const ir::Graph& graph, ir::NodeId id) {
  for (const ir::ValueId result : graph.node(id).results) {
    if (!result.valid()) continue;
    const ir::TensorType& type = graph.value(result).type;
    if (type.rank() > options_.limits.rank) {
      operator_error(fmt::format("the result has {} dimensions, more than the limit of {}", type.rank(),
                                 options_.limits.rank));
    }
    if (ir::highest(type.count()) > options_.limits.tensor_elements) {
      operator_error(fmt::format("the result {} has more elements than the limit of {}", ir::to_string(type),
                                 options_.limits.tensor_elements));
    }
  }
}

/// Values that steer shapes are computed at once, so that inference may ask for them; everything else is left
/// to the folding pass. The producer stays.
void Importer::propagate(ir::Graph& graph, ir::NodeId id) {
  const ir::Node& node = graph.node(id);
  if (!node.op->deterministic || !node.subgraphs.empty()) return;
  const bool type_only = node.op->traits.reads_types_only;
  std::vector<const ir::Tensor*> operands;
  for (const ir::ValueId operand : node.operands) {
    const ir::Tensor* value = graph.constant(operand);
    if (operand.valid() && !value && !type_only) return;
    if (value && !type_only && value->count() > options_.limits.shape_value_elements) return;
    operands.push_back(value);
  }
  std::int64_t bytes = 0;
  for (const ir::ValueId result : node.results) {
    if (!result.valid()) continue;
    const ir::TensorType& type = graph.value(result).type;
    const std::int64_t limit = ir::is_float(type.element) ? options_.limits.propagated_elements
                                                          : options_.limits.shape_value_elements;
    if (!ir::are_constant(type.shape) || type.count() > limit) return;
    bytes += type.bytes();
  }
  if (folded_bytes_ + bytes > options_.limits.folded_bytes) return;
  std::vector<ir::Tensor> values;
  try {
    values = ir::evaluate_node(graph, id, operands);
  } catch (const OperatorError&) {
    return;  // nothing evaluates it: the value stays unknown
  } catch (const CompileError& failure) {
    // An index out of range: that is found again when the model runs.
    if (failure.exit_code() != ExitCode::kModel) throw;
    return;
  }
  folded_bytes_ += bytes;
  for (std::size_t i = 0; i < node.results.size(); ++i) {
    if (!node.results[i].valid()) continue;
    ir::Value& result = graph.value(node.results[i]);
    GC_CHECK(i < values.size() && values[i].type() == result.type);
    result.constant = std::move(values[i]);
  }
}

bool Importer::note_words(const onnx::NodeProto& node, ir::NodeId id, std::vector<std::string> words,
                          Scope& scope) {
  const ir::Node& made = scope.graph->node(id);
  const bool is_moved = ir::moves_words(*made.op);
  for (std::size_t i = 0; i < made.operands.size(); ++i) {
    const auto at = words_.find({scope.graph, made.operands[i]});
    if (at == words_.end()) continue;
    const bool are_columns = ir::is_float(scope.graph->value(made.operands[i]).type.element);
    if (are_columns && !is_moved) continue;  // the numbers of a map are numbers
    if (i > 0 || !is_moved) {
      node_error(*scope.findings, node, scope, "E0201",
                 {fmt::format("input {} are strings, which only move: the project has their positions", i),
                  "compute with numbers instead"});
      return false;
    }
    words = at->second;
  }
  if (!words.empty() && !made.results.empty() && made.results[0].valid())
    words_[{scope.graph, made.results[0]}] = std::move(words);
  return true;
}

bool Importer::tell_words(const onnx::ValueInfoProto& info, const Binding& made, const Scope& scope) {
  const auto at = words_.find({scope.graph, made.value});
  const bool is_map =
      info.type().has_sequence_type() && info.type().sequence_type().elem_type().has_map_type();
  if (at == words_.end() && !is_map) return false;
  if (is_trial_) return true;
  constexpr std::size_t kMostNamed = 64;
  const std::vector<std::string> none, &words = at == words_.end() ? none : at->second;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(words.size(), kMostNamed); ++i)
    shown.push_back(fmt::format("{} = '{}'", i, printable(words[i])));
  if (words.size() > shown.size()) shown.push_back(fmt::format("and {} more", words.size() - shown.size()));
  const bool are_columns = is_map || ir::is_float(scope.graph->value(made.value).type.element);
  const std::string name = printable(info.name());
  warning("W0207",
          are_columns
              ? fmt::format("the output '{}' is one tensor instead of maps; its columns: {}", name,
                            shown.empty() ? "those of the maps" : fmt::format("{}", fmt::join(shown, ", ")))
              : fmt::format("the output '{}' has positions (int64) instead of strings: {}", name,
                            fmt::join(shown, ", ")));
  return true;
}

void Importer::bind_results(const onnx::NodeProto& node, ir::NodeId id, Scope& scope) {
  const std::vector<ir::ValueId> results = scope.graph->node(id).results;
  bool has_names = false;
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].valid()) continue;
    has_names = true;
    bind(scope, node.output(static_cast<int>(i)), Binding::of(standing_for(scope, results[i])));
  }
  if (is_replaced(id, scope)) scope.graph->erase_node(id);
  // Nobody can read what has no name, and no pass has to think of a node without results.
  if (!has_names) scope.graph->erase_node(id);
}

void Importer::poison_results(const onnx::NodeProto& node, Scope& scope) {
  for (const std::string& name : node.output()) {
    if (!name.empty()) bind(scope, name, Binding{});
  }
}

/// Names made twice have been reported; the first definition stays.
void Importer::bind(Scope& scope, const std::string& name, Binding binding) {
  scope.names.emplace(name, binding);
}

std::string Importer::describe_operands(const onnx::NodeProto& node, const Scope& scope) {
  std::vector<std::string> shown;
  for (const std::string& name : node.input()) {
    const Binding* binding = name.empty() ? nullptr : scope.find(name);
    shown.push_back(describe(name.empty() ? Binding::omitted()
                             : binding    ? *binding
                                          : Binding{},
                             *scope.graph));
  }
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::string Importer::location(const onnx::NodeProto& node, const Scope& scope) {
  return fmt::format("graph '{}', node {} ({}){}", printable(scope.graph_name), shown_name(node),
                     operator_name(node), scope.place);
}

void Importer::node_error(Diagnostics& to, const onnx::NodeProto& node, const Scope& scope, std::string code,
                          const OperatorError& failure) {
  to.add({Severity::kError,
          std::move(code),
          fmt::format("{} {}: {}", operator_name(node), shown_name(node), failure.message),
          location(node, scope),
          {fmt::format("inputs: {}", describe_operands(node, scope))},
          failure.help});
}

void Importer::add_attribute_error(const onnx::NodeProto& node, const Scope& scope,
                                   const OperatorError& failure) {
  Diagnostic& diagnostic = wrong_attributes_[{operator_name(node), failure.message}];
  diagnostic.code = "E0103";
  diagnostic.help = failure.help;
  diagnostic.details.push_back(location(node, scope));
}

void Importer::report_attribute_errors() {
  for (auto& [key, diagnostic] : wrong_attributes_) {
    const std::size_t nodes = diagnostic.details.size();
    diagnostic.message = fmt::format("{}: {}{}", key.first, key.second,
                                     nodes == 1 ? "" : fmt::format("; {} nodes have it", nodes));
    diagnostics_.add(std::move(diagnostic));
  }
  wrong_attributes_.clear();
}

void Importer::error(std::string code, std::string message, std::string where, std::string help) {
  diagnostics_.add(
      {Severity::kError, std::move(code), std::move(message), std::move(where), {}, std::move(help)});
}

void Importer::warning(std::string code, std::string message, std::string where, std::string help) {
  diagnostics_.add(
      {Severity::kWarning, std::move(code), std::move(message), std::move(where), {}, std::move(help)});
}

}  // namespace gcompile::frontend
