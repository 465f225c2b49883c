// Movements that are one view together, and the order in which a product writes its rows.

#include "codegen/kinds/matrix_product.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

ir::Graph with_views(const std::string& text) {
  ir::Graph graph = parse(text);
  prepare(graph);
  run_pass(graph, "forms");
  const ir::Graph before = graph;
  run_pass(graph, "views");
  expect_same(before, graph, 0);
  return graph;
}

/// What the value reads, when it is a movement.
std::string read_by(const ir::Graph& graph, const std::string& name) {
  for (const ir::NodeId id : graph.nodes()) {
    const ir::Node& node = graph.node(id);
    if (graph.value(node.results[0]).name == name) return graph.value(node.operands[0]).name;
  }
  return "";
}

// Rows of 24: two batches of three parts of heads 2 x 2; the Reshape to (3, 4, 2) copies a part of the rows.
constexpr const char* kHeads =
    "g (float[3,2,12] x) => (float[2,2,3,2] y) <int64[1] from = {4}, int64[1] to = {8}, int64[1] last = {2},"
    " int64[3] merged = {3,4,2}, int64[4] heads = {2,2,3,2}> { part = Slice(x, from, to, last)\n"
    " rows = Reshape(part, merged)\n turned = Transpose<perm = [1,0,2]>(rows)\n"
    " split = Reshape(turned, heads)\n y = Relu(split) }";

TEST(Views, SplitHeadsAreOneView) {
  const ir::Graph graph = with_views(kHeads);
  EXPECT_EQ(operators(graph), "Reshape Relu") << ir::print(graph);
  EXPECT_EQ(read_by(graph, "split"), "x");
}

TEST(Views, WhatIsOnlyACopyStays) {
  const ir::Graph graph = with_views(
      "g (float[3,2,4] x) => (float[24] y) <int64[1] all = {24}> { turned = Transpose<perm = [1,0,2]>(x)\n"
      " flat = Reshape(turned, all)\n y = Relu(flat) }");
  EXPECT_EQ(operators(graph), "Transpose Reshape Relu");
}

/// A shuffle of `n` channels in groups behind a Concat of parts of these sizes.
std::string shuffled(const std::string& inputs, const std::string& parts, int groups, int each,
                     const std::string& type = "float", const std::string& outputs = "") {
  const std::string n = std::to_string(groups * each), g = std::to_string(groups), e = std::to_string(each);
  return "g (" + inputs + ") => (" + type + "[1," + n + ",2,2] y" + outputs + ") <int64[5] split = {1," + g +
         "," + e + ",2,2}, int64[4] all = {1," + n + ",2,2}> { c = Concat<axis = 1>(" + parts +
         ")\n r = Reshape(c, split)\n t = Transpose<perm = [0,2,1,3,4]>(r)\n y = Reshape(t, all) }";
}

TEST(Views, AShuffleReadsThePartsThatAConcatWouldJoin) {
  const std::string halves = "float[1,4,2,2] p, float[1,4,2,2] q";
  EXPECT_EQ(operators(with_views(shuffled(halves, "p, q", 2, 4))), "Reshape");
  EXPECT_EQ(operators(with_views(shuffled("int8[1,4,2,2] p, int8[1,4,2,2] q", "q, p", 2, 4, "int8"))),
            "Reshape");
  EXPECT_EQ(operators(with_views(shuffled(halves + ", float[1,4,2,2] s", "p, q, s", 3, 4))), "Reshape");
  // A part may be read in several turns.
  EXPECT_EQ(operators(with_views(shuffled("float[1,4,2,2] p, float[1,2,2,2] q", "p, q", 3, 2))), "Reshape");
}

TEST(Views, AShuffleOfPartsThatDoNotTakeTurnsIsLeftAlone) {
  EXPECT_EQ(operators(with_views(shuffled("float[1,3,2,2] p, float[1,5,2,2] q", "p, q", 2, 4))),
            "Concat Reshape Transpose Reshape");
  EXPECT_EQ(
      operators(with_views(shuffled("float16[1,4,2,2] p, float16[1,4,2,2] q", "p, q", 2, 4, "float16"))),
      "Concat Reshape Transpose Reshape");
  EXPECT_EQ(operators(with_views(
                shuffled("float[1,4,2,2] p, float[1,4,2,2] q", "p, q", 2, 4, "float", ", float[1,8,2,2] c"))),
            "Concat Reshape Transpose Reshape");
}

