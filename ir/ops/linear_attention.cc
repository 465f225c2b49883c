// LinearAttention: attention without a softmax, whose keys and values are summed up in a matrix that goes
// from step to step. It becomes LinearRecurrence, the same in float32 with its decay as factors.

#include <fmt/format.h>

#include <cmath>

#include "base/interrupt.h"
#include "ir/forms/rounding.h"
#include "ir/forms/work.h"
#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

constexpr int kPast = LinearAttentionWork::kPast, kDecay = LinearAttentionWork::kFactors,
              kRates = LinearAttentionWork::kRates;

/// Whether `count` things can share `more` in turn.
bool divides(std::int64_t count, std::int64_t more) { return count > 0 && more > 0 && more % count == 0; }

/// Throws OperatorError where the operands do not fit.
LinearAttentionWork work_of(const NodeView& node) {
  LinearAttentionWork w;
  w.query_heads = node.attributes().int_of("q_num_heads");
  w.heads = node.attributes().int_of("kv_num_heads");
  const Shape& q = node.shape(0);
  const Shape& k = node.shape(1);
  const Shape& v = node.shape(2);
  if (!divides(w.heads, w.query_heads) && !divides(w.query_heads, w.heads)) {
    operator_error(fmt::format("{} query heads cannot share {} heads", w.query_heads, w.heads));
  }
  if (q.size() != 3 || k.size() != 3 || v.size() != 3)
    operator_error("query, key and value must have rank 3");
  w.batch = q[0];
  w.steps = q[1];
  w.size = q[2] / w.query_heads;
  w.key_heads = w.size > 0 ? k[2] / w.size : Dim();
  w.value_size = v[2] / w.heads;
  const auto tokens = [&](std::int64_t heads, std::int64_t size) {
    return Shape{w.batch, w.steps, heads * size};
  };
  if (!assume_equal_shapes(q, tokens(w.query_heads, w.size)) ||
      !assume_equal_shapes(k, tokens(w.key_heads, w.size)) ||
      !assume_equal_shapes(v, tokens(w.heads, w.value_size)) || !divides(w.key_heads, w.heads)) {
    operator_error(
        fmt::format("the shapes {}, {} and {} do not fit", to_string(q), to_string(k), to_string(v)));
  }
  const auto require = [&](int i, std::string_view name, std::initializer_list<Shape> shapes) {
    if (!node.has_operand(i)) return;
    for (const Shape& shape : shapes) {
      if (node.shape(i) == shape) return;
    }
    operator_error(fmt::format("{} must have the shape {}, not {}", name, to_string(*shapes.begin()),
                               to_string(node.shape(i))));
  };
  require(kPast, "past_state", {{w.batch, w.heads, w.size, w.value_size}});
  require(kDecay, "decay", {{w.batch, w.steps, w.heads}, {w.batch, w.steps, w.heads * w.size}});
  require(kRates, "beta", {{w.batch, w.steps, w.heads}, {w.batch, w.steps, 1}});
  w.scale = node.attributes().float_of("scale");
  if (w.scale == 0) w.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(w.size)));
  return w;
}

Shape output_shape(const LinearAttentionWork& w) { return {w.batch, w.steps, w.results() * w.value_size}; }
Shape state_shape(const LinearAttentionWork& w) { return {w.batch, w.heads, w.size, w.value_size}; }

// LinearAttention -------------------------------------------------------------------------------------------

void require_rule(const NodeView& node) {
  const std::string& rule = node.attributes().string_of("update_rule");
  if (rule != "linear" && rule != "gated" && rule != "delta" && rule != "gated_delta") {
    operator_error(fmt::format("update_rule '{}' is not known", printable(rule)));
  }
  const auto require = [&](int i, std::string_view name, bool needed) {
    if (node.has_operand(i) == needed) return;
    operator_error(fmt::format("update_rule '{}' {} {}", rule, needed ? "needs" : "has no", name));
  };
  require(kDecay, "decay", rule.rfind("gated", 0) == 0);
  require(kRates, "beta", rule == "delta" || rule == "gated_delta");
}

