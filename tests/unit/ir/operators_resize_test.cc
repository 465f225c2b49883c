// Resize and Upsample: which axes get a formula, which a table, and the histories before opset 19.

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/resize_plan.h"
#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::AxisFormula;
using ir::AxisTable;
using ir::ResizeAxis;
using ir::ResizeMethod;
using ir::Tensor;

TEST(ResizePlan, IntegralFactorsAreFormulas) {
  for (const char* nearest : {"floor", "round_prefer_floor", "round_prefer_ceil"}) {
    ResizeMethod method;
    method.nearest = nearest;
    const AxisTable doubled = ir::axis_table({5, 10, 2}, method);
    const AxisFormula half = ir::formula_of(doubled).value_or(AxisFormula{0, 0, 0});
    if (std::string(nearest) == "floor") continue;  // -0.25 is clamped: no formula of this kind
    EXPECT_EQ(half.multiplier, 1);
    EXPECT_EQ(half.divisor, 2);
    EXPECT_EQ(half.offset, 0);
  }
  ResizeMethod asymmetric;
  asymmetric.coordinates = "asymmetric";
  asymmetric.nearest = "floor";
  EXPECT_EQ(ir::formula_of(ir::axis_table({4, 12, 3}, asymmetric)), (AxisFormula{1, 0, 3}));
  EXPECT_EQ(ir::formula_of(ir::axis_table({8, 4, 0.5}, asymmetric)), (AxisFormula{2, 0, 1}));
  EXPECT_EQ(ir::formula_of(ir::axis_table({4, 6, 1.5}, asymmetric)), (AxisFormula{2, 0, 3}));
}

/// TensorFlow's centres, and no way back to corners: (x + 0.5) / scale.
TEST(ResizePlan, NearestOfOpset11ReadsAtTheCentresOfTensorFlow) {
  ResizeMethod method;
  method.coordinates = "tf_half_pixel_for_nn";
  method.nearest = "floor";
  EXPECT_EQ(ir::formula_of(ir::axis_table({4, 8, 2}, method)), (AxisFormula{1, 0, 2}));
  EXPECT_EQ(ir::axis_table({4, 6, 1.5}, method).positions, (std::vector<std::int64_t>{0, 1, 1, 2, 3, 3}));
}

// A scale of 1 reads every element where it is, also where its centre, rounded up, is the next one.
TEST(ResizePlan, AnAxisThatKeepsItsSizeIsReadWhereItIs) {
  for (const char* coordinates : {"tf_half_pixel_for_nn", "half_pixel", "asymmetric", "align_corners"}) {
    for (const char* nearest : {"ceil", "floor", "round_prefer_floor", "round_prefer_ceil"}) {
      ResizeMethod method;
      method.coordinates = coordinates;
      method.nearest = nearest;
      EXPECT_EQ(ir::axis_table({4, 4, 1}, method).positions, (std::vector<std::int64_t>{0, 1, 2, 3}))
          << coordinates << ' ' << nearest;
    }
  }
}

/// ONNX Runtime computes in float32: element 137 of 100 enlarged by 1.37 is read at 100 x 1.37f / 1.37f.
TEST(ResizePlan, NearestPositionsAreThoseOfFloat32) {
  ResizeMethod method;
  method.coordinates = "asymmetric";
  method.nearest = "floor";
  const double scale = static_cast<double>(1.37f);
  const AxisTable scaled = ir::axis_table({100, 137, scale, true}, method);
  const AxisTable sized = ir::axis_table({100, 137, 1.37}, method);
  EXPECT_EQ(scaled.positions, sized.positions);
  for (std::int64_t i = 0; i < 137; ++i) {
    const auto expected = static_cast<std::int64_t>(static_cast<float>(i) / 1.37f);
    EXPECT_EQ(scaled.positions[static_cast<std::size_t>(i)], expected) << i;
  }
  // In double its last element would be read before the position that the model was trained with.
  const AxisTable twice = ir::axis_table({200, 274, scale, true}, method);
  EXPECT_EQ(twice.positions[137], 100);
}

TEST(ResizePlan, HalvesAreRoundedAsTheyAreNotAsTheirSumsAre) {
  ResizeMethod method;
  method.nearest = "round_prefer_ceil";
  // (0 + 0.5f) / 0.50000006f - 0.5f = 0.49999994f, of which the sum with 0.5f is 1.
  const AxisTable table = ir::axis_table({4, 2, static_cast<double>(0.50000006f), true}, method);
  EXPECT_EQ(table.positions[0], 0);
}

TEST(Resize, NearestOfTwoAxesWithoutFormulas) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {2, 3}), scales = floats({2.7f, 2.4f}, {2});
  OneNode resize{.op = "Resize", .operands = {&x, nullptr, &scales}, .known = true};
  resize.attributes.set("nearest_mode", std::string("ceil"));
  EXPECT_EQ(reals(run(resize)[0]).size(), 35u);
}

