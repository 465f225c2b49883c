// Attention: softmax(scale * Q K' + mask) V per head, taken apart into MatMul,
// Softmax and element-wise operators.

#include "ir/ops/attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

namespace gcompile::ir {
namespace {

// Operands.
constexpr int kMask = 3, kPastKey = 4, kPastValue = 5, kValidLengths = 6;
// Results.
constexpr int kPresentKey = 1, kPresentValue = 2, kScores = 3;

struct Sizes {
  Dim batch, rows, new_columns, past;
  std::int64_t query_heads, heads, size, value_size;
  bool flat;  // (batch, rows, heads * size) operands
  Dim columns() const { return past + new_columns; }
};

std::int64_t head_count(const NodeView& node, const char* name) {
  if (!node.attributes().has(name))
    operator_error(fmt::format("inputs of rank 3 need the attribute '{}'", name));
  const std::int64_t count = node.attributes().int_of(name);
  if (count < 1) operator_error(fmt::format("{} = {} must be positive", name, count));
  return count;
}

Sizes sizes_of(const NodeView& node) {
  const Shape& q = node.shape(0);
  const Shape& k = node.shape(1);
  const Shape& v = node.shape(2);
  if ((q.size() != 3 && q.size() != 4) || k.size() != q.size() || v.size() != q.size()) {
    operator_error("Q, K and V must all have rank 3 or all have rank 4");
  }
  Sizes s{};
  s.flat = q.size() == 3;
  s.batch = q[0];
  if (s.flat) {
    s.query_heads = head_count(node, "q_num_heads");
    s.heads = head_count(node, "kv_num_heads");
    if (q[2] % s.query_heads != 0 || k[2] % s.heads != 0 || v[2] % s.heads != 0) {
      operator_error("the last dims of Q, K and V must be multiples of their heads");
    }
  } else {
    s.query_heads = q[1];
    s.heads = k[1];
  }
  s.rows = q[s.flat ? 1 : 2];
  s.new_columns = k[s.flat ? 1 : 2];
  s.size = s.flat ? q[2] / s.query_heads : q[3];
  s.value_size = s.flat ? v[2] / s.heads : v[3];
  s.past = node.has_operand(kPastKey) ? node.shape(kPastKey).at(2) : Dim();
  if (s.heads < 1 || s.query_heads % s.heads != 0) {
    operator_error(fmt::format("{} query heads cannot share {} key heads", s.query_heads, s.heads));
  }
  if ((s.flat ? k[2] / s.heads : k[3]) != s.size) operator_error("Q and K have heads of different sizes");
  if (!assume_equal(k[0], s.batch) || !assume_equal(v[0], s.batch) ||
      !assume_equal(v[s.flat ? 1 : 2], s.new_columns) || (!s.flat && v[1] != s.heads)) {
    operator_error(
        fmt::format("the shapes {}, {} and {} do not fit", to_string(q), to_string(k), to_string(v)));
  }
  return s;
}

void require_past(const NodeView& node, const Sizes& s) {
  if (node.has_operand(kPastKey) != node.has_operand(kPastValue)) {
    operator_error("past_key and past_value come together");
  }
  if (!node.has_operand(kPastKey)) return;
  const Shape keys = {s.batch, s.heads, s.past, s.size}, values = {s.batch, s.heads, s.past, s.value_size};
  const Shape &past_keys = node.shape(kPastKey), &past_values = node.shape(kPastValue);
  if (past_keys.size() != 4 || past_values.size() != 4 || !assume_equal_shapes(past_keys, keys) ||
      !assume_equal_shapes(past_values, values)) {
    operator_error("past_key and past_value must be (batch, kv heads, past rows, head size)");
  }
}

void infer(InferContext& context) {
  for (int i = 0; i < 3; ++i) require_float(context, i);
  if (context.element(1) != context.element(0)) operator_error("Q and K have different types");
  if (context.has_operand(kPastKey) && context.shape(kPastKey).size() != 4) {
    operator_error("past_key must have rank 4");
  }
  const Sizes s = sizes_of(context);
  require_past(context, s);
  const Shape scores = {s.batch, s.query_heads, s.rows, s.columns()};
  if (context.has_operand(kMask)) {
    Shape mask = context.shape(kMask);
    if (mask.empty()) operator_error("attn_mask must not be a scalar");
    if (context.element(kMask) != ElementType::kBool) require_float(context, kMask);
    // A mask may end early: what it does not name is masked.
    if (always_less(mask.back(), s.columns()) && mask.back() != 1) mask.back() = s.columns();
    if (broadcast(mask, scores) != scores) {
      operator_error(fmt::format("attn_mask of shape {} does not broadcast to {}",
                                 to_string(context.shape(kMask)), to_string(scores)));
    }
  }
  if (context.has_operand(kValidLengths) && context.shape(kValidLengths) != Shape{s.batch}) {
    operator_error("nonpad_kv_seqlen must have one value per batch entry");
  }
  if (context.has_operand(kValidLengths) && context.has_operand(kPastKey)) {
    operator_error("nonpad_kv_seqlen and past_key exclude each other");
  }
  for (const char* side : {"left_window_size", "right_window_size"}) {
    const std::int64_t size = context.attributes().int_of(side);
    if (size < -1) operator_error(fmt::format("{} = {} must be -1 or more", side, size));
  }
  const std::int64_t mode = context.attributes().int_of("qk_matmul_output_mode");
  if (mode < 0 || mode > 3) operator_error(fmt::format("qk_matmul_output_mode {} is not known", mode));
  const ElementType type = context.element(0);
  context.set_result(0, type,
                     s.flat ? Shape{s.batch, s.rows, s.query_heads * s.value_size}
                            : Shape{s.batch, s.query_heads, s.rows, s.value_size});
  context.set_result(kPresentKey, context.element(1), {s.batch, s.heads, s.columns(), s.size});
  context.set_result(kPresentValue, context.element(2), {s.batch, s.heads, s.columns(), s.value_size});
  context.set_result(kScores, type, scores);
}

ValueId with_past(RewriteContext& context, ValueId value, int past) {
  if (!context.has_operand(past)) return value;
  return emit_concat(context, {context.operand_id(past), value}, 2);
}

/// The mask with as many columns as the scores; what is missing is masked.
ValueId full_mask(RewriteContext& context, Dim columns) {
  if (!context.has_operand(kMask)) return {};
  const ValueId mask = context.operand_id(kMask);
  Shape shape = context.type(mask).shape;
  if (shape.back() == columns || shape.back() == 1) return mask;
  if (!always_less(shape.back(), columns)) return mask;  // equal
  shape.back() = columns - shape.back();
  const ElementType type = context.type(mask).element;
  const Scalar nothing = is_float(type) ? Scalar::of_real(type, -std::numeric_limits<double>::infinity())
                                        : Scalar::of_integer(ElementType::kBool, 0);
  const ValueId rest = context.constant(Tensor::filled({type, shape}, nothing), mask);
  return emit_concat(context, {mask, rest}, static_cast<std::int64_t>(shape.size()) - 1);
}

bool decompose(RewriteContext& context) {
  const Sizes s = sizes_of(context);
  const Attributes attributes = context.attributes();
  const ElementType type = context.element(0);
  std::vector<ValueId> operands = context.node().operands;
  if (s.flat) {
    for (std::size_t i = 0; i < 3; ++i) {
      operands[i] = emit_split_heads(context, operands[i], i == 0 ? s.query_heads : s.heads);
    }
  }
  AttentionCore core;
  core.q = operands[0];
  core.k = with_past(context, operands[1], kPastKey);
  core.v = with_past(context, operands[2], kPastValue);
  core.scale =
      attributes.has("scale") ? attributes.float_of("scale") : 1 / std::sqrt(static_cast<double>(s.size));
  core.softcap = attributes.float_of("softcap");
  core.mask = full_mask(context, s.columns());
  if (context.has_operand(kValidLengths)) core.lengths = context.operand_id(kValidLengths);
  core.causal = attributes.flag("is_causal");
  core.left = attributes.int_of("left_window_size");
  core.right = attributes.int_of("right_window_size");
  core.past = s.past;
  if (attributes.has("softmax_precision")) {
    core.precision = computable_type_of(attributes, "softmax_precision");
  }
  const AttentionValues values = emit_attention(context, core);
  const ValueId y = s.flat ? emit_join_heads(context, values.result) : values.result;
  context.replace_result(0, emit_cast(context, y, type));
  // A result must not be an operand itself: its name would change hands.
  const auto own = [&](ValueId value, int operand) {
    return value == context.operand_id(operand) ? context.emit("Identity", {value}) : value;
  };
  if (context.has_result(kPresentKey)) context.replace_result(kPresentKey, own(core.k, 1));
  if (context.has_result(kPresentValue)) context.replace_result(kPresentValue, own(core.v, 2));
  const auto mode = static_cast<std::size_t>(attributes.int_of("qk_matmul_output_mode"));
  if (context.has_result(kScores)) {
    context.replace_result(kScores, emit_cast(context, values.scores[mode], type));
  }
  return true;
}

}  // namespace

const Operator& operator_Attention() {
  static const Operator op = {
      .name = "Attention",
      .versions = {23, 24, 25},
      .operands = {3, 7},
      .results = {1, 4},
      .attributes = {{"is_causal", AttributeKind::kInt, std::int64_t{0}},
                     {"kv_num_heads", AttributeKind::kInt, std::nullopt},
                     {"left_window_size", AttributeKind::kInt, std::int64_t{-1}},
                     {"q_num_heads", AttributeKind::kInt, std::nullopt},
                     {"qk_matmul_output_mode", AttributeKind::kInt, std::int64_t{0}},
                     {"right_window_size", AttributeKind::kInt, std::int64_t{-1}},
                     {"scale", AttributeKind::kFloat, std::nullopt},
                     {"softcap", AttributeKind::kFloat, 0.0f},
                     {"softmax_precision", AttributeKind::kInt, std::nullopt}},
      .accuracy = Accuracy::kSum,
      .summary = "scaled dot-product attention per head",
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
