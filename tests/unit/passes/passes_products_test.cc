// Products and convolutions that become one, and constants that go past what stands between them: each law,
// and each reason not to.

#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

// Products --------------------------------------------------------------------------------------------------

/// x (2, 5, 4) times weights (4, 8) and (8, 3).
std::string linears(const std::string& nodes, const std::string& more = "") {
  return "g (float[2,5,4] x, float[4,8] w_w, float[8,3] w_v, float[8] w_b, float[3] w_c" + more +
         ") => (float[2,5,3] y) { " + nodes + " }";
}

TEST(Linears, InARow) {
  expect_fires("linear-of-linear", linears("t = MatMul(x, w_w) y = MatMul(t, w_v)"), "MatMul");
  expect_fires("linear-of-linear", linears("t = MatMul(x, w_w) u = Add(w_b, t) y = MatMul(u, w_v)"),
               "MatMul Add");
  ir::Graph graph = parse(linears("t = MatMul(x, w_w) u = Add(t, w_b) v = MatMul(u, w_v) y = Add(v, w_c)"));
  const ir::Graph before = graph;
  run_pass(graph, "rules");
  EXPECT_EQ(operators(graph), "MatMul Add");
  expect_same(before, graph, 2e-5);
}

TEST(Linears, RefuseLowRankInfinityAndUnderflow) {
  const auto of = [](const std::string& sizes, const std::string& constants) {
    return "g (float[5,2] x, " + sizes + ") => (float[5,N] y) <" + constants +
           "> { t = MatMul(x, w) y = MatMul(t, v) }";
  };
  expect_refuses("linear-of-linear",
                 "g (float[5,8] x, float[8,2] w_w, float[2,8] w_v) => (float[5,8] y) {"
                 " t = MatMul(x, w_w) y = MatMul(t, w_v) }",
                 "not be cheaper");
  expect_refuses("linear-of-linear",
                 of("float n", "float[2,2] w = {1e30, 1.0, 1.0, 1.0}, float[2,1] v = {1e30, 1.0}"), "range");
  expect_refuses("linear-of-linear",
                 of("float n", "float[2,2] w = {1e-30, 0.0, 0.0, 1e-30}, float[2,1] v = {1e-30, 1e-30}"),
                 "range");
  expect_refuses("linear-of-linear",
                 "g (float[5,4] x, float[4,8] w_w, float[8,3] w_v, float[5,8] w_b) => (float[5,3] y) {"
                 " t = MatMul(x, w_w) u = Add(t, w_b) y = MatMul(u, w_v) }",
                 "one value per column");
  // t has another reader.
  expect_refuses("linear-of-linear",
                 "g (float[5,4] x, float[4,8] w_w, float[8,8] w_v) => (float[5,8] y) {"
                 " t = MatMul(x, w_w) u = MatMul(t, w_v) y = Add(t, u) }",
                 "");
}

TEST(Chains, TakeTheCheaperOrder) {
  const std::string left = "t = MatMul(a, b) y = MatMul(t, c)", right = "t = MatMul(b, c) y = MatMul(a, t)";
  const auto of = [](const std::string& a, const std::string& b, const std::string& c,
                     const std::string& result, const std::string& nodes, const std::string& type = "float") {
    return "g (" + type + a + " a, " + type + b + " b, " + type + c + " c) => (" + type + result + " y) { " +
           nodes + " }";
  };
  expect_fires("product-chain", of("[64,64]", "[64,64]", "[64,1]", "[64,1]", left), "MatMul MatMul");
  expect_fires("product-chain", of("[2,30,30]", "[2,30,30]", "[2,30,2]", "[2,30,2]", left), "MatMul MatMul");
  expect_fires("product-chain", of("[2,30,30]", "[30,30]", "[30,2]", "[2,30,2]", left), "MatMul MatMul");
  expect_fires("product-chain", of("[1,30]", "[30,30]", "[30,30]", "[1,30]", right), "MatMul MatMul");
  expect_fires("product-chain", of("[1,30]", "[30,30]", "[2,30,30]", "[2,1,30]", right), "MatMul MatMul");
  const std::string reason = "not twice as cheap";
  expect_refuses("product-chain", of("[8,8]", "[8,8]", "[8,8]", "[8,8]", left), reason);
  expect_refuses("product-chain", of("[64,64]", "[64,64]", "[64,1]", "[64,1]", right), reason);
  expect_refuses("product-chain", of("[64,64]", "[64,64]", "[64,1]", "[64,1]", left, "int32"), "integers");
  expect_refuses("product-chain", of("[2,30,30]", "[2,30,30]", "[30,2]", "[2,30,2]", left), "have batches");
}