// What exporters and ONNX Runtime mean by corners:
// first and last elements, also where scales leave part of one.
TEST(ResizePlan, AlignedCornersAreWholeElements) {
  ResizeMethod method;
  method.coordinates = "align_corners";
  method.mode = "linear";
  const AxisTable linear = ir::axis_table({5, 2, 0.5, true}, method);  // 2.5 elements
  EXPECT_EQ(linear.positions, (std::vector<std::int64_t>{0, 4}));
  method.mode = "nearest";
  EXPECT_EQ(ir::axis_table({5, 2, 0.5, true}, method).positions, (std::vector<std::int64_t>{0, 4}));
  EXPECT_EQ(ir::axis_table({4, 6, 1.7, true}, method).positions.back(), 3);
}

TEST(ResizePlan, OneElementIsReadEverywhere) {
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    ResizeMethod method;
    method.mode = mode;
    EXPECT_EQ(ir::formula_of(ir::axis_table({1, 65, 65}, method)), (AxisFormula{0, 0, 1})) << mode;
  }
}

TEST(ResizePlan, AnAxisThatKeepsItsSizeHasNoTable) {
  ResizeMethod linear;
  linear.mode = "linear";
  const AxisTable table = ir::axis_table({7, 7, 1}, linear);
  EXPECT_EQ(table.taps, 1);
  EXPECT_EQ(ir::formula_of(table), AxisFormula{});
}

TEST(ResizePlan, LinearWeightsSumToOneAndClampAtTheEdges) {
  ResizeMethod linear;
  linear.mode = "linear";
  const AxisTable table = ir::axis_table({2, 4, 2}, linear);
  ASSERT_EQ(table.taps, 2);
  EXPECT_EQ(table.positions, (std::vector<std::int64_t>{0, 0, 0, 1, 0, 1, 1, 1}));
  EXPECT_EQ(table.weights, (std::vector<double>{0.25, 0.75, 0.75, 0.25, 0.25, 0.75, 0.75, 0.25}));
}

TEST(Resize, NearestByTwoIsOneMapWithoutTables) {
  const Tensor x = floats({1, 2, 3, 4}, {1, 1, 2, 2}), none = floats({}, {0});
  const Tensor scales = floats({1, 1, 2, 2}, {4});
  const OneNode resize{.op = "Resize", .operands = {&x, &none, &scales}, .known = true};
  ir::Graph graph = graph_of(resize);
  decompose_all(graph);
  ASSERT_EQ(graph.node_count(), 1u);
  EXPECT_EQ(graph.node(graph.nodes()[0]).operands.size(), 1u);
  EXPECT_EQ(reals(evaluate_inputs(graph, resize)[0]),
            (std::vector<double>{1, 1, 2, 2, 1, 1, 2, 2, 3, 3, 4, 4, 3, 3, 4, 4}));
}

TEST(Resize, CubicOverThreeAxesGoesAxisByAxis) {
  std::vector<float> values(27);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const Tensor x = floats(values, {1, 1, 3, 3, 3}), scales = floats({1, 1, 2, 2, 2}, {5});
  OneNode resize{.op = "Resize", .operands = {&x, nullptr, &scales}, .known = true};
  resize.attributes.set("mode", std::string("cubic"));
  ir::Graph graph = graph_of(resize);
  decompose_all(graph);
  EXPECT_EQ(graph.node_count(), 3u);
  const std::vector<double> y = reals(evaluate_inputs(graph, resize)[0]);
  EXPECT_NEAR(y.front() + y.back(), 26, 1e-4);  // the ramp is symmetric
}

TEST(Resize, Opset10ReadsAtXOverScale) {
  const Tensor x = floats({1, 2, 3, 4}, {4}), scales = floats({0.5f}, {1}), up = floats({1.5f}, {1});
  EXPECT_EQ(reals(run({.op = "Resize", .operands = {&x, &scales}, .opset = 10, .known = true})[0]),
            (std::vector<double>{1, 3}));
  EXPECT_EQ(reals(run({.op = "Resize", .operands = {&x, &up}, .opset = 10, .known = true})[0]),
            (std::vector<double>{1, 1, 2, 3, 3, 4}));
}

/// The shape to which an image is resized whose ratio is kept.
ir::Shape kept_ratio(const ir::Shape& image, std::vector<std::int64_t> wanted, const std::string& policy) {
  const Tensor x =
      Tensor::filled({ir::ElementType::kFloat32, image}, ir::Scalar::of_real(ir::ElementType::kFloat32, 1));
  const Tensor sizes = ints(std::move(wanted), {2});
  OneNode resize{.op = "Resize", .operands = {&x, nullptr, nullptr, &sizes}, .known = true};
  resize.attributes.set("keep_aspect_ratio_policy", policy);
  return run(resize)[0].shape();
}

