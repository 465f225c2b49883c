// Every pass judged by itself: sound pipelines pass, and a graph that something has changed is told with the
// pass behind which it was seen.

#include "driver/verify/verify_passes.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ir/sizes/sizes.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

using passes::Tier;
using ::testing::HasSubstr;

const char* const kModels[] = {
    // Rules, folding and fusion.
    "m (float[2, 3, 8, 8] x, float[4, 3, 3, 3] w_c, float[4] w_b, float[4] w_s) => (y) {\n"
    "  c = Conv <pads = [1, 1, 1, 1]> (x, w_c, w_b)\n  n = BatchNormalization (c, w_s, w_b, w_b, w_v)\n"
    "  r = Relu (n)\n  p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (r)\n"
    "  y = GlobalAveragePool (p)\n}",
    // Views, layout and attention.
    "m (float[1, 6, 8] x, float[8, 8] w_q, float[8, 8] w_k, float[8, 8] w_v) => (y) {\n"
    "  q = MatMul (x, w_q)\n  k = MatMul (x, w_k)\n  v = MatMul (x, w_v)\n"
    "  t = Transpose <perm = [0, 2, 1]> (k)\n  s = MatMul (q, t)\n  p = Softmax (s)\n  y = MatMul (p, v)\n}",
    // Recurrence, states and slices.
    "m (float[5, 2, 3] x, float[1, 16, 3] w_i, float[1, 16, 4] w_r) => (y, h) {\n"
    "  y, h = LSTM <hidden_size = 4> (x, w_i, w_r)\n}",
    // Decisions.
    "m (float[3, 7] x) => (i, b) <float two = {2}> {\n"
    "  i = ArgMax <axis = 1> (x)\n  d = Mul (x, two)\n  b = Greater (d, x)\n}",
    // Data movement.
    "m (float[4, 6] x) => (y) <int64[4] pads = {0, 1, 2, 0}> {\n"
    "  a, b = Split <axis = 1, num_outputs = 2> (x)\n  c = Concat <axis = 0> (b, a)\n"
    "  d = Pad <mode = \"reflect\"> (c, pads)\n  y = Transpose (d)\n}",
};

ir::Graph model(int number) {
  std::string text = kModels[number];
  if (number == 0) text.replace(text.find(", float[4] w_s"), 14, ", float[4] w_s, float[4] w_v");
  ir::Graph graph = parse(text);
  if (number != 0) return graph;
  // A variance is not negative.
  for (const ir::ValueId id : graph.values()) {
    const ir::Tensor* constant = graph.value(id).name == "w_v" ? graph.constant(id) : nullptr;
    if (!constant) continue;
    ir::Tensor positive = *constant;
    for (std::int64_t i = 0; i < positive.count(); ++i)
      positive.set(i, ir::Scalar::of_real(ir::ElementType::kFloat32, std::abs(positive.real_at(i))));
    graph.replace_uses(id, graph.add_constant(positive, "variance"));
  }
  return graph;
}

TEST(VerifyPasses, SoundPassesAreSoundInBothTiers) {
  for (int number = 0; number < static_cast<int>(std::size(kModels)); ++number) {
    for (const Tier tier : {Tier::kExact, Tier::kReassociate}) {
      ir::Graph graph = model(number);
      passes::Options options;
      options.tier = tier;
      const PassCheck check = check_passes(graph, options, 1);
      EXPECT_GT(check.passes, 1) << number;
      EXPECT_GT(check.compared, 3) << number;
      EXPECT_EQ(check.refused, 0) << number;
      for (const PassDifference& difference : check.differences)
        ADD_FAILURE() << number << ": " << to_string(difference);
    }
  }
}

/// The graph with a factor behind its first output, as a pass that errs leaves it.
ir::Graph scaled(const ir::Graph& graph, double factor) {
  ir::Graph out = graph;
  const ir::ValueId y = out.outputs()[0];
  ir::Tensor number({ir::ElementType::kFloat32, {}});
  number.set(0, ir::Scalar::of_real(ir::ElementType::kFloat32, factor));
  const ir::NodeId id =
      out.add_node(ir::operator_named("Mul"), {y, out.add_constant(number)}, {}, 1, "error");
  ir::infer_node(out, id);
  out.set_output(0, out.node(id).results[0]);
  return out;
}

