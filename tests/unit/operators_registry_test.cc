// The registry as a whole, and the operators that have no official case in Debian's ONNX: tests/source/
// operator_tests.py demands that every operator is named by a test.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "tests/unit/one_node.h"

namespace gcompile::testing {
namespace {

using ir::ElementType;
using ir::Tensor;
using Ints = std::vector<std::int64_t>;
using Reals = std::vector<double>;

Ints elements(const Tensor& tensor) {
  Ints out;
  for (std::int64_t i = 0; i < tensor.count(); ++i) out.push_back(tensor.at(i).integer);
  return out;
}

Reals reals(const Tensor& tensor) {
  Reals out;
  for (std::int64_t i = 0; i < tensor.count(); ++i) out.push_back(tensor.real_at(i));
  return out;
}

void expect_near(const Tensor& actual, const Reals& expected) {
  ASSERT_EQ(actual.count(), static_cast<std::int64_t>(expected.size()));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(actual.real_at(static_cast<std::int64_t>(i)), expected[i], 1e-6) << "element " << i;
  }
}

TEST(Registry, EveryRecordIsComplete) {
  const ir::Operator* previous = nullptr;
  for (const ir::Operator* op : ir::all_operators()) {
    SCOPED_TRACE(std::string(op->domain) + "." + std::string(op->name));
    EXPECT_EQ(ir::find_operator(op->domain, op->name), op);
    if (previous != nullptr) {
      EXPECT_LT(std::tie(previous->domain, previous->name), std::tie(op->domain, op->name));
    }
    previous = op;
    EXPECT_FALSE(op->summary.empty());
    EXPECT_LE(op->summary.size(), 100u);
    ASSERT_FALSE(op->versions.empty());
    for (std::size_t i = 1; i < op->versions.size(); ++i) EXPECT_LT(op->versions[i - 1], op->versions[i]);
    EXPECT_NE(op->infer, nullptr);
    // Upsample becomes Resize at import; an If is a step of the schedule, not a kernel.
    EXPECT_TRUE(op->lower || op->decompose || op->name == "If" || op->name == "Upsample");
    EXPECT_TRUE(op->operands.max < 0 || op->operands.min <= op->operands.max);
    EXPECT_TRUE(op->results.max < 0 || op->results.min <= op->results.max);
    for (const ir::AttributeSpec& attribute : op->attributes) {
      EXPECT_FALSE(attribute.required && attribute.default_value) << attribute.name;
      if (attribute.default_value) {
        EXPECT_EQ(ir::kind_of(*attribute.default_value), attribute.kind) << attribute.name;
      }
    }
  }
  EXPECT_GT(ir::all_operators().size(), 150u);
  EXPECT_EQ(ir::find_operator("", "NoSuchOperator"), nullptr);
}

TEST(Bitwise, CombineBitsOfEveryWidth) {
  const Tensor a = integers(ElementType::kInt32, {12, -1}, {2});
  const Tensor b = integers(ElementType::kInt32, {10, 6}, {2});
  EXPECT_EQ(elements(run({.op = "BitwiseAnd", .operands = {&a, &b}})[0]), (Ints{8, 6}));
  EXPECT_EQ(elements(run({.op = "BitwiseOr", .operands = {&a, &b}})[0]), (Ints{14, -1}));
  EXPECT_EQ(elements(run({.op = "BitwiseXor", .operands = {&a, &b}})[0]), (Ints{6, -7}));
  EXPECT_EQ(elements(run({.op = "BitwiseNot", .operands = {&a}})[0]), (Ints{-13, 0}));
  const Tensor byte = integers(ElementType::kUInt8, {5}, {1});
  EXPECT_EQ(elements(run({.op = "BitwiseNot", .operands = {&byte}})[0]), Ints{250});
}

TEST(CenterCropPad, KeepsTheMiddle) {
  const Tensor x = floats({1, 2, 3, 4, 5}, {5});
  const Tensor smaller = ints({3}, {1}), larger = ints({8}, {1});
  const auto result = [&](const Tensor& shape) {
    return reals(run({.op = "CenterCropPad", .operands = {&x, &shape}, .known = true})[0]);
  };
  EXPECT_EQ(result(smaller), (Reals{2, 3, 4}));
  EXPECT_EQ(result(larger), (Reals{0, 1, 2, 3, 4, 5, 0, 0}));
}

TEST(LpPool, TakesThePowerMeanWithoutTheMean) {
  const Tensor x = floats({1, -2, 3}, {1, 1, 3});
  OneNode pool{.op = "LpPool", .operands = {&x}};
  pool.attributes.set("kernel_shape", Ints{2});
  pool.attributes.set("p", std::int64_t{1});
  expect_near(run(pool)[0], {3, 5});
  pool.attributes.set("p", std::int64_t{2});
  expect_near(run(pool)[0], {std::sqrt(5.0), std::sqrt(13.0)});
  const Tensor image = floats({3, 0, 0, -4}, {1, 1, 2, 2});
  expect_near(run({.op = "GlobalLpPool", .operands = {&image}})[0], {5});
}

TEST(Gates, MultiplyByTheirGate) {
  const Tensor x = floats({-1.5f, 0, 2}, {3});
  Reals mish, swish;
  for (const double v : {-1.5, 0.0, 2.0}) {
    mish.push_back(v * std::tanh(std::log1p(std::exp(v))));
    swish.push_back(v / (1 + std::exp(-2 * v)));
  }
  expect_near(run({.op = "Mish", .operands = {&x}})[0], mish);
  OneNode node{.op = "Swish", .operands = {&x}};
  node.attributes.set("alpha", 2.0f);
  expect_near(run(node)[0], swish);
}

}  // namespace
}  // namespace gcompile::testing
