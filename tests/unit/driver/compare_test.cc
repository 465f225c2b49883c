#include "driver/verify/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace gcompile {
namespace {

using ir::ElementType;

ir::Tensor reals(ElementType type, const std::vector<double>& values) {
  ir::Tensor tensor(ir::TensorType{type, {static_cast<std::int64_t>(values.size())}});
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<std::int64_t>(i), ir::Scalar::of_real(type, values[i]));
  }
  return tensor;
}

ir::Tensor integers(ElementType type, const std::vector<std::int64_t>& values) {
  ir::Tensor tensor(ir::TensorType{type, {static_cast<std::int64_t>(values.size())}});
  for (std::size_t i = 0; i < values.size(); ++i) {
    tensor.set(static_cast<std::int64_t>(i), ir::Scalar::of_integer(type, values[i]));
  }
  return tensor;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::nan("");

TEST(Compare, FloatsByRelativeAndAbsoluteError) {
  // |error| <= 1e-4 |ref| + 1e-5 max(1, rms): for a reference of 1 that is 1.1e-4.
  EXPECT_TRUE(compare(reals(ElementType::kFloat64, {1}), reals(ElementType::kFloat64, {1 + 1.09e-4})).same);
  EXPECT_FALSE(compare(reals(ElementType::kFloat64, {1}), reals(ElementType::kFloat64, {1 + 1.11e-4})).same);
  // A zero beside large values: the scale is their root mean square.
  const double rms = 100 / std::sqrt(2.0);
  EXPECT_TRUE(
      compare(reals(ElementType::kFloat64, {0, 100}), reals(ElementType::kFloat64, {0.99e-5 * rms, 100}))
          .same);
  EXPECT_FALSE(
      compare(reals(ElementType::kFloat64, {0, 100}), reals(ElementType::kFloat64, {1.01e-5 * rms, 100}))
          .same);
}

Comparison reduced(const std::vector<double>& expected, const std::vector<double>& actual,
                   Precision precision) {
  return compare(reals(ElementType::kFloat32, expected), reals(ElementType::kFloat32, actual), false,
                 precision);
}

TEST(Compare, RoundedFactorsMayMoveAnOutputByItsMagnitude) {
  const std::vector<double> expected = {1, -1, 1, -1};
  const auto moved = [&](double by) { return std::vector<double>{1 + by, -1 - by, 1 - by, -1 + by}; };
  // 16 roundings of 2^-8 of bf16, of 2^-11 of tf32 and fp16, beside 1.1e-4.
  EXPECT_TRUE(reduced(expected, moved(0.0625), Precision::kBf16).same);
  EXPECT_FALSE(reduced(expected, moved(0.0627), Precision::kBf16).same);
  for (const Precision precision : {Precision::kTf32, Precision::kFp16}) {
    EXPECT_TRUE(reduced(expected, moved(0.0078), precision).same);
    EXPECT_FALSE(reduced(expected, moved(0.008), precision).same);
  }
  EXPECT_FALSE(reduced(expected, moved(2e-4), Precision::kFp32).same);
  EXPECT_NEAR(reduced(expected, moved(0.03125), Precision::kBf16).rms_ratio, 0.5, 1e-2);
}

TEST(Compare, OneElementMayMoveFurtherThanAll) {
  std::vector<double> expected(100, 1.0), actual = expected;
  actual[7] = 1.49;  // 4 * 16 roundings of the element and of the root mean square
  EXPECT_TRUE(reduced(expected, actual, Precision::kBf16).same);
  actual[7] = 1.51;
  const Comparison c = reduced(expected, actual, Precision::kBf16);
  EXPECT_FALSE(c.same);
  EXPECT_EQ(c.wrong, 1);
  EXPECT_EQ(c.worst, 7);
}

TEST(Compare, SmallOutputsOfRoundedFactors) {
  // What is below 1/16 is a difference of larger terms, and errs as they do; what is 0 too.
  EXPECT_TRUE(reduced({0, 0.001}, {0.0038, -0.002}, Precision::kBf16).same);
  EXPECT_FALSE(reduced({0, 0.001}, {0.006, -0.004}, Precision::kBf16).same);
}

TEST(Compare, NamesTheWorstElement) {
  const Comparison c =
      compare(reals(ElementType::kFloat32, {1, 2, 3}), reals(ElementType::kFloat32, {1, 2.5, 3.1}));
  EXPECT_FALSE(c.same);
  EXPECT_EQ(c.wrong, 2);
  EXPECT_EQ(c.worst, 1);
  EXPECT_EQ(c.expected, 2);
  EXPECT_EQ(c.actual, 2.5);
}

TEST(Compare, NanAndInfinityOnlyInTheSamePlaces) {
  const ir::Tensor special = reals(ElementType::kFloat32, {kNan, kInfinity, -kInfinity, 1});
  EXPECT_TRUE(compare(special, special).same);
  EXPECT_FALSE(compare(special, reals(ElementType::kFloat32, {0, kInfinity, -kInfinity, 1})).same);
  EXPECT_FALSE(compare(special, reals(ElementType::kFloat32, {kNan, -kInfinity, -kInfinity, 1})).same);
  EXPECT_FALSE(compare(special, reals(ElementType::kFloat32, {kNan, kInfinity, -kInfinity, kNan})).same);
  // An infinity must not loosen the scale for the others.
  EXPECT_FALSE(
      compare(reals(ElementType::kFloat32, {kInfinity, 0}), reals(ElementType::kFloat32, {kInfinity, 1e-3}))
          .same);
}

TEST(Compare, AnInfinityIsNearNoOtherNumber) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    for (const double infinity : {kInfinity, -kInfinity}) {
      for (const double other : {0.0, 1.0, 3e38, -infinity}) {
        EXPECT_FALSE(reduced({infinity, 1}, {other, 1}, precision).same) << other << " for " << infinity;
        EXPECT_FALSE(reduced({other, 1}, {infinity, 1}, precision).same) << infinity << " for " << other;
      }
    }
  }
}

