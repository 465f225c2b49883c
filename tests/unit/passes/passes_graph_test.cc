// Passes over whole graphs: folding, common subexpressions, captures of Ifs, 16-bit floats, the manager.

#include <regex>

#include "ir/graph/operator.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

// Manager ---------------------------------------------------------------------------------------------------

const char kChain[] =
    "g (float[4] x) => (float[4] y) <float one = {1.0}, float two = {2.0}> { a = Mul(x, one)\n b = "
    "Identity(a)\n"
    " y = Pow(b, two) }";

bool break_types(ir::Graph& graph, passes::PassContext&) {
  graph.value(graph.node(graph.nodes()[0]).results[0]).type.shape = {5};
  return true;
}

TEST(Manager, NamesThePassThatBreaksTheGraph) {
  ir::Graph graph = parse(kChain);
  try {
    passes::run_passes(graph, {{"vandal", "", 0, true, break_types}}, {});
    FAIL() << "not noticed";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kInternal);
    EXPECT_NE(std::string(error.what()).find("pass 'vandal'"), std::string::npos) << error.what();
  }
}

TEST(Manager, LevelsDisabledRulesAndLimits) {
  const auto after = [](passes::Options options) {
    ir::Graph graph = parse(kChain);
    prepare(graph);
    run_pass(graph, "rules", options);
    return operators(graph);
  };
  EXPECT_EQ(after({}), "Mul");
  EXPECT_EQ(after({.level = 0}), "Mul Identity Pow");
  EXPECT_EQ(after({.disabled = {"rules"}}), "Mul Identity Pow");
  EXPECT_EQ(after({.disabled = {"mul-one", "pow-two"}}), "Mul Pow");
  EXPECT_EQ(after({.pass_limit = 0}), "Mul Identity Pow");
}

TEST(Manager, TheWholePipelineIsIdempotentAndDeterministic) {
  const std::string text =
      "g (float[1,3,8,8] x, float[4,3,3,3] w_w, float[4] w_s, float[4] w_b, float[4] w_m) => (float[1,4] y)"
      " <float[4] v = {0.5, 1.0, 2.0, 0.25}, float zero = {0.0}, float six = {6.0}> {"
      " t = Conv<pads = [1,1,1,1]>(x, w_w)\n n = BatchNormalization(t, w_s, w_b, w_m, v)\n c = Clip(n, zero, "
      "six)\n"
      " p = GlobalAveragePool(c)\n y = Flatten(p) }";
  const auto optimised = [&] {
    ir::Graph graph = parse(text);
    prepare(graph);
    const ir::Graph before = graph;
    passes::Options options;
    int changes = 0;
    std::vector<passes::Pass> loop;
    for (const passes::Pass& pass : passes::pipeline()) {
      if (pass.loop == 2) loop.push_back(pass);
    }
    passes::run_passes(graph, loop, options);
    expect_same(before, graph, 2e-5);
    options.dump = [&](const std::string&, int, const ir::Graph&) { ++changes; };
    passes::run_passes(graph, loop, options);
    EXPECT_EQ(changes, 0);
    return ir::print(graph);
  };
  const std::string first = optimised();
  EXPECT_EQ(first, optimised());
}

// Folding ---------------------------------------------------------------------------------------------------

TEST(Fold, KnownOperandsAndUnusedNodes) {
  ir::Graph graph = parse(
      "g (float[2] x) => (float[2] y) <float[2] a = {1.0,2.0}, float[2] b = {3.0,5.0}> { s = Add(a, b)\n"
      " unused = Neg(x)\n y = Mul(x, s) }");
  const ir::Graph before = graph;
  run_pass(graph, "fold");
  EXPECT_EQ(operators(graph), "Mul");
  expect_same(before, graph, 0);
}

TEST(Fold, LeavesConstantsThatWouldGrowTooFar) {
  // 2^26 + 136 floats are more than 256 MiB.
  ir::Graph large = parse(
      "g (float[1] x, float[1] w_a) => (float[67109000] y) <int64[1] n = {67109000}> {"
      " e = Expand(w_a, n)\n y = Add(e, x) }");
  const passes::Report report = run_pass(large, "fold");
  EXPECT_EQ(operators(large), "Expand Add");
  ASSERT_EQ(report.remarks.size(), 1u);
  EXPECT_TRUE(report.remarks[0].refused);
}