TEST(SumsOfProducts, OfOneWeightAndOfOneOperand) {
  const auto of = [](const std::string& nodes,
                     const std::string& more = "float[5,4] z, float[4,3] w_w, float[4,3] w_v",
                     const std::string& type = "float") {
    return "g (" + type + "[5,4] x, " + more + ", float[3] b, float[5,1] c) => (" + type + "[5,3] y) { " +
           nodes + " }";
  };
  const std::string lefts = "s = MatMul(x, w_w) t = MatMul(z, w_w) ",
                    rights = "s = MatMul(x, w_w) t = MatMul(x, w_v) ";
  for (const auto& [rule, products, first] :
       {std::tuple(std::string("products-of-one-weight"), lefts, std::string("Add MatMul")),
        std::tuple(std::string("products-of-one-operand"), rights, std::string("MatMul"))}) {
    expect_fires(rule, of(products + "y = Add(s, t)"), first);
    expect_fires(rule, of(products + "u = Add(b, t) y = Add(s, u)"), first + " Add");
    expect_fires(rule, of(products + "u = Add(s, b) v = Add(t, c) y = Add(u, v)"), first + " Add Add");
    // t has another reader.
    expect_refuses(rule, of(products + "u = Add(s, t) y = Mul(u, t)"), "");
  }
  expect_refuses("products-of-one-weight", of(lefts + "y = Add(s, t)", "float[1,4] z, float[4,3] w_w"),
                 "broadcast");
  expect_refuses("products-of-one-operand", of(rights + "y = Add(s, t)", "float[4,3] w_w, float[4,1] w_v"),
                 "unlike");
}

TEST(ShiftBeforeMatMul, BecomesABias) {
  const auto of = [](const std::string& shift, const std::string& x = "[5,4]") {
    return "g (float" + x + " x, float" + shift +
           " w_c, float[4,3] w_w) => (float[5,3] y) {"
           " t = Add(x, w_c) y = MatMul(t, w_w) }";
  };
  expect_fires("shift-before-matmul", of("[4]"), "MatMul Add");
  expect_fires("shift-before-matmul", of("[1]"), "MatMul Add");
  expect_refuses("shift-before-matmul", of("[5,1]"), "one value per row");
  expect_refuses("shift-before-matmul", of("[5,4]", "[1,4]"), "enlarges");
}

TEST(IdentityWeights, GiveTheOperand) {
  const auto of = [](const std::string& weights) {
    return "g (float[5,2] x) => (float[5,2] y) <float[2,2] w = {" + weights + "}> { y = MatMul(x, w) }";
  };
  expect_fires("identity-weights", of("1.0, 0.0, 0.0, 1.0"), "");
  expect_refuses("identity-weights", of("1.0, 0.0, 0.5, 1.0"), "not the identity");
}

TEST(Signs, GoIntoWeights) {
  const std::string x = "g (float[5,4] x, float[4,3] w_w) => (float[5,3] y) { ";
  expect_fires("neg-into-product", x + "t = Neg(x) y = MatMul(t, w_w) }", "MatMul");
  expect_fires("neg-of-product", x + "t = MatMul(x, w_w) y = Neg(t) }", "MatMul");
  const std::string conv = "g (float[1,2,6] x, float[2,3,3] w_w, float[3] w_b) => (float[1,3,8] y) { ";
  expect_fires("neg-before-conv", conv + "t = Neg(x) y = ConvTranspose(t, w_w, w_b) }", "ConvTranspose");
  expect_fires("neg-of-conv", conv + "t = ConvTranspose(x, w_w, w_b) y = Neg(t) }", "ConvTranspose");
  expect_refuses("neg-of-conv", conv + "t = ConvTranspose(x, w_w, w_b) u = Neg(t) y = Mul(u, t) }", "");
}

// Convolutions ----------------------------------------------------------------------------------------------

