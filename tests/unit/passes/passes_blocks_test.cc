// Products by packed weights: what becomes one, what does not,
// and what is made of it where no kernel decodes.

#include "ir/ops/support.h"
#include "passes/engine/preparation.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Tensor;

constexpr const char* kRule = "matmul-of-packed-weights";
constexpr const char* kColumns = "matmul-of-packed-columns";

const char kParameters[] =
    "float s = {0.25}, float[3] sn = {0.5, 0.25, 0.125}, float[4] sk = {0.5, 0.25, 0.125, 1.0},"
    " float[2,3] sb = {0.5, 0.25, 0.125, 1.0, 2.0, 4.0}, float[3,2] st = {0.5, 0.25, 0.125, 1.0, 2.0, 4.0},"
    " int8[2,3] zb = {1, -2, 3, 0, 5, -6}, uint8[3] zu = {128, 3, 255}, uint8 zero = {128}, float none = "
    "{0.0}";

std::string graph(const std::string& inputs, const std::string& nodes,
                  const std::string& output = "float[2,3] y") {
  return "g (" + inputs + ") => (" + output + ") <" + kParameters + "> { " + nodes + " }";
}

TEST(PackedWeights, BlocksOfRows) {
  expect_fires(kRule,
               graph("float[2,4] x, int8[4,3] w_w",
                     "w = DequantizeLinear<axis = 0, block_size = 2>(w_w, sb)\n y = MatMul(x, w)"),
               "MatMulBlocks");
  expect_fires(kRule,
               graph("float[2,3] x, int8[3,3] w_w",
                     "w = DequantizeLinear<axis = -2, block_size = 2>(w_w, sb, zb)\n y = MatMul(x, w)"),
               "MatMulBlocks");
}

TEST(PackedWeights, OneScaleAndOnePerColumn) {
  expect_fires(kRule, graph("float[2,4] x, int8[4,3] w_w", "w = DequantizeLinear(w_w, s)\n y = MatMul(x, w)"),
               "MatMulBlocks");
  expect_fires(kRule,
               graph("float[2,4] x, uint8[4,3] w_w", "w = DequantizeLinear(w_w, s, zero)\n y = MatMul(x, w)"),
               "MatMulBlocks");
  expect_fires(kRule,
               graph("float[2,4] x, uint8[4,3] w_w", "w = DequantizeLinear(w_w, sn, zu)\n y = MatMul(x, w)"),
               "MatMulBlocks");
}

TEST(PackedWeights, ColumnsFirst) {
  expect_fires(
      kColumns,
      graph("float[2,4] x, int8[3,4] w_w",
            "t = DequantizeLinear<axis = 1, block_size = 2>(w_w, st)\n w = Transpose<perm = [1, 0]>(t)\n"
            " y = MatMul(x, w)"),
      "MatMulBlocks");
  expect_fires(kColumns,
               graph("float[2,4] x, int8[3,4] w_w",
                     "t = DequantizeLinear<axis = 0>(w_w, sn)\n y = Gemm<transB = 1>(x, t)"),
               "MatMulBlocks");
}

TEST(PackedWeights, SixteenBitsAreComputedInFloat32) {
  ir::Graph model = parse(graph("float16[2,4] x, int8[4,3] w_w",
                                "h = Cast<to = 10>(s)\n w = DequantizeLinear(w_w, h)\n y = MatMul(x, w)",
                                "float16[2,3] y"));
  run_pass(model, "fold");
  EXPECT_EQ(apply_rule(model, kRule).rule_counts[kRule], 1);
  EXPECT_EQ(operators(model), "Cast MatMulBlocks Cast");
}

