// Element-wise operators of two operands of one type, with multidirectional broadcasting.

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

void infer_same(InferContext& context) { infer_elementwise(context, same_type(context)); }

void infer_compare(InferContext& context) {
  same_type(context);
  infer_elementwise(context, ElementType::kBool);
}

template <ScalarOp kOp>
Form lower(const LowerContext& context) {
  return elementwise(context, [](Dag& dag, const std::vector<int>& x) {
    return dag.apply(kOp, {x[0], x[1]});
  });
}

template <ScalarOp kOp>
Operator arithmetic(std::string_view name, std::vector<int> versions, Accuracy accuracy,
                    std::string_view summary) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.operands = {2, 2};
  op.accuracy = accuracy;
  op.summary = summary;
  op.infer = infer_same;
  op.lower = lower<kOp>;
  return op;
}

template <ScalarOp kOp>
Operator comparison(std::string_view name, std::vector<int> versions, std::string_view summary) {
  Operator op = arithmetic<kOp>(name, std::move(versions), Accuracy::kExact, summary);
  op.infer = infer_compare;
  return op;
}

}  // namespace

#define GC_ARITHMETIC(name, scalar, accuracy, summary, ...)                              \
  const Operator& operator_##name() {                                                    \
    static const Operator op =                                                           \
        arithmetic<ScalarOp::scalar>(#name, {__VA_ARGS__}, Accuracy::accuracy, summary); \
    return op;                                                                           \
  }
#define GC_COMPARISON(name, scalar, summary, ...)                                           \
  const Operator& operator_##name() {                                                       \
    static const Operator op = comparison<ScalarOp::scalar>(#name, {__VA_ARGS__}, summary); \
    return op;                                                                              \
  }

GC_ARITHMETIC(Add, kAdd, kRounding, "a + b", 7, 13, 14)
GC_ARITHMETIC(Sub, kSub, kRounding, "a - b", 7, 13, 14)
GC_ARITHMETIC(Mul, kMul, kRounding, "a * b", 7, 13, 14)
GC_ARITHMETIC(Div, kDiv, kRounding, "a / b; integers truncate toward zero", 7, 13, 14)
GC_COMPARISON(Equal, kEqual, "a == b", 7, 11, 13, 19)

}  // namespace gcompile::ir
