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
  // Storage only: tensors of these types can be read, moved and converted; no operator computes in them.
  kInt4,
  kUInt4,
  kInt2,
  kUInt2,
  kFloat8E4M3FN,
  kFloat8E4M3FNUZ,
  kFloat8E5M2,
  kFloat8E5M2FNUZ,
  kFloat8E8M0,
  kFloat4E2M1,
};

constexpr int kElementTypeCount = 23;

/// "float32", "bool", ... as numpy spells them where numpy has the type.
std::string_view name_of(ElementType type);
std::optional<ElementType> element_type_from_name(std::string_view name);
/// Bits of one element as stored in memory (4 for int4, 8 for bool).
int bits_of(ElementType type);
/// Bytes of `count` elements; those of less than 8 bits are packed, the first in the lowest bits, as in ONNX.
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

/// Floats of 8 and 4 bits (ONNX, "Float stored in 8 bits", "Float stored in 4 bits"; OCP, "Microscaling
/// Formats"): codes of at most 8 bits, each of which is one value.
bool is_small_float(ElementType type);
double small_float_value(ElementType type, std::uint8_t code);
/// The code of the nearest value, to even where two are as near, once. Beyond the largest: infinity where the
/// type has it, NaN where it has that, or else the largest. Of powers of two alone (float8e8m0) the upper one
/// is as near from 1.5, and what is no power within its range is NaN.
std::uint8_t small_float_code(ElementType type, double value);
/// The largest finite value of a small float.
double largest_of(ElementType type);

/// `value` rounded to the nearest representable value of floating `type`.
double round_to(ElementType type, double value);

}  // namespace gcompile::ir
