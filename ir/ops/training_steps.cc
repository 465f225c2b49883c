// ai.onnx.preview.training: Adagrad, Adam and Momentum, one step of an optimiser for each of several tensors. R is
// the rate, T the number of steps so far; then follow all tensors, all their gradients, and their states.

#include <fmt/format.h>

#include "ir/ops/rewrite.h"

namespace gcompile::ir {
namespace {

constexpr int kRate = 0, kCount = 1, kFirst = 2;

/// Tensors, gradients and states: `groups` operands for each tensor; results are the tensors and their states.
int tensors_of(const NodeView& node, int groups) {
  const int given = node.operand_count() - kFirst;
  if (given < groups || given % groups != 0) {
    operator_error(
        fmt::format("behind the first two there must be {} inputs for each tensor, not {}", groups, given));
  }
  return given / groups;
}

template <int kGroups>
void infer(InferContext& context) {
  const int tensors = tensors_of(context, kGroups);
  require_float(context, kRate);
  require_scalar(context, kRate, "the rate");
  require_scalar(context, kCount, "the number of steps");
  if (context.element(kCount) != ElementType::kInt64) operator_error("the number of steps must be int64");
  const int most = (kGroups - 1) * tensors;
  if (context.result_count() > most)
    operator_error(fmt::format("{} results, where the tensors and what is kept of them are {}",
                               context.result_count(), most));
  for (int i = 0; i < tensors; ++i) {
    const TensorType& type = context.operand(kFirst + i);
    require_float(context, kFirst + i);
    for (int group = 1; group < kGroups; ++group) {
      const TensorType& other = context.operand(kFirst + group * tensors + i);
      if (other == type) continue;
      operator_error(fmt::format("input {} must have the type {} of its tensor, not {}",
                                 kFirst + group * tensors + i, to_string(type), to_string(other)));
    }
    context.set_result(i, type);
    for (int group = 2; group < kGroups; ++group) context.set_result((group - 1) * tensors + i, type);
  }
}

/// Arithmetic of one tensor's type.
class Step {
 public:
  Step(RewriteContext& context, int groups, int tensor)
      : context(context), tensors_(tensors_of(context, groups)), tensor_(tensor) {
    type = context.element(kFirst + tensor);
    rate = emit_cast(context, scalar(kRate), type);
    count = scalar(kCount);
    x = of(0);
    // The norm of the tensor adds to its gradient.
    const ValueId decay = mul(number("norm_coefficient"), x);
    gradient = attribute("norm_coefficient") == 0 ? of(1) : add(decay, of(1));
  }

