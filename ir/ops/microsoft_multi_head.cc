// com.microsoft.MultiHeadAttention: attention of projected queries, keys and values,
// whose bias is still to add.

#include <fmt/format.h>

#include <cmath>

#include "ir/ops/attention.h"
#include "ir/ops/microsoft_mask.h"

namespace gcompile::ir {
namespace {

constexpr int kKey = 1, kValue = 2, kBias = 3, kMask = 4, kAttentionBias = 5, kPastKey = 6, kPastValue = 7,
              kPastLength = 8, kBeams = 9;
constexpr int kPresentKey = 1, kPresentValue = 2, kScores = 3;

/// How keys and values come.
enum class Layout {
  kApart,       // (batch, rows, heads * size) each
  kPacked,      // with the queries: (batch, rows, heads, 3, size)
  kPackedKeys,  // with each other: (batch, rows, heads, 2, size)
  kHeads,       // (batch, heads, rows, size) each, without bias
};

struct Sizes {
  Layout layout;
  Dim batch, rows, fresh, past;
  std::int64_t heads, size, value_size;
  Dim columns() const { return past + fresh; }
  ScoreSizes scores() const { return {batch, heads, rows, columns()}; }
};

Layout layout_of(const NodeView& node) {
  const std::size_t q = node.shape(0).size();
  if (!node.has_operand(kKey)) {
    if (q != 5 || node.has_operand(kValue)) {
      operator_error("without key the query must be packed: (batch, rows, heads, 3, size)");
    }
    return Layout::kPacked;
  }
  const std::size_t k = node.shape(kKey).size();
  if (q == 3 && k == 5 && !node.has_operand(kValue)) return Layout::kPackedKeys;
  const bool fits =
      q == 3 && (k == 3 || k == 4) && node.has_operand(kValue) && node.shape(kValue).size() == k;
  if (!fits) {
    operator_error(
        "query, key and value do not fit",
        "they are (batch, rows, heads * size) each; or key and value are (batch, heads, rows, size), or "
        "one key (batch, rows, heads, 2, size)");
  }
  return k == 3 ? Layout::kApart : Layout::kHeads;
}

/// The shape that a key or value must have.
Shape expected(const Sizes& s, std::int64_t size) {
  if (s.layout == Layout::kHeads) return {s.batch, s.heads, s.fresh, size};
  if (s.layout == Layout::kPackedKeys) return {s.batch, s.fresh, s.heads, 2, size};
  return {s.batch, s.fresh, s.heads * size};
}

void require_shape(const NodeView& node, int i, std::string_view name, const Shape& shape) {
  if (node.has_operand(i) && node.shape(i) != shape) {
    operator_error(
        fmt::format("{} must have the shape {}, not {}", name, to_string(shape), to_string(node.shape(i))));
  }
}

Sizes sizes_of(const NodeView& node) {
  Sizes s{};
  s.layout = layout_of(node);
  s.heads = node.attributes().int_of("num_heads");
  const Shape& q = node.shape(0);
  s.batch = q[0];
  s.rows = s.fresh = q[1];
  if (s.layout == Layout::kPacked) {
    s.size = s.value_size = q[4];
    if (q != Shape{s.batch, s.rows, s.heads, 3, s.size}) {
      operator_error(fmt::format("a packed query of shape {} has not {} heads", to_string(q), s.heads));
    }
  } else {
    if (s.heads < 1 || q[2] % s.heads != 0) {
      operator_error(fmt::format("a width of {} does not divide into {} heads", q[2], s.heads));
    }
    s.size = s.value_size = q[2] / s.heads;
    s.fresh = node.shape(kKey)[s.layout == Layout::kHeads ? 2 : 1];
    if (node.has_operand(kValue)) {
      const std::int64_t last = node.shape(kValue).back();
      s.value_size = s.layout == Layout::kHeads ? last : last / s.heads;
    }
    require_shape(node, kKey, "key", expected(s, s.size));
    require_shape(node, kValue, "value", expected(s, s.value_size));
  }
  if (node.has_operand(kPastKey) != node.has_operand(kPastValue)) {
    operator_error("past_key and past_value come together");
  }
  if (node.has_operand(kPastKey)) {
    if (node.shape(kPastKey).size() != 4) operator_error("past_key must have rank 4");
    s.past = node.shape(kPastKey)[2];
    require_shape(node, kPastKey, "past_key", {s.batch, s.heads, s.past, s.size});
    require_shape(node, kPastValue, "past_value", {s.batch, s.heads, s.past, s.value_size});
  }
  return s;
}

void infer(InferContext& context) {
  require_float(context, 0);
  for (const int i : {kPastLength, kBeams}) {
    if (!context.has_operand(i)) continue;
    operator_error(
        fmt::format("{} is not supported", i == kBeams ? "cache_indirection" : "past_sequence_length"),
        "without it, past_key and past_value are as long as the past");
  }
  const ElementType type = context.element(0);
  for (const int i : {kKey, kValue, kBias, kAttentionBias, kPastKey, kPastValue}) {
    if (context.has_operand(i) && context.element(i) != type) {
      operator_error(fmt::format("input {} has another type than the query", i));
    }
  }
  const Sizes s = sizes_of(context);
  require_shape(context, kBias, "bias", {s.heads * (2 * s.size + s.value_size)});
  if (context.has_operand(kMask) && context.shape(kMask).size() > 3) {
    operator_error("key_padding_mask has at most rank 3");
  }
  require_score_bias(context, kMask, kAttentionBias, s.scores());
  context.set_result(0, type, {s.batch, s.rows, s.heads * s.value_size});
  context.set_result(kPresentKey, type, {s.batch, s.heads, s.columns(), s.size});
  context.set_result(kPresentValue, type, {s.batch, s.heads, s.columns(), s.value_size});
  context.set_result(kScores, type, {s.batch, s.heads, s.rows, s.columns()});
}

/// Part `i` of a packed (batch, rows, heads, parts, size), as (batch, rows, heads * size).
ValueId unpacked(RewriteContext& context, ValueId packed, std::int64_t i) {
  const Shape shape = context.type(packed).shape;
  return emit_reshape(context, emit_slice(context, packed, 3, i, i + 1),
                      {shape[0], shape[1], shape[2] * shape[4]});
}

/// Queries, keys and values as (batch, heads, rows, size), with their bias.
std::vector<ValueId> projected(RewriteContext& context, const Sizes& s) {
  std::vector<ValueId> parts = {context.operand_id(0), context.operand_id(kKey), context.operand_id(kValue)};
  if (s.layout == Layout::kPacked) {
    for (std::int64_t i = 0; i < 3; ++i) parts[i] = unpacked(context, context.operand_id(0), i);
  } else if (s.layout == Layout::kPackedKeys) {
    for (std::int64_t i = 0; i < 2; ++i)
      parts[static_cast<std::size_t>(i) + 1] = unpacked(context, context.operand_id(kKey), i);
  }
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < 3 && (i == 0 || s.layout != Layout::kHeads); ++i) {
    const std::int64_t width = s.heads * (i == 2 ? s.value_size : s.size);
    if (context.has_operand(kBias)) {
      parts[i] = context.emit(
          "Add", {parts[i], emit_slice(context, context.operand_id(kBias), 0, begin, begin + width)});
    }
    parts[i] = emit_split_heads(context, parts[i], s.heads);
    begin += width;
  }
  return parts;
}

bool decompose(RewriteContext& context) {
  const Sizes s = sizes_of(context);
  const Attributes attributes = context.attributes();
  const std::vector<ValueId> parts = projected(context, s);
  const auto with_past = [&](ValueId value, int past) {
    return context.has_operand(past) && s.past != 0
               ? emit_concat(context, {context.operand_id(past), value}, 2)
               : value;
  };
  AttentionCore core;
  core.q = parts[0];
  core.k = with_past(parts[1], kPastKey);
  core.v = with_past(parts[2], kPastValue);
  core.scale = attributes.float_of("scale") != 0 ? attributes.float_of("scale")
                                                 : 1 / std::sqrt(static_cast<double>(s.size));
  core.mask = emit_score_bias(context, kMask, kAttentionBias, s.scores());
  core.empties = false;
  core.causal = attributes.flag("unidirectional");
  core.past = s.past;
  const AttentionValues values = emit_attention(context, core);
  context.replace_result(0, emit_join_heads(context, values.result));
  // A result must not be an operand itself: its name would change hands.
  const auto own = [&](ValueId value, int operand) {
    return value == context.operand_id(operand) ? context.emit("Identity", {value}) : value;
  };
  if (context.has_result(kPresentKey)) context.replace_result(kPresentKey, own(core.k, kKey));
  if (context.has_result(kPresentValue)) context.replace_result(kPresentValue, own(core.v, kValue));
  if (context.has_result(kScores)) context.replace_result(kScores, values.scores[2]);
  return true;
}

}  // namespace

const Operator& operator_MicrosoftMultiHeadAttention() {
  static const Operator op = {
      .name = "MultiHeadAttention",
      .domain = "com.microsoft",
      .versions = {1},
      .operands = {1, 10},
      .results = {1, 4},
      .attributes = {{"mask_filter_value", AttributeKind::kFloat, -10000.0f},
                     {"num_heads", AttributeKind::kInt, std::nullopt, true},
                     {"scale", AttributeKind::kFloat, 0.0f},
                     {"unidirectional", AttributeKind::kInt, std::int64_t{0}}},
      .accuracy = Accuracy::kSum,
      .summary = "scaled dot-product attention per head of projections, with their bias",
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
