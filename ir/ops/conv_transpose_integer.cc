// ConvTransposeInteger: the exact transposed convolution of integers of 8 or 16 bits less their zero points,
// in int32. // ONNX has none: it is what a ConvTranspose between DequantizeLinear and QuantizeLinear becomes.
// Operands x and w (C, M/group, kernel...), then their zero points:
// one of x, of w one or one per output channel.

#include "ir/ops/convolution.h"

namespace gcompile::ir {
namespace {

void infer(InferContext& context) {
  const Shape& x = context.shape(0);
  const Shape& w = context.shape(1);
  const Window window = window_of(context.attributes());
  const std::int64_t group = context.attributes().int_of("group");
  if (w.size() != x.size() || group < 1 || w[0] % group != 0 || w[0] != x[1])
    operator_error("the weight does not fit the input channels");
  Shape y = {x[0], w[1] * group};
  for (int i = 0; i < 2; ++i) {
    const int bits = bits_of(context.element(i));
    if ((bits != 8 && bits != 16) || !is_integer(context.element(i)))
      operator_error("inputs must be integers of 8 or 16 bits");
    if (!context.has_operand(i + 2)) continue;
    const bool is_one = context.operand(i + 2).count() == 1;
    if (context.element(i + 2) != context.element(i) ||
        !(is_one || (i == 1 && context.shape(3) == Shape{y[1]})))
      operator_error("a zero point does not fit its input");
  }
  for (int i = 0; i < window.spatial(); ++i) y.push_back(transposed_count(window, i, x[i + 2]));
  context.set_result(0, ElementType::kInt32, std::move(y));
}

std::vector<Tensor> evaluate(const EvaluateContext& context) {
  RealTensor x = reals_of(*context.value(0));
  RealTensor w = reals_of(*context.value(1));
  const Attributes& attributes = context.attributes();
  if (const Tensor* zero = context.value(2)) {
    for (double& v : x.values) v -= zero->real_at(0);
  }
  if (const Tensor* zero = context.value(3)) {
    const std::int64_t columns = w.shape[1], groups = attributes.int_of("group");
    const auto count = static_cast<std::int64_t>(w.values.size());
    const std::int64_t taps = count / std::max<std::int64_t>(1, w.shape[0] * columns);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t group = i / taps / columns / (w.shape[0] / groups);
      const std::int64_t channel = group * columns + i / taps % columns;
      w.values[i] -= zero->real_at(zero->count() == 1 ? 0 : channel);
    }
  }
  return {wrapped(convolve_transposed(x, w, window_of(attributes), attributes.int_of("group")))};
}

Form lower(const LowerContext& context) {
  const Attributes& attributes = context.attributes();
  return spatial_contract(ConvTransposeWork{window_of(attributes), attributes.int_of("group")},
                          context.result(0), ElementType::kInt32, context.operand_count());
}

}  // namespace

const Operator& operator_ConvTransposeInteger() {
  static const Operator op = [] {
    Operator o;
    o.domain = "gcompile";
    o.name = "ConvTransposeInteger";
    o.versions = {1};
    o.operands = {2, 4};
    o.attributes = window_attributes();
    o.attributes.push_back({"group", AttributeKind::kInt, std::int64_t{1}});
    o.summary = "transposed convolution of integers of 8 or 16 bits in int32";
    o.traits.quantised = true;
    o.infer = infer;
    o.evaluate = evaluate;
    o.lower = lower;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
