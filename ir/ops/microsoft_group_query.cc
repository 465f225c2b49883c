// com.microsoft.GroupQueryAttention: causal attention of groups of query heads over a cache of keys and
// values. Every sample of the batch has `seqlens_k` + 1 keys, the new ones of this run last; how many were
// before follows. A cache is as long as the past, then the result is longer by the new rows, or as long as it
// will ever be.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/ops/attention.h"
#include "ir/ops/rotary.h"

namespace gcompile::ir {
namespace {

constexpr int kKey = 1, kValue = 2, kPastKey = 3, kPastValue = 4, kLengths = 5, kTotal = 6, kCos = 7,
              kSin = 8, kPositions = 9, kBias = 10, kSinks = 11, kKeyScale = 12, kValueScale = 13,
              kQueryNorm = 14, kKeyNorm = 15;
constexpr int kPresentKey = 1, kPresentValue = 2, kScores = 3;

struct Sizes {
  bool packed;  // keys and values behind the queries
  Dim batch, rows;
  std::int64_t query_heads, heads, size;
  Dim past;                  // rows of the cache; 0 without one
  std::optional<Dim> total;  // the most keys of a sample, new ones included, where known
  Dim present;               // rows of the cache that results
  Dim columns() const { return total.value_or(present); }
  bool is_prompt() const { return total == rows; }
  bool knows_whether_prompt() const { return total && are_equal(*total, rows) != Truth::kUnknown; }
};

/// The value of total_sequence_length; with nothing before the new rows it is their number.
std::optional<Dim> known_total(const NodeView& node, Dim past, Dim rows) {
  if (past == 0) return rows;
  if (node.knows_sizes(kTotal)) return node.known_sizes(kTotal, "total_sequence_length").at(0);
  const Tensor* total = node.constant(kTotal);
  return total && total->count() == 1 ? std::optional<Dim>(total->int_at(0)) : std::nullopt;
}

/// Whether a cache of `past` rows may have `total` keys after `rows` new ones.
bool fits(Dim total, Dim past, Dim rows) {
  if (always_less(total, rows)) return false;
  return total == rows || total == past + rows || always_less_equal(total, past);
}

Sizes sizes_of(const NodeView& node) {
  Sizes s{};
  const Shape& q = node.shape(0);
  s.query_heads = node.attributes().int_of("num_heads");
  s.heads = node.attributes().int_of("kv_num_heads");
  if (q.size() != 3) operator_error(fmt::format("the query must have rank 3, its shape is {}", to_string(q)));
  if (s.heads < 1 || s.query_heads < 1 || s.query_heads % s.heads != 0) {
    operator_error(fmt::format("{} query heads cannot share {} key heads", s.query_heads, s.heads));
  }
  if (node.has_operand(kKey) != node.has_operand(kValue)) operator_error("key and value come together");
  s.packed = !node.has_operand(kKey);
  s.batch = q[0];
  s.rows = q[1];
  const std::int64_t heads = s.query_heads + (s.packed ? 2 * s.heads : 0);
  if (q[2] % heads != 0)
    operator_error(fmt::format("a width of {} does not divide into {} heads", q[2], heads));
  s.size = q[2] / heads;
  for (const int i : {kKey, kValue}) {
    if (!s.packed && node.shape(i) != Shape{s.batch, s.rows, s.heads * s.size}) {
      operator_error(fmt::format("key and value must have the shape {}, not {}",
                                 to_string(Shape{s.batch, s.rows, s.heads * s.size}),
                                 to_string(node.shape(i))));
    }
  }
  if (node.has_operand(kPastKey) != node.has_operand(kPastValue)) {
    operator_error("past_key and past_value come together");
  }
  if (node.has_operand(kPastKey)) {
    if (node.shape(kPastKey).size() != 4) operator_error("past_key must have rank 4");
    s.past = node.shape(kPastKey)[2];
    const Shape cache = {s.batch, s.heads, s.past, s.size};
    if (node.shape(kPastKey) != cache || node.shape(kPastValue) != cache) {
      operator_error(fmt::format("past_key and past_value must have the shape {}", to_string(cache)));
    }
  }
  s.total = known_total(node, s.past, s.rows);
  if (s.total && !fits(*s.total, s.past, s.rows)) {
    operator_error(fmt::format("total_sequence_length is {}, with {} new rows and a cache of {}", *s.total,
                               s.rows, s.past),
                   "it is their sum, or at most the length of a cache that is as long as it will ever be");
  }
  s.present = s.total ? max(s.past, *s.total) : s.past;
  return s;
}

void refuse_unsupported(const NodeView& node) {
  const Attributes& attributes = node.attributes();
  const bool quantised = attributes.string_of("k_quant_type") != "NONE" ||
                         attributes.string_of("v_quant_type") != "NONE" || node.has_operand(kKeyScale) ||
                         node.has_operand(kValueScale);
  if (quantised) operator_error("a quantised cache is not supported");
  if (attributes.flag("sliding_window_cache")) operator_error("sliding_window_cache is not supported");
  const std::int64_t window = attributes.int_of("local_window_size");
  if (window == 0 || window < -1)
    operator_error(fmt::format("local_window_size = {} is neither -1 nor positive", window));
  if (!attributes.flag("causal") && window != -1) operator_error("a local window needs causal attention");
  const std::int64_t scores = attributes.int_of("qk_output");
  if (scores < 0 || scores > 2) operator_error(fmt::format("qk_output {} is not known", scores));
}

void require_rotation(const NodeView& node, const Sizes& s) {
  if (!node.attributes().flag("do_rotary")) return;
  if (!node.has_operand(kCos) || !node.has_operand(kSin))
    operator_error("do_rotary needs cos_cache and sin_cache");
  const Shape& cos = node.shape(kCos);
  if (cos.size() != 2 || node.shape(kSin) != cos || cos[1] < 1 || 2 * cos[1] > s.size) {
    operator_error(fmt::format("cos_cache and sin_cache, of the shapes {} and {}, do not fit heads of {}",
                               to_string(cos), to_string(node.shape(kSin)), s.size));
  }
  if (node.has_operand(kPositions) &&
      (node.element(kPositions) != ElementType::kInt64 || node.shape(kPositions) != Shape{s.batch, s.rows})) {
    operator_error("position_ids must be int64 of (batch, rows)");
  }
}

void require_vector(const NodeView& node, int i, std::string_view name, std::int64_t count) {
  if (node.has_operand(i) && node.shape(i) != Shape{count}) {
    operator_error(
        fmt::format("{} must have {} elements, its shape is {}", name, count, to_string(node.shape(i))));
  }
}

void infer(InferContext& context) {
  require_float(context, 0);
  const ElementType type = context.element(0);
  refuse_unsupported(context);
  for (const int i : {kKey, kValue, kPastKey, kPastValue, kCos, kSin, kBias, kSinks, kQueryNorm, kKeyNorm}) {
    if (context.has_operand(i) && context.element(i) != type) {
      operator_error(fmt::format("input {} has another type than the query", i));
    }
  }
  if (!context.has_operand(kLengths) || !context.has_operand(kTotal)) {
    operator_error("seqlens_k and total_sequence_length are needed");
  }
  const Sizes s = sizes_of(context);
  if (element_count(context.shape(kLengths)) != s.batch)
    operator_error("seqlens_k must have one value per batch entry");
  require_rotation(context, s);
  require_vector(context, kSinks, "head_sink", s.query_heads);
  require_vector(context, kQueryNorm, "q_norm_weight", s.size);
  require_vector(context, kKeyNorm, "k_norm_weight", s.size);
  if (context.has_operand(kQueryNorm) != context.has_operand(kKeyNorm)) {
    operator_error("q_norm_weight and k_norm_weight come together");
  }
  const Shape scores = {s.batch, s.query_heads, s.rows, s.columns()};
  if (context.has_operand(kBias) && broadcast(context.shape(kBias), scores) != scores) {
    operator_error(fmt::format("attention_bias of shape {} does not broadcast to the scores {}",
                               to_string(context.shape(kBias)), to_string(scores)));
  }
  const Shape cache = {s.batch, s.heads, s.present, s.size};
  context.set_result(0, type, {s.batch, s.rows, s.query_heads * s.size});
  context.set_result(kPresentKey, type, cache);
  context.set_result(kPresentValue, type, cache);
  context.set_result(kScores, type, scores);
}

class Decomposition {
 public:
  explicit Decomposition(RewriteContext& context) : context_(context), s_(sizes_of(context)) {}

