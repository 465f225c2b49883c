// Inputs and outputs of the model. A sequence of N is N of them, "x_0", "x_1", ..., and an optional is its element or
// nothing: how many there are is known when the model is compiled, by --elements or by data.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/nearest_name.h"
#include "frontend/files/tensor_import.h"
#include "frontend/import/importer.h"

namespace gcompile::frontend {

std::optional<DeclaredInput> Importer::declared_input(const onnx::ValueInfoProto& info) {
  const std::string where =
      fmt::format("graph '{}', input '{}'", printable(model_.graph().name()), printable(info.name()));
  const PortType port = port_type(info.type());
  if (!port.tensor) {
    error("E0304", fmt::format("input '{}' is no tensor", printable(info.name())), where,
          "maps, sparse values and sequences of anything but tensors are not supported");
    return std::nullopt;
  }
  const auto element = element_type_of(port.tensor->elem_type());
  if (!element) {
    error("E0304",
          fmt::format("input '{}' has elements of {}, which is not supported", printable(info.name()),
                      onnx_type_name(port.tensor->elem_type())),
          where);
    return std::nullopt;
  }
  DeclaredInput declared;
  declared.name = info.name();
  declared.element = *element;
  if (!port.tensor->has_shape()) return declared;
  declared.dims.emplace();
  for (const onnx::TensorShapeProto::Dimension& dim : port.tensor->shape().dim()) {
    DeclaredDim& added = declared.dims->emplace_back();
    if (dim.has_dim_value() && dim.dim_value() >= 0) added.size = dim.dim_value();
    if (dim.has_dim_param()) added.name = dim.dim_param();
  }
  return declared;
}

/// Before version 4 of the format every initializer had to be listed among the inputs, and some exporters
/// still list all of their weights there:
/// a long list of everything is that habit, and no choice of anybody's.
void Importer::warn_of_defaults(const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 5;
  if (names.empty() || model_.ir_version() < 4 || is_trial_) return;
  const auto initializers = static_cast<std::size_t>(model_.graph().initializer_size());
  if (names.size() > kMostNamed && names.size() == initializers) return;
  const bool all = names.size() <= kMostNamed;
  const std::vector<std::string> shown(names.begin(), all ? names.end() : names.begin() + kMostNamed);
  const bool is_one = names.size() == 1;
  warning("W0508", fmt::format("{} with a default became {}: '{}'{}",
                               is_one ? "an input" : fmt::format("{} inputs", names.size()),
                               is_one ? "a constant" : "constants", fmt::join(shown, "', '"),
                               all ? "" : fmt::format(" and {} more", names.size() - kMostNamed)));
}

/// Bindings of inputs that are not there, or are tensors, and inputs without one; false after errors.
bool Importer::check_counts() {
  const std::vector<ElementsBinding>& given = options_.bindings.elements;
  const auto mistake = [&](std::string code, const std::string& name, const std::string& why,
                           std::string help = {}) {
    error(std::move(code), fmt::format("--elements: {} '{}'", why, printable(name)), {}, std::move(help));
    return false;
  };
  bool is_good = true;
  for (const ElementsBinding& each : given) {
    const ModelPort* port = ports_.input(each.input);
    const bool is_list = port && (port->is_sequence || port->is_optional);
    if (!is_list) {
      std::vector<std::string> names;
      for (const ModelPort& input : ports_.inputs) {
        if (input.is_sequence || input.is_optional) names.push_back(input.name);
      }
      is_good = mistake("E0402", each.input, "the model has no sequence or optional as input",
                        did_you_mean(each.input, names));
    } else if (!each.count && !port->is_optional) {
      is_good = mistake("E0411", each.input, "only optionals can be none, which is not so of",
                        fmt::format("--elements {}=0 is a sequence of no elements", printable(each.input)));
    } else if (each.count && *each.count != 1 && !port->is_sequence) {
      is_good = mistake("E0411", each.input, "there is one tensor, or none, in the optional");
    }
  }
  std::vector<std::string> details, flags;
  for (const ModelPort& port : ports_.inputs) {
    if ((!port.is_sequence && !port.is_optional) || count_of(port)) continue;
    details.push_back(fmt::format("input '{}': {}{}", printable(port.name),
                                  port.is_optional ? "an optional " : "a ",
                                  port.is_sequence ? "sequence" : "tensor"));
    flags.push_back(fmt::format("--elements {}={}", printable(port.name), port.is_sequence ? 2 : 1));
    if (port.is_optional)
      details.back() += fmt::format("; --elements {}=none leaves it out", printable(port.name));
  }
  if (details.empty()) return is_good;
  Diagnostic open;
  open.code = "E0410";
  open.message =
      fmt::format("{}; a project is compiled for a given number of tensors in each",
                  details.size() == 1 ? "one input is a sequence or an optional"
                                      : fmt::format("{} inputs are sequences or optionals", details.size()));
  open.details = std::move(details);
  open.help = fmt::format("give numbers, for example {}", fmt::join(flags, " "));
  diagnostics_.add(std::move(open));
  return false;
}

const ElementsBinding* Importer::count_of(const ModelPort& port) const {
  const std::vector<ElementsBinding>& given = options_.bindings.elements;
  const auto found = std::find_if(given.begin(), given.end(),
                                  [&](const ElementsBinding& each) { return each.input == port.name; });
  return found == given.end() ? nullptr : &*found;
}

/// The tensors that an input consists of. Elements of a sequence may be of unlike sizes, though the model has one
/// name for them: one whose shape is given by itself has sizes of its own.
std::vector<DeclaredInput> Importer::tensors_of(const ModelPort& port, DeclaredInput declared) const {
  const ElementsBinding* count = count_of(port);
  if (count && !count->count) return {};
  if (!port.is_sequence) return {std::move(declared)};
  const InputBindings& given = options_.bindings;
  declared.sequence = port.name;
  std::vector<DeclaredInput> tensors(static_cast<std::size_t>(count ? *count->count : 0), declared);
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    DeclaredInput& tensor = tensors[k];
    tensor.name = port.element(k);
    const bool has_own_shape =
        given.data_shapes.count(tensor.name) > 0 ||
        std::any_of(given.shapes.begin(), given.shapes.end(),
                    [&](const ShapeBinding& shape) { return shape.input == tensor.name; });
    if (!has_own_shape || !tensor.dims) continue;
    for (DeclaredDim& dim : *tensor.dims) dim.name.clear();
  }
  return tensors;
}