// Common subexpressions -------------------------------------------------------------------------------------

TEST(CommonSubexpressions, NodesAndConstants) {
  ir::Graph graph = parse(
      "g (float[2] x) => (float[2] y) <float[2] a = {1.0,2.0}, float[2] b = {1.0,2.0}> { s = Add(x, a)\n"
      " t = Add(x, b)\n u = Exp(s)\n v = Exp(t)\n y = Mul(u, v) }");
  const ir::Graph before = graph;
  run_pass(graph, "cse");
  EXPECT_EQ(operators(graph), "Add Exp Mul");
  expect_same(before, graph, 0);
}

TEST(CommonSubexpressions, AttributesAndTypesCount) {
  ir::Graph graph = parse(
      "g (float[2] x) => (float[2] y) <float a = {0.0}, float b = {-0.0}, float[1] c = {0.0}> { s = "
      "LeakyRelu<alpha = 0.1>(x)\n"
      " t = LeakyRelu<alpha = 0.2>(x)\n u = Add(s, a)\n v = Add(s, b)\n w = Add(s, c)\n y = Sum(t, u, v, w) "
      "}");
  const std::string before = operators(graph);
  run_pass(graph, "cse");
  EXPECT_EQ(operators(graph), before);
}

TEST(CommonSubexpressions, OperandsThatCommuteToTheBit) {
  ir::Graph graph = parse(
      "g (float[2] a, float[2] b, int64[2] i, int64[2] j) => (float[2] y, int64[2] z) { s = Add(a, b)\n"
      " t = Add(b, a)\n u = Mul(s, a)\n v = Mul(a, t)\n y = Sub(u, v)\n k = Max(i, j)\n l = Max(j, i)\n"
      " z = Sub(k, l) }");
  const ir::Graph before = graph;
  run_pass(graph, "cse");
  EXPECT_EQ(operators(graph), "Add Mul Sub Max Sub");
  expect_same(before, graph, 0);
}

TEST(CommonSubexpressions, OperandsThatDoNotCommute) {
  // Differences; which zero max(0, -0) is; three operands, whose sum is rounded in their order.
  ir::Graph graph = parse(
      "g (float[2] a, float[2] b, float[2] c) => (float[2] y) { s = Sub(a, b)\n t = Sub(b, a)\n"
      " u = Max(a, b)\n v = Max(b, a)\n p = Sum(a, b, c)\n q = Sum(c, a, b)\n y = Sum(s, t, u, v, p, q) }");
  const std::string before = operators(graph);
  run_pass(graph, "cse");
  EXPECT_EQ(operators(graph), before);
}

TEST(CommonSubexpressions, OutputsMayBecomeOneValue) {
  ir::Graph graph = parse("g (float[2] x) => (float[2] y, float[2] z) { y = Exp(x)\n z = Exp(x) }");
  const ir::Graph before = graph;
  run_pass(graph, "cse");
  EXPECT_EQ(graph.outputs()[0], graph.outputs()[1]);
  expect_same(before, graph, 0);
}

// Ifs -------------------------------------------------------------------------------------------------------

const char kIf[] =
    "g (bool c, float[2] x) => (float[2] y) <float[2] k = {3.0,4.0}> { t = Neg(k)\n y = If (c) <"
    " then_branch = a () => (float[2] p) { p = Mul(x, k) },"
    " else_branch = b () => (float[2] q) { r = Add(x, t)\n q = Exp(r) }> }";

TEST(Captures, ConstantsMoveIntoTheBranches) {
  ir::Graph graph = parse(kIf);
  const ir::Graph before = graph;
  prepare(graph);
  ASSERT_EQ(operators(graph), "If");
  const ir::Node& node = graph.node(graph.nodes()[0]);
  EXPECT_EQ(node.operands.size(), 2u) << "the condition and x";
  EXPECT_EQ(node.subgraphs[0].inputs().size(), 1u);
  expect_same(before, graph, 0);
}

