// Channels that are one number in every run: which go, which stay, and that no element changes.

#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

/// Three channels of bytes with zero point -4: the biases make the second one -128 and the third one 127 in every
/// run. What `tail` makes of "q" is "y".
std::string network(const std::string& result, const std::string& tail, const std::string& middle = "") {
  return "g (int8[1,2,5,6] x) => (" + result +
         " y) <int8 zx = {3}, int8 zy = {-4}, int8[3,2,1,1] a = {7, -9, 5, 3, -2, 8}, float one = {1},"
         " float[3] s = {0.013, 0.25, 0.125}, int32[3,1,1] b = {100, -9000, 9000},"
         " int8[2,3,1,1] c = {3, -5, 7, 2, 11, -6}, int8[2,3,3,3] d = {"
         "1, 2, 3, 4, 5, 6, 7, 8, 9, -9, 8, -7, 6, 5, 4, 3, 2, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4,"
         "5, 4, 3, 2, 1, 0, -1, -2, -3, 1, 3, 5, 7, 9, 8, 6, 4, 2, -1, -1, -1, 2, 2, 2, 3, 3, 3},"
         " int8[3,1,3,3] e = {1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1, 1, 1, 2, 2, 2, 3, 3, "
         "3},"
         " int8 low = {-128}, int8[2,3,1,1] zeros = {3, 0, 7, 2, 0, -6}, int8[3,2] h = {1, 2, 3, 4, 5, 6}" +
         middle +
         "> { i = ConvInteger(x, a, zx)\n j = Add(i, b)\n f = DequantizeLinear<axis = 1>(j, s)\n"
         " q = QuantizeLinear(f, one, zy)\n " +
         tail + " }";
}

/// The graph behind the pass, of which no element differs from those before it.
ir::Graph folded(const std::string& text) {
  ir::Graph graph = parse(text);
  const ir::Graph before = graph;
  run_pass(graph, "constant-channels");
  for (std::uint64_t seed = 1; seed < 9; ++seed) {
    std::vector<ir::Tensor> inputs = random_inputs(before, false, seed);
    // The first two are the ends of the range.
    const double end = seed == 1 ? -128 : 127;
    const ir::TensorType type = inputs[0].type();
    if (seed < 3) inputs[0] = ir::Tensor::filled(type, ir::Scalar::of_real(ir::ElementType::kInt8, end));
    expect_equal(ir::evaluate_graph(graph, inputs)[0], ir::evaluate_graph(before, inputs)[0], 0);
  }
  for (const ir::Violation& violation : ir::verify(graph)) ADD_FAILURE() << ir::to_string(violation);
  return graph;
}

/// Shapes of the weights of all contractions, in topological order.
std::string weights(const ir::Graph& graph) {
  std::string out;
  for (const ir::NodeId id : graph.topological_order()) {
    const ir::Node& node = graph.node(id);
    const bool contracts = graph.value(node.results[0]).type.element == ir::ElementType::kInt32 &&
                           node.operands.size() > 1 && graph.constant(node.operands[1]) &&
                           graph.constant(node.operands[1])->element() == ir::ElementType::kInt8;
    if (contracts) out += (out.empty() ? "" : " ") + ir::to_string(graph.constant(node.operands[1])->shape());
  }
  return out;
}

TEST(ConstantChannels, LeaveTheirShareInTheSums) {
  const ir::Graph graph = folded(network("int32[1,2,5,6]", "y = ConvInteger(q, c, zy)"));
  EXPECT_EQ(weights(graph), "[1, 2, 1, 1] [2, 1, 1, 1]");
  EXPECT_EQ(operators(graph), "ConvInteger Add DequantizeLinear QuantizeLinear ConvInteger Add");
}

TEST(ConstantChannels, OfOtherWeightsWithZeroPoints) {
  const std::string more = ", int8[3] za = {1, 2, 3}, int8[2] zc = {-1, 4}";
  EXPECT_EQ(weights(folded(
                "g (int8[1,2,5,6] x) => (int32[1,2,5,6] y) <int8 zx = {3}, int8 zy = {-4}, float one = {1},"
                " int8[3,2,1,1] a = {7, -9, 5, 3, -2, 8}, float[3] s = {0.013, 0.25, 0.125},"
                " int32[3,1,1] b = {100, -9000, 9000}, int8[2,3,1,1] c = {3, -5, 7, 2, 11, -6}" +
                more +
                "> { i = ConvInteger(x, a, zx, za)\n j = Add(i, b)\n f = DequantizeLinear<axis = 1>(j, s)\n"
                " q = QuantizeLinear(f, one, zy)\n y = ConvInteger(q, c, zy, zc) }")),
            "[1, 2, 1, 1] [2, 1, 1, 1]");
}

