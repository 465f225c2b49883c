// Folding of scales, shifts and paddings into weights: each law, and each reason not to.

#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

const char kConv[] = "float[1,4,6,5] x, float[6,4,3,3] w_w, float[6] w_b";

std::string conv_then(const std::string& constant, const std::string& tail,
                      const std::string& outputs = "float[1,6,6,5] y") {
  return "g (" + std::string(kConv) + ", " + constant + ") => (" + outputs +
         ") { t = Conv<pads = [1,1,1,1]>(x, w_w, w_b)\n" + tail + " }";
}

TEST(ScaleIntoConv, PerChannelScalarAndOneElement) {
  expect_fires("scale-into-conv", conv_then("float[6,1,1] w_c", "y = Mul(t, w_c)"), "Conv");
  expect_fires("scale-into-conv", conv_then("float[1,6,1,1] w_c", "y = Mul(w_c, t)"), "Conv");
  expect_fires("scale-into-conv", conv_then("float w_c", "y = Mul(t, w_c)"), "Conv");
  expect_fires("scale-into-conv", conv_then("float[1] w_c", "y = Mul(t, w_c)"), "Conv");
  expect_fires("divisor-into-conv", conv_then("float[6,1,1] w_c", "y = Div(t, w_c)"), "Conv");
}

TEST(ScaleIntoConv, GroupsAndNoBias) {
  expect_fires("scale-into-conv",
               "g (float[2,4,5] x, float[8,2,3] w_w, float[8,1] w_c) => (float[2,8,3] y) {"
               " t = Conv<group = 2>(x, w_w)\n y = Mul(t, w_c) }",
               "Conv");
}

TEST(ScaleIntoConv, TransposedWithGroups) {
  // W of ConvTranspose is (C, M / group, k): the output channel is not the first axis.
  expect_fires(
      "scale-into-conv",
      "g (float[1,4,5,5] x, float[4,3,3,2] w_w, float[6] w_b, float[6,1,1] w_c) => (float[1,6,11,10] y) {"
      " t = ConvTranspose<group = 2, strides = [2,2]>(x, w_w, w_b)\n y = Mul(t, w_c) }",
      "ConvTranspose");
}

TEST(ScaleIntoConv, RefusesOtherAxesLargerResultsAndInfinity) {
  expect_refuses("scale-into-conv", conv_then("float[5] w_c", "y = Mul(t, w_c)"), "one value per channel");
  expect_refuses("scale-into-conv", conv_then("float[1,6,6,5] w_c", "y = Mul(t, w_c)"),
                 "one value per channel");
  expect_refuses("scale-into-conv",
                 "g (float[1,4,3,3] x, float[1,4,3,3] w_w, float[7,1,1] w_c) => (float[1,7,1,1] y) {"
                 " t = Conv(x, w_w)\n y = Mul(t, w_c) }",
                 "one value per channel");
  expect_refuses("divisor-into-conv",
                 "g (float[1,1,4] x, float[1,1,2] w_w) => (float[1,1,3] y) <float c = {0.0}> {"
                 " t = Conv(x, w_w)\n y = Div(t, c) }",
                 "not be finite");
}

TEST(ScaleIntoConv, NeedsTheOnlyReaderAndConstants) {
  // t is also a graph output.
  expect_refuses("scale-into-conv",
                 conv_then("float[6,1,1] w_c", "y = Mul(t, w_c)", "float[1,6,6,5] y, float[1,6,6,5] t"), "");
  // t has another reader.
  expect_refuses("scale-into-conv", conv_then("float[6,1,1] w_c", "s = Mul(t, w_c)\n y = Add(s, t)"), "");
  // The scale is an input.
  expect_refuses("scale-into-conv", conv_then("float[6,1,1] c", "y = Mul(t, c)"), "");
  // The weights are an input.
  expect_refuses("scale-into-conv",
                 "g (float[1,1,4] x, float[1,1,2] weights, float w_c) => (float[1,1,3] y) {"
                 " t = Conv(x, weights)\n y = Mul(t, w_c) }",
                 "");
}

