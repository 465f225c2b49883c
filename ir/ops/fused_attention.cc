// The reference walks one row of scores at a time, so no value of rows x columns exists here either.

#include "ir/ops/fused_attention.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "base/interrupt.h"
#include "ir/forms/rounding.h"

namespace gcompile::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Shape leading(const Shape& shape) { return {shape.begin(), shape.end() - 2}; }

/// The result of the attention alone, whatever an epilogue makes of it.
TensorType result_type(const AttentionWork& attention) {
  Shape shape = attention.heads;
  shape.push_back(attention.rows);
  shape.push_back(attention.value_size);
  return {ElementType::kFloat32, std::move(shape)};
}

void infer(InferContext& context) { context.set_result(0, result_type(attention_work(context))); }

class Evaluator {
 public:
  explicit Evaluator(const EvaluateContext& context)
      : attention_(attention_work(context)),
        q_(*context.value(0)),
        k_(*context.value(1)),
        v_(*context.value(2)),
        mask_(attention_.has_mask ? context.value(AttentionWork::kMask) : nullptr),
        added_(attention_.adds_behind ? context.value(AttentionWork::kAdded) : nullptr),
        y_(result_type(attention_)) {
    if (mask_) mask_strides_ = broadcast_strides(mask_->shape(), attention_.scores());
    if (added_) added_strides_ = broadcast_strides(added_->shape(), attention_.scores());
  }

  Tensor run() {
    const std::int64_t heads = element_count(attention_.heads);
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t row = 0; row < attention_.rows; ++row) {
        poll_interrupt();
        finish(head, row, scores_of(head, row));
      }
    }
    return std::move(y_);
  }

 private:
  /// 0 along axes that broadcast.
  static Shape broadcast_strides(const Shape& from, const Shape& to) {
    const Shape own = row_major_strides(from);
    Shape out(to.size(), 0);
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] != 1) out[to.size() - from.size() + i] = own[i];
    }
    return out;
  }

  std::int64_t mask_offset(const Shape& strides, std::int64_t head, std::int64_t row) const {
    const std::size_t batch = attention_.heads.size();
    std::int64_t offset = row * strides[batch];
    for (std::size_t axis = batch; axis-- > 0; head /= attention_.heads[axis]) {
      offset += head % attention_.heads[axis] * strides[axis];
    }
    return offset;
  }

  std::vector<double> scores_of(std::int64_t head, std::int64_t row) const {
    const std::int64_t size = attention_.size, columns = attention_.columns;
    const std::int64_t q0 = (head * attention_.rows + row) * size;
    const std::int64_t k0 = head / attention_.group * columns * size;
    const std::int64_t m0 = mask_ ? mask_offset(mask_strides_, head, row) : 0;
    const std::int64_t step = mask_ ? mask_strides_.back() : Dim();
    const std::int64_t a0 = added_ ? mask_offset(added_strides_, head, row) : 0;
    const std::int64_t added_step = added_ ? added_strides_.back() : Dim();
    const auto terms = static_cast<double>(size);
    std::vector<double> scores;
    for (std::int64_t column = 0; column < columns; ++column) {
      double sum = 0;
      for (std::int64_t i = 0; i < size; ++i) sum += q_.real_at(q0 + i) * k_.real_at(k0 + column * size + i);
      if (rounding_) sum = rounding_->inside(sum, ElementType::kFloat32, roundings_of_sum(terms));
      sum *= static_cast<double>(attention_.scale);
      if (mask_ && mask_->element() == ElementType::kBool) {
        if (mask_->int_at(m0 + column * step) == 0) sum = static_cast<double>(attention_.fill);
      } else if (mask_) {
        sum += mask_->real_at(m0 + column * step);
      }
      if (added_) sum += added_->real_at(a0 + column * added_step);
      if (attention_.causal && column > row + attention_.past) sum = -kInfinity;
      scores.push_back(sum);
    }
    return scores;
  }

  void finish(std::int64_t head, std::int64_t row, std::vector<double> weights) {
    double top = -kInfinity, total = 0;
    for (const double score : weights) top = std::isnan(score) || score > top ? score : top;
    const bool empty = top == -kInfinity && attention_.zero_if_empty;
    for (double& weight : weights) total += weight = empty ? 0 : std::exp(weight - top);
    const std::int64_t columns = attention_.columns, size = attention_.value_size;
    const std::int64_t v0 = head / attention_.group * columns * size;
    for (std::int64_t i = 0; i < size; ++i) {
      double sum = 0;
      for (std::int64_t column = 0; column < columns; ++column) {
        const double weight = weights[column];
        sum += empty ? 0 : weight / total * v_.real_at(v0 + column * size + i);
      }
      y_.set((head * attention_.rows + row) * size + i, Scalar::of_real(ElementType::kFloat32, sum));
    }
  }

  const AttentionWork attention_;
  Rounding* const rounding_ = Rounding::in_force();
  const Tensor& q_;
  const Tensor& k_;
  const Tensor& v_;
  const Tensor* mask_;
  const Tensor* added_;
  Shape mask_strides_, added_strides_;
  Tensor y_;
};

