// Quantised models as integer networks: each law, each reason not to, and what comes out of whole layers.

#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

const char kParameters[] =
    "float sx = {0.5}, float sw = {0.25}, float sb = {0.125}, float sy = {0.7}, int8 zx = {3}, int8 zy = "
    "{-4},"
    " uint8 ux = {2}, float[6] swn = {0.5, 0.25, 0.125, 0.5, 0.75, 1.0},"
    " float[6] sbn = {0.25, 0.125, 0.0625, 0.25, 0.375, 0.5}, int8 low = {-128}";

std::string graph(const std::string& inputs, const std::string& outputs, const std::string& nodes,
                  const std::string& more = "") {
  return "g (" + inputs + ") => (" + outputs + ") <" + kParameters + more + "> { " + nodes + " }";
}

const char kConvInputs[] = "int8[1,4,6,5] x, int8[6,4,3,3] w_w, int32[6] w_b, float[6] w_f";

std::string conv(const std::string& weights, const std::string& tail) {
  return graph(kConvInputs, "float[1,6,6,5] y",
               "dx = DequantizeLinear(x, sx, zx)\n dw = DequantizeLinear" + weights + "\n" + tail);
}

TEST(ConvOfIntegers, OneScaleAndOnePerChannel) {
  const std::string tail = "y = Conv<pads = [1,1,1,1]>(dx, dw)";
  expect_fires("conv-of-integers", conv("(w_w, sw)", tail), "ConvInteger DequantizeLinear");
  expect_fires("conv-of-integers", conv("(w_w, sw, zx)", tail), "ConvInteger DequantizeLinear");
  expect_fires("conv-of-integers", conv("<axis = 0>(w_w, swn)", tail), "ConvInteger DequantizeLinear");
}

TEST(ConvOfIntegers, BiasOfTheScaleOfTheSumsIsAddedInIntegers) {
  expect_fires("conv-of-integers",
               conv("(w_w, sw)", "db = DequantizeLinear(w_b, sb)\n y = Conv<pads = [1,1,1,1]>(dx, dw, db)"),
               "DequantizeLinear ConvInteger Add DequantizeLinear");
  expect_fires("conv-of-integers",
               conv("<axis = 0>(w_w, swn)",
                    "db = DequantizeLinear<axis = 0>(w_b, sbn)\n y = Conv<pads = [1,1,1,1]>(dx, dw, db)"),
               "DequantizeLinear ConvInteger Add DequantizeLinear");
}

TEST(ConvOfIntegers, AnyOtherBiasIsAddedInFloats) {
  expect_fires("conv-of-integers", conv("(w_w, sw)", "y = Conv<pads = [1,1,1,1]>(dx, dw, w_f)"),
               "ConvInteger Reshape DequantizeLinear Add");
  expect_fires("conv-of-integers",
               conv("(w_w, sw)", "db = DequantizeLinear(w_b, sy)\n y = Conv<pads = [1,1,1,1]>(dx, dw, db)"),
               "DequantizeLinear ConvInteger Reshape DequantizeLinear Add");
}

TEST(ConvOfIntegers, DepthwiseAndFlat) {
  expect_fires("conv-of-integers",
               graph("uint8[2,6,5] x, int8[6,1,3] w_w", "float[2,6,3] y",
                     "dx = DequantizeLinear(x, sx, ux)\n dw = DequantizeLinear<axis = 0>(w_w, swn)\n"
                     " y = Conv<group = 6>(dx, dw)"),
               "ConvInteger DequantizeLinear");
}

