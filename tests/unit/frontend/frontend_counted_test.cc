// Results of which only data knows how many elements there are: what they and what follows from them are, by the
// evaluator, for data that chooses none, some and all.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/unit/frontend/counted_fixture.h"

namespace gcompile::frontend_test {
namespace {

TEST(Counted, NonZero) {
  const Outcome outcome = model("(float[2,3] x) => (int64[2,n] y)", "y = NonZero(x)");
  EXPECT_NE(outcome.warnings.find("which has room for 6: the output 'y_count' says"), std::string::npos)
      << outcome.warnings;
  EXPECT_EQ(filled(outcome, 0, {floats({2, 3}, {0, 5, 0, 0, -1, 2})}), (Numbers{0, 1, 1, 1, 1, 2}));
  EXPECT_EQ(filled(outcome, 0, {floats({2, 3}, {0, 0, 0, 0, 0, 0})}), (Numbers{}));
  EXPECT_EQ(filled(outcome, 0, {floats({2, 3}, {1, 1, 1, 1, 1, 1})}),
            (Numbers{0, 0, 0, 1, 1, 1, 0, 1, 2, 0, 1, 2}));
}

TEST(Counted, Compress) {
  const Outcome rows = model("(float[4,2] x, bool[4] m) => (float[n,2] y)", "y = Compress<axis = 0>(x, m)");
  const Tensor x = floats({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(filled(rows, 0, {x, mask(kSome)}), (Numbers{2, 3, 6, 7}));
  EXPECT_EQ(filled(rows, 0, {x, mask(kNone)}), (Numbers{}));
  EXPECT_EQ(filled(rows, 0, {x, mask(kAll)}).size(), 8u);
  const Outcome longer = model("(float[2] x, bool[4] m) => (float[n] y)", "y = Compress(x, m)");
  EXPECT_EQ(filled(longer, 0, {floats({2}, {5, 6}), mask(kSome)}), (Numbers{6}));
  const Outcome columns =
      model("(float[2,4] x, bool[3] m) => (float[2,n] y)", "y = Compress<axis = 1>(x, m)");
  EXPECT_EQ(filled(columns, 0, {floats({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}), mask({1, 0, 1})}),
            (Numbers{0, 2, 4, 6}));
}

TEST(Counted, UniqueInBothOrders) {
  const Tensor x = floats({6}, {3, 1, 3, 2, 1, 1});
  const std::string signature = "(float[6] x) => (float[n] y, int64[n] i, int64[6] v, int64[n] c)";
  const Outcome sorted = model(signature, "y, i, v, c = Unique<sorted = 1>(x)");
  EXPECT_EQ(filled(sorted, 0, {x}), (Numbers{1, 2, 3}));
  EXPECT_EQ(filled(sorted, 1, {x}), (Numbers{1, 3, 0}));
  EXPECT_EQ(filled(sorted, 2, {x}), (Numbers{2, 0, 2, 1, 0, 0}));
  EXPECT_EQ(filled(sorted, 3, {x}), (Numbers{3, 1, 2}));
  const Outcome by_place = model(signature, "y, i, v, c = Unique<sorted = 0>(x)");
  EXPECT_EQ(filled(by_place, 0, {x}), (Numbers{3, 1, 2}));
  EXPECT_EQ(filled(by_place, 1, {x}), (Numbers{0, 1, 3}));
  EXPECT_EQ(filled(by_place, 2, {x}), (Numbers{0, 1, 0, 2, 1, 1}));
  EXPECT_EQ(filled(by_place, 3, {x}), (Numbers{2, 3, 1}));
}

TEST(Counted, UniqueRowsAndColumns) {
  const std::string results = ") => (float[n,m] y, int64[n] i, int64[4] v, int64[n] c)";
  const Numbers x = {1, 0, 3, 2, 1, 0, 2, 9};
  const Outcome sorted = model("(float[4,2] x" + results, "y, i, v, c = Unique<axis = 0, sorted = 1>(x)");
  EXPECT_EQ(filled(sorted, 0, {floats({4, 2}, x)}), (Numbers{1, 0, 2, 9, 3, 2}));
  EXPECT_EQ(filled(sorted, 1, {floats({4, 2}, x)}), (Numbers{0, 3, 1}));
  EXPECT_EQ(filled(sorted, 2, {floats({4, 2}, x)}), (Numbers{0, 2, 0, 1}));
  EXPECT_EQ(filled(sorted, 3, {floats({4, 2}, x)}), (Numbers{2, 1, 1}));
  const Outcome columns = model("(float[2,4] x" + results, "y, i, v, c = Unique<axis = -1, sorted = 0>(x)");
  const Tensor turned = floats({2, 4}, {5, 1, 5, 1, 0, 2, 0, 3});
  EXPECT_EQ(filled(columns, 0, {turned}), (Numbers{5, 1, 1, 0, 2, 3}));
  EXPECT_EQ(filled(columns, 1, {turned}), (Numbers{0, 1, 3}));
  EXPECT_EQ(filled(columns, 2, {turned}), (Numbers{0, 1, 0, 2}));
  EXPECT_EQ(filled(columns, 3, {turned}), (Numbers{2, 1, 1}));
}

TEST(Counted, UniqueOfNothing) {
  const Outcome none =
      model("(float[0] x) => (float[n] y, int64[n] i, int64[0] v, int64[n] c)", "y, i, v, c = Unique(x)");
  const Outcome narrow = model("(float[3,0] x) => (float[n,0] y, int64[n] i, int64[3] v, int64[n] c)",
                               "y, i, v, c = Unique<axis = 0>(x)");
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(filled(none, i, {floats({0}, {})}), (Numbers{})) << i;
  EXPECT_EQ(filled(narrow, 1, {floats({3, 0}, {})}), (Numbers{0}));
  EXPECT_EQ(filled(narrow, 2, {floats({3, 0}, {})}), (Numbers{0, 0, 0}));
  EXPECT_EQ(filled(narrow, 3, {floats({3, 0}, {})}), (Numbers{3}));
}

TEST(Counted, TopKOfARun) {
  const Outcome outcome =
      model("(float[2,3] x, int64[1] k) => (float[2,n] y, int64[2,n] i)", "y, i = TopK(x, k)");
  const Tensor x = floats({2, 3}, {1, 3, 2, 6, 5, 4});
  const auto k = [](std::int64_t number) { return ints({number}); };
  EXPECT_EQ(filled(outcome, 0, {x, k(2)}), (Numbers{3, 2, 6, 5}));
  EXPECT_EQ(filled(outcome, 1, {x, k(1)}), (Numbers{1, 0}));
  EXPECT_EQ(filled(outcome, 1, {x, k(0)}), (Numbers{}));
  EXPECT_THROW(ir::evaluate_graph(outcome.graph(), {x, k(4)}), CompileError);
  EXPECT_THROW(ir::evaluate_graph(outcome.graph(), {x, k(-1)}), CompileError);
}

/// Rows 1 and 3, or none, or all, of {0, 1}, {2, 3}, {4, 5}, {6, 7}, and what follows from them.
Outcome rows(const std::string& results, const std::string& body, const std::string& inputs = "") {
  return model("(float[4,2] x, bool[4] m" + inputs + ") => (" + results + ")",
               "r = Compress<axis = 0>(x, m)\n" + body);
}
const Tensor kRows = floats({4, 2}, {0, 1, 2, 3, 4, 5, 6, 7});

TEST(Counted, RowsStayRows) {
  const Outcome outcome = rows("float[n,2] a, float[2,n] b, float[n] c, float[n,3] d",
                               "a = Neg(r)\n"
                               "b = Transpose(a)\n"
                               "two = Constant<value_ints = [-1]>()\n"
                               "c = Reshape(r, two)\n"
                               "d = MatMul(r, w)",
                               ", float[2,3] w");
  const std::vector<Tensor> some = {kRows, mask(kSome), floats({2, 3}, {1, 0, 2, 0, 1, 1})};
  EXPECT_EQ(filled(outcome, 0, some), (Numbers{-2, -3, -6, -7}));
  EXPECT_EQ(filled(outcome, 1, some), (Numbers{-2, -6, -3, -7}));
  EXPECT_EQ(filled(outcome, 2, some), (Numbers{2, 3, 6, 7}));
  EXPECT_EQ(filled(outcome, 3, some), (Numbers{2, 3, 7, 6, 7, 19}));
}

TEST(Counted, WhatIsFoldedDoesNotSeeTheRest) {
  const Outcome outcome = rows("float[2] s, float[2] h, float[2] l, float[2] e, int64[2] a, float[n,2] p",
                               "axes = Constant<value_ints = [0]>()\n"
                               "s = ReduceSum<keepdims = 0>(r, axes)\n"
                               "h = ReduceMax<keepdims = 0, axes = [0]>(r)\n"
                               "l = ReduceMin<keepdims = 0, axes = [0]>(r)\n"
                               "e = ReduceMean<keepdims = 0, axes = [0]>(r)\n"
                               "a = ArgMax<axis = 0, keepdims = 0>(r)\n"
                               "p = Softmax<axis = 0>(r)");
  const std::vector<Tensor> some = {kRows, mask(kSome)};
  EXPECT_EQ(filled(outcome, 0, some), (Numbers{8, 10}));
  EXPECT_EQ(filled(outcome, 1, some), (Numbers{6, 7}));
  EXPECT_EQ(filled(outcome, 2, some), (Numbers{2, 3}));
  EXPECT_EQ(filled(outcome, 3, some), (Numbers{4, 5}));
  EXPECT_EQ(filled(outcome, 4, some), (Numbers{1, 1}));
  const Numbers share = filled(outcome, 5, some);
  ASSERT_EQ(share.size(), 4u);
  EXPECT_NEAR(share[0] + share[2], 1, 1e-6);
  EXPECT_EQ(filled(outcome, 0, {kRows, mask(kNone)}), (Numbers{0, 0}));
  EXPECT_EQ(filled(outcome, 3, {kRows, mask(kNone)}), (Numbers{0, 0}));
}

/// Loops do not walk an axis of one element, and a shape of ones has it in several places.
TEST(Counted, RoomForOne) {
  const Outcome outcome =
      model("(float[1,4] x, bool[1] m) => (float[n,4] a, int32[n,4] b, float[4,n] c, float[n] d)",
            "r = Compress<axis = 0>(x, m)\n"
            "a = Relu(r)\n"
            "b = Cast<to = 6>(a)\n"
            "c = Transpose(a)\n"
            "all = Constant<value_ints = [-1]>()\n"
            "d = Reshape(a, all)");
  const Tensor x = floats({1, 4}, {-1, 2, 3, 4});
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(filled(outcome, i, {x, mask({1})}), (Numbers{0, 2, 3, 4})) << i;
    EXPECT_EQ(filled(outcome, i, {x, mask({0})}), (Numbers{})) << i;
  }
}

TEST(Counted, JoinedCutAndChosenFrom) {
  const Outcome outcome = rows("float[n,2] j, float[n,2] f, float[1,2] g, int64[2] t, int64 z",
                               "j = Concat<axis = 0>(r, x, r)\n"
                               "zero = Constant<value_ints = [0]>()\n"
                               "three = Constant<value_ints = [3]>()\n"
                               "f = Slice(r, zero, three, zero)\n"
                               "g = Gather<axis = 0>(r, i)\n"
                               "t = Shape(r)\n"
                               "z = Size(r)",
                               ", int64[1] i");
  const auto inputs = [](const Numbers& chosen, std::int64_t i) {
    return std::vector<Tensor>{kRows, mask(chosen), ints({i})};
  };
  EXPECT_EQ(filled(outcome, 0, inputs(kSome, 0)), (Numbers{2, 3, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7, 2, 3, 6, 7}));
  EXPECT_EQ(filled(outcome, 1, inputs(kSome, 0)), (Numbers{2, 3, 6, 7}));
  EXPECT_EQ(filled(outcome, 1, inputs(kAll, 0)), (Numbers{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(filled(outcome, 2, inputs(kSome, -1)), (Numbers{6, 7}));
  EXPECT_EQ(filled(outcome, 3, inputs(kSome, 0)), (Numbers{2, 2}));
  EXPECT_EQ(filled(outcome, 4, inputs(kSome, 0)), (Numbers{4}));
  EXPECT_THROW(ir::evaluate_graph(outcome.graph(), inputs(kSome, 2)), CompileError);
  EXPECT_THROW(ir::evaluate_graph(outcome.graph(), inputs(kSome, -3)), CompileError);
}

/// Exporters spell zeros_like, arange and view of what was chosen like this.
TEST(Counted, ShapesOfACount) {
  const Outcome outcome = rows("float[n,3] z, float[n,2] e, float[n,2,1] v, int64[n] a",
                               "s = Shape(r)\n"
                               "zero = Constant<value_int = 0>()\n"
                               "one = Constant<value_int = 1>()\n"
                               "axis = Constant<value_ints = [0]>()\n"
                               "three = Constant<value_ints = [3]>()\n"
                               "k = Gather(s, zero)\n"
                               "l = Unsqueeze(k, axis)\n"
                               "w = Concat<axis = 0>(l, three)\n"
                               "z = ConstantOfShape(w)\n"
                               "e = Expand(u, s)\n"
                               "two = Constant<value_ints = [2, 1]>()\n"
                               "f = Concat<axis = 0>(l, two)\n"
                               "v = Reshape(r, f)\n"
                               "a = Range(zero, k, one)",
                               ", float[1,2] u");
  const std::vector<Tensor> some = {kRows, mask(kSome), floats({1, 2}, {8, 9})};
  EXPECT_EQ(filled(outcome, 0, some), (Numbers{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(filled(outcome, 1, some), (Numbers{8, 9, 8, 9}));
  EXPECT_EQ(filled(outcome, 2, some), (Numbers{2, 3, 6, 7}));
  EXPECT_EQ(filled(outcome, 3, some), (Numbers{0, 1}));
  EXPECT_EQ(filled(outcome, 3, {kRows, mask(kNone), floats({1, 2}, {8, 9})}), (Numbers{}));
}

/// Another tensor is cut to as many rows as were chosen, and gives its best ones.
TEST(Counted, CutByACount) {
  const Outcome outcome = rows("float[n,2] f, float[n,2] s, float[2,n] t",
                               "d = Shape<start = 0, end = 1>(r)\n"
                               "axis = Constant<value_ints = [0]>()\n"
                               "f = Slice(u, axis, d, axis)\n"
                               "s = Add(f, r)\n"
                               "w = Transpose(u)\n"
                               "t, i = TopK(w, d)",
                               ", float[6,2] u");
  const Numbers u = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  EXPECT_EQ(filled(outcome, 0, {kRows, mask(kSome), floats({6, 2}, u)}), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(filled(outcome, 1, {kRows, mask(kSome), floats({6, 2}, u)}), (Numbers{3, 5, 9, 11}));
  EXPECT_EQ(filled(outcome, 2, {kRows, mask(kSome), floats({6, 2}, u)}), (Numbers{11, 9, 12, 10}));
}

TEST(Counted, ScatteredBackWhereItWas) {
  const Outcome outcome = model("(float[4] x, bool[4] m) => (float[4] y)",
                                "p = NonZero(m)\n"
                                "i = Transpose(p)\n"
                                "v = GatherND(x, i)\n"
                                "w = Neg(v)\n"
                                "y = ScatterND(x, i, w)");
  const Tensor x = floats({4}, {1, 2, 3, 4});
  EXPECT_EQ(filled(outcome, 0, {x, mask(kSome)}), (Numbers{1, -2, 3, -4}));
  EXPECT_EQ(filled(outcome, 0, {x, mask(kNone)}), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(filled(outcome, 0, {x, mask(kAll)}), (Numbers{-1, -2, -3, -4}));
}

TEST(Counted, ElementsScatteredBack) {
  const std::string indices =
      "w = NonZero(m)\n zero = Constant<value_ints = [0]>()\n i = Squeeze(w, zero)\n"
      "r = Gather<axis = 0>(x, i)\n u = Neg(r)\n";
  const Outcome whole =
      model("(float[4] x, bool[4] m) => (float[4] y)", indices + "y = ScatterElements(x, i, u)");
  const Tensor x = floats({4}, {1, 2, 3, 4});
  EXPECT_EQ(filled(whole, 0, {x, mask(kNone)}), (Numbers{1, 2, 3, 4}));
  EXPECT_EQ(filled(whole, 0, {x, mask(kSome)}), (Numbers{1, -2, 3, -4}));
  EXPECT_EQ(filled(whole, 0, {x, mask(kAll)}), (Numbers{-1, -2, -3, -4}));
  // Into what is counted itself, from its end: an index that it does not have ends the run.
  const Outcome part = model("(float[4] x, bool[4] m, int64[2] k, bool[2] o) => (float[n] y)",
                             indices +
                                 "j = Compress<axis = 0>(k, o)\n p = Cast<to = 1>(j)\n"
                                 "y = ScatterElements(r, j, p)");
  const Tensor both = mask({1, 1});
  EXPECT_EQ(filled(part, 0, {x, mask(kSome), ints({-1, 0}), both}), (Numbers{0, -1}));
  EXPECT_EQ(filled(part, 0, {x, mask(kSome), ints({3, -2}), mask({0, 1})}), (Numbers{-2, 4}));
  EXPECT_ANY_THROW(filled(part, 0, {x, mask(kSome), ints({2, 0}), both}));
  EXPECT_ANY_THROW(filled(part, 0, {x, mask(kSome), ints({-3, 0}), both}));
}

/// What exporters write for x[m] * y[m]. Other masks, and other parts of one, choose as many as they like.
TEST(Counted, ChosenByTheSameMaskTwice) {
  const std::string signature = "(float[4] x, float[4] y, float[4] s) => (float[n] z)";
  const auto body = [](const char* mask, const char* chosen) {
    return "half = Constant<value_float = 0.5>()\n a = Greater(s, half)\n zero = Constant<value_ints = "
           "[0]>()\n" +
           fmt::format(
               "b = {}\n i = NonZero(a)\n j = NonZero(b)\n k = Squeeze(i, zero)\n l = Squeeze(j, zero)\n",
               mask) +
           fmt::format("p = Gather<axis = 0>(x, k)\n q = Gather<axis = 0>(y, l)\n {}", chosen);
  };
  const Outcome twice = model(signature, body("Greater(s, half)", "z = Mul(p, q)"));
  const std::vector<Tensor> inputs = {floats({4}, {1, 2, 3, 4}), floats({4}, {5, 6, 7, 8}),
                                      floats({4}, {0, 1, 0, 2})};
  EXPECT_EQ(filled(twice, 0, inputs), (Numbers{12, 32}));
  const Outcome joined = model(
      signature,
      body("Greater(s, half)", "v = Concat<axis = 0>(p, q)\n w = Concat<axis = 0>(q, p)\n z = Sub(v, w)"));
  EXPECT_EQ(filled(joined, 0, inputs), (Numbers{-4, -4, 4, 4}));
  EXPECT_FALSE(import_text(model_text(signature, body("Less(s, half)", "z = Mul(p, q)"))).errors.empty());
}

TEST(Counted, NoStateIsCounted) {
  frontend::ImportOptions options;
  options.states = {{"x", "y"}};
  const std::string text = model_text("(float[4] x, bool[4] m) => (float[n] y)", "y = Compress(x, m)");
  EXPECT_NE(import_text(text, options).errors.find("which --state keeps for the next run"),
            std::string::npos);
}

TEST(Counted, ChosenTwice) {
  const Outcome outcome = rows("float[n,2] y", "y = Compress<axis = 0>(r, o)", ", bool[4] o");
  EXPECT_EQ(filled(outcome, 0, {kRows, mask(kSome), mask({0, 1, 1, 1})}), (Numbers{6, 7}));
  EXPECT_EQ(filled(outcome, 0, {kRows, mask(kSome), mask(kAll)}), (Numbers{2, 3, 6, 7}));
  const Outcome columns = import_text(model_text("(float[4,2] x, bool[4] m, bool[2] o) => (float[n,k] y)",
                                                 "r = Compress<axis = 0>(x, m)\n"
                                                 "y = Compress<axis = 1>(r, o)"));
  EXPECT_NE(columns.errors.find("has two axes whose sizes only data knows"), std::string::npos)
      << columns.errors;
}

/// Ids that are outside of a table are filtered out before it is read: those of no filled row are never looked at.
TEST(Counted, IndicesThatAreNotFilledEndNoRun) {
  const Outcome outcome = model("(float[3,1] t, int64[4] ids, bool[4] m) => (float[n,1] y)",
                                "k = Compress<axis = 0>(ids, m)\n"
                                "y = Gather<axis = 0>(t, k)");
  EXPECT_EQ(filled(outcome, 0, {floats({3, 1}, {5, 6, 7}), ints({99, 2, -77, 0}), mask(kSome)}),
            (Numbers{7, 5}));
}

const std::string kBoxes = "(float[1,4,4] b, float[1,2,4] s";
const std::string kLimits =
    "most = Constant<value_ints = [2]>()\n"
    "share = Constant<value_floats = [0.5]>()\n"
    "least = Constant<value_floats = [0.25]>()\n";
const std::string kSuppressed = kLimits + "r = NonMaxSuppression(b, s, most, share, least)\n";
/// The first two overlap, and so do the last two.
Tensor four_boxes() { return floats({1, 4, 4}, {0, 0, 4, 4, 0, 0, 4, 3, 9, 9, 5, 5, 5, 5, 9, 9}); }
const Numbers kLow = {0, 0.25, 0, 0, 0, 0, 0, 0};
const Numbers kHalf = {0.5, 0.75, 0, 0.5, 0, 0, 0, 0};
const Numbers kHigh = {0.5, 0.75, 1, 0.5, 0.5, 0.5, 0.5, 0.5};

TEST(Counted, NonMaxSuppression) {
  const Outcome rows = model(kBoxes + ") => (int64[n,3] r)", kSuppressed);
  EXPECT_NE(rows.warnings.find("has room for 4"), std::string::npos) << rows.warnings;
  EXPECT_EQ(filled(rows, 0, {four_boxes(), floats({1, 2, 4}, kLow)}), Numbers{});
  EXPECT_EQ(filled(rows, 0, {four_boxes(), floats({1, 2, 4}, kHalf)}), (Numbers{0, 0, 1, 0, 0, 3}));
  EXPECT_EQ(filled(rows, 0, {four_boxes(), floats({1, 2, 4}, kHigh)}),
            (Numbers{0, 0, 2, 0, 0, 1, 0, 1, 0, 0, 1, 2}));
}

TEST(Counted, NonMaxSuppressionByLimitsOfARun) {
  const Outcome rows = model(kBoxes + ", int64 most, float share, float[1] least) => (int64[n,3] r)",
                             "r = NonMaxSuppression<center_point_box = 1>(b, s, most, share, least)");
  EXPECT_NE(rows.warnings.find("has room for 8"), std::string::npos) << rows.warnings;
  const auto run = [&](std::int64_t most, double share) {
    return filled(rows, 0,
                  {four_boxes(), floats({1, 2, 4}, kHigh), tensor(ElementType::kInt64, {}, {double(most)}),
                   floats({}, {share}), floats({1}, {0.5})});
  };
  EXPECT_EQ(run(9, 1), (Numbers{0, 0, 2, 0, 0, 1}));
  EXPECT_EQ(run(1, 0), (Numbers{0, 0, 2}));
  EXPECT_EQ(run(-1, 0), Numbers{});
}

TEST(Counted, NonMaxSuppressionOfWhatIsCounted) {
  const Outcome rows =
      model("(float[4,4] b, float[4] s) => (float[n,4] y)",
            kLimits +
                "zero = Constant<value_ints = [0]>()\n both = Constant<value_ints = [0, 1]>()\n"
                "box = Constant<value_int = 2>()\n low = Constant<value_float = 0.5>()\n"
                "m = Less(s, low)\n w = NonZero(m)\n at = Squeeze(w, zero)\n"
                "cb = Gather<axis = 0>(b, at)\n cs = Gather<axis = 0>(s, at)\n"
                "b3 = Unsqueeze(cb, zero)\n s3 = Unsqueeze(cs, both)\n"
                "r = NonMaxSuppression(b3, s3, most, share)\n"
                "k = Gather<axis = 1>(r, box)\n y = Gather<axis = 0>(cb, k)");
  const Tensor boxes = floats({4, 4}, {0, 0, 4, 4, 0, 0, 4, 3, 9, 9, 5, 5, 5, 5, 9, 9});
  EXPECT_EQ(filled(rows, 0, {boxes, floats({4}, {0.5, 0.75, 1, 0.5})}), Numbers{});
  EXPECT_EQ(filled(rows, 0, {boxes, floats({4}, {-2, 0.75, 0.25, 0.375})}),
            (Numbers{5, 5, 9, 9, 0, 0, 4, 4}));
}

TEST(Counted, TheBestOfWhatIsCounted) {
  const std::string chosen = "(float[4,2] x, bool[4] m) => (float[n,2] y)";
  const std::string least =
      "r = Compress<axis = 0>(x, m)\n shape = Shape<end = 1>(r)\n"
      "two = Constant<value_ints = [2]>()\n";
  const Tensor x = floats({4, 2}, {1, 8, 2, 7, 3, 6, 4, 5});
  for (const char* fewer :
       {"k = Min(two, shape)\n", "c = Concat<axis = 0>(two, shape)\n k = ReduceMin(c)\n",
        "a = Cast<to = 6>(two)\n c = Cast<to = 6>(shape)\n d = Min(c, a)\n k = Cast<to = 7>(d)\n"}) {
    const Outcome best = model(chosen, least + fewer + "y, at = TopK<axis = 0>(r, k)");
    EXPECT_NE(best.warnings.find("has room for 2"), std::string::npos) << fewer << best.warnings;
    EXPECT_EQ(filled(best, 0, {x, mask(kNone)}), Numbers{}) << fewer;
    EXPECT_EQ(filled(best, 0, {x, mask({0, 1, 0, 0})}), (Numbers{2, 7})) << fewer;
    EXPECT_EQ(filled(best, 0, {x, mask(kAll)}), (Numbers{4, 8, 3, 7})) << fewer;
  }
  const Outcome smallest = model(chosen, least + "y, at = TopK<axis = 0, largest = 0>(r, shape)");
  EXPECT_EQ(filled(smallest, 0, {x, mask(kSome)}), (Numbers{2, 5, 4, 7}));
  const Outcome exact = model(chosen, least + "y, at = TopK<axis = 0>(r, two)");
  EXPECT_EQ(filled(exact, 0, {x, mask(kSome)}), (Numbers{4, 7, 2, 5}));
  EXPECT_ANY_THROW(filled(exact, 0, {x, mask({0, 1, 0, 0})}));
}

TEST(Counted, WhatWouldSeeTheRestIsRefused) {
  const std::string chosen = "(float[4,2] x, bool[4] m, bool[4] o, float[4,2] z) => (float[a,b] y)";
  const std::string constants =
      "r = Compress<axis = 0>(x, m)\n"
      "zero = Constant<value_int = 0>()\n"
      "one = Constant<value_ints = [1]>()\n"
      "two = Constant<value_ints = [2]>()\n";
  for (const char* body : {
           "y = Add(r, z)",                                       // as many as there is room for
           "y = CumSum<reverse = 1>(r, zero)",                    // the last first
           "s = Compress<axis = 0>(x, o)\n y = Mul(r, s)",        // chosen by another
           "y = ArgMax<axis = 0, select_last_index = 1>(r)",      // the last, which may not be filled
           "y = Slice(r, one, two)",                              // not from the front
           "i = Cast<to = 7>(x)\n y = ScatterElements(z, i, r)",  // as many indices as there is room for
           "t = Transpose(r)\n y = MatMul(t, z)",                 // contracts with all rows
           "y = If(b) <then_branch = g () => (float[p,q] v) { v = Neg(r) }, "
           "else_branch = h () => (float[p,q] w) { w = Transpose(r) }>",  // along another axis in each branch
       }) {
    const bool has_branches = std::string(body).find("If") != std::string::npos;
    const std::string head = has_branches ? "(float[4,2] x, bool[4] m, bool b) => (float[n,k] y)" : chosen;
    EXPECT_FALSE(import_text(model_text(head, constants + body)).errors.empty()) << body;
  }
}

/// A slice that cuts nothing off keeps the count, and the columns of counted rows are no count.
TEST(Counted, ShapesOfRowsAndSlicesToTheEnd) {
  const Outcome outcome =
      model("(float[4,4] x, bool[4] m) => (float[n,4] y)",
            "zero = Constant<value_int = 0>()\n one = Constant<value_int = 1>()\n"
            "first = Constant<value_ints = [0]>()\n last = Constant<value_ints = [-1]>()\n"
            "end = Constant<value_ints = [9223372036854775807]>()\n"
            "r = Compress<axis = 0>(x, m)\n"
            "q = Shape(r)\n g = Gather(q, zero)\n h = Gather(q, one)\n"
            "u = Unsqueeze(g, first)\n v = Unsqueeze(h, first)\n"
            "shape = Concat<axis = 0>(u, v)\n"
            "a, b = Split<axis = 1>(r)\n"
            "c = Unsqueeze(a, last)\n d = Unsqueeze(b, last)\n"
            "t = Concat<axis = 2>(c, d)\n"
            "w = Reshape(t, shape)\n"
            "all = Slice(r, first, end, first)\n"
            "y = Add(w, all)");
  const Tensor x = floats({4, 4}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16});
  EXPECT_EQ(filled(outcome, 0, {x, mask({0, 1, 0, 0})}), (Numbers{10, 13, 13, 16}));
  EXPECT_EQ(filled(outcome, 0, {x, mask(kNone)}), Numbers{});
}

}  // namespace
}  // namespace gcompile::frontend_test
