#include "frontend/import/legacy_attributes.h"

#include <fmt/format.h>
#include <onnx/defs/schema.h>

#include <algorithm>
#include <optional>

namespace gcompile::frontend {
namespace {

std::optional<ir::AttributeKind> kind_of(onnx::AttributeProto::AttributeType type) {
  using onnx::AttributeProto;
  switch (type) {
    case AttributeProto::INT:
      return ir::AttributeKind::kInt;
    case AttributeProto::FLOAT:
      return ir::AttributeKind::kFloat;
    case AttributeProto::STRING:
      return ir::AttributeKind::kString;
    case AttributeProto::INTS:
      return ir::AttributeKind::kInts;
    case AttributeProto::FLOATS:
      return ir::AttributeKind::kFloats;
    case AttributeProto::STRINGS:
      return ir::AttributeKind::kStrings;
    case AttributeProto::TENSOR:
      return ir::AttributeKind::kTensor;
    default:
      return std::nullopt;
  }
}

/// The kind that this or any older opset gives an attribute: exporters write `axes` as an attribute after it
/// became an input, too. nullopt: no opset has the attribute, or libonnx does not know the operator.
std::optional<ir::AttributeKind> kind_in_schemas(const ir::Operator& op, int opset,
                                                 const std::string& attribute) {
  while (opset > 0) {
    const onnx::OpSchema* schema =
        onnx::OpSchemaRegistry::Schema(std::string(op.name), opset, std::string(op.domain));
    if (!schema) return std::nullopt;
    const auto at = schema->attributes().find(attribute);
    if (at != schema->attributes().end()) return kind_of(at->second.type);
    opset = schema->SinceVersion() - 1;
  }
  return std::nullopt;
}

}  // namespace

void check_legacy_attributes(const ir::Operator& op, int opset, ir::Attributes& attributes) {
  if (opset < 6 && op.domain.empty()) attributes.erase("consumed_inputs");
  for (const auto& [name, value] : attributes.all()) {
    const auto spec = std::find_if(op.attributes.begin(), op.attributes.end(),
                                   [&name = name](const ir::AttributeSpec& s) { return s.name == name; });
    const bool listed = spec != op.attributes.end();
    if (listed && spec->kind == ir::kind_of(value)) continue;
    std::optional<ir::AttributeKind> kind = kind_in_schemas(op, opset, name);
    if (!kind && listed) kind = spec->kind;
    if (!kind) {
      operator_error(fmt::format("attribute '{}' is not known for {}", printable(name), op.name));
    }
    if (*kind != ir::kind_of(value)) {
      operator_error(fmt::format("attribute '{}' has the wrong kind", printable(name)));
    }
  }
}

}  // namespace gcompile::frontend
