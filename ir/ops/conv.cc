// Conv: Y[n, oc, o...] = B[oc] + sum over ic, k of X[n, g*IC + ic, o*stride + k*dilation - pad] * W[oc, ic,
// k].

#include <fmt/format.h>

#include "ir/ops/window.h"

namespace gcompile::ir {
namespace {

void normalise(RewriteContext& context) {
  const Shape& weights = context.shape(1);
  if (weights.size() < 3) operator_error("input 1 must be (M, C/group, kernel...)");
  normalise_window(context, {weights.begin() + 2, weights.end()});
}

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& w = context.shape(1);
  require_float(context, 0);
  same_type(context);
  const Window window = window_of(context.attributes());
  const std::int64_t group = context.attributes().int_of("group");
  if (w.size() != x.size()) operator_error("inputs 0 and 1 must have the same rank");
  if (!std::equal(window.kernel.begin(), window.kernel.end(), w.begin() + 2)) {
    operator_error("kernel_shape disagrees with the weight's shape");
  }
  if (group < 1 || w[0] % group != 0 || w[1] * group != x[1]) {
    operator_error(
        fmt::format("the weight does not fit the input channels: W[1] = {}, expected {} / group {}", w[1],
                    x[1], group),
        "the weight must be (M, C/group, kernel...) and M a multiple of group");
  }
  if (context.has_operand(2) && context.shape(2) != Shape{w[0]})
    operator_error("the bias must have M elements");
  Shape y = {x[0], w[0]};
  for (int i = 0; i < window.spatial(); ++i) {
    y.push_back(window_count(window, i, x[static_cast<std::size_t>(i + 2)], false));
  }
  context.set_result(0, context.element(0), std::move(y));
}

/// Direct sum in double. Operand 2 is the bias when given.
std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const Tensor& x = *context.value(0);
  const Tensor& w = *context.value(1);
  const Tensor* bias = context.value(2);
  const Window window = window_of(context.attributes());
  const int spatial = window.spatial();
  Shape out = {x.shape()[0], w.shape()[0]};
  for (int i = 0; i < spatial; ++i) {
    out.push_back(window_count(window, i, x.shape()[static_cast<std::size_t>(i + 2)], false));
  }
  Tensor y(TensorType{x.element(), out});
  std::vector<double> xs(static_cast<std::size_t>(x.count())), ws(static_cast<std::size_t>(w.count()));
  for (std::int64_t i = 0; i < x.count(); ++i) xs[static_cast<std::size_t>(i)] = x.real_at(i);
  for (std::int64_t i = 0; i < w.count(); ++i) ws[static_cast<std::size_t>(i)] = w.real_at(i);
  const std::int64_t group_inputs = w.shape()[1];
  const std::int64_t group_outputs = w.shape()[0] / context.attributes().int_of("group");
  const Shape x_strides = row_major_strides(x.shape());
  std::int64_t taps = 1;
  for (const std::int64_t k : window.kernel) taps *= k;
  std::vector<std::int64_t> at(static_cast<std::size_t>(spatial) + 2, 0);
  for (std::int64_t position = 0; position < y.count(); ++position) {
    std::int64_t rest = position;
    for (std::size_t i = at.size(); i-- > 0;) {
      at[i] = rest % out[i];
      rest /= out[i];
    }
    double sum = bias ? bias->real_at(at[1]) : 0;
    for (std::int64_t tap = 0; tap < taps; ++tap) {
      std::int64_t offset = at[0] * x_strides[0] + at[1] / group_outputs * group_inputs * x_strides[1];
      std::int64_t left = tap;
      bool inside = true;
      for (int i = spatial; i-- > 0 && inside;) {
        const auto s = static_cast<std::size_t>(i);
        const std::int64_t k = left % window.kernel[s];
        left /= window.kernel[s];
        const std::int64_t coordinate =
            at[s + 2] * window.strides[s] + k * window.dilations[s] - window.begin(i);
        inside = coordinate >= 0 && coordinate < x.shape()[s + 2];
        offset += coordinate * x_strides[s + 2];
      }
      if (!inside) continue;
      const double* xp = xs.data() + offset;
      const double* wp = ws.data() + at[1] * group_inputs * taps + tap;
      for (std::int64_t c = 0; c < group_inputs; ++c) sum += xp[c * x_strides[1]] * wp[c * taps];
    }
    y.set(position, Scalar::of_real(x.element(), sum));
  }
  return {y};
}

Form lower(const LowerContext& context) {
  const TensorType& result = context.result(0);
  if (result.rank() > 4) operator_error("convolutions with three and more spatial axes have no kernel yet");
  ContractForm form;
  form.accumulator = compute_type(result.element);
  form.epilogue = LoopForm::over(result.shape);
  Dag& dag = form.epilogue.dag;
  int root = dag.accumulator(0, form.accumulator);
  if (context.has_operand(2)) {
    const int bias = dag.cast(dag.load(2, context.element(2), {Index::axis(1)}), form.accumulator);
    root = dag.apply(ScalarOp::kAdd, {root, bias});
  }
  form.epilogue.set_root(dag.cast(root, result.element));
  return form;
}

}  // namespace

const Operator& operator_Conv() {
  static const Operator op = [] {
    Operator o;
    o.name = "Conv";
    o.versions = {1, 11, 22};
    o.operands = {2, 3};
    o.attributes = window_attributes();
    o.attributes.push_back({"group", AttributeKind::kInt, std::int64_t{1}});
    o.accuracy = Accuracy::kSum;
    o.summary = "convolution";
    o.normalise = normalise;
    o.infer = infer;
    o.evaluate = evaluate;
    o.lower = lower;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
