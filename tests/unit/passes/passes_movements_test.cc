// Movements that meet, pools of pools, and parts of products: each law, and each reason not to.

#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

constexpr const char* kBounds =
    "int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, int64[1] four = {4},"
    " int64[1] six = {6}, int64[1] last = {-1}";

/// Nodes of x: float[6,4] and z: float[2,4].
std::string graph(const std::string& nodes, const std::string& result, const std::string& more = "") {
  return "g (float[6,4] x, float[2,4] z) => (float" + result + " y) <" + kBounds + more + "> { " + nodes +
         " }";
}

/// The same where what nobody reads is left behind.
void expect_leaves(const std::string& rule, const std::string& text, const std::string& operators_after) {
  SCOPED_TRACE(rule + " on " + text);
  ir::Graph graph = parse(text);
  prepare(graph);
  const ir::Graph before = graph;
  passes::Report report = apply_rule(graph, rule);
  run_pass(graph, "dce-again");
  EXPECT_GT(report.rule_counts[rule], 0);
  EXPECT_EQ(operators(graph), operators_after);
  expect_same(before, graph, 0);
}

TEST(ConcatOfSlices, IsTheValueOrOneSlice) {
  expect_leaves("concat-of-slices",
                graph("s, t, u = Split<num_outputs = 3>(x) y = Concat<axis = 0>(s, t, u)", "[6,4]"), "");
  expect_leaves("concat-of-slices",
                graph("s, t, u = Split<num_outputs = 3>(x) y = Concat<axis = 0>(t, u)", "[4,4]"), "Slice");
  expect_leaves("concat-of-slices",
                graph("s, t, u = Split<num_outputs = 3>(x) y = Concat<axis = -2>(z, s, t)", "[6,4]"),
                "Slice Concat");
  expect_leaves(
      "concat-of-slices",
      graph("s, t, u = Split<num_outputs = 3>(x) v = Relu(t) y = Concat<axis = 0>(s, t, v)", "[6,4]"),
      "Slice Relu Slice Concat");
}

TEST(ConcatOfSlices, StaysWherePartsAreNoNeighbours) {
  const std::string reason = "no neighbours";
  expect_refuses("concat-of-slices",
                 graph("s, t, u = Split<num_outputs = 3>(x) y = Concat<axis = 0>(t, s, u)", "[6,4]"), reason);
  expect_refuses("concat-of-slices",
                 graph("s, t, u = Split<num_outputs = 3>(x) y = Concat<axis = 1>(s, t)", "[2,8]"), reason);
  // Another step, and parts of rows.
  expect_refuses(
      "concat-of-slices",
      graph("s = Slice(x, zero, six, zero, two) t = Slice(x, three, six, zero) y = Concat<axis = 0>(s, t)",
            "[6,4]"),
      reason);
  expect_refuses(
      "concat-of-slices",
      graph("v = Slice(x, one, four, one) s, t, u = Split<num_outputs = 3>(x) w = Slice(s, one, four, one)"
            " r = Slice(t, one, four, one) y = Concat<axis = 0>(v, w, r)",
            "[10,3]"),
      reason);
}

TEST(ConcatOfConcat, IsOne) {
  expect_leaves("concat-of-concat",
                graph("t = Concat<axis = 0>(z, x) y = Concat<axis = -2>(x, t, z)", "[16,4]"), "Concat");
  expect_refuses("concat-of-concat", graph("t = Concat<axis = 1>(x, x) y = Concat<axis = 0>(t, t)", "[12,8]"),
                 "of its own");
  expect_refuses("concat-of-concat", graph("t = Concat<axis = 0>(x, z) y = Concat<axis = 0>(t, t)", "[16,4]"),
                 "of its own");
}

TEST(SliceOfConcat, IsThatOfOneOperand) {
  expect_leaves("slice-of-concat", graph("t = Concat<axis = 0>(x, z) y = Slice(t, zero, six, zero)", "[6,4]"),
                "");
  expect_leaves("slice-of-concat",
                graph("t = Concat<axis = 0>(z, x) y = Slice(t, three, six, zero)", "[3,4]"), "Slice");
  expect_leaves("slice-of-concat",
                graph("t = Concat<axis = 0>(z, x) y = Slice(t, three, six, zero, two)", "[2,4]"), "Slice");
  expect_leaves("slice-of-concat",
                graph("t = Concat<axis = 0>(x, z) r, u = Split<axis = 0>(t, parts) y = Add(r, x)", "[6,4]",
                      ", int64[2] parts = {6, 2}"),
                "Add");
  expect_refuses("slice-of-concat", graph("t = Concat<axis = 0>(z, x) y = Slice(t, one, six, zero)", "[5,4]"),
                 "several operands");
  expect_refuses("slice-of-concat",
                 graph("t = Concat<axis = 0>(z, x) y = Slice(t, one, three, one)", "[8,2]"),
                 "several operands");
}

