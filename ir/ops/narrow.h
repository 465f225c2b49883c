#pragma once
// Conversion to types that nothing computes in: floats of 8 and 4 bits, integers of 4 and 2 bits.

#include "ir/graph/operator.h"
#include "ir/loops/expression.h"

namespace gcompile::ir {

/// How values beyond the range of a type, or between two of its values, become one of them (ONNX Cast).
struct Narrowing {
  bool saturates = true;
  std::string_view power = "up";  // float8e8m0: "up", "down" or "nearest" power of two

  /// Reads the attributes `saturate` and `round_mode`, those that there are.
  static Narrowing of(const Attributes& attributes);
};

/// The type of bytes whose values include those of `type`, if that has less than 8 bits; else `type`.
ElementType byte_type(ElementType type);
/// x, of a type that is computed in, as a value of `to`: of its byte_type for less than 8 bits.
int narrowed(Dag& dag, int x, ElementType to, const Narrowing& narrowing);

}  // namespace gcompile::ir
