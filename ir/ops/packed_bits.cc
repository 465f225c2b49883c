// UnpackBits and PackBits: elements of 2 and 4 bits, which lie in bytes from the lowest bits on, and the same values a
// byte each. Nothing else reads or writes them packed.

#include <fmt/format.h>

#include "ir/ops/narrow.h"
#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

constexpr int kBytes = 0, kShape = 1;

std::int64_t in_a_byte(ElementType type) { return 8 / bits_of(type); }

ElementType packed_type(const NodeView& node) {
  const ElementType type = type_of(node.attributes(), "to");
  if (bits_of(type) >= 8) operator_error(fmt::format("elements of {} are not packed", name_of(type)));
  return type;
}

int word(Dag& dag, ElementType type, std::int64_t value) {
  return dag.constant(Scalar::of_integer(type, value));
}

// UnpackBits ------------------------------------------------------------------------------------------------

void infer_unpack(InferContext& context) {
  const ElementType type = packed_type(context);
  Shape shape = context.known_sizes(kShape, "the shape");
  if (context.operand(kBytes) != TensorType{ElementType::kUInt8, {TensorType{type, shape}.bytes()}}) {
    operator_error(fmt::format("{} are not the bytes of {}", to_string(context.operand(kBytes)),
                               to_string(TensorType{type, shape})));
  }
  context.set_result(0, byte_type(type), std::move(shape));
}

/// The value of a code of float4e2m1: 0, 0.5, 1, 1.5, 2, 3, 4 or 6, and 8 is the sign.
int float4_of(Dag& dag, int code) {
  const auto number = [&](double value) { return dag.constant(ElementType::kFloat32, value); };
  const int low = dag.apply(ScalarOp::kBitAnd, {code, word(dag, ElementType::kUInt8, 7)});
  const int size = dag.cast(low, ElementType::kFloat32);
  const int half = dag.apply(ScalarOp::kMul, {size, number(0.5)});
  const int less = dag.apply(ScalarOp::kSub, {size, number(2)});
  const int twice = dag.apply(ScalarOp::kSub, {dag.apply(ScalarOp::kMul, {size, number(2)}), number(8)});
  const int upper =
      dag.apply(ScalarOp::kSelect, {dag.apply(ScalarOp::kLess, {size, number(6)}), less, twice});
  const int value =
      dag.apply(ScalarOp::kSelect, {dag.apply(ScalarOp::kLess, {size, number(4)}), half, upper});
  const int is_negative = dag.apply(ScalarOp::kGreater, {code, word(dag, ElementType::kUInt8, 7)});
  return dag.apply(ScalarOp::kSelect, {is_negative, dag.apply(ScalarOp::kNeg, {value}), value});
}

Form lower_unpack(const LowerContext& context) {
  const ElementType type = packed_type(context);
  const TensorType& result = context.result(0);
  LoopForm form = LoopForm::over(result.shape);
  Dag& dag = form.dag;
  const std::int64_t bits = bits_of(type);
  const Index position = linearise(form.identity(), result.shape);
  const Index at = floor_div(position, in_a_byte(type), form.ranges());
  const Index place = modulo(position, in_a_byte(type), form.ranges());
  const int byte = dag.load(kBytes, ElementType::kUInt8, {at});
  const int shift = dag.cast(dag.iota(place * bits), ElementType::kUInt8);
  const int moved = dag.apply(ScalarOp::kShiftRight, {byte, shift});
  const int code =
      dag.apply(ScalarOp::kBitAnd, {moved, word(dag, ElementType::kUInt8, (std::int64_t{1} << bits) - 1)});
  if (is_float(type)) {
    form.set_root(dag.cast(float4_of(dag, code), result.element));
  } else if (is_signed(type)) {
    const int sign = word(dag, result.element, std::int64_t{1} << (bits - 1));
    const int flipped = dag.apply(ScalarOp::kBitXor, {dag.cast(code, result.element), sign});
    form.set_root(dag.apply(ScalarOp::kSub, {flipped, sign}));
  } else {
    form.set_root(code);
  }
  return form;
}