TEST(Pads, OfPads) {
  const std::string pads =
      ", int64[4] p = {1,0,2,0}, int64[2] q = {3,1}, int64[4] crop = {0,-1,0,0}, float n = {7.0}, float f = "
      "{0.0}";
  expect_fires("pad-of-pad", graph("t = Pad(x, p, n) y = Pad(t, q, n, last)", "[9,8]", pads), "Pad");
  expect_fires("pad-of-pad", graph("t = Pad(x, p) y = Pad(t, p, f)", "[12,4]", pads), "Pad");
  expect_refuses("pad-of-pad", graph("t = Pad(x, p, n) y = Pad(t, p)", "[12,4]", pads), "unlike numbers");
  expect_refuses("pad-of-pad", graph("t = Pad(x, crop) y = Pad(t, p)", "[9,3]", pads), "removes");
  expect_refuses("pad-of-pad", graph("t = Pad<mode = \"edge\">(x, p) y = Pad(t, p)", "[12,4]", pads),
                 "does not fill");
}

TEST(Slices, OfPads) {
  const std::string pads =
      ", int64[4] p = {1,0,2,0}, float n = {7.0}, int64[1] seven = {7}, int64[1] nine = {9}";
  expect_leaves("slice-of-pad", graph("t = Pad(x, p, n) y = Slice(t, one, seven, zero)", "[6,4]", pads), "");
  expect_leaves("slice-of-pad", graph("t = Pad(x, p, n) y = Slice(t, two, six, zero)", "[4,4]", pads),
                "Slice");
  expect_leaves("slice-of-pad", graph("t = Pad(x, p, n) y = Slice(t, zero, seven, zero)", "[7,4]", pads),
                "Pad");
  expect_leaves(
      "slice-of-pad",
      graph("t = Pad(x, p, n) s = Slice(t, one, seven, zero) u = Relu(t) y = Concat<axis = 0>(s, u)",
            "[15,4]", pads),
      "Pad Relu Concat");
  expect_refuses("slice-of-pad", graph("t = Pad(x, p, n) y = Slice(t, zero, six, zero)", "[6,4]", pads),
                 "and padded");
  expect_refuses("slice-of-pad", graph("t = Pad(x, p, n) y = Slice(t, seven, nine, zero)", "[2,4]", pads),
                 "not known");
  expect_refuses("slice-of-pad", graph("t = Pad(x, p, n) y = Slice(t, one, seven, zero, two)", "[3,4]", pads),
                 "not known");
  expect_refuses(
      "slice-of-pad",
      graph("t = Pad(x, p, n) s = Slice(t, zero, seven, zero) y = Concat<axis = 0>(s, t)", "[16,4]", pads),
      "others read");
}

// Pools -----------------------------------------------------------------------------------------------------

std::string pools(const std::string& first, const std::string& second, const std::string& sizes) {
  return "g (float[1,2,13,12] x) => (float[1,2," + sizes + "] y) { t = " + first + "(x) y = " + second +
         "(t) }";
}

TEST(PoolsOfPools, Maxima) {
  expect_fires("max-pool-twice",
               pools("MaxPool<kernel_shape = [2,2], strides = [2,2]>",
                     "MaxPool<kernel_shape = [2,2], strides = [2,2]>", "3,3"),
               "MaxPool");
  expect_fires("max-pool-twice",
               pools("MaxPool<kernel_shape = [3,1], strides = [2,1], pads = [1,0,1,0]>",
                     "MaxPool<kernel_shape = [2,1], strides = [3,1], pads = [1,0,0,0]>", "3,12"),
               "MaxPool");
  expect_fires("max-pool-twice",
               pools("MaxPool<kernel_shape = [3,1], pads = [1,0,1,0]>",
                     "MaxPool<kernel_shape = [3,1], strides = [2,1], pads = [1,0,1,0]>", "7,12"),
               "MaxPool");
  const std::string three = "MaxPool<kernel_shape = [3,3], pads = [1,1,1,1]>";
  expect_refuses("max-pool-twice", pools(three, three, "13,12"), "more elements");
  expect_refuses("max-pool-twice", pools("MaxPool<kernel_shape = [1,1], strides = [2,2]>", three, "7,6"),
                 "gaps");
  expect_refuses("max-pool-twice",
                 pools("MaxPool<kernel_shape = [2,2], strides = [2,2]>",
                       "MaxPool<kernel_shape = [2,2], strides = [2,2], pads = [0,0,1,1]>", "3,3"),
                 "padding behind");
  expect_refuses("max-pool-twice",
                 pools("MaxPool<kernel_shape = [2,2], strides = [2,2], ceil_mode = 1>",
                       "MaxPool<kernel_shape = [2,2], strides = [2,2]>", "3,3"),
                 "ceil_mode");
}