// ONNX rounds to the nearest size, and a half up;
// evaluator and emitted code share the rule, so numbers stand here.
TEST(Resize, SizesThatKeepTheRatioAreRoundedToTheNearest) {
  EXPECT_EQ(kept_ratio({10, 8}, {4, 4}, "not_larger"), (ir::Shape{4, 3}));   // 3.2
  EXPECT_EQ(kept_ratio({10, 7}, {4, 4}, "not_larger"), (ir::Shape{4, 3}));   // 2.8
  EXPECT_EQ(kept_ratio({10, 5}, {5, 5}, "not_larger"), (ir::Shape{5, 3}));   // 2.5
  EXPECT_EQ(kept_ratio({8, 10}, {4, 4}, "not_larger"), (ir::Shape{3, 4}));   // 3.2
  EXPECT_EQ(kept_ratio({10, 8}, {4, 3}, "not_smaller"), (ir::Shape{4, 3}));  // 3.2
  EXPECT_EQ(kept_ratio({10, 7}, {4, 1}, "not_smaller"), (ir::Shape{4, 3}));  // 2.8
  EXPECT_EQ(kept_ratio({3, 4}, {7, 3}, "not_smaller"), (ir::Shape{7, 9}));   // 9.33
  EXPECT_EQ(kept_ratio({10, 8}, {4, 4}, "stretch"), (ir::Shape{4, 4}));
}

/// Where the specification reads element `x` of an axis that grows from `in` to `out` elements.
double position(const std::string& mode, double x, double in, double out, double scale) {
  if (mode == "asymmetric") return x / scale;
  if (mode == "align_corners") return out == 1 ? 0 : x * (in - 1) / (out - 1);
  if (mode == "pytorch_half_pixel" && out == 1) return 0;
  const double centre = (x + 0.5) / scale - 0.5;
  return mode == "half_pixel_symmetric" ? in / 2 * (1 - out / (scale * in)) + centre : centre;
}

/// Between elements that are their own positions, linear weights give positions.
TEST(Resize, ReadsWhereTheSpecificationSays) {
  for (const char* mode :
       {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric", "align_corners"}) {
    for (const std::int64_t in : {2, 4, 5, 7}) {
      for (const float scale : {0.3f, 0.5f, 0.6f, 1.3f, 1.5f, 2.0f, 2.7f}) {
        std::vector<float> places;
        for (std::int64_t i = 0; i < in; ++i) places.push_back(static_cast<float>(i));
        const auto out = static_cast<std::int64_t>(std::floor(static_cast<float>(in) * scale));
        if (out == 0) continue;
        const Tensor x = floats(places, {in}), scales = floats({scale}, {1});
        OneNode resize{.op = "Resize", .operands = {&x, nullptr, &scales}, .known = true};
        resize.attributes.set("mode", std::string("linear"));
        resize.attributes.set("coordinate_transformation_mode", std::string(mode));
        std::vector<double> expected;
        for (std::int64_t i = 0; i < out; ++i) {
          const double at = position(mode, static_cast<double>(i), static_cast<double>(in),
                                     static_cast<double>(out), static_cast<double>(scale));
          expected.push_back(std::clamp(at, 0.0, static_cast<double>(in - 1)));
        }
        EXPECT_THAT(reals(run(resize)[0]), ::testing::Pointwise(::testing::DoubleNear(1e-5), expected))
            << mode << ", " << in << " by " << scale;
      }
    }
  }
}

TEST(Upsample, IsAResize) {
  const Tensor x = floats({1, 2}, {1, 1, 1, 2}), scales = floats({1, 1, 1, 2}, {4});
  OneNode attribute{.op = "Upsample", .operands = {&x}, .opset = 7, .known = true};
  attribute.attributes.set("scales", std::vector<float>{1, 1, 2, 1});
  EXPECT_EQ(reals(run(attribute)[0]), (std::vector<double>{1, 2, 1, 2}));
  OneNode linear{.op = "Upsample", .operands = {&x, &scales}, .opset = 9, .known = true};
  linear.attributes.set("mode", std::string("linear"));
  EXPECT_EQ(reals(run(linear)[0]), (std::vector<double>{1, 1.5, 2, 2}));
}

TEST(Resize, SaysWhatItDoesNotKnow) {
  const Tensor x = floats({1, 2}, {2}), scales = floats({2}, {1});
  OneNode resize{.op = "Resize", .operands = {&x, nullptr, &scales}};
  EXPECT_EQ(error_of([&] { run(resize); }), "scales must be known at compile time");
  resize.known = true;
  resize.attributes.set("mode", std::string("lanczos"));
  EXPECT_EQ(error_of([&] { run(resize); }), "attribute 'mode' is 'lanczos', which is not known");
}

}  // namespace
}  // namespace gcompile::testing
