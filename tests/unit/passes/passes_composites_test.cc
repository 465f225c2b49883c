// Normalisations recognised in their export variants (PyTorch, TensorFlow, hand-written), and refused when a
// part is not what the operator computes.

#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

struct LayerNorm {
  std::string mean_axes = "{-1}", variance_axes = "{-1}", keep = "1", epsilon = "float eps = {0.00001}";
  std::string square = "q = Pow(d, two)", outputs = "float[2,4,6] y", shape = "float[2,4,6] x";
  std::string quotient = "s = Sqrt(e)\n y = Div(d, s)", tail = "";
  std::string parameters = "";

  std::string text() const {
    const auto count = std::count(mean_axes.begin(), mean_axes.end(), ',') + 1;
    const std::string axes_type = "int64[" + std::to_string(count) + "] ";
    return "g (" + shape + parameters + ") => (" + outputs + ") <" + axes_type + "a = " + mean_axes + ", " +
           axes_type + "b = " + variance_axes +
           ", float two = {2.0}, float one = {1.0}, float half = {0.5}, " + epsilon +
           "> { m = ReduceMean<keepdims = " + keep + ">(x, a)\n d = Sub(x, m)\n " + square +
           "\n v = ReduceMean(q, b)\n e = Add(v, eps)\n " + quotient + "\n" + tail + " }";
  }
};

/// The whole pipeline of rules, as spellings meet in several steps.
void expect_becomes(const std::string& text, const std::string& operators_after, double tolerance = 2e-5) {
  SCOPED_TRACE(text);
  ir::Graph graph = parse(text);
  prepare(graph);
  const ir::Graph before = graph;
  for (int i = 0; i < 2; ++i) {
    run_pass(graph, "cse");
    run_pass(graph, "rules");
    run_pass(graph, "fold-again");
    run_pass(graph, "dce-again");
  }
  EXPECT_EQ(operators(graph), operators_after) << ir::print(graph);
  expect_same(before, graph, tolerance);
}

TEST(LayerNormalisation, ExportVariants) {
  expect_becomes(LayerNorm{}.text(), "LayerNormalization");
  expect_becomes(LayerNorm{.square = "q = Mul(d, d)"}.text(), "LayerNormalization");
  expect_becomes(LayerNorm{.quotient = "s = Sqrt(e)\n r = Reciprocal(s)\n y = Mul(d, r)"}.text(),
                 "LayerNormalization");
  expect_becomes(LayerNorm{.quotient = "s = Sqrt(e)\n r = Div(one, s)\n y = Mul(r, d)"}.text(),
                 "LayerNormalization");
  expect_becomes(LayerNorm{.quotient = "s = Pow(e, half)\n y = Div(d, s)"}.text(), "LayerNormalization");
  // The deviation computed twice, once per branch.
  expect_becomes(LayerNorm{.square = "d2 = Sub(x, m)\n q = Pow(d2, two)"}.text(), "LayerNormalization");
  expect_becomes(LayerNorm{.mean_axes = "{1,2}", .variance_axes = "{-2,-1}"}.text(), "LayerNormalization");
}

TEST(LayerNormalisation, GainAndBias) {
  LayerNorm norm{.quotient = "s = Sqrt(e)\n n = Div(d, s)",
                 .tail = "h = Mul(n, w_g)\n y = Add(h, w_b)",
                 .parameters = ", float[6] w_g, float[6] w_b"};
  expect_becomes(norm.text(), "LayerNormalization");
  norm.parameters = ", float[4,1] w_g, float w_b";
  expect_becomes(norm.text(), "LayerNormalization");
  // A gain that enlarges the result stays outside.
  norm.parameters = ", float[3,1,1,1] w_g, float w_b";
  norm.outputs = "float[3,2,4,6] y";
  expect_becomes(norm.text(), "LayerNormalization Mul Add");
  // An addend that is computed is no bias.
  norm.parameters = ", float[6] w_g, float[2,4,6] residual";
  norm.tail = "h = Mul(n, w_g)\n y = Add(h, residual)";
  norm.outputs = "float[2,4,6] y";
  expect_becomes(norm.text(), "LayerNormalization Add");
}

TEST(LayerNormalisation, Refusals) {
  const auto refuses = [](LayerNorm norm, const std::string& reason) {
    norm.square = "q = Mul(d, d)";
    expect_refuses("layer-norm", norm.text(), reason);
  };
  refuses({.mean_axes = "{1}", .variance_axes = "{1}"}, "last axes");
  refuses({.mean_axes = "{-1}", .variance_axes = "{1}"}, "last axes");
  refuses({.mean_axes = "{1}", .variance_axes = "{2}"}, "different axes");
  refuses({.epsilon = "float[6] eps = {0.1,0.1,0.1,0.1,0.1,0.2}"}, "one number");
  refuses({.epsilon = "float eps = {-0.5}"}, "float32");
  // The deviation, or the variance, is a graph output too.
  refuses({.outputs = "float[2,4,6] y, float[2,4,6] d"}, "");
  refuses({.outputs = "float[2,4,6] y, float[2,4,1] v"}, "");
  // Another exponent.
  LayerNorm cube;
  cube.square = "q2 = Mul(d, d)\n q = Mul(q2, d)";
  expect_refuses("layer-norm", cube.text(), "");
}

TEST(RmsNormalisation, ExportVariants) {
  const auto rms = [](const std::string& quotient) {
    return "g (float[3,8] x, float[8] w_g) => (float[3,8] y) <int64[1] a = {-1}, float two = {2.0}, float "
           "eps = {0.001}>"
           " { q = Pow(x, two)\n v = ReduceMean(q, a)\n e = Add(eps, v)\n s = Sqrt(e)\n " +
           quotient + "\n y = Mul(w_g, n) }";
  };
  expect_becomes(rms("n = Div(x, s)"), "RMSNormalization");
  expect_becomes(rms("r = Reciprocal(s)\n n = Mul(x, r)"), "RMSNormalization");
  expect_refuses("rms-norm",
                 "g (float[3,8] x, float[3,8] z) => (float[3,8] y) <int64[1] a = {-1}, float eps = {0.001}>"
                 " { q = Mul(x, x)\n v = ReduceMean(q, a)\n e = Add(eps, v)\n s = Sqrt(e)\n y = Div(z, s) }",
                 "");
}

TEST(Softmax, FromItsParts) {
  const auto softmax = [](const std::string& axes1, const std::string& axes2,
                          const std::string& outputs = "float[2,5,3] y") {
    return "g (float[2,5,3] x) => (" + outputs + ") <int64[1] a = {" + axes1 + "}, int64[1] b = {" + axes2 +
           "}> { m = ReduceMax(x, a)\n d = Sub(x, m)\n e = Exp(d)\n s = ReduceSum(e, b)\n y = Div(e, s) }";
  };
  expect_fires("softmax", softmax("-1", "2"), "Softmax");
  expect_fires("softmax", softmax("1", "1"), "Softmax");
  expect_refuses("softmax", softmax("1", "2"), "one axis");
  expect_refuses("softmax", softmax("1", "1", "float[2,5,3] y, float[2,5,3] e"), "");
}

TEST(Softmax, IsNotDroppedBeforeArgMax) {
  // exp may round different scores to equal probabilities, so that ArgMax of the scores is another index.
  expect_becomes("g (float[2,5] x) => (int64[2,1] y) { p = Softmax(x)\n y = ArgMax<axis = 1>(p) }",
                 "Softmax ArgMax", 0);
}

}  // namespace
}  // namespace gcompile::testing
