#include "ir/graph/print.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/diagnostics.h"
#include "ir/forms/form.h"
#include "ir/graph/operator.h"

namespace gcompile::ir {
namespace {

std::string_view short_name(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "f32";
    case ElementType::kFloat64:
      return "f64";
    case ElementType::kFloat16:
      return "f16";
    case ElementType::kBFloat16:
      return "bf16";
    case ElementType::kInt8:
      return "i8";
    case ElementType::kInt16:
      return "i16";
    case ElementType::kInt32:
      return "i32";
    case ElementType::kInt64:
      return "i64";
    case ElementType::kUInt8:
      return "u8";
    case ElementType::kUInt16:
      return "u16";
    case ElementType::kUInt32:
      return "u32";
    case ElementType::kUInt64:
      return "u64";
    default:
      return name_of(type);
  }
}

std::string element_text(const Tensor& tensor, std::int64_t i) {
  const Scalar value = tensor.at(i);
  if (is_float(value.type)) return fmt::format("{:.9g}", value.real);
  return value.type == ElementType::kUInt64 ? fmt::format("{}", static_cast<std::uint64_t>(value.integer))
                                            : fmt::format("{}", value.integer);
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}

  void print_graph(const Graph& graph, const std::string& indent) {
    text_ += fmt::format("{}graph {} (", indent, name_text(graph.name));
    for (std::size_t i = 0; i < graph.inputs().size(); ++i) {
      text_ += (i ? ", " : "") + value_text(graph, graph.inputs()[i]);
    }
    text_ += ") -> (";
    for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
      text_ += fmt::format("{}%{} {}", i ? ", " : "", graph.outputs()[i].index,
                           name_text(graph.output_names()[i]));
    }
    text_ += ")\n";
    if (!graph.trap.empty()) text_ += fmt::format("{}  trap: {}\n", indent, printable(graph.trap));
    for (const ValueId id : graph.values()) {
      const Value& value = graph.value(id);
      if (value.producer.valid() || !value.constant || graph.is_input(id)) continue;
      text_ += fmt::format("{}  {} = {}\n", indent, value_text(graph, id), constant_text(*value.constant));
    }
    for (const NodeId id : order_of(graph)) print_node(graph, id, indent + "  ");
  }

  std::string take() { return std::move(text_); }

 private:
  static std::vector<NodeId> order_of(const Graph& graph) {
    try {
      return graph.topological_order();
    } catch (const CompileError&) {
      return graph.nodes();
    }
  }

  /// Bare when it is a word, quoted otherwise.
  static std::string name_text(const std::string& name) {
    bool word = !name.empty();
    for (const char c : name) {
      word = word && ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                      c == '_' || c == '.' || c == '/' || c == '-');
    }
    return word ? printable(name) : fmt::format("'{}'", printable(name));
  }

  static std::string value_text(const Graph& graph, ValueId id) {
    const Value& value = graph.value(id);
    std::string text = fmt::format("%{} ", id.index);
    if (!value.name.empty()) text += name_text(value.name) + " ";
    text += short_text(value.type);
    if (!value.order.empty()) text += fmt::format(" order [{}]", fmt::join(value.order, ","));
    return text;
  }

  std::string constant_text(const Tensor& tensor) const {
    if (tensor.count() > options_.max_values) return "constant";
    std::string text = "constant [";
    for (std::int64_t i = 0; i < tensor.count(); ++i) text += (i ? ", " : "") + element_text(tensor, i);
    return text + "]";
  }

  void print_node(const Graph& graph, NodeId id, const std::string& indent) {
    const Node& node = graph.node(id);
    text_ += indent;
    for (std::size_t i = 0; i < node.results.size(); ++i) {
      text_ += i ? ", " : "";
      text_ += node.results[i].valid() ? value_text(graph, node.results[i]) : "-";
    }
    const std::string_view domain = node.op->domain;
    text_ += fmt::format(" = {}{}{}(", domain, domain.empty() ? "" : ".", node.op->name);
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      text_ += fmt::format("{}{}", i ? ", " : "",
                           node.operands[i].valid() ? fmt::format("%{}", node.operands[i].index) : "-");
    }
    text_ += ")";
    if (!node.attributes.all().empty()) {
      text_ += " {";
      bool first = true;
      for (const auto& [name, value] : node.attributes.all()) {
        text_ += fmt::format("{}{}={}", first ? "" : ", ", printable(name), to_string(value));
        first = false;
      }
      text_ += "}";
    }
    for (std::size_t i = 0; i < node.origins.size(); ++i) {
      text_ += (i ? ", " : "  # ") + to_string(node.origins[i]);
    }
    text_ += "\n";
    if (options_.forms && node.form) print_form(*node.form, indent + "  ");
    for (const Graph& subgraph : node.subgraphs) print_graph(subgraph, indent + "  ");
  }

  void print_lines(const std::string& lines, const std::string& indent) {
    std::size_t begin = 0;
    while (begin < lines.size()) {
      const std::size_t end = std::min(lines.find('\n', begin), lines.size());
      text_ += indent + lines.substr(begin, end - begin) + "\n";
      begin = end + 1;
    }
  }

  void print_form(const Form& form, const std::string& indent) {
    if (const auto* loops = std::get_if<LoopForm>(&form)) {
      print_lines(to_string(*loops), indent);
    } else if (const auto* contract = std::get_if<ContractForm>(&form)) {
      text_ += fmt::format("{}contract of {} operands in {}: {}\n", indent, contract->base_operands,
                           short_name(contract->accumulator), to_string(contract->work));
      print_lines(to_string(contract->epilogue), indent + "  ");
    } else if (const auto* library = std::get_if<LibraryForm>(&form)) {
      text_ += fmt::format("{}library {}\n", indent, to_string(library->work));
    } else {
      text_ += indent + "if\n";
    }
  }

  const PrintOptions& options_;
  std::string text_;
};

}  // namespace

std::string short_text(const TensorType& type) {
  std::string dims;
  for (const Dim dim : type.shape) dims += (dims.empty() ? "" : ",") + to_string(dim);
  return fmt::format("{}[{}]", short_name(type.element), dims);
}

std::string print(const Graph& graph, const PrintOptions& options) {
  Printer printer(options);
  printer.print_graph(graph, "");
  return printer.take();
}

}  // namespace gcompile::ir
