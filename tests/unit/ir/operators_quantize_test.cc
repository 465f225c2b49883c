// Quantised operators: the roundings that DESIGN law 7 fixes.

#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Tensor;
using Values = std::vector<std::int64_t>;

Tensor bytes(const std::vector<std::int64_t>& values, ir::Shape shape) {
  return integers(ElementType::kUInt8, values, std::move(shape));
}

TEST(QuantizeLinear, DividesInFloat32AndRoundsHalvesToEven) {
  // 0.1f / 0.1f is 1; 2.5, 3.5 and -0.5 are halves. 3 * 0.1f / 0.1f differs from a product with 1 / 0.1f.
  const Tensor x = floats({5, 7, -1, 510, -3}, {5}), scale = floats({2}, {}), zero = bytes({1}, {});
  EXPECT_EQ(run({.op = "QuantizeLinear", .operands = {&x, &scale, &zero}})[0].ints(),
            (std::vector<std::int64_t>{3, 5, 1, 255, 0}));
}

TEST(QuantizeLinear, TheQuotientIsRoundedBeforeTheInteger) {
  // In double the quotient is just below a half; float32 rounds it to the half, which goes to even.
  const float scale = 0.1f;
  float x = 0;
  for (float candidate = 0.25f; candidate < 30; candidate = std::nextafter(candidate + 0.1f, 100.0f)) {
    const float quotient = candidate / scale;
    const double exact = static_cast<double>(candidate) / static_cast<double>(scale);
    if (std::nearbyint(quotient) != std::nearbyint(exact)) x = candidate;
  }
  for (int half = 1; x == 0 && half < 200; half += 2) {
    const float candidate = static_cast<float>(half) / 2 * scale;
    const float quotient = candidate / scale;
    const double exact = static_cast<double>(candidate) / static_cast<double>(scale);
    if (std::nearbyint(quotient) != std::nearbyint(exact)) x = candidate;
  }
  ASSERT_NE(x, 0) << "no witness found";
  const Tensor xs = floats({x}, {1}), s = floats({scale}, {});
  const auto expected = static_cast<std::int64_t>(std::nearbyint(x / scale));
  EXPECT_EQ(run({.op = "QuantizeLinear", .operands = {&xs, &s}})[0].ints(),
            std::vector<std::int64_t>{expected});
}

TEST(QuantizeLinear, PerAxisScaleMustFitTheAxis) {
  const Tensor x = floats({1, 2, 3, 4}, {2, 2}), scale = floats({1, 2, 3}, {3});
  EXPECT_EQ(error_of([&] {
              run({.op = "QuantizeLinear", .operands = {&x, &scale}});
            }),
            "the scale [3] must have one element per index of axis 1, 2");
}

TEST(DequantizeLinear, SubtractsInIntegers) {
  const Tensor x = bytes({0, 255}, {2}), scale = floats({0.5f}, {}), zero = bytes({255}, {});
  const Tensor y = run({.op = "DequantizeLinear", .operands = {&x, &scale, &zero}})[0];
  EXPECT_EQ(y.real_at(0), -127.5);
  EXPECT_EQ(y.real_at(1), 0);
}

TEST(DynamicQuantizeLinear, SpansZeroAndTheRange) {
  const auto quantised = [](const std::vector<float>& values) {
    const Tensor x = floats(values, {static_cast<std::int64_t>(values.size())});
    return run({.op = "DynamicQuantizeLinear", .operands = {&x}, .results = 3});
  };
  const auto both = quantised({-1, 0, 1.55, 0.005});  // steps of 0.01
  EXPECT_EQ(both[0].ints(), (Values{0, 100, 255, 100}));
  EXPECT_FLOAT_EQ(static_cast<float>(both[1].real_at(0)), 0.01f);
  EXPECT_EQ(both[1].shape(), ir::Shape{});
  EXPECT_EQ(both[2].ints(), Values{100});
  EXPECT_EQ(quantised({4, 1})[0].ints(), (Values{255, 64}));
  EXPECT_EQ(quantised({-2, -1})[2].ints(), Values{255});
  const auto nothing = quantised({0, 0});
  EXPECT_EQ(nothing[0].ints(), (Values{0, 0}));
  EXPECT_EQ(nothing[1].real_at(0), 1);
  const auto empty = quantised({});
  EXPECT_EQ(empty[0].count(), 0);
  EXPECT_EQ(empty[1].real_at(0), 1);
  EXPECT_EQ(empty[2].ints(), Values{0});
}