TEST(ConvOfIntegers, Refuses) {
  const std::string tail = "y = Conv<pads = [1,1,1,1]>(dx, dw)";
  expect_refuses("conv-of-integers",
                 graph("int8[1,4,6,5] x, int8[6,4,3,3] w", "float[1,6,4,3] y",
                       "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear(w, sw)\n y = Conv(dx, dw)"),
                 "computed");
  expect_refuses("conv-of-integers",
                 graph("int8[1,4,6,5] x, int8[6,4,3,3] w_w, float s", "float[1,6,4,3] y",
                       "dx = DequantizeLinear(x, s)\n dw = DequantizeLinear(w_w, sw)\n y = Conv(dx, dw)"),
                 "scale or zero point is computed");
  expect_refuses("conv-of-integers",
                 graph("int32[1,4,6,5] x, int8[6,4,3,3] w_w", "float[1,6,4,3] y",
                       "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear(w_w, sw)\n y = Conv(dx, dw)"),
                 "8 or 16 bits");
  expect_refuses("conv-of-integers",
                 graph("int8[1,6,6,5] x, int8[6,6,3,3] w_w", "float[1,6,4,3] y",
                       "dx = DequantizeLinear<axis = 1>(x, swn)\n dw = DequantizeLinear(w_w, sw)\n"
                       " y = Conv(dx, dw)"),
                 "several scales");
  expect_refuses("conv-of-integers",
                 graph("int8[1,6,6,5] x, int8[2,6,3,3] w_w", "float[1,2,4,3] y",
                       "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear<axis = 1>(w_w, swn)\n"
                       " y = Conv(dx, dw)"),
                 "another axis");
  expect_refuses("conv-of-integers",
                 graph("uint8[1,20000,1,1] x, uint8[1,20000,1,1] w_w", "float[1,1,1,1] y",
                       "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear(w_w, sw)\n y = Conv(dx, dw)"),
                 "int32");
  expect_refuses("conv-of-integers",
                 graph("int8[1,1,6,5] x, int8[6,1,3,3] w_w", "float[1,6,4,3] y",
                       "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear(w_w, sw)\n y = Conv(dx, dw)"),
                 "single input channel");
  // The weights are floats.
  expect_refuses("conv-of-integers",
                 graph("int8[1,4,6,5] x, float[6,4,3,3] w_w", "float[1,6,4,3] y",
                       "dx = DequantizeLinear(x, sx)\n y = Conv(dx, w_w)"),
                 "");
}

std::string transposed(const std::string& weights, const std::string& tail) {
  return graph("int8[1,4,5,3] x, int8[4,6,2,3] w_w, int8[4,6,2,3] w, int32[6] w_b, float[6] w_f",
               "float[1,6,9,7] y",
               "dx = DequantizeLinear(x, sx, zx)\n dw = DequantizeLinear" + weights + "\n" + tail);
}

TEST(ConvTransposeOfIntegers, OneScaleAndOnePerChannelWithAndWithoutABias) {
  const std::string attributes = "<strides = [2,2], pads = [1,0,0,0]>";
  const std::string tail = "y = ConvTranspose" + attributes + "(dx, dw)";
  const std::string fired = "ConvTransposeInteger DequantizeLinear";
  expect_fires("conv-transpose-of-integers", transposed("(w_w, sw)", tail), fired);
  expect_fires("conv-transpose-of-integers", transposed("(w_w, sw, zx)", tail), fired);
  expect_fires("conv-transpose-of-integers", transposed("<axis = 1>(w_w, swn)", tail), fired);
  expect_fires(
      "conv-transpose-of-integers",
      transposed("<axis = 1>(w_w, swn)", "db = DequantizeLinear<axis = 0>(w_b, sbn)\n y = ConvTranspose" +
                                             attributes + "(dx, dw, db)"),
      "DequantizeLinear ConvTransposeInteger Add DequantizeLinear");
  expect_fires("conv-transpose-of-integers",
               transposed("(w_w, sw)", "y = ConvTranspose" + attributes + "(dx, dw, w_f)"),
               "ConvTransposeInteger Reshape DequantizeLinear Add");
  expect_fires("conv-transpose-of-integers",
               graph("uint8[2,4,3] x, int8[4,3,2] w_w", "float[2,6,6] y",
                     "dx = DequantizeLinear(x, sx, ux)\n dw = DequantizeLinear(w_w, sw, zx)\n"
                     " y = ConvTranspose<strides = [2], group = 2>(dx, dw)"),
               fired);
}

