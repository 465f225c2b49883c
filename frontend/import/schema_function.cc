#include "frontend/import/schema_function.h"

#include <fmt/format.h>
#include <onnx/defs/schema.h>
#include <onnx/shape_inference/implementation.h>

#include <algorithm>
#include <exception>
#include <string_view>

#include "base/diagnostics.h"
#include "base/operator_error.h"

namespace gcompile::frontend {

namespace {

/// Whether types and shapes belong together the schema's own inference says: a body may well compute something
/// of those that do not.
void check_types(const onnx::OpSchema& schema, onnx::NodeProto node, std::vector<onnx::TypeProto> types) {
  std::unordered_map<std::string, onnx::TypeProto*> by_name;
  for (int i = 0; i < node.input_size(); ++i) by_name[node.input(i)] = &types[static_cast<std::size_t>(i)];
  onnx::shape_inference::InferenceContextImpl context(node, by_name, {}, {});
  try {
    schema.GetTypeAndShapeInferenceFunction()(context);
  } catch (const std::exception& error) {
    constexpr std::string_view kTags[] = {"[ShapeInferenceError] ", "[TypeInferenceError] "};
    std::string_view message = error.what();
    for (const std::string_view tag : kTags) {
      if (message.rfind(tag, 0) == 0) message.remove_prefix(tag.size());
    }
    operator_error(std::string(message));
  }
}

/// Texts that a body compares with some of those that the specification allows, and takes for another otherwise.
void check_texts(const onnx::NodeProto& node) {
  constexpr std::string_view kReductions[] = {"none", "mean", "sum"};
  for (const onnx::AttributeProto& attribute : node.attribute()) {
    if (attribute.name() != "reduction") continue;
    if (std::find(std::begin(kReductions), std::end(kReductions), attribute.s()) != std::end(kReductions))
      continue;
    operator_error(
        fmt::format("attribute 'reduction' is '{}', which is not known", printable(attribute.s())));
  }
}

}  // namespace

std::optional<SchemaFunction> schema_function(const onnx::NodeProto& node, int opset,
                                              const std::vector<onnx::TypeProto>& types) {
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(node.op_type(), opset, onnx::ONNX_DOMAIN);
  if (!schema || schema->Deprecated()) return std::nullopt;
  if (!schema->HasFunction() && !schema->HasContextDependentFunction()) return std::nullopt;
  if (node.input_size() < schema->min_input()) {
    operator_error(fmt::format("the operator has at least {} inputs", schema->min_input()));
  }
  if (node.output_size() < schema->min_output() || node.output_size() > schema->max_output()) {
    operator_error(fmt::format("{} results, where the operator has {} to {}", node.output_size(),
                               schema->min_output(), schema->max_output()));
  }
  check_types(*schema, node, types);
  check_texts(node);
  SchemaFunction function;
  if (schema->HasFunction()) {
    function.proto = *schema->GetFunction();
  } else {
    const onnx::FunctionBodyBuildContextImpl context(node, types);
    try {
      if (!schema->BuildContextDependentFunction(context, function.proto)) return std::nullopt;
    } catch (const std::exception& error) {
      operator_error(fmt::format("the operator's function has no body for these operands: {}", error.what()));
    }
  }
  for (const auto& [name, attribute] : schema->attributes()) {
    if (attribute.default_value.name().empty()) continue;
    function.defaults.push_back(attribute.default_value);
  }
  return function;
}

}  // namespace gcompile::frontend