TEST(ScaleIntoConv, SharedWeightsStayForTheOtherReader) {
  expect_fires("scale-into-conv",
               "g (float[1,2,6] x, float[3,2,2] w_w, float[3,1] w_c) => (float[1,3,5] y, float[1,3,5] z) {"
               " t = Conv(x, w_w)\n y = Mul(t, w_c)\n z = Conv(x, w_w) }",
               "Conv Conv");
}

TEST(ShiftIntoConv, WithAndWithoutBias) {
  expect_fires("shift-into-conv", conv_then("float[6,1,1] w_c", "y = Add(w_c, t)"), "Conv");
  expect_fires("shift-into-conv",
               "g (float[1,2,6] x, float[3,2,2] w_w, float[3,1] w_c) => (float[1,3,5] y) {"
               " t = Conv(x, w_w)\n y = Add(t, w_c) }",
               "Conv");
  expect_refuses("shift-into-conv", conv_then("float[6,5] w_c", "y = Add(t, w_c)"), "one value per channel");
  expect_refuses("shift-into-conv",
                 "g (float[1,2,6] x, float[3,2,2] w_w, float[4,1,1,1] w_c) => (float[4,1,3,5] y) {"
                 " t = Conv(x, w_w)\n y = Add(t, w_c) }",
                 "enlarges");
}

TEST(BatchNormalization, DisappearsInTheConvolution) {
  const std::string text =
      "g (float[1,3,6,6] x, float[4,3,3,3] w_w, float[4] w_s, float[4] w_b, float[4] w_m)"
      " => (float[1,4,4,4] y) <float[4] v = {0.5, 1.0, 2.0, 0.25}> {"
      " t = Conv(x, w_w)\n n = BatchNormalization(t, w_s, w_b, w_m, v)\n y = Relu(n) }";
  ir::Graph graph = parse(text);
  prepare(graph);
  const ir::Graph before = graph;
  run_pass(graph, "rules");
  EXPECT_EQ(operators(graph), "Conv Relu");
  expect_same(before, graph, 2e-5);
  const ir::Node& conv = graph.node(graph.topological_order()[0]);
  EXPECT_EQ(conv.origins.size(), 2u) << "the convolution and the normalisation";
}

/// Names of the constants that the nodes read, in the order of the operands.
std::string constants_of(const std::string& text, const std::string& pass = "rules") {
  ir::Graph graph = parse(text);
  prepare(graph);
  run_pass(graph, pass);
  std::string out;
  for (const ir::NodeId id : graph.topological_order()) {
    for (const ir::ValueId operand : graph.node(id).operands) {
      if (operand.valid() && graph.constant(operand))
        out += (out.empty() ? "" : " ") + graph.value(operand).name;
    }
  }
  return out;
}

TEST(Provenance, ConstantsKeepTheNamesOfTheModel) {
  EXPECT_EQ(constants_of(conv_then("float[6,1,1] w_c", "y = Mul(t, w_c)")), "w_w w_b");
  EXPECT_EQ(constants_of("g (float[1,4,6] x, float[6,4,3] w_w, float[6,1] w_c) => (float[1,6,4] y) {"
                         " t = Conv(x, w_w)\n y = Add(t, w_c) }"),
            "w_w w_c");
  EXPECT_EQ(constants_of("g (float[1,4,6] x, float[4] w_scale, float[4] w_shift, float[4] w_mean) =>"
                         " (float[1,4,6] y) <float[4] variance = {1.0, 2.0, 3.0, 4.0}> {"
                         " y = BatchNormalization(x, w_scale, w_shift, w_mean, variance) }"),
            "w_scale w_shift");
  EXPECT_EQ(constants_of("g (float[2,3] x, float[3,4] w_w, float[4] w_c) => (float[2,4] y) {"
                         " t = MatMul(x, w_w)\n y = Div(t, w_c) }"),
            "w_w");
  EXPECT_EQ(constants_of("g (float[3] x, float[3] w_c) => (float[3] y) { y = Sub(x, w_c) }"), "w_c");
  EXPECT_EQ(constants_of("g (float[3] x, float w_a, float[3] w_b) => (float[3] y) {"
                         " t = Mul(x, w_a)\n y = Mul(t, w_b) }"),
            "w_b");
}

