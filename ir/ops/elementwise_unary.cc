// Element-wise operators of one operand: rows of a name and an expression.

#include "ir/ops/support.h"

namespace gcompile::ir {
namespace {

using Body = int (*)(Dag&, int x, const Attributes&);

void infer_unary(InferContext& context) { infer_elementwise(context, context.element(0)); }

template <Body kBody>
Form lower(const LowerContext& context) {
  return elementwise(
      context, [&](Dag& dag, const std::vector<int>& x) { return kBody(dag, x[0], context.attributes()); });
}

template <Body kBody>
Operator unary(std::string_view name, std::vector<int> versions, Accuracy accuracy, std::string_view summary,
               std::vector<AttributeSpec> attributes = {}) {
  Operator op;
  op.name = name;
  op.versions = std::move(versions);
  op.attributes = std::move(attributes);
  op.accuracy = accuracy;
  op.summary = summary;
  op.infer = infer_unary;
  op.lower = lower<kBody>;
  return op;
}

int relu(Dag& dag, int x, const Attributes&) {
  return dag.apply(ScalarOp::kMax, {x, dag.constant(dag.type(x), 0)});
}

int exp(Dag& dag, int x, const Attributes&) { return dag.apply(ScalarOp::kExp, {x}); }

int elu(Dag& dag, int x, const Attributes& attributes) {
  const ElementType type = dag.type(x);
  const int zero = dag.constant(type, 0);
  const int negative = dag.apply(
      ScalarOp::kMul, {dag.constant(type, attributes.float_of("alpha")), dag.apply(ScalarOp::kExpm1, {x})});
  return dag.apply(ScalarOp::kSelect, {dag.apply(ScalarOp::kLess, {x, zero}), negative, x});
}

}  // namespace

const Operator& operator_Relu() {
  static const Operator op = unary<relu>("Relu", {6, 13, 14}, Accuracy::kExact, "max(x, 0)");
  return op;
}

const Operator& operator_Exp() {
  static const Operator op = unary<exp>("Exp", {6, 13}, Accuracy::kFunction, "e^x");
  return op;
}

const Operator& operator_Elu() {
  static const Operator op = unary<elu>("Elu", {6, 22}, Accuracy::kFunction, "x < 0 ? alpha * (e^x - 1) : x",
                                        {{"alpha", AttributeKind::kFloat, 1.0f}});
  return op;
}

}  // namespace gcompile::ir