  bool run() {
    find_lengths();
    std::vector<ValueId> parts = heads();
    AttentionCore core;
    core.q = transposed(parts[0]);
    const ValueId keys = cached(transposed(parts[1]), kPastKey),
                  values = cached(transposed(parts[2]), kPastValue);
    core.k = used(keys);
    core.v = used(values);
    const float scale = attributes().float_of("scale");
    core.scale = scale != 0 ? scale : 1 / std::sqrt(static_cast<double>(s_.size));
    core.softcap = attributes().float_of("softcap");
    core.causal = attributes().flag("causal");
    // The window counts the row's own column.
    const std::int64_t window = attributes().int_of("local_window_size");
    core.left = window < 0 ? -1 : window - 1;
    // What a prompt has behind its end only rows behind its end see.
    if (!core.causal) core.lengths = lengths_;
    if (core.causal && !s_.is_prompt()) core.lengths = add(before_, s_.rows);
    core.mask = context_.operand_id(kBias);
    core.empties = false;
    core.sinks = sinks();
    const AttentionValues found = emit_attention(context_, core);
    context_.replace_result(0, emit_join_heads(context_, found.result));
    replace(kPresentKey, keys);
    replace(kPresentValue, values);
    if (context_.has_result(kScores)) replace(kScores, scores(found));
    return true;
  }