TEST(Provenance, FoldedNodesKeepTheNameOfTheResultOrOfTheLargestOperand) {
  EXPECT_EQ(constants_of("g (float[2,3] x, float[4,3] w_w) => (float[2,4] y) {"
                         " t = Transpose<perm = [1,0]>(w_w)\n y = MatMul(x, t) }",
                         "fold-again"),
            "t");
  EXPECT_EQ(constants_of("g (float[2,3] x, float[4,3] w_w, float[4] w_b) => (float[2,4] y) {"
                         " y = Gemm<transB = 1>(x, w_w, w_b) }",
                         "fold-again"),
            "w_w w_b");
}

TEST(ScaleBeforeConv, PaddedGroupedAndTransposed) {
  expect_fires(
      "scale-before-conv",
      "g (float[1,4,6,5] x, float[6,2,3,3] w_w, float[6] b, float[4,1,1] w_c) => (float[1,6,6,5] y) {"
      " t = Mul(x, w_c)\n y = Conv<pads = [1,1,1,1], group = 2>(t, w_w, b) }",
      "Conv");
  expect_fires("scale-before-conv",
               "g (float[1,4,5] x, float[4,2,3] w_w, float[4,1] w_c) => (float[1,4,7] y) {"
               " t = Mul(x, w_c)\n y = ConvTranspose<group = 2>(t, w_w) }",
               "ConvTranspose");
  expect_fires("divisor-before-conv",
               "g (float[1,2,5] x, float[3,2,3] w_w, float w_c) => (float[1,3,3] y) {"
               " t = Div(x, w_c)\n y = Conv(t, w_w) }",
               "Conv");
}

TEST(ScaleBeforeConv, RefusesPixelwiseAndEnlargingFactors) {
  expect_refuses("scale-before-conv",
                 "g (float[1,2,5] x, float[3,2,3] w_w, float[5] w_c) => (float[1,3,3] y) {"
                 " t = Mul(x, w_c)\n y = Conv(t, w_w) }",
                 "one value per channel");
  expect_refuses("scale-before-conv",
                 "g (float[1,1,5] x, float[3,2,3] w_w, float[2,1] w_c) => (float[1,3,3] y) {"
                 " t = Mul(x, w_c)\n y = Conv(t, w_w) }",
                 "one value per channel");
}

TEST(ShiftBeforeConv, OnlyWithoutPadding) {
  expect_fires("shift-before-conv",
               "g (float[1,4,6] x, float[6,2,3] w_w, float[6] w_b, float[4,1] w_c) => (float[1,6,4] y) {"
               " t = Add(x, w_c)\n y = Conv<group = 2>(t, w_w, w_b) }",
               "Conv");
  expect_refuses("shift-before-conv",
                 "g (float[1,4,6] x, float[6,4,3] w_w, float[4,1] w_c) => (float[1,6,6] y) {"
                 " t = Add(x, w_c)\n y = Conv<pads = [1,1]>(t, w_w) }",
                 "pads with zeros");
}

TEST(ScaleIntoMatMul, ColumnsRowsAndBias) {
  expect_fires("scale-into-matmul",
               "g (float[2,3,4] x, float[4,5] w_w, float[5] w_c) => (float[2,3,5] y) {"
               " t = MatMul(x, w_w)\n y = Mul(t, w_c) }",
               "MatMul");
  expect_fires("divisor-into-matmul",
               "g (float[2,3,4] x, float[4,5] w_w, float w_c) => (float[2,3,5] y) {"
               " t = MatMul(x, w_w)\n y = Div(t, w_c) }",
               "MatMul");
  expect_fires("scale-into-biased-matmul",
               "g (float[3,4] x, float[4,5] w_w, float[5] w_b, float[1,5] w_c) => (float[3,5] y) {"
               " t = Gemm(x, w_w, w_b)\n y = Mul(t, w_c) }",
               "MatMul Add");
  expect_fires("divisor-into-biased-matmul",
               "g (float[3,4] x, float[4,5] w_w, float[5] w_b, float[1,5] w_c) => (float[3,5] y) {"
               " t = Gemm(x, w_w, w_b)\n y = Div(t, w_c) }",
               "MatMul Add");
  expect_fires("scale-before-matmul",
               "g (float[3,4] x, float[2,4,5] w_w, float[4] w_c) => (float[2,3,5] y) {"
               " t = Mul(x, w_c)\n y = MatMul(t, w_w) }",
               "MatMul");
  expect_fires("divisor-before-matmul",
               "g (float[3,4] x, float[4,5] w_w, float w_c) => (float[3,5] y) {"
               " t = Div(x, w_c)\n y = MatMul(t, w_w) }",
               "MatMul");
}

