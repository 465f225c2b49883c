#include "frontend/legacy_attributes.h"

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

}  // namespace

void check_legacy_attributes(const ir::Operator& op, int opset, const ir::Attributes& attributes) {
  const onnx::OpSchema* schema = nullptr;
  bool looked_up = false;
  for (const auto& [name, value] : attributes.all()) {
    const auto spec = std::find_if(op.attributes.begin(), op.attributes.end(),
                                   [&name = name](const ir::AttributeSpec& s) { return s.name == name; });
    std::optional<ir::AttributeKind> kind;
    if (spec != op.attributes.end()) {
      kind = spec->kind;
    } else {
      if (!looked_up)
        schema = onnx::OpSchemaRegistry::Schema(std::string(op.name), opset, std::string(op.domain));
      looked_up = true;
      // Domains whose schemas libonnx does not have: complete_attributes() decides after normalise().
      if (!schema) continue;
      const auto at = schema->attributes().find(name);
      if (at == schema->attributes().end()) continue;
      kind = kind_of(at->second.type);
    }
    if (!kind || *kind != ir::kind_of(value)) {
      ir::operator_error(fmt::format("attribute '{}' has the wrong kind", ir::printable(name)));
    }
  }
}

}  // namespace gcompile::frontend