std::vector<Tensor> evaluate(const EvaluateContext& context) { return {Evaluator(context).run()}; }

Form lower(const LowerContext& context) {
  const AttentionWork work = attention_work(context);
  ContractForm form;
  form.work = work;
  form.base_operands = 3 + int{work.has_mask} + int{work.adds_behind};
  form.epilogue = LoopForm::over(context.result(0).shape);
  form.epilogue.set_root(form.epilogue.dag.accumulator(0, ElementType::kFloat32));
  return form;
}

}  // namespace

AttentionWork attention_work(const NodeView& node) {
  for (int i = 0; i < 3; ++i) {
    // Passes may have them lie in memory in 16 bits later.
    if (!node.node().form && node.element(i) != ElementType::kFloat32) {
      operator_error("Q, K and V must be float32");
    }
    if (node.shape(i).size() < 2) operator_error("Q, K and V must be matrices");
  }
  const Shape& q = node.shape(0);
  const Shape& k = node.shape(1);
  const Shape& v = node.shape(2);
  AttentionWork out;
  out.heads = leading(q);
  out.key_heads = leading(k);
  out.rows = q[q.size() - 2];
  out.size = q.back();
  out.columns = k[k.size() - 2];
  out.value_size = v.back();
  bool fits = k.size() == q.size() && v.size() == q.size() && k.back() == out.size &&
              v[v.size() - 2] == out.columns && leading(v) == out.key_heads;
  for (std::size_t axis = 0; fits && axis < out.heads.size(); ++axis) {
    if (out.heads[axis] == out.key_heads[axis]) continue;
    fits =
        axis + 1 == out.heads.size() && out.key_heads[axis] > 0 && out.heads[axis] % out.key_heads[axis] == 0;
    if (fits) out.group = out.heads[axis] / out.key_heads[axis];
  }
  if (!fits) {
    operator_error(
        fmt::format("the shapes {}, {} and {} do not fit", to_string(q), to_string(k), to_string(v)));
  }
  // After fusion, the operands of the epilogue follow.
  const Node& n = node.node();
  const auto* contract = n.form ? std::get_if<ContractForm>(n.form.get()) : nullptr;
  out.has_mask =
      contract ? contract->base_operands > AttentionWork::kMask : node.has_operand(AttentionWork::kMask);
  out.adds_behind =
      contract ? contract->base_operands > AttentionWork::kAdded : node.has_operand(AttentionWork::kAdded);
  for (const int i : {AttentionWork::kMask, AttentionWork::kAdded}) {
    if (!(i == AttentionWork::kMask ? out.has_mask : out.adds_behind)) continue;
    const TensorType& mask = node.operand(i);
    if (mask.element != ElementType::kFloat32 &&
        (mask.element != ElementType::kBool || i == AttentionWork::kAdded)) {
      operator_error("the mask must be bool or float32");
    }
    if (broadcast(mask.shape, out.scores()) != out.scores()) {
      operator_error(fmt::format("the mask of shape {} does not broadcast to {}", to_string(mask.shape),
                                 to_string(out.scores())));
    }
  }
  const Attributes& attributes = node.attributes();
  out.scale = attributes.float_of("scale");
  out.fill = attributes.float_of("fill");
  out.causal = attributes.flag("causal");
  out.past = attributes.int_of("past");
  out.zero_if_empty = attributes.flag("zero_if_empty");
  return out;
}

const Operator& operator_FusedAttention() {
  static const Operator op = {
      .name = "FusedAttention",
      .domain = "gcompile",
      .versions = {1},
      .operands = {3, 5},
      .attributes = {{"scale", AttributeKind::kFloat, 1.0f},
                     {"fill", AttributeKind::kFloat, -std::numeric_limits<float>::infinity()},
                     {"causal", AttributeKind::kInt, std::int64_t{0}},
                     {"past", AttributeKind::kInt, std::int64_t{0}},
                     {"zero_if_empty", AttributeKind::kInt, std::int64_t{0}}},
      .accuracy = Accuracy::kSum,
      .summary = "softmax(scale * Q K' + mask) V without the matrix of scores",
      .traits = {.takes_strides = true},
      .infer = infer,
      .evaluate = evaluate,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