TEST(QLinearAdd, DequantisesAddsAndQuantises) {
  const Tensor a = bytes({130, 128}, {2}), b = bytes({10, 0}, {2});
  const Tensor sa = floats({0.5f}, {}), za = bytes({128}, {}), sb = floats({0.25f}, {}), zb = bytes({0}, {});
  const Tensor sc = floats({1}, {}), zc = bytes({3}, {});
  const OneNode add{
      .op = "QLinearAdd", .operands = {&a, &sa, &za, &b, &sb, &zb, &sc, &zc}, .domain = "com.microsoft"};
  // 1 + 2.5 = 3.5 -> 4 + 3; 0 + 0 -> 3
  EXPECT_EQ(run(add)[0].ints(), (std::vector<std::int64_t>{7, 3}));
  OneNode multiply = add;
  multiply.op = "QLinearMul";
  EXPECT_EQ(run(multiply)[0].ints(), (std::vector<std::int64_t>{5, 3}));  // 2.5 -> 2 + 3
}

/// Operands X, X_scale, X_zero_point, Y_scale, Y_zero_point: x is (bytes - 128) / 2, y is as the test says.
std::vector<std::int64_t> run_of_one(const char* op, ir::Attributes attributes, const Tensor& x, float scale,
                                     std::int64_t zero) {
  const Tensor half = floats({0.5f}, {}), middle = bytes({128}, {});
  const Tensor y_scale = floats({scale}, {}), y_zero = bytes({zero}, {});
  return run({.op = op,
              .attributes = std::move(attributes),
              .operands = {&x, &half, &middle, &y_scale, &y_zero},
              .domain = "com.microsoft"})[0]
      .ints();
}

TEST(QLinearOfFloats, OneTensorIsComputedBetweenDequantiseAndQuantise) {
  const Tensor row = bytes({124, 128, 132}, {3});  // -2, 0, 2
  EXPECT_EQ(run_of_one("QLinearSigmoid", {}, row, 1.0f / 256, 0), (Values{31, 128, 225}));
  ir::Attributes slope;
  slope.set("alpha", 0.25f);
  EXPECT_EQ(run_of_one("QLinearLeakyRelu", slope, row, 0.5f, 10), (Values{9, 10, 14}));

  const Tensor plane = bytes({128, 130, 132, 134}, {1, 1, 2, 2});  // 0, 1, 2, 3
  EXPECT_EQ(run_of_one("QLinearGlobalAveragePool", {}, plane, 0.25f, 1), Values{7});
  ir::Attributes window;
  window.set("kernel_shape", Values{1, 2});
  EXPECT_EQ(run_of_one("QLinearAveragePool", window, plane, 0.25f, 1), (Values{3, 11}));
  window.set("channels_last", std::int64_t{1});
  EXPECT_EQ(error_of([&] { run_of_one("QLinearAveragePool", window, plane, 0.25f, 1); }),
            "channels_last = 1 is not supported");
}

TEST(QLinearOfFloats, SoftmaxOfAnOpsetBefore13SpansTheAxesFromItsOwnOn) {
  const Tensor x = bytes({128, 128, 128, 128}, {1, 2, 2});
  ir::Attributes attributes;
  attributes.set("axis", std::int64_t{1});
  attributes.set("opset", std::int64_t{13});
  EXPECT_EQ(run_of_one("QLinearSoftmax", attributes, x, 1.0f / 256, 0), (Values{128, 128, 128, 128}));
  attributes.set("opset", std::int64_t{12});
  EXPECT_EQ(run_of_one("QLinearSoftmax", attributes, x, 1.0f / 256, 0), (Values{64, 64, 64, 64}));
}

TEST(QLinearOfFloats, SeveralTensorsHaveScalesOfTheirOwn) {
  const Tensor a = bytes({10, 20}, {2}), b = bytes({3, 4}, {2}), one = floats({1}, {}), two = floats({2}, {});
  const Tensor none = bytes({0}, {}), five = bytes({5}, {});
  ir::Attributes axis;
  axis.set("axis", std::int64_t{0});
  EXPECT_EQ(run({.op = "QLinearConcat",
                 .attributes = axis,
                 .operands = {&two, &five, &a, &one, &none, &b, &two, &none},
                 .domain = "com.microsoft"})[0]
                .ints(),
            (Values{10, 15, 8, 9}));
  const Tensor condition = integers(ElementType::kBool, {1, 0}, {2});
  EXPECT_EQ(run({.op = "QLinearWhere",
                 .operands = {&condition, &a, &one, &none, &b, &two, &none, &one, &five},
                 .domain = "com.microsoft"})[0]
                .ints(),
            (Values{15, 13}));
}