/// A block of three branches as it is trained (RepVGG): 3x3, 1x1 and the image itself, each with its scale.
TEST(Branches, OfRepVggAreOneConvolution) {
  ir::Graph graph = parse(
      "g (float[1,4,7,6] x, float[4,4,3,3] w_w, float[4,4,1,1] w_v, float[4] w_b, float[4] w_s, float[4] w_t,"
      " float[4] w_m) => (float[1,4,7,6] y) <float[4] one = {1.0, 2.0, 0.5, 0.7}> {"
      " a = Conv<pads = [1,1,1,1]>(x, w_w) p = BatchNormalization(a, w_s, w_t, w_m, one)"
      " b = Conv(x, w_v, w_b) q = BatchNormalization(b, w_t, w_s, w_m, one)"
      " r = BatchNormalization(x, w_b, w_s, w_t, one) u = Add(p, q) v = Add(u, r) y = Relu(v) }");
  prepare(graph);
  const ir::Graph before = graph;
  run_pass(graph, "rules");
  EXPECT_EQ(operators(graph), "Conv Relu");
  expect_same(before, graph, 2e-5);
}

std::string branches(const std::string& first, const std::string& second, const std::string& weights,
                     const std::string& result = "[1,6,7,6]") {
  return "g (float[1,4,7,6] x, " + weights + ", float[6] w_b, float[6] w_c) => (float" + result +
         " y) { s = Conv<" + first + ">(x, w_w, w_b) t = Conv<" + second + ">(x, w_v, w_c) y = Add(s, t) }";
}

TEST(Branches, OfUnlikeWindows) {
  const std::string rule = "convolutions-of-one-operand", five = "float[6,4,5,5] w_w, ";
  expect_fires(rule, branches("pads = [2,2,2,2]", "pads = [1,1,1,1]", five + "float[6,4,3,3] w_v"), "Conv");
  expect_fires(rule,
               branches("pads = [0,1,0,1]", "pads = [2,2,2,2]", "float[6,4,1,3] w_w, float[6,4,5,5] w_v"),
               "Conv");
  expect_fires(
      rule, branches("pads = [2,2,2,2]", "pads = [2,2,2,2], dilations = [2,2]", five + "float[6,4,3,3] w_v"),
      "Conv");
  expect_fires(rule,
               branches("pads = [1,1,1,1], strides = [2,2], group = 2", "strides = [2,2], group = 2",
                        "float[6,2,3,3] w_w, float[6,2,1,1] w_v", "[1,6,4,3]"),
               "Conv");
  const std::string apart = "do not lie in each other";
  expect_refuses(rule,
                 branches("pads = [1,0,1,0]", "pads = [0,1,0,1]", "float[6,4,3,1] w_w, float[6,4,1,3] w_v"),
                 apart);
  expect_refuses(rule,
                 branches("pads = [2,2,2,2], dilations = [2,2]", "pads = [1,1,1,1]",
                          "float[6,4,3,3] w_w, float[6,4,3,3] w_v"),
                 apart);
  expect_refuses(
      rule,
      branches("pads = [1,1,1,1]", "pads = [1,1,1,1], group = 2", "float[6,4,3,3] w_w, float[6,2,3,3] w_v"),
      "groups");
}

TEST(Branches, TheOperandItself) {
  const auto of = [](const std::string& window, const std::string& weights, const std::string& nodes,
                     const std::string& more = "") {
    return "g (float[2,4,7] x, float[4," + weights + "] w_w, float[4] w_b, float[4,1] w_f, float[4,7] w_p" +
           more + ") => (float[2,4,7] y) { s = Conv<" + window + ">(x, w_w, w_b) " + nodes + " }";
  };
  const std::string same = "pads = [1,1]", wide = "pads = [2,2], dilations = [2]";
  expect_fires("operand-into-conv", of(same, "4,3", "y = Add(x, s)"), "Conv");
  expect_fires("operand-into-conv", of(wide + ", group = 4", "1,3", "y = Add(s, x)"), "Conv");
  expect_fires("operand-into-conv", of(same + ", group = 2", "2,3", "t = Mul(x, w_f) y = Add(s, t)"), "Conv");
  expect_fires("operand-into-conv", of(same, "4,3", "t = Mul(x, w_f) u = Add(t, w_f) y = Add(s, u)"),
               "Conv Add");
  expect_refuses("operand-into-conv", of("pads = [3,1], dilations = [2]", "4,3", "y = Add(x, s)"),
                 "in its own place");
  expect_refuses("operand-into-conv", of(same, "4,3", "t = Mul(x, w_p) y = Add(s, t)"), "one per channel");
  expect_refuses("operand-into-conv",
                 "g (float[1,4,1] x, float[4,4,1] w_w) => (float[1,4,1] y) { s = Conv<strides = [2]>(x, w_w)"
                 " y = Add(x, s) }",
                 "strides");
}