TEST(ConvTransposeOfIntegers, Refuses) {
  const std::string tail = "y = ConvTranspose<strides = [2,2], pads = [1,0,0,0]>(dx, dw)";
  expect_refuses("conv-transpose-of-integers", transposed("(w, sw)", tail), "computed");
  expect_refuses("conv-transpose-of-integers",
                 graph("int8[1,6,5] x, int8[6,4,3] w_w", "float[1,4,7] y",
                       "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear<axis = 0>(w_w, swn)\n"
                       " y = ConvTranspose(dx, dw)"),
                 "another axis");
  expect_refuses("conv-transpose-of-integers",
                 graph("int8[1,4,5] x, int8[4,6,3] w_w", "float[1,12,7] y",
                       "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear<axis = 1>(w_w, swn)\n"
                       " y = ConvTranspose<group = 2>(dx, dw)"),
                 "several groups");
}

TEST(MatMulOfIntegers, ColumnsWithScalesOfTheirOwnAndABias) {
  const std::string nodes =
      "dx = DequantizeLinear(x, sx, zx)\n dw = DequantizeLinear<axis = 1>(w_w, swn)\n"
      " db = DequantizeLinear<axis = 0>(w_b, sbn)\n t = MatMul(dx, dw)\n y = Add(db, t)";
  const std::string text = graph("int8[2,3,4] x, int8[4,6] w_w, int32[6] w_b", "float[2,3,6] y", nodes);
  expect_fires("matmul-of-integers", text, "DequantizeLinear MatMulInteger DequantizeLinear Add");
  ir::Graph model = parse(text);
  prepare(model);
  apply_rule(model, "matmul-of-integers");
  const ir::Graph before = model;
  EXPECT_EQ(apply_rule(model, "bias-of-integers").rule_counts["bias-of-integers"], 1);
  EXPECT_EQ(operators(model), "MatMulInteger Add DequantizeLinear");
  expect_same(before, model, 1e-6);
}

TEST(MatMulOfIntegers, Refuses) {
  const std::string nodes =
      "dx = DequantizeLinear(x, sx, zx)\n dw = DequantizeLinear<axis = 0>(w_w, swn)\n"
      " y = MatMul(dx, dw)";
  expect_refuses("matmul-of-integers", graph("int8[3,6] x, int8[6,4] w_w", "float[3,4] y", nodes),
                 "another axis");
  expect_refuses("matmul-of-integers",
                 graph("int8[3,4] x, int8[4,6] w", "float[3,6] y",
                       "dx = DequantizeLinear(x, sx)\n dw = DequantizeLinear<axis = 1>(w, swn)\n"
                       " y = MatMul(dx, dw)"),
                 "several scales");
}

/// Prices of products of integers and of floats.
struct Prices final : ir::KernelPrices {
  explicit Prices(std::int64_t of_integers) : integers(of_integers) {}
  ir::Price price(const ir::Problem& problem) const override {
    return {ir::is_float(problem.operands[0].element) ? 100 : integers, ""};
  }
  std::vector<ir::LayoutOffer> offers(const ir::Problem&) const override { return {}; }
  std::int64_t integers;
};

TEST(MatMulOfIntegers, OfComputedSidesWhereThatIsNoSlower) {
  const std::string nodes =
      "da = DequantizeLinear(a, sx, ux)\n db = DequantizeLinear(b, sw, zx)\n y = MatMul(da, db)";
  const std::string text = graph("uint8[2,1,3,5] a, int8[4,5,6] b", "float[2,4,3,6] y", nodes);
  expect_fires("matmul-of-integers", text, "MatMulInteger DequantizeLinear");
  for (const std::int64_t price : {100, 101}) {
    const Prices prices(price);
    passes::Options options;
    options.prices = &prices;
    ir::Graph model = parse(text);
    run_pass(model, "integers", options);
    EXPECT_EQ(operators(model),
              price == 100 ? "MatMulInteger DequantizeLinear" : "DequantizeLinear DequantizeLinear MatMul");
  }
}