/// What is told where the pass of that name leaves the graph scaled.
std::vector<PassDifference> told(const std::string& pass, double factor, Tier allowed) {
  const ir::Graph graph = model(1);
  PassChecker checker(graph, 1);
  checker.after("cse", 10, graph, allowed);
  checker.after(pass, 11, scaled(graph, factor), allowed);
  checker.after("dce-final", 12, scaled(graph, factor), allowed);
  return checker.result().differences;
}

TEST(VerifyPasses, OneBitIsTooMuchForAnExactPass) {
  const double last_bit = 1 + 0x1p-23;
  for (const char* pass : {"fold", "layout", "fuse", "dce-final"}) {
    const auto differences = told(pass, last_bit, Tier::kReassociate);
    ASSERT_FALSE(differences.empty()) << pass;
    for (const PassDifference& each : differences) EXPECT_EQ(each.pass, pass);
    EXPECT_THAT(to_string(differences[0]), HasSubstr("changes the output 'y' of random inputs"));
  }
  EXPECT_TRUE(told("rules", last_bit, Tier::kReassociate).empty());
  EXPECT_FALSE(told("rules", last_bit, Tier::kExact).empty());
}

TEST(VerifyPasses, ReassociationIsRoundingAndNoMore) {
  EXPECT_TRUE(told("rules", 1 + 0x1p-22, Tier::kReassociate).empty());
  EXPECT_FALSE(told("rules", 1 + 1e-5, Tier::kReassociate).empty());  // a tenth of the tolerance
  EXPECT_FALSE(told("forms", 1 + 1e-5, Tier::kExact).empty());
}

/// What differs only at the edges of a type is seen there: x and x + 0 for -0, x * 0 and 0 for infinities.
TEST(VerifyPasses, SpecialAndExtremeInputsAreTried) {
  const auto differences = [](const char* before, const char* behind) {
    const ir::Graph a = parse(before), b = parse(behind);
    PassChecker checker(a, 1);
    checker.after("fold", 1, b, Tier::kExact);
    std::string kinds;
    for (const PassDifference& each : checker.result().differences) kinds += each.inputs + " ";
    return kinds;
  };
  const std::string head =
      "m (float[64] x) => (y) <float zero = {0}, float large = {1e30}, float small = {1e-30}> { ";
  const auto text = [&](const std::string& body) { return head + body + " }"; };
  EXPECT_EQ(differences(text("y = Add (x, zero)").c_str(), text("y = Identity (x)").c_str()), "special ");
  EXPECT_THAT(differences(text("y = Mul (x, zero)").c_str(), text("a = Sub (x, x) y = Abs (a)").c_str()),
              HasSubstr("random"));
  EXPECT_THAT(differences(text("a = Mul (x, large) y = Mul (a, small)").c_str(),
                          text("a = Mul (x, small) y = Mul (a, large)").c_str()),
              HasSubstr("extreme"));
}

/// A square that overflows makes 0 of its element, and the kernel that scales first does not:
/// in a branch too.
TEST(VerifyPasses, OverflowInABranchIsNoDifference) {
  const std::string spelled =
      "q = Mul (x, x) m = ReduceMean <keepdims = 1> (q, last) e = Add (m, half) r = Sqrt (e) y = Div (x, r)";
  const std::string scaled = "s = Mul (x, tiny) y = Div (s, s)";
  const std::string head =
      "m (float[64,8] x, bool c) => (y) <int64[1] last = {-1}, float half = {0.5}, float tiny = "
      "{1e-30}> { ";
  const auto branch = [&](const std::string& body) {
    return parse(head + "y = If (c) <then_branch = t () => (float[64,8] y) { " + body +
                 " }, else_branch = f () => (float[64,8] y) { y = Identity (x) }> }");
  };
  PassChecker checker(branch(spelled), 1);
  checker.after("rules", 1, branch(scaled), Tier::kReassociate);
  for (const PassDifference& each : checker.result().differences)
    EXPECT_NE(each.inputs, "extreme") << each.text;
}

