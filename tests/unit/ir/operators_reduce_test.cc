// Reductions and normalisations: histories, empty axes and extremes that the official cases do not reach.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Shape;
using ir::Tensor;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(Reduce, AxesMayBeAnAttribute) {
  const Tensor x = floats({1, 2, 3, 4}, {2, 2});
  OneNode min{.op = "ReduceMin", .operands = {&x}, .opset = 11};
  min.attributes.set("axes", std::vector<std::int64_t>{-1});
  min.attributes.set("keepdims", std::int64_t{0});
  EXPECT_EQ(reals(run(min)[0]), (std::vector<double>{1, 3}));
}

TEST(Reduce, IntegersStayIntegers) {
  const Tensor x = integers(ElementType::kInt32, {-3, 4}, {2});
  EXPECT_EQ(run({.op = "ReduceL2", .operands = {&x}})[0].ints(), (std::vector<std::int64_t>{5}));
  EXPECT_EQ(run({.op = "ReduceL1", .operands = {&x}})[0].ints(), (std::vector<std::int64_t>{7}));
  EXPECT_EQ(run({.op = "ReduceProd", .operands = {&x}})[0].ints(), (std::vector<std::int64_t>{-12}));
}

TEST(Reduce, LogSumExpKeepsLargeValuesAndInfinities) {
  const Tensor x = floats({1000, 1000, -kInfinity, -kInfinity, kInfinity, 0}, {3, 2});
  const Tensor axes = ints({1}, {1});
  const std::vector<double> y =
      reals(run({.op = "ReduceLogSumExp", .operands = {&x, &axes}, .known = true})[0]);
  EXPECT_NEAR(y[0], 1000 + std::log(2), 1e-4);
  EXPECT_EQ(y[1], -kInfinity);
  EXPECT_EQ(y[2], kInfinity);
}

TEST(ArgMax, PrefersTheFirstOrTheLast) {
  const Tensor x = floats({1, 3, 3}, {3});
  OneNode arg{.op = "ArgMax", .operands = {&x}};
  EXPECT_EQ(run(arg)[0].ints(), (std::vector<std::int64_t>{1}));
  arg.attributes.set("select_last_index", std::int64_t{1});
  EXPECT_EQ(run(arg)[0].ints(), (std::vector<std::int64_t>{2}));
}

TEST(ArgMax, RefusesAnEmptyAxis) {
  const Tensor x = floats({}, {0, 2});
  EXPECT_EQ(error_of([&] { run({.op = "ArgMax", .operands = {&x}}); }), "the axis has no elements");
}

TEST(Hardmax, FlattensBeforeOpset13) {
  const Tensor x = floats({1, 2, 3, 0}, {1, 2, 2});
  EXPECT_EQ(reals(run({.op = "Hardmax", .operands = {&x}, .opset = 11})[0]),
            (std::vector<double>{0, 0, 1, 0}));
  EXPECT_EQ(reals(run({.op = "Hardmax", .operands = {&x}})[0]), (std::vector<double>{0, 1, 1, 0}));
}

TEST(LayerNormalization, DoesNotCancelFarFromZero) {
  const Tensor x = floats({10000, 10001, 10002, 10003}, {1, 4}), scale = floats({1, 1, 1, 1}, {4});
  OneNode norm{.op = "LayerNormalization", .operands = {&x, &scale}};
  norm.attributes.set("epsilon", 0.0f);
  const std::vector<double> y = reals(run(norm)[0]);
  EXPECT_NEAR(y[0], -1.5 / std::sqrt(1.25), 1e-6);
  EXPECT_NEAR(y[3], 1.5 / std::sqrt(1.25), 1e-6);
}

TEST(LayerNormalization, ScalesAndBiasesBroadcastFromTheRight) {
  std::vector<float> numbers, scales, biases;
  for (int i = 0; i < 24; ++i) {
    numbers.push_back(static_cast<float>(i * i % 11));
    scales.push_back(static_cast<float>(2 + i / 4 % 3));
    biases.push_back(static_cast<float>(5 + i % 4));
  }
  const Tensor x = floats(numbers, {2, 3, 4}), column = floats({2, 3, 4}, {3, 1}), one = floats({2}, {1}),
               row = floats({5, 6, 7, 8}, {4}), columns = floats(scales, {2, 3, 4}),
               ones = floats(std::vector<float>(24, 2), {2, 3, 4}), rows = floats(biases, {2, 3, 4});
  for (const std::int64_t axis : {1, 2}) {
    const auto norm = [&](const Tensor& scale, const Tensor& bias) {
      OneNode node{.op = "LayerNormalization", .operands = {&x, &scale, &bias}};
      node.attributes.set("axis", axis);
      return reals(run(node)[0]);
    };
    EXPECT_EQ(norm(column, row), norm(columns, rows));
    EXPECT_EQ(norm(one, column), norm(ones, columns));
    EXPECT_EQ(norm(row, one), norm(rows, ones));
  }
}

TEST(LayerNormalization, IsOneKernelUnlessTheStatisticsAreUsed) {
  const Tensor x = floats({1, 3}, {1, 2}), scale = floats({1, 1}, {2});
  ir::Graph one = graph_of({.op = "LayerNormalization", .operands = {&x, &scale}});
  decompose_all(one);
  EXPECT_EQ(one.node_count(), 1u);
  const std::vector<Tensor> all = run({.op = "LayerNormalization", .operands = {&x, &scale}, .results = 3});
  EXPECT_EQ(reals(all[1]), (std::vector<double>{2}));
  EXPECT_NEAR(reals(all[2])[0], 1, 1e-5);
}

TEST(GroupNormalization, Opset18ScalesGroups) {
  const Tensor x = floats({0, 2, 0, 2, 0, 2, 0, 2}, {1, 4, 2}), scale = floats({1, 10}, {2});
  const Tensor bias = floats({0, 5}, {2});
  OneNode norm{.op = "GroupNormalization", .operands = {&x, &scale, &bias}, .opset = 18};
  norm.attributes.set("num_groups", std::int64_t{2});
  norm.attributes.set("epsilon", 0.0f);
  EXPECT_EQ(reals(run(norm)[0]), (std::vector<double>{-1, 1, -1, 1, -5, 15, -5, 15}));
}

TEST(LpNormalization, ANormOfZeroGivesZero) {
  const Tensor x = floats({0, 0, 3, 4}, {2, 2});
  const std::vector<double> y = reals(run({.op = "LpNormalization", .operands = {&x}})[0]);
  EXPECT_EQ(y[0], 0);
  EXPECT_FLOAT_EQ(y[3], 0.8f);
}

TEST(GlobalPool, ReducesTheSpatialAxes) {
  const Tensor x = floats({1, 2, 3, 6}, {1, 1, 2, 2});
  EXPECT_EQ(run({.op = "GlobalAveragePool", .operands = {&x}})[0].shape(), (Shape{1, 1, 1, 1}));
  EXPECT_EQ(reals(run({.op = "GlobalAveragePool", .operands = {&x}})[0]), (std::vector<double>{3}));
  EXPECT_EQ(reals(run({.op = "GlobalMaxPool", .operands = {&x}})[0]), (std::vector<double>{6}));
}

}  // namespace
}  // namespace gcompile::testing