TEST(BiasOfIntegers, RefusesOtherScales) {
  // Integers that are no sums of products may be any.
  expect_refuses("bias-of-integers",
                 graph("int32[2,6] x, int32[6] w_b", "float[2,6] y",
                       "dx = DequantizeLinear(x, sx)\n db = DequantizeLinear(w_b, sx)\n y = Add(dx, db)"),
                 "may not fit");
  expect_refuses("bias-of-integers",
                 graph("int32[2,6] x, int32[6] w_b", "float[2,6] y",
                       "dx = DequantizeLinear(x, sx)\n db = DequantizeLinear(w_b, sw)\n y = Add(dx, db)"),
                 "not a multiple");
}

TEST(Quantise, MeetsItsOwnDequantisation) {
  expect_fires(
      "quantize-of-dequantize",
      graph("int8[5] x", "int8[5] y", "t = DequantizeLinear(x, sy, zy)\n y = QuantizeLinear(t, sy, zy)"), "");
  expect_refuses(
      "quantize-of-dequantize",
      graph("int8[5] x", "int8[5] y", "t = DequantizeLinear(x, sx, zy)\n y = QuantizeLinear(t, sy, zy)"),
      "differ");
  expect_refuses(
      "quantize-of-dequantize",
      graph("uint8[5] x", "int8[5] y", "t = DequantizeLinear(x, sy)\n y = QuantizeLinear(t, sy, zy)"),
      "types");
}

TEST(Quantise, SaturatesWhereReluAndClipDo) {
  expect_fires("relu-into-saturation",
               graph("float[9] x", "int8[9] y", "t = Relu(x)\n y = QuantizeLinear(t, sy, low)"),
               "QuantizeLinear");
  expect_refuses("relu-into-saturation",
                 graph("float[9] x", "int8[9] y", "t = Relu(x)\n y = QuantizeLinear(t, sy, zy)"), "remain");
  const std::string six = ", float nought = {0.0}, float six = {6.0}, float fine = {0.05}, float no = {0.02}";
  const auto clip = [&](const std::string& scale) {
    return graph("float[9] x", "uint8[9] y",
                 "t = Clip(x, nought, six)\n y = QuantizeLinear(t, " + scale + ")", six);
  };
  expect_fires("clip-into-saturation", clip("no"), "QuantizeLinear");
  expect_refuses("clip-into-saturation", clip("fine"), "remain");
}

TEST(Movement, PassesDequantisation) {
  expect_fires("dequantize-after-movement",
               graph("int8[2,3,4] x", "float[4,3,2] y",
                     "t = DequantizeLinear(x, sx, zx)\n y = Transpose<perm = [2,1,0]>(t)"),
               "Transpose DequantizeLinear");
  expect_fires("dequantize-after-movement",
               graph("int8[2,6,4] x", "float[6,4,2] y",
                     "t = DequantizeLinear<axis = 1>(x, swn)\n y = Transpose<perm = [1,2,0]>(t)"),
               "Transpose DequantizeLinear");
  expect_fires("dequantize-after-movement",
               graph("uint8[1,2,6,6] x", "float[1,2,3,3] y",
                     "t = DequantizeLinear(x, sx, ux)\n"
                     " y = MaxPool<kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>(t)"),
               "MaxPool DequantizeLinear");
  expect_refuses(
      "dequantize-after-movement",
      graph("int8[2,6] x", "float[12] y", "t = DequantizeLinear<axis = 1>(x, swn)\n y = Reshape(t, shape)",
            ", int64[1] shape = {12}"),
      "several");
}