TEST(Convolutions, ThatDoNothing) {
  const auto of = [](const std::string& weights) {
    return "g (float[1,2,6] x) => (float[1,2,6] y) <float[2,2,1] w = {" + weights + "}> { y = Conv(x, w) }";
  };
  expect_fires("identity-weights", of("1.0, 0.0, 0.0, 1.0"), "");
  expect_refuses("identity-weights", of("0.0, 1.0, 1.0, 0.0"), "not the identity");
  expect_fires(
      "identity-weights",
      "g (float[1,2,6] x) => (float[1,2,6] y) <float[2,1,1] w = {1.0, 1.0}> { y = Conv<group = 2>(x, w) }",
      "");
}

TEST(Convolutions, OfOneWeight) {
  expect_fires("convolutions-of-one-weight",
               "g (float[1,2,6] x, float[1,2,6] z, float[3,2,3] w, float[3] w_b) => (float[1,3,4] y) {"
               " s = Conv(x, w, w_b) t = Conv(z, w) y = Add(s, t) }",
               "Add Conv");
  expect_refuses("convolutions-of-one-weight",
                 "g (float[1,2,6] x, float[1,2,8] z, float[3,2,3] w) => (float[1,3,4] y) {"
                 " s = Conv(x, w) t = Conv<dilations = [2]>(z, w) y = Add(s, t) }",
                 "unlike shapes");
}

TEST(Convolutions, InARow) {
  const auto of = [](const std::string& first, const std::string& w, const std::string& second,
                     const std::string& v, const std::string& bias = ", w_b") {
    return "g (float[1,2,9,8] x, float[6,2," + w + "] w_w, float[3,6," + v +
           "] w_v, float[6] w_b, float[3] w_c)"
           " => (float[1,3,N,M] y) { t = Conv<" +
           first + ">(x, w_w" + bias + ") y = Conv<" + second + ">(t, w_v, w_c) }";
  };
  const std::string same = "pads = [1,1,1,1]", plain = "strides = [1,1]";
  expect_fires("conv-of-conv", of(same + ", strides = [2,2]", "3,3", plain, "1,1"), "Conv");
  expect_fires("conv-of-conv", of(plain, "1,1", "strides = [2,1]", "3,3"), "Conv");
  expect_fires("conv-of-conv", of(plain, "1,1", same, "3,3", ""), "Conv");
  expect_refuses("conv-of-conv", of(plain, "1,1", same, "3,3"), "pads with zeros");
  expect_refuses("conv-of-conv", of(plain, "3,3", plain, "3,3"), "one pixel");
  expect_refuses("conv-of-conv",
                 "g (float[1,8,9] x, float[2,8,1] w_w, float[8,2,3] w_v) => (float[1,8,7] y) {"
                 " t = Conv(x, w_w) y = Conv(t, w_v) }",
                 "not be cheaper");
  expect_refuses("conv-of-conv",
                 "g (float[1,4,9] x, float[4,2,3] w_w, float[4,4,1] w_v) => (float[1,4,7] y) {"
                 " t = Conv<group = 2>(x, w_w) y = Conv(t, w_v) }",
                 "groups");
}

// Constants that go past what stands between ----------------------------------------------------------------

/// A convolution, something else, and a factor of each of its three channels.
std::string scaled(const std::string& between, const std::string& size, const std::string& factors,
                   const std::string& scale = "y = Mul(u, c)") {
  return "g (float[1,2,8,8] x, float[3,2,3,3] w_w, float[3] w_b) => (float[1,3," + size +
         "] y) <float[3,1,1] c = {" + factors + "}> { t = Conv(x, w_w, w_b) u = " + between + "(t) " + scale +
         " }";
}

