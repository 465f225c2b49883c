// Operands that a run gives, and that the shapes which the model declares decide: constants with checks.

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "ir/graph/checks.h"
#include "tests/unit/frontend/frontend_fixture.h"

namespace gcompile::frontend_test {
namespace {

using ir::Tensor;

Tensor ints(const std::vector<std::int64_t>& values) {
  return Tensor::of_ints(values, {static_cast<std::int64_t>(values.size())});
}

Tensor counting(const ir::Shape& shape) {
  Tensor out({ir::ElementType::kFloat32, shape});
  for (std::int64_t i = 0; i < out.count(); ++i)
    out.set(i, ir::Scalar::of_real(ir::ElementType::kFloat32, static_cast<double>(i)));
  return out;
}

/// The elements of output 0, or why there are none.
std::string run(const Outcome& outcome, const std::vector<Tensor>& inputs) {
  if (!outcome.model) return outcome.errors;
  try {
    const Tensor y = ir::evaluate_graph(outcome.graph(), inputs).at(0);
    std::string text;
    for (std::int64_t i = 0; i < y.count(); ++i) text += fmt::format("{}{}", i > 0 ? " " : "", y.real_at(i));
    return text;
  } catch (const CompileError& error) {
    return error.what();
  }
}

constexpr const char* kRefused = "must be such that";

bool is_refused(const Outcome& outcome, const std::vector<Tensor>& inputs) {
  return run(outcome, inputs).find(kRefused) != std::string::npos;
}

Outcome reduction(const std::string& result, const std::string& keep) {
  return import_text(model_text("(float[2,3,3] x, int64[1] axes) => (float[" + result + "] y)",
                                "y = ReduceSum<keepdims = " + keep + ">(x, axes)"));
}

TEST(Settle, AxesOfAReduction) {
  const Outcome outcome = reduction("1,3,3", "1");
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_NE(outcome.warnings.find("W0206"), std::string::npos) << outcome.warnings;
  EXPECT_NE(
      outcome.warnings.find("the input 'axes' must be such that 'y' has the shape [1, 3, 3], as with [0]"),
      std::string::npos)
      << outcome.warnings;
  const Tensor x = counting({2, 3, 3});
  EXPECT_EQ(run(outcome, {x, ints({0})}), "9 11 13 15 17 19 21 23 25");
  EXPECT_EQ(run(outcome, {x, ints({-3})}), "9 11 13 15 17 19 21 23 25");
  for (const std::int64_t other : {1, 2, -1, 3, -4})
    EXPECT_TRUE(is_refused(outcome, {x, ints({other})})) << other;
  ASSERT_EQ(ir::demands_of(outcome.graph()).size(), 1u);
  EXPECT_TRUE(ir::demands_of(outcome.graph())[0].example.identical(ints({0})));
}

TEST(Settle, AxesOfOneSizeAreAChoiceOfTheRun) {
  const Outcome outcome = reduction("2,3", "0");
  ASSERT_TRUE(outcome.model) << outcome.errors;
  const Tensor x = counting({2, 3, 3});
  EXPECT_EQ(run(outcome, {x, ints({1})}), "9 12 15 36 39 42");
  EXPECT_EQ(run(outcome, {x, ints({2})}), "3 12 21 30 39 48");
  EXPECT_EQ(run(outcome, {x, ints({-2})}), "9 12 15 36 39 42");
  EXPECT_TRUE(is_refused(outcome, {x, ints({0})}));
}

TEST(Settle, ShapesMayBeWrittenWithMinusOneAndZero) {
  const Outcome outcome = import_text(
      model_text("(float[2,3,4] x, int64[3] shape) => (float[2,6,2] y)", "y = Reshape(x, shape)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  const Tensor x = counting({2, 3, 4});
  const std::string all = run(outcome, {x, ints({2, 6, 2})});
  EXPECT_EQ(all.substr(0, 5), "0 1 2");
  for (const auto& shape : {ints({0, 6, 2}), ints({-1, 6, 2}), ints({2, -1, 2}), ints({0, 6, -1})})
    EXPECT_EQ(run(outcome, {x, shape}), all);
  for (const auto& shape :
       {ints({2, 0, 2}), ints({-1, -1, 2}), ints({2, 2, 6}), ints({2, 6, 3}), ints({-2, 6, 2})})
    EXPECT_TRUE(is_refused(outcome, {x, shape}));
}

TEST(Settle, PositionsOfASliceAreThoseOfTheRun) {
  const Outcome outcome = import_text(model_text(
      "(float[5,3] x, int64[1] starts, int64[1] ends, int64[1] axes, int64[1] steps) => (float[2,3] y)",
      "y = Slice(x, starts, ends, axes, steps)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  const Tensor x = counting({5, 3});
  const auto slice = [&](std::int64_t start, std::int64_t end, std::int64_t axis, std::int64_t step) {
    return run(outcome, {x, ints({start}), ints({end}), ints({axis}), ints({step})});
  };
  EXPECT_EQ(slice(0, 2, 0, 1), "0 1 2 3 4 5");
  EXPECT_EQ(slice(3, 5, 0, 1), "9 10 11 12 13 14");
  EXPECT_EQ(slice(-2, INT64_MAX, -2, 1), "9 10 11 12 13 14");
  EXPECT_EQ(slice(0, 4, 0, 2), "0 1 2 6 7 8");
  EXPECT_EQ(slice(4, INT64_MIN, 0, -3), "12 13 14 3 4 5");
  EXPECT_EQ(slice(-1, -4, 0, -2), "12 13 14 6 7 8");
  for (const std::string& refused : {slice(0, 3, 0, 1), slice(0, 2, 1, 1), slice(0, 2, 0, 0),
                                     slice(0, 2, 2, 1), slice(4, 5, 0, 1), slice(0, INT64_MAX, 0, INT64_MAX)})
    EXPECT_NE(refused.find(kRefused), std::string::npos) << refused;
}

TEST(Settle, WhereAnInputBeginsInItsPaddingIsOfTheRun) {
  for (const auto& [mode, expected] :
       {std::pair("constant", "0 0 1 2 0 1 2 0 0"), std::pair("edge", "0 0 1 2 2 0 0 2 2"),
        std::pair("reflect", "1 0 1 2 1 0 1 2 1")}) {
    const Outcome outcome = import_text(model_text("(float[3] x, int64[2] pads) => (float[5] y)",
                                                   fmt::format("y = Pad<mode = \"{}\">(x, pads)", mode)));
    ASSERT_TRUE(outcome.model) << outcome.errors;
    const Tensor x = counting({3});
    EXPECT_EQ(run(outcome, {x, ints({1, 1})}).substr(0, 7), std::string(expected).substr(0, 7)) << mode;
    EXPECT_EQ(run(outcome, {x, ints({0, 2})}).substr(0, 5), "0 1 2") << mode;
    EXPECT_EQ(run(outcome, {x, ints({2, 0})}).substr(4), "0 1 2") << mode;
    EXPECT_TRUE(is_refused(outcome, {x, ints({1, 2})})) << mode;
  }
}

TEST(Settle, OperandsMadeOfInputs) {
  const Outcome outcome = import_text(
      model_text("(float[6] x, int32 rows, int64[1] columns) => (float[2,3] y)",
                 "wide = Cast<to = 7>(rows)\none = Constant<value_ints = [1]>()\nfirst = Reshape(wide, one)\n"
                 "shape = Concat<axis = 0>(first, columns)\ny = Reshape(x, shape)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  const Tensor x = counting({6});
  const auto rows = [](std::int64_t n) {
    return Tensor::scalar(ir::Scalar::of_integer(ir::ElementType::kInt32, n));
  };
  EXPECT_EQ(run(outcome, {x, rows(2), ints({3})}), "0 1 2 3 4 5");
  EXPECT_EQ(run(outcome, {x, rows(2), ints({-1})}), "0 1 2 3 4 5");
  EXPECT_TRUE(is_refused(outcome, {x, rows(3), ints({2})}));
  EXPECT_EQ(ir::demands_of(outcome.graph()).size(), 2u);
}

TEST(Settle, ShapesAreGuessedThroughWhatKeepsThem) {
  const Outcome outcome =
      import_text(model_text("(float[2,3] x, int64[1] axes) => (float[2,1] y)",
                             "sum = ReduceSum(x, axes)\nroot = Sqrt(sum)\ny = Neg(root)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  const Tensor ones =
      Tensor::filled({ir::ElementType::kFloat32, {2, 3}}, ir::Scalar::of_real(ir::ElementType::kFloat32, 3));
  EXPECT_EQ(run(outcome, {ones, ints({-1})}), "-3 -3");
  EXPECT_TRUE(is_refused(outcome, {ones, ints({0})}));
}

TEST(Settle, AnyAxisOfARunningSum) {
  const Outcome outcome =
      import_text(model_text("(float[2,3] x, int64 axis) => (float[2,3] y)", "y = CumSum(x, axis)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  const auto axis = [](std::int64_t n) {
    return Tensor::scalar(ir::Scalar::of_integer(ir::ElementType::kInt64, n));
  };
  const Tensor x = counting({2, 3});
  EXPECT_EQ(run(outcome, {x, axis(0)}), "0 1 2 3 5 7");
  EXPECT_EQ(run(outcome, {x, axis(-1)}), "0 1 3 3 7 12");
  EXPECT_TRUE(is_refused(outcome, {x, axis(2)}));
}

TEST(Settle, ConditionsOfACompressAreThoseOfTheRun) {
  const Outcome outcome = import_text(
      model_text("(float[4,2] x, bool[4] taken) => (float[2,2] y)", "y = Compress<axis = 0>(x, taken)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  const auto taken = [](const std::vector<std::int64_t>& bools) {
    Tensor out({ir::ElementType::kBool, {static_cast<std::int64_t>(bools.size())}});
    for (std::size_t i = 0; i < bools.size(); ++i)
      out.set(static_cast<std::int64_t>(i), ir::Scalar::of_integer(ir::ElementType::kBool, bools[i]));
    return out;
  };
  const Tensor x = counting({4, 2});
  EXPECT_EQ(run(outcome, {x, taken({0, 1, 0, 1})}), "2 3 6 7");
  EXPECT_EQ(run(outcome, {x, taken({1, 0, 1, 0})}), "0 1 4 5");
  EXPECT_TRUE(is_refused(outcome, {x, taken({1, 1, 1, 0})}));
}

TEST(Settle, NumbersOfARangeAreThoseOfTheRun) {
  const Outcome outcome = import_text(model_text("(float start, float limit, float delta) => (float[3] y)",
                                                 "y = Range(start, limit, delta)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  const auto range = [&](double start, double limit, double delta) {
    const auto number = [](double x) {
      return Tensor::scalar(ir::Scalar::of_real(ir::ElementType::kFloat32, x));
    };
    return run(outcome, {number(start), number(limit), number(delta)});
  };
  EXPECT_EQ(range(0, 3, 1), "0 1 2");
  EXPECT_EQ(range(5, -1, -2), "5 3 1");
  for (const std::string& refused : {range(0, 4, 1), range(0, 3, -1), range(0, 3, 0), range(1, 1, 0)})
    EXPECT_NE(refused.find(kRefused), std::string::npos) << refused;
}

TEST(Settle, ScalesOfAResizeAreThoseOfTheRun) {
  const Outcome outcome =
      import_text(model_text("(float[4] x, float[1] scales) => (float[2] y)",
                             "y = Resize<nearest_mode = \"floor\", "
                             "coordinate_transformation_mode = \"asymmetric\">(x, , scales)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  const auto scale = [](float number) { return Tensor::of_floats(std::span(&number, 1), {1}); };
  const Tensor x = counting({4});
  EXPECT_EQ(run(outcome, {x, scale(0.5f)}), "0 2");
  EXPECT_EQ(run(outcome, {x, scale(0.7f)}), "0 1");
  EXPECT_TRUE(is_refused(outcome, {x, scale(0.75f)}));
}

TEST(Settle, TheRatioThatAResizeKeepsIsThatOfTheRun) {
  const Outcome outcome =
      import_text(model_text("(float[2,4] x, int64[2] sizes) => (float[2,3] y)",
                             "y = Resize<keep_aspect_ratio_policy = \"not_smaller\">(x, , , sizes)"));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  const Tensor x = counting({2, 4});
  EXPECT_EQ(run(outcome, {x, ints({1, 3})}), "0 1 3 4 5 7");
  EXPECT_TRUE(is_refused(outcome, {x, ints({2, 3})}));
  EXPECT_TRUE(is_refused(outcome, {x, ints({1, 2})}));
}

TEST(Settle, ShrinkingWithAntialiasTakesAsManyElementsAsTheScaleWants) {
  for (const std::string mode : {"linear", "cubic"}) {
    const std::string resize = "y = Resize<antialias = 1, mode = \"" + mode + "\">(x, , scales)";
    const Outcome open = import_text(model_text("(float[8] x, float[1] scales) => (float[3] y)", resize));
    ASSERT_TRUE(open.model) << open.errors;
    const float scale = 0.45f;
    const Tensor x = counting({8}), scales = Tensor::of_floats(std::span(&scale, 1), {1});
    const Outcome known =
        import_text(model_text("(float[8] x) => (float[3] y) <float[1] scales = {0.45}>", resize));
    ASSERT_TRUE(known.model) << known.errors;
    const Tensor y = ir::evaluate_graph(open.graph(), {x, scales})[0];
    const Tensor z = ir::evaluate_graph(known.graph(), {x})[0];
    for (std::int64_t i = 0; i < 3; ++i) EXPECT_NEAR(y.real_at(i), z.real_at(i), 1e-5) << mode << i;
  }
}

TEST(Settle, ALoopMakesAsManyTripsAsItsStackHasRows) {
  const char* const body =
      "t, y = Loop<body = b (int64 i, bool c, float[1] s) => (bool d, float[1] t, float[1] r) "
      "{ d = Identity(c)  t = Add(s, s)  r = Identity(t) }>(m, c, s)";
  const Tensor one = Tensor::of_floats(std::vector<float>{1}, {1});
  const auto truth = [](bool is_true) {
    return Tensor::scalar(ir::Scalar::of_integer(ir::ElementType::kBool, is_true));
  };
  const auto trips = [](std::int64_t count) {
    return Tensor::scalar(ir::Scalar::of_integer(ir::ElementType::kInt64, count));
  };
  const Outcome outcome =
      import_text(model_text("(int64 m, bool c, float[1] s) => (float[1] t, float[3,1] y)", body));
  ASSERT_TRUE(outcome.model) << outcome.errors;
  EXPECT_EQ(run(outcome, {trips(3), truth(true), one}), "8");
  EXPECT_TRUE(is_refused(outcome, {trips(4), truth(true), one}));
  EXPECT_TRUE(is_refused(outcome, {trips(3), truth(false), one}));
  // The number is computed of one of the run.
  const Outcome computed =
      import_text(model_text("(float n, bool c, float[1] s) => (float[1] t, float[3,1] y)",
                             "h = Ceil(n)\nm = Cast<to = 7>(h)\n" + std::string(body)));
  ASSERT_TRUE(computed.model) << computed.errors;
  const auto number = [](double x) {
    return Tensor::scalar(ir::Scalar::of_real(ir::ElementType::kFloat32, x));
  };
  EXPECT_EQ(run(computed, {number(2.5), truth(true), one}), "8");
  EXPECT_TRUE(is_refused(computed, {number(3.5), truth(true), one}));
}

TEST(Settle, WhatIsNotDecidedIsRefused) {
  const auto errors = [](const std::string& signature, const std::string& body) {
    return import_text(model_text(signature, body)).errors;
  };
  const char* const text = "must be known at compile time";
  // Nothing is declared of what the Reshape makes.
  EXPECT_NE(
      errors("(float[6] x, int64[2] s) => (float[3,2] y)", "z = Reshape(x, s)\ny = Transpose(z)").find(text),
      std::string::npos);
  // The declared shape has other elements.
  EXPECT_NE(errors("(float[6] x, int64[2] s) => (float[2,4] y)", "y = Reshape(x, s)").find(text),
            std::string::npos);
  EXPECT_NE(errors("(float[6] x, int64[2] s) => (float[n,3] y)", "y = Reshape(x, s)").find(text),
            std::string::npos);
  // A computed operand is no input.
  EXPECT_NE(
      errors("(float[6] x, int64[2] s) => (float[2,3] y)", "t = Add(s, s)\ny = Reshape(x, t)").find(text),
      std::string::npos);
  // Two nodes want other values of one input.
  EXPECT_NE(errors("(float[6] x, int64[2] s) => (float[2,3] y, float[3,2] z)",
                   "y = Reshape(x, s)\nz = Reshape(x, s)")
                .find(text),
            std::string::npos);
}

}  // namespace
}  // namespace gcompile::frontend_test
