// Adagrad, Adam and Momentum of ai.onnx.preview.training; ArrayFeatureExtractor and Binarizer of ai.onnx.ml.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/unit/ir/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Tensor;
using ::testing::HasSubstr;
using Reals = std::vector<double>;

OneNode step(const std::string& op, int results) {
  return {.op = op, .results = results, .domain = "ai.onnx.preview.training"};
}

const Tensor kRate = floats({0.5f}, {}), kNone = ints({0}, {}), kSecond = ints({2}, {1});
const Tensor kX = floats({1, 2}, {2}), kGradient = floats({4, -2}, {2}), kState = floats({9, 0}, {2});

TEST(Adagrad, AddsSquaresAndTheRateDecays) {
  OneNode node = step("Adagrad", 2);
  node.operands = {&kRate, &kSecond, &kX, &kGradient, &kState};
  node.attributes.set("decay_factor", 0.5f);
  node.attributes.set("epsilon", 0.0f);
  const std::vector<Tensor> y = run(node);
  EXPECT_EQ(reals(y[1]), (Reals{25, 4}));
  EXPECT_NEAR(y[0].real_at(0), 1 - 0.25 * 4 / 5, 1e-6);
  EXPECT_NEAR(y[0].real_at(1), 2 + 0.25, 1e-6);
}

TEST(Adam, CorrectsTheRateBehindTheFirstStep) {
  OneNode node = step("Adam", 3);
  const Tensor squares = floats({1, 1}, {2});
  node.operands = {&kRate, &kSecond, &kX, &kGradient, &kState, &squares};
  node.attributes.set("alpha", 0.5f);
  node.attributes.set("beta", 0.75f);
  node.attributes.set("epsilon", 0.0f);
  node.attributes.set("norm_coefficient_post", 0.25f);
  const double corrected = 0.5 * std::sqrt(1 - 0.75 * 0.75) / (1 - 0.25);
  std::vector<Tensor> y = run(node);
  EXPECT_EQ(reals(y[1]), (Reals{6.5, -1}));
  EXPECT_EQ(reals(y[2]), (Reals{4.75, 1.75}));
  EXPECT_NEAR(y[0].real_at(0), 0.75 * (1 - corrected * 6.5 / std::sqrt(4.75)), 1e-6);
  node.operands[1] = &kNone;
  EXPECT_NEAR(run(node)[0].real_at(1), 0.75 * (2 + 0.5 / std::sqrt(1.75)), 1e-6);
}

TEST(Momentum, LooksAheadOrNot) {
  OneNode node = step("Momentum", 2);
  node.operands = {&kRate, &kSecond, &kX, &kGradient, &kState};
  node.attributes.set("alpha", 0.5f);
  node.attributes.set("beta", 0.25f);
  node.attributes.set("norm_coefficient", 2.0f);
  node.attributes.set("mode", std::string("standard"));
  std::vector<Tensor> y = run(node);
  EXPECT_EQ(reals(y[1]), (Reals{6, 0.5}));  // of gradients 6 and 2
  EXPECT_EQ(reals(y[0]), (Reals{-2, 1.75}));
  node.attributes.set("mode", std::string("nesterov"));
  EXPECT_EQ(reals(run(node)[0]), (Reals{1 - 0.5 * 9, 2 - 0.5 * 2.25}));
  node.operands[1] = &kNone;
  EXPECT_EQ(reals(run(node)[1]), (Reals{10.5, 2}));
  node.attributes.set("mode", std::string("heavy"));
  EXPECT_THAT(error_of([&] { run(node); }), HasSubstr("'mode' is 'heavy'"));
}

TEST(Momentum, OfSeveralTensors) {
  OneNode node = step("Momentum", 4);
  const Tensor one = floats({3}, {1, 1}), zero = floats({0}, {1, 1});
  node.operands = {&kRate, &kNone, &kX, &one, &kGradient, &zero, &kState, &zero};
  for (const char* name : {"alpha", "beta", "norm_coefficient"}) node.attributes.set(name, 0.0f);
  node.attributes.set("mode", std::string("standard"));
  const std::vector<Tensor> y = run(node);
  EXPECT_EQ(reals(y[0]), (Reals{-1, 3}));
  EXPECT_EQ(reals(y[1]), (Reals{3}));
  EXPECT_EQ(reals(y[2]), (Reals{4, -2}));
  node.operands.pop_back();
  EXPECT_THAT(error_of([&] { run(node); }), HasSubstr("there must be 3 inputs for each tensor, not 5"));
  node.operands.push_back(&kX);
  EXPECT_THAT(error_of([&] { run(node); }),
              HasSubstr("input 7 must have the type float32[1, 1] of its tensor"));
}

TEST(MachineLearning, ArrayFeatureExtractorMakesRowsOfALine) {
  const Tensor places = ints({2, 0, 2}, {1, 3}), line = floats({5, 6, 7}, {3});
  const Tensor rows = integers(ElementType::kInt32, {1, 2, 3, 4, 5, 6}, {2, 3});
  OneNode node{.op = "ArrayFeatureExtractor", .operands = {&line, &places}, .domain = "ai.onnx.ml"};
  const Tensor y = run(node)[0];
  EXPECT_EQ(y.shape(), (ir::Shape{1, 3}));
  EXPECT_EQ(reals(y), (Reals{7, 5, 7}));
  node.operands[0] = &rows;
  EXPECT_EQ(reals(run(node)[0]), (Reals{3, 1, 3, 6, 4, 6}));
}

TEST(MachineLearning, BinarizerComparesIntegersWithAFraction) {
  const Tensor x = integers(ElementType::kInt64, {0, 1, 2, -3}, {4});
  OneNode node{.op = "Binarizer", .operands = {&x}, .domain = "ai.onnx.ml"};
  EXPECT_EQ(run(node)[0].ints(), (std::vector<std::int64_t>{0, 1, 1, 0}));
  node.attributes.set("threshold", 1.5f);
  EXPECT_EQ(run(node)[0].ints(), (std::vector<std::int64_t>{0, 0, 1, 0}));
}

}  // namespace
}  // namespace gcompile::testing