TEST(ConstantChannels, BesidePaddingHaveToBeTheZeroPoint) {
  const std::string padded = "y = ConvInteger<pads = [1,1,1,1]>(q, d, ";
  // Beside zero point -128 the second channel is nothing, at the borders too.
  EXPECT_EQ(weights(folded(network("int32[1,2,5,6]", padded + "low)"))), "[2, 2, 1, 1] [2, 2, 3, 3]");
  EXPECT_EQ(weights(folded(network("int32[1,2,5,6]", padded + "zy)"))), "[3, 2, 1, 1] [2, 3, 3, 3]");
  EXPECT_EQ(weights(folded(network("int32[1,2,3,4]", "y = ConvInteger(q, d, zy)"))),
            "[1, 2, 1, 1] [2, 1, 3, 3]");
}

TEST(ConstantChannels, GoThroughDepthwiseConvolutions) {
  const std::string depthwise = "k = ConvInteger<group = 3, pads = [1,1,1,1]>(q, e, ";
  const std::string tail =
      ")\n l = DequantizeLinear(k, one)\n m = QuantizeLinear(l, one, zy)\n y = ConvInteger(m, c, zy)";
  // The second channel is the zero point, so that it is one number behind them; of the third one the border takes
  // other sums.
  EXPECT_EQ(weights(folded(network("int32[1,2,5,6]", depthwise + "low" + tail))),
            "[2, 2, 1, 1] [2, 1, 3, 3] [2, 2, 1, 1]");
}

TEST(ConstantChannels, BecomeOtherNumbersAtTheBorders) {
  const std::string tail =
      " = ConvInteger<group = 3, pads = [1,1,1,1]>(q, e, zy)\n l = DequantizeLinear(k, tiny)\n"
      " m = QuantizeLinear(l, one, zy)\n y = ConvInteger(m, c, zy)";
  EXPECT_EQ(weights(folded(network("int32[1,2,5,6]", "k" + tail, ", float tiny = {0.001}"))),
            "[3, 2, 1, 1] [3, 1, 3, 3] [2, 3, 1, 1]");
}

TEST(ConstantChannels, ReachTheHead) {
  const std::string tail =
      "t = Cast<to = 6>(q)\n u = ReduceSum(t, axes)\n v = DequantizeLinear(u, tiny)\n w = QuantizeLinear(v, "
      "one, zy)\n"
      " r = Reshape(w, shape)\n y = MatMulInteger(r, h, zy)";
  const std::string more = ", float tiny = {0.03}, int64[2] axes = {2, 3}, int64[2] shape = {-1, 3}";
  EXPECT_EQ(weights(folded(network("int32[1,2]", tail, more))), "[1, 2, 1, 1] [1, 2]");
}

TEST(ConstantChannels, StayWhereSomebodyElseReadsThem) {
  const std::string all = "[3, 2, 1, 1]";
  EXPECT_EQ(weights(folded(network("int8[1,3,5,6]", "y = Identity(q)"))), all);
  EXPECT_EQ(weights(folded(network("int8[1,3,6,5]", "y = Transpose<perm = [0,1,3,2]>(q)"))), all);
  EXPECT_EQ(weights(folded(network("int8[1,90]", "y = Flatten(q)"))), all);
  EXPECT_EQ(
      weights(folded(network("int32[1,2,5,6]", "t = Slice(q, from, to, axes)\n y = ConvInteger(t, n, zy)",
                             ", int64[1] from = {1}, int64[1] to = {3}, int64[1] axes = {1},"
                             " int8[2,2,1,1] n = {1, 2, 3, 4}"))),
      all + " [2, 2, 1, 1]");
}

TEST(ChannelsThatNobodyReads, Go) {
  // Its weights are the zero point of all.
  EXPECT_EQ(
      weights(folded(
          "g (int8[1,2,5,6] x) => (int32[1,2,5,6] y) <int8 zx = {3}, int8[3,2,1,1] a = {7, -9, 5, 3, -2, "
          "8}, float s = {0.013}, float one = {1}, int8 zy = {-4}, int8 zn = {5},"
          " int8[2,3,1,1] n = {3, 5, 7, 2, 5, -6}> { i = ConvInteger(x, a, zx)\n"
          " f = DequantizeLinear(i, s)\n q = QuantizeLinear(f, one, zy)\n"
          " y = ConvInteger(q, n, zy, zn) }")),
      "[2, 2, 1, 1] [2, 2, 1, 1]");
}

TEST(ConstantChannels, LeaveOneWhereAllAreConstant) {
  EXPECT_EQ(weights(folded(network("int32[1,2,5,6]",
                                   "p = DequantizeLinear(q, one, zy)\n o = Clip(p, one, one)\n"
                                   " m = QuantizeLinear(o, one, zy)\n y = ConvInteger(m, c, zy)"))),
            "[1, 2, 1, 1] [2, 1, 1, 1]");
}

}  // namespace
}  // namespace gcompile::testing
