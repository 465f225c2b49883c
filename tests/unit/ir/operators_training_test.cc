// Adagrad, Adam and Momentum of ai.onnx.preview.training; random numbers, by the known answers of their generator and by
// moments, and what draws from them; ArrayFeatureExtractor and Binarizer of ai.onnx.ml.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

#include "ir/ops/support.h"
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

// Random numbers --------------------------------------------------------------------------------------------

Tensor draw(ElementType type, bool normal, std::int64_t key, std::int64_t count) {
  const Tensor shape = ints({count}, {1});
  OneNode node{.op = "RandomNumbers", .operands = {&shape}, .domain = "gcompile", .known = true};
  node.attributes.set("dtype", ir::onnx_number_of(type));
  node.attributes.set("normal", std::int64_t{normal});
  node.attributes.set("first", 0.0f);
  node.attributes.set("second", 1.0f);
  node.attributes.set("key", key);
  node.attributes.set("stream", std::int64_t{0});
  return run(node)[0];
}

double mean_of(const Reals& x) {
  return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
}

double deviation_of(const Reals& x) {
  const double mean = mean_of(x);
  double squares = 0;
  for (const double each : x) squares += (each - mean) * (each - mean);
  return std::sqrt(squares / static_cast<double>(x.size()));
}

/// The words of a counter and a key of zeros are 6627e8d5 e169c58d bc57ac4c 9b00dbd8 (Random123, kat_vectors).
TEST(RandomNumbers, AreThoseOfPhilox) {
  EXPECT_EQ(draw(ElementType::kFloat32, false, 0, 1).real_at(0), 0xe169c5 * 0x1p-24);
  EXPECT_EQ(draw(ElementType::kFloat64, false, 0, 1).real_at(0),
            static_cast<double>(0xe169c58d6627e8d5 >> 11) * 0x1p-53);
  const double u = 0xe169c5 * 0x1p-24, v = 0x6627e8 * 0x1p-24;
  EXPECT_NEAR(draw(ElementType::kFloat32, true, 0, 1).real_at(0),
              std::sqrt(-2 * std::log(1 - u)) * std::cos(2 * M_PI * v), 1e-6);
}

TEST(RandomNumbers, HaveTheMomentsOfTheirDistribution) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64, ElementType::kFloat16}) {
    const Reals uniform = reals(draw(type, false, 7, 10000)), normal = reals(draw(type, true, 7, 10000));
    EXPECT_NEAR(mean_of(uniform), 0.5, 0.02);
    EXPECT_NEAR(deviation_of(uniform), std::sqrt(1.0 / 12), 0.01);
    EXPECT_NEAR(mean_of(normal), 0, 0.06);
    EXPECT_NEAR(deviation_of(normal), 1, 0.03);
  }
  EXPECT_NE(reals(draw(ElementType::kFloat32, false, 7, 9)), reals(draw(ElementType::kFloat32, false, 8, 9)));
}

TEST(RandomUniform, TakesShapeTypeAndRangeFromItsAttributes) {
  OneNode node{.op = "RandomUniform"};
  node.attributes.set("shape", std::vector<std::int64_t>{2, 300});
  node.attributes.set("low", -3.0f);
  node.attributes.set("high", 5.0f);
  node.attributes.set("seed", 1.5f);
  const Tensor y = run(node)[0];
  EXPECT_EQ(y.type(), (ir::TensorType{ElementType::kFloat32, {2, 300}}));
  for (const double each : reals(y)) EXPECT_TRUE(each >= -3 && each < 5);
  EXPECT_NEAR(mean_of(reals(y)), 1, 0.4);
  node.attributes.set("shape", std::vector<std::int64_t>{2, -1});
  EXPECT_EQ(error_of([&] { run(node); }), "attribute 'shape' has a negative size");
}

