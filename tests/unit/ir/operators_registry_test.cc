// The registry as a whole, and the operators that have no official case in Debian's ONNX: tests/source/
// operator_tests.py demands that every operator is named by a test.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tests/unit/ir/one_node.h"

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
    // Upsample becomes Resize at import, and bytes that are computed in floats become these; loops become their
    // trips, functions of a node its parts, and sequences lists of values; what draws numbers becomes RandomNumbers;
    // an If is a step of the schedule, not a kernel.
    const bool is_replaced =
        op->name == "Upsample" || op->name.substr(0, 7) == "QLinear" || !op->deterministic;
    const bool is_control =
        op->name == "If" || op->name == "Loop" || op->name == "Scan" || op->name == "FlexAttention";
    const bool is_of_sequences =
        op->name.find("Sequence") != std::string_view::npos || op->name.substr(0, 8) == "Optional";
    EXPECT_TRUE(op->lower || op->decompose || is_control || is_of_sequences ||
                (is_replaced && op->normalise));
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

/// Results of two operands, or nothing when the operator does not take them.
std::optional<std::vector<Tensor>> results_of(const ir::Operator& op, std::vector<const Tensor*> operands) {
  try {
    return run(
        {.op = std::string(op.name), .operands = std::move(operands), .domain = std::string(op.domain)});
  } catch (const OperatorError&) {
    return std::nullopt;
  }
}

TEST(Traits, OperatorsCommuteWhenTheirValuesDo) {
  const Tensor a = floats({1.5f, -2, 0, 7}, {2, 2}), b = floats({0.25f, 3, -1, 7}, {2, 2});
  const Tensor n = integers(ElementType::kUInt8, {9, 4, 0, 7}, {2, 2});
  const Tensor m = integers(ElementType::kUInt8, {2, 5, 3, 7}, {2, 2});
  const Tensor p = integers(ElementType::kBool, {0, 0, 1, 1}, {2, 2});
  const Tensor q = integers(ElementType::kBool, {0, 1, 0, 1}, {2, 2});
  int commuting = 0;
  for (const ir::Operator* op : ir::all_operators()) {
    // The operands of the others are parts of one formula, whatever their values say.
    if (!op->domain.empty() || op->operands.min > 2 || (op->operands.max >= 0 && op->operands.max < 2))
      continue;
    bool taken = false, commutes = true;
    for (const auto& [left, right] : {std::pair(&a, &b), std::pair(&n, &m), std::pair(&p, &q)}) {
      const auto there = results_of(*op, {left, right}), back = results_of(*op, {right, left});
      if (!there || !back) continue;
      taken = true;
      commutes = commutes && there->at(0).identical(back->at(0));
    }
    if (!taken) continue;
    EXPECT_EQ(op->traits.commutative, commutes) << op->name;
    commuting += commutes;
  }
  EXPECT_GE(commuting, 13);
}

TEST(Traits, OperatorsDecideWhenTheirValuesJump) {
  constexpr int kSteps = 20000;
  Tensor line(ir::TensorType{ElementType::kFloat32, {kSteps}});
  for (int i = 0; i < kSteps; ++i)
    line.set(i, ir::Scalar::of_real(ElementType::kFloat32, 3e-4 * i - 3.00005));
  int jumping = 0, followed = 0;
  for (const ir::Operator* op : ir::all_operators()) {
    const bool pointwise = op->operands.min == 1 && op->operands.max >= 1 && op->results.max == 1;
    if (!pointwise || !op->deterministic || op->name == "Hardmax") continue;  // which looks along an axis
    const auto results = results_of(*op, {&line});
    if (!results || results->at(0).type() != line.type()) continue;
    const Tensor& y = results->at(0);
    bool jumps = false;
    for (int i = 2; i + 1 < kSteps; ++i) {
      const auto step = [&](int at) { return std::fabs(y.real_at(at) - y.real_at(at - 1)); };
      // A pole is steep on its way, a step is not.
      jumps = jumps || (step(i) > 0.05 && step(i - 1) < 0.01 && step(i + 1) < 0.01);
    }
    EXPECT_EQ(op->traits.decides, jumps) << op->name;
    jumping += jumps;
    ++followed;
  }
  EXPECT_GE(jumping, 6);
  EXPECT_GE(followed, 45);
  for (const char* name : {"Hardmax", "Mod", "OneHot", "TopK"})
    EXPECT_TRUE(ir::operator_named(name).traits.decides) << name;
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