TEST(Movement, OfPaddingAndOfNearestNeighbours) {
  const std::string pads =
      ", int64[2] pads = {1, 2}, float nought = {0.0}, float half = {0.5}, float odd = {0.3}";
  const auto padded = [&](const std::string& value) {
    return graph("int8[5] x", "float[8] y", "t = DequantizeLinear(x, sx, zx)\n y = Pad(t, pads" + value + ")",
                 pads);
  };
  for (const char* value : {"", ", nought", ", half"}) {
    expect_fires("dequantize-after-movement", padded(value), "Pad DequantizeLinear");
  }
  expect_refuses("dequantize-after-movement", padded(", odd"), "no multiple");
  expect_fires(
      "quantize-before-movement",
      graph("float[5] x", "int8[8] y", "t = Pad(x, pads, odd)\n y = QuantizeLinear(t, sy, zy)", pads),
      "QuantizeLinear Pad");
  expect_refuses("dequantize-after-movement",
                 graph("int8[1,4,4,4] x, int8[6,4,3,3] w_w", "float[1,6,4,4] y",
                       "t = DequantizeLinear(x, sx, zx)\n p = Pad(t, all)\n dw = DequantizeLinear(w_w, sw)\n"
                       " y = Conv(p, dw)",
                       ", int64[8] all = {0, 0, 1, 1, 0, 0, 1, 1}"),
                 "takes the padding");
}

TEST(Movement, PassesQuantisation) {
  expect_fires("quantize-before-movement",
               graph("float[2,3,4] x", "int8[4,3,2] y",
                     "t = Transpose<perm = [2,1,0]>(x)\n y = QuantizeLinear(t, sy, zy)"),
               "QuantizeLinear Transpose");
  expect_refuses(
      "quantize-before-movement",
      graph("float[2,3,4] x", "int8[2,3,2] y", "t = Slice(x, from, to, axes)\n y = QuantizeLinear(t, sy, zy)",
            ", int64[1] from = {1}, int64[1] to = {3}, int64[1] axes = {2}"),
      "more elements");
}

TEST(Concat, IsJoinedInIntegers) {
  const char inputs[] = "int8[2,3] a, int8[2,2] b";
  expect_fires("dequantize-after-concat",
               graph(inputs, "float[2,5] y",
                     "s = DequantizeLinear(a, sx, zx)\n t = DequantizeLinear(b, sx, zx)\n"
                     " y = Concat<axis = 1>(s, t)"),
               "DequantizeLinear DequantizeLinear Concat DequantizeLinear");
  expect_refuses("dequantize-after-concat",
                 graph(inputs, "float[2,5] y",
                       "s = DequantizeLinear(a, sx, zx)\n t = DequantizeLinear(b, sx, zy)\n"
                       " y = Concat<axis = 1>(s, t)"),
                 "other");
  expect_fires("quantize-before-concat",
               graph("float[2,3] a, float[2,2] b", "int8[2,5] y",
                     "t = Concat<axis = 1>(a, b)\n y = QuantizeLinear(t, sy, zy)"),
               "QuantizeLinear QuantizeLinear Concat");
}

/// The pass before and after on random inputs; integers may differ by one step in a tie. What `u` was is
/// divided, and goes by its name no more.
void expect_scale_moves(const std::string& text, bool moves) {
  SCOPED_TRACE(text);
  ir::Graph after = parse(text);
  prepare(after);
  const ir::Graph before = after;
  run_pass(after, "scales");
  bool divides = false;
  for (const ir::NodeId id : after.nodes()) {
    for (const ir::ValueId result : after.node(id).results) {
      EXPECT_FALSE(moves && after.value(result).name == "u");
    }
    if (!passes::is_operator(after.node(id), "QuantizeLinear")) continue;
    divides |= after.constant(after.node(id).operands[1])->real_at(0) != 1;
  }
  EXPECT_NE(divides, moves);
  expect_same(before, after, moves ? 1e-6 : 0);
}

