// com.microsoft.Attention: projections of Q, K and V as one product, then attention per head.

#include <fmt/format.h>

#include <cmath>

#include "ir/ops/attention.h"
#include "ir/ops/microsoft_mask.h"

namespace gcompile::ir {
namespace {

constexpr int kWeights = 1, kBias = 2, kMask = 3, kPast = 4, kAttentionBias = 5, kPastLength = 6;

struct Sizes {
  Dim batch, rows, past;
  std::int64_t heads;
  std::vector<std::int64_t> widths;  // of Q, K, V
  Dim columns() const { return past + rows; }
  ScoreSizes scores() const { return {batch, heads, rows, columns()}; }
};

Sizes sizes_of(const NodeView& node) {
  const Attributes& attributes = node.attributes();
  const Shape& x = node.shape(0);
  const Shape& w = node.shape(kWeights);
  if (x.size() != 3 || w.size() != 2 || w[0] != x[2]) {
    operator_error(fmt::format("the input {} and the weights {} do not fit", to_string(x), to_string(w)));
  }
  const std::int64_t third = w[1] / 3;
  Sizes s{x[0], x[1], 0, attributes.int_of("num_heads"), {third, third, third}};
  if (attributes.has("qkv_hidden_sizes")) s.widths = attributes.ints_of("qkv_hidden_sizes");
  if (s.widths.size() != 3 || s.widths[0] + s.widths[1] + s.widths[2] != w[1] || s.widths[0] != s.widths[1]) {
    operator_error("qkv_hidden_sizes must be the widths of Q, K and V in the weights");
  }
  for (const std::int64_t width : s.widths) {
    if (s.heads < 1 || width < 0 || width % s.heads != 0) {
      operator_error(fmt::format("a width of {} is no multiple of {} heads", width, s.heads));
    }
  }
  if (node.has_operand(kPast)) {
    const Shape& past = node.shape(kPast);
    if (past.size() != 5) operator_error("past must have rank 5");
    s.past = past[3];
    if (s.widths[0] != s.widths[2] || past != Shape{2, s.batch, s.heads, s.past, s.widths[0] / s.heads}) {
      operator_error("past must be (2, batch, heads, past rows, head size)");
    }
  }
  return s;
}

void infer(InferContext& context) {
  require_float(context, 0);
  const Attributes& attributes = context.attributes();
  for (const char* name : {"do_rotary", "past_present_share_buffer"}) {
    if (attributes.flag(name)) operator_error(fmt::format("{} is not supported", name));
  }
  if (context.has_operand(kPastLength)) operator_error("past_sequence_length is not supported");
  const Sizes s = sizes_of(context);
  const std::int64_t total = s.widths[0] + s.widths[1] + s.widths[2];
  if (context.has_operand(kBias) && context.shape(kBias) != Shape{total}) {
    operator_error(fmt::format("the bias must have {} elements", total));
  }
  require_score_bias(context, kMask, kAttentionBias, s.scores());
  context.set_result(0, context.element(0), {s.batch, s.rows, s.widths[2]});
  context.set_result(1, context.element(0), {2, s.batch, s.heads, s.columns(), s.widths[0] / s.heads});
}

bool decompose(RewriteContext& context) {
  const Sizes s = sizes_of(context);
  const Attributes attributes = context.attributes();
  ValueId projected = context.emit("MatMul", {context.operand_id(0), context.operand_id(kWeights)});
  if (context.has_operand(kBias)) projected = context.emit("Add", {projected, context.operand_id(kBias)});
  std::vector<ValueId> parts;
  std::int64_t begin = 0;
  for (const std::int64_t width : s.widths) {
    parts.push_back(
        emit_split_heads(context, emit_slice(context, projected, 2, begin, begin + width), s.heads));
    begin += width;
  }
  for (std::int64_t i = 0; i < 2 && context.has_operand(kPast); ++i) {
    const Shape shape = {s.batch, s.heads, s.past, s.widths[0] / s.heads};
    const ValueId past =
        emit_reshape(context, emit_slice(context, context.operand_id(kPast), 0, i, i + 1), shape);
    ValueId& part = parts[static_cast<std::size_t>(i) + 1];
    part = emit_concat(context, {past, part}, 2);
  }
  AttentionCore core;
  core.q = parts[0];
  core.k = parts[1];
  core.v = parts[2];
  const double size = static_cast<double>(s.widths[0] / s.heads);
  core.scale = attributes.float_of("scale") != 0 ? attributes.float_of("scale") : 1 / std::sqrt(size);
  core.mask = emit_score_bias(context, kMask, kAttentionBias, s.scores());
  core.empties = false;
  core.causal = attributes.flag("unidirectional");
  core.past = s.past;
  context.replace_result(0, emit_join_heads(context, emit_attention(context, core).result));
  if (context.has_result(1)) {
    Shape one = context.type(core.k).shape;
    one.insert(one.begin(), 1);
    const ValueId k = emit_reshape(context, core.k, one);
    context.replace_result(1, emit_concat(context, {k, emit_reshape(context, core.v, one)}, 0));
  }
  return true;
}

}  // namespace

const Operator& operator_MicrosoftAttention() {
  static const Operator op = {
      .name = "Attention",
      .domain = "com.microsoft",
      .versions = {1},
      .operands = {2, 7},
      .results = {1, 2},
      .attributes = {{"do_rotary", AttributeKind::kInt, std::int64_t{0}},
                     {"mask_filter_value", AttributeKind::kFloat, -10000.0f},
                     {"num_heads", AttributeKind::kInt, std::nullopt, true},
                     {"past_present_share_buffer", AttributeKind::kInt, std::int64_t{0}},
                     {"qkv_hidden_sizes", AttributeKind::kInts, std::nullopt},
                     {"rotary_embedding_dim", AttributeKind::kInt, std::int64_t{0}},
                     {"scale", AttributeKind::kFloat, 0.0f},
                     {"unidirectional", AttributeKind::kInt, std::int64_t{0}}},
      .accuracy = Accuracy::kSum,
      .summary = "projections and scaled dot-product attention",
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
