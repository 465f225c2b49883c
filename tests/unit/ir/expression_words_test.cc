// Expressions in few words.
#include "ir/forms/expression_words.h"

#include <gtest/gtest.h>

namespace gcompile::ir {
namespace {

using Words = std::vector<std::string>;

constexpr ElementType kFloat = ElementType::kFloat32;

TEST(ExpressionWords, SayWhatAnEpilogueDoes) {
  LoopForm form = LoopForm::over({1, 8, 4});
  const int sum = form.dag.accumulator(0, kFloat);
  const int bias = form.dag.load(1, kFloat, {Index::axis(1)});
  const int residual = form.dag.load(2, kFloat, form.identity());
  const int zero = form.dag.constant(kFloat, 0);
  const auto is_constant = [](int operand) { return operand == 1; };
  const int with_bias = form.dag.apply(ScalarOp::kAdd, {sum, bias});
  EXPECT_EQ(expression_words(form, with_bias, is_constant), (Words{"bias"}));
  EXPECT_EQ(expression_words(form, with_bias), (Words{"add"}));
  const int both = form.dag.apply(ScalarOp::kAdd, {with_bias, residual});
  const int relu = form.dag.apply(ScalarOp::kMax, {both, zero});
  EXPECT_EQ(expression_words(form, relu, is_constant), (Words{"bias", "add", "relu"}));
  EXPECT_EQ(type_name(expression_words(form, relu, is_constant)), "BiasAddRelu");
  EXPECT_EQ(type_name({}), "Store");
}

TEST(ExpressionWords, NameActivationsAsAWhole) {
  LoopForm form = LoopForm::over({4, 8});
  const int x = form.dag.load(0, kFloat, form.identity());
  const int gate = form.dag.apply(ScalarOp::kSigmoid, {x});
  EXPECT_EQ(expression_words(form, gate), (Words{"sigmoid"}));
  EXPECT_EQ(expression_words(form, form.dag.apply(ScalarOp::kMul, {x, gate})), (Words{"silu"}));
  const int low = form.dag.constant(kFloat, -1), high = form.dag.constant(kFloat, 6);
  const int above = form.dag.apply(ScalarOp::kMax, {x, low});
  EXPECT_EQ(expression_words(form, form.dag.apply(ScalarOp::kMin, {above, high})), (Words{"clip"}));
  const int zero = form.dag.constant(kFloat, 0), slope = form.dag.constant(kFloat, 0.1);
  const int is_below = form.dag.apply(ScalarOp::kLess, {x, zero});
  const int scaled = form.dag.apply(ScalarOp::kMul, {x, slope});
  const int leaky = form.dag.apply(ScalarOp::kSelect, {is_below, scaled, x});
  EXPECT_EQ(expression_words(form, leaky), (Words{"leaky_relu"}));
}

TEST(ExpressionWords, NameGeluHoweverItIsSpelled) {
  LoopForm form = LoopForm::over({4, 8});
  const int x = form.dag.load(0, kFloat, form.identity());
  const int one = form.dag.constant(kFloat, 1), half = form.dag.constant(kFloat, 0.5);
  const int root = form.dag.constant(kFloat, 1.4142135);
  const int erf = form.dag.apply(ScalarOp::kErf, {form.dag.apply(ScalarOp::kDiv, {x, root})});
  const int gate = form.dag.apply(ScalarOp::kAdd, {erf, one});
  const int gated = form.dag.apply(ScalarOp::kMul, {x, gate});
  EXPECT_EQ(expression_words(form, form.dag.apply(ScalarOp::kMul, {gated, half})), (Words{"gelu"}));
  const int halved = form.dag.apply(ScalarOp::kMul, {x, half});
  EXPECT_EQ(expression_words(form, form.dag.apply(ScalarOp::kMul, {halved, gate})), (Words{"gelu"}));
  const int cube = form.dag.apply(ScalarOp::kMul, {form.dag.apply(ScalarOp::kMul, {x, x}), x});
  const int bent = form.dag.apply(ScalarOp::kAdd, {x, form.dag.apply(ScalarOp::kMul, {cube, root})});
  const int tanh = form.dag.apply(ScalarOp::kTanh, {form.dag.apply(ScalarOp::kMul, {bent, half})});
  const int other = form.dag.apply(ScalarOp::kMul, {halved, form.dag.apply(ScalarOp::kAdd, {tanh, one})});
  EXPECT_EQ(expression_words(form, other), (Words{"gelu"}));
  EXPECT_EQ(expression_words(form, erf), (Words{"div", "erf"}));
}

}  // namespace
}  // namespace gcompile::ir
