// Rules of element-wise algebra: each law, and each reason not to.

#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

/// Nodes of x and z: float[2,3], with constants.
std::string graph(const std::string& nodes, const std::string& constants, const std::string& type = "float",
                  const std::string& result = "[2,3] y") {
  return "g (" + type + "[2,3] x, " + type + "[2,3] z) => (" + type + result + ") <" + constants + "> { " +
         nodes + " }";
}

constexpr const char* kNumbers = "float a = {3.0}, float b = {7.0}, float c = {0.3}";
constexpr const char* kRows =
    "float[3] a = {3.0, 5.0, 7.0}, float[2,1] b = {3.0, 0.7}, float[1,3] c = {3.0, 5.0, 6.0}";

TEST(ChainsOfFactors, BecomeOne) {
  for (const char* numbers : {kNumbers, "float[3] a = {3.0, 5.0, 7.0}, float b = {7.0}"}) {
    expect_fires("div-constants", graph("t = Div(x, a) y = Div(t, b)", numbers), "Mul");
    expect_fires("div-constants", graph("t = Mul(a, x) y = Div(t, b)", numbers), "Mul");
    expect_fires("div-constants", graph("t = Div(x, a) y = Mul(b, t)", numbers), "Mul");
    expect_fires("numerator-constants", graph("t = Div(a, x) y = Mul(t, b)", numbers), "Div");
    expect_fires("numerator-constants", graph("t = Div(a, x) y = Div(t, b)", numbers), "Div");
  }
  expect_fires("div-constants", graph("t = Div(x, a) y = Div(t, c)", kRows), "Mul");
}

TEST(ChainsOfFactors, RefuseWhatGrowsLeavesTheRangeOrDecides) {
  expect_refuses("div-constants", graph("t = Div(x, a) y = Div(t, b)", kRows), "enlarge");
  expect_refuses(
      "div-constants",
      graph("t = Div(x, a) y = Div(t, b)", "float a = {3.0}, float[1,1,1] b = {7.0}", "float", "[1,2,3] y"),
      "enlarge");
  expect_refuses("div-constants", graph("t = Div(x, a) y = Div(t, a)", "float a = {1e30}"), "range");
  expect_refuses("div-constants", graph("t = Mul(x, a) y = Div(t, b)", "float a = {1e30}, float b = {1e-30}"),
                 "range");
  expect_refuses(
      "div-constants",
      "g (float[2] x) => (float[2] y) <float a = {3.0}> { t = Div(x, a) u = Div(t, a) y = Floor(u) }",
      "decided");
  expect_refuses("div-constants", graph("t = Div(x, a) y = Div(t, a)", "int32 a = {3}", "int32"), "integers");
  // t has another reader.
  expect_refuses("div-constants", graph("t = Div(x, a) u = Div(t, b) y = Add(t, u)", kNumbers), "");
}

TEST(AffineChains, TakeOneProductAndOneSum) {
  expect_fires("affine-constants", graph("t = Mul(x, a) u = Add(t, b) y = Mul(u, c)", kNumbers), "Mul Add");
  expect_fires("affine-constants", graph("t = Div(x, a) u = Add(b, t) y = Div(u, c)", kNumbers), "Mul Add");
  expect_fires("affine-constants", graph("t = Mul(x, a) u = Add(t, c) y = Mul(u, c)", kRows), "Mul Add");
  ir::Graph chain = parse(graph("t = Mul(x, a) u = Add(t, b) v = Mul(u, c) y = Sub(v, a)", kNumbers));
  const ir::Graph before = chain;
  run_pass(chain, "rules");
  EXPECT_EQ(operators(chain), "Mul Add");
  expect_same(before, chain, 2e-5);
}

TEST(AffineChains, RefuseInfinityAndLargeAddends) {
  const std::string nodes = "t = Mul(x, a) u = Add(t, b) y = Mul(u, c)";
  expect_refuses("affine-constants", graph(nodes, "float a = {1.0}, float b = {1e20}, float c = {1e15}"),
                 "range");
  expect_refuses("affine-constants", graph(nodes, kRows), "enlarge");
}