void Importer::import_inputs(const onnx::GraphProto& graph, Scope& scope) {
  struct Parts {
    const ModelPort* port;
    ir::ElementType element;
    std::size_t count;  // of `declared`, one port's behind the other's
  };
  std::vector<Parts> parts;
  std::vector<DeclaredInput> declared;
  std::set<std::string> seen;
  std::vector<std::string> defaults;
  const bool are_counted = check_counts();
  std::map<std::string_view, const ModelPort*> ports;
  for (const ModelPort& port : ports_.inputs) ports.emplace(port.name, &port);
  for (const onnx::ValueInfoProto& info : graph.input()) {
    if (!seen.insert(info.name()).second) {
      error("E0502", fmt::format("the input '{}' is declared twice", printable(info.name())));
      continue;
    }
    if (scope.names.count(info.name()) > 0) {  // an initializer
      defaults.push_back(printable(info.name()));
      continue;
    }
    const auto port = ports.find(info.name());
    auto input = declared_input(info);
    if (!input || port == ports.end()) {
      bind(scope, info.name(), Binding{});
      continue;
    }
    std::vector<DeclaredInput> tensors = tensors_of(*port->second, *input);
    parts.push_back({port->second, input->element, tensors.size()});
    std::move(tensors.begin(), tensors.end(), std::back_inserter(declared));
  }
  warn_of_defaults(defaults);
  const std::vector<ResolvedInput> resolved =
      are_counted ? resolve_sizes(declared) : std::vector<ResolvedInput>();
  std::size_t at = 0;
  for (const auto& [port, element, count] : parts) {
    Sequence sequence{element, {}};
    for (const std::size_t end = at + count; at < end; ++at) {
      if (resolved.empty()) continue;
      const std::string& name = declared[at].name;
      if (resolved[at].constant) {
        sequence.values.push_back(scope.graph->add_constant(*resolved[at].constant, name));
      } else {
        note_type(resolved[at].type.element);
        sequence.values.push_back(scope.graph->add_input(name, resolved[at].type));
      }
    }
    const ElementsBinding* given = count_of(*port);
    if (!are_counted || sequence.values.size() < count) {
      bind(scope, port->name, Binding{});
    } else if (given && !given->count) {
      bind(scope, port->name, Binding::omitted());
    } else {
      bind(scope, port->name,
           port->is_sequence ? Binding::of(std::move(sequence)) : Binding::of(sequence.values.at(0)));
    }
  }
}