/// An If whose branches compute these nodes of x.
std::string branches(const std::string& then_nodes, const std::string& else_nodes) {
  return "g (bool c, float[2] x) => (float[2] y) { y = If (c) <then_branch = a () => (float[2] p) { " +
         then_nodes + " }, else_branch = b () => (float[2] q) { " + else_nodes + " }> }";
}

TEST(Branches, ThatComputeTheSameNeedNoIf) {
  const auto left = [](const std::string& text) {
    ir::Graph graph = parse(text);
    const ir::Graph before = graph;
    run_pass(graph, "branches");
    expect_same(before, graph, 0);
    return operators(graph);
  };
  EXPECT_EQ(left(branches("e = Neg(x) p = Mul(e, x)", "f = Neg(x) q = Mul(f, x)")), "Neg Mul");
  EXPECT_EQ(left(branches("e = Neg(x) p = Mul(e, x)", "f = Neg(x) q = Mul(f, f)")), "If");
  EXPECT_EQ(left(branches("e = Neg(x) p = Mul(e, x)", "f = Abs(x) q = Mul(f, x)")), "If");
  EXPECT_EQ(left(branches("p = LeakyRelu<alpha = 0.1>(x)", "q = LeakyRelu<alpha = 0.2>(x)")), "If");
  const auto added = [](const std::string& k) {
    return "k = Constant<value_float = " + k + ">() p = Add(x, k)";
  };
  EXPECT_EQ(left(branches(added("1.5"), std::regex_replace(added("1.5"), std::regex("p ="), "q ="))), "Add");
  EXPECT_EQ(left(branches(added("1.5"), std::regex_replace(added("2.5"), std::regex("p ="), "q ="))), "If");
}

TEST(Captures, NestedIfsWithKnownConditionsDisappear) {
  // The inner condition is known only once the outer branch is inlined and folded.
  ir::Graph graph = parse(
      "g (float[2] x) => (float[2] y) <bool yes = {1}, int64 rate = {16000}, int64 want = {8000}> {"
      " no = Not(yes)\n y = If (yes) <"
      " then_branch = a () => (float[2] p) { e = Equal(rate, want)\n p = If (e) <"
      "   then_branch = d () => (float[2] r) { r = Exp(x) },"
      "   else_branch = f () => (float[2] s) { s = Neg(x) }> },"
      " else_branch = b () => (float[2] q) { q = Abs(x) }> }");
  const ir::Graph before = graph;
  prepare(graph);
  EXPECT_EQ(operators(graph), "Neg");
  expect_same(before, graph, 0);
}

TEST(Captures, RulesWorkInsideBranches) {
  ir::Graph graph = parse(
      "g (bool c, float[2] x) => (float[2] y) <float one = {1.0}> { y = If (c) <"
      " then_branch = a () => (float[2] p) { m = Mul(x, one)\n p = Neg(m) },"
      " else_branch = b () => (float[2] q) { q = Mul(x, one) }> }");
  prepare(graph);
  const ir::Graph before = graph;
  run_pass(graph, "rules");
  const ir::Node& node = graph.node(graph.nodes()[0]);
  EXPECT_EQ(operators(node.subgraphs[0]), "Neg");
  EXPECT_EQ(operators(node.subgraphs[1]), "") << "the output is the captured value itself";
  expect_same(before, graph, 0);
}

// 16-bit floats ---------------------------------------------------------------------------------------------

TEST(Half, ContractsInFloat) {
  ir::Graph graph = parse(
      "g (float16[1,2,5] x, float16[3,2,2] w_w, float16[3] w_b) => (float16[1,3,4] y) { y = Conv(x, w_w, "
      "w_b) }");
  const ir::Graph before = graph;
  prepare(graph);
  EXPECT_EQ(operators(graph), "Cast Conv Cast");
  expect_same(before, graph, 1e-3);
}

