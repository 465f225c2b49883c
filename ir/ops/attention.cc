// Attention: softmax(scale * Q K' + mask) V per head, taken apart into MatMul, Softmax and element-wise
// operators. Grouped query heads are rows of one product: Q is seen as (batch, kv heads, group * rows, size),
// so that K and V are never repeated.

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

// Operands.
constexpr int kMask = 3, kPastKey = 4, kPastValue = 5, kValidLengths = 6;
// Results.
constexpr int kPresentKey = 1, kPresentValue = 2, kScores = 3;

struct Sizes {
  std::int64_t batch, query_heads, heads, rows, new_columns, past, size, value_size;
  bool flat;  // (batch, rows, heads * size) operands
  std::int64_t columns() const { return past + new_columns; }
  std::int64_t group() const { return query_heads / heads; }
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
  s.past = node.has_operand(kPastKey) ? node.shape(kPastKey).at(2) : 0;
  if (s.heads < 1 || s.query_heads % s.heads != 0) {
    operator_error(fmt::format("{} query heads cannot share {} key heads", s.query_heads, s.heads));
  }
  if ((s.flat ? k[2] / s.heads : k[3]) != s.size) operator_error("Q and K have heads of different sizes");
  if (k[0] != s.batch || v[0] != s.batch || v[s.flat ? 1 : 2] != s.new_columns ||
      (!s.flat && v[1] != s.heads)) {
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
  if (node.shape(kPastKey) != Shape{s.batch, s.heads, s.past, s.size} ||
      node.shape(kPastValue) != Shape{s.batch, s.heads, s.past, s.value_size}) {
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
    // A mask may end early: what it does not name is masked.
    if (mask.back() < s.columns() && mask.back() != 1) mask.back() = s.columns();
    if (broadcast(mask, scores) != scores) {
      operator_error(fmt::format("attn_mask of shape {} does not broadcast to {}",
                                 to_string(context.shape(kMask)), to_string(scores)));
    }
  }
  if (context.has_operand(kValidLengths) && context.shape(kValidLengths) != Shape{s.batch}) {
    operator_error("nonpad_kv_seqlen must have one value per batch entry");
  }
  const ElementType type = context.element(0);
  context.set_result(0, type,
                     s.flat ? Shape{s.batch, s.rows, s.query_heads * s.value_size}
                            : Shape{s.batch, s.query_heads, s.rows, s.value_size});
  context.set_result(kPresentKey, context.element(1), {s.batch, s.heads, s.columns(), s.size});
  context.set_result(kPresentValue, context.element(2), {s.batch, s.heads, s.columns(), s.value_size});
  context.set_result(kScores, type, scores);
}

/// (batch, heads, rows, size) of a flat operand.
ValueId split_heads(RewriteContext& context, ValueId value, const Sizes& s, std::int64_t heads) {
  if (!s.flat) return value;
  const Shape shape = context.type(value).shape;
  const ValueId split = emit_reshape(context, value, {shape[0], shape[1], heads, shape[2] / heads});
  return emit_transpose(context, split, {0, 2, 1, 3});
}

class Decomposition {
 public:
  explicit Decomposition(RewriteContext& context) : context_(context), s_(sizes_of(context)) {}

  void run() {
    const ElementType type = context_.element(0);
    ValueId q = split_heads(context_, context_.operand_id(0), s_, s_.query_heads);
    const ValueId k = with_past(split_heads(context_, context_.operand_id(1), s_, s_.heads), kPastKey);
    const ValueId v = with_past(split_heads(context_, context_.operand_id(2), s_, s_.heads), kPastValue);
    context_.replace_result(kPresentKey, present(k, 1));
    context_.replace_result(kPresentValue, present(v, 2));
    ValueId scores = product(q, k);
    output_scores(0, scores);
    if (const float cap = context_.attributes().float_of("softcap"); cap > 0) {
      scores = context_.emit("Tanh", {emit_scale(context_, scores, 1 / static_cast<double>(cap))});
      scores = emit_scale(context_, scores, cap);
    }
    output_scores(1, scores);
    scores = masked(scores);
    output_scores(2, scores);
    const ValueId weights = softmax(scores);
    output_scores(3, emit_cast(context_, weights, type));
    const ValueId folded = emit_reshape(context_, emit_cast(context_, weights, context_.element(2)),
                                        {s_.batch, s_.heads, s_.group() * s_.rows, s_.columns()});
    ValueId y = context_.emit("MatMul", {folded, v});
    y = emit_reshape(context_, y, {s_.batch, s_.query_heads, s_.rows, s_.value_size});
    if (s_.flat) {
      y = emit_reshape(context_, emit_transpose(context_, y, {0, 2, 1, 3}), context_.result(0).shape);
    }
    context_.replace_result(0, emit_cast(context_, y, type));
  }

 private:
  ValueId with_past(ValueId value, int past) {
    if (!context_.has_operand(past)) return value;
    return emit_concat(context_, {context_.operand_id(past), value}, 2);
  }

  /// A result must not be an operand itself: its name would change hands.
  ValueId present(ValueId value, int operand) {
    return value == context_.operand_id(operand) ? context_.emit("Identity", {value}) : value;
  }

  double scale() const {
    if (context_.attributes().has("scale")) return context_.attributes().float_of("scale");
    return 1 / std::sqrt(static_cast<double>(s_.size));
  }