// PackBits --------------------------------------------------------------------------------------------------

/// Behind the elements lie as many more as a byte may have besides its first.
void infer_pack(InferContext& context) {
  const ElementType type = packed_type(context);
  if (context.operand(0).rank() != 1 || context.element(0) != byte_type(type)) {
    operator_error(
        fmt::format("{} has no values of {} in a row", to_string(context.operand(0)), name_of(type)));
  }
  const Dim count = context.shape(0)[0] - (in_a_byte(type) - 1);
  context.set_result(0, ElementType::kUInt8, {bytes_of(type, count)});
}

int float4_code(Dag& dag, int x) {
  const auto number = [&](double value) { return dag.constant(ElementType::kFloat32, value); };
  const int value = dag.cast(x, ElementType::kFloat32);
  const int size = dag.apply(ScalarOp::kAbs, {value});
  const int twice = dag.apply(ScalarOp::kMul, {size, number(2)});
  const int more = dag.apply(ScalarOp::kAdd, {size, number(2)});
  const int half = dag.apply(ScalarOp::kMul, {dag.apply(ScalarOp::kAdd, {size, number(8)}), number(0.5)});
  const int upper = dag.apply(ScalarOp::kSelect, {dag.apply(ScalarOp::kLess, {size, number(4)}), more, half});
  const int code =
      dag.apply(ScalarOp::kSelect, {dag.apply(ScalarOp::kLess, {size, number(2)}), twice, upper});
  const int bits = dag.bits(value, ElementType::kInt32);  // also -0 has a sign
  const int is_negative = dag.apply(ScalarOp::kLess, {bits, word(dag, ElementType::kInt32, 0)});
  const int sign = dag.apply(ScalarOp::kSelect, {is_negative, number(8), number(0)});
  return dag.cast(dag.apply(ScalarOp::kAdd, {code, sign}), ElementType::kUInt8);
}

Form lower_pack(const LowerContext& context) {
  const ElementType type = packed_type(context);
  LoopForm form = LoopForm::over(context.result(0).shape);
  Dag& dag = form.dag;
  const std::int64_t bits = bits_of(type), count = in_a_byte(type);
  int byte = -1;
  for (std::int64_t k = 0; k < count; ++k) {
    const int x = dag.load(0, context.element(0), {Index::axis(0) * count + Index(k)});
    const int value = is_float(type) ? float4_code(dag, x) : dag.cast(x, ElementType::kUInt8);
    const int low =
        dag.apply(ScalarOp::kBitAnd, {value, word(dag, ElementType::kUInt8, (std::int64_t{1} << bits) - 1)});
    const int moved =
        k == 0 ? low : dag.apply(ScalarOp::kShiftLeft, {low, word(dag, ElementType::kUInt8, k * bits)});
    byte = k == 0 ? moved : dag.apply(ScalarOp::kBitOr, {byte, moved});
  }
  form.set_root(byte);
  return form;
}

}  // namespace

const Operator& operator_UnpackBits() {
  static const Operator op = {
      .name = "UnpackBits",
      .domain = "gcompile",
      .versions = {1},
      .operands = {2, 2},
      .attributes = {{"to", AttributeKind::kInt, std::nullopt, true}},
      .summary = "elements of less than 8 bits, which bytes hold packed, a byte each",
      .infer = infer_unpack,
      .lower = lower_unpack,
  };
  return op;
}

const Operator& operator_PackBits() {
  static const Operator op = {
      .name = "PackBits",
      .domain = "gcompile",
      .versions = {1},
      .attributes = {{"to", AttributeKind::kInt, std::nullopt, true}},
      .summary = "elements of less than 8 bits packed into bytes, the first in the lowest bits",
      .infer = infer_pack,
      .lower = lower_pack,
  };
  return op;
}

}  // namespace gcompile::ir