TEST(ConstantsGoPast, ReluAndPools) {
  const std::string positive = "2.0, 3.0, 0.1", mixed = "2.0, -3.0, 0.1";
  const std::string largest = "MaxPool<kernel_shape = [2,2], pads = [1,1,1,1]>";
  const std::string mean = "AveragePool<kernel_shape = [2,2], strides = [2,2]>";
  expect_fires("scale-past-map", scaled("Relu", "6,6", positive), "Conv Mul Relu");
  expect_fires("scale-past-map", scaled(largest, "7,7", positive, "y = Div(u, c)"), "Conv Div MaxPool");
  expect_fires("scale-past-mean", scaled(mean, "3,3", mixed), "Conv Mul AveragePool");
  expect_fires("scale-past-mean", scaled("GlobalAveragePool", "1,1", mixed), "Conv Mul ReduceMean");
  expect_refuses("scale-past-map", scaled("Relu", "6,6", mixed), "positive");
  expect_refuses("scale-past-map", scaled("Relu", "6,6", positive, "v = Mul(u, c) y = Add(u, v)"), "");
  expect_refuses("scale-past-map",
                 "g (float[1,3,6] x, float[6] w_c) => (float[1,3,6] y) { t = Relu(x) y = Mul(t, w_c) }",
                 "no contraction");
  expect_refuses(
      "scale-past-map",
      "g (float[1,2,8] x, float[3,2,3] w_w) => (float[1,3,6] y)"
      " <float[6] c = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}> { t = Conv(x, w_w) u = Relu(t) y = Mul(u, c) }",
      "one value per channel");
}

TEST(ConstantsGoPast, ReluIntoTheWeights) {
  ir::Graph graph = parse(scaled("Relu", "6,6", "2.0, 3.0, 0.1"));
  const ir::Graph before = graph;
  run_pass(graph, "rules");
  EXPECT_EQ(operators(graph), "Conv Relu");
  expect_same(before, graph, 2e-5);
  graph = parse(
      "g (float[5,4] x, float[4,3] w_w, float[3] w_b) => (float[5,3] y) <float[3] c = {2.0, 3.0, 0.1}> {"
      " t = MatMul(x, w_w) s = Add(t, w_b) u = Relu(s) y = Mul(u, c) }");
  run_pass(graph, "rules");
  EXPECT_EQ(operators(graph), "MatMul Add Relu");
}

/// Normalisation between two layers: the scale goes into the weights behind, the shift becomes their bias.
TEST(ConstantsGoPast, NothingThatALaterLayerTakes) {
  ir::Graph graph = parse(
      "g (float[5,4] x, float[4,8] w_w, float[8] w_b, float[8] w_s, float[8] w_t, float[8,3] w_v, float[3] "
      "w_c)"
      " => (float[5,3] y) { p = Gemm(x, w_w, w_b) r = Relu(p) s = Mul(r, w_s) t = Add(s, w_t)"
      " y = Gemm(t, w_v, w_c) }");
  prepare(graph);
  const ir::Graph before = graph;
  run_pass(graph, "rules");
  EXPECT_EQ(operators(graph), "MatMul Add Relu MatMul Add");
  expect_same(before, graph, 2e-5);
}

TEST(ConstantsGoPast, Concat) {
  const auto of = [](const std::string& nodes, const std::string& constant) {
    return "g (float[1,2,8] x, float[3,2,3] w_w, float[2,2,3] w_v, float[2,6] z, float" + constant +
           " w_c) => (float[1,N,6] y) { s = Conv(x, w_w) t = Conv(x, w_v) " + nodes + " }";
  };
  const std::string joined = "u = Concat<axis = 1>(s, t) y = ";
  expect_fires("constant-past-concat", of(joined + "Mul(u, w_c)", "[5,1]"),
               "Conv Conv Slice Mul Slice Mul Concat");
  expect_fires("constant-past-concat", of(joined + "Add(u, w_c)", "[1]"), "Conv Conv Add Add Concat");
  expect_refuses("constant-past-concat", of(joined + "Mul(u, w_c)", "[6]"), "one value per channel");
  expect_refuses("constant-past-concat",
                 of("v = Relu(t) u = Concat<axis = 1>(s, v) y = Mul(u, w_c)", "[5,1]"), "no contraction");
  ir::Graph graph = parse(of(joined + "Mul(u, w_c)", "[5,1]"));
  const ir::Graph before = graph;
  graph = run_pipeline(std::move(graph), {}, 2e-5);
  EXPECT_EQ(operators(graph).find("Mul"), std::string::npos) << operators(graph);
}

}  // namespace
}  // namespace gcompile::testing