TEST(Scales, GoIntoSumsMeansAndConstants) {
  const char inputs[] = "int8[2,6] a, int8[2,6] b, float[6] w_c";
  const std::string both = "s = DequantizeLinear(a, sx, zx)\n t = DequantizeLinear<axis = 1>(b, swn)\n";
  expect_scale_moves(
      graph(inputs, "int8[2,6] y", both + "u = Add(s, t)\n v = Relu(u)\n y = QuantizeLinear(v, sy, zy)"),
      true);
  expect_scale_moves(graph(inputs, "int8[2,6] y", both + "u = Mul(s, t)\n y = QuantizeLinear(u, sy, zy)"),
                     true);
  expect_scale_moves(graph(inputs, "int8[2,6] y", both + "u = Sub(w_c, t)\n y = QuantizeLinear(u, sy, zy)"),
                     true);
  expect_scale_moves(
      graph(inputs, "int8[2,1] y", both + "u = ReduceMean(s, axes)\n y = QuantizeLinear(u, sy, zy)",
            ", int64[1] axes = {1}"),
      true);
}

TEST(Scales, StayBehindOtherFunctionsOtherReadersAndFloats) {
  const char inputs[] = "int8[2,6] a, float[2,6] x";
  const std::string start = "s = DequantizeLinear(a, sx, zx)\n ";
  expect_scale_moves(graph(inputs, "int8[2,6] y", start + "u = Sigmoid(s)\n y = QuantizeLinear(u, sy, zy)"),
                     false);
  expect_scale_moves(graph(inputs, "int8[2,6] y", start + "u = Add(s, x)\n y = QuantizeLinear(u, sy, zy)"),
                     false);
  expect_scale_moves(
      graph(inputs, "int8[2,6] y, float[2,6] u", start + "u = Relu(s)\n y = QuantizeLinear(u, sy, zy)"),
      false);
}

TEST(Pipeline, MakesIntegersOfAWholeBlockAndHeedsTheTier) {
  const std::string text = graph(
      "uint8[1,4,6,6] x, int8[6,4,3,3] w_w, int32[6] w_b, int8[5,6] w_v", "float[1,5] y",
      "dx = DequantizeLinear(x, sx, ux)\n dw = DequantizeLinear<axis = 0>(w_w, swn)\n"
      " db = DequantizeLinear<axis = 0>(w_b, sbn)\n t = Conv(dx, dw, db)\n u = Relu(t)\n"
      " q = QuantizeLinear(u, sy, low)\n dq = DequantizeLinear(q, sy, low)\n m = GlobalAveragePool(dq)\n"
      " r = QuantizeLinear(m, sx, zx)\n dr = DequantizeLinear(r, sx, zx)\n f = Flatten(dr)\n"
      " dv = DequantizeLinear(w_v, sw)\n y = Gemm<transB = 1>(f, dv)");
  ir::Graph graph = parse(text);
  const ir::Graph before = graph;
  prepare_integers(graph);
  EXPECT_EQ(
      operators(graph),
      "ConvInteger Add DequantizeLinear QuantizeLinear Cast ReduceSum Add DequantizeLinear QuantizeLinear "
      "Reshape MatMulInteger DequantizeLinear");
  expect_same(before, graph, 1e-5);
  passes::Options exact;
  exact.tier = passes::Tier::kExact;
  ir::Graph floats = parse(text);
  passes::optimise(floats, exact);
  for (const ir::NodeId id : floats.nodes()) {
    EXPECT_FALSE(passes::is_operator(floats.node(id), "ConvInteger"));
    EXPECT_FALSE(passes::is_operator(floats.node(id), "DequantizeLinear") &&
                 floats.constant(floats.node(id).operands[0]));
  }
}

/// Types of what kernels leave in memory for each other: "u8 i8".
std::string types_between(const ir::Graph& graph) {
  std::string out;
  for (const ir::NodeId id : graph.topological_order()) {
    const ir::Value& value = graph.value(graph.node(id).results[0]);
    if (graph.is_output(graph.node(id).results[0])) continue;
    out += (out.empty() ? "" : " ") + std::string(ir::name_of(value.type.element));
  }
  return out;
}

