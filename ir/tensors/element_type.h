#pragma once
// Element types of tensors: names, sizes and classes. Numbering is our own; the frontend maps ONNX's.

#include <cstdint>
#include <optional>
#include <string_view>

namespace gcompile::ir {

enum class ElementType : std::uint8_t {
  kFloat32,
  kFloat64,
  kFloat16,
  kBFloat16,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kBool,
  // Storage only: tensors of these types can be read, kept and converted; no kernel computes in them.
  kInt4,
  kUInt4,
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
};

constexpr int kElementTypeCount = 19;

/// "float32", "bool", ... as numpy spells them where numpy has the type.
std::string_view name_of(ElementType type);
std::optional<ElementType> element_type_from_name(std::string_view name);
/// Bits of one element as stored in memory (4 for int4, 8 for bool).
int bits_of(ElementType type);
/// Bytes of `count` elements; sub-byte types are packed two to a byte, low nibble first (ONNX TensorProto).
std::int64_t bytes_of(ElementType type, std::int64_t count);
bool is_float(ElementType type);    // every floating type, storage-only ones included
bool is_integer(ElementType type);  // signed and unsigned, not bool
bool is_signed(ElementType type);   // signed integers and floats
/// Whether operators compute in this type (false for storage-only types).
bool is_computable(ElementType type);
/// Smallest and largest value of an integer type, as the wider of its sign class.
std::int64_t integer_lowest(ElementType type);
std::uint64_t integer_highest(ElementType type);

// Conversions between the 16- and 8-bit storage formats and float; to_* round to nearest even (IEEE
// 754-2019 4.3.1).
float half_to_float(std::uint16_t bits);
std::uint16_t float_to_half(float value);
float bfloat16_to_float(std::uint16_t bits);
std::uint16_t float_to_bfloat16(float value);
/// Decodes one float8 code (ONNX, "Float stored in 8 bits").
float float8_to_float(ElementType type, std::uint8_t bits);

/// `value` rounded to the nearest representable value of floating `type`.
double round_to(ElementType type, double value);

}  // namespace gcompile::ir