void infer(InferContext& context) {
  for (int i = 0; i < context.operand_count(); ++i) {
    if (!context.has_operand(i)) continue;
    require_float(context, i);
    if (i != kPast && context.element(i) != context.element(0)) {
      operator_error(fmt::format("input {} has another type than the query", i));
    }
  }
  require_rule(context);
  const LinearAttentionWork work = work_of(context);
  const bool is_microsoft = !context.node().op->domain.empty();
  if (!is_microsoft && (work.query_heads < work.heads || work.key_heads != work.heads)) {
    operator_error(fmt::format("{} query heads and {} key heads for {} heads of values", work.query_heads,
                               work.key_heads, work.heads),
                   "com.microsoft.LinearAttention lets heads share queries and keys");
  }
  context.set_result(0, context.element(0), output_shape(work));
  context.set_result(1, context.element(context.has_operand(kPast) ? kPast : 0), state_shape(work));
}

bool decompose(RewriteContext& context) {
  std::vector<ValueId> operands;
  for (int i = 0; i < context.operand_count(); ++i) {
    ValueId value = context.operand_id(i);
    if (value.valid()) value = emit_cast(context, value, ElementType::kFloat32);
    if (value.valid() && i == kDecay) value = context.emit("Exp", {value});
    operands.push_back(value);
  }
  Attributes attributes;
  for (const char* name : {"q_num_heads", "kv_num_heads"})
    attributes.set(name, context.attributes().int_of(name));
  attributes.set("scale", context.attributes().float_of("scale"));
  const NodeId node = context.emit_node("LinearRecurrence", std::move(operands), attributes, 2);
  const std::vector<ValueId> results = context.graph().node(node).results;
  context.replace_result(0, emit_cast(context, results[1], context.result(0).element));
  if (context.has_result(1)) {
    context.replace_result(1, emit_cast(context, results[0], context.result(1).element));
  }
  return true;
}

// LinearRecurrence ------------------------------------------------------------------------------------------

void infer_recurrence(InferContext& context) {
  for (int i = 0; i < context.operand_count(); ++i) {
    if (context.has_operand(i) && context.element(i) != ElementType::kFloat32) {
      operator_error("the operands must be float32");
    }
  }
  const LinearAttentionWork work = work_of(context);
  context.set_result(0, ElementType::kFloat32, state_shape(work));
  context.set_result(1, ElementType::kFloat32, output_shape(work));
}

class Evaluator {
 public:
  explicit Evaluator(const EvaluateContext& context)
      : w_(work_of(context)), context_(context), y_(context.result(1)), state_(context.result(0)) {
    matrix_.resize(static_cast<std::size_t>(w_.size * w_.value_size));
  }

  std::vector<Tensor> run() {
    for (std::int64_t number = 0; number < w_.batch * w_.heads; ++number) walk(number);
    return {std::move(state_), std::move(y_)};
  }

 private:
  double at(int operand, std::int64_t i) const { return context_.value(operand)->real_at(i); }
  /// Number `i` of `count` that an operand has for a token, of which there may be one for all.
  double of_token(int operand, std::int64_t token, std::int64_t i, std::int64_t count) const {
    const std::int64_t given = context_.value(operand)->shape().back();
    return at(operand, token * given + i * given / count);
  }
  double& entry(std::int64_t row, std::int64_t column) {
    return matrix_[static_cast<std::size_t>(row * w_.value_size + column)];
  }

  void walk(std::int64_t number) {
    const std::int64_t count = w_.size * w_.value_size, head = number % w_.heads;
    for (std::int64_t i = 0; i < count; ++i) {
      matrix_[i] = context_.value(kPast) ? at(kPast, number * count + i) : 0;
    }
    for (std::int64_t step = 0; step < w_.steps; ++step) {
      poll_interrupt();
      const std::int64_t token = number / w_.heads * w_.steps + step;
      for (std::int64_t column = 0; column < w_.value_size; ++column) update(token, head, column);
    }
    for (std::int64_t i = 0; i < count; ++i) {
      state_.set(number * count + i, Scalar::of_real(ElementType::kFloat32, matrix_[i]));
    }
  }

