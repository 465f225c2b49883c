// Grouped query heads are rows of one product: Q is seen as (batch, heads, group * rows, size), so that K and
// V are never repeated.

#include <cmath>
#include <limits>

#include "ir/ops/attention.h"

namespace gcompile::ir {
namespace {

class Emitter {
 public:
  Emitter(RewriteContext& context, const AttentionCore& core) : context_(context), core_(core) {
    const Shape& q = context.type(core.q).shape;
    const Shape& k = context.type(core.k).shape;
    batch_ = q[0];
    query_heads_ = q[1];
    rows_ = q[2];
    size_ = q[3];
    heads_ = k[1];
    columns_ = k[2];
  }

  AttentionValues run() {
    AttentionValues values;
    ValueId scores = values.scores[0] = product();
    if (core_.softcap > 0) {
      scores = context_.emit("Tanh", {emit_scale(context_, scores, 1 / core_.softcap)});
      scores = emit_scale(context_, scores, core_.softcap);
    }
    values.scores[1] = scores;
    values.scores[2] = scores = masked(scores);
    values.scores[3] = softmax(scores);
    const ElementType type = context_.type(core_.v).element;
    const ValueId weights = emit_reshape(context_, emit_cast(context_, values.scores[3], type),
                                         {batch_, heads_, folded_rows(), columns_});
    const ValueId y = context_.emit("MatMul", {weights, core_.v});
    values.result = emit_reshape(context_, y, {batch_, query_heads_, rows_, context_.type(core_.v).shape[3]});
    return values;
  }

  /// scale * Q K' as (batch, query heads, rows, columns). 16-bit floats are scaled before, by the root on
  /// each side, so that the product does not overflow.
  ValueId product() {
    ValueId q = core_.q, k = core_.k;
    const ElementType type = context_.type(q).element;
    const bool both = compute_type(type) != type && core_.scale > 0;
    if (both) {
      q = emit_scale(context_, q, std::sqrt(core_.scale));
      k = emit_scale(context_, k, std::sqrt(core_.scale));
    }
    q = emit_reshape(context_, q, {batch_, heads_, folded_rows(), size_});
    ValueId scores = context_.emit("MatMul", {q, emit_transpose(context_, k, {0, 1, 3, 2})});
    scores = emit_reshape(context_, scores, {batch_, query_heads_, rows_, columns_});
    return both ? scores : emit_scale(context_, scores, core_.scale);
  }

 private:
  Dim folded_rows() const { return query_heads_ / heads_ * rows_; }

  ValueId infinity(ValueId like) {
    return context_.constant_scalar(context_.type(like).element, -std::numeric_limits<double>::infinity());
  }

  ValueId keep_where(ValueId allowed, ValueId scores) {
    return context_.emit("Where", {allowed, scores, infinity(scores)});
  }

  /// first, first + 1, ... along one axis of four.
  ValueId counting(Dim first, Dim count, std::size_t axis) {
    Shape shape = {1, 1, 1, 1};
    shape[axis] = count;
    return emit_counting(context_, first, shape);
  }

  ValueId masked(ValueId scores) {
    if (core_.mask.valid()) {
      const ElementType type = context_.type(scores).element;
      scores = context_.type(core_.mask).element == ElementType::kBool
                   ? keep_where(core_.mask, scores)
                   : context_.emit("Add", {scores, emit_cast(context_, core_.mask, type)});
    }
    ValueId lengths;
    if (core_.lengths.valid()) {
      lengths =
          emit_reshape(context_, emit_cast(context_, core_.lengths, ElementType::kInt64), {batch_, 1, 1, 1});
      scores = keep_where(context_.emit("Less", {counting(0, columns_, 3), lengths}), scores);
    }
    // The bound of a row is the column at a distance from its position.
    const auto bound = [&](std::int64_t distance) {
      return lengths.valid() ? context_.emit("Add", {lengths, counting(distance - rows_, rows_, 2)})
                             : counting(distance + core_.past, rows_, 2);
    };
    if (core_.causal || core_.right >= 0) {
      const ValueId last = bound(core_.causal ? 0 : core_.right);
      scores = keep_where(context_.emit("LessOrEqual", {counting(0, columns_, 3), last}), scores);
    }
    if (core_.left >= 0) {
      scores =
          keep_where(context_.emit("LessOrEqual", {bound(-core_.left), counting(0, columns_, 3)}), scores);
    }
    return scores;
  }

  /// Whether a row may be left without columns.
  bool can_be_empty() const {
    if (core_.sinks.valid()) return false;
    const bool is_past_all = core_.left >= 0 && !always_less(core_.past + rows_ - 1 - core_.left, columns_);
    return core_.lengths.valid() || is_past_all || (core_.mask.valid() && core_.empties);
  }

  /// The softmax over the columns and one more of its own for every head, which is left out again.
  ValueId softmax_with_sinks(ValueId scores) {
    const ElementType type = context_.type(scores).element;
    const ValueId sinks =
        emit_reshape(context_, emit_cast(context_, core_.sinks, type), {1, query_heads_, 1, 1});
    const Shape column = {batch_, query_heads_, rows_, 1};
    const ValueId more = context_.emit("Expand", {sinks, context_.constant_ints(column)});
    const ValueId all = context_.emit("Softmax", {emit_concat(context_, {scores, more}, 3)});
    return emit_slice(context_, all, 3, 0, columns_);
  }

  ValueId softmax(ValueId scores) {
    if (core_.precision) scores = emit_cast(context_, scores, *core_.precision);
    if (core_.sinks.valid()) return softmax_with_sinks(scores);
    const ValueId weights = context_.emit("Softmax", {scores});
    if (!can_be_empty()) return weights;
    const std::vector<std::int64_t> last = {3};
    const ValueId top = context_.emit("ReduceMax", {scores, context_.constant_ints(last)});
    const ValueId empty = context_.emit("Equal", {top, infinity(scores)});
    const ValueId zero = context_.constant_scalar(context_.type(weights).element, 0);
    return context_.emit("Where", {empty, zero, weights});
  }

  RewriteContext& context_;
  const AttentionCore& core_;
  Dim batch_, rows_, columns_;
  std::int64_t query_heads_, heads_, size_;
};

}  // namespace

AttentionValues emit_attention(RewriteContext& context, const AttentionCore& core) {
  return Emitter(context, core).run();
}

ValueId emit_attention_scores(RewriteContext& context, const AttentionCore& core) {
  return Emitter(context, core).product();
}

ValueId emit_split_heads(RewriteContext& context, ValueId value, std::int64_t heads) {
  const Shape shape = context.type(value).shape;
  const ValueId split = emit_reshape(context, value, {shape[0], shape[1], heads, shape[2] / heads});
  return emit_transpose(context, split, {0, 2, 1, 3});
}

ValueId emit_join_heads(RewriteContext& context, ValueId value) {
  const Shape shape = context.type(value).shape;
  const ValueId rows_first = emit_transpose(context, value, {0, 2, 1, 3});
  return emit_reshape(context, rows_first, {shape[0], shape[2], shape[1] * shape[3]});
}

}  // namespace gcompile::ir