TEST(PoolsOfPools, Means) {
  const std::string two = "AveragePool<kernel_shape = [2,3], strides = [2,3]>";
  expect_fires("average-pool-twice", pools(two, "AveragePool<kernel_shape = [3,2], strides = [3,2]>", "2,2"),
               "AveragePool");
  expect_refuses(
      "average-pool-twice",
      pools("AveragePool<kernel_shape = [2,3]>", "AveragePool<kernel_shape = [3,2], strides = [3,2]>", "4,5"),
      "overlap");
  expect_refuses("average-pool-twice",
                 pools(two, "AveragePool<kernel_shape = [2,2], strides = [2,2], pads = [1,0,1,0]>", "4,2"),
                 "padded");
}

TEST(PoolsOfPools, Maximum) {
  const auto of = [](const std::string& pool) {
    return "g (float[1,2,13,12] x) => (float[1,2,1,1] y) { t = " + pool + "(x) y = GlobalMaxPool(t) }";
  };
  expect_fires("maximum-of-pool", of("MaxPool<kernel_shape = [3,3], strides = [2,3]>"), "ReduceMax");
  expect_fires("maximum-of-pool", of("MaxPool<kernel_shape = [3,3], strides = [2,3], ceil_mode = 1>"),
               "ReduceMax");
  expect_refuses("maximum-of-pool", of("MaxPool<kernel_shape = [2,2], strides = [2,2]>"),
                 "leaves elements out");
}

// Parts of products -----------------------------------------------------------------------------------------

std::string product(const std::string& nodes, const std::string& result,
                    const std::string& addend = "[5] c") {
  return "g (float[2,6,4] x, float[4,5] w, float" + addend + ") => (float" + result + " y) <" + kBounds +
         ", int64 row = {-1}, int64[2] rows = {1,-2}, int64[7] many = {0,1,2,3,4,5,0}> { t = MatMul(x, w) u "
         "= Add(t, c) " +
         nodes + " }";
}

TEST(PartsOfProducts, Slices) {
  expect_fires("slice-of-product", product("y = Slice(u, two, three, one)", "[2,1,5]"), "Slice MatMul Add");
  expect_fires("slice-of-product", product("y = Slice(t, one, four, last)", "[2,6,3]"), "Slice MatMul");
  expect_fires("slice-of-product", product("y = Slice(u, one, four, last, two)", "[2,6,2]"),
               "Slice MatMul Slice Add");
  expect_fires("slice-of-product", product("y = Slice(u, one, four, one)", "[2,3,5]", "[6,1] c"),
               "Slice MatMul Slice Add");
  // Others read the product too.
  expect_refuses("slice-of-product",
                 product("v = Slice(u, two, three, one) y = Concat<axis = 1>(v, u)", "[2,7,5]"), "");
  expect_refuses("slice-of-product", product("y = Slice(u, two, three, one)", "[3,2,1,5]", "[3,1,1,1] c"),
                 "enlarges");
}

TEST(PartsOfProducts, Gathers) {
  expect_fires("gather-of-product", product("y = Gather<axis = 1>(u, row)", "[2,5]"), "Gather MatMul Add");
  expect_fires("gather-of-product", product("y = Gather<axis = 1>(u, rows)", "[2,2,5]"), "Gather MatMul Add");
  expect_fires("gather-of-product", product("y = Gather<axis = 2>(u, rows)", "[2,6,2]"),
               "Gather MatMul Gather Add");
  expect_refuses("gather-of-product", product("y = Gather<axis = 1>(u, many)", "[2,7,5]"), "no fewer");
  expect_refuses("gather-of-product", product("y = Gather<axis = 2>(u, row)", "[2,6]"), "several axes");
  expect_refuses("gather-of-product", product("y = Gather<axis = 1>(u, row)", "[2,5]", "[6,1] c"),
                 "each row");
}

TEST(PartsOfProducts, Channels) {
  const auto conv = [](const std::string& group, const std::string& weights, const std::string& slice) {
    return "g (float[1,4,6] x, float[6," + weights + "] w, float[6] b) => (float[1,N,M] y) <" + kBounds +
           "> { t = Conv<group = " + group + ">(x, w, b) y = " + slice + " }";
  };
  expect_fires("slice-of-conv", conv("1", "4,3", "Slice(t, one, six, one, two)"), "Slice Slice Conv");
  expect_refuses("slice-of-conv", conv("2", "2,3", "Slice(t, one, six, one)"), "groups");
  expect_refuses("slice-of-conv", conv("1", "4,3", "Slice(t, one, three, two)"), "all channels");
}

}  // namespace
}  // namespace gcompile::testing