 private:
  const Attributes& attributes() const { return context_.attributes(); }
  ValueId number(Dim value) { return emit_number(context_, value); }
  ValueId add(ValueId value, Dim n) { return context_.emit("Add", {value, number(n)}); }
  void replace(int i, ValueId value) {
    if (context_.has_result(i)) context_.replace_result(i, value);
  }

  /// Keys of every sample, and those before the new ones;
  /// a prompt has none of these, however much of it is padding.
  void find_lengths() {
    const ValueId given = emit_cast(context_, context_.operand_id(kLengths), ElementType::kInt64);
    lengths_ = add(emit_reshape(context_, given, {s_.batch}), 1);
    if (s_.is_prompt()) {
      before_ = emit_zeros(context_, {ElementType::kInt64, {s_.batch}});
      return;
    }
    before_ = add(lengths_, -s_.rows);
    if (s_.knows_whether_prompt()) return;
    is_prompt_ = context_.emit("Equal", {total(), number(s_.rows)});
    before_ = context_.emit("Where", {is_prompt_, number(0), before_});
  }
  ValueId total() {
    return emit_reshape(context_, emit_cast(context_, context_.operand_id(kTotal), ElementType::kInt64), {});
  }

  /// Queries, keys and values as (batch, rows, heads, size), normalised and rotated.
  std::vector<ValueId> heads() {
    std::vector<ValueId> parts = {context_.operand_id(0), context_.operand_id(kKey),
                                  context_.operand_id(kValue)};
    const std::int64_t queries = s_.query_heads * s_.size, keys = s_.heads * s_.size;
    if (s_.packed) {
      const ValueId all = parts[0];
      parts = {emit_slice(context_, all, 2, 0, queries),
               emit_slice(context_, all, 2, queries, queries + keys),
               emit_slice(context_, all, 2, queries + keys, queries + 2 * keys)};
    }
    for (std::size_t i = 0; i < 3; ++i) {
      parts[i] =
          emit_reshape(context_, parts[i], {s_.batch, s_.rows, i == 0 ? s_.query_heads : s_.heads, s_.size});
    }
    if (context_.has_operand(kQueryNorm)) {
      parts[0] = normalised(parts[0], kQueryNorm);
      parts[1] = normalised(parts[1], kKeyNorm);
    }
    if (!attributes().flag("do_rotary")) return parts;
    const ValueId positions = row_positions();
    const Rotation rotation = {angles(kCos, positions), angles(kSin, positions), 2 * context_.shape(kCos)[1],
                               attributes().flag("rotary_interleaved")};
    for (std::size_t i = 0; i < 2; ++i) parts[i] = emit_rotation(context_, parts[i], rotation);
    return parts;
  }

  ValueId normalised(ValueId value, int weight) {
    Attributes attributes;
    attributes.set("axis", std::int64_t{-1});
    attributes.set("epsilon", context_.attributes().float_of("qk_norm_epsilon"));
    return context_.emit("RMSNormalization", {value, context_.operand_id(weight)}, attributes);
  }

  /// (batch, rows). Given ones of a prompt count from the first of them.
  ValueId row_positions() {
    const ValueId rows = emit_counting(context_, 0, {1, s_.rows});
    const auto from = [&](ValueId first, Dim batch) {
      return context_.emit("Add", {emit_reshape(context_, first, {batch, 1}), rows});
    };
    if (!context_.has_operand(kPositions)) return from(before_, s_.batch);
    const ValueId given = context_.operand_id(kPositions);
    if (s_.knows_whether_prompt() && !s_.is_prompt()) return given;
    const ValueId first = emit_slice(context_, emit_slice(context_, given, 0, 0, 1), 1, 0, 1);
    const ValueId counted = from(first, 1);
    return s_.is_prompt() ? counted : context_.emit("Where", {is_prompt_, counted, given});
  }