TEST(VerifyPasses, InputsAreOfTheirKindAndTheSameForTheSameSeed) {
  const ir::Graph graph = parse("m (float16[400] x, double[400] d, int32[9] i) => (x, d, i) { }");
  for (const InputKind kind : {InputKind::kRandom, InputKind::kSpecial, InputKind::kExtreme}) {
    const auto a = inputs_of_kind(graph, kind, 7), b = inputs_of_kind(graph, kind, 7);
    int odd = 0;
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(a[i].identical(b[i]));
    for (std::int64_t i = 0; i < a[0].count(); ++i) odd += std::abs(a[0].real_at(i)) < 1 ? 0 : 1;
    EXPECT_EQ(odd == 0, kind == InputKind::kRandom);
  }
}

/// With `rows` from 1 to 6 and `columns` from 2 to 9.
frontend::ImportedModel open_model(const std::string& graph_text) {
  frontend::ImportOptions options;
  options.bindings.bounds = {{{"rows"}, {1, 6}}, {{"columns"}, {2, 9}}};
  Diagnostics diagnostics;
  return frontend::import_model_text("<ir_version: 8, opset_import: [\"\" : 20]>\n" + graph_text, options,
                                     diagnostics);
}

TEST(VerifyPasses, OpenSizesAreJudgedAtSeveral) {
  for (const char* text :
       {"m (float[rows, columns] x, float[columns, rows] z) => (y, p) <int64[1] last = {1}> {\n"
        "  t = Transpose (x)\n  c = Concat <axis = 1> (t, z)\n  y = Softmax (c)\n  r = Relu (x)\n"
        "  s = ReduceMean (r, last)\n  p = Sub (x, s)\n}",
        "m (float[rows, 3, columns] x) => (y) <int64[4] shape = {0, 0, 1, -1}, float[2, 3, 1, 1] w = "
        "{1, 2, 3, 4, 5, 6}> {\n  r = Reshape (x, shape)\n  y = Conv (r, w)\n}",
        "m (float[rows, columns] x) => (y) {\n  s = Shape (x)\n  y = ConstantOfShape (s)\n}"}) {
    frontend::ImportedModel model = open_model(text);
    const ir::SizesScope scope(model.sizes.get());
    const PassCheck check = check_passes(model.graph, {}, 1);
    EXPECT_GE(check.sizes, 5) << text;
    EXPECT_GE(check.compared, check.passes * check.sizes) << text;
    EXPECT_EQ(check.refused, 0) << text;
    for (const PassDifference& difference : check.differences)
      ADD_FAILURE() << text << ": " << to_string(difference);
  }
}

TEST(VerifyPasses, WhatDiffersAtSomeSizesAloneIsToldWithThem) {
  const std::string head =
      "m (float[rows, columns] x) => (y) <int64[1] zero = {0}, int64[1] six = {6}, int64[1] one = {1}> {\n";
  const frontend::ImportedModel before = open_model(head + "y = Identity (x) }");
  const frontend::ImportedModel behind =
      open_model(head +
                 "s = Shape (x)\n r = Gather (s, zero)\n d = Div (r, six)\n f = Add (d, one)\n"
                 "c = Cast <to = 1> (f)\n y = Mul (x, c)\n}");
  const ir::SizesScope scope(before.sizes.get());
  PassChecker checker(before.graph, 1);
  checker.after("fold", 3, before.graph, Tier::kExact);
  EXPECT_TRUE(checker.result().differences.empty());
  checker.after("fuse", 4, behind.graph, Tier::kExact);
  ASSERT_FALSE(checker.result().differences.empty());
  for (const PassDifference& each : checker.result().differences)
    EXPECT_THAT(each.sizes, HasSubstr("rows=6"));
}

TEST(VerifyPasses, WhereNoSizesAreAllowedItSaysSo) {
  ir::Sizes sizes;
  const ir::SizesScope scope(&sizes);
  sizes.add_symbol({"rows", {1, 4}, 1});
  sizes.add_fact(ir::Dim::symbol(0), {9, 9});
  EXPECT_THROW(PassChecker(ir::Graph(), 1), CompileError);
}

}  // namespace
}  // namespace gcompile::testing