TEST(Fused, ResidualsOfTwoConvolutionsLeaveBytesAndKeepEveryBit) {
  ir::Graph graph = parse(testing::graph(
      "uint8[1,4,6,6] x, int8[6,4,3,3] w_w, int8[6,4,1,1] w_v, int32[6] w_b", "float[1,6,1,1] y",
      "dx = DequantizeLinear(x, sx, ux)\n dw = DequantizeLinear<axis = 0>(w_w, swn)\n"
      " dv = DequantizeLinear(w_v, sw)\n db = DequantizeLinear<axis = 0>(w_b, sbn)\n"
      " s = Conv<pads = [1,1,1,1]>(dx, dw, db)\n t = Conv(dx, dv)\n"
      " qs = QuantizeLinear(s, sy, zy)\n qt = QuantizeLinear(t, sx, zx)\n"
      " ds = DequantizeLinear(qs, sy, zy)\n dt = DequantizeLinear(qt, sx, zx)\n"
      " a = Add(ds, dt)\n r = Relu(a)\n q = QuantizeLinear(r, sy, ux)\n d = DequantizeLinear(q, sy, ux)\n"
      " y = GlobalAveragePool(d)"));
  prepare_integers(graph);
  const ir::Graph before = graph;
  passes::optimise(graph, {});
  // The input in channels-last order, then both convolutions; the mean computes all that is behind them.
  EXPECT_EQ(types_between(graph), "uint8 int8 int8");
  expect_same(before, graph, 1e-6);
}

std::string mean(const std::string& inputs, const std::string& nodes, const std::string& more = "") {
  return graph(inputs, "float[2,3,1,1] y", nodes, more);
}

TEST(MeanOfIntegers, OfWholeImagesHoweverItIsSpelled) {
  const std::string inputs = "int8[2,3,4,5] x", dx = "dx = DequantizeLinear(x, sx, zx)\n ";
  for (const char* spelled :
       {"y = GlobalAveragePool(dx)", "y = AveragePool<kernel_shape = [4,5], strides = [4,5]>(dx)"}) {
    expect_fires("mean-of-integers", mean(inputs, dx + spelled), "Cast ReduceSum Add DequantizeLinear");
  }
  expect_fires("mean-of-integers", mean(inputs, "dx = DequantizeLinear(x, sx)\n y = GlobalAveragePool(dx)"),
               "Cast ReduceSum DequantizeLinear");
  expect_fires(
      "mean-of-integers",
      mean("uint16[2,3,4,5] x", "dx = DequantizeLinear(x, sx, uz)\n y = ReduceMean<axes = [3,-2]>(dx)",
           ", uint16 uz = {40000}"),
      "Cast ReduceSum Add DequantizeLinear");
}

TEST(MeanOfIntegers, Refuses) {
  const std::string inputs = "int8[2,3,4,5] x", dx = "dx = DequantizeLinear(x, sx, zx)\n ";
  expect_refuses("mean-of-integers",
                 graph(inputs, "float[2,3,1,2] y", dx + "y = AveragePool<kernel_shape = [4,4]>(dx)"),
                 "whole image");
  expect_refuses("mean-of-integers",
                 graph(inputs, "float[2,3,1,1] y",
                       dx + "y = AveragePool<kernel_shape = [4,5], pads = [0,1,0,0], count_include_pad = 1,"
                            " strides = [1,2]>(dx)"),
                 "whole image");
  expect_refuses("mean-of-integers", graph(inputs, "float[2,3,4,1] y", dx + "y = ReduceMean<axes = [3]>(dx)"),
                 "whole image");
  expect_refuses("mean-of-integers",
                 mean("int8[2,3,4,5] x", "dx = DequantizeLinear<axis = 1>(x, ss)\n y = GlobalAveragePool(dx)",
                      ", float[3] ss = {0.5, 0.25, 0.125}"),
                 "several scales");
  expect_refuses("mean-of-integers",
                 mean("int32[2,3,4,5] x", "dx = DequantizeLinear(x, sx)\n y = GlobalAveragePool(dx)"),
                 "8 or 16 bits");
  expect_refuses("mean-of-integers",
                 graph("int16[1,1,200,200] x", "float[1,1,1,1] y",
                       "dx = DequantizeLinear(x, sx)\n y = GlobalAveragePool(dx)"),
                 "int32");
}

}  // namespace
}  // namespace gcompile::testing
