#pragma once
// The scalar operators of expressions: one row each. The evaluator computes them in double with libm, the
// printer spells them as calls of the same name in gcrt/scalar/scalar.h.

#include <cstdint>
#include <span>
#include <string_view>

#include "ir/tensors/tensor.h"

namespace gcompile::ir {

enum class ScalarOp : std::uint8_t {
  // Leaves.
  kLoad,         // element of an operand at computed indices
  kConstant,     // literal
  kIota,         // value of an index expression, int64
  kAccumulator,  // result k of the reductions, or of the contraction, before this expression
  // Type changes.
  kCast,   // ONNX Cast: float to integer truncates, saturates, NaN gives 0; anything to bool is != 0
  kBits,   // the same bits as another type of the same width; neither is of 16-bit floats or bool
  kRound,  // explicit rounding to the element type: the edge of an ONNX operator inside a fused expression
  // Arithmetic of one type.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMod,
  kFmod,
  kMin,
  kMax,
  kPow,
  kNeg,
  kAbs,
  kSign,
  kBitAnd,
  kBitOr,
  kBitXor,
  kBitNot,
  kShiftLeft,
  kShiftRight,
  // Comparisons: bool result.
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
  kEqual,
  kNotEqual,
  // Bool arithmetic.
  kLogicalAnd,
  kLogicalOr,
  kLogicalXor,
  kLogicalNot,
  kSelect,  // (bool, a, b)
  // Floating point only.
  kIsNan,
  kIsInf,
  kIsPositiveInf,
  kIsNegativeInf,  // bool result
  kSqrt,
  kReciprocal,
  kFloor,
  kCeil,
  kTrunc,
  kRoundHalfEven,
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kErf,
  kTanh,
  kSigmoid,
  kSoftplus,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  // Random bits of uint64, from a position, a key and a stream: words 0 and 1 of a block of Philox, and words 2 and 3.
  kPhiloxLow,
  kPhiloxHigh,
};

constexpr int kScalarOpCount = static_cast<int>(ScalarOp::kPhiloxHigh) + 1;

struct ScalarOpRow {
  std::string_view name;  // also the function in gcrt/scalar/scalar.h
  int arity;
  bool bool_result;
  /// Rough cost in units of one addition, for the fusion bound (DESIGN law 1).
  int cost;
};

const ScalarOpRow& row_of(ScalarOp op);

constexpr bool is_comparison(ScalarOp op) { return op >= ScalarOp::kLess && op <= ScalarOp::kNotEqual; }

/// One operator on values of equal type (kSelect: bool, a, a). Floats are computed in double and NOT rounded:
/// rounding happens at kRound, kCast and the final store. Integers wrap at their width.
Scalar evaluate(ScalarOp op, std::span<const Scalar> arguments);
/// The bits of a value, of which a float is rounded first, as another type of the same width.
Scalar bits_as(const Scalar& value, ElementType to);
/// ONNX Cast with the stated results for NaN and overflow (gcrt/scalar/cast.h has the same table).
Scalar cast(const Scalar& value, ElementType to);

}  // namespace gcompile::ir
