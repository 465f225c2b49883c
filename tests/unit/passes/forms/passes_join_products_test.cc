// Products that share their left side, before one attention: one product, whose parts are views.

#include <fmt/format.h>

#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

/// Two heads of 4 over 5 rows. `products` defines q, k and v of (1, 5, 8).
std::string model(const std::string& products, const std::string& more_inputs = "",
                  const std::string& more_outputs = "", const std::string& more = "") {
  return "g (float[1,5,8] x, float[8,8] w_q, float[8,8] w_k, float[8,8] w_v, float[8] w_a, float[8] w_b" +
         more_inputs + ") => (float[1,5,8] y" + more_outputs +
         ") <int64[4] s = {1,5,2,4}, int64[3] t = {1,5,8}> { " + products + more +
         "\n qs = Reshape(q, s)\n ks = Reshape(k, s)\n vs = Reshape(v, s)\n qh = Transpose<perm = "
         "[0,2,1,3]>(qs)\n"
         " kh = Transpose<perm = [0,2,3,1]>(ks)\n vh = Transpose<perm = [0,2,1,3]>(vs)\n scores = MatMul(qh, "
         "kh)\n"
         " p = Softmax(scores)\n oh = MatMul(p, vh)\n os = Transpose<perm = [0,2,1,3]>(oh)\n y = Reshape(os, "
         "t) }";
}

const char kPlain[] = "q = MatMul(x, w_q)\n k = MatMul(x, w_k)\n v = MatMul(x, w_v)";

struct Outcome {
  ir::Graph graph;
  passes::Report report;
  int products = 0;
};

Outcome run(const std::string& text) {
  ir::Graph graph = parse(text);
  prepare(graph);
  const ir::Graph before = graph;
  run_pass(graph, "attention");
  run_pass(graph, "dce-again");
  Outcome out;
  out.report = run_pass(graph, "join-products");
  expect_same(before, graph, 2e-5);
  for (const ir::NodeId id : graph.nodes()) out.products += graph.node(id).op->name == "MatMul";
  out.graph = std::move(graph);
  return out;
}

void expect_products(const std::string& text, int products, const std::string& reason = "") {
  SCOPED_TRACE(text);
  const Outcome out = run(text);
  EXPECT_EQ(out.products, products) << ir::print(out.graph);
  if (reason.empty()) return;
  bool said = false;
  for (const passes::Remark& remark : out.report.remarks) {
    said |= remark.refused && remark.text.find(reason) != std::string::npos;
  }
  EXPECT_TRUE(said) << "not said: " << reason;
}

TEST(JoinProducts, QueriesKeysAndValues) { expect_products(model(kPlain), 1); }

TEST(JoinProducts, WithBiasesOfSomeParts) {
  expect_products(model("q0 = MatMul(x, w_q)\n q = Add(q0, w_a)\n k = MatMul(x, w_k)\n v0 = MatMul(x, w_v)\n"
                        " v = Add(w_b, v0)"),
                  1);
}

TEST(JoinProducts, PartsOfOtherWidthsAndLeftSides) {
  expect_products(model("q = MatMul(z, w_q)\n k = MatMul(x, w_k)\n v = MatMul(x, w_v)", ", float[1,5,8] z"),
                  2);
  expect_products(
      "g (float[1,5,8] x, float[8,4] w_q, float[8,4] w_k, float[8,6] w_v) => (float[1,5,6] y) {"
      " q = MatMul(x, w_q)\n k = MatMul(x, w_k)\n v = MatMul(x, w_v)\n kt = Transpose<perm = [0,2,1]>(k)\n"
      " s = MatMul(q, kt)\n p = Softmax(s)\n y = MatMul(p, v) }",
      1);
}

TEST(JoinProducts, BehindArithmeticThatReadsItTwice) {
  // Rotated queries: the product has two readers, so no epilogue is lost.
  expect_products(model("q0 = MatMul(x, w_q)\n q1 = Sigmoid(q0)\n q = Mul(q0, q1)\n k = MatMul(x, w_k)\n"
                        " v = MatMul(x, w_v)"),
                  1);
}

/// Exporters leave CastLike behind: of its second operand only the type counts.
TEST(JoinProducts, ReadersOfTheTypeAlone) {
  expect_products(model(kPlain, ", float[3] z", ", float[3] like", "\n like = CastLike(z, k)"), 1);
}

