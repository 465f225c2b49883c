// Conv: Y[n, oc, o...] = B[oc] + sum over ic, k of X[n, g*IC + ic,
// o*stride + k*dilation - pad] * W[oc, ic, k].

#include "ir/ops/convolution.h"

namespace gcompile::ir {
namespace {

void infer(InferContext& context) {
  require_float(context, 0);
  same_type(context);
  Shape y = convolution_shape(context);
  if (context.has_operand(2) && context.shape(2) != Shape{y[1]}) {
    operator_error("the bias must have M elements");
  }
  context.set_result(0, context.element(0), std::move(y));
}

/// Direct sum in double. Operand 2 is the bias when given.
std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const Attributes& attributes = context.attributes();
  const RealTensor sums = convolve(reals_of(*context.value(0)), reals_of(*context.value(1)),
                                   window_of(attributes), attributes.int_of("group"));
  return {with_bias(sums, context.value(0)->element(), context.value(2))};
}

Form lower(const LowerContext& context) {
  const Attributes& attributes = context.attributes();
  return biased_contract(ConvWork{window_of(attributes), attributes.int_of("group")}, context);
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
    o.traits.computed_in_float = true;
    o.normalise = normalise_convolution;
    o.infer = infer;
    o.evaluate = evaluate;
    o.lower = lower;
    return o;
  }();
  return op;
}

}  // namespace gcompile::ir
