// Attention recognised between two products: every spelling of scale and mask, and each reason not to.

#include <fmt/format.h>

#include "ir/ops/fused_attention.h"
#include "tests/unit/passes/pass_fixture.h"

namespace gcompile::testing {
namespace {

const char kOperands[] = "float[2,3,5,8] q, float[2,3,7,8] k, float[2,3,7,6] v";

/// y = Softmax-product of `scores`, which reads s = Q K'.
std::string model(const std::string& steps, const std::string& more_inputs = "",
                  const std::string& initialisers = "float c = {0.25}") {
  return "g (" + std::string(kOperands) + more_inputs + ") => (float[2,3,5,6] y) <" + initialisers +
         "> { kt = Transpose<perm = [0,1,3,2]>(k)\n s = MatMul(q, kt)\n" + steps + "\n y = MatMul(p, v) }";
}

/// Triangle of 5 x 7 whose row i keeps i + 3 columns, but for element `other` in the order of rows.
std::string triangle(const std::string& kept, const std::string& left_out, int other = -1) {
  std::string text;
  for (int i = 0; i < 5; ++i) {
    for (int j = 0; j < 7; ++j) {
      const bool is_kept = (j <= i + 2) != (i * 7 + j == other);
      text += (text.empty() ? "" : ",") + (is_kept ? kept : left_out);
    }
  }
  return "{" + text + "}";
}

struct Outcome {
  ir::Graph graph;
  passes::Report report;
};

Outcome run(const std::string& text) {
  ir::Graph graph = parse(text);
  prepare(graph);
  const ir::Graph before = graph;
  Outcome out;
  out.report = run_pass(graph, "attention");
  run_pass(graph, "dce-again");
  expect_same(before, graph, 2e-5);
  out.graph = std::move(graph);
  return out;
}

const ir::Node& expect_fuses(Outcome& out) {
  EXPECT_EQ(out.report.rule_counts["attention"], 1) << ir::print(out.graph);
  for (const ir::NodeId id : out.graph.nodes()) {
    EXPECT_NE(out.graph.node(id).op->name, "Softmax");
    if (out.graph.node(id).op->name == "FusedAttention") return out.graph.node(id);
  }
  throw std::runtime_error("no attention:\n" + ir::print(out.graph));
}

void expect_unfused(const std::string& text, const std::string& reason) {
  SCOPED_TRACE(text);
  const Outcome out = run(text);
  EXPECT_TRUE(out.report.rule_counts.empty());
  if (reason.empty()) {
    EXPECT_TRUE(out.report.remarks.empty()) << out.report.remarks[0].text;
    return;
  }
  ASSERT_FALSE(out.report.remarks.empty()) << "not seen as attention at all";
  EXPECT_NE(out.report.remarks[0].text.find(reason), std::string::npos) << out.report.remarks[0].text;
}

struct Wanted {
  float scale = 1;
  bool has_mask = false, causal = false;
  std::int64_t past = 0;
  float fill = -std::numeric_limits<float>::infinity();
};

void expect_attention(const std::string& text, const Wanted& wanted) {
  SCOPED_TRACE(text);
  Outcome out = run(text);
  const ir::Node& node = expect_fuses(out);
  EXPECT_FLOAT_EQ(node.attributes.float_of("scale"), wanted.scale);
  EXPECT_EQ(node.operands.size(), wanted.has_mask ? 4u : 3u);
  EXPECT_EQ(node.attributes.flag("causal"), wanted.causal);
  EXPECT_EQ(node.attributes.int_of("past"), wanted.past);
  EXPECT_EQ(node.attributes.float_of("fill"), wanted.fill);
}

TEST(Attention, Scales) {
  expect_attention(model("p = Softmax(s)"), {1});
  expect_attention(model("t = Mul(s, c)\n p = Softmax(t)"), {0.25f});
  expect_attention(model("t = Mul(c, s)\n p = Softmax(t)"), {0.25f});
  expect_attention(model("t = Div(s, c)\n p = Softmax<axis = 3>(t)"), {4});
}

TEST(Attention, ScalesOfOperands) {
  const std::string head = "g (" + std::string(kOperands) + ") => (float[2,3,5,6] y) <float c = {0.5}> {";
  const std::string tail = "\n p = Softmax(s)\n y = MatMul(p, v) }";
  expect_attention(head +
                       "r = Mul(q, c)\n kt = Transpose<perm = [0,1,3,2]>(k)\n d = Div(kt, c)\n"
                       " s = MatMul(r, d)" +
                       tail,
                   {1});
  expect_attention(head + "r = Mul(q, c)\n kt = Transpose<perm = [0,1,3,2]>(k)\n s = MatMul(r, kt)" + tail,
                   {0.5f});
}

TEST(Attention, AddedMasks) {
  expect_attention(model("t = Mul(s, c)\n u = Add(t, m)\n p = Softmax(u)", ", float[2,1,1,7] m"),
                   {0.25f, true});
  expect_attention(model("u = Add(m, s)\n p = Softmax(u)", ", float[5,1] m"), {1, true});
  // The mask is scaled with the scores.
  expect_attention(model("u = Add(s, m)\n t = Mul(u, c)\n p = Softmax(t)", ", float[5,7] m"), {0.25f, true});
  expect_attention(model("u = Add(s, m)\n t = Add(u, n)\n p = Softmax(t)", ", float[5,7] m, float[3,5,1] n"),
                   {1, true});
}

TEST(Attention, MasksThatKeep) {
  const std::string constants = "float low = {-1000.0}, float c = {0.25}";
  expect_attention(model("t = Where(m, s, low)\n p = Softmax(t)", ", bool[2,1,1,7] m", constants),
                   {1, true, false, 0, -1000});
  expect_attention(model("t = Where(m, low, s)\n u = Mul(t, c)\n p = Softmax(u)", ", bool[5,7] m", constants),
                   {0.25f, true, false, 0, -250});
  expect_attention(model("t = Where(m, s, low)\n u = Where(n, t, low)\n p = Softmax(u)",
                         ", bool[5,7] m, bool[7] n", constants),
                   {1, true, false, 0, -1000});
}

TEST(Attention, CausalMasks) {
  const std::string keeps = "float low = {-3e38}, bool[5,7] m = " + triangle("1", "0");
  expect_attention(model("t = Where(m, s, low)\n p = Softmax(t)", "", keeps), {1, false, true, 2});
  const std::string leaves_out = "float low = {-3e38}, bool[1,1,5,7] m = " + triangle("0", "1");
  expect_attention(model("t = Where(m, low, s)\n p = Softmax(t)", "", leaves_out), {1, false, true, 2});
  const std::string added = "float[5,7] m = " + triangle("0.0", "-3e38");
  expect_attention(model("t = Add(s, m)\n p = Softmax(t)", "", added), {1, false, true, 2});
  // Not hidden enough, or beside another mask: kept as it is.
  const std::string weak = "float[5,7] m = " + triangle("0.0", "-10.0");
  expect_attention(model("t = Add(s, m)\n p = Softmax(t)", "", weak), {1, true});
  expect_attention(
      model("t = Where(m, s, low)\n u = Add(t, n)\n p = Softmax(u)", ", float[2,1,1,7] n", keeps), {1, true});
}

// A triangle with one element more or less is no triangle, wherever that element is.
TEST(Attention, MasksThatKeepAlmostWhatCausalOnesDo) {
  const Wanted masked = {1, true, false, 0, -3e38f};
  for (int other = 0; other < 5 * 7; ++other) {
    const std::string low = "float low = {-3e38}, bool[5,7] m = ";
    expect_attention(model("t = Where(m, s, low)\n p = Softmax(t)", "", low + triangle("1", "0", other)),
                     masked);
    expect_attention(model("t = Where(m, low, s)\n p = Softmax(t)", "", low + triangle("0", "1", other)),
                     masked);
    const std::string added = "float[5,7] m = " + triangle("0.0", "-3e38", other);
    expect_attention(model("t = Add(s, m)\n p = Softmax(t)", "", added), {1, true});
  }
}

TEST(Attention, MasksThatDoNotJoin) {
  const std::string constants = "float low = {-1000.0}, float other = {-2000.0}, float minus = {-1.0}";
  const std::string masks = ", bool[5,7] m, bool[7] n";
  expect_unfused(model("t = Where(m, s, low)\n u = Where(n, t, other)\n p = Softmax(u)", masks, constants),
                 "different numbers");
  expect_unfused(model("t = Where(m, s, low)\n u = Add(t, a)\n w = Where(n, u, low)\n p = Softmax(w)",
                       masks + ", float[7] a", constants),
                 "added to one that does not hide");
  expect_unfused(
      model("t = Add(s, a)\n u = Where(m, t, low)\n p = Softmax(u)", masks + ", float[7] a", constants),
      "does not hide");
  expect_unfused(model("t = Where(m, s, low)\n u = Mul(t, minus)\n p = Softmax(u)", masks, constants),
                 "no positive number");
}

// As GPT-2 is exported: where the second mask hides what the first one keeps, the first one's number shows.
TEST(Attention, AddedBehindKept) {
  const std::string inputs = ", bool[5,7] m, float[2,1,1,7] a";
  Outcome out =
      run(model("t = Where(m, s, low)\n u = Add(t, a)\n v2 = Mul(u, c)\n w = Add(v2, a)\n p = Softmax(w)",
                inputs, "float low = {-2.0}, float c = {0.5}"));
  const ir::Node& node = expect_fuses(out);
  EXPECT_EQ(node.operands.size(), 5u);
  EXPECT_EQ(node.attributes.float_of("scale"), 0.5f);
  EXPECT_EQ(node.attributes.float_of("fill"), -1.0f);
}

TEST(Attention, Matrices) {
  expect_attention(
      "g (float[4,8] q, float[8,5] k, float[5,3] v) => (float[4,3] y) {"
      " s = MatMul(q, k)\n p = Softmax(s)\n y = MatMul(p, v) }",
      {1});
  expect_attention(
      "g (float[6,4,8] q, float[6,8,5] k, float[6,5,3] v, float[2,1,1,5] m) => (float[6,4,3] y)"
      " <int64[4] split = {2,3,4,5}, int64[3] joined = {6,4,5}> {"
      " s = MatMul(q, k)\n t = Reshape(s, split)\n u = Add(t, m)\n w = Reshape(u, joined)\n"
      " p = Softmax(w)\n y = MatMul(p, v) }",
      {1, true});
}

/// Keys and values of two heads, each repeated for two heads of queries: read once, as they are.
TEST(Attention, RepeatedHeads) {
  const auto text = [](const char* axis) {
    const std::string at = axis, wide = "2, 2, 2, 7, 6";
    const auto repeated = [&](const std::string& x) {
      return fmt::format(
          "{0}u = Unsqueeze({0}, axis)\n {0}e = Expand({0}u, wide)\n {0}r = Reshape({0}e, joined)\n ", x);
    };
    return "g (float[2,4,5,6] q, float[2,2,7,6] k, float[2,2,7,6] v) => (float[2,4,5,6] y) <int64[1] axis = "
           "{" +
           at + "}, int64[5] wide = {" + wide + "}, int64[4] joined = {2, 4, 7, 6}> {" + repeated("k") +
           repeated("v") +
           "kt = Transpose<perm = [0,1,3,2]>(kr)\n s = MatMul(q, kt)\n p = Softmax(s)\n y = MatMul(p, vr) }";
  };
  for (const auto& [axis, heads] : {std::pair("2", 2), {"1", 4}}) {
    Outcome out = run(text(axis));
    const ir::Node& node = expect_fuses(out);
    for (const std::size_t i : {1u, 2u})
      EXPECT_EQ(out.graph.value(node.operands[i]).type.shape[1], heads) << axis;
  }
}

TEST(Attention, SharedKeyHeads) {
  // Queries of four heads as rows of two: what Attention of opset 23 becomes.
  ir::Graph graph = parse(
      "g (float[2,4,3,8] q, float[2,2,5,8] k, float[2,2,5,6] v, bool[3,5] m) => (float[2,4,3,6] y) {"
      " y = Attention<is_causal = 1>(q, k, v, m) }",
      23);
  prepare(graph);
  const ir::Graph before = graph;
  passes::Report report = run_pass(graph, "attention");
  EXPECT_EQ(report.rule_counts["attention"], 1) << ir::print(graph);
  run_pass(graph, "dce-again");
  expect_same(before, graph, 2e-5);
  for (const ir::NodeId id : graph.nodes()) {
    if (graph.node(id).op->name != "FusedAttention") continue;
    const auto shape = ir::attention_work(ir::NodeView(graph, id));
    EXPECT_EQ(shape.group, 2);
    EXPECT_TRUE(shape.causal && shape.zero_if_empty && shape.has_mask);
  }
}

TEST(Attention, Refusals) {
  expect_unfused(model("p = Softmax<axis = 2>(s)"), "not over the columns");
  expect_unfused(
      "g (" + std::string(kOperands) +
          ") => (float[2,3,5,6] y, float[2,3,5,7] s) {"
          " kt = Transpose<perm = [0,1,3,2]>(k)\n s = MatMul(q, kt)\n p = Softmax(s)\n y = MatMul(p, v) }",
      "used elsewhere");
  expect_unfused(
      "g (double[4,8] q, double[8,5] k, double[5,3] v) => (double[4,3] y) {"
      " s = MatMul(q, k)\n p = Softmax(s)\n y = MatMul(p, v) }",
      "float64");
  expect_unfused(
      "g (float[2,4,8] q, float[8,5] k, float[5,3] v) => (float[2,4,3] y) {"
      " s = MatMul(q, k)\n p = Softmax(s)\n y = MatMul(p, v) }",
      "broadcast over heads");
  // The weights are an output, or something else stands between.
  expect_unfused(
      "g (" + std::string(kOperands) +
          ") => (float[2,3,5,6] y, float[2,3,5,7] p) {"
          " kt = Transpose<perm = [0,1,3,2]>(k)\n s = MatMul(q, kt)\n p = Softmax(s)\n y = MatMul(p, v) }",
      "");
  expect_unfused(model("t = Tanh(s)\n p = Softmax(t)"), "");
}

TEST(Attention, StaysApartWhereNoKernelTakesIt) {
  struct Prices final : ir::KernelPrices {
    ir::Price price(const ir::Problem& problem) const override {
      return {{}, problem.shape(0).back() > 7 ? "heads of more than 7 elements" : ""};
    }
    std::vector<ir::LayoutOffer> offers(const ir::Problem&) const override { return {}; }
  } prices;
  passes::Options options;
  options.prices = &prices;
  const auto remark = [&](int size) {
    ir::Graph graph =
        parse(fmt::format("g (float[4,{0}] q, float[{0},5] k, float[5,3] v) => (float[4,3] y) {{"
                          " s = MatMul(q, k)\n p = Softmax(s)\n y = MatMul(p, v) }}",
                          size));
    return run_pass(graph, "attention", options).remarks.at(0).text;
  };
  EXPECT_EQ(remark(8), "attention: heads of more than 7 elements");
  EXPECT_EQ(remark(7), "attention");
}

TEST(Attention, TargetsWithoutFiniteFill) {
  /// Kernels that refuse a bool mask with another score than -infinity.
  struct Prices final : ir::KernelPrices {
    ir::Price price(const ir::Problem& problem) const override {
      const auto& work = std::get<ir::AttentionWork>(problem.work);
      return {{}, work.has_mask && std::isfinite(work.fill) ? "finite score" : ""};
    }
    std::vector<ir::LayoutOffer> offers(const ir::Problem&) const override { return {}; }
  } prices;
  passes::Options options;
  options.prices = &prices;
  const auto fuse = [&](const std::string& low) {
    ir::Graph graph =
        parse(model("t = Where(m, s, low)\n p = Softmax(t)", ", bool[5,7] m", "float low = {" + low + "}"));
    const ir::Graph before = graph;
    const passes::Report report = run_pass(graph, "attention", options);
    run_pass(graph, "dce-again");
    expect_same(before, graph, 2e-5);
    return report.rule_counts.empty() ? report.remarks.at(0).text : operators(graph);
  };
  // The mask is added: rows of which nothing is kept still are the mean of V.
  EXPECT_EQ(fuse("-3e38"), "Transpose Where Transpose FusedAttention");
  EXPECT_NE(fuse("-10.0").find("does not hide"), std::string::npos);
  ir::Graph graph = parse(model("t = Where(m, s, low)\n u = Add(t, a)\n p = Softmax(u)",
                                ", bool[5,7] m, float[7] a", "float low = {-1000.0}"));
  EXPECT_NE(run_pass(graph, "attention", options)
                .remarks.at(0)
                .text.find("a mask is added to one that does not hide"),
            std::string::npos);
}

TEST(Attention, ExactTierLeavesIt) {
  ir::Graph graph = parse(model("p = Softmax(s)"));
  passes::Options options;
  options.tier = passes::Tier::kExact;
  EXPECT_TRUE(run_pass(graph, "attention", options).rule_counts.empty());
}

}  // namespace
}  // namespace gcompile::testing