TEST(Views, OtherReadersKeepWhatTheyRead) {
  const ir::Graph graph = with_views(
      "g (float[3,2,12] x) => (float[2,2,3,2] y, float[3,4,2] z) <int64[1] from = {4}, int64[1] to = {8},"
      " int64[1] last = {2}, int64[3] merged = {3,4,2}, int64[4] heads = {2,2,3,2}> {"
      " part = Slice(x, from, to, last)\n rows = Reshape(part, merged)\n z = Neg(rows)\n"
      " turned = Transpose<perm = [1,0,2]>(rows)\n split = Reshape(turned, heads)\n y = Relu(split) }");
  EXPECT_EQ(read_by(graph, "split"), "x");
  EXPECT_EQ(read_by(graph, "z"), "rows");
}

/// A movement by indices that are read is no view, whatever lies behind it.
TEST(Views, IndicesThatAreRead) {
  const ir::Graph graph = with_views(
      "g (float[8,4] x, int64[2] i) => (float[2,8] y) <int64[2] s = {4,8}> { a = Reshape(x, s)\n"
      " b = Gather<axis = 0>(a, i)\n y = Neg(b) }");
  EXPECT_EQ(operators(graph), "Reshape Gather Neg");
}

// (rows, batch, depth) as a view of (batch, rows, depth)
// -----------------------------------------------------

std::vector<int> order_of(const std::string& text, const std::string& name) {
  ir::Graph graph = parse(text);
  prepare(graph);
  run_pass(graph, "forms");
  run_pass(graph, "views");
  run_pass(graph, "layout");
  for (const ir::ValueId id : graph.values()) {
    if (graph.value(id).name == name) return graph.value(id).order;
  }
  throw std::runtime_error("no value " + name);
}

constexpr const char* kTurned =
    "g (float[2,5,4] x, float[4,6] w_b) => (float[2,5,6] y) {"
    " a = Transpose<perm = [1,0,2]>(x)\n p = MatMul(a, w_b)\n";

TEST(RowOrder, FollowsTheLeftSide) {
  const std::vector<int> turned = {1, 0, 2};
  EXPECT_EQ(order_of(std::string(kTurned) + " t = Transpose<perm = [1,0,2]>(p)\n y = Relu(t) }", "p"),
            turned);
  EXPECT_EQ(order_of(std::string(kTurned) + " s = Sigmoid(p)\n t = Transpose<perm = [1,0,2]>(s)\n"
                                            " y = Relu(t) }",
                     "p"),
            turned);
}

/// Readers that take any order.
constexpr const char* kAnyOrder = " s = Sigmoid(p)\n m = Mul(p, s)\n y = ReduceMax<keepdims = 0>(m) }";

TEST(RowOrder, IsThatOfTheResultWhereEachBatchHasItsMatrix) {
  const std::string turned = " { a = Transpose<perm = [1,0,2]>(x)\n p = MatMul(a, w_b)\n";
  EXPECT_TRUE(
      order_of("g (float[2,5,4] x, float[5,4,6] w_b) => (float y)" + turned + kAnyOrder, "p").empty());
  EXPECT_FALSE(order_of("g (float[2,5,4] x, float[4,6] w_b) => (float y)" + turned + kAnyOrder, "p").empty());
}

TEST(RowOrder, IsThatOfTheModelWhereAReaderWantsIt) {
  const std::string text =
      "g (float[2,5,4] x, float[4,6] w_b) => (float[5,2,6] y) { a = Transpose<perm = [1,0,2]>(x)\n"
      " p = MatMul(a, w_b)\n";
  EXPECT_TRUE(order_of(text + " y = Relu(p) }", "p").empty());  // an output: its epilogue writes it
  EXPECT_TRUE(order_of("g (float[2,5,4] x, float[4,6] w_b) => (float[10,6] y) <int64[2] s = {10,6}> {"
                       " a = Transpose<perm = [1,0,2]>(x)\n p = MatMul(a, w_b)\n r = Reshape(p, s)\n"
                       " y = Relu(r) }",
                       "p")
                  .empty());
}

