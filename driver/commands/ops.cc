#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>

#include "base/nearest_name.h"
#include "driver/command_line/option_table.h"
#include "driver/commands/commands.h"
#include "ir/graph/operator.h"
#include "nlohmann/json.hpp"

namespace gcompile {
namespace {

using Json = nlohmann::ordered_json;

/// Not internal: a model can name it.
std::vector<const ir::Operator*> operators_of_models() {
  std::vector<const ir::Operator*> list;
  for (const ir::Operator* op : ir::all_operators()) {
    if (op->domain != "gcompile") list.push_back(op);
  }
  return list;
}

std::string domain_of(const ir::Operator& op) {
  return op.domain.empty() ? "ai.onnx" : std::string(op.domain);
}

/// As `gcompile ops` takes it: "Conv", "com.microsoft.MatMulNBits".
std::string full_name(const ir::Operator& op) {
  return op.domain.empty() ? std::string(op.name) : fmt::format("{}.{}", op.domain, op.name);
}

/// The operators of a name, of whatever domain where none is named.
std::vector<const ir::Operator*> operators_called(const std::string& name) {
  std::vector<const ir::Operator*> list;
  std::vector<std::string> known;
  for (const ir::Operator* op : operators_of_models()) {
    known.emplace_back(op->name);
    if (name == known.back() || name == full_name(*op) || name == domain_of(*op) + "." + known.back())
      list.push_back(op);
  }
  if (list.empty()) {
    const std::string nearest = did_you_mean(name, known);
    usage_error(fmt::format("there is no operator '{}' among the supported ones", printable(name)),
                nearest.empty() ? "`gcompile ops` lists them" : nearest);
  }
  return list;
}

const char* name_of(ir::AttributeKind kind) {
  switch (kind) {
    case ir::AttributeKind::kInt:
      return "int";
    case ir::AttributeKind::kFloat:
      return "float";
    case ir::AttributeKind::kString:
      return "string";
    case ir::AttributeKind::kInts:
      return "ints";
    case ir::AttributeKind::kFloats:
      return "floats";
    case ir::AttributeKind::kStrings:
      return "strings";
    case ir::AttributeKind::kTensor:
      return "tensor";
  }
  GC_CHECK(false);
}

const char* text_of(ir::Accuracy accuracy) {
  switch (accuracy) {
    case ir::Accuracy::kExact:
      return "exact, bit for bit";
    case ir::Accuracy::kRounding:
      return "one rounding for each element";
    case ir::Accuracy::kFunction:
      return "a function within a few units of the last place";
    case ir::Accuracy::kSum:
      return "sums in another order";
  }
  GC_CHECK(false);
}

Json arity_json(const ir::Arity& arity) {
  return {{"least", arity.min}, {"most", arity.max < 0 ? Json() : Json(arity.max)}};
}

/// "1", "1 to 3", "1 or more".
std::string arity_text(const ir::Arity& arity) {
  if (arity.max < 0) return fmt::format("{} or more", arity.min);
  return arity.min == arity.max ? std::to_string(arity.min) : fmt::format("{} to {}", arity.min, arity.max);
}

Json operator_json(const ir::Operator& op) {
  Json attributes = Json::array();
  for (const ir::AttributeSpec& attribute : op.attributes) {
    attributes.push_back(
        {{"name", attribute.name},
         {"kind", name_of(attribute.kind)},
         {"required", attribute.required},
         {"default", attribute.default_value ? Json(to_string(*attribute.default_value)) : Json()}});
  }
  return {{"name", op.name},
          {"domain", domain_of(op)},
          {"versions", op.versions},
          {"summary", op.summary},
          {"operands", arity_json(op.operands)},
          {"results", arity_json(op.results)},
          {"attributes", attributes},
          {"accuracy", text_of(op.accuracy)}};
}

void print_row(const ir::Operator& op) {
  std::puts(fmt::format("{:<32} {:<20} {}", full_name(op), fmt::format("{}", fmt::join(op.versions, ", ")),
                        op.summary)
                .c_str());
}

void print_record(const ir::Operator& op) {
  std::puts(fmt::format("{}: {}", full_name(op), op.summary).c_str());
  std::puts(fmt::format("  domain      {}", domain_of(op)).c_str());
  std::puts(fmt::format("  opsets      every one; the definition changed in {}", fmt::join(op.versions, ", "))
                .c_str());
  std::puts(fmt::format("  operands    {}", arity_text(op.operands)).c_str());
  std::puts(fmt::format("  results     {}", arity_text(op.results)).c_str());
  std::puts(fmt::format("  accuracy    {}", text_of(op.accuracy)).c_str());
  const char* title = "attributes";
  for (const ir::AttributeSpec& attribute : op.attributes) {
    std::string text = fmt::format("{} ({})", attribute.name, name_of(attribute.kind));
    if (attribute.default_value) text += " = " + to_string(*attribute.default_value);
    if (attribute.required) text += ", required";
    std::puts(fmt::format("  {:<10}  {}", title, text).c_str());
    title = "";
  }
}

}  // namespace

Answer run_ops(const Options& options) {
  std::vector<const ir::Operator*> chosen;
  for (const std::string& name : options.operands) {
    for (const ir::Operator* op : operators_called(name)) chosen.push_back(op);
  }
  if (options.operands.empty()) chosen = operators_of_models();
  Answer answer;
  if (options.json) {
    answer.result["operators"] = Json::array();
    for (const ir::Operator* op : chosen) answer.result["operators"].push_back(operator_json(*op));
    return answer;
  }
  for (const ir::Operator* op : chosen) (options.operands.empty() ? print_row : print_record)(*op);
  if (options.operands.empty()) std::puts(fmt::format("{} operators", chosen.size()).c_str());
  return answer;
}

}  // namespace gcompile