TEST(QGemm, AddsBiasInIntegersAndLeavesFloatsWithoutAScale) {
  const Tensor a = bytes({1, 2, 3, 4}, {2, 2}), b = bytes({1, 1, 0, 1}, {2, 2}), zero = bytes({0}, {});
  const Tensor half = floats({0.5f}, {}), scales = floats({1, 2}, {2}), zeros = bytes({0, 0}, {2});
  const Tensor bias = integers(ElementType::kInt32, {1, -1}, {2}), one = floats({1}, {});
  ir::Attributes attributes;
  attributes.set("transB", std::int64_t{1});
  attributes.set("alpha", 2.0f);
  const OneNode real{.op = "QGemm",
                     .attributes = attributes,
                     .operands = {&a, &half, &zero, &b, &scales, &zeros, &bias},
                     .domain = "com.microsoft"};
  // A B' + C is (4, 1), (8, 3); the scales are 1 and 2.
  const Tensor y = run(real)[0];
  EXPECT_EQ((std::vector<double>{y.real_at(0), y.real_at(1), y.real_at(2), y.real_at(3)}),
            (std::vector<double>{4, 2, 8, 6}));
  OneNode quantised = real;
  for (const Tensor* operand : {&one, &zero}) quantised.operands.push_back(operand);
  EXPECT_EQ(run(quantised)[0].ints(), (Values{4, 2, 8, 6}));
}

TEST(QLinearConv, MultiplierIsRoundedTwice) {
  const float sx = 0.1f, sw = 0.3f, sy = 0.7f;
  const Tensor x = bytes({10, 20, 30, 40}, {1, 1, 2, 2}), w = bytes({7}, {1, 1, 1, 1}), zero = bytes({0}, {});
  const Tensor scale_x = floats({sx}, {}), scale_w = floats({sw}, {1}), scale_y = floats({sy}, {});
  const Tensor zero_w = bytes({2}, {1}), zero_y = bytes({9}, {}),
               bias = integers(ElementType::kInt32, {3}, {1});
  const OneNode conv{.op = "QLinearConv",
                     .operands = {&x, &scale_x, &zero, &w, &scale_w, &zero_w, &scale_y, &zero_y, &bias},
                     .known = true};
  ir::Graph graph = graph_of(conv);
  decompose_all(graph);
  EXPECT_EQ(graph.node_count(), 3u);  // ConvInteger, Add, Requantize: the multiplier is a constant
  const float product = sx * sw;
  const float m = product / sy;
  std::vector<std::int64_t> expected;
  for (const int value : {10, 20, 30, 40}) {
    const auto scaled = static_cast<float>(value * 5 + 3) * m;
    expected.push_back(static_cast<std::int64_t>(std::nearbyint(scaled)) + 9);
  }
  EXPECT_EQ(evaluate_inputs(graph, conv)[0].ints(), expected);
}

TEST(QLinearConv, RunTimeScalesAreMultipliedByNodes) {
  const Tensor x = bytes({10}, {1, 1, 1, 1}), w = bytes({2}, {1, 1, 1, 1}), zero = bytes({0}, {});
  const Tensor one = floats({1}, {}), half = floats({0.5f}, {});
  const OneNode conv{.op = "QLinearConv", .operands = {&x, &half, &zero, &w, &one, &zero, &one, &zero}};
  EXPECT_EQ(run(conv)[0].ints(), std::vector<std::int64_t>{10});
}

TEST(QLinearMatMul, ScalesPerRowAndPerColumn) {
  const Tensor a = bytes({1, 2, 3, 4}, {2, 2}), b = bytes({1, 0, 0, 1}, {2, 2});
  const Tensor sa = floats({1, 10}, {2}), za = bytes({0, 0}, {2}), sb = floats({1, 2}, {2});
  const Tensor zb = bytes({0, 0}, {2}), sy = floats({1}, {}), zy = bytes({0}, {});
  const OneNode product{.op = "QLinearMatMul", .operands = {&a, &sa, &za, &b, &sb, &zb, &sy, &zy}};
  EXPECT_EQ(run(product)[0].ints(), (std::vector<std::int64_t>{1, 4, 30, 80}));
}

TEST(QLinearMatMul, VectorsLoseTheAddedAxis) {
  const Tensor a = bytes({1, 2}, {2}), b = bytes({3, 4}, {2}), one = floats({1}, {}), zero = bytes({0}, {});
  const OneNode product{.op = "QLinearMatMul", .operands = {&a, &one, &zero, &b, &one, &zero, &one, &zero}};
  const Tensor y = run(product)[0];
  EXPECT_EQ(y.shape(), ir::Shape{});
  EXPECT_EQ(y.ints(), std::vector<std::int64_t>{11});
}

}  // namespace
}  // namespace gcompile::testing