/// Heads that are merged behind a product: it writes them where they will be, along its own last axis.
TEST(RowOrder, IsThatOfTheOnlyReaderThatMovesRows) {
  const std::string model = "g (float[2,3,5,4] x, float[2,3,4,6] w_b) => (float y) { p = MatMul(x, w_b)\n ";
  const std::string merged = "t = Transpose<perm = [0,2,1,3]>(p)\n",
                    turned = "t = Transpose<perm = [0,1,3,2]>(p)\n";
  EXPECT_EQ(order_of(model + merged + "s = Sigmoid(t)\n" + " y = ReduceMax<keepdims = 0>(s) }", "p"),
            (std::vector<int>{0, 2, 1, 3}));
  EXPECT_TRUE(
      order_of(model + turned + "s = Sigmoid(t)\n" + " y = ReduceMax<keepdims = 0>(s) }", "p").empty());
  EXPECT_TRUE(order_of(model + merged +
                           "s0 = Softmax(p)\n s1 = ReduceMax<keepdims = 0>(s0)\n s2 = Sigmoid(t)\n"
                           " s3 = ReduceMax<keepdims = 0>(s2)\n y = Add(s1, s3) }",
                       "p")
                  .empty());
}

TEST(ProductAxes, RowsOfOneMatrixInAnyOrder) {
  const ProductAxes axes = product_axes({5, 2, 6}, {5, 2, 4}, {4, 20, 1}, {4, 6});
  EXPECT_EQ(axes.rows, (std::vector<int>{1, 0}));
  EXPECT_EQ(axes.row_count, 10);
  EXPECT_EQ(axes.row_stride, 4);
  EXPECT_TRUE(axes.batch.empty());
}

TEST(ProductAxes, TheMostRowsWhereTheyAreNotOneMatrix) {
  // Rows of a part of each sequence: neither axis continues the other.
  const ProductAxes axes = product_axes({50, 2, 6}, {50, 2, 4}, {4, 300, 1}, {4, 6});
  EXPECT_EQ(axes.rows, std::vector<int>{0});
  EXPECT_EQ(axes.row_count, 50);
  EXPECT_EQ(axes.batch, std::vector<std::size_t>{1});
}

TEST(ProductAxes, EntriesThatAreRowsOfTheModelShareTheRightSide) {
  // A right side (..., K, N) has no M of the result (..., M, N): K stands there.
  for (const ir::Shape& b : {ir::Shape{4, 6}, ir::Shape{1, 4, 6}}) {
    const ir::Shape strides = ir::row_major_strides(b);
    EXPECT_EQ(right_stride(3, b, strides, 0), 0);
    EXPECT_EQ(right_stride(3, b, strides, 1), 0);
    EXPECT_EQ(right_stride(3, b, strides, 2), 1);
  }
  EXPECT_EQ(right_stride(3, {50, 4, 6}, {24, 6, 1}, 0), 24);
  EXPECT_EQ(right_stride(3, {50, 4, 6}, {24, 6, 1}, 1), 0);
  // And a left side (..., M, K) no N.
  EXPECT_EQ(left_stride(3, {50, 2, 4}, {4, 300, 1}, 0), 4);
  EXPECT_EQ(left_stride(3, {50, 2, 4}, {4, 300, 1}, 1), 300);
  EXPECT_EQ(left_stride(3, {50, 2, 4}, {4, 300, 1}, 2), 0);
}

TEST(ProductAxes, MatricesOfTheirOwnAreBatchEntries) {
  const ProductAxes axes = product_axes({3, 1, 5, 6}, {3, 1, 5, 4}, {20, 20, 4, 1}, {3, 1, 4, 6});
  EXPECT_EQ(axes.rows, std::vector<int>{2});
  EXPECT_EQ(axes.batch, std::vector<std::size_t>{0});
  const ProductAxes single = product_axes({1, 1, 6}, {1, 1, 4}, {4, 4, 1}, {4, 6});
  EXPECT_EQ(single.row_count, 1);
  EXPECT_TRUE(single.batch.empty());
}

/// Along an axis of one element a position that is computed can only be 0, so nothing is read to compute it.
TEST(Views, AnAxisOfOneElementNeedsNoPositions) {
  for (const char* text : {
           "g (double[1,2,2,4] x) => (double[1,2,2,4] y) <int64[2] n = {1,0}> {"
           " y = ReverseSequence<time_axis = 0, batch_axis = 1>(x, n) }",
           "g (float[4,1] x) => (float[4,1] y) <int64[4] n = {1,1,0,1}> {"
           " y = ReverseSequence<time_axis = 1, batch_axis = 0>(x, n) }",
       }) {
    ir::Graph graph = parse(text);
    prepare(graph);
    const ir::Graph before = graph;
    run_pass(graph, "forms");
    expect_same(before, graph, 0);
    for (const ir::NodeId id : graph.nodes())
      EXPECT_EQ(graph.node(id).operands.size(), 1u) << ir::print(graph);
  }
}

}  // namespace
}  // namespace gcompile::testing
