#include "codegen/loops/c_types.h"

#include <fmt/format.h>

#include <cmath>

#include "base/diagnostics.h"

namespace gcompile {

using ir::ElementType;

std::string kernel_type(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float";
    case ElementType::kFloat64:
      return "double";
    case ElementType::kFloat16:
      return "Half";
    case ElementType::kBFloat16:
      return "BFloat16";
    case ElementType::kFloat8E4M3FN:
      return "Float8E4M3FN";
    case ElementType::kFloat8E4M3FNUZ:
      return "Float8E4M3FNUZ";
    case ElementType::kFloat8E5M2:
      return "Float8E5M2";
    case ElementType::kFloat8E5M2FNUZ:
      return "Float8E5M2FNUZ";
    case ElementType::kFloat8E8M0:
      return "Float8E8M0";
    case ElementType::kBool:
      return "std::uint8_t";
    default:
      return fmt::format("std::{}_t", name_of(type));
  }
}

std::string api_type(ElementType type) {
  switch (type) {
    case ElementType::kFloat32:
      return "float";
    case ElementType::kFloat64:
      return "double";
    case ElementType::kFloat16:
    case ElementType::kBFloat16:
      return "uint16_t";
    case ElementType::kBool:
      return "uint8_t";
    default:
      // Codes of floats of 8 bits, and several elements in a byte.
      return is_computable(type) ? fmt::format("{}_t", name_of(type)) : "uint8_t";
  }
}

std::string literal(const ir::Scalar& value) {
  if (!is_float(value.type)) {
    if (value.type == ElementType::kInt64 && value.integer == INT64_MIN) return "INT64_MIN";
    if (value.type == ElementType::kUInt64) {
      return fmt::format("std::uint64_t{{{}u}}", static_cast<std::uint64_t>(value.integer));
    }
    return fmt::format("{}{{{}}}", kernel_type(value.type), value.integer);
  }
  const bool is_double = value.type == ElementType::kFloat64;
  const char* type = is_double ? "double" : "float";
  if (std::isnan(value.real)) return fmt::format("kNan<{}>", type);
  if (std::isinf(value.real)) {
    return fmt::format("{}kInfinity<{}>", value.real < 0 ? "-" : "", type);
  }
  // fmt prints the shortest text that reads back to the same value; it always has a point or an exponent.
  std::string text =
      is_double ? fmt::format("{}", value.real) : fmt::format("{}", static_cast<float>(value.real));
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return is_double ? text : text + "f";
}

}  // namespace gcompile