  void update(std::int64_t token, std::int64_t head, std::int64_t column) {
    const std::int64_t group = w_.results() / w_.heads;
    const std::int64_t k = (token * w_.key_heads + head / (w_.heads / w_.key_heads)) * w_.size;
    const auto terms = static_cast<double>(std::int64_t{w_.size});
    double fresh = at(2, (token * w_.heads + head) * w_.value_size + column), known = 0;
    for (std::int64_t row = 0; row < w_.size; ++row) {
      if (context_.value(kDecay)) {
        entry(row, column) *= of_token(kDecay, token, head * w_.size + row, w_.heads * w_.size);
      }
      known += entry(row, column) * at(1, k + row);
    }
    if (rounding_) known = rounding_->inside(known, ElementType::kFloat32, roundings_of_sum(terms));
    if (context_.value(kRates)) fresh = (fresh - known) * of_token(kRates, token, head, w_.heads);
    for (std::int64_t row = 0; row < w_.size; ++row) {
      double& sum = entry(row, column);
      sum += fresh * at(1, k + row);
      if (rounding_) sum = rounding_->inside_unless_exact(sum, ElementType::kFloat32, 2);
    }
    for (std::int64_t result = head * group; result < (head + 1) * group; ++result) {
      const std::int64_t q = (token * w_.query_heads + result * w_.query_heads / w_.results()) * w_.size;
      double sum = 0;
      for (std::int64_t row = 0; row < w_.size; ++row) sum += entry(row, column) * at(0, q + row);
      y_.set((token * w_.results() + result) * w_.value_size + column,
             Scalar::of_real(ElementType::kFloat32, sum * static_cast<double>(w_.scale)));
    }
  }

  const LinearAttentionWork w_;
  const EvaluateContext& context_;
  Rounding* const rounding_ = Rounding::in_force();
  Tensor y_, state_;
  std::vector<double> matrix_;
};

std::vector<Tensor> evaluate(const EvaluateContext& context) { return Evaluator(context).run(); }

Form lower(const LowerContext& context) {
  return LibraryForm{work_of(context), context.has_operand(kPast) ? kPast : -1};
}

Operator record(std::string_view name, std::string_view domain, int version) {
  Operator o;
  o.name = name;
  o.domain = domain;
  o.versions = {version};
  o.operands = {3, 6};
  o.results = {1, 2};
  o.attributes = {{"kv_num_heads", AttributeKind::kInt, std::nullopt, true},
                  {"q_num_heads", AttributeKind::kInt, std::nullopt, true},
                  {"scale", AttributeKind::kFloat, 0.0f}};
  o.accuracy = Accuracy::kSum;
  o.summary = "attention without a softmax, over a matrix that sums up keys and values from step to step";
  return o;
}

Operator attention_record(std::string_view domain, int version) {
  Operator o = record("LinearAttention", domain, version);
  o.attributes.push_back({"chunk_size", AttributeKind::kInt, std::int64_t{64}});
  o.attributes.push_back({"update_rule", AttributeKind::kString, std::string("gated_delta")});
  o.infer = infer;
  o.decompose = decompose;
  return o;
}

}  // namespace

const Operator& operator_LinearAttention() {
  static const Operator op = attention_record("", 27);
  return op;
}

const Operator& operator_MicrosoftLinearAttention() {
  static const Operator op = [] {
    Operator o = attention_record("com.microsoft", 1);
    o.attributes.push_back({"state_window", AttributeKind::kInt, std::int64_t{0}});
    o.infer = [](InferContext& context) {
      if (context.attributes().int_of("state_window") != 0) operator_error("state_window is not supported");
      infer(context);
    };
    return o;
  }();
  return op;
}

const Operator& operator_LinearRecurrence() {
  static const Operator op = [] {
    Operator o = record("LinearRecurrence", "gcompile", 1);
    o.results = {2, 2};
    o.infer = infer_recurrence;
    o.evaluate = evaluate;
    o.lower = lower;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