/// Elements of 4 bits, which the text has no name for.
TEST(PackedWeights, OfFourBits) {
  for (const ElementType type : {ElementType::kInt4, ElementType::kUInt4}) {
    ir::Graph model;
    // Two to a byte, the first in the low half; an odd one has no neighbour.
    std::vector<std::byte> nibbles(8), points(2);
    for (std::size_t i = 0; i < 15; ++i)
      nibbles[i / 2] |= static_cast<std::byte>((i * 7 % 16) << (i % 2 * 4));
    for (std::size_t i = 0; i < 3; ++i) points[i / 2] |= static_cast<std::byte>((3 + i * 5) << (i % 2 * 4));
    const Tensor w({type, {5, 3}}, nibbles), zero({type, {3}}, points);
    const ir::ValueId x = model.add_input("x", {ElementType::kFloat32, {2, 5}});
    const auto node = [&](const char* name, std::vector<ir::ValueId> operands) {
      const ir::Operator& op = ir::operator_named(name);
      ir::Attributes attributes;
      ir::complete_attributes(op, attributes);
      const ir::NodeId id = model.add_node(op, std::move(operands), attributes, 1, name);
      ir::infer_node(model, id);
      return model.node(id).results[0];
    };
    const std::vector<float> scales = {0.5f, 0.25f, 2};
    const ir::ValueId floats =
        node("DequantizeLinear", {model.add_constant(w), model.add_constant(Tensor::of_floats(scales, {3})),
                                  model.add_constant(zero)});
    model.add_output(node("MatMul", {x, floats}), "y");
    const ir::Graph before = model;
    EXPECT_EQ(apply_rule(model, kRule).rule_counts[kRule], 1);
    EXPECT_EQ(operators(model), "MatMulBlocks");
    expect_same(before, model, 1e-6);
  }
}

TEST(PackedWeights, Refuses) {
  const std::string x = "float[2,4] x, int8[4,3] w_w";
  expect_refuses(kRule, graph("float[2,4] x, int8[4,3] w", "f = DequantizeLinear(w, s)\n y = MatMul(x, f)"),
                 "computed");
  expect_refuses(kRule, graph(x + ", float t", "f = DequantizeLinear(w_w, t)\n y = MatMul(x, f)"),
                 "computed");
  expect_refuses(kRule, graph(x, "f = DequantizeLinear<axis = 0>(w_w, sk)\n y = MatMul(x, f)"), "every row");
  expect_refuses(
      kRule,
      graph("float[2,2] x, int8[2,6] w_w",
            "f = DequantizeLinear<axis = 1, block_size = 2>(w_w, sb)\n y = MatMul(x, f)", "float[2,6] y"),
      "shared along the columns");
  expect_refuses(kRule, graph(x, "t = Div(s, none)\n f = DequantizeLinear(w_w, t)\n y = MatMul(x, f)"),
                 "finite");
  expect_refuses(kRule,
                 graph("float[2,4] x, int16[4,3] w_w", "f = DequantizeLinear(w_w, s)\n y = MatMul(x, f)"),
                 "bits");
  expect_refuses(kRule,
                 graph("float[2,2,4] x, int8[2,4,3] w_w", "f = DequantizeLinear(w_w, s)\n y = MatMul(x, f)",
                       "float[2,2,3] y"),
                 "no matrix");
}

/// Prices of products by packed weights, also by rounded rows, where those are taken; of all others 100.
struct Prices final : ir::KernelPrices {
  explicit Prices(std::int64_t packed_price, std::optional<std::int64_t> rounded_price = std::nullopt)
      : packed(packed_price), rounded(rounded_price) {}
  ir::Price price(const ir::Problem& problem) const override {
    const auto* product = std::get_if<ir::ProductWork>(&problem.work);
    if (product == nullptr || product->block == 0) return {100, ""};
    if (product->rounding != ir::RowRounding::kDone) return {packed, ""};
    return {rounded, rounded ? "" : "not taken"};
  }
  std::vector<ir::LayoutOffer> offers(const ir::Problem&) const override { return {}; }
  std::int64_t packed;
  std::optional<std::int64_t> rounded;
};