TEST(Minuends, Meet) {
  expect_fires("minuend-constants", graph("t = Sub(a, x) y = Add(t, b)", kNumbers), "Sub");
  expect_fires("minuend-constants", graph("t = Add(x, a) y = Sub(c, t)", kRows), "Sub");
  expect_fires("minuend-constants", graph("t = Sub(a, x) y = Sub(c, t)", kRows), "Add");
  expect_refuses("minuend-constants", graph("t = Sub(a, x) y = Add(t, b)", kRows), "enlarge");
  expect_refuses("minuend-constants", graph("t = Sub(a, x) y = Add(t, a)", "float a = {3e38}"), "range");
  expect_refuses("minuend-constants", graph("t = Sub(a, x) y = Sub(a, t)", "int32 a = {3}", "int32"),
                 "integers");
}

TEST(SumsOfMultiples, HaveOneFactor) {
  expect_fires("sum-of-multiples", graph("t = Mul(x, a) u = Mul(x, b) y = Add(t, u)", kNumbers), "Mul");
  expect_fires("sum-of-multiples", graph("t = Mul(x, a) u = Mul(x, c) y = Add(u, t)", kRows), "Mul");
  expect_fires("multiple-and-itself", graph("t = Mul(x, c) y = Add(x, t)", kNumbers), "Mul");
  expect_fires("twice", graph("y = Add(x, x)", kNumbers), "Mul");
  expect_fires("common-factor", graph("t = Mul(x, a) u = Mul(z, a) y = Add(t, u)", kNumbers), "Add Mul");
  expect_fires("common-factor", graph("t = Mul(x, a) u = Mul(a, z) y = Sub(t, u)", kRows), "Sub Mul");
}

TEST(SumsOfMultiples, RefuseOtherSignsSmallFactorsAndIntegers) {
  const std::string sum = "t = Mul(x, a) u = Mul(x, b) y = Add(t, u)";
  expect_refuses("sum-of-multiples", graph(sum, "float a = {3.0}, float b = {-2.0}"), "one sign");
  expect_refuses("sum-of-multiples", graph(sum, "float a = {3.0}, float b = {0.0}"), "one sign");
  expect_refuses("sum-of-multiples", graph(sum, "float a = {3e38}, float b = {3e38}"), "range");
  expect_refuses("sum-of-multiples", graph(sum, kRows), "enlarge");
  expect_refuses("multiple-and-itself", graph("t = Mul(x, a) y = Add(x, t)", "float a = {-0.5}"), "one sign");
  expect_refuses("common-factor", graph("t = Mul(x, c) u = Mul(z, c) y = Add(t, u)", kNumbers), "below 1");
  expect_refuses("twice", "g (int32[2] x) => (int32[2] y) { y = Add(x, x) }", "integers");
  // Multiples of different numbers, and one with another reader.
  expect_refuses("sum-of-multiples", graph("t = Mul(x, a) u = Mul(z, b) y = Add(t, u)", kNumbers), "");
  expect_refuses("common-factor", graph("t = Mul(x, a) u = Mul(z, a) v = Add(t, u) y = Add(v, t)", kNumbers),
                 "");
}