  /// scale * Q K' as (batch, query heads, rows, columns). 16-bit floats are scaled before, by the root on
  /// each side, so that the product does not overflow.
  ValueId product(ValueId q, ValueId k) {
    const ElementType type = context_.element(0);
    const bool wide = type == ElementType::kFloat32 || type == ElementType::kFloat64;
    const double factor = scale();
    const bool both = !wide && factor > 0;
    if (both) {
      q = emit_scale(context_, q, std::sqrt(factor));
      k = emit_scale(context_, k, std::sqrt(factor));
    }
    q = emit_reshape(context_, q, {s_.batch, s_.heads, s_.group() * s_.rows, s_.size});
    ValueId scores = context_.emit("MatMul", {q, emit_transpose(context_, k, {0, 1, 3, 2})});
    scores = emit_reshape(context_, scores, {s_.batch, s_.query_heads, s_.rows, s_.columns()});
    return both ? scores : emit_scale(context_, scores, factor);
  }

  void output_scores(std::int64_t mode, ValueId scores) {
    if (context_.attributes().int_of("qk_matmul_output_mode") == mode) {
      context_.replace_result(kScores, scores);
    }
  }

  ValueId infinity(ValueId like) {
    return context_.constant_scalar(context_.type(like).element, -std::numeric_limits<double>::infinity());
  }

  ValueId keep_where(ValueId allowed, ValueId scores) {
    return context_.emit("Where", {allowed, scores, infinity(scores)});
  }

  /// The mask with as many columns as the scores; what is missing is masked.
  ValueId full_mask() {
    const ValueId mask = context_.operand_id(kMask);
    Shape shape = context_.type(mask).shape;
    if (shape.back() == s_.columns() || (shape.back() == 1 && s_.columns() > 0)) return mask;
    shape.back() = s_.columns() - shape.back();
    const ElementType type = context_.type(mask).element;
    Scalar nothing = Scalar::of_integer(ElementType::kBool, 0);
    if (is_float(type)) nothing = Scalar::of_real(type, -std::numeric_limits<double>::infinity());
    const ValueId rest = context_.constant(Tensor::filled({type, shape}, nothing));
    return emit_concat(context_, {mask, rest}, static_cast<std::int64_t>(shape.size()) - 1);
  }

  /// first, first + 1, ... along one axis of four.
  ValueId counting(std::int64_t first, std::int64_t count, std::size_t axis) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(first + i);
    Shape shape = {1, 1, 1, 1};
    shape[axis] = count;
    return context_.constant(Tensor::of_ints(values, shape));
  }

  ValueId masked(ValueId scores) {
    if (context_.has_operand(kMask)) {
      const ValueId mask = full_mask();
      scores = context_.type(mask).element == ElementType::kBool
                   ? keep_where(mask, scores)
                   : context_.emit("Add", {scores, emit_cast(context_, mask, context_.type(scores).element)});
      guard_ = true;
    }
    ValueId lengths;
    if (context_.has_operand(kValidLengths)) {
      lengths = emit_cast(context_, context_.operand_id(kValidLengths), ElementType::kInt64);
      lengths = emit_reshape(context_, lengths, {s_.batch, 1, 1, 1});
      scores = keep_where(context_.emit("Less", {counting(0, s_.columns(), 3), lengths}), scores);
      guard_ = true;
    }
    if (context_.attributes().flag("is_causal")) {
      // Row i sees columns up to i + the number of keys before the queries.
      const ValueId last = lengths.valid() ? context_.emit("Add", {lengths, counting(-s_.rows, s_.rows, 2)})
                                           : counting(s_.past, s_.rows, 2);
      scores = keep_where(context_.emit("LessOrEqual", {counting(0, s_.columns(), 3), last}), scores);
    }
    return scores;
  }

  /// Rows without any key left give zeros, not NaN.
  ValueId softmax(ValueId scores) {
    if (context_.attributes().has("softmax_precision")) {
      scores = emit_cast(context_, scores, computable_type_of(context_.attributes(), "softmax_precision"));
    }
    const ValueId weights = context_.emit("Softmax", {scores});
    if (!guard_) return weights;
    const std::vector<std::int64_t> last = {3};
    const ValueId top = context_.emit("ReduceMax", {scores, context_.constant_ints(last)});
    const ValueId empty = context_.emit("Equal", {top, infinity(scores)});
    const ValueId zero = context_.constant_scalar(context_.type(weights).element, 0);
    return context_.emit("Where", {empty, zero, weights});
  }

  RewriteContext& context_;
  const Sizes s_;
  bool guard_ = false;
};

bool decompose(RewriteContext& context) {
  Decomposition(context).run();
  return true;
}

}  // namespace

const Operator& operator_Attention() {
  static const Operator op = [] {
    Operator o;
    o.name = "Attention";
    o.versions = {23, 24};
    o.operands = {3, 7};
    o.results = {1, 4};
    o.attributes = {{"is_causal", AttributeKind::kInt, std::int64_t{0}},
                    {"kv_num_heads", AttributeKind::kInt, std::nullopt},
                    {"q_num_heads", AttributeKind::kInt, std::nullopt},
                    {"qk_matmul_output_mode", AttributeKind::kInt, std::int64_t{0}},
                    {"scale", AttributeKind::kFloat, std::nullopt},
                    {"softcap", AttributeKind::kFloat, 0.0f},
                    {"softmax_precision", AttributeKind::kInt, std::nullopt}};
    o.accuracy = Accuracy::kSum;
    o.summary = "scaled dot-product attention per head";
    o.infer = infer;
    o.decompose = decompose;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