  ValueId of(int group) { return context.operand_id(kFirst + group * tensors_ + tensor_); }
  void result(int group, ValueId value) {
    const int at = group * tensors_ + tensor_;
    if (context.has_result(at)) context.replace_result(at, value);
  }
  double attribute(std::string_view name) { return static_cast<double>(context.attributes().float_of(name)); }
  ValueId number(double value) { return context.constant_scalar(type, value); }
  ValueId number(std::string_view name) { return number(attribute(name)); }
  ValueId add(ValueId a, ValueId b) { return context.emit("Add", {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return context.emit("Sub", {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return context.emit("Mul", {a, b}); }
  ValueId div(ValueId a, ValueId b) { return context.emit("Div", {a, b}); }
  ValueId root(ValueId a) { return context.emit("Sqrt", {a}); }
  ValueId real_count() { return emit_cast(context, count, type); }
  /// `later` behind the first step, at which the number of steps is 0.
  ValueId but_first(ValueId later, ValueId first) {
    const ValueId is_later = context.emit("Greater", {count, emit_number(context, 0)});
    return context.emit("Where", {is_later, later, first});
  }

  RewriteContext& context;
  ElementType type = ElementType::kFloat32;
  ValueId rate, count, x, gradient;

 private:
  ValueId scalar(int i) { return emit_reshape(context, context.operand_id(i), {}); }
  const int tensors_, tensor_;
};

bool decompose_adagrad(RewriteContext& context) {
  for (int i = 0; i < tensors_of(context, 3); ++i) {
    Step step(context, 3, i);
    const ValueId decayed =
        step.add(step.number(1.0), step.mul(step.real_count(), step.number("decay_factor")));
    const ValueId squares = step.add(step.of(2), step.mul(step.gradient, step.gradient));
    const ValueId divisor = step.add(step.root(squares), step.number("epsilon"));
    const ValueId moved = step.div(step.mul(step.div(step.rate, decayed), step.gradient), divisor);
    step.result(0, step.sub(step.x, moved));
    step.result(1, squares);
  }
  return true;
}

/// alpha * state + (1 - alpha) * value.
ValueId emit_mean(Step& step, std::string_view name, ValueId state, ValueId value) {
  const double alpha = step.attribute(name);
  return step.add(step.mul(step.number(alpha), state), step.mul(step.number(1 - alpha), value));
}

bool decompose_adam(RewriteContext& context) {
  for (int i = 0; i < tensors_of(context, 4); ++i) {
    Step step(context, 4, i);
    const ValueId mean = emit_mean(step, "alpha", step.of(2), step.gradient);
    const ValueId squares = emit_mean(step, "beta", step.of(3), step.mul(step.gradient, step.gradient));
    const auto rest = [&](std::string_view name) {  // 1 - attribute to the power of the steps
      return step.sub(step.number(1.0), context.emit("Pow", {step.number(name), step.real_count()}));
    };
    const ValueId corrected = step.div(step.mul(step.rate, step.root(rest("beta"))), rest("alpha"));
    const ValueId rate = step.but_first(corrected, step.rate);
    const ValueId divisor = step.add(step.root(squares), step.number("epsilon"));
    const ValueId moved = step.sub(step.x, step.div(step.mul(rate, mean), divisor));
    step.result(0, emit_scale(context, moved, 1 - step.attribute("norm_coefficient_post")));
    step.result(1, mean);
    step.result(2, squares);
  }
  return true;
}

void infer_momentum(InferContext& context) {
  require_one_of(context.attributes(), "mode", {"standard", "nesterov"});
  infer<3>(context);
}

bool decompose_momentum(RewriteContext& context) {
  const bool looks_ahead = context.attributes().string_of("mode") == "nesterov";
  for (int i = 0; i < tensors_of(context, 3); ++i) {
    Step step(context, 3, i);
    const ValueId share = step.but_first(step.number("beta"), step.number(1.0));
    const ValueId velocity =
        step.add(step.mul(step.number("alpha"), step.of(2)), step.mul(share, step.gradient));
    const ValueId ahead =
        looks_ahead ? step.add(step.gradient, step.mul(step.number("alpha"), velocity)) : velocity;
    step.result(0, step.sub(step.x, step.mul(step.rate, ahead)));
    step.result(1, velocity);
  }
  return true;
}

AttributeSpec real(std::string_view name, std::optional<float> value) {
  if (!value) return {name, AttributeKind::kFloat, std::nullopt, true};
  return {name, AttributeKind::kFloat, *value};
}

Operator record(std::string_view name, std::string_view summary, int groups) {
  Operator o;
  o.name = name;
  o.domain = "ai.onnx.preview.training";
  o.versions = {1};
  o.operands = {kFirst + groups, -1};
  o.results = {1, -1};
  o.accuracy = Accuracy::kFunction;
  o.summary = summary;
  return o;
}

}  // namespace

const Operator& operator_TrainingAdagrad() {
  static const Operator op = [] {
    Operator o = record("Adagrad", "a step of Adagrad", 3);
    o.attributes = {real("decay_factor", 0.0f), real("epsilon", 1e-6f), real("norm_coefficient", 0.0f)};
    o.infer = infer<3>;
    o.decompose = decompose_adagrad;
    return o;
  }();
  return op;
}

const Operator& operator_TrainingAdam() {
  static const Operator op = [] {
    Operator o = record("Adam", "a step of Adam", 4);
    o.attributes = {real("alpha", 0.9f), real("beta", 0.999f), real("epsilon", 1e-6f),
                    real("norm_coefficient", 0.0f), real("norm_coefficient_post", 0.0f)};
    o.infer = infer<4>;
    o.decompose = decompose_adam;
    return o;
  }();
  return op;
}

const Operator& operator_TrainingMomentum() {
  static const Operator op = [] {
    Operator o = record("Momentum", "a step of gradient descent with momentum", 3);
    o.attributes = {real("alpha", std::nullopt),
                    real("beta", std::nullopt),
                    real("norm_coefficient", std::nullopt),
                    {"mode", AttributeKind::kString, std::nullopt, true}};
    o.infer = infer_momentum;
    o.decompose = decompose_momentum;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