TEST(RandomNormal, HasMeanAndScale) {
  OneNode node{.op = "RandomNormal"};
  node.attributes.set("shape", std::vector<std::int64_t>{5000});
  node.attributes.set("mean", 4.0f);
  node.attributes.set("scale", 0.5f);
  node.attributes.set("dtype", ir::onnx_number_of(ElementType::kFloat64));
  const Tensor y = run(node)[0];
  EXPECT_EQ(y.element(), ElementType::kFloat64);
  EXPECT_NEAR(mean_of(reals(y)), 4, 0.05);
  EXPECT_NEAR(deviation_of(reals(y)), 0.5, 0.03);
}

TEST(RandomLike, HasTheShapeOfATensorAndItsTypeOrAnother) {
  const Tensor x({ElementType::kFloat16, {2, 3}});
  OneNode node{.op = "RandomUniformLike", .operands = {&x}};
  EXPECT_EQ(run(node)[0].type(), x.type());
  node.op = "RandomNormalLike";
  node.attributes.set("dtype", ir::onnx_number_of(ElementType::kFloat64));
  EXPECT_EQ(run(node)[0].type(), (ir::TensorType{ElementType::kFloat64, {2, 3}}));
  node.attributes.set("dtype", ir::onnx_number_of(ElementType::kInt32));
  EXPECT_EQ(error_of([&] { run(node); }), "random numbers are floats");
}

TEST(Bernoulli, IsOneWithTheProbabilityOfItsOperand) {
  std::vector<float> p(4000, 0.25f);
  p[0] = 0;
  p[1] = 1;
  const Tensor x = floats(p, {4000});
  OneNode node{.op = "Bernoulli", .operands = {&x}};
  node.attributes.set("dtype", ir::onnx_number_of(ElementType::kInt32));
  const Tensor y = run(node)[0];
  EXPECT_EQ(y.element(), ElementType::kInt32);
  EXPECT_EQ(y.int_at(0), 0);
  EXPECT_EQ(y.int_at(1), 1);
  EXPECT_NEAR(mean_of(reals(y)), 0.25, 0.03);
}

TEST(Multinomial, DrawsClassesByTheirWeights) {
  const float none = -std::numeric_limits<float>::infinity();
  const Tensor x = floats({none, std::log(1.0f), std::log(3.0f), none, 50, none, none, none}, {2, 4});
  OneNode node{.op = "Multinomial", .operands = {&x}};
  node.attributes.set("sample_size", std::int64_t{2000});
  const Tensor y = run(node)[0];
  EXPECT_EQ(y.type(), (ir::TensorType{ElementType::kInt32, {2, 2000}}));
  int ones = 0, twos = 0;
  for (std::int64_t i = 0; i < 2000; ++i) {
    ones += y.int_at(i) == 1;
    twos += y.int_at(i) == 2;
    EXPECT_EQ(y.int_at(2000 + i), 0);
  }
  EXPECT_EQ(ones + twos, 2000);
  EXPECT_NEAR(ones, 500, 80);
}

TEST(Dropout, DropsInTrainingModeAndScalesWhatItKeeps) {
  const Tensor x = floats(std::vector<float>(1000, 3), {1000}), ratio = floats({0.25f}, {});
  const Tensor yes = integers(ElementType::kBool, {1}, {}), no = integers(ElementType::kBool, {0}, {});
  OneNode node{.op = "Dropout", .operands = {&x, &ratio, &yes}, .results = 2};
  for (const bool known : {false, true}) {
    node.known = known;
    node.operands[2] = &yes;
    const std::vector<Tensor> y = run(node);
    EXPECT_NEAR(mean_of(reals(y[1])), 0.75, 0.05);
    for (std::int64_t i = 0; i < 1000; ++i) EXPECT_EQ(y[0].real_at(i), y[1].int_at(i) ? 4 : 0);
    node.operands[2] = &no;
    EXPECT_TRUE(run(node)[0].identical(x));
    EXPECT_EQ(mean_of(reals(run(node)[1])), 1);
  }
  const Tensor all = floats({1}, {});
  node.operands = {&x, &all, &yes};
  EXPECT_EQ(error_of([&] { run(node); }), "the ratio must lie in [0, 1)");
}

}  // namespace
}  // namespace gcompile::testing