void Importer::import_outputs(const onnx::GraphProto& graph, Scope& scope) {
  if (graph.output_size() == 0) error("E0505", "the graph has no output");
  std::map<std::string, int> numbers;  // of a name, the last that a copy of it has
  std::set<std::string> seen, taken;
  for (const onnx::ValueInfoProto& info : graph.output()) taken.insert(info.name());
  for (const ModelPort& port : ports_.outputs) {
    const Binding* made = scope.find(port.name);
    if (!made || made->state != Binding::State::kSequence) continue;
    for (std::size_t k = 0; k < made->sequence->values.size(); ++k) taken.insert(port.element(k));
  }
  const auto add_copy = [&](ir::ValueId value, const std::string& name) {
    // The copy takes a place of its own, because outputs are counted.
    int& number = numbers.emplace(name, 1).first->second;
    do {
      ++number;
    } while (!taken.insert(fmt::format("{}_{}", name, number)).second);
    const std::string copy = fmt::format("{}_{}", name, number);
    warning("W0507", fmt::format("the output '{}' is listed twice; the copy is called '{}'", printable(name),
                                 printable(copy)));
    scope.graph->add_output(value, copy);
  };
  bool is_poisoned = false;
  for (std::size_t i = 0; i < ports_.outputs.size(); ++i) {
    const ModelPort& port = ports_.outputs[i];
    const Binding* made = scope.find(port.name);
    if (!made || made->state == Binding::State::kPoisoned) {
      if (!made && seen.insert(port.name).second)
        error("E0501", fmt::format("nothing makes the graph's output '{}'", printable(port.name)));
      is_poisoned = true;
      continue;
    }
    const bool is_first = seen.insert(port.name).second;
    if (is_first) {
      const onnx::ValueInfoProto& info = graph.output(static_cast<int>(i));
      const bool has_words = made->state == Binding::State::kValue && tell_words(info, *made, scope);
      check_output(info, *made, *scope.graph, has_words);
    }
    const bool is_sequence = made->state == Binding::State::kSequence;
    const ModelPort& named = is_first || !is_sequence ? port : *ports_.output(port.name);
    std::size_t k = 0;
    for (const ir::ValueId value : made->values()) {
      const std::string name = is_sequence ? named.element(k++) : port.name;
      is_first ? scope.graph->add_output(value, name) : add_copy(value, name);
    }
  }
  add_counts(scope, taken);
  if (graph.output_size() > 0 && scope.graph->outputs().empty() && !is_poisoned)
    error("E0505", "the graph has no output: all that it gives is empty sequences and optionals");
}

/// Declared shapes of outputs are hints (DESIGN law 9), declared element types are not.
void Importer::check_output(const onnx::ValueInfoProto& info, const Binding& made, const ir::Graph& graph,
                            bool has_words) {
  const std::string shown = printable(info.name());
  const bool is_sequence = made.state == Binding::State::kSequence;
  const PortType port = port_type(info.type());
  if (made.values().empty()) {
    warning("W0509", fmt::format("the output '{}' is {}, so that the project has no place for it", shown,
                                 is_sequence ? "an empty sequence" : "an optional without a value"));
  }
  if (!port.tensor || made.state == Binding::State::kOmitted) return;
  if (port.is_sequence != is_sequence) {
    error("E0204", fmt::format("the output '{}' is declared as a {}, but is {}", shown,
                               port.is_sequence ? "sequence" : "tensor", describe(made, graph)));
    return;
  }
  const onnx::TypeProto::Tensor& declared = *port.tensor;
  const ir::ElementType element = is_sequence ? made.sequence->element : graph.value(made.value).type.element;
  const bool has_positions = has_words && declared.elem_type() == onnx::TensorProto::STRING;
  if (declared.elem_type() != 0 && !has_positions && element_type_of(declared.elem_type()) != element) {
    error("E0204", fmt::format("the output '{}' is declared as {}, but its elements are {}", shown,
                               onnx_type_name(declared.elem_type()), ir::name_of(element)));
  }
  if (!declared.has_shape() || is_sequence) return;
  const ir::TensorType& type = graph.value(made.value).type;
  const auto& dims = declared.shape().dim();
  bool same = dims.size() == type.rank();
  std::string text;
  const ir::CountedAxis* const counted = counted_axis(graph, made.value);
  for (int i = 0; i < dims.size(); ++i) {
    const bool is_counted = counted && counted->axis == i;
    const bool given = dims[i].has_dim_value() && dims[i].dim_value() > 0 && !is_counted;
    text += fmt::format("{}{}", i > 0 ? ", " : "", given ? fmt::format("{}", dims[i].dim_value()) : "?");
    same = same && (!given || dims[i].dim_value() == type.shape[i]);
  }
  if (same) return;
  warning("W0205",
          fmt::format("the output '{}' is declared with shape [{}], but has {}; the declaration is ignored",
                      shown, text, ir::to_string(type.shape)));
}

}  // namespace gcompile::frontend
