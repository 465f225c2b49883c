// RotaryEmbedding of ai.onnx and of com.microsoft: a rotation of pairs of elements by angles from tables.

#include "ir/ops/rotary.h"

#include <fmt/format.h>

namespace gcompile::ir {

ValueId emit_rotation(RewriteContext& context, ValueId x, const Rotation& rotation) {
  const Shape shape = context.type(x).shape;
  const auto last = static_cast<std::int64_t>(shape.size()) - 1;
  const auto cut = [&](std::int64_t begin, std::int64_t end, std::int64_t step) {
    return begin == 0 && end == shape.back() && step == 1 ? x
                                                          : emit_slice(context, x, last, begin, end, step);
  };
  const std::int64_t size = rotation.size, half = size / 2;
  const ValueId a = rotation.interleaved ? cut(0, size, 2) : cut(0, half, 1);
  const ValueId b = rotation.interleaved ? cut(1, size, 2) : cut(half, size, 1);
  const auto product = [&](ValueId left, ValueId right) { return context.emit("Mul", {left, right}); };
  const ValueId real = context.emit("Sub", {product(a, rotation.cos), product(b, rotation.sin)});
  const ValueId imaginary = context.emit("Add", {product(a, rotation.sin), product(b, rotation.cos)});
  std::vector<ValueId> parts = {real, imaginary};
  if (rotation.interleaved) {
    Shape pairs = shape;
    pairs.back() = half;
    pairs.push_back(1);
    for (ValueId& part : parts) part = emit_reshape(context, part, pairs);
    pairs = shape;
    pairs.back() = size;
    parts = {emit_reshape(context, emit_concat(context, std::move(parts), last + 1), pairs)};
  }
  if (size < shape.back()) parts.push_back(cut(size, shape.back(), 1));
  return parts.size() == 1 ? parts.front() : emit_concat(context, std::move(parts), last);
}

namespace {

// ai.onnx: X, cos_cache, sin_cache, position_ids; com.microsoft: input, position_ids, cos_cache, sin_cache.
struct Operands {
  int cos, sin, positions;
};
constexpr Operands kStandard = {1, 2, 3}, kMicrosoft = {2, 3, 1};

struct Sizes {
  Dim batch, rows;
  std::int64_t heads, size, rotated;
  bool flat;  // (batch, rows, heads * size)
};

Sizes sizes_of(const NodeView& node, Operands at) {
  const Shape& x = node.shape(0);
  if (x.size() != 3 && x.size() != 4) {
    operator_error(fmt::format("the input must have rank 3 or 4, its shape is {}", to_string(x)));
  }
  if (node.shape(at.cos).empty()) operator_error("the tables of cosines and sines must not be scalars");
  Sizes s{};
  s.flat = x.size() == 3;
  s.batch = x[0];
  s.rows = x[s.flat ? 1 : 2];
  s.rotated = node.attributes().int_of("rotary_embedding_dim");
  s.heads = node.attributes().has("num_heads") ? node.attributes().int_of("num_heads") : 0;
  if (s.flat) {
    // com.microsoft: of heads that rotate as a whole the tables say the size.
    const std::int64_t told = 2 * node.shape(at.cos).back();
    if (s.heads == 0 && s.rotated == 0 && at.positions == kMicrosoft.positions && told > 0) {
      s.heads = x[2] / told;
    }
    if (s.heads == 0) operator_error("inputs of rank 3 need the attribute 'num_heads'");
    if (s.heads < 0 || x[2] % s.heads != 0) {
      operator_error(fmt::format("a last dim of {} does not divide into {} heads", x[2], s.heads));
    }
    s.size = x[2] / s.heads;
  } else {
    s.heads = x[1];
    s.size = x[3];
  }
  if (s.rotated == 0) s.rotated = s.size;
  if (s.rotated < 0 || s.rotated % 2 != 0 || s.rotated > s.size) {
    operator_error(fmt::format("{} elements of heads of {} cannot be rotated in pairs", s.rotated, s.size));
  }
  return s;
}

void require_tables(const NodeView& node, const Sizes& s, Operands at) {
  const Shape& cos = node.shape(at.cos);
  if (node.shape(at.sin) != cos) {
    operator_error(fmt::format("cos_cache and sin_cache have the shapes {} and {}", to_string(cos),
                               to_string(node.shape(at.sin))));
  }
  const bool by_position = node.has_operand(at.positions);
  const bool fits = by_position ? cos.size() == 2 : cos.size() == 3 && cos[0] == s.batch && cos[1] == s.rows;
  if (!fits || cos.back() != s.rotated / 2) {
    operator_error(fmt::format("cos_cache and sin_cache must be ({}, {}), their shape is {}",
                               by_position ? "positions" : "batch, rows", s.rotated / 2, to_string(cos)));
  }
}

template <const Operands& kAt>
void infer(InferContext& context) {
  for (const int i : {0, kAt.cos, kAt.sin}) {
    require_float(context, i);
    if (context.element(i) != context.element(0)) operator_error("the inputs have different types");
  }
  const Sizes s = sizes_of(context, kAt);
  require_tables(context, s, kAt);
  if (context.has_operand(kAt.positions)) {
    const Shape& positions = context.shape(kAt.positions);
    const bool first = kAt.positions == kMicrosoft.positions && positions == Shape{1};
    if (context.element(kAt.positions) != ElementType::kInt64) operator_error("position_ids must be int64");
    if (!first && positions != Shape{s.batch, s.rows}) {
      operator_error(
          fmt::format("position_ids must be (batch, rows), their shape is {}", to_string(positions)));
    }
  }
  context.set_result(0, context.operand(0));
}

/// The positions of all rows. com.microsoft: one number is that of the first row.
ValueId positions_of(RewriteContext& context, const Sizes& s, Operands at) {
  const ValueId given = context.operand_id(at.positions);
  if (context.shape(at.positions) != Shape{1}) return given;
  return context.emit("Add", {emit_counting(context, 0, {1, s.rows}), given});
}

template <const Operands& kAt>
bool decompose(RewriteContext& context) {
  const Sizes s = sizes_of(context, kAt);
  // One angle for every head of a row.
  const auto angles = [&](int table, ValueId positions) {
    ValueId rows = context.operand_id(table);
    if (positions.valid()) rows = context.emit("Gather", {rows, positions});
    const Dim batch = context.type(rows).shape[0];
    return emit_reshape(
        context, rows,
        s.flat ? Shape{batch, s.rows, 1, s.rotated / 2} : Shape{batch, 1, s.rows, s.rotated / 2});
  };
  const ValueId positions = context.has_operand(kAt.positions) ? positions_of(context, s, kAt) : ValueId{};
  const Rotation rotation = {angles(kAt.cos, positions), angles(kAt.sin, positions), s.rotated,
                             context.attributes().flag("interleaved")};
  ValueId x = context.operand_id(0);
  if (s.flat) x = emit_reshape(context, x, {s.batch, s.rows, s.heads, s.size});
  context.replace_result(0, emit_reshape(context, emit_rotation(context, x, rotation), context.shape(0)));
  return true;
}

template <const Operands& kAt>
Operator record(Arity operands) {
  Operator o;
  o.name = "RotaryEmbedding";
  o.operands = operands;
  o.attributes = {{"interleaved", AttributeKind::kInt, std::int64_t{0}},
                  {"num_heads", AttributeKind::kInt, std::nullopt},
                  {"rotary_embedding_dim", AttributeKind::kInt, std::int64_t{0}}};
  o.accuracy = Accuracy::kSum;
  o.summary = "rotates pairs of elements of each head by angles that follow from the position";
  o.infer = infer<kAt>;
  o.decompose = decompose<kAt>;
  return o;
}

}  // namespace

const Operator& operator_RotaryEmbedding() {
  static const Operator op = [] {
    Operator o = record<kStandard>({3, 4});
    o.versions = {23};
    return o;
  }();
  return op;
}

/// `is_packed_batching` says how rows came about, `scale` is read by no kernel:
/// both leave the result as it is.
const Operator& operator_MicrosoftRotaryEmbedding() {
  static const Operator op = [] {
    Operator o = record<kMicrosoft>({4, 4});
    o.domain = "com.microsoft";
    o.versions = {1};
    o.attributes.push_back({"is_packed_batching", AttributeKind::kInt, std::int64_t{0}});
    o.attributes.push_back({"scale", AttributeKind::kFloat, 1.0f});
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
