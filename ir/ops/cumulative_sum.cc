// CumSum and CumProd: running sum or product along an axis, optionally exclusive of the element itself or from
// the end.

#include "base/interrupt.h"
#include "ir/forms/rounding.h"
#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

int axis_of(const NodeView& node) {
  const std::vector<std::int64_t> axis = node.constant_ints(1, "axis");
  if (axis.size() != 1) operator_error("axis must be one value");
  return normalise_axis(axis[0], node.operand(0).rank());
}

void infer(InferContext& context) {
  require_computable(context, 0);
  axis_of(context);
  context.set_result(0, context.operand(0));
}

template <ScalarOp kCombine>
std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const Tensor& x = *context.value(0);
  const auto axis = static_cast<std::size_t>(axis_of(context));
  const bool exclusive = context.attributes().flag("exclusive");
  const bool reverse = context.attributes().flag("reverse");
  const std::int64_t extent = x.shape()[axis];
  const std::int64_t inner = row_major_strides(x.shape())[axis];
  const std::int64_t lines = extent == 0 ? 0 : x.count() / extent;
  Rounding* const rounding = Rounding::in_force();
  constexpr int kIdentity = kCombine == ScalarOp::kMul ? 1 : 0;
  const Scalar first = is_float(x.element()) ? Scalar::of_real(x.element(), kIdentity)
                                             : Scalar::of_integer(x.element(), kIdentity);
  Tensor y(x.type());
  for (std::int64_t line = 0; line < lines; ++line) {
    poll_interrupt();
    const std::int64_t base = line / inner * extent * inner + line % inner;
    Scalar sum = first;
    for (std::int64_t i = 0; i < extent; ++i) {
      const std::int64_t at = base + (reverse ? extent - 1 - i : i) * inner;
      const Scalar pair[] = {sum, x.at(at)};
      Scalar next = ir::evaluate(kCombine, pair);
      if (rounding && is_float(next.type)) {
        next.real = rounding->inside_unless_exact(next.real, compute_type(next.type), 1);
      }
      const Scalar& out = exclusive ? sum : next;
      y.set(at, is_float(out.type) ? Scalar::of_real(out.type, out.real) : out);
      sum = next;
    }
  }
  return {y};
}

template <ScalarOp kCombine>
Form lower(const LowerContext& context) {
  const Attributes& attributes = context.attributes();
  return LibraryForm{ScanWork{axis_of(context), attributes.flag("exclusive"), attributes.flag("reverse"),
                              kCombine == ScalarOp::kMul}};
}

}  // namespace

const Operator& operator_CumSum() {
  static const Operator op = {
      .name = "CumSum",
      .versions = {11, 14},
      .operands = {2, 2},
      .attributes = {{"exclusive", AttributeKind::kInt, std::int64_t{0}},
                     {"reverse", AttributeKind::kInt, std::int64_t{0}}},
      .accuracy = Accuracy::kSum,
      .summary = "running sum along an axis",
      .traits = {.computed_in_float = true},
      .infer = infer,
      .evaluate = evaluate<ScalarOp::kAdd>,
      .lower = lower<ScalarOp::kAdd>,
  };
  return op;
}

const Operator& operator_CumProd() {
  static const Operator op = [] {
    Operator product = operator_CumSum();
    product.name = "CumProd";
    product.versions = {26};
    product.summary = "running product along an axis";
    product.evaluate = evaluate<ScalarOp::kMul>;
    product.lower = lower<ScalarOp::kMul>;
    return product;
  }();
  return op;
}

}  // namespace gcompile::ir