TEST(Signs, GoIntoTheirNeighbours) {
  for (const char* type : {"float", "int32"}) {
    const std::string c = std::string(type) + " c = {3}";
    expect_fires("add-of-neg", graph("t = Neg(z) y = Add(x, t)", c, type), "Sub");
    expect_fires("add-of-neg", graph("t = Neg(x) y = Add(t, z)", c, type), "Sub");
    expect_fires("sub-of-neg", graph("t = Neg(z) y = Sub(x, t)", c, type), "Add");
    expect_fires("signs-cancel", graph("s = Neg(x) t = Neg(z) y = Mul(s, t)", c, type), "Mul");
    expect_fires("neg-into-factor", graph("t = Neg(x) y = Mul(c, t)", c, type), "Mul");
    expect_fires("neg-of-multiple", graph("t = Mul(x, c) y = Neg(t)", c, type), "Mul");
    expect_fires("abs-of-neg", graph("t = Neg(x) y = Abs(t)", c, type), "Abs");
    expect_fires("neg-of-sum", graph("t = Add(x, c) y = Neg(t)", c, type), "Sub");
    expect_fires("neg-of-difference", graph("t = Sub(x, z) y = Neg(t)", c, type), "Sub");
  }
  expect_fires("signs-cancel", graph("s = Neg(x) t = Neg(z) y = Div(s, t)", kNumbers), "Div");
  expect_fires("neg-into-factor", graph("t = Neg(x) y = Div(c, t)", kNumbers), "Div");
  expect_fires("neg-of-multiple", graph("t = Div(c, x) y = Neg(t)", kNumbers), "Div");
  expect_fires("neg-of-multiple", graph("t = Div(x, c) y = Neg(t)", kNumbers), "Div");
}

TEST(Signs, StayWhereTheyHaveOtherReadersOrIntegersAreDivided) {
  expect_refuses("add-of-neg", graph("t = Neg(z) s = Add(x, t) y = Mul(s, t)", kNumbers), "");
  expect_refuses("neg-into-factor", graph("t = Neg(x) y = Div(t, c)", "int32 c = {3}", "int32"), "integers");
  expect_refuses("signs-cancel", graph("s = Neg(x) t = Neg(z) y = Div(s, t)", "int32 c = {3}", "int32"),
                 "integers");
  expect_refuses("neg-of-difference",
                 "g (float[2] x, float[2] z) => (float[2] y) { s = Sub(x, z) t = Neg(s) y = Sign(t) }",
                 "decided");
}

TEST(Functions, ThatUndoEachOther) {
  expect_fires("exp-of-log", graph("s = Sigmoid(x) t = Log(s) y = Exp(t)", kNumbers), "Sigmoid");
  expect_fires("square-of-root", graph("s = Exp(x) t = Sqrt(s) y = Mul(t, t)", kNumbers), "Exp");
  expect_fires("root-of-square", graph("t = Mul(x, x) y = Sqrt(t)", kNumbers), "Abs");
  expect_fires("mul-by-reciprocal", graph("t = Reciprocal(z) y = Mul(t, x)", kNumbers), "Div");
  expect_fires("pow-minus-one", graph("y = Pow(x, c)", "float c = {-1.0}"), "Reciprocal");
  expect_fires("pow-minus-half", graph("t = Exp(x) y = Pow(t, c)", "float[1] c = {-0.5}"),
               "Exp Sqrt Reciprocal");
  expect_refuses("exp-of-log", graph("t = Log(x) y = Exp(t)", kNumbers), "negative");
  expect_refuses("square-of-root", graph("t = Sqrt(x) y = Mul(t, t)", kNumbers), "negative");
  expect_refuses("pow-minus-half", graph("y = Pow(x, c)", "float c = {-0.5}"), "negative");
  expect_refuses("pow-minus-one", graph("y = Pow(x, c)", "float c = {-2.0}"), "another power");
  expect_refuses("mul-by-reciprocal",
                 "g (float[2,3] x, float[2,1] z) => (float[2,3] y) { t = Reciprocal(z) y = Mul(t, x) }",
                 "fewer elements");
}

/// A variance to the power of -0.5 is the root that a normalisation divides by.
TEST(Functions, InverseRootsBecomeNormalisations) {
  ir::Graph graph = parse(
      "g (float[4,5] x) => (float[4,5] y) <int64[1] a = {-1}, float e = {0.0009765625}, float p = {-0.5}> {"
      " m = ReduceMean(x, a) d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, a) w = Add(v, e)"
      " s = Pow(w, p) y = Mul(d, s) }");
  const ir::Graph before = graph;
  run_pass(graph, "rules");
  EXPECT_EQ(operators(graph), "LayerNormalization");
  expect_same(before, graph, 2e-5);
}

}  // namespace
}  // namespace gcompile::testing