TEST(Half, LeavesElementwiseOperatorsAndWiderTypes) {
  const auto after = [](const std::string& text) {
    ir::Graph graph = parse(text);
    prepare(graph);
    return operators(graph);
  };
  EXPECT_EQ(after("g (float16[2] x) => (float16[2] y) { y = Exp(x) }"), "Exp");
  EXPECT_EQ(after("g (float16[2,2] x, float16[2] v) => (float16[2] y) { y = MatMul(x, v) }"),
            "Reshape Cast Cast MatMul Cast Reshape");
  EXPECT_EQ(after("g (double[2,2] x) => (double[2,2] y) { y = MatMul(x, x) }"), "MatMul");
}

// Traps -----------------------------------------------------------------------------------------------------

/// Everything before forms, at the default tier.
void expect_survives(const std::string& text, int opset = 20) {
  SCOPED_TRACE(text);
  ir::Graph graph = parse(text, opset);
  const ir::Graph before = graph;
  std::vector<passes::Pass> table;
  for (const passes::Pass& pass : passes::pipeline()) {
    if (pass.loop != 0) table.push_back(pass);
  }
  passes::run_passes(graph, table, {});
  expect_same(before, graph, 2e-5);
}

TEST(Traps, OutputsThatAreInputsConstantsOrTwiceTheSame) {
  expect_survives("g (float[2] x) => (float[2] y) { y = Identity(x) }");
  expect_survives("g (float[2] x) => (float[2] y, float[2] z) { y = Identity(x)\n z = Identity(x) }");
  expect_survives("g (float[2] x) => (float[2] y) <float[2] a = {1.0, 2.0}> { y = Neg(a) }");
  expect_survives("g (float[2] x) => (float[2] y, float[2] z) { z = Exp(x)\n y = Identity(z) }");
  expect_survives("g (float[2] x) => (float[2] y, bool[2] m) { y, m = Dropout(x) }");
}

TEST(Traps, NothingAndScalars) {
  expect_survives("g (float[0,3] x, float[3] w_c) => (float[0,3] y) { s = Mul(x, w_c)\n y = Add(s, w_c) }");
  expect_survives(
      "g (float[0,3] x, float[3,4] w_w, float[4] w_c) => (float[0,4] y) { s = MatMul(x, w_w)\n y = Mul(s, "
      "w_c) }");
  expect_survives(
      "g (float[2,0] x, float[0,4] w_w, float[4] w_c) => (float[2,4] y) { s = MatMul(x, w_w)\n y = Mul(s, "
      "w_c) }");
  expect_survives(
      "g (float x) => (float y) <float one = {1.0}, float two = {2.0}> { s = Mul(x, one)\n y = Pow(s, two) "
      "}");
  expect_survives("g (float[0] x, float[2] z) => (float[2] y) { c = Concat<axis = 0>(x, z)\n y = Relu(c) }");
}

TEST(Traps, OtherElementTypes) {
  for (const std::string type : {"float16", "bfloat16", "double"}) {
    expect_survives("g (" + type + "[2,3] x, " + type + "[3,4] w_w, " + type + "[4] w_c) => (" + type +
                    "[2,4] y) {"
                    " s = MatMul(x, w_w)\n t = Mul(s, w_c)\n y = Relu(t) }");
  }
  for (const std::string type : {"int8", "uint8", "int32", "int64", "uint64"}) {
    expect_survives("g (" + type + "[2,3] x, " + type + "[3] w_a, " + type + "[3] w_b) => (" + type +
                    "[2,3] y) {"
                    " s = Sub(x, w_a)\n t = Add(s, w_b)\n u = Max(t, w_a)\n y = Mul(u, w_b) }");
  }
}

TEST(Traps, NodesOutOfOrderAndOldOpsets) {
  expect_survives(
      "g (float[2,3] x) => (float[2,3] y) <float two = {2.0}> { y = Relu(b)\n b = Mul(a, two)\n a = Neg(x) "
      "}");
  expect_survives(
      "g (float[2,3] x) => (float[2,1] y) { m = ReduceMean<axes = [1]>(x)\n y = Clip<min = 0.0>(m) }", 10);
}

}  // namespace
}  // namespace gcompile::testing
