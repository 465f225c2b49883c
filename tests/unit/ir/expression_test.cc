// Expressions: equal ones are one, whichever way they were written.

#include "ir/loops/expression.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/loops/number_facts.h"

namespace gcompile::ir {
namespace {

constexpr ElementType kFloat = ElementType::kFloat32;

struct Fixture {
  Dag dag;
  int x = dag.load(0, kFloat, {Index::axis(0)});
  int y = dag.load(1, kFloat, {Index::axis(0)});
  int accumulator = dag.accumulator(0, kFloat);
  int apply(ScalarOp op, int a, int b) { return dag.apply(op, {a, b}); }
};

TEST(Expression, EqualNodesAreOne) {
  Fixture f;
  EXPECT_EQ(f.dag.load(0, kFloat, {Index::axis(0)}), f.x);
  EXPECT_NE(f.dag.load(0, kFloat, {Index::axis(1)}), f.x);
  EXPECT_NE(f.dag.load(0, kFloat, {Index::axis(0) + Index(1)}), f.x);
  const std::vector<Range> ranges = {{0, 100}};
  const int halved = f.dag.load(0, kFloat, {floor_div(Index::axis(0), 2, ranges)});
  EXPECT_NE(halved, f.dag.load(0, kFloat, {floor_div(Index::axis(0), 3, ranges)}));
  EXPECT_EQ(halved, f.dag.load(0, kFloat, {floor_div(Index::axis(0), 2, ranges)}));
  EXPECT_EQ(f.dag.nodes().size(), 7u);
}

TEST(Index, DivisionsThatMeetAgainVanish) {
  const std::vector<Range> ranges = {{0, 32}, {0, 16}, {0, 7}};
  const Index position = Index::axis(0) * 16 + Index::axis(1);
  const Index quotient = floor_div(position, 96, ranges), rest = modulo(position, 96, ranges);
  EXPECT_EQ(recombine(quotient * 96 + rest, ranges), position);
  EXPECT_EQ(recombine(quotient * 192 + rest * 2 + Index::axis(2), ranges), position * 2 + Index::axis(2));
  EXPECT_EQ(recombine(quotient * 95 + rest, ranges), quotient * 95 + rest);
  EXPECT_EQ(recombine(rest, ranges), rest);
  const Index nested = floor_div(position + Index::axis(2), 5, ranges);
  const Index outer = floor_div(nested, 9, ranges) * 9 + modulo(nested, 9, ranges);
  EXPECT_EQ(recombine(outer, ranges), nested);
}

TEST(Expression, ConstantsAreEqualByTheirBits) {
  Dag dag;
  const int zero = dag.constant(kFloat, 0.0);
  EXPECT_NE(zero, dag.constant(kFloat, -0.0));
  EXPECT_EQ(zero, dag.constant(kFloat, 0.0));
  EXPECT_NE(zero, dag.constant(ElementType::kFloat64, 0.0));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(dag.constant(kFloat, nan), dag.constant(kFloat, nan));
}

TEST(Expression, ManyNodesStayApart) {
  Dag dag;
  std::vector<int> ids;
  for (int i = 0; i < 5000; ++i) ids.push_back(dag.constant(ElementType::kInt64, i));
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(dag.constant(ElementType::kInt64, i), ids[static_cast<std::size_t>(i)]);
  }
  const Dag copy = dag;
  Dag other = copy;
  EXPECT_EQ(other.constant(ElementType::kInt64, 17), ids[17]);
  EXPECT_EQ(other.constant(ElementType::kInt64, 5000), 5000);
}

TEST(Expression, ArgumentsThatCommuteHaveOneOrder) {
  Fixture f;
  for (const ScalarOp op : {ScalarOp::kAdd, ScalarOp::kMul, ScalarOp::kEqual}) {
    EXPECT_EQ(f.apply(op, f.accumulator, f.x), f.apply(op, f.x, f.accumulator));
    EXPECT_EQ(f.apply(op, f.x, f.y), f.apply(op, f.y, f.x));
  }
  const int two = f.dag.constant(kFloat, 2);
  const int product = f.apply(ScalarOp::kMul, two, f.x);
  EXPECT_EQ(f.dag[product].arguments, (Arguments{f.x, two}));
  const int sum = f.apply(ScalarOp::kAdd, f.x, f.apply(ScalarOp::kMul, f.accumulator, two));
  EXPECT_EQ(f.dag[f.dag[sum].arguments[0]].op, ScalarOp::kMul);
}

TEST(Expression, TheOrderIsThatOfTheStructureNotOfTheIds) {
  const auto text = [](bool swapped) {
    Dag dag;
    const auto exp_of = [&](int operand) {
      return dag.apply(ScalarOp::kExp, {dag.load(operand, kFloat, {Index::axis(0)})});
    };
    const int first = exp_of(swapped ? 1 : 0);
    const int second = exp_of(swapped ? 0 : 1);
    const ScalarNode& sum = dag[dag.apply(ScalarOp::kAdd, {first, second})];
    return to_string(dag, dag[sum.arguments[0]].arguments[0]);
  };
  EXPECT_EQ(text(false), "x0[i0]");
  EXPECT_EQ(text(true), "x0[i0]");
}

TEST(Expression, OtherArgumentsStayWhereTheyAre) {
  Fixture f;
  for (const ScalarOp op : {ScalarOp::kSub, ScalarOp::kDiv, ScalarOp::kPow, ScalarOp::kLess}) {
    EXPECT_NE(f.apply(op, f.x, f.y), f.apply(op, f.y, f.x));
  }
  // Which zero max(0, -0) is, is not stated; integers have one zero.
  EXPECT_NE(f.apply(ScalarOp::kMax, f.x, f.y), f.apply(ScalarOp::kMax, f.y, f.x));
  const int i = f.dag.load(2, ElementType::kInt64, {Index::axis(0)});
  const int j = f.dag.load(3, ElementType::kInt64, {Index::axis(0)});
  EXPECT_EQ(f.apply(ScalarOp::kMax, i, j), f.apply(ScalarOp::kMax, j, i));
}

TEST(Expression, ReachableNodesIncludeLoadedIndices) {
  Dag dag;
  const int unused = dag.constant(kFloat, 1);
  const int index = dag.load(0, ElementType::kInt64, {Index::axis(0)});
  const int value = dag.load(1, kFloat, {Index::loaded(index, {0, 8})});
  const int root = dag.apply(ScalarOp::kExp, {value});
  const int roots[] = {root};
  EXPECT_EQ(dag.reachable(roots), (std::vector<int>{index, value, root}));
  EXPECT_EQ(unused, 0);
}

TEST(Expression, DagsAreEqualWhenTheyAreInAllTheyProve) {
  const auto looked_up = [](std::int64_t below, ScalarOp op) {
    Dag dag;
    const int index = dag.load(0, ElementType::kInt64, {Index::axis(0)});
    dag.apply(op, {dag.load(1, kFloat, {floor_div(Index::loaded(index, {0, below}), 2, {})})});
    return dag;
  };
  const Dag dag = looked_up(8, ScalarOp::kExp);
  EXPECT_EQ(dag, looked_up(8, ScalarOp::kExp));
  EXPECT_EQ(dag.hash(), looked_up(8, ScalarOp::kExp).hash());
  EXPECT_NE(dag, looked_up(8, ScalarOp::kSin));
  EXPECT_NE(dag, looked_up(10, ScalarOp::kExp));
}

TEST(Expression, RenumbersOperandsOnlyInTheirOrder) {
  Dag dag;
  for (int k = 0; k < 20; ++k) dag.load(k, kFloat, {Index::axis(0)});  // more than are searched one by one
  std::vector<int> numbers(20);
  for (int k = 0; k < 20; ++k) numbers[static_cast<std::size_t>(k)] = 2 * k + 1;
  ASSERT_TRUE(dag.renumber_operands(numbers));
  EXPECT_EQ(dag[3].operand, 7);
  EXPECT_EQ(dag.load(7, kFloat, {Index::axis(0)}), 3);
  std::vector<int> crossed(40);
  for (int k = 0; k < 40; ++k) crossed[static_cast<std::size_t>(k)] = k;
  std::swap(crossed[7], crossed[9]);
  EXPECT_FALSE(dag.renumber_operands(crossed));
  crossed[9] = crossed[7] = 8;  // two that become one
  EXPECT_FALSE(dag.renumber_operands(crossed));
  EXPECT_EQ(dag[3].operand, 7);
}

TEST(NumberFacts, SayWhatIsNeverNanAndWhatIsWhole) {
  Dag dag;
  const int sum = dag.cast(dag.accumulator(0, ElementType::kInt32), kFloat);
  const int scale = dag.load(0, kFloat, {Index(0)}), unknown = dag.load(1, kFloat, {Index(0)});
  const int product = dag.round(dag.apply(ScalarOp::kMul, {sum, scale}));
  const int whole = dag.apply(ScalarOp::kRoundHalfEven, {product});
  const int shifted = dag.round(dag.apply(ScalarOp::kAdd, {whole, dag.constant(kFloat, 0.0)}));
  const int byte = dag.cast(shifted, ElementType::kUInt8);
  const int foreign = dag.apply(ScalarOp::kMul, {sum, unknown});
  const int infinite = dag.apply(ScalarOp::kMul, {product, dag.constant(kFloat, 1e38)});
  const int difference = dag.apply(ScalarOp::kSub, {infinite, infinite});
  const int scaled = dag.apply(ScalarOp::kMul, {infinite, scale});
  const auto facts = number_facts(
      dag, [](const ScalarNode& load) { return load.operand == 0 ? std::optional(0.5) : std::nullopt; });
  const auto at = [&](int id) { return facts[static_cast<std::size_t>(id)]; };
  EXPECT_TRUE(at(product).number && !at(product).whole);
  EXPECT_TRUE(at(shifted).number && at(shifted).whole);
  EXPECT_EQ(at(product).bound, std::ldexp(0.5, 31));
  EXPECT_FALSE(at(foreign).number);
  EXPECT_TRUE(at(infinite).number);
  EXPECT_FALSE(at(difference).number);  // infinity - infinity
  EXPECT_FALSE(at(scaled).number);      // infinity * 0
  // The cast rounds and adds nothing by itself.
  EXPECT_EQ(saturation_of(dag, facts, byte)->arguments(), Arguments{product});
  EXPECT_TRUE(saturation_of(dag, facts, byte)->fits);
  EXPECT_FALSE(saturation_of(dag, facts, dag.cast(product, ElementType::kUInt8)));
  EXPECT_FALSE(saturation_of(dag, facts, dag.cast(shifted, ElementType::kInt16)));
}

TEST(NumberFacts, SaturationAddsAZeroPointAndRepeatsClamps) {
  Dag dag;
  const auto number = [&](double value) { return dag.constant(kFloat, value); };
  const int value = dag.cast(dag.accumulator(0, ElementType::kInt32), kFloat);
  const auto limited = [&](int id, double low, double high) {
    return dag.apply(ScalarOp::kMin, {dag.apply(ScalarOp::kMax, {id, number(low)}), number(high)});
  };
  const auto saturation = [&](int id, double shift, ElementType type) {
    const int rounded = dag.apply(ScalarOp::kRoundHalfEven, {id});
    const int byte = dag.cast(dag.round(dag.apply(ScalarOp::kAdd, {rounded, number(shift)})), type);
    const auto nothing = [](const ScalarNode&) { return std::optional<double>(); };
    return saturation_of(dag, number_facts(dag, nothing), byte);
  };
  EXPECT_EQ(saturation(value, 133, ElementType::kUInt8)->arguments(), (Arguments{value, number(133)}));
  EXPECT_FALSE(saturation(value, 133, ElementType::kUInt8)->fits);  // int32 at its end
  EXPECT_EQ(saturation(limited(value, 0, 255), 0, ElementType::kUInt8)->arguments(), Arguments{value});
  EXPECT_EQ(saturation(limited(value, 0, 254.6), 0, ElementType::kUInt8)->value, value);
  // What limits more than the byte does stays.
  const int cut = limited(value, 0, 254.5);
  EXPECT_EQ(saturation(cut, 0, ElementType::kUInt8)->value, cut);
  const int positive = limited(value, 1, 255);
  EXPECT_EQ(saturation(positive, 0, ElementType::kUInt8)->value, dag[positive].arguments[0]);
  EXPECT_EQ(saturation(limited(value, -128, 127), 0, ElementType::kInt8)->value, value);
  EXPECT_EQ(saturation(limited(value, 0, 255), -128, ElementType::kInt8)->value, value);
  // Fractions and sums that float32 may round are added as floats.
  EXPECT_FALSE(saturation(value, 0.5, ElementType::kUInt8));
  EXPECT_FALSE(saturation(value, 1024, ElementType::kUInt8)->shift);
}

}  // namespace
}  // namespace gcompile::ir
