// NonZero: coordinates of the elements that are not zero. How many there are depends on data: of values that only a
// run knows they are counted (ir/ops/counted.h), and no such node comes here.

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

bool is_set(const Scalar& value) { return is_float(value.type) ? value.real != 0 : value.integer != 0; }

void infer(InferContext& context) {
  const Tensor* x = context.constant(0);
  if (!x) {
    operator_error("the size of the result depends on data");
  }
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < x->count(); ++i) count += is_set(x->at(i));
  context.set_result(0, ElementType::kInt64, {context.operand(0).rank(), count});
}

std::vector<Tensor> evaluate(const EvaluateContext& context) {
  const Tensor& x = *context.value(0);
  const Shape& shape = x.shape();
  std::vector<std::vector<std::int64_t>> rows(shape.size());
  std::int64_t count = 0;
  for (std::int64_t i = 0; i < x.count(); ++i) {
    if (!is_set(x.at(i))) continue;
    ++count;
    std::int64_t rest = i;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      rows[axis].push_back(rest % shape[axis]);
      rest /= shape[axis];
    }
  }
  std::vector<std::int64_t> all;
  for (const auto& row : rows) all.insert(all.end(), row.begin(), row.end());
  return {Tensor::of_ints(all, {static_cast<std::int64_t>(shape.size()), count})};
}

Form lower(const LowerContext&) {
  operator_error("the size of the result depends on data; constant folding must remove this node");
}

}  // namespace

const Operator& operator_NonZero() {
  static const Operator op = {
      .name = "NonZero",
      .versions = {9, 13},
      .summary = "coordinates of elements that are not zero",
      .infer = infer,
      .evaluate = evaluate,
      .lower = lower,
  };
  return op;
}

}  // namespace gcompile::ir