TEST(Compare, SixteenBitFloatsAreCoarser) {
  EXPECT_TRUE(compare(reals(ElementType::kFloat16, {1}), reals(ElementType::kFloat16, {1.01})).same);
  EXPECT_FALSE(compare(reals(ElementType::kFloat16, {1}), reals(ElementType::kFloat16, {1.02})).same);
  EXPECT_TRUE(compare(reals(ElementType::kBFloat16, {1}), reals(ElementType::kBFloat16, {1.0625})).same);
  EXPECT_FALSE(compare(reals(ElementType::kBFloat16, {1}), reals(ElementType::kBFloat16, {1.125})).same);
}

TEST(Compare, IntegersBitForBit) {
  EXPECT_TRUE(compare(integers(ElementType::kInt64, {1, -2}), integers(ElementType::kInt64, {1, -2})).same);
  const Comparison c =
      compare(integers(ElementType::kInt64, {1, -2}), integers(ElementType::kInt64, {1, -1}));
  EXPECT_FALSE(c.same);
  EXPECT_EQ(c.worst, 1);
  EXPECT_FALSE(compare(integers(ElementType::kBool, {0}), integers(ElementType::kBool, {1})).same);
}

TEST(Compare, QuantisedIntegersMayBeOffByOneRarely) {
  std::vector<std::int64_t> values(2000, 7);
  const ir::Tensor expected = integers(ElementType::kInt8, values);
  values[3] = 8;
  values[5] = 6;
  EXPECT_TRUE(compare(expected, integers(ElementType::kInt8, values), true).same);
  EXPECT_FALSE(compare(expected, integers(ElementType::kInt8, values), false).same);
  values[9] = 8;  // 3 of 2000 are more than 0.1 %
  EXPECT_FALSE(compare(expected, integers(ElementType::kInt8, values), true).same);
  values[9] = 7;
  values[3] = 9;
  EXPECT_FALSE(compare(expected, integers(ElementType::kInt8, values), true).same);
}

TEST(Compare, TypesAndShapesMustAgree) {
  EXPECT_FALSE(compare(reals(ElementType::kFloat32, {1}), reals(ElementType::kFloat64, {1})).same);
  EXPECT_FALSE(compare(reals(ElementType::kFloat32, {1}), reals(ElementType::kFloat32, {1, 1})).same);
  EXPECT_TRUE(compare(reals(ElementType::kFloat32, {}), reals(ElementType::kFloat32, {})).same);
}

TEST(Compare, SpellsPositions) {
  EXPECT_EQ(position_text({2, 3, 4}, 23), "[1, 2, 3]");
  EXPECT_EQ(position_text({}, 0), "[]");
}

}  // namespace
}  // namespace gcompile
