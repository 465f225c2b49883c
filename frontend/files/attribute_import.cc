#include "frontend/files/attribute_import.h"

#include <fmt/format.h>

#include "frontend/files/tensor_import.h"
#include "ir/graph/operator.h"

namespace gcompile::frontend {
namespace {
using onnx::AttributeProto;

ir::AttributeValue import_value(const AttributeProto& attribute, const Limits& limits,
                                ExternalData* external) {
  switch (attribute_type(attribute)) {
    case AttributeProto::FLOAT:
      return attribute.f();
    case AttributeProto::INT:
      return static_cast<std::int64_t>(attribute.i());
    case AttributeProto::STRING:
      return attribute.s();
    case AttributeProto::TENSOR:
      return import_tensor(attribute.t(), limits, external);
    case AttributeProto::FLOATS:
      return std::vector<float>(attribute.floats().begin(), attribute.floats().end());
    case AttributeProto::INTS:
      return std::vector<std::int64_t>(attribute.ints().begin(), attribute.ints().end());
    case AttributeProto::STRINGS:
      return std::vector<std::string>(attribute.strings().begin(), attribute.strings().end());
    case AttributeProto::GRAPH:
    case AttributeProto::GRAPHS:
      operator_error("graphs are attributes of If, Loop and Scan only");
    case AttributeProto::SPARSE_TENSOR:
    case AttributeProto::SPARSE_TENSORS:
      operator_error("sparse tensors are not supported");
    case AttributeProto::TENSORS:
      operator_error("lists of tensors are not supported");
    case AttributeProto::TYPE_PROTO:
    case AttributeProto::TYPE_PROTOS:
      operator_error("types as attributes are not supported");
    default:
      operator_error("it has no type");
  }
}

}  // namespace

const AttributeProto* resolve(const AttributeProto& attribute, const AttributeEnvironment* environment) {
  if (attribute.ref_attr_name().empty()) return &attribute;
  if (!environment) {
    operator_error(
        fmt::format("attribute '{}' refers to '{}', but only functions have attributes to refer to",
                    printable(attribute.name()), printable(attribute.ref_attr_name())));
  }
  const auto at = environment->find(attribute.ref_attr_name());
  return at == environment->end() ? nullptr : at->second;
}

int attribute_type(const AttributeProto& attribute) {
  if (attribute.type() != AttributeProto::UNDEFINED) return attribute.type();
  if (attribute.has_f()) return AttributeProto::FLOAT;
  if (attribute.has_i()) return AttributeProto::INT;
  if (attribute.has_s()) return AttributeProto::STRING;
  if (attribute.has_t()) return AttributeProto::TENSOR;
  if (attribute.has_g()) return AttributeProto::GRAPH;
  if (attribute.floats_size() > 0) return AttributeProto::FLOATS;
  if (attribute.ints_size() > 0) return AttributeProto::INTS;
  if (attribute.strings_size() > 0) return AttributeProto::STRINGS;
  return AttributeProto::UNDEFINED;
}

ir::Attributes import_attributes(const onnx::NodeProto& node, const AttributeEnvironment* environment,
                                 const Limits& limits, ExternalData* external) {
  ir::Attributes attributes;
  for (const AttributeProto& written : node.attribute()) {
    const AttributeProto* attribute = resolve(written, environment);
    if (!attribute) continue;
    const std::string shown = printable(written.name());
    if (attributes.has(written.name())) operator_error(fmt::format("attribute '{}' is given twice", shown));
    try {
      attributes.set(written.name(), import_value(*attribute, limits, external));
    } catch (const OperatorError& error) {
      operator_error(fmt::format("attribute '{}': {}", shown, error.message), error.help);
    }
  }
  return attributes;
}

}  // namespace gcompile::frontend