TEST(PackedWeights, BecomeFloatsWhereNoKernelDecodesThem) {
  ir::Graph model =
      parse(graph("float[2,4] x, int8[4,3] w_w",
                  "w = DequantizeLinear<axis = 0, block_size = 2>(w_w, sb, zb)\n y = MatMul(x, w)"));
  prepare(model);
  apply_rule(model, kRule);
  const ir::Graph packed = model;
  const Prices fast(150), slow(5000);
  passes::Options options;
  options.prices = &fast;
  run_pass(model, "blocks", options);
  EXPECT_EQ(operators(model), "MatMulBlocks");
  options.prices = &slow;
  const passes::Report report = run_pass(model, "blocks", options);
  EXPECT_EQ(operators(model), "MatMul");
  ASSERT_EQ(report.remarks.size(), 1u);
  EXPECT_NE(report.remarks[0].text.find("48 bytes"), std::string::npos) << report.remarks[0].text;
  expect_same(packed, model, 1e-6);
}

/// Two products by 16 rows of 4 bits, of which the second allows to round its rows.
ir::Graph with_levels(const std::string& first, const std::string& second) {
  const std::string bits = "com.microsoft.MatMulNBits<K = 16, N = 1, bits = 4, block_size = 16";
  ir::Graph model = parse(
      "g (float[2,16] x) => (float[2,1] y, float[2,1] z) <uint8[1,1,8] w = {1, 2, 3, 4, 5, "
      "6, 7, 8}, float[1] s = {0.5}> { y = " +
      bits + first + ">(x, w, s)\n z = " + bits + second + ">(x, w, s) }");
  return model;
}

passes::Prepared round_rows(ir::Graph& model, const Prices& prices) {
  passes::PreparationOptions options;
  options.rounds_rows = true;
  options.prices = &prices;
  return passes::prepare(model, options);
}

TEST(RoundedRows, WhereTheModelAllowsItAndItIsNoSlower) {
  const Prices faster(150, 100), slower(150, 200), none(150);
  const auto count = [](ir::Graph model, const Prices& prices, std::string remark) {
    const passes::Prepared prepared = round_rows(model, prices);
    const passes::Report& report = prepared.report;
    const std::int64_t rounded = prepared.rounded_products;
    EXPECT_EQ(report.remarks.size(), 1u);
    EXPECT_NE(report.remarks.at(0).text.find(remark), std::string::npos) << report.remarks.at(0).text;
    std::vector<std::int64_t> roundings;
    for (const ir::NodeId id : model.topological_order()) {
      if (model.node(id).attributes.has("rounding"))
        roundings.push_back(model.node(id).attributes.int_of("rounding"));
    }
    EXPECT_EQ(roundings, (std::vector<std::int64_t>{0, rounded == 1 ? 2 : 1}));
    // What is decided stays so.
    passes::Options options;
    options.prices = &prices;
    const ir::Graph before = model;
    run_pass(model, "blocks", options);
    EXPECT_EQ(operators(model), operators(before));
    return rounded;
  };
  const auto model = [] { return with_levels(", accuracy_level = 1", ", accuracy_level = 4"); };
  EXPECT_EQ(count(model(), faster, "to int8, with a scale for 16 elements"), 1);
  EXPECT_EQ(count(model(), slower, "floats are faster"), 0);
  EXPECT_EQ(count(model(), none, "no kernel of the target"), 0);
}

TEST(RoundedRows, LeaveOtherModelsAsTheyAre) {
  const Prices faster(150, 100);
  for (const char* level : {"", ", accuracy_level = 0", ", accuracy_level = 3"}) {
    ir::Graph model = with_levels(level, level);
    const passes::Prepared prepared = round_rows(model, faster);
    EXPECT_EQ(prepared.rounded_products, 0);
    EXPECT_EQ(operators(model), "MatMulNBits MatMulNBits");
    EXPECT_TRUE(prepared.report.remarks.empty());
  }
}

}  // namespace
}  // namespace gcompile::testing