  ValueId angles(int table, ValueId positions) {
    const ValueId rows = context_.emit("Gather", {context_.operand_id(table), positions});
    const Shape shape = context_.type(rows).shape;
    return emit_reshape(context_, rows, {shape[0], shape[1], 1, shape[2]});
  }

  ValueId transposed(ValueId value) { return emit_transpose(context_, value, {0, 2, 1, 3}); }

  /// The cache with the new rows behind those of before.
  ValueId cached(ValueId fresh, int operand) {
    if (s_.past == 0 || (s_.is_prompt() && s_.present == s_.rows)) return fresh;
    ValueId cache = context_.operand_id(operand);
    if (s_.past != s_.present) {
      const Shape rest = {s_.batch, s_.heads, s_.present - s_.past, s_.size};
      const ValueId zeros = emit_zeros(context_, {context_.type(cache).element, rest});
      cache = emit_concat(context_, {cache, zeros}, 2);
    }
    std::vector<ValueId> operands = {cache, fresh};
    if (!s_.is_prompt()) operands.push_back(before_);
    return context_.emit("TensorScatter", std::move(operands));
  }

  /// The part of the cache that has keys.
  ValueId used(ValueId cache) {
    return s_.columns() != s_.present ? emit_slice(context_, cache, 2, 0, s_.columns()) : cache;
  }

  ValueId sinks() {
    if (context_.has_operand(kSinks)) return context_.operand_id(kSinks);
    if (attributes().int_of("smooth_softmax") != 1) return {};
    return context_.constant(Tensor(TensorType{context_.element(0), {s_.query_heads}}));
  }

  /// Before the softmax, with zeros where masked, or after it.
  ValueId scores(const AttentionValues& found) {
    if (attributes().int_of("qk_output") == 2) return found.scores[3];
    const ValueId masked = found.scores[2];
    const ElementType type = context_.type(masked).element;
    const ValueId hidden = context_.constant_scalar(type, -std::numeric_limits<double>::infinity());
    return context_.emit(
        "Where", {context_.emit("Equal", {masked, hidden}), context_.constant_scalar(type, 0), masked});
  }

  RewriteContext& context_;
  const Sizes s_;
  ValueId lengths_, before_;  // int64 (batch)
  ValueId is_prompt_;         // where only the run knows
};

bool decompose(RewriteContext& context) { return Decomposition(context).run(); }

}  // namespace

const Operator& operator_MicrosoftGroupQueryAttention() {
  static const Operator op = {
      .name = "GroupQueryAttention",
      .domain = "com.microsoft",
      .versions = {1},
      .operands = {1, 16},
      .results = {1, 4},
      .attributes = {{"causal", AttributeKind::kInt, std::int64_t{1}},
                     {"do_rotary", AttributeKind::kInt, std::int64_t{0}},
                     {"k_quant_type", AttributeKind::kString, std::string("NONE")},
                     {"kv_cache_bit_width", AttributeKind::kInt, std::int64_t{0}},
                     {"kv_num_heads", AttributeKind::kInt, std::nullopt, true},
                     {"local_window_size", AttributeKind::kInt, std::int64_t{-1}},
                     {"num_heads", AttributeKind::kInt, std::nullopt, true},
                     {"qk_norm_epsilon", AttributeKind::kFloat, 1e-6f},
                     {"qk_output", AttributeKind::kInt, std::int64_t{0}},
                     {"rotary_interleaved", AttributeKind::kInt, std::int64_t{0}},
                     {"scale", AttributeKind::kFloat, 0.0f},
                     {"sliding_window_cache", AttributeKind::kInt, std::int64_t{0}},
                     {"smooth_softmax", AttributeKind::kInt, std::int64_t{-1}},
                     {"softcap", AttributeKind::kFloat, 0.0f},
                     {"v_quant_type", AttributeKind::kString, std::string("NONE")}},
      .accuracy = Accuracy::kSum,
      .summary = "causal attention of groups of query heads over a cache of keys and values",
      .infer = infer,
      .decompose = decompose,
  };
  return op;
}

}  // namespace gcompile::ir