/// A movement of one operand is no view of the others, whatever their shapes.
TEST(JoinProducts, MovementsOfAnotherOperand) {
  ir::Graph graph = parse(model(kPlain, ", float[3] z"));
  prepare(graph);
  ir::ValueId k, z;
  for (const ir::ValueId id : graph.values()) {
    if (graph.value(id).name == "k") k = id;
    if (graph.value(id).name == "z") z = id;
  }
  const ir::Operator& cast_like = *ir::find_operator("", "CastLike");
  ir::Attributes attributes;
  ir::complete_attributes(cast_like, attributes);
  const ir::NodeId reader = graph.add_node(cast_like, {z, k}, std::move(attributes), 1);
  ir::infer_node(graph, reader);
  graph.add_output(graph.node(reader).results[0], "like");
  run_pass(graph, "attention");
  run_pass(graph, "join-products");
  run_pass(graph, "dce-again");
  EXPECT_EQ(operators(graph).find("MatMul"), operators(graph).rfind("MatMul")) << operators(graph);
  run_pass(graph, "forms");
  run_pass(graph, "layout");
}

TEST(JoinProducts, Refusals) {
  expect_products(model(kPlain, "", ", float[1,5,8] k"), 2, "the product is an output");
  expect_products(model(kPlain, "", ", float[1,5,2,4] ks"), 2, "a view of it is an output");
  expect_products(model("q0 = MatMul(x, w_q)\n q = Relu(q0)\n k = MatMul(x, w_k)\n v = MatMul(x, w_v)"), 2,
                  "no longer be its epilogue");
  // Rows and columns merge into one axis: no view of a slice is that.
  expect_products(
      "g (float[1,5,8] x, float[8,8] w_q, float[8,8] w_k, float[8,8] w_v) => (float[1,5,8] y,"
      " float[40] z) <int64[1] all = {40}> { q = MatMul(x, w_q)\n k = MatMul(x, w_k)\n"
      " v = MatMul(x, w_v)\n f = Reshape(v, all)\n z = Relu(f)\n kt = Transpose<perm = [0,2,1]>(k)\n"
      " s = MatMul(q, kt)\n p = Softmax(s)\n y = MatMul(p, v) }",
      2, "would copy it");
}

/// A branch whose second result is made of the keys.
std::string branch(const std::string& name, const std::string& second) {
  return fmt::format(
      "{0} () => (float[1,5,8] {0}_y, float[1,5,8] {0}_z) {{ {0}_q = MatMul(x, w_q)\n {0}_k = MatMul(x, "
      "w_k)\n"
      " {0}_v = MatMul(x, w_v)\n {0}_z = {1}({0}_k)\n {0}_t = Transpose<perm = [0,2,1]>({0}_k)\n"
      " {0}_s = MatMul({0}_q, {0}_t)\n {0}_p = Softmax({0}_s)\n {0}_y = MatMul({0}_p, {0}_v) }}",
      name, second);
}

/// Products in both branches of an If by the same weights.
int products_of_branches(const std::string& first, const std::string& second) {
  ir::Graph graph = parse(
      "g (float[1,5,8] x, bool c, float[8,8] w_q, float[8,8] w_k, float[8,8] w_v) => (float[1,5,8] y, "
      "float[1,5,8] z) { y, z = If(c)<then_branch = " +
      branch("a", first) + ", else_branch = " + branch("b", second) + "> }");
  prepare(graph);
  const ir::Graph before = graph;
  for (const char* pass : {"attention", "dce-again", "join-products"}) run_pass(graph, pass);
  expect_same(before, graph, 2e-5);
  int products = 0;
  for (const ir::NodeId id : graph.nodes()) {
    for (const ir::Graph& inner : graph.node(id).subgraphs) {
      for (const ir::NodeId inside : inner.nodes()) products += inner.node(inside).op->name == "MatMul";
    }
  }
  return products;
}

/// Joined in one branch alone, weights would be stored twice.
TEST(JoinProducts, InAllBranchesOrInNone) {
  EXPECT_EQ(products_of_branches("Neg", "Abs"), 2);
  EXPECT_EQ(products_of_branches("Neg", "Identity"), 6);
  EXPECT_EQ(products_of_branches("Identity", "Neg"), 6);
}

TEST(JoinProducts, ProductsThatMeetInNoAttentionStay) {
  expect_products(
      "g (float[5,8] x, float[8,8] w_q, float[8,8] w_k) => (float[5,8] y) {"
      " q = MatMul(x, w_q)\n k = MatMul(x, w_k)\n y = Mul(q, k) }",
      2);
}

}  // namespace
}  // namespace gcompile::testing