TEST(ScaleIntoMatMul, RefusesRowwiseFactorsAndIntegers) {
  expect_refuses("scale-into-matmul",
                 "g (float[3,4] x, float[4,5] w_w, float[3,1] w_c) => (float[3,5] y) {"
                 " t = MatMul(x, w_w)\n y = Mul(t, w_c) }",
                 "one value per column");
  expect_refuses("scale-before-matmul",
                 "g (float[3,4] x, float[4,5] w_w, float[3,1] w_c) => (float[3,5] y) {"
                 " t = Mul(x, w_c)\n y = MatMul(t, w_w) }",
                 "one value per row");
  expect_refuses("scale-into-matmul",
                 "g (int32[3,4] x, int32[4,5] w_w, int32 w_c) => (int32[3,5] y) {"
                 " t = MatMul(x, w_w)\n y = Mul(t, w_c) }",
                 "integers");
}

TEST(PadIntoConv, JoinsThePads) {
  expect_fires("pad-into-conv",
               "g (float[1,2,4,4] x, float[3,2,3,3] w_w) => (float[1,3,7,6] y)"
               " <int64[8] pads = {0,0,1,2,0,0,2,0}, float zero = {0.0}> {"
               " t = Pad(x, pads, zero)\n y = Conv<pads = [1,1,1,1]>(t, w_w) }",
               "Conv");
  // Negative axes as operand.
  expect_fires("pad-into-conv",
               "g (float[1,2,4] x, float[3,2,3] w_w) => (float[1,3,5] y)"
               " <int64[2] pads = {1,2}, int64[1] axes = {-1}> {"
               " t = Pad(x, pads, , axes)\n y = Conv(t, w_w) }",
               "Conv");
}

TEST(PadIntoConv, RefusesOtherFillsModesAxesAndCrops) {
  const auto text = [](const std::string& pads, const std::string& fill, const std::string& mode,
                       const std::string& shape) {
    return "g (float[1,2,4] x, float[3," + shape + ",2] w_w) => (float[1,3,N] y) <int64[6] pads = {" + pads +
           "}, float fill = {" + fill + "}> { t = Pad<mode = \"" + mode +
           "\">(x, pads, fill)\n y = Conv(t, w_w) }";
  };
  expect_refuses("pad-into-conv", text("0,0,1,0,0,1", "1.0", "constant", "2"), "other than 0");
  expect_refuses("pad-into-conv", text("0,0,1,0,0,1", "0.0", "reflect", "2"),
                 "does not fill with a constant");
  expect_refuses("pad-into-conv", text("0,1,0,0,0,0", "0.0", "constant", "3"), "spatial axes");
  expect_refuses("pad-into-conv", text("0,0,-1,0,0,1", "0.0", "constant", "2"), "removes elements");
}

TEST(PadIntoAveragePool, CountsThePadding) {
  expect_fires("pad-into-average-pool",
               "g (float[1,2,4,4] x) => (float[1,2,3,3] y) <int64[8] pads = {0,0,1,1,0,0,1,1}> {"
               " t = Pad(x, pads)\n y = AveragePool<kernel_shape = [2,2], strides = [2,2]>(t) }",
               "AveragePool");
  expect_refuses("pad-into-average-pool",
                 "g (float[1,2,4,4] x) => (float[1,2,7,7] y) <int64[8] pads = {0,0,1,1,0,0,1,1}> {"
                 " t = Pad(x, pads)\n y = AveragePool<kernel_shape = [2,2], pads = [1,1,1,1]>(t) }",
                 "does not count its own padding");
}

}  // namespace
}  // namespace gcompile::testing
